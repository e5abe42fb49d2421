"""The errors a user meets.

- ToolkitError            exit status 1
    - Failed              a call from Python whose shards have failed, or that could not do all it should
    - StepFailed          tasks that have failed, each with its message
    - ConfigError         exit status 2: bad usage or configuration, nothing was written
        - NothingThere    a path or a glob of the configuration that leads to no file
            - NoDocuments a dataset has no documents, or none yet
        - UnknownPlugin   no tagger, reader or writer has this name
        - MissingExtra    an optional dependency is not installed
        - MissingModel    a model that an option names is not here
    - Unreadable          a store did not say: the file may be there, or not, and hold what it should, or not
        - Forbidden       whoever asks may not do this
    - DataError           a file that is not what it should be: path, line, id
        - AlignmentError  an attribute file whose rows are not those of its documents
        - StaleError      data made from something that has changed since

Messages read ``path:line: expected …, got …`` and then say the next step.
"""

import errno
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Self

import msgspec


class ToolkitError(Exception):
    """An error with a message for the user, without a traceback."""

    exit_code = 1


class Failed(ToolkitError):
    """A call from Python has failures; everything that did not fail is done.

    Attributes:
        failures: Messages, one for each failure.
        result: Result of what is done, as the call would have returned it; with `failed` alone if a step ended it.
    """

    def __init__(self, failures: Iterable[str], result: Any = None) -> None:
        self.failures, self.result = list(failures), result
        super().__init__(f"{len(self.failures)} failed:\n" + "\n".join(f"  {failure}" for failure in self.failures))

    def __reduce__(self) -> tuple[object, ...]:
        return (type(self), (self.failures, self.result))


class StepFailed(ToolkitError):
    """Some tasks of a step have failed, or it is impossible: the next one does not start."""

    def __init__(self, *messages: str) -> None:
        super().__init__("\n".join(messages))
        self.messages = messages


class ConfigError(ToolkitError):
    """Bad usage or configuration. Nothing has been written when it is raised."""

    exit_code = 2


class NothingThere(ConfigError):
    """A path, glob or dataset of the configuration leads to nothing."""


class NoDocuments(NothingThere):
    """A dataset has no documents, or none yet."""


class UnknownPlugin(ConfigError):
    """The name of a plugin is unknown."""


class MissingExtra(ConfigError):
    """An optional dependency is needed; the message names the ``pip install`` line."""


class MissingModel(ConfigError):
    """A model, or a list, of an option is missing."""


class Unreadable(ToolkitError):
    """A store failed: the third outcome, beside "it exists" and "it does not exist".

    It is no `DataError`, so that checks of content never take it for a fault of the file.

    Args:
        message: Expectation, true cause, and next step.
        path: Path of the file.
        exit_code: Exit code: 2 if the configuration must be mended and nothing has been written.
    """

    def __init__(self, message: str, *, path: str = "", exit_code: int = 1) -> None:
        self.message, self.path, self.exit_code = message, path, exit_code
        super().__init__(f"{path}: {message}" if path else message)

    def __reduce__(self) -> tuple[object, ...]:
        return (partial(type(self), path=self.path, exit_code=self.exit_code), (self.message,))


class Forbidden(Unreadable):
    """The store knows the caller, and forbids the action."""


class DataError(ToolkitError):
    """A file has wrong content.

    Args:
        message: Expected and actual content.
        path: Path of the file.
        line: Line (row) in the uncompressed file, from 1.
        id: Id of the document.

    Attributes:
        keys: Keys of the attributes whose values are to blame, as far as that is known where it is raised; not kept
            when it is sent to another process.
    """

    keys: frozenset[str] = frozenset()

    def __init__(self, message: str, *, path: str = "", line: int | None = None, id: str | None = None) -> None:
        self.message, self.path, self.line, self.id = message, path, line, id
        place = path if line is None else f"{path}:{line}"
        about = "" if id is None else f" (document {id!r})"
        super().__init__(f"{place}: {message}{about}" if place else f"{message}{about}")

    def about(self, keys: Iterable[str]) -> Self:
        """Return the error with the keys of its attributes."""
        self.keys = frozenset(keys)
        return self

    def __reduce__(self) -> tuple[object, ...]:
        return (partial(type(self), path=self.path, line=self.line, id=self.id), (self.message,))


class AlignmentError(DataError):
    """An attribute row does not describe its document."""


class StaleError(DataError):
    """An input of this data has changed since."""


@contextmanager
def errors_from(
    place: str, *, of: type[Exception] | tuple[type[Exception], ...] = ConfigError, keeps: bool = False
) -> Iterator[None]:
    """Turn errors of a ``with`` block into `ConfigError`s at a place.

    Args:
        place: Place in the configuration, or expectation; empty for none.
        of: Classes of the errors.
        keeps: True if an error keeps its class.
    """
    try:
        yield
    except of as error:
        class_ = type(error) if keeps else ConfigError
        raise class_(f"{place}: {error}" if place else str(error)) from None


DAMAGED = "restore it from a copy, or make it again"
"""The advice about a file that is damaged."""

_ADVICE = {
    "free some space, then run the same command again": (errno.ENOSPC, errno.EDQUOT),
    "the file system, or `ulimit -f`, allows no larger file": (errno.EFBIG,),
    "move away what is in its place, then run the same command again": (
        errno.EISDIR,
        errno.ENOTDIR,
        errno.EEXIST,
        errno.ENOTEMPTY,
    ),
    "choose another place: this one is mounted for reading": (errno.EROFS,),
    "raise `ulimit -n`, or use fewer processes": (errno.EMFILE, errno.ENFILE),
    "look after the disk or its server, then run again": (
        errno.EIO,
        errno.ESTALE,
        errno.ETIMEDOUT,
        errno.ENOTCONN,
        errno.EHOSTDOWN,
    ),
    "rename the input: what is made of it has longer names": (errno.ENAMETOOLONG,),
    "change its permissions, or choose another place": (errno.EACCES, errno.EPERM),
}


def advice(error: OSError) -> str:
    """Return the system's message, with advice: ``No space left on device; free some space, …``."""
    text = error.strerror or str(error)
    return text + next((f"; {hint}" for hint, numbers in _ADVICE.items() if error.errno in numbers), "")


def where_looked(path: str) -> str:
    """Return the search folder of a relative local path, for an error; else nothing."""
    if not path or os.path.isabs(path):
        return ""
    return f"; it was looked for below {os.getcwd()}: `root: FOLDER` in the configuration names another folder"


def did_you_mean(word: str, candidates: Iterable[str]) -> str:
    """Return ``"; did you mean 'x'?"`` if something known is close to the word, else an empty string."""
    import difflib

    close = difflib.get_close_matches(word, list(candidates), n=1, cutoff=0.6)
    return f"; did you mean {close[0]!r}?" if close else ""


def choices(word: str, candidates: Iterable[str]) -> str:
    """Return a close word, or all known words, for a message."""
    listed = list(candidates)
    return did_you_mean(word, listed) or f"; there are: {', '.join(listed) or 'none'}"


def mismatch(word: str, candidates: Iterable[str]) -> str:
    """Return the second half of the message about an unknown word."""
    return f"got {word!r}{choices(word, candidates)}"


_TYPES = {
    "int": "a whole number",
    "float": "a number",
    "str": "a text",
    "bool": "true or false",
    "array": "a list",
    "object": "an object",
    "null": "null",
}
_BOUNDS = {
    r" of length >= (\d+)": r" of at least \1",
    r" of length <= (\d+)": r" of at most \1",
    r" of length (\d+)": r" of \1",
    " >= ": " of at least ",
    " <= ": " of at most ",
    " > ": " above ",
    " < ": " below ",
    " matching regex ": " that matches the pattern ",
}


def in_words(fault: str) -> str:
    """Translate a message of msgspec: ``expected a whole number or null, got a text``.

    >>> in_words("JSON is malformed: expected ','"), in_words("Expected `int | null`, got `str`")
    ("JSON is malformed: expected ','", 'expected a whole number or null, got a text')
    """

    def named(match: re.Match[str]) -> str:
        types = match[1].split(" | ")
        return " or ".join(_TYPES[type_] for type_ in types if not (type_ == "int" and "float" in types))

    text = re.sub(rf"`((?:\b(?:{'|'.join(_TYPES)})\b(?: \| )?)+)`", named, fault)
    for pattern, words in _BOUNDS.items():
        text = re.sub(pattern, words, text)
    return (text if text[:2].isupper() else text[:1].lower() + text[1:]).replace("`", "")


def duration(seconds: float) -> str:
    """Return seconds for people: ``8 s``, ``4 min 30 s``, ``1 h``."""
    whole = round(seconds)
    parts = ((whole // 3600, "h"), (whole // 60 % 60, "min"), (whole % 60, "s"))
    return " ".join(f"{number} {unit}" for number, unit in parts if number) or "0 s"


def amount(number: int, noun: str) -> str:
    """Return a number with its noun: ``1 value``, ``2,000 values``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def few(names: Sequence[str]) -> str:
    """Return how many there are, with the first of them: ``5 (a, b, c, …)``."""
    return f"{len(names):,} ({', '.join(names[:3])}{', …' if len(names) > 3 else ''})"


def indented(message: object, by: str = "  ") -> str:
    """Return a message with indented further lines. The name of a file may have lines, and none may begin a line."""
    return re.sub(r"\n(?! )", "\n" + by, str(message))


def quoted(text: str, chars: int = 200) -> str:
    """Return a text in quotes; of one that is longer, so many characters: expressions may have thousands."""
    return repr(text if len(text) <= chars else text[:chars] + "…")


def short(value: Any, chars: int = 80) -> str:
    """Return a value as JSON, cut to some characters."""
    text = msgspec.json.encode(value, enc_hook=int).decode()
    return text if len(text) <= chars else text[:chars] + "…"
