"""``toolkit tag``: taggers write attribute files beside the documents."""

from toolkit import rowindex, tag_plan, tagging
from toolkit.commands import Context, Outcome, dolma, failures, shard_tasks, show_plan, table


def run(context: Context) -> Outcome:
    """Tags all shards whose attributes are missing, or made from something that has changed."""
    if context.is_dolma:
        return dolma.tag(context, run)
    dataset, options = context.dataset, context.options
    plan = tag_plan.read_section(context.section("tag"))
    schemas = tag_plan.prepare(plan, dataset, overwrite=options.overwrite, write=not options.dry_run)
    settings = tagging.settings_of(schemas)
    all_shards = dataset.shards()
    unfinished = context.whole(dataset, all_shards)
    shards = context.limited(all_shards)
    works = [
        tagging.Work(
            dataset=dataset,
            plan=plan,
            settings=settings,
            shard=shard,
            max_document_bytes=context.config.max_document_bytes,
        )
        for shard in shards
    ]
    if options.dry_run:
        todo = {work.shard: tagging.outdated(work, rowindex.current(dataset, work.shard)) for work in works}
        return show_plan(context, {"tag": {shard: sets for shard, sets in todo.items() if sets}})
    context.sweep(dataset.attributes, dataset.bookkeeping)
    results = context.run("tag", tagging.tag_shard, shard_tasks(dataset, works), spreads=True)
    done = [result.value for result in results if result.value]
    failed = failures(results)
    written = {name: sum(name in each.written for each in done) for name in plan.sets}
    rows = [
        ["set", "keys", "shards written", "up to date"],
        *(
            [name, ", ".join(entry.key for entry in plan.sets[name]), str(count), str(len(done) - count)]
            for name, count in written.items()
        ),
    ]
    documents = sum(each.documents for each in done)
    text = f"{len(done)} shards, {documents:,} documents, {len(failed)} failed -> {dataset.attributes}\n"
    return Outcome(
        text=text + table(rows, right=[2, 3]) + unfinished,
        data={
            "attributes": dataset.attributes,
            "shards": len(works),
            "documents": documents,
            "written": written,
            "failed": failed,
        },
        failures=failed,
        exit_code=1 if failed else 0,
    )
