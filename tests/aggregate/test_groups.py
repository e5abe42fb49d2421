"""Sums by group are exact, however many groups there are and however few fit into memory."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from toolkit.aggregate.groups import Groups, read, write
from toolkit.aggregate.tables import Table


@pytest.mark.parametrize("held", [1, 7, 1000])
def test_groups_that_do_not_fit_are_merged(tmp_path: Path, held: int) -> None:
    random = np.random.default_rng(0)
    table = Groups(str(tmp_path), held)
    expected: dict[str, Counter[int]] = {}
    for _ in range(20):
        keys = [f'"{n}"' for n in random.integers(0, 300, size=40).tolist()]
        rows = random.integers(0, 1000, size=(40, 5))
        table.add(keys, rows)
        for key, row in zip(keys, rows.tolist(), strict=True):
            expected.setdefault(key, Counter()).update(dict(enumerate([1, *row])))
    found = list(table)
    assert found == [(key, [expected[key][i] for i in range(6)]) for key in sorted(expected)]
    path = str(tmp_path / "kept.jsonl.gz")
    assert write(path, iter(table)) == len(expected)
    assert list(read(path)) == found


def test_a_table_shows_the_largest_and_counts_the_others(tmp_path: Path) -> None:
    groups = [(f'"{name}"', [1, 1, 1, size, 1, 0]) for name, size in zip("abcde", (5, 9, 9, 1, 7), strict=True)]
    table = Table.of("host", groups, 2, unicode=False)
    assert [name for name, _ in table.groups] == ["b", "c"]
    assert (table.others[0], table.others[1].bytes, table.total.bytes) == (3, 13, 31)
    assert table.total.unicode_words is None
