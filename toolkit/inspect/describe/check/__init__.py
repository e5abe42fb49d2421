"""Checks of a Croissant document: its structure, and each file that it lists against the disk.

Findings are what is wrong. Warnings are what readers by pandas, as mlcroissant is one, make of data that are right.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence

import msgspec

from toolkit.errors import DataError
from toolkit.inspect.describe.about import listed
from toolkit.inspect.describe.check import distribution, mlcroissant, properties
from toolkit.inspect.describe.check.distribution import FoundFiles
from toolkit.inspect.describe.check.files import Checked, FileCheck, examples
from toolkit.inspect.describe.check.nodes import Column, Node, all_fields, nodes, read
from toolkit.inspect.describe.facts.splits import MEDIA_TYPES
from toolkit.runs.executors import Result
from toolkit.storage import store_of
from toolkit.storage.paths import join

ROWS = 100
"""Rows of each file that are looked at, if no other number is asked for."""

Run = Callable[[list[FileCheck]], Sequence[Result[Checked]]]
"""Runs the checks of files, in the order given."""

_Done = list[tuple[FileCheck, Checked]]


def is_croissant(path: str) -> bool:
    """Return whether a path is that of a Croissant file, by its name."""
    return path.rpartition("/")[2].endswith("croissant.json")


def check(path: str, first: int | None, max_bytes: int, run: Run) -> Checked:
    """Return what is wrong with a Croissant document, and with the files that it describes.

    Args:
        path: of the document.
        first: rows of each file that are looked at; then no checksums are computed, and nothing is counted.
        max_bytes: of a row.
        run: runs the checks of files.
    """
    try:
        document, findings = read(path)
    except DataError as error:
        return Checked([str(error)])
    files, faults = distribution.read(path, document)
    faults = [*properties.faults(document), *properties.node_faults(document), *faults]
    faults += [*distribution.path_faults(document, files), *distribution.language_faults(document)]
    checked = Checked([*findings, *(f"{path}: {fault}" for fault in faults)])
    done = _run(_files(document, files, first, max_bytes), run, checked)
    counts = {work.name: found.rows for work, found in done if found.rows is not None}
    values = {work.name: found.values for work, found in done if work.values}
    faults = [*distribution.faults(document, files, counts, values), *_invented(done)]
    faults += _leading_nowhere(done, run, checked) if first is None else ()
    checked.findings += [f"{path}: {fault}" for fault in faults]
    if not checked.findings and mlcroissant.is_installed() and store_of(path).is_local:
        read_by = mlcroissant.check(path, document, first)
        checked.findings += read_by.findings
        checked.warnings += read_by.warnings
    return checked


def _run(works: list[FileCheck], run: Run, checked: Checked) -> _Done:
    """Check each file by itself; add what is found, and return it with the files."""
    results = run(works)
    for result in results:
        checked.findings += result.value.findings if result.value else []
        checked.warnings += result.value.warnings if result.value else []
        checked.findings += [result.failure.message] if result.failure else []
    return [(work, result.value) for work, result in zip(works, results, strict=True) if result.value]


def _files(document: Node, files: FoundFiles, first: int | None, max_bytes: int) -> list[FileCheck]:
    """Return the files to check: those that are listed, and those with rows that a set matches."""
    there = set(files.there)
    works = {
        name: FileCheck(
            name=name,
            path=join(files.folder, name),
            first=first or ROWS,
            max_bytes=max_bytes,
            size=distribution.bytes_of(node),
            hashes={key: str(node[key]) for key in ("sha256", "md5") if node.get(key)} if first is None else {},
        )
        for name, node in files.listed.items()
        if name in there
    }
    columns: dict[str, list[Column]] = {}
    for each in all_fields(document):
        if column := each.column:
            columns.setdefault(each.file_set, []).append(column)
    shown = examples(document) if files.ours else {}
    listings = {found.field.file_set: found for found in distribution.listings(document)} if first is None else {}
    for node in nodes(document, "distribution"):
        id_ = str(node.get("@id"))
        if MEDIA_TYPES[".jsonl"] not in listed(node.get("encodingFormat")):
            continue
        listing = listings.get(id_) if not files.live else None
        for name in files.sets.get(id_, ()):
            plain = FileCheck(name=name, path=join(files.folder, name), first=first or ROWS, max_bytes=max_bytes)
            known = works.get(name, plain)
            works[name] = msgspec.structs.replace(
                known,
                columns=[*known.columns, *columns.get(id_, ())],
                count=known.count or listing is not None,
                values=listing.column if listing else known.values,
                examples=shown.get(id_, []),
            )
    return list(works.values())


def _invented(done: _Done) -> Iterator[str]:
    """Yield examples that are none of the rows; those of `toolkit croissant` are the first over all files."""
    found = {place for _, checked in done for place in checked.examples}
    wanted = {example.place: None for work, _ in done if work.first >= len(work.examples) for example in work.examples}
    yield from (
        f"{place}: expected one of the first rows, got another record" for place in wanted if place not in found
    )


def _leading_nowhere(done: _Done, run: Run, checked: Checked) -> Iterator[str]:
    """Yield fields whose JSON paths lead to no key; all rows are searched where the first ones did not have it."""
    lost = {id_ for _, found in done for id_ in found.leads} - _led(done)
    works = [(work, [column for column in work.columns if column.id in lost]) for work, _ in done]
    searches = [
        msgspec.structs.replace(work, columns=some, size=None, hashes={}, search=True) for work, some in works if some
    ]
    again = _run(searches, run, checked) if searches else []
    for id_ in sorted({id_ for _, found in again for id_ in found.leads} - _led(again)):
        yield f"{id_}: expected a JSON path that leads to a key of some row"


def _led(done: Iterable[tuple[FileCheck, Checked]]) -> set[str]:
    """Return the fields whose JSON paths led to a key."""
    return {id_ for _, found in done for id_, led in found.leads.items() if led}
