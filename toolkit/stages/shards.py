"""The shards that a command works on, which are those of its share; and notes on inputs that are not in them."""

from collections.abc import Iterable

from toolkit.config import settings
from toolkit.data.dataset import Dataset
from toolkit.errors import DataError, NothingThere, ToolkitError, amount
from toolkit.ingest import attempts
from toolkit.ingest import inputs as ingest_records
from toolkit.ingest import plan as ingest_plan
from toolkit.records import ingested, rejected
from toolkit.records.lost import lost_shards
from toolkit.stages.context import Context
from toolkit.stages.outcome import Outcome
from toolkit.storage.compression import compression_of
from toolkit.storage.paths import absolute

NAMED = 3
"""Inputs of a kind that are named."""


def mine(context: Context, dataset: Dataset) -> list[str]:
    """Return the shards of the run's share, sorted; of a run that is no share, all.

    Raises:
        NothingThere: if there are no documents, or none of the share's inputs; a share without inputs needs none.
        DataError: if a file is no shard.
    """
    share = context.share if context.share and context.share.is_of_inputs(dataset) else None
    try:
        found = [shard for shard in dataset.shards() if context.is_mine(dataset, shard)]
    except NothingThere:
        if share is None or share.inputs:
            raise
        return []
    if share and share.inputs and not found:
        raise NothingThere(
            f"{dataset.documents}: expected the documents of this share's {amount(len(share.inputs), 'input')}, got "
            f"none; run `toolkit ingest --shard {share.index}/{share.count}` first?"
        )
    return found


def shards(context: Context, dataset: Dataset, *, judges: bool = False) -> tuple[list[str], str]:
    """Return the shards of the run's share that have not failed before, and notes on inputs that are not in them.

    Args:
        context: of the configuration.
        dataset: that they are in.
        judges: whether a dataset of which too many items were rejected is refused; else that is told.

    Raises:
        NothingThere: if there are none where there should be some.
        ConfigError: if documents were ingested with other settings than the configuration has now.
        DataError: naming shards that are gone, or entries of which too much was rejected.
    """
    found = mine(context, dataset)
    inputs = ingested.load_all(dataset)
    ingested.check_once(dataset, inputs)
    if context.entries and context.has_dataset and dataset == context.dataset:
        ingest_records.check_made(context.entries, inputs.values())
    if lost := lost_shards(dataset, found, inputs, lambda shard: context.is_mine(dataset, shard)):
        raise DataError("\n".join(lost.values()))
    refused = list(map(str, rejected.too_many(inputs.values(), dataset.bookkeeping)))
    if refused and judges and not context.only_warns:
        raise DataError("\n".join(refused))
    context.warn(refused)
    notes = _not_in_this(context, dataset, found)
    if context.failed and dataset == context.dataset:
        found = [shard for shard in context.limited(found) if shard not in context.failed]
    return found, notes


def check_compression(context: Context, dataset: Dataset, shards: Iterable[str]) -> None:
    """Check that shards have the compression that the configuration names, as their attributes will.

    Raises:
        ConfigError: naming the first that has another.
    """
    wanted = context.config.compression
    if wanted and dataset.in_place:
        raise context.source.error(
            ("compression",),
            "expected no `compression` with documents in place: it is of documents that ingest writes; attributes "
            "of files of others are gzip",
        )
    for shard in shards if wanted else ():
        if (found := compression_of(shard)) != wanted:
            raise context.source.error(
                ("compression",),
                f"expected documents of the compression {wanted}, got {dataset.shard_path(shard)}, which has "
                f"{found or 'none'}; attributes have the names of their documents, and so their compression. Leave the "
                "key out, or ingest the documents anew (--overwrite)",
            )


def _not_in_this(context: Context, dataset: Dataset, found: list[str]) -> str:
    """Return notes on inputs of the share that are not ingested; without a share, on attempts of former inputs, too."""
    inputs = _inputs_of(context, dataset)
    failed = attempts.unfinished(dataset, inputs if context.share else None)
    new = ingest_records.not_begun(inputs, dataset, found)
    return _told(failed, "failed or was interrupted") + _told(new, "has not begun")


def _told(names: list[str], what: str) -> str:
    if not names:
        return ""
    are, their = ("is", "its") if len(names) == 1 else ("are", "their")
    return (
        f"\n{amount(len(names), 'input')} {are} not in this: {their} ingest {what} "
        f"({', '.join(names[:NAMED])}{', …' if len(names) > NAMED else ''}); run `toolkit ingest`"
    )


def _inputs_of(context: Context, dataset: Dataset) -> list[ingest_plan.InputToIngest]:
    """Return the inputs of the share that a dataset is made of; none if the web would have to be asked for them."""
    if context.share:
        return context.share.inputs if context.share.is_of_inputs(dataset) else []
    own = context.dataset if context.has("ingest") and context.has_dataset else None
    if own is None or absolute(own.documents) != absolute(dataset.documents):
        return []
    try:
        return context.inputs(there=True, asks_web=False)
    except ToolkitError:  # without them, what is there can be worked on all the same
        return []


def told(context: Context, outcome: Outcome) -> Outcome:
    """Return an outcome with what the run's share has; that of a run that is no share, as it is."""
    if context.share:
        plan = context.share.plan()
        outcome.text += "\n\n" + settings.dump({"share": plan}).rstrip()
        outcome.data.share = plan
    return outcome
