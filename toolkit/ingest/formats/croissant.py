"""Record sets of Croissant files, read by mlcroissant.

Source: the Croissant Format Specification 1.0 and 1.1, docs.mlcommons.org/croissant.
"""

import base64
import fnmatch
import hashlib
import logging
import math
import re
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from datetime import date
from typing import Any
from urllib.parse import urljoin

import msgspec

from toolkit.data.documents import BAD_ROW
from toolkit.distribution import require_extra
from toolkit.errors import DataError, did_you_mean
from toolkit.ingest.reader import Draft, Input
from toolkit.ingest.tables.fields import FieldReader
from toolkit.storage import store_of
from toolkit.storage.outputs import write_file
from toolkit.storage.paths import exists, join
from toolkit.storage.reading import stored_digest
from toolkit.storage.stores.local.scratch import scratch

Node = dict[str, Any]


class Croissant(FieldReader):
    """One record a document, of a Croissant record set (extra `croissant`).

    `from:` is the Croissant file, on disk or on the web. mlcroissant reads the records and downloads files of the web;
    it holds a file at once, and reads some hundreds of records a second. The checksums that the description states are
    verified. Parts of a record are fields by their names, structs objects. Ids may be integers. Dates become texts of
    ISO 8601, NaN becomes null, bytes that are no UTF-8 become base64. If the data change, the Croissant file must
    change, too, so that they are read again.

    Attributes:
        record_set: the record set to read; default: the only one that is read from files
    """

    SUFFIXES = (".json",)

    record_set: str | None = None

    def __post_init__(self) -> None:
        require_extra("croissant", "files of Croissant", "mlcroissant")
        super().__post_init__()

    def read(self, source: Input) -> Iterator[Draft]:
        with source.stream() as stream:
            data = stream.read()
        try:
            document = msgspec.json.decode(data, type=Node)
        except BAD_ROW as error:
            raise DataError(f"expected a Croissant file (a JSON object), got: {error}", path=source.path) from None
        with ExitStack() as stack:
            path = source.path
            if not (store_of(path).is_local and exists(path)):
                path = join(stack.enter_context(scratch()), "croissant.json")
                write_file(path, msgspec.json.encode(_with_addresses(document, source.path)))
            record = self._record_set(document, source.path)
            _verify(document, record, path.rpartition("/")[0] or ".")
            names = dict(_names(record, ""))
            for number, row in enumerate(_records(path, str(record["@id"]), source.path), 1):
                try:
                    plain = {names.get(key, key): _plain(value, names) for key, value in row.items()}
                    yield self.draft(plain, number)
                except (*BAD_ROW, DataError) as error:
                    raw = msgspec.json.encode(row, enc_hook=str)
                    if (draft := source.refuse(error, raw, number)) is not None:
                        yield draft

    def _record_set(self, document: Node, path: str) -> Node:
        """Return the record set to read.

        Raises:
            DataError: if there is no such one, or several and none is named.
        """
        records = {str(node.get("@id")): node for node in _nodes(document, "recordSet")}
        listed = ", ".join(records) or "none"
        if self.record_set is not None:
            if self.record_set not in records:
                hint = did_you_mean(self.record_set, records) or f"; there are: {listed}"
                raise DataError(f"expected the record set {self.record_set!r}, got none{hint}", path=path)
            return records[self.record_set]
        of_files = [record for record in records.values() if "data" not in record] or list(records.values())
        if len(of_files) != 1:
            message = f"expected one record set, got {listed}; say which to read: `record_set: NAME`"
            raise DataError(message, path=path)
        return of_files[0]


def _nodes(node: Node, key: str) -> list[Node]:
    value = node.get(key)
    return [item for item in (value if isinstance(value, list) else [value]) if isinstance(item, dict)]


def _with_addresses(document: Node, address: str) -> Node:
    """Return a document of the web with absolute addresses of its files."""
    files = []
    for node in _nodes(document, "distribution"):
        url = node.get("contentUrl")
        files.append({**node, "contentUrl": urljoin(address, url)} if isinstance(url, str) else node)
    return {**document, "distribution": files}


def _verify(document: Node, record: Node, folder: str) -> None:
    """Compare the checksums of the files of file sets; those of single files are mlcroissant's to compare.

    Raises:
        DataError: naming the first file that is another one.
    """
    used = set(re.findall(rb'"@id":"((?:[^"\\]|\\.)*)"', msgspec.json.encode(record)))
    globs = [
        str(glob)
        for node in _nodes(document, "distribution")
        if str(node.get("@id")).encode() in used and not node.get("containedIn")
        for glob in _as_list(node.get("includes"))
    ]
    for node in _nodes(document, "distribution"):
        url, path = str(node.get("contentUrl")), join(folder, str(node.get("contentUrl")))
        if not any(fnmatch.fnmatchcase(url, glob) for glob in globs) or not exists(path):
            continue
        for name in ("sha256", "md5"):
            if node.get(name) and (got := stored_digest(path, hashlib.new(name))) != node[name]:
                raise DataError(f"expected {name} {node[name]} by the Croissant file, got {got}", path=path)


def _as_list(value: Any) -> Iterable[Any]:
    return () if value is None else value if isinstance(value, list) else [value]


def _names(node: Node, parent: str) -> Iterator[tuple[str, str]]:
    """Yield the ids of fields, and of their parts, with their names."""
    for key in ("field", "subField"):
        for field in _nodes(node, key):
            id_, name = str(field.get("@id")), field.get("name")
            yield id_, name if isinstance(name, str) and "/" not in name else id_.rpartition("/")[2]
            yield from _names(field, id_)


def _records(path: str, record_set: str, source_path: str) -> Iterator[Mapping[str, Any]]:
    """Yield the records of a set; whatever mlcroissant finds wrong is an error of the file."""
    import mlcroissant

    number = 0
    try:
        with quiet():
            records = iter(mlcroissant.Dataset(path).records(record_set))
        while True:
            with quiet():  # not while others work with the record
                record = next(records, None)
            if record is None:
                return
            number += 1
            yield record
    except Exception as error:
        where = f" after record {number}" if number else ""
        message = f"expected records that mlcroissant reads, got an error{where}: {first_line(error)}"
        raise DataError(message, path=source_path) from None


def _plain(value: Any, names: Mapping[str, str]) -> Any:
    """Return a value of a record as JSON has it.

    Raises:
        DataError: if JSON has no such value.
    """
    if hasattr(value, "tolist"):  # a number or an array of NumPy
        value = value.tolist()
    if isinstance(value, Mapping):
        return {names.get(key, key): _plain(inner, names) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner, names) for inner in value]
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return base64.b64encode(value).decode()
    if type(value).__name__ in ("NoneType", "NaTType", "NAType") or (
        isinstance(value, float) and not math.isfinite(value)
    ):
        return None
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, str | int | float):
        return value
    raise DataError(f"expected values that JSON has, got {type(value).__name__}; leave the field out of the record set")


# --- mlcroissant: silent, with errors in one line ---------------------------------------------------------------------


@contextmanager
def quiet() -> Iterator[None]:
    """Silence the log and the warnings of mlcroissant."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)


def first_line(error: BaseException) -> str:
    """Return the first line of an error and of its cause; of a list of errors the first of these."""
    lines = [line.removeprefix("  -  ") for line in str(error).strip().splitlines()]
    lines = lines[1:] if lines and lines[0].startswith("Found the following") else lines
    text = lines[0] if lines else type(error).__name__
    return f"{text}: {first_line(error.__cause__)}" if error.__cause__ else text
