"""Files that are read in pieces, each held against what was written."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.errors import DataError
from toolkit.exchange import sealed
from toolkit.exchange.sealed import BLOCK, Sealed, read_sealed, write_sealed

SIZES = (0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK, 3 * BLOCK + 5)


def data_of(size: int) -> bytes:
    return bytes(i * 7919 % 251 for i in range(size))


@given(st.sampled_from(SIZES), st.data())
def test_pieces_are_those_of_what_was_written(size: int, choose: st.DataObject) -> None:
    data = data_of(size)
    begin = choose.draw(st.integers(0, size))
    end = choose.draw(st.integers(begin, size))
    stored = sealed._sealed(memoryview(data))
    first, last = begin // BLOCK, -(-end // BLOCK)
    assert (
        sealed.opened("x", stored[first * (BLOCK + 8) : last * (BLOCK + 8)], begin - first * BLOCK, end - begin)
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
