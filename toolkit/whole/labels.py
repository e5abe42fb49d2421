"""Groups of documents, by the text of what expressions say of them: strata of samples, groups of ranks."""

from typing import Any

import msgspec

from toolkit.errors import DataError

MOST = 10_000
"""Groups of a set: more are a mistake, as a rule, say an expression over the id."""


class Labels:
    """Numbers the groups of a shard's documents in the order in which they are met.

    Args:
        option: that says what the groups are, for messages.
        what: they are, for messages.
    """

    def __init__(self, option: str, what: str) -> None:
        self._option, self._what = option, what
        self._numbers: dict[str, int] = {}

    def number(self, values: list[Any]) -> int:
        """Return the number of the group of a document; without values all are in one.

        Raises:
            DataError: if there are too many.
        """
        label = "/".join(map(_label, values))
        number = self._numbers.setdefault(label, len(self._numbers))
        if number >= MOST:
            raise DataError(
                f"{self._option}: expected at most {MOST:,} {self._what}, got more; the last one is {label!r}"
            )
        return number

    @property
    def all(self) -> list[str]:
        """Return the labels, by their numbers."""
        return [*self._numbers]


def _label(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value, order="sorted").decode()
