"""The results of commands: Structs, defined beside each command, which ``--json`` prints as they are."""

from types import NoneType
from typing import Any, get_args, get_origin, get_type_hints

import msgspec


def absent(name: str | None = None) -> Any:
    """Return the default of a field that only some results of a command have: a value that is false, and not encoded.

    Functions give an empty value of its type instead; see `fill_absent`.

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
        plain: dict[str, Any] = vars(self).get("plain") or msgspec.to_builtins(self)
        return plain

    def for_python(self) -> Any:
        """Return what the function of the command returns."""
        return self

    def shown_as(self, text: str) -> None:
        """Set the text for people."""
        vars(self)["text_for_people"] = text


def fill_absent(value: Any) -> None:
    """Give each absent field of a result, and of those inside, an empty value; what is encoded stays."""
    if isinstance(value, CommandResult):
        vars(value)["plain"] = value.data
    if isinstance(value, msgspec.Struct):
        for name in value.__struct_fields__:
            if getattr(value, name) is msgspec.UNSET:
                setattr(value, name, _empty(get_type_hints(type(value))[name]))
            fill_absent(getattr(value, name))
    elif isinstance(value, list | dict):
        for item in value.values() if isinstance(value, dict) else value:
            fill_absent(item)


def _empty(type_: Any) -> Any:
    """Return the empty value of a type; of a Struct what is false."""
    if NoneType in get_args(type_):
        return None
    made = get_origin(type_) or type_
    return msgspec.UNSET if issubclass(made, msgspec.Struct) else made()


class FailedResult(CommandResult, kw_only=True):
    """The result of a command that could not give any other.

    Attributes:
        failed: Messages of what failed.
    """

    failed: list[str]
