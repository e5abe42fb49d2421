"""The queries of the page about SQL run as they stand, on the quickstart's sample."""

import re
from pathlib import Path

import pytest

from tests.conftest import ROOT, Run
from tests.pages import assert_shown, blocks, carried_out, commands

pytest.importorskip("duckdb", reason="SQL needs DuckDB (extra sql)")


def test_the_queries_of_the_page_run_as_they_stand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "configs").symlink_to(ROOT / "configs")
    count = 0
    for block in blocks("docs/sql.md"):
        if block.language == "python":
            exec(compile(block.text, "docs/sql.md", "exec"), {})
        if block.language not in ("sh", "text"):
            continue
        joined = re.sub(r"\n    +", " ", block.text)  # a query of several lines is one argument
        for shown in commands(block._replace(text=joined)):
            refused = any(line.startswith("error:") for line in shown.lines)
            assert_shown(shown.lines, carried_out(shown.command, tmp_path, run, status=2 if refused else 0))
            count += 1
    assert count > 10
    assert (tmp_path / "data" / "exported" / "language-0" / "cc" / "sample-00001.parquet").exists()
