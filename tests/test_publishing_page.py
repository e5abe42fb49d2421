"""The page on publishing and fetching shows what happens."""

import shutil
from pathlib import Path

import pytest

from tests import pages
from tests.conftest import ROOT, Run


@pytest.mark.slow
def test_the_page_shows_what_happens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run) -> None:
    """All commands on local folders, in order."""
    shutil.copytree(ROOT / "configs", tmp_path / "configs")
    monkeypatch.chdir(tmp_path)
    pages.carried_out("toolkit run -c configs/quickstart.yaml processes=1", tmp_path, run)
    blocks = pages.blocks("docs/publishing.md")
    with (tmp_path / "configs" / "quickstart.yaml").open("a", encoding="utf-8") as configuration:
        configuration.writelines(block.text for block in blocks if block.language == "yaml")
    commands = [shown for block in blocks for shown in pages.commands(block)]
    local = [shown for shown in commands if "://" not in shown.command]
    assert len(local) >= 4
    for shown in local:
        pages.assert_shown(shown.lines, pages.carried_out(shown.command, tmp_path, run))
