"""Parquet and Arrow files, whose readers are libraries in C++."""

import io
from typing import Any

import pyarrow as pa
from pyarrow import parquet as library

from tests.fuzz.targets._files import read_input

_TABLE = pa.table({
    "id": ["a", "b", None],
    "text": ["one", "two", "three"],
    "n": pa.array([1, None, 3], pa.int32()),
    "l": [[1.5, None], [], None],
    "o": [{"x": 1, "y": "z"}, None, {"x": None, "y": ""}],
    "t": pa.array([0, 1, None], pa.timestamp("us")),
    "b": pa.array([b"\xff", b"", None]),
})  # fmt: skip


def _stored(**options: Any) -> bytes:
    out = io.BytesIO()
    library.write_table(_TABLE, out, **options)
    return out.getvalue()


def _arrow() -> bytes:
    out = io.BytesIO()
    with pa.ipc.new_stream(out, _TABLE.schema) as stream:
        stream.write_table(_TABLE)
    return out.getvalue()


SEEDS = [
    _stored(compression="none"),
    _stored(row_group_size=1, use_dictionary=False),
    _stored(compression="zstd"),
    _arrow(),
]


def check(data: bytes) -> None:
    read_input(data, "parquet")
    read_input(data, "arrow")
