"""Labels given by hand: a file of annotations, in the form that Label Studio exports, a line a document.

`toolkit align` reads it (``format: label_studio``). The file, and not this process, says what has been labelled: before
each label, what others have written meanwhile (a colleague, git, an editor) is read. The first label of a document is
appended; another one is written aside with the whole file, and put in its place. A label that was acknowledged is
durable.
"""

import contextlib
import os
import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Self

import msgspec

from toolkit.errors import ConfigError, DataError, amount, did_you_mean
from toolkit.label_files.formats.label_studio import result_of
from toolkit.storage import store_of
from toolkit.storage.outputs import write_file
from toolkit.storage.store import check_roots, note_roots
from toolkit.storage.stores.local.scratch import append_line, open_scratch, remove_scratch

Label = str | float
"""An answer: one of the labels of a question, or a number."""


class LabelQuestion(msgspec.Struct, frozen=True):
    """A question to people.

    Attributes:
        name: Name of it; the key of the set that `align` makes.
        labels: Labels of which one is given; all are numbers, or none is.
    """

    name: str
    labels: tuple[Label, ...]

    @property
    def is_number(self) -> bool:
        return isinstance(self.labels[0], float)


def question_of(text: str) -> LabelQuestion:
    """Return the question in ``NAME=LABEL,LABEL,…`` or ``NAME=FROM..TO``.

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
    return LabelQuestion(name.strip(), tuple(labels))


def _number(word: str) -> float | None:
    try:
        return float(word) if word.lower() not in ("nan", "inf", "-inf", "infinity", "-infinity") else None
    except ValueError:
        return None


class _Data(msgspec.Struct, omit_defaults=True, forbid_unknown_fields=True):
    document_id: str
    source: str = ""
    shard: str = ""

    @property
    def key(self) -> "_Key":
        return self.source, self.document_id, self.shard


_Key = tuple[str, str, str]
"""Source and id of a document; and its shard, or shard and row, where others have these, too."""


class _LabelResult(msgspec.Struct, forbid_unknown_fields=True):
    from_name: str
    to_name: str
    type: str
    value: dict[str, Any]


class _LabelAnnotation(msgspec.Struct, forbid_unknown_fields=True):
    completed_by: Any
    result: list[_LabelResult]


class _LineTask(msgspec.Struct, forbid_unknown_fields=True):
    data: _Data
    annotations: list[_LabelAnnotation]


_DECODER = msgspec.json.Decoder(_LineTask)
"""Of lines that hold nothing which would be lost when they are written again."""

_ENCODER = msgspec.json.Encoder()

_MOST = 10
"""Changes that are told at a time."""


class LabelFile:
    """The labels in a file. A context manager: meanwhile nobody else writes it.

    Args:
        path: Path of the file, which need not be there; on this machine.
        questions: Questions that are asked.
        annotator: who gives labels; those of others in the file stay as they are.
    """

    def __init__(self, path: str, questions: Sequence[LabelQuestion], annotator: str) -> None:
        self.path, self.annotator = path, annotator
        self.questions = {question.name: question for question in questions}
        self._tasks: dict[_Key, _LineTask] = {}
        self._news: list[str] = []
        self._lines = 0
        self._version: tuple[int, ...] = ()
        """Signs of the version of the file that was read last."""
        self._lock = threading.RLock()
        self._lock_file: int | None = None
        self._at = path  # what it is, if that is a link

    def __enter__(self) -> Self:
        if not store_of(self.path).is_local:
            raise ConfigError(f"--labels: expected a file on this machine, got {self.path}")
        self._at = os.path.realpath(self.path)
        folder = os.path.dirname(self._at)
        if not os.path.isdir(folder) or (os.path.exists(self.path) and not os.path.isfile(self.path)):
            raise ConfigError(f"--labels: expected a file in an existing folder, got {self.path}")
        note_roots([folder])
        self._claim()
        try:
            self._sweep()
            self.refresh()
            if self._lines > len(self._tasks) and self._lock_file is not None:  # a document stands there twice
                self._write(self._tasks)
        except BaseException:
            self._release()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._release()

    def _claim(self) -> None:
        """Lock the file for this process; the system lets it go with the process."""
        try:
            import fcntl
        except ImportError:  # no such system
            return
        try:
            with open_scratch(self._claimed_by, "ab") as file:
                self._lock_file = os.dup(file.fileno())
        except OSError:  # a folder that may not be written: labels will say so; looking needs none
            return
        try:
            fcntl.flock(self._lock_file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.stat(self._claimed_by)  # or who had it has just deleted it
        except (BlockingIOError, FileNotFoundError):
            os.close(self._lock_file)
            self._lock_file = None
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
        if self._lock_file is not None:
            with contextlib.suppress(OSError):
                remove_scratch(self._claimed_by)
            os.close(self._lock_file)
            self._lock_file = None

    def _sweep(self) -> None:
        """Delete temporary files of killed processes; nobody else writes this file now."""
        folder, name = os.path.split(self._at)
        temporary = re.compile(rf"\.{re.escape(name)}\.[^.]+\.\d+-\d+\.\d+\.tmp")
        for leftover in os.listdir(folder) if self._lock_file is not None else ():
            if temporary.fullmatch(leftover):
                with contextlib.suppress(OSError):
                    remove_scratch(os.path.join(folder, leftover))

    def refresh(self) -> bool:
        """Read the file again if others have written it; return True if they have.

        Raises:
            DataError: if it is not of labels any more.
        """
        with self._lock:
            now = self._signs()
            if now == self._version:
                return False
            before, is_first = self._tasks, not self._version
            self._tasks, self._lines = self._load() if now else ({}, 0)
            self._version = now
            if not is_first:
                self._news += self._changes(before)
            return True

    def _signs(self) -> tuple[int, ...]:
        """Return the version of the file; none if it is not there."""
        try:
            result = os.stat(self._at)
        except FileNotFoundError:
            check_roots(self._at)
            return ()
        return result.st_ino, result.st_size, result.st_mtime_ns

    def _changes(self, before: Mapping[_Key, _LineTask]) -> Iterator[str]:
        """Yield changes of the annotator's labels, and numbers of changed documents."""
        for key in sorted(before.keys() & self._tasks.keys()):
            old, new = (_labels(self._mine(tasks[key])) for tasks in (before, self._tasks))
            for name in sorted(old | new):
                if old.get(name) != new.get(name):
                    yield f"{key[1]}: {name}: {new.get(name, 'no label')}, was {old.get(name, 'no label')}"
        for tasks, former, change in ((self._tasks, before, "new"), (before, self._tasks, "gone")):
            if number := len(tasks.keys() - former.keys()):
                yield f"labels of {amount(number, 'document')} are {change}"

    def _load(self) -> tuple[dict[_Key, _LineTask], int]:
        """Return the tasks in the file, and how many lines it has: of one document the later line counts."""
        results: dict[_Key, _LineTask] = {}
        number = 0
        with open(self._at, "rb") as file:
            for number, line in enumerate(file, 1):
                try:
                    task = _DECODER.decode(line)
                except (msgspec.MsgspecError, UnicodeDecodeError) as error:
                    message = f"expected labels as `toolkit view` writes them, got: {error}"
                    remedy = "correct the line, or name another file with --labels"
                    raise DataError(f"{message}; {remedy}", path=self.path, line=number) from None
                key = task.data.key
                results[key] = _merge(results[key], task) if key in results else task
        return results, number

    def __len__(self) -> int:
        """Return how many documents have labels."""
        return len(self._tasks)

    def _key(self, source: str, id: str, places: Sequence[str]) -> _Key:
        """Return the key of a document: that of its task, or else that of a new one."""
        keys = [(source, id, place) for place in places]
        return next((key for key in keys if key in self._tasks), keys[0])

    def of(self, source: str, id: str, places: Sequence[str] = ("",)) -> dict[str, Label]:
        """Return the annotator's labels of a document, by question; `places` as of `put`."""
        with self._lock:
            return _labels(self._mine(self._tasks.get(self._key(source, id, places))))

    def _mine(self, task: _LineTask | None) -> _LabelAnnotation | None:
        annotations = task.annotations if task else []
        return next((annotation for annotation in annotations if _name(annotation) == self.annotator), None)

    def put(
        self, source: str, id: str, question: str, label: Label | None, places: Sequence[str] = ("",)
    ) -> dict[str, Label]:
        """Give a document a label, or take it away; return the labels that it has now, which are on disk.

        Of two labels the later one counts. `changes` are what others have written meanwhile.

        Args:
            source: Source of the document.
            id: Id of the document.
            question: Question that is answered.
            label: None for none.
            places: Distinguishing places (see `toolkit.view.corpus.Corpus.label_places`).

        Raises:
            DataError: if the file is not of labels any more.
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
            self.refresh()
            while True:
                key = self._key(source, id, places)
                before = self._tasks.get(key)
                after = self._with(before, _Data(id, source, key[2]), asking, label)
                if after == before:
                    break
                if before is None and after is not None and self._version:
                    try:
                        append_line(self._at, _ENCODER.encode(after))
                    except FileNotFoundError:  # others have just deleted it
                        self.refresh()
                        continue
                    self._after_line(after)
                    break
                if self.refresh():  # others have written while this was made
                    continue
                other_tasks = {item: task for item, task in self._tasks.items() if item != key}
                self._write(self._tasks | {key: after} if after else other_tasks)
                break
            return _labels(self._mine(self._tasks.get(key)))

    def changes(self) -> list[str]:
        """Return recent changes of the file by others, for people."""
        with self._lock:
            changes, self._news = self._news, []
        more = len(changes) - _MOST
        return [*changes[:_MOST], *([f"and {more:,} more"] if more > 0 else [])]

    def _after_line(self, task: _LineTask) -> None:
        """Record an appended line; read the file again if others have written just before it."""
        result, size = self._signs(), len(_ENCODER.encode(task)) + 1
        self._tasks[task.data.key] = task
        self._lines += 1
        if result[0] == self._version[0] and result[1] == self._version[1] + size:
            self._version = result
        else:
            self.refresh()

    def _with(
        self, task: _LineTask | None, data: _Data, asking: LabelQuestion, label: Label | None
    ) -> _LineTask | None:
        mine = self._mine(task)
        results = [result for result in mine.result if result.from_name != asking.name] if mine else []
        if label is not None:
            results.append(msgspec.convert(result_of(asking.name, label), _LabelResult))
        other_annotations = [annotation for annotation in task.annotations if annotation is not mine] if task else []
        annotations = [*other_annotations, *([_LabelAnnotation(self.annotator, results)] if results else [])]
        return _LineTask(task.data if task else data, annotations) if annotations else None

    def _write(self, tasks: dict[_Key, _LineTask]) -> None:
        write_file(self._at, b"".join(_ENCODER.encode(task) + b"\n" for task in tasks.values()))
        self._tasks, self._lines, self._version = tasks, len(tasks), self._signs()


def _merge(earlier: _LineTask, later: _LineTask) -> _LineTask:
    """Return one task of two lines of a document: of each person the labels of the later one."""
    names = {_name(annotation) for annotation in later.annotations}
    return _LineTask(
        earlier.data,
        [*(annotation for annotation in earlier.annotations if _name(annotation) not in names), *later.annotations],
    )


def _labels(annotation: _LabelAnnotation | None) -> dict[str, Label]:
    return {result.from_name: _label(result) for result in annotation.result} if annotation else {}


def _name(annotation: _LabelAnnotation) -> str:
    who = annotation.completed_by
    return str(who.get("email") or who.get("id") or "") if isinstance(who, Mapping) else str(who)


def _label(result: _LabelResult) -> Label:
    value = result.value.get(result.type)
    output: Label = value[0] if isinstance(value, list) and value else value if isinstance(value, int | float) else ""
    return output
