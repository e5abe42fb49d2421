"""The results of commands: Structs, defined beside each command, which ``--json`` prints as they are."""

from typing import Any

import msgspec


def absent(name: str | None = None) -> Any:
    """Return the default of a field that only some results of a command have: a value that is false, and not encoded.

    Args:
        name: Name of the field in JSON, if it is another.
    """
    return msgspec.field(default=msgspec.UNSET, name=name)


class CommandResult(msgspec.Struct, kw_only=True, dict=True):
    """The result of a command; `str` and `print` give what the command line prints."""

    def __str__(self) -> str:
        return self.text

    @property
    def text(self) -> str:
        """The result for people."""
        return str(vars(self).get("text_for_people", ""))

    @property
    def data(self) -> dict[str, Any]:
        """The result as plain data: what ``--json`` prints."""
        plain: dict[str, Any] = msgspec.to_builtins(self)
        return plain

    def for_python(self) -> Any:
        """Return what the function of the command returns."""
        return self

    def shown_as(self, text: str) -> None:
        """Set the text for people."""
        vars(self)["text_for_people"] = text


class FailedResult(CommandResult, kw_only=True):
    """The result of a command that could not give any other.

    Attributes:
        failed: Messages of what failed.
    """

    failed: list[str]
