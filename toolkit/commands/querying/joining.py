"""Sets of a dataset as they are joined to its documents, checked as a mix of them is."""

import msgspec

from toolkit.commands.mixing import preparation
from toolkit.commands.steps import foreign_sets
from toolkit.commands.steps.context import Context
from toolkit.errors import ToolkitError
from toolkit.mix import joined_sets
from toolkit.mix.join import JoinedShard
from toolkit.mix.joined_sets import JoinedSet
from toolkit.mix.settings import Joined, Stream
from toolkit.records import aligned
from toolkit.whole import check as dedup_check


def works_of(context: Context, stream: Stream, shards: list[str]) -> list[JoinedShard]:
    """Return shards of a stream's dataset, to which no set is joined yet."""
    limit = context.config.max_document_bytes
    return [JoinedShard(stream=stream, sets=[], shard=shard, max_document_bytes=limit) for shard in shards]


def sets_of(context: Context, stream: Stream, shards: list[str]) -> list[JoinedSet]:
    """Return the sets that a stream joins, with their types; what concerns all of a set is checked.

    Raises:
        ConfigError: if there is no such set, or it was made otherwise than its section says now.
        StaleError: if it was made from inputs, or other sets, that have changed since.
        ToolkitError: if a set of another program cannot be read.
    """
    dataset = stream.dataset
    preparation.check_sets(context, [stream])
    whole = not (context.in_part or dataset.include or dataset.exclude)
    for joining in stream.attributes:
        dedup_check.check_resolved(dataset, joining.set, shards, whole=whole)
        aligned.check_inputs(dataset, joining.set)
    seen, unreadable = foreign_sets.look_at_all(context, stream, shards)
    if unreadable:
        raise ToolkitError("\n".join(unreadable.values()))
    return joined_sets.resolve_sets(stream, {}, seen)


def only(stream: Stream, names: list[str], place: str) -> Stream:
    """Return a stream that joins these sets as they are, and has no rules.

    Args:
        stream: of the dataset.
        names: of the sets.
        place: for messages.
    """
    joined = [Joined(set=name, place=place) for name in names]
    return msgspec.structs.replace(stream, attributes=joined, rules=[], same_keys="later")
