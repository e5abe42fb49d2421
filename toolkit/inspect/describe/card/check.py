"""Checks of the head of a dataset card against the files that lie there: configurations, numbers, languages."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from toolkit.config import settings
from toolkit.config.settings import Source
from toolkit.errors import ToolkitError
from toolkit.inspect.describe.about import listed
from toolkit.inspect.describe.card import head, merge
from toolkit.storage.globs import glob_regex
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


def is_card(text: str) -> bool:
    """Return whether a README.md is a card of ours; what others wrote may count otherwise."""
    return merge.is_ours(text)


def findings(path: str, text: str, files: Sequence[DataFile], languages: Iterable[str]) -> list[str]:
    """Return what the head of a card says that is not so.

    Args:
        path: of the card, for messages.
        text: of the card.
        files: that have rows.
        languages: labels that the documents have.
    """
    match = _HEAD.match(text)
    if match is None:
        return [f"{path}:1: expected a head between two lines ---, got none"]
    try:
        source = settings.parse("\n" + match[1], path)
        card = msgspec.convert(source.value or {}, _Card)
    except (msgspec.ValidationError, ToolkitError) as error:
        return [str(error) if isinstance(error, ToolkitError) else f"{path}: expected the head of a card: {error}"]
    found = [*_of_configurations(source, card, files), *_of_numbers(source, card, files)]
    if not head.is_given("language", match[1]):
        found += _of_languages(source, card, languages)
    return found


def _of_configurations(source: Source, card: _Card, files: Sequence[DataFile]) -> Iterator[str]:
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


def _of_splits(source: Source, at: tuple[str | int, ...], each: _Config, files: Sequence[DataFile]) -> Iterator[str]:
    """Yield splits of a configuration without files, or with those of another split."""
    for number, some in enumerate(each.data_files):
        place, matched = source.where((*at, number)), _matched([some], files)
        if not matched and len(each.data_files) > 1:
            yield f"{place}: expected files of the split {some.split!r}, got none there"
        others = sorted({head.split_name(file.split) for file in matched if file.split} - {some.split})
        if others:
            got = " and ".join(map(repr, others))
            yield f"{place}: expected files of the split {some.split!r} of {each.config_name!r}, got those of {got}"


def _of_numbers(source: Source, card: _Card, files: Sequence[DataFile]) -> Iterator[str]:
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
        content = _sum([file.content_size for file in some])
        numbers: list[tuple[tuple[str | int, ...], int | None, int | None]] = [
            ((*at, "download_size"), info.download_size, sum(file.size for file in some)),
            ((*at, "dataset_size"), info.dataset_size, content),
        ]
        for index, split in enumerate(info.splits):
            of_split = _matched([part for part in configuration.data_files if part.split == split.name], files)
            numbers += [
                ((*at, "splits", index, name), getattr(split, name), _sum([getattr(file, of) for file in of_split]))
                for name, of in (("num_examples", "rows"), ("num_bytes", "content_size"))
            ]
        for place, got, wanted in numbers:
            if None not in (got, wanted) and got != wanted:
                yield f"{source.where(place)}: expected {wanted} for the files of {info.config_name!r}, got {got}"
    rows = _sum([file.rows for file in files if file.has_documents])
    if rows is not None and card.size_categories and card.size_categories != [head.size_category(rows)]:
        where = source.where(("size_categories",))
        yield f"{where}: expected [{head.size_category(rows)}] for {rows:,} documents, got {card.size_categories}"


def _of_languages(source: Source, card: _Card, languages: Iterable[str]) -> Iterator[str]:
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


def _sum(numbers: Sequence[int | None]) -> int | None:
    return None if None in numbers else sum(number or 0 for number in numbers)
