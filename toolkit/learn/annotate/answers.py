"""Answers of models, durable as soon as they are there: files that only grow, and what finds an answer in them.

A file in ``.toolkit/answers/<model>__<digest>/`` (an `OwnFile`) has a line for each sample, its
digest first. The digest is of all that decides the answer (`toolkit.learn.annotate.annotator`), which the endpoint does
not: whoever asks the same again, from another set or at another server, finds what is there. If the same is asked
again, the answer that comes later counts.

What is known of a document that language models, or people, have annotated: the value of an annotation set.

All lists but `tags` have an element for each sample, in the order in which samples are numbered: those of the first
window, then those of the second. They are what ml_filter calls `scores`, `explanations`, `errors` and `time_stamps`.
"""

import io
import os
import re
import socket
import threading
import time
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Literal, Self, cast

import msgspec

from toolkit.errors import DataError, ToolkitError, Unreadable, advice
from toolkit.lazy_numpy import np
from toolkit.storage.json_files import warn_damage
from toolkit.storage.outputs import write_file
from toolkit.storage.store import check_roots
from toolkit.storage.stores.local import sync_folder, temporary_name
from toolkit.storage.stores.local.scratch import make_folder, move_scratch, open_scratch, remove_scratch


class OwnFile:
    """The file of this run, created for its first line. Threads share it.

    Args:
        folder: Folder of the files of all runs, on a disk.
        what: Name of a line, for messages.

    Attributes:
        path: Path of the file; empty before the first line.
        size: Bytes of the file.
    """

    def __init__(self, folder: str, subject: str) -> None:
        self._folder, self._subject = folder, subject
        self._lock, self._syncing = threading.RLock(), threading.Lock()
        self._file: io.RawIOBase | None = None
        self._is_closed = False
        self._synced = 0
        self.path = ""
        self.size = 0

    def write(self, line: bytes) -> int:
        """Append a line; return the offset of its first byte. `sync` makes it durable."""
        with self._lock, self._writing():
            at = self.size
            file = self._file or self._create()
            try:
                _write(file, line)
            except OSError:
                with suppress(OSError):  # no part of a line remains when the disk is full
                    file.truncate(at)
                    file.seek(at)
                raise
            self.size += len(line)
            return at

    def sync(self) -> None:
        """Make all lines durable; one sync serves all threads that wait for it."""
        mine = self.size
        with self._syncing, self._writing():
            if self._synced < mine and self._file:
                size = self.size
                os.fsync(self._file.fileno())
                self._synced = size

    def replace(self, data: bytes) -> None:
        """Replace the lines of the file by others, atomically and durably."""
        with self._syncing, self._lock, self._writing():
            aside = temporary_name(self.path)
            file = _create(aside)
            try:
                _write(file, data)
                os.fsync(file.fileno())
                move_scratch(aside, self.path)
            except BaseException:
                file.close()
                remove_scratch(aside)
                raise
            if self._file:
                self._file.close()
            self._file, self.size, self._synced = file, len(data), len(data)
            sync_folder(self._folder)

    def close(self) -> None:
        """Close the file, for good: threads of a run that was interrupted may not write any more."""
        with self._syncing, self._lock:
            if self._file:
                self._file.close()
            self._file, self._is_closed = None, True

    def _create(self) -> io.RawIOBase:
        if self._is_closed:
            raise ToolkitError(f"{self._folder}: expected no more lines after the end of the run")
        make_own_folder(self._folder)
        name = f"{self._next_time():020d}-{socket.gethostname()}-{os.getpid()}.jsonl"
        self.path = os.path.join(self._folder, name)
        self._file = _create(self.path)
        sync_folder(self._folder)
        return self._file

    def _next_time(self) -> int:
        """Return the time in the name of a new file.

        Later than that of all existing files, because some clocks are ahead.
        """
        times = (re.match(r"\d{20}(?=-)", name) for name in os.listdir(self._folder))
        return max([time.time_ns(), *(int(match[0]) + 1 for match in times if match)])

    @contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            check_roots(self._folder)
            raise ToolkitError(
                f"{self.path or self._folder}: expected to write {self._subject}, got: {advice(error)}"
            ) from None


def make_own_folder(folder: str) -> None:
    """Make a folder, but not below a vanished mount."""
    if not os.path.isdir(folder):
        check_roots(folder)
        make_folder(folder)


def files_in(folder: str) -> list[str]:
    """Return the paths of the files of all runs, the oldest first."""
    names = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
    return [os.path.join(folder, name) for name in names if name.endswith(".jsonl") and not name.startswith(".")]


def _create(path: str) -> io.RawIOBase:
    return cast("io.BufferedWriter", open_scratch(path, "xb")).detach()


def _write(file: io.RawIOBase, data: bytes) -> None:
    """Write all of it; the system may take it in parts."""
    while data:
        data = data[file.write(data) or 0 :]


Status = Literal["success", "error_server", "error_refused", "error_no_generated_text", "error_faulty_score"]
"""The outcome of a sample.

``error_server``: the server did not answer, or answered with an error that may pass; a rerun asks again.
``error_refused``: the server refused the request (HTTP 4xx); it would again.
``error_no_generated_text``: there was an answer without text.
``error_faulty_score``: the text has no score or label, or one that is out of range.
"""

TRUNCATED = "truncated"
"""The tag of a document of which the model saw a part."""


class Annotation(msgspec.Struct, frozen=True, kw_only=True):
    """Answers of a language model about the document, sample by sample.

    Attributes:
        score: Aggregate of the valid scores of all samples; null without one.
        label: Most frequent label, on a tie the first of them; null without one.
        status: `success` if a sample has a valid score or label; else the problem of the first sample.
        scores: Score of each sample; null where there is none, or the prompt asks for a label.
        labels: Label of each sample; null where there is none, or the prompt asks for a score.
        explanations: Explanation of each sample; an excerpt of an answer that could not be read.
        errors: Errors of each sample, in words; an empty list for a valid one.
        statuses: Statuses of each sample.
        time_stamps: Time of each sample's answer, in seconds since 1970 (UTC).
        windows: Part of the text in each sample's prompt, [start, end] in code points.
        tags: `truncated` if the windows do not cover the text.
        prompt_tokens: Prompt tokens of all samples, as the server counts.
        completion_tokens: Completion tokens of all samples, as the server counts.
        seconds: Seconds from requests to answers, summed over all samples.
    """

    score: float | None
    label: str | None
    status: Status
    scores: list[float | None]
    labels: list[str | None]
    explanations: list[str]
    errors: list[list[str]]
    statuses: list[Status]
    time_stamps: list[int]
    windows: list[list[int]]
    tags: list[str]
    prompt_tokens: int
    completion_tokens: int
    seconds: float


_DIGEST = len('{"key":"'), len('{"key":"') + 32
_FILE_BITS = 40
"""Bits of a position that are the offset in a file; the others are the number of the file."""

_FRESH = 1 << 16
"""Answers that are kept in a mapping, until they are sorted among the others."""

_CHUNK = 1 << 14


class Answer(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The outcome of a requested sample, or why there is no answer.

    Attributes:
        key: digest of what was asked (hex).
        at: when the answer came, in seconds since 1970 (UTC).
        seconds: Time from the request to the answer, of this sample alone.
        text: Text that the model wrote; empty if there is none.
        finish: why it stopped, as the server says.
        prompt_tokens, completion_tokens: as the server counts.
        status: Status of a sample without an answer.
        error: Description of the failure.
    """

    key: str
    at: int
    seconds: float = 0.0
    text: str = ""
    finish: str = ""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    status: Status = "success"
    error: str = ""


_DECODER = msgspec.json.Decoder(Answer)
_ENCODER = msgspec.json.Encoder()


class AnswerCache:
    """The answers of a folder, by digest. Threads may share it.

    16 bytes of memory an answer: half a digest, and where it stands.

    Args:
        folder: on a disk.
    """

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._lock = threading.RLock()
        self._paths: list[str] = []
        self._open: dict[int, int] = {}
        self._fresh: dict[str, int] = {}
        self._own, self._number = OwnFile(folder, "an answer"), -1
        halves: list[Any] = [np.empty(0, np.uint64)]
        places: list[Any] = [np.empty(0, np.int64)]
        for path in files_in(folder):
            results = list(self._scan(self._add(path)))
            halves.append(np.array([half for half, _ in results], np.uint64))
            places.append(np.array([place for _, place in results], np.int64))
        self._sort(np.concatenate(halves), np.concatenate(places))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with self._lock:
            for descriptor in self._open.values():
                os.close(descriptor)
            self._open.clear()
            self._own.close()
            self._number = -1

    def get(self, key: str) -> Answer | None:
        """Return the latest answer; None if there is none."""
        with self._lock:
            if key in self._fresh:
                return self._read(self._fresh[key])
            half = int(key[:16], 16)
            at = int(self._halves.searchsorted(self._np.uint64(half), side="right")) - 1
            while at >= 0 and int(self._halves[at]) == half:
                answer = self._read(int(self._places[at]))
                if answer.key == key:
                    return answer
                at -= 1
            return None

    def add(self, answer: Answer) -> None:
        """Write an answer; it is on the disk when this returns. Answers of several threads are synced together."""
        self.add_all([answer])

    def _append(self, answer: Answer) -> None:
        at = self._own.write(_ENCODER.encode(answer) + b"\n")
        if self._number < 0:
            self._number = self._add(self._own.path)
        self._fresh[answer.key] = self._number << _FILE_BITS | at
        if len(self._fresh) >= _FRESH:
            self._merge()

    def add_all(self, answers: Iterable[Answer]) -> None:
        """Write answers; they are on the disk when this returns."""
        with self._lock:
            for answer in answers:
                self._append(answer)
        self._own.sync()

    def _add(self, path: str) -> int:
        self._paths.append(path)
        return len(self._paths) - 1

    def _scan(self, file: int) -> Iterator[tuple[int, int]]:
        """Yield half a digest of each whole line, and the line's position."""
        at, line, path = 0, b"", self._paths[file]
        with _reading(path), open(path, "rb") as stream:
            for line in stream:
                if line.endswith(b"}\n"):
                    with suppress(ValueError):  # a line that the power cut has left: not of ours
                        yield int(line[_DIGEST[0] : _DIGEST[0] + 16], 16), file << _FILE_BITS | at
                at += len(line)
        if not line.endswith(b"}\n"):
            ends = "an incomplete line at its end" if line else "none"
            warn_damage(f"{path}: expected whole answers, got {ends}; the toolkit asks again for missing answers")

    def _read(self, place: int) -> Answer:
        file, at = place >> _FILE_BITS, place & ((1 << _FILE_BITS) - 1)
        if file not in self._open:
            if len(self._open) > 64:  # files that are open
                os.close(self._open.pop(next(iter(self._open))))
            with _reading(self._paths[file]):
                self._open[file] = os.open(self._paths[file], os.O_RDONLY)
        line = b""
        while b"\n" not in line:
            with _reading(self._paths[file]):
                block = os.pread(self._open[file], _CHUNK, at + len(line))
            if not block:
                break
            line += block
        try:
            return _DECODER.decode(line.partition(b"\n")[0])
        except ValueError as error:  # bytes that are not UTF-8 are no error of msgspec
            raise DataError(
                f"expected an answer, got: {error}; delete the file to ask again", path=self._paths[file]
            ) from None

    def _merge(self) -> None:
        halves = np.array([int(key[:16], 16) for key in self._fresh], np.uint64)
        places = np.array(list(self._fresh.values()), np.int64)
        self._sort(np.concatenate([self._halves, halves]), np.concatenate([self._places, places]))
        self._fresh.clear()

    def _sort(self, halves: Any, places: Any) -> None:
        order = np.argsort(halves, kind="stable")
        self._np, self._halves, self._places = np, halves[order], places[order]


def forget(folder: str, keys: Collection[str]) -> None:
    """Delete answers of all models and prompts by their digests.

    Args:
        folder: Folder of the folders of answers.
        keys: Digests of what was asked.
    """
    digests = {key.encode() for key in keys}
    models = sorted(entry.path for entry in os.scandir(folder) if entry.is_dir()) if os.path.isdir(folder) else []
    for path in (path for model in models for path in files_in(model)):
        with _reading(path), open(path, "rb") as stream:
            lines = stream.readlines()
        remaining = [line for line in lines if line[slice(*_DIGEST)] not in digests]
        if len(remaining) < len(lines):
            write_file(path, b"".join(remaining))


@contextmanager
def _reading(path: str) -> Iterator[None]:
    """Name the file, or a vanished folder, in errors."""
    try:
        yield
    except OSError as error:
        check_roots(path)
        raise Unreadable(f"expected to read answers, got: {advice(error)}", path=path) from None
