"""The context of a command: its configuration, the share of its run, and the processes that run its tasks."""

import os
import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Self

import msgspec

from toolkit.commands.command_line.options import Options
from toolkit.commands.steps.disk import Disk
from toolkit.commands.steps.outcome import Outcome
from toolkit.config import settings as config
from toolkit.config.settings import Config, Source
from toolkit.data.dataset import Dataset, open_dataset
from toolkit.dedup import section as dedup_section
from toolkit.errors import ConfigError, DataError, NothingThere
from toolkit.ingest import plan as ingest_plan
from toolkit.ingest import section as ingest_section
from toolkit.ingest.shares import Share
from toolkit.inspect.describe.about import read_splits
from toolkit.interop.dolma import is_dolma, pointers
from toolkit.mix import section as mix_section
from toolkit.mix.settings import MixSettings, work_folder
from toolkit.records import sets
from toolkit.records.failures import FailureRecord, FailureRecords
from toolkit.runs import claims, workers
from toolkit.runs.executors import P, R, Report, Result, Task, always
from toolkit.runs.progress import Progress
from toolkit.runs.room import Needs
from toolkit.storage.options import StorageOptions, set_options
from toolkit.storage.paths import is_folder, join, not_in, remove_stale_temporaries
from toolkit.storage.roots import note_roots
from toolkit.tag import plan as tag_plan


@dataclass
class _Stage:
    """A stage that is being worked on: the keys of its tasks by name, and of those that have begun."""

    keys: dict[str, str]
    doing: set[str] = field(default_factory=set)


@dataclass
class Context:
    """A configuration that is being worked on; a context manager that ends the processes which it has begun.

    Attributes:
        stage: which of the stages of a run this is, of how many: ``2 of 3``; empty if it is the only one.
    """

    options: Options
    config: Config
    source: Source
    stage: str = ""
    _stages: dict[str, _Stage] = field(default_factory=dict)
    _progress: Progress | None = None
    _stage: _Stage = field(default_factory=lambda: _Stage({}))
    _inputs: tuple[list[ingest_plan.InputToIngest], list[NothingThere]] | None = None

    def __post_init__(self) -> None:
        """Raise ConfigError if there is no such executor."""
        chosen = workers.read(self.config.executor, self.source)
        self._workers = workers.Workers(chosen, self.config.processes, self._report, self._begun)

    @property
    def dataset(self) -> Dataset:
        found = self.config
        try:
            return open_dataset(found.dataset, found.documents, found.attributes)
        except ConfigError as error:
            raise self.source.error((), str(error)) from None

    @property
    def output(self) -> str:
        """Return the folder of the output that a path names; without one, that of the section ``mix:``.

        Raises:
            ConfigError: if several paths are named, or the mix of the configuration has not been run.
        """
        named = self.options.targets
        if len(named) > 1:
            raise ConfigError(f"expected one output, got {len(named)}: {', '.join(named)}")
        folder = named[0].rstrip("/") if named else self.mix.output.path
        if not named and not is_folder(folder):
            lacks = f"expected the output of a mix, got nothing there; run `toolkit mix`{not_in(folder)}"
            raise ConfigError(f"{folder}: {lacks}")
        return folder

    def section(self, name: str) -> Source:
        """Return a section of the configuration.

        Raises:
            ConfigError: if it is not there.
        """
        if not getattr(self.config, name):
            raise self.source.error((), f"expected a section `{name}:`, got none")
        return self.source.at(name)

    @property
    def is_dolma(self) -> bool:
        """Tell whether the configuration is one of Dolma's."""
        return is_dolma(self.source)

    @property
    def has_dataset(self) -> bool:
        """Tell whether the configuration names a dataset of its own; the streams of a mix may name theirs."""
        return self.config.dataset is not None or self.config.documents is not None

    @cached_property
    def entries(self) -> list[ingest_section.Entry]:
        """Return the entries of the section ``ingest:``; none if there is no such section."""
        if not self.has("ingest"):
            return []
        return ingest_section.read_section(
            self.section("ingest"), self.config.compression or ingest_section.COMPRESSION
        )

    @cached_property
    def tags(self) -> tag_plan.Plan:
        """Return the plan of the section ``tag:``.

        Raises:
            ConfigError: naming the place in the file; if there is no such section, too.
        """
        return tag_plan.read_section(self.section("tag"))

    @cached_property
    def dedup(self) -> dedup_section.Plan:
        """Return the plan of the section ``dedup:`` over the sets that are on disk.

        Raises:
            ConfigError: naming the place in the file; if there is no such section, too.
        """
        known = self.known_sets
        try:
            return dedup_section.read_section(self.section("dedup"), self.dataset, known)
        except ConfigError as error:
            if missing := [name for name in self.config.tag if name not in known]:
                raise ConfigError(f"{error}; `toolkit tag` has not made {', '.join(missing)} yet") from None
            raise

    @property
    def known_sets(self) -> dict[str, sets.SetSchema]:
        """Return the schemas of the sets on disk that inputs carry and the section ``tag:`` makes."""
        names = [*ingest_section.set_schemas(self.entries), *self.config.tag]
        loaded = {name: sets.load_schema(self.dataset, name) for name in names}
        return {name: found for name, found in loaded.items() if found}

    @cached_property
    def mix(self) -> MixSettings:
        """Return the settings of the section ``mix:``, with what `about.splits` says of the files of the output.

        Raises:
            ConfigError: naming the place in the file; if there is no such section, too.
        """
        folder = os.path.dirname(self.options.config or "")
        found = mix_section.read_section(self.section("mix"), folder, lambda: self.dataset)
        splits = read_splits(self.section("about")) if self.has("about") else None
        return msgspec.structs.replace(found, splits=splits.shares) if splits and splits.by == "file" else found

    @cached_property
    def disk(self) -> Disk:
        """Return what is expected to be needed on disk, and the bound.

        Raises:
            ConfigError: if it bounds what is not on disk.
        """
        options = self.options
        return Disk(
            self.config,
            self.source,
            self.dataset if self.has_dataset else None,
            options.command,
            per_shard=getattr(options, "per_shard", False),
            shares=options.shard[1] if options.shard else 1,
        )

    def has(self, name: str) -> bool:
        return bool(getattr(self.config, name))

    def run(
        self,
        what: str,
        function: Callable[[P, Report], R],
        tasks: Iterable[Task[P]],
        unit: str = "shards",
        *,
        spreads: bool = False,
        at_once: int | None = None,
        failed: FailureRecords | None = None,
        needs: Needs | None = None,
    ) -> list[Result[R]]:
        """Run tasks on the configured executor, with progress; return results in the order of the tasks.

        Args:
            what: the stage.
            function: of the tasks.
            tasks: to run.
            unit: what tasks are.
            spreads: whether a task can use several processes; its payload says how many.
            at_once: at most so many tasks, if not as many as there are processes.
            failed: where failures are noted, by the keys of the tasks.
            needs: what tasks need on disk, where that is bound.

        Raises:
            NoRoom: if that is too much.
        """
        listed = self._workers.spread(tasks) if spreads else list(tasks)
        self._stage = _Stage({task.name: task.key for task in listed})
        if failed:
            self._stages[failed.stage] = self._stage
        executor = self._workers.executor(len(listed))
        room = self.disk.room if needs else None
        executor.admits = room.admits if room else always
        if room and needs:
            room.begin(needs)
        sizes = {task.name: task.size for task in listed}
        title = f"{self.stage}: {what}" if self.stage else what
        with Progress(title, sizes.values(), unit, quiet=self.options.quiet) as progress:
            self._progress = progress
            found: dict[str, Result[R]] = {}
            for result in executor.run(function, listed, at_once=at_once):
                found[result.name] = result
                if room:
                    room.end(result.name)
                progress.end(sizes[result.name], result.reported)
                if failed:
                    self._note(failed, result)
                if result.failure and not self.options.quiet:
                    progress.tell(f"failed: {result.failure.message}")
                    if self.options.debug and result.failure.details:
                        progress.tell(result.failure.details)
        return [found[task.name] for task in listed]

    def _report(self, documents: int, size: int) -> None:
        if self._progress:
            self._progress.report(documents, size)

    def _begun(self, name: str) -> None:
        self._stage.doing.add(self._stage.keys[name])

    def _note(self, failed: FailureRecords, result: Result[Any]) -> None:
        key = self._stage.keys[result.name]
        self._stage.doing.discard(key)
        if why := result.failure:
            failed.note(key, FailureRecord(task=result.name, message=why.message, details=why.details))
        else:
            failed.forget(key)

    def claimed(self, folder: str, what: str, holds: Mapping[str, str]) -> AbstractContextManager[None]:
        """Return a context manager, within which no other run works on something with other settings.

        See `toolkit.runs.claims`.

        Args:
            folder: the bookkeeping folder of a dataset or an output.
            what: is worked on, for messages.
            holds: digests of the settings; empty where no other run may work.
        """
        share = "" if self.options.shard is None else " --shard {}/{}".format(*self.options.shard)
        run = f"toolkit {self.options.command}{share}"

        def doing() -> dict[str, list[str]]:
            return {name: sorted(stage.doing.copy()) for name, stage in self._stages.copy().items()}

        return claims.claimed(join(folder, "claims"), what, holds, run, doing)

    def claimed_output(self, output: str, digest: str = "") -> AbstractContextManager[None]:
        """Return a context manager, within which no other run works on the output of a mix.

        With a digest, runs whose settings have the same one may.
        """
        return self.claimed(work_folder(output), output, {"the output": digest})

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """End the processes that worked for it."""
        self._workers.close()

    def inputs(self, *, there: bool = False, asks_web: bool = True) -> list[ingest_plan.InputToIngest]:
        """Return the inputs of the section ``ingest:``, sorted by shard; they are listed once.

        Args:
            there: leave out what is not there any more, and say nothing of it.
            asks_web: whether the web may be asked; if it must be, and may not, there are none.

        Raises:
            ConfigError: for whatever is wrong with the section, or is not there.
            DataError: if they cannot be listed.
        """
        if self._inputs is None:
            self.section("ingest")  # or else there is none, which is an error
            entries, absent = self.entries, list[NothingThere]()
            if not asks_web and any(map(ingest_plan.is_on_the_web, entries)):
                return []
            limit, overwrite = self.config.max_document_bytes, self.options.overwrite
            planned = ingest_plan.plan(entries, self.dataset, limit, overwrite=overwrite, absent=absent)
            self._inputs = planned, absent
        found, absent = self._inputs
        if absent and not there:
            raise absent[0]
        return found

    @cached_property
    def share(self) -> Share | None:
        """Return the share of the run; None if the run is not one of several.

        Raises:
            ConfigError: if the inputs cannot be listed, so that nobody knows whose they are.
        """
        if self.options.shard is None:
            return None
        try:
            inputs = self.inputs(there=True) if self.has("ingest") else []
        except DataError as error:
            raise ConfigError(
                f"--shard: the inputs cannot be listed, and they tell what the share owns: {error}; mend that, or use "
                "a configuration without `ingest:`, for which the documents are shared as they are"
            ) from None
        return Share(*self.options.shard, self.dataset if self.has_dataset else None, inputs)

    def is_mine(self, dataset: Dataset, shard: str) -> bool:
        """Tell whether a shard of a dataset is in this run's share."""
        return self.share is None or self.share.owns(dataset, shard)

    def limited(self, shards: list[str]) -> list[str]:
        """Return the first shards, as many as `--limit` says."""
        return shards[: self.options.limit]

    @property
    def only_warns(self) -> bool:
        """Tell whether the run only warns of what a whole run refuses: it leaves shards out, or writes nothing."""
        return self.in_part or self.options.only_shows

    @staticmethod
    def warn(messages: Iterable[str]) -> None:
        """Tell on standard error what the user should know, and nothing is refused for."""
        for message in messages:
            print(f"warning: {message}", file=sys.stderr)

    @property
    def in_part(self) -> bool:
        """Tell whether some shards are left to other runs."""
        return self.options.limit is not None or self.options.shard is not None

    def sweep(self, *roots: str) -> None:
        """Delete temporary files that killed runs left below the roots."""
        count = sum(remove_stale_temporaries(root) for root in roots)
        if count and not self.options.quiet:
            print(f"deleted {count} temporary files of runs that were killed", file=sys.stderr)


def open_context(options: Options) -> Context:
    """Read the configuration; without one, all settings have their defaults."""
    if options.config is None:
        return Context(options, Config(), Source({}))
    source = config.load_source(options.config, list(options.overrides))
    pointers.check(source, options.command)
    if is_dolma(source):
        return Context(options, Config(), source)
    found = config.convert(source, Config)
    set_options(found.storage)
    output = found.mix.get("output")
    places = (found.dataset, found.mix.get("rejected"), output.get("path") if isinstance(output, dict) else None)
    note_roots(place for place in places if isinstance(place, str) and place and "\0" not in place)
    context = Context(options, found, source)
    if found.max_disk is not None and options.command in ("run", "ingest", "tag", "dedup", "mix"):
        _ = context.disk  # or what it bounds cannot be bound
    return context


def show_plan(context: Context, plan: dict[str, Any]) -> Outcome:
    """Return the outcome of a dry run; of a share, with what it has of all that there is."""
    if context.share:
        plan = {"share": context.share.plan(), **plan}
    resolved = config.plain(context.config)
    return Outcome(
        text=config.dump(
            {
                key: value
                for key, value in resolved.items()
                if value not in (None, [], {}, config.plain(StorageOptions()))
            }
        )
        + "\n# plan\n"
        + config.dump(plan),
        data={"settings": resolved, "plan": plan},
    )
