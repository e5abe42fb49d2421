"""Sizes in bytes, as a configuration writes them."""

import re

_WORDS = ((10**12, "TB"), (10**9, "GB"), (10**6, "MB"))

_UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_UNITS |= {"KIB": 2**10, "MIB": 2**20, "GIB": 2**30, "TIB": 2**40}


class Size(int):
    """A number of bytes, written ``500``, ``500 MB`` (10^6) or ``64 MiB`` (2^20) in a configuration."""

    @classmethod
    def parse(cls, value: object) -> "Size":
        """Return a size; raise ValueError for what is none."""
        if isinstance(value, int) and not isinstance(value, bool) and value > 0:
            return cls(value)
        if isinstance(value, str) and (m := re.fullmatch(r"\s*([0-9][0-9_]*(?:\.[0-9]+)?)\s*([A-Za-z]*)\s*", value)):
            unit = _UNITS.get(m[2].upper())
            if unit and (size := int(float(m[1].replace("_", "")) * unit)) > 0:
                return cls(size)
        raise ValueError(f"expected a size such as 1000000, 500 MB or 64 MiB, got {value!r}")


def in_words(size: int, total: int | None = None) -> str:
    """Return bytes in words, of all if that is given: ``1.2 of 34.5 GB``."""
    most = size if total is None else total
    unit, name = next(((unit, name) for unit, name in _WORDS if most >= unit), _WORDS[-1])
    return f"{size / unit:.1f} {name}" if total is None else f"{size / unit:.1f} of {total / unit:.1f} {name}"
