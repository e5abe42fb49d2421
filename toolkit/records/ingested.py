"""Provides the records of ingested inputs and their shards.

``.toolkit/inputs/``  a record log: an `InputRecord` of each input, or pack, by its key; from the begin of an attempt
                      until its good end an `Attempt` in its place

`toolkit.ingest.inputs` decides by them what is ingested again. A pack has the name of its shard.
"""

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import msgspec
from msgspec.structs import replace

from toolkit.data import record_logs, row_index
from toolkit.data.dataset import Dataset
from toolkit.data.document_fields import OwnTypes
from toolkit.data.record_logs import INGEST, MAKES_INPUTS
from toolkit.errors import DataError, in_words
from toolkit.records.sets import OutputState
from toolkit.storage import store_of
from toolkit.storage.freshness import Artifact
from toolkit.storage.globs import glob_regex
from toolkit.storage.json_files import decode
from toolkit.storage.packed_rows import PackedMap
from toolkit.storage.paths import exists, fixed_part, is_glob, join, missing_reason
from toolkit.storage.record_log import RecordLog

T = TypeVar("T")


def has_rejected(record: "InputRecord") -> bool:
    """Return True if items of an input were rejected."""
    return bool(record.rejects) or any(name.startswith("rejected.") for name in record.counts)


class InputOfPack(msgspec.Struct, frozen=True, kw_only=True):
    """An input of a pack.

    Attributes:
        input: Path of the input.
        key: Name in records (see `toolkit.ingest.plan.InputFile`).
        size, stamp, content: Fields of `InputRecord`.
        rows: Number of its documents.
    """

    input: str
    key: str
    size: int
    stamp: str
    content: str
    rows: int


class InputRecord(Artifact, frozen=True, kw_only=True):
    """The record of an ingested input file, or a pack of them.

    Attributes:
        input: Path; of a pack, those of the first and the last input.
        size, stamp, content: Stored input: the quick test, and xxh3-128. A pack has the sum of the sizes, no stamp, and
            the digest of the inputs' keys and contents.
        settings: Settings of the entry.
        shards: Shards, each with its digest.
        counts: Counts by reason.
        deleted: True if the shards were deleted after the mix.
        entry: Entry of the configuration that the input belongs to, by its name.
        max_rejected: Share of the entry's items that may be bad.
        rejects: Reject file below the bookkeeping folder; empty if there is none.
        salvaged: Remarks on damaged inputs, a sentence each.
        left_out: File of the items without document, below the bookkeeping folder; empty if each item became one; None
            from a version that did not note them.
        inputs: Inputs of a pack, in the order of their documents.
        types: Types to which the own fields of the documents were checked; None without a check.
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
    salvaged: list[str] = []
    left_out: str | None = None
    inputs: list[InputOfPack] = []
    types: OwnTypes | None = None

    @property
    def paths(self) -> list[str]:
        """Return the paths of the inputs, in the order of their documents."""
        return [input_.input for input_ in self.inputs] or [self.input]

    def paths_by_key(self, key: str) -> dict[str, str]:
        """Return the paths of the inputs by their keys; `key` is that of the record."""
        return {input_.key: input_.input for input_ in self.inputs} or {key: self.input}


class Attempt(msgspec.Struct, frozen=True, kw_only=True):
    """An unfinished attempt at an input, with its possible shards.

    Attributes:
        input: Path of the input, or paths of a pack.
        shards: Shards that nobody else may take.
        keys: Keys of the inputs of a pack.
    """

    input: str
    shards: list[str]
    keys: list[str] = []


class _Begun(msgspec.Struct, frozen=True):
    begun: Attempt


def keys(dataset: Dataset) -> Iterator[str]:
    """Yield the keys of all recorded inputs, or packs, sorted."""
    return (key for key, record in record_logs.inputs_of(dataset).items(INGEST) if not _is_attempt(record))


def is_recorded(dataset: Dataset, key: str) -> bool:
    """Return True if an input has a record, even of another version."""
    record = record_logs.inputs_of(dataset).get(INGEST, key)
    return record is not None and not _is_attempt(record)


def attempts(dataset: Dataset) -> dict[str, Attempt]:
    """Return the unfinished attempts, by the keys of inputs, sorted."""
    log = record_logs.inputs_of(dataset)

    def begun() -> dict[str, Attempt]:
        results = {key: _attempt(log, key) for key, record in log.items(INGEST) if _is_attempt(record)}
        return {key: attempt for key, attempt in results.items() if attempt}

    return log.derived(attempts, begun)


def unfinished(dataset: Dataset, among: Collection[str] | None = None) -> list[str]:
    """Return the paths of inputs with an unfinished ingest, sorted; `among` these keys, if given."""
    return sorted(attempt.input for key, attempt in attempts(dataset).items() if among is None or key in among)


def load_attempt(dataset: Dataset, key: str) -> Attempt | None:
    """Return the unfinished attempt at an input, or None. A damaged one gives None and a warning."""
    return _attempt(record_logs.inputs_of(dataset), key)


def _attempt(log: RecordLog, key: str) -> Attempt | None:
    record = log.load(INGEST, key, _Begun) if _is_attempt(log.get(INGEST, key)) else None
    return record.begun if record else None


def _is_attempt(record: bytes | None) -> bool:
    return record is not None and record.startswith(b'{"begun":')


def _record(log: RecordLog, key: str) -> InputRecord | None:
    record = log.get(INGEST, key)
    return None if _is_attempt(record) else log.decoded(INGEST, key, record, InputRecord)


def begin(dataset: Dataset, attempts: Mapping[str, Attempt]) -> None:
    """Record the start of attempts durably, in place of their inputs' records."""
    encoded = {(INGEST, key): msgspec.json.encode(_Begun(attempt)) for key, attempt in attempts.items()}
    record_logs.inputs_of(dataset).save(encoded)


def load(dataset: Dataset, key: str) -> InputRecord | None:
    """Return the record of an input, or None. A damaged one gives None and, once, a warning."""
    return load_told(dataset, key)[0]


def load_told(dataset: Dataset, key: str) -> tuple[InputRecord | None, bool]:
    """Return the record of an input, and True if it is damaged."""
    log = record_logs.inputs_of(dataset)
    record = _record(log, key)
    raw = None if record else log.get(INGEST, key)
    return record, record is None and (bool(log.damaged) or not (raw is None or _is_attempt(raw)))


def save(dataset: Dataset, key: str, record: InputRecord) -> None:
    """Save the record of an input with durable documents."""
    record_logs.inputs_of(dataset).save({(INGEST, key): msgspec.json.encode(record)})


def forget(dataset: Dataset, keys: Iterable[str]) -> None:
    """Forget the records of inputs, before their documents are replaced."""
    record_logs.inputs_of(dataset).forget((INGEST, key) for key in keys)


def shards_now(dataset: Dataset, keys: Iterable[str]) -> set[str]:
    """Return the shards of inputs by current records and attempts. Other runs may work on them."""
    log = record_logs.open_inputs(dataset)
    result = (_record(log, key) or _attempt(log, key) for key in keys)
    return {shard for item in result if item for shard in item.shards}


class FileSize(msgspec.Struct, frozen=True, gc=False):
    """The stored bytes of a shard."""

    size: int


class BriefInput(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """The most used fields of an `InputRecord`.

    Attributes:
        settings: Place of settings and types among the summary's examples.
        is_plain: True for one file without rejected and damaged items.
    """

    input: str
    size: int
    stamp: str
    settings: Any
    shards: dict[str, FileSize]
    rows: int
    counts: dict[str, int]
    deleted: bool = False
    entry: str = ""
    max_rejected: float = 0.1
    rejects: str = ""
    is_plain: bool = False


class _DecodedInput(InputRecord, frozen=True, kw_only=True):
    """A record with encoded settings and types, for a summary."""

    settings: msgspec.Raw  # type: ignore[assignment]
    types: msgspec.Raw = msgspec.Raw(b"null")  # type: ignore[assignment]


class InputExample(NamedTuple):
    """The first input with some settings and types of own fields."""

    input: str
    settings: dict[str, Any]
    types: OwnTypes | None


class InputsSummary:
    """The facts about all inputs, collected in one pass.

    Attributes:
        damaged: Messages about damaged records.
        items: Items of the inputs.
        salvaged: Remarks on damaged inputs.
        examples: First input with each settings and types.
        has_packs: True if an input is a pack.
        inputs: Undamaged inputs by key, sorted.
    """

    def __init__(self, dataset: Dataset) -> None:
        from toolkit.records.left_out import Items  # which needs this module

        self.items, self.has_packs = Items(), False
        self.damaged, self.salvaged, self.examples = list[str](), list[str](), list[InputExample]()
        self._places: dict[tuple[bytes, bytes], int] = {}
        self.inputs = PackedMap(BriefInput, self._collected(dataset))

    def _collected(self, dataset: Dataset) -> Iterator[tuple[str, BriefInput]]:
        for key, record in _scan(dataset, lambda encoded: decode(encoded, _DecodedInput)):
            if isinstance(record, str):
                self.damaged.append(record)
                continue
            self.items.add(record)
            self.salvaged += record.salvaged
            self.has_packs |= bool(record.inputs)
            settings = bytes(record.settings), bytes(record.types)
            if settings not in self._places:
                types = msgspec.json.decode(settings[1], type=OwnTypes | None)
                self._places[settings] = len(self.examples)
                self.examples.append(InputExample(record.input, decode(settings[0], dict[str, Any]), types))
            is_plain = not (record.inputs or record.salvaged or has_rejected(record))
            brief = msgspec.convert(record, BriefInput, from_attributes=True)
            yield key, replace(brief, settings=self._places[settings], is_plain=is_plain)


def summary(dataset: Dataset) -> InputsSummary:
    """Return the facts about all inputs, damaged ones apart; they are kept until records are written or read anew."""
    return record_logs.inputs_of(dataset).derived(InputsSummary, lambda: InputsSummary(dataset))


def undamaged_summary(dataset: Dataset) -> InputsSummary:
    """Return the facts about all inputs.

    Raises:
        DataError: if records are damaged, naming all files that are: nobody knows which shards there should be.
    """
    result = summary(dataset)
    if result.damaged:
        raise DataError("\n".join(result.damaged))
    return result


def load_all(dataset: Dataset) -> Iterator[tuple[str, InputRecord]]:
    """Return keys and records of all inputs, sorted by key; errors as of `undamaged_summary`."""
    undamaged_summary(dataset)
    return load_others(dataset)


def load_undamaged(dataset: Dataset) -> Iterator[InputRecord]:
    """Yield the undamaged records of all inputs, one at a time."""
    return (record for _, record in load_others(dataset))


def load_others(
    dataset: Dataset, is_known: Callable[[str], bool] = lambda key: False
) -> Iterator[tuple[str, InputRecord]]:
    """Yield keys and records of undamaged inputs; known ones are left out undecoded."""
    records = _scan(dataset, lambda encoded: decode(encoded, InputRecord), is_known)
    return ((key, record) for key, record in records if not isinstance(record, str))


def _scan(
    dataset: Dataset, decoded: Callable[[bytes], T], is_known: Callable[[str], bool] = lambda key: False
) -> Iterator[tuple[str, T | str]]:
    """Yield the key and the record of each input; a message for each that is damaged, or each damaged file."""
    log = record_logs.inputs_of(dataset)
    for fault in log.damaged.values():
        yield "", f"{fault}; {MAKES_INPUTS}"
    for key, record in log.items(INGEST):
        if _is_attempt(record) or is_known(key):
            continue
        try:
            yield key, decoded(record)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            expected = f"expected a record of this version of the toolkit for the input {key}"
            yield key, f"{log.folder}: {expected}, got: {in_words(str(error))}; {MAKES_INPUTS}"


def check_once(dataset: Dataset) -> None:
    """Check inputs for two packs, or shards. An input may be in two while packs are made anew.

    Raises:
        DataError: naming the shards of both.
    """
    first: dict[str, str] = {}
    for name, record in load_all(dataset):
        for key in [input_.key for input_ in record.inputs] or [name]:
            if (before := first.setdefault(key, name)) != name:
                inputs = dict(summary(dataset).inputs.items())
                shards = [dataset.shard_path(min(inputs[item].shards)) for item in (before, name)]
                raise DataError(
                    f"expected the documents of each input once, got those of {key} here and in "
                    f"{shards[1]}: packs have changed, and not all were made again; run `toolkit ingest`",
                    path=shards[0],
                )


def deleted_shards(dataset: Dataset) -> list[str]:
    """Return the shards with documents deleted after the mix, sorted."""
    return sorted(shard for input_ in summary(dataset).inputs.values() if input_.deleted for shard in input_.shards)


# --- shards that are gone ---------------------------------------------------------------------------------------------


def lost_shards(
    dataset: Dataset,
    shards: Sequence[str],
    inputs: Iterable[tuple[str, BriefInput]],
    concern: Callable[[str], bool] = lambda shard: True,
) -> dict[str, str]:
    """Return messages about known shards without documents, by shard, sorted.

    Args:
        dataset: Dataset of the documents.
        shards: Existing shards, sorted.
        inputs: Keys and shards of inputs.
        concern: Function that returns True for relevant shards.
    """
    lost = dict[str, str]()

    def is_there(shard: str) -> bool:
        return shard in shards[(place := bisect_left(shards, shard)) : place + 1]

    for key, record in inputs:
        for shard in record.shards:
            if not is_there(shard) and concern(shard) and _is_gone(dataset, shard):
                path = dataset.shard_path(shard)
                got = "`run --per-shard` has deleted them" if record.deleted else f"got {missing_reason(path)}"
                lost[shard] = (
                    f"{path}: expected the documents of {record.input}, {got}; run `toolkit ingest`, or "
                    f"`toolkit clean --forget {key}` to remove what is left of it"
                )
    root = row_index.root_of(dataset)
    indexed = record_logs.of(dataset).items(record_logs.ROWS) if store_of(dataset.documents).can_list else ()
    for shard, _ in indexed:
        if is_there(shard) or shard in lost or not concern(shard):
            continue
        state = row_index.recorded(dataset, shard)
        if state and (state.root, state.reader) == (root, row_index.reader_of(dataset)) and _is_gone(dataset, shard):
            path = dataset.shard_path(shard)
            lost[shard] = (
                f"{path}: expected the documents that were there before, got {missing_reason(path)}; restore the "
                f"file, or run `toolkit clean --forget {shard}` to remove what is left of it"
            )
    return dict(sorted(lost.items()))


def _is_gone(dataset: Dataset, shard: str) -> bool:
    """Return True for a shard without a file, except excluded ones."""
    file, pattern = dataset.file_of(shard), dataset.in_place.pattern if dataset.in_place else ""
    inside = pattern[len(fixed_part(pattern)) :].lstrip("/")
    if not dataset.admits(file) or (is_glob(pattern) and not glob_regex(inside).match(file)):
        return False
    if pattern and dataset.is_flat and not is_glob(pattern) and join(dataset.documents, file) != pattern:
        return False  # the path is that of another file
    return not exists(dataset.shard_path(shard))  # another run may have just ingested it
