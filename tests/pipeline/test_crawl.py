"""Common Crawl by the name of a crawl, from a server on loopback: the bytes of a local ingest, whatever it does."""

import gzip
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.marks import slow
from tests.pipeline.conftest import Project, inputs_of, strays, tree
from tests.pipeline.test_ingest import INFO, record
from tests.storage.web_server import Behaviour, web
from tests.waiting import PATIENCE
from toolkit.errors import DataError
from toolkit.ingest.input_rows import input_bytes
from toolkit.ingest.input_rows.input_bytes import InputBytes
from toolkit.ingest.web import records as web_records
from toolkit.storage import Stat, reading as storage_reading
from toolkit.storage.stores.http import Http
from toolkit.text import warc_records

CRAWL = "CC-MAIN-2024-10"
WORDS = [f"word{i}" for i in range(500)]


def write_crawl(root: Path, count: int, records: int = 20, format: str = "wet") -> list[Path]:
    """Files of a crawl and the list of them, as they are on Common Crawl's servers."""
    made, chosen = [], random.Random(count)
    for number in range(count):
        name = f"CC-MAIN-20240220211055-20240221001055-{number:05}.warc.{format}.gz"
        path = root / "crawl-data" / CRAWL / "segments" / f"1707947473347.{number % 2}" / format / name
        path.parent.mkdir(parents=True, exist_ok=True)
        texts = ["\n".join(" ".join(chosen.choices(WORDS, k=20)) for _ in range(15)) for _ in range(records)]
        members = [INFO, *(record(number * 10_000 + i, text) for i, text in enumerate(texts, 1))]
        path.write_bytes(b"".join(map(gzip.compress, members)))
        made.append(path)
    lines = "".join(f"{path.relative_to(root)}\n" for path in made)
    (root / "crawl-data" / CRAWL / f"{format}.paths.gz").write_bytes(gzip.compress(lines.encode()))
    return made


@pytest.fixture
def crawl(project: Project) -> list[Path]:
    return write_crawl(project.root / "www", 4)


def entry(base: object, **more: Any) -> dict[str, Any]:
    return {"format": "wet", "crawl": CRAWL, "base_url": str(base), "source": "cc", **more}


@pytest.fixture
def expected(project: Project, crawl: list[Path]) -> dict[str, str]:
    """Documents, as ingested from disk."""
    dataset = project.config["dataset"]
    project.config["dataset"] = str(project.root / "local")
    assert project.ingest(entry(project.root / "www")).code == 0
    project.config["dataset"] = dataset
    return tree(project.root / "local" / "documents")


def test_a_crawl_is_read_by_its_list_from_disk_and_from_the_web(
    project: Project, crawl: list[Path], expected: dict[str, str]
) -> None:
    assert sorted(expected) == [
        f"cc/{CRAWL}/segments/1707947473347.{i % 2}/wet/CC-MAIN-20240220211055-20240221001055-{i:05}.jsonl.gz"
        for i in (0, 2, 1, 3)
    ]
    by_path = Project(
        project.root / "by_path", project.run, project.config | {"dataset": str(project.root / "by_path")}
    )
    by_path.root.mkdir()
    assert (
        by_path.ingest({"format": "wet", "from": f"{project.root}/www/crawl-data/**/*.wet.gz", "source": "cc"}).code
        == 0
    )
    assert sorted(tree(by_path.root / "documents").values()) == sorted(expected.values())
    behaviour = Behaviour()
    with web(project.root / "www", behaviour) as url:
        assert project.ingest(entry(url)).code == 0
        assert tree(project.documents) == expected
        asked = [(each.method, each.path.rpartition("-")[2]) for each in behaviour.log]
        files = [f"{i:05}.warc.wet.gz" for i in (0, 2, 1, 3)]
        assert asked[1:] == [(method, name) for name in files for method in ("HEAD", "GET")], "each is read once"
        assert all(each.agent.startswith("tagmix/") for each in behaviour.log)
        behaviour.log.clear()
        assert project.ok("ingest", "--json").json["skipped"] == 4
        assert [each.method for each in behaviour.log] == ["GET", "HEAD", "HEAD", "HEAD", "HEAD"]
    assert strays(project.root) == []
    assert not (project.data / ".toolkit" / "downloads").exists()


def test_inputs_whose_sizes_nobody_lists_are_not_packed(
    project: Project, crawl: list[Path], expected: dict[str, str]
) -> None:
    assert project.ingest(entry(project.root / "www", pack="1 GB")).code == 0
    assert tree(project.documents) == expected


@pytest.mark.parametrize(
    ("files", "numbers"),
    [(2, [2]), ("1-2", [1, 2]), ("0-3", [0, 1, 2, 3]), ([0, "2-3", 2], [0, 2, 3]), (None, [0, 1, 2, 3]), ("3", [3])],
)
def test_files_are_chosen_by_number(project: Project, crawl: list[Path], files: Any, numbers: list[int]) -> None:
    project.config["ingest"] = [entry(project.root / "www", files=files)]
    plan = project.ok("ingest", "--dry-run", "--json").json["plan"]["ingest"]
    assert sorted(plan) == sorted(str(crawl[number]) for number in numbers)
    assert not project.data.exists()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"files": "0-4"}, "ingest[0].files: expected files among 0-3, which are all of the crawl's list; got 4"),
        ({"files": [1, 4]}, "ingest[0].files: expected files among 0-3, which are all of the crawl's list; got 4"),
        ({"crawl": "CC-MAIN-2031-01"}, "expected a crawl with a list of its files, got nothing at {base}crawl-data/"),
        ({"format": "jsonl"}, "/jsonl.paths.gz; is that the crawl's name, and does it have files of this format?"),
    ],
)  # fmt: skip
def test_what_is_no_crawl_is_refused_by_its_line(
    project: Project, crawl: list[Path], change: dict[str, Any], message: str
) -> None:
    with web(project.root / "www", Behaviour()) as url:
        made = {key: value for key, value in (entry(url) | change).items() if value is not None}
        project.config["ingest"] = [made]
        project("ingest").fails(2, message.format(base=url), f"{project.yaml}:1: ingest[0]")
    assert not project.data.exists()


def test_blank_lines_of_a_list_are_no_files(project: Project, crawl: list[Path]) -> None:
    path = project.root / "www" / "crawl-data" / CRAWL / "wet.paths.gz"
    lines = gzip.decompress(path.read_bytes()).replace(b"\n", b"\r\n\r\n")
    path.write_bytes(gzip.compress(b"\n" + lines + b" \n"))
    project.config["ingest"] = [entry(project.root / "www")]
    assert f"{len(crawl)} inputs: {len(crawl)} done" in project.ok("ingest").out


@pytest.mark.parametrize("max_disk", [None, "1 MB"])
@pytest.mark.parametrize("seed", [0, *slow(*range(1, 8))])
def test_a_bad_connection_changes_nothing(
    seed: int, max_disk: str | None, project: Project, expected: dict[str, str], naps: list[float]
) -> None:
    chances = {"drop": 0.3, "reset": 0.1, "403": 0.05, "429": 0.05, "500": 0.05, "503": 0.05}
    behaviour = Behaviour(chances, seed=seed, length="chunked" if seed % 4 == 3 else "said")
    behaviour.ranges = "ignored" if seed % 4 == 2 else "right"
    with web(project.root / "www", behaviour) as url:
        project.ingest(entry(url, **({"max_disk": max_disk} if max_disk else {}))).succeeds()
    assert tree(project.documents) == expected
    assert naps
    assert list((project.data / ".toolkit").rglob("*.part")) == []


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"lying": -1000}, r"expected whole compressed data, got the end of the file at byte"),
        ({"ranges": "wrong", "chances": {"drop": 1.0}}, "expected the bytes from"),
        ({"chances": {"503": 1.0}}, "expected the file, got the answer 503 Service Unavailable"),
        *slow(
            ({"lying": 1000}, "bytes, as the server said, got none after byte"),
            ({"chances": {"404": 1.0}}, "expected an input file, got no such file; put it back and run again"),
        ),
    ],
)
def test_a_server_that_lies_is_an_error_that_names_the_file(
    how: dict[str, Any], message: str, project: Project, crawl: list[Path], naps: list[float]
) -> None:
    behaviour = Behaviour(only="00002.warc.wet.gz")
    with web(project.root / "www", behaviour) as url:
        for name, value in how.items():
            setattr(behaviour, name, value)
        ran = project.ingest(entry(url, max_disk="1 MB"))
    assert ran.code == 1
    assert "00002.warc.wet.gz: " in ran.err
    assert message in ran.err
    assert len(list(project.documents.rglob("*.gz"))) == 3
    assert strays(project.documents) == []


@pytest.mark.parametrize("status", ["401", "520"])
def test_a_file_that_is_refused_fails_by_name_and_others_are_read_with_their_queries(
    project: Project, crawl: list[Path], naps: list[float], status: str
) -> None:
    bad, good = crawl[:2]
    with web(bad.parent, Behaviour(chances={status: 1.0})) as refusing, web(good.parent, Behaviour()) as url:
        query = "?X-Amz-Signature=a/b*c"
        paths = [f"{refusing}{bad.name}", f"{url}{good.name}{query}"]
        project.config["ingest"] = [{"format": "wet", "from": paths, "source": "cc"}]
        ran = project("ingest")
    assert ran.code == 1
    assert f"{bad.name}: expected the file, got the answer {status}" in ran.err
    assert [path.name for path in project.documents.rglob("*.gz")] == [good.name.replace(".warc.wet", ".jsonl")]


def test_a_server_without_lengths_dates_or_head_is_read(project: Project, expected: dict[str, str]) -> None:
    behaviour = Behaviour(length="chunked", etag=False, head=False)
    with web(project.root / "www", behaviour) as url:
        assert project.ingest(entry(url, max_disk="1 MB")).code == 0
    assert tree(project.documents) == expected


def test_a_file_that_changes_while_it_is_read_is_an_error(
    project: Project, crawl: list[Path], naps: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    behaviour = Behaviour()

    def fault(path: str, size: int) -> tuple[str, int]:
        if path.endswith("00001.warc.wet.gz") and behaviour.bodies("00001.warc.wet.gz"):
            return "", size
        if path.endswith("00001.warc.wet.gz") and behaviour.alive:
            data = crawl[1].read_bytes()
            crawl[1].write_bytes(data + gzip.compress(b""))  # behind what is being sent
            return "drop", size // 2
        return "", size

    monkeypatch.setattr(behaviour, "fault", fault)
    with web(project.root / "www", behaviour) as url:
        project.ingest(entry(url)).fails(1, "00001.warc.wet.gz: expected a file that does not change while it is read")
        assert project("ingest").code == 0


def test_an_input_that_has_changed_is_read_once_and_made_anew(project: Project, crawl: list[Path]) -> None:
    behaviour = Behaviour()
    with web(project.root / "www", behaviour) as url:
        assert project.ingest(entry(url)).code == 0
        before = tree(project.documents)
        data = crawl[1].read_bytes()
        crawl[1].write_bytes(gzip.compress(gzip.decompress(data).replace(b"word1", b"wort1")).ljust(len(data), b"\0"))
        assert crawl[1].stat().st_size == len(data)
        behaviour.log.clear()
        assert project.ok("ingest", "--json").json["skipped"] == 3
        assert [each.path.rpartition("-")[2] for each in behaviour.bodies("wet.gz")] == ["00001.warc.wet.gz"]
    assert len(dict(tree(project.documents).items() - before.items())) == 1


def test_a_file_of_another_version_than_the_one_asked_for_first_is_an_error(
    project: Project, crawl: list[Path]
) -> None:
    with web(project.root / "www", Behaviour()) as url:
        path = url + str(crawl[0].relative_to(project.root / "www"))
        with (
            InputBytes(path, Stat(crawl[0].stat().st_size, 'etag "old"')).open() as stream,
            pytest.raises(DataError, match="got one that has changed"),
        ):
            stream.read()


# --- connections, overlap, disk ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("processes", "connections", "most"), [(3, 1, 1), (3, 2, 2), (2, 8, 2)])
@pytest.mark.slow
def test_no_more_files_are_read_at_a_time_than_connections(
    processes: int, connections: int, most: int, project: Project, expected: dict[str, str]
) -> None:
    behaviour = Behaviour(meeting=most)
    project.config |= {"executor": {"type": "local"}, "processes": processes}
    with web(project.root / "www", behaviour) as url:
        assert project.ingest(entry(url, connections=connections)).code == 0
    assert behaviour.most == most
    assert tree(project.documents) == expected


@pytest.mark.slow
def test_reading_and_processing_overlap(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second half of a file is sent when a record of the first has come, which is done when all has been sent."""
    (path,) = write_crawl(project.root / "www", 1, records=200)
    behaviour = Behaviour(only=path.name, half=threading.Event())
    scan, found = warc_records.scan, []

    def meeting(*given: Any) -> Any:
        assert behaviour.half
        behaviour.half.set()
        found.append(behaviour.sent.wait(PATIENCE))
        return scan(*given)

    monkeypatch.setattr(web_records, "scan", meeting)
    monkeypatch.setattr(web_records, "BATCH", 1)
    monkeypatch.setattr(web_records, "PIECE", 1 << 12)  # less than a half
    monkeypatch.setattr(storage_reading, "READ", 1 << 12)
    monkeypatch.setattr(input_bytes, "BLOCK", 1 << 12)
    with web(project.root / "www", behaviour) as url:
        assert project.ingest(entry(url)).code == 0
    assert len(found) > 1
    assert all(found)


def run_and_kill(project: Project, until: Any) -> None:
    """Runs ingest in a process of its own, and kills it at a moment, or lets it end before."""
    process = subprocess.Popen(
        [sys.executable, "-m", "toolkit.cli", "ingest", "-c", project.yaml, "--quiet"],
        start_new_session=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    end = time.monotonic() + PATIENCE
    while process.poll() is None and not until():
        assert time.monotonic() < end
        time.sleep(0.005)
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    said = process.communicate()[0]
    assert process.returncode in (0, -signal.SIGKILL), said


@pytest.fixture
def one(project: Project) -> Iterator[tuple[Path, Behaviour]]:
    """A crawl with a large file, served slowly with `max_disk:`; and what it becomes when ingested from disk."""
    (path,) = write_crawl(project.root / "www", 1, records=600)
    behaviour = Behaviour(rate=path.stat().st_size // 2)
    project.config["processes"] = 1
    with web(project.root / "www", behaviour) as url:
        project.config["ingest"] = [entry(url, max_disk="10 MB")]
        yield path, behaviour


def parts(project: Project) -> list[Path]:
    return sorted((project.data / ".toolkit" / "downloads").glob("*.part"))


@pytest.mark.slow
def test_a_killed_run_goes_on_behind_what_it_has_kept(project: Project, one: tuple[Path, Behaviour]) -> None:
    path, behaviour = one
    size = path.stat().st_size
    run_and_kill(project, lambda: [p for p in parts(project) if p.stat().st_size > size // 4])
    (part,) = parts(project)
    kept = part.stat().st_size
    assert part.read_bytes() == path.read_bytes()[:kept]
    behaviour.rate, behaviour.log[:] = 0, []
    project.ok("ingest")
    (request,) = behaviour.bodies(path.name)
    assert (request.range, request.sent) == (f"bytes={kept}-", size - kept)
    assert parts(project) == []
    again = Project(project.root / "again", project.run, project.config | {"dataset": str(project.root / "again")})
    again.root.mkdir()
    assert again.ingest(entry(project.root / "www")).code == 0
    assert tree(project.documents) == tree(again.root / "documents")


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_runs_that_are_killed_at_random_end_with_the_same_bytes(
    seed: int, project: Project, one: tuple[Path, Behaviour]
) -> None:
    path, behaviour = one
    behaviour.chances, behaviour.seed, behaviour.only = {"drop": 0.5, "503": 0.2}, seed, path.name
    behaviour.__post_init__()
    chosen = random.Random(seed)
    for _ in range(4):
        moment = time.monotonic() + chosen.uniform(0.3, 1.2)
        run_and_kill(project, lambda moment=moment: time.monotonic() > moment)
    project.ok("ingest")
    found = tree(project.documents)
    project.config["dataset"] = str(project.root / "local")
    assert project.ingest(entry(project.root / "www")).code == 0
    assert tree(project.root / "local" / "documents") == found
    assert len(found) == 1
    assert strays(project.data) == []


@pytest.mark.slow
@pytest.mark.parametrize("change", ["file", "part", "state", "none wanted"])
def test_what_is_kept_of_another_version_or_file_is_not_used(
    change: str, project: Project, one: tuple[Path, Behaviour]
) -> None:
    path, behaviour = one
    run_and_kill(project, lambda: [p for p in parts(project) if p.stat().st_size > 20_000])
    behaviour.rate, behaviour.log[:] = 0, []
    (part,) = parts(project)
    data = path.read_bytes()
    if change == "file":
        path.write_bytes(b"".join(map(gzip.compress, (INFO, record(1), record(2)))))
    if change == "part":
        part.write_bytes(data[:10_000] + bytes(200) + data[10_200:20_000])
    if change == "state":
        part.with_suffix(".json").write_bytes(b"{}")
    if change == "none wanted":
        del project.config["ingest"][0]["max_disk"]
    if change == "part":  # as after a power failure: noticed, and read anew by the next run
        assert project("ingest").code == 1
        assert parts(project) == []
        behaviour.log.clear()
    project.ok("ingest")
    assert [each.range for each in behaviour.bodies(path.name)] == [None]
    assert parts(project) == []


@pytest.mark.slow
def test_downloads_never_take_more_disk_than_they_may(
    project: Project, expected: dict[str, str], crawl: list[Path]
) -> None:
    size = max(path.stat().st_size for path in crawl)
    behaviour = Behaviour(rate=size, meeting=2)
    project.config |= {"executor": {"type": "local"}, "processes": 4}
    most = 0
    with web(project.root / "www", behaviour) as url:
        limit = 2 * size + 100
        project.config["ingest"] = [entry(url, max_disk=limit)]
        process = subprocess.Popen([sys.executable, "-m", "toolkit.cli", "ingest", "-c", project.yaml, "--quiet"])
        while process.poll() is None:
            sizes = []
            for path in parts(project):
                with suppress(FileNotFoundError):
                    sizes.append(path.stat().st_size)
            most = max(most, sum(sizes))
            time.sleep(0.005)
        assert process.returncode == 0
    assert behaviour.most >= 2
    assert most <= limit
    assert tree(project.documents) == expected
    assert parts(project) == []


@pytest.mark.slow
def test_real_files_give_the_same_from_the_web_as_from_disk(project: Project, shared: Path, naps: list[float]) -> None:
    names = ["hplt-sample200.warc.wet.gz", "whirlwind.warc.wet.gz"]
    root = project.root / "www"
    folder = root / "crawl-data" / CRAWL
    folder.mkdir(parents=True)
    for name in names:
        (folder / name).write_bytes((shared / "wet" / name).read_bytes())
    lines = "".join(f"crawl-data/{CRAWL}/{name}\n" for name in names)
    (folder / "wet.paths.gz").write_bytes(gzip.compress(lines.encode()))
    with web(root, Behaviour({"drop": 0.5, "503": 0.1}, seed=1)) as url:
        assert project.ingest(entry(url)).code == 0
    found = tree(project.documents)
    project.config["dataset"] = str(project.root / "local")
    assert project.ingest(entry(root)).code == 0
    assert tree(project.root / "local" / "documents") == found
    assert len(found) == 2
    found_record = next(record for key, record in inputs_of(project).items() if "hplt" in key)
    assert found_record.size == (shared / "wet" / names[0]).stat().st_size


@pytest.mark.slow
def test_a_server_is_asked_for_several_of_the_named_files_at_a_time(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = [path.relative_to(project.root / "www") for path in write_crawl(project.root / "www", 6)]
    both, stat = threading.Barrier(2), Http.stat

    def meets(self: Http, path: str) -> Stat | None:
        with suppress(threading.BrokenBarrierError):
            both.wait(PATIENCE)
        both.abort()  # two have met; the others need not
        return stat(self, path)

    monkeypatch.setattr(Http, "stat", meets)
    begun = time.monotonic()
    with web(project.root / "www", Behaviour()) as url:
        ran = project.ingest({"format": "wet", "from": [f"{url}/{name}" for name in files], "source": "cc"})
    assert ran.code == 0
    assert len(tree(project.documents)) == 6
    assert time.monotonic() - begun < PATIENCE, "one after the other: nobody has met"
