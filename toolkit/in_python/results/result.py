"""The result of a call: what ``--json`` prints, typed."""

from typing import Any, TypeVar

import msgspec

from toolkit.commands.steps.outcome import Outcome
from toolkit.errors import Failed


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a call; `str` and `print` give what the command line would print.

    Attributes:
        text: for people.
        data: what ``--json`` prints, whole; fields that have no attribute here are in it, too.
        failed: a message for each shard, input, file or model that failed, and for what stopped the call.
    """

    text: str = ""
    data: dict[str, Any] = {}
    failed: list[str] = []

    def __str__(self) -> str:
        return self.text


R = TypeVar("R", bound=Result)


def typed(kind: type[R], outcome: Outcome) -> R:
    """Return the outcome of a command as a result of this kind."""
    return of_data(kind, outcome.data, outcome.text)


def checked(result: R, outcome: Outcome) -> R:
    """Return a result; raise Failed, which has it, if something has failed."""
    if outcome.exit_code:
        raise Failed(outcome.failures or [outcome.text], result)
    return result


def of_data(kind: type[R], data: dict[str, Any], text: str) -> R:
    """Return what a command tells programs, and people, as a result of this kind."""
    return msgspec.convert({**data, "text": text, "data": data}, kind)
