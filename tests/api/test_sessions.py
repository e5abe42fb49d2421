"""Calls at the same time, in threads, with different storage: each as if it were alone."""

import itertools
import json
import os
import threading
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import msgspec
import pytest

import toolkit
from tests.pipeline.conftest import document
from tests.storage.conftest import seaweed, use
from tests.storage.servers import ACCESS, SECRET, Seaweed
from toolkit.session import Session
from toolkit.storage import store_of
from toolkit.storage.outputs import write_file
from toolkit.storage.paths import list_files
from toolkit.storage.stores.s3 import S3
from toolkit.storage_options import StorageOptions

pytestmark = [pytest.mark.s3, pytest.mark.slow]

__all__ = ["seaweed"]

BUCKET = "s3://twice"
OTHER_SECRET = "other-secret"
SHARDS = ("a", "b", "c", "d")
FAULTS = ("", "fail", "kill")

TAGGER = """
import os
import signal

from toolkit import Document, Tagger


class Said(Tagger):
    '''The text, unless it fails, or its process is killed once.'''

    fault: str = ""
    once: str = ""

    def tag(self, document: Document) -> str:
        if document.id == "c" and self.fault == "fail":
            raise ValueError("planted")
        if document.id == "b" and self.fault == "kill":
            try:
                os.close(os.open(self.once, os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                return document.text
            os.kill(os.getpid(), signal.SIGKILL)
        return document.text
"""


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory, seaweed: Seaweed) -> Iterator[Seaweed]:
    """A second server, with another key."""
    server = Seaweed(tmp_path_factory.mktemp("other"), OTHER_SECRET)
    server.start()
    yield server
    server.kill()


class Caller:
    """Somebody who has a server, and calls from a thread.

    Args:
        name: in the texts of the documents.
        url: of the server.
        folder: for what is local.
    """

    def __init__(self, name: str, url: str, folder: Path) -> None:
        self.name, self.folder = name, folder
        self.storage = {"endpoint_url": url, "profile": name}
        self.session = Session(msgspec.convert(self.storage, StorageOptions))
        with self.session.bound():
            store = store_of(BUCKET)
            assert isinstance(store, S3)
            store.client.create_bucket(Bucket=BUCKET.removeprefix("s3://"))
            for shard in SHARDS:
                write_file(
                    f"{BUCKET}/data/documents/{shard}.jsonl",
                    json.dumps(document(shard, self.text(shard))).encode() + b"\n",
                )

    def text(self, shard: str) -> str:
        """Return the text of a document."""
        return f"{shard} of {self.name}"

    def tag(self, number: int, fault: str) -> None:
        """Make a set, and see that it is that of this server alone."""
        set_name = f"said-{number}"
        tagger = {"tagger": f"{self.folder}/said.py:Said", "fault": fault, "once": f"{self.folder}/{self.name}{number}"}
        config: dict[str, Any] = {
            "dataset": f"{BUCKET}/data",
            "storage": self.storage,
            "processes": 2 if fault == "kill" else 1,
            "tag": {set_name: tagger},
        }
        left = set(SHARDS)
        with pytest.raises(toolkit.Failed, match="planted") if fault == "fail" else nullcontext():
            toolkit.tag(config)
        if fault == "fail":
            left.discard("c")
        found = {
            row.document.id: next(iter(row.attributes.values()))
            for row in toolkit.Dataset(config).joined(set_name, shards=[f"{shard}.jsonl" for shard in sorted(left)])
        }
        assert found == {shard: self.text(shard) for shard in left}
        with self.session.bound():
            record_log = list(list_files(f"{BUCKET}/data/.toolkit/record-log", hidden=True))
            assert len(record_log) <= 1, "what the call has recorded is merged"


def play(callers: list[Caller], rounds: int) -> None:
    """Let callers call at the same time, with each pair of faults in turn."""
    pairs = list(itertools.combinations_with_replacement(FAULTS, 2))
    errors: list[BaseException] = []
    before = dict(os.environ)

    def work(place: int) -> None:
        try:
            for number in range(rounds):
                together.wait()
                callers[place].tag(number, pairs[number % len(pairs)][place])
        except BaseException as error:
            errors.append(error)
            together.abort()

    together = threading.Barrier(len(callers))
    threads = [threading.Thread(target=work, args=(place,)) for place in range(len(callers))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    errors = [error for error in errors if not isinstance(error, threading.BrokenBarrierError)]
    if errors:
        raise errors[0]
    assert dict(os.environ) == before


@pytest.fixture
def callers(
    seaweed: Seaweed, other: Seaweed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[list[Caller]]:
    """Callers with servers of their own; what the environment says is of use to neither."""
    use(monkeypatch, "http://127.0.0.1:1", "of-nobody")
    secrets = {"one": SECRET, "two": OTHER_SECRET}
    profiles = [f"[{n}]\naws_access_key_id={ACCESS}\naws_secret_access_key={s}\n" for n, s in secrets.items()]
    (tmp_path / "credentials").write_text("".join(profiles))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    found = [Caller(name, server.url, tmp_path) for name, server in zip(secrets, (seaweed, other), strict=True)]
    yield found
    for caller in found:
        with caller.session.bound():
            store = store_of(BUCKET)
            assert isinstance(store, S3)
            store.remove_tree(BUCKET)
            store.client.delete_bucket(Bucket=BUCKET.removeprefix("s3://"))


@pytest.mark.parametrize("rounds", [6, pytest.param(200, marks=pytest.mark.long)])
def test_calls_with_two_servers_do_not_know_of_each_other(rounds: int, callers: list[Caller], tmp_path: Path) -> None:
    (tmp_path / "said.py").write_text(TAGGER)
    play(callers, rounds)


def test_a_second_configuration_has_a_storage_of_its_own(callers: list[Caller], tmp_path: Path) -> None:
    """The first mix keeps all documents of its server, the second none of its own, where the bucket is called alike."""
    configs = []
    for caller, p in zip(callers, (1, -1), strict=True):
        rows = {shard: {"id": shard, "source": "s", "attributes": {"p": p}} for shard in SHARDS}
        with caller.session.bound():
            for shard, row in rows.items():
                write_file(f"{BUCKET}/data/attributes/ext-0/{shard}.jsonl", json.dumps(row).encode() + b"\n")
        mix = {"attributes": ["ext-0"], "rules": [{"keep": "p > 0", "name": "best"}]}
        configs.append(
            {
                "dataset": f"{BUCKET}/data",
                "storage": caller.storage,
                "processes": 2,
                "mix": {**mix, "output": {"format": "dolma", "path": str(tmp_path / "out")}},
            }
        )
    one: Any = configs[0]
    found = toolkit.mix(one, compare=configs[1])
    assert (found.kept, found.lost, found.gained) == (len(SHARDS), {"best": len(SHARDS)}, {})
    for caller in callers:
        with caller.session.bound():
            written = [path for path in list_files(BUCKET, hidden=True) if "/.toolkit/" in path]
            assert written == [], "what only looks writes nothing"
    reported = toolkit.report(configs[0], compare=configs[1])
    assert [each.totals.kept for each in reported.runs] == [len(SHARDS), 0]
