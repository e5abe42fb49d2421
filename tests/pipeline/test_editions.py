"""Several outputs of one configuration, as OSCAR 2019 has two editions."""

import gzip
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Run
from tests.oracles.oscar_2019 import runiq
from tests.pipeline.conftest import Project, document, tree, write_rows

ONE = {"attributes": ["lang-0", "once-0"], "rules": [{"cut": "once.spans", "name": "again"}]}


@pytest.fixture
def project(tmp_path: Path, run: Run) -> Project:
    """Documents in two languages with lines that are there twice, and an edition with each once."""
    texts = ["hello\nworld\nhello", "welt\nworld\n\nhallo", "hallo\nhello", "end\r\nworld"]
    config: dict[str, Any] = {
        "dataset": str(tmp_path / "data"),
        "processes": 1,
        "tag": {"lang-0": {"tagger": f"{tmp_path}/lang.py:Lang"}},
        "dedup": {"once-0": {"kind": "exact", "unit": "line", "bits": 64, "as": "once"}},
        "mix": {
            "attributes": ["lang-0"],
            "output": {"format": "text", "unit": "line", "path": str(tmp_path / "out/all"),
                       "sentence_identifications": "lang"},
            "editions": {"once": {**ONE, "output": {"path": f"{tmp_path}/out/once"}}},
        },
    }  # fmt: skip
    (tmp_path / "lang.py").write_text(
        "import msgspec\nfrom toolkit import Document, Tagger\n"
        "class Label(msgspec.Struct, frozen=True):\n    label: str\n    prob: float\n"
        "class Lang(Tagger):\n    '''Return a label for each line.'''\n"
        "    def tag(self, document: Document) -> list[Label | None]:\n"
        "        return [Label('de' if 'l' in x and 'o' not in x or x[:2] == 'ha' else 'en', 1.0)\n"
        "                for x in document.lines]\n"
    )
    found = Project(tmp_path, run, config)
    for shard in range(2):
        rows = [document(str(i), texts[i]) for i in (2 * shard, 2 * shard + 1)]
        write_rows(found.documents / f"{shard}.jsonl.gz", rows)
    return found


def text_of(root: Path, edition: str, label: str) -> bytes:
    return gzip.decompress((root / "out" / edition / f"{label}.txt.gz").read_bytes())


@pytest.mark.slow
def test_one_configuration_publishes_both_and_stats_compares_them(project: Project) -> None:
    shown = project.ok("run").out
    assert "edition once:" in shown
    root = project.root
    assert text_of(root, "all", "en") == b"hello\nworld\nhello\n\nworld\n\nhello\n\nend\nworld\n\n"
    assert text_of(root, "once", "en") == b"hello\nworld\n\nend\n\n"
    for label in ("en", "de"):
        lines = [line for line in runiq(text_of(root, "all", label)).split(b"\n") if line]
        assert [line for line in text_of(root, "once", label).split(b"\n") if line] == lines
    found = project.run("stats", root / "out/all", root / "out/once", "--mix").out.splitlines()
    assert "words, original | words, once" in found[0]
    assert found[-1].split("|")[6:8] == ["              10 ", "           5 "]
    listed = project.run("stats", root / "out/all", root / "out/once", "--mix", "--json").json
    assert [(e["label"], e["before"]["words"], e["after"]["words"]) for e in listed["labels"]] == [
        ("de", 3, 2), ("en", 7, 3),
    ]  # fmt: skip
    before = tree(root / "out", bookkeeping=True)
    project.ok("mix")
    dry = project.ok("mix", "--dry-run", "--json").json
    assert list(dry["editions"]) == ["once"]
    assert dry["editions"]["once"]["totals"].keys() == dry["totals"].keys()
    assert tree(root / "out", bookkeeping=True) == before
    assert project.run("validate", root / "out/once").code == 0


@pytest.mark.slow
def test_an_edition_does_not_inherit_what_its_format_lacks(project: Project) -> None:
    """Neither options of another format, nor values of options of the same name."""
    out = project.root / "out"
    text = project.config["mix"]["output"] | {"path": str(out / "text")}
    project.config["mix"]["output"] = {
        "format": "dolma", "path": str(out / "all"), "name": "all", "layout": "dataset", "provenance": True,
    }  # fmt: skip
    project.config["mix"]["editions"] = {"text": {"output": text}}
    project.ok("run")
    assert (out / "all/documents/all.jsonl.gz").exists()
    assert text_of(project.root, "text", "en").startswith(b"hello")


def test_without_borders_a_file_is_lines(project: Project) -> None:
    project.config["mix"]["editions"]["once"]["output"]["borders"] = False
    project.ok("run")
    assert text_of(project.root, "once", "en") == b"hello\nworld\nend\n"
    assert project.run("validate", project.root / "out/once").code == 0
    assert project.run("stats", project.root / "out/once").code == 0


def test_all_outputs_of_a_configuration_are_looked_at(project: Project) -> None:
    """By `status`, the plan of a run, `validate` and `clean`: an edition that is lost is not overlooked."""
    project.ok("run")
    once = project.root / "out/once"
    assert "all is done" in project.ok("status").out
    leftover = once / ".en.txt.gz.elsewhere.1-1.0.tmp"
    leftover.write_bytes(b"")
    assert str(leftover) in project.ok("clean", "--dry-run").out
    (once / "en.txt.gz").write_bytes(gzip.compress(b"another text\n"))
    assert str(once / "en.txt.gz") in project("validate").out
    shutil.rmtree(once)
    status = project("status", "--json")
    missing = {stage["stage"]: stage["missing"] for stage in status.json["stages"]}
    assert (status.code, missing["mix"], missing["publish"]) == (1, 0, 0)
    assert (missing["edition once"], missing["publish of edition once"]) == (2, 1)
    plan = project.ok("run", "--dry-run", "--json").json["plan"]
    assert {name: plan[name]["to_do"] for name in missing} == missing
    project.ok("run")
    assert "all is done" in project.ok("status").out
