"""Draw samples of an exact size, from all documents or by strata."""

import os
from typing import ClassVar

import msgspec
import xxhash

from toolkit.command_options import Configured, StageOptions
from toolkit.commands.dedup import SampleCopy, make_sets, plan_of, stage_of
from toolkit.errors import ConfigError, amount
from toolkit.execution.executors import Task
from toolkit.stages.context import Context, Outcome, failures
from toolkit.storage.freshness import state
from toolkit.storage.store import note_roots
from toolkit.whole_corpus import resolve
from toolkit.whole_corpus.corpus_config import Entry
from toolkit.whole_corpus.kinds import sample
from toolkit.whole_corpus.kinds.sample import Copy, Sample
from toolkit.whole_corpus.records import SignedShard, fates_folder


class Options(Configured, StageOptions, frozen=True, kw_only=True):
    """Options of ``toolkit sample``."""

    EXAMPLES: ClassVar = ("toolkit sample -c my.yaml", "toolkit sample -c my.yaml sample.train-0.documents=1000")


def run(context: Context, options: Options) -> Outcome:
    """Make the sets of the section ``sample:`` and their copies."""
    plan = plan_of(context, "sample")
    kinds = {entry.set: _sample(entry) for entry in plan.entries}
    _check_paths(context, kinds)
    note_roots(_folder(copy) for kind in kinds.values() for _, copy in sample.copies_of(kind))
    outcome = make_sets(context, options, plan)
    if outcome.exit_code or options.dry_run or context.only_per_shard:
        return outcome
    copied = [entry for entry in plan.entries if sample.copies_of(kinds[entry.set])]
    shards = context.shards(context.dataset, judges=True)[0] if copied else []
    for entry in copied:
        signed = resolve.signed_shards(context.dataset, entry, shards)
        for content, copy in sample.copies_of(kinds[entry.set]):
            _copy(context, outcome, entry, signed, content, copy)
    return outcome


def _sample(entry: Entry) -> Sample:
    kind = entry.configured()
    assert isinstance(kind, Sample)
    return kind


def _folder(copy: Copy) -> str:
    return copy.path if copy.layout == "inputs" else os.path.dirname(copy.path) or "."


def _check_paths(context: Context, kinds: dict[str, Sample]) -> None:
    """Check copies for distinct paths, free of other files.

    Raises:
        ConfigError: if two have, or something is.
    """
    paths: set[str] = set()
    for name, kind in kinds.items():
        copies_ = sample.copies_of(kind)
        for _, copy in copies_:
            if copy.path in paths:
                raise ConfigError(f"{copy.path}: expected one copy to be written there, got that of {name}, too")
            paths.add(copy.path)
        if copies_ and not context.options.overwrite:
            copied = sample.load_strictly(context.dataset, name).copies
            for content, copy in copies_:
                sample.check_free(copy, copied.get(content))


def _copy(
    context: Context, outcome: Outcome, entry: Entry, signed: list[SignedShard], content: sample.What, copy: Copy
) -> None:
    """Write a copy of a sample, if it is not there already."""
    dataset, kind = context.dataset, _sample(entry)
    key = resolve.key_of(entry, signed)
    made_from = xxhash.xxh3_128_hexdigest(msgspec.json.encode([key, content, copy, dataset.documents]))
    copied = sample.load(dataset, entry.set).copies.get(content)
    if copied is None or not state(copied, [("", made_from)], files=sample.files_in).is_done:
        fates = fates_folder(dataset, entry.set, key)
        todo = sample.files_of(copy, content, kind, signed, fates, context.config.max_document_bytes)
        if copied is not None and not copied.made_from:
            context.sweep(_folder(copy))  # it was begun, and not ended
        sample.begin(dataset, entry.set, content, todo)
        tasks = [
            Task(file.path, file, sum(shard.record.input.size for shard in file.shards), key=file.path) for file in todo
        ]
        results = context.run(f"copying documents of {entry.set}", sample.write_copy, tasks, "files")
        if broken := failures(results):
            outcome.failures += broken
            outcome.exit_code = 1
            return
        copied = sample.Copied(made_from, [result.value for result in results if result.value is not None])
        sample.end(dataset, entry.set, content, copied)
    rows = sum(file.rows for file in copied.files)
    files = f"{amount(len(copied.files), 'file')}" if copy.layout == "inputs" else "one file"
    outcome.text += f"\n{entry.set}: {rows:,} {content} in {files}: {copy.path}"
    result = outcome.data.sets[entry.set]
    result.copies = (result.copies or {}) | {content: SampleCopy(path=copy.path, rows=rows, files=len(copied.files))}


STAGE = stage_of("sample")
