"""Merging a journal as the last step of a command, one process at a time."""

import time
from contextlib import AbstractContextManager, ExitStack

from toolkit.errors import ConfigError
from toolkit.runs import claims
from toolkit.storage.journal import Journal


def merge(journal: Journal, claimed: str, *, forgive: bool = False) -> None:
    """Put the segments of a journal into one file, which takes up what others have written until then.

    Commands that end at once do so one after the other; who has nothing left to merge writes nothing.

    Args:
        journal: that the command has asked for.
        claimed: folder of the claims of the dataset, or output, that it belongs to. The next command that claims
            something there deletes that of one which was killed.
        forgive: as in `Journal.merge`.

    Raises:
        Unreadable: if it is not known what there is.
    """
    waiting = claims.Waiting()
    while journal.is_apart(forgive=forgive):
        with ExitStack() as stack:
            try:
                stack.enter_context(_claimed(journal.folder, claimed))
            except ConfigError as error:  # another one is at it; its claim ends with it, or by itself if it was killed
                waiting.tell(error)
                time.sleep(claims.LOOK)
                continue
            journal.merge(forgive=forgive)


def _claimed(folder: str, claimed: str) -> AbstractContextManager[None]:
    return claims.claimed(claimed, folder, {f"the records in {folder}": ""}, "merging records")
