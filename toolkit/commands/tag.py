"""``toolkit tag``: taggers write attribute files beside the documents, or are tried on some and shown."""

from typing import Any

import msgspec

from toolkit.commands.steps import dolma
from toolkit.commands.steps import shards as sharing
from toolkit.commands.steps.context import Context, Outcome, failures, shard_tasks, show_plan, table
from toolkit.data import row_index
from toolkit.data.documents import Document
from toolkit.data.schema import SPANS, Type
from toolkit.errors import ConfigError
from toolkit.records.failures import FailureRecords
from toolkit.tag import declared, trial
from toolkit.tag import plan as tag_plan
from toolkit.tag import run as tagging

VALUE_CHARS = 160
TEXT_CHARS = 60
ELEMENTS = 6
"""Of a list or a mapping that are shown."""


def run(context: Context) -> Outcome:
    """Tags all shards whose attributes are missing, or made from something that has changed."""
    if context.options.sample is not None:
        return _try(context, context.options.sample)
    if context.options.config is None:
        raise ConfigError("expected a configuration (-c FILE), or something to try taggers on (--try FILE)")
    if context.options.lines:
        raise ConfigError("expected --lines only with --try")
    if context.is_dolma:
        return dolma.tag(context, run)
    dataset, options = context.dataset, context.options
    plan = tag_plan.read_section(context.section("tag"))
    mine, unfinished = sharing.shards(context, dataset, judges=True)
    shards = context.limited(mine)
    if context.share and not shards:
        written = dict.fromkeys(plan.sets, 0)
        data = {"attributes": dataset.attributes, "shards": 0, "documents": 0, "written": written, "failed": []}
        return Outcome(text=context.share.nothing(), data=data)
    accepted = options.accept_code
    schemas = declared.prepare(plan, dataset, overwrite=options.overwrite, accept_code=accepted, write=False)
    settings = tagging.settings_of(schemas)
    works = [
        tagging.TagJob(
            dataset=dataset,
            plan=plan,
            settings=settings,
            shard=shard,
            max_document_bytes=context.config.max_document_bytes,
        )
        for shard in shards
    ]
    if options.dry_run:
        todo = {work.shard: tagging.outdated(work, row_index.current(dataset, work.shard)) for work in works}
        return show_plan(context, {"tag": {shard: sets for shard, sets in todo.items() if sets}})
    context.sweep(dataset.attributes, dataset.bookkeeping)
    noted = FailureRecords(dataset.bookkeeping, "tag")
    with context.claimed(dataset.bookkeeping, dataset.attributes, tagging.holds(settings)):
        declared.prepare(plan, dataset, overwrite=options.overwrite, accept_code=accepted, write=True)
        results = context.run("tag", tagging.tag_shard, shard_tasks(dataset, works), spreads=True, failed=noted)
    if not context.in_part:
        noted.keep_only(shards)
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


# --- taggers that are tried -------------------------------------------------------------------------------------------


def _try(context: Context, path: str) -> Outcome:
    """The values of some documents; nothing is written."""
    options = context.options
    if options.config is None:
        if not options.targets:
            raise ConfigError("expected taggers to try, or a configuration (-c FILE); `toolkit taggers` lists them")
        plan = trial.plan_of(trial.entries_of(options.targets), options.overrides)
    else:
        if options.targets:
            raise ConfigError(f"expected the taggers of the configuration alone, got {options.targets[0]!r} too")
        plan = tag_plan.read_section(context.section("tag"))
    steps = trial.steps_of(plan)
    limit = context.config.max_document_bytes
    tried = trial.read_documents(path, options.count, lines=options.lines, max_bytes=limit)
    values = trial.values_of(steps, tried, path)
    order = [(set_name, entry.key) for set_name, entries in plan.sets.items() for entry in entries]
    types = {(step.set, step.key): step.type for step in steps}
    shown, data = [], []
    for (document, place), found in zip(tried, values, strict=True):
        lines = [f"{place}{'' if document.id == place else f'  {document.id}'}  {len(document.text):,} characters"]
        attributes: dict[str, Any] = {}
        for set_name, key in order:
            named = key if options.config is None else f"[{set_name}] {key}"
            lines += [f"  {line}" for line in _show(named, found[set_name, key], types[set_name, key], document)]
            inside = attributes if options.config is None else attributes.setdefault(set_name, {})
            inside[key] = found[set_name, key]
        shown.append("\n".join(lines))
        data.append({"place": place, "id": document.id, "source": document.source, "attributes": attributes})
    return Outcome(text="\n\n".join(shown), data={"documents": data})


def _show(name: str, value: Any, type_: Type, document: Document) -> list[str]:
    """A value in lines: fields, elements, and what spans cover."""
    if isinstance(value, dict) and value:
        listed = list(value.items())
        cut = type_.kind == "map" and len(listed) > ELEMENTS
        width = max(map(len, value))
        lines = [f"  {key.ljust(width)}  {_short(each)}" for key, each in (listed[:ELEMENTS] if cut else listed)]
    elif isinstance(value, list) and value:
        listed, cut = value, len(value) > ELEMENTS
        texts = _texts(value[:ELEMENTS], len(value), type_, document)
        elements = [_short(each) for each in value[:ELEMENTS]]
        width = max(map(len, elements))
        lines = [f"  {e.ljust(width)}  {text}".rstrip() for e, text in zip(elements, texts, strict=True)]
    else:
        return [f"{name}: {_short(value)}"]
    return [f"{name}:", *lines, *([f"  … {len(listed) - ELEMENTS:,} more"] if cut else [])]


def _texts(elements: list[Any], total: int, type_: Type, document: Document) -> list[str]:
    """What elements of a list are about: the text that a span covers, or a line's."""
    if type_ == SPANS:
        return [_excerpt(document.text[begin:end]) for begin, end, *_ in elements]
    if total == len(document.lines):
        return [_excerpt(line) for line in document.lines[: len(elements)]]
    return [""] * len(elements)


def _excerpt(text: str) -> str:
    return "| " + text[:TEXT_CHARS].replace("\n", "⏎") + ("…" if len(text) > TEXT_CHARS else "")


def _short(value: Any) -> str:
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= VALUE_CHARS else text[:VALUE_CHARS] + "…"
