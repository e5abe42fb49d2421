"""Rows that are scattered come back in their order, whatever the number of objects, partitions and bytes of memory."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from toolkit.errors import DataError
from toolkit.exchange import checksummed, scatter
from toolkit.exchange.checksummed import BLOCK, Sealed, read_sealed, write_sealed
from toolkit.exchange.scatter import Scatter, gather, once, ranges, settle
from toolkit.exchange.tables import Tables
from toolkit.execution.executors import Report, Task

TYPE = np.dtype([("key", "<u8"), ("payload", "<u4")])
ROWS = 1000


def run(_: str, function: Callable[[Any, Report], Any], tasks: list[Task[Any]]) -> list[Any]:
    return [function(task.payload, lambda *_: None) for task in tasks]


def scattered(folder: Path, partitions: int, memory: int) -> list[str]:
    """Scatter rows of three groups by what is left of their keys."""
    objects = []
    for group in range(3):
        with Scatter(str(folder / f"rows-{group}"), TYPE, partitions, memory) as scatter:
            for first in range(0, ROWS, 100):
                records = np.zeros(100, dtype=TYPE)
                records["key"] = np.arange(first, first + 100) * 7919 % 1009 + group
                payload = [b"x" * (key % 5) + str(key).encode() for key in records["key"].tolist()]
                scatter.add(records, (records["key"] % partitions).astype(np.int64), payload)
        objects += scatter.objects
    return objects


@pytest.mark.parametrize(("partitions", "memory", "most"), [(1, 1 << 20, 512), (16, 40_000, 512), (16, 40_000, 3)])
def test_rows_come_back_in_their_order(
    partitions: int, memory: int, most: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scatter, "MOST", most)
    objects = scattered(tmp_path, partitions, memory)
    settle(run, str(tmp_path), "rows", objects)
    parts = ranges(str(tmp_path), ["rows"], memory)
    assert [parts[0][0], parts[-1][1]] == [0, partitions]
    assert (len(parts), len(objects)) > (1, 3) or partitions == 1
    keys = [i * 7919 % 1009 + group for group in range(3) for i in range(ROWS)]
    for number in range(partitions):
        records, payload = gather(str(tmp_path), "rows", number, number + 1, TYPE)
        wanted = [key for key in keys if key % partitions == number]
        assert records["key"].tolist() == wanted
        assert payload == [b"x" * (key % 5) + str(key).encode() for key in wanted]
    together = [gather(str(tmp_path), "rows", *part, TYPE).records for part in parts]
    assert sum(map(len, together)) == len(keys)


@pytest.mark.parametrize("damage", ["flipped", "cut", "gone"])
def test_a_damaged_object_is_an_error(damage: str, tmp_path: Path) -> None:
    objects = scattered(tmp_path, 4, 1 << 20)
    settle(run, str(tmp_path), "rows", objects)
    path = Path(objects[1])
    data = bytearray(path.read_bytes())
    data[-20] ^= 1
    path.unlink() if damage == "gone" else path.write_bytes(data if damage == "flipped" else data[:-50])
    with pytest.raises(DataError, match=r"\.rows: expected .* it was damaged; delete /"):
        gather(str(tmp_path), "rows", 0, 4, TYPE)


def test_a_task_is_done_once_for_what_it_is_made_of(tmp_path: Path) -> None:
    calls: list[int] = []

    def make() -> int:
        calls.append(0)
        return len(calls)

    path = str(tmp_path / "task.json")
    assert [once(path, key, int, make) for key in ("a", "a", "b", "b", "a")] == [1, 1, 2, 2, 3]
    (tmp_path / "task.json").write_bytes(b"{")
    assert once(path, "a", int, make) == 4


@pytest.mark.slow
def test_an_answer_does_not_depend_on_memory() -> None:
    """Also where it is spilled; nothing else in the process is a table."""
    values = np.random.default_rng(0).integers(0, 1 << 40, 2_000_000).astype(np.uint64)
    sql = "SELECT a, row_number() OVER (PARTITION BY a % 7 ORDER BY a, n) AS i FROM t ORDER BY i, a"
    answers = []
    for memory in (1, 1 << 32):
        with Tables(memory) as tables:
            answers.append(tables.query(sql, t={"a": values, "n": np.arange(len(values))}))
    assert all((answers[0][name] == answers[1][name]).all() for name in ("a", "i"))
    with Tables(1) as tables, pytest.raises(Exception, match="values"):
        tables.query("SELECT * FROM values_that_are_not_there")


# Files that are read in pieces, each held against what was written.

SIZES = (0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK, 3 * BLOCK + 5)


def data_of(size: int) -> bytes:
    return bytes(i * 7919 % 251 for i in range(size))


@pytest.mark.slow
@given(st.sampled_from(SIZES), st.data())
def test_pieces_are_those_of_what_was_written(size: int, choose: st.DataObject) -> None:
    data = data_of(size)
    begin = choose.draw(st.integers(0, size))
    end = choose.draw(st.integers(begin, size))
    stored = checksummed._sealed(memoryview(data))
    first, last = begin // BLOCK, -(-end // BLOCK)
    assert (
        checksummed.opened("x", stored[first * (BLOCK + 8) : last * (BLOCK + 8)], begin - first * BLOCK, end - begin)
        == data[begin:end]
    )


@pytest.mark.parametrize("size", SIZES)
def test_a_file_is_read_whole_in_pieces_and_on(tmp_path: Path, size: int) -> None:
    path, data = str(tmp_path / "x"), data_of(size)
    write_sealed(path, data)
    assert read_sealed(path) == data
    assert read_sealed(path, size // 2) == data[size // 2 :]
    assert read_sealed(path, size // 3, size // 3) == data[size // 3 : size // 3 * 2]
    with Sealed(path) as file:
        found = b""
        while block := file.read(1000):
            found += block
        assert found == data
        assert file.at(size // 2, size) == data[size // 2 :]
    with pytest.raises(DataError, match="expected what was written, got other bytes"):
        read_sealed(path, size, 1)


@pytest.mark.parametrize("place", [0, BLOCK - 1, BLOCK, BLOCK + 7, BLOCK + 8, -9, -1])
def test_a_bit_that_has_changed_is_told(tmp_path: Path, place: int) -> None:
    path = tmp_path / "x"
    write_sealed(str(path), data_of(2 * BLOCK + 9))
    stored = bytearray(path.read_bytes())
    stored[place] ^= 4
    path.write_bytes(stored)
    with pytest.raises(DataError, match=r"x: expected what was written.*delete it, then run again"):
        read_sealed(str(path))
    path.write_bytes(stored[:-3])
    with pytest.raises(DataError, match="it was damaged"):
        read_sealed(str(path), 2 * BLOCK, 9)
