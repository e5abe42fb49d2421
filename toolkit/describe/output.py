"""Gather the facts about an output or a similar release."""

import contextlib
import hashlib
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from toolkit.config.scale import Scale, declared_in
from toolkit.data import dataset, schema
from toolkit.describe import model, provenance, record_types
from toolkit.describe.fields import bare, completed, fields_of, with_maps
from toolkit.describe.record_types import DOCUMENT, MEDIA_TYPES, DescribeRequest, media_type
from toolkit.describe.scan import FileScan, ScanJob, sha256_of
from toolkit.errors import DAMAGED, ConfigError, DataError, MissingExtra
from toolkit.inspect import targets
from toolkit.inspect.documents import FileDocuments, expected_format
from toolkit.inspect.targets import Format, recorded_format
from toolkit.mix import publication
from toolkit.mix.assemble import PartRecord
from toolkit.mix.publication import Manifest
from toolkit.mix.settings import COPY, REJECTED, MixSettings
from toolkit.mix.writer import Writer
from toolkit.storage.paths import exists, join, list_files, size_of
from toolkit.text.languages.labels import is_known, label_of_path

ANY_LABEL = "LABEL"
"""Stands for a label in the stem of a path."""


def codes_of(name: str) -> str:
    """Return the field with the labels of an output. Its name is `language` or `label`."""
    return f"{name}s/code"


class OutputLabels(NamedTuple):
    """The labels of an output.

    Attributes:
        name: Name of the labels: ``language``, or ``label``.
        labels: Labels of the files, sorted; none if files are not divided by label.
        languages: labels of languages that documents have, sorted.
        places: the fields that read the label, and the split, from the path, if there are patterns for them.
        splits: Splits of the files, with their documents.
    """

    name: str
    labels: list[model.Label]
    languages: list[str]
    places: list[model.PathField]
    splits: list[model.Split]


def labelling(
    manifest: Manifest | None, writer: Writer, paths: Sequence[str], scans: Sequence[FileScan], *, whole: bool
) -> OutputLabels:
    """Return the labels of an output: of its manifest, else those that rows say, else those of paths.

    Args:
        manifest: None of a release.
        writer: Writer of the files.
        paths: Paths of the files.
        scans: Scan of each file.
        whole: True if that is all rows of all of them.
    """
    labels = _of_manifest(manifest, writer) if manifest else _of_files(paths, scans, whole=whole)
    if manifest and manifest.splits:
        return _parted(manifest, writer, paths, labels)
    row_labels = {label for item in scans for label in item.labels}
    if not _is_language(manifest, writer, labels):
        languages = sorted(row_labels) if writer.READING.is_language else []
        return OutputLabels("label", labels, languages, _places("label", writer, paths, labels), [])
    languages = sorted({label.label for label in labels} if labels else row_labels)
    return OutputLabels("language", labels, languages, _places("language", writer, paths, labels), [])


def _parted(manifest: Manifest, writer: Writer, paths: Sequence[str], labels: Sequence[model.Label]) -> OutputLabels:
    """Return the labels of files in folders by split.

    The label is read from the file's name: readers take a field that refers to another one, as that of the split does,
    and any other by the same property of the file, for one.
    """
    merged: dict[str, list[model.Label]] = {}
    for item in labels:
        merged.setdefault(manifest.label_of_rows(item.label), []).append(item)
    results = [
        model.Label(
            label, sum(label.documents or 0 for label in some), [path for label in some for path in label.paths]
        )
        for label, some in sorted(merged.items())
    ]
    splits = [
        model.Split(
            name, share, sum(t.documents for label, t in manifest.labels.items() if label.startswith(f"{name}/"))
        )
        for name, share in manifest.splits.items()
    ]
    name = "language" if _is_language(manifest, writer, results) else "label"
    suffix = re.escape(_suffix(paths))
    before = re.escape(writer.stem(ANY_LABEL).partition(ANY_LABEL)[0])
    places = [
        model.PathField(
            "split", "The split that the file is of, from its path.", f"^{before}([^/]+)/.+{suffix}$", "splits/name"
        )
    ]
    pattern = rf"^([^/]+?)(?:_part_.+)?{suffix}$"
    by_name = {os.path.basename(path): label.label for label in results for path in label.paths}
    matches = ((re.match(pattern, base), label) for base, label in by_name.items())
    if results and all(match and match[1] == label for match, label in matches):
        about = f"The {name} that the file is of, from its name."
        places.append(model.PathField(name, about, pattern, property="filename"))
    return OutputLabels(name, results, [label.label for label in results] if name == "language" else [], places, splits)


def _of_manifest(manifest: Manifest, writer: Writer) -> list[model.Label]:
    expression = writer.label()
    by_one = expression is not None and expression.startswith("'") and not manifest.relabels
    if by_one or (expression is None and not writer.parts_documents()):
        return []
    return [
        model.Label(label, totals.documents, [part.path for part in manifest.parts if part.label == label])
        for label, totals in manifest.labels.items()
        if label != REJECTED
    ]


def _of_files(paths: Sequence[str], scans: Sequence[FileScan], *, whole: bool) -> list[model.Label]:
    results: dict[str, list[tuple[str, int]]] = {}
    for path, item in zip(paths, scans, strict=True):
        label = _of_file(path, item)
        if label is None:
            return []
        results.setdefault(label, []).append((path, item.number))
    return [
        model.Label(label, sum(n for _, n in some) if whole else None, [path for path, _ in some])
        for label, some in sorted(results.items())
    ]


def _of_file(path: str, scans: FileScan) -> str | None:
    """Return the only label of a file's rows; None for several or none. It is spelled as in the path."""
    by_path = label_of_path(path)
    if len(scans.labels) > 1:
        return None
    row_label = next(iter(scans.labels), None)
    return by_path if row_label is None or (by_path and by_path.lower() == row_label.lower()) else row_label


def _is_language(manifest: Manifest | None, writer: Writer, labels: Sequence[model.Label]) -> bool:
    if manifest is None:
        return not labels or any(is_known(label.label) for label in labels)
    by = manifest.settings["label"] or writer.label() or " ".join(value.path for value in writer.wants().values())
    return "language" in by and not manifest.routes


def _places(name: str, writer: Writer, paths: Sequence[str], labels: Sequence[model.Label]) -> list[model.PathField]:
    """Return the path field for the label; none if no pattern fits all files."""
    suffix = _suffix(paths)
    by_path = {path: label.label for label in labels for path in label.paths}
    if not suffix or set(by_path) != set(paths):
        return []
    for pattern in _patterns(writer, re.escape(suffix), [label.label for label in labels]):
        expression = re.compile(pattern)
        matches = ((expression.match(path), label) for path, label in by_path.items())
        if all(match and match[1] == label for match, label in matches):
            about = f"the {name} that the file is of, from its path"
            return [model.PathField(name, about, pattern, codes_of(name))]
    return []


def _patterns(writer: Writer, suffix: str, labels: Sequence[str]) -> Iterator[str]:
    """Yield patterns with the label as their group, the plainest first.

    They are those of the format, of releases (``de_meta/de_meta_part_1``), of folders in folders, and with all labels.
    """
    before, _, behind = (re.escape(part) for part in writer.stem(ANY_LABEL).partition(ANY_LABEL))
    if any("/" in label for label in labels):
        yield f"^{before}(.+)" + ("/.+" if behind else r"(?:_part_\d+)?") + f"{suffix}$"
        return
    if behind:
        yield f"^{before}([^/]+)/.+{suffix}$"
    else:
        yield rf"^{before}([^/]+?)(?:_part_\d+)?{suffix}$"
    yield f"^{before}([^/]+?)(?:_meta)?/.+{suffix}$"
    yield f"^(?:.*/)?([^/]+?)(?:_meta)?/[^/]+{suffix}$"
    yield rf"^(?:.*/)?([^/]+?)(?:_meta)?(?:(?:_part)?_\d+)?{suffix}$"
    listed = "|".join(re.escape(label) for label in sorted(labels, key=lambda label: (-len(label), label)))
    yield rf"^{before}({listed})(?:_part_\d+)?{suffix}$"


def _suffix(paths: Sequence[str]) -> str:
    """Return the common suffix of all data files; empty for several."""
    results = {suffix_in(path) for path in paths}
    return results.pop() if len(results) == 1 else ""


def suffix_in(path: str) -> str:
    """Return the suffix of a data file, with its compression; empty if unknown."""
    match = re.search(r"\.(jsonl|json|txt|parquet)(\.(gz|zst|zstd))?$", os.path.basename(path))
    return match[0] if match else ""


def output_facts(folder: str, datasets: Sequence[dataset.Dataset], request: DescribeRequest) -> model.Facts:
    """Return the facts about an output or a similar release.

    Args:
        folder: Path of the output.
        datasets: Datasets that it was made from, where these are known.
        request: Request for the description.

    Raises:
        ConfigError: if nothing is there, or nobody knows what it is.
    """
    manifest, paths = _published(folder)
    parts = {part.path: part for part in manifest.parts} if manifest else {}
    format_ = recorded_format(manifest.settings) if manifest else expected_format(join(folder, paths[0]))
    writer = format_.writer() if format_ else Writer()  # documents
    if manifest is None and not writer.CONCATENATES:
        _check_columns(writer, join(folder, paths[0]))
    readable = writer.has_json_lines()
    works = [
        scan_job(join(folder, path), format_, request.max_bytes, request.first, digest=path not in parts)
        for path in paths
    ]
    scans = request.looks(works)
    whole = readable and all(item.whole for item in scans)
    in_rows = {label for item in scans for label in item.labels}
    if manifest and not manifest.relabels:  # files have the labels that the manifest gives
        result = labelling(manifest, writer, paths, [FileScan(0)] * len(paths), whole=whole)
    else:
        result = labelling(manifest, writer, paths, scans, whole=whole)
    group = _output_group(folder, writer, paths)
    parted = [_file(path, item, parts.get(path), readable) for path, item in zip(paths, scans, strict=True)]
    files = _files(folder, manifest, parted)
    types, absent = record_types.merge_types(scans)
    rows, example, notes = _examples(folder, writer, paths, request.examples, request.max_bytes * 2)
    if whole or group.media_type == MEDIA_TYPES[".parquet"]:
        group = msgspec.structs.replace(group, columns=_columns(writer, types))
    if manifest and writer.takes_all():
        types = _with_declared_maps(types, manifest)
    record = _output_record(writer, group, types, absent, rows, result.places)
    if record and manifest:
        record = _as_mixed(record, manifest)
    if record and whole and in_rows and in_rows <= {label.label for label in result.labels}:
        fields = [
            msgspec.structs.replace(field, references=codes_of(result.name)) if _has_label(field) else field
            for field in record.fields
        ]
        record = msgspec.structs.replace(record, fields=fields)
    notes += record_types.notes_of(paths, scans, record)
    notes += [] if record else [record_types.not_read("documents", paths)]
    notes += [_LINES] if record and record.name == "lines" else []
    return model.Facts(
        root=folder,
        groups=[group],
        files=files,
        records=[record] if record else [],
        labels=result.labels,
        label_name=result.name,
        languages=result.languages,
        splits=result.splits,
        ingested=provenance.ingested(datasets),
        tagged=provenance.mixed_sets(manifest, writer) if manifest else [],
        taggers=provenance.mixed_taggers(manifest) if manifest else {},
        mixture=provenance.mixture(manifest) if manifest else None,
        takedown=provenance.dropped(provenance.mixture(manifest)) if manifest else None,
        id_keys=writer.ID,
        format=format_,
        notes=[*notes, *record_types.odd_paths_note(file.path for file in files)],
        example=example,
        is_output=True,
        **record_types.origins(scans, whole=whole),
    )


def scan_job(path: str, format_: Format | None, max_bytes: int, first: int | None = None, *, digest: bool) -> ScanJob:
    """Return the look at a file of an output, by its format; None for documents."""
    writer = format_.writer() if format_ else Writer()
    return ScanJob(
        path=path,
        max_bytes=max_bytes * 2,
        digest=digest,
        rows=writer.has_json_lines(),
        columns=targets.is_table(path),
        lines=writer.CONCATENATES,
        first=first,
        format=format_,
    )


def _published(folder: str) -> tuple[publication.Manifest | None, list[str]]:
    """Return an output's manifest and file paths. A release has no manifest."""
    if exists(publication.intent_path(folder)):
        raise ConfigError(
            f"{folder}: expected a finished output, got one whose publication is not complete; run "
            f"`toolkit mix` to complete it"
        )
    manifest = publication.load_manifest(folder)
    paths = [part.path for part in manifest.parts if part.label != REJECTED] if manifest else _released(folder)
    if not paths and manifest:
        raise ConfigError(
            f"{folder}: expected documents to describe, got an output without any: of {manifest.totals.rows:,} the mix "
            "has kept none; change its rules, or its inputs"
        )
    if not paths:
        raise ConfigError(f"{folder}: expected the output of a mix, got no data files; run `toolkit mix`")
    if manifest and (fault := publication.fault_of(folder, _described(manifest))):
        raise DataError(fault)
    return manifest, paths


def _files(folder: str, manifest: publication.Manifest | None, files: list[model.DataFile]) -> list[model.DataFile]:
    """Return the files of an output: its parts, now with their splits, then lists of checksums."""
    if manifest:
        labels = {part.path: part.label for part in manifest.parts}
        files = [msgspec.structs.replace(file, split=manifest.split_of_files(labels[file.path])) for file in files]
    return files + [
        model.DataFile(p, size_of(join(folder, p)), sha256, "text/plain")
        for p, sha256 in _checksum_files(folder, manifest)
    ]


def _check_columns(writer: Writer, path: str) -> None:
    """Raise ConfigError if an external file's columns differ from the declared ones."""
    with contextlib.suppress(MissingExtra):  # who has not the package cannot read rows, and describes the files
        for row, fault in writer.check_file(path, first=1):
            place = path if row is None else f"{path}:{row}"
            raise ConfigError(f"{place}: {fault}")


def _examples(
    folder: str, writer: Writer, paths: Sequence[str], number: int, max_bytes: int
) -> tuple[list[model.ExampleRow], tuple[str, dict[str, Any] | str] | None, list[str]]:
    """Return the first rows and document, and a note on unreadable files."""
    if not number:
        return [], None, []
    if writer.CONCATENATES and not writer.has_json_lines():
        readers = ((path, FileDocuments(join(folder, path), writer, max_bytes, {})) for path in paths)
        firsts = ((path, next((document.text for document, _ in reader), "")) for path, reader in readers)
        return [], next((first for first in firsts if first[1]), None), []
    rows = record_types.json_rows(max_bytes) if writer.CONCATENATES else writer.read_rows
    try:
        examples = record_types.first_rows(folder, paths, number, rows)
    except MissingExtra as error:
        return [], None, [f"no examples: {error}"]
    return examples, (examples[0].path, examples[0].value) if examples else None, []


def _with_declared_maps(types: dict[str, schema.Type], manifest: publication.Manifest) -> dict[str, schema.Type]:
    """Return the types with maps in place of attributes declared as maps."""
    declared: dict[str, schema.Type] = {}
    for keys in manifest.sets.values():
        for key in keys:
            type_ = schema.from_json(key["type"])
            before = declared.get(key["name"])
            declared[key["name"]] = with_maps(type_, before) if before else type_
    result = types.get("attributes")
    if result is None or bare(result).kind != "object":
        return types
    return types | {"attributes": with_maps(result, schema.Type("object", fields=tuple(declared.items())))}


def _released(folder: str) -> list[str]:
    target = targets.target_of(folder)
    results = target.files if target else []
    if target and target.kind == "dataset":  # which an output with its parts in `documents/` looks like
        results = [f"documents/{shard}" for shard in dataset.Dataset(join(folder, "documents"), folder).shards()]
    suffixes = {suffix_in(path) for path in results}
    if len(suffixes) > 1:
        raise ConfigError(f"{folder}: expected files of one kind, got {' and '.join(sorted(suffixes))}")
    return results


def _output_record(
    writer: Writer,
    group: model.FileGroup,
    types: dict[str, schema.Type],
    absent: set[str],
    examples: list[model.ExampleRow],
    places: list[model.PathField],
) -> model.RecordType | None:
    """Return the record type of an output's lines; None for what is compressed so that no reader takes it."""
    if group.media_type == MEDIA_TYPES[".txt"]:
        return _text_lines(group, places)
    if group.media_type not in (MEDIA_TYPES[".jsonl"], MEDIA_TYPES[".parquet"]):
        return None
    line = writer.line()
    if line is None:
        return record_types.documents(group, types, absent, examples, places)
    columns, refused = [*_columns(writer, types).items()], []
    if group.media_type == MEDIA_TYPES[".parquet"]:
        refused = [model.Undescribed(name, "some files have no such column") for name in sorted(absent)]
        columns = [(name, type_) for name, type_ in columns if name not in absent]
    opened = [name for name, type_ in _declared(writer) if type_.kind == "object"]
    descriptions = {**(DOCUMENT if writer.COLUMNS else {}), **writer.ABOUT}
    fields, undescribed = fields_of(columns, opened, descriptions, ("file", "row", "language", "label"))
    return model.RecordType(
        name="documents",
        description="One record a document.",
        group=group.name,
        key=["source", "id"] if {"source", "id"} <= {name for name, _ in columns} else _id_key(writer, dict(columns)),
        places=record_types.apart(places, fields),
        fields=fields,
        undescribed=[*refused, *undescribed],
        examples=examples,
    )


def _as_mixed(record: model.RecordType, manifest: publication.Manifest) -> model.RecordType:
    """Return the record type with a mix's knowledge: copies, ids that are not unique, scales."""
    if COPY in MixSettings.added_fields(manifest.settings):
        record = _by_copy(record)
    if any(setting.get("duplicate_ids") == "allow" for setting in manifest.settings["streams"]):
        record = msgspec.structs.replace(record, key=[])
    declared: dict[str, tuple[str, Scale]] = {}
    for key in (key for keys in manifest.sets.values() for key in keys):
        scale, name = declared_in(key.get("settings") or {}), key["name"]
        if isinstance(scale, Scale) and declared.setdefault(name, (f"scale-{name}", scale))[1] == scale:
            continue
        declared.pop(name, None)  # streams differ
    return record_types.on_scales(record, declared)


def _by_copy(record: model.RecordType) -> model.RecordType:
    """Return the record type of repeated documents. Its keys include the number of the copy."""
    key, fields = record.key, []
    for field in record.fields:
        type_ = bare(field.type)
        if field.column == "metadata" and type_.kind == "object" and type_.get(COPY):
            key = [*record.key, f"{field.name}/{COPY}"]
            inner = tuple((n, schema.about(t, _COPY) if n == COPY else t) for n, t in type_.fields)
            fields.append(msgspec.structs.replace(field, type=schema.Type("object", fields=inner)))
        elif (field.column, field.keys) == ("metadata", (COPY,)):
            key = [*record.key, field.name]
            fields.append(msgspec.structs.replace(field, description=_COPY))
        else:
            fields.append(field)
    return msgspec.structs.replace(record, key=key if record.key else [], fields=fields)


_COPY = "Number of the copy, from 1: the mix writes some documents several times."


def _has_label(field: model.RecordField) -> bool:
    """Return true for a document's identification. The path repeats its label."""
    return field.name == "identification" and field.type.kind == "object"


def _id_key(writer: Writer, types: Mapping[str, schema.Type]) -> list[str]:
    """Return the format's id field, if all scanned rows have an id."""
    type_: schema.Type | None = schema.Type("object", fields=tuple(types.items()))
    for name in writer.ID:
        type_ = type_.get(name) if type_ and type_.kind == "object" else None
    return ["/".join(writer.ID)] if type_ and type_.kind != "nullable" and len(writer.ID) == 2 else []


_LINES = "lines: described as the specification has it; mlcroissant takes lines of text for CSV, and fails at commas"


def _text_lines(group: model.FileGroup, places: list[model.PathField]) -> model.RecordType:
    """Return the record type of plain lines of text."""
    return model.RecordType(
        name="lines",
        description="One record a line of text; a blank line ends a document, or a piece of one.",
        group=group.name,
        key=[],
        places=[
            *places,
            model.PathField("line", "The line, without its end.", property="lines"),
            model.PathField("row", "Line in the file, from 0."),
        ],
        fields=[],
    )


def _columns(writer: Writer, types: dict[str, schema.Type]) -> dict[str, schema.Type]:
    """Return the declared types of a line's keys, completed by the data. Columns of tables are those of the data."""
    if writer.line() is None:
        return types
    declared = dict(_declared(writer))
    if writer.CONCATENATES or not types:
        return {name: completed(type_, types.get(name)) for name, type_ in declared.items()}
    same = {name for name in types.keys() & declared if bare(types[name]).kind == bare(declared[name]).kind != "object"}
    return {name: declared[name] if writer.COLUMNS and name in same else type_ for name, type_ in types.items()}


def _declared(writer: Writer) -> tuple[tuple[str, schema.Type], ...]:
    return schema.from_annotation(writer.line(), type(writer).__name__).fields


def _file(path: str, scans: FileScan, part: PartRecord | None, readable: bool) -> model.DataFile:
    if part:
        return model.DataFile(
            path, scans.size, part.sha256, media_type(path), part.documents, part.content_size, scans.lines
        )
    rows, content = (scans.number, scans.content_size) if readable and scans.whole else (None, None)
    return model.DataFile(path, scans.size, scans.sha256, media_type(path), rows, content, scans.lines)


def _output_group(folder: str, writer: Writer, paths: Sequence[str]) -> model.FileGroup:
    present = list(list_files(folder, hidden=True))
    suffixes = dict.fromkeys(suffix_in(path) for path in paths)
    stem = writer.stem(ANY_LABEL).replace(ANY_LABEL, "*")
    deep = stem.count("/") < max(path.count("/") for path in paths)
    stems = [stem, *([f"**/{stem}"] if deep else [])]
    globs = [stem + suffix for suffix in suffixes for stem in stems]
    return record_types.group_of("documents-files", "Documents, one a line.", paths, globs, present)


def _described(manifest: publication.Manifest) -> publication.Manifest:
    """Return the manifest without dropped documents. These lie elsewhere and may be deleted."""
    parts = [part for part in manifest.parts if part.label != REJECTED]
    files = {path: text for path, text in manifest.files.items() if not path.startswith("../")}
    return msgspec.structs.replace(manifest, parts=parts, files=files)


def _checksum_files(folder: str, manifest: publication.Manifest | None) -> list[tuple[str, str]]:
    """Return the checksum files and their digests.

    Raises:
        DataError: if one is not as the manifest lists it.
    """
    if manifest is None:
        results = [path for path in list_files(folder) if targets.is_checksum_file(path)]
        return [(path, sha256_of(join(folder, path))) for path in results]
    listed = []
    for path, text in _described(manifest).files.items():
        sha256 = sha256_of(join(folder, path))
        if sha256 != hashlib.sha256(text.encode()).hexdigest():
            raise DataError(f"expected the checksums of the manifest, got others; {DAMAGED}", path=join(folder, path))
        listed.append((path, sha256))
    return listed
