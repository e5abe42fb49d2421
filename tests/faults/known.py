"""Faults whose cells are known to fail, by row and kind of files (all, where it is empty), with the reason."""

OPEN: dict[tuple[str, str], str] = {}
