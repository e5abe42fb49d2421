"""Which file each document was ingested from: one has a file of annotations for each."""

from collections import Counter
from collections.abc import Iterable, Sequence

from toolkit.config.settings import ConfigStruct
from toolkit.data.dataset import Dataset
from toolkit.records import ingested
from toolkit.storage.compression import SUFFIXES as COMPRESSIONS
from toolkit.storage.paths import strip_suffix


class RawFile(ConfigStruct):
    """A file that documents were ingested from.

    Attributes:
        path: as it was given to ingest; of documents that were not ingested here, that of their shard.
        name: its place among all, without suffixes: ``2014-41/de/00055``.
        rows: documents of it; None if those of the shards are all its.
    """

    path: str
    name: str
    rows: int | None = None


class Origin(ConfigStruct):
    """Shards, and the files that their documents are from, both in order.

    Attributes:
        shards: of them.
        wanted: of these, those that are looked at.
        files: of which each has some documents, one behind the other.
    """

    shards: list[str]
    wanted: list[str]
    files: list[RawFile]


def origins(dataset: Dataset, shards: Sequence[str]) -> list[Origin]:
    """Return where the documents of shards are from.

    Raises:
        DataError: if records of inputs are damaged.
    """
    there = set(shards)
    records = ingested.load_all(dataset)
    sources = {record.settings.get("source") or "" for record in records.values()}
    below = f"{sources.pop()}/" if len(sources) == 1 else ""  # the folder of the only source says nothing
    found: list[Origin] = []
    for key, record in records.items():
        wanted = [shard for shard in sorted(record.shards) if shard in there]
        if wanted:
            files = [RawFile(each.input, each.key.removeprefix(below), each.rows) for each in record.inputs]
            files = files or [RawFile(record.input, key.removeprefix(below))]
            found.append(Origin(sorted(record.shards) if record.inputs else wanted, wanted, files))
            there -= {*wanted}
    for shard in sorted(there):
        file = dataset.file_of(shard)
        found.append(Origin([shard], [shard], [RawFile(dataset.shard_path(shard), file)]))
    return _without_suffixes(found)


def _without_suffixes(found: Iterable[Origin]) -> list[Origin]:
    """Return the same with names without suffixes, but where two would be called alike."""
    listed = list(found)
    times = Counter(_stem(file.name) for origin in listed for file in origin.files)
    for origin in listed:
        for i, file in enumerate(origin.files):
            stem = _stem(file.name)
            name = stem if times[stem] == 1 else file.name
            origin.files[i] = RawFile(file.path, name, file.rows)
    return listed


def _stem(name: str) -> str:
    """Return a name without the suffix of its compression, and another one.

    >>> _stem("2014-41/de/00055.jsonl.gz"), _stem("a.b/c")
    ('2014-41/de/00055', 'a.b/c')
    """
    folder, slash, name = strip_suffix(name, tuple(COMPRESSIONS)).rpartition("/")
    stem, dot, _ = name.rpartition(".")
    return folder + slash + (stem if dot and stem else name)
