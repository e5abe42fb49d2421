"""Paths, listings of folders, and globs."""

import functools
import os
import re
import threading
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import chain, dropwhile, islice, pairwise, takewhile
from typing import Any, TypeVar, cast

from toolkit import errors
from toolkit.errors import ConfigError, NothingThere, Unreadable
from toolkit.session import current
from toolkit.storage import Stat, store_of
from toolkit.storage.globs import glob_regex
from toolkit.storage.packed_rows import PackedRows
from toolkit.storage.threads import for_each

T = TypeVar("T")

BOOKKEEPING = ".toolkit"
"""Name of the folders that hold our own records; nothing below one is data."""

TEMPORARY = re.compile(r"^\..+\.tmp$")
"""Names of files that are being written (see `toolkit.storage.outputs`)."""


def stat(path: str) -> Stat | None:
    """Return size and stamp of a file; None if there is none. See `listing_cache`."""
    for folder, listing in _blocks().listings.items():
        if path.startswith(folder):
            return listing().stat(path[len(folder) :])
    return store_of(path).stat(path)


def listed_stat(folder: str) -> Callable[[str], Stat | None] | None:
    """Return `stat` of names below a folder; None if the store would need a request for each."""
    if listing := _blocks().listings.get(folder.rstrip("/") + "/"):
        return listing().stat
    store = store_of(folder)
    return (lambda name: store.stat(join(folder, name))) if store.is_local else None


def stat_each(paths: Sequence[str]) -> list[Stat | None]:
    """Return `stat` of files; those from afar are asked for several at a time."""
    return for_each(stat, paths)


PACKED = 512
"""Files of a listing that are packed together."""


class Listing(Mapping[str, Stat | None]):
    """The files below a folder, sorted by name, each with its stat; a folder of millions takes about 20 bytes each.

    Args:
        root: Folder; the store is asked for what its listing does not say.
        listing: Names below it, with what is known of each.
    """

    def __init__(self, root: str, listing: Iterable[tuple[str, Stat | None]]) -> None:
        from isal import isal_zlib  # which few commands need without a listing

        self._firsts, self._count, last = list[str](), 0, ""
        self._blocks: list[bytes] = []
        self._unpack = functools.partial(_unpacked, self._blocks)
        self._recent = functools.lru_cache(16)(self._unpack)
        rest = iter(listing)
        while chunk := [*islice(rest, PACKED)]:
            names = [name for name, _ in chunk]
            if (listed := [last, *names]) != sorted(listed):
                before, after = next(pair for pair in pairwise(listed) if pair[1] < pair[0])
                expected = "expected a store that lists files in the order of code points"
                raise Unreadable(f"{expected}, got {before!r} before {after!r}", path=root)
            unknown = [name for name, stat in chunk if stat is None]
            looked_up = iter(for_each(lambda name: store_of(root).stat(join(root, name)), unknown))
            stats = [stat or next(looked_up) or Stat(-1, "") for _, stat in chunk]
            columns = (*names, *(stat.stamp for stat in stats), *(str(stat.size) for stat in stats))
            self._firsts.append(names[0])
            self._blocks.append(isal_zlib.compress("\0".join(columns).encode(errors="surrogatepass"), 1))
            self._count, last = self._count + len(chunk), names[-1]

    def __getitem__(self, name: str) -> Stat | None:
        return self._files_near(name)[name]

    def stat(self, name: str) -> Stat | None:
        """Return the stat of a file; None if there is none. This is `get`, which makes an error for each such file."""
        return self._files_near(name).get(name)

    def _files_near(self, name: str) -> dict[str, Stat | None]:
        """Return the files of the block of a name."""
        number = bisect_right(self._firsts, name) - 1
        return self._recent(number) if number >= 0 else {}

    def __iter__(self) -> Iterator[str]:
        return chain.from_iterable(map(self._unpack, range(len(self._blocks))))

    def __len__(self) -> int:
        return self._count

    def below(self, folder: str) -> Iterator[tuple[str, Stat | None]]:
        """Yield names and stats of files below a folder with trailing slash."""
        first = max(bisect_right(self._firsts, folder) - 1, 0)
        files = chain.from_iterable(self._unpack(number).items() for number in range(first, len(self._blocks)))
        result = takewhile(lambda file: file[0].startswith(folder), dropwhile(lambda file: file[0] < folder, files))
        return ((name[len(folder) :], stat) for name, stat in result)


def _unpacked(blocks: list[bytes], number: int) -> dict[str, Stat | None]:
    """Return the files of a block. No method, because a cache of one keeps its object until garbage is collected."""
    from isal import isal_zlib

    columns = isal_zlib.decompress(blocks[number]).decode(errors="surrogatepass").split("\0")
    rows = len(columns) // 3
    files = zip(columns[:rows], columns[rows : 2 * rows], map(int, columns[2 * rows :]), strict=True)
    return {name: Stat(size, stamp) if size >= 0 else None for name, stamp, size in files}


class _LazyListing:
    """The listing of a folder, made on first use by any thread."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._listing: Listing | None = None

    def __call__(self) -> Listing:
        if listing := self._listing:  # without the lock, for which threads would wait at each file
            return listing
        with self._lock:
            if self._listing is None:
                self._listing = Listing(self._folder, store_of(self._folder).listing(self._folder))
            return self._listing

    def clear(self) -> None:
        with self._lock:
            self._listing = None


class _Block:
    """A block of `listing_cache`: its listings by folder, and the results of `read_once` by path."""

    def __init__(self, folders: Iterable[str]) -> None:
        self.listings = {folder.rstrip("/") + "/": _LazyListing(folder) for folder in folders}
        self.results: dict[str, Any] = {}


class _Blocks:
    """The open blocks of the threads of a session; they may end in any order.

    Attributes:
        listings: Listings of all blocks, by folder; of two the later one.
    """

    def __init__(self) -> None:
        self.open: list[_Block] = []
        self.listings: dict[str, _LazyListing] = {}
        self.changing, self.reading = threading.Lock(), threading.RLock()

    def change(self, change: Callable[[_Block], None], block: _Block) -> None:
        with self.changing:
            change(block)
            self.listings = {folder: listing for block in self.open for folder, listing in block.listings.items()}


def _blocks() -> _Blocks:
    return current().get_or_make(_Blocks, _Blocks)


@contextmanager
def listing_cache(*folders: str) -> Iterator[None]:
    """Answer `stat` and listings from one listing of each folder.

    Use it in a block that decides from many files and writes none of them; if others write, see `drop_listing`. A store
    that needs no requests, such as the disk, has no listings. `read_once` reads each path once in the block.
    """
    remote = [folder for folder in folders if not store_of(folder).is_local and store_of(folder).can_list]
    blocks, block = _blocks(), _Block(remote)
    blocks.change(blocks.open.append, block)
    try:
        yield
    finally:
        blocks.change(blocks.open.remove, block)


def drop_listing(folder: str) -> None:
    """Drop the cached listings of a folder after a listed file vanished."""
    for key, listing in _blocks().listings.items():
        if f"{folder.rstrip('/')}/".startswith(key):
            listing.clear()


def listed_below(root: str) -> Iterator[tuple[str, Stat | None]] | None:
    """Return the cached files below a folder, sorted; None if no cached listing holds it."""
    prefix = root.rstrip("/") + "/"
    for folder, listing in _blocks().listings.items():
        if prefix.startswith(folder):
            return listing().below(prefix[len(folder) :])
    return None


def read_once(path: str, read: Callable[[str], T]) -> T:
    """Return the result of a function; call it once a path within `listing_cache`."""
    blocks = _blocks()
    results = next((block.results for block in blocks.open), None)
    if results is None:
        return read(path)
    if path in results:
        return cast("T", results[path])
    with blocks.reading:
        if path not in results:
            results[path] = read(path)
        return cast("T", results[path])


def size_of(path: str) -> int:
    """Return the stored bytes of a file; 0 if there is none."""
    result = stat(path)
    return result.size if result else 0


def missing_reason(path: str) -> str:
    """Return the reason for a missing file, for messages: ``no such file`` or ``a folder``."""
    return "a folder" if is_folder(path) else "no such file"


def no_folder(folder: str) -> str:
    """Return the end of a message about a missing local folder; empty if it exists."""
    if not store_of(folder).is_local or is_folder(folder or "."):
        return ""
    return f"; there is no folder {folder}: check the path, or mount the disk"


def not_in(path: str) -> str:
    """Return `no_folder` for the parent of a path."""
    return no_folder(os.path.dirname(path))


def where_looked(path: str) -> str:
    """Return the working directory of a missing relative path, for messages; otherwise nothing."""
    return errors.where_looked(path) if store_of(path).is_local else ""


def exists(path: str) -> bool:
    return stat(path) is not None


def is_folder(path: str) -> bool:
    """Return True for a folder; in a bucket, for a prefix of objects."""
    return store_of(path).is_folder(path)


def join(*parts: str) -> str:
    if len(parts) == 2:  # most calls, several for each shard
        folder, name = parts
        if folder and name:
            return f"{folder.rstrip('/')}/{name}"
    *folders, last = parts
    folders = [folder.rstrip("/") for folder in folders if folder]
    return "/".join([*folders, last] if last else folders)


def parent_of(path: str) -> str:
    """Return the parent folder of a path; empty for a name alone."""
    return path.rstrip("/").rpartition("/")[0]


def absolute(path: str) -> str:
    """Return the path from the root of its store."""
    return store_of(path).absolute(path)


def below(folder: str, relative: str) -> str:
    """Return the path of a file relative to a folder; ``..`` leads out of it by name.

    A file system would follow a folder that is a symbolic link first, and end somewhere else.
    """
    path = join(folder, relative)
    return os.path.normpath(path) if store_of(path).is_local and ".." in relative.split("/") else path


_FAULTY = re.compile(rf"\0|(?:^|/)(?:|\.|\.\.|{re.escape(BOOKKEEPING)})(?:/|\Z)")
"""Matches in paths with a fault."""


def fault_of_name(relative: str) -> str | None:
    """Return the fault of a relative path for our files; None if it has none.

    Such paths come from configurations, from listings of buckets and from lists on the web. None may lead out of its
    folder, be two names of one file, or lie where records are.
    """
    if not _FAULTY.search(relative):
        return None
    parts = relative.split("/")
    if "\0" in relative:
        return f"expected a path without NUL, got {relative!r}"
    if any(part in ("", ".", "..") for part in parts):
        return f"expected a relative path without empty parts, `.` and `..`, got {relative!r}"
    return f"expected a path outside of folders {BOOKKEEPING}, which hold the records of the toolkit, got {relative!r}"


_SET_NAME = re.compile(r"[A-Za-z0-9_-]*[A-Za-z0-9][A-Za-z0-9_-]*")


def is_set_name(name: str) -> bool:
    """Return True if a set may have this name: letters, digits, ``-`` and ``_``."""
    return _SET_NAME.fullmatch(name) is not None


def escape_path(path: str) -> str:
    """Return the path of a record about a file: no two files have the same, and no glob for data matches it.

    Other programs take what a glob matches for data in hidden folders, too.
    """
    return path.replace("=", "=3D").replace(".", "=2E")


def check_writable(folder: str, where: str) -> None:
    """Raise ConfigError if a folder cannot be made, or written in: before work is done in vain.

    Args:
        folder: Folder that will be written in; it need not exist.
        where: Place in the configuration, for the message.
    """
    store_of(folder).check_writable(folder, where)


def remove(path: str) -> None:
    """Delete a file, or an empty folder; do nothing if it is missing."""
    store_of(path).remove(path)


def move(source: str, target: str) -> None:
    """Move a file within its store; replace the target."""
    store_of(target).move(source, target)


def remove_tree(root: str) -> None:
    """Delete a folder and all below it."""
    store_of(root).remove_tree(root)


def remove_empty_folders(folder: str, root: str) -> None:
    """Delete a folder and its parents below the root, if empty."""
    store_of(folder).remove_empty_folders(folder, root)


def remove_with_folders(path: str, root: str) -> None:
    """Delete a file, and the folders below the root left empty."""
    remove(path)
    remove_empty_folders(parent_of(path), root)


def list_files(root: str, *, hidden: bool = False) -> Iterator[str]:
    """Return the relative paths of all files below the root, sorted. Symbolic links are followed.

    In a block of `listing_cache` the names are those of its listing.

    Args:
        root: a folder; one that does not exist has no files.
        hidden: also what lies in bookkeeping folders and temporary files.
    """
    listed = listed_below(root)
    names = store_of(root).files(root) if listed is None else (name for name, _ in listed)
    return (name for name in names if hidden or is_data(name))


def list_stats(root: str, admits: Callable[[str], object]) -> Listing:
    """Return `list_files`, each with its `stat`: by a listing alone where the store can say it so.

    Args:
        root: a folder.
        admits: says of a relative path whether it matters.
    """
    files = listed_below(root) or store_of(root).listing(root)
    return Listing(root, (file for file in files if is_data(file[0]) and admits(file[0])))


def is_data(relative: str) -> bool:
    if not relative.startswith(".") and "/." not in relative:
        return True
    folder, _, name = relative.rpartition("/")
    return not (TEMPORARY.match(name) or BOOKKEEPING in folder.split("/"))


def remove_stale_temporaries(root: str) -> int:
    """Delete the leftovers of ended processes below the root; return their number."""
    leftovers = store_of(root).leftovers(root)
    for leftover in leftovers:
        store_of(root).discard(leftover)
    return len(leftovers)


# --- globs ------------------------------------------------------------------------------------------------------------


def is_glob(pattern: str) -> bool:
    """Return True if a pattern may match several files; never in a store without listings."""
    return any(c in pattern for c in "*?[{") and store_of(pattern).can_list


def fixed_part(pattern: str) -> str:
    """Return the folder of all matches of a glob: ``a/b/*/c*.gz`` → ``a/b``. Of a plain path, return its folder."""
    folders = takewhile(lambda part: not is_glob(part), pattern.split("/")[:-1])
    return "/".join(folders) or ("/" if pattern.startswith("/") else "")


def glob_folders(pattern: str) -> list[str]:
    """Return the folders matched by a glob, sorted part by part. Hidden ones need a dot in it, as with `expand`."""
    results = [""]
    for i, part in enumerate(pattern.split("/")):
        if not is_glob(part):
            results = [f"{above}/{part}" if i else part for above in results]
            continue
        regex = glob_regex(part)
        results = [
            f"{above}/{name}" if i else name
            for above in results
            for name in sorted(store_of(above).folders(above if i else "."))
            if regex.match(name) and (part.startswith(".") or not name.startswith("."))
        ]
    return [path for path in results if is_folder(path)]


def expand(pattern: str) -> list[tuple[str, str]]:
    """Return the files matched by a glob or path: ``(path, path below the fixed part)``, sorted.

    Hidden files and folders match only where the pattern itself starts a part with a dot.

    Raises:
        NothingThere: if nothing matches.
    """
    return [(path, relative) for path, relative, _ in expand_listed(pattern)]


def expand_listed(pattern: str) -> Sequence[tuple[str, str, Stat | None]]:
    """Return `expand`, each file with its `stat`; None where a store cannot be listed, and is not asked."""
    if not store_of(pattern).can_list:
        with suppress(Unreadable):  # a file that the server does not give now fails by itself
            if not exists(pattern):
                raise NothingThere(f"{pattern}: expected a file, got nothing there")
        return [(pattern, store_of(pattern).name_of(pattern).rpartition("/")[2], None)]
    base = fixed_part(pattern)
    below = pattern[len(base) :].lstrip("/") if base else pattern
    if not is_glob(pattern):
        if result := stat(pattern):
            return [(pattern, below, result)]
        if is_folder(pattern):
            raise ConfigError(f"{pattern}: expected a file or a glob, got a folder; write {pattern.rstrip('/')}/**")
        raise NothingThere(f"{pattern}: expected a file, got nothing there{no_folder(base)}{where_looked(pattern)}")
    regex = glob_regex(below)
    show_hidden = is_hidden(below)

    def matches(relative: str) -> bool:
        return bool(regex.match(relative)) and (show_hidden or not is_hidden(relative))

    stats = list_stats(base or ".", matches)
    if not stats:
        raise NothingThere(
            f"{pattern}: expected at least one file, got no match{no_folder(base)}{where_looked(pattern)}"
        )
    check_names(base, stats)
    files = ((join(base, relative), relative, stat or Stat(0, "")) for relative, stat in stats.below(""))
    return PackedRows(tuple[str, str, Stat | None], files)


def is_hidden(path: str) -> bool:
    """Return True if a part of a path begins with a dot."""
    return any(part.startswith(".") for part in path.split("/"))


def check_names(folder: str, names: Iterable[str]) -> None:
    """Raise ConfigError for a name outside of UTF-8, the encoding of records."""
    for name in names:
        if not name.isascii() and any("\ud800" <= c <= "\udfff" for c in name):
            raise ConfigError(f"{folder}: expected file names in UTF-8, got {os.fsencode(name)!r}; rename the file")


def strip_suffix(name: str, suffixes: Sequence[str]) -> str:
    """Return the name without the longest matching suffix."""
    return name.removesuffix(max(filter(name.endswith, suffixes), key=len, default=""))


def work_folder(output: str) -> str:
    """Return the folder of unpublished files and records of a mix."""
    return join(output, BOOKKEEPING)
