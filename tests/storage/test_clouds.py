"""Clouds, each on a server of its own: the contract of stores, and what becomes of it under faults."""

import sys
import time
from collections.abc import Callable

import pytest

from tests.marks import slow
from tests.storage.conftest import NEEDED, Cloud, use
from tests.storage.faults import KINDS, Corpus, play
from tests.storage.servers import Asked, Faults, proxy
from toolkit.errors import DataError, Unreadable
from toolkit.storage import json_files, retrying, store_of
from toolkit.storage.addresses import redact_text
from toolkit.storage.objects import SMALL
from toolkit.storage.outputs import write_file
from toolkit.storage.paths import join
from toolkit.testing import check_store

pytestmark = pytest.mark.slow

DATA = bytes(range(256)) * 4 * (SMALL // 512)
"""Written in several parts, and read by several requests."""


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Waits between attempts are short."""
    monkeypatch.setattr(retrying, "pause", lambda seconds: time.sleep(min(seconds, 0.01)))
    monkeypatch.setattr(retrying, "UNKNOWN_HOST", 0.5)


def test_clouds_keep_the_contract(cloud: Cloud) -> None:
    check_store(store_of(cloud.root), cloud.root)


def test_who_looks_whether_a_folder_can_be_written_leaves_nothing(cloud: Cloud) -> None:
    """Nothing is deleted, either: whoever may write may not delete, and a request to delete may fail."""
    faults = Faults()
    with proxy(lambda: cloud.server.port, faults) as url, pytest.MonkeyPatch.context() as patch:
        use(patch, url, kind=type(cloud.server))
        store = store_of(cloud.root)
        store.check_writable(join(cloud.root, "new"), "output")
        assert list(store.files(cloud.root)) == store.leftovers(cloud.root, any_owner=True) == []
        with pytest.raises(Unreadable, match="expected a bucket, got none of that name"):
            store.check_writable(f"{cloud.root.partition('://')[0]}://none-of-that-name/x", "output")
    if cloud.root.startswith("az"):
        assert not [each for each in faults.log if each.startswith("DELETE")]


@pytest.mark.parametrize("fault", ["cut", "503", *slow("reset", "500", "lost")])
def test_reading_and_writing_survive_a_bad_connection(
    fault: str, cloud: Cloud, monkeypatch: pytest.MonkeyPatch, quick: None
) -> None:
    # a part that came twice would be in the object twice: the servers here are no match for a lost answer to one
    sent = "^(DELETE|PUT|POST (?!.*uploads))" if cloud.root.startswith("s3") else "^(DELETE|POST|PUT (?!.*upload_id))"
    only = {"cut": "^GET", "lost": sent}.get(fault, "")
    faults = Faults({fault: 0.3}, seed=1, only=only)
    with proxy(lambda: cloud.server.port, faults) as url:
        use(monkeypatch, url, kind=type(cloud.server))
        store, path = store_of(cloud.root), join(cloud.root, "x")
        for _ in range(2):
            write_file(path, DATA)
            with store.open(path) as stream:
                assert stream.read() == DATA
            assert store.read(path, 1000, 100_000) == DATA[1000:101_000]
            store.move(path, join(cloud.root, "y"))
            assert list(store.files(cloud.root)) == ["y"]
            store.remove_tree(cloud.root)
        faults.chances.clear()
        assert store.leftovers(cloud.root, any_owner=True) == []
    assert faults.seen[fault] > 1


def test_a_lease_whose_answer_is_lost_is_made(cloud: Cloud, monkeypatch: pytest.MonkeyPatch, quick: None) -> None:
    class Once:
        lost = 0

        def next(self, asked: Asked) -> str:
            self.lost += asked.what in ("PUT", "POST")
            return "lost" if asked.what in ("PUT", "POST") and self.lost == 1 else ""

    with proxy(lambda: cloud.server.port, Once()) as url:
        use(monkeypatch, url, kind=type(cloud.server))
        assert store_of(cloud.root).create(join(cloud.root, "lease"), b"mine")
        assert not store_of(cloud.root).create(join(cloud.root, "lease"), b"other")


def test_an_object_that_changes_while_it_is_read_is_an_error(cloud: Cloud) -> None:
    if cloud.root.startswith("s3"):
        pytest.skip("S3 is read by one request, which goes on with what it began: see test_stores.py")
    store, path = store_of(cloud.root), join(cloud.root, "x")
    write_file(path, DATA)
    for change in (lambda: write_file(path, DATA[::-1]), lambda: store.remove(path)):
        with store.open(path) as stream:
            stream.read(1000)
            change()
            with pytest.raises(DataError, match=r"got one that (has changed|was deleted)"):
                stream.read()


@pytest.mark.parametrize(
    ("fault", "said"), [("", "a bucket, got none"), *slow(("403", "got 403"), ("reset", "a broken conn"))]
)
def test_nothing_that_cannot_be_looked_at_counts_as_not_there(
    fault: str, said: str, cloud: Cloud, monkeypatch: pytest.MonkeyPatch, quick: None
) -> None:
    root = cloud.root if fault else f"{cloud.root.partition('://')[0]}://no-such-bucket"
    with proxy(lambda: cloud.server.port, Faults({fault: 1.0} if fault else {})) as url:
        use(monkeypatch, url, kind=type(cloud.server))
        store, path = store_of(root), join(root, "x")
        looks: list[Callable[[], object]] = [
            lambda: store.stat(path), lambda: store.age(path), lambda: store.read(path), lambda: store.open(path),
            lambda: list(store.files(root)), lambda: store.folders(root), lambda: store.is_folder(root),
            lambda: json_files.load(path, int), lambda: write_file(path, b""), lambda: store.create(path, b""),
            lambda: write_file(path, DATA), lambda: store.move(path, path + "y"), lambda: store.remove_tree(root),
        ]  # fmt: skip
        for look in looks:
            with pytest.raises(Unreadable, match=said) as raised:
                look()
            assert fault or raised.value.exit_code == 2


@pytest.mark.parametrize("kind", KINDS)
def test_a_run_under_faults_makes_the_bytes_of_a_run_on_disk(
    kind: str, cloud: Cloud, corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    play(kind, 1, cloud.root, corpus, cloud.server)


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return Corpus.made()


@pytest.mark.parametrize("scheme", NEEDED)
def test_the_error_names_the_extra_of_a_cloud(scheme: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("google.cloud", "google.auth", "azure.storage.blob"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(Exception, match=rf"for {scheme}://, got none: .*\[{scheme}\]'"):
        store_of(f"{scheme}://b").stat(f"{scheme}://b/x")


def test_secrets_of_azure_are_taken_out_of_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_STORAGE_CONNECTION_STRING", "AccountName=a;AccountKey=abc+/def==;EndpointSuffix=x")
    monkeypatch.setenv("AZURE_STORAGE_SAS_TOKEN", "sv=2024&sig=s%2Bx%3D&se=1")
    assert redact_text("got abc+/def== and s%2Bx%3D, s+x= of a") == "got … and …, … of a"
