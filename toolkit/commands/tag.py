"""Compute attributes of documents.

Taggers write attribute files beside the documents, or are tried on some and shown.
"""

from collections.abc import Collection
from typing import Annotated, Any, ClassVar

from toolkit.commands.command_line.options import Flag, Stage, Words
from toolkit.commands.steps import dolma
from toolkit.commands.steps import shards as sharing
from toolkit.commands.steps.context import Context, show_plan
from toolkit.commands.steps.outcome import Outcome, failures, table
from toolkit.data import row_index
from toolkit.data.documents import Document
from toolkit.data.schema import SPANS, Type
from toolkit.errors import ConfigError, short
from toolkit.records.failures import FailureRecords
from toolkit.runs.executors import Task
from toolkit.storage.paths import size_of
from toolkit.storage.threads import for_each
from toolkit.tag import declared
from toolkit.tag import run as tagging

VALUE_CHARS = 160
TEXT_CHARS = 60
ELEMENTS = 6
"""Elements of a list or a mapping that are shown, at most."""


class Options(Stage, frozen=True, kw_only=True):
    """Options of ``toolkit tag``.

    Raises:
        ConfigError: for options that do nothing together.
    """

    EXAMPLES: ClassVar = (
        "toolkit tag -c configs/quickstart.yaml processes=2",
        "toolkit tag --try README.md line_shape noise line_shape.short_chars=80",
    )

    sample: Annotated[
        str | None,
        Flag(
            "show what taggers give for a text or a shard; writes nothing; - is standard input",
            "--try",
            metavar="FILE",
        ),
    ] = None
    lines: Annotated[bool, Flag("each line of that text is a document")] = False
    count: Annotated[int, Flag("documents to try (3)", "-n", metavar="N")] = 3
    accept_code: Annotated[
        tuple[str, ...],
        Flag("the code of the set's taggers was edited and gives the same values: keep what was made", metavar="SET"),
    ] = ()
    config: Annotated[
        str | None,
        Flag("configuration (YAML); with --try, taggers may be named instead", "-c", "--config", metavar="FILE"),
    ] = None
    targets: Annotated[
        tuple[str, ...],
        Words(
            "with --try: names, path/file.py:Class, '{tagger: NAME, option: …}'; settings that override others",
            "TAGGER | KEY=VALUE",
        ),
    ] = ()

    def __post_init__(self) -> None:
        if self.sample is not None:
            return
        if self.targets:
            raise ConfigError(f"expected KEY=VALUE, got {self.targets[0]!r}")
        if self.config is None:
            raise ConfigError("expected a configuration (-c FILE), or something to try taggers on (--try FILE)")
        if self.lines:
            raise ConfigError("expected --lines only with --try")


def run(context: Context, options: Options, tagged: Collection[str] = ()) -> Outcome:
    """Tag all shards whose attributes are missing, or made from something that has changed.

    Args:
        context: of the configuration.
        options: of the command.
        tagged: shards that this run has tagged already.
    """
    if options.sample is not None:
        return _try(context, options, options.sample)
    if context.is_dolma:
        return dolma.tag(context, options, run)
    dataset, plan = context.dataset, context.tags
    mine, unfinished = sharing.shards(context, dataset, judges=True)
    shards = context.limited(mine)
    sharing.check_compression(context, dataset, shards)
    if context.share and not shards:
        written = dict.fromkeys(plan.sets, 0)
        data = {"attributes": dataset.attributes, "shards": 0, "documents": 0, "written": written, "failed": []}
        return Outcome(text=context.share.nothing(), data=data)
    accepted = options.accept_code
    schemas = declared.prepare(plan, dataset, overwrite=options.overwrite, accept_code=accepted, write=False)
    settings = tagging.settings_of(schemas)
    works = [
        tagging.ShardToTag(
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
        paths = [dataset.shard_path(shard) for shard in shards]
        listed = zip(paths, works, for_each(size_of, paths), strict=True)
        tasks = [Task(path, work, size, key=work.shard) for path, work, size in listed]
        needs = context.disk.of_tags(tasks, overwrite=options.overwrite)
        results = context.run("tag", tagging.tag_shard, tasks, spreads=True, failed=noted, needs=needs)
    if not context.in_part:
        noted.keep_only(shards)
    done = [result.value for result in results if result.value]
    failed = failures(results)
    written = {name: sum(name in each.written or each.shard in tagged for each in done) for name in plan.sets}
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


def _try(context: Context, options: Options, path: str) -> Outcome:
    """Show the values of some documents; nothing is written."""
    from toolkit.tag import trial  # which nothing else needs

    if options.config is None:
        if not options.targets:
            raise ConfigError("expected taggers to try, or a configuration (-c FILE); `toolkit taggers` lists them")
        plan = trial.plan_of(trial.entries_of(options.targets), options.overrides)
    else:
        if options.targets:
            raise ConfigError(f"expected the taggers of the configuration alone, got {options.targets[0]!r} too")
        plan = context.tags
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
    """Return a value in lines: fields, elements, and what spans cover."""
    if isinstance(value, dict) and value:
        listed = list(value.items())
        cut = type_.kind == "map" and len(listed) > ELEMENTS
        width = max(map(len, value))
        lines = [
            f"  {key.ljust(width)}  {short(each, VALUE_CHARS)}" for key, each in (listed[:ELEMENTS] if cut else listed)
        ]
    elif isinstance(value, list) and value:
        listed, cut = value, len(value) > ELEMENTS
        texts = _texts(value[:ELEMENTS], len(value), type_, document)
        elements = [short(each, VALUE_CHARS) for each in value[:ELEMENTS]]
        width = max(map(len, elements))
        lines = [f"  {e.ljust(width)}  {text}".rstrip() for e, text in zip(elements, texts, strict=True)]
    else:
        return [f"{name}: {short(value, VALUE_CHARS)}"]
    return [f"{name}:", *lines, *([f"  … {len(listed) - ELEMENTS:,} more"] if cut else [])]


def _texts(elements: list[Any], total: int, type_: Type, document: Document) -> list[str]:
    """Return what elements of a list are about: the text that a span covers, or a line's."""
    if type_ == SPANS:
        return [_excerpt(document.text[begin:end]) for begin, end, *_ in elements]
    if total == len(document.lines):
        return [_excerpt(line) for line in document.lines[: len(elements)]]
    return [""] * len(elements)


def _excerpt(text: str) -> str:
    return "| " + text[:TEXT_CHARS].replace("\n", "⏎") + ("…" if len(text) > TEXT_CHARS else "")
