"""``toolkit ingest``: input files become documents."""

from collections import Counter

from toolkit import ingesting
from toolkit.commands import Context, Outcome, failures, show_plan, table
from toolkit.executors import Task
from toolkit.failure_records import FailureRecords
from toolkit.paths import size_of


def tasks(works: list[ingesting.Work]) -> list[Task[ingesting.Work]]:
    """A task for each input."""
    return [Task(f"{work.path} -> {work.shard}", work, size_of(work.path), key=work.key) for work in works]


def run(context: Context) -> Outcome:
    """Ingests all inputs that have not been, or have changed."""
    dataset, options = context.dataset, context.options
    entries = ingesting.read_section(context.section("ingest"))
    works = [
        work
        for work in ingesting.plan(entries, dataset, context.config.max_document_bytes, overwrite=options.overwrite)
        if context.is_mine(work.shard)
    ][: options.limit]
    ingesting.check_settings(works)
    if options.dry_run:
        return show_plan(context, {"ingest": {work.path: work.shard for work in works}})
    context.sweep(dataset.documents, dataset.attributes, dataset.bookkeeping)
    noted = FailureRecords(dataset.bookkeeping, "ingest")
    with context.claimed(dataset.bookkeeping, dataset.documents, ingesting.holds(entries)):
        ingesting.prepare(entries, dataset, overwrite=options.overwrite)
        results = context.run("ingest", ingesting.ingest_input, tasks(works), "inputs", failed=noted)
    counts: Counter[str] = Counter()
    done = [result.value for result in results if result.value]
    for each in done:
        counts.update(each.counts)
    failed = failures(results)
    skipped = sum(each.skipped for each in done)
    rows = [["ingest", ""], *([name, f"{count:,}"] for name, count in sorted(counts.items()))]
    text = f"{len(works)} inputs: {len(done)} done ({skipped} before), {len(failed)} failed -> {dataset.documents}\n"
    if not context.in_part:
        ingesting.forget_attempts(works, dataset)
        noted.keep_only([work.key for work in works])
    gone = [] if context.in_part else ingesting.inputs_gone(works, dataset)
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
