"""The counts of all files, put together from those that are kept of each."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice

from toolkit.inspect.stats import groups
from toolkit.inspect.stats.distributions import Distribution, Distributions
from toolkit.inspect.stats.lengths import Lengths, LengthsByLabel
from toolkit.inspect.stats.one_file import CountJob, Record
from toolkit.inspect.stats.samples import Sample, chosen
from toolkit.storage import json_files

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
