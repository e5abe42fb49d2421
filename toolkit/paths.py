"""Where things are: listing, globbing, and the places of a dataset."""

import functools
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from toolkit.errors import ConfigError, DataError

SHARD_SUFFIXES = (".jsonl.gz", ".json.gz", ".jsonl.zst", ".jsonl", ".json")
"""What a shard of documents may end in."""

BOOKKEEPING = ".toolkit"
"""Name of the folders that hold our own records; nothing below one is data."""

TEMPORARY = re.compile(r"^\..+\.tmp$")
"""Names of files that are being written (see `toolkit.streams`)."""


@dataclass(frozen=True, slots=True)
class Stat:
    """What tells quickly that a file has not changed.

    Attributes:
        size: bytes as stored.
        stamp: modification time in ns for a local file (an ETag elsewhere).
    """

    size: int
    stamp: str


def stat(path: str) -> Stat | None:
    """Size and stamp of a file, None if there is none."""
    try:
        found = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    return Stat(found.st_size, f"mtime_ns {found.st_mtime_ns}")


def size_of(path: str) -> int:
    """Stored bytes of a file, 0 if there is none."""
    found = stat(path)
    return found.size if found else 0


def exists(path: str) -> bool:
    return os.path.exists(path)


def join(*parts: str) -> str:
    return "/".join(part.rstrip("/") if i < len(parts) - 1 else part for i, part in enumerate(parts) if part)


def check_writable(folder: str, where: str) -> None:
    """Raises ConfigError if a folder cannot be made, or written in: before work is done in vain.

    Args:
        folder: that will be written in; it need not exist.
        where: in the configuration, for the message.
    """
    existing = os.path.abspath(folder)
    while not os.path.lexists(existing):
        existing = os.path.dirname(existing)
    if not os.path.isdir(existing):
        raise ConfigError(f"{where}: expected a folder, got the file {existing}")
    if not os.access(existing, os.W_OK | os.X_OK) or existing.startswith("/proc"):
        raise ConfigError(f"{where}: expected a folder that may be written in, got {existing}")


def remove(path: str) -> None:
    """Deletes a file, or a folder that is empty; nothing if it is not there."""
    try:
        if os.path.isdir(path) and not os.path.islink(path):
            os.rmdir(path)
        else:
            os.unlink(path)
    except (FileNotFoundError, NotADirectoryError):
        pass


def remove_tree(root: str) -> None:
    """Deletes a folder and all below it."""
    for folder, _, files in os.walk(root, topdown=False):
        for name in files:
            remove(join(folder, name))
        remove(folder)


def remove_empty_folders(folder: str, root: str) -> None:
    """Deletes the folder and its parents below the root while they are empty."""
    while folder.startswith(root.rstrip("/") + "/"):
        try:
            os.rmdir(folder)
        except OSError:
            return
        folder = os.path.dirname(folder)


def list_files(root: str, *, hidden: bool = False) -> Iterator[str]:
    """Relative paths of all files below the root, sorted by code point; symbolic links are followed.

    Args:
        root: a folder; one that does not exist has no files.
        hidden: also what lies in bookkeeping folders and temporary files.
    """
    found = []
    for folder, folders, files in os.walk(root, followlinks=True):
        if not hidden:
            folders[:] = [name for name in folders if name != BOOKKEEPING]
        relative = os.path.relpath(folder, root)
        for name in files:
            if hidden or not TEMPORARY.match(name):
                found.append(name if relative == "." else f"{relative}/{name}")
    return iter(sorted(found))


def temporary_owner() -> str:
    """What marks the temporary files of this process: machine, process id, and when it began (ids are used again)."""
    return _owner(os.getpid())


@functools.lru_cache(1)
def _owner(pid: int) -> str:
    return f"{_machine()}.{pid}-{_began(pid) or 0}"


def remove_stale_temporaries(root: str) -> int:
    """Deletes temporary files left below the root by processes of this machine that are gone; how many."""
    count = 0
    for relative in list_files(root, hidden=True):
        owner = re.match(r"^\..+\.([^.]+)\.(\d+)-(\d+)\.\d+\.tmp$", PurePosixPath(relative).name)
        if owner and owner[1] == _machine() and not _is_running(int(owner[2]), int(owner[3])):
            remove(join(root, relative))
            count += 1
    return count


def _machine() -> str:
    return os.uname().nodename.replace(".", "-")


def _is_running(pid: int, began: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    now = _began(pid)
    return now is None or now == began


def _began(pid: int) -> int | None:
    """When a process began, in the kernel's ticks; 0 for one that has ended, None where that cannot be known."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as stream:
            state, *rest = stream.read().rpartition(")")[2].split()
    except FileNotFoundError:
        return 0 if os.path.isdir("/proc/self") else None
    except OSError:
        return None
    return 0 if state in "ZX" else int(rest[18])


# --- globs ------------------------------------------------------------------------------------------------------------


def is_glob(pattern: str) -> bool:
    return any(c in pattern for c in "*?[{")


def fixed_part(pattern: str) -> str:
    """The folder that all matches of a glob lie in: ``a/b/*/c*.gz`` → ``a/b``; of a plain path its folder."""
    parts = pattern.split("/")
    fixed: list[str] = []
    for part in parts[:-1]:
        if is_glob(part):
            break
        fixed.append(part)
    return "/".join(fixed) or ("/" if pattern.startswith("/") else "")


@functools.lru_cache(maxsize=256)
def glob_regex(pattern: str) -> re.Pattern[str]:
    """A glob as a regular expression over whole paths.

    ``*`` and ``?`` stay within a folder, ``**`` spans any number of folders (also none), ``[ab]`` ``[!a]`` are classes,
    ``{a,b}`` are alternatives.
    """
    out, i, depth = [], 0, 0
    while i < len(pattern):
        c = pattern[i]
        if pattern.startswith("**/", i) and (i == 0 or pattern[i - 1] == "/"):
            out.append("(?:[^/]+/)*")
            i += 3
            continue
        if pattern[i:] == "**" and (i == 0 or pattern[i - 1] == "/"):
            out.append(".*")
            i += 2
            continue
        if c == "*":
            out.append("[^/]*")
        elif c == "?":
            out.append("[^/]")
        elif c == "[" and (end := pattern.find("]", i + 2)) > 0:
            inside = pattern[i + 1 : end].replace("\\", "\\\\").replace("[", "\\[")
            out.append("[" + ("^/" + inside[1:] if inside[0] == "!" else inside) + "]")
            i = end
        elif c == "{" and "}" in pattern[i:]:
            out.append("(?:")
            depth += 1
        elif c == "}" and depth:
            out.append(")")
            depth -= 1
        elif c == "," and depth:
            out.append("|")
        else:
            out.append(re.escape(c))
        i += 1
    try:
        return re.compile("".join(out) + r"\Z", re.DOTALL)
    except re.error as error:
        raise ConfigError(f"{pattern}: expected a glob, got: {error}") from None


def expand(pattern: str) -> list[tuple[str, str]]:
    """The files that a glob (or plain path) matches: ``(path, path below the fixed part)``, sorted.

    Hidden files and folders match only where the pattern itself starts a part with a dot.

    Raises:
        ConfigError: if nothing matches.
    """
    if "://" in pattern:
        raise ConfigError(f"{pattern}: expected a local path; remote inputs are not supported yet")
    base = fixed_part(pattern)
    below = pattern[len(base) :].lstrip("/") if base else pattern
    if not is_glob(pattern):
        if os.path.isdir(pattern):
            raise ConfigError(f"{pattern}: expected a file or a glob, got a folder; write {pattern.rstrip('/')}/**")
        if not os.path.exists(pattern):
            raise ConfigError(f"{pattern}: expected a file, got nothing there")
        return [(pattern, below)]
    regex = glob_regex(below)
    show_hidden = any(part.startswith(".") for part in below.split("/"))
    found = [
        (join(base, relative) if base else relative, relative)
        for relative in list_files(base or ".")
        if regex.match(relative) and (show_hidden or not any(p.startswith(".") for p in relative.split("/")))
    ]
    if not found:
        raise ConfigError(f"{pattern}: expected at least one file, got no match")
    return found


# --- a dataset --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Dataset:
    """The places of a dataset.

    Attributes:
        documents: root of the documents.
        attributes: root of the attribute sets.
        include, exclude: globs over shard paths.
        notes: where our records are, if not where they belong (see `bookkeeping`).
    """

    documents: str
    attributes: str
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    notes: str = ""

    @property
    def bookkeeping(self) -> str:
        """Folder of records and row indexes: ``ROOT/.toolkit`` beside one called ``attributes``, else below that."""
        if self.notes:
            return self.notes
        parent, name = os.path.split(self.attributes)
        return os.path.join(parent if name == "attributes" else self.attributes, BOOKKEEPING)

    def shard_path(self, shard: str) -> str:
        return join(self.documents, shard)

    def attribute_path(self, set_name: str, shard: str) -> str:
        return join(self.attributes, set_name, shard)

    def sets(self) -> list[str]:
        """Names of the attribute sets on disk."""
        try:
            names = os.listdir(self.attributes)
        except (FileNotFoundError, NotADirectoryError):
            return []
        return sorted(n for n in names if not n.startswith(".") and os.path.isdir(join(self.attributes, n)))

    def admits(self, shard: str) -> bool:
        """Whether the globs let a path below the documents root be a shard."""
        if self.include and not any(glob_regex(pattern).match(shard) for pattern in self.include):
            return False
        return not any(glob_regex(pattern).match(shard) for pattern in self.exclude)

    def shards(self) -> list[str]:
        """Relative paths of all shards, sorted.

        Raises:
            ConfigError: if there are no documents.
            DataError: if a file below the root is no shard and no glob excludes it.
        """
        found: list[str] = []
        for relative in list_files(self.documents):
            if not self.admits(relative):
                continue
            if not relative.endswith(SHARD_SUFFIXES):
                raise DataError(
                    f"expected a file ending in {' '.join(SHARD_SUFFIXES)}; move it, or exclude it with "
                    f"`documents: {{path: {self.documents}, exclude: [{relative!r}]}}`",
                    path=join(self.documents, relative),
                )
            found.append(relative)
        if not found:
            what = "no shard that the globs admit" if self.include or self.exclude else "none"
            raise ConfigError(f"{self.documents}: expected documents, got {what}; run `toolkit ingest` first?")
        return found


def strip_suffix(name: str, suffixes: Sequence[str]) -> str:
    """The name without the longest of the suffixes that it ends in."""
    for suffix in sorted(suffixes, key=len, reverse=True):
        if name.endswith(suffix):
            return name[: -len(suffix)]
    return name


def open_dataset(
    dataset: str | None, documents: str | dict[str, object] | None, attributes: str | None, notes: str = ""
) -> Dataset:
    """The dataset that a configuration names.

    Args:
        dataset: ``ROOT`` of ``ROOT/documents`` and ``ROOT/attributes``.
        documents: another root or glob of the documents, or ``{path, include, exclude}``.
        attributes: another root of the attributes.
        notes: another place for our records.
    """
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    if isinstance(documents, dict):
        options = dict(documents)
        path = options.pop("path", None)
        include = _globs(options.pop("include", ()), "documents.include")
        exclude = _globs(options.pop("exclude", ()), "documents.exclude")
        if options or not isinstance(path, str | None):
            raise ConfigError("documents: expected a path or {path, include, exclude}")
        documents = path
    if documents is not None and is_glob(documents):
        base = fixed_part(documents) or "."
        include = (*include, documents[len(base) :].lstrip("/") if base != "." else documents)
        documents = base
    if documents is None and dataset is None:
        raise ConfigError("expected `dataset: ROOT` or `documents: ROOT`, got neither")
    if attributes is None and dataset is None:
        raise ConfigError("expected `attributes: ROOT` beside `documents:`, or `dataset: ROOT`")
    return Dataset(
        _folder(documents or os.path.join(dataset or "", "documents")),
        _folder(attributes or os.path.join(dataset or "", "attributes")),
        include,
        exclude,
        notes,
    )


def _folder(path: str) -> str:
    return path.rstrip("/") or "/"


def _globs(value: object, where: str) -> tuple[str, ...]:
    if isinstance(value, str):
        return (value,)
    if isinstance(value, list | tuple) and all(isinstance(v, str) for v in value):
        return tuple(value)
    raise ConfigError(f"{where}: expected a list of globs, got {value!r}")
