"""The parts of a JSONPath: steps, and in filters tests and operands. Only what Dolma knows and we support.

`$.attributes[?(@.k[0] > 0.5)]` is::

    (Key("attributes"), Filter(Comparison(Query((Key("k"), Element(0)), of_document=False), ">", Constant(0.5))))
"""

from typing import Any

from msgspec import Struct


class Key(Struct, frozen=True):
    """From an object to the value of a key."""

    name: str


class Element(Struct, frozen=True):
    """From a list to an element, counted from 0."""

    index: int


class Slice(Struct, frozen=True):
    """From a list to some of its elements; negative bounds count from the end, an end of 0 is the end."""

    start: int
    end: int
    step: int


class Children(Struct, frozen=True):
    """To all values of an object or elements of a list."""


class Descendants(Struct, frozen=True):
    """To all that is anywhere in a value, or only what has a name."""

    name: str | None


class Several(Struct, frozen=True):
    """To what each of some steps leads to, all keys or all elements."""

    steps: "tuple[Step, ...]"


class Filter(Struct, frozen=True):
    """To the elements of a list, or the value itself if it is none, for which a test holds."""

    test: "Test"


class Query(Struct, frozen=True):
    """A path, for what it finds; as a test, that it finds anything.

    Attributes:
        path: the path.
        of_document: it begins at the document, not at the value that is tested.
    """

    path: "Path"
    of_document: bool


class Constant(Struct, frozen=True):
    """A null, boolean, number or text; a list of texts, or of at least two numbers."""

    value: Any


class Comparison(Struct, frozen=True):
    """Operands with one of the operators ``== != < > <= >= in`` between them."""

    left: "Operand"
    operator: str
    right: "Operand"


class And(Struct, frozen=True):
    """That both tests hold."""

    left: "Test"
    right: "Test"


class Or(Struct, frozen=True):
    """That one test holds at least."""

    left: "Test"
    right: "Test"


class Not(Struct, frozen=True):
    """That a test does not hold."""

    test: "Test"


Step = Key | Element | Slice | Children | Descendants | Several | Filter
Path = tuple[Step, ...]
Operand = Query | Constant
Test = Query | Comparison | And | Or | Not
