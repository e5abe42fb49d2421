"""The facts about the output of a mix, or a release in the same form."""

import dataclasses
import os
import re
from collections.abc import Sequence

from toolkit import schema, validating
from toolkit.config import Source, convert
from toolkit.describing import made
from toolkit.describing.common import (
    MEDIA_TYPES,
    Looks,
    dates,
    documents,
    group_of,
    headers,
    media_type,
    not_read,
    numeric_notes,
    suffix_of,
)
from toolkit.describing.facts import Facts, File, Group, Label, PathField, RecordType
from toolkit.describing.fields import completed, fields_of
from toolkit.describing.looking import Looked, Work, merge_types, sha256_of
from toolkit.errors import ConfigError, DataError
from toolkit.mixing import publish
from toolkit.mixing.assemble import PartRecord
from toolkit.mixing.settings import REJECTED
from toolkit.paths import Dataset, exists, join, list_files, size_of, stat
from toolkit.schema import Type
from toolkit.streams import Lines
from toolkit.writer import WRITERS, Writer


def output_facts(
    folder: str, datasets: Sequence[Dataset], looks: Looks, *, first: int | None, examples: int, max_bytes: int
) -> Facts:
    """The facts about the output of a mix, or about a release in the same form.

    Args:
        folder: of the output.
        datasets: that it was made from, where these are known.
        looks: runs looks at files.
        first: rows of each file that are looked at; all by default.
        examples: rows that are kept.
        max_bytes: of a document.

    Raises:
        ConfigError: if nothing is there, or nobody knows what it is.
    """
    if exists(publish.journal_path(folder)):
        raise ConfigError(f"{folder}: expected a finished output, it is just being published; run `toolkit mix`")
    manifest = publish.load_manifest(folder)
    paths = [part.path for part in manifest.parts if part.label != REJECTED] if manifest else _released(folder)
    if not paths:
        raise ConfigError(f"{folder}: expected the output of a mix, got no data files; run `toolkit mix`")
    parts = {part.path: part for part in manifest.parts} if manifest else {}
    for path in paths if manifest else ():
        if (size := size_of(join(folder, path))) != parts[path].size:
            message = f"expected {parts[path].size} bytes by the manifest, got {size}; run `toolkit mix`"
            raise DataError(message, path=join(folder, path))
    writer = _writer(folder, manifest, paths)
    readable = re.search(r"\.jsonl?(\.|$)", os.path.basename(paths[0])) is not None
    looked = looks(
        [
            Work(
                path=join(folder, path),
                max_bytes=max_bytes * 2,
                digest=path not in parts,
                rows=readable,
                first=first,
                examples=examples if not i else 0,
            )
            for i, path in enumerate(paths)
        ]
    )
    labels, cuts = _labels(manifest, writer, paths)
    group = _output_group(folder, writer, paths)
    files = [_file(path, each, parts.get(path), readable) for path, each in zip(paths, looked, strict=True)]
    files += [
        File(p, size_of(join(folder, p)), sha256, "text/plain") for p, sha256 in _checksum_files(folder, manifest)
    ]
    types, absent = merge_types(looked)
    if readable:
        whole = all(each.whole for each in looked)
        group = dataclasses.replace(
            group, columns=_columns(writer, types) if whole else {}, examples=looked[0].examples
        )
    name = "language" if cuts and _is_of_language(manifest, writer) else "label"
    place = _label_place(name, writer, paths, labels) if cuts else []
    record = _output_record(writer, group, types, absent, looked[0].examples, place)
    text = [f.name for f in record.fields if not f.keys] if record else []
    notes = numeric_notes(paths, looked, text) + ([] if record else [not_read("documents")])
    return Facts(
        root=folder,
        groups=[group],
        files=files,
        records=[record] if record else [],
        labels=labels if cuts else [],
        label_name=name,
        ingested=made.ingested(datasets),
        tagged=made.mixed_sets(manifest) if manifest else [],
        mixture=made.mixture(manifest) if manifest else None,
        headers=headers(types),
        dates=dates(looked),
        id_keys=writer.ID,
        notes=notes,
    )


def _released(folder: str) -> list[str]:
    found = validating.data_files(folder)
    suffixes = {path.partition(".")[2] for path in found}
    if len(suffixes) > 1:
        raise ConfigError(f"{folder}: expected files of one kind, got {' and '.join(sorted(suffixes))}")
    return found


def _writer(folder: str, manifest: publish.Manifest | None, paths: Sequence[str]) -> Writer:
    if manifest:
        return convert(Source(manifest.settings["options"]), WRITERS.find(manifest.settings["format"]))
    line = b""
    if media_type(paths[0]) == MEDIA_TYPES[".jsonl"]:
        with Lines(join(folder, paths[0]), 1 << 30) as lines:
            line = next(lines, b"")
    for name in WRITERS.names():
        if (found := WRITERS.find(name).of_line(line)) is not None:
            return found
    raise ConfigError(f"{folder}: expected the output of a mix, or an OSCAR release, got files of another kind")


def _output_record(
    writer: Writer,
    group: Group,
    types: dict[str, Type],
    absent: set[str],
    examples: Sequence[dict[str, object]],
    places: list[PathField],
) -> RecordType | None:
    """The record type of an output's lines; None for text, and what is compressed so that no reader takes it."""
    if group.media_type not in (MEDIA_TYPES[".jsonl"], MEDIA_TYPES[".parquet"]):
        return None
    line = writer.line()
    if line is None:
        return documents(group, types, absent, examples, places)
    seen = list(_columns(writer, types).items())
    opened = [name for name, type_ in _declared(writer) if type_.kind == "object"]
    fields, undescribed = fields_of(seen, opened, writer.ABOUT, ("file", "row", "language", "label"))
    return RecordType(
        name="documents",
        description="One record a document.",
        group=group.name,
        key=["source", "id"] if {"source", "id"} <= {name for name, _ in seen} else [],
        places=places,
        fields=fields,
        undescribed=undescribed,
        examples=[(group.paths[0], i, dict(row)) for i, row in enumerate(examples)],
    )


def _columns(writer: Writer, types: dict[str, Type]) -> dict[str, Type]:
    """The types of a line's keys, declared as far as the format declares them."""
    if writer.line() is None:
        return types
    return {name: completed(type_, types.get(name)) for name, type_ in _declared(writer)}


def _declared(writer: Writer) -> tuple[tuple[str, Type], ...]:
    return schema.from_annotation(writer.line(), type(writer).__name__).fields


def _file(path: str, looked: Looked, part: PartRecord | None, readable: bool) -> File:
    if part:
        return File(path, looked.size, part.sha256, media_type(path), part.documents, part.content_size)
    rows, content = (looked.number, looked.content_size) if readable and looked.whole else (None, None)
    return File(path, looked.size, looked.sha256, media_type(path), rows, content)


_ANY_LABEL = "LABEL"


def _output_group(folder: str, writer: Writer, paths: Sequence[str]) -> Group:
    there = list(list_files(folder, hidden=True))
    suffixes = dict.fromkeys(_suffix(path) for path in paths)
    stem = writer.stem(_ANY_LABEL).replace(_ANY_LABEL, "*")
    deep = stem.count("/") < max(path.count("/") for path in paths)
    stems = [stem, *([f"**/{stem}"] if deep else [])]
    globs = [each + suffix for suffix in suffixes for each in stems]
    return group_of("documents-files", "Documents, one a line.", paths, globs, there)


def _suffix(path: str) -> str:
    return re.search(r"(\.(jsonl|json|txt|parquet)(\.gz|\.zst|\.zstd)?)?$", path)[0]  # type: ignore[index]  # may be empty


def _labels(manifest: publish.Manifest | None, writer: Writer, paths: Sequence[str]) -> tuple[list[Label], bool]:
    """The labels, and whether the output is cut by one."""
    if manifest is None:
        found: dict[str, list[str]] = {}
        for path in paths:
            found.setdefault(os.path.dirname(path), []).append(path)
        return [Label(label, None, found[label]) for label in sorted(found)], "" not in found
    documents = [
        Label(label, totals.documents, [part.path for part in manifest.parts if part.label == label])
        for label, totals in manifest.labels.items()
        if label != REJECTED
    ]
    given = writer.label()
    routed = any("route" in str(rule.get("kind")) for s in manifest.settings["streams"] for rule in s["rules"])
    by_one = given is not None and given.startswith("'") and not routed and not manifest.settings["label"]
    return documents, not by_one and (given is not None or writer.parts_documents())


def _is_of_language(manifest: publish.Manifest | None, writer: Writer) -> bool:
    if manifest is None:
        return True
    routed = any("route" in str(rule.get("kind")) for s in manifest.settings["streams"] for rule in s["rules"])
    by = writer.label() or " ".join(wanted.path for wanted in writer.wants().values())
    return "language" in by and not routed and not manifest.settings["label"]


def _label_place(name: str, writer: Writer, paths: Sequence[str], labels: Sequence[Label]) -> list[PathField]:
    """The field that reads the label from the path: of its folder, or of the file's name."""
    suffix = suffix_of(paths, sorted({_suffix(path) for path in paths}))
    if not suffix:
        return []
    before, _, behind = writer.stem(_ANY_LABEL).partition(_ANY_LABEL)
    label = "(.+)" if any("/" in each.label for each in labels) else "([^/]+)"
    ending = "/.+" if behind else "(?:_part_.+)?"
    if not behind and label == "([^/]+)":
        label = "([^/]+?)"
    pattern = f"^{re.escape(before)}{label}{ending}{re.escape(suffix)}$"
    return [PathField(name, f"the {name} that the file is of, from its path", pattern)]


def _checksum_files(folder: str, manifest: publish.Manifest | None) -> list[tuple[str, str]]:
    if manifest is None:
        found = [path for path in list_files(folder) if validating.is_checksum_file(path)]
    else:
        found = [path for path in manifest.files if not path.startswith("../")]
    return [(path, sha256_of(join(folder, path))) for path in found if stat(join(folder, path))]
