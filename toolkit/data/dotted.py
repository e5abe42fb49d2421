"""Dotted paths into JSON objects: ``warc_headers.warc-target-uri``."""

from collections.abc import Mapping
from typing import Any


def value_at(fields: Any, path: str) -> Any:
    """Return the value at a path; None where an object on the way has no such key, or is none."""
    for key in path.split("."):
        fields = fields.get(key) if isinstance(fields, Mapping) else None
    return fields
