"""Label documents with an LLM; export labels and labelling tasks (Label Studio, Argilla, ml_filter)."""

import sys
from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import suppress
from typing import Annotated, Any, ClassVar, NamedTuple

import msgspec

from toolkit.command_options import CommandResult, Configured, Flag
from toolkit.commands import _label_files as files, _sections as sections, tag
from toolkit.data.dataset import Dataset
from toolkit.errors import ConfigError, ToolkitError, amount
from toolkit.execution.executors import Report, Task
from toolkit.execution.grouped import ShardDone
from toolkit.learn.annotate import annotate_config, annotator as annotators, batch, ledger, requests
from toolkit.learn.annotate.annotator import SAMPLE, Annotator
from toolkit.learn.annotate.requests import authorization
from toolkit.records import sets
from toolkit.records.failures import FailureRecords
from toolkit.stages.context import Context, Outcome, failures, show_plan, table
from toolkit.stages.declaration import Checked, Declaration, Look, Progress
from toolkit.stages.disk_quota import DiskUse
from toolkit.storage.json_files import json_digest
from toolkit.tag import run as tagging
from toolkit.tag.plan import build


class AnnotatedSets(CommandResult, kw_only=True):
    """The result of `annotate`.

    Attributes:
        attributes: Folder of the sets.
        sets: Numbers of each set: documents, their statuses, requests of this run and of all.
        failed: Messages of what failed.
    """

    attributes: str
    sets: dict[str, dict[str, Any]] = {}
    failed: list[str] = []


class Options(Configured, files.FileOptions, frozen=True, kw_only=True):
    """Options of ``toolkit annotate``.

    Attributes:
        retry_failed: also ask again for documents that the server refused, and for answers that could not be read
    """

    REMAKES: ClassVar = "sets"
    EXAMPLES: ClassVar = (
        "toolkit annotate -c my.yaml --dry-run",
        "toolkit annotate -c my.yaml annotate.edu-0.concurrency=64",
        "toolkit annotate -c my.yaml --from edu-1.linear --output experiments/edu-1",
    )

    retry_failed: Annotated[bool, Flag()] = False


def run(context: Context, options: Options) -> Outcome:
    """Request missing answers set by set, and write the sets; or the files that are asked for."""
    if options.form is not None:
        return files.write(context, options)
    context.section("annotate")
    try:
        return _Annotating(context, options).run()
    finally:
        annotators.close()


class _ToAnnotate(NamedTuple):
    work: tagging.ShardToTag
    asking: requests.DirectRun | batch.BatchRun


def _annotate_shard(todo: _ToAnnotate, report: Report) -> ShardDone | None:
    """Write the attributes of a shard when all its samples have answers; None if the run stops before."""
    work = todo.work
    state = todo.asking.wait(work.shard, report)
    if state is None:
        return None
    if state.answered:
        sets.forget_all(work.dataset, work.plan.sets, [work.shard])
    return tagging.tag_shard(work, lambda documents, size: None)


class _Annotating:
    """Annotates sets, one after the other; one that stops stops those behind it."""

    def __init__(self, context: Context, options: Options) -> None:
        self.context, self.options = context, options
        self.dataset: Dataset = context.dataset
        self.plans = sections.annotations(context)
        self.outcome = Outcome(data=AnnotatedSets(attributes=self.dataset.attributes))
        self.texts: list[str] = []

    def run(self) -> Outcome:
        context, dataset = self.context, self.dataset
        shards, unfinished = context.shards(dataset, judges=True, writes=True)
        if context.share and not shards:
            return Outcome(text=context.share.nothing(), data=self.outcome.data)
        earlier = context.known_sets("annotate")
        schemas = annotate_config.schemas_of(self.plans, dataset, earlier, overwrite=self.options.overwrite)
        context.check_sets_read(shards, schemas)
        works = {name: sections.to_tag(context, plan, schemas) for name, plan in self.plans.items()}
        if self.options.dry_run:
            return show_plan(context, {"annotate": {name: self._plan(work, shards) for name, work in works.items()}})
        context.sweep(dataset.attributes, dataset.bookkeeping)
        for name, work in works.items():  # a key that cannot be used is told before anything is done
            self._check_key(name, requests.annotator_of(work))
        failed_before = FailureRecords(dataset, "annotate")
        settings = tagging.settings_of(schemas)
        holds = {f"the set {name}": json_digest(settings[name]) for name in works}
        with context.lease(dataset.bookkeeping, dataset.attributes, holds):
            annotate_config.schemas_of(self.plans, dataset, earlier, overwrite=self.options.overwrite, write=True)
            for name, work in works.items():
                if not self._annotate(name, work, shards, failed_before):
                    break
        if not context.in_part:
            failed_before.keep_only(shards)
        self.outcome.text = "\n\n".join(self.texts) + unfinished
        return self.outcome

    def _check_key(self, name: str, annotator: Annotator) -> None:
        """Raise ConfigError, with the configuration's place, for an unusable key."""
        try:
            authorization(annotator.api_key_env)
        except ConfigError as error:
            option, _, message = str(error).partition(": ")
            raise self.context.source.error(("annotate", name, option), message) from None

    def _outdated(self, name: str, work: tagging.ShardToTag, shard: str) -> bool:
        """Return True if a shard is out of date: it is not as it should be, or has samples that are asked again."""
        whole = msgspec.structs.replace(work, shard=shard)
        if tagging.outdated(whole, sets.ShardSets.now(self.dataset, shard)):
            return True
        record = sets.load_record(self.dataset, name, shard)
        counts = record.counts if record else {}
        failed = sum(count for reason, count in counts.items() if reason.startswith(SAMPLE))
        batched = requests.annotator_of(work).batch_folder is not None  # results may be there
        again = self.options.retry_failed or batched
        return counts.get(f"{SAMPLE} error_server", 0) > 0 or (again and failed > 0)

    def _plan(self, work: tagging.ShardToTag, shards: list[str]) -> dict[str, Any]:
        """Return pending requests and costs, for a dry run."""
        (name,) = work.plan.sets
        todo = [shard for shard in shards if self._outdated(name, work, shard)]
        estimate = self._estimate(work, todo)
        return {"shards": todo, **_estimated(estimate, requests.annotator_of(work))}

    def _estimate(self, work: tagging.ShardToTag, shards: list[str]) -> requests.RequestEstimate:
        """Return the pending requests of readable shards; of others it is told when their turn comes."""
        estimate = requests.RequestEstimate()
        for shard in shards:
            with suppress(ToolkitError):
                requests.estimate(work, shard, estimate, again=self.options.retry_failed)
        return estimate

    def _annotate(self, name: str, work: tagging.ShardToTag, shards: list[str], records: FailureRecords) -> bool:
        """Annotate a set; return whether the next one may begin."""
        annotator, context = requests.annotator_of(work), self.context
        todo = [shard for shard in shards if self._outdated(name, work, shard)]
        estimate = requests.RequestEstimate()
        if todo and not self.options.quiet:
            estimate = self._estimate(work, todo)
            estimated = _estimated(estimate, annotator)
            listed = ", ".join(f"{value:,} {key.replace('_', ' ')}" for key, value in estimated.items())
            print(f"annotate {name}, about: {listed}", file=sys.stderr)
        sizes = self.dataset.sizes()
        again = self.options.retry_failed
        with (
            requests.DirectRun(work, todo, again=again, expected=estimate.requests)
            if annotator.batch_folder is None
            else batch.BatchRun(work, again=again)
        ) as asks:
            tasks = [
                Task(
                    self.dataset.shard_path(shard),
                    _ToAnnotate(msgspec.structs.replace(work, shard=shard), asks),
                    sizes.get(shard),
                    key=shard,
                    outcome=None if shard in todo else self._earlier_result(name, shard),
                )
                for shard in shards
            ]
            with context.here(asks.facts):
                results = context.run(f"annotate {name}", _annotate_shard, tasks, failed=records)
        failed = list(dict.fromkeys(failures(results)))  # what ends a run is said once
        finished = [result.value for result in results if result.value]
        self._tell(name, annotator, asks, finished, failed)
        if asks.limits.why:
            left = len(shards) - len(finished) - sum(result.failure is not None for result in results)
            why = f"{name}: stopped with {amount(left, 'shard')} left: {asks.limits.why}"
            self._fault(f"{why}; answers are kept, and the same command goes on")
        return not (failed or asks.limits.why)

    def _earlier_result(self, name: str, shard: str) -> ShardDone:
        record = sets.load_record(self.dataset, name, shard)
        return ShardDone(shard=shard, documents=record.rows if record else 0)

    def _tell(
        self,
        name: str,
        annotator: Annotator,
        asks: requests.DirectRun | batch.BatchRun,
        finished: list[ShardDone],
        failed: list[str],
    ) -> None:
        counts: Counter[str] = Counter()
        for item in finished:
            record = sets.load_record(self.dataset, name, item.shard)
            counts.update(record.counts if record else {})
        numbers = asks.numbers
        written = sum(bool(item.written) for item in finished)
        by_status = {status: count for status, count in sorted(counts.items()) if status in _STATUSES and count}
        annotated = sum(by_status.values())
        broken = annotated - by_status.get("success", 0)
        data = {
            "shards_written": written,
            "up_to_date": len(finished) - written,
            "documents": counts["documents"],
            "asked": annotated,
            "statuses": by_status,
            "requests": numbers.requests,
            "retries": asks.retried,
            "prompt_tokens": numbers.prompt_tokens,
            "completion_tokens": numbers.completion_tokens,
            **({"cost": round(asks.ledger.cost, 6)} if annotator.prices else {}),
            "all_runs": msgspec.to_builtins(asks.ledger.spending),
        }
        rows = [["set", name]]
        for key, value in data.items():
            if isinstance(value, dict):
                rows += [] if key == "statuses" else [[key.replace("_", " "), ""]]
                rows += [[f"  {name.replace('_', ' ')}", _cell(count)] for name, count in value.items()]
            else:
                rows.append([key.replace("_", " "), _cell(value)])
        text = table(rows, right=[1])
        for status, message in asks.numbers.first.items():
            text += f"\n{amount(numbers.failed[status], 'sample')} {status}, the first: {message}"
        if broken:
            text += (
                f"\n{amount(broken, 'document')} failed; a rerun asks again what the server did not answer, "
                "--retry-failed the others, too"
            )
        if isinstance(asks, batch.BatchRun):
            data["batch"] = {
                "folder": asks.folder,
                "files": asks.files,
                "written": asks.written,
                "waiting": asks.waiting,
            }
            text += f"\n{waits}" if (waits := batch.waits(asks)) else ""
        self.texts.append(text)
        self.outcome.data.sets[name] = data
        for message in failed:
            self._fault(message)
        if annotated and broken / annotated > annotator.max_failed:
            self._fault(
                f"{name}: expected at most {annotator.max_failed:.0%} of the documents to fail (`max_failed`), got "
                f"{broken / annotated:.1%}"
            )

    def _fault(self, message: str) -> None:
        self.outcome.failures.append(message)
        self.outcome.data.failed.append(message)
        self.outcome.exit_code = 1


_STATUSES = ("success", "error_server", "error_refused", "error_no_generated_text", "error_faulty_score")


def _cell(value: float) -> str:
    return f"{value:,.6f}" if isinstance(value, float) else f"{value:,}"


def _estimated(estimate: requests.RequestEstimate, annotator: Annotator) -> dict[str, Any]:
    numbers: dict[str, Any] = {
        "documents": estimate.documents,
        "samples": estimate.samples,
        "answered": estimate.samples - estimate.pending,
        "requests": estimate.requests,
        "prompt_tokens": estimate.prompt_tokens,
        "max_completion_tokens": estimate.completion_tokens,
    }
    if annotator.prices:
        prices = annotator.prices
        cost = (estimate.prompt_tokens * prices.input + estimate.completion_tokens * prices.output) / 1e6
        numbers["cost"] = round(cost, 6)
    return numbers


# --- as a stage -------------------------------------------------------------------------------------------------------


def _progress(look: Look) -> Iterator[Progress]:
    context = look.context
    try:
        plans = sections.annotations(context)
    except ToolkitError as error:
        yield from (Progress(f"annotate {name}", unknown=str(error)) for name in context.config.annotate)
        return
    for name, plan in plans.items():
        (step,) = build(plan)
        assert isinstance(step.tagger, Annotator)
        spent = ledger.spending_of(requests.ledger_folder(context.dataset, name, step.tagger))
        for one in tag.progress(look, "annotate", plan):
            yield (
                msgspec.structs.replace(
                    one, tables=[*one.tables, _spent(spent)], data={**one.data, "spent": msgspec.to_builtins(spent)}
                )
                if spent.attempts
                else one
            )


def _spent(spent: ledger.Spending) -> dict[str, str]:
    columns = "requests of all runs", "without reply", "prompt tokens", "completion tokens"
    counts = (f"{count:,}" for count in msgspec.structs.astuple(spent)[:-1])
    return {**dict(zip(columns, counts, strict=True)), "cost": f"{spent.cost:,.6f}"}


def _check(context: Context, checked: Checked) -> None:
    if not checked.faults:  # or else sets are not known
        plans, overwrite = sections.annotations(context, checked.sets), context.options.overwrite
        checked.sets |= annotate_config.schemas_of(plans, context.dataset, checked.sets, overwrite=overwrite)


def _prepare(context: Context, names: Collection[str]) -> None:
    plans = {name: plan for name, plan in sections.annotations(context).items() if name in names}
    annotate_config.schemas_of(plans, context.dataset, context.known_sets("annotate"), overwrite=False)


STAGE = Declaration(
    "per shard", _progress, _check, check_settings=_prepare, disk_use=lambda context: DiskUse(needs_documents=True)
)
