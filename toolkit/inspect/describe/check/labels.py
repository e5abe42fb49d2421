"""Checks of what a document reads from paths, and of what it lists of it: labels with their documents, and splits."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from toolkit.errors import amount
from toolkit.inspect.describe.about import listed
from toolkit.inspect.describe.check.distribution import FoundFiles
from toolkit.inspect.describe.check.nodes import FieldNode, Node, all_fields, fields_of, nodes, one_group
from toolkit.inspect.describe.croissant.jsonld import path_part
from toolkit.text.languages.labels import code_of, tag_of


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
