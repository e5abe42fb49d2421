"""Tables of labels that are confused, for people."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from toolkit.commands.steps.outcome import table
from toolkit.data import excerpts

MATRIX = 8
"""Labels up to which a matrix is shown; of more, the pairs that are met most."""

PAIRS = 20


def confusion(pairs: Mapping[tuple[Any, ...], int], names: tuple[str, str], *, whole: bool) -> str:
    """Return a matrix of labels, the first ones down; of many labels the pairs that differ most often.

    Args:
        pairs: of labels, with their documents.
        names: of where the first and the second labels are from.
        whole: whether these are all pairs.
    """
    totals: list[Counter[Any]] = [Counter(), Counter()]
    for pair, count in pairs.items():
        for total, label in zip(totals, pair, strict=True):
            total[label] += count
    if all(len(total) <= MATRIX for total in totals) and whole:
        columns = sorted(totals[1], key=str)
        rows = [[f"{names[0]} \\ {names[1]}", *map(_label, columns)]]
        for label in sorted(totals[0], key=str):
            rows.append([_label(label), *(f"{pairs.get((label, column), 0):,}" for column in columns)])
        return table(rows, right=range(1, len(rows[0])))
    different = sorted(((c, pair) for pair, c in pairs.items() if pair[0] != pair[1]), key=lambda each: -each[0])
    if not different:
        return f"{len(totals[0]):,} labels"
    rows = [[*names, "documents"]]
    rows += [[_label(one), _label(other), f"{count:,}"] for count, (one, other) in different[:PAIRS]]
    more = len(different) - PAIRS
    return table(rows, right=[2]) + (f"\nand {more:,} other pairs" if more > 0 else "")


def _label(label: Any) -> str:
    return excerpts.head(str(label), 40)
