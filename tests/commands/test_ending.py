"""A command that has succeeded ends at once: what was to be done at the end is done, what it wrote is there."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import atexit, sys, threading
from toolkit import cli

atexit.register(lambda: print("at the end", flush=True))
if "thread" in sys.argv:
    threading.Thread(target=lambda: (threading.main_thread().join(), print("thread"))).start()
cli.main = lambda prog: print("written") or int(sys.argv[1])
cli.entry()
"""


@pytest.mark.parametrize(
    ("arguments", "lines"),
    [
        (["0"], ["written", "at the end"]),
        (["1"], ["written", "at the end"]),
        (["0", "thread"], ["written", "thread", "at the end"]),
    ],
)
def test_what_ends_with_a_command(arguments: list[str], lines: list[str]) -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM, *arguments], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.splitlines(), done.stderr) == (int(arguments[0]), lines, "")


# A locale without UTF-8 changes neither names nor texts, and stops nothing.

NO_UTF8 = {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}
TEXT = "Überall gibt es schöne Bücher — 日本語"


def toolkit(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[bytes]:
    line = [sys.executable, "-m", "toolkit", *arguments]
    return subprocess.run(line, cwd=folder, env=os.environ | environment, capture_output=True, check=False)


@pytest.mark.parametrize(
    "environment",
    [
        pytest.param(NO_UTF8, id="locale"),
        pytest.param({"PYTHONIOENCODING": "ascii"}, id="ascii", marks=pytest.mark.slow),
    ],
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
