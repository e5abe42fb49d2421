"""Each configuration gives the verdicts that its peer gave on the recorded pages."""

from pathlib import Path

import pytest

from tests.marks import slow
from tests.oracles.__main__ import names, oracle
from tests.oracles.frame import by_id, cases, compare, recorded, write_pages

RECORDED = {name for name in names() if recorded(name).exists()}
THOROUGH = {"fineweb-2", "gopher"}
"""Oracles of many languages, and of taggers that another oracle has."""


@pytest.mark.parametrize("name", [*sorted(RECORDED - THOROUGH), *slow(*sorted(THOROUGH))])
def test_verdicts_are_the_peers(name: str, tmp_path: Path) -> None:
    sample = cases(name)
    assert any(case.verdict.kept for case in sample)
    pages = tmp_path / "pages.jsonl"
    write_pages((case.page for case in sample), pages)
    own = oracle(name)
    table = compare(by_id(case.verdict for case in sample), by_id(own.ours(pages, tmp_path)), own.same)
    assert not table.unlike
