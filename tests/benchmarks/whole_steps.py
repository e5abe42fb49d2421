"""Steps over all shards at sizes of a crawl, without its text: `python -m tests.benchmarks.whole_steps FOLDER ROWS`.

Keys, scores, amounts and bands are made as signatures would be; then samples, bounds of a budget, cuts of a shuffled
output, ranks and groups of near duplicates are found. Each task is a process of its own, whose peak memory and CPU are
printed, for the longest and for all.
"""

import multiprocessing
import resource
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from toolkit.data.dataset import Dataset
from toolkit.data.row_index import ShardState
from toolkit.exchange.thresholds import Keys, KeySource, in_groups
from toolkit.execution.executors import Report, Task
from toolkit.mix.budget.bounds import find_bounds
from toolkit.text.batch import Batch
from toolkit.whole_corpus.kind import Files, ResolveJob, TextBlock
from toolkit.whole_corpus.kinds.rank import rank_scores
from toolkit.whole_corpus.kinds.sample import choose
from toolkit.whole_corpus.near import components
from toolkit.whole_corpus.near.decisions import plan
from toolkit.whole_corpus.near.minhash import row_type
from toolkit.whole_corpus.records import SignatureRecord, SignedShard
from toolkit.whole_corpus.score_runs import RunLayout, ScoresOutput

SHARD = 1_000_000
GROUPS = 100
BANDS = 14
COPIES = 10
"""Near duplicates: a tenth of the documents, ten of each on average."""

MEMORY = 256_000_000


def keys_of(shard: int, rows: int) -> tuple[Any, Any]:
    """The key and the group of each row of a shard."""
    drawn = np.random.default_rng(shard)
    return drawn.integers(0, 2**64, rows, dtype=np.uint64), (GROUPS * drawn.random(rows) ** 3).astype(np.uint32)


class Drawn(KeySource):
    """Keys of shards, as `keys_of` has them, in groups."""

    folder: str
    shards: list[int]
    counts: bool = False

    def read(self) -> Iterator[Keys]:
        for shard in self.shards:
            data = np.load(f"{self.folder}/keys-{shard}.npy")
            order = np.lexsort((data["key"], data["group"]))
            ends = np.searchsorted(data["group"][order], np.arange(GROUPS + 1))
            for group in range(GROUPS):
                mine = data[order[ends[group] : ends[group + 1]]]
                amounts = np.ones(len(mine)) if self.counts else mine["amount"]
                yield Keys(group, mine["key"], amounts, (shard << 32) + order[ends[group] : ends[group + 1]])


def _call(connection: Any, function: Callable[..., Any], payload: Any) -> None:
    idle = resource.getrusage(resource.RUSAGE_SELF)
    value = function(payload, lambda *_: None)
    used = resource.getrusage(resource.RUSAGE_SELF)
    connection.send((value, used.ru_maxrss / 1e3, idle.ru_maxrss / 1e3, used.ru_utime + used.ru_stime))


class Steps:
    """Runs tasks, each in a process of its own, and keeps what they used."""

    def __init__(self) -> None:
        self._context = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload([__name__, "toolkit.exchange.tables"])
        self.peak = self.idle = self.cpu = self.longest = 0.0
        self.tasks = 0

    def run(self, what: str, function: Callable[[Any, Report], Any], tasks: Sequence[Task[Any]]) -> list[Any]:
        found = []
        for task in tasks:
            here, there = self._context.Pipe(duplex=False)
            process = self._context.Process(target=_call, args=(there, function, task.payload))
            process.start()
            value, peak, idle, cpu = here.recv()
            process.join()
            self.peak, self.idle = max(self.peak, peak), max(self.idle, idle)
            self.cpu, self.longest, self.tasks = self.cpu + cpu, max(self.longest, cpu), self.tasks + 1
            found.append(value)
        return found


def signed(folder: Path, shard: int, rows: int) -> SignedShard:
    """The scores of a shard, signed for exact ranks within groups."""
    drawn, where = np.random.default_rng(shard), folder / "signatures" / f"{shard}"
    with ExitStack() as stack:
        files = Files(str(where), stack)
        output = ScoresOutput(files, RunLayout(1, 0, labels=False))
        for first in range(0, rows, 1 << 16):
            count = min(1 << 16, rows - first)
            labels = [f"g{number:02}" for number in (GROUPS * drawn.random(count) ** 3).astype(int).tolist()]
            output.add(TextBlock(first, Batch([]), [True] * count, {}), [labels], [drawn.random(count).tolist()], [])
        output.flush()
    return _recorded(folder, shard, rows, files, {"ranked": rows}, msgspec.to_builtins(output.runs))


def banded(folder: Path, shard: int, rows: int, all_rows: int) -> SignedShard:
    """The bands of a shard, signed for near duplicates that share each band with their copies."""
    drawn, where = np.random.default_rng(shard), folder / "signatures" / f"{shard}"
    with ExitStack() as stack:
        files = Files(str(where), stack)
        keys = drawn.integers(0, 2**64, (rows, BANDS), dtype=np.uint64)
        copies = np.flatnonzero(drawn.random(rows) < 0.1)
        of = drawn.integers(1, all_rows // (10 * COPIES) + 2, len(copies), dtype=np.uint64)
        for band in range(BANDS):
            keys[copies, band] = of * np.uint64(0x9E3779B97F4A7C15) ^ np.uint64(band << 56 | band << 20)
        files.open("keys").write(keys.astype("<u8").tobytes())
        written = np.zeros(rows, dtype=row_type(""))
        written["shingles"] = 100
        files.open("rows").write(written.tobytes())
    return _recorded(folder, shard, rows, files, {"compared": rows}, None)


def _recorded(
    folder: Path, shard: int, rows: int, files: Files, counts: dict[str, int], details: object
) -> SignedShard:
    state = ShardState(size=0, stamp="", content="", rows=rows, chars=0, bytes=0, head="")
    record = SignatureRecord(
        input=state, settings={}, reads={}, files=files.states(), rows=rows, compared=rows, counts=counts,
        details=details,
    )  # fmt: skip
    return SignedShard(
        dataset=Dataset(str(folder), str(folder)), folder=str(folder / "signatures"), shard=f"{shard}", number=shard,
        record=record, own=True,
    )  # fmt: skip


def main(folder: Path, rows: int) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "work").mkdir(parents=True)
    sizes = [min(SHARD, rows - first) for first in range(0, rows, SHARD)]
    counts = np.zeros(GROUPS, dtype=np.int64)
    sums = np.zeros(GROUPS)
    for shard, size in enumerate(sizes):
        keys, groups = keys_of(shard, size)
        data = np.zeros(size, dtype=[("key", "<u8"), ("group", "<u4"), ("amount", "<f8")])
        data["key"], data["group"], data["amount"] = keys, groups, keys % np.uint64(5000)
        np.save(folder / f"keys-{shard}.npy", data)
        counts += np.bincount(groups, minlength=GROUPS)
        sums += np.bincount(groups, weights=data["amount"], minlength=GROUPS)
    sources = [Drawn(folder=str(folder), shards=[*range(first, last)]) for first, last in in_groups(sizes)]
    work = str(folder / "work")

    def sample(steps: Steps) -> None:
        counted = [msgspec.structs.replace(source, counts=True) for source in sources]
        choose(steps.run, work, counted, counts.tolist(), (counts // 3).tolist(), MEMORY)

    def budget(steps: Steps) -> None:
        find_bounds(steps.run, "bounds", work, sources, [[total / 2] for total in sums.tolist()])

    def cuts(steps: Steps) -> None:
        find_bounds(
            steps.run, "bounds", work, sources, [[total * i / 50 for i in range(1, 50)] for total in sums.tolist()]
        )

    def ranks(steps: Steps) -> None:
        rank_scores(ResolveJob(shards, work, work, "", refit=False, memory=MEMORY, run=steps.run), 0)

    def near(steps: Steps) -> None:
        work_ = ResolveJob(shards, work, work, "", refit=False, memory=MEMORY, run=steps.run)
        comparing = components.Comparing(
            bands=BANDS, size=None, jaccard=0.8, containment=1.0, descending=False, ranks="", warn=1.0
        )
        places = [components.ShardPlace(folder=each.path(""), rows=each.record.rows) for each in shards]
        layout = components.ResolutionLayout(comparing=comparing, memory=MEMORY, shards=places, own=0, fates=work)
        components.save_layout(work_.scratch, layout)
        plan(work_, comparing, work_.scratch)

    for step in (sample, budget, cuts):
        timed(step, rows)
    for shard in range(len(sizes)):
        (folder / f"keys-{shard}.npy").unlink()
    shards = [signed(folder, shard, size) for shard, size in enumerate(sizes)]
    timed(ranks, rows)
    shutil.rmtree(folder / "signatures")
    shards = [banded(folder, shard, size, rows) for shard, size in enumerate(sizes)]
    timed(near, rows)
    shutil.rmtree(folder)


def timed(step: Callable[[Steps], None], rows: int) -> None:
    steps, before, driver = Steps(), time.perf_counter(), time.process_time()
    step(steps)
    print(
        f"{step.__name__:7} {rows:>13,} rows  {steps.tasks:4} tasks  CPU {steps.cpu:7.1f} s, longest task "
        f"{steps.longest:6.1f} s, driver {time.process_time() - driver:5.1f} s  peak of a task {steps.peak:5.0f} MB, "
        f"idle {steps.idle:3.0f} MB  wall {time.perf_counter() - before:6.1f} s",
        flush=True,
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(float(sys.argv[2])))
