"""Folders that were there when a run began: what is missing below one that has vanished is not known to be missing."""

import os
from collections.abc import Iterable

from toolkit.errors import Unreadable
from toolkit.session import current
from toolkit.storage import scheme_of


def note_roots(folders: Iterable[str]) -> None:
    """Note local folders that are there, for this session.

    Of one that will only be made, the folder above it that is there is noted: it may be what is mounted.
    """
    known = current().roots
    for folder in folders:
        if scheme_of(folder):
            continue
        path = os.path.abspath(folder)
        while (now := _identity(path)) is None and path != "/":
            path = os.path.dirname(path)
        if now and path != "/":
            known.setdefault(path, now)


def check_roots(path: str) -> None:
    """Raise Unreadable if a file is not there because the folder that it is below has vanished or was unmounted.

    A folder that is unmounted leaves another one in its place, on another device. One that was deleted and made again
    is on the same device, and what an automounter mounts again has its inode.
    """
    whole = os.path.abspath(path) + "/"
    for root, before in list(current().roots.items()):
        if not whole.startswith(root.rstrip("/") + "/"):
            continue
        now = _identity(root)
        if now is None or (now[0] != before[0] and now[1] != before[1]):
            raise Unreadable(
                f"expected the folder {root}, which existed when the run began, got none: it has "
                f"vanished. Was it unmounted? Put it back and run again",
                path=path,
            )


def _identity(folder: str) -> tuple[int, int] | None:
    try:
        found = os.stat(folder)
    except OSError:
        return None
    return found.st_dev, found.st_ino
