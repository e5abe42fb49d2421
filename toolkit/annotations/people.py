"""What people say of documents, question by question: one key of a set for each question."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal

import msgspec

from toolkit.annotations.json_items import items
from toolkit.annotations.reader import Aggregate, AnnotationReader, aggregated
from toolkit.data.schema import Type, from_annotation, nullable
from toolkit.errors import DataError, short
from toolkit.ingest.reader import Draft, Input

What = Literal["scores", "labels", "sets", "texts"]
"""What the answers to a question are: numbers, one of several labels, any of several labels, texts."""


class Scores(msgspec.Struct, frozen=True, kw_only=True):
    """Numbers that people give the document.

    Attributes:
        score: what they come to; null if there is none.
        scores: by annotator.
        annotators: who they are, in the order of the file.
    """

    score: float | None
    scores: list[float]
    annotators: list[str]


class Labels(msgspec.Struct, frozen=True, kw_only=True):
    """Labels that people give the document, one each.

    Attributes:
        label: the most frequent, the first of those with as many; null if there is none.
        labels: by annotator.
        annotators: who they are, in the order of the file.
    """

    label: str | None
    labels: list[str]
    annotators: list[str]


class LabelSets(msgspec.Struct, frozen=True, kw_only=True):
    """Labels that people give the document, any number each.

    Attributes:
        labels: those that more than half of the annotators give, sorted.
        chosen: by annotator.
        annotators: who they are, in the order of the file.
    """

    labels: list[str]
    chosen: list[list[str]]
    annotators: list[str]


class Texts(msgspec.Struct, frozen=True, kw_only=True):
    """What people write about the document.

    Attributes:
        texts: by annotator.
        annotators: who they are, in the order of the file.
    """

    texts: list[str]
    annotators: list[str]


_VALUES: dict[What, type[msgspec.Struct]] = {"scores": Scores, "labels": Labels, "sets": LabelSets, "texts": Texts}


class Answer(msgspec.Struct, frozen=True):
    """An answer of an annotator to a question: a number, or labels, or lines of a text."""

    question: str
    annotator: str
    value: float | list[str]
    is_text: bool = False


class PeopleReader(AnnotationReader):
    """Reads what people say in a tool for labelling: extend it; `answers` gives what stands in an item.

    The answers to a question are numbers, labels or texts; to one of `several`, lists of labels.
    """

    aggregate: Annotated[Aggregate, msgspec.Meta(description="how the numbers of several people are combined")] = "mean"
    several: Annotated[
        tuple[str, ...], msgspec.Meta(description="questions to which people may give several labels")
    ] = ()
    texts: Annotated[tuple[str, ...], msgspec.Meta(description="questions whose answers are texts, not labels")] = ()

    def answers(self, item: Mapping[str, Any], source: Input) -> list[Answer]:
        """Return the answers in an item, in its order; what is of no such kind is counted in `source.counts`.

        Raises:
            DataError, msgspec.ValidationError: if it is no item of the form.
        """
        raise NotImplementedError(type(self).__name__)

    def ids(self) -> Sequence[str]:
        """Return where the id of the document may be in an item."""
        raise NotImplementedError(type(self).__name__)

    def value_types(self, inputs: Sequence[Input]) -> dict[str, Type]:
        """Return the types of all questions of all inputs, which are read for that."""
        kinds: dict[str, What] = {}
        for source in inputs:
            for _ in self._drafts(source, kinds):
                pass
        return {question: nullable(from_annotation(_VALUES[kind], question)) for question, kind in kinds.items()}

    def read(self, source: Input) -> Iterator[Draft]:
        """Yield the answers of an input by question, an item a document."""
        return self._drafts(source, {})

    def _drafts(self, source: Input, kinds: dict[str, What]) -> Iterator[Draft]:
        """Yield the answers of an input, and note what those to each question are."""
        for item, number in items(source):
            try:
                if not isinstance(item, dict):
                    raise DataError(f"expected an object, got {short(item)}")
                found = self.draft(item, number, self.ids(), self._values(self.answers(item, source), source, kinds))
            except msgspec.ValidationError as error:
                message = f"expected an item as {type(self).__name__} exports it, got: {error}"
                raise DataError(message, path=source.path, line=number) from None
            except DataError as error:
                raise DataError(error.message, path=source.path, line=number) from None
            yield found

    def _values(self, answers: Sequence[Answer], source: Input, kinds: dict[str, What]) -> dict[str, Any]:
        by_question: dict[str, list[Answer]] = {}
        for answer in answers:
            kind = self._kind(answer)
            if kinds.setdefault(answer.question, kind) != kind:
                before = kinds[answer.question]
                raise DataError(f"{answer.question}: expected {before}, as before, got {kind}: {short(answer.value)}")
            by_question.setdefault(answer.question, []).append(answer)
        source.counts["answers"] += len(answers)
        source.counts["items without an answer"] += not answers
        return {name: self._value(kinds[name], given) for name, given in by_question.items()}

    def _kind(self, answer: Answer) -> What:
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

    def _value(self, kind: What, given: Sequence[Answer]) -> msgspec.Struct:
        who = [answer.annotator for answer in given]
        values: list[Any] = [answer.value for answer in given]
        if kind == "scores":
            return Scores(score=aggregated(values, self.aggregate), scores=values, annotators=who)
        if kind == "texts":
            return Texts(texts=["\n".join(value) for value in values], annotators=who)
        votes = {label: sum(label in value for value in values) for value in values for label in value}
        if kind == "labels":
            return Labels(label=max(votes, key=lambda each: votes[each]), labels=[v for (v,) in values], annotators=who)
        most = sorted(label for label, count in votes.items() if count > len(values) / 2)
        return LabelSets(labels=most, chosen=values, annotators=who)


def answer_of(question: str, annotator: str, value: Any, *, is_text: bool = False) -> Answer | None:
    """Return an answer: a finite number, a text, or a list of texts; None of anything else, and of nothing."""
    if isinstance(value, str):
        return Answer(question, annotator, [value], is_text)
    if isinstance(value, list):
        is_list = bool(value) and all(isinstance(each, str) for each in value)
        return Answer(question, annotator, value, is_text) if is_list else None
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    return Answer(question, annotator, float(value)) if is_number else None
