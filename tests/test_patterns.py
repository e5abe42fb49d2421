"""Regular expressions mean the same with each version of Python that runs us."""

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent

POSSESSIVE_GROUP = re.compile(r"(?<![(\\])\)(?:[*+?]|\{[0-9,]+\})\+")


def test_no_group_has_a_possessive_quantifier() -> None:
    """Python 3.11.0 to 3.11.4 match such groups wrong (python/cpython#106052); ``(?>(?:…)+)`` means the same."""
    found = []
    for path in (path for package in ("toolkit", "taggers", "mixers") for path in (ROOT / package).rglob("*.py")):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if POSSESSIVE_GROUP.search(line):
                found.append(f"{path.relative_to(ROOT)}:{number}: {line.strip()}")
    assert found == []
