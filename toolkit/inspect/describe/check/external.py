"""Checks of the files of an external Croissant document, as far as they are here."""

import hashlib
import posixpath
import re
from collections.abc import Iterator
from urllib.parse import unquote

from toolkit.errors import ToolkitError
from toolkit.inspect.describe.about import listed
from toolkit.inspect.describe.check.nodes import Node, kind_of, nodes
from toolkit.inspect.describe.facts.splits import matching
from toolkit.inspect.findings import Finding, Severity
from toolkit.storage.paths import exists, is_folder, join, list_files, size_of
from toolkit.storage.reading import stored_digest
from toolkit.storage.threads import for_each

REQUIRED = ("name", "description", "license", "url", "creator", "datePublished")
"""Properties that Croissant requires, and many descriptions lack; mlcroissant reads those, too."""

_BYTES = re.compile(r"(\d+)\s*(?:B|bytes)?", re.IGNORECASE)


def check(path: str, document: Node, first: int | None, *, data: bool) -> tuple[list[Finding], set[str]]:
    """Return the findings about the files of a description, and the ids of the files that can be read.

    Args:
        path: Path of the document.
        document: Its content.
        first: Rows that are read; with a number, no checksums are computed.
        data: Whether files that are not here are faults, and files of the web may be read.
    """
    missing: Severity = "specification" if data else "advice"
    findings = [
        Finding(f"{path}: expected {name}, which Croissant requires, got none", "advice")
        for name in REQUIRED
        if not document.get(name)
    ]
    folder, present, files = path.rpartition("/")[0] or ".", set[str](), list[tuple[Node, str]]()
    for node in nodes(document, "distribution"):
        id_, url = str(node.get("@id")), node.get("contentUrl")
        if node.get("containedIn"):  # read where what it is in can be
            present.add(id_)
        elif kind_of(node) == "FileSet":
            globs = [str(glob) for glob in listed(node.get("includes"))]
            there = list(list_files(folder, hidden=True)) if globs and is_folder(folder) else []
            if matching(there, globs):
                present.add(id_)
            elif globs:
                wanted = " or ".join(map(repr, globs))
                findings.append(Finding(f"{path}: {id_}: expected files that match {wanted}, got none", missing))
        elif isinstance(url, str) and re.match(r"[a-z][a-z0-9+.-]*://", url):
            present |= {id_} if data else set()
        elif isinstance(url, str) and url:
            if posixpath.isabs(url) or posixpath.normpath(url).split("/")[0] == "..":
                message = f"{path}: {id_}: expected a file below the folder of the Croissant file, got {url!r}"
                findings.append(Finding(message))
                continue
            stored = next((each for each in (join(folder, url), join(folder, unquote(url))) if exists(each)), "")
            if stored:
                present.add(id_)
                files.append((node, stored))
            else:
                findings.append(Finding(f"{path}: {id_}: expected the file {url}, got none there", missing))
    for faults in for_each(lambda file: list(_faults(*file, digests=first is None)), files):
        findings += map(Finding, faults)
    return findings, present


def bytes_of(node: Node) -> int | None:
    """Return the size that a file states; None if it is not stated in bytes."""
    found = _BYTES.fullmatch(str(node.get("contentSize", "")).strip())
    return int(found[1]) if found else None


def _faults(node: Node, path: str, *, digests: bool) -> Iterator[str]:
    """Yield the differences of a file from the size and the checksums that are stated."""
    size = bytes_of(node)
    if size is not None and size != (got := size_of(path)):
        yield f"{path}: expected {size} bytes by the Croissant file, got {got}"
        return
    for name in ("sha256", "md5") if digests else ():
        try:
            if node.get(name) and (digest := stored_digest(path, hashlib.new(name))) != node[name]:
                yield f"{path}: expected {name} {node[name]} by the Croissant file, got {digest}"
        except ToolkitError as error:
            yield str(error)
