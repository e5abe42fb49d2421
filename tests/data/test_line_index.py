"""Indices of lines: those of others are read without unpickling, and held against their file."""

import gzip
import io
import os
import pickle
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.data import line_index
from toolkit.errors import DataError
from toolkit.validate.output import check

LINES = [b'{"a": 1}', '{"a": "é"}'.encode(), b"{}\r"]


def _file(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


@given(st.lists(st.tuples(*[st.integers(0, 1 << 70)] * 2)), st.sampled_from([2, 3, 4, 5]))
def test_what_pickle_writes_is_read(pairs: list[tuple[int, int]], protocol: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(line_index, "open_stored", lambda _: io.BytesIO(pickle.dumps(pairs, protocol)))
        assert list(line_index.read("x.idx")) == pairs


@given(
    st.integers(0, 3) | st.sampled_from([999, 1000, 1001, 2000, 9001, 30_000]),
    st.sampled_from([1, 200, 256, 65_535, 1 << 31, 1 << 33, 1 << 70]),
    st.integers(0, 1 << 40),
)
def test_pickles_written_in_pieces_are_those_of_pickle(pairs: int, step: int, first: int) -> None:
    listed = [(first + i * step, i % (step + 1)) for i in range(pairs)]
    assert b"".join(line_index.pickled_pairs(iter(listed))) == pickle.dumps(listed, protocol=4)


class _Runs:
    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, ("touch ran",)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (pickle.dumps([_Runs()]), "got SHORT_BINUNICODE at byte 13; it was not executed"),
        (pickle.dumps([(1, -2)]), "got BININT"),
        (pickle.dumps([(1, 2, 3)]), "got TUPLE3"),
        (pickle.dumps([(1, 2.5)]), "got BINFLOAT"),
        (pickle.dumps({1: 2}), "got EMPTY_DICT"),
        (pickle.dumps([[1, 2]]), "got EMPTY_LIST"),
        (pickle.dumps([(1, 2), (3, 4)])[:-1], "got damaged data"),
        (b"", "got damaged data"),
        (b"\xff\xff", "got damaged data"),
    ],
)
def test_anything_else_is_refused_and_not_run(
    data: bytes, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DataError, match=said):
        list(line_index.read(str(_file(tmp_path / "x.idx", data))))
    assert os.listdir() == ["x.idx"]


@given(st.binary(max_size=60))
def test_no_bytes_raise_another_error(data: bytes) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(line_index, "open_stored", lambda _: io.BytesIO(b"\x80\x04]" + data))
        with suppress(DataError):
            list(line_index.read("x.idx"))


@pytest.mark.parametrize("ends", [b"\n", b""])
def test_an_index_is_held_against_its_file(ends: bytes, tmp_path: Path) -> None:
    _file(tmp_path / "x.jsonl", b"\n".join(LINES) + ends)
    index = str(tmp_path / "x.idx")
    line_index.write(str(tmp_path / "x.jsonl"), map(len, LINES), between=1)
    assert pickle.loads(Path(index).read_bytes()) == [(0, 8), (9, 11), (21, 3)]
    assert check(index, None, 100) == []
    Path(index).write_bytes(pickle.dumps([(0, 8), (9, 10)]))
    first, second = check(index, None, 100)
    assert first.endswith("line 2 of " + index[:-3] + "jsonl: expected (9, 11), got (9, 10); it counts characters, as "
                          "Modalities did up to 0.3.2; make it again")  # fmt: skip
    assert second.endswith("expected (21, 3), got no entry")
    assert len(check(index, 2, 100)) == 1
    Path(index).write_bytes(pickle.dumps([(0, 8), (9, 11), (21, 3), (24, 0)]))
    assert "because there is no such line, got (24, 0)" in check(index, None, 100)[0]
    assert "expected lines of at most 9 bytes" in check(index, None, 9)[0]
    os.remove(tmp_path / "x.jsonl")
    assert "expected the file that it is of beside it" in check(index, None, 100)[0]


def test_members_are_read_one_by_one(tmp_path: Path) -> None:
    members = [gzip.compress(line + b"\n") for line in LINES]
    path = _file(tmp_path / "x.jsonl.gz", b"".join(members))
    index = line_index.path_of(str(path))
    assert index == str(tmp_path / "x.jsonl.idx")
    line_index.write(str(path), map(len, members), between=0)
    assert check(index, None, 100) == []
    path.write_bytes(b"".join((*members, members[0])))
    assert f"expected an entry for what is at {sum(map(len, members))}, got none" in check(index, None, 100)[0]
    for pairs, said in (
        ([(0, len(members[0])), (len(members[0]) + 1, 5)], "expected the offset"),
        ([(0, 1 << 60)], "to be a gzip member with one line"),
        ([(0, len(members[0]) + len(members[1]))], "to be a gzip member with one line"),
        ([(0, len(members[0]) - 1)], "to be a gzip member with one line"),
    ):
        Path(index).write_bytes(pickle.dumps(pairs))
        assert said in check(index, None, 100)[0]
