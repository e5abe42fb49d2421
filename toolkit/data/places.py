"""Places that a configuration reads and writes: none that is written may lie in, above or on another."""

import os
from collections.abc import Iterable
from dataclasses import dataclass

from toolkit.data.dataset import Dataset
from toolkit.errors import ConfigError
from toolkit.storage import store_of


@dataclass(frozen=True)
class Place:
    """A folder (or a file) of a configuration.

    Attributes:
        path: as it is written.
        what: it is, for messages: ``the output``.
        where: it is written, for messages: file, line, keys.
        is_flat: True if only what lies in the folder itself counts, not what lies in folders below.
    """

    path: str
    what: str
    where: str = ""
    is_flat: bool = False


def normal(path: str) -> str:
    """Return the one spelling of a path that two can be compared by: absolute, without a slash at its end.

    Local paths are followed through symbolic links.
    """
    return store_of(path).normal(path)


def is_within(inner: str, outer: str) -> bool:
    """Return whether a path is another one or lies below it; both as `normal` gives them."""
    return inner == outer or inner.startswith(outer.rstrip("/") + "/")


def check_folder(place: Place) -> None:
    """Raise ConfigError for a path that names no folder: empty, or with NUL."""
    if not place.path.strip() or "\0" in place.path:
        raise ConfigError(f"{_at(place)}expected a folder for {place.what}, got {place.path!r}")


def check_apart(written: Iterable[Place], others: Iterable[Place] = ()) -> None:
    """Check that places that are written are apart from each other and from other places.

    Args:
        written: each is held against all places before it, and all others.
        others: which may lie in one another.

    Raises:
        ConfigError: if a path is empty, or one is, holds or lies in another.
    """
    known = [(place, normal(place.path)) for place in others]
    for place in written:
        check_folder(place)
        path = normal(place.path)
        for other, result in known:
            below = is_within(path, result) and not (other.is_flat and path != result)
            if below or is_within(result, path):
                raise ConfigError(
                    f"{_at(place)}expected a path separate from {other.path} ({other.what}), got "
                    f"{place.path} for {place.what}; choose folders of which none is inside of the other"
                )
        known.append((place, path))


class Inside:
    """Folders that no input may lie in; asked for many files."""

    def __init__(self, places: Iterable[Place]) -> None:
        self._places = [(place, normal(place.path)) for place in places]
        self._known: dict[str, Place | None] = {}

    def of(self, path: str) -> Place | None:
        """Return the place that a file lies in; None if in none of them."""
        folder = os.path.dirname(path)
        if folder not in self._known:
            result = normal(folder or ".")
            self._known[folder] = next((place for place, root in self._places if is_within(result, root)), None)
        return self._known[folder]


def _at(place: Place) -> str:
    return f"{place.where}: " if place.where else ""


def of_dataset(dataset: Dataset, name: str = "") -> list[Place]:
    """Return the folders of a dataset: its documents, its attributes, and the records that lie outside both.

    Records that a stream keeps in the work folder of the output are part of that.
    """
    whose = f" of the stream {name}" if name else ""
    documents = Place(dataset.documents, f"the documents{whose}", is_flat=dataset.is_flat)
    places = [documents, Place(dataset.attributes, f"the attributes{whose}")]
    return places if dataset.notes else [*places, Place(dataset.bookkeeping, f"the records{whose}")]


def check_dataset(dataset: Dataset, where: str) -> None:
    """Check that documents and attributes are apart.

    Attributes may lie below documents where globs say which files are documents, or these are in place and lie flat.

    Raises:
        ConfigError: if one would be taken for the other.
    """
    documents, attributes = normal(dataset.documents), normal(dataset.attributes)
    chosen = bool(dataset.include or dataset.exclude or dataset.is_flat) and documents != attributes
    if is_within(documents, attributes) or (is_within(attributes, documents) and not chosen):
        raise ConfigError(
            f"{where}: expected separate folders for attributes and documents, got "
            f"{dataset.attributes} and {dataset.documents}"
        )
