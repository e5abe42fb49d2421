"""Labelled lines in the form of fastText (``__label__good The text``), as documents.

Source: fastText's documentation of supervised training, and `Dictionary::getLine` of its code.
"""

import math
from collections.abc import Iterator, Sequence
from typing import Annotated

import msgspec

from toolkit.data import schema
from toolkit.data.document_fields import DOCUMENT, OwnTypes, own_types
from toolkit.errors import DataError
from toolkit.ingest.reader import Draft, Input, Reader
from toolkit.text.fasttext.labelled import PREFIX, parted


class Fasttext(Reader):
    """One document a line: labels become the fields `labels`, a list, and `label`; the rest of the line is the text.

    If a line has several labels, `label` is null. A word that begins with the prefix is a label wherever it stands in
    the line. A line without a label, or with nothing but labels, is bad; blank lines are counted.

    Attributes:
        prefix: the text with which a label begins
        numbers: labels are numbers, such as grades; a line with another label is bad
    """

    LINES = True
    SUFFIXES = (".txt", ".train", ".valid", ".test")
    IN_PLACE = True

    prefix: Annotated[str, msgspec.Meta(pattern=r"^[^ \t\n\r\v\f\x00]+$")] = PREFIX
    numbers: bool = False

    def own_types(self, inputs: Sequence[Input]) -> OwnTypes:
        type_ = schema.FLOAT if self.numbers else schema.STR
        fields = {"label": schema.nullable(type_), "labels": schema.list_of(type_)}
        return own_types({DOCUMENT: fields}, (), "the format")

    def read(self, source: Input) -> Iterator[Draft]:
        with source.lines() as lines:
            yield from source.items(lines, lambda line, number: self._draft(source, line, number))

    def _draft(self, source: Input, line: bytes, number: int) -> Draft | None:
        if not line.strip():
            source.counts["blank_line"] += 1
            return None
        try:
            results, text = parted(line, self.prefix)
        except UnicodeDecodeError as error:
            message = f"expected UTF-8, got {error.reason}; convert the file: iconv -f WINDOWS-1252 -t UTF-8"
            source.bad("invalid UTF-8", message, line, number)
            return None
        labels = [_number(label, self.prefix) for label in results] if self.numbers else results
        return Draft(
            text=text, number=number, extra={"label": labels[0] if len(labels) == 1 else None, "labels": labels}
        )


def _number(label: str, prefix: str) -> float:
    try:
        number = float(label)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise DataError(f"expected a number after {prefix}, got {label!r}; without `numbers: true` labels are texts")
    return number
