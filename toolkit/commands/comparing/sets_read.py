"""Sets of a dataset that a command looks at, row by row with the documents."""

from collections.abc import Iterable, Sequence

from toolkit.commands.comparing.questions import Question, named
from toolkit.commands.sampling import using
from toolkit.commands.steps import foreign_sets
from toolkit.commands.steps import shards as sharing
from toolkit.commands.steps.context import Context
from toolkit.data.dataset import Dataset, open_dataset
from toolkit.errors import ConfigError, ToolkitError
from toolkit.mix.join import JoinedShard
from toolkit.mix.joined_sets import JoinedSet, resolve_sets
from toolkit.mix.settings import Joined, Stream
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


def sets_of(
    context: Context, dataset: Dataset, names: Iterable[str], shards: list[str]
) -> tuple[list[JoinedSet], dict[str, str]]:
    """Return the sets as they are joined; and for shards whose foreign attributes cannot be read, why."""
    found: list[JoinedSet] = []
    unreadable: dict[str, str] = {}
    for name in names:
        joined = Joined(set=name, place=context.options.command)
        stream = Stream(name="", dataset=dataset, attributes=[joined], rules=[])
        seen, broken = foreign_sets.look_at_all(context, stream, shards)
        unreadable |= broken
        if broken and not any(seen.values()):
            raise ToolkitError("\n".join(broken.values()))
        found += resolve_sets(stream, {}, seen)
    return found, unreadable


def works_for(
    context: Context, dataset: Dataset, asked: Sequence[Question], over: str
) -> tuple[list[JoinedShard], dict[str, str]]:
    """Return the shards of whose documents something is asked, with the sets for that; and those that cannot be read.

    Args:
        context: of the command.
        dataset: that has the sets.
        asked: all that is asked.
        over: what the dataset is where it is a sample.

    Raises:
        ConfigError: if there are no documents, or a question is none over these sets.
    """
    shards = shards_of(context, dataset, over)
    sets, unreadable = sets_of(context, dataset, named(asked), shards)
    works = works_of(context, dataset, sets, shards, unreadable)
    if not works:
        raise ConfigError(f"expected documents in {dataset.documents}, got none")
    for question in asked:
        question.check(works[0])
    return works, unreadable


def works_of(
    context: Context, dataset: Dataset, sets: list[JoinedSet], shards: Sequence[str], unreadable: dict[str, str]
) -> list[JoinedShard]:
    """Return the shards that can be read, with the sets."""
    stream = Stream(name="", dataset=dataset, attributes=[], rules=[])
    limit = context.config.max_document_bytes
    return [
        JoinedShard(stream=stream, sets=sets, shard=shard, max_document_bytes=limit)
        for shard in shards
        if shard not in unreadable
    ]
