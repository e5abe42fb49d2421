"""The second stage of a shuffle: what one sort in memory gives, each member read once, nothing left behind."""

import struct
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from toolkit.mix import assemble
from toolkit.mix.plan import PartPlan
from toolkit.storage.compression import compress_fast


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    runs=st.lists(st.lists(st.tuples(st.integers(0, 999), st.binary(max_size=40)), max_size=60), max_size=8),
    bounds=st.tuples(st.integers(0, 999), st.integers(0, 999)).map(sorted),
    range_=st.integers(16, 3000),
    most=st.integers(2, 5),
)
def test_pieces_come_in_the_order_of_hashes_and_then_as_they_were(
    runs: list[list[tuple[int, bytes]]],
    bounds: list[int],
    range_: int,
    most: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With ranges that do not fit, and are divided again, and with many pieces of one hash, which cannot be."""
    low, high = bounds
    wanted = [frame for run in runs for frame in run if low <= frame[0] <= high]
    stored = [b"".join(struct.pack(">QI", hash_, len(data)) + data for hash_, data in run) for run in runs]
    read: Counter[str] = Counter()

    def of_run(key: str, offset: int, length: int) -> bytes:
        read[key] += 1
        return compress_fast(stored[int(key)])

    part = PartPlan(
        label="",
        path="",
        pieces=[],
        size=sum(len(data) for _, data in wanted),
        documents=len(wanted),
        low=low,
        high=high,
        runs=[(str(number), 0, 0) for number in range(len(runs))],
    )
    with monkeypatch.context() as small:
        small.setattr(assemble, "RANGE", range_)
        small.setattr(assemble, "MOST", most)
        small.setattr(assemble, "JOINED", 100)
        chunks = list(assemble.sorted_chunks(part, of_run, "gzip-fast", str(tmp_path)))
    assert b"".join(chunks) == b"".join(data for _, data in sorted(wanted, key=lambda frame: frame[0]))
    assert all(0 < len(chunk) <= 100 for chunk in chunks if len(wanted) and chunk)
    assert set(read.values()) <= {1}
    assert list(tmp_path.iterdir()) == []
