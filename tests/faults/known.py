"""Cells in which a fault of the toolkit is known: by the names of row, column and kind, the requests, with the reason.

A cell that fails in another way than it says here fails its test; one that does not fail any more does so, too.
"""

_STAYS = "what may not be deleted stays: the former index is in the way, and so is the temporary file of the new one"

OPEN: dict[str, dict[str, str]] = {
    "in-place-EACCES-row_indexes": {"REMOVE": _STAYS},
    "in-place-EIO-row_indexes": {"REMOVE": _STAYS},
}
"""By the id of a cell: for each request of it that is judged wrong, why that is so."""
