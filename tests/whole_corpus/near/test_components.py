"""Components of graphs, over any number of partitions and tasks."""

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from hypothesis import given, settings, strategies as st

from toolkit.exchange.scatter import gather
from toolkit.execution.executors import Report, Task
from toolkit.whole_corpus.kind import ResolveJob
from toolkit.whole_corpus.near.components import EDGE, RowGroups, find_components, scatter_pairs


def run(_: str, function: Callable[[Any, Report], Any], tasks: list[Task[Any]]) -> list[Any]:
    return [function(task.payload, lambda *_: None) for task in tasks]


def components(pairs: "np.ndarray[Any, Any]", partitions: int, pieces: int, memory: int) -> dict[int, int]:
    """The component of each number of a pair; there is no shard but the first."""
    work: Any = ResolveJob([], "", "", "", False, memory, run)
    with TemporaryDirectory() as folder:
        objects = []
        for i, part in enumerate(np.array_split(pairs.astype("<u8"), pieces)):
            objects += scatter_pairs(str(Path(folder) / f"part-{i}"), part, partitions, both=True)
        find_components(work, folder, objects, partitions, RowGroups(number=1, shards=1, rows=1000))
        labels = gather(folder, "labels", 0, 1, np.dtype(EDGE)).records
    assert len({*labels["of"].tolist()}) == len(labels)
    return dict(zip(labels["of"].tolist(), labels["to"].tolist(), strict=True))


def slowly(pairs: list[tuple[int, int]]) -> dict[int, int]:
    """Of each number of a pair the least one that it is connected with."""
    found = {number: number for pair in pairs for number in pair}
    for _ in found:
        for a, b in pairs:
            found[a] = found[b] = min(found[a], found[b])
    return found


NUMBERS = st.integers(0, 20)


@given(
    st.lists(st.tuples(NUMBERS, NUMBERS).filter(lambda pair: pair[0] != pair[1])), st.integers(1, 9), st.integers(1, 5)
)
@settings(max_examples=40)
def test_components_are_those_of_plain_python(pairs: list[tuple[int, int]], partitions: int, pieces: int) -> None:
    rows = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    assert components(rows, partitions, pieces, 1) == slowly(pairs)


def test_a_chain_through_all_partitions_is_one_component() -> None:
    chain = np.stack([np.arange(999), np.arange(1, 1000)], axis=1)
    found = components(np.random.default_rng(1).permutation(chain), 7, 3, 1 << 30)
    assert found == dict.fromkeys(range(1000), 0)
