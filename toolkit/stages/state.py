"""The state of an attribute set: whether it is what its inputs, as they are now, make of it."""

from collections.abc import Collection
from typing import Literal, NamedTuple

from toolkit.data.dataset import Dataset
from toolkit.errors import StaleError
from toolkit.records import aligned, sets
from toolkit.whole import check as resolutions


class State(NamedTuple):
    """The state of a set.

    Attributes:
        name: `done`; `missing`, if no such set is there; `external`, if another program made it; `stale`.
        error: the reason why a set is stale, with the next step.
    """

    name: Literal["done", "missing", "external", "stale"]
    error: StaleError | None = None


def state_of(dataset: Dataset, set_name: str, shards: Collection[str], *, complete: bool) -> State:
    """Return the state of a set as a whole; rows of single shards are checked when they are joined.

    A set is stale if an input of it has changed: a file that it was aligned with, or the shards that
    it was resolved over; or if a set that it was made from is stale.

    Args:
        dataset: Dataset of the set.
        set_name: Name of the set.
        shards: Shards that are used with the set.
        complete: True if these are all shards of the dataset.
    """
    schema = sets.load_schema(dataset, set_name)
    if schema is None:
        return State("external" if set_name in dataset.sets() else "missing")
    try:
        aligned.check_inputs(dataset, set_name)
        resolutions.check_resolved(dataset, set_name, shards, whole=complete)
    except StaleError as error:
        return State("stale", error)
    for name in schema.reads:
        state = state_of(dataset, name, shards, complete=complete)
        if state.error:
            message = f"{set_name} was made from {name}, which is out of date: {state.error}"
            return State("stale", StaleError(message))
    return State("done")
