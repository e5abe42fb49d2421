"""``toolkit fetch``: parts of some languages of a published output, checked, whatever happens meanwhile."""

import gzip
import hashlib
import http.server
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec
import pytest

from tests.conftest import Run
from tests.pipeline.conftest import Project, document, write_rows
from tests.serving import Server, serving
from tests.storage.conftest import bucket, seaweed
from tests.storage.web_server import Behaviour, web
from tests.waiting import PATIENCE, group_ended, wait_until
from toolkit.commands.fetch import Options
from toolkit.session import current
from toolkit.stages.dispatch import open_context
from toolkit.storage.outputs import write_file
from toolkit.storage.paths import join, list_files
from toolkit.storage_options import Duration, StorageOptions

__all__ = ["bucket", "seaweed"]

PARTS = {"fr": 12, "de": 1}


def write_release(root: str, parts: dict[str, int] | None = None, word: str = "mot") -> dict[str, bytes]:
    """Write a release as OSCAR has it, without a manifest; return its files."""
    files: dict[str, bytes] = {}
    for label, count in (parts or PARTS).items():
        names = [f"{label}_part_{n}.jsonl.gz" for n in range(1, count + 1)] if count > 1 else [f"{label}.jsonl.gz"]
        for number, name in enumerate(names):
            row = {"content": f"{word} {number} " * 9, "warc_headers": {}, "metadata": {
                "identification": {"label": label, "prob": 0.9}, "annotation": None, "sentence_identifications": [None],
            }}  # fmt: skip
            lines = b"".join(json.dumps(row).encode() + b"\n" for _ in range(number + 1))
            files[f"{label}/{name}"] = gzip.compress(lines, mtime=0)
        sums = sorted((name, hashlib.sha256(files[f"{label}/{name}"]).hexdigest()) for name in names)
        files[f"{label}/{label}_sha256.txt"] = "".join(f"{digest}  {name}\n" for name, digest in sums).encode()
    for path, data in files.items():
        write_file(join(root, path), data)
    return files


def there(folder: Path) -> list[str]:
    return list(list_files(str(folder), hidden=True))


def sha256sum(folder: Path) -> int:
    (checksums,) = folder.glob("*_sha256.txt")
    return subprocess.run(["sha256sum", "-c", "--quiet", checksums.name], cwd=folder, check=False).returncode


def test_whole_parts_of_a_language_in_the_order_of_their_numbers(tmp_path: Path, run: Run) -> None:
    files = write_release(str(tmp_path / "release"))
    sizes = [len(files[f"fr/fr_part_{n}.jsonl.gz"]) for n in range(1, 13)]
    most = sum(sizes[:11])
    fetch = ("fetch", tmp_path / "release", "--label", "fr", "--to", tmp_path / "got")
    dry = run(*fetch, "--max", most, "--dry-run", "--json")
    assert (dry.code, dry.json["bytes"], (tmp_path / "got").exists()) == (0, most, False)
    ran = run(*fetch, "--max", most, "--json")
    wanted = [f"fr/fr_part_{n}.jsonl.gz" for n in range(1, 12)]
    assert (ran.code, ran.json["labels"]) == (0, dry.json["labels"]) == (0, {"fr": wanted})
    assert there(tmp_path / "got") == sorted([*wanted, "fr/fr_sha256.txt"])
    assert sha256sum(tmp_path / "got" / "fr") == 0
    run("validate", tmp_path / "got").succeeds()
    one = run(*fetch, "--max", sizes[0], "--json")  # what is there already stays, and stays listed
    assert (one.code, set(one.json["files"].values())) == (0, {"there"})
    rest = run(*fetch[:4], "--label", "de", *fetch[2:], "--json")
    assert [name for name, what in rest.json["files"].items() if what == "fetched"] == [
        "fr/fr_part_12.jsonl.gz",
        "de/de.jsonl.gz",
    ]
    assert {name: (tmp_path / "got" / name).read_bytes() for name in there(tmp_path / "got")} == files


def test_room_for_no_part_says_how_large_the_smallest_is(tmp_path: Path, run: Run) -> None:
    files = write_release(str(tmp_path / "release"))
    size = len(files["fr/fr_part_1.jsonl.gz"])
    ran = run("fetch", tmp_path / "release", "--label", "fr", "--max", size - 1, "--to", tmp_path / "got")
    assert (ran.code, (tmp_path / "got").exists()) == (2, False)
    assert f"the smallest part of fr is fr/fr_part_1.jsonl.gz: {size} bytes" in ran.err


@pytest.mark.parametrize("damage", ["other", "longer"])
def test_what_is_damaged_here_is_named_and_fetched_again(tmp_path: Path, run: Run, damage: str) -> None:
    files = write_release(str(tmp_path / "release"))
    fetch = ("fetch", tmp_path / "release", "--label", "fr", "--to", tmp_path / "got")
    assert run(*fetch).code == 0
    path = tmp_path / "got" / "fr" / "fr_part_3.jsonl.gz"
    whole = path.read_bytes()
    path.write_bytes(whole[:-1] + b"x" if damage == "other" else whole + b"x")
    run(*fetch).succeeds().shows(f"{path}: expected the checksum")
    assert path.read_bytes() == files["fr/fr_part_3.jsonl.gz"]


def test_what_is_damaged_there_is_named_and_not_kept(tmp_path: Path, run: Run) -> None:
    files = write_release(str(tmp_path / "release"))
    path = tmp_path / "release" / "fr" / "fr_part_3.jsonl.gz"
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    fetch = ("fetch", tmp_path / "release", "--label", "fr", "--to", tmp_path / "got")
    run(*fetch).fails(1, f"{path}: expected the checksum")
    assert "fr/fr_part_3.jsonl.gz" not in there(tmp_path / "got")
    assert sha256sum(tmp_path / "got" / "fr") == 0
    path.write_bytes(files["fr/fr_part_3.jsonl.gz"])
    again = run(*fetch, "--json")
    assert [name for name, what in again.json["files"].items() if what != "there"] == ["fr/fr_part_3.jsonl.gz"]
    assert run("validate", tmp_path / "got").code == 0


def test_another_version_of_a_release_replaces_what_it_has_and_mixes_with_nothing(tmp_path: Path, run: Run) -> None:
    release = tmp_path / "release"
    write_release(str(release))
    fetch = ("fetch", release, "--label", "fr", "--to", tmp_path / "got")
    assert run(*fetch).code == 0
    files = write_release(str(release), {"fr": 11}, word="other")
    run(*fetch).fails(2, f"{tmp_path}/got/fr/fr_part_12.jsonl.gz: expected only files of the present version")
    (tmp_path / "got" / "fr" / "fr_part_12.jsonl.gz").unlink()
    assert run(*fetch).code == 0
    assert {name: (tmp_path / "got" / name).read_bytes() for name in there(tmp_path / "got")} == files


def test_files_of_others_are_not_replaced(tmp_path: Path, run: Run) -> None:
    write_release(str(tmp_path / "release"))
    mine = tmp_path / "got" / "fr" / "fr_part_1.jsonl.gz"
    mine.parent.mkdir(parents=True)
    mine.write_bytes(b"mine")
    run("fetch", tmp_path / "release", "--label", "fr", "--to", tmp_path / "got").fails(1, f"{mine}: expected no file")
    assert mine.read_bytes() == b"mine"


@pytest.mark.parametrize("name", ["../../fr_part_1.jsonl.gz", "/tmp/fr_part_1.jsonl.gz", "../.toolkit/manifest.json"])
def test_a_checksum_file_leads_nowhere_else(tmp_path: Path, run: Run, name: str) -> None:
    write_release(str(tmp_path / "release"))
    listing = tmp_path / "release" / "fr" / "fr_sha256.txt"
    listing.write_text(f"{'0' * 64}  {name}\n")
    run("fetch", tmp_path / "release", "--label", "fr", "--to", tmp_path / "a" / "b").fails(1, f"{listing}:1: expected")
    assert not (tmp_path / "a").exists()


def test_a_manifest_plants_nothing_either(tmp_path: Path, run: Run) -> None:
    write_rows(tmp_path / "data" / "documents" / "a.jsonl.gz", [document("1", "text", metadata={"language": "fr"})])
    output = {"path": str(tmp_path / "out"), "format": "dolma", "by": "metadata.language", "layout": "dataset"}
    mix = {"rules": [{"drop": "metadata.language is None", "name": "unidentified"}], "output": output}
    Project(tmp_path, run, {"dataset": str(tmp_path / "data"), "mix": mix}).ok("mix")
    path = tmp_path / "out" / ".toolkit" / "manifest.json"
    text = path.read_text()
    fetch = ("fetch", tmp_path / "out", "--label", "fr", "--to", tmp_path / "got")
    (listing,) = json.loads(text)["files"]
    for new in ("README.md", ".git/hooks_sha256.txt"):
        path.write_text(text.replace(f'"{listing}"', f'"{new}"'))
        assert (run(*fetch).code, (tmp_path / "got").exists()) == (1, False)
    path.write_text(text)
    assert run(*fetch).code == 0


ENDLESS = 32_000_000
"""Bytes after which the server of a test gives up, long after the client should have."""


@contextmanager
def endless(tmp_path: Path, what: str, announced: int | None) -> Iterator[tuple[str, list[int]]]:
    """A release on the web of which a file does not end. Give its address, and the bytes sent of each answer."""
    files = write_release(str(tmp_path / "release"), {"fr": 1})
    sent: list[int] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_HEAD(self) -> None:
            self._begin()

        def do_GET(self) -> None:
            data = self._begin()
            if not self.path.endswith(what):
                self.wfile.write(data)
                return
            sent.append(0)
            with suppress(OSError):
                while sent[-1] < ENDLESS:
                    self.wfile.write(b"8000\r\n" + b"0" * 0x8000 + b"\r\n")
                    sent[-1] += 0x8000
            self.close_connection = True

        def _begin(self) -> bytes:
            data = files.get(self.path[1:], b"")
            self.send_response(200 if data or self.path.endswith(what) else 404)
            if self.path.endswith(what) and self.command == "GET":
                self.send_header("Transfer-Encoding", "chunked")
            else:
                size = announced if self.path.endswith(what) else len(data)
                if size is not None:
                    self.send_header("Content-Length", str(size))
            self.end_headers()
            return data

        def log_message(self, *_: object) -> None: ...

    with serving(Server(Handler)) as server:
        yield server.url, sent


def test_what_was_announced_bounds_what_is_taken(tmp_path: Path, run: Run) -> None:
    for announced, more, limit in ((44, (), 44), (None, ("--max-file", "1 MB"), 1_000_000)):
        with endless(tmp_path, "fr.jsonl.gz", announced) as (url, sent):
            ran = run("fetch", url, "--label", "fr", "--to", tmp_path / "got", *more)
        assert ran.code == 1
        assert f"/fr/fr.jsonl.gz: expected at most {limit:,} bytes" in ran.err
        assert "--max-file" in ran.err
        assert len(sent) == 1  # and not again
        assert sent[0] < ENDLESS
        assert not list((tmp_path / "got").rglob("*.gz"))
    files = write_release(str(tmp_path / "release"), {"fr": 1})
    size = len(files["fr/fr.jsonl.gz"])
    run("fetch", tmp_path / "release", "--label", "fr", "--to", tmp_path / "got", "--max-file", size - 1).fails(
        2, f"--max-file: expected files of at most {size - 1:,} bytes"
    )


@pytest.mark.parametrize("what", ["fr_sha256.txt", "manifest.json"])
def test_a_checksum_file_has_its_own_bound(tmp_path: Path, run: Run, what: str) -> None:
    with endless(tmp_path, what, None) as (url, sent):
        ran = run("fetch", url, "--label", "fr", "--to", tmp_path / "got", "--max-list", "1 MB")
    assert all(count < ENDLESS for count in sent)
    assert len(sent) == 1
    if what == "manifest.json":  # what gives no manifest on the web is none
        assert ran.code == 0, ran.err
        return
    assert ran.code == 1
    assert "fr/fr_sha256.txt: expected a checksum file or manifest of at most 1,000,000 bytes" in ran.err
    assert "--max-list" in ran.err


def test_the_manifest_of_an_output_says_what_is_in_it(tmp_path: Path, run: Run) -> None:
    """Also where files are called otherwise; dropped documents are none of a label."""
    rows = [document(f"{i}", "text " * 50, metadata={"language": ["fr", "de", None][i % 3]}) for i in range(60)]
    write_rows(tmp_path / "data" / "documents" / "a.jsonl.gz", rows)
    project = Project(tmp_path, run, {"dataset": str(tmp_path / "data"), "mix": {
        "rules": [{"drop": "metadata.language is None", "name": "one"}],
        "rejected": str(tmp_path / "dropped"),
        "output": {
            "path": str(tmp_path / "out"), "format": "text", "identification": "metadata.language", "part_size": "1 kB",
        },
    }})  # fmt: skip
    project.ok("mix")
    for label in ("fr", "de"):
        run("fetch", tmp_path / "out", "--label", label, "--to", tmp_path / "got").succeeds()
    got = [name for name in there(tmp_path / "got") if not name.endswith("_sha256.txt")]
    assert got == [name for name in list_files(str(tmp_path / "out")) if name.endswith(".txt.gz")]
    assert run("validate", tmp_path / "got").code == 0
    assert run("fetch", tmp_path / "out", "--label", "rejected", "--to", tmp_path / "got").code == 2
    path = tmp_path / "out" / ".toolkit" / "manifest.json"
    manifest = json.loads(path.read_bytes())
    for listed, error in (("", "expected a checksum file that lists it"), ("/x", "without empty parts"),
                          (".toolkit/x", "which hold the records")):  # fmt: skip
        files = {listed: next(iter(manifest["files"].values()))} if listed else {}
        path.write_text(json.dumps(manifest | {"files": files}))
        ran = run("fetch", tmp_path / "out", "--label", "fr", "--to", tmp_path / "other")
        assert (ran.code, there(tmp_path / "other")) == (1, [])
        assert error in ran.err
    (tmp_path / "out" / ".toolkit" / "publishing.json").write_text("{}")
    assert "expected a finished publication" in run("fetch", tmp_path / "out", "--label", "fr").err


@pytest.mark.slow
def test_a_release_on_the_web_whose_connections_break(tmp_path: Path, run: Run, naps: list[float]) -> None:
    files = write_release(str(tmp_path / "release"))
    behaviour = Behaviour(chances={"drop": 0.4, "reset": 0.2, "503": 0.1}, seed=3)
    with web(tmp_path / "release", behaviour) as url:
        ran = run("fetch", url, "--label", "fr", "--label", "de", "--to", tmp_path / "got")
    assert ran.code == 0, ran.err
    assert {name: (tmp_path / "got" / name).read_bytes() for name in there(tmp_path / "got")} == files
    assert {each.status for each in behaviour.log} >= {200, 206, 503}


@pytest.mark.slow
def test_a_fetch_that_is_killed_leaves_no_half_and_goes_on(tmp_path: Path, run: Run) -> None:
    files = write_release(str(tmp_path / "release"))
    behaviour = Behaviour(only="fr_part_7.jsonl.gz", half=threading.Event())
    assert behaviour.half
    with web(tmp_path / "release", behaviour) as url:
        fetch = ("fetch", url, "--label", "fr", "--to", str(tmp_path / "got"))
        child = subprocess.Popen([sys.executable, "-m", "toolkit", *fetch], start_new_session=True)
        try:
            assert wait_until(lambda: behaviour.bodies("fr_part_7.jsonl.gz"))
            os.killpg(child.pid, signal.SIGKILL)
        finally:
            child.wait(PATIENCE)
            behaviour.half.set()
        assert group_ended(child.pid), "temporary files of processes that still run stay"
        before = (
            [name for name in there(tmp_path / "got") if not name.endswith(".tmp")]
            if (tmp_path / "got").exists()
            else []
        )
        assert all((tmp_path / "got" / name).read_bytes() == files[name] for name in before)
        assert "fr/fr_part_7.jsonl.gz" not in before
        ran = run(*fetch, "--json")
    assert ran.code == 0, ran.err
    assert {name for name, what in ran.json["files"].items() if what == "there"} == {*before}
    assert {name: (tmp_path / "got" / name).read_bytes() for name in there(tmp_path / "got")} == {
        name: data for name, data in files.items() if name.startswith("fr/")
    }


def test_a_server_that_says_no_sizes_and_forbids_what_is_not_there(tmp_path: Path, run: Run, naps: list[float]) -> None:
    files = write_release(str(tmp_path / "release"), {"fr_meta": 2})
    behaviour = Behaviour(chances={"403": 1.0}, only="fr_sha256.txt", length="chunked")
    with web(tmp_path / "release", behaviour) as url:
        fetch = ("fetch", url, "--label", "fr", "--to", tmp_path / "got")
        assert "expected the size of the file" in run(*fetch, "--max", "1MB").err
        ran = run(*fetch)
        assert run("fetch", url + "?a=b", "--label", "fr").code == 2
    assert ran.code == 0, ran.err
    assert {name: (tmp_path / "got" / name).read_bytes() for name in there(tmp_path / "got")} == files


@pytest.mark.s3
@pytest.mark.slow
def test_a_release_in_a_bucket(tmp_path: Path, run: Run, bucket: str) -> None:
    files = write_release(join(bucket, "release"))
    for folder in (str(tmp_path / "got"), join(bucket, "got")):
        run("fetch", join(bucket, "release"), "--label", "fr", "--label", "de", "--to", folder).succeeds()
        assert list(list_files(folder, hidden=True)) == sorted(files)
        assert run("validate", folder).code == 0


def test_how_files_are_reached_stays_where_no_configuration_says_it(tmp_path: Path) -> None:
    """A command that is begun by another has the storage of that one; what the command line gives replaces it."""
    session = current()
    session.options = StorageOptions(give_up=Duration(2))
    fetch = Options(targets=(str(tmp_path),))
    with open_context(fetch):
        assert session.options == StorageOptions(give_up=Duration(2))
    with open_context(msgspec.structs.replace(fetch, overrides=("storage.give_up=3 s",))):
        assert session.options == StorageOptions(give_up=Duration(3))


_ROW = b'{"content":"x"}\n'


class _Hostile(http.server.BaseHTTPRequestHandler):
    """A release of one file; what `drips`, by the end of its path, or has no end of headers, is sent byte by byte."""

    protocol_version = "HTTP/1.1"
    drips, headers_drip = "", False
    size = str(len(_ROW))

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        self.close_connection = True
        sums = f"{hashlib.sha256(_ROW).hexdigest()}  fr.jsonl\n".encode()
        data = sums if self.path.endswith("_sha256.txt") else _ROW if self.path.endswith("fr.jsonl") else None
        if data is None:
            return self.send_error(404)
        is_slow = self.command == "GET" and self.drips and self.path.endswith(self.drips)
        length = self.size if data is _ROW else str(len(data))
        end = "X: " if is_slow and self.headers_drip else f"{'' if is_slow else f'Content-Length: {length}'}\r\n\r\n"
        with suppress(OSError):
            self.connection.sendall(f"HTTP/1.1 200 OK\r\n{end.removeprefix(chr(13) + chr(10))}".encode("latin-1"))
            if not is_slow:
                self.connection.sendall(data if self.command == "GET" else b"")
            while is_slow:
                time.sleep(0.05)
                self.connection.sendall(b"x")
        return None

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.mark.slow
@pytest.mark.parametrize(
    ("drips", "headers_drip", "message"),
    [
        ("_sha256.txt", False, "fr_sha256.txt: expected at least 1,024 bytes a second, got "),
        ("fr.jsonl", False, "fr.jsonl: expected at least "),
        ("fr.jsonl", True, "fr.jsonl: expected an answer, got none"),
    ],
)
def test_what_comes_byte_by_byte_is_given_up(
    drips: str, headers_drip: bool, message: str, tmp_path: Path, run: Run
) -> None:
    handler = type("Handler", (_Hostile,), {"drips": drips, "headers_drip": headers_drip, "size": "-4"})
    with serving(Server(handler)) as server:
        ran = run("fetch", f"{server.url}/r", "--label", "fr", "--to", tmp_path / "got", "storage.give_up=1 s")
    assert (ran.code, message in ran.err) == (1, True), ran.err
    assert not [*tmp_path.rglob("*fr.jsonl*")]


@pytest.mark.parametrize("size", ["\N{SUPERSCRIPT TWO}", "9" * 5000, "-4"])
def test_a_length_that_is_none_is_not_believed(size: str, tmp_path: Path, run: Run) -> None:
    with serving(Server(type("Handler", (_Hostile,), {"size": size}))) as server:
        ran = run("fetch", f"{server.url}/r", "--label", "fr", "--to", tmp_path / "got")
    assert (ran.code, (tmp_path / "got/fr/fr.jsonl").read_bytes()) == (0, _ROW), ran.err
