"""The facts about a dataset: documents, and the attribute sets beside them."""

import os
import re
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from toolkit.config.scale import Scale, declared_in
from toolkit.data import row_index, schema
from toolkit.data.alignment import MAX_ROW
from toolkit.data.dataset import SHARD_SUFFIXES, Dataset
from toolkit.data.schema import STR, Type
from toolkit.data.tables import TABLE
from toolkit.describe import provenance, record_types
from toolkit.describe.fields import fields_of, spans_of
from toolkit.describe.model import DataFile, Facts, FileGroup, PathField, RecordType
from toolkit.describe.record_types import DOCUMENT, MEDIA_TYPES, DescribeRequest
from toolkit.describe.scan import FileScan, ScanJob
from toolkit.errors import ConfigError
from toolkit.ingest import inputs
from toolkit.records import external_sets, ingested, sets
from toolkit.storage.compression import compression_of
from toolkit.storage.freshness import FileRecord, files_state
from toolkit.storage.paths import join, list_files

_FILE = "The file without its folder and suffix; the same for aligned rows of documents and attributes."
ROW = "Line in the file, from 0; the same for aligned rows of documents and attributes."

IN_PLACE = "External files, which are read as documents in place."
"""Description of the documents of a dataset that only its configuration says how to read."""


def root_of(dataset: Dataset) -> str:
    """Return the common parent folder of documents and attributes.

    Raises:
        ConfigError: if they are not beside one another.
    """
    root, name = os.path.split(dataset.documents)
    if dataset.sets() and os.path.split(dataset.attributes)[0] != root:
        raise ConfigError(
            f"{dataset.attributes}: expected attributes beside {dataset.documents}, because a Croissant file describes "
            "what is below its own folder; put both into one folder, or describe them separately"
        )
    if not name:
        raise ConfigError(f"{dataset.documents}: expected documents in a folder of their own")
    return root or "."


class _GroupFacts(NamedTuple):
    """Documents or a set: its files, its record type, and notes."""

    group: FileGroup
    record: RecordType | None
    files: list[DataFile]
    notes: list[str]


def dataset_facts(dataset: Dataset, request: DescribeRequest) -> Facts:
    """Return the facts about documents and all attribute sets beside them.

    Raises:
        ToolkitError: if a shard lacks attributes, or has others, or stale ones.
    """
    root, shards = root_of(dataset), dataset.shards()
    paths = list(list_files(root, hidden=True))
    folder = os.path.basename(dataset.documents)
    ours = dataset.in_place is None
    states = {shard: state for _, record in ingested.load_all(dataset) for shard, state in record.shards.items()}
    works = [
        scan_job(
            dataset,
            shard,
            request.max_bytes,
            request.first,
            digest=not _is_current(dataset.shard_path(shard), states.get(shard)),
        )
        for shard in shards
    ]
    scans = request.looks(works)
    whole = all(item.whole and work.rows for item, work in zip(scans, works, strict=True))
    files = [
        _file(join(folder, dataset.file_of(s)), item, states.get(s), _rows(dataset, s, work, item))
        for s, work, item in zip(shards, works, scans, strict=True)
    ]
    types, absent = record_types.merge_types(scans)
    about = "Documents, one a line." if ours else IN_PLACE
    group = _shard_group(folder, "documents-files", about, list(map(dataset.file_of, shards)), paths)
    examples = record_types.first_rows(
        root, group.paths if ours else [], request.examples, record_types.json_rows(request.max_bytes)
    )
    group = msgspec.structs.replace(group, columns=types if whole else {})
    record, notes = None, list[str]()
    if not ours:
        notes.append("documents: no record set, because external files are read in place; they are listed")
    elif group.media_type != MEDIA_TYPES[".jsonl"]:
        notes.append(record_types.not_read("documents", group.paths))
    else:
        record = record_types.documents(group, types, absent, examples, _places(folder, shards))
        notes += record_types.notes_of(group.paths, scans, record)
    results = [_GroupFacts(group, record, files, notes)]
    by_shard = dict(zip(shards, scans, strict=True))
    for set_name in dataset.sets():
        carried = inputs.carried_shards(dataset, set_name)
        if covered := [shard for shard in shards if carried is None or shard in carried]:
            results.append(_set_facts(dataset, set_name, {shard: by_shard[shard] for shard in covered}, paths, request))
    types_of_rows = [item.record for item in results if item.record]
    if dataset.duplicate_ids == "allow":
        types_of_rows = [msgspec.structs.replace(record, key=[]) for record in types_of_rows]
    tagged = provenance.tagged_sets(dataset)
    files = [file for item in results for file in item.files]
    notes = [note for item in results for note in item.notes]
    return Facts(
        root=root,
        groups=[item.group for item in results],
        files=files,
        records=types_of_rows,
        ingested=provenance.ingested([dataset]),
        takedown=provenance.cleared(dataset),
        tagged=tagged,
        taggers={item.key: str(item.made_by.get("tagger", "")) for item in tagged if item.made_by},
        prefix=f"{folder}/",
        notes=[*notes, *record_types.odd_paths_note(file.path for file in files)],
        example=(examples[0].path, examples[0].value) if examples else None,
        **record_types.origins(scans, whole=whole),
    )


def scan_job(dataset: Dataset, shard: str, max_bytes: int, first: int | None = None, *, digest: bool) -> ScanJob:
    """Return the look at a shard."""
    path, ours = dataset.shard_path(shard), dataset.in_place is None
    rows = ours and compression_of(path) != "zstd"
    return ScanJob(path=path, max_bytes=max_bytes, digest=digest, rows=rows, lines=ours, first=first)


def _is_current(path: str, state: sets.OutputState | None) -> bool:
    return state is not None and files_state([FileRecord(path, state.size, state.stamp)]).is_done


def _rows(dataset: Dataset, shard: str, work: ScanJob, scan: FileScan) -> int | None:
    """Return a shard's number of documents, by scan or row index."""
    if work.rows and scan.whole:
        return scan.number
    state = row_index.current(dataset, shard)
    return state.rows if state else None


def _file(path: str, scan: FileScan, state: sets.OutputState | None, rows: int | None) -> DataFile:
    """Return a file; what its record says of it holds where the record's checksum is taken."""
    sha256 = scan.sha256 or (state.sha256 if state else "")
    if scan.number and scan.number == rows:
        content: int | None = scan.content_size
    else:
        content = state.content_size if state and not scan.sha256 else 0 if rows == 0 else None
    return DataFile(path, scan.size, sha256, record_types.media_type(path), rows, content, scan.lines)


def _shard_group(folder: str, name: str, description: str, shards: Sequence[str], present: Sequence[str]) -> FileGroup:
    suffixes = record_types.suffixes_of(shards, (*SHARD_SUFFIXES, TABLE))
    deep = [suffix for suffix in suffixes if any("/" in s for s in shards if s.endswith(suffix))]
    globs = [f"{folder}/*{suffix}" for suffix in suffixes] + [f"{folder}/**/*{suffix}" for suffix in deep]
    return record_types.group_of(name, description, [join(folder, shard) for shard in shards], globs, present)


def _places(folder: str, shards: Sequence[str]) -> list[PathField]:
    suffix = record_types.suffix_of(shards, SHARD_SUFFIXES)
    pattern = f"^{re.escape(folder)}/(.+){re.escape(suffix)}$"
    return [PathField("file", _FILE, pattern.replace(r"\-", "-")), PathField("row", ROW)]


def _set_facts(
    dataset: Dataset, set_name: str, documents: dict[str, FileScan], present: Sequence[str], request: DescribeRequest
) -> _GroupFacts:
    """Return the files, and the record type, of an attribute set; documents: what was seen of those that it covers."""
    ours, shards = sets.load_schema(dataset, set_name), list(documents)
    path_of = dataset.attribute_path if ours else dataset.attribute_file
    paths = [path_of(set_name, shard) for shard in shards]
    names = [path.removeprefix(join(dataset.attributes, set_name)).lstrip("/") for path in paths]
    request.aligns(dataset, set_name, shards)
    states = {shard: state for shard in shards if (state := sets.load_record(dataset, set_name, shard))}
    scans = request.looks(
        [
            ScanJob(
                path=path,
                max_bytes=request.max_bytes,
                digest=shard not in states or not _is_current(path, states[shard].output),
            )
            for path, shard in zip(paths, shards, strict=True)
        ]
    )
    folder = join(os.path.basename(dataset.attributes), set_name)
    about = f"Attributes {set_name}: row n of a file describes row n of the documents file of the same relative path."
    group = _shard_group(folder, f"attributes-{set_name}-files", about, names, present)
    files = []
    for shard, name, item in zip(shards, names, scans, strict=True):
        state = states.get(shard)
        if state is None:
            rows: int | None = external_sets.look_at(dataset, set_name, shard).rows
        else:
            rows = None if item.sha256 else state.rows  # it has been changed
        files.append(_file(join(folder, name), item, state.output if state else None, rows))
    if group.media_type != MEDIA_TYPES[".jsonl"]:
        return _GroupFacts(group, None, files, [record_types.not_read(f"attributes {set_name}", group.paths)])
    types = ours.types() if ours else spans_of(_foreign_types(dataset, set_name, shards))
    attributes = Type("object", fields=tuple(types.items()))
    group = msgspec.structs.replace(group, columns={"source": STR, "id": STR, "attributes": attributes})
    fields, undescribed = fields_of(
        [("id", STR), ("source", STR), ("attributes", attributes)],
        opened=("attributes",),
        descriptions={name: DOCUMENT[name] for name in ("id", "source")},
        places=("file", "row"),
    )
    record = RecordType(
        name=f"attributes-{set_name}",
        description=about,
        group=group.name,
        key=["source", "id"],
        places=_places(folder, shards),
        fields=fields,
        undescribed=undescribed,
        examples=record_types.first_rows(
            os.path.dirname(dataset.attributes) or ".", group.paths, request.examples, record_types.json_rows(MAX_ROW)
        ),
    )
    declared = {key: declared_in(key_schema.settings) for key, key_schema in ours.keys.items()} if ours else {}
    scales = {key: (f"scale-{set_name}-{key}", scale) for key, scale in declared.items() if isinstance(scale, Scale)}
    notes = record_types.changed_notes(
        group.paths, list(documents.values()), record
    )  # ids and sources are the documents'
    return _GroupFacts(group, record_types.on_scales(record, scales), files, notes)


def _foreign_types(dataset: Dataset, set_name: str, shards: Sequence[str]) -> dict[str, Type]:
    types: dict[str, Type] = {}
    for shard in shards:
        for key, result in external_sets.look_at(dataset, set_name, shard).types.items():
            type_ = schema.from_json(result)
            types[key] = schema.union(types[key], type_) if key in types else type_
    return types
