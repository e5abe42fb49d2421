"""Rows of the matrix: faults, where they happen, and what a message must say of them."""

from dataclasses import dataclass
from typing import Literal

from tests.faults.places import SENDING

BODIES = ("GET", "LIST", *SENDING)
"""Requests of S3 that have a body, or whose answer has one."""

ALL_OF_S3 = (
    "GET", "HEAD", "LIST", "PUT", "COPY", "DELETE", "DELETE_MANY", "CREATE", "UPLOAD", "COMPLETE", "ABORT", "UPLOADS",
)  # fmt: skip


@dataclass(frozen=True)
class Row:
    """A fault.

    Attributes:
        name: of the row.
        fault: what the place calls it.
        where: it happens: to requests to a bucket, to those to a disk, or to a file before the command begins.
        requests: that it can happen to.
        cause: what a message must say: a regular expression.
        lasts: whether it stays while the command runs; one that does not is over after `times` requests, and the
            command must do what it does undisturbed.
        times: requests that are struck by one that does not last.
        spreads: whether from the first request on, all are struck.
        codes: exit status of a command that cannot do its work.
        true: what may be said of this fault, and of no other (see `tests.faults.judge.FALSE_CAUSES`).
    """

    name: str
    fault: str
    where: Literal["bucket", "disk", "file"]
    requests: tuple[str, ...]
    cause: str
    lasts: bool = True
    times: int = 2
    spreads: bool = False
    codes: tuple[int, ...] = (1,)
    true: str = ""


_BROKEN = r"(?i)connection|clos|broke|reset|refused|no answer|endpoint"


def _s3(
    name: str, fault: str, cause: str, requests: tuple[str, ...] = ALL_OF_S3, *, spreads: bool = False, times: int = 2
) -> list[Row]:
    """A fault that passes, and the same that lasts."""
    return [
        Row(name, fault, "bucket", requests, cause, lasts=False, spreads=spreads, times=times),
        Row(f"{name}-lasts", fault, "bucket", requests, cause, spreads=spreads),
    ]


_MOUNTED = "mount the disk"
"""Said of a folder that was not there when a command first looked for it: then nobody knows that it has vanished."""

ROWS = (
    *_s3("throttle", "503", r"SlowDown|503|busy|reduce"),
    *_s3("cut", "cut", _BROKEN + "|incomplete|ended|half|answer of S3, got 500", BODIES),
    *_s3("refuse", "reset", _BROKEN),
    # once: a host that has never answered is not waited for longer than two answers that do not come take
    *_s3("hang", "hang", r"(?i)time|no answer|connection", times=1),
    *_s3("lost", "lost", _BROKEN, tuple(each for each in ALL_OF_S3 if each not in ("GET", "HEAD", "LIST", "UPLOADS"))),
    *_s3("down", "reset", _BROKEN, spreads=True),
    Row("denied", "403", "bucket", ALL_OF_S3, r"(?i)permission|403|AccessDenied", codes=(1, 2),
        true="may be written in"),
    Row("EACCES", "EACCES", "disk", ("STAT", "OPEN", "LIST", "WRITE", "MOVE", "REMOVE"), "Permission", codes=(1, 2)),
    Row("ENOSPC", "ENOSPC", "disk", ("WRITE", "SYNC"), "No space left"),
    Row("EIO", "EIO", "disk", ("STAT", "READ", "LIST", "WRITE", "SYNC", "MOVE", "REMOVE"), "Input/output error"),
    Row("gone", "gone", "disk", ("OPEN", "LIST", "WRITE", "STAT"), f"vanished|{_MOUNTED}", codes=(1, 2),
        true=rf"got (no match|nothing there|no such file|none;)[^|\n]*{_MOUNTED}"),
    Row("truncated", "truncated", "file", (), r"expected"),
    Row("flipped", "flipped", "file", (), r"expected|made with other settings", codes=(1, 2)),
    Row("empty", "empty", "file", (), r"expected"),
    Row("folder", "folder", "file", (), r"(?i)expected|directory|folder", codes=(1, 2)),
)  # fmt: skip
