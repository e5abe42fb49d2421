"""``toolkit ingest``: input files become documents."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

from toolkit import ingest_plan, ingest_records, ingesting
from toolkit.commands import Context, Outcome, failures, show_plan, table
from toolkit.executors import P, R, Report, Result, Task
from toolkit.failure_records import FailureRecords
from toolkit.stores import is_web


def run(context: Context) -> Outcome:
    """Ingests all inputs that have not been, or have changed."""
    dataset, options = context.dataset, context.options
    entries = ingest_plan.read_section(context.section("ingest"))
    planned, share = context.inputs(), context.share
    works = (share.inputs if share else planned)[: options.limit]
    if share and not works:
        data = {"documents": dataset.documents, "inputs": 0, "skipped": 0, "failed": [], "gone": [], "counts": {}}
        return Outcome(text=share.nothing(), data=data)
    ingest_records.check_settings(works)
    if options.dry_run:
        return show_plan(context, {"ingest": {work.path: work.shard for work in works}})
    context.sweep(dataset.documents, dataset.attributes, dataset.bookkeeping)
    noted = FailureRecords(dataset.bookkeeping, "ingest")
    with context.claimed(dataset.bookkeeping, dataset.documents, ingest_plan.holds(entries)):
        ingest_plan.prepare(entries, dataset, overwrite=options.overwrite)
        ingesting.sweep_downloads(planned, dataset)
        tasks = [Task(f"{work.path} -> {work.shard}", work, key=work.key) for work in works]
        results = run_inputs(context, "ingest", ingesting.ingest_input, tasks, works, noted)
    counts: Counter[str] = Counter()
    done = [result.value for result in results if result.value]
    for each in done:
        counts.update(each.counts)
    failed = failures(results)
    skipped = sum(each.skipped for each in done)
    rows = [["ingest", ""], *([name, f"{count:,}"] for name, count in sorted(counts.items()))]
    text = f"{len(works)} inputs: {len(done)} done ({skipped} before), {len(failed)} failed -> {dataset.documents}\n"
    if not context.in_part:
        ingest_records.forget_attempts(works, dataset)
        noted.keep_only([work.key for work in works])
    gone = [] if context.in_part else ingest_records.inputs_gone(works, dataset)
    if gone:
        text += f"{len(gone)} inputs of earlier runs are not among these; their documents stay: {gone[0]}, …\n"
    return Outcome(
        text=text + table(rows, right=[1]),
        data={
            "documents": dataset.documents,
            "inputs": len(works),
            "skipped": skipped,
            "failed": failed,
            "gone": gone,
            "counts": dict(sorted(counts.items())),
        },
        failures=failed,
        exit_code=1 if failed else 0,
    )


def run_inputs(
    context: Context,
    what: str,
    function: Callable[[P, Report], R],
    tasks: list[Task[P]],
    works: list[ingest_plan.Work],
    noted: FailureRecords,
    *,
    spreads: bool = False,
) -> list[Result[R]]:
    """Runs a task for each input: of what is near, then of what is on the web, where only so many are read at a time.

    The web is not asked for sizes, nor is a bucket for those of a crawl's thousands of files.

    Args:
        context: of the configuration.
        what: the stage.
        function: of the tasks.
        tasks: without sizes.
        works: the input of each task.
        noted: where failures are noted.
        spreads: whether a task can use several processes.
    """
    near = [(task, work) for task, work in zip(tasks, works, strict=True) if not is_web(work.path)]
    far = [(task, work) for task, work in zip(tasks, works, strict=True) if is_web(work.path)]
    results = []
    if near or not far:
        sized = [replace(task, size=work.size or 0) for task, work in near]
        results += context.run(what, function, sized, "inputs", spreads=spreads, failed=noted)
    if far:
        connections = min(work.entry.settings().connections for _, work in far)
        listed = [task for task, _ in far]
        results += context.run(what, function, listed, "inputs", at_once=connections, failed=noted)
    return results
