"""The setting ``root:``: relative paths of a configuration are below it, wherever a command runs."""

import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.conftest import ROOT, Run
from tests.pipeline.conftest import document, tree, write_rows
from tests.recipes import mix_of
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
    "ingest": {"format": "dolma", "from": ["raw/*.jsonl"]},  # an entry alone, which needs no list
    "tag": {"size-0": {"tagger": "plugins/size.py:Size"}, "words-0": {"tagger": "word_list", "lists": "lists/bad.txt"}},
    "dedup": {"contamination-0": {"kind": "contamination", "against": ["raw/items.json"]}},
    "mix": mix_of(
        "out/corpus",
        {"include": "rules/more.yaml"},
        {"drop": "blocklist", "files": "lists/gone.txt"},
        {"keep": "python", "function": "plugins/keep.py:kept"},
        {"group": "long", "languages": "limits/*.yaml", "rules": [{"drop": "size > most"}], "parameters": {"most": 90}},
        attributes=["size-0", "words-0"],
        label="'en' if size > 0 else 'de'",
        rejected="out/rejected",
        editions={"small": {"rules": [{"drop": "size > 5"}], "output": {"path": "out/small"}}},
    ),
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
        "limits/en.yaml": "most: 80",
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
    run("run", "-c", folder / "conf/deep/c.yaml", "--quiet").succeeds()
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


@pytest.mark.slow
def test_nothing_is_done_again_from_another_folder(folder: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    path = folder / "conf/deep/c.yaml"
    assert run("run", "-c", path, "--quiet").code == 0
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*.gz")}
    monkeypatch.chdir(folder / "conf")
    run("run", "-c", "deep/c.yaml", "--quiet").succeeds()
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*.gz") if path in before} == before


OWN_KINDS = """
from mixers.dolma import Dolma
from toolkit.ingest.formats.jsonl import Jsonl
from toolkit.whole_corpus.kinds.exact import Exact

class Lines(Jsonl):
    \"\"\"Rows.\"\"\"

class Same(Exact):
    \"\"\"Equal texts.\"\"\"

class Rows(Dolma):
    \"\"\"Rows.\"\"\"
"""


@pytest.mark.parametrize("in_place", [False, True])
def test_a_project_that_is_moved_is_up_to_date(folder: Path, tmp_path: Path, run: Run, *, in_place: bool) -> None:
    (folder / "plugins/kinds.py").write_text(OWN_KINDS)
    path = folder / "conf/deep/c.yaml"
    config = {
        **CONFIG,
        "ingest": [{"format": "plugins/kinds.py:Lines", "from": ["raw/*.jsonl"]}],
        "dedup": {**CONFIG["dedup"], "same-0": {"kind": "plugins/kinds.py:Same"}},
        "mix": {
            **CONFIG["mix"],
            "attributes": ["size-0", "words-0", "same-0"],
            "output": {"format": "plugins/kinds.py:Rows", "path": "out/corpus"},
        },
    }
    if in_place:
        del config["ingest"], config["dataset"]
        config["documents"] = {"format": "plugins/kinds.py:Lines", "path": "raw/*.jsonl"}
        config["attributes"] = "data/corpus/attributes"
    path.write_text(yaml.safe_dump({"root": "../..", **config}))
    run("run", "-c", path, "--quiet").succeeds()

    def files() -> dict[str, tuple[int, bytes]]:
        listed = (path for name in WRITTEN for path in (folder / name).rglob("*") if path.is_file())
        return {
            str(path.relative_to(folder)): (path.stat().st_mtime_ns, path.read_bytes())
            for path in listed
            if path.name != "origins.json"  # which names the place of the dataset
        }

    before = files()
    folder = folder.rename(tmp_path / "moved")
    path = folder / "conf/deep/c.yaml"
    for command in ("run", "validate"):
        run(command, "-c", path, "--quiet").succeeds()
    now = files()
    assert {name: now.get(name) for name in before if ".toolkit" not in name} == {
        name: found for name, found in before.items() if ".toolkit" not in name
    }
    schemas = "schema.json"  # where taggers and models were is told beside their settings
    told = [name for name, (_, content) in now.items() if b"project/plugins" in content and schemas not in name]
    assert told == []


def test_streams_annotate_train_align_and_tokenize_are_below_it(folder: Path, run: Run) -> None:
    path = folder / "conf/deep/c.yaml"
    write_rows(folder / "in/scores.jsonl", [{"id": f"d{i}", "score": i} for i in range(6)])
    (folder / "in/prompt.yaml").write_bytes((ROOT / "configs/prompts/educational_value.en.yaml").read_bytes())
    (folder / "in/tokenizer.json").write_bytes((ROOT / "configs/sample/tokenizer.json").read_bytes())
    config = {
        "dataset": "data/corpus",
        "ingest": CONFIG["ingest"],
        "align": {"score-0": {"from": "in/scores.jsonl"}},
        "train": {"m-0": {"kind": "linear", "labels": "score-0.score", "task": "regression", "path": "models/m"}},
        "annotate": {
            "q-0": {"endpoint": "http://127.0.0.1:9", "model": "m", "prompt": "in/prompt.yaml", "answers": "said"}
        },
        "tokenize": {"path": "out/tokens", "tokenizer": "in/tokenizer.json", "eod": "</s>", "files": "megatron"},
        "mix": {
            "streams": {
                "one": {"dataset": "data/corpus"},
                "two": {"dataset": "data/corpus", "rules": [{"drop": "True"}]},
            },
            "output": {"format": "dolma", "path": "out/corpus"},
        },
    }
    path.write_text(yaml.safe_dump({"root": "../..", **config}))
    for command in ("ingest", "align", "mix", "tokenize"):
        run(command, "-c", path, "--quiet").succeeds()
    assert run("train", "-c", path, "--quiet").code in (0, 1), "few documents may have too few labels"
    assert run("annotate", "-c", path, "--quiet", "--dry-run").code == 0
    assert list(Path().iterdir()) == []
    assert tree(folder / "out/tokens")
    assert {each.name for each in folder.iterdir()} >= {"data", "out"}


def test_a_dry_run_shows_the_root(folder: Path, run: Run) -> None:
    run("ingest", "-c", folder / "conf/deep/c.yaml", "--dry-run").succeeds().shows(f"root: {folder}\n")


def test_paths_on_the_command_line_are_those_of_the_working_folder(folder: Path, run: Run) -> None:
    run("ingest", "-c", folder / "conf/deep/c.yaml", "--quiet", "dataset=mine").succeeds()
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
    run(command, "-c", path, "--quiet").fails(2, f"{folder}/none", f"(`root:` is {folder})")
    path.write_text(yaml.safe_dump({**CONFIG, "dataset": str(folder / "data/corpus"), **change}))
    run(command, "-c", path, "--quiet").fails(
        2, f"below {Path.cwd()}: `root: FOLDER` in the configuration names another folder"
    )


def test_calls_from_python_have_it(folder: Path, run: Run) -> None:
    path = folder / "conf/deep/c.yaml"
    assert run("ingest", "-c", path, "--quiet").code == 0
    assert Dataset(str(path)).shards == ["a.jsonl.gz"]


OLD_READER = """
import msgspec
from toolkit import Draft, Reader

class Numbered(Reader):
    TYPES = {"length": int}

    def attribute_sets(self):
        return ("carried-0",)

    def read(self, source):
        with source.lines() as lines:
            for number, line in enumerate(lines, 1):
                yield Draft(text=line.decode(), number=number, attributes={"length": msgspec.Raw(b"1")})
"""


def test_attributes_without_their_set_are_an_error_of_the_reader(folder: Path, run: Run) -> None:
    (folder / "plugins/old.py").write_text(OLD_READER)
    (folder / "lines.txt").write_text("one\n")
    ingest = [{"format": "plugins/old.py:Numbered", "from": ["lines.txt"], "source": "x"}]
    (folder / "old.yaml").write_text(yaml.safe_dump({"root": ".", "dataset": "old", "ingest": ingest}))
    run("ingest", "-c", folder / "old.yaml").fails(
        1, "lines.txt:1: expected attributes by set, {'carried-0': {KEY: …}}, of each draft, got length; correct Num"
    )
