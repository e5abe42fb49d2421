"""Documents as tasks for people: a list that Label Studio or Argilla imports; see `toolkit.label_files.formats`."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import msgspec

from toolkit.config.settings import ConfigStruct
from toolkit.data.documents import Document
from toolkit.errors import DataError, short
from toolkit.execution.executors import Report
from toolkit.label_files.formats import argilla, label_studio
from toolkit.label_files.people import Suggestion
from toolkit.learn.evaluate.predictions import ShardAsked
from toolkit.storage.outputs import NamedOutput, RowOutput
from toolkit.storage.reading import Lines

Form = Literal["label-studio", "argilla"]

MOST_BYTES = 1_000_000_000
"""Of a line of what was written for a shard."""

_ENCODER = msgspec.json.Encoder()


class TasksToWrite(ConfigStruct):
    """The tasks of a shard.

    Attributes:
        asked: the shard; what is asked, if anything, is what is suggested.
        form: of the tasks.
        question: that the suggestion answers.
        model: whose it is.
        path: of what is written, a line a task.
    """

    asked: ShardAsked
    form: Form
    question: str
    model: str
    path: str


def write_tasks(work: TasksToWrite, report: Report) -> int:
    """Write the tasks of a shard, and return how many there are.

    Raises:
        DataError: if documents or sets are not what they should be, or a value can be no suggestion.
    """
    work.asked.made_of()
    with RowOutput(work.path) as output:
        for _, document, values in work.asked.answers():
            found = _suggestion(work, document, values[0]) if values else None
            output.write_row(_ENCODER.encode(_FORMS[work.form](document, found)))
    report(output.rows, 0)
    return output.rows


def gather(paths: Sequence[str], output: NamedOutput) -> None:
    """Write one list of what was written for shards."""
    before = b"[\n"
    with output:
        for each in paths:
            with Lines(each, MOST_BYTES, fixed=True) as lines:
                for line in lines:
                    output.write(before + line)
                    before = b",\n"
        output.write(b"\n]\n")


def _suggestion(work: TasksToWrite, document: Document, value: Any) -> Suggestion | None:
    """Return what a value suggests: itself, or its label, labels or score; None of null."""
    if isinstance(value, dict):
        value = next((value[name] for name in ("label", "labels", "score") if value.get(name) is not None), None)
    if value is None:
        return None
    if isinstance(value, bool):
        value = "true" if value else "false"
    if isinstance(value, list) and not all(isinstance(each, str) for each in value):
        message = f"expected a number, a label or a list of labels to suggest, got {short(value)}"
        raise DataError(f"{message}; name a field of it: `--from SET.KEY.field`", id=document.id)
    if not isinstance(value, int | float | str | list):
        raise DataError(f"expected a number or labels to suggest, got {short(value)}", id=document.id)
    return Suggestion(work.question, value, work.model)


_FORMS: Mapping[Form, Callable[[Document, Suggestion | None], dict[str, Any]]] = {
    "label-studio": label_studio.task_of,
    "argilla": argilla.record_of,
}
