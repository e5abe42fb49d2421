"""Compressed files of inputs and outputs."""

from pathlib import Path
from typing import BinaryIO, Literal, cast

from isal import igzip

LEVEL = 2
"""As documents and attributes are written."""


def open_gzip(path: Path, mode: Literal["rb", "wb"] = "rb") -> BinaryIO:
    """A gzip file, of lines."""
    return cast("BinaryIO", igzip.open(path, mode, compresslevel=LEVEL))  # type: ignore[no-untyped-call, unused-ignore]
