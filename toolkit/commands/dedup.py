"""Find duplicates, and write what each document is a duplicate of as attributes."""

from collections.abc import Callable, Sequence
from typing import Annotated, Any, ClassVar

from toolkit.commands.command_line.options import Configured, Flag, Stage
from toolkit.commands.steps import copies, dolma
from toolkit.commands.steps import shards as sharing
from toolkit.commands.steps.context import Context, show_plan
from toolkit.commands.steps.outcome import Outcome, failures, table
from toolkit.data.dataset import Dataset
from toolkit.dedup import progress, resolve, section, sign, write
from toolkit.dedup.records import fates_folder, load_resolution
from toolkit.dedup.section import Entry, Plan
from toolkit.errors import ConfigError, ToolkitError
from toolkit.records.failures import FailureRecords
from toolkit.runs.executors import Report, Task


class Options(Configured, Stage, frozen=True, kw_only=True):
    """Options of ``toolkit dedup``."""

    EXAMPLES: ClassVar = ("toolkit dedup -c my.yaml", "toolkit dedup -c my.yaml dedup.exact-0.keep=first --dry-run")

    explain: Annotated[
        str | None, Flag("write nothing; show the pairs that a document is in, and what differs", metavar="ID")
    ] = None

    @property
    def only_shows(self) -> bool:
        return self.dry_run or self.explain is not None


def run(context: Context, options: Options) -> Outcome:
    """Make the sets of the section ``dedup:``: signatures per shard, resolution of the whole, attributes per shard."""
    if context.is_dolma:
        return dolma.dedup(context, options, run)
    dataset, plan = context.dataset, context.dedup
    mine, unfinished = sharing.shards(context, dataset, judges=True)
    shards = context.limited(mine)
    sharing.check_compression(context, dataset, shards)
    section.prepare(plan, dataset, overwrite=options.overwrite, write=False)
    _check_limit(context, dataset, plan, shards)
    if context.share and not shards:
        return Outcome(text=context.share.nothing(), data={"attributes": dataset.attributes, "shards": 0, "failed": []})
    if options.explain is not None:
        return copies.explain(dataset, plan, shards, options.explain, context.config.max_document_bytes)
    if options.dry_run:
        return show_plan(context, {"dedup": {e.set: _todo(dataset, e, shards) for e in plan.entries}})
    context.sweep(dataset.attributes, dataset.bookkeeping)
    with context.claimed(dataset.bookkeeping, dataset.attributes, section.holds(plan)):
        section.prepare(plan, dataset, overwrite=options.overwrite, write=True)
        outcome = _Making(context, dataset, plan, shards).outcome()
    outcome.text += unfinished
    return outcome


def _check_limit(context: Context, dataset: Dataset, plan: Plan, shards: Sequence[str]) -> None:
    """Check that `--limit` does not make duplicates among some shards of those among all.

    Raises:
        ConfigError: if it would.
    """
    if context.options.limit is None or context.options.shard is not None or context.options.overwrite:
        return
    for entry in plan.entries:
        found = load_resolution(dataset, entry.set)
        if found and len(found.shards) > len(shards):
            raise ConfigError(
                f"--limit: expected all {len(found.shards)} shards of which {entry.set} says what is a duplicate, got "
                f"{len(shards)}: it would be made again, of these alone; leave --limit out, or add --overwrite"
            )


def waves(plan: Plan) -> list[list[Entry]]:
    """Return the entries in groups whose signatures are made in one pass: none of a group reads a set of it."""
    found: list[list[Entry]] = []
    for entry in plan.entries:
        after = max((i for i, wave in enumerate(found) for each in wave if each.set in entry.reads), default=-1)
        if after + 1 == len(found):
            found.append([])
        found[after + 1].append(entry)
    return found


class _Failed(ToolkitError):
    """Some tasks have failed; they have been told."""


class _Making:
    """Makes the sets of a plan."""

    def __init__(self, context: Context, dataset: Dataset, plan: Plan, shards: list[str]) -> None:
        self.context, self.dataset, self.plan, self.shards = context, dataset, plan, shards
        self.failed: list[str] = []
        self.rows = [["set", "kind", "documents", "compared", "shards written", "up to date", "found"]]
        self.data: dict[str, Any] = {}
        self.notes: list[str] = []
        self._noted = FailureRecords(dataset.bookkeeping, "dedup")
        self._keys: set[str] = set()

    def outcome(self) -> Outcome:
        done: set[str] = set()
        for wave in waves(self.plan):
            try:
                self._sign(wave)
                if self.context.options.shard is not None:
                    done |= {entry.set for entry in wave}
                    break
                for entry in wave:
                    self._finish(entry)
                    done.add(entry.set)
            except _Failed:
                break
        if not self.context.in_part:
            self._noted.keep_only(self._keys)
        left = [entry.set for entry in self.plan.entries if entry.set not in done]
        text = f"{len(self.shards)} shards, {len(self.failed)} failed -> {self.dataset.attributes}\n"
        if self.context.options.shard is not None and not self.failed:
            text += (
                f"share {self.context.share}: the signatures of {', '.join(sorted(done))} are ready. What is a "
                "duplicate of what depends on all shards: when all shares are done, run the same command without "
                "--shard"
            )
        elif len(self.rows) > 1:
            text += table(self.rows, right=[2, 3, 4, 5])
        text += "".join(f"\n{note}" for note in self.notes)
        if left and self.failed:
            text += f"\nnot made: {', '.join(left)}"
        data = {"attributes": self.dataset.attributes, "shards": len(self.shards), "sets": self.data,
                "failed": self.failed}  # fmt: skip
        return Outcome(text=text, data=data, failures=self.failed, exit_code=1 if self.failed else 0)

    def _sign(self, wave: list[Entry]) -> None:
        what = f"signatures of {', '.join(entry.set for entry in wave)}"
        options, limit = self.context.options, self.context.config.max_document_bytes
        tasks = sign.works(self.dataset, wave, self.shards, limit)
        tasks += [task for entry in wave for task in sign.works_against(entry, options.shard, limit)]
        self._run(what, sign.sign_shard, tasks, noted=True)

    def _finish(self, entry: Entry) -> None:
        dataset = self.dataset
        try:
            signed = resolve.signed_shards(dataset, entry, self.shards)
            resolution = resolve.resolve(dataset, entry, signed, self._run)
        except _Failed:
            raise
        except ToolkitError as error:
            self.failed.append(str(error))
            raise _Failed(str(error)) from None
        fates = fates_folder(dataset, entry.set, resolution.key)
        works = [write.ShardToWrite(entry=entry, signed=each, fates=fates) for each in signed if each.own]
        tasks = [
            Task(dataset.attribute_path(entry.set, work.signed.shard), work, work.signed.record.rows,
                 key=work.signed.shard)
            for work in works
        ]  # fmt: skip
        written = [each.written for each in self._run(f"write {entry.set}", write.write_shard, tasks, noted=True)]
        documents = sum(each.record.rows for each in signed if each.own)
        compared = sum(each.record.compared for each in signed if each.own)
        found = ", ".join(f"{count:,} {what}" for what, count in resolution.counts.items())
        counts = [str(sum(written)), str(len(written) - sum(written))]
        self.rows.append([entry.set, entry.kind, f"{documents:,}", f"{compared:,}", *counts, found])
        self.notes += [f"{entry.set}: {note}" for note in resolution.notes]
        self.data[entry.set] = {
            "kind": entry.kind,
            "documents": documents,
            "compared": compared,
            "counts": resolution.counts,
            "notes": resolution.notes,
            "written": sum(written),
        }

    def _run(
        self, what: str, function: Callable[[Any, Report], Any], tasks: Sequence[Task[Any]], *, noted: bool = False
    ) -> list[Any]:
        unit = "shards" if noted else "tasks"
        if noted:
            self._keys |= {task.key for task in tasks}
        results = self.context.run(what, function, tasks, unit, failed=self._noted if noted else None)
        if broken := failures(results):
            self.failed += broken
            raise _Failed(broken[0])
        return [result.value for result in results]


def _todo(dataset: Dataset, entry: Entry, shards: Sequence[str]) -> dict[str, list[str]]:
    """Return what is to be done for an entry: for which shards."""
    found: dict[str, list[str]] = {}
    for shard, why in progress.look(dataset, entry, shards).items():
        if why:
            found.setdefault(_STEPS[why], []).append(shard)
    return found


_STEPS = {
    progress.UNSIGNED: "signatures, resolve, write",
    progress.UNRESOLVED: "resolve, write where something has changed",
    progress.UNWRITTEN: "write",
}
