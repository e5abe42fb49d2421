"""Addresses of datasets on the Hugging Face Hub: ``hf://datasets/USER/NAME``, and where their files are on the web."""

import os
import re
import urllib.parse
from dataclasses import dataclass

from toolkit.errors import ConfigError

SCHEME = "hf://"
ENDPOINT = "https://huggingface.co"

_NAME = re.compile(r"hf://datasets/([\w.-]+/[\w.-]+)(?:@([^@]+))?/*")
FORM = "hf://datasets/USER/NAME"
"""Of an address, for people."""


@dataclass(frozen=True)
class Address:
    """A dataset of the Hub.

    Attributes:
        name: USER/NAME.
        revision: a branch or tag.
    """

    name: str
    revision: str

    def __str__(self) -> str:
        return f"{SCHEME}datasets/{self.name}" + (f"@{self.revision}" if self.revision != "main" else "")

    @property
    def page(self) -> str:
        """Return where people see it."""
        return f"{endpoint()}/datasets/{self.name}"

    @property
    def files(self) -> str:
        """Return the address on the web below which its files are."""
        return f"{self.page}/resolve/{urllib.parse.quote(self.revision, safe='')}"


def endpoint() -> str:
    """Return the address of the Hub; HF_ENDPOINT has that of another."""
    return os.environ.get("HF_ENDPOINT", "").rstrip("/") or ENDPOINT


def is_hub(address: str) -> bool:
    """Return whether an address is one of the Hub."""
    return address.startswith(SCHEME)


def parse(address: str, option: str = "") -> Address:
    """Return what an address names.

    Args:
        address: ``hf://datasets/USER/NAME``, with ``@REVISION`` behind it or not.
        option: that it was given by, for messages.

    Raises:
        ConfigError: if it is none of a dataset.
    """
    found = _NAME.fullmatch(address)
    if not found or not set(found[1].split("/")).isdisjoint({".", ".."}):
        raise ConfigError(f"{option}{': ' if option else ''}expected {FORM}, got {address}")
    return Address(found[1], found[2] or "main")
