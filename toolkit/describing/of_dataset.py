"""The facts about a dataset: documents, and the attribute sets beside them."""

import dataclasses
import os
import re
from collections.abc import Sequence

from toolkit import records, rowindex, schema
from toolkit.alignment import missing_file
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
from toolkit.describing.facts import Facts, File, Group, PathField, RecordType
from toolkit.describing.fields import fields_of, spans_of
from toolkit.describing.looking import Looked, Work, merge_types
from toolkit.errors import ConfigError, DataError
from toolkit.ingest_records import InputRecord
from toolkit.paths import SHARD_SUFFIXES, Dataset, join, list_files, stat, strip_suffix
from toolkit.schema import STR, Type
from toolkit.stores import Stat

_FILE = "the file, without its folder and suffix: the same for aligned rows of documents and attributes"
_ROW = "line in the file, from 0: the same for aligned rows of documents and attributes"


def root_of(dataset: Dataset) -> str:
    """The folder that documents and attributes are below.

    Raises:
        ConfigError: if they are not beside one another.
    """
    root, name = os.path.split(dataset.documents)
    if dataset.sets() and os.path.split(dataset.attributes)[0] != root:
        raise ConfigError(
            f"{dataset.attributes}: expected attributes beside {dataset.documents}, because a Croissant file describes "
            "what is below its own folder; put them into one, or describe them apart"
        )
    if not name:
        raise ConfigError(f"{dataset.documents}: expected documents in a folder of their own")
    return root or "."


def dataset_facts(dataset: Dataset, looks: Looks, *, first: int | None, examples: int, max_bytes: int) -> Facts:
    """The facts about documents and all attribute sets beside them.

    Raises:
        DataError: if a shard lacks attributes, or has stale ones.
    """
    root, shards = root_of(dataset), dataset.shards()
    there = list(list_files(root, hidden=True))
    folder = os.path.basename(dataset.documents)
    known = _ingested_states(dataset)
    paths = [dataset.shard_path(shard) for shard in shards]
    works = [
        Work(
            path=path,
            max_bytes=max_bytes,
            digest=not _is_current(path, known.get(shard)),
            rows=not path.endswith(".zst"),
            first=first,
            examples=examples if not i else 0,
        )
        for i, (path, shard) in enumerate(zip(paths, shards, strict=True))
    ]
    looked = looks(works)
    files = [_file(join(folder, s), each, known.get(s)) for s, each in zip(shards, looked, strict=True)]
    types, absent = merge_types(looked)
    group = _shard_group(folder, "documents-files", "Documents, one a line.", shards, there)
    whole = all(each.whole and work.rows for each, work in zip(looked, works, strict=True))
    group = dataclasses.replace(group, columns=types if whole else {}, examples=looked[0].examples)
    notes = numeric_notes([join(folder, shard) for shard in shards], looked, ("id", "source", "text"))
    groups, types_of_rows = [group], []
    if group.media_type != MEDIA_TYPES[".jsonl"]:
        notes.append(not_read("documents"))
    else:
        types_of_rows.append(documents(group, types, absent, looked[0].examples, _places(folder, shards)))
    for set_name in dataset.sets():
        made_group, record, more = _set_facts(dataset, set_name, shards, there, looks, examples, max_bytes)
        groups.append(made_group)
        files += more
        types_of_rows += [record] if record else []
        notes += [] if record else [not_read(f"attributes {set_name}")]
    return Facts(
        root=root,
        groups=groups,
        files=files,
        records=types_of_rows,
        ingested=made.ingested([dataset]),
        tagged=made.tagged_sets(dataset),
        headers=headers(types),
        dates=dates(looked),
        prefix=f"{folder}/",
        notes=notes,
    )


def _ingested_states(dataset: Dataset) -> dict[str, records.OutputState]:
    found = [records.load(path, InputRecord) for path in records.ingest_files(dataset, ".json")]
    return {shard: state for record in found if record for shard, state in record.shards.items()}


def _is_current(path: str, state: records.OutputState | None) -> bool:
    return state is not None and stat(path) == Stat(state.size, state.stamp)


def _file(path: str, looked: Looked, state: records.OutputState | None) -> File:
    sha256 = looked.sha256 or (state.sha256 if state else "")
    known = looked.whole and looked.number > 0
    return File(
        path,
        looked.size,
        sha256,
        media_type(path),
        looked.number if known else None,
        looked.content_size if known else None,
    )


def _shard_group(folder: str, name: str, description: str, shards: Sequence[str], there: Sequence[str]) -> Group:
    suffixes = dict.fromkeys(shard[len(strip_suffix(shard, SHARD_SUFFIXES)) :] for shard in shards)
    deep = [suffix for suffix in suffixes if any("/" in s for s in shards if s.endswith(suffix))]
    globs = [f"{folder}/*{suffix}" for suffix in suffixes] + [f"{folder}/**/*{suffix}" for suffix in deep]
    return group_of(name, description, [join(folder, shard) for shard in shards], globs, there)


def _places(folder: str, shards: Sequence[str]) -> list[PathField]:
    suffix = suffix_of(shards, SHARD_SUFFIXES)
    pattern = f"^{re.escape(folder)}/(.+){re.escape(suffix)}$"
    return [PathField("file", _FILE, pattern.replace(r"\-", "-")), PathField("row", _ROW)]


def _set_facts(
    dataset: Dataset,
    set_name: str,
    shards: Sequence[str],
    there: Sequence[str],
    looks: Looks,
    examples: int,
    max_bytes: int,
) -> tuple[Group, RecordType | None, list[File]]:
    ours = records.load_schema(dataset, set_name)
    known: dict[str, records.OutputState] = {}
    for shard in shards:
        path = dataset.attribute_path(set_name, shard)
        if stat(path) is None:
            raise missing_file(path, dataset.shard_path(shard))
        if (done := records.load_record(dataset, set_name, shard)) is not None:
            known[shard] = done.output
            if (state := rowindex.current(dataset, shard)) is not None:
                records.check_lineage(dataset, set_name, shard, state)
        elif ours:
            raise DataError("expected a completion record, got none; run `toolkit tag`", path=path)
    paths = [dataset.attribute_path(set_name, shard) for shard in shards]
    looked = looks(
        [
            Work(
                path=path,
                max_bytes=max_bytes,
                digest=not _is_current(path, known.get(shard)),
                rows=not i,
                first=examples,
                examples=examples if not i else 0,
            )
            for i, (path, shard) in enumerate(zip(paths, shards, strict=True))
        ]
    )
    folder = join(os.path.basename(dataset.attributes), set_name)
    about = f"Attributes {set_name}: row n of a file describes row n of the documents file of the same relative path."
    group = _shard_group(folder, f"attributes-{set_name}-files", about, shards, there)
    files = [_file(join(folder, s), each, known.get(s)) for s, each in zip(shards, looked, strict=True)]
    if group.media_type != MEDIA_TYPES[".jsonl"]:
        return group, None, files
    types = ours.types() if ours else spans_of(_foreign_types(dataset, set_name, shards))
    rows = Type("object", fields=tuple(types.items()))
    group = dataclasses.replace(group, columns={"source": STR, "id": STR, "attributes": rows})
    fields, undescribed = fields_of(
        [("id", STR), ("source", STR), ("attributes", rows)], opened=("attributes",), places=("file", "row")
    )
    record = RecordType(
        name=f"attributes-{set_name}",
        description=about,
        group=group.name,
        key=["source", "id"],
        places=_places(folder, shards),
        fields=fields,
        undescribed=undescribed,
        examples=[(group.paths[0], i, row) for i, row in enumerate(looked[0].examples)],
    )
    return group, record, files


def _foreign_types(dataset: Dataset, set_name: str, shards: Sequence[str]) -> dict[str, Type]:
    types: dict[str, Type] = {}
    for shard in shards:
        for key, found in records.look_at(dataset, set_name, shard).types.items():
            type_ = schema.from_json(found)
            types[key] = schema.union(types[key], type_) if key in types else type_
    return types
