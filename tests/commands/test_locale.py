"""A locale without UTF-8 changes neither names nor texts, and stops nothing."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

NO_UTF8 = {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}
TEXT = "Überall gibt es schöne Bücher — 日本語"


def toolkit(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[bytes]:
    line = [sys.executable, "-m", "toolkit", *arguments]
    return subprocess.run(line, cwd=folder, env=os.environ | environment, capture_output=True, check=False)


@pytest.mark.parametrize(
    "environment",
    [NO_UTF8, {"PYTHONIOENCODING": "ascii"}],
    ids=["locale", "ascii"],
)
def test_names_and_texts_are_those_of_any_other_locale(environment: dict[str, str], tmp_path: Path) -> None:
    folder = tmp_path / "Bücher"
    folder.mkdir()
    (folder / "ü.jsonl").write_text(json.dumps({"id": "ä", "text": TEXT}, ensure_ascii=False) + "\n", encoding="utf-8")
    (tmp_path / "c.yaml").write_text(
        "dataset: données\ningest:\n  - {format: jsonl, from: ['Bücher/*.jsonl'], source: é}\n", encoding="utf-8"
    )
    assert toolkit(tmp_path, "ingest", "-c", "c.yaml", **environment).returncode == 0
    assert (tmp_path / "données" / "documents" / "é").is_dir()
    for more in ((), ("--json",)):
        usual, here = (toolkit(tmp_path, "head", "données", *more, **each) for each in ({}, environment))
        assert (usual.returncode, here.returncode) == (0, 0), here.stderr
        if more or "PYTHONIOENCODING" not in environment:
            assert here.stdout == usual.stdout
            assert TEXT.encode() in here.stdout
