"""Records of sets of duplicates: in the record log of the dataset, and below ``.toolkit/dedup/SET/``.

``signatures SET`` SHARD    a `SignatureRecord`: written last, forgotten before its files are replaced
``signatures/SHARD/NAME``   the files of a kind, and `NAMES`
``decisions-KEY/…``         what a kind's `resolve` has written
``resolved SET``            a `Resolution`: which signatures the fates were made from
``resolved SET`` SHARD      a `ResolvedShard`: what became of a shard
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal

import msgspec

from toolkit.config.settings import ConfigStruct
from toolkit.data import record_logs
from toolkit.data.dataset import Dataset
from toolkit.data.row_index import ShardState
from toolkit.exchange.checksummed import damaged, read_sealed, write_sealed
from toolkit.execution.executors import Run
from toolkit.session import cached
from toolkit.storage import store_of
from toolkit.storage.freshness import Artifact, FileRecord, state, stored_sha256
from toolkit.storage.paths import absolute, join, parent_of
from toolkit.storage.record_log import RecordKey

FOLDER = "dedup"
"""Folder of these sets in the bookkeeping of a dataset."""

NAMES = "names.jsonl.gz"
"""Of each row ``{"source":…,"id":…}``, in order: what is needed of the documents to write attributes."""


class FileState(msgspec.Struct, frozen=True):
    """A file of a shard's signatures: stored bytes, stamp (the quick test), and sha256 (hex)."""

    size: int
    stamp: str
    sha256: str


class SignatureRecord(Artifact, frozen=True, kw_only=True):
    """The record of the complete signatures of a shard.

    Attributes:
        input: the version of the documents.
        settings: Settings of the set.
        reads: content digest of the same shard in each set that was read.
        files: Files that were written, by name.
        rows: documents.
        compared: Number of competing rows.
        counts: Counts of the kind.
        details: Details of the kind: what it needs to know of its files.
    """

    version: Literal[2] = 2  # 1 had files without seals
    input: ShardState
    settings: dict[str, Any]
    reads: dict[str, str]
    files: dict[str, FileState]
    rows: int
    compared: int
    counts: dict[str, int]
    details: Any = None

    @property
    def lineage(self) -> dict[str, str]:
        return {"": self.input.content, **self.reads}

    @property
    def digest(self) -> str:
        """Return a digest of these signatures."""
        files = {name: file.sha256 for name, file in self.files.items()}
        return msgspec.json.encode([self.input.content, files, self.details]).decode()


class Model(msgspec.Struct, frozen=True):
    """A model, fitted to documents and applied to later ones: the path of its file, and its digest."""

    path: str
    digest: str


class Resolution(Artifact, frozen=True, kw_only=True):
    """The record of a resolution.

    Attributes:
        key: digest of settings and of the signatures of all shards; names the folder of the fates.
        counts: Counts of the kind, for people.
        notes: sentences of the kind, for people.
        files: a digest of the names of the files of fates.
        tables: Tables of the kind, for people, by name.
        model: Fitted model, if there is one.
    """

    version: int = 1
    key: str
    counts: dict[str, int] = {}
    notes: list[str] = []
    tables: dict[str, list[dict[str, Any]]] = {}
    model: Model | None = None
    files: str = ""

    @property
    def lineage(self) -> dict[str, str]:
        return {"": self.key, "files": self.files, "fit": self.model.digest if self.model else ""}


class ResolvedShard(msgspec.Struct, frozen=True):
    """The digests of a shard's documents, and of the decisions about them."""

    content: str
    fate: str


class SignedShard(ConfigStruct):
    """A shard with complete signatures, as data for a worker.

    Attributes:
        dataset: Dataset of the shard.
        folder: Folder of the signatures of all its shards.
        shard: its relative path.
        number: its place among the shards that are resolved together.
        record: Record of the signatures.
        own: True if it gets fates; False for one of another dataset that is only compared against.
    """

    dataset: Dataset
    folder: str
    shard: str
    number: int
    record: SignatureRecord
    own: bool = True

    def path(self, name: str) -> str:
        """Return the path of one of the kind's files."""
        return join(self.folder, self.shard, name)


SCRATCH = "work-"
"""Prefix of folders whose files serve only the tasks of a resolution."""

SHARDS = "shards"


class _ListedShard(ConfigStruct):
    """A signed shard, without its dataset."""

    folder: str
    shard: str
    number: int
    record: SignatureRecord
    own: bool


def save_shards(run: Run, folder: str, shards: Sequence[SignedShard]) -> None:
    """Write signed shards to a folder, by number, for tasks."""
    from toolkit.exchange.scatter import scatter_sections, settle

    sections = {
        shard.number: msgspec.json.encode(
            _ListedShard(shard.folder, shard.shard, shard.number, shard.record, shard.own)
        )
        for shard in shards
    }
    settle(run, folder, SHARDS, scatter_sections(join(folder, SHARDS), len(shards), sections))


class NumberedShard(msgspec.Struct, frozen=True):
    """A signed shard of `save_shards`: its dataset, its number, and the folder.

    So a task is small: it holds no record.
    """

    dataset: Dataset
    number: int
    folder: str

    def load(self) -> SignedShard:
        """Return the shard."""
        from toolkit.exchange.scatter import gather_sections

        return _signed(self.dataset, gather_sections(self.folder, SHARDS, self.number)[0])


class NumberedShards(msgspec.Struct, frozen=True):
    """Several signed shards of one dataset: the number of the first, and of the first after the last."""

    dataset: Dataset
    first: int
    last: int
    folder: str

    def load(self) -> Iterator[SignedShard]:
        """Yield the shards."""
        from toolkit.exchange.scatter import pieces

        for _, sections in pieces(self.folder, SHARDS, self.first, self.last):
            yield from (_signed(self.dataset, section) for section in sections)


def _signed(dataset: Dataset, section: bytes) -> SignedShard:
    return SignedShard(dataset=dataset, **msgspec.structs.asdict(msgspec.json.decode(section, type=_ListedShard)))


def save_layout(path: str, layout: Any) -> None:
    """Write the layout of a resolution in a folder of a set: a Struct with runs of shards.

    Paths beside the folder are stored as they are from there, so that the dataset can be moved or copied.
    """
    beside = parent_of(parent_of(path)) + "/"
    paths = [
        run.path.removeprefix(beside) if run.path.startswith(beside) else absolute(run.path) for run in layout.runs
    ]
    runs = [msgspec.structs.replace(run, path=path) for run, path in zip(layout.runs, paths, strict=True)]
    write_sealed(path, msgspec.msgpack.encode(msgspec.structs.replace(layout, runs=runs)))
    load_layout.cache_clear()


@cached(8)
def load_layout(path: str, type: Any) -> Any:
    """Return the content of `save_layout`, with present paths; read once in a process."""
    try:
        result = msgspec.msgpack.decode(read_sealed(path), type=type)
    except FileNotFoundError:
        raise damaged(path) from None
    beside = parent_of(parent_of(path)) + "/"
    runs = [
        run if run.path == absolute(run.path) else msgspec.structs.replace(run, path=beside + run.path)
        for run in result.runs
    ]
    return msgspec.structs.replace(result, runs=runs)


def set_folder(dataset: Dataset, set_name: str) -> str:
    """Return the folder of a set of the whole corpus."""
    return join(dataset.bookkeeping, FOLDER, set_name)


def set_names(dataset: Dataset) -> list[str]:
    """Return the names of the sets of the whole corpus; those of unfinished models, too."""
    root = join(dataset.bookkeeping, FOLDER)
    return store_of(root).folders(root)


def signatures_folder(dataset: Dataset, set_name: str) -> str:
    return join(set_folder(dataset, set_name), "signatures")


def place_of(set_name: str, shard: str) -> RecordKey:
    """Return the key of a shard's signatures in the record log."""
    return f"signatures {set_name}", shard


def load_signatures(dataset: Dataset, set_name: str, shard: str) -> SignatureRecord | None:
    """Return the record of a shard's signatures, if its files are unchanged; else None."""
    record = load_record(dataset, set_name, shard)
    return record if state(record, files=files_in(dataset, set_name, shard)).is_done else None


def load_record(dataset: Dataset, set_name: str, shard: str) -> SignatureRecord | None:
    """Return the record of a shard's signatures, without checking files."""
    return record_logs.of(dataset).load(*place_of(set_name, shard), SignatureRecord)


def files_in(dataset: Dataset, set_name: str, shard: str) -> Callable[[SignatureRecord], list[FileRecord]]:
    """Return a function to list the files of a signature record."""
    folder = join(signatures_folder(dataset, set_name), shard)

    def files(record: SignatureRecord) -> list[FileRecord]:
        return [
            FileRecord(join(folder, name), file.size, file.stamp, file.sha256, stored_sha256)
            for name, file in record.files.items()
        ]

    return files


def load_resolution(dataset: Dataset, set_name: str) -> Resolution | None:
    """Return the resolution of a set; None of a set that is not made of the whole dataset."""
    return record_logs.of(dataset).load(f"resolved {set_name}", "", Resolution)


def load_resolved(dataset: Dataset, set_name: str) -> dict[str, ResolvedShard]:
    """Return the resolved shards, sorted."""
    log, kind = record_logs.of(dataset), f"resolved {set_name}"
    result = ((shard, log.load(kind, shard, ResolvedShard)) for shard in log.keys(kind) if shard)
    return {shard: resolved for shard, resolved in result if resolved}


def save_resolution(
    dataset: Dataset, set_name: str, resolution: Resolution, shards: Mapping[str, ResolvedShard]
) -> None:
    """Save a resolution in one step, after older records are forgotten."""
    before, kind = load_resolved(dataset, set_name), f"resolved {set_name}"
    records: dict[RecordKey, bytes | None] = {(kind, shard): None for shard in before.keys() - shards.keys()}
    changed = (shard for shard, resolved in shards.items() if before.get(shard) != resolved)
    records |= {(kind, shard): msgspec.json.encode(shards[shard]) for shard in changed}
    record_logs.of(dataset).save({**records, (kind, ""): msgspec.json.encode(resolution)})


DECISIONS = "decisions-"
"""How the name of a folder of decisions begins."""


def fates_folder(dataset: Dataset, set_name: str, key: str) -> str:
    return join(set_folder(dataset, set_name), DECISIONS + key)
