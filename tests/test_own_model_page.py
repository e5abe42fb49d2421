"""The page on a model of one's own, run: version 1, a look, version 2, and which files that writes."""

import re
import runpy
from pathlib import Path

import pytest

from tests.pipeline.conftest import read_rows, tree
from toolkit import cli

PAGE = Path(__file__).parent.parent / "docs" / "own-model.md"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def masked(line: str) -> str:
    """Return a line without its numbers: two models that are trained alike differ a little."""
    return re.sub(r"[-\s]+", " ", re.sub(r"\d[\d.,]*", "#", line)).strip()


@pytest.mark.slow
def test_a_second_version_writes_its_own_attributes_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    page = PAGE.read_text(encoding="utf-8").partition("## Compare two versions of a tagger")[0]
    blocks = BLOCK.findall(page)
    (script,) = (text for language, text in blocks if language == "python")
    (tmp_path / "make.py").write_text(script, encoding="utf-8")
    for name, text in zip(
        ["forum.yaml", "forum-1.yaml"], (text for language, text in blocks if language == "yaml"), strict=True
    ):
        (tmp_path / name).write_text(text, encoding="utf-8")
    written: dict[str, set[str]] = {}
    shown = ""
    for language, text in blocks:
        if language == "sh":
            shown = ""
            for line in text.splitlines():
                before = tree(tmp_path / "data")
                if line == "python make.py":
                    runpy.run_path("make.py")
                else:
                    assert cli.main([*line.split()[1:], "--quiet"]) == 0
                after = tree(tmp_path / "data")
                written[line] = {path for path in after.keys() | before.keys() if after.get(path) != before.get(path)}
                shown += capsys.readouterr().out
        elif language == "text":
            there = {masked(line) for line in shown.splitlines()}
            told = [line for line in text.splitlines() if "…" not in line and "->" not in line]
            assert [line for line in told if masked(line) not in there] == [], shown
    again = written["toolkit tag -c forum-1.yaml"]
    assert again == {f"forum/attributes/toxicity-1/forum-{shard}.jsonl.gz" for shard in range(4)}
    looking = [
        line for line in written if any(word in line for word in ("--dry-run", "--explain", "--sample", "ompare"))
    ]
    assert len(looking) == 5
    assert not any(written[line] for line in looking)
    kept = [row["text"] for row in read_rows(tmp_path / "data/clean/documents/documents.jsonl.gz")]
    assert 3500 < len(kept) < 3750
    assert not any("Nobody wants you here" in text for text in kept), "which the first version has not learnt"
    assert any("idiot proof" in text for text in kept)
