"""A read has three outcomes: it is there, it is not there, it could not be read. The third is never the second."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Run
from tests.storage.conftest import use
from tests.storage.faults import environment
from tests.storage.servers import Asked, Faults, Seaweed, proxy
from toolkit.errors import DataError, Forbidden, Unreadable
from toolkit.storage import json_files, store as stores, store_of
from toolkit.storage.objects import SMALL
from toolkit.storage.outputs import write_file
from toolkit.storage.paths import join, list_files
from toolkit.storage.retrying import RetryableError
from toolkit.storage.stores.s3 import S3

s3 = pytest.mark.s3


def lay_out(root: str, local: Path, *, give_up: object = "2 s", shards: int = 6) -> Path:
    """Inputs in a bucket or a folder, and the path of a configuration on disk."""
    for i in range(shards):
        rows = [{"id": f"{i}-{j}", "text": f"text {j} of {i}\n" * 3, "source": "s"} for j in range(4)]
        write_file(join(root, f"in/{i}.jsonl"), b"".join(json.dumps(row).encode() + b"\n" for row in rows))
    config = {
        "dataset": join(root, "data"),
        "processes": 1,
        "storage": {"give_up": give_up},
        "ingest": [{"format": "jsonl", "from": [join(root, "in/*.jsonl")], "source": "s"}],
        "tag": {"shape-0": "line_shape", "noise-0": "noise"},
        "mix": {
            "attributes": ["shape-0", "noise-0"],
            "rules": [{"drop": "line_shape.lines > 100", "name": "long"}],
            "output": {"format": "dolma", "path": join(root, "out")},
        },
    }
    path = local / "c.yaml"
    path.write_text(json.dumps(config))
    return path


def tree(root: str) -> dict[str, bytes]:
    return {name: store_of(root).read(join(root, name)) for name in list_files(root)}


@pytest.fixture
def quick(naps: list[float]) -> None:
    """Hosts are given up after seconds that nobody waits for."""


# --- commands ---------------------------------------------------------------------------------------------------------


@s3
@pytest.mark.slow
def test_a_mix_is_refused_while_it_is_not_known_what_there_should_be(
    bucket: str, seaweed: Seaweed, tmp_path: Path, run: Run, quick: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = lay_out(bucket, tmp_path)
    assert run("ingest", "-c", path).code == run("tag", "-c", path).code == 0
    (shard, *_) = list_files(join(bucket, "data/documents"))
    store_of(bucket).remove(join(bucket, "data/documents", shard))
    run("mix", "-c", path).fails(1, f"{shard}: expected the documents of")
    reading, listing = r"GET /[^?]*toolkit/inputs/", r"GET .*prefix=data%2F.toolkit%2Finputs"
    said = {"503": r"503 SlowDown for \d+ s", "reset": "a broken connection", "403": "403 AccessDenied"}
    for only, fault in ((reading, "503"), (listing, "503"), (reading, "reset"), (reading, "403")):
        with proxy(lambda: seaweed.port, Faults({fault: 1.0}, only=only)) as url:
            use(monkeypatch, url)
            ran = run("mix", "-c", path)
        assert ran.code == 1
        assert re.search(said[fault], ran.err)
        assert "such file" not in ran.err
        use(monkeypatch, seaweed.url)
        assert list(list_files(join(bucket, "out"))) == []


@pytest.mark.slow
@s3
def test_status_needs_no_permission_to_write(
    bucket: str, seaweed: Seaweed, tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, faults = lay_out(bucket, tmp_path), Faults()
    with proxy(lambda: seaweed.port, faults) as url:
        use(monkeypatch, url)
        assert run("status", "-c", path).code == 1
        assert run("status", "-c", path, "--shard", "0/2").code == 1
        assert {request.partition(" ")[0] for request in faults.log} <= {"GET", "HEAD"}
        assert run("run", "-c", path).code == 0
        for name in list_files(join(bucket, "data/attributes")):  # the same, of another time
            data = store_of(bucket).read(join(bucket, "data/attributes", name))
            write_file(join(bucket, "data/attributes", name), data)
        store_of(bucket).remove(join(bucket, "data/.toolkit/rows/s/0.jsonl.gz.bin"))
        faults.log.clear()
        assert run("status", "-c", path).code == 1
        assert run("status", "-c", path, "--json").json["stages"]
        assert {request.partition(" ")[0] for request in faults.log} <= {"GET", "HEAD"}
        faults.log.clear()
        assert run("mix", "-c", path).code == 0
        assert run("status", "-c", path).code == 0
    assert store_of(bucket).leftovers(bucket, any_owner=True) == []


def test_status_writes_nothing_on_disk(tmp_path: Path, run: Run) -> None:
    path = lay_out(str(tmp_path), tmp_path)
    assert run("run", "-c", path).code == 0
    for file in (tmp_path / "data" / "attributes").rglob("*.gz"):
        os.utime(file, (1, 1))

    def state() -> dict[str, tuple[int, int]]:
        return {str(file): (file.stat().st_mtime_ns, file.stat().st_ino) for file in tmp_path.rglob("*")}

    before = state()
    run("status", "-c", path).succeeds()
    assert state() == before


def test_a_lease_that_cannot_be_understood_counts(tmp_path: Path, run: Run) -> None:
    path = lay_out(str(tmp_path), tmp_path)
    lease = tmp_path / "data" / ".toolkit" / "leases" / "other.json"
    write_file(str(lease), b'{"holds":')
    run("ingest", "-c", path).fails(1, f"{lease}: expected a record of this version", "if no run works here, delete it")
    assert not (tmp_path / "data" / "documents").exists()


@pytest.mark.slow
@s3
@pytest.mark.parametrize("processes", [1, 2])
@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_the_waiting(
    number: signal.Signals, status: int, processes: int, bucket: str, seaweed: Seaweed, tmp_path: Path
) -> None:
    path = lay_out(bucket, tmp_path, give_up="1 h")
    faults = Faults({"503": 1.0}, only="PUT .*documents|DELETE|GET .*/in/[12]")
    with proxy(lambda: seaweed.port, faults) as url:
        run = subprocess.Popen(
            [sys.executable, "-m", "toolkit.cli", "ingest", "-c", str(path), "--quiet", f"processes={processes}"],
            env=environment(url), stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert run.stderr
        said = run.stderr.readline()
        run.send_signal(number)
        _, err = run.communicate()
    assert "waiting for 127.0.0.1" in said
    assert "503 SlowDown" in said
    assert run.returncode == status, err
    assert "run the same command to resume" in err
    assert "Traceback" not in err


# --- S3 ---------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@s3
@pytest.mark.parametrize("size", [10, 2 * SMALL + 1])
def test_a_request_whose_answer_is_lost_is_made_again_to_the_same_end(
    size: int, bucket: str, seaweed: Seaweed, quick: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    faults = Faults(only="PUT|POST|DELETE")
    real = faults.next
    seen: set[str] = set()

    def once(asked: Asked) -> str:
        """The answer to each request is lost once."""
        request, fault = asked.line, real(asked)
        new = request not in seen and not request.startswith(("GET", "HEAD")) and "uploads" not in request
        seen.add(request)
        return "lost" if new else fault

    monkeypatch.setattr(faults, "next", once)
    with proxy(lambda: seaweed.port, faults) as url:
        use(monkeypatch, url)
        store, data = store_of(bucket), bytes(range(256)) * (size // 256) + b"x" * (size % 256)
        write_file(join(bucket, "x"), data)
        assert store.read(join(bucket, "x")) == data
        store.move(join(bucket, "x"), join(bucket, "y"))
        assert store.read(join(bucket, "y")) == data
        assert store.create(join(bucket, "lease"), b"mine")
        assert not store.create(join(bucket, "lease"), b"other")
        assert list(store.files(bucket)) == ["lease", "y"]
        store.remove_tree(bucket)
        assert list(store.files(bucket)) == []
    assert store.leftovers(bucket, any_owner=True) == []


@pytest.mark.slow
@s3
def test_large_objects_are_moved_in_pieces(bucket: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolkit.storage.stores.s3.COPIED", 6 << 20)
    data = os.urandom(20 << 20)
    write_file(join(bucket, "x"), data)
    store_of(bucket).move(join(bucket, "x"), join(bucket, "y"))
    assert store_of(bucket).read(join(bucket, "y")) == data
    assert store_of(bucket).stat(join(bucket, "x")) is None


def answer(code: str, status: int, operation: str = "GetObject") -> Any:
    from botocore.exceptions import ClientError

    said: Any = {"Error": {"Code": code, "Message": "m"}, "ResponseMetadata": {"HTTPStatusCode": status}}
    return ClientError(said, operation)


@s3
def test_what_is_final_is_told_with_what_to_do(bucket: str) -> None:
    for code, status, advice in (
        ("ExpiredToken", 400, "renew the session token"),
        ("InvalidToken", 400, "check the session token"),
        ("RequestTimeTooSkewed", 403, "set this machine's clock"),
        ("SignatureDoesNotMatch", 403, "check the secret"),
        ("InvalidAccessKeyId", 403, "check the key"),
        ("AccessDenied", 403, "check what these credentials may do"),
        ("NoSuchBucket", 404, "got none of that name"),
        ("PermanentRedirect", 301, "set `storage.region`"),
        ("NotImplemented", 501, "got 501 NotImplemented"),
    ):
        found = S3().explain(answer(code, status), "s3://b/x", "b")
        assert isinstance(found, Unreadable)
        assert advice in str(found)
        assert isinstance(found, Forbidden) == (code == "AccessDenied")


@s3
def test_an_answer_without_its_reason_is_asked_for_again(bucket: str) -> None:
    assert isinstance(S3().explain(answer("404", 404), "s3://b/x", "b"), RetryableError)


@s3
def test_a_listing_without_content_or_end_is_none(bucket: str, monkeypatch: pytest.MonkeyPatch) -> None:
    store: Any = store_of(bucket)
    for page in ({}, {"IsTruncated": True, "Contents": [{"Key": "a", "Size": 1}]}):
        monkeypatch.setattr(type(store), "client", _Lister(page))
        with pytest.raises(Unreadable, match=r"expected a (whole )?listing"):
            list(store.files(bucket))


class _Lister:
    def __init__(self, page: dict[str, Any]) -> None:
        self.page = page

    def list_objects_v2(self, **_: object) -> dict[str, Any]:
        return self.page


# --- on disk ----------------------------------------------------------------------------------------------------------


def test_below_a_root_that_has_vanished_nothing_is_known_to_be_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "root"
    write_file(str(root / "a" / "x"), b"1")
    stores.note_roots([str(root), "s3://b/x"])
    path = str(root / "a" / "nothing")
    store = store_of(path)
    assert store.stat(path) is None
    assert json_files.load(path, int) is None
    root.rename(tmp_path / "away")
    looks: list[Callable[[], object]] = [
        lambda: store.stat(path), lambda: store.read(path), lambda: store.open(path), lambda: store.folders(path),
        lambda: list(store.files(str(root))), lambda: store.is_folder(path), lambda: json_files.load(path, int),
        lambda: store.writing(path), lambda: store.move(str(tmp_path / "away" / "a" / "x"), path),
    ]  # fmt: skip
    for look in looks:
        with pytest.raises(Unreadable, match="which existed when the run began, got none: it has vanished"):
            look()
    assert not root.exists()
    (tmp_path / "away").rename(root)
    assert store.stat(path) is None
    before = stores._identity(str(root))
    assert before
    with monkeypatch.context() as patch:  # the folder that something was mounted on
        patch.setattr(stores, "_identity", lambda folder: (before[0] + 1, before[1] + 1))
        with pytest.raises(Unreadable, match="has vanished"):
            store.stat(path)
    with monkeypatch.context() as patch:  # an automounter's
        patch.setattr(stores, "_identity", lambda folder: (before[0] + 1, before[1]))
        assert store.stat(path) is None


@pytest.mark.parametrize("number", [5, 13, 24, 116])  # EIO, EACCES, EMFILE, ESTALE
def test_errors_of_the_system_are_no_files_that_are_not_there(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, store = str(tmp_path / "x"), store_of(str(tmp_path))
    write_file(path, b"1")

    def fail(*arguments: object, **_: object) -> Any:
        raise OSError(number, os.strerror(number), path)

    with monkeypatch.context() as patch:
        for name in ("stat", "listdir", "scandir"):
            patch.setattr(os, name, fail)
        patch.setattr("builtins.open", fail)
        patch.setattr("toolkit.storage.stores.local.NamedFile", fail)
        looks: list[Callable[[], object]] = [
            lambda: store.stat(path), lambda: store.age(path), lambda: store.read(path), lambda: store.open(path),
            lambda: list(store.files(str(tmp_path))), lambda: store.folders(str(tmp_path)),
            lambda: store.is_folder(str(tmp_path)), lambda: json_files.load(path, int), lambda: store.pieces(path),
        ]  # fmt: skip
        found = []
        for look in looks:
            try:
                found.append(look())
            except (Unreadable, DataError) as error:
                found.append(error)
    assert all(isinstance(each, Unreadable) and os.strerror(number) in str(each) for each in found), found
