"""Stages as their commands declare them, and one look at what they have made."""

import importlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from toolkit.commands.stages import STAGES
from toolkit.commands.steps import shards as sharing
from toolkit.commands.steps.context import Context
from toolkit.data.dataset import Dataset
from toolkit.errors import ConfigError, NothingThere
from toolkit.mix import stage as mix_stage
from toolkit.mix.publish import Published
from toolkit.records import sets as records
from toolkit.stages.stage import Kind, Progress


def _records_of_dataset(context: Context) -> str:
    return context.dataset.bookkeeping


@dataclass(frozen=True)
class Stage:
    """A stage, as the module of its command declares it by the name `STAGE`.

    Attributes:
        kind: Kind of the stage.
        progress: Yields how far it is with each thing that it makes; writes nothing.
        folder: Reads the section; returns the folder of the stage's records.
    """

    kind: Kind
    progress: Callable[["Look"], Iterable[Progress]]
    folder: Callable[[Context], str] = _records_of_dataset


class Look:
    """One look at the places that a configuration writes in.

    Attributes:
        dataset: Dataset of the configuration; None if it has none.
        faults: Messages of what is wrong with the configuration.
        stages: Stages of the configuration, by name, in the order of a run.
        folders: Folder of the records of each stage whose section can be read.
        published: Shards in the output of the mix, if there is a mix.
        gone: Shards whose documents were deleted after they were mixed, by key: True if the output has them.
    """

    def __init__(self, context: Context) -> None:
        self.context = context
        self.dataset = context.dataset if context.has_dataset or not context.has("mix") else None
        self.faults = list(context.faults)
        self.stages: dict[str, Stage] = {
            name: importlib.import_module(f"toolkit.commands.{name}").STAGE for name in STAGES if context.has(name)
        }
        self.folders: dict[str, str] = {}
        for name, stage in self.stages.items():
            try:
                self.folders[name] = stage.folder(context)
            except ConfigError as error:
                self.faults += [] if str(error) in self.faults else [str(error)]
        self.settings = context.mix if "mix" in self.folders else None
        self.published = Published(self.settings) if self.settings else None
        self.gone: dict[str, bool] = {}

    @contextmanager
    def from_listings(self) -> Iterator[None]:
        """Look at the files of all stages by listings."""
        config = self.context.config
        with ExitStack() as stack:
            if self.dataset:
                stack.enter_context(self.dataset.looking([*config.tag, *config.make, *config.annotate]))
            if self.settings:
                stack.enter_context(mix_stage.looking(self.settings))
            yield

    def progress(self) -> Iterator[tuple[str, Kind, list[Progress]]]:
        """Yield name and kind of each stage, and how far it is with each thing that it makes."""
        for name, stage in self.stages.items():
            unread = [Progress(name, unknown="its section has an error, see below")]
            yield name, stage.kind, [*stage.progress(self)] if name in self.folders else unread

    def shards(self, dataset: Dataset) -> list[str]:
        """Return the shards of the run's share; where documents were mixed and deleted, there may be none."""
        try:
            return sharing.mine(self.context, dataset)
        except NothingThere:
            if not self.gone:
                raise
            return []

    def causes(
        self, set_name: str, shards: Iterable[str], todo: Iterable[str], home: Dataset | None = None
    ) -> dict[str, str]:
        """Return why shards are not done in a set, of which some are to be made; it is in another dataset's `home`."""
        dataset, listed = home or self.context.dataset, {*todo}

        def cause(shard: str) -> str:
            if records.is_damaged(dataset, set_name, shard):
                return "its record is damaged"
            is_made = records.is_recorded(dataset, set_name, shard)
            return "made from something that has changed" if is_made else "not begun"

        return {shard: cause(shard) if shard in listed else "" for shard in shards}
