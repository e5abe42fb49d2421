"""Sizes in bytes, as a configuration writes them."""

from toolkit.storage_options import Size as Size

_WORDS = ((10**12, "TB"), (10**9, "GB"), (10**6, "MB"))


def in_words(size: int, total: int | None = None) -> str:
    """Return bytes in words, of all if that is given: ``1.2 of 34.5 GB``."""
    most = size if total is None else total
    unit, name = next(((unit, name) for unit, name in _WORDS if most >= unit), _WORDS[-1])
    return f"{size / unit:.1f} {name}" if total is None else f"{size / unit:.1f} of {total / unit:.1f} {name}"
