"""What records say of a run: what came in, how fast stages were, how sets were made, by which models."""

import platform
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from toolkit.data.dataset import Dataset
from toolkit.distribution import NAME, VERSION
from toolkit.mix.joined_sets import JoinedSet
from toolkit.mix.publish import Manifest
from toolkit.records import ingested, rejected
from toolkit.records import sets as records
from toolkit.report.facts import Input, Model, Named, SetMade, Stage


def came_in(datasets: Iterable[Dataset]) -> list[Input]:
    """Return what ingest has read, by source; empty for documents that were there."""
    found: dict[str, Input] = {}
    for dataset in datasets:
        for record in ingested.load_all(dataset).values():
            source = str(record.settings.get("source") or record.entry)
            each = found.setdefault(source, Input(source=source))
            each.inputs += len(record.paths)
            each.documents += record.rows
            each.bytes += record.size
            for name, count in record.counts.items():
                if name != "documents" and rejected.read_items({name: 1}):
                    each.rejected[name] = each.rejected.get(name, 0) + count
    return [found[source] for source in sorted(found)]


def stages(datasets: Mapping[str, tuple[Dataset, Sequence[JoinedSet], Sequence[str]]]) -> list[Stage]:
    """Return the work of ingest, and of each joined set, by what their records say.

    Args:
        datasets: by stream its dataset, the sets that it joins, its shards.
    """
    found: dict[tuple[str, str], Stage] = {}
    seen = set[str]()
    for dataset, joined, shards in datasets.values():
        if dataset.documents not in seen:
            seen.add(dataset.documents)
            for record in ingested.load_all(dataset).values():
                size = sum(each.content_size for each in record.shards.values())
                _add(found, "ingest", "", record.rows, size, record.seconds)
        for each in joined:
            if f"{dataset.attributes}\n{each.set}" in seen or not each.ours:
                continue
            seen.add(f"{dataset.attributes}\n{each.set}")
            command = records.command_of(dataset, each.set)
            for shard in shards:
                if made := records.load_record(dataset, each.set, shard):
                    _add(found, command, each.set, made.rows, made.input.bytes, made.seconds)
    return list(found.values())


def _add(found: dict[tuple[str, str], Stage], stage: str, set_: str, documents: int, size: int, seconds: float) -> None:
    each = found.setdefault((stage, set_), Stage(stage=stage, set=set_, documents=0, bytes=0, seconds=0.0))
    each.documents += documents
    each.bytes = (each.bytes or 0) + size
    each.seconds = round(each.seconds + seconds, 3)


def sets_made(sets: Mapping[str, Sequence[JoinedSet]]) -> list[SetMade]:
    """Return how the joined sets of each stream were made."""
    return [
        SetMade(
            set=joined.set,
            stream=stream,
            keys={key.name: str(key.declared) for key in joined.keys},
            settings={key.name: key.settings for key in joined.keys if key.settings is not None},
        )
        for stream, listed in sets.items()
        for joined in listed
    ]


def models(datasets: Iterable[tuple[Dataset, Sequence[JoinedSet]]]) -> list[Model]:
    """Return the models of joined sets, and of those that they were made from."""
    found: dict[str, str] = {}
    for dataset, joined in datasets:
        names = {name for each in joined if each.ours for name in (each.set, *each.reads)}
        for name in sorted(names):
            found |= records.load_models(dataset, name)
    return [Model(name=name, sha256=digest) for digest, name in sorted(found.items(), key=lambda each: each[::-1])]


def versions(made: Sequence[SetMade], manifest: Manifest | None) -> list[Named]:
    """Return the versions of the toolkit, now and when the mix was made, of Python and of taggers."""
    found = {NAME: VERSION, "Python": platform.python_version()}
    if manifest and manifest.toolkit != VERSION:
        found[f"{NAME}, of the mix"] = manifest.toolkit
    for each in made:
        for settings in each.settings.values():
            if name := tagger_of(settings):
                found[name] = str(settings.get("version", ""))
    return [Named(name=name, version=version) for name, version in found.items() if version]


def tagger_of(settings: Mapping[str, Any]) -> str:
    """Return what made a value: its tagger, or the kind of set."""
    return str(settings.get("tagger") or settings.get("kind") or "")
