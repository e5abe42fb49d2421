"""How remote files are reached: the section ``storage:`` of a configuration."""

import os
import re
from typing import Annotated, Any, Literal

import msgspec

from toolkit.errors import duration

_VARIABLE = "TOOLKIT_STORAGE"
"""Carries the options to processes that work for this one, wherever they run."""


_UNITS = {"": 1, "s": 1, "sec": 1, "second": 1, "min": 60, "minute": 60, "h": 3600, "hour": 3600}


class Duration(float):
    """Seconds, written ``90``, ``90 s``, ``5 min`` or ``1 h`` in a configuration."""

    @classmethod
    def parse(cls, value: object) -> "Duration":
        """Return a time; raise ValueError for what is none."""
        if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < float("inf"):
            return cls(value)
        if isinstance(value, str) and (m := re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([A-Za-z]*)\s*", value)):
            unit = _UNITS.get(m[2].lower()) or _UNITS.get(m[2].lower().removesuffix("s"))
            if unit and float(m[1]) > 0:
                return cls(float(m[1]) * unit)
        raise ValueError(f"expected a time such as 90 s, 5 min or 1 h, got {value!r}")

    def __str__(self) -> str:
        return duration(self)


class StorageOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is not in the usual environment variables and files of AWS, or should differ from it."""

    endpoint_url: Annotated[str | None, msgspec.Meta(description="the address of an S3 server other than Amazon's")] = (
        None
    )
    region: Annotated[str | None, msgspec.Meta(description="the region of the buckets")] = None
    profile: Annotated[str | None, msgspec.Meta(description="the section of the AWS credentials file")] = None
    addressing_style: Annotated[
        Literal["auto", "path", "virtual"], msgspec.Meta(description="where a URL has the bucket's name")
    ] = "auto"
    request_payer: Annotated[bool, msgspec.Meta(description="pay for requests to buckets that ask for it")] = False
    anonymous: Annotated[bool, msgspec.Meta(description="use no credentials, for public buckets")] = False
    give_up: Annotated[
        Duration, msgspec.Meta(description="how long the toolkit waits for a host that has answered in this run")
    ] = Duration(300)
    stores: Annotated[
        dict[Annotated[str, msgspec.Meta(pattern="^[a-z][a-z0-9+.-]*$")], str],
        msgspec.Meta(description="stores of your own, by scheme: `package.module:Class` or `path/file.py:Class`"),
    ] = {}


def set_options(options: StorageOptions) -> None:
    """Set the options of this process and of those that it begins."""
    if options != StorageOptions():
        os.environ[_VARIABLE] = msgspec.json.encode(options, enc_hook=float).decode()
    else:
        os.environ.pop(_VARIABLE, None)


def configured() -> str:
    """Return the options of this process as the text that carries them."""
    return os.environ.get(_VARIABLE, "{}")


def options() -> StorageOptions:
    """Return the options of this process."""
    return msgspec.json.decode(configured(), type=StorageOptions, dec_hook=_decoded)


def _decoded(type_: type[Any], value: Any) -> Any:
    assert type_ is Duration
    return Duration.parse(value)
