"""Provides the context of a command: configuration, dataset, share, and the outcome as text."""

import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cached_property, partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeVar, cast

import msgspec
from msgspec.structs import replace

from toolkit import command_options
from toolkit.command_options import CommandResult, absent
from toolkit.config import settings
from toolkit.config.settings import Config, ConfigNode
from toolkit.data import record_logs
from toolkit.data.dataset import Dataset
from toolkit.data.document_fields import OwnTypes
from toolkit.data.excerpts import escaped
from toolkit.errors import ConfigError, DataError, NothingThere, StepFailed, ToolkitError, amount
from toolkit.execution import leases
from toolkit.execution.executors import Result
from toolkit.ingest import in_place, ingest_config, inputs as ingest_records, plan as ingest_plan
from toolkit.interop.dolma import is_dolma
from toolkit.records import external_sets, ingested, sets
from toolkit.records.set_declaration import check_ours
from toolkit.source import LOOK, Source
from toolkit.stages.disk_quota import DiskPlan, DiskQuota
from toolkit.stages.tasks import Running, merge
from toolkit.storage.compression import compression_of
from toolkit.storage.freshness import State
from toolkit.storage.paths import absolute, remove_stale_temporaries
from toolkit.storage_options import StorageOptions

if TYPE_CHECKING:
    from toolkit.ingest.shares import Share

INPUTS = ingest_config.SECTION
NAMED = 3
"""Inputs of a kind that are named in a note."""
T = TypeVar("T")


class CheckedShards(NamedTuple):
    """The names of a share's shards; why entries of ``ingest:`` are refused; notes on inputs without documents."""

    names: list[str]
    refused: list[str]
    notes: str


class Context(Running):
    """The configuration of a command; a context manager that ends the processes of the command.

    Attributes:
        waiting: Sets that this run cannot make, because they depend on all shards, and it has a share, or some have
            failed.
        is_broken: True if an earlier stage of the run has failed: later ones do their work per shard, and no more.
        failed: Shards of the dataset that have failed in an earlier stage; later ones leave them out.
        faults: Messages about settings that are left out; a command that only looks goes on without them.
        written: Configuration with all outputs, if this one is of an edition, or of tokens.
    """

    waiting: set[str] = set()
    is_broken: bool = False
    failed: set[str] = set()
    faults: list[str] = []
    written: Config | None = None
    _inputs: tuple[ingest_plan.PlannedInputs, list[NothingThere]] | None = None
    _external: dict[str, list[external_sets.ExternalContent]] = {}
    _before: str = ""

    def once(self, key: str, read: Callable[[], T]) -> T:
        """Return a cached value, such as a section."""
        if key not in self._values:
            self._values[key] = read()
        return cast("T", self._values[key])

    @cached_property
    def _values(self) -> dict[str, Any]:
        return {}

    @cached_property
    def stages(self) -> dict[str, Any]:
        """Return the declared stages of the configuration by name, in run order."""
        return {name: cast("Any", command_options.find(name)).STAGE for name in settings.stages() if self.has(name)}

    @cached_property
    def dataset(self) -> Dataset:
        """Return the dataset of the configuration.

        Raises:
            ConfigError: if its places are none, or it has documents in place and something to ingest.
        """
        config = self.config
        dataset = in_place.open_dataset(self.source, config.dataset, config.documents, config.attributes)
        if self.has(INPUTS):
            in_place.refuse_ingest(dataset, self.source)
        return replace(dataset, duplicate_ids=config.duplicate_ids)

    def section(self, name: str) -> ConfigNode:
        """Return a section of the configuration.

        Raises:
            ConfigError: if it is not there.
        """
        if not getattr(self.config, name):
            raise self.source.error((), f"expected a section `{name}:`, got none")
        return self.source.at(name)

    @property
    def is_dolma(self) -> bool:
        """Return True for a configuration of Dolma."""
        return is_dolma(self.source)

    @property
    def has_dataset(self) -> bool:
        """Return True if the configuration names a dataset. Streams of a mix may name theirs."""
        return self.config.dataset is not None or self.config.documents is not None

    @cached_property
    def entries(self) -> list[ingest_config.Entry]:
        """Return the entries of the section ``ingest:``; none if there is no such section."""
        if not self.has(INPUTS):
            return []
        return ingest_config.read_section(self.section(INPUTS), self.config.compression or ingest_config.COMPRESSION)

    def known_sets(self, name: str) -> dict[str, sets.SetSchema]:
        """Return the schemas of sets of inputs and of sections before one."""
        results = [item for command in settings.sets_before(name) for item in getattr(self.config, command)]
        names = [*ingest_config.set_schemas(self.entries), *results]
        loaded = {name: sets.load_schema(self.dataset, name) for name in names}
        return {name: set_schema for name, set_schema in loaded.items() if set_schema}

    @property
    def works_on_dataset(self) -> bool:
        """Return True if the configuration, or a stage, has a dataset."""
        return self.has_dataset or any(stage.on_dataset for stage in self.stages.values()) or not self.stages

    @property
    def made_sets(self) -> list[str]:
        """Return the names of the sets of all sections."""
        return [name for section in settings.stages("sets", "whole") for name in getattr(self.config, section)]

    @property
    def quota(self) -> DiskQuota | None:
        return None if self.config.max_disk is None else self.disk.quota

    @cached_property
    def disk(self) -> DiskPlan:
        """Return the bound on disk, and estimates of the command's need.

        Raises:
            ConfigError: if it bounds places that are not on disk.
        """
        return DiskPlan(self)

    def has(self, name: str) -> bool:
        """Return True if there is a section."""
        return bool(getattr(self.config, name))

    def __enter__(self) -> Self:
        if self._writes:
            self._workers.check()
        self._workers.begin()
        self._before = self.session.begin()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        """End the processes, and merge record logs. After a failed run its logs are merged, too."""
        self._workers.close()
        try:
            if kind is None and self._writes:
                self.merge_records()
        finally:
            self.session.begin(self._before)

    @property
    def _writes(self) -> bool:
        return self.options.WRITES and not self.options.only_shows

    def merge_records(self) -> None:
        """Merge the opened record logs."""
        for log, bookkeeping in record_logs.opened_logs():
            forgive = self._remakes(log.folder.rpartition("/")[2])
            merge(log, leases.folder_in(bookkeeping), forgive=forgive)

    def merge_inputs(self) -> None:
        """Merge damaged records of inputs after ingesting all: later stages need them."""
        log = record_logs.inputs_of(self.dataset)
        if log.damaged:
            merge(log, leases.folder_in(self.dataset.bookkeeping), forgive=True)

    def _remakes(self, log: str) -> bool:
        """Return True if the command restores this record log."""
        remakes = self.options.remakes
        return remakes == "all" and not self.in_part if log == record_logs.INPUTS else remakes != ""

    def inputs(self, *, skip_missing: bool = False, asks_web: bool = True) -> ingest_plan.PlannedInputs:
        """Return the inputs of the section ``ingest:``, sorted by shard; they are listed once.

        Args:
            skip_missing: True if missing inputs are left out silently.
            asks_web: True if the web may be asked; if it must be, and may not, there are none.

        Raises:
            ConfigError: for whatever is wrong with the section, or is not there.
            DataError: if they cannot be listed.
        """
        if self._inputs is None:
            self.section(INPUTS)  # or else there is none, which is an error
            entries, absent = self.entries, list[NothingThere]()
            if not asks_web and any(map(ingest_plan.is_on_the_web, entries)):
                return ingest_plan.PlannedInputs()
            limit, overwrite = self.config.max_document_bytes, self.options.overwrite
            selects = ingest_plan.Selects(write=self._writes, processes=self.cores)
            planned = ingest_plan.plan(
                entries,
                self.dataset,
                limit,
                overwrite=overwrite,
                absent=absent,
                selects=selects if self.options.REMAKES == "all" else None,
            )
            self._inputs = planned, absent
        inputs, absent = self._inputs
        if absent and not skip_missing:
            raise absent[0]
        return inputs

    def typed(self, works: Sequence[ingest_plan.InputToIngest]) -> Sequence[ingest_plan.InputToIngest]:
        """Return inputs with the types of their documents' own fields.

        Raises:
            ConfigError: for a declared type that cannot be.
        """
        types, planned = self.own_types.by_entry, ingest_plan.PlannedInputs
        if not any(types.values()):
            return works
        return (works if isinstance(works, planned) else planned(works)).with_types(types)

    @cached_property
    def own_types(self) -> ingest_records.InputTypes:
        """Return the types of own fields of all documents of ``ingest:``.

        Raises:
            ConfigError: for a declared type that cannot be.
        """
        return ingest_records.types_of_inputs(self.inputs(skip_missing=True), self.dataset)

    def own_types_known(self) -> OwnTypes | None:
        """Return the types of own fields of all documents. In a run these are the documents after its ingest."""
        return self.own_types_to_be() if self.options.command == "run" else ingest_records.of_all(self.dataset)

    def own_types_to_be(self) -> OwnTypes | None:
        """Return the types of own fields of all documents after the ingest."""
        if not self.has(INPUTS):
            return ingest_records.of_all(self.dataset)
        inputs, types = self.inputs(skip_missing=True), self.own_types.by_entry
        log = record_logs.inputs_of(self.dataset)
        return log.derived((self, "types"), lambda: ingest_records.after_ingest(inputs, types, self.dataset))

    @cached_property
    def share(self) -> "Share | None":
        """Return the share of the run; None if the run is not one of several.

        Raises:
            ConfigError: if the inputs cannot be listed, so that nobody knows whose they are.
        """
        if self.options.shard is None:
            return None
        from toolkit.ingest.shares import Share

        try:
            inputs = self.inputs(skip_missing=True) if self.has(INPUTS) else []
        except DataError as error:
            raise ConfigError(
                f"--shard: expected inputs that can be listed, because shares divide them, got: {error}; correct "
                "that, or use a configuration without `ingest:`, which divides the documents"
            ) from None
        return Share(*self.options.shard, self.dataset if self.has_dataset else None, inputs)

    def is_mine(self, dataset: Dataset, shard: str) -> bool:
        """Return True for a shard in this run's share."""
        return self.share is None or self.share.owns(dataset, shard)

    def mine(self, dataset: Dataset) -> list[str]:
        """Return the shards of the run's share, sorted; of a run that is no share, all.

        Raises:
            NothingThere: if there are no documents, or none of the share's inputs; a share without inputs needs none.
            DataError: if a file is no shard.
        """
        share = self.share if self.share and self.share.is_of_inputs(dataset) else None
        try:
            results = dataset.shards()
            if self.share:
                results = [shard for shard in results if self.is_mine(dataset, shard)]
        except NothingThere:
            if share is None or share.inputs:
                raise
            return []
        if share and share.inputs and not results:
            raise NothingThere(
                f"{dataset.documents}: expected the documents of this share's {amount(len(share.inputs), 'input')}, "
                f"got none; run `toolkit ingest --shard {share.index}/{share.count}` first?"
            )
        return results

    def shards(self, dataset: Dataset, *, judges: bool = False, writes: bool = False) -> tuple[list[str], str]:
        """Return the share's unfailed shards, with notes on missing inputs.

        With `--limit`, they are the first ones; the notes are about all.

        Args:
            dataset: Dataset of the shards.
            judges: True if a dataset with too many rejected items is refused; else a warning is printed.
            writes: True if attributes are written beside the shards, with the compression of the documents.

        Raises:
            NothingThere: if there are none where there should be some.
            ConfigError: if documents were ingested with other settings than the configuration has now.
            DataError: naming shards that are gone, or entries of which too much was rejected.
        """
        results, refused, notes = self.checked_shards(dataset)
        if refused and judges and not self.only_warns:
            raise DataError("\n".join(refused))
        self.warn(refused)
        results = self.limited(results)
        if self.failed and dataset == self.dataset:
            results = [shard for shard in results if shard not in self.failed]
        if writes and self.config.compression:
            self._check_compression(dataset, self.config.compression, results)
        return results, notes

    def checked_shards(self, dataset: Dataset) -> CheckedShards:
        """Return the checked shards of the run's share.

        Records of inputs are held against them once, until others are written or read.

        Raises:
            NothingThere, ConfigError, DataError: as `shards`, but for too much that was rejected.
        """
        log = record_logs.inputs_of(dataset)
        return log.derived((self, dataset), partial(self._check_shards, dataset))

    def _check_shards(self, dataset: Dataset) -> CheckedShards:
        names, inputs = self.mine(dataset), ingested.undamaged_summary(dataset)
        lost = ingested.lost_shards(dataset, names, inputs.inputs.items(), partial(self.is_mine, dataset))
        if inputs.has_packs:
            ingested.check_once(dataset)
        if self.entries and self.has_dataset and dataset == self.dataset:
            ingest_records.check_documents(self.entries, inputs.examples)
        if lost:
            raise DataError("\n".join(lost.values()))
        refused = [*map(str, inputs.items.too_many(dataset.bookkeeping))]
        return CheckedShards(names, refused, self._not_in_this(dataset, names))

    def _check_compression(self, dataset: Dataset, expected: str, shards: list[str]) -> None:
        """Raise ConfigError if a shard has another compression than the configuration names."""
        if dataset.in_place:
            raise self.source.error(
                ("compression",),
                "expected no `compression` with documents in place: it is of documents that ingest writes; attributes "
                "of external files are gzip",
            )
        for shard in shards:
            if (compression := compression_of(shard)) != expected:
                raise self.source.error(
                    ("compression",),
                    f"expected documents of the compression {expected}, got {dataset.shard_path(shard)}, which has "
                    f"{compression or 'none'}; attributes have the names of their documents, and so their compression. "
                    "Leave the key out, or ingest the documents anew (--overwrite)",
                )

    def _not_in_this(self, dataset: Dataset, shards: list[str]) -> str:
        """Return notes on missing inputs of the share; without a share, on former attempts, too."""
        inputs = self._inputs_of(dataset)
        failed = ingested.unfinished(dataset, [work.key for work in inputs] if self.share else None)
        new = ingest_records.new_inputs(inputs, dataset, shards)
        return "".join(
            f"\n{amount(len(names), 'input')} {'is' if len(names) == 1 else 'are'} not in this: "
            f"{'its' if len(names) == 1 else 'their'} ingest {reason} "
            f"({', '.join(names[:NAMED])}{', …' if len(names) > NAMED else ''}); run `toolkit ingest`"
            for names, reason in ((failed, "failed or was interrupted"), (new, "has not begun"))
            if names
        )

    def _inputs_of(self, dataset: Dataset) -> Sequence[ingest_plan.InputToIngest]:
        """Return the share's inputs of a dataset; none if the web would have to be asked for them."""
        if self.share:
            return self.share.inputs if self.share.is_of_inputs(dataset) else []
        own = self.dataset if self.has(INPUTS) and self.has_dataset else None
        if own is None or absolute(own.documents) != absolute(dataset.documents):
            return []
        try:
            return self.inputs(skip_missing=True, asks_web=False)
        except ToolkitError:  # without them, what is there can be worked on all the same
            return []

    def shared_ids(self, listed: Iterable[tuple[Dataset, str]]) -> str:
        """Return why documents of the datasets are refused for their ids; empty where they may be.

        Where nothing is written, this prints a warning and returns an empty text.
        """
        from toolkit.records import identity

        shards: dict[Dataset, list[str]] = {}
        for dataset, shard in listed:
            shards.setdefault(dataset, []).append(shard)
        limit, only_shows = self.config.max_document_bytes, self.options.only_shows
        for dataset, names in shards.items():
            try:
                identity.check_unique(dataset, sorted({*names}), limit, write=not only_shows)
            except DataError as error:
                if not only_shows:
                    return str(error)
                self.warn([str(error)])
        return ""

    def limited(self, shards: list[str]) -> list[str]:
        """Return the first shards, as many as `--limit` says."""
        return shards[: self.options.limit]

    def source_of(self, dataset: Dataset, shards: list[str], *, complete: bool = True) -> Source:
        """Return the source of rows of some shards of a dataset.

        Args:
            dataset: Dataset of the shards.
            shards: Names of the shards.
            complete: False if the dataset has others, which are present.
        """
        mine, complete = set(shards), complete and not (self.in_part or dataset.include or dataset.exclude)

        def state(of: Dataset, name: str, states: dict[str, State]) -> State:
            from toolkit.stages.set_state import state_of  # needed for sets that are read

            return state_of(of, name, shards, complete=complete, states=states)

        return Source(
            dataset=dataset,
            shards=shards,
            other_shards=[shard for shard in dataset.shards() if shard not in mine] if self.share else [],
            run=lambda tasks: self.run("looking at attributes of other programs", LOOK, tasks, "files"),
            state_of=state,
            check_settings=self.check_settings,
            warn=self.warn,
        )

    def check_sets_read(self, shards: list[str], schemas: Mapping[str, sets.SetSchema]) -> None:
        """Check the sets of the dataset behind some schemas.

        Raises:
            ConfigError: if one was made with other settings than are configured now.
            StaleError: if one is out of date.
        """
        names = {name for schema in schemas.values() for name in schema.reads} - schemas.keys()
        self.source_of(self.dataset, shards).check(sorted(names), "strict")

    def external(self, name: str) -> list[external_sets.ExternalContent]:
        """Return the contents of all files of an external set.

        Raises:
            ConfigError: if a section of the configuration makes the set, so that only its records are missing.
            ToolkitError: if one cannot be read.
        """
        if name in self.made_sets:
            raise ConfigError(f"expected the set {name!r} with its records, got files without them")
        if name not in self._external:
            contents, unreadable = self.source_of(self.dataset, self.dataset.shards()).external([name])
            if unreadable:
                raise StepFailed(*unreadable.values())
            self._external[name] = contents[name]
        return self._external[name]

    def check_settings(self, dataset: Dataset, names: Collection[str]) -> None:
        """Compare the settings of sets with their sections.

        Raises:
            ConfigError: if one was made otherwise.
        """
        if not names or not self.has_dataset or dataset != self.dataset:
            return
        for section in settings.stages("sets", "whole"):
            if mine := [name for name in names if name in getattr(self.config, section)]:
                for name in mine:
                    check_ours(dataset, name, section)
                cast("Any", command_options.find(section)).STAGE.check_settings(self, mine)

    @property
    def only_warns(self) -> bool:
        """Return True if problems are warnings. The run then leaves shards out, or writes nothing."""
        return self.in_part or self.options.only_shows

    @staticmethod
    def warn(messages: Iterable[str]) -> None:
        """Print warnings on standard error."""
        for message in messages:
            print(f"warning: {message}", file=sys.stderr)

    @property
    def in_part(self) -> bool:
        """Return True if some shards are left to other runs."""
        return self.options.limit is not None or self.only_per_shard

    @property
    def only_per_shard(self) -> bool:
        """Return True if corpus-wide steps wait. The run is a share then, or shards have failed."""
        return self.options.shard is not None or self.is_broken

    @property
    def named(self) -> str:
        """Return the prefix of messages about the run's share; empty for a run that is none."""
        return f"share {self.share}: " if self.share else ""

    @property
    def next_step(self) -> str:
        """Return the hint after an `only_per_shard` run."""
        if self.is_broken:
            return "correct what has failed, then run the same command again"
        return "when all shares are done, run the same command without --shard"

    def sweep(self, *roots: str) -> None:
        """Delete temporary files of killed runs below the roots."""
        count = sum(remove_stale_temporaries(root) for root in roots)
        if count and not self.options.quiet:
            print(f"deleted {count} temporary files of runs that were killed", file=sys.stderr)


# --- outcomes ---------------------------------------------------------------------------------------------------------


class DryRun(CommandResult, kw_only=True):
    """The result of ``--dry-run``: the resolved settings, and what a command would do.

    Attributes:
        settings: Resolved configuration.
        plan: Work to do, by stage.
        selected, first, not_carried, salvaged: Pages to fetch and first documents of each entry of `ingest`, fields
            that the mix will not carry, and remarks on damaged inputs.
    """

    settings: dict[str, Any]
    plan: dict[str, Any] = absent()
    selected: dict[str, Any] = absent()
    first: list[Any] = absent()
    not_carried: dict[str, int] = absent()
    salvaged: list[str] = absent()


class Outcome(msgspec.Struct):
    """The outcome of a command.

    Attributes:
        text: Text for people.
        data: Struct of the command for programs.
        failures: Messages of failures; any makes the exit status 1.
        exit_code: Exit code of the process.
        stops_run: True if a failure leaves nothing for the stages after it.
        for_programs: True if the text is read by programs, which get it as it is; a terminal never does.
    """

    text: str = ""
    data: Any = {}
    failures: list[str] = []
    exit_code: int = 0
    stops_run: bool = False
    for_programs: bool = False

    def __post_init__(self) -> None:
        self.exit_code = self.exit_code or int(bool(self.failures))


def failures(results: Iterable[Result[Any]]) -> list[str]:
    """Return the messages of the failed tasks."""
    return [result.failure.message for result in results if result.failure]


def all_values(results: Iterable[Result[Any]]) -> list[Any]:
    """Return the values of the tasks of a step.

    Raises:
        StepFailed: if any has failed.
    """
    results = list(results)
    if broken := failures(results):
        raise StepFailed(*broken)
    return [result.value for result in results]


def table(rows: list[list[str]], right: Iterable[int] = ()) -> str:
    """Return rows as text in columns, the first row a head; columns in `right` are aligned right."""
    if not rows:
        return ""
    right = set(right)
    rows = [[escaped(cell) for cell in row] for row in rows]  # labels, hosts and keys are external texts
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = [
        "  ".join(
            cell.rjust(w) if i in right else cell.ljust(w) for i, (cell, w) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    ]
    lines.insert(1, "  ".join("-" * w for w in widths))
    return "\n".join(line.rstrip() for line in lines)


def show_plan(context: Context, plan: dict[str, Any]) -> Outcome:
    """Return the outcome of a dry run; of a share, with what it has of all that there is."""
    if context.share:
        plan = {"share": context.share.plan(), **plan}
    outcome = show_settings(context)
    outcome.text += "\n# plan\n" + settings.dump(plan)
    outcome.data.plan = plan
    return outcome


def show_settings(context: Context) -> Outcome:
    """Return the configuration with overrides, variables of the environment and defaults; in the text without those."""
    resolved = settings.plain(context.config)
    explicit = {
        key: value for key, value in resolved.items() if value not in (None, [], {}, settings.plain(StorageOptions()))
    }
    return Outcome(text=settings.dump(explicit), data=DryRun(settings=resolved))


def with_share(context: Context, outcome: Outcome) -> Outcome:
    """Add the plan of a share to its outcome."""
    if context.share:
        plan = context.share.plan()
        outcome.text += "\n\n" + settings.dump({"share": plan}).rstrip()
        outcome.data.share = plan
    return outcome
