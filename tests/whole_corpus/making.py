"""Sets of duplicates made in this process, step by step, of documents that a test writes."""

import gzip
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from toolkit.config.settings import ConfigNode
from toolkit.data.dataset import Dataset
from toolkit.execution.executors import Report, Task
from toolkit.whole_corpus import corpus_config, resolve, sign
from toolkit.whole_corpus.records import Resolution, ResolvedShard, fates_folder, load_resolved
from toolkit.whole_corpus.resolve import works_to_write, write_shard

LIMIT = 10_000_000


def run_here(_: str, function: Callable[[Any, Report], Any], tasks: Sequence[Task[Any]]) -> list[Any]:
    """Run tasks one after the other."""
    return [function(task.payload, lambda *_: None) for task in tasks]


@dataclass
class Made:
    """What was made: the values of each shard's documents, what was resolved, and the shards that were worked on."""

    values: dict[str, list[Any]]
    resolutions: dict[str, Resolution]
    fates: dict[str, dict[str, ResolvedShard]]
    signed: list[str]
    written: list[str]


def dataset_in(root: Path) -> Dataset:
    return Dataset(str(root / "documents"), str(root / "attributes"))


def write_shards(root: Path, shards: Mapping[str, Sequence[Mapping[str, Any]]]) -> Dataset:
    """Write the documents of a dataset."""
    for name, rows in shards.items():
        path = root / "documents" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(gzip.compress(b"".join(json.dumps(row).encode() + b"\n" for row in rows), mtime=0))
    return dataset_in(root)


def make(
    dataset: Dataset,
    entries: Mapping[str, Mapping[str, Any]],
    *,
    values: bool = True,
    name: str = "dedup",
    refit: bool = False,
    overwrite: bool = False,
) -> Made:
    """Make the sets of a section; values, if they are asked for, are those of the last."""
    plan = corpus_config.read_section(
        ConfigNode({name: dict(entry) for name, entry in entries.items()}), dataset, {}, name
    )
    corpus_config.prepare(plan, dataset, overwrite=overwrite, write=True)
    made = Made({}, {}, {}, [], [])
    listed = dataset.shards()
    for entry in plan.entries:
        works = sign.works(dataset, [entry], listed, LIMIT) + sign.works_against(entry, None, LIMIT)
        made.signed += [f"{entry.set} {each.shard}" for each in run_here("", sign.sign_shard, works) if each.written]
        signed = resolve.signed_shards(dataset, entry, listed)
        resolution = resolve.resolve(dataset, entry, signed, run_here, refit=refit)
        made.resolutions[entry.set] = resolution
        made.fates[entry.set] = load_resolved(dataset, entry.set)
        fates = fates_folder(dataset, entry.set, resolution.key)
        found = run_here("", write_shard, works_to_write(dataset, entry, signed, fates))
        made.written += [f"{entry.set} {each.shard}" for each in found if each.written]
    last = plan.entries[-1]
    for shard in listed if values else ():
        rows = gzip.decompress(Path(dataset.attribute_path(last.set, shard)).read_bytes()).splitlines()
        made.values[shard] = [json.loads(row)["attributes"][last.key] for row in rows]
    return made
