"""Fields and texts of rules that may occur in no document: where the check of types cannot tell, documents do.

A misspelt ``metadata.adlut`` is null in every document, a misspelt ``label == "german"`` true of none: the rule does
nothing, and is no error. So what documents have at such places is noted, a few bits for each place and shard.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

ABSENT, BOOLEAN, NUMBER, TEXT, LIST, OBJECT = (1 << bit for bit in range(6))
"""Bits of the kinds of values that documents have at a place; null and empty lists are `ABSENT`."""

WORDS = {BOOLEAN: "true or false", NUMBER: "a number", TEXT: "a text", LIST: "a list", OBJECT: "an object"}

_KINDS = {type(None): ABSENT, bool: BOOLEAN, int: NUMBER, float: NUMBER, str: TEXT, list: LIST, tuple: LIST}


class Place(NamedTuple):
    """A part of an expression whose value may occur in no document.

    Attributes:
        text: as people write it: ``metadata.adlut``, ``label == "german"``.
        code: of its value; of a comparison with a text, true or false.
        compares: whether it is a comparison, which has to be true once.
    """

    text: str
    code: str
    compares: bool = False


class Occurrence:
    """The places of a stream's rules.

    Args:
        places: of each rule, by its index.
        function: makes code a function of the values of a document.

    Attributes:
        rules: indexes of the rules that have a place, by its text.
        compared: the texts of places that are comparisons.
    """

    def __init__(self, places: Mapping[int, Iterable[Place]], function: Callable[[str], Callable[..., Any]]) -> None:
        listed = {place.text: place for of_rule in places.values() for place in of_rule}
        self.rules = {
            text: [i for i, of_rule in places.items() if any(place.text == text for place in of_rule)]
            for text in listed
        }
        self.compared = {text for text, place in listed.items() if place.compares}
        self._fields = {text: place.code for text, place in listed.items() if not place.compares}
        self._comparisons = {text: function(listed[text].code) for text in listed if text in self.compared}
        self._of_fields = function("".join(f"{code}, " for code in self._fields.values())) if self._fields else None
        self._function = function

    def note(self, seen: dict[str, int], values: Sequence[Any]) -> None:
        """Add the kinds of a document's fields.

        Args:
            seen: bits by the text of a place.
            values: of the document, one for each argument, the document last.
        """
        if self._of_fields is None:
            return
        try:
            found: Iterable[Any] = self._of_fields(*values)
        except Exception:  # of one of them: a rule that comes to it tells that
            found = [_value(self._function(code), values) for code in self._fields.values()]
        for text, value in zip(self._fields, found, strict=True):
            kind = _KINDS.get(type(value), OBJECT) if value != [] else ABSENT
            seen[text] = seen.get(text, 0) | kind

    def note_all(self, seen: dict[str, int], columns: Sequence[Sequence[Any]]) -> None:
        """Add the kinds of fields of many documents, and which comparisons are true of one of them.

        Args:
            seen: as of `note`.
            columns: for each argument its values.
        """
        for values in zip(*columns, strict=True) if self._of_fields else ():
            self.note(seen, values)
        for text, function in self._comparisons.items():
            if not seen.get(text, 0) & BOOLEAN:
                rows = zip(*columns, strict=True)
                seen[text] = BOOLEAN if any(_value(function, values) for values in rows) else ABSENT


def _value(function: Callable[..., Any], values: Sequence[Any]) -> Any:
    try:
        return function(*values)
    except Exception:
        return None


def merge(mine: dict[str, int], theirs: Mapping[str, int]) -> None:
    """Add the bits of other documents."""
    for text, bits in theirs.items():
        mine[text] = mine.get(text, 0) | bits
