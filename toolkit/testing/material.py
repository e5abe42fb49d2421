"""Texts and values that the contract suites give to plugins."""

from collections.abc import Mapping
from typing import Any, get_args, get_origin

import msgspec

from toolkit.data.documents import Document, Prediction, Span

NASTY: Mapping[str, str] = {
    "spaces": " " * 100_000,
    "one long line": "word, " * 17_000,
    "one long word": "x" * 100_000,
    "only newlines": "\n" * 20_000,
    "only carriage returns": "\r" * 1000,
    "windows": "one\r\ntwo\r\n\r\nthree\r\r\n",
    "nuls": "a\0b\n\0\n\0\0c",
    "controls": "".join(map(chr, range(32))) + "\x7f\x85\u2028\u2029\ufeff",
    "emoji": "\U0001f600\U0001f468\u200d\U0001f469\u200d\U0001f467 \U0001f1e9\U0001f1ea\n" * 50,
    "combining": "a" + "\u0301" * 5000 + "\ne\u0308\n\u0301",
    "right to left": "\u202eمرحبا بالعالم\u202c\nשלום עולם\n",
    "noncharacters": "\ufffe\uffff\U0010ffff\n\ue000",
    "no line end": "last line",
    "markup": "<p>" * 1000 + "\\u0000 %s {} $&\n[[",
}
"""Texts that have broken programs, by what is unusual about them."""

SHORT: Mapping[str, str] = {
    "plain": "The library opens at nine.\nIt closes at six.",
    "other scripts": "Η βιβλιοθήκη ανοίγει στις εννέα.\n図書館は九時に開きます。",
    "empty": "",
    "windows": "one\r\ntwo\r\n\r\n",
    "blank last lines": "one\n\n\n",
    "blank first lines": "\n\none",
    "a line feed": "\n",
    "other line ends": "a\u2028b\x85c\x0cd\re\0",
    "quotes": 'a "b" \\ \t / \x7f <é \U0001f600>',
}
"""Texts for formats, by what is unusual about them."""


def as_json(value: Any) -> Any:
    """Return a value as it is when it has been written and read."""
    return msgspec.json.decode(msgspec.json.encode(value))


def plausible(type_: Any, document: Document, number: int = 0, label: str | None = None) -> Any:
    """Return a value of a type as another tagger may have given it; lists have an element a line.

    Args:
        type_: a msgspec type.
        document: that the value is of.
        number: of the value, so that those of a list are not all the same.
        label: of predictions and other objects with a label; by default they have several.
    """
    options = [each for each in get_args(type_) if each is not type(None)]
    if type_ is Prediction:
        return Prediction(("en", "fr", "de")[number % 3] if label is None else label, 0.875)
    if type_ is Span:
        return Span(*(document.line_spans[number] if document.lines else (0, 0)))
    if get_origin(type_) is list:
        return [plausible(options[0], document, i, label) for i, _ in enumerate(document.lines)]
    if type(None) in get_args(type_):
        return None if number % 4 == 3 else plausible(options[0], document, number, label)
    if isinstance(type_, type) and issubclass(type_, msgspec.Struct):
        fields = [field for field in msgspec.structs.fields(type_) if field.required]
        found = {field.name: plausible(field.type, document, number, label) for field in fields}
        return type_(**(found | ({"label": label} if label is not None and "label" in found else {})))
    simple = {bool: bool(number % 2), int: number, float: number / 8, str: f"value {number}"}
    return simple[type_] if type_ in simple else msgspec.convert({}, type_)
