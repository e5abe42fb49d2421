"""Deciding from many files at once: a store whose looks are requests is asked for listings instead."""

from collections import Counter
from collections.abc import Iterator

import pytest

from toolkit.errors import Unreadable
from toolkit.storage import Stat, paths
from toolkit.storage.paths import exists, list_anew, list_files, list_stats, looking, read_once, stat
from toolkit.testing import MemoryStore


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
    with looking("memory://x/a", "memory://x/b/", "memory://x/none"):
        assert {name: stat(f"memory://x/{name}") for name in found} == found
        assert not exists("memory://x/a/none")
        assert store.asked == {"listing": 2}  # what is not asked for is not listed
        assert exists("memory://x/ab/4")
        assert store.asked == {"listing": 2, "stat": 1}
    assert stat("memory://x/a/1") == found["a/1"]
    assert store.asked == {"listing": 2, "stat": 2}


def test_listings_of_them_are_answered_by_these(store: Asked) -> None:
    with looking("memory://x"):
        assert list(list_files("memory://x/a")) == ["1", "2"]
        assert list_stats("memory://x/a", hidden=True) == {
            name: MemoryStore.stat(store, f"memory://x/a/{name}") for name in (".toolkit/3", "1", "2")
        }
        assert list(list_files("memory://x/")) == ["a/1", "a/2", "ab/4", "b/5"]
    assert store.asked == {"listing": 1}


def test_what_is_written_before_the_next_block_is_seen_in_it(store: Asked) -> None:
    for content in (b"1", b"other"):
        store.put("memory://x/a/1", content)
        with looking("memory://x/a"), looking("memory://x/b"):
            now = stat("memory://x/a/1")
            assert now
            assert now.size == len(content)


def test_what_was_gone_when_it_was_read_is_listed_anew(store: Asked) -> None:
    with looking("memory://x/a", "memory://x/b"):
        assert [list(list_files(f"memory://x/{folder}")) for folder in "ab"] == [["1", "2"], ["5"]]
        for name in ("a/1", "b/5"):
            store.remove(f"memory://x/{name}")
        list_anew("memory://x/a/below")
        assert [list(list_files(f"memory://x/{folder}")) for folder in "ab"] == [["2"], ["5"]]
    list_anew("memory://x/a")
    assert store.asked["listing"] == 3


def test_blocks_of_several_threads_end_in_any_order(store: Asked) -> None:
    """As those of two pages of `toolkit view` that are loaded at once."""
    first, second = looking("memory://x/a"), looking("memory://x/a", "memory://x/b")
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
    with looking("memory://x/a"):
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
    with looking("somewhere"):
        assert [read_once("x", reading) for _ in range(2)] == [3, 3]
        with looking("elsewhere"):
            assert read_once("x", reading) == 3
    assert read_once("x", reading) == 4
