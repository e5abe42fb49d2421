"""How a dataset or an output was made, from the records of the runs."""

import os
import re
from collections.abc import Iterable
from typing import Any

import msgspec

from toolkit import records
from toolkit.describing.facts import Ingested, Mixture, Tagged
from toolkit.ingest_records import InputRecord
from toolkit.mixing.publish import Manifest
from toolkit.paths import Dataset

_CRAWL = re.compile(r"CC-MAIN-\d{4}-\d\d(?!\d)")


def ingested(datasets: Iterable[Dataset]) -> list[Ingested]:
    """The inputs of datasets, those of the same settings together."""
    found: dict[bytes, list[InputRecord]] = {}
    for dataset in dict.fromkeys(datasets):
        for path in records.ingest_files(dataset, ".json"):
            if record := records.load(path, InputRecord):
                found.setdefault(msgspec.json.encode(record.settings, order="sorted"), []).append(record)
    listed = []
    for same in found.values():
        counts: dict[str, int] = {}
        for record in same:
            for name, count in record.counts.items():
                counts[name] = counts.get(name, 0) + count
        listed.append(
            Ingested(
                names=sorted({os.path.basename(record.input) for record in same}),
                crawls=sorted({crawl for record in same for crawl in _CRAWL.findall(record.input)}),
                settings=same[0].settings,
                documents=sum(record.rows for record in same),
                counts=dict(sorted(counts.items())),
            )
        )
    return listed


def tagged_sets(dataset: Dataset) -> list[Tagged]:
    """The keys of all sets of a dataset."""
    listed = []
    for name in dataset.sets():
        found = records.load_schema(dataset, name)
        if found is None:
            listed.append(Tagged(name, "", None))
        else:
            listed += [Tagged(name, key, each.settings) for key, each in found.keys.items()]
    return listed


def mixed_sets(manifest: Manifest) -> list[Tagged]:
    """The keys of the sets that a mix joined, as its manifest holds them."""
    listed = []
    for name, keys in manifest.sets.items():
        for key in keys:
            settings: dict[str, Any] | None = key.get("settings") or None
            listed.append(Tagged(name, key["key"] if settings else "", settings))
    return list({(t.set, t.key): t for t in listed}.values())


def mixture(manifest: Manifest) -> Mixture:
    """What a mix did, from its manifest."""
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
