"""Readers of annotation files: what is said of a document, by its id, as values of an attribute set.

Labels and questions of people about documents: one key of a set for each question.

Items of a file of JSON: those of the one list that it is, or a line each; never more than one of them in memory.
"""

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from statistics import fmean, median
from typing import Any, ClassVar, Literal

import msgspec

from toolkit.data.document_fields import OwnTypes, own_types
from toolkit.data.documents import Document, value_at
from toolkit.data.schema import Type, from_annotation, nullable
from toolkit.errors import DataError, did_you_mean, short
from toolkit.ingest.reader import Draft, Input, Reader
from toolkit.plugins import Kind
from toolkit.storage.reading import Decompressed

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


_BLOCK = 1 << 20
_BLANK = b" \t\r\n"

_TEXT = rb'"[^"\\]*+(?>(?:\\.[^"\\]*+)*)"'

_BETWEEN = re.compile(rb'(?>(?:[^",\[\]{}]++|' + _TEXT + rb")*)[,\[\]{}]", re.DOTALL)
"""All up to the next bracket or comma that is in no text."""

_INSIDE = re.compile(rb'(?>(?:[^"\[\]{}]++|' + _TEXT + rb")*)[\[\]{}]", re.DOTALL)
"""All up to the next bracket."""


def items(source: Input) -> Iterator[tuple[Any, int]]:
    """Yield the items of an input, decoded, each with its number: of a list, from 1; else that of its line.

    Raises:
        DataError: at an item that is no JSON, or is larger than `source.max_bytes`; or at the end of a list that has
            none.
    """
    if not source.head(_BLOCK).removeprefix(b"\xef\xbb\xbf").lstrip(_BLANK).startswith(b"["):
        yield from numbered_items(source, msgspec.json.decode)
        return
    for number, raw in enumerate(_of_list(source), 1):
        try:
            yield msgspec.json.decode(raw), number
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise DataError(f"expected an item as JSON, got: {error}", path=source.path, line=number) from None


def _of_list(source: Input) -> Iterator[bytes]:
    """Yield the texts of the items of a list."""
    with source.stream() as stream:
        window, number = _Window(source, stream), 1
        window.next_mark(_BETWEEN, number)
        window.take()
        depth = 1
        while depth:
            mark = window.next_mark(_BETWEEN if depth == 1 else _INSIDE, number)
            depth += (mark in b"{[") - (mark in b"}]")
            if not depth or (depth == 1 and mark == b","):
                item = window.take()
                if item:
                    yield item
                elif depth or number > 1:
                    raise DataError("expected an item of the list, got none", path=source.path, line=number)
                number += 1
        if window.has_more():
            raise DataError("expected nothing after the list, got more", path=source.path, line=number - 1)


class _Window:
    """Buffer of a stream: the current item, and the bytes read after it."""

    def __init__(self, source: Input, stream: Decompressed) -> None:
        self._source, self._stream = source, stream
        self._buffer = b""
        self._begin = self._place = 0  # of the item, and of what is looked at next

    def next_mark(self, pattern: re.Pattern[bytes], number: int) -> bytes:
        """Return the next mark: the last byte of what the pattern matches.

        Raises:
            DataError: if there is none, or the item, which has this number, is too large.
        """
        source = self._source
        while not (match := pattern.match(self._buffer, self._place)):
            self._buffer, self._begin, self._place = self._buffer[self._begin :], 0, self._place - self._begin
            if len(self._buffer) > source.max_bytes:
                message = f"expected an item of at most {source.max_bytes:,} bytes, got more"
                raise DataError(f"{message}; raise `max_document_bytes`", path=source.path, line=number)
            if not (
                block := self._stream.read(max(_BLOCK, len(self._buffer)))
            ):  # which is looked at from its start again
                raise DataError("expected `]` at the end of the list, got none", path=source.path, line=number)
            self._buffer += block
        self._place = match.end()
        return match[0][-1:]

    def take(self) -> bytes:
        """Return the bytes before the last mark, without white space; it is held no longer."""
        result = self._buffer[self._begin : self._place - 1].strip(_BLANK)
        self._begin = self._place
        return result

    def has_more(self) -> bool:
        """Return True if more than white space follows the last mark."""
        rest = self._buffer[self._begin :]
        while not rest.strip(_BLANK):
            if not (rest := self._stream.read(_BLOCK)):
                return False
        return True


What = Literal["scores", "labels", "sets", "texts"]
"""Kinds of answers to a question: numbers, one of several labels, any of several labels, texts."""


class Scores(msgspec.Struct, frozen=True, kw_only=True):
    """Numbers from annotators.

    Attributes:
        score: Aggregate of the scores; null if there is none.
        scores: Scores by annotator.
        annotators: Names of the annotators, in the order of the file.
    """

    score: float | None
    scores: list[float]
    annotators: list[str]


class Labels(msgspec.Struct, frozen=True, kw_only=True):
    """Labels from annotators, one each.

    Attributes:
        label: Most frequent label, on a tie the first of them; null if there is none.
        labels: Labels by annotator.
        annotators: Names of the annotators, in the order of the file.
    """

    label: str | None
    labels: list[str]
    annotators: list[str]


class LabelSets(msgspec.Struct, frozen=True, kw_only=True):
    """Labels from annotators, any number each.

    Attributes:
        labels: Labels from more than half of the annotators, sorted.
        chosen: Labels by annotator.
        annotators: Names of the annotators, in the order of the file.
    """

    labels: list[str]
    chosen: list[list[str]]
    annotators: list[str]


class AnnotatorTexts(msgspec.Struct, frozen=True, kw_only=True):
    """Texts from annotators.

    Attributes:
        texts: Texts by annotator.
        annotators: Names of the annotators, in the order of the file.
    """

    texts: list[str]
    annotators: list[str]


_VALUES: dict[What, type[msgspec.Struct]] = {
    "scores": Scores,
    "labels": Labels,
    "sets": LabelSets,
    "texts": AnnotatorTexts,
}


class HumanAnswer(msgspec.Struct, frozen=True):
    """An answer of an annotator to a question: a number, or labels, or lines of a text."""

    question: str
    annotator: str
    value: float | list[str]
    is_text: bool = False


class PeopleReader(AnnotationReader):
    """Reads the annotations of a labelling tool: extend it; `answers` gives what stands in an item.

    The answers to a question are numbers, labels or texts; to one of `several`, lists of labels.

    Attributes:
        aggregate: the way in which the numbers of several people are combined
        several: questions to which people may give several labels
        texts: questions whose answers are texts, not labels
    """

    aggregate: Aggregate = "mean"
    several: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()

    def answers(self, item: Mapping[str, Any], source: Input) -> list[HumanAnswer]:
        """Return the answers in an item, in its order; what is of no such kind is counted in `source.counts`.

        Raises:
            DataError, msgspec.ValidationError: if it is no item of the form.
        """
        raise NotImplementedError(type(self).__name__)

    def ids(self) -> Sequence[str]:
        """Return the possible places of the document's id in an item."""
        raise NotImplementedError(type(self).__name__)

    def value_types(self, inputs: Sequence[Input]) -> dict[str, Type]:
        """Return the types of the questions of all inputs. The inputs are read for that."""
        kinds: dict[str, What] = {}
        for source in inputs:
            for _ in self._drafts(source, kinds):
                pass
        return {question: nullable(from_annotation(_VALUES[kind], question)) for question, kind in kinds.items()}

    def read(self, source: Input) -> Iterator[Draft]:
        """Yield the answers of an input by question, an item a document."""
        return self._drafts(source, {})

    def _drafts(self, source: Input, kinds: dict[str, What]) -> Iterator[Draft]:
        """Yield the answers of an input, and note their kinds."""
        for item, number in items(source):
            try:
                if not isinstance(item, dict):
                    raise DataError(f"expected an object, got {short(item)}")
                draft = self.draft(item, number, self.ids(), self._values(self.answers(item, source), source, kinds))
            except msgspec.ValidationError as error:
                message = f"expected an item as {type(self).__name__} exports it, got: {error}"
                raise DataError(message, path=source.path, line=number) from None
            except DataError as error:
                raise DataError(error.message, path=source.path, line=number) from None
            yield draft

    def _values(self, answers: Sequence[HumanAnswer], source: Input, kinds: dict[str, What]) -> dict[str, Any]:
        by_question: dict[str, list[HumanAnswer]] = {}
        for answer in answers:
            kind = self._kind(answer)
            if kinds.setdefault(answer.question, kind) != kind:
                before = kinds[answer.question]
                raise DataError(f"{answer.question}: expected {before}, as before, got {kind}: {short(answer.value)}")
            by_question.setdefault(answer.question, []).append(answer)
        source.counts["answers"] += len(answers)
        source.counts["items without an answer"] += not answers
        return {name: self._value(kinds[name], same) for name, same in by_question.items()}

    def _kind(self, answer: HumanAnswer) -> What:
        if isinstance(answer.value, float):
            return "scores"
        if answer.is_text or answer.question in self.texts:
            return "texts"
        if answer.question in self.several:
            return "sets"
        if len(answer.value) > 1:
            name = answer.question
            hint = f"if several may be given, say `several: [{name}]`"
            raise DataError(f"{name}: expected one label, got {short(answer.value)}; {hint}")
        return "labels"

    def _value(self, kind: What, answers: Sequence[HumanAnswer]) -> msgspec.Struct:
        who = [answer.annotator for answer in answers]
        values: list[Any] = [answer.value for answer in answers]
        if kind == "scores":
            return Scores(score=aggregated(values, self.aggregate), scores=values, annotators=who)
        if kind == "texts":
            return AnnotatorTexts(texts=["\n".join(value) for value in values], annotators=who)
        votes = {label: sum(label in value for value in values) for value in values for label in value}
        if kind == "labels":
            return Labels(label=max(votes, key=lambda vote: votes[vote]), labels=[v for (v,) in values], annotators=who)
        most = sorted(label for label, count in votes.items() if count > len(values) / 2)
        return LabelSets(labels=most, chosen=values, annotators=who)


class Suggestion(msgspec.Struct, frozen=True):
    """A suggested answer to a question, with the name of its model."""

    question: str
    value: float | str | list[str]
    model: str


def names_of(document: Document) -> dict[str, str]:
    """Return the identity of a document beside its id: its source, and its shard where ids repeat."""
    shard = document.place.rpartition(":")[0]
    return {"source": document.source, "shard": shard} if shard else {"source": document.source}


def answer_of(question: str, annotator: str, value: Any, *, is_text: bool = False) -> HumanAnswer | None:
    """Return an answer: a finite number, a text, or a list of texts; None of anything else, and of nothing."""
    if isinstance(value, str):
        return HumanAnswer(question, annotator, [value], is_text)
    if isinstance(value, list):
        is_list = bool(value) and all(isinstance(item, str) for item in value)
        return HumanAnswer(question, annotator, value, is_text) if is_list else None
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    return HumanAnswer(question, annotator, float(value)) if is_number else None
