"""What stores do beside their contract (`toolkit.testing.check_store`), on disk and on a real S3 server."""

import os
import tempfile
import threading
import time
from operator import itemgetter
from pathlib import Path

import pytest

from tests.conftest import Run
from tests.storage.conftest import use
from tests.storage.servers import Faults, Seaweed, proxy
from toolkit.data.dataset import Dataset
from toolkit.errors import ConfigError, DataError, Unreadable
from toolkit.storage import Stat, paths, retrying, store_of
from toolkit.storage.objects import SMALL, split
from toolkit.storage.outputs import write_file
from toolkit.storage.paths import expand, join, list_files
from toolkit.storage.reading import open_stored

pytestmark = pytest.mark.slow

ROOTS = ["local", pytest.param("s3", marks=pytest.mark.s3)]


@pytest.fixture(params=ROOTS)
def root(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return str(tmp_path / "root") if request.param == "local" else join(request.getfixturevalue("bucket"), "root")


def test_globs_find_what_is_there(root: str) -> None:
    names = ["a-b", "a/b", "ü/ö", "x/y/z.gz"]
    for name in names:
        write_file(join(root, name), name.encode())
    assert [path for path, _ in expand(join(root, "?/*"))] == [join(root, "a/b"), join(root, "ü/ö")]
    assert [path for path, _ in expand(join(root, "**/*.gz"))] == [join(root, "x/y/z.gz")]
    assert [path for path, _ in expand(join(root, "{a,x}/**"))] == [join(root, "a/b"), join(root, "x/y/z.gz")]
    with pytest.raises(ConfigError, match="expected at least one file, got no match"):
        expand(join(root, "*.nothing"))
    with pytest.raises(ConfigError, match="expected a file, got nothing there"):
        expand(join(root, "nothing"))
    with pytest.raises(ConfigError, match="got a folder; write"):
        expand(join(root, "x"))
    assert list(list_files(join(root, "nothing"))) == []


# --- S3 ---------------------------------------------------------------------------------------------------------------


@pytest.mark.s3
def test_more_than_a_thousand_objects(bucket: str) -> None:
    store = store_of(bucket)
    names = [f"{i:04}" for i in range(1005)]
    threads = [
        threading.Thread(target=lambda part=part: [write_file(join(bucket, name), b"") for name in part])
        for part in (names[i::8] for i in range(8))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert list(store.files(bucket)) == names
    store.remove_tree(bucket)
    assert list(store.files(bucket)) == []


@pytest.mark.s3
def test_what_a_killed_process_leaves_is_found_and_aborted(bucket: str, run: Run) -> None:
    store = store_of(bucket)
    writing = store.writing(join(bucket, "a/x"))
    writing.write(b"x" * SMALL)
    (left,) = store.leftovers(bucket, any_owner=True)
    assert left.startswith(join(bucket, "a/x"))
    assert store.leftovers(join(bucket, "b"), any_owner=True) == []
    assert run("clean", bucket, "--dry-run").out.startswith(left)
    assert store.leftovers(bucket, any_owner=True) == [left]
    assert run("clean", bucket).code == 0
    assert store.leftovers(bucket, any_owner=True) == []
    store.discard(left)


@pytest.mark.s3
@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ("bucket", "expected a bucket, got none of that name"),
        ("secret", "403 SignatureDoesNotMatch; check the secret"),
        ("server", "expected a server, got"),
        ("key", "expected a readable file, got No such object"),
    ],
)
def test_what_is_wrong_is_said_at_once(
    wrong: str, said: str, bucket: str, seaweed: Seaweed, monkeypatch: pytest.MonkeyPatch, naps: list[float]
) -> None:
    from toolkit.storage.reading import open_stored

    url = "http://127.0.0.1:9" if wrong == "server" else seaweed.url
    use(monkeypatch, url, "no" if wrong == "secret" else "test-secret")
    with pytest.raises((ConfigError, DataError, Unreadable), match=said):
        open_stored("s3://no-such-bucket/x" if wrong == "bucket" else join(bucket, "x"))


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Waits between attempts are short."""
    monkeypatch.setattr(retrying, "pause", lambda seconds: time.sleep(min(seconds, 0.01)))


@pytest.mark.s3
def test_an_object_that_changes_while_it_is_read_is_an_error(
    bucket: str, seaweed: Seaweed, monkeypatch: pytest.MonkeyPatch, quick: None
) -> None:
    path = join(bucket, "x")
    write_file(path, b"a" * (4 << 20))
    faults = Faults()
    with proxy(lambda: seaweed.port, faults) as url:
        use(monkeypatch, url)
        faults.chances["cut"] = 1.0
        with store_of(bucket).open(path) as stream:
            stream.read(1000)
            faults.chances.clear()
            write_file(path, b"b" * (4 << 20))
            with pytest.raises(DataError, match="got one that has changed"):
                stream.read()


def test_keys_are_what_paths_say() -> None:
    assert split("s3://b/a/../c") == ("b", "c")
    assert split("s3://b") == ("b", "")
    assert split("s3://b/a//b") == ("b", "a//b")
    with pytest.raises(ConfigError, match="expected s3://BUCKET/KEY"):
        split("s3:///x")
    with pytest.raises(
        ConfigError, match="ftp://: expected a local path, az:// or gs:// or hf:// or http:// or https:// or s3://;"
    ):
        store_of("ftp://b/x")
    assert Stat(1, "x") == Stat(1, "x")


def test_a_folder_that_others_delete_meanwhile_is_made_again(tmp_path: Path) -> None:
    """As workers do that leave nothing behind, beside others that begin in the same folder."""
    store, folder = store_of(str(tmp_path)), str(tmp_path / "a" / "b")
    ended = threading.Event()

    def delete() -> None:
        while not ended.wait(0.0003):
            store.remove_empty_folders(folder, str(tmp_path))

    threads = [threading.Thread(target=delete) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        for i in range(300):
            write_file(f"{folder}/{i}", b"x")
            assert store.stat(f"{folder}/{i}")
            store.remove(f"{folder}/{i}")
    finally:
        ended.set()
        for thread in threads:
            thread.join()


@pytest.mark.skipif(not os.access("/dev/shm", os.W_OK), reason="this machine has no file system in memory")
def test_a_file_in_shared_memory_is_a_file() -> None:
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        path = join(folder, "x")
        write_file(path, b"whole")
        assert store_of(path).read(path) == b"whole"
        with open_stored(path) as source:
            assert source.read() == b"whole"


def test_a_set_that_was_deleted_is_no_set(bucket: str) -> None:
    """SeaweedFS goes on listing its folder."""
    dataset, store = Dataset(f"{bucket}/documents", f"{bucket}/attributes"), store_of(bucket)
    for name in ("kept-0", "gone-0"):
        write_file(join(dataset.attributes, name, "s/0.jsonl.gz"), b"x")
    assert dataset.sets() == ["gone-0", "kept-0"]
    store.remove_tree(join(dataset.attributes, "gone-0"))
    assert dataset.sets() == ["kept-0"]


def test_a_listing_is_packed_and_refuses_a_store_that_does_not_sort(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sorted by name; what a listing does not say of a file is asked for; folders are found among all names."""
    monkeypatch.setattr(paths, "PACKED", 2)
    (tmp_path / "c").write_bytes(b"three")
    said = {name: Stat(number, f"etag {number}") for number, name in enumerate(("a/0", "a/1", "a0", "b", "d"))}
    listing = paths.Listing(str(tmp_path), sorted([*said.items(), ("c", None), ("gone", None)], key=itemgetter(0)))
    assert [*listing] == [*dict(listing.items())] == sorted([*said, "c", "gone"])
    assert {name: listing[name] for name in said} == said
    assert (listing["gone"], listing.get("a"), listing.get("z"), len(listing)) == (None, None, None, 7)
    assert paths.size_of(str(tmp_path / "c")) == 5 == getattr(listing["c"], "size", None)
    assert dict(listing.below("a/")) == {"0": said["a/0"], "1": said["a/1"]}
    assert dict(listing.below("")) == dict(listing.items())
    undecodable = {"\udcff": Stat(1, "etag"), "\udcff/": Stat(2, "")}
    assert dict(paths.Listing(str(tmp_path), undecodable.items())) == undecodable
    with pytest.raises(
        Unreadable, match="expected a store that lists files in the order of code points, got 'd' before 'c'"
    ):
        paths.Listing(str(tmp_path), [*said.items(), ("c", None)])
