"""Samples: an exact number of documents, of all or by strata, reproducible.

Step 1 writes for each shard the key, the stratum and the split of each row:

``rows.bin``   uint64 keys of all rows, then uint32 strata, then uint8 splits; little-endian, sealed

Documents with the least keys of their stratum are chosen; `toolkit.exchange.thresholds` finds the k-th least one. A key
is the hash of source and id, which is as good as random, or, where documents have weights, -log(u) / weight of it, with
which the k least are a weighted sample without replacement (Efraimidis and Spirakis, Weighted random sampling with a
reservoir, 2006). Shard and row decide between documents with equal keys: those with the same id, and rare collisions.

Strata give equal, proportional or given numbers of documents. Shares become whole numbers by the largest remainder
(Hamilton's method), ties by the label, so that the numbers add up exactly, in whatever order strata come.

Copies of samples: a list of ids, or the chosen documents as they are, in one file or in one for each shard.

What is written is noted in ``.toolkit/dedup/SET/copies.json``: it is written again only if something else was chosen,
or a file is not what was written; and files of a sample that is drawn otherwise are deleted.
"""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from fractions import Fraction
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

import msgspec
import numpy as np

from toolkit.config.settings import ConfigStruct
from toolkit.data import line_index
from toolkit.data.dataset import Dataset
from toolkit.errors import ConfigError, DataError
from toolkit.exchange.checksummed import read_sealed, write_sealed
from toolkit.exchange.thresholds import Keys, KeySource, find, in_groups
from toolkit.execution.executors import Report, Run
from toolkit.rules.rule import document_hash, sample_hash
from toolkit.storage import Stat, json_files, store_of
from toolkit.storage.compression import compression_of, compressor_for
from toolkit.storage.freshness import Artifact, FileRecord
from toolkit.storage.outputs import RowOutput, write_file
from toolkit.storage.paths import exists, is_folder, join, list_files, remove
from toolkit.text.kernels.signatures import Array
from toolkit.whole_corpus import expressions
from toolkit.whole_corpus.expressions import GroupNumbers
from toolkit.whole_corpus.kind import Decisions, Files, Kind, Query, ResolveJob, Signer, TextBlock
from toolkit.whole_corpus.records import NumberedShards, SignedShard, set_folder
from toolkit.whole_corpus.sign import names_of

FILE = "rows.bin"
OUT = 2**32 - 1
"""The stratum of a row that cannot be chosen."""

_BYTES = 8 + 4 + 1


class Strata(NamedTuple):
    """Strata of a shard, as recorded: their labels, and the number of documents of each."""

    labels: list[str]
    counts: list[int]


def strata_of(signed: SignedShard) -> Strata:
    """Return the strata of a shard."""
    return msgspec.convert(signed.record.details, Strata)


class ShardRows(NamedTuple):
    """The rows of a shard, in order.

    Attributes:
        keys: uint64.
        strata: uint32, numbers of the shard's own labels; `OUT` for a row that cannot be chosen.
        splits: uint8, numbers of the splits, in their order.
    """

    keys: Array
    strata: Array
    splits: Array


def encode_rows(rows: ShardRows) -> bytes:
    """Return the content of the file."""
    data = rows.keys.astype("<u8").tobytes() + rows.strata.astype("<u4").tobytes()
    return data + rows.splits.astype("u1").tobytes()


def load_rows(signed: SignedShard) -> ShardRows:
    """Return the rows of a shard.

    Raises:
        DataError: if the file is not what was written.
    """
    count = signed.record.rows
    data = read_sealed(signed.path(FILE), 0, count * _BYTES)
    return ShardRows(
        np.frombuffer(data, "<u8", count),
        np.frombuffer(data, "<u4", count, 8 * count),
        np.frombuffer(data, "u1", count, 12 * count),
    )


def weighted_key(key: int, weight: float) -> int:
    """Return the key of a weighted document: ordered bits of a double."""
    exponential = -math.log((key + 0.5) / 2.0**64)
    return int(np.float64(max(exponential, 0.0) / weight).view(np.uint64))


def split_of(seed: str, value: Any, bounds: Array) -> int:
    """Return the number of the split of a value: of one hash for all with that value.

    Args:
        seed: Seed of the sample.
        value: whatever JSON has.
        bounds: End of the share of each split.
    """
    drawn = sample_hash(f"split {seed}", "", msgspec.json.encode(value, order="sorted").decode()) / 2.0**64
    shares = np.flatnonzero(np.diff(bounds, prepend=0.0))
    return min(int(np.searchsorted(bounds, drawn, side="right")), int(shares[-1]))


Short = Literal["redistribute", "report"]


class Quota(NamedTuple):
    """The quota of a stratum.

    Attributes:
        target: documents that it should give.
        size: documents that it gives: fewer where it has no more, more where others have too few.
    """

    target: int
    size: int


def equal_quotas(counts: Mapping[str, int], total: int, short: Short) -> dict[str, Quota]:
    """Return equal quotas of strata, by label.

    Args:
        counts: documents of each stratum.
        total: documents wanted of all together.
        short: Policy for documents missing in a stratum: others give them, or nobody does.
    """
    return quotas_by_weights(counts, dict.fromkeys(counts, Fraction(1)), total, short)


def proportional_quotas(counts: Mapping[str, int], total: int) -> dict[str, Quota]:
    """Return quotas of strata in proportion to their documents; all of them where more are wanted than there are."""
    sizes = {label: Fraction(count) for label, count in counts.items()}
    targets, sizes_ = divide(total, sizes), divide(min(total, sum(counts.values())), sizes)
    return {label: Quota(targets[label], sizes_[label]) for label in sorted(counts)}


def quotas_by_weights(
    counts: Mapping[str, int], weights: Mapping[str, Fraction], total: int, short: Short
) -> dict[str, Quota]:
    """Return quotas in proportion to weights; a stratum without a weight, or without documents, may be among them."""
    targets = divide(total, weights)
    sizes = {label: min(number, counts.get(label, 0)) for label, number in targets.items()}
    if short == "redistribute":
        sizes = _redistributed(counts, weights, total)
    return {label: Quota(targets[label], sizes[label]) for label in sorted(targets)}


def quotas_by_numbers(counts: Mapping[str, int], numbers: Mapping[str, int], short: Short) -> dict[str, Quota]:
    """Return quotas given as numbers of documents; what strata lack is divided in proportion to the numbers."""
    weights = {label: Fraction(number) for label, number in numbers.items()}
    results = quotas_by_weights(counts, weights, sum(numbers.values()), short)
    return {label: Quota(numbers[label], quota.size) for label, quota in results.items()}


def divide(total: int, weights: Mapping[str, Fraction]) -> dict[str, int]:
    """Return whole numbers in proportion to weights, with a given sum; all are 0 if the weights are."""
    whole = sum(weights.values())
    if not whole:
        return dict.fromkeys(weights, 0)
    exact = {label: total * weight / whole for label, weight in weights.items()}
    results = {label: int(number) for label, number in exact.items()}
    left = total - sum(results.values())
    for label in sorted(exact, key=lambda label: (results[label] - exact[label], label))[:left]:
        results[label] += 1
    return results


def _redistributed(counts: Mapping[str, int], weights: Mapping[str, Fraction], total: int) -> dict[str, int]:
    """Return quotas near the weights, none above the size of its stratum.

    Strata that have too few give all that they have; the others divide what is left by their weights, until none of
    them has too few either.
    """
    sizes: dict[str, int] = {}
    left, open_ = total, dict(weights)
    while open_:
        results = divide(left, open_)
        full = [label for label, number in results.items() if number >= counts.get(label, 0)]
        if not full:
            return sizes | results
        for label in full:
            sizes[label] = min(results[label], counts.get(label, 0))
            left -= sizes[label]
            del open_[label]
    return sizes


def short_strata(quotas: Mapping[str, Quota]) -> Sequence[str]:
    """Return the labels of strata below their targets, in order."""
    return [label for label, quota in quotas.items() if quota.size < quota.target]


class SampleKeys(KeySource):
    """The keys of rows of shards by stratum; places are shard and row."""

    shards: NumberedShards
    labels: str

    def read(self) -> Iterator[Keys]:
        """Yield the keys of each shard and stratum."""
        labels = msgspec.msgpack.decode(read_sealed(self.labels), type=list[str])
        numbers = {label: i for i, label in enumerate(labels)}
        for signed in self.shards.load():
            rows_of_shard = load_rows(signed)
            order = np.argsort(rows_of_shard.strata, kind="stable")
            own = strata_of(signed).labels
            ends = np.searchsorted(rows_of_shard.strata[order], np.arange(len(own) + 1))
            for label, begin, end in zip(own, ends[:-1].tolist(), ends[1:].tolist(), strict=True):
                rows = order[begin:end]
                places = (signed.number << 32) + rows
                yield Keys(numbers[label], rows_of_shard.keys[rows], np.ones(len(rows)), places)


class StratumChoice(msgspec.Struct, frozen=True):
    """The chosen documents of a stratum: those with keys below a bound, and some of those that have it.

    Attributes:
        below: the bound; 2**64 if all are.
        ties: shard and row of documents with this very key that are chosen, too.
    """

    below: int
    ties: list[tuple[int, int]] = []


def choose(
    run: Run, folder: str, sources: Sequence[KeySource], counts: Sequence[int], targets: Sequence[int], memory: int
) -> list[StratumChoice]:
    """Choose documents of each stratum.

    Args:
        run: runs tasks, as of a command.
        folder: Folder of their files.
        sources: keys of groups of shards.
        counts: documents of each stratum.
        targets: Number of chosen documents, at most all.
        memory: bytes that may be used.
    """
    goals = {i: [float(k)] for i, (n, k) in enumerate(zip(counts, targets, strict=True)) if 0 < k < n}
    _, reached = find(run, "choosing documents", folder, sources, goals, memory)
    results = [StratumChoice(2**64 if k else 0) for k in targets]
    for (stratum, _), (base, _, keys, _, places) in reached.items():
        rank = targets[stratum] - int(base)
        bound = int(keys[rank])
        first = int(np.searchsorted(keys, keys[rank]))
        results[stratum] = StratumChoice(
            bound, [(place >> 32, place & 0xFFFFFFFF) for place in places[first:rank].tolist()]
        )
    return results


SUFFIXES = (".jsonl.gz", ".jsonl.zst", ".jsonl")

_SHOWN = 20
_FOUND = "chosen.json"


class Sampled(msgspec.Struct, frozen=True):
    """Membership of a document in the sample.

    Attributes:
        chosen: True if it is.
        stratum: Value of `by`, as text; null without `by`, and of a document that could not be chosen.
        split: Split of the document; null without `splits`, and of a document that is not chosen.
    """

    chosen: bool
    stratum: str | None
    split: str | None


class Copy(ConfigStruct):
    """Target of copies of the chosen documents, unchanged.

    Attributes:
        path: a file, or with `layout: inputs` a folder.
        layout: one file; or one for each shard under its own relative path, none for one of which nothing is chosen.
        index: True if an ``.idx`` is written beside each file: offset and length of each line; in a compressed file
            each line is a member of its own, and these are those of the members.
    """

    path: str
    layout: Literal["one", "inputs"] = "one"
    index: bool = False


class Sample(Kind, kw_only=True):
    """Documents drawn at random.

    Attributes:
        documents: number of documents to choose
        share: share of the documents to choose, in place of `documents`
        by: strata: SET.KEY.field or an expression, or a list of such; each has a quota
        quota: the amount of each stratum: equal numbers; numbers in proportion to its documents; {LABEL: documents}, or
            {LABEL: share} with `documents` or `share`
        short: a stratum with too few documents: others give them (redistribute), or nobody does (report); by default
            redistribute, but report for given numbers
        weight: an expression that gives 0 or more: a document with twice the weight is twice as likely drawn
        seed: another seed draws another sample
        splits: {NAME: SHARE}: divides the chosen documents into splits with these shares, which add up to 1
        split_by: an expression: documents with the same value are in the same split; default: the id
        ids: a file to write: a line of JSON with source and id for each chosen document
        copy_: {path, layout: one | inputs, index}: where the chosen documents are copied to
    """

    SECTION: ClassVar[str] = "sample"

    TEXTS: ClassVar[bool] = False

    NEUTRAL: ClassVar[frozenset[str]] = frozenset({"ids", "copy"})

    documents: Annotated[int, msgspec.Meta(ge=1)] | None = None
    share: Annotated[float, msgspec.Meta(gt=0, le=1)] | None = None
    by: str | list[str] = []
    quota: Literal["equal", "proportional"] | dict[str, float] = "equal"
    short: Short | None = None
    weight: str | None = None
    seed: str | int = ""
    splits: dict[str, float] = {}
    split_by: str | None = None
    ids: str | None = None
    copy_: Copy | None = msgspec.field(name="copy", default=None)

    def check(self) -> None:
        """Refuse conflicting options with a ConfigError."""
        for path in (self.ids, self.copy_.path if self.copy_ else None):
            if path is not None and not path.strip():
                raise ConfigError("expected a path, got none")
        if self.copy_ and self.copy_.layout == "one" and not self.copy_.path.endswith(SUFFIXES):
            raise ConfigError(f"copy: expected a file ending in {' '.join(SUFFIXES)}, got {self.copy_.path}")
        has_numbers = isinstance(self.quota, dict)
        if has_numbers and not self.by:
            raise ConfigError("quota: expected `by:` beside it, which says what the strata are, got none")
        if self.documents is not None and self.share is not None:
            raise ConfigError("expected `documents` or `share`, got both")
        if self.documents is None and self.share is None and not has_numbers:
            raise ConfigError("expected `documents: N` or `share: P`, got neither")
        if isinstance(self.quota, dict):
            _check_quota(self.quota, of_whole=self.documents is not None or self.share is not None)
        if self.splits and not math.isclose(sum(self.splits.values()), 1.0, abs_tol=1e-9):
            raise ConfigError(f"splits: expected shares that add up to 1, got {sum(self.splits.values()):g}")
        if any(share < 0 for share in self.splits.values()) or len(self.splits) > 255:
            raise ConfigError("splits: expected at most 255 shares, none below 0")
        if self.split_by is not None and not self.splits:
            raise ConfigError("split_by: expected `splits:` beside it, got none")

    def value_type(self) -> Any:
        """Return the type of the values."""
        return Sampled

    def queries(self) -> dict[str, Query]:
        """Return the expressions of the options."""
        results = {f"by {i}": Query(text, "value") for i, text in enumerate(self.strata)}
        if self.weight is not None:
            results["weight"] = Query(self.weight, "number")
        if self.split_by is not None:
            results["split_by"] = Query(self.split_by, "value")
        return results

    @property
    def strata(self) -> list[str]:
        """Return the expressions of `by`."""
        return [self.by] if isinstance(self.by, str) else self.by

    def signer(self, files: Files) -> Signer:
        """Return a writer of a shard's keys."""
        return _KeySigner(self, files)

    def resolve(self, work: ResolveJob) -> Decisions:
        """Choose documents in tasks over the keys of shards."""
        result = _choose(self, work)
        write_file(join(work.folder, _FOUND), msgspec.json.encode(result))
        digests = {
            shard.shard: msgspec.json.encode([_of_shard(shard, result), shard.record.files[FILE].sha256]).decode()
            for shard in work.shards
        }
        return Decisions(digests, result.counts, result.notes)

    def values(self, signed: SignedShard, fates: str) -> Iterator[Any]:
        """Yield the choice for each document."""
        path = join(fates, _FOUND)
        result = msgspec.json.decode(store_of(path).read(path), type=SampledDocuments)
        rows, expressions = load_rows(signed), strata_of(signed).labels
        chosen = _chosen(rows, _of_shard(signed, result))
        splits = [*self.splits, None]
        for is_chosen, stratum, split in zip(chosen.tolist(), rows.strata.tolist(), rows.splits.tolist(), strict=True):
            label = expressions[stratum] if self.by and stratum != OUT else None
            yield Sampled(is_chosen, label, splits[split] if is_chosen else None)


def _check_quota(quota: Mapping[str, float], *, of_whole: bool) -> None:
    if not quota or any(item < 0 for item in quota.values()):
        raise ConfigError("quota: expected at least one label, and no number below 0")
    whole = sum(quota.values())
    if of_whole and not math.isclose(whole, 1.0, abs_tol=1e-9):
        raise ConfigError(
            f"quota: expected shares that add up to 1, because `documents` or `share` is given, got "
            f"a sum of {whole:g}; if these are numbers of documents, leave `documents` and `share` out"
        )
    if not of_whole and any(item != int(item) for item in quota.values()):
        raise ConfigError(
            "quota: expected whole numbers of documents, got fractions; if these are shares, add "
            "`documents: N` or `share: P`"
        )


# --- per shard --------------------------------------------------------------------------------------------------------


class _KeySigner(Signer):
    """Writes the keys, strata and splits of a shard's rows."""

    kind: Sample

    def __init__(self, kind: Sample, files: Files) -> None:
        super().__init__(kind, files)
        self._seed = str(kind.seed)
        self._parts: list[ShardRows] = []
        self._labels = GroupNumbers("by", "strata")
        self._bounds = np.cumsum([*kind.splits.values()])

    def add(self, block: TextBlock) -> None:
        """Take the next documents."""
        kind, seed, competes = self.kind, self._seed, block.competes
        rows = [*zip(block.documents, competes, strict=True)]
        keys = [document_hash(seed, document) if mine else 0 for document, mine in rows]
        counts = competes
        if kind.weight is not None:
            weights = [weight if mine else 0 for weight, mine in zip(block.values["weight"], competes, strict=True)]
            for i, weight in enumerate(weights):
                if not 0 <= weight < math.inf:
                    raise DataError(
                        f"weight: expected a number of 0 or more, got {weight!r}", line=block.first + i + 1,
                        id=block.documents[i].id,
                    )  # fmt: skip
                if weight:
                    keys[i] = weighted_key(keys[i], weight)
            counts = [weight > 0 for weight in weights]
        strata = self._labels.numbers([block.values[f"by {i}"] for i in range(len(kind.strata))], counts, OUT)
        splits = [len(kind.splits)] * len(rows)
        for i, (document, mine) in enumerate(rows) if kind.splits else ():
            if mine:
                own = kind.split_by is not None
                value = block.values["split_by"][i] if own else (document.source, document.id)
                splits[i] = split_of(seed, value, self._bounds)
        parts = zip((keys, strata, splits), (np.uint64, np.uint32, np.uint8), strict=True)
        self._parts.append(ShardRows(*(np.array(column, dtype=type_) for column, type_ in parts)))

    def finish(self) -> tuple[dict[str, int], Any]:
        """Write the file; return how many documents can be chosen, and the strata."""
        nothing = ShardRows(*[np.zeros(0, np.uint32)] * 3)
        rows = ShardRows(*map(np.concatenate, zip(*(self._parts or [nothing]), strict=True)))
        self.files.open(FILE).write(encode_rows(rows))
        counts = np.bincount(rows.strata[rows.strata != OUT], minlength=len(self._labels.all)).tolist()
        return {"pool": sum(counts)}, Strata(self._labels.all, counts)


# --- the whole --------------------------------------------------------------------------------------------------------


class SampledDocuments(msgspec.Struct, frozen=True):
    """The chosen documents.

    Attributes:
        strata: Choice in each stratum, by label.
        quotas: Quotas of each, by label.
        counts: Counts for people.
        notes: Notes for people.
    """

    strata: dict[str, StratumChoice]
    choosing: dict[str, Quota]
    counts: dict[str, int]
    notes: list[str]


def _choose(kind: Sample, work: ResolveJob) -> SampledDocuments:
    available: Counter[str] = Counter()
    for signed in work.shards:
        available.update(dict(zip(*strata_of(signed), strict=True)))
    if len(available) > expressions.MOST:
        raise DataError(f"by: expected at most {expressions.MOST:,} strata, got {len(available):,}")
    labels = sorted(available)
    allotted = allot(kind, available)
    targets = [allotted[label].size if label in allotted else 0 for label in labels]
    write_sealed(path := join(work.scratch, "labels"), msgspec.msgpack.encode(labels))
    shards, groups = work.all(), in_groups(signed.record.rows for signed in work.shards)
    ranges = [msgspec.structs.replace(shards, first=first, last=last) for first, last in groups]
    sources = [SampleKeys(shards=range, labels=path) for range in ranges]
    chosen = choose(work.run, work.scratch, sources, [available[label] for label in labels], targets, work.memory)
    counts = {"chosen": sum(targets), "to choose from": sum(available.values())}
    if kind.by:
        counts["strata"] = len(labels)
    return SampledDocuments(dict(zip(labels, chosen, strict=True)), allotted, counts, _notes(kind, allotted, available))


def allot(kind: Sample, available: Mapping[str, int]) -> dict[str, Quota]:
    """Return the quota of each stratum; `available` is how many documents each has."""
    pool = sum(available.values())
    if isinstance(kind.quota, dict) and kind.documents is None and kind.share is None:
        numbers = {label: int(number) for label, number in kind.quota.items()}
        return quotas_by_numbers(available, numbers, kind.short or "report")
    total = kind.documents if kind.documents is not None else int((kind.share or 0) * pool + 0.5)
    short = kind.short or "redistribute"
    if isinstance(kind.quota, dict):
        weights = {label: Fraction(str(share)) for label, share in kind.quota.items()}
        return quotas_by_weights(available, weights, total, short)
    if kind.quota == "proportional":
        return proportional_quotas(available, total)
    return equal_quotas(available, total, short)


def _notes(kind: Sample, allotted: Mapping[str, Quota], available: Mapping[str, int]) -> list[str]:
    """Return notes on strata with too few documents."""
    short = short_strata(allotted)
    target = sum(item.target for item in allotted.values())
    size = sum(item.size for item in allotted.values())
    if kind.documents is not None:  # without any document there are no strata that could lack some
        target = kind.documents
    notes = []
    if size < target:
        notes.append(f"{target - size:,} documents of {target:,} are missing: there are no more")
    if short and kind.by:
        listed = ", ".join(
            f"{label} {available.get(label, 0):,} of {allotted[label].target:,}" for label in short[:_SHOWN]
        )
        more = f" and {len(short) - _SHOWN} more" if len(short) > _SHOWN else ""
        notes.append(f"strata with fewer documents than their quota: {listed}{more}")
    return notes


def _of_shard(signed: SignedShard, choice: SampledDocuments) -> list[tuple[int, list[int]]]:
    """Return the bound and chosen ties of each stratum of a shard."""
    return [
        (bound.below, [row for shard, row in bound.ties if shard == signed.number])
        for bound in (choice.strata[label] for label in strata_of(signed).labels)
    ]


def _chosen(rows: ShardRows, bounds: list[tuple[int, list[int]]]) -> Array:
    """Return a mask of the chosen rows of a shard."""
    result = np.zeros(len(rows.keys), dtype=bool)
    for stratum, (below, ties) in enumerate(bounds):
        mine = rows.strata == stratum
        result |= mine & (rows.keys <= np.uint64(below - 1) if below else False)
        result[ties] = True
    return result


What = Literal["ids", "documents"]

_ENCODER = msgspec.json.Encoder()


class FileToWrite(ConfigStruct):
    """A file of a copy.

    Attributes:
        path: Path of the file.
        content: Kind of its rows.
        kind: options of the sample.
        shards: Shards whose chosen documents are in it, in order.
        fates: the folder of what was chosen.
        index: True if an ``.idx`` is written beside it.
        max_document_bytes: Limit of a row of documents.
    """

    path: str
    content: What
    kind: dict[str, Any]
    shards: list[SignedShard]
    fates: str
    index: bool
    max_document_bytes: int


class CopiedFile(msgspec.Struct, frozen=True):
    """A file of a copy: its path, rows, stored bytes and stamp; and those of its index, if it has one."""

    path: str
    rows: int
    size: int
    stamp: str
    index: Stat | None = None


class Copied(Artifact, frozen=True):
    """The record of a copy: the digest of what it was made from, and its files."""

    made_from: str
    files: list[CopiedFile]

    @property
    def lineage(self) -> dict[str, str]:
        return {"": self.made_from}


class CopyRecords(msgspec.Struct, frozen=True):
    """The record of the copies of a set, by content."""

    version: int = 1
    copies: dict[str, Copied] = {}


def record_path(dataset: Dataset, set_name: str) -> str:
    """Return the path of the record of a set's copies."""
    return join(set_folder(dataset, set_name), "copies.json")


def load(dataset: Dataset, set_name: str) -> CopyRecords:
    """Return the record of a set's copies."""
    return json_files.load(record_path(dataset, set_name), CopyRecords) or CopyRecords()


def load_strictly(dataset: Dataset, set_name: str) -> CopyRecords:
    """Return the record of a set's copies, or raise an error; without it nobody knows whose the present files are.

    Raises:
        DataError: if it is damaged.
    """
    remedy = "delete it and the copies, or add --overwrite to write them again"
    return json_files.load_strictly(record_path(dataset, set_name), CopyRecords, remedy) or CopyRecords()


def copies_of(kind: Sample) -> list[tuple[What, Copy]]:
    """Return the copies of a sample."""
    results: list[tuple[What, Copy]] = []
    if kind.ids is not None:
        results.append(("ids", Copy(kind.ids)))
    if kind.copy_ is not None:
        results.append(("documents", kind.copy_))
    return results


def files_of(
    copy: Copy, content: What, kind: Sample, shards: Sequence[SignedShard], fates: str, max_document_bytes: int
) -> list[FileToWrite]:
    """Return the files of a copy: one, or one for each shard of which something was chosen."""
    whole = FileToWrite(
        path=copy.path,
        content=content,
        kind=msgspec.to_builtins(kind),
        shards=list(shards),
        fates=fates,
        index=copy.index,
        max_document_bytes=max_document_bytes,
    )
    if copy.layout == "one":
        return [whole]
    return [
        msgspec.structs.replace(whole, path=join(copy.path, signed.shard), shards=[signed])
        for signed in shards
        if any(item.chosen for item in kind.values(signed, fates))
    ]


def files_in(copied: Copied) -> Iterator[FileRecord]:
    """Yield the files of a copy, and their indexes."""
    for file in copied.files:
        yield FileRecord(file.path, file.size, file.stamp)
        if file.index:
            yield FileRecord.of(line_index.path_of(file.path), file.index)


def check_free(copy: Copy, before: Copied | None) -> None:
    """Refuse files in the way, other than those of an earlier copy.

    Raises:
        ConfigError: if there is.
    """
    ours = {path for file in before.files for path in (file.path, line_index.path_of(file.path))} if before else set()
    if copy.layout == "one":
        existing = [path for path in (copy.path, line_index.path_of(copy.path)) if exists(path)]
    else:
        existing = [join(copy.path, name) for name in list_files(copy.path)] if is_folder(copy.path) else []
    if foreign := [path for path in existing if path not in ours]:
        lacks = "expected a new file, or a copy of this sample, got another file"
        raise ConfigError(f"{foreign[0]}: {lacks}; choose another path, or add --overwrite")


def write_copy(work: FileToWrite, report: Report) -> CopiedFile:
    """Write a file of a copy.

    Raises:
        DataError: if documents are not those that were drawn from.
    """
    kind = msgspec.convert(work.kind, Sample)
    compressed = bool(compression_of(work.path))
    compress, lengths = compressor_for(work.path), list[int]()

    def one_by_one(rows: bytes) -> bytes:
        """Compress each row by itself."""
        members = [compress(row + b"\n") for row in rows.split(b"\n")[:-1]]
        lengths.extend(map(len, members))
        return b"".join(members)

    with RowOutput(work.path, compress=one_by_one if work.index and compressed else None) as output:
        for signed in work.shards:
            before = output.rows
            for row in _rows(work, kind, signed):
                output.write_row(row)
                if work.index and not compressed:
                    lengths.append(len(row))
            report(output.rows - before, signed.record.input.size)
    index = line_index.write(work.path, lengths, between=0 if compressed else 1) if work.index else None
    return CopiedFile(work.path, output.rows, output.stat.size, output.stat.stamp, index)


def _rows(work: FileToWrite, kind: Sample, signed: SignedShard) -> Iterator[bytes]:
    """Yield the rows of a shard's chosen documents."""
    with ExitStack() as stack:
        if work.content == "ids":
            lines: Iterator[bytes] = names_of(signed.folder, signed.shard)
        else:
            lines = iter(stack.enter_context(signed.dataset.lines(signed.shard, work.max_document_bytes)))
        values = kind.values(signed, work.fates)
        for count, value in enumerate(values):
            row = next(lines, None)
            if row is None:
                result = f"expected {signed.record.rows} rows, got {count}; run `toolkit sample`"
                raise DataError(result, path=signed.dataset.shard_path(signed.shard))
            if value.chosen:
                yield _named(row, value) if work.content == "ids" else row


def _named(name: bytes, value: Any) -> bytes:
    """Return a row of a list of ids: source and id, and stratum and split where there are such."""
    more = {key: result for key in ("stratum", "split") if (result := getattr(value, key)) is not None}
    return name[:-1] + b"," + _ENCODER.encode(more)[1:] if more else name


def begin(dataset: Dataset, set_name: str, content: What, files: Sequence[FileToWrite]) -> None:
    """Record the files of a copy before it begins, beside present ones: a killed run leaves them."""
    copies = load(dataset, set_name).copies
    before = copies.get(content)
    files_by_path = {file.path: file for file in before.files} if before else {}
    files_by_path |= {file.path: CopiedFile(file.path, 0, -1, "") for file in files}
    _save(dataset, set_name, copies | {content: Copied("", list(files_by_path.values()))})


def end(dataset: Dataset, set_name: str, content: What, copied: Copied) -> None:
    """Record a copy, and delete files of earlier ones, with indices."""
    copies = load(dataset, set_name).copies
    before = copies.get(content)
    here = {file.path for file in copied.files}
    indexed = {file.path for file in copied.files if file.index}
    for file in before.files if before else ():
        if file.path not in here:
            remove(file.path)
        if file.path not in indexed:
            remove(line_index.path_of(file.path))
    _save(dataset, set_name, copies | {content: copied})


def _save(dataset: Dataset, set_name: str, copies: dict[str, Copied]) -> None:
    json_files.save(record_path(dataset, set_name), CopyRecords(copies=copies))
