"""The contract suite of stores, and a store in memory."""

import hashlib
import itertools
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

from toolkit.errors import ConfigError, DataError, Unreadable
from toolkit.storage.store import Stat, Store
from toolkit.storage_options import DEFAULTS, StorageOptions

NAMES = ["a b", "a+b", "100%", "#1", "ü/ö", "c[d", "q=1&r", "a/b", "a-b", "a.b", "日本", "x/y/z.gz", "~", "(1)", ".h/i"]
"""Names that stores must keep: each is something else in a URL, in a glob or in a shell."""

LARGE = 17 << 20
"""Bytes of a file that stores write in several pieces."""

RIVALS = 8
"""Threads that try to create a file at once."""


TICKS = 1000
"""Writes after which a store whose stamp is a time must have another one."""


class MemoryStore(Store):
    """Files in the memory of one process, for tests: other processes do not see them."""

    def __init__(self, options: StorageOptions = DEFAULTS) -> None:
        super().__init__(options)
        self._files: dict[str, tuple[bytes, str, float]] = {}
        self._versions = itertools.count()
        self._lock = threading.Lock()

    def stat(self, path: str) -> Stat | None:
        result = self._files.get(path)
        return None if result is None else Stat(len(result[0]), result[1])

    def age(self, path: str) -> float | None:
        result = self._files.get(path)
        return None if result is None else time.monotonic() - result[2]

    def files(self, root: str) -> Iterator[str]:
        folder = root.rstrip("/") + "/"
        return iter(sorted(path.removeprefix(folder) for path in list(self._files) if path.startswith(folder)))

    def read(self, path: str, offset: int = 0, length: int | None = None) -> bytes:
        if path not in self._files:
            raise FileNotFoundError(2, "No such file", path)
        return self._files[path][0][offset : None if length is None else offset + length]

    def put(self, path: str, data: bytes) -> Stat:
        stamp = f"version {next(self._versions)}"
        self._files[path] = (data, stamp, time.monotonic())
        return Stat(len(data), stamp)

    def create(self, path: str, data: bytes) -> bool:
        with self._lock:
            if path in self._files:
                return False
            self.put(path, data)
            return True

    def remove(self, path: str) -> None:
        self._files.pop(path, None)


def check_store(store: Store, root: str) -> None:
    """Check the contract of a store: `toolkit.storage.Store`.

    All that it writes lies below the root, and is deleted in the end.

    Args:
        store: made anew, without arguments.
        root: a path of the store below which nothing is, and where files can be written.

    Raises:
        AssertionError: with what was expected, and what the store did.
    """
    assert store.can_write, f"{root}: expected a store that can be written; check others by `check_readable_store`"
    store.check_writable(root, "the root")
    for check in (
        _check_names,
        _check_ends,
        _check_writing,
        _check_together,
        _check_versions,
        _check_moving,
        _check_rivals,
    ):
        check(store, f"{root.rstrip('/')}/{check.__name__.strip('_')}")
        store.remove_tree(root)
        _equal(list(store.files(root)), [], f"the files below {root} after `remove_tree`")


def check_readable_store(store: Store, path: str, content: bytes) -> None:
    """Check the reading part of a store's contract, on one file.

    Args:
        store: made anew, without arguments.
        path: Path of a file that is there; there is no file whose path has ``.nothing`` after it.
        content: Content of the file, more than ten bytes.

    Raises:
        AssertionError: with what was expected, and what the store did.
    """
    stat = store.stat(path)
    assert stat is not None, f"{path}: expected `stat` to find the file, got None"
    assert stat.size in (0, len(content)), f"{path}: expected a size of {len(content)}, or 0, got {stat.size}"
    _equal(store.stat(path), stat, f"a second `stat` of {path}, which has not changed")
    for offset, length in ((0, None), (3, 4), (len(content) - 2, None), (len(content) - 2, 10), (0, 0)):
        end = None if length is None else offset + length
        _equal(store.read(path, offset, length), content[offset:end], f"`read` of {path} at {offset}, {length} bytes")
    for offset in (0, 5):
        with store.open(path, offset, stat) as stream:
            first = stream.read(3)
            _equal(first + stream.read(), content[offset:], f"`open` of {path} at {offset}")
    pieces = store.pieces(path)
    _equal([pieces.read(at, 2) for at in (6, 0)], [content[6:8], content[:2]], f"`pieces` of {path}")
    pieces.close()
    missing = path + ".nothing"
    _equal(store.stat(missing), None, f"`stat` of {missing}, which is not there")
    _raises(FileNotFoundError, lambda: store.read(missing), f"`read` of {missing}, which is not there")
    _raises(FileNotFoundError, lambda: store.open(missing), f"`open` of {missing}, which is not there")
    _raises(FileNotFoundError, lambda: store.pieces(missing).read(0, 1), f"`pieces` of {missing}, which is not there")
    changed = Stat(len(content) + 1, stat.stamp + " of another version")
    _raises(
        DataError, lambda: store.open(path, 0, changed).read(), f"`open` of another version of {path} than is there"
    )
    if not store.can_write:
        _raises(ConfigError, lambda: store.check_writable(path, "the place"), "`check_writable` of what is for reading")
        _raises(ConfigError, lambda: store.writing(path), "`writing` of what is for reading")


def _check_names(store: Store, root: str) -> None:
    _equal(list(store.files(root)), [], f"the files below {root}, where nothing is")
    _equal(store.is_folder(root), False, f"`is_folder` of {root}, where nothing is")
    for name in NAMES:
        _write(store, f"{root}/{name}", name.encode())
    _equal(list(store.files(root)), sorted(NAMES), "`files`, sorted by code point")
    _check_listing(store, root)
    for name in NAMES:
        _equal(store.read(f"{root}/{name}"), name.encode(), f"`read` of {name}")
        with store.open(f"{root}/{name}") as stream:
            _equal(stream.read(), name.encode(), f"`open` of {name}")
    _equal(store.folders(root), sorted({name.split("/")[0] for name in NAMES if "/" in name}), "`folders`")
    _equal(list(store.files(f"{root}/x")), ["y/z.gz"], "`files` of a folder")
    _equal(list(store.files(f"{root}/a")), ["b"], "`files` of a folder `a`, beside `a-b` and `a.b`")
    _equal((store.is_folder(f"{root}/x"), store.is_folder(f"{root}/x/y/z.gz")), (True, False), "`is_folder`")
    _equal(store.stat(f"{root}/x"), None, "`stat` of a folder")
    store.remove(f"{root}/a/b")
    store.remove(f"{root}/a/b")  # nothing is there any more
    _equal(sorted({*NAMES} - {*store.files(root)}), ["a/b"], "what is gone after `remove`")


def _check_listing(store: Store, root: str) -> None:
    """Compare a listing with `stat` of each file.

    Large and just replaced files are among them.

    By it alone is decided that a file has not changed.
    """
    _write(store, f"{root}/large", _noise(LARGE))
    _write(store, f"{root}/~", b"replaced")
    listed = list(store.listing(root))
    _equal([name for name, _ in listed], sorted([*NAMES, "large"]), "the names of `listing`")
    wrong = {name: stat for name, stat in listed if stat not in (None, store.stat(f"{root}/{name}"))}
    _equal(wrong, {}, "what `listing` gives and is not what `stat` gives")
    store.remove(f"{root}/large")
    _equal([name for name, _ in store.listing(root)], sorted(NAMES), "the names of `listing` after `remove`")
    _write(store, f"{root}/~", b"~")


def _check_ends(store: Store, root: str) -> None:
    for content in (b"", b"ten bytes."):
        _write(store, path := f"{root}/{len(content)}", content)
        for offset in (0, 10, 11):
            expected = content[offset : offset + 5]
            _equal(
                store.read(path, offset, 5), expected, f"`read` of {path} at {offset}: {len(content)} bytes are there"
            )
            pieces = store.pieces(path)
            _equal(pieces.read(offset, 5), expected, f"`pieces` of {path} at {offset}: {len(content)} bytes are there")
            pieces.close()


def _check_writing(store: Store, root: str) -> None:
    path = f"{root}/f/x"
    for data in (b"", b"one", _noise(LARGE)):
        before = store.stat(path)
        writing = store.writing(path)
        for at in range(0, len(data), 1 << 20):
            writing.write(data[at : at + (1 << 20)])
        _equal(store.stat(path), before, "`stat` while a file is written, before `commit`")
        stat = writing.commit()
        writing.abort()  # which does nothing now
        _equal(store.stat(path), stat, "`stat` after `commit`, which returned this")
        _equal(stat.size, len(data), "the size that `commit` returns")
        _equal(_digest(store.read(path)), _digest(data), f"the digest of {len(data):,} bytes that were written")
    for name, size in (("x", 1), ("x", LARGE), ("new", 1), ("new", LARGE)):
        writing = store.writing(f"{root}/f/{name}")
        writing.write(_noise(size))
        writing.abort()
        writing.abort()
    _equal(list(store.files(root)), ["f/x"], "the files after `abort`")
    _equal(store.stat(path), stat, "`stat` of a file that was not replaced, after `abort`")
    _equal(store.leftovers(root, any_owner=True), [], "`leftovers` after `abort`")
    check_readable_store(store, path, data)


def _check_together(store: Store, root: str) -> None:
    names = ["a/x", "a/y", "b/x"]
    _write(store, f"{root}/a/x", b"before")
    _write(store, f"{root}/durable", b"moved")
    writings = [store.writing(f"{root}/{name}") for name in names]
    for name, writing in zip(names, writings, strict=True):
        writing.write(name.encode() * 2)
    stats = [writing.prepare() for writing in writings]
    store.commit_all(writings[:2], [(f"{root}/durable", f"{root}/c/z")])
    writings[2].abort()
    for writing in writings:
        writing.abort()  # which does nothing now
    _equal(store.stat(f"{root}/durable"), None, "`stat` of what `commit_all` moved, where it was")
    _equal(store.read(f"{root}/c/z"), b"moved", "what `commit_all` moved")
    for name, prepared in zip(names[:2], stats, strict=False):
        _equal(store.stat(f"{root}/{name}"), prepared, f"`stat` of {name} after `commit_all`; `prepare` returned this")
        _equal(store.read(f"{root}/{name}"), name.encode() * 2, f"`read` of {name} after `commit_all`")
    _equal(store.leftovers(root, any_owner=True), [], "`leftovers` after `commit_all` and `abort`")


def _check_versions(store: Store, root: str) -> None:
    path = f"{root}/x"
    _equal((store.stat(path), store.age(path)), (None, None), "`stat` and `age` of what is not there")
    first = _write(store, path, b"a" * 1000)
    age = store.age(path)
    assert age is not None, f"{path}: expected `age` to know a file that was just written, got None"
    assert -60 < age < 600, f"{path}: expected `age` to be near 0 of a file that was just written, got {age}"
    changed = any(_write(store, path, b"b" * 1000) != first for _ in range(TICKS))
    assert changed, f"{path}: expected another `Stat` of another content of the same size, got {first} again"
    _raises(DataError, lambda: store.open(path, 0, first).read(), "`open` of the version before")


def _check_moving(store: Store, root: str) -> None:
    _write(store, f"{root}/a/x", b"moved")
    _write(store, f"{root}/b/y", b"replaced")
    _equal(store.volume(f"{root}/a"), store.volume(f"{root}/b"), "`volume` of two folders")
    store.move(f"{root}/a/x", f"{root}/b/y")
    _equal(list(store.files(root)), ["b/y"], "the files after `move`")
    _equal(store.read(f"{root}/b/y"), b"moved", "what was moved")
    missing = f"{root}/none"
    _raises((FileNotFoundError, Unreadable), lambda: store.move(missing, f"{root}/z"), "`move` of what is not there")
    _equal(list(store.files(root)), ["b/y"], "the files after a `move` of what is not there")
    store.remove_empty_folders(f"{root}/a", root)
    _equal(list(store.files(root)), ["b/y"], "the files after `remove_empty_folders`")
    _equal(store.normal(f"{root}/b/../b/"), store.normal(f"{root}/b"), "`normal`")
    _equal(store.absolute(f"{root}/b/"), store.absolute(f"{root}/b"), "`absolute`")


def _check_rivals(store: Store, root: str) -> None:
    for number in range(3):
        path = f"{root}/leases/{number}"
        together = threading.Barrier(RIVALS)

        def create(rival: int, path: str = path, together: threading.Barrier = together) -> bool:
            together.wait()
            return store.create(path, b"%d" % rival)

        with ThreadPoolExecutor(RIVALS) as threads:
            results = [rival for rival, created in enumerate(threads.map(create, range(RIVALS))) if created]
        _equal(len(results), 1, "the number of those who `create` a file at once and do")
        _equal(store.read(path), b"%d" % results[0], "what the one has created")
        _equal(store.create(path, b"later"), False, "`create` of a file that is there")
    store.remove(path)
    _equal(store.create(path, b"again"), True, "`create` of a file that is there no more")


def _write(store: Store, path: str, data: bytes) -> Stat:
    writing = store.writing(path)
    try:
        writing.write(data)
        return writing.commit()
    finally:
        writing.abort()


def _noise(size: int) -> bytes:
    return hashlib.shake_128(b"%d" % size).digest(size)


def _digest(data: object) -> str:
    return hashlib.sha256(data).hexdigest() if isinstance(data, bytes) else repr(data)


def _equal(got: object, expected: object, subject: str) -> None:
    assert got == expected, f"{subject}: expected {expected!r}, got {got!r}"


def _raises(kind: type[Exception] | tuple[type[Exception], ...], function: Callable[[], object], subject: str) -> None:
    kinds = kind if isinstance(kind, tuple) else (kind,)
    with suppress(*kinds):
        got = function()
        raise AssertionError(f"{subject}: expected {' or '.join(kind.__name__ for kind in kinds)}, got {got!r}")
