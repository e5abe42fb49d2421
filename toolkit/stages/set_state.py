"""Provides the state of an attribute set: up to date or stale."""

import os
from collections.abc import Collection

from toolkit.data.dataset import Dataset
from toolkit.errors import ConfigError, StaleError
from toolkit.records import sets
from toolkit.storage import models
from toolkit.storage.freshness import DONE, State
from toolkit.whole_corpus import records


def state_of(
    dataset: Dataset, set_name: str, shards: Collection[str], *, complete: bool, states: dict[str, State] | None = None
) -> State:
    """Return the state of a set as a whole; rows of single shards are checked when they are joined.

    A set is stale if an input of it has changed: a file that it was aligned with, the file of a prompt or a model, the
    labels that a model learnt from, or the shards that it was resolved over; or if a set that it was made from, or that
    a model of it learnt from, is stale.

    Args:
        dataset: Dataset of the set.
        set_name: Name of the set.
        shards: Shards that are used with the set.
        complete: True if these are all shards of the dataset.
        states: States of other sets of the same question, to which this one adds.
    """
    states = {} if states is None else states
    if set_name not in states:
        states[set_name] = DONE  # no set reads itself
        states[set_name] = _state(dataset, set_name, shards, complete=complete, states=states)
    return states[set_name]


def _state(
    dataset: Dataset, set_name: str, shards: Collection[str], *, complete: bool, states: dict[str, State]
) -> State:
    schema = sets.load_schema(dataset, set_name)
    if schema is None:
        return State("external" if set_name in dataset.sets() else "missing")
    try:
        aligned = sets.load_aligned(dataset, set_name)
        if aligned is not None and (path := sets.changed_input(aligned)):
            message = f"expected values of {path} as it is now, got those of an earlier version; run `toolkit align`"
            raise StaleError(message, path=dataset.attribute_path(set_name, ""))
        if records.load_resolution(dataset, set_name):
            from toolkit.whole_corpus.resolve import check_resolved  # which most sets do not need

            check_resolved(dataset, set_name, shards, whole=complete)
        learnt_from = _check_files(dataset, set_name, schema, shards)
    except StaleError as error:
        return State("stale", str(error), error=error)
    for name in (*schema.reads, *learnt_from):
        state = state_of(dataset, name, shards, complete=complete, states=states)
        if state.error:
            message = f"{set_name} was made from {name}, which is out of date: {state.error}"
            return State("stale", message, error=StaleError(message))
    return DONE


def _check_files(dataset: Dataset, set_name: str, schema: sets.SetSchema, shards: Collection[str]) -> list[str]:
    """Compare the files of prompts and models with the recorded ones. A missing file has not changed.

    Returns:
        The sets of the dataset that the models learnt from.

    Raises:
        StaleError: naming the file that has changed, or the model whose labels have.
    """
    if not any(key.models for key in schema.keys.values()):
        return []
    learnt_from: dict[str, None] = {}
    where = dataset.attribute_path(set_name, "")
    again = "run `toolkit {} --overwrite`"
    for key in schema.keys.values():
        for option, path in key.models.items():
            if path in models.SHA256 or not os.path.exists(path):
                continue
            from toolkit.learn.annotate.annotate_config import is_prompt_of  # which most sets do not need
            from toolkit.learn.train import trained_models

            recorded = key.settings["options"][option].get("sha256")
            try:
                same = models.digest(path) == recorded if recorded else is_prompt_of(path, key)
            except ConfigError as error:
                raise StaleError(str(error)) from None
            if not same:
                message = (
                    f"expected values of the {'model' if recorded else 'prompt'} {path} as it is now, got those of an "
                    f"earlier version; {again.format(sets.command_of(dataset, set_name))}, or restore the file"
                )
                raise StaleError(message, path=where)
            card = trained_models.load(path) if os.path.isdir(path) else None
            for name, labels in card.learnt_from.items() if card else ():
                now = trained_models.labels_of(dataset, name, shards)
                if any(labels.get(shard, digest) != digest for shard, digest in now.items()):
                    message = (
                        f"the model {path} learnt from {name}, which has changed since; run "
                        "`toolkit train --overwrite`, then "
                    )
                    raise StaleError(message + again.format(sets.command_of(dataset, set_name)), path=where)
                if labels.keys() & now.keys() and sets.load_schema(dataset, name):  # else it is of another dataset
                    learnt_from[name] = None
    return [*learnt_from]
