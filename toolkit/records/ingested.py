"""The records of inputs that are ingested, which every later stage asks which shards there should be.

``.toolkit/ingest/<source>/<path of the input>.json``  an `InputRecord`; of a pack, of which the shard's name is

`toolkit.ingest.inputs` decides by them what is ingested again.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from toolkit.data.dataset import Dataset
from toolkit.errors import DataError
from toolkit.records.sets import OutputState
from toolkit.storage.json_files import load_strictly
from toolkit.storage.paths import exists, join, lacking, list_files
from toolkit.storage.threads import for_each


class InputOfPack(msgspec.Struct, frozen=True, kw_only=True):
    """An input whose documents share their shards with others.

    Attributes:
        input: its path.
        key: its name in records (see `toolkit.ingest.plan.InputFile`).
        size, stamp, content: as in `InputRecord`.
        rows: documents that it became.
    """

    input: str
    key: str
    size: int
    stamp: str
    content: str
    rows: int


class InputRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The record that an input file is ingested, or a pack of them.

    Attributes:
        input: its path; of a pack, those of the first and the last.
        size, stamp, content: of the input as stored: the quick test, and xxh3-128. A pack has the sum of the sizes, no
            stamp, and the digest of the inputs' keys and contents.
        settings: of the entry.
        shards: written, each with its digest.
        counts: by reason.
        deleted: whether the shards were deleted when they had been mixed.
        entry: of the configuration that the input belongs to, by its name.
        max_rejected: share of the entry's items that may be bad.
        rejects: the reject file below the bookkeeping folder; empty if there is none.
        inputs: of a pack, in the order of their documents.
    """

    version: int = 1
    input: str
    size: int
    stamp: str
    content: str
    settings: dict[str, Any]
    shards: dict[str, OutputState]
    rows: int
    counts: dict[str, int]
    seconds: float
    deleted: bool = False
    entry: str = ""
    max_rejected: float = 0.1
    rejects: str = ""
    inputs: list[InputOfPack] = []

    @property
    def paths(self) -> list[str]:
        """Return the paths of the inputs, in the order of their documents."""
        return [each.input for each in self.inputs] or [self.input]


def path_of(dataset: Dataset, key: str) -> str:
    """Return the path of the record of an input, or a pack, with this key."""
    return join(dataset.bookkeeping, "ingest", key + ".json")


def key_of(dataset: Dataset, path: str) -> str:
    """Return the key that a record, by its path, is about; the inverse of `path_of`."""
    return path.removeprefix(join(dataset.bookkeeping, "ingest") + "/").removesuffix(".json")


def paths(dataset: Dataset, suffix: str) -> list[str]:
    """Return the paths of all records (``.json``), or of attempts that did not end (``.json.started``), sorted."""
    folder = join(dataset.bookkeeping, "ingest")
    return [join(folder, path) for path in list_files(folder, hidden=True) if path.endswith(suffix)]


def load_record(path: str) -> InputRecord | None:
    """Return the record of an input, by the path of the record; None if there is none.

    Raises:
        DataError: if it is damaged.
    """
    return load_strictly(path, InputRecord, "run `toolkit ingest`, which makes it again")


def load_all(dataset: Dataset) -> dict[str, InputRecord]:
    """Return the records of all inputs by their paths, sorted.

    Raises:
        DataError: if records are damaged, naming all of them: nobody knows which shards there should be.
    """
    found = _load_each(dataset)
    if damaged := [str(record) for record in found.values() if isinstance(record, DataError)]:
        raise DataError("\n".join(damaged))
    return {path: record for path, record in found.items() if isinstance(record, InputRecord)}


def load_undamaged(dataset: Dataset) -> list[InputRecord]:
    """Return the records of all inputs, without those that are damaged."""
    return [record for record in _load_each(dataset).values() if isinstance(record, InputRecord)]


def _load_each(dataset: Dataset) -> dict[str, InputRecord | DataError | None]:
    """Return each record, or the error of one that is damaged, or None for one that has gone meanwhile."""

    def look(path: str) -> InputRecord | DataError | None:
        try:
            return load_record(path)
        except DataError as error:
            return error

    listed = paths(dataset, ".json")
    return dict(zip(listed, for_each(look, listed), strict=True))


def check_once(dataset: Dataset, inputs: Mapping[str, InputRecord]) -> None:
    """Check that each input is in one pack, or in a shard of its own; it may be in two while packs are made anew.

    Args:
        dataset: of the records.
        inputs: by `load_all`.

    Raises:
        DataError: naming the shards of both.
    """
    if not any(record.inputs for record in inputs.values()):
        return
    first: dict[str, str] = {}
    for path, record in inputs.items():
        for key in [each.key for each in record.inputs] or [key_of(dataset, path)]:
            if (before := first.setdefault(key, path)) != path:
                shards = [dataset.shard_path(min(inputs[each].shards)) for each in (before, path)]
                raise DataError(
                    f"expected the documents of each input once, got those of {key} here and in {shards[1]}: packs "
                    "have changed, and were not all made anew; run `toolkit ingest`",
                    path=shards[0],
                )


def deleted_shards(dataset: Dataset) -> list[str]:
    """Return the shards whose documents were deleted when they had been mixed, sorted."""
    return sorted(shard for record in load_undamaged(dataset) if record.deleted for shard in record.shards)


def missing_shards(
    dataset: Dataset,
    shards: Iterable[str],
    inputs: Mapping[str, InputRecord],
    concern: Callable[[str], bool] = lambda shard: True,
) -> list[str]:
    """Return a message for each shard that was ingested and whose documents are gone, sorted.

    Args:
        dataset: has the documents.
        shards: that there are.
        inputs: records of inputs, by `load_all`.
        concern: says of a shard whether it matters.
    """
    there = set(shards)
    missing = []
    for path, found in inputs.items():
        for shard in found.shards:
            if shard not in there and dataset.admits(shard) and concern(shard):
                documents = dataset.shard_path(shard)
                if exists(documents):
                    continue  # another run has just ingested it
                got = "`run --per-shard` has deleted them" if found.deleted else f"got {lacking(documents)}"
                missing.append(
                    f"{documents}: expected the documents of {found.input}, {got}; run "
                    f"`toolkit ingest`, or delete {path} if they are to go"
                )
    return sorted(missing)
