"""The counts of each file, as they are kept, and those of all files, put together from them."""

import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice

from toolkit.errors import ConfigError, ToolkitError
from toolkit.inspect.stats import groups
from toolkit.inspect.stats.distributions import Distribution, Distributions
from toolkit.inspect.stats.groups import Sample, chosen
from toolkit.inspect.stats.lengths import Lengths, LengthsByLabel
from toolkit.inspect.stats.one_file import VERSION, CountJob, Record
from toolkit.inspect.targets import Home
from toolkit.mix.settings import work_folder
from toolkit.storage import json_files, store_of
from toolkit.storage.models import cache_folder
from toolkit.storage.paths import BOOKKEEPING, join, parent_of, remove_empty_folders, remove_tree

_FORMER = re.compile(r"[0-9a-f]{32}|v(\d+)")


def base_folder(home: Home) -> str:
    """Return the bookkeeping folder that counts of what lies in a home are kept below; the cache for files of others.

    Raises:
        ConfigError: if it is the cache of a user who has none.
    """
    if home.kind == "files":
        try:
            return cache_folder()
        except RuntimeError:
            raise ConfigError("expected a home folder, got a user without one; set TOOLKIT_CACHE") from None
    return work_folder(home.root) if home.kind == "output" else join(home.root, BOOKKEEPING)


def counts_folder(folder: str) -> str:
    """Return the folder below a bookkeeping folder for what this version counts."""
    return join(folder, "stats", f"v{VERSION}")


def forget_former(folder: str) -> None:
    """Delete what an earlier version has kept below a bookkeeping folder, which nobody can ask for any more."""
    stats = join(folder, "stats")
    with suppress(ToolkitError, OSError):  # it may not be ours to write in
        former = [name for name in store_of(stats).folders(stats) if _is_former(name)]
        for name in former:
            remove_tree(join(stats, name))
        if former:
            remove_empty_folders(stats, parent_of(folder))


def _is_former(name: str) -> bool:
    found = _FORMER.fullmatch(name)
    return found is not None and int(found[1] or 0) < VERSION


MERGED = 4096
"""Groups that are merged at a time."""


def merged_groups(works: Iterable[CountJob], number: int, folder: str) -> Iterable[groups.Group]:
    """Return the groups of all files for the ``--by`` of that number; folder: for what does not fit into memory."""
    merged = groups.Groups(folder)
    for work in works:
        rows: Iterator[groups.Group] = groups.read(work.groups_path(number))
        while some := list(islice(rows, MERGED)):
            merged.add_sums([key for key, _ in some], [row for _, row in some])
    return merged


@dataclass
class Merged:
    """What is counted of all documents, beside their groups."""

    distributions: list[Distribution] = field(default_factory=list)
    lengths: LengthsByLabel = field(default_factory=dict)
    samples: list[Sample] = field(default_factory=list)


def merged_records(works: Iterable[CountJob]) -> Merged:
    """Return what the records of all files come to."""
    distributions, found = Distributions(), Merged()
    number = 0
    for work in works:
        number = work.settings.samples
        if not (work.settings.attributes or work.settings.lengths or number):
            continue
        if record := json_files.load_strictly(work.record_path, Record):
            distributions.merge(record.distributions)
            for label, each in record.lengths.items():
                found.lengths.setdefault(label, Lengths()).merge(each)
            found.samples = chosen([*found.samples, *record.samples], number)
    found.distributions = distributions.finished()
    return found
