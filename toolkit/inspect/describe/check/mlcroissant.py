"""Checks by mlcroissant, the reference implementation: of a Croissant document, and of the records that it reads."""

import contextlib
import itertools
import logging
import warnings
from collections.abc import Iterator
from importlib.util import find_spec

from toolkit.distribution import missing_extra
from toolkit.inspect.describe.check.distribution import bytes_of
from toolkit.inspect.describe.check.files import Checked
from toolkit.inspect.describe.check.nodes import Node, fields_of, nodes

RECORDS = 100
"""Of each record set, that are read."""

LARGEST = 64 << 20
"""Stored bytes of a file up to which records are read: mlcroissant holds about seven times its content."""


def is_installed() -> bool:
    return find_spec("mlcroissant") is not None


def check_installed() -> None:
    """Raise MissingExtra if mlcroissant is not there."""
    if not is_installed():
        raise missing_extra("croissant", "reading by Croissant", "mlcroissant")


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Silence the log and the warnings of mlcroissant; what matters of them comes back as findings."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)


def check(path: str, document: Node, first: int | None) -> Checked:
    """Load the document, and the first records of each record set; return what is found.

    Args:
        path: of a local file.
        document: its content.
        first: records of each record set; by default `RECORDS`, and none if a file is large.
    """
    check_installed()
    checked = Checked()
    with _quiet():
        import mlcroissant

        try:
            dataset = mlcroissant.Dataset(path)
        except Exception as error:
            checked.findings.append(f"{path}: mlcroissant: {error}")
            return checked
        issues = dataset.metadata.ctx.issues
        checked.findings += [f"{path}: mlcroissant: {message}" for message in sorted(issues.errors)]
        checked.warnings += [f"{path}: mlcroissant: {message}" for message in sorted(issues.warnings)]
        large = max((bytes_of(node) or 0 for node in nodes(document, "distribution")), default=0)
        if first is None and large > LARGEST:
            checked.warnings.append(
                f"{path}: no records read by mlcroissant: a file has {large:,} bytes; --first N does"
            )
            return checked
        lines = _of_lines(document)
        for record in dataset.metadata.record_sets:
            if record.id in lines:
                checked.warnings.append(f"{path}: {record.id} is not read: mlcroissant takes lines of text for CSV")
                continue
            try:
                for _ in itertools.islice(dataset.records(record.id), first or RECORDS):
                    pass
            except Exception as error:
                message = str(error).strip().splitlines()
                checked.findings.append(f"{path}: mlcroissant: {record.id}: {message[0] if message else type(error)}")
    return checked


def _of_lines(document: Node) -> set[str]:
    """Return the record sets whose fields are lines of text."""
    return {
        str(record.get("@id"))
        for record in nodes(document, "recordSet")
        if any(each.extract.get("fileProperty") == "lines" for each in fields_of(record))
    }
