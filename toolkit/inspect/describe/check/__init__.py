"""Checks of a Croissant file: its structure, and each file that it lists against the disk.

Findings are what is wrong. Warnings are what readers by pandas, as mlcroissant is one, make of data that are right.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import msgspec

from toolkit.data.documents import BAD_ROW
from toolkit.errors import DataError
from toolkit.inspect.describe.about import listed
from toolkit.inspect.describe.check import distribution, labels
from toolkit.inspect.describe.check.distribution import Distribution
from toolkit.inspect.describe.check.examples import examples
from toolkit.inspect.describe.check.files import Checked, Work
from toolkit.inspect.describe.check.structure import check_structure, fields_of, nodes, transforms
from toolkit.inspect.describe.check.values import Column
from toolkit.storage import store_of
from toolkit.storage.paths import join

ROWS = 100
"""Of each file, that are looked at."""

_ROWS_OF = "application/jsonlines"


@dataclass
class Plan:
    """What is to be done.

    Attributes:
        path, document: of the Croissant file.
        findings: about the document itself.
    """

    path: str
    document: dict[str, Any]
    files: Distribution
    works: list[Work]
    findings: list[str]


def read(path: str) -> tuple[dict[str, Any], list[str]]:
    """The document, and findings about keys that it has twice.

    Raises:
        DataError: if there is none, or it is no JSON object.
    """
    try:
        data = store_of(path).read(path)
        document = msgspec.json.decode(data, type=dict[str, Any])
    except OSError as error:
        raise DataError(f"expected a Croissant file, got: {error.strerror or error}", path=path) from None
    except BAD_ROW as error:
        raise DataError(f"expected a Croissant file (a JSON object), got: {error}", path=path) from None
    findings: list[str] = []

    def note(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            twice = [key for key, count in Counter(key for key, _ in pairs).items() if count > 1]
            where = f" in {found['@id']}" if "@id" in found else ""
            findings.append(f"{path}: expected each key once, got {' and '.join(map(repr, twice))} again{where}")
        return found

    json.loads(data, object_pairs_hook=note)
    return document, findings


def is_croissant(path: str) -> bool:
    """Whether a path is that of a Croissant file, by its name."""
    return path.rpartition("/")[2].endswith("croissant.json")


# --- files ------------------------------------------------------------------------------------------------------------


def plan(path: str, first: int | None, max_bytes: int) -> Plan:
    """The files to check, and what is wrong with the document itself.

    Raises:
        DataError: if there is no document.
    """
    document, findings = read(path)
    findings += check_structure(path, document)
    found, faults = distribution.read(path, document, nodes(document, "distribution"))
    findings += faults
    findings += [f"{path}: {each}" for each in labels.path_faults(document, found)]
    findings += [f"{path}: {each}" for each in labels.language_faults(document)]
    columns = _columns(document)
    there = set(found.there)
    works = {
        name: Work(
            name=name,
            path=join(found.folder, name),
            size=distribution.bytes_of(node),
            hashes={key: str(node[key]) for key in ("sha256", "md5") if node.get(key)},
            columns=[],
            digest=first is None,
            first=first or ROWS,
            max_bytes=max_bytes,
        )
        for name, node in found.listed.items()
        if name in there
    }
    shown = examples(document) if found.ours else {}
    listings = {listing.file_set: listing for listing in labels.listings(document)}
    for node in nodes(document, "distribution"):
        id_ = str(node.get("@id"))
        if _ROWS_OF not in listed(node.get("encodingFormat")):
            continue
        listing = listings.get(id_) if first is None and not found.live else None
        for name in found.sets.get(id_, ()):
            known = works.get(name) or Work(
                name=name,
                path=join(found.folder, name),
                size=None,
                hashes={},
                columns=[],
                digest=False,
                first=first or ROWS,
                max_bytes=max_bytes,
            )
            works[name] = msgspec.structs.replace(
                known,
                columns=[*known.columns, *columns.get(id_, ())],
                count=known.count or listing is not None,
                values=listing.column if listing else known.values,
                examples=shown.get(id_, []),
            )
    return Plan(path, document, found, list(works.values()), findings)


def finish(plan: Plan, done: Iterable[tuple[Work, Checked]]) -> list[str]:
    """The findings about all files together, after each has been checked."""
    pairs = list(done)
    counts = {work.name: checked.rows for work, checked in pairs if checked.rows is not None}
    values = {work.name: checked.values for work, checked in pairs if work.values}
    faults = labels.faults(plan.document, plan.files, counts, values)
    return [f"{plan.path}: {each}" for each in [*faults, *_invented(pairs)]]


def _invented(done: Iterable[tuple[Work, Checked]]) -> Iterator[str]:
    """Examples that are none of the rows; those of `toolkit croissant` are the first over all files."""
    found: set[str] = set()
    wanted: dict[str, None] = {}
    for work, checked in done:
        found |= checked.examples
        if work.first >= len(work.examples):
            wanted |= {example.place: None for example in work.examples}
    yield from (
        f"{place}: expected one of the first rows, got another record" for place in wanted if place not in found
    )


def lost(done: Iterable[tuple[Work, Checked]]) -> list[Work]:
    """Files to search for what the JSON paths of some fields did not lead to in the rows that were looked at."""
    pairs = list(done)
    ids = {id_ for _, checked in pairs for id_ in checked.leads} - found_in(checked for _, checked in pairs)
    works = [(work, [column for column in work.columns if column.id in ids]) for work, _ in pairs]
    return [msgspec.structs.replace(work, columns=some, search=True) for work, some in works if some]


def found_in(done: Iterable[Checked]) -> set[str]:
    """The fields whose JSON paths led somewhere."""
    return {id_ for checked in done for id_, led in checked.leads.items() if led}


def _columns(document: dict[str, Any]) -> dict[str, list[Column]]:
    """The columns that rows must have, by file set."""
    found: dict[str, list[Column]] = {}
    for record in nodes(document, "recordSet"):
        for each, parent in fields_of(record):
            source = each.get("source")
            extract = source.get("extract") if isinstance(source, dict) else None
            if (
                not isinstance(source, dict)
                or not isinstance(extract, dict)
                or not isinstance(source.get("fileSet"), dict)
            ):
                continue
            if "column" in extract:
                many = any(bool(node.get("repeated") or node.get("isArray")) for node in (each, parent or {}))
                column = Column(
                    id=str(each.get("@id")),
                    column=str(extract["column"]),
                    paths=transforms(source, "jsonPath"),
                    data_type=str((listed(each.get("dataType")) or [""])[0]),
                    many=many,
                )
                found.setdefault(str(source["fileSet"].get("@id")), []).append(column)
    return found
