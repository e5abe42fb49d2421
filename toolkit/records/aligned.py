"""The record of what a set of aligned values was made from.

``.toolkit/sets/<set>/aligned.json``  an `Aligned`, written before the first shard that is made from it
"""

import msgspec
import xxhash

from toolkit.data.dataset import Dataset
from toolkit.errors import StaleError
from toolkit.records.sets import set_folder
from toolkit.storage import Stat
from toolkit.storage.json_files import load
from toolkit.storage.paths import join, stat_each
from toolkit.storage.reading import stored_digest


class AlignedInput(msgspec.Struct, frozen=True):
    """A file with values: its path, stored bytes, stamp (the quick test), and xxh3-128 (hex) of what is stored."""

    path: str
    size: int
    stamp: str
    content: str


class Aligned(msgspec.Struct, frozen=True, kw_only=True):
    """What a set was made from, in order, and what was found: counts by name."""

    version: int = 1
    inputs: list[AlignedInput]
    counts: dict[str, int] = {}

    @property
    def contents(self) -> list[str]:
        """Return the digests of the inputs, by which two versions are told apart."""
        return [each.content for each in self.inputs]


def path_of(dataset: Dataset, set_name: str) -> str:
    return join(set_folder(dataset, set_name), "aligned.json")


def load_aligned(dataset: Dataset, set_name: str) -> Aligned | None:
    """Return what a set was made from; None of other sets."""
    return load(path_of(dataset, set_name), Aligned)


def changed_input(found: Aligned) -> str:
    """Return the path of an input that is another now; one that is not there any more has not changed."""
    now = stat_each([each.path for each in found.inputs])
    for was, there in zip(found.inputs, now, strict=True):
        if there is None or Stat(was.size, was.stamp) == there:
            continue
        if was.size != there.size or stored_digest(was.path, xxhash.xxh3_128()) != was.content:
            return was.path
    return ""


def check_inputs(dataset: Dataset, set_name: str) -> None:
    """Check that a set of aligned values was made from its inputs as they are now; other sets are fine.

    Raises:
        StaleError: naming the input that has changed.
    """
    found = load_aligned(dataset, set_name)
    if found is not None and (path := changed_input(found)):
        message = f"expected values of {path} as it is now, got those of an earlier version; run `toolkit align`"
        raise StaleError(message, path=dataset.attribute_path(set_name, ""))
