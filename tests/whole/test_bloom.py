"""Bloom filters: nothing that was seen is new, and what is new counts as seen as rarely as was asked for."""

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.pipeline.conftest import document
from tests.whole.making import make, write_shards
from toolkit.errors import ConfigError
from toolkit.whole.exact import table


@pytest.mark.parametrize("rate", [0.1, 0.01, 0.001])
def test_the_rate_is_met(rate: float) -> None:
    """Of hashes that are all different, as when the filter is made for them alone: it fills up to the last."""
    high, low = np.random.default_rng(1).integers(0, 1 << 64, (2, 200_000), dtype=np.uint64)
    seen = 1 - table.first_seen(high, low, rate).mean()
    assert 0 < seen <= rate
    again = table.first_seen(np.concatenate([high, high]), np.concatenate([low, low]), rate)
    assert not again[len(high) :].any()


def test_what_is_small_is_as_asked_for() -> None:
    assert table.bits_of(0, 1e-6) == 64
    assert table.bits_of(1_000_000, 1e-6) / 8e6 == pytest.approx(1.1 * 3.594, rel=1e-3)  # bytes a hash


def shards(count: int, seed: int) -> dict[str, list[dict[str, Any]]]:
    chance = random.Random(seed)
    return {
        f"{shard}.jsonl.gz": [
            document(f"{shard}-{i}", "\n".join(str(chance.randrange(4000)) for _ in range(30))) for i in range(60)
        ]
        for shard in range(count)
    }


def test_lines_are_those_of_the_exact_set_but_for_some_and_the_same_each_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table, "KEYS", 500)
    dataset = write_shards(tmp_path, shards(4, 2))
    rate = 0.05
    entry = {"kind": "exact", "unit": "line", "approximate": "bloom", "false_positive_rate": rate}
    sets: dict[str, dict[str, Any]] = {"e-0": {"kind": "exact", "unit": "line", "as": "e"}, "b-0": {**entry, "as": "b"},
            "c-0": {**entry, "as": "c", "memory": 100_000}}  # fmt: skip
    found = {}
    for name, options in sets.items():
        made = make(dataset, {name: options})
        found[name] = [line for shard in made.values.values() for line in shard]
        notes = made.resolutions[name].notes
        assert options.get("approximate") is None or notes[0].startswith("Bloom filters of 0.0 MB in ")
    exact, near, again = found.values()
    assert near == again
    pairs = [(a, b) for x, y in zip(exact, near, strict=True) for a, b in zip(x["seen"], y["seen"], strict=True)]
    assert all(b for a, b in pairs if a)
    new = [b for a, b in pairs if not a]
    assert 0 < sum(new) / len(new) <= rate
    with pytest.raises(ConfigError, match="memory: expected at least 1 MB for `approximate: bloom`"):
        make(dataset, {"d-0": {**entry, "as": "d", "memory": 1000}})
