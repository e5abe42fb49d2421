"""What a Croissant file reads from paths, and what it lists of it: labels with their documents, splits."""

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from toolkit.inspect.describe.about import listed
from toolkit.inspect.describe.check.distribution import Distribution
from toolkit.inspect.describe.check.structure import compiled, fields_of, nodes, transforms
from toolkit.text.languages.labels import code_of, tag_of


@dataclass(frozen=True)
class Listing:
    """A record set with rows of its own that list what a field of other rows has.

    Attributes:
        rows: documents by label, where they are counted.
        file_set: of the rows that have the field.
        pattern: that reads it from the path; else it is in the column.
        by_name: whether it is read from the last part of the path.
    """

    id: str
    rows: dict[str, int | None]
    file_set: str
    pattern: re.Pattern[str] | None
    column: str
    by_name: bool = False


_FIELDS = {"languages": ("language", "path_language"), "labels": ("label", "path_label"), "splits": ("split",)}
"""Names of the fields that have what a record set of ours lists."""


def listings(document: dict[str, Any]) -> Iterator[Listing]:
    """Those of `toolkit croissant`: languages or labels, which are read from paths, and splits, which a column has."""
    records = nodes(document, "recordSet")
    for record in records:
        id_, rows = str(record.get("@id")), nodes(record, "data")
        key = next((str(each.get("@id")) for each in nodes(record, "key")), "")
        for source in _sources(records, _FIELDS.get(id_, ())) if rows and key else ():
            pattern = next((compiled(text) for text in transforms(source, "regex")), None)
            column = str(source["extract"].get("column", ""))
            what = source["extract"].get("fileProperty")
            if (column and id_ == "splits") or (pattern and what in ("fullpath", "filename")):
                yield Listing(
                    id=id_,
                    rows={
                        str(row.get(key, row.get(key.rpartition("/")[2]))): row.get(f"{id_}/documents") for row in rows
                    },
                    file_set=str(source["fileSet"].get("@id")),
                    pattern=pattern,
                    column=column,
                    by_name=what == "filename",
                )
                break


def _sources(records: list[dict[str, Any]], names: Collection[str]) -> Iterator[dict[str, Any]]:
    """Where fields of these names are read from."""
    for record in records:
        for each in nodes(record, "field") if "data" not in record else ():
            source = each.get("source")
            if str(each.get("name")) not in names or not isinstance(source, dict):
                continue
            if isinstance(source.get("extract"), dict) and isinstance(source.get("fileSet"), dict):
                yield source


def faults(
    document: dict[str, Any], found: Distribution, counts: Mapping[str, int], values: Mapping[str, Counter[str]]
) -> Iterator[str]:
    """Labels that no file has, that are not listed, and numbers that are not those of the files.

    Args:
        document: of the Croissant file.
        found: its files.
        counts: rows by path, as far as they were counted.
        values: of the columns of listings, by path, likewise.
    """
    for listing in listings(document) if not found.live else ():
        if listing.file_set not in found.sets:  # which are not here
            continue
        there: dict[str, int | None] = {}
        for path in found.sets.get(listing.file_set, ()):
            for label, number in _of_file(listing, path, counts, values):
                before = there.get(label, 0)
                there[label] = None if before is None or number is None else before + number
        if not listing.pattern and any(path not in values for path in found.sets.get(listing.file_set, ())):
            continue
        for label, number in listing.rows.items():
            if label not in there:
                if number != 0:
                    yield f"{listing.id}: expected what there are files of, got {label!r}"
            elif number is not None and there[label] not in (None, number):
                yield f"{listing.id}: expected {there[label]} documents of {label!r}, as many as rows, got {number}"
        for label in there.keys() - listing.rows.keys():
            yield f"{listing.id}: expected {label!r}, which files have, among its data, got none"


def language_faults(document: dict[str, Any]) -> Iterator[str]:
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
    """The language of a label without script and region; of one for private use its tag; empty for other labels."""
    tag = tag_of(label) or ""
    return code_of(tag) or tag


def _of_file(
    listing: Listing, path: str, counts: Mapping[str, int], values: Mapping[str, Counter[str]]
) -> Iterator[tuple[str, int | None]]:
    if listing.pattern is None:
        yield from values.get(path, {}).items()
    elif match := listing.pattern.match(path.rpartition("/")[2] if listing.by_name else path):
        yield match[1], counts.get(path)


def path_faults(document: dict[str, Any], found: Distribution) -> Iterator[str]:
    """Expressions over paths that do not match them."""
    for record in nodes(document, "recordSet"):
        for each, _ in fields_of(record):
            source = each.get("source")
            if not isinstance(source, dict) or not isinstance(source.get("extract"), dict):
                continue
            what = source["extract"].get("fileProperty")
            paths = found.sets.get(str((source.get("fileSet") or {}).get("@id")), [])
            for text in transforms(source, "regex") if what in ("fullpath", "filename") and paths else ():
                names = [path.rpartition("/")[2] if what == "filename" else path for path in paths]
                if (pattern := compiled(text)) is None:
                    continue
                missed = [name for name in names if not pattern.match(name)]
                if missed and (found.ours or len(missed) == len(names)):
                    yield f"{each.get('@id')}: expected a regular expression that matches {missed[0]}, got {text!r}"
