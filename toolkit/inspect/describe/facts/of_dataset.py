"""The facts about a dataset: documents, and the attribute sets beside them."""

import dataclasses
import os
import re
from collections.abc import Mapping, Sequence

from toolkit.config.scale import Scale, declared_in
from toolkit.data import row_index, schema
from toolkit.data.alignment import MAX_ROW
from toolkit.data.dataset import SHARD_SUFFIXES, Dataset
from toolkit.data.schema import STR, Type
from toolkit.data.tables.attributes import TABLE
from toolkit.errors import ConfigError
from toolkit.ingest import inputs
from toolkit.inspect.describe.facts import Example, Facts, Field, File, Group, PathField, RecordType, lineage
from toolkit.inspect.describe.facts.data_file import (
    DOCUMENT,
    Asked,
    Looked,
    LookJob,
    changed_notes,
    documents,
    first_rows,
    json_rows,
    merge_types,
    origins,
    unreadable_notes,
)
from toolkit.inspect.describe.facts.fields import by_place, fields_of, sentence, spans_of
from toolkit.inspect.describe.facts.splits import (
    MEDIA_TYPES,
    group_of,
    media_type,
    not_read,
    odd_paths_note,
    suffix_of,
    suffixes_of,
)
from toolkit.inspect.validate.one_file import ValidateJob
from toolkit.records import foreign, ingested, sets
from toolkit.storage.artifact import FileRecord, files_state
from toolkit.storage.compression import compression_of
from toolkit.storage.paths import join, list_files

_FILE = "The file without its folder and suffix; the same for aligned rows of documents and attributes."
ROW = "Line in the file, from 0; the same for aligned rows of documents and attributes."

IN_PLACE = "Files of others, which are read as documents in place."
"""Description of the documents of a dataset that only its configuration says how to read."""


def root_of(dataset: Dataset) -> str:
    """Return the folder that documents and attributes are below.

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


def dataset_facts(dataset: Dataset, asked: Asked) -> Facts:
    """Return the facts about documents and all attribute sets beside them.

    Raises:
        ToolkitError: if a shard lacks attributes, or has others, or stale ones.
    """
    root, shards = root_of(dataset), dataset.shards()
    there = list(list_files(root, hidden=True))
    folder = os.path.basename(dataset.documents)
    known = {shard: state for record in ingested.load_all(dataset).values() for shard, state in record.shards.items()}
    paths = [dataset.shard_path(shard) for shard in shards]
    ours = dataset.in_place is None
    works = [
        LookJob(
            path=path,
            max_bytes=asked.max_bytes,
            digest=not _is_current(path, known.get(shard)),
            rows=ours and compression_of(path) != "zstd",
            lines=ours,
            first=asked.first,
        )
        for path, shard in zip(paths, shards, strict=True)
    ]
    looked = asked.looks(works)
    files = [
        _file(join(folder, dataset.file_of(s)), each, known.get(s), _rows(dataset, s, work, each))
        for s, work, each in zip(shards, works, looked, strict=True)
    ]
    types, absent = merge_types(looked)
    about = "Documents, one a line." if ours else IN_PLACE
    group = _shard_group(folder, "documents-files", about, list(map(dataset.file_of, shards)), there)
    whole = all(each.whole and work.rows for each, work in zip(looked, works, strict=True))
    shown = first_rows(root, group.paths if ours else [], asked.examples, json_rows(asked.max_bytes))
    group = dataclasses.replace(group, columns=types if whole else {}, examples=[row for _, _, row in shown])
    notes, groups, types_of_rows = [], [group], []
    if not ours:
        notes.append("documents: no record set, because files of others are read in place; they are listed")
    elif group.media_type != MEDIA_TYPES[".jsonl"]:
        notes.append(not_read("documents", group.paths))
    else:
        types_of_rows.append(documents(group, types, absent, shown, _places(folder, shards)))
        notes += changed_notes(group.paths, looked, types_of_rows[0]) + unreadable_notes(group.paths, looked)
    by_shard = dict(zip(shards, looked, strict=True))
    for set_name in dataset.sets():
        found = _set_facts(dataset, set_name, shards, there, asked)
        if found is None:
            continue
        made_group, record, more = found
        groups.append(made_group)
        files += more
        types_of_rows += [record] if record else []
        if record:  # its ids and sources are those of the documents
            covered = [s for s in shards if join(os.path.basename(dataset.attributes), set_name, s) in made_group.paths]
            notes += changed_notes(made_group.paths, [by_shard[shard] for shard in covered], record)
        else:
            notes.append(not_read(f"attributes {set_name}", made_group.paths))
    if dataset.duplicate_ids == "allow":
        types_of_rows = [dataclasses.replace(record, key=[]) for record in types_of_rows]
    tagged = lineage.tagged_sets(dataset)
    return Facts(
        root=root,
        groups=groups,
        files=files,
        records=types_of_rows,
        ingested=lineage.ingested([dataset]),
        tagged=tagged,
        taggers={each.key: str(each.made_by.get("tagger", "")) for each in tagged if each.made_by},
        prefix=f"{folder}/",
        notes=[*notes, *odd_paths_note(file.path for file in files)],
        example=Example(shown[0][0], shown[0][2]) if shown else None,
        **origins(looked, whole=whole),
    )


def _is_current(path: str, state: sets.OutputState | None) -> bool:
    return state is not None and files_state([FileRecord(path, state.size, state.stamp)]).is_done


def _rows(dataset: Dataset, shard: str, work: LookJob, looked: Looked) -> int | None:
    """Return the number of documents of a shard, by the look at it or by its row index."""
    if work.rows and looked.whole:
        return looked.number
    state = row_index.current(dataset, shard)
    return state.rows if state else None


def _file(path: str, looked: Looked, state: sets.OutputState | None, rows: int | None) -> File:
    """Return a file; what its record says of it holds where the record's checksum is taken."""
    sha256 = looked.sha256 or (state.sha256 if state else "")
    if looked.number and looked.number == rows:
        content: int | None = looked.content_size
    else:
        content = state.content_size if state and not looked.sha256 else 0 if rows == 0 else None
    return File(path, looked.size, sha256, media_type(path), rows, content, looked.lines)


def _shard_group(folder: str, name: str, description: str, shards: Sequence[str], there: Sequence[str]) -> Group:
    suffixes = suffixes_of(shards, (*SHARD_SUFFIXES, TABLE))
    deep = [suffix for suffix in suffixes if any("/" in s for s in shards if s.endswith(suffix))]
    globs = [f"{folder}/*{suffix}" for suffix in suffixes] + [f"{folder}/**/*{suffix}" for suffix in deep]
    return group_of(name, description, [join(folder, shard) for shard in shards], globs, there)


def _places(folder: str, shards: Sequence[str]) -> list[PathField]:
    suffix = suffix_of(shards, SHARD_SUFFIXES)
    pattern = f"^{re.escape(folder)}/(.+){re.escape(suffix)}$"
    return [PathField("file", _FILE, pattern.replace(r"\-", "-")), PathField("row", ROW)]


def _set_facts(
    dataset: Dataset,
    set_name: str,
    shards: Sequence[str],
    there: Sequence[str],
    asked: Asked,
) -> tuple[Group, RecordType | None, list[File]] | None:
    """Return the files, and the record type, of an attribute set; None if it covers none of the shards."""
    ours = sets.load_schema(dataset, set_name)
    covered = inputs.carried_shards(dataset, set_name)
    shards = [shard for shard in shards if covered is None or shard in covered]
    if not shards:
        return None
    path_of = dataset.attribute_path if ours else dataset.attribute_file
    paths = [path_of(set_name, shard) for shard in shards]
    names = [path.removeprefix(join(dataset.attributes, set_name)).lstrip("/") for path in paths]
    asked.aligns(
        [
            ValidateJob(
                kind="attributes",
                path=shard,
                set=set_name,
                dataset=dataset,
                first=asked.first,
                max_document_bytes=asked.max_bytes,
            )
            for shard in shards
        ]
    )
    known = {shard: done.output for shard in shards if (done := sets.load_record(dataset, set_name, shard))}
    looked = asked.looks(
        [
            LookJob(path=path, max_bytes=asked.max_bytes, digest=not _is_current(path, known.get(shard)))
            for path, shard in zip(paths, shards, strict=True)
        ]
    )
    folder = join(os.path.basename(dataset.attributes), set_name)
    about = f"Attributes {set_name}: row n of a file describes row n of the documents file of the same relative path."
    group = _shard_group(folder, f"attributes-{set_name}-files", about, names, there)
    files = [
        _file(join(folder, name), each, known.get(s), _attribute_rows(dataset, set_name, s, each))
        for s, name, each in zip(shards, names, looked, strict=True)
    ]
    if group.media_type != MEDIA_TYPES[".jsonl"]:
        return group, None, files
    types = ours.types() if ours else spans_of(_foreign_types(dataset, set_name, shards))
    rows = Type("object", fields=tuple(types.items()))
    group = dataclasses.replace(group, columns={"source": STR, "id": STR, "attributes": rows})
    fields, undescribed = fields_of(
        [("id", STR), ("source", STR), ("attributes", rows)],
        opened=("attributes",),
        descriptions={name: DOCUMENT[name] for name in ("id", "source")},
        places=("file", "row"),
    )
    found = {key: declared_in(each.settings) for key, each in ours.keys.items()} if ours else {}
    scales = {key: scale for key, scale in found.items() if isinstance(scale, Scale) and scale.grades}
    fields = [_on_scale(each, set_name, scales) for each in fields]
    record = RecordType(
        scales={_scale_name(set_name, key): scale for key, scale in scales.items()},
        name=f"attributes-{set_name}",
        description=about,
        group=group.name,
        key=["source", "id"],
        places=_places(folder, shards),
        fields=fields,
        undescribed=undescribed,
        examples=first_rows(os.path.dirname(dataset.attributes) or ".", group.paths, asked.examples, _ROWS),
    )
    return group, record, files


def _scale_name(set_name: str, key: str) -> str:
    return f"scale-{set_name}-{key}"


def _on_scale(field: Field, set_name: str, scales: Mapping[str, Scale]) -> Field:
    """Return a field with the record set of its scale, if its key declares one.

    It is no `references`: mlcroissant joins by the whole column `attributes`, and loses all its values.
    """
    if field.column != "attributes" or field.keys[0] not in scales:
        return field
    name = _scale_name(set_name, field.keys[0])
    about = field.description or sentence(by_place(field.column, *field.keys))
    return dataclasses.replace(field, scale=name, description=f"{about} On {scales[field.keys[0]]} (`{name}`).")


_ROWS = json_rows(MAX_ROW)


def _attribute_rows(dataset: Dataset, set_name: str, shard: str, looked: Looked) -> int | None:
    """Return rows by the record of the file, for another program's by the look at it; None of a changed one."""
    done = sets.load_record(dataset, set_name, shard)
    if done is None:
        return foreign.look_at(dataset, set_name, shard).rows
    return None if looked.sha256 else done.rows


def _foreign_types(dataset: Dataset, set_name: str, shards: Sequence[str]) -> dict[str, Type]:
    types: dict[str, Type] = {}
    for shard in shards:
        for key, found in foreign.look_at(dataset, set_name, shard).types.items():
            type_ = schema.from_json(found)
            types[key] = schema.union(types[key], type_) if key in types else type_
    return types
