"""The setting ``root:``: relative paths of a configuration are below it, wherever a command runs."""

import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.conftest import Run
from tests.pipeline.conftest import document, tree, write_rows
from toolkit import Dataset

TAGGER = """
from toolkit import Document, Tagger

class Size(Tagger):
    \"\"\"The code points.\"\"\"

    EXAMPLES = ()

    def tag(self, document: Document) -> int:
        return len(document.text)
"""

CONFIG: dict[str, Any] = {
    "dataset": "data/corpus",
    "processes": 1,
    "executor": {"type": "in_process"},
    "ingest": [{"format": "dolma", "from": ["raw/*.jsonl"]}],
    "tag": {
        "size-0": {"tagger": "plugins/size.py:Size"},
        "words-0": {"tagger": "word_list", "lists": "lists/bad.txt"},
    },
    "dedup": {"contamination-0": {"kind": "contamination", "against": ["raw/items.json"]}},
    "mix": {
        "attributes": ["size-0", "words-0"],
        "rules": [
            {"include": "rules/more.yaml"},
            {"drop": "blocklist", "files": "lists/gone.txt"},
            {"keep": "python", "function": "plugins/keep.py:kept"},
        ],
        "output": {"format": "dolma", "path": "out/corpus"},
        "rejected": "out/rejected",
        "editions": {"small": {"rules": [{"drop": "size > 5"}], "output": {"path": "out/small"}}},
    },
}


WRITTEN = ("data", "out/corpus", "out/small")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project whose configuration is two folders deep, and another working folder."""
    here = tmp_path / "project"
    texts = ["one", "bad word", "three", "goes away", "x" * 30, "last one"]
    write_rows(here / "raw/a.jsonl", [document(f"d{i}", text) for i, text in enumerate(texts)])
    (here / "raw/items.json").write_text(
        '{"text": "nothing of all these words is in any of the documents of the set at all"}'
    )
    for path, text in {
        "plugins/size.py": TAGGER,
        "plugins/keep.py": "def kept(document, attributes):\n    return attributes['size'] < 20\n",
        "lists/bad.txt": "bad",
        "lists/gone.txt": "d3",
        "rules/more.yaml": "- {drop: size == 3, name: three}",
    }.items():
        (here / path).parent.mkdir(exist_ok=True)
        (here / path).write_text(text)
    (here / "conf/deep").mkdir(parents=True)
    (here / "conf/deep/c.yaml").write_text(yaml.safe_dump({"root": "../..", **CONFIG}))
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    return here


def test_all_paths_are_below_the_root_and_nothing_is_written_elsewhere(
    folder: Path, tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran = run("run", "-c", folder / "conf/deep/c.yaml", "--quiet")
    assert ran.code == 0, ran.err
    assert list(Path().iterdir()) == []
    made = {name: tree(folder / name) for name in WRITTEN}
    assert all(made.values())
    assert tree(folder / "out/rejected")
    shutil.rmtree(folder / "data")
    shutil.rmtree(folder / "out")
    monkeypatch.chdir(folder)
    (folder / "plain.yaml").write_text(yaml.safe_dump(CONFIG))
    assert run("run", "-c", "plain.yaml", "--quiet").code == 0
    assert {name: tree(folder / name) for name in WRITTEN} == made


def test_nothing_is_done_again_from_another_folder(folder: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    path = folder / "conf/deep/c.yaml"
    assert run("run", "-c", path, "--quiet").code == 0
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*.gz")}
    monkeypatch.chdir(folder / "conf")
    ran = run("run", "-c", "deep/c.yaml", "--quiet")
    assert ran.code == 0, ran.err
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*.gz") if path in before} == before


def test_a_dry_run_shows_the_root(folder: Path, run: Run) -> None:
    ran = run("ingest", "-c", folder / "conf/deep/c.yaml", "--dry-run")
    assert ran.code == 0
    assert f"root: {folder}\n" in ran.out


def test_paths_on_the_command_line_are_those_of_the_working_folder(folder: Path, run: Run) -> None:
    ran = run("ingest", "-c", folder / "conf/deep/c.yaml", "--quiet", "dataset=mine")
    assert ran.code == 0, ran.err
    assert Path("mine/documents").is_dir()


@pytest.mark.parametrize(
    ("change", "command"),
    [
        ({"ingest": [{"format": "dolma", "from": ["none/*.jsonl"]}]}, "ingest"),
        ({"ingest": [{"format": "dolma", "from": "none.jsonl"}]}, "ingest"),
        ({"tag": {"size-0": {"tagger": "none/size.py:Size"}}}, "tag"),
        ({"tag": {"words-0": {"tagger": "word_list", "lists": "none.txt"}}}, "tag"),
        ({"documents": {"format": "parquet", "path": "none/x.parquet"}, "ingest": []}, "tag"),
    ],
)
def test_an_error_about_a_path_that_is_not_there_names_the_root(
    folder: Path, run: Run, change: dict[str, Any], command: str
) -> None:
    path = folder / "conf/deep/c.yaml"
    assert run("ingest", "-c", path, "--quiet").code == 0
    path.write_text(yaml.safe_dump({"root": "../..", **CONFIG, **change}))
    ran = run(command, "-c", path, "--quiet")
    assert ran.code == 2
    assert f"{folder}/none" in ran.err
    assert f"(`root:` is {folder})" in ran.err
    path.write_text(yaml.safe_dump({**CONFIG, "dataset": str(folder / "data/corpus"), **change}))
    ran = run(command, "-c", path, "--quiet")
    assert ran.code == 2
    assert f"below {Path.cwd()}: `root: FOLDER` in the configuration names another folder" in ran.err


def test_a_root_that_is_not_there_is_refused(folder: Path, run: Run) -> None:
    path = folder / "conf/deep/c.yaml"
    path.write_text(yaml.safe_dump({**CONFIG, "root": "nowhere"}))
    ran = run("run", "-c", path)
    assert ran.code == 2
    assert f"root: expected a folder, got {folder}/conf/deep/nowhere, which is not there" in ran.err


def test_calls_from_python_have_it(folder: Path, run: Run) -> None:
    path = folder / "conf/deep/c.yaml"
    assert run("ingest", "-c", path, "--quiet").code == 0
    assert Dataset(str(path)).shards == ["a.jsonl.gz"]
