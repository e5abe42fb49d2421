"""Compute attributes of documents with taggers, and write them beside the documents.

Taggers write attribute files beside the documents, or are tried on some and shown.
"""

from collections.abc import Collection, Iterator, Sequence
from functools import partial
from typing import Annotated, Any, ClassVar

import msgspec

from toolkit.command_options import CommandResult, Flag, StageOptions, Words, absent, natural
from toolkit.commands import _sections as sections
from toolkit.data import row_index
from toolkit.data.dataset import Dataset
from toolkit.data.documents import Document
from toolkit.data.excerpts import escaped
from toolkit.data.schema import SPANS, Type
from toolkit.errors import ConfigError, ToolkitError, amount, short
from toolkit.execution.grouped import shard_tasks
from toolkit.ingest import ingest_config
from toolkit.records.failures import FailureRecords
from toolkit.records.sets import SetSchema, ShardSets, is_recorded
from toolkit.stages.context import Context, Outcome, failures, show_plan, table
from toolkit.stages.declaration import Checked, Declaration, Look, Progress
from toolkit.stages.disk_quota import ATTRIBUTES, FILES, DiskUse
from toolkit.stages.tasks import skip_finished
from toolkit.storage.threads import results_of
from toolkit.tag import run as tagging, schema_check
from toolkit.tag.plan import Plan
from toolkit.tag.run import work_done

VALUE_CHARS = 160
TEXT_CHARS = 60
ELEMENTS = 6
"""Elements of a list or a mapping that are shown, at most."""


class Tagging(CommandResult, kw_only=True):
    """The result of `tag`.

    Attributes:
        attributes: Folder of the sets.
        shards, documents: Number of those that are tagged now.
        written: Number of shards that were written, by set; the others were up to date.
        asked: Number of documents that the taggers of a set were asked of, fewer than all with ``when``.
        seconds: Seconds that they took, summed over processes.
        failed: Messages of shards that failed.
        counts: Counts of items that the reader of files in place left out or changed, by reason.
    """

    attributes: str
    shards: int = 0
    documents: int = 0
    written: dict[str, int]
    asked: dict[str, int] = {}
    seconds: dict[str, float] = {}
    failed: list[str] = []
    counts: dict[str, int] = absent()


class Options(StageOptions, frozen=True, kw_only=True):
    """Options of ``toolkit tag``.

    Attributes:
        sample: write nothing; show the values of taggers for a text or a shard; - is standard input
        drawn: try the section on N documents, drawn from all; the sets stay as they are
        seed: another seed draws other documents, with --sample (0)
        lines: each line of the text is a document, with --try
        count: number of documents, with --try (3)
        accept_code: keep this set: the code of its taggers has changed, but gives the same values
        config: configuration (YAML); with --try, taggers may be named instead
        targets: names, path/file.py:Class, '{tagger: NAME, option: …}', with --try; settings that override the file's

    Raises:
        ConfigError: for options that do nothing together.
    """

    REMAKES: ClassVar = "sets"
    SETTINGS: ClassVar = False
    EXAMPLES: ClassVar = (
        "toolkit tag -c configs/quickstart.yaml processes=2",
        "toolkit tag --try README.md line_shape noise line_shape.short_chars=80",
    )

    sample: Annotated[str | None, Flag("--try", metavar="FILE")] = None
    drawn: Annotated[int | None, Flag("--sample", metavar="N")] = None
    seed: Annotated[int, Flag(parse=natural)] = 0
    lines: Annotated[bool, Flag()] = False
    count: Annotated[int, Flag("-n", metavar="N")] = 3
    accept_code: Annotated[tuple[str, ...], Flag(metavar="SET")] = ()
    config: Annotated[str | None, Flag("-c", "--config", metavar="FILE")] = None
    targets: Annotated[tuple[str, ...], Words("TAGGER | KEY=VALUE")] = ()

    def __post_init__(self) -> None:
        if self.seed and self.drawn is None:
            raise ConfigError("expected --seed only with --sample")
        if self.sample is not None:
            if self.drawn is not None:
                raise ConfigError("expected one of --try and --sample, got both")
            return
        if self.targets:
            raise ConfigError(f"expected KEY=VALUE, got {self.targets[0]!r}")
        if self.config is None:
            raise ConfigError("expected a configuration (-c FILE), or something to try taggers on (--try FILE)")
        if self.lines:
            raise ConfigError("expected --lines only with --try")


def run(context: Context, options: Options, tagged: Collection[str] = ()) -> Outcome:
    """Tag all shards with missing or outdated attributes.

    Args:
        context: Context of the configuration.
        options: Options of the command.
        tagged: shards that this run has tagged already.
    """
    if options.sample is not None:
        return _try(context, options, options.sample)
    if context.is_dolma:
        if options.drawn is not None:
            raise ConfigError("--sample takes configurations of our own form, this one is of Dolma's")
        from toolkit.commands import _dolma as dolma

        return dolma.run(context, options, run)
    if options.drawn is not None:
        from toolkit.commands._tag_sample import tag  # which few commands need

        return tag(context, options.drawn, options.seed)
    dataset, plan = context.dataset, sections.tags(context)
    shards, unfinished = context.shards(dataset, judges=True, writes=True)
    if context.share and not shards:
        data = Tagging(attributes=dataset.attributes, written=dict.fromkeys(plan.sets, 0))
        return Outcome(text=context.share.nothing(), data=data)
    accepted = options.accept_code
    schemas = schema_check.prepare(plan, dataset, overwrite=options.overwrite, accept_code=accepted, write=False)
    context.check_sets_read(shards, schemas)
    whole = sections.to_tag(context, plan, schemas)
    works = (msgspec.structs.replace(whole, shard=shard) for shard in shards)
    if options.dry_run:
        outdated = {work.shard: tagging.outdated(work, ShardSets.now(dataset, work.shard)) for work in works}
        return show_plan(context, {"tag": {shard: sets for shard, sets in outdated.items() if sets}})
    context.sweep(dataset.attributes, dataset.bookkeeping)
    failure_records = FailureRecords(dataset, "tag")
    with context.lease(dataset.bookkeeping, dataset.attributes, tagging.holds(whole.settings)):
        schema_check.prepare(plan, dataset, overwrite=options.overwrite, accept_code=accepted, write=True)
        with dataset.listing_cache(tagging.sets_of(plan)):
            sizes = dataset.sizes()
            outcome_of = tagging.finished_shards(whole)
            todo, finished = skip_finished(
                works,
                tagging.as_it_was,
                failure_records,
                lambda work: sizes.get(work.shard),
                quick=lambda work: outcome_of(work.shard),
            )
            tasks = shard_tasks(todo, sizes=sizes)
            sizes.clear()
        needs = context.disk.estimates(
            tasks, partial(_bytes_of_shard, share=_bytes_per_text(context).attributes, overwrite=options.overwrite)
        )
        results = context.run(
            "tag", tagging.WORK, tasks, spreads=True, failed=failure_records, needs=needs, finished=finished
        )
    if not context.in_part:
        failure_records.keep_only(shards)
    broken = {work.shard for work, result in zip(todo, results, strict=True) if result.failure}
    context.failed.update(broken)
    complete = [shard for shard in shards if shard not in broken] if broken else shards
    successes = [result.value for result in results if result.value]
    retagged = {shard for shard in complete if shard in tagged}
    written = {
        name: len(retagged.union(item.shard for item in successes if name in item.written)) for name in plan.sets
    }
    documents = sum(finished.documents) + sum(item.documents for item in successes)
    return _outcome(dataset, plan, complete, documents, written, failed=failures(results), unfinished=unfinished)


def _outcome(
    dataset: Dataset,
    plan: Plan,
    shards: Sequence[str],
    documents: int,
    written: dict[str, int],
    *,
    failed: list[str],
    unfinished: str,
) -> Outcome:
    """Return the outcome from complete shards and counts of written files."""
    worked = work_done(plan, dataset, shards)
    rows = [["set", "keys", "shards written", "up to date", *(["documents asked", "seconds"] if worked else [])]]
    for name, count in written.items():
        keys = ", ".join(entry.key for entry in plan.sets[name])
        took = [f"{worked[name].selected:,}", f"{worked[name].seconds:,.1f}"] if worked else []
        rows.append([name, keys, str(count), str(len(shards) - count), *took])
    tagged_shards = f"{amount(len(shards), 'shard')}, {amount(documents, 'document')}"
    text = f"{tagged_shards}, {len(failed)} failed -> {dataset.attributes}\n"
    counts = row_index.counts(dataset, shards)
    left = ""
    if counts:
        from toolkit.describe.provenance import counted

        left = f"\nread in place: {line}" if (line := counted(counts)) else ""
    return Outcome(
        text=text + table(rows, right=range(2, len(rows[0]))) + left + unfinished,
        data=Tagging(
            attributes=dataset.attributes,
            shards=len(shards) + len(failed),
            documents=documents,
            written=written,
            asked={name: item.selected for name, item in worked.items()},
            seconds={name: item.seconds for name, item in worked.items()},
            failed=failed,
            **({"counts": counts} if dataset.in_place else {}),
        ),
        failures=failed,
        stops_run=not shards,
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
            raise ConfigError(
                f"expected no names of taggers with -c, which tries those of the configuration, got "
                f"{options.targets[0]!r} too"
            )
        plan = sections.tags(context)
    steps = trial.steps_of(plan)
    limit = context.config.max_document_bytes
    tried = trial.read_documents(path, options.count, lines=options.lines, max_bytes=limit)
    found_values = trial.values_of(steps, tried, path)
    order = [(set_name, entry.key) for set_name, entries in plan.sets.items() for entry in entries]
    types = {(step.set, step.key): step.type for step in steps}
    blocks, data = [], []
    for (document, place), value in zip(tried, found_values, strict=True):
        lines = [
            f"{place}{'' if document.id == place else f'  {escaped(document.id)}'}  {len(document.text):,} characters"
        ]
        attributes: dict[str, Any] = {}
        for set_name, key in order:
            named = key if options.config is None else f"[{set_name}] {key}"
            lines += [f"  {line}" for line in _show(named, value[set_name, key], types[set_name, key], document)]
            inside = attributes if options.config is None else attributes.setdefault(set_name, {})
            inside[key] = value[set_name, key]
        blocks.append("\n".join(lines))
        data.append({"place": place, "id": document.id, "source": document.source, "attributes": attributes})
    return Outcome(text="\n\n".join(blocks), data={"documents": data})


def _show(name: str, value: Any, type_: Type, document: Document) -> list[str]:
    """Return a value in lines: fields, elements, and what spans cover."""
    if isinstance(value, dict) and value:
        listed = list(value.items())
        cut = type_.kind == "map" and len(listed) > ELEMENTS
        listed = [(escaped(key), item) for key, item in listed]
        width = max(len(key) for key, _ in listed)
        lines = [
            f"  {key.ljust(width)}  {short(item, VALUE_CHARS)}" for key, item in (listed[:ELEMENTS] if cut else listed)
        ]
    elif isinstance(value, list) and value:
        listed, cut = value, len(value) > ELEMENTS
        texts = _texts(value[:ELEMENTS], len(value), type_, document)
        elements = [short(item, VALUE_CHARS) for item in value[:ELEMENTS]]
        width = max(map(len, elements))
        lines = [f"  {e.ljust(width)}  {text}".rstrip() for e, text in zip(elements, texts, strict=True)]
    else:
        return [f"{name}: {short(value, VALUE_CHARS)}"]
    return [f"{name}:", *lines, *([f"  … {len(listed) - ELEMENTS:,} more"] if cut else [])]


def _texts(elements: list[Any], total: int, type_: Type, document: Document) -> list[str]:
    """Return the text of each list element: that of its span or line."""
    if type_ == SPANS:
        return [_excerpt(document.text[begin:end]) for begin, end, *_ in elements]
    if total == len(document.lines):
        return [_excerpt(line) for line in document.lines[: len(elements)]]
    return [""] * len(elements)


def _excerpt(text: str) -> str:
    return "| " + text[:TEXT_CHARS].replace("\n", "⏎") + ("…" if len(text) > TEXT_CHARS else "")


# --- as a stage -------------------------------------------------------------------------------------------------------


def progress(look: Look, command: str, plan: Plan | None = None) -> Iterator[Progress]:
    """Yield the progress of a plan's sets.

    By default the plan is that of the section.
    """
    context, dataset = look.context, look.context.dataset
    plan = plan or sections.tags(context)
    try:
        shards = look.shards(dataset)
        if context.share and not shards and not look.deleted:  # the sets that are read need not be there yet
            yield from (Progress(f"{command} {name}", command) for name in plan.sets)
            return
        whole = sections.to_tag(
            context, plan, schema_check.prepare(plan, dataset, overwrite=False, write=False, command=command)
        )
    except ToolkitError as error:
        yield from (Progress(f"{command} {name}", unknown=str(error)) for name in plan.sets)
        return

    def todo(shard: str) -> list[str]:
        return tagging.outdated(msgspec.structs.replace(whole, shard=shard), ShardSets.now(dataset, shard))

    outcome_of = tagging.finished_shards(whole)
    listed = results_of(todo, shards, lambda shard: [] if outcome_of(shard) else None)
    unfinished = {shard: sets for shard, sets in listed if sets}
    removed = sorted(look.deleted.keys() - {*shards}) if look.deleted else []
    worked = work_done(plan, dataset, [*shards, *removed] if removed else shards)
    for name in plan.sets:
        causes = look.causes(name, shards, [shard for shard, sets in unfinished.items() if name in sets])
        took = worked.get(name)
        table = (
            {"documents asked": f"{took.selected:,}", "of": f"{took.documents:,}", "seconds": f"{took.seconds:,.1f}"}
            if took
            else {}
        )
        yield Progress(
            f"{command} {name}",
            command,
            causes | dict.fromkeys(removed, ""),
            tables=[table] if took else [],
            data={"worked": took and {"documents": took.documents, "asked": took.selected, "seconds": took.seconds}},
        )


def _look(look: Look) -> str:
    sections.tags(look.context)
    return look.context.dataset.bookkeeping


def _check_sets(context: Context, names: Collection[str]) -> None:
    planned, dataset = ingest_config.set_schemas(context.entries), context.dataset
    elsewhere, own = sections.type_lookup(context, lambda: dataset, lambda: planned), context.own_types_known
    context.warn(schema_check.check_section(context.section("tag"), dataset, names, planned, elsewhere, own))


def _bytes_per_text(context: Context) -> DiskUse:
    return DiskUse(ATTRIBUTES * sum(len(item) if isinstance(item, list) else 1 for item in context.config.tag.values()))


def _bytes_of_shard(work: tagging.ShardToTag, text: float, *, share: float, overwrite: bool) -> float:
    """Return the bytes of a shard's sets from its bytes of text."""
    recorded = (is_recorded(work.dataset, name, work.shard) for name in work.plan.sets)
    return 0.0 if all(recorded) and not overwrite else text * share + FILES


def _check(context: Context, checked: Checked) -> dict[str, SetSchema]:
    overwrite, plan = context.options.overwrite, sections.tags(context)
    schemas = schema_check.prepare(plan, context.dataset, checked.sets, overwrite=overwrite, write=False)
    checked.sets |= schemas
    checked.holds |= tagging.holds(tagging.settings_of(schemas))
    return schemas


STAGE = Declaration(
    "per shard",
    partial(progress, command="tag"),
    _check,
    _look,
    _check_sets,
    _bytes_per_text,
    continues_after_failure=True,
)
