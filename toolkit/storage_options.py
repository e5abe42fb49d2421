"""Sizes and times as a configuration writes them; the section ``storage:``, how remote files are reached."""

import re
from typing import Annotated, Literal

import msgspec

from toolkit.errors import duration

_BYTES = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_BYTES |= {"KIB": 2**10, "MIB": 2**20, "GIB": 2**30, "TIB": 2**40}


class Size(int):
    """A number of bytes: ``500``, ``500 MB`` (10^6) or ``64 MiB`` (2^20)."""

    @classmethod
    def parse(cls, value: object) -> "Size":
        """Return a size; raise ValueError for what is none."""
        if isinstance(value, int) and not isinstance(value, bool) and value > 0:
            return cls(value)
        if isinstance(value, str) and (m := re.fullmatch(r"\s*([0-9][0-9_]*(?:\.[0-9]+)?)\s*([A-Za-z]*)\s*", value)):
            unit = _BYTES.get(m[2].upper())
            if unit and (size := int(float(m[1].replace("_", "")) * unit)) > 0:
                return cls(size)
        raise ValueError(f"expected a size such as 1000000, 500 MB or 64 MiB, got {value!r}")


_UNITS = {"": 1, "s": 1, "sec": 1, "second": 1, "min": 60, "minute": 60, "h": 3600, "hour": 3600}


class Duration(float):
    """A time in seconds: ``90``, ``90 s``, ``5 min`` or ``1 h``."""

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


MAX_WINDOW = Size(2 << 30)


class StorageOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Settings beside AWS's usual environment variables and files.

    Attributes:
        endpoint_url: the address of an S3 server other than Amazon's
        region: the region of the buckets
        profile: the section of the AWS credentials file
        addressing_style: the place of the bucket's name in a URL
        request_payer: pay for requests to buckets that ask for it
        anonymous: use no credentials, for public buckets
        give_up: time that the toolkit waits for a host that has answered in this run
        max_window: the largest window of a zstd or xz file that is read (at most 2 GiB): the memory that an open file
            may take
        stores: stores of your own, by scheme: `package.module:Class` or `path/file.py:Class`
    """

    endpoint_url: str | None = None
    region: str | None = None
    profile: str | None = None
    addressing_style: Literal["auto", "path", "virtual"] = "auto"
    request_payer: bool = False
    anonymous: bool = False
    give_up: Duration = Duration(300)
    max_window: Size = MAX_WINDOW
    stores: dict[Annotated[str, msgspec.Meta(pattern="^[a-z][a-z0-9+.-]*$")], str] = {}

    def __post_init__(self) -> None:
        if self.max_window > MAX_WINDOW:
            raise ValueError(
                f"expected a `max_window` of at most 2 GiB, which zstd itself reads, got {self.max_window:,} bytes"
            )


DEFAULTS = StorageOptions()


_WORDS = ((10**12, "TB"), (10**9, "GB"), (10**6, "MB"))


def size_in_words(size: int, total: int | None = None) -> str:
    """Return bytes in words, with the total if given: ``1.2 of 34.5 GB``."""
    most = size if total is None else total
    unit, name = next(((unit, name) for unit, name in _WORDS if most >= unit), _WORDS[-1])
    return f"{size / unit:.1f} {name}" if total is None else f"{size / unit:.1f} of {total / unit:.1f} {name}"
