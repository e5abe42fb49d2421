"""Every command, configuration and script of every page is run, or the page says why it is not.

A block that no test can run has ``<!-- not run: REASON -->`` before it. All other blocks of a page are run here, from
top to bottom, in a folder with the dataset of the quickstart; or by a test of the page's own, which `BY_OTHERS` names
with the number of blocks that it runs.
"""

import importlib.util
import itertools
import os
import re
import shlex
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests import pages, worlds
from tests.conftest import ROOT, Run
from toolkit import cli, command_options

IMPORTED = re.compile(r"^(?:from|import) (\w+)", re.MULTILINE)
NAMED = re.compile(r"# ([\w.-]+\.yaml)\n")
OPERATORS = ("&", "&&", "|", ";", ">", "<", "wait")
DONE = {"ingest", "align", "tag", "make", "dedup", "sample", "annotate", "calibrate", "mix", "tokenize"}
"""The sections of which `run` does something."""
RUN = ("bash", "python", "sh", "sql", "yaml")
"""The languages of blocks that do something; the others show something."""

BY_OTHERS = {
    "README.md": (3, "test_docs.py"),
    "annotating.md": (2, "test_pages.py"),
    "annotation-files.md": (3, "test_pages.py"),
    "bring-your-own-data.md": (10, "test_own_data_page.py"),
    "classifier-walk.md": (19, "test_pages.py"),
    "classifiers.md": (4, "test_pages.py"),
    "dolma.md": (2, "pipeline/test_dolma.py"),
    "embeddings.md": (6, "test_pages.py"),
    "extractors.md": (4, "pipeline/test_extractors.py"),
    "in-place.md": (3, "test_own_data_page.py"),
    "in-python.md": (13, "api/test_page.py"),
    "iterating.md": (7, "test_docs.py"),
    "locks.md": (5, "test_pages.py"),
    "notebook.md": (7, "api/test_page.py"),
    "own-model.md": (9, "test_pages.py"),
    "publishing.md": (4, "test_pages.py"),
    "quickstart.md": (7, "test_docs.py"),
    "rules.md": (7, "test_docs.py"),
    "slurm.md": (3, "slurm/test_slurm.py"),
    "small-language.md": (4, "test_pages.py"),
    "sql.md": (3, "test_pages.py"),
    "writing-a-stage.md": (7, "test_plugin_pages.py"),
    "writing-a-store.md": (3, "storage/test_contract.py"),
    "writing-a-tagger.md": (14, "test_plugin_pages.py"),
    "writing-an-input-format.md": (6, "test_plugin_pages.py"),
    "writing-an-output-format.md": (7, "test_plugin_pages.py"),
}
"""Pages whose own tests run their blocks: how many, and which test. A new block: run it there, then count it here."""

PAGES = [*sorted((ROOT / "docs").glob("*.md")), ROOT / "README.md", ROOT / "CONTRIBUTING.md"]


def _runnable(path: Path) -> list[pages.Block]:
    return [b for b in pages.blocks(str(path.relative_to(ROOT))) if b.language in RUN and not b.unrun]


HERE = [path for path in PAGES if path.name not in BY_OTHERS and _runnable(path)]
SLOW = (
    "configuration.md",
    "croissant.md",
    "dataset-card.md",
    "formats.md",
    "statistics.md",
    "storage.md",
    "training.md",
)


def test_tests_of_pages_know_all_their_blocks() -> None:
    """A block that is added is not run by a test that was written before it: run it there, or say why it is not run."""
    by_name = {path.name: path for path in PAGES}
    assert {name: len(_runnable(by_name[name])) for name in BY_OTHERS} == {
        name: count for name, (count, _) in BY_OTHERS.items()
    }
    assert [test for _, test in BY_OTHERS.values() if not (ROOT / "tests" / test).is_file()] == []


def test_what_is_not_run_has_a_reason() -> None:
    """In a comment directly before its block."""
    reasons = {path.name: [b.unrun for b in pages.blocks(str(path.relative_to(ROOT))) if b.unrun] for path in PAGES}
    comments = {p.name: re.findall(r"^ *<!-- not run", p.read_text(encoding="utf-8"), re.MULTILINE) for p in PAGES}
    assert {name: len(found) for name, found in reasons.items()} == {n: len(found) for n, found in comments.items()}
    assert [reason for found in reasons.values() for reason in found if len(reason.split()) < 3] == []


def _understood(command: str) -> None:
    """Parse each call of the command line within a command of a shell."""
    one_line = command.replace("\\\n", " ").replace("&", " & ").replace(";", " ; ")
    words = shlex.split(one_line, comments=True)
    for start, word in enumerate(words):
        if word == "toolkit" and (start == 0 or words[start - 1] in OPERATORS):
            given = [*itertools.takewhile(lambda each: each not in OPERATORS, words[start + 1 :])]
            if given[0] == "-c":  # as Dolma has it
                given = [given[2], *given[:2], *given[3:]]
            if given != ["--help"]:
                command_options.parse(given[0], [each for each in given[1:] if each != "…"], "toolkit")


def test_the_command_line_understands_every_command() -> None:
    """Also those that are not run."""
    blocks = [block for path in PAGES for block in pages.blocks(str(path.relative_to(ROOT)))]
    shown = [each.command for b in blocks if b.language in ("sh", "bash", "text") for each in pages.commands(b)]
    given = {each for each in shown if "toolkit " in each and 'toolkit run "${share[@]}"' not in each}
    assert len(given) > 100
    for command in sorted(given):
        _understood(command)


# --- running --------------------------------------------------------------------------------------------------------


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
    """A reader who types a page.

    A configuration is saved under the name in its first line (``# NAME.yaml``), or that in the next command. If no
    command names it, it is run by itself.
    """

    def __init__(self, folder: Path, run: Run, more: Mapping[str, Any]) -> None:
        self.folder, self.run, self.more = folder, run, more
        self.waiting: str | None = None
        self.printed = ""
        self.copies = 0

    def read(self, block: pages.Block) -> None:
        """Save a configuration, carry out commands and scripts, and compare what is shown with what they printed."""
        if block.unrun or block.language not in ("sh", "text"):
            self.printed = ""
        if block.unrun:
            return
        if block.language == "yaml":
            self.configured()
            self.waiting = block.text
        elif block.language in ("sh", "bash"):
            script = any(line.endswith(("&", "\\")) for line in block.text.splitlines())
            for shown in [pages.Shown(block.text, [])] if script and "$ " not in block.text else pages.commands(block):
                self._typed(shown)
        elif block.language == "python":
            self.configured()
            if all(importlib.util.find_spec(name) for name in IMPORTED.findall(block.text)):
                exec(compile(block.text, "page", "exec"), {"__name__": "page"})
        elif block.language == "sql":
            self.configured()
            duckdb = pytest.importorskip("duckdb", reason="the page shows queries of DuckDB")
            self.printed = str(duckdb.sql(block.text))
        elif block.language == "text" and self.printed:
            pages.assert_shown(block.text.splitlines(), self.printed)
            self.printed = ""

    def _typed(self, shown: pages.Shown) -> None:
        if self.waiting is not None and (named := re.search(r"-c (\S+\.yaml)", shown.command)):
            own = NAMED.match(self.waiting)
            if named[1] == own[1] if own else not (self.folder / named[1]).exists():
                self._save(named[1])
        refused = any(line.startswith("error:") for line in shown.lines)
        self.printed = pages.carried_out(shown.command, self.folder, self.run, 2 if refused else 0)
        if shown.lines:
            pages.assert_shown(shown.lines, self.printed)
            self.printed = ""

    def _save(self, name: str) -> dict[str, Any]:
        """Write the configuration that waits, a fragment with what it leaves out; return it."""
        assert self.waiting is not None
        found: dict[str, Any] = yaml.safe_load(self.waiting)
        whole = {"dataset", "documents"} & found.keys()
        missing = {} if whole else {key: value for key, value in self.more.items() if key not in found}
        if missing.get("dataset") == worlds.OWN:
            self.copies += 1
            missing["dataset"] = f"{worlds.OWN}-{self.copies}"
            if "ingest" not in found | missing:
                shutil.copytree(self.folder / worlds.OWN, self.folder / missing["dataset"])
        (self.folder / name).write_text(yaml.safe_dump(missing) * bool(missing) + self.waiting, encoding="utf-8")
        self.waiting = None
        return found | missing

    def configured(self) -> None:
        """Run the configuration that waits: no command has named it."""
        if self.waiting is not None:
            own = NAMED.match(self.waiting)
            name = own[1] if own else "unnamed.yaml"
            found = self._save(name)
            commands = ["run"] * bool(DONE & found.keys()) + ["train"] * ("train" in found)
            for command in commands or ["config"]:
                few = ["mix.allow_empty=true"] * ("mix" in found)  # the dataset of the quickstart is small
                quiet = ["--quiet", "executor.type=in_process"] * (command != "config")
                ran = self.run(command, "-c", name, *quiet, *few)
                assert ran.code == 0, ((self.folder / name).read_text(encoding="utf-8"), ran.err)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # other people's
@pytest.mark.parametrize(
    "path", [pytest.param(p, id=p.name, marks=[pytest.mark.slow] if p.name in SLOW else []) for p in HERE]
)
def test_the_blocks_of_the_page_run(
    path: Path, quickstart: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run
) -> None:
    shutil.copytree(quickstart, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DATA", str(tmp_path))
    made, more = worlds.EXTRA.get(path.name, (worlds.nothing, {}))
    made(tmp_path)
    session = Session(tmp_path, run, more)
    for block in pages.blocks(str(path.relative_to(ROOT))):
        session.read(block)
    session.configured()
    assert os.getcwd() == str(tmp_path)
