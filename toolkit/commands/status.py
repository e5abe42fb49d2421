"""Show what is done, running, failed and missing, and why."""

import time
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, Literal

import msgspec

from toolkit.commands.command_line.options import Configured, Shared
from toolkit.commands.mixing import preparation
from toolkit.commands.steps import per_shard as per_shard_command
from toolkit.commands.steps import shards as sharing
from toolkit.commands.steps.context import Context
from toolkit.commands.steps.outcome import Outcome, table
from toolkit.data import row_index
from toolkit.data.dataset import Dataset
from toolkit.dedup import progress
from toolkit.dedup import section as dedup_section
from toolkit.errors import ConfigError, DataError, NothingThere, ToolkitError, Unreadable
from toolkit.ingest import inputs as ingest_records
from toolkit.ingest import plan as ingest_plan
from toolkit.mix import join as joining
from toolkit.mix import stage
from toolkit.mix.joined_sets import JoinedSet
from toolkit.mix.settings import MixSettings, Stream, work_folder
from toolkit.mix.unchanged import Published
from toolkit.one_pass import one_input
from toolkit.records import foreign, ingested, rejected
from toolkit.records import sets as records
from toolkit.records.failures import FailureRecords
from toolkit.runs import claims
from toolkit.storage import json_files
from toolkit.storage.paths import exists, join
from toolkit.storage.threads import for_each
from toolkit.tag import declared
from toolkit.tag import run as tagging

State = Literal["done", "running", "failed", "missing"]
STATES: tuple[State, ...] = ("done", "running", "failed", "missing")

SHOWN = 10
"""Failed, and missing, of a stage that are named to people."""


class Options(Configured, Shared, frozen=True, kw_only=True):
    """Options of ``toolkit status``."""

    EXAMPLES: ClassVar = ("toolkit status -c configs/quickstart.yaml",)


class Item(msgspec.Struct, frozen=True):
    """A shard, or an input, in a stage: its state, and why it is not done."""

    key: str
    state: State
    cause: str = ""


class Stage(msgspec.Struct, frozen=True):
    """The state of everything in a stage, or why it is not known."""

    name: str
    items: list[Item]
    unknown: str = ""

    def of(self, state: State) -> list[Item]:
        return [item for item in self.items if item.state == state]

    @property
    def is_done(self) -> bool:
        return not self.unknown and len(self.of("done")) == len(self.items)


def run(context: Context, options: Options) -> Outcome:
    """Read the records of what the configuration writes; status 0 if all is done."""
    if context.is_dolma or not any(map(context.has, ("ingest", "tag", "dedup", "mix"))):
        raise ConfigError(f"{options.config}: expected one of the sections ingest, tag, dedup, mix; got none")
    context.options = msgspec.structs.replace(options, quiet=True)
    look = _Look(context)
    stages = list(look.stages())
    done = all(one.is_done for one in stages)
    outcome = Outcome(
        text=_text(stages, look.claims, done), data=_data(stages, look.claims, done), exit_code=int(not done)
    )
    if context.share and not any(one.items or one.unknown for one in stages):
        outcome.text = context.share.nothing()
    return sharing.told(context, outcome)


class _Look:
    """Looks at all places that a configuration writes in."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.dataset = context.dataset if context.has_dataset or not context.has("mix") else None
        self.settings: MixSettings | None = (
            preparation.settings_of(context, writes=False) if context.has("mix") else None
        )
        folders = [self.dataset.bookkeeping] if self.dataset else []
        if self.settings:
            folders.append(work_folder(self.settings.output.path))
        held = [held for folder in folders for held in claims.held(join(folder, "claims"))]
        self.claims = list({(one.claim.owner, one.claim.run): one for one in held}.values())
        self._failed = {
            name: {key: one for folder in folders for key, one in FailureRecords(folder, name).load().items()}
            for name in ("ingest", "tag", "dedup", "mix", "write")
        }
        self._published = Published(self.settings) if self.settings else None
        self._mixed: dict[str, bool] = {}
        """Shards that are mixed and whose documents are gone, by key: whether they are in what is published."""
        self._lacks = False
        """True if a dataset that is mixed has no documents yet."""

    def stages(self) -> Iterator[Stage]:
        if self.context.has("ingest"):
            yield self._ingest()
        if self.context.has("tag"):
            yield from self._tag()
        if self.context.has("dedup"):
            yield from self._dedup()
        if self.settings:
            yield from self._mix(self.settings)

    def _item(self, stage_name: str, key: str, cause: str) -> Item:
        """Return the item of a shard or input that is not done."""
        if any(key in held.claim.doing.get(stage_name, ()) for held in self.claims):
            return Item(key, "running")
        failure = self._failed[stage_name].get(key)
        return Item(key, "failed", failure.message) if failure else Item(key, "missing", cause)

    def _ingest(self) -> Stage:
        assert self.dataset
        try:
            by_shard = {work.key: work for work in per_shard_command.plan(self.context, writes=False).works}
        except Unreadable:
            raise
        except ToolkitError:  # it cannot be run so
            by_shard = {}
        inputs = self.context.inputs()
        if self.context.share:
            inputs = self.context.share.inputs

        def look(work: ingest_plan.InputToIngest) -> Item:
            try:
                cause = ingest_records.why_not_done(work)
                if not cause or (work.key in by_shard and self._is_mixed(by_shard[work.key])):
                    return Item(work.key, "done")
            except Unreadable as error:
                cause = str(error)
            return self._item("ingest", work.key, cause)

        refused = rejected.too_many(ingested.load_all(self.dataset).values(), self.dataset.bookkeeping)
        return Stage("ingest", [*for_each(look, inputs), *(Item(each.entry, "failed", str(each)) for each in refused)])

    def _is_mixed(self, work: one_input.InputToPass) -> bool:
        """Tell whether an input whose documents may be gone is in the mix."""
        record = ingest_records.recorded(work.input)
        assert self._published
        if record is None or not record.deleted:
            return False
        found = {}
        for shard, output in record.shards.items():
            mixed = work.mixed(shard)
            attributes = one_input.attributes_by_record(mixed, output.content)
            if attributes is None:
                return False
            found[mixed.key] = self._published.has(mixed, (output.content, attributes))
            if not found[mixed.key] and not stage.made_from(mixed, output.content, attributes):
                return False
        self._mixed.update(found)
        return True

    def _tag(self) -> Iterator[Stage]:
        assert self.dataset
        plan = self.context.tags
        try:
            shards = self._shards(self.dataset)
            if self.context.share and not shards and not self._mixed:  # the sets that are read need not be there yet
                yield from (Stage(f"tag {name}", []) for name in plan.sets)
                return
            settings = tagging.settings_of(declared.prepare(plan, self.dataset, overwrite=False, write=False))
        except ToolkitError as error:
            yield from (Stage(f"tag {name}", [], str(error)) for name in plan.sets)
            return
        limit, dataset = self.context.config.max_document_bytes, self.dataset

        def look(shard: str) -> list[str]:
            work = tagging.ShardToTag(
                dataset=dataset, plan=plan, settings=settings, shard=shard, max_document_bytes=limit
            )
            return tagging.outdated(work, row_index.current(dataset, shard))

        todo = dict(zip(shards, for_each(look, shards), strict=True))
        gone = [Item(key, "done") for key in sorted(self._mixed.keys() - todo.keys())]
        for name in plan.sets:
            items = [
                self._item("tag", shard, self._why_not(name, shard)) if name in sets else Item(shard, "done")
                for shard, sets in todo.items()
            ]
            yield Stage(f"tag {name}", items + gone)

    def _dedup(self) -> Iterator[Stage]:
        assert self.dataset
        dataset = self.dataset
        try:
            plan = self.context.dedup
            shards = self._shards(dataset)
            dedup_section.prepare(plan, dataset, overwrite=False, write=False)
        except ToolkitError as error:
            names = self.context.config.dedup
            yield from (Stage(f"dedup {name}", [], str(error)) for name in names)
            return
        for entry in plan.entries:
            found = progress.look(dataset, entry, shards, whole=not self.context.in_part)
            items = [self._item("dedup", shard, why) if why else Item(shard, "done") for shard, why in found.items()]
            yield Stage(f"dedup {entry.set}", items)

    def _why_not(self, name: str, shard: str) -> str:
        assert self.dataset
        path = records.record_path(self.dataset, name, shard)
        record, damaged = json_files.load_told(path, records.ShardRecord)
        if damaged:
            return "its record is damaged"
        return "made from something that has changed" if record else "not begun"

    def _mix(self, settings: MixSettings) -> Iterator[Stage]:
        if settings.streams[0].weight is not None:
            yield Stage("mix", [], "weights depend on all shards: `toolkit mix --dry-run` looks at them")
            return
        listed = [
            work for stream in settings.streams for work in self._works(settings, stream) if work.key not in self._mixed
        ]
        if self._lacks and not listed and not self._mixed:
            yield Stage("mix", [], "there are no documents yet; run `toolkit ingest`")
            return
        assert self._published
        published = self._published

        def look(work: joining.ShardToMix) -> tuple[Item, bool]:
            try:
                documents, attributes = _inputs(work)
            except ToolkitError as error:
                return self._item("mix", work.key, str(error)), False
            if published.has(work, (documents, attributes)):
                return Item(work.key, "done"), True
            if stage.made_from(work, documents, attributes):
                return Item(work.key, "done"), False
            cause = "made from something that has changed" if published.knows(work) else "not begun"
            return self._item("mix", work.key, "what was made of it is damaged" if published.fault else cause), False

        found = for_each(look, listed)
        items = [item for item, _ in found] + [Item(key, "done") for key in sorted(self._mixed)]
        yield Stage("mix", items)
        if self.context.in_part:
            return
        failed = self._failed["write"].items()
        output = settings.output.path
        is_in = [*(is_in for _, is_in in found), *self._mixed.values()]
        if all(is_in) and published.shards == len(is_in):
            yield Stage("publish", [Item(output, "done")])
        elif failed:
            yield Stage("publish", [Item(key, "failed", one.message) for key, one in failed])
        else:
            cause = published.fault or "`toolkit mix` puts the parts together"
            yield Stage("publish", [self._item("write", output, cause)])

    def _shards(self, dataset: Dataset) -> list[str]:
        """Return the shards of the run's share; where documents were mixed and deleted, there may be none."""
        try:
            return sharing.mine(self.context, dataset)
        except NothingThere:
            if not self._mixed:
                raise
            return []

    def _works(self, settings: MixSettings, stream: Stream) -> Iterator[joining.ShardToMix]:
        """Give what is mixed of a stream, shard by shard; the types of attributes are not needed, and left out."""
        joined = [
            JoinedSet(set=given.set, keys=[], ours=records.load_schema(stream.dataset, given.set) is not None)
            for given in stream.attributes
        ]
        try:
            shards = self._shards(stream.dataset)
        except NothingThere:
            self._lacks, shards = True, []
        for shard in shards:
            yield joining.ShardToMix(
                settings=settings,
                stream=stream,
                sets=joined,
                bindings={},
                set_bindings=[],
                shard=shard,
                max_document_bytes=self.context.config.max_document_bytes,
            )


def _inputs(work: joining.ShardToMix) -> tuple[str, dict[str, str]]:
    """Return the content digests of a shard's documents and attributes, from records alone.

    Raises:
        ToolkitError: if they are not known, or not what they should be.
    """
    state = row_index.current(work.dataset, work.shard)
    if state is None:
        raise DataError("its documents are not indexed, or have changed")
    for joined in work.sets:
        path = work.dataset.attribute_path(joined.set, work.shard)
        if not exists(path):
            raise DataError(f"it has no attributes {joined.set}")
        if not joined.ours and not foreign.seen_before(work.dataset, joined.set, work.shard):
            raise DataError(f"its attributes {joined.set} have not been looked at, or have changed")
        if joined.ours and records.load_record(work.dataset, joined.set, work.shard) is None:
            command = records.command_of(work.dataset, joined.set)
            raise DataError(f"its attributes {joined.set} are not complete; run `toolkit {command}`")
    return state.content, joining.inputs_of(work)[1]


# --- for people and for machines --------------------------------------------------------------------------------------


def _text(stages: Sequence[Stage], runs: Sequence[claims.Held], done: bool) -> str:
    rows = [["stage", *STATES, "of"]]
    for one in stages:
        counts = [*(len(one.of(state)) for state in STATES), len(one.items)]
        rows.append([one.name, *(("?" if one.unknown else str(count)) for count in counts)])
    text = table(rows, right=range(1, len(rows[0]))) + "\n"
    for held in runs:
        doing = [f"{name} {', '.join(keys)}" for name, keys in held.claim.doing.items()]
        since = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(held.claim.since))
        text += f"\n{held.claim.run} by {held.claim.owner} since {since}, {held.age:.0f} s ago at: "
        text += ("; ".join(doing) or "nothing") + "\n"
    for why in dict.fromkeys(one.unknown for one in stages if one.unknown):
        lines = why.split("\n")
        more = f"\n{len(lines) - SHOWN} more" if len(lines) > SHOWN else ""
        names = ", ".join(one.name for one in stages if one.unknown == why)
        text += f"\n{names}: " + "\n".join(lines[:SHOWN]) + f"{more}\n"
    for one in stages:
        for state in ("failed", "missing"):
            listed = one.of(state)
            text += "".join(f"\n{one.name}: {state}: {item.key}: {item.cause}" for item in listed[:SHOWN])
            text += f"\n{one.name}: {state}: {len(listed) - SHOWN} more; --json has all" if len(listed) > SHOWN else ""
    if done:
        return text.rstrip() + "\n\nall is done"
    left = any(one.of("failed") or one.of("missing") for one in stages)
    return text.rstrip() + ("\n\n`toolkit run` does what is missing, or has failed" if left else "")


def _data(stages: Sequence[Stage], runs: Sequence[claims.Held], done: bool) -> dict[str, Any]:
    return {
        "done": done,
        "stages": [
            {
                "stage": one.name,
                **{str(state): len(one.of(state)) for state in STATES},
                "of": len(one.items),
                "unknown": one.unknown,
                "items": msgspec.to_builtins([item for item in one.items if item.state != "done"]),
            }
            for one in stages
        ],
        "runs": [msgspec.to_builtins(held.claim) | {"age": round(held.age, 1)} for held in runs],
    }
