"""Whoever may only read can look: no command that shows something needs permission to write where it reads."""

import json
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Run
from tests.pipeline.conftest import Project
from tests.storage.conftest import use
from tests.storage.servers import Faults, Seaweed, proxy
from tests.storage.test_outcomes import lay_out, tree
from toolkit.errors import Unreadable
from toolkit.storage import Stat, paths, store_of
from toolkit.storage.outputs import write_file
from toolkit.storage.paths import drop_listing, exists, join, list_files, list_stats, listing_cache, read_once, stat
from toolkit.testing import MemoryStore

WRITES = "^(PUT|POST|DELETE) "


@pytest.mark.s3
@pytest.mark.slow
@pytest.mark.parametrize("lost", ["rows", ""])
def test_commands_that_only_show_write_nothing_where_they_may_not(
    lost: str, bucket: str, seaweed: Seaweed, tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, data = lay_out(bucket, tmp_path, shards=2), join(bucket, "data")
    for stage in ("ingest", "tag", "mix"):
        assert run(stage, "-c", path, "--quiet").code == 0
    folder = join(data, ".toolkit", lost)  # indexes, or all records: then the sets are those of others
    for name in list_files(folder, hidden=True):
        store_of(data).remove(join(folder, name))
    before = tree(bucket)
    of_sets = ("shape-0.line_shape.chars", "noise-0.noise.chars")
    commands: list[tuple[object, ...]] = [
        ("validate", data), ("stats", data), ("head", "-c", path), ("sql", "select count(*) from documents", data),
        ("compare", "-c", path, *of_sets), ("report", data, "-o", tmp_path / "r.html"), ("card", data, "--dry-run"),
        ("run" if lost else "ingest", "-c", path, "--dry-run"),
    ]  # fmt: skip
    if lost:
        commands += [("mix", "-c", path, "--dry-run"), ("validate", "-c", path)]
    with proxy(lambda: seaweed.port, Faults({"403": 1.0}, only=WRITES)) as url:
        use(monkeypatch, url)
        for command in commands:
            run(*command, "--quiet").succeeds()
        use(monkeypatch, seaweed.url)
        shard = join(data, "documents", next(iter(list_files(join(data, "documents")))))
        write_file(shard.replace("/0.", "/copy."), store_of(data).read(shard))
        use(monkeypatch, url)
        ran = run("validate", data, "--quiet")
        assert "expected each (source, id) once" in ran.out, "what needs all indexes is looked at, too"
    use(monkeypatch, seaweed.url)
    store_of(data).remove(shard.replace("/0.", "/copy."))
    assert tree(bucket) == before


# Deciding from many files at once: a store whose looks are requests is asked for listings instead.


class Asked(MemoryStore):
    """A store that counts looks and listings, and may refuse these."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: Counter[str] = Counter()
        self.refuses = False

    def stat(self, path: str) -> Stat | None:
        self.asked["stat"] += 1
        return super().stat(path)

    def listing(self, root: str) -> Iterator[tuple[str, Stat | None]]:
        self.asked["listing"] += 1
        if self.refuses:
            raise Unreadable("expected a listing", path=root)
        folder = root.rstrip("/")
        return ((name, MemoryStore.stat(self, f"{folder}/{name}")) for name in self.files(folder))


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Asked:
    made = Asked()
    for name in ("a/1", "a/2", "a/.toolkit/3", "ab/4", "b/5"):
        made.put(f"memory://x/{name}", name.encode())
    monkeypatch.setattr(paths, "store_of", lambda path: made)
    return made


def test_files_below_the_folders_cost_a_listing_each(store: Asked) -> None:
    found = {name: MemoryStore.stat(store, f"memory://x/{name}") for name in ("a/1", "a/2", "a/.toolkit/3", "b/5")}
    with listing_cache("memory://x/a", "memory://x/b/", "memory://x/none"):
        assert {name: stat(f"memory://x/{name}") for name in found} == found
        assert not exists("memory://x/a/none")
        assert store.asked == {"listing": 2}  # what is not asked for is not listed
        assert exists("memory://x/ab/4")
        assert store.asked == {"listing": 2, "stat": 1}
    assert stat("memory://x/a/1") == found["a/1"]
    assert store.asked == {"listing": 2, "stat": 2}


def test_listings_of_them_are_answered_by_these(store: Asked) -> None:
    with listing_cache("memory://x"):
        assert list(list_files("memory://x/a")) == ["1", "2"]
        assert list_stats("memory://x/a", str) == {
            name: MemoryStore.stat(store, f"memory://x/a/{name}") for name in ("1", "2")
        }
        assert list(list_files("memory://x/")) == ["a/1", "a/2", "ab/4", "b/5"]
    assert store.asked == {"listing": 1}


def test_what_is_written_before_the_next_block_is_seen_in_it(store: Asked) -> None:
    for content in (b"1", b"other"):
        store.put("memory://x/a/1", content)
        with listing_cache("memory://x/a"), listing_cache("memory://x/b"):
            now = stat("memory://x/a/1")
            assert now
            assert now.size == len(content)


def test_what_was_gone_when_it_was_read_is_listed_anew(store: Asked) -> None:
    with listing_cache("memory://x/a", "memory://x/b"):
        assert [list(list_files(f"memory://x/{folder}")) for folder in "ab"] == [["1", "2"], ["5"]]
        for name in ("a/1", "b/5"):
            store.remove(f"memory://x/{name}")
        drop_listing("memory://x/a/below")
        assert [list(list_files(f"memory://x/{folder}")) for folder in "ab"] == [["2"], ["5"]]
    drop_listing("memory://x/a")
    assert store.asked["listing"] == 3


def test_blocks_of_several_threads_end_in_any_order(store: Asked) -> None:
    """As those of two pages of `toolkit view` that are loaded at once."""
    first, second = listing_cache("memory://x/a"), listing_cache("memory://x/a", "memory://x/b")
    first.__enter__()
    second.__enter__()
    assert exists("memory://x/a/1")
    assert read_once("x", str) == "x"
    first.__exit__(None, None, None)
    assert exists("memory://x/b/5")
    second.__exit__(None, None, None)
    store.remove("memory://x/a/1")
    assert not exists("memory://x/a/1")
    assert read_once("x", lambda path: f"{path} anew") == "x anew"


def test_a_listing_that_fails_fails_where_it_is_needed(store: Asked) -> None:
    store.refuses = True
    with listing_cache("memory://x/a"):
        assert exists("memory://x/b/5")
        with pytest.raises(Unreadable):
            exists("memory://x/a/1")
        store.refuses = False
        assert exists("memory://x/a/1")
    assert paths._blocks().listings == {}


def test_a_file_is_read_once() -> None:
    read: list[str] = []

    def reading(path: str) -> int:
        read.append(path)
        return len(read)

    assert [read_once("x", reading) for _ in range(2)] == [1, 2]
    with listing_cache("somewhere"):
        assert [read_once("x", reading) for _ in range(2)] == [3, 3]
        with listing_cache("elsewhere"):
            assert read_once("x", reading) == 3
    assert read_once("x", reading) == 4


# What a command with nothing to do asks of a store: as much of many shards as of few, but for pages of listings.

COMMANDS = ("status", "ingest", "tag", "mix", "run")


def lay_out_nothing_to_do(root: Path, run: Run, shards: int, **entry: Any) -> Project:
    """A dataset of so many shards, in a store that notes what it is asked."""
    far = f"far://{root}"
    (root / "in").mkdir(parents=True)
    for number in range(shards):
        (root / "in" / f"{number}.jsonl").write_text(json.dumps({"id": f"{number}", "text": f"text {number}"}) + "\n")
    project = Project(root, run)
    project.config = {
        "dataset": f"{far}/data",
        "storage": {"stores": {"far": "tests.benchmarks.far:Far"}},
        "ingest": [{"format": "jsonl", "from": f"{far}/in/*.jsonl", "source": "s", **entry}],
        "tag": {"shape-0": "line_shape"},
        "mix": {"attributes": ["shape-0"], "output": {"format": "dolma", "path": f"{far}/out"}},
    }
    project.ok("run")
    return project


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FAR_LOG", str(tmp_path / "log"))
    return tmp_path / "log"


def asked(log: Path, project: Project, command: str) -> Counter[str]:
    """The requests of a command that must succeed, by their kind."""
    log.unlink(missing_ok=True)
    project.ok(command)
    return Counter(line.partition(" ")[0] for line in log.read_text().splitlines())


@pytest.mark.slow
def test_many_shards_are_asked_for_as_few_are(tmp_path: Path, log: Path, run: Run) -> None:
    few, many = (lay_out_nothing_to_do(tmp_path / str(shards), run, shards) for shards in (5, 12))
    for command in COMMANDS:
        assert asked(log, many, command) == asked(log, few, command), command
        assert "/.toolkit/selected" not in log.read_text(), "of entries that select nothing by an index"


@pytest.mark.slow
def test_one_input_that_has_changed_is_noticed_from_the_listing(tmp_path: Path, log: Path, run: Run) -> None:
    project = lay_out_nothing_to_do(tmp_path / "x", run, 6)
    changed, touched, lost = (tmp_path / "x" / "in" / f"{number}.jsonl" for number in (1, 2, 3))
    changed.write_text(json.dumps({"id": "1", "text": "text 9"}) + "\n")
    later = touched.stat().st_mtime_ns + 10**9
    os.utime(touched, ns=(later, later))
    (tmp_path / "x" / "data" / "documents" / "s" / f"{lost.stem}.jsonl.gz").unlink()
    ran = project("status", "--json")
    left = {stage["stage"]: [item["key"] for item in stage["items"]] for stage in ran.json["stages"]}
    assert left["ingest"] == ["s/1.jsonl", "s/3.jsonl"]
    ran = project.ok("run", "--json")
    assert (ran.json["ingest"]["skipped"], ran.json["ingest"]["done"]) == (4, 6)
    assert asked(log, project, "ingest") == asked(log, project, "ingest")
    assert project.ok("status").out.rstrip().endswith("all is done")
