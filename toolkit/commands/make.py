"""Run stages of your own: each makes an attribute set, or new documents, of the documents of a dataset."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, ClassVar

import msgspec
from msgspec.structs import replace

from toolkit.command_options import CommandResult, Configured, StageOptions
from toolkit.commands import dedup
from toolkit.config.settings import sets_before
from toolkit.errors import ConfigError, ToolkitError, amount, errors_from, few
from toolkit.execution.grouped import ShardDone, shard_tasks
from toolkit.ingest import ingest_config
from toolkit.make import make_config
from toolkit.make.make_config import SECTION, Entry, ShardToMake, read_section, roots, schema_of
from toolkit.mix.join import JoinedShard
from toolkit.records import ingested, sets
from toolkit.records.failures import FailureRecords
from toolkit.records.set_declaration import check_made, declare_set, what_to_declare
from toolkit.stages.context import Context, Outcome, failures, show_plan, table
from toolkit.stages.declaration import Checked, Declaration, Look, Progress
from toolkit.stages.disk_quota import ATTRIBUTES, DOCUMENTS, FILES, DiskUse
from toolkit.storage.json_files import json_digest
from toolkit.storage.threads import for_each
from toolkit.tag import tagger
from toolkit.whole_corpus import corpus_config
from toolkit.whole_corpus.kinds.make import Make
from toolkit.whole_corpus.resolve import states_of


class Options(Configured, StageOptions, frozen=True, kw_only=True):
    """Options of ``toolkit make``."""

    REMAKES: ClassVar = "sets"
    EXAMPLES: ClassVar = ("toolkit make -c my.yaml", "toolkit make -c my.yaml make.translated-0.language=de --dry-run")


class MadeByStage(msgspec.Struct, frozen=True, kw_only=True):
    """Output of a stage: its path, documents read, shards written, and shards deleted with their input."""

    path: str
    documents: int
    written: int
    deleted: int


class MakeResult(CommandResult, kw_only=True):
    """The result of `make`: shards, what each stage of the section made, and messages of shards that failed."""

    shards: int
    made: dict[str, MadeByStage] = {}
    failed: list[str] = []


def entries_of(context: Context) -> list[Entry]:
    """Return the stages of the section, in its order.

    Raises:
        ConfigError: as `read_section`; if a section before it makes the set, or two stages write below one root.
    """
    section = context.section(SECTION)
    entries = read_section(section, context.dataset)
    names = {name for command in sets_before(SECTION) for name in getattr(context.config, command)}
    names.update(ingest_config.set_schemas(context.entries))
    roots = set[str]()
    for entry in entries:
        if not entry.root and entry.name in names:
            raise section.error(
                (entry.name,), f"expected another name than those of other sets, got {entry.name!r} twice"
            )
        if entry.root and entry.root in roots:
            raise section.error((entry.name, "dataset"), f"expected a root for each stage, got {entry.root} twice")
        roots.add(entry.root)
    return entries


def prepare(
    context: Context, entry: Entry, schemas: Mapping[str, sets.SetSchema], *, overwrite: bool, write: bool = False
) -> sets.SetSchema:
    """Compare the schema of a stage's output with the disk; declare it.

    Raises:
        ConfigError: if it was made otherwise, and overwrite is not given.
    """
    if entry.whole:
        plan = plan_of(context, entry, schemas)
        corpus_config.prepare(plan, context.dataset, overwrite=overwrite, write=write)
        return plan.schemas[entry.name]
    schema = schema_of(entry, context.dataset, schemas)
    home, name = entry.home(context.dataset)
    if entry.root and any(ingested.load_all(home)):
        raise ConfigError(
            f"{entry.place}: dataset: expected a root for new documents alone, got {entry.root}, which has ingested "
            "documents; choose another one"
        )
    with errors_from(entry.place):
        how = what_to_declare(home, name, schema, overwrite=overwrite, command=SECTION)
    if write and how:
        declare_set(home, name, schema, forget=how == "changed")
    if write and (models := tagger.model_names(entry.stage())):
        sets.save_models(home, name, models)
    return schema


def plan_of(context: Context, entry: Entry, schemas: Mapping[str, sets.SetSchema]) -> corpus_config.Plan:
    """Return the plan of a stage of all documents; errors as of `toolkit.whole_corpus.corpus_config.read_section`."""
    options = {"as": entry.key, "stage": entry.reference, "options": entry.options}
    earlier = {name: schema for name, schema in schemas.items() if name != entry.name}
    alone, own = replace(context.section(SECTION), value={entry.name: options}), context.own_types_known()
    return corpus_config.read_section(alone, context.dataset, earlier, SECTION, own, external=context.external)


def schemas_of(
    context: Context, schemas: Mapping[str, sets.SetSchema], *, overwrite: bool
) -> dict[str, sets.SetSchema]:
    """Return the checked schemas of the section's sets; errors as of `prepare`."""
    results: dict[str, sets.SetSchema] = {}
    for entry in entries_of(context):
        schema = prepare(context, entry, {**schemas, **results}, overwrite=overwrite)
        results |= {} if entry.root else {entry.name: schema}
    return results


def run(context: Context, options: Options) -> Outcome:
    """Run each stage on its missing or outdated shards."""
    dataset, entries = context.dataset, entries_of(context)
    shards, unfinished = context.shards(dataset, judges=True, writes=True)
    data = MakeResult(shards=len(shards))
    if context.share and not shards:
        return Outcome(text=context.share.nothing(), data=data)
    schemas = context.known_sets(SECTION) | schemas_of(
        context, context.known_sets(SECTION), overwrite=options.overwrite
    )
    if options.dry_run:
        todo = {entry.name: _planned(context, entry, schemas, shards) for entry in entries}
        return show_plan(context, {SECTION: todo})
    context.sweep(dataset.attributes, dataset.bookkeeping, *(entry.root for entry in entries if entry.root))
    rows, failed, notes = [["stage", "documents", "made", "shards written", "up to date"]], list[str](), ""
    for entry in entries:
        left = [shard for shard in shards if shard not in context.failed]
        if entry.whole and failed:
            context.waiting.add(entry.name)
        if entry.name in context.waiting or {*entry.reads()} & context.waiting:
            context.waiting |= set() if entry.root else {entry.name}
            notes += f"\n{entry.name}: not made, because what it needs of all shards is not there yet"
            continue
        if entry.whole:
            plan = plan_of(context, entry, schemas)
            context.check_sets_read(left, plan.schemas)
            dedup.check_limit(context, dataset, plan, left)
            outcome = dedup.make_plan(context, plan, left)
            failed += outcome.failures
            if result := outcome.data.sets.get(entry.name):
                counts = [f"{result.documents:,}"] * 2 + [str(result.written), str(len(left) - result.written)]
                rows.append([entry.name, *counts])
                data.made[entry.name] = MadeByStage(
                    path=dataset.attribute_path(entry.name, "").rstrip("/"),
                    documents=result.documents,
                    written=result.written,
                    deleted=0,
                )
            elif not outcome.failures:
                notes += f"\n{entry.name}: what it makes depends on all shards: {context.next_step}"
            continue
        results, broken, obsolete = _make(context, entry, schemas, left)
        failed += broken
        written = [item for item in results if item.written]
        documents, output = sum(item.documents for item in results), sum(item.rows for item in written)
        counts = [f"{documents:,}", f"{output:,}", str(len(written)), str(len(results) - len(written))]
        rows.append([entry.name, *counts])
        home = entry.home(dataset)[0]
        where = home.documents if entry.root else dataset.attribute_path(entry.name, "").rstrip("/")
        deleted = len(obsolete) if options.overwrite else 0
        data.made[entry.name] = MadeByStage(path=where, documents=documents, written=len(written), deleted=deleted)
        notes += f"\n{_obsolete_notice(entry, obsolete, deleted=options.overwrite)}" if obsolete else ""
    summary = f"\n{table(rows, right=range(1, 5))}" if rows[1:] else ""
    text = f"{amount(len(shards), 'shard')}, {len(failed)} failed{summary}{notes}{unfinished}"
    data.failed = failed
    return Outcome(text=text, data=data, failures=failed)


def _works(
    context: Context, entry: Entry, schemas: Mapping[str, sets.SetSchema], shards: Sequence[str]
) -> list[ShardToMake]:
    """Return the work on each shard, without read sets."""
    limit, dataset = context.config.max_document_bytes, context.dataset
    schema = schema_of(entry, dataset, schemas, checks=False)
    settings = {key: key_schema.settings for key, key_schema in schema.keys.items()}
    return [
        ShardToMake(
            dataset=dataset,
            shard=shard,
            entry=entry,
            joined=JoinedShard.of(dataset, [], shard, limit),
            settings=settings,
        )
        for shard in shards
    ]


def _planned(context: Context, entry: Entry, schemas: Mapping[str, sets.SetSchema], shards: Sequence[str]) -> Any:
    """Return the shards to do; for a stage of all documents, its steps."""
    if entry.whole:
        (whole,) = plan_of(context, entry, schemas).entries
        return dedup.todo_of(context.dataset, whole, shards)
    return _todo(_works(context, entry, schemas, shards))


def _todo(works: Sequence[ShardToMake]) -> list[str]:
    states = for_each(lambda work: make_config.state_of(work)[1], works)
    return [work.shard for work, is_done in zip(works, states, strict=True) if not is_done]


def _make(
    context: Context, entry: Entry, schemas: Mapping[str, sets.SetSchema], shards: list[str]
) -> tuple[list[ShardDone], list[str], list[str]]:
    """Run the rest of a stage; return outcomes, failures, and obsolete shards."""
    dataset, (home, name) = context.dataset, entry.home(context.dataset)
    failure_records = FailureRecords(dataset, f"{SECTION} {entry.name}")
    works = _works(context, entry, schemas, shards)
    holds = {f"the set {name}": json_digest(works[0].settings)} if works else {}
    with context.lease(home.bookkeeping, home.attributes, holds):
        is_whole = entry.root and not context.in_part and not context.failed
        obsolete = make_config.others_in(home, shards) if is_whole else []
        if context.options.overwrite:  # before other settings, with which their records would be gone
            make_config.forget_shards(home, obsolete)
        prepare(context, entry, schemas, overwrite=context.options.overwrite, write=True)
        resolved = context.source_of(dataset, shards).resolve_each(entry.reads(), SECTION, check="strict")
        joined = resolved.refuse_unreadable().joined(context.config.max_document_bytes)
        works = [
            msgspec.structs.replace(work, joined=joined_shard) for work, joined_shard in zip(works, joined, strict=True)
        ]
        with dataset.listing_cache([*entry.reads(), *([] if entry.root else [name])]):
            tasks = shard_tasks(works, make_config.as_it_was, dataset.sizes())
        needs = context.disk.estimates(
            tasks, lambda work, text: text * (DOCUMENTS if work.entry.root else ATTRIBUTES) + FILES
        )
        results = context.run(
            f"making {entry.name}", make_config.WORK, tasks, spreads=True, failed=failure_records, needs=needs
        )
        broken = failures(results)
        if not context.in_part:
            failure_records.keep_only(shards)
    context.failed.update(work.shard for work, result in zip(works, results, strict=True) if result.failure)
    return [result.value for result in results if result.value], broken, obsolete


def _obsolete_notice(entry: Entry, shards: Sequence[str], *, deleted: bool) -> str:
    """Return a notice about new documents of missing shards."""
    message = f"{entry.name}: {entry.root} has new documents of shards that are not in the dataset: {few(shards)}"
    return f"{message}; they were deleted" if deleted else f"{message}; `toolkit make --overwrite` deletes them"


def _progress(look: Look) -> Iterator[Progress]:
    context = look.context
    schemas = context.known_sets(SECTION)
    for entry in entries_of(context):
        name, (home, set_name) = f"{SECTION} {entry.name}", entry.home(context.dataset)
        try:
            shards = look.shards(context.dataset)
            schema = prepare(context, entry, schemas, overwrite=False)
            schemas |= {} if entry.root else {entry.name: schema}
            if entry.whole:
                (whole,) = plan_of(context, entry, schemas).entries
                causes = states_of(context.dataset, whole, shards, whole=not context.in_part)
                yield Progress(name, SECTION, causes, kind="whole")
                continue
            todo = _todo(_works(context, entry, schemas, shards))
            obsolete = make_config.others_in(home, shards) if entry.root and not context.in_part else []
        except ToolkitError as error:
            yield Progress(name, unknown=str(error), kind="whole" if entry.whole else None)
        else:
            notes = [_obsolete_notice(entry, obsolete, deleted=False)] if obsolete else []
            yield Progress(name, name, look.causes(set_name, shards, todo, home), notes=notes)


def _look(look: Look) -> str:
    entries_of(look.context)
    return look.context.dataset.bookkeeping


def _check_settings(context: Context, names: Collection[str]) -> None:
    dataset, schemas = context.dataset, context.known_sets(SECTION)
    for entry in read_section(context.section(SECTION), dataset):
        if entry.whole:
            plan = plan_of(context, entry, schemas)
            check_made(dataset, {*names} & {entry.name}, plan.schemas, SECTION)
            schemas |= plan.schemas
            continue
        schemas |= {} if entry.root else {entry.name: schema_of(entry, dataset, schemas, checks=False)}
    for name in context.config.make:
        if name in names and name in schemas and sets.load_schema(dataset, name):
            what_to_declare(dataset, name, schemas[name], overwrite=False, command=SECTION)


def _disk_use(context: Context) -> DiskUse:
    section = context.section(SECTION)
    count = sum(entry.whole for entry in read_section(section, context.dataset))
    return DiskUse(folders=roots(section), signatures=count * Make.KEPT, needs_documents=bool(count))


def _check(context: Context, checked: Checked) -> dict[str, sets.SetSchema]:
    if checked.faults:  # sets are not known
        return {}
    schemas = schemas_of(context, checked.sets, overwrite=context.options.overwrite)
    checked.sets |= schemas
    return schemas


STAGE = Declaration("per shard", _progress, _check, _look, _check_settings, _disk_use, continues_after_failure=True)
