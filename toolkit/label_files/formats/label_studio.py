"""Tasks of Label Studio: those that it imports, and its export `JSON`, a list of tasks with all annotations of each.

Source: Label Studio's documentation, "Basic Label Studio JSON format", "Import pre-annotated data" and "Label Studio
JSON format of annotated tasks". `completions` and `skipped` are
what versions before 1.0 called `annotations` and `was_cancelled`.

    [{"id": 1, "data": {"text": …, "document_id": …, "source": …}, "annotations": [{"completed_by": {"email": …},
        "was_cancelled": false, "result": [{"from_name": "quality", "to_name": "text", "type": "choices",
        "value": {"choices": ["good"]}}]}]}]
"""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from toolkit.data.documents import Document
from toolkit.errors import DataError
from toolkit.ingest.reader import Input
from toolkit.label_files.reader import HumanAnswer, PeopleReader, Suggestion, answer_of, names_of

_READ = {"choices": "choices", "rating": "rating", "number": "number", "textarea": "text"}
"""Where the answer is, by the type of the result."""


class _User(msgspec.Struct):
    email: str | None = None
    id: int | str | None = None


class _Result(msgspec.Struct):
    type: str = ""
    from_name: str = ""
    value: dict[str, Any] = {}


class _Annotation(msgspec.Struct):
    result: list[_Result] | None = None
    completed_by: _User | int | str | None = None
    was_cancelled: bool | None = False
    skipped: bool | None = False


class _Task(msgspec.Struct):
    annotations: list[_Annotation] | None = None
    completions: list[_Annotation] | None = None


def result_of(question: str, value: float | str | list[str]) -> dict[str, Any]:
    """Return an answer to a question as a result: a number, or choices."""
    if isinstance(value, int | float):
        return {"from_name": question, "to_name": "text", "type": "number", "value": {"number": value}}
    choices = value if isinstance(value, list) else [value]
    return {"from_name": question, "to_name": "text", "type": "choices", "value": {"choices": choices}}


def task_of(document: Document, suggestion: Suggestion | None) -> dict[str, Any]:
    """Return a document as a task for people, with its suggestion."""
    data = {"text": document.text, "document_id": document.id, **names_of(document)}
    if suggestion is None:
        return {"data": data}
    result = {"id": "suggestion", **result_of(suggestion.question, suggestion.value)}
    return {"data": data, "predictions": [{"model_version": suggestion.model, "result": [result]}]}


class LabelStudio(PeopleReader):
    """The export `JSON` of Label Studio: choices, ratings, numbers and texts, a key for each by its `from_name`.

    The id of the document is `data.document_id`, or `data.id`; where ids repeat, its shard is `data.shard`. Annotations
    that were skipped are left out, and results of other types (regions, relations, rankings); both are counted.
    """

    SUFFIXES = (".json",)
    SHARD = "data.shard"

    def ids(self) -> Sequence[str]:
        """Return the place of the id in our tasks, and in others."""
        return ("data.document_id", "data.id")

    def answers(self, item: Mapping[str, Any], source: Input) -> list[HumanAnswer]:
        """Return the answers of a task."""
        task = msgspec.convert(item, _Task)
        annotations = task.annotations if task.annotations is not None else task.completions
        if annotations is None:
            raise DataError("expected a task with `annotations`, got none; export as `JSON`, not as `JSON-MIN` or CSV")
        results = []
        for annotation in annotations:
            if annotation.was_cancelled or annotation.skipped:
                source.counts["skipped annotations"] += 1
                continue
            who = annotation.completed_by
            name = (who.email or who.id) if isinstance(who, _User) else who
            for result in annotation.result or []:
                value = result.value.get(_READ.get(result.type, ""))
                answer = answer_of(result.from_name, str(name or ""), value, is_text=result.type == "textarea")
                if answer is None:
                    source.counts[f"left out: {result.type or 'without a type'}"] += 1
                else:
                    results.append(answer)
        return results
