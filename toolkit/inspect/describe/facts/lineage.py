"""How a dataset or an output was made, by the records of the runs, and whether its sets are aligned."""

import os
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from toolkit.data import row_index
from toolkit.data.dataset import Dataset
from toolkit.data.in_place import InPlace
from toolkit.errors import DataError, ToolkitError
from toolkit.ingest import folders
from toolkit.ingest.inputs import carried_shards
from toolkit.inspect.describe.facts import Ingested, Mixture, Tagged
from toolkit.inspect.validate.one_file import ValidateJob, check_file
from toolkit.mix.publish import Manifest
from toolkit.mix.writer import Writer
from toolkit.records import foreign, sets
from toolkit.records.freshness import content_of
from toolkit.records.ingested import InputRecord, load_all
from toolkit.rules import Role, kind_called
from toolkit.runs.executors import Report
from toolkit.storage import models


def check(work: ValidateJob, report: Report) -> bool:
    """Check an attribute file; it fits, or this raises.

    Raises:
        ToolkitError: with what `toolkit validate` says of the file.
    """
    if found := check_file(work, report).findings:
        raise ToolkitError("\n".join(found))
    if work.first is not None and work.dataset:
        _check_records(work, work.dataset)
    return True


def _check_records(work: ValidateJob, dataset: Dataset) -> None:
    """Check what is recorded of the file, in place of the rows that are not read.

    Raises:
        DataError: if it is not the file of the record, or has other rows than the documents.
        StaleError: if it was made from others.
    """
    set_name, shard = work.set, work.path
    path = dataset.attribute_file(set_name, shard)
    documents = row_index.current(dataset, shard)
    if sets.load_schema(dataset, set_name) is None:
        rows = foreign.look_at(dataset, set_name, shard).rows
    else:
        record = sets.load_record(dataset, set_name, shard)
        if record is None:
            carried = carried_shards(dataset, set_name) is not None
            command = "ingest" if carried else sets.command_of(dataset, set_name)
            got = "one that is damaged" if sets.is_damaged(dataset, set_name, shard) else "none"
            raise DataError(f"expected a completion record, got {got}; run `toolkit {command}`", path=path)
        content_of(dataset, set_name, shard, documents)
        rows = record.rows
    if documents and documents.rows != rows:
        raise DataError(
            f"expected {documents.rows:,} rows, as many as {dataset.shard_path(shard)} has, got {rows:,}",
            path=path,
        )


def ingested(datasets: Iterable[Dataset]) -> list[Ingested]:
    """Return the inputs of datasets, those of the same settings together; files that are read in place are some."""
    found: dict[bytes, list[InputRecord]] = {}
    listed = []
    for dataset in dict.fromkeys(datasets):
        if dataset.in_place:
            listed.append(_read_in_place(dataset, dataset.in_place))
        for record in load_all(dataset).values():
            found.setdefault(msgspec.json.encode(record.settings, order="sorted"), []).append(record)
    for same in found.values():
        counts = Counter[str]()
        for record in same:
            counts.update(record.counts)
        listed.append(
            Ingested(
                names=sorted({os.path.basename(path) for record in same for path in record.paths}),
                crawls=sorted({crawl for record in same for crawl in folders.NAMES.findall("\n".join(record.paths))}),
                settings=same[0].settings,
                documents=sum(record.rows for record in same),
                counts=dict(sorted(counts.items())),
            )
        )
    return listed


def _read_in_place(dataset: Dataset, in_place: InPlace) -> Ingested:
    """Return the files of a dataset in place, with the documents of those that have been read."""
    shards = dataset.shards()
    counts = row_index.counts(dataset, shards)
    files = [dataset.shard_path(shard) for shard in shards]
    return Ingested(
        names=sorted({os.path.basename(file) for file in files}),
        crawls=sorted(set(folders.NAMES.findall("\n".join(files)))),
        settings=in_place.settings(),
        documents=counts.get("documents", 0),
        counts=counts,
        in_place=True,
    )


def tagged_sets(dataset: Dataset) -> list[Tagged]:
    """Return the keys of all sets of a dataset."""
    listed = []
    for name in dataset.sets():
        found = sets.load_schema(dataset, name)
        if found is None:
            listed.append(Tagged(name, "", None))
            continue
        names = sets.load_models(dataset, name)
        listed += [Tagged(name, key, _made_by(each.settings, names)) for key, each in found.keys.items()]
    return listed


def mixed_sets(manifest: Manifest, writer: Writer) -> list[Tagged]:
    """Return the keys of the sets that a mix has used, by its manifest; what was joined for nothing is left out."""
    streams = manifest.settings["streams"]
    rules = [rule for stream in streams for rule in stream["rules"]]
    written = [wanted.path for wanted in writer.wants().values()]
    written += [_text(rule) for rule in rules if kind_called(str(rule.get("kind"))).ROLE in _WRITE]
    read = [*map(_text, rules), str(writer.label() or ""), str(manifest.settings.get("label") or "")]
    whole = writer.takes_all() or bool(manifest.settings.get("provenance"))
    reads_all = any(kind_called(str(rule.get("kind"))).READS_ALL for rule in rules)
    listed = []
    for name, keys in manifest.sets.items():
        for key in keys:
            settings: dict[str, Any] | None = key.get("settings") or None
            made_by = _made_by(settings, manifest.models) if settings else None
            in_rows = whole or any(names_key(text, key["name"]) for text in written)
            if in_rows or reads_all or any(names_key(text, key["name"]) for text in read):
                listed.append(Tagged(name, key["key"] if settings else "", made_by, in_rows))
    found: dict[tuple[str, str], Tagged] = {}
    for each in listed:
        before = found.get((each.set, each.key))
        found[each.set, each.key] = each if before is None or each.in_rows else before
    return list(found.values())


def mixed_taggers(manifest: Manifest) -> dict[str, str]:
    """Return the taggers of all attributes that a mix has joined, by the names that rules have for these."""
    keys = (key for keys in manifest.sets.values() for key in keys)
    return {key["name"]: str((key.get("settings") or {}).get("tagger", "")) for key in keys}


_WRITE = (Role.ANNOTATES, Role.SETS)
"""Rules by which something of what they read gets into the rows."""


def _text(rule: Mapping[str, Any]) -> str:
    return msgspec.json.encode(rule).decode()


def names_key(text: str, key: str) -> bool:
    """Return whether an expression, or a path, has the name of a key."""
    return re.search(rf"(?<![\w.]){re.escape(key)}(?!\w)", text) is not None


_KNOWN = {digest: name for name, digest in models.SHA256.items()}


def _made_by(settings: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """Return the settings of a tagger with its models' names, and without the folders that its own file lies in."""
    options = settings.get("options") or {}
    named = {
        option: {"name": name, **value}
        for option, value in options.items()
        if isinstance(value, dict) and value.keys() == {"sha256"}
        if (name := names.get(value["sha256"]) or _KNOWN.get(value["sha256"]))
    }
    found = dict(settings)
    if "tagger" in found:
        found["tagger"] = re.sub(r"^.*/(?=[^/]+\.py:)", "", found["tagger"])
    return found | ({"options": options | named} if named else {})


def mixture(manifest: Manifest) -> Mixture:
    """Return what a mix did, from its manifest."""
    settings = [
        (rule["name"], stream["name"], rule) for stream in manifest.settings["streams"] for rule in stream["rules"]
    ]
    by_name = {(stream, name): rule for name, stream, rule in settings}
    return Mixture(
        toolkit=manifest.toolkit,
        format=manifest.settings["format"],
        options=manifest.settings["options"],
        totals=manifest.totals,
        rules=[(effect, by_name.get((effect.stream, effect.name), {})) for effect in manifest.rules],
        counts=manifest.counts,
        omitted=sorted(manifest.omitted),
        statistics=manifest.statistics,
    )
