"""The record of what a set of aligned values was made from.

``aligned`` SET  an `Aligned`, in the record log of the dataset, written before the first shard that is made from it
"""

import msgspec

from toolkit.data import record_logs
from toolkit.data.dataset import Dataset
from toolkit.storage.artifact import FileRecord, files_state, stored_xxh3
from toolkit.storage.paths import stat_each
from toolkit.storage.record_log import Place


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


def place_of(set_name: str) -> Place:
    """Return the place of what a set was made from, in the record log of its dataset."""
    return "aligned", set_name


def load_aligned(dataset: Dataset, set_name: str) -> Aligned | None:
    """Return what a set was made from; None of other sets."""
    return record_logs.of(dataset).load(*place_of(set_name), Aligned)


def changed_input(aligned: Aligned) -> str:
    """Return the path of an input that is another now; one that is not there any more has not changed."""
    paths = [each.path for each in aligned.inputs]
    there = {path: found for path, found in zip(paths, stat_each(paths), strict=True) if found}
    files = [FileRecord(each.path, each.size, each.stamp, each.content, stored_xxh3) for each in aligned.inputs]
    return files_state((file for file in files if file.path in there), stat=there.get).changed
