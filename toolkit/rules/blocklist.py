"""Blocklists: files of documents, hosts and URLs that are to go (takedown requests, evaluation sets, URL categories).

One entry a line; blank lines, and those that begin with ``#``, are none. An entry is

    {"source": …, "id": …, …}    a JSON object, such as a whole document: this document; without `source` any of the id
    SOURCE<TAB>ID                this document
    ID                           any document of the id
    HOST                         all documents from the host, and from hosts below it
    URL                          the documents of the URL: without scheme, user, default port, fragment and a last `/`,
                                 the host in lower case

Memory: the entries as they are, and 12 bytes for each way that one can match.
"""

import codecs
import re
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal

import msgspec
import xxhash

from toolkit.data import document_fields, documents, urls
from toolkit.errors import DataError
from toolkit.storage.reading import Lines

Entries = Literal["any", "ids", "hosts", "urls"]
"""The kinds of lines in a list; ``any``: each is what it looks like."""

MAX_ENTRY = 100_000_000

SHOWN = 200
"""Characters of an entry that are shown: it may be a whole document."""

_HOST = re.compile(r"[\w-]+(\.[\w-]+)*\.[^\W\d_][\w-]*\.?")


class _Listed(msgspec.Struct):
    id: str
    source: str | None = None


class BlocklistEntries:
    """The entries of some files, found by document.

    Args:
        files: Paths of files, gzipped, zstd or plain.
        entries: Kind of all lines; ``any``: each has the kind of its form: an id, a host or a URL.

    Attributes:
        needs_url: True if the URL of documents has a say.

    Raises:
        DataError: if a line is none of that.
    """

    def __init__(self, files: Iterable[str], entries: Entries = "any") -> None:
        self.needs_url = False
        self._files: list[tuple[str, int]] = []
        self._lines = array("I")
        self._offsets = array("Q", [0])
        text = bytearray()
        keys: list[tuple[int, int]] = []
        for path in files:
            self._files.append((path, len(self._lines)))
            with Lines(path, MAX_ENTRY, fixed=True) as lines:
                for line in lines:
                    if lines.number == 1:
                        line = line.removeprefix(codecs.BOM_UTF8)
                    entry = line.strip()
                    if not entry or entry.startswith(b"#"):
                        continue
                    for key in _keys_of(entry, entries, path, lines.number):
                        self.needs_url = self.needs_url or key[0] in "hu"
                        keys.append((_hash(key), len(self._lines)))
                    text += entry
                    self._lines.append(lines.number)
                    self._offsets.append(len(text))
        self._entries = entries
        self._text = bytes(text)
        keys.sort()
        self._hashes = array("Q", (item for item, _ in keys))
        self._owners = array("I", (owner for _, owner in keys))

    def __len__(self) -> int:
        return len(self._lines)

    def find(self, id: str, source: str, url: str | None) -> list[int]:
        """Return the numbers of the entries of a document."""
        keys = [f"i{id}", f"d{source}\t{id}"]
        if url and self.needs_url:
            keys += _keys_of_url(url)
        results: list[int] = []
        for key in keys:
            hashed = _hash(key)
            at = bisect_left(self._hashes, hashed)
            while at < len(self._hashes) and self._hashes[at] == hashed:
                if key in _keys_of(self._entry(self._owners[at]), self._entries):  # 64 bits may be those of another
                    results.append(self._owners[at])
                at += 1
        return results

    def show(self, number: int) -> str:
        """Return an entry with its place: ``file:line: entry``."""
        path = next(path for path, first in reversed(self._files) if first <= number)
        entry = self._entry(number).decode(errors="replace")
        return f"{path}:{self._lines[number]}: {entry if len(entry) <= SHOWN else entry[:SHOWN] + '…'}"

    def without(self, matched: Iterable[int]) -> Iterator[int]:
        """Return the numbers of all other entries."""
        entries = set(matched)
        return (number for number in range(len(self)) if number not in entries)

    def _entry(self, number: int) -> bytes:
        return self._text[self._offsets[number] : self._offsets[number + 1]]


def _hash(key: str) -> int:
    return xxhash.xxh3_64_intdigest(key.encode())


def _keys_of(entry: bytes, entries: Entries, path: str = "", number: int = 0) -> Sequence[str]:
    """Return the keys of an entry. They are ``i`` and an id, ``d`` source and id, ``h`` and a host, ``u`` and a URL."""
    if entry.startswith(b"{"):
        try:
            listed = msgspec.json.decode(entry, type=_Listed)
        except documents.BAD_ROW as error:
            raise DataError(documents.explain_bad_row(entry, error), path=path, line=number) from None
        return (f"i{listed.id}" if listed.source is None else f"d{listed.source}\t{listed.id}",)
    try:
        text = entry.decode()
    except UnicodeDecodeError as error:
        raise DataError(f"expected UTF-8, got: {error}", path=path, line=number) from None
    if "\t" in text:
        return (f"d{text}",)
    keys = [f"i{text}"] if entries in ("any", "ids") else []
    text = urls.bare_url(text)
    if entries == "hosts" or (entries == "any" and _HOST.fullmatch(text)):
        keys.append(f"h{urls.host_of(text)}")
    if entries == "urls" or (entries == "any" and urls.has_scheme(text)):
        keys.append(f"u{_normal(text)}")
    return keys


def _keys_of_url(url: str) -> Iterator[str]:
    yield f"u{_normal(url)}"
    host = urls.host_of(url)
    while host:
        yield f"h{host}"
        host = host.partition(".")[2]


def _normal(url: str) -> str:
    try:
        parts = urls.split_url(url)
        port = f":{parts.port}" if parts.port not in (None, 80, 443) else ""
    except ValueError:
        return url
    query = f"?{parts.query}" if parts.query else ""
    return f"{urls.host_of(url)}{port}{parts.path.rstrip('/')}{query}"


class Watch:
    """Tells if a document is on a blocklist; notes the entries that documents matched.

    Args:
        files: Files of the list.
        entries: Kind of its lines.
        url: Dotted path of the URL of documents; empty for the usual one.
        cleared: True if documents without text match, where entries are of URLs or hosts: a takedown has cleared them.

    Attributes:
        list: Entries.
        files: Files.
        matched: Numbers of the entries that documents matched.
    """

    def __init__(self, files: Iterable[str], entries: Entries, url: str, *, cleared: bool = False) -> None:
        self.cleared = cleared
        self.files = tuple(files)
        self.list = BlocklistEntries(self.files, entries)
        self.matched: set[int] = set()
        self._url = url
        self._last: tuple[Any, list[int]] = (None, [])

    def start_over(self) -> None:
        """Forget all matches."""
        self.matched.clear()
        self._last = (None, [])

    def look(self, document: Any) -> list[int]:
        """Return the numbers of the entries of a document; count them."""
        if self._last[0] is not document:
            if document.source is None:
                raise DataError(
                    "expected a document with a source, because entries of blocklists can name sources, got one without"
                )
            root, _, path = self._url.partition(".")
            name, url = path.partition(".")[0], None
            if self.list.needs_url and root == document_fields.DOCUMENT:
                url = urls.url_of({name: document.field(name)}, path)
            elif self.list.needs_url and self._url:
                url = urls.url_of({"metadata": document.metadata}, self._url)
            elif self.list.needs_url:
                url = urls.url_of_document(document)
            results = self.list.find(document.id, document.source, url)
            self.matched.update(results)
            self._last = (document, results)
        return self._last[1]

    def __call__(self, document: Any) -> bool:
        return bool(self.look(document)) or (self.cleared and self.list.needs_url and not document.text)

    def entries_of(self, document: Any) -> list[str]:
        """Return the entries of a document, with their places."""
        return [self.list.show(number) for number in self.look(document)]
