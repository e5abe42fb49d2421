"""The example of the page about locks runs as it stands."""

from pathlib import Path

import pytest

from tests.conftest import Run
from tests.pages import assert_shown, blocks, carried_out, commands


def test_the_example_of_the_page_runs_as_it_stands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run) -> None:
    monkeypatch.chdir(tmp_path)
    for block in blocks("docs/locks.md"):
        if block.language == "yaml":
            (tmp_path / "letters.yaml").write_text("executor: {type: in_process}\n" + block.text)
            continue
        for shown in commands(block):
            refused = any(line.startswith("error:") for line in shown.lines)
            assert_shown(shown.lines, carried_out(shown.command, tmp_path, run, status=2 if refused else 0))
    assert (tmp_path / "out").exists()
