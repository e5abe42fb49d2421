"""How long a test waits at most is said in one place."""

import re

from tests.conftest import ROOT

OWN_BOUND = re.compile(r"\.(?:wait|join)\((?:timeout=)?[1-9]|\btimeout=\d{2,}|monotonic\(\) \+ (?!PATIENCE|chosen)")


def test_no_test_has_a_bound_of_its_own() -> None:
    """One that was enough once is not on a machine that has others to serve: `tests.waiting` has one for all."""
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in sorted((ROOT / "tests").rglob("*.py"))
        if path.parent.name != "benchmarks" and path.name not in ("waiting.py", "test_waiting.py")
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if OWN_BOUND.search(line) and "urlopen" not in line
    ]
    assert found == []
