"""Partials add up, and one that the power has taken is made again."""

import os
from pathlib import Path

import pytest

from toolkit import partial_sums


def test_a_partial_is_not_synced_because_a_damaged_one_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", synced.append)
    path = tmp_path / "new" / "x.counts"
    partial_sums.save(str(path), {"a": [1, 2]})
    assert (partial_sums.load(str(path), dict[str, list[int]]), synced) == ({"a": [1, 2]}, [])
    for damaged in (b"", bytes(20), path.read_bytes()[:-3]):
        path.write_bytes(damaged)
        assert partial_sums.load(str(path), dict[str, list[int]]) is None
