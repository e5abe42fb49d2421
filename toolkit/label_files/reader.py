"""Readers of annotation files: what is said of a document, by its id, as values of an attribute set."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from statistics import fmean, median
from typing import Any, ClassVar, Literal

from toolkit.data.documents import value_at
from toolkit.data.own_types import OwnTypes, own_types
from toolkit.data.schema import Type
from toolkit.errors import DataError, did_you_mean, short
from toolkit.ingest.reader import Draft, Input, Reader
from toolkit.plugins import Kind

Aggregate = Literal["mean", "median", "majority", "min", "max"]


class AnnotationReader(Reader):
    """Reads a form of annotation files: extend it. `read` gives drafts with an id, maybe a source, and `extra`.

    Attributes:
        id: dotted path of the document's id; default: the place of the format
        source: dotted path of the document's source, if ids alone are not unique
        shard: dotted path of the document's shard, if ids repeat; default: the place of the format
        values: keys of the set; `rest`: all
    """

    NAMED: ClassVar[str] = ""
    """Expression for names of files that are of this form, where no `format:` is given; empty if none tells it."""

    SHARD: ClassVar[str] = ""
    """Where the form has the shard of a document whose id is that of others, too; empty if it has none."""

    id: str = ""
    source: str | None = None
    shard: str | None = None
    values: Literal["rest"] | tuple[str, ...] = "rest"

    def value_types(self, inputs: Sequence[Input]) -> dict[str, Type]:
        """Return the types of all values, by key."""
        raise NotImplementedError(type(self).__name__)

    def own_types(self, inputs: Sequence[Input]) -> OwnTypes:
        """Return the types of the requested values, by key.

        Raises:
            DataError: if one is not there.
        """
        results = self.value_types(inputs)
        if self.values != "rest":
            if unknown := next((name for name in self.values if name not in results), None):
                hint = did_you_mean(unknown, results) or f"; there are: {', '.join(results)}"
                raise DataError(f"expected the key {unknown!r} of `values`, got none{hint}", path=inputs[0].path)
            results = {name: results[name] for name in self.values}
        return own_types({"metadata": {}, "document": results}, (), "the form of the files")

    def draft(self, row: Mapping[str, Any], number: int, ids: Sequence[str], values: dict[str, Any]) -> Draft:
        """Return the annotations of a document.

        Args:
            row: Row that has its names.
            number: Number of the row in the input.
            ids: Possible places of the id, if no option names one.
            values: Values by key.

        Raises:
            DataError: if it has no id.
        """
        id = _name(row, [self.id] if self.id else ids, "id")
        source = _name(row, [self.source], "source") if self.source else None
        shard = _name(row, [self.shard], "shard") if self.shard else value_at(row, self.SHARD) if self.SHARD else None
        shard = shard if isinstance(shard, str) else None
        chosen = values if self.values == "rest" else {name: values.get(name) for name in self.values}
        return Draft(text="", number=number, id=id, source=source, shard=shard, extra=chosen)


ANNOTATIONS: Kind[AnnotationReader] = Kind(
    "form of annotation files", "toolkit.label_files.formats", "toolkit.annotations", AnnotationReader
)


def named_so(path: str) -> str:
    """Return the form of files with such names; empty if there is none."""
    for name in ANNOTATIONS.names():
        pattern = ANNOTATIONS.find(name).NAMED
        if pattern and re.search(pattern, path):
            return name
    return ""


def _name(row: Mapping[str, Any], paths: Sequence[str], option: str) -> str:
    for path in paths:
        value = row[path] if path in row else value_at(row, path)
        if isinstance(value, int) and not isinstance(value, bool):
            return str(value)
        if isinstance(value, str):
            return value
        if value is not None:
            raise DataError(f"expected a text or an integer in {path!r} (`{option}:`), got {short(value)}")
    hint = f"; there are: {', '.join(row)}" if row else ""
    raise DataError(
        f"expected {' or '.join(map(repr, paths))}, the {option} of the document, got "
        f"none{hint}; name the field: `{option}: NAME`"
    )


# --- several annotations of one document ------------------------------------------------------------------------------


def _majority(scores: Sequence[float]) -> float:
    """Return the most frequent score; of several such their mean, as ml_filter has it."""
    times = {score: scores.count(score) for score in scores}
    return fmean(score for score, count in times.items() if count == max(times.values()))


AGGREGATES: Mapping[Aggregate, Callable[[Sequence[float]], float]] = {
    "mean": fmean,
    "median": median,
    "majority": _majority,
    "min": min,
    "max": max,
}


def aggregated(scores: Sequence[float], how: Aggregate) -> float | None:
    """Return the aggregate of several scores of a document; None of none.

    >>> aggregated([1.0, 2.0, 2.0, 4.0, 4.0], "majority"), aggregated([], "mean")
    (3.0, None)
    """
    return float(AGGREGATES[how](scores)) if scores else None


def numbered_items(source: Input, decode: Callable[[bytes], Any]) -> Iterator[tuple[Any, int]]:
    """Yield the items of lines of JSON with their numbers; bad ones are errors that name the line."""
    with source.lines() as lines:
        yield from source.items(lines, lambda line, number: (decode(line), number))
