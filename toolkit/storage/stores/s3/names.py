"""Buckets and keys of paths."""

import posixpath
import re

from toolkit.errors import ConfigError


def split(path: str) -> tuple[str, str]:
    """Return bucket and key; ``.`` and ``..`` in a key are resolved, as in a path."""
    bucket, _, key = path.removeprefix("s3://").partition("/")
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", bucket):
        raise ConfigError(f"{path}: expected s3://BUCKET/KEY")
    if any(part in (".", "..") for part in key.split("/")):
        key = posixpath.normpath(key)
    return bucket, key


def prefix_of(key: str) -> str:
    """Return what the keys of all objects in a folder begin with."""
    return key.rstrip("/") + "/" if key else ""
