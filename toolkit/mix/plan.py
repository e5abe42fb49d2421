"""The plan of a mix's output: which members make which part. A pure function of the indexes of stage 1.

The plan of a shuffled output: at which hashes parts end, so that they are of equal size.
"""

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import msgspec
import xxhash

from toolkit.config.settings import ConfigStruct
from toolkit.errors import ConfigError
from toolkit.exchange.checksummed import SealedOutput, read_sealed, write_sealed
from toolkit.exchange.thresholds import Keys, KeySource, in_groups
from toolkit.execution.executors import Report, Run, Task
from toolkit.lazy_numpy import np
from toolkit.mix.budget.bounds import find_bounds
from toolkit.mix.intermediates import TINY, Member, StageRecords, stage_path
from toolkit.mix.settings import REJECTED, MixSettings
from toolkit.rules.kinds.repeat import EVERYTHING
from toolkit.storage import store_of
from toolkit.storage.paths import join, remove_tree, work_folder
from toolkit.storage.stores.local.scratch import owner

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Cut(NamedTuple):
    """A part: the hashes that are in it, from `low` to `high`; the bytes of its pieces, and how many there are."""

    low: int
    high: int
    size: int
    documents: int


_Files = list[tuple[str, list[tuple[int, int, int]]]]
"""Paths, and the runs of labels there: number of the label, offset and pieces."""


class CutKeys(KeySource):
    """The hashes of the pieces of shuffled intermediates, with their amounts.

    Attributes:
        path: Path of a file with the intermediates of all groups, and the runs of labels there (`_Files`).
        offset, size: Place of those of a group.
        by_bytes: True if amounts are sizes.
    """

    path: str
    offset: int
    size: int
    by_bytes: bool

    def runs(self) -> "Iterator[tuple[int, NDArray[np.uint64], NDArray[np.uint32]]]":
        """Yield number, sorted hashes and sizes of each run, one in memory."""
        for path, runs in msgspec.msgpack.decode(read_sealed(self.path, self.offset, self.size), type=_Files):
            with closing(store_of(path).pieces(path)) as file:
                for label, offset, count in runs:
                    data = file.read(offset, 12 * count)
                    hashes = np.frombuffer(data, dtype="<u8", count=count)
                    yield label, hashes, np.frombuffer(data, dtype="<u4", count=count, offset=8 * count)

    def read(self) -> Iterator[Keys]:
        """Yield hashes and amounts of each run."""
        for label, hashes, sizes in self.runs():
            yield Keys(label, hashes, sizes.astype(float) if self.by_bytes else np.ones(len(hashes)))


class _ToCount(ConfigStruct):
    """Runs to count between the ends of parts. The ends are in a file."""

    source: CutKeys
    ends: str


def _count_parts(task: _ToCount, report: Report) -> list[list[list[int]]]:
    """Return bytes and pieces of each part of each label."""
    listed = msgspec.msgpack.decode(read_sealed(task.ends), type=list[list[int]])
    ends = [np.array(item, dtype=np.uint64) for item in listed]
    sums = [np.zeros((2, len(item)), dtype=np.int64) for item in ends]
    for label, hashes, sizes in task.source.runs():
        numbers, parts = np.searchsorted(ends[label], hashes), len(ends[label])
        sums[label][0] += np.bincount(numbers, weights=sizes, minlength=parts).astype(np.int64)
        sums[label][1] += np.bincount(numbers, minlength=parts)
    return [sum_.tolist() for sum_ in sums]


def cuts_of(stages: StageRecords, settings: MixSettings, run: Run) -> dict[str, list[Cut]]:
    """Return the parts of each label: as few as the part size allows, of sizes that differ by a piece.

    Args:
        stages: Records of the encoded shards.
        settings: Settings of the mix.
        run: Function that runs tasks, as of a command.
    """
    shuffle = settings.output.shuffle
    assert shuffle
    totals: dict[str, list[int]] = {}
    for label, rows in stages.members.items():
        if label != REJECTED:
            members = [*itertools.chain.from_iterable(members for _, members in rows)]
            documents = sum(member.documents for member in members)
            totals[label] = [sum(member.size for member in members) - documents * settings.frame, documents]
    is_divided = settings.writer().is_divided()
    by_bytes = shuffle.equal == "bytes"
    goals: dict[str, Sequence[float]] = {}
    for label, (size, documents) in totals.items():
        parts = max(1, -(-size // settings.output.part_size)) if is_divided else 1
        whole = size if by_bytes else documents
        goals[label] = [whole * i / parts for i in range(1, parts)]
    divided = [label for label, cuts in goals.items() if cuts]
    folder = join(work_folder(settings.output.path), "parts", f"cuts-{owner()}")
    sources = _sources(stages, settings, divided, join(folder, "runs"))
    bounds = find_bounds(run, "finding where parts end", folder, sources, [goals[label] for label in divided])
    ends = [sorted({*(around[0].hash for around in item), EVERYTHING} - {-1}) for item in bounds]
    write_sealed(path := join(folder, "ends"), msgspec.msgpack.encode(ends))
    tasks = [Task(f"cut {i}", _ToCount(source=source, ends=path)) for i, source in enumerate(sources, 1)]
    counted = run("finding where parts end", _count_parts, tasks) if divided else []
    remove_tree(folder)
    cuts = {label: [Cut(0, EVERYTHING, *both)] if both[1] else [] for label, both in totals.items()}
    for number, label in enumerate(divided):
        sums = np.array([item[number] for item in counted], dtype=np.int64).sum(axis=0)
        lows = [0, *(end + 1 for end in ends[number][:-1])]
        listed = [Cut(*item) for item in zip(lows, ends[number], *sums.tolist(), strict=True)]
        cuts[label] = [cut for cut in listed if cut.documents]
    return dict(sorted(cuts.items()))


def _sources(stages: StageRecords, settings: MixSettings, labels: Sequence[str], path: str) -> list[CutKeys]:
    """Write the runs of labels to a file, in groups of shards."""
    numbers = {label: i for i, label in enumerate(labels)}

    def files() -> Iterator[tuple[str, list[tuple[int, int, int]]]]:
        for key, record in stages.sorted_records():
            divided = sorted(numbers.keys() & record.sizes)
            if runs := [(numbers[label], *run) for label in divided for run in record.sizes[label]]:
                yield stage_path(settings.output.path, record.settings, key), runs

    by_bytes = settings.output.shuffle is not None and settings.output.shuffle.equal == "bytes"
    sources, rest = [], files()
    with SealedOutput(path) as output:
        for first, last in in_groups(sum(count for _, _, count in runs) for _, runs in files()):
            data = msgspec.msgpack.encode([*itertools.islice(rest, last - first)])
            sources.append(CutKeys(path=path, offset=output.put(data), size=len(data), by_bytes=by_bytes))
    return sources


JOINED = 1 << 20
"""Uncompressed bytes up to which tiny members are joined."""


class Piece(msgspec.Struct, frozen=True, array_like=True):
    """Members of shards for one member of a part. A single large one is copied."""

    members: list[tuple[str, int, int]]


class PartPlan(ConfigStruct):
    """One output file.

    Attributes:
        label: Label of its documents.
        path: Path below the output folder.
        pieces: Pieces in order.
        size: Uncompressed bytes.
        documents: Number of documents.
        low, high: Least and greatest hash that may be in a part of a shuffled output.
        runs: Runs of a shuffled output, in place of pieces, the members of which something is in it: key of the shard,
            offset and length in its intermediate. Members that stand one behind the other are read together.
    """

    label: str
    path: str
    pieces: list[Piece]
    size: int
    documents: int
    low: int = 0
    high: int = 0
    runs: list[tuple[str, int, int]] = []

    @property
    def stored(self) -> int:
        """Return the stored bytes of its members."""
        return sum(length for piece in self.pieces for _, _, length in piece.members) + sum(run[2] for run in self.runs)


def plan_parts(stages: StageRecords, settings: MixSettings, run: Run) -> Iterator[PartPlan]:
    """Yield the parts of all labels, sorted by label and number; those of a label are in memory at a time.

    A part is closed before a member that would take it over the part size.

    Args:
        stages: Records of the encoded shards.
        settings: Settings of the mix, which name the parts.
        run: Function that runs tasks, as of a command.

    Raises:
        ConfigError: in the end, if two labels would be written to one path.
    """
    is_divided = settings.writer().is_divided()
    order = sorted(range(len(stages.keys)), key=lambda number: settings.position(stages.keys[number]))
    positions = sorted(range(len(order)), key=order.__getitem__)
    cuts = cuts_of(stages, settings, run) if settings.output.shuffle else {}
    paths: list[tuple[str, str]] = []
    for label, rows in sorted(stages.members.items()):
        in_order = sorted(rows, key=lambda row: positions[row[0]])
        listed = [(stages.keys[number], member) for number, members in in_order for member in members]
        if label in cuts:
            parts = [
                PartPlan(
                    label=label,
                    path=settings.part(label, number, len(cuts[label])),
                    pieces=[],
                    runs=_runs(listed, cut),
                    **cut._asdict(),
                )
                for number, cut in enumerate(cuts[label], 1)
            ]
        else:
            limit = settings.output.part_size if is_divided else math.inf
            groups = [*grouped(listed, lambda item: item[1].size, limit)]
            parts = [
                PartPlan(
                    label=label,
                    path=settings.part(label, number, len(groups)),
                    pieces=_pieces(group),
                    size=sum(member.size for _, member in group),
                    documents=sum(member.documents for _, member in group),
                )
                for number, group in enumerate(groups, 1)
            ]
        paths += [(part.path, label) for part in parts]
        yield from parts
    _check_paths(paths, settings)


def _runs(members: list[tuple[str, Member]], cut: Cut) -> list[tuple[str, int, int]]:
    """Return the places of members with hashes of a part. A place has about a MiB."""
    results: list[tuple[str, int, int]] = []
    size = JOINED
    for key, member in members:
        if member.low <= cut.high and member.high >= cut.low:
            if size + member.size <= JOINED and results[-1][0] == key and sum(results[-1][1:]) == member.offset:
                results[-1] = (key, results[-1][1], results[-1][2] + member.length)
                size += member.size
            else:
                results.append((key, member.offset, member.length))
                size = member.size
    return results


def _check_paths(parts: Iterable[tuple[str, str]], settings: MixSettings) -> None:
    """Raise ConfigError if two files, or file and folder, share a path.

    Labels may share a checksum file, which then lists the parts of all of them.

    Args:
        parts: Path and label of each.
        settings: Settings of the mix, which name other files.
    """
    labels: dict[str, str] = {}
    for part, label in parts:
        for path in (part, *settings.beside(label, part)):
            if path in labels:
                raise ConfigError(
                    f"expected a path of its own for each part, got {path} for the labels {labels[path]!r} and "
                    f"{label!r}; route one of them elsewhere"
                )
            labels[path] = label
    checksums = {settings.checksums(label): label for label in labels.values()}
    for path in checksums.keys() & labels.keys():
        raise ConfigError(
            f"expected a path of its own for each file, got {path} for a part of the label {labels[path]!r} and the "
            f"checksums of the label {checksums[path]!r}; route one of them elsewhere"
        )
    files = labels | checksums
    for path, label in files.items():
        for end in (i for i, letter in enumerate(path) if letter == "/"):
            if path[:end] in files:
                raise ConfigError(
                    f"expected a folder at {path[:end]} for the label {label!r}, got a file of the label "
                    f"{files[path[:end]]!r}; route one of them elsewhere"
                )


def _pieces(group: list[tuple[str, Member]]) -> list[Piece]:
    pieces: list[Piece] = []
    for is_tiny, members in itertools.groupby(group, lambda item: item[1].size < TINY):
        for some in grouped(members, lambda item: item[1].size, JOINED if is_tiny else 0):
            pieces.append(Piece([(shard, member.offset, member.length) for shard, member in some]))
    return pieces


T = TypeVar("T")


def grouped(items: Iterable[T], size_of: Callable[[T], int], limit: float) -> Iterator[list[T]]:
    """Yield items in groups; a group ends before an item that would take its size over the limit."""
    group: list[T] = []
    size = 0
    for item in items:
        if group and size + size_of(item) > limit:
            yield group
            group, size = [], 0
        group.append(item)
        size += size_of(item)
    if group:
        yield group


Inputs = Iterable[tuple[str, str, dict[str, str]]]
"""Key of the shard, content digest of its documents, and of its attributes by set; sorted."""


def digest_of(inputs: Inputs, stage_digest: str, part_size: int, omitted: list[str]) -> str:
    """Return the digest of inputs, settings, part size and omitted shards: of their JSON, which is not held."""
    encode = msgspec.json.Encoder().encode
    digest = xxhash.xxh3_128(b"[" + encode(stage_digest) + b"," + encode(int(part_size)) + b",[")
    for number, item in enumerate(inputs):
        digest.update(b"," + encode(item) if number else encode(item))
    digest.update(b"]," + encode(sorted(omitted)) + b"]")
    return digest.hexdigest()
