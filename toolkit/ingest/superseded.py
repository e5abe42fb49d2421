"""What was made of inputs that other packs have now: it goes before those are made, or documents would be there twice.

A pack has the name of its first input, so one that begins with another input is another pack. An input that grows gets
a shard of its own; one that shrinks, or gets neighbours, joins a pack.
"""

from collections.abc import Iterable, Sequence

import msgspec

from toolkit.data import row_index
from toolkit.data.dataset import Dataset
from toolkit.ingest.attempts import attempt_path, attempts, load_attempt
from toolkit.ingest.plan import InputToIngest
from toolkit.records import ingested, left_out, sets
from toolkit.records.ingested import InputRecord
from toolkit.storage.paths import remove, remove_empty_folders


class Superseded(msgspec.Struct, frozen=True):
    """An input, or pack, of former runs, of which inputs are in other packs now.

    Attributes:
        key: of its record.
        made: that record, if it was done.
        shards: that it may have.
        by: what is made of one of its inputs now.
    """

    key: str
    made: InputRecord | None
    shards: list[str]
    by: InputToIngest


def find(works: Iterable[InputToIngest], planned: Iterable[InputToIngest], dataset: Dataset) -> list[Superseded]:
    """Return what the works of a run supersede, sorted by record.

    Args:
        works: of the run.
        planned: of all inputs that there are.
        dataset: of the records.
    """
    known = {work.key for work in planned}
    now = {file.key: work for work in works for file in work.files}
    begun_keys = {*attempts(dataset)}
    found = []
    for name in sorted(({*ingested.keys(dataset)} | begun_keys) - known):
        made = ingested.load(dataset, name)
        begun = load_attempt(dataset, name) if name in begun_keys else None
        keys = [each.key for each in made.inputs] if made else []
        keys += begun.keys if begun else []
        if by := next((now[key] for key in keys or [name] if key in now), None):
            shards = {shard for noted in (made, begun) if noted for shard in noted.shards}
            found.append(Superseded(name, made, sorted(shards), by))
    return found


def lost(works: Iterable[InputToIngest], planned: Sequence[InputToIngest], former: Iterable[Superseded]) -> list[str]:
    """Return the paths of inputs that are not there any more and whose documents go, sorted: others of their pack stay.

    Args:
        works: of the run.
        planned: of all inputs that there are.
        former: what the works supersede.
    """
    there = {file.key for work in planned for file in work.files}
    packs = [ingested.load(work.dataset, work.key) for work in works if work.is_pack]
    records = [record for record in (*packs, *(each.made for each in former)) if record]
    return sorted(each.input for record in records for each in record.inputs if each.key not in there)


def forget(former: Iterable[Superseded], dataset: Dataset) -> None:
    """Delete the shards of what is superseded, then its records: killed between, the next run does the rest."""
    listed = list(former)
    forget_shards(dataset, [shard for each in listed for shard in each.shards])
    ingested.forget(dataset, [each.key for each in listed])
    for each in listed:
        if each.made:
            left_out.forget(dataset, each.made)
        remove(attempt_path(dataset, each.key))


def forget_shards(dataset: Dataset, shards: Sequence[str]) -> None:
    """Delete the documents of shards, their row indexes, and their attributes in the sets that we have made."""
    ours = [name for name in dataset.sets() if sets.load_schema(dataset, name) is not None] if shards else []
    row_index.forget(dataset, shards)
    sets.forget_all(dataset, ours, shards)
    for shard in shards:
        places = [(dataset.attribute_path(name, shard), dataset.attributes) for name in ours]
        for path, root in ((dataset.shard_path(shard), dataset.documents), *places):
            remove(path)
            remove_empty_folders(path.rpartition("/")[0], root)
