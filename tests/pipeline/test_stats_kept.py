"""``toolkit stats``: where counts are kept, and that nobody takes them for data."""

import shutil
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Run
from tests.pipeline.conftest import Project, attributes, document, tree, write_rows
from toolkit.aggregate import columns
from toolkit.inspect import counting as stats_cache
from toolkit.records.failures import FailureRecords

GLOBS = ["*/*.jsonl.gz", "**/*.jsonl*", "*.jsonl.gz", "*.gz", "*.txt", "*.parquet", "*.zst", "*.json.gz", "*.jsonl"]
SHARDS = ("cc/a.jsonl.gz", "cc/b.jsonl.gz")


@pytest.fixture
def mixed(project: Project) -> Project:
    """A dataset of two shards with a set, mixed into OSCAR."""
    for shard in SHARDS:
        ids = [f"{shard}-{i}" for i in range(4)]
        write_rows(project.documents / shard, [document(id, f"one {id}\ntwo") for id in ids])
        language = {"label": "en", "prob": 0.5}
        values = [attributes(id, {"language": language, "line_language": [language] * 2}) for id in ids]
        write_rows(project.attributes / "said" / shard, values)
    project.config["mix"] = {"attributes": ["said"], "output": {"format": "oscar", "path": str(project.out)}}
    project.ok("mix")
    return project


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's cache; not by the environment, by which all that is compiled would be compiled again."""
    monkeypatch.setattr(stats_cache, "cache_folder", lambda: str(tmp_path / "cache"))
    return tmp_path / "cache"


def matched(root: Path, below: str = ".toolkit/") -> list[str]:
    """Our records that a glob for data matches as Croissant has it: ``*`` over folders."""
    ours = (path for path in tree(root, bookkeeping=True) if below in path)
    return [path for path in ours if any(fnmatch(path, glob) for glob in GLOBS)]


def kept(root: Path) -> set[str]:
    """The folders in which counts are."""
    return {str(path.relative_to(root)).partition("/v4/")[0] for path in root.rglob("*.counts")}


@pytest.mark.parametrize(
    ("target", "place"),
    [
        ("data", "data/.toolkit/stats"),
        ("data/documents", "data/.toolkit/stats"),
        ("data/documents/cc", "data/.toolkit/stats"),
        ("data/documents/cc/a.jsonl.gz", "data/.toolkit/stats"),
        ("out", "out/.toolkit/stats"),
        ("out/en", "out/.toolkit/stats"),
        ("out/en/en.jsonl.gz", "out/.toolkit/stats"),
    ],
)
def test_counts_are_with_the_dataset_or_the_output(
    mixed: Project, target: str, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = tree(mixed.root)
    counted = mixed.run("stats", mixed.root / target, "--by", "source", "--by", "host", "--json").json
    assert counted["tables"][0]["total"]["documents"] == (4 if target.endswith("a.jsonl.gz") else 8)
    assert kept(mixed.root) == {place}
    assert (tree(mixed.root), matched(mixed.root, ".toolkit/stats/")) == (before, [])
    assert matched(mixed.out) == matched(mixed.documents) == []
    monkeypatch.chdir(mixed.root)  # however the path is written
    again = mixed.run("stats", target, "--by", "source", "--by", "host", "--json").json
    assert again["inputs"]["read"] == 0
    assert again["tables"] == counted["tables"]


def test_what_was_counted_once_is_there_for_every_command(mixed: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    first = mixed.ok("stats", "--by", "label", "--by", "host", "--lengths", "--json").json
    for asked in (("--by", "host"), ("--lengths",), ("--by", "host", "--lengths", "--by", "label")):
        found = mixed.ok("stats", *asked, "--json").json
        assert found["inputs"]["read"] == 0
    assert found["tables"] == first["tables"][::-1]
    assert found["lengths"] == first["lengths"]
    mixed.config["executor"] = {"type": "local"}
    monkeypatch.setattr(columns, "_made", None)  # texts are not read again, whatever is grouped by, nor for a report
    by_rule = mixed.ok("stats", "processes=1", "--by", "crawl", "--by", "language.prob > 0.4", "--json").json["tables"]
    assert [table["total"] for table in by_rule] == [first["tables"][0]["total"]] * 2
    mixed.ok("report", "processes=1", "-o", mixed.root / "report.json")


@pytest.mark.parametrize("target", ["", "a/en.jsonl.gz", "b", "documents"])
def test_nothing_is_written_beside_files_of_others(run: Run, tmp_path: Path, cache: Path, target: str) -> None:
    foreign = tmp_path / "foreign"
    for name in ("a/en.jsonl.gz", "b/en.jsonl.gz", "documents/en.jsonl.gz"):
        write_rows(foreign / name, [document("1", name)])
    if not target:
        shutil.rmtree(foreign / "documents")  # with it, it is a dataset
    before = tree(foreign, bookkeeping=True)
    for read in (1 + (not target), 0):
        found = run("stats", foreign / target if target else foreign, "--json").json
        assert found["inputs"]["read"] == read
    assert tree(foreign, bookkeeping=True) == before
    assert kept(cache) == {"stats"}


def test_without_a_home_nothing_is_kept(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_home() -> str:
        raise RuntimeError

    monkeypatch.setattr(stats_cache, "cache_folder", no_home)
    path = write_rows(tmp_path / "en.jsonl", [document("1", "x")])
    ran = run("stats", path)
    assert (ran.code, "what is counted is not kept: expected a home folder" in ran.err) == (0, True)
    assert list(tree(tmp_path, bookkeeping=True)) == ["en.jsonl"]


def test_files_of_one_name_are_told_apart(run: Run, tmp_path: Path, cache: Path) -> None:
    paths = [write_rows(tmp_path / name / "en.jsonl", [document("1", name)] * n) for n, name in enumerate("abc", 1)]
    for _ in range(2):
        (table,) = run("stats", *paths, "--by", "source", "--json").json["tables"]
        assert table["total"]["documents"] == 6


def test_no_record_of_a_mix_is_taken_for_data(mixed: Project) -> None:
    """Neither intermediates nor what failed, nor entries of blocklists that matched nothing."""
    mixed.config["tag"] = {"shape": "line_shape"}
    mixed.ok("tag")
    mixed.config["mix"]["attributes"] = ["said", "shape"]
    path = mixed.attributes / "shape" / SHARDS[1]
    sound = path.read_bytes()
    path.write_bytes(sound[:-9])
    (mixed.root / "list.txt").write_text("nobody\n")
    mixed.config["mix"]["rules"] = [{"drop": "blocklist", "files": str(mixed.root / "list.txt")}]
    assert mixed("mix").code == 1
    records = [path for path in tree(mixed.out, bookkeeping=True) if "/stage/" in path]
    assert len(records) == 2
    assert matched(mixed.out) == []
    assert list(FailureRecords(str(mixed.out / ".toolkit"), "mix").load()) == [SHARDS[1]]
    path.write_bytes(sound)
    mixed.ok("mix")
    assert (mixed.out / ".toolkit" / "unmatched.tsv").exists()
    assert matched(mixed.out) == []


def test_a_description_stays_true_when_somebody_counts(mixed: Project) -> None:
    about: dict[str, Any] = {"name": "x", "description": "y", "license": "https://spdx.org/licenses/CC0-1.0.html"}
    about |= {"url": "https://example.org/", "creator": {"type": "Organization", "name": "z"}, "version": "1.0.0"}
    mixed.config["about"] = about | {"date_published": "2026-01-31", "citation": "@misc{x}"}
    mixed.ok("croissant")
    described = (mixed.out / "croissant.json").read_bytes()
    mixed.run("stats", mixed.out)
    assert mixed.run("validate", mixed.out / "croissant.json").code == 0
    mixed.ok("croissant")
    assert (mixed.out / "croissant.json").read_bytes() == described
