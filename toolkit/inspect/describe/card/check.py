"""Checks of the head of a dataset card against the files that lie beside it: configurations, numbers, languages."""

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from toolkit.config import settings
from toolkit.config.settings import ConfigNode
from toolkit.data import row_index
from toolkit.data.dataset import Dataset
from toolkit.errors import ToolkitError, amount, in_words
from toolkit.ingest import inputs
from toolkit.inspect.describe.about import listed
from toolkit.inspect.describe.card import head, merge, page
from toolkit.inspect.describe.card.picture import NAME as PICTURE
from toolkit.inspect.describe.croissant import document
from toolkit.inspect.describe.facts.data_file import Looked
from toolkit.inspect.describe.facts.labels import labelling
from toolkit.inspect.validate.one_file import Checked
from toolkit.mix.publish import Manifest
from toolkit.mix.writer import Writer
from toolkit.pages import card as html
from toolkit.records import sets
from toolkit.storage import store_of
from toolkit.storage.globs import glob_regex
from toolkit.storage.paths import exists, join, lacking, size_of
from toolkit.text.languages.labels import NO_LANGUAGE, code_of, tags_of

_HEAD = re.compile(r"---\s*\n(.*?)^---\s*$", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True)
class DataFile:
    """A data file that lies there.

    Attributes:
        path: below the folder of the card.
        size: stored bytes.
        rows: documents, if they were counted.
        content_size: uncompressed bytes, likewise.
        label: by which the file is cut; None if it is not.
        split: by which the files are parted; empty if they are not.
        has_documents: whether its rows are documents, and not their attributes.
    """

    path: str
    size: int
    rows: int | None = None
    content_size: int | None = None
    label: str | None = None
    split: str = ""
    has_documents: bool = True


def check_output(
    folder: str, manifest: Manifest | None, writer: Writer, paths: Sequence[str], done: Sequence[Checked | None]
) -> list[str]:
    """Return what the card of an output, or a release, says that is not so.

    Args:
        folder: of the output.
        manifest: None of a release.
        writer: of its files.
        paths: of the files with documents, below the folder.
        done: what the check of each has counted; None where it failed.
    """
    if not (text := _read(folder)):
        return []
    parts = {part.path: part for part in manifest.parts} if manifest else {}
    looked = [Looked(0, number=(each.rows if each else 0) or 0, labels=each.labels if each else {}) for each in done]
    labels = labelling(manifest, writer, paths, looked, whole=True)
    by_path = {path: each.label for each in labels.labels for path in each.paths}
    files = []
    for path, each in zip(paths, done, strict=True):
        part = parts.get(path)
        rows, content = (each.rows, each.size) if each and each.rows is not None else (None, None)
        if part and rows is None:
            rows, content = part.documents, part.content_size
        split = manifest.split_of_files(part.label) if manifest and part else ""
        files.append(DataFile(path, size_of(join(folder, path)), rows, content, by_path.get(path), split))
    return _findings(folder, text, files, labels.languages)


def check_documents(dataset: Dataset, shards: Sequence[str]) -> list[str]:
    """Return what the card of a folder of documents says that is not so; the folder is the root of the documents."""
    if not (text := _read(dataset.documents)):
        return []
    labels = labelling(None, Writer(), shards, [Looked(0)] * len(shards), whole=False)
    by_path = {path: each.label for each in labels.labels for path in each.paths}
    files = [_shard(dataset, shard, shard, by_path.get(shard)) for shard in shards]
    return _findings(dataset.documents, text, files, labels.languages)


def check_dataset(dataset: Dataset, shards: Sequence[str]) -> list[str]:
    """Return what the card of a dataset, beside the folder of its documents, says that is not so."""
    folder = os.path.dirname(dataset.documents)
    if not (dataset.is_described and (text := _read(folder))):
        return []
    files = [
        _shard(dataset, shard, join(os.path.basename(dataset.documents), dataset.file_of(shard))) for shard in shards
    ]
    for name in dataset.sets():
        covered = inputs.carried_shards(dataset, name)
        for shard in shards if covered is None else [shard for shard in shards if shard in covered]:
            stored = dataset.attribute_file(name, shard)
            path = join(os.path.basename(dataset.attributes), stored[len(dataset.attributes) :].lstrip("/"))
            done = sets.load_record(dataset, name, shard)
            files.append(DataFile(path, size_of(stored), done.rows if done else None, has_documents=False))
    return _findings(folder, text, files, [])


def _shard(dataset: Dataset, shard: str, path: str, label: str | None = None) -> DataFile:
    state = row_index.current(dataset, shard)
    return DataFile(path, size_of(dataset.shard_path(shard)), state.rows if state else None, label=label)


def _read(folder: str) -> str:
    """Return the text of a card of ours, as what others wrote may count otherwise; empty if there is none."""
    path = join(folder, page.NAME)
    text = store_of(path).read(path).decode(errors="replace") if exists(path) else ""
    return text if merge.is_ours(text) else ""


# --- the head ---------------------------------------------------------------------------------------------------------


class _Files(msgspec.Struct):
    split: str = head.SPLIT
    path: str | list[str] = []


class _Config(msgspec.Struct):
    config_name: str = "default"
    data_files: list[_Files] = []


class _Split(msgspec.Struct):
    name: str = ""
    num_examples: int | None = None
    num_bytes: int | None = None


class _Info(msgspec.Struct):
    config_name: str = "default"
    splits: list[_Split] = []
    download_size: int | None = None
    dataset_size: int | None = None


class _Card(msgspec.Struct):
    language: list[str] | str = []
    size_categories: list[str] = []
    configs: list[_Config] = []
    dataset_info: list[_Info] | _Info = []


def _findings(folder: str, text: str, files: Sequence[DataFile], languages: Iterable[str]) -> list[str]:
    """Return what the head of a card says that is not so.

    Args:
        folder: of the card.
        text: of the card.
        files: that have rows.
        languages: labels that the documents have.
    """
    path, match = join(folder, page.NAME), _HEAD.match(text)
    if match is None:
        return [f"{path}:1: expected a head between two lines ---, got none"]
    try:
        source = settings.parse("\n" + match[1], path)
        card = msgspec.convert(source.value or {}, _Card)
    except ToolkitError as error:
        return [str(error)]
    except msgspec.ValidationError as error:
        return [f"{path}: expected the head of a card: {in_words(str(error))}"]
    found = [
        *_of_configurations(source, card, files),
        *_of_numbers(source, card, files),
        *_of_files_beside(folder, text),
    ]
    if not head.is_given("language", match[1]):
        found += _of_languages(source, card, languages)
    return found


def _of_configurations(source: ConfigNode, card: _Card, files: Sequence[DataFile]) -> Iterator[str]:
    """Yield configurations without files, or with those of another label, and files that are not in just one."""
    taken: dict[str, list[str]] = {}
    for number, each in enumerate(card.configs):
        place = source.where(("configs", number))
        some = _files_of(each, files)
        if not some:
            yield f"{place}: expected files of the configuration {each.config_name!r}, got none there"
        for file in some:
            taken.setdefault(file.path, []).append(each.config_name)
        labels = {file.label for file in some} - {None}
        names = [head.configuration_name(label) for label in sorted(filter(None, labels))]
        if names and names != [each.config_name]:
            got = " and ".join(map(repr, names))
            yield f"{place}: expected files of {each.config_name!r} in its configuration, got those of {got}"
        yield from _of_splits(source, ("configs", number, "data_files"), each, files)
    for file in files:
        names = taken.get(file.path, [])
        if len(names) != 1 and head.is_loaded(file.path):
            got = " and ".join(map(repr, names)) or "none"
            yield f"{source.where(('configs',))}: expected one configuration with {file.path}, got {got}"


def _of_splits(
    source: ConfigNode, at: tuple[str | int, ...], each: _Config, files: Sequence[DataFile]
) -> Iterator[str]:
    """Yield splits of a configuration without files, or with those of another split."""
    for number, some in enumerate(each.data_files):
        place, matched = source.where((*at, number)), _matched([some], files)
        if not matched and len(each.data_files) > 1:
            yield f"{place}: expected files of the split {some.split!r}, got none there"
        others = sorted({head.split_name(file.split) for file in matched if file.split} - {some.split})
        if others:
            got = " and ".join(map(repr, others))
            yield f"{place}: expected files of the split {some.split!r} of {each.config_name!r}, got those of {got}"


def _of_numbers(source: ConfigNode, card: _Card, files: Sequence[DataFile]) -> Iterator[str]:
    """Yield numbers of rows and bytes that are not those of the files of a configuration."""
    infos = card.dataset_info if isinstance(card.dataset_info, list) else [card.dataset_info]
    by_name = {each.config_name: each for each in card.configs}
    for number, info in enumerate(infos):
        at: tuple[str | int, ...] = (
            ("dataset_info", number) if isinstance(card.dataset_info, list) else ("dataset_info",)
        )
        configuration = by_name.get(info.config_name)
        if configuration is None:
            yield f"{source.where(at)}: expected the configuration {info.config_name!r} in `configs`, got none"
            continue
        some = _files_of(configuration, files)
        content = head.total([file.content_size for file in some])
        numbers: list[tuple[tuple[str | int, ...], int | None, int | None]] = [
            ((*at, "download_size"), info.download_size, sum(file.size for file in some)),
            ((*at, "dataset_size"), info.dataset_size, content),
        ]
        for index, split in enumerate(info.splits):
            of_split = _matched([part for part in configuration.data_files if part.split == split.name], files)
            numbers += [
                (
                    (*at, "splits", index, name),
                    getattr(split, name),
                    head.total([getattr(file, of) for file in of_split]),
                )
                for name, of in (("num_examples", "rows"), ("num_bytes", "content_size"))
            ]
        for place, got, wanted in numbers:
            if None not in (got, wanted) and got != wanted:
                yield f"{source.where(place)}: expected {wanted} for the files of {info.config_name!r}, got {got}"
    rows = head.total([file.rows for file in files if file.has_documents])
    if rows is not None and card.size_categories and card.size_categories != [head.size_category(rows)]:
        where = source.where(("size_categories",))
        size = f"[{head.size_category(rows)}] for {amount(rows, 'document')}"
        yield f"{where}: expected {size}, got {card.size_categories}"


def _of_files_beside(folder: str, text: str) -> Iterator[str]:
    """Yield that the picture which a card shows is not there, or that its page is that of another card."""
    picture = join(folder, PICTURE)
    if f"]({PICTURE})" in text and not exists(picture):
        number = text[: text.index(f"]({PICTURE})")].count("\n") + 1
        wanted = f"expected the picture {picture} beside it, got {lacking(picture)}; run `toolkit card`"
        yield f"{join(folder, page.NAME)}:{number}: {wanted}"
    path, described = join(folder, html.NAME), join(folder, document.NAME)
    if exists(path) and exists(described):
        data = store_of(path).read(path).decode(errors="replace")
        try:
            fault = html.fault_of(data, text, store_of(described).read(described))
        except msgspec.DecodeError:
            return  # whoever checks that file says so
        if fault:
            yield f"{path}: expected {fault} beside it, got another; run `toolkit card --html`"


def _of_languages(source: ConfigNode, card: _Card, languages: Iterable[str]) -> Iterator[str]:
    tags = tags_of(languages)
    wanted = list(dict.fromkeys(code for tag in tags if (code := code_of(tag)) and code not in NO_LANGUAGE))
    got: list[Any] = listed(card.language)
    place = source.where(("language",))
    for code in wanted:
        if code not in got:
            yield f"{place}: expected {code!r} among the languages, which documents have, got none"
    for code in got:
        if code not in wanted:
            yield f"{place}: expected languages that documents have, got {code!r}"


def _files_of(each: _Config, files: Sequence[DataFile]) -> list[DataFile]:
    return _matched(each.data_files, files)


def _matched(given: Sequence[_Files], files: Sequence[DataFile]) -> list[DataFile]:
    globs = [glob for some in given for glob in listed(some.path)]
    expressions = [glob_regex(glob) for glob in globs]
    return [file for file in files if file.path in globs or any(e.match(file.path) for e in expressions)]
