"""Each configuration gives the verdicts that its peer gave on the recorded pages."""

from pathlib import Path

import pytest

from tests.oracles.__main__ import names, oracle
from tests.oracles.frame import by_id, cases, compare, recorded, write_pages


@pytest.mark.parametrize("name", [name for name in names() if recorded(name).exists()])
def test_verdicts_are_the_peers(name: str, tmp_path: Path) -> None:
    sample = cases(name)
    assert any(case.verdict.kept for case in sample)
    pages = tmp_path / "pages.jsonl"
    write_pages((case.page for case in sample), pages)
    own = oracle(name)
    table = compare(by_id(case.verdict for case in sample), by_id(own.ours(pages, tmp_path)), own.same)
    assert not table.unlike
