"""Find duplicates, and write them as attributes.

Sets of `dedup`, `sample` and `calibrate` are made here: signatures per shard, resolution, attributes per shard.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from typing import Annotated, Any, ClassVar

import msgspec

from toolkit.command_options import CommandResult, Configured, Flag, StageOptions, absent
from toolkit.config.settings import sets_before
from toolkit.data import record_logs
from toolkit.data.dataset import Dataset
from toolkit.data.excerpts import escaped
from toolkit.errors import ConfigError, StepFailed, ToolkitError, amount
from toolkit.execution.executors import Report, Task
from toolkit.records import identity
from toolkit.records.failures import FailureRecords
from toolkit.records.set_declaration import check_made
from toolkit.stages.context import Context, Outcome, all_values, show_plan, table
from toolkit.stages.declaration import Checked, Declaration, Look, Progress
from toolkit.stages.disk_quota import FILES, DiskUse, EstimateOf
from toolkit.storage.addresses import reveal_url
from toolkit.storage.paths import no_folder
from toolkit.whole_corpus import corpus_config, resolve, sign
from toolkit.whole_corpus.corpus_config import Entry, Plan
from toolkit.whole_corpus.records import Model, fates_folder, load_resolved, load_signatures
from toolkit.whole_corpus.resolve import UNRESOLVED, UNSIGNED, UNWRITTEN, WRITE, states_of, works_to_write


class Options(Configured, StageOptions, frozen=True, kw_only=True):
    """Options of ``toolkit dedup``.

    Attributes:
        explain: write nothing; show the duplicates of a document, and what differs
    """

    EXAMPLES: ClassVar = ("toolkit dedup -c my.yaml", "toolkit dedup -c my.yaml dedup.exact-0.keep=first --dry-run")

    explain: Annotated[str | None, Flag(metavar="ID", parse=reveal_url)] = None

    @property
    def only_shows(self) -> bool:
        return self.dry_run or self.explain is not None


def run(context: Context, options: Options) -> Outcome:
    """Make the sets of the section ``dedup:``: signatures per shard, resolution of the whole, attributes per shard."""
    if context.is_dolma:
        from toolkit.commands import _dolma as dolma

        return dolma.run(context, options, run)
    dataset, plan = context.dataset, plan_of(context, "dedup")
    if options.explain is not None:
        shards = context.shards(dataset, judges=True)[0]
        context.source_of(dataset, shards).check([entry.set for entry in plan.entries], "warn")
        from toolkit.commands._duplicate_pairs import explain  # which nothing else needs

        return explain(dataset, plan, shards, options.explain, context.config.max_document_bytes)
    return make_sets(context, options, plan)


# --- sets of the whole dataset ----------------------------------------------------------------------------------------


class SampleCopy(msgspec.Struct, kw_only=True):
    """A copy of a sample: its path, rows, and files."""

    path: str
    rows: int
    files: int


class SetOfWhole(msgspec.Struct, kw_only=True):
    """A set of duplicates, a sample, or a calibration.

    Attributes:
        kind: Kind of the set.
        documents, compared: Number of documents, and of those that compete.
        counts: Counts of the kind, by name.
        notes: Remarks on the set.
        written: Number of shards that were written.
        groups: Numbers of each group of documents, for a calibration.
        curve: Means of scores, labels and values of a map fitted on labels, from the lowest scores on.
        model: Fitted map of a calibration.
        copies: Copies of a sample by their content: ``ids``, ``documents``.
    """

    kind: str
    documents: int
    compared: int
    counts: dict[str, int]
    notes: list[str]
    written: int
    groups: list[dict[str, Any]] = absent()
    curve: list[dict[str, Any]] = absent()
    model: Model = absent()
    copies: dict[str, SampleCopy] = absent()


class SetsOfWhole(CommandResult, kw_only=True):
    """The result of `dedup`, `sample` and `calibrate`.

    Attributes:
        attributes: Folder of the sets.
        shards: Number of shards that were worked on.
        sets: Results by set.
        failed: Messages of shards and steps that failed.
    """

    attributes: str
    shards: int
    sets: dict[str, SetOfWhole] = absent()
    failed: list[str]


def plan_of(context: Context, name: str) -> Plan:
    """Return the plan of a section over the sets on disk.

    Raises:
        ConfigError: naming the place in the file; if there is no such section, too.
    """

    def read() -> Plan:
        dataset, schemas = context.dataset, context.known_sets(name)
        place, own = context.section(name), context.own_types_known()
        try:
            return corpus_config.read_section(place, dataset, schemas, name, own, external=context.external)
        except ConfigError as error:
            for command in sets_before(name):
                if missing := [result for result in getattr(context.config, command) if result not in schemas]:
                    lacks = f"`toolkit {command}` has not made {', '.join(missing)} yet"
                    raise ConfigError(f"{error}; {lacks}{no_folder(dataset.documents)}") from None
            raise

    return context.once(name, read)


def make_sets(context: Context, options: StageOptions, plan: Plan, *, refit: bool = False) -> Outcome:
    """Make the sets of a section; `refit` has what was fitted before fitted anew."""
    dataset = context.dataset
    shards, unfinished = context.shards(dataset, judges=True, writes=True)
    corpus_config.prepare(plan, dataset, overwrite=options.overwrite, write=False)
    context.check_sets_read(shards, plan.schemas)
    check_limit(context, dataset, plan, shards)
    if context.share and not shards:
        nothing = SetsOfWhole(attributes=dataset.attributes, shards=0, failed=[])
        return Outcome(text=context.share.nothing(), data=nothing)
    if options.dry_run:
        context.shared_ids((dataset, shard) for shard in shards)
        return show_plan(
            context, {plan.section: {e.set: todo_of(dataset, e, shards, refit=refit) for e in plan.entries}}
        )
    context.sweep(dataset.attributes, dataset.bookkeeping)
    outcome = make_plan(context, plan, shards, refit=refit)
    outcome.text += unfinished
    return outcome


def make_plan(context: Context, plan: Plan, shards: list[str], *, refit: bool = False) -> Outcome:
    """Make the sets of a checked plan; `refit` as of `make_sets`."""
    dataset = context.dataset
    # shares sign side by side; while the whole is resolved nobody may write signatures, with the same settings either
    holds = corpus_config.holds(plan) if context.share else dict.fromkeys(corpus_config.holds(plan), "")
    with context.lease(dataset.bookkeeping, dataset.attributes, holds):
        corpus_config.prepare(plan, dataset, overwrite=context.options.overwrite, write=True)
        record_logs.of(dataset)  # merged when the command ends, also where only its workers have asked for it
        return _SetMaker(context, dataset, plan, shards, refit=refit).outcome()


def check_limit(context: Context, dataset: Dataset, plan: Plan, shards: Sequence[str]) -> None:
    """Refuse a `--limit` below the shards of an earlier resolution.

    Raises:
        ConfigError: if it would.
    """
    if context.options.limit is None or context.options.shard is not None or context.options.overwrite:
        return
    for entry in plan.entries:
        results = load_resolved(dataset, entry.set)
        if len(results) > len(shards):
            raise ConfigError(
                f"--limit: expected all {len(results)} shards of which {entry.set} was made, got "
                f"{len(shards)}: the set would be made again from only these; leave --limit out, or add --overwrite"
            )


def waves(entries: Sequence[Entry]) -> list[list[Entry]]:
    """Return groups of entries to sign in one pass: none of a group reads a set of it."""
    results: list[list[Entry]] = []
    for entry in entries:
        after = max((i for i, wave in enumerate(results) for item in wave if item.set in entry.reads), default=-1)
        if after + 1 == len(results):
            results.append([])
        results[after + 1].append(entry)
    return results


_WHOLE = {
    "dedup": "What is a duplicate of what",
    "sample": "What is in a sample",
    "calibrate": "What a score comes to",
    "make": "What the stage makes",
}


class _SetMaker:
    """Makes the sets of a plan."""

    def __init__(self, context: Context, dataset: Dataset, plan: Plan, shards: list[str], *, refit: bool) -> None:
        self.context, self.dataset, self.plan, self.shards = context, dataset, plan, shards
        self._refit = refit
        self.failed: list[str] = []
        self.rows = [["set", "kind", "documents", "compared", "shards written", "up to date", "found"]]
        self.data: dict[str, SetOfWhole] = {}
        self.notes: list[str] = []
        self.tables: list[str] = []
        self._failures = FailureRecords(dataset, plan.section)
        self._keys: set[str] = set()

    def outcome(self) -> Outcome:
        complete: set[str] = set()
        context, only_signs = self.context, self.context.only_per_shard
        for wave in waves([entry for entry in self.plan.entries if not context.waiting & {*entry.reads}]):
            try:
                self._sign(wave)
                if only_signs:
                    complete |= {entry.set for entry in wave}
                    break
                for entry in wave:
                    self._finish(entry)
                    complete.add(entry.set)
            except StepFailed as error:
                self.failed += error.messages
                break
        if not context.in_part:
            self._failures.keep_only(self._keys)
        left = [entry.set for entry in self.plan.entries if entry.set not in complete]
        text = f"{amount(len(self.shards), 'shard')}, {len(self.failed)} failed -> {self.dataset.attributes}\n"
        if only_signs or self.failed:
            context.waiting |= {entry.set for entry in self.plan.entries if self._waits(entry)}
        if only_signs and not self.failed:
            ready = f"the signatures of {', '.join(sorted(complete))} are ready. " if complete else ""
            text += f"{context.named}{ready}{_WHOLE[self.plan.section]} depends on all shards: {context.next_step}"
        elif len(self.rows) > 1:
            text += table(self.rows, right=[2, 3, 4, 5])
        text += "".join(f"\n{table}" for table in (*map(escaped, self.notes), *self.tables))
        if left and self.failed:
            text += f"\nnot made: {', '.join(left)}"
        data = SetsOfWhole(
            attributes=self.dataset.attributes, shards=len(self.shards), sets=self.data, failed=self.failed
        )
        return Outcome(text=text, data=data, failures=self.failed)

    def _waits(self, entry: Entry) -> bool:
        """Return True if attributes of the run's shards are missing or outdated."""
        return any(states_of(self.dataset, entry, self.shards, whole=False).values())

    def _sign(self, wave: list[Entry]) -> None:
        label = f"computing the signatures of {', '.join(entry.set for entry in wave)}"
        options, limit = self.context.options, self.context.config.max_document_bytes
        tasks = sign.works(self.dataset, wave, self.shards, limit)
        tasks += [task for entry in wave for task in sign.works_against(entry, options.shard, limit)]
        self._run(label, sign.sign_shard, tasks, per_shard=True, needs=self.context.disk.estimates(tasks, _kept_of))

    def _finish(self, entry: Entry) -> None:
        dataset, limit = self.dataset, self.context.config.max_document_bytes
        try:
            identity.check_unique(dataset, self.shards, limit)
            signed = resolve.signed_shards(dataset, entry, self.shards)
            run = partial(self._run, of=entry.set)
            resolution = resolve.resolve(dataset, entry, signed, run, refit=self._refit)
        except StepFailed:
            raise
        except ToolkitError as error:
            raise StepFailed(str(error)) from None
        fates = fates_folder(dataset, entry.set, resolution.key)
        tasks = works_to_write(dataset, entry, signed, fates)
        written = [bool(item.written) for item in self._run(f"writing {entry.set}", WRITE, tasks, per_shard=True)]
        documents = sum(signed_shard.record.rows for signed_shard in signed if signed_shard.own)
        compared = sum(signed_shard.record.compared for signed_shard in signed if signed_shard.own)
        result = ", ".join(f"{count:,} {noun}" for noun, count in resolution.counts.items())
        counts = [str(sum(written)), str(len(written) - sum(written))]
        self.rows.append([entry.set, entry.kind, f"{documents:,}", f"{compared:,}", *counts, result])
        self.notes += [f"{entry.set}: {note}" for note in resolution.notes]
        self.tables += [
            f"\n{entry.set}, {name}\n{_format_rows(rows)}" for name, rows in resolution.tables.items() if rows
        ]
        self.data[entry.set] = SetOfWhole(
            kind=entry.kind,
            documents=documents,
            compared=compared,
            counts=resolution.counts,
            notes=resolution.notes,
            written=sum(written),
        )
        for name, rows in resolution.tables.items():
            setattr(self.data[entry.set], name, rows)
        if resolution.model:
            self.tables.append(f"{entry.set}: map {resolution.model.path}, digest {resolution.model.digest[:16]}…")
            self.data[entry.set].model = resolution.model

    def _run(
        self,
        label: str,
        function: Callable[[Any, Report], Any],
        tasks: Sequence[Task[Any]],
        *,
        per_shard: bool = False,
        of: str = "",
        needs: EstimateOf | None = None,
    ) -> list[Any]:
        unit = "shards" if per_shard else "tasks"
        if per_shard:
            self._keys |= {task.key for task in tasks}
        failed = self._failures if per_shard else None
        try:
            return all_values(self.context.run(label, function, tasks, unit, failed=failed, needs=needs))
        except StepFailed as error:
            only = f"{tasks[0].name}: " if len(tasks) == 1 and not per_shard else ""
            messages = (message.removeprefix(only) for message in error.messages)
            raise StepFailed(*(item if of in item else f"{of}: {label}: {item}" for item in messages)) from None


def _kept_of(work: sign.ShardToSign, text: float) -> float:
    """Return the estimated bytes of a shard's signatures and their products."""
    left = [entry for entry in work.entries if load_signatures(work.dataset, entry.set, work.shard) is None]
    return sum(text * entry.configured().disk_share + FILES for entry in left)


def _format_rows(rows: Sequence[dict[str, Any]]) -> str:
    """Return a table for people; of many rows, those with most documents."""
    first = rows if len(rows) <= _ROWS else sorted(rows, key=lambda row: -row["documents"])[:_ROWS]
    more = f"\n… and {len(rows) - _ROWS:,} more, which --json has" if len(rows) > _ROWS else ""
    numbers = [i for i, value in enumerate(rows[0].values()) if not isinstance(value, str)]
    names = [name.replace("_", " ") for name in rows[0]]
    return table([names, *([_cell(value) for value in row.values()] for row in first)], right=numbers) + more


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) else str(value) or "(all)"


_ROWS = 20


def todo_of(dataset: Dataset, entry: Entry, shards: Sequence[str], *, refit: bool = False) -> dict[str, list[str]]:
    """Return the work left for an entry: for which shards."""
    results: dict[str, list[str]] = {}
    fits = refit and entry.configured().FITTED
    for shard, state in states_of(dataset, entry, shards).items():
        if why := state or (UNRESOLVED if fits else ""):
            results.setdefault(_STEPS[why], []).append(shard)
    return results


_STEPS = {
    UNSIGNED: "signatures, resolve, write",
    UNRESOLVED: "resolve, write where something has changed",
    UNWRITTEN: "write",
}


def stage_of(command: str) -> Declaration:
    """Return the stage of a section over the whole dataset."""

    def progress(look: Look) -> Iterator[Progress]:
        context, dataset = look.context, look.context.dataset
        try:
            plan = plan_of(context, command)
            shards = look.shards(dataset)
            corpus_config.prepare(plan, dataset, overwrite=False, write=False)
        except ToolkitError as error:
            names = getattr(context.config, command)
            yield from (Progress(f"{command} {name}", unknown=str(error)) for name in names)
            return
        for entry in plan.entries:
            causes = states_of(dataset, entry, shards, whole=not context.in_part)
            yield Progress(f"{command} {entry.set}", command, causes)

    def check(context: Context, checked: Checked) -> Plan | None:
        if checked.faults:  # sets are not known
            return None
        own, dataset = context.own_types_known(), context.dataset
        place, external = context.section(command), context.external
        plan = corpus_config.read_section(place, dataset, checked.sets, command, own, external=external)
        corpus_config.prepare(plan, dataset, overwrite=context.options.overwrite, write=False)
        corpus_config.try_first(plan, dataset, context.config.max_document_bytes)
        checked.sets |= plan.schemas
        checked.holds |= corpus_config.holds(plan)
        return plan

    def check_sets(context: Context, names: Collection[str]) -> None:
        check_made(context.dataset, names, plan_of(context, command).schemas, command)

    def estimate(context: Context) -> DiskUse:
        size, reads = corpus_config.storage_of(context.source.at(command), command)
        return DiskUse(signatures=size, needs_documents=True, reads_documents=reads)

    return Declaration(
        "whole", progress, check, check_settings=check_sets, disk_use=estimate, continues_after_failure=True
    )


STAGE = stage_of("dedup")
