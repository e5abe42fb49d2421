"""Labels that a person gives by hand: a file of annotations, in the form that Label Studio exports, a line a document.

`toolkit align` reads it (``format: label_studio``). With each label the whole file is written aside, made durable, and
put in its place: there is never a part of one, and a label that was acknowledged is there.
"""

import contextlib
import os
import threading
from collections.abc import Mapping, Sequence
from typing import Any, Self

import msgspec

from toolkit.errors import ConfigError, DataError, did_you_mean
from toolkit.storage import store_of
from toolkit.storage.outputs import write_file
from toolkit.storage.roots import check_roots, note_roots
from toolkit.storage.stores.local.scratch import open_scratch, remove_scratch

Label = str | float
"""What is given: one of the labels of a question, or a number."""


class Asking(msgspec.Struct, frozen=True):
    """A question to people.

    Attributes:
        name: of it; the key of the set that `align` makes.
        labels: of which one is given; all are numbers, or none is.
    """

    name: str
    labels: tuple[Label, ...]

    @property
    def is_number(self) -> bool:
        return isinstance(self.labels[0], float)


def asking_of(text: str) -> Asking:
    """Return the question that ``NAME=LABEL,LABEL,…`` or ``NAME=FROM..TO`` says.

    Raises:
        ConfigError: if it says none.
    """
    name, _, listed = text.partition("=")
    first, dots, last = listed.partition("..")
    if dots and first.lstrip("-").isdecimal() and last.lstrip("-").isdecimal() and int(first) < int(last) < 1000:
        labels: list[Label] = [float(number) for number in range(int(first), int(last) + 1)]
    else:
        words = [word.strip() for word in listed.split(",")]
        numbers = [_number(word) for word in words]
        labels = list(words) if None in numbers else [number for number in numbers if number is not None]
    if not name.strip().isidentifier() or "" in labels or len({*labels}) < len(labels) or len(labels) < 2:
        raise ConfigError(
            f"--label: expected a question and its labels, such as quality=good,bad (two or more "
            f"different ones) or score=0..5, got {text!r}"
        )
    return Asking(name.strip(), tuple(labels))


def _number(word: str) -> float | None:
    try:
        return float(word) if word.lower() not in ("nan", "inf", "-inf", "infinity", "-infinity") else None
    except ValueError:
        return None


class _Data(msgspec.Struct, omit_defaults=True, forbid_unknown_fields=True):
    document_id: str
    source: str = ""


class _Result(msgspec.Struct, forbid_unknown_fields=True):
    from_name: str
    to_name: str
    type: str
    value: dict[str, Any]


class _Annotation(msgspec.Struct, forbid_unknown_fields=True):
    completed_by: Any
    result: list[_Result]


class _Task(msgspec.Struct, forbid_unknown_fields=True):
    data: _Data
    annotations: list[_Annotation]


_DECODER = msgspec.json.Decoder(_Task)
"""Of lines that hold nothing which would be lost when they are written again."""


class Labels:
    """The labels in a file. A context manager: meanwhile nobody else writes it.

    Args:
        path: of the file, which need not be there; on this machine.
        questions: that are asked.
        annotator: who gives labels; those of others in the file stay as they are.
    """

    def __init__(self, path: str, questions: Sequence[Asking], annotator: str) -> None:
        self.path, self.annotator = path, annotator
        self.questions = {each.name: each for each in questions}
        self._tasks: dict[tuple[str, str], _Task] = {}
        self._lock = threading.Lock()
        self._held: int | None = None
        self._at = path  # what it is, if that is a link

    def __enter__(self) -> Self:
        if not store_of(self.path).is_local:
            raise ConfigError(f"--labels: expected a file on this machine, got {self.path}")
        self._at = os.path.realpath(self.path)
        folder = os.path.dirname(self._at)
        if not os.path.isdir(folder) or os.path.isdir(self.path):
            raise ConfigError(f"--labels: expected a file in an existing folder, got {self.path}")
        note_roots([folder])
        self._claim()
        try:
            self._sweep()
            self._load()
        except BaseException:
            self._release()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._release()

    def _claim(self) -> None:
        """Hold the file that says that this process writes; the system lets it go with the process."""
        try:
            import fcntl
        except ImportError:  # no such system
            return
        try:
            with open_scratch(self._claimed_by, "ab") as file:
                self._held = os.dup(file.fileno())
        except OSError:  # a folder that may not be written: labels will say so; looking needs none
            return
        try:
            fcntl.flock(self._held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.stat(self._claimed_by)  # or who had it has just deleted it
        except (BlockingIOError, FileNotFoundError):
            os.close(self._held)
            self._held = None
            check_roots(self._at)
            raise ConfigError(
                f"{self.path}: expected a file that only this command writes, got one that another "
                f"`toolkit view` has open; end that one, or name another file with --labels"
            ) from None
        except OSError:
            self._release()
            raise

    @property
    def _claimed_by(self) -> str:
        folder, name = os.path.split(self._at)
        return os.path.join(folder, f".{name}.lock")

    def _release(self) -> None:
        if self._held is not None:
            with contextlib.suppress(OSError):
                remove_scratch(self._claimed_by)
            os.close(self._held)
            self._held = None

    def _sweep(self) -> None:
        """Delete what one that was killed has written aside; nobody else writes this file now."""
        folder, name = os.path.split(self._at)
        for left in os.listdir(folder) if self._held is not None else ():
            if left.startswith(f".{name}.") and left.endswith(".tmp"):
                with contextlib.suppress(OSError):
                    remove_scratch(os.path.join(folder, left))

    def _load(self) -> None:
        if not os.path.exists(self.path):
            return
        with open(self.path, "rb") as file:
            for number, line in enumerate(file, 1):
                try:
                    task = _DECODER.decode(line)
                except (msgspec.MsgspecError, UnicodeDecodeError) as error:
                    message = f"expected labels as `toolkit view` writes them, got: {error}; name another file"
                    raise DataError(f"{message} with --labels", path=self.path, line=number) from None
                key = (task.data.source, task.data.document_id)
                if key in self._tasks:
                    raise DataError(f"expected each document once, got {key[1]!r} again", path=self.path, line=number)
                self._tasks[key] = task

    def __len__(self) -> int:
        """Return how many documents have labels."""
        return len(self._tasks)

    def of(self, source: str, id: str) -> dict[str, Label]:
        """Return the labels that the annotator has given a document, by question."""
        with self._lock:
            mine = self._mine(self._tasks.get((source, id)))
            return {each.from_name: _label(each) for each in mine.result} if mine else {}

    def _mine(self, task: _Task | None) -> _Annotation | None:
        return next((each for each in task.annotations if _name(each) == self.annotator), None) if task else None

    def put(self, source: str, id: str, question: str, label: Label | None) -> dict[str, Label]:
        """Give a document a label, or take it away; return the labels that it has now, which are on disk.

        Raises:
            ConfigError: if there is no such question, or label, or the document has no id.
        """
        asking = self.questions.get(question)
        if asking is None:
            raise ConfigError(f"expected a question{did_you_mean(question, self.questions)}, got {question!r}")
        if label is not None and (isinstance(label, bool) or label not in asking.labels):
            raise ConfigError(f"{question}: expected {', '.join(map(str, asking.labels))} or null, got {label!r}")
        if not id:
            raise ConfigError("expected a document with an id, because labels are stored by id, got one without")
        with self._lock:
            before = self._tasks.get((source, id))
            after = self._with(before, _Data(id, source), asking, label)
            self._set((source, id), after)
            try:
                self._write()
            except BaseException:
                self._set((source, id), before)
                raise
            mine = self._mine(after)
            return {each.from_name: _label(each) for each in mine.result} if mine else {}

    def _set(self, key: tuple[str, str], task: _Task | None) -> None:
        if task is None:
            self._tasks.pop(key, None)
        else:
            self._tasks[key] = task

    def _with(self, task: _Task | None, data: _Data, asking: Asking, label: Label | None) -> _Task | None:
        mine = self._mine(task)
        results = [each for each in mine.result if each.from_name != asking.name] if mine else []
        if label is not None:
            kind, value = "choices", dict[str, Any](choices=[label])
            if asking.is_number:
                kind, value = "number", {"number": label}
            results.append(_Result(asking.name, "text", kind, value))
        others = [each for each in task.annotations if each is not mine] if task else []
        annotations = [*others, *([_Annotation(self.annotator, results)] if results else [])]
        return _Task(task.data if task else data, annotations) if annotations else None

    def _write(self) -> None:
        encode = msgspec.json.encode
        write_file(self._at, b"".join(encode(task) + b"\n" for task in self._tasks.values()))


def _name(annotation: _Annotation) -> str:
    who = annotation.completed_by
    return str(who.get("email") or who.get("id") or "") if isinstance(who, Mapping) else str(who)


def _label(result: _Result) -> Label:
    value = result.value.get(result.type)
    found: Label = value[0] if isinstance(value, list) and value else value if isinstance(value, int | float) else ""
    return found
