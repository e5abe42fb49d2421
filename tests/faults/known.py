"""Cells that are known to fail: by the names of a row and a column, an empty one for all, with the reason."""

_ONE_RUN_DELETES = "documents and attributes that a run has yet to delete are neither those before nor those after it"
_UNSORTED = "not yet gone through: some of these findings are the judge's, some the toolkit's"

OPEN: dict[tuple[str, str], str] = {
    ("", "per-shard"): _ONE_RUN_DELETES,
    ("gone", "validate"): "a root that vanishes while it is validated reads as files that are missing",
    ("gone", "head"): "without a configuration no root is known whose vanishing could be told",
    ("gone", "stats"): "without a configuration no root is known whose vanishing could be told",
    ("gone", "clean"): "without a configuration no root is known whose vanishing could be told",
    ("gone", "card"): "the output of a card is not among the roots whose vanishing is told",
    ("gone", "croissant"): "the output of a description is not among the roots whose vanishing is told",
    **{(row, ""): _UNSORTED for row in ("truncated", "flipped", "empty", "folder")},
}


def why_open(row: str, column: str) -> str:
    """Return why a cell is known to fail; empty if it is not."""
    return OPEN.get((row, column)) or OPEN.get((row, "")) or OPEN.get(("", column)) or ""
