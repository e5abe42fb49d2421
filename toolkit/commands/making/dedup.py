"""Find duplicates, and write what each document is a duplicate of as attributes."""

from typing import Annotated, ClassVar

from toolkit.commands.command_line.options import Configured, Flag, Stage
from toolkit.commands.resolving import copies, whole_sets
from toolkit.commands.steps import dolma
from toolkit.commands.steps import shards as sharing
from toolkit.commands.steps.context import Context
from toolkit.commands.steps.outcome import Outcome


class Options(Configured, Stage, frozen=True, kw_only=True):
    """Options of ``toolkit dedup``."""

    EXAMPLES: ClassVar = ("toolkit dedup -c my.yaml", "toolkit dedup -c my.yaml dedup.exact-0.keep=first --dry-run")

    explain: Annotated[
        str | None, Flag("write nothing; show the duplicates of a document, and what differs", metavar="ID")
    ] = None

    @property
    def only_shows(self) -> bool:
        return self.dry_run or self.explain is not None


def run(context: Context, options: Options) -> Outcome:
    """Make the sets of the section ``dedup:``: signatures per shard, resolution of the whole, attributes per shard."""
    if context.is_dolma:
        return dolma.dedup(context, options, run)
    dataset, plan = context.dataset, context.whole("dedup")
    if options.explain is not None:
        shards = context.limited(sharing.shards(context, dataset, judges=True)[0])
        return copies.explain(dataset, plan, shards, options.explain, context.config.max_document_bytes)
    return whole_sets.run(context, options, plan)
