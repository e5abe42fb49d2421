"""Sets of a dataset that a command looks at, row by row with the documents."""

from collections.abc import Sequence

from toolkit.commands.comparing.questions import Question, named
from toolkit.commands.sampling import using
from toolkit.commands.steps import shards as sharing
from toolkit.commands.steps.context import Context
from toolkit.data.dataset import Dataset, open_dataset
from toolkit.errors import ConfigError
from toolkit.mix.join import JoinedShard
from toolkit.source import Check
from toolkit.tag import sample


def check_place(config: str | None, dataset: str | None, *, sampled: bool) -> None:
    """Raise ConfigError unless it is said, once, of which dataset sets are looked at."""
    if (config is None) == (dataset is None):
        raise ConfigError("expected a configuration (-c FILE), or --dataset ROOT")
    if sampled and config is None:
        raise ConfigError("expected --sample only with a configuration (-c FILE)")


def dataset_of(context: Context, root: str | None, names: list[str], *, sampled: bool) -> tuple[Dataset, str]:
    """Return the dataset that has the sets, and what it is where it is a sample of `tag --sample`.

    Args:
        context: of the command.
        root: of the dataset, without a configuration.
        names: of the sets.
        sampled: whether the sample is asked for.
    """
    if root is not None:
        return open_dataset(root, None, None), ""
    dataset = context.dataset
    if not sampled and not using.only_sampled(dataset, names):
        return dataset, ""
    return sample.dataset_of(dataset), str(using.of(context, names))


def shards_of(context: Context, dataset: Dataset, over: str) -> list[str]:
    """Return the shards that are looked at."""
    return context.limited(dataset.shards() if over else sharing.shards(context, dataset)[0])


def works_for(
    context: Context, dataset: Dataset, asked: Sequence[Question], over: str, check: Check
) -> tuple[list[JoinedShard], dict[str, str]]:
    """Return the shards of whose documents something is asked, with the sets for that; and those that cannot be read.

    Args:
        context: of the command.
        dataset: that has the sets.
        asked: all that is asked.
        over: what the dataset is where it is a sample.
        check: Treatment of sets that are out of date.

    Raises:
        ConfigError: if there are no documents, or a question is none over these sets.
    """
    source = context.source_of(dataset, shards_of(context, dataset, over))
    resolved = source.resolve_each(named(asked), context.options.command, check=check)
    works = resolved.joined(context.config.max_document_bytes)
    if not works:
        raise ConfigError(f"expected documents in {dataset.documents}, got none")
    for question in asked:
        question.check(works[0])
    return works, resolved.unreadable
