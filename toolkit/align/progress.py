"""What is done of a set of the section ``align:``, and what is to do."""

from collections.abc import Sequence

import msgspec

from toolkit.align import section, write
from toolkit.data.dataset import Dataset
from toolkit.records import aligned, sets


class Todo(msgspec.Struct):
    """What is to be done for a set: its inputs, its schema, and its shards that must be written."""

    inputs: list[str]
    schema: sets.SetSchema
    shards: list[str]


def look(dataset: Dataset, entry: section.Entry, shards: Sequence[str], limit: int) -> Todo:
    """Return what is to be done for a set; nothing is written.

    Raises:
        ConfigError: if its inputs are not there, or the types of its values cannot be told.
    """
    inputs = entry.inputs()
    made, old = aligned.load_aligned(dataset, entry.set), sets.load_schema(dataset, entry.set)
    same = (
        made is not None
        and old is not None
        and [each.path for each in made.inputs] == inputs
        and all(key.settings == entry.recorded() for key in old.keys.values())
        and not aligned.changed_input(made)
    )
    if same and old is not None:
        works = writes(dataset, entry, old, shards, "", limit)
        return Todo(inputs, old, [work.shard for work in works if not write.is_done(work)])
    return Todo(inputs, section.schema_of(entry, inputs, limit), list(shards))


def writes(
    dataset: Dataset, entry: section.Entry, schema: sets.SetSchema, shards: Sequence[str], folder: str, limit: int
) -> list[write.ShardToWrite]:
    """Return the writing of each shard of a set."""
    settings = {key: found.settings for key, found in schema.keys.items()}
    return [
        write.ShardToWrite(
            dataset=dataset,
            shard=shard,
            set=entry.set,
            keys=list(schema.keys),
            settings=settings,
            folder=folder,
            content="",
            limit=limit,
        )
        for shard in shards
    ]
