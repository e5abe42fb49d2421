"""The page on embeddings, run: embeddings, a head, its set, a mix, and the array that Python reads."""

import json
import random
import runpy
from pathlib import Path

import pytest

from tests import pages
from tests.conftest import Run
from tests.pipeline.conftest import document, read_rows, write_rows
from tests.pipeline.test_train import text
from tests.text.encoders import models

PAGE = "docs/embeddings.md"


def make(folder: Path) -> None:
    """Write the encoder and the documents that the page names."""
    models.bert(folder / "encoder")
    chance = random.Random(3)
    rows = [(chance.random(), i) for i in range(400)]
    found = [document(str(i), text(chance, share), score=round(share * 5)) for share, i in rows]
    write_rows(folder / "edu/a.jsonl", found)


def test_the_commands_of_the_page_make_a_head_and_use_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run, capfd: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("tokenizers", reason="the extra tokens")
    monkeypatch.chdir(tmp_path)
    make(tmp_path)
    blocks = pages.blocks(PAGE)
    configurations = [block.text for block in blocks if block.language == "yaml"]
    for name, content in zip(("edu.yaml", "mix.yaml"), configurations, strict=True):
        (tmp_path / name).write_text(content)
    printed = ""
    for block in blocks:
        for shown in pages.commands(block) if block.language == "sh" else []:
            if shown.command.startswith("toolkit"):
                printed += pages.carried_out(shown.command, tmp_path, run)
    assert "spearman" in printed
    kept = read_rows(next((tmp_path / "data/educational").rglob("*.jsonl.gz")))
    assert 0 < len(kept) < 400

    (script,) = (block.text for block in blocks if block.language == "python")
    (tmp_path / "array.py").write_text(script)
    capfd.readouterr()
    runpy.run_path("array.py")
    assert capfd.readouterr().out == "(400, 8) float16 ['0', '1', '2']\n"

    duckdb = pytest.importorskip("duckdb")
    (query,) = (block.text for block in blocks if block.language == "sql")
    (row, *_) = duckdb.sql(query.replace("[384]", "[8]")).fetchall()
    assert row[0] == "0"
    assert len(json.loads(json.dumps(row[1]))) == 8
