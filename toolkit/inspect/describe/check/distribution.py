"""Checks of the files of a Croissant document: those that it lists, or that its globs match, or that are there."""

import posixpath
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import unquote

from toolkit.data.in_place import SUFFIX
from toolkit.errors import amount
from toolkit.inspect import targets
from toolkit.inspect.describe.about import listed
from toolkit.inspect.describe.check.nodes import (
    FieldNode,
    Node,
    all_fields,
    fields_of,
    is_ours,
    kind_of,
    nodes,
    one_group,
)
from toolkit.inspect.describe.croissant.jsonld import path_part
from toolkit.inspect.describe.facts.splits import MEDIA_TYPES, matches, matching, media_type
from toolkit.inspect.validate.one_file import is_rejected
from toolkit.mix.settings import REJECTED
from toolkit.storage.paths import is_folder, join, list_files, parent_of
from toolkit.text.languages.labels import code_of, tag_of

_UNITS = {"": 0, "B": 0, "K": 1, "M": 2, "G": 3, "T": 4}


_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*(?:([KMGT]?)i?B?|bytes)", re.IGNORECASE)


_MIXED = media_type("")


_DIGITS = {"sha256": 64, "md5": 32}


@dataclass
class FoundFiles:
    """The files that are listed, and those that are there.

    Attributes:
        folder: of the Croissant file; all paths are below it.
        ours: whether `toolkit croissant` wrote the file, so that all its keys are known.
        there: all files.
        listed: FileObjects by path.
        sets: paths that each FileSet matches, by its id.
    """

    folder: str
    ours: bool
    live: bool
    there: list[str]
    listed: dict[str, Node] = field(default_factory=dict)
    sets: dict[str, list[str]] = field(default_factory=dict)


@dataclass(frozen=True)
class Listing:
    """A record set with rows of its own that list the values of a field of other rows.

    Attributes:
        rows: documents by value, where they are counted.
        field: that has the values.
        pattern: that reads the values from paths; None where they are in a column.
    """

    id: str
    rows: dict[str, int | None]
    field: FieldNode
    pattern: re.Pattern[str] | None

    @property
    def column(self) -> str:
        """Return the column that has the values; empty where they are read from paths."""
        return "" if self.pattern else str(self.field.extract.get("column", ""))


_FIELDS = {"languages": ("language", "path_language"), "labels": ("label", "path_label"), "splits": ("split",)}
"""Names of the fields whose values a record set of ours lists."""


def listings(document: Node) -> Iterator[Listing]:
    """Yield those of `toolkit croissant`: of languages or labels, read from paths, and of splits, in a column."""
    records = nodes(document, "recordSet")
    fields = [each for record in records if "data" not in record for each in fields_of(record)]
    for record in records:
        id_, rows = str(record.get("@id")), nodes(record, "data")
        key = next((str(each.get("@id")) for each in nodes(record, "key")), "")
        if not rows or not key:
            continue
        named = {str(row.get(key, row.get(key.rpartition("/")[2]))): row.get(f"{id_}/documents") for row in rows}
        for each in fields:
            if each.parent or str(each.node.get("name")) not in _FIELDS.get(id_, ()) or not each.file_set:
                continue
            patterns = [one_group(text) for text in each.transforms("regex")[:1]] if each.path_property else []
            if any(patterns) or (id_ == "splits" and each.extract.get("column")):
                yield Listing(id_, named, each, next(iter(patterns), None))
                break


def faults(
    document: Node, found: FoundFiles, counts: Mapping[str, int], values: Mapping[str, Counter[str]]
) -> Iterator[str]:
    """Yield labels that no file has, or that are not listed, and numbers that are not those of the files.

    Args:
        document: of the Croissant file.
        found: its files.
        counts: rows by path, as far as they were counted.
        values: of the columns of listings, by path, likewise.
    """
    for listing in listings(document) if not found.live else ():
        paths = found.sets.get(listing.field.file_set)
        if paths is None or (not listing.pattern and not values.keys() >= set(paths)):
            continue  # the files are not here, or could not be read
        there: dict[str, int | None] = {}
        for path in paths:
            for label, number in _of_file(listing, path, counts, values):
                before = there.get(label, 0)
                there[label] = None if before is None or number is None else before + number
        for label, number in listing.rows.items():
            if label not in there:
                if number != 0:
                    yield f"{listing.id}: expected what there are files of, got {label!r}"
            elif number is not None and there[label] not in (None, number):
                wanted = amount(there[label] or 0, "document")
                yield f"{listing.id}: expected {wanted} of {label!r}, as many as rows, got {number}"
        for label in there.keys() - listing.rows.keys():
            yield f"{listing.id}: expected {label!r}, which files have, among its data, got none"


def _of_file(
    listing: Listing, path: str, counts: Mapping[str, int], values: Mapping[str, Counter[str]]
) -> Iterator[tuple[str, int | None]]:
    """Yield the labels of a file with their documents, None where these were not counted."""
    if listing.pattern is None:
        yield from values[path].items()
    elif match := listing.pattern.match(path_part(path, listing.field.path_property)):
        yield match[1], counts.get(path)


def language_faults(document: Node) -> Iterator[str]:
    """Yield the languages of a dataset that none of its labels is, and the labels that are none of its languages."""
    given = {str(each): _language(str(each)) or str(each) for each in listed(document.get("inLanguage"))}
    rows = next((listing.rows for listing in listings(document) if listing.id == "languages"), {})
    labels = {label: language for label in rows if (language := _language(label))}
    if not given or not labels:
        return
    for language, code in given.items():
        if code not in labels.values():
            yield f"expected languages of its labels as inLanguage, got {language!r}"
    for label, code in labels.items():
        if code not in given.values():
            yield f"expected the language of {label!r}, a label of its files, as inLanguage, too, got none"


def _language(label: str) -> str:
    """Return the language of a label without script and region; for private use its tag; empty for other labels."""
    tag = tag_of(label) or ""
    return code_of(tag) or tag


def path_faults(document: Node, found: FoundFiles) -> Iterator[str]:
    """Yield expressions over paths that do not match them."""
    for each in all_fields(document):
        names = [path_part(path, each.path_property) for path in found.sets.get(each.file_set, ())]
        for text in each.transforms("regex") if each.path_property else ():
            pattern = one_group(text)
            missed = [name for name in names if pattern and not pattern.match(name)]
            if missed and (found.ours or len(missed) == len(names)):
                yield f"{each.id}: expected a regular expression that matches {missed[0]}, got {text!r}"


def read(path: str, document: Node) -> tuple[FoundFiles, list[str]]:
    """Return the files of a document, and what is wrong with the nodes that list them.

    Args:
        path: of the Croissant file.
        document: its content.
    """
    folder = parent_of(path) or "."
    there = sorted(list_files(folder, hidden=True)) if is_folder(folder) else []
    found = FoundFiles(folder, is_ours(document), document.get("isLiveDataset") is True, there)
    faults: list[str] = []
    known, files = set(there), nodes(document, "distribution")
    for node in files:
        is_object = kind_of(node) == "FileObject"
        if not is_object and node.get("containedIn"):
            continue
        if not isinstance(node.get("encodingFormat"), str | list):
            faults.append(f"{node.get('@id')}: expected encodingFormat, got {node.get('encodingFormat')!r}")
        faults += (_add_object if is_object else _add_set)(found, node, known)
    if not found.live:  # data that grow have files that nothing lists
        faults += _unlisted(found)
        faults += _unmatched(found, files) if found.ours else ()
    return found, faults


def bytes_of(node: Node) -> int | None:
    """Return the size that a FileObject states; None if it is not stated in bytes."""
    found = _SIZE.fullmatch(str(node.get("contentSize", "")).strip())
    exact = found and not _UNITS[(found[2] or "").upper()] and "." not in found[1]
    return int(found[1]) if found and exact else None


def _add_object(found: FoundFiles, node: Node, known: set[str]) -> Iterator[str]:
    id_, url = node.get("@id"), node.get("contentUrl")
    if not isinstance(url, str) or not url:
        if not node.get("containedIn"):
            yield f"{id_}: expected contentUrl, got {url!r}"
        return
    if re.match(r"[a-z][a-z0-9+.-]*://", url) or node.get("containedIn"):
        return
    path = unquote(url) if unquote(url) in known else url  # be it quoted as URLs are or not
    if posixpath.isabs(path) or posixpath.normpath(path).split("/")[0] == "..":
        yield f"{id_}: expected a file below the folder of the Croissant file, got {url!r}"
        return
    if path in found.listed:
        yield f"{id_}: expected each file once, got {url!r} again"
    found.listed[path] = node
    if path not in known:
        yield f"{id_}: expected the file {url}, got none there"
    for name, length in _DIGITS.items():
        if name in node and not re.fullmatch(rf"[0-9a-f]{{{length}}}", str(node[name])):
            yield f"{id_}: expected {name} of {length} hexadecimal digits in lower case, got {node[name]!r:.80}"
    if not found.live and not any(map(node.get, _DIGITS)):
        yield f"{id_}: expected sha256, because the dataset is not live, got none"
    yield from _size_faults(found, node)
    kind = media_type(path)
    if found.ours and kind in MEDIA_TYPES.values() and node.get("encodingFormat") != kind:
        yield f"{id_}: expected encodingFormat {kind}, got {node.get('encodingFormat')!r}"


def _size_faults(found: FoundFiles, node: Node) -> Iterator[str]:
    id_, size = node.get("@id"), node.get("contentSize")
    if found.ours and not re.fullmatch(r"\d+ B", str(size)) and not (found.live and size is None):
        yield f"{id_}: expected contentSize in bytes (such as 1128 B), got {size!r}"
    elif size is not None and not _SIZE.fullmatch(str(size).strip()):
        yield f"{id_}: expected contentSize as a number of bytes, or with a unit, got {size!r}"


def _add_set(found: FoundFiles, node: Node, known: set[str]) -> Iterator[str]:
    id_, globs = str(node.get("@id")), [str(glob) for glob in listed(node.get("includes"))]
    for glob in globs or [""]:
        readings = (glob, glob.replace("**/", ""))  # `**/` may or may not be no folder at all
        if glob not in known and not any(matches(path, each) for path in found.there for each in readings):
            yield f"{id_}: expected files that match {glob!r}, got none"
    found.sets[id_] = matching(found.there, globs)


# --- what is there ----------------------------------------------------------------------------------------------------


def _unlisted(found: FoundFiles) -> Iterator[str]:
    """Yield files that the globs of a set match, and that are not listed."""
    for id_, paths in found.sets.items():
        if found.listed and (found.ours or any(path in found.listed for path in paths)):
            for path in paths:
                if path not in found.listed:
                    yield f"{id_}: expected only files that are listed, its globs match {path}, too"


def _unmatched(found: FoundFiles, files: Sequence[Node]) -> Iterator[str]:
    """Yield files that are not in just one set, sets of another format than their files, and what else is missing."""
    sets: dict[str, list[str]] = {}
    for id_, paths in found.sets.items():
        for path in paths:
            sets.setdefault(path, []).append(id_)
    formats = {str(node.get("@id")): node.get("encodingFormat") for node in files}
    wrong: dict[str, str] = {}  # by set
    for path, node in found.listed.items():
        format_, id_, by = node.get("encodingFormat"), str(node.get("@id")), sets.get(path, [])
        if len(by) > 1:
            yield f"{id_}: expected one FileSet that matches it, got {' and '.join(by)}"
        if not by and not targets.is_checksum_file(path):
            yield f"{id_}: expected a FileSet that matches it, got none"
        if by and formats[by[0]] not in (format_, _MIXED):
            expected = f"{by[0]}: expected encodingFormat {format_}, as that of {path}, got {formats[by[0]]}"
            wrong.setdefault(by[0], expected)
    yield from wrong.values()
    for path in _published(found):
        if path not in found.listed:
            yield f"expected {path} among the files, got none"
    documents = {path.partition("/")[2] for path in found.sets.get("documents-files", ())}
    for id_, paths in found.sets.items():
        for path in paths if id_.startswith("attributes-") else ():
            shard = path.split("/", 2)[-1]
            if not documents & {shard, shard.removesuffix(SUFFIX)}:  # the latter is a file of others, read in place
                yield f"{id_}: expected the documents of {path} among the files, got no documents/{shard}"


def _published(found: FoundFiles) -> list[str]:
    """Return the data files of an output: those of its manifest, and those that lie beside the listed ones."""
    target = targets.target_of(found.folder)
    if target is None or target.kind not in ("output", "release"):
        return []
    parts = {part.path: part.label for part in target.manifest.parts} if target.manifest else {}
    suffixes = tuple({_suffix(path) for path in found.sets.get("documents-files", ())})
    others = [
        path
        for path in targets.data_files(found.folder)
        if path not in found.listed and path not in parts and path.endswith(suffixes)
        if not is_rejected(join(found.folder, path))
    ]
    return [*(path for path, label in parts.items() if label != REJECTED and not path.startswith("../")), *others]


def _suffix(path: str) -> str:
    return "." + posixpath.basename(path).partition(".")[2]
