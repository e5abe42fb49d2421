"""Show what is done, running, failed and missing, and why."""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from typing import Any, ClassVar, Literal

import msgspec

from toolkit import one_pass
from toolkit.align import section as align_section
from toolkit.align.write import progress_of
from toolkit.annotate import estimates, ledger
from toolkit.annotate.annotator import Annotator
from toolkit.command_line import Configured, Shared
from toolkit.commands.mixing import preparation
from toolkit.commands.stages import STAGES
from toolkit.commands.steps import per_shard as per_shard_command
from toolkit.commands.steps import shards as sharing
from toolkit.commands.steps.context import Context
from toolkit.commands.steps.outcome import Outcome, table
from toolkit.data import row_index
from toolkit.data.dataset import Dataset
from toolkit.errors import ConfigError, DataError, NothingThere, ToolkitError, Unreadable
from toolkit.ingest import inputs as ingest_records
from toolkit.ingest import plan as ingest_plan
from toolkit.ingest.attempts import attempts
from toolkit.mix import join as joining
from toolkit.mix import stage
from toolkit.mix.joined_sets import JoinedSet
from toolkit.mix.publish import Published
from toolkit.mix.settings import MixSettings, Stream, work_folder
from toolkit.records import foreign, ingested, rejected
from toolkit.records import sets as records
from toolkit.records.failures import FAILED, FailureRecords
from toolkit.records.lost import lost_shards
from toolkit.runs import claims
from toolkit.session import current
from toolkit.stages import state_of
from toolkit.storage import artifact
from toolkit.storage.paths import exists, join, looking
from toolkit.storage.threads import for_each
from toolkit.tag import declared, steps
from toolkit.tag import run as tagging
from toolkit.tag.plan import Plan, build
from toolkit.whole import resolve
from toolkit.whole import section as dedup_section

State = Literal["done", "running", "failed", "missing"]
STATES: tuple[State, ...] = ("done", "running", "failed", "missing")

LOOKS = 3
"""Times that all is looked at if what is published changes meanwhile."""

SHOWN, NAMED = 10, 3
"""Causes of what has failed, or is missing, in a stage that are told to people; and what is named for each."""


class Options(Configured, Shared, frozen=True, kw_only=True):
    """Options of ``toolkit status``."""

    EXAMPLES: ClassVar = ("toolkit status -c configs/quickstart.yaml",)


class Item(msgspec.Struct, frozen=True):
    """A shard, or an input, in a stage: its state, and why it is not done."""

    key: str
    state: State
    cause: str = ""


class Stage(msgspec.Struct, frozen=True):
    """The state of everything in a stage, or why it is not known; what a set took, and what its requests have cost.

    Of an ingest also what was read of damaged inputs, a sentence for each.
    """

    name: str
    items: list[Item]
    unknown: str = ""
    worked: steps.Worked | None = None
    spent: ledger.Spending | None = None
    salvaged: list[str] = []

    def of(self, state: State) -> list[Item]:
        return [item for item in self.items if item.state == state]

    @property
    def is_done(self) -> bool:
        return not self.unknown and len(self.of("done")) == len(self.items)


def run(context: Context, options: Options) -> Outcome:
    """Read the records of what the configuration writes; status 0 if all is done.

    What is wrong with the configuration is told, and costs no more than the stages that it is about (status 2).
    """
    if context.is_dolma or not any(map(context.has, STAGES)):
        none = f"{options.config}: expected one of the sections {', '.join(STAGES)}; got none"
        raise ConfigError("\n".join([*context.faults, none]))
    context.options = msgspec.structs.replace(options, quiet=True)
    for _ in range(LOOKS):
        look = _Look(context)
        with look.from_listings():
            stages = list(look.stages())
            there = look.there() if look.faults else {}
        done = not look.faults and all(one.is_done for one in stages)
        if done or not look.has_changed():
            break
        current().begin()
    text = _text(stages, look.claims, done) + _faulty(look.faults, there)
    data = _data(stages, look.claims, done) | {"faults": look.faults, "there": there}
    outcome = Outcome(text=text, data=data, exit_code=2 if look.faults else int(not done))
    if context.share and not any(one.items or one.unknown for one in stages):
        outcome.text = context.share.nothing()
    return sharing.told(context, outcome)


class _Look:
    """Looks at all places that a configuration writes in."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.dataset = context.dataset if context.has_dataset or not context.has("mix") else None
        self.faults = list(context.faults)
        self.settings: MixSettings | None = None
        self._not_read: list[str] = []
        with self._noted("mix"):
            self.settings = preparation.settings_of(context, writes=False) if context.has("mix") else None
        folders = [self.dataset.bookkeeping] if self.dataset else []
        if self.settings:
            folders.append(work_folder(self.settings.output.path))
        held = (one for folder in folders for one in claims.held(claims.folder_in(folder)))
        self.claims = list({(one.claim.owner, one.claim.run): one for one in held}.values())
        with looking(*(join(folder, FAILED) for folder in folders)):
            self._failed = {
                name: {key: one for folder in folders for key, one in FailureRecords(folder, name).load().items()}
                for name in (*STAGES, "write")
            }
        self._published = Published(self.settings) if self.settings else None
        self._mixed: dict[str, bool] = {}
        """Shards that are mixed and whose documents are gone, by key: whether they are in what is published."""
        self._lacks = False
        """True if a dataset that is mixed has no documents yet."""

    def has_changed(self) -> bool:
        """Return whether a mix was published meanwhile: what it was made of has gone, and counts as not begun."""
        return self._published is not None and self._published.has_changed()

    @contextmanager
    def _noted(self, section: str) -> Iterator[None]:
        try:
            yield
        except ConfigError as error:
            self._not_read.append(section)
            self.faults += [] if str(error) in self.faults else [str(error)]

    def there(self) -> dict[str, int]:
        """Return how many shards there are of the documents, and of each set."""
        dataset = self.dataset
        if dataset is None:
            return {}
        found = {name: len(records.recorded_shards(dataset, name)) for name in dataset.sets()}
        with suppress(NothingThere):
            return {"documents": len(dataset.shards()), **found}
        return found

    @contextmanager
    def from_listings(self) -> Iterator[None]:
        """Look at the files of all stages by listings."""
        tagged = [*self.context.config.tag, *self.context.config.annotate]
        with ExitStack() as stack:
            if self.dataset:
                stack.enter_context(self.dataset.looking(tagged))
            if self.settings:
                stack.enter_context(stage.looking(self.settings))
            yield

    def stages(self) -> Iterator[Stage]:
        looks: dict[str, Callable[[], Iterable[Stage]]] = {
            "ingest": self._ingest,
            "align": self._align,
            "tag": lambda: self._tagged("tag", self.context.tags),
        }
        for name in self.context.in_order:
            looks[name] = self._annotate if name == "annotate" else partial(self._whole, name)
        looks["mix"] = self._mix
        reads: dict[str, Callable[[], Any]] = {"ingest": self.context.inputs, "align": self._entries}
        reads["tag"] = lambda: self.context.tags
        for name, look in looks.items():
            with self._noted(name):
                _ = reads[name]() if name in reads and self.context.has(name) else None
            if name in self._not_read:
                yield Stage(name, [], "its section has an error, see below")
            elif self.context.has(name):
                yield from look()
        yield from self._lost()

    def _lost(self) -> Iterator[Stage]:
        """Yield the documents that are gone, if some are that no input of the configuration makes again."""
        datasets = [self.dataset] if self.dataset else []
        datasets += [stream.dataset for stream in self.settings.streams] if self.settings else []
        made, lost = set[str](), dict[str, str]()
        if self.context.has("ingest") and "ingest" not in self._not_read:
            with suppress(ToolkitError):
                made = {work.key for work in self.context.inputs(there=True, asks_web=False)}
        for dataset in dict.fromkeys(datasets):
            inputs, _ = ingested.load_each(dataset)
            again = {shard for key in inputs for shard in inputs[key].shards if inputs[key].deleted or key in made}
            with suppress(NothingThere):
                found = lost_shards(dataset, dataset.shards(), inputs, partial(self.context.is_mine, dataset))
                lost |= {shard: why for shard, why in found.items() if shard not in again}
        if lost:
            yield Stage("documents", [Item(shard, "missing", why) for shard, why in sorted(lost.items())])

    def _item(self, stage_name: str, key: str, cause: str) -> Item:
        """Return the item of a shard or input that is not done."""
        if any(key in held.claim.doing.get(stage_name, ()) for held in self.claims):
            return Item(key, "running")
        failure = self._failed[stage_name].get(key)
        return Item(key, "failed", failure.message) if failure else Item(key, "missing", cause)

    def _ingest(self) -> Iterator[Stage]:
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

        begun = {*attempts(self.dataset)}

        def look(work: ingest_plan.InputToIngest) -> Item:
            try:
                cause = ingest_records.why_not_done(work, begun)
                if not cause or (work.key in by_shard and self._is_mixed(by_shard[work.key])):
                    return Item(work.key, "done")
            except Unreadable as error:
                cause = str(error)
            return self._item("ingest", work.key, cause)

        made = ingested.load_all(self.dataset).values()
        refused = rejected.too_many(made, self.dataset.bookkeeping)
        items = [*for_each(look, inputs), *(Item(each.entry, "failed", str(each)) for each in refused)]
        yield Stage("ingest", items, salvaged=[note for record in made for note in record.salvaged])

    def _is_mixed(self, work: one_pass.InputToPass) -> bool:
        """Tell whether an input whose documents may be gone is in the mix."""
        record = ingest_records.recorded(work.input)
        assert self._published
        if record is None or not record.deleted:
            return False
        found = {}
        for shard, output in record.shards.items():
            mixed = work.mixed(shard)
            attributes = one_pass.attributes_by_record(mixed, output.content)
            if attributes is None:
                return False
            found[mixed.key] = self._published.has(mixed, (output.content, attributes))
            if not found[mixed.key] and not stage.made_from(mixed, output.content, attributes):
                return False
        self._mixed.update(found)
        return True

    def _annotate(self) -> Iterator[Stage]:
        try:
            plans = self.context.annotations()
        except ToolkitError as error:
            yield from (Stage(f"annotate {name}", [], str(error)) for name in self.context.config.annotate)
            return
        assert self.dataset
        for name, plan in plans.items():
            (step,) = build(plan)
            assert isinstance(step.tagger, Annotator)
            spent = ledger.spending_of(estimates.ledger_folder(self.dataset, name, step.tagger))
            for one in self._tagged("annotate", plan):
                yield msgspec.structs.replace(one, spent=spent if spent.attempts else None)

    def _tagged(self, command: str, plan: Plan) -> Iterator[Stage]:
        """Yield the sets of a plan of taggers."""
        assert self.dataset
        try:
            shards = self._shards(self.dataset)
            if self.context.share and not shards and not self._mixed:  # the sets that are read need not be there yet
                yield from (Stage(f"{command} {name}", []) for name in plan.sets)
                return
            schemas = declared.prepare(plan, self.dataset, overwrite=False, write=False, command=command)
            settings = tagging.settings_of(schemas)
        except ToolkitError as error:
            yield from (Stage(f"{command} {name}", [], str(error)) for name in plan.sets)
            return
        limit, dataset = self.context.config.max_document_bytes, self.dataset

        def look(shard: str) -> list[str]:
            work = tagging.ShardToTag(
                dataset=dataset, plan=plan, settings=settings, shard=shard, max_document_bytes=limit
            )
            return tagging.outdated(work, row_index.current(dataset, shard))

        todo = dict(zip(shards, for_each(look, shards), strict=True))
        gone = [Item(key, "done") for key in sorted(self._mixed.keys() - todo.keys())]
        worked = steps.work_done(plan, dataset, [*todo, *(each.key for each in gone)])
        for name in plan.sets:
            items = [
                self._item(command, shard, self._why_not(name, shard)) if name in sets else Item(shard, "done")
                for shard, sets in todo.items()
            ]
            yield Stage(f"{command} {name}", items + gone, worked=worked.get(name))

    def _align(self) -> Iterator[Stage]:
        assert self.dataset
        limit = self.context.config.max_document_bytes
        for entry in self._entries():
            try:
                shards = self._shards(self.dataset)
                todo = progress_of(self.dataset, entry, shards, limit)
            except ToolkitError as error:
                yield Stage(f"align {entry.set}", [], str(error))
                continue
            wanted = set(todo.shards)
            items = [
                self._item("align", shard, self._why_not(entry.set, shard)) if shard in wanted else Item(shard, "done")
                for shard in shards
            ]
            yield Stage(f"align {entry.set}", items)

    def _whole(self, command: str) -> Iterator[Stage]:
        assert self.dataset
        dataset = self.dataset
        try:
            plan = self.context.whole(command)
            shards = self._shards(dataset)
            dedup_section.prepare(plan, dataset, overwrite=False, write=False)
        except ToolkitError as error:
            names = getattr(self.context.config, command)
            yield from (Stage(f"{command} {name}", [], str(error)) for name in names)
            return
        for entry in plan.entries:
            found = resolve.states_of(dataset, entry, shards, whole=not self.context.in_part)
            items = [self._item(command, shard, why) if why else Item(shard, "done") for shard, why in found.items()]
            yield Stage(f"{command} {entry.set}", items)

    def _entries(self) -> list[align_section.Entry]:
        return align_section.read_section(self.context.section("align"))

    def _why_not(self, name: str, shard: str) -> str:
        assert self.dataset
        if records.is_damaged(self.dataset, name, shard):
            return "its record is damaged"
        return "made from something that has changed" if records.is_recorded(self.dataset, name, shard) else "not begun"

    def _mix(self) -> Iterator[Stage]:
        settings = self.settings
        assert settings
        if what := settings.needs_all_shards:
            depends = f"{what} {'depend' if what.endswith('s') else 'depends'} on all shards"
            yield Stage("mix", [], f"{depends}: `toolkit mix --dry-run` looks at them")
            return
        listed = [
            work for stream in settings.streams for work in self._works(settings, stream) if work.key not in self._mixed
        ]
        if self._lacks and not listed and not self._mixed:
            yield Stage("mix", [], "there are no documents yet; run `toolkit ingest`")
            return
        assert self._published
        published = self._published

        stale = self._stale(settings)

        def look(work: joining.ShardToMix) -> tuple[Item, bool]:
            try:
                if why := stale.get(work.stream.name):
                    raise why
                documents, attributes = _inputs(work)
            except ToolkitError as error:
                return self._item("mix", work.key, str(error)), False
            if published.has(work, (documents, attributes)):
                return Item(work.key, "done"), True
            if stage.made_from(work, documents, attributes):
                return Item(work.key, "done"), False
            cause = "made from something that has changed" if published.knows(work) else "not begun"
            return self._item("mix", work.key, "what was made from it is damaged" if published.fault else cause), False

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

    def _stale(self, settings: MixSettings) -> dict[str, DataError]:
        """Return why the mix would refuse a set of a stream, by stream; nothing of streams without such a set."""
        stale: dict[str, DataError] = {}
        for stream in settings.streams:
            known: dict[str, artifact.State] = {}
            whole = not self.context.in_part and not self._mixed
            with suppress(NothingThere):
                shards = self._shards(stream.dataset)
                for given in stream.attributes:
                    state = state_of(stream.dataset, given.set, shards, complete=whole, known=known)
                    if state.error:
                        stale.setdefault(stream.name, state.error)
        return stale

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
        path = work.attributes_of(joined)
        if not exists(path):
            raise DataError(f"it has no attributes {joined.set}")
        if not joined.ours and foreign.seen_now(work.dataset, joined.set, work.shard) is None:
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
    took = [(one.name, one.worked) for one in stages if one.worked]
    if took:
        rows = [["stage", "documents asked", "of", "seconds"]]
        rows += [[name, f"{each.asked:,}", f"{each.documents:,}", f"{each.seconds:,.1f}"] for name, each in took]
        text += "\n" + table(rows, right=range(1, 4)) + "\n"
    spent = [(one.name, one.spent) for one in stages if one.spent]
    if spent:
        rows = [["stage", "requests of all runs", "without reply", "prompt tokens", "completion tokens", "cost"]]
        rows += [
            [name, *(f"{count:,}" for count in msgspec.structs.astuple(each)[:-1]), f"{each.cost:,.6f}"]
            for name, each in spent
        ]
        text += "\n" + table(rows, right=range(1, 6)) + "\n"
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
            by_cause: dict[str, list[str]] = {}
            for item in one.of(state):
                by_cause.setdefault(item.cause, []).append(item.key)
            listed = [f"{_named(keys)}: {cause}" for cause, keys in by_cause.items()]
            others = sum(map(len, list(by_cause.values())[SHOWN:]))
            listed[SHOWN:] = [f"{others:,} more; --json has all"] if others else []
            text += "".join(f"\n{one.name}: {state}: {told}" for told in listed)
    text += "".join(f"\nsalvaged: {note}" for one in stages for note in one.salvaged)
    if done:
        return text.rstrip() + "\n\nall is done"
    left = any(one.of("failed") or one.of("missing") for one in stages)
    return text.rstrip() + ("\n\n`toolkit run` does what is missing or has failed" if left else "")


def _named(keys: Sequence[str]) -> str:
    """Return the first of several keys, and how many others there are."""
    return ", ".join(keys[:NAMED]) + (f" and {len(keys) - NAMED:,} more" if len(keys) > NAMED else "")


def _faulty(faults: Sequence[str], there: dict[str, int]) -> str:
    """Return what is said of a configuration that is not what it should be; nothing of one that is."""
    listed = ", ".join(f"{name} {count:,}" for name, count in there.items())
    said = ["\n\nthe configuration is not what it should be:", *faults] if faults else []
    return "\n  ".join(said) + (f"\nshards on disk: {listed}" if listed else "")


def _data(stages: Sequence[Stage], runs: Sequence[claims.Held], done: bool) -> dict[str, Any]:
    return {
        "done": done,
        "stages": [
            {
                "stage": one.name,
                **{str(state): len(one.of(state)) for state in STATES},
                "of": len(one.items),
                "unknown": one.unknown,
                "worked": one.worked and one.worked._asdict(),
                "spent": msgspec.to_builtins(one.spent),
                **({"salvaged": one.salvaged} if one.salvaged else {}),
                "items": msgspec.to_builtins([item for item in one.items if item.state != "done"]),
            }
            for one in stages
        ],
        "runs": [msgspec.to_builtins(held.claim) | {"age": round(held.age, 1)} for held in runs],
    }
