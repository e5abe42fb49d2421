"""Every command, configuration and script of every page is run, or the page says why it is not.

A block that no test can run has ``<!-- not run: REASON -->`` before it. All other blocks of a page are run here, from
top to bottom, in a folder with the dataset of the quickstart; or by a test of the page's own, which `BY_OTHERS` names
with the number of blocks that it runs.
"""

import gzip
import json
import os
import re
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests import pages
from tests.conftest import ROOT, Run
from toolkit import cli

RUN = ("bash", "python", "sh", "sql", "yaml")
"""The languages of blocks that do something; the others show something."""

BY_OTHERS = {
    "README.md": (3, "test_docs.py"),
    "annotating.md": (2, "test_annotating_page.py"),
    "annotation-files.md": (3, "test_annotation_files_page.py"),
    "bring-your-own-data.md": (10, "test_own_data_page.py"),
    "classifier-walk.md": (19, "test_classifier_walk_page.py"),
    "classifiers.md": (4, "test_classifiers_page.py"),
    "commands.md": (27, "commands/test_command_line.py"),
    "dolma.md": (2, "pipeline/test_dolma.py"),
    "embeddings.md": (6, "test_embeddings_page.py"),
    "in-place.md": (3, "test_in_place_page.py"),
    "in-python.md": (13, "in_python/test_page.py"),
    "iterating.md": (7, "test_docs.py"),
    "locks.md": (5, "test_locks_page.py"),
    "own-model.md": (9, "test_own_model_page.py"),
    "publishing.md": (4, "test_publishing_page.py"),
    "quickstart.md": (7, "test_docs.py"),
    "rules.md": (7, "test_docs.py"),
    "slurm.md": (2, "slurm/test_slurm.py"),
    "writing-a-store.md": (3, "storage/test_contract.py"),
    "writing-a-tagger.md": (15, "test_plugin_pages.py"),
    "writing-an-input-format.md": (6, "test_plugin_pages.py"),
    "writing-an-output-format.md": (7, "test_plugin_pages.py"),
}
"""Pages whose own tests run their blocks: how many, and which test. A new block: run it there, then count it here."""

PAGES = [*sorted((ROOT / "docs").glob("*.md")), ROOT / "README.md", ROOT / "CONTRIBUTING.md"]


def _runnable(path: Path) -> list[pages.Block]:
    return [b for b in pages.blocks(str(path.relative_to(ROOT))) if b.language in RUN and not b.unrun]


HERE = [path for path in PAGES if path.name not in BY_OTHERS and _runnable(path)]
SLOW: tuple[str, ...] = ()


@pytest.mark.parametrize("name", BY_OTHERS)
def test_tests_of_pages_know_all_their_blocks(name: str) -> None:
    """A block that is added is not run by a test that was written before it."""
    count, test = BY_OTHERS[name]
    (path,) = (path for path in PAGES if path.name == name)
    assert len(_runnable(path)) == count, f"run the new block in tests/{test}, or say in the page why it is not run"
    assert (ROOT / "tests" / test).is_file()


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_what_is_not_run_has_a_reason(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    unrun = [block.unrun for block in pages.blocks(str(path.relative_to(ROOT))) if block.unrun]
    assert len(unrun) == text.count("<!-- not run"), "the comment stands directly before a block, with its reason"
    assert all(len(reason.split()) >= 3 for reason in unrun)


# --- what pages find in their folder -----------------------------------------------------------------------------------

Made = Callable[[Path], None]


def _no_more(_: Path) -> None:
    """Needs nothing but the dataset of the quickstart."""


def _ids(folder: Path) -> list[str]:
    found = sorted((folder / "data/quickstart/documents").rglob("*.gz"))
    return [json.loads(line)["id"] for path in found for line in gzip.decompress(path.read_bytes()).splitlines()]


def _lines(path: Path, rows: list[dict[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def _documents(*names: str) -> Made:
    """Give datasets of these names the documents of the quickstart."""

    def made(folder: Path) -> None:
        for name in names:
            shutil.copytree(folder / "data/quickstart/documents", folder / name / "documents")

    return made


def _signals(folder: Path) -> None:
    pa = pytest.importorskip("pyarrow", exc_type=ImportError)
    pq = pytest.importorskip("pyarrow.parquet", exc_type=ImportError)
    _documents("data/web")(folder)
    rows = [{"doc_id": id, "quality": n % 10 / 10, "toxicity": 0.0} for n, id in enumerate(_ids(folder))]
    for name, found in {
        "signals/a.parquet": rows,
        "normalized/part-0.parquet": [{"id": row["doc_id"], "text": "A text."} for row in rows],
        "attributes/quality/part-0.parquet": [{"id": row["doc_id"], "score": row["quality"]} for row in rows],
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.Table.from_pylist(found), folder / name)


EXTRA: dict[str, tuple[Made, Mapping[str, Any]]] = {
    "attributes-of-others.md": (_signals, {}),
}
"""Of pages: what makes the files that they name, and the sections that their fragments of configurations leave out."""


# --- running ------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def quickstart(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the recipes, and the dataset and the output of the quickstart."""
    folder = tmp_path_factory.mktemp("blocks")
    shutil.copytree(ROOT / "configs", folder / "configs")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert cli.main(["run", "-c", "configs/quickstart.yaml", "executor.type=in_process", "--quiet"]) == 0
    return folder


class Session:
    """A reader who types a page."""

    def __init__(self, folder: Path, run: Run, more: Mapping[str, Any]) -> None:
        self.folder, self.run, self.more = folder, run, more
        self.unnamed: str | None = None
        self.printed = ""

    def read(self, block: pages.Block) -> None:
        """Save a configuration or script, carry out commands, and compare what is shown with what they printed."""
        if block.language == "yaml":
            self.configured()
            name = re.match(r"# ([\w.-]+\.yaml)\n", block.text)
            if name:
                (self.folder / name[1]).write_text(block.text, encoding="utf-8")
            else:
                self.unnamed = block.text
        elif block.language in ("sh", "bash"):
            for shown in pages.commands(block):
                self._typed(shown)
        elif block.language == "python":
            self.configured()
            exec(compile(block.text, "page", "exec"), {"__name__": "page"})
        elif block.language == "sql":
            self.configured()
            duckdb = pytest.importorskip("duckdb", reason="the page shows queries of DuckDB")
            self.printed = str(duckdb.sql(block.text))
        elif block.language == "text" and self.printed:
            pages.assert_shown(block.text.splitlines(), self.printed)
            self.printed = ""

    def _typed(self, shown: pages.Shown) -> None:
        named = re.search(r"-c (\S+\.yaml)", shown.command)
        if named and not (self.folder / named[1]).exists() and self.unnamed is not None:
            self._save(named[1])
        refused = any(line.startswith("error:") for line in shown.lines)
        self.printed = pages.carried_out(shown.command, self.folder, self.run, 2 if refused else 0)
        if shown.lines:
            pages.assert_shown(shown.lines, self.printed)
            self.printed = ""

    def _save(self, name: str) -> None:
        assert self.unnamed is not None
        found = yaml.safe_load(self.unnamed)
        missing = {key: value for key, value in self.more.items() if key not in found}
        (self.folder / name).write_text(yaml.safe_dump(missing) * bool(missing) + self.unnamed, encoding="utf-8")
        self.unnamed = None

    def configured(self) -> None:
        """Run the configuration that the page has shown last, if no command has named it."""
        if self.unnamed is not None:
            self._save("unnamed.yaml")
            ran = self.run("run", "-c", "unnamed.yaml", "--quiet", "executor.type=in_process")
            assert ran.code == 0, ((self.folder / "unnamed.yaml").read_text(encoding="utf-8"), ran.err)


@pytest.mark.parametrize(
    "path", [pytest.param(p, id=p.name, marks=[pytest.mark.slow] if p.name in SLOW else []) for p in HERE]
)
def test_the_blocks_of_the_page_run(
    path: Path, quickstart: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run
) -> None:
    shutil.copytree(quickstart, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    made, more = EXTRA.get(path.name, (_no_more, {}))
    made(tmp_path)
    session = Session(tmp_path, run, more)
    for block in pages.blocks(str(path.relative_to(ROOT))):
        if not block.unrun:
            session.read(block)
    session.configured()
    assert os.getcwd() == str(tmp_path)
