"""The folder of compiled code: one is used only if nobody but this user can have written to it.

Code in it runs with the user's rights. Where somebody else may write, no code is kept or taken, and a note says so.
"""

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress

from toolkit.storage import models
from toolkit.storage.stores.local.private import PrivateFolder, UnsafeFolder, private_name

_told: set[str] = set()


@contextmanager
def code_folder() -> Iterator[PrivateFolder | None]:
    """Open the folder of compiled code: with the models, else one of the user's own among what is temporary.

    None if neither can be used; one that is not safe is told, once a process.
    """
    with ExitStack() as stack:
        yield _first(stack)


def _first(stack: ExitStack) -> PrivateFolder | None:
    for path in _paths():
        try:
            return stack.enter_context(PrivateFolder(path))
        except UnsafeFolder as unsafe:
            _tell(
                f"{path}: compiled code is neither kept nor taken there: {unsafe}; forbid others to write "
                "(`chmod go-w`), or set TOOLKIT_CACHE to a folder of your own"
            )
        except OSError:
            continue
    return None


def _paths() -> Iterator[str]:
    with suppress(RuntimeError):  # nobody knows the home of a user without a name
        yield os.path.join(models.cache_folder(), "compiled")
    yield os.path.join(tempfile.gettempdir(), private_name())


def _tell(message: str) -> None:
    if message not in _told:
        print(message, file=sys.stderr)
    _told.add(message)
