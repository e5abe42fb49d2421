"""Where things are: listing, globbing, and the places of a dataset."""

import functools
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

from toolkit.errors import ConfigError, DataError, NoDocuments, Unreadable
from toolkit.stores import Stat, is_web, scheme_of, store_of
from toolkit.stores.roots import note_roots

SHARD_SUFFIXES = (".jsonl.gz", ".json.gz", ".jsonl.zst", ".jsonl", ".json")
"""What a shard of documents may end in."""

BOOKKEEPING = ".toolkit"
"""Name of the folders that hold our own records; nothing below one is data."""

TEMPORARY = re.compile(r"^\..+\.tmp$")
"""Names of files that are being written (see `toolkit.streams`)."""


def stat(path: str) -> Stat | None:
    """Size and stamp of a file, None if there is none."""
    return store_of(path).stat(path)


def size_of(path: str) -> int:
    """Stored bytes of a file, 0 if there is none."""
    found = stat(path)
    return found.size if found else 0


def exists(path: str) -> bool:
    return stat(path) is not None


def is_folder(path: str) -> bool:
    """Whether it is a folder; in a bucket, whether something lies below it."""
    return store_of(path).is_folder(path)


def join(*parts: str) -> str:
    return "/".join(part.rstrip("/") if i < len(parts) - 1 else part for i, part in enumerate(parts) if part)


def absolute(path: str) -> str:
    """The path from the root of its store, so that two can be compared."""
    return path.rstrip("/") if scheme_of(path) else os.path.abspath(path)


def unlike_data(path: str) -> str:
    """The path of a record about a file: no two files have the same, and no glob for data matches it.

    Other programs take what a glob matches for data in hidden folders, too.
    """
    return path.replace("=", "=3D").replace(".", "=2E")


def from_unlike_data(name: str) -> str:
    """The file that a record of such a path is about."""
    return name.replace("=2E", ".").replace("=3D", "=")


def check_writable(folder: str, where: str) -> None:
    """Raises ConfigError if a folder cannot be made, or written in: before work is done in vain.

    Args:
        folder: that will be written in; it need not exist.
        where: in the configuration, for the message.
    """
    store_of(folder).check_writable(folder, where)


def remove(path: str) -> None:
    """Deletes a file, or a folder that is empty; nothing if it is not there."""
    store_of(path).remove(path)


def move(source: str, target: str) -> None:
    """A file to another place of the same store, in place of what is there."""
    store_of(target).move(source, target)


def remove_tree(root: str) -> None:
    """Deletes a folder and all below it."""
    store_of(root).remove_tree(root)


def remove_empty_folders(folder: str, root: str) -> None:
    """Deletes the folder and its parents below the root while they are empty."""
    store_of(folder).remove_empty_folders(folder, root)


def list_files(root: str, *, hidden: bool = False) -> Iterator[str]:
    """Relative paths of all files below the root, sorted by code point; symbolic links are followed.

    Args:
        root: a folder; one that does not exist has no files.
        hidden: also what lies in bookkeeping folders and temporary files.
    """
    for relative in store_of(root).files(root):
        folder, _, name = relative.rpartition("/")
        if hidden or not (TEMPORARY.match(name) or BOOKKEEPING in folder.split("/")):
            yield relative


def remove_stale_temporaries(root: str) -> int:
    """Deletes what processes of this machine that are gone have left of files below the root; how many."""
    if scheme_of(root):
        return 0  # whose uploads these are nobody knows there
    found = store_of(root).leftovers(root)
    for leftover in found:
        store_of(root).discard(leftover)
    return len(found)


# --- globs ------------------------------------------------------------------------------------------------------------


def is_glob(pattern: str) -> bool:
    """Whether it may match several files; on the web, which cannot be listed, nothing does."""
    return not is_web(pattern) and any(c in pattern for c in "*?[{")


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
            not_, inside = ("^", pattern[i + 2 : end]) if pattern[i + 1] == "!" else ("", pattern[i + 1 : end])
            ranges = re.findall(r"(.)(?:(-)(.))?", inside, re.DOTALL)
            out.append(f"(?!/)[{not_}{''.join(re.escape(a) + to + re.escape(b) for a, to, b in ranges)}]")
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
    if is_web(pattern):
        return [_on_the_web(pattern)]
    base = fixed_part(pattern)
    below = pattern[len(base) :].lstrip("/") if base else pattern
    if not is_glob(pattern):
        if exists(pattern):
            return [(pattern, below)]
        if is_folder(pattern):
            raise ConfigError(f"{pattern}: expected a file or a glob, got a folder; write {pattern.rstrip('/')}/**")
        raise ConfigError(f"{pattern}: expected a file, got nothing there")
    regex = glob_regex(below)
    show_hidden = any(part.startswith(".") for part in below.split("/"))
    found = [
        (join(base, relative) if base else relative, relative)
        for relative in list_files(base or ".")
        if regex.match(relative) and (show_hidden or not any(p.startswith(".") for p in relative.split("/")))
    ]
    if not found:
        raise ConfigError(f"{pattern}: expected at least one file, got no match")
    _check_names(base, (relative for _, relative in found))
    return found


def _check_names(folder: str, names: Iterable[str]) -> None:
    """Raises ConfigError if a name cannot be written in records, which are UTF-8."""
    for name in names:
        if not name.isascii() and any("\ud800" <= c <= "\udfff" for c in name):
            raise ConfigError(f"{folder}: expected file names in UTF-8, got {os.fsencode(name)!r}; rename the file")


def _on_the_web(url: str) -> tuple[str, str]:
    """A file on the web, and its name without a query. One that the server does not give now is no fault of others."""
    with suppress(Unreadable):
        if not exists(url):
            raise ConfigError(f"{url}: expected a file, got nothing there")
    return url, url.partition("?")[0].rpartition("/")[2]


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
        return [name for name in store_of(self.attributes).folders(self.attributes) if not name.startswith(".")]

    def admits(self, shard: str) -> bool:
        """Whether the globs let a path below the documents root be a shard."""
        if self.include and not any(glob_regex(pattern).match(shard) for pattern in self.include):
            return False
        return not any(glob_regex(pattern).match(shard) for pattern in self.exclude)

    def shards(self) -> list[str]:
        """Relative paths of all shards, sorted.

        Raises:
            NoDocuments: if there are none.
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
        _check_names(self.documents, found)
        if not found:
            what = "no shard that the globs admit" if self.include or self.exclude else "none"
            more = "" if is_folder(self.documents) else " There is no such folder: should it be mounted?"
            raise NoDocuments(f"{self.documents}: expected documents, got {what}; run `toolkit ingest` first?{more}")
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
    found = Dataset(
        _folder(documents or os.path.join(dataset or "", "documents")),
        _folder(attributes or os.path.join(dataset or "", "attributes")),
        include,
        exclude,
        notes,
    )
    note_roots((*([dataset] if dataset else []), found.documents, found.attributes, found.bookkeeping))
    return found


def _folder(path: str) -> str:
    return path.rstrip("/") or "/"


def _globs(value: object, where: str) -> tuple[str, ...]:
    if isinstance(value, str):
        return (value,)
    if isinstance(value, list | tuple) and all(isinstance(v, str) for v in value):
        return tuple(value)
    raise ConfigError(f"{where}: expected a list of globs, got {value!r}")
