"""Step 2b, whole: which documents belong together, in parts of which each has room in memory.

Documents that share a bucket belong together, and so do those that share one with one of these: a component. Nothing
else follows from that: what is removed is decided by sets of shingles (see `decision`). A part has whole components,
chosen by a hash, and of each document what its place in them depends on.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack

from toolkit.config.settings import ConfigStruct
from toolkit.runs.executors import Report
from toolkit.storage.paths import join
from toolkit.storage.reading import open_stored
from toolkit.text.kernels.signatures import Array
from toolkit.whole.near.components import Ranges, components
from toolkit.whole.near.signing import ROW
from toolkit.whole.sealed import SealedOutput, read_sealed
from toolkit.whole.sections import bounds_of

CANDIDATE = [("document", "<u8"), ("component", "<u8"), ("before", "<u8"), ("order", "<f8"), ("shingles", "<u4")]
"""A document that shares a bucket: its number, that of its component, that of the one in which it was before there were
new shards, its order, and how many shingles it has.
"""

CANDIDATES = "candidates"
MOST_PARTS = 512
_BYTES = 400  # of memory a candidate, while a part is put in order
_PAIRS = 1 << 20  # bytes of pairs that are read at a time


class ToConnect(ConfigStruct):
    """All that shares a bucket.

    Attributes:
        pairs: paths of files of pairs of documents, as `buckets` writes them.
        folders: of the signatures of each shard.
        rows: of each shard.
        was_there: of each shard, whether an earlier resolution had it as it is; empty if there is none.
        parts: how many to make.
        memory: bytes that may be used.
        folder: to write to.
    """

    pairs: list[str]
    folders: list[str]
    rows: list[int]
    was_there: list[bool]
    parts: int
    memory: int
    folder: str


def parts_of(candidates: int, memory: int) -> int:
    """Return how many parts make room for as many candidates as there may be."""
    return min(MOST_PARTS, _BYTES * candidates // memory + 1)


def connect(work: ToConnect, report: Report) -> list[int]:
    """Write the candidates of each part, by their numbers (`CANDIDATES`-PART); return how many each shard has."""
    import numpy as np

    bounds = bounds_of(np.array(work.rows, dtype=np.int64))
    ranges = Ranges.of(int(bounds[-1]), work.memory)
    found = [0] * len(work.rows)
    before = _before(work, bounds, ranges)
    with ExitStack() as stack:
        paths = (join(work.folder, f"{CANDIDATES}-{part}") for part in range(work.parts))
        outputs = [stack.enter_context(SealedOutput(path)) for path in paths]
        for (numbers, labels), (olds, old_labels) in zip(components(_pairs(work, bounds), ranges), before, strict=True):
            mine = np.empty(len(numbers), dtype=CANDIDATE)
            mine["component"], mine["before"] = labels, numbers
            mine["before"][np.searchsorted(numbers, olds)] = old_labels
            shards = np.searchsorted(bounds, numbers, side="right") - 1
            edges = np.searchsorted(shards, np.arange(len(work.rows) + 1)).tolist()
            for shard in np.unique(shards).tolist():
                begin, end = edges[shard : shard + 2]
                rows = numbers[begin:end] - bounds[shard]
                known = np.frombuffer(read_sealed(join(work.folders[shard], "rows")), dtype=ROW)[rows]
                mine["document"][begin:end] = rows.astype("<u8") | np.uint64(shard << 32)
                mine["order"][begin:end], mine["shingles"][begin:end] = known["order"], known["shingles"]
                found[shard] += end - begin
            _write(mine, outputs)
    return found


def _write(candidates: Array, outputs: Sequence[SealedOutput]) -> None:
    """Write candidates to their parts."""
    import numpy as np

    hashes = candidates["component"] * np.uint64(0x9E3779B97F4A7C15) >> np.uint64(32)
    parts = (hashes % np.uint64(len(outputs))).astype(np.int64)
    order = np.argsort(parts, kind="stable")
    edges = np.searchsorted(parts[order], np.arange(len(outputs) + 1)).tolist()
    for output, begin, end in zip(outputs, edges, edges[1:], strict=False):
        output.write(candidates[order[begin:end]].tobytes())


def _before(work: ToConnect, bounds: Array, ranges: Ranges) -> Iterator[tuple[Array, Array]]:
    """Yield of each range the documents that shared a bucket before there were new shards, and their components."""
    import numpy as np

    if work.was_there:
        yield from components(_pairs(work, bounds, np.array(work.was_there)), ranges)
        return
    nothing = np.empty(0, dtype=np.int64)
    for _ in range(ranges.number):
        yield nothing, nothing


def _pairs(work: ToConnect, bounds: Array, which: Array | None = None) -> Iterator[Array]:
    """Yield all pairs, as rows of all shards one behind the other; if asked for, those of two shards of some alone."""
    import numpy as np

    for path in work.pairs:
        with open_stored(path) as stream:
            while data := stream.read(_PAIRS):
                found = np.frombuffer(data, dtype="<u8").reshape(-1, 2)
                shards = (found >> np.uint64(32)).astype(np.int64)
                pairs = bounds[shards] + (found & np.uint64(0xFFFFFFFF)).astype(np.int64)
                yield pairs if which is None else pairs[which[shards].all(axis=1)]
