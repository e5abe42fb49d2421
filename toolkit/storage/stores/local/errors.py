"""What the system's errors mean: what is not there, what may not be done, and what is not known."""

import errno
from collections.abc import Iterator
from contextlib import contextmanager

from toolkit.errors import Forbidden, Unreadable, advice
from toolkit.storage.roots import check_roots


@contextmanager
def told(path: str, expected: str = "a readable file") -> Iterator[None]:
    """Make `Unreadable` of what is wrong with a file, unless it is not there, below a root that is."""
    try:
        yield
    except (FileNotFoundError, NotADirectoryError):
        check_roots(path)
        raise
    except OSError as error:
        kind = Forbidden if error.errno in (errno.EACCES, errno.EPERM) else Unreadable
        raise kind(f"expected {expected}, got: {advice(error)}", path=path) from None


@contextmanager
def done(path: str, expected: str) -> Iterator[None]:
    """Make `Unreadable` of what keeps a file from being written, moved or deleted: it names what was to be there."""
    try:
        yield
    except OSError as error:
        check_roots(path)
        kind = Forbidden if error.errno in (errno.EACCES, errno.EPERM) else Unreadable
        raise kind(f"expected {expected}, got: {advice(error)}", path=path) from None
