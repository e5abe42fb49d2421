"""Records the dataset of an output: an output replaces only one of its own dataset.

``FOLDER/.toolkit/origins.json`` has the `Origin` of an output (``.``), and of the files that describe it, by name.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import msgspec
import xxhash

from toolkit.data import row_index
from toolkit.data.dataset import Dataset, normal_path
from toolkit.errors import ConfigError, ToolkitError
from toolkit.storage import json_files, paths, threads

OUTPUT = "."
"""Key of the output itself."""

MOST = 256
"""Shards that an origin names at most: those whose paths have the least hashes, so that two origins name the same."""

TRIES = 3
"""Shards without a row index that are read to compare them."""

LONGEST = 1 << 30
"""Bytes of a document that is read to be compared."""


class Origin(msgspec.Struct, frozen=True, kw_only=True):
    """The datasets of an output.

    Attributes:
        datasets: Places, by the paths in the configuration.
        shards: Content digests of documents, by shard.
    """

    datasets: dict[str, str]
    shards: dict[str, str] = {}

    def __str__(self) -> str:
        return " and ".join(self.datasets) or "an unknown dataset"

    @property
    def without_places(self) -> "Origin":
        """Return the origin with digests of places, for published files."""
        digests = {name: xxhash.xxh3_128_hexdigest(place.encode()) for name, place in self.datasets.items()}
        return Origin(datasets=digests, shards=self.shards)

    def meets(self, other: "Origin") -> bool:
        """Return True if two origins share a place or a shard."""
        places = {*self.datasets.values()} & {*other.datasets.values()}
        return bool(places or self.shards.items() & other.shards.items())

    def is_of(self, datasets: Sequence[Dataset]) -> bool:
        """Return True if a dataset shares a place or shard."""
        if {*places_of(datasets).values()} & {*self.datasets.values()}:
            return True
        return any(map(self._has_shard_of, datasets))

    def _has_shard_of(self, dataset: Dataset) -> bool:
        try:
            shards = [shard for shard in dataset.shards() if shard in self.shards]
        except ToolkitError:  # the documents are not there yet, or not readable: whoever reads them tells
            return False
        contents = contents_of(dataset, shards)
        if any(self.shards[shard] == content for shard, content in contents.items()):
            return True
        sizes = dataset.sizes() if len(contents) < len(shards) else {}
        unknown = sorted((shard for shard in shards if shard not in contents), key=lambda shard: sizes.get(shard, 0))
        return any(_content(dataset, shard) == self.shards[shard] for shard in unknown[:TRIES])


def _content(dataset: Dataset, shard: str) -> str:
    """Return the content digest of a shard's documents; empty if they cannot be read."""
    with suppress(ToolkitError), dataset.lines(shard, LONGEST, digest=True) as lines:
        for _ in lines:
            pass
        return lines.content or ""
    return ""


def places_of(datasets: Iterable[Dataset]) -> dict[str, str]:
    """Return the places of datasets, by name."""
    places = {}
    for dataset in datasets:
        pattern = dataset.in_place.pattern if dataset.in_place else ""
        name = pattern or dataset.documents.removesuffix("/documents")
        places[name] = normal_path(dataset.documents) + pattern.removeprefix(dataset.documents)
    return places


def contents_of(dataset: Dataset, shards: Sequence[str]) -> dict[str, str]:
    """Return the content digests of shards with a row index. A shard without documents has none."""
    states = threads.for_each(lambda shard: row_index.current(dataset, shard), shards)
    return {shard: state.content for shard, state in zip(shards, states, strict=True) if state and state.rows}


def origin_of(datasets: Sequence[Dataset]) -> Origin:
    """Return the origin of a new output of datasets."""
    contents: dict[str, str] = {}
    for dataset in datasets:
        with suppress(ToolkitError):
            contents |= contents_of(dataset, least(dataset.shards()))
    return Origin(datasets=places_of(datasets), shards={shard: contents[shard] for shard in least(contents)})


def union(origins: Iterable[Origin]) -> Origin:
    """Return the common origin of several outputs."""
    listed = list(origins)
    shards = {shard: content for origin in listed for shard, content in origin.shards.items()}
    return Origin(
        datasets={name: place for origin in listed for name, place in origin.datasets.items()},
        shards={shard: shards[shard] for shard in least(shards)},
    )


def least(shards: Iterable[str]) -> list[str]:
    """Return the shards to name in an origin, sorted."""
    return sorted(sorted(shards, key=lambda shard: xxhash.xxh3_64_intdigest(shard.encode()))[:MOST])


def check(place: str, origin: Origin | None, new: Origin | Sequence[Dataset], goes: str, *, overwrite: bool) -> str:
    """Check the dataset of an existing output; return a notice if it is replaced.

    Args:
        place: Path of the output, for messages.
        origin: Origin of the output; None if there is none, or it is not ours.
        new: Datasets, or origin, of the new output.
        goes: Part of a sentence about the replaced files.
        overwrite: True to replace it in any case.

    Raises:
        ConfigError: if it was made from another dataset, and may not be replaced.
    """
    if origin is None or (origin.meets(new) if isinstance(new, Origin) else origin.is_of(new)):
        return ""
    if overwrite:
        return f"{place}: replaces what was made from {origin}: {goes}"
    mine = new if isinstance(new, Origin) else Origin(datasets=places_of(new))
    raise ConfigError(
        f"{place}: expected nothing, or what was made from {mine}, got what was made from {origin}: {goes} would be "
        "replaced; choose another folder or file, or add --overwrite"
    )


def path_of(folder: str) -> str:
    return paths.join(folder, paths.BOOKKEEPING, "origins.json")


class _Origins(msgspec.Struct, frozen=True):
    origins: dict[str, Origin]


def load(folder: str, name: str = OUTPUT) -> Origin | None:
    """Return the recorded origin of an output, or its file."""
    origins = json_files.load(path_of(folder), _Origins)
    return origins.origins.get(name) if origins else None


def save(folder: str, origins: Mapping[str, Origin]) -> None:
    """Record origins beside those of other names."""
    result = json_files.load(path_of(folder), _Origins)
    before: dict[str, Any] = result.origins if result else {}
    if before | {**origins} != before:
        json_files.save(path_of(folder), _Origins(dict(sorted({**before, **origins}.items()))))
