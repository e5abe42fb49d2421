"""Looks at one data file: its checksum, its lines, its keys and types."""

import hashlib
import re
from collections.abc import Iterable
from functools import reduce
from typing import Any

import msgspec
import xxhash

from toolkit.config.settings import ConfigStruct
from toolkit.data.documents import BAD_ROW
from toolkit.data.schema import ANY, BOOL, FLOAT, INT, NEVER, NULL, SPAN, STR, Type, nullable
from toolkit.data.tables.from_arrow import leaves_with_nulls, types_of
from toolkit.data.tables.parquet import open_parquet
from toolkit.describe.fields import HUGE, INTEGERS, KEYS, LONG, bare, merged
from toolkit.describe.model import Crawled
from toolkit.errors import DAMAGED, DataError
from toolkit.execution.executors import Report
from toolkit.execution.progress import Position
from toolkit.ingest import folders
from toolkit.inspect.documents import label_reader
from toolkit.inspect.targets import Format
from toolkit.storage.paths import missing_reason, stat
from toolkit.storage.reading import Lines, stored_digest

_WELL_KNOWN = {
    "added": "datetime",
    "created": "datetime",
    "warc-date": "datetime",
    "content-length": "digits",
    "warc-target-uri": "url",
    "url": "url",
}
"""Keys of texts that may be all of one form, and the form."""

_FORMS = {
    "datetime": re.compile(r"\d{4}-(0[1-9]|1[0-2])-([0-2]\d|3[01])T[0-2]\d:[0-5]\d:[0-5]\d(\.\d{1,6})?Z"),
    "digits": re.compile(r"0|[1-9]\d{0,14}"),
    "url": re.compile(r"https?://\S+"),
}

NUMERIC = re.compile(r"\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*|[+-]?(nan|inf|infinity)", re.IGNORECASE)
"""Texts that pandas takes for numbers."""

_PLAIN: dict[type, Type] = {bool: BOOL, float: FLOAT, type(None): NULL}

_NUMERIC_STARTS = [bytes([c]) for c in b"0123456789+-. nNiI\\"]

EXACT = 1 << 53
"""Integers beyond this one are not all exact as 64-bit floats, which pandas makes of integers beside nulls."""

LARGEST = 1 << 64
"""Integers from this one on are too large for pandas, wherever they stand: it reads nothing of the file."""

SOURCES = 100
"""Of documents of WARC records in one file, that are told apart."""


class ScanJob(ConfigStruct):
    """A file to look at.

    Attributes:
        path: Path of the file.
        digest: True if its checksum is wanted.
        rows: True if its rows are; they are JSON objects.
        columns: True for a Parquet file, whose column types are read.
        lines: True if the digest of its lines is wanted, though they are no rows that are described.
        first: at most so many rows.
        max_bytes: Maximum bytes of a row.
        format: Format of an output, which knows where rows have their label; None for other files.
    """

    path: str
    max_bytes: int
    format: Format | None = None
    digest: bool = False
    rows: bool = False
    columns: bool = False
    lines: bool = False
    first: int | None = None


class FileScan(msgspec.Struct):
    """The outcome of a look.

    Attributes:
        size: stored bytes.
        sha256: Sha256 of these, if it was wanted.
        types: Types of the top-level keys that some row has; null where a row has not.
        number: Number of rows that were scan at.
        content_size: Bytes of the rows, with line ends.
        whole: True if there are no more rows.
        numeric: top-level keys whose texts are all numbers.
        rounded: top-level keys with integers that readers change, because other rows have none there, or fractions.
        too_large: first row that has an integer of `LARGEST` or more, from 1; 0 if none has.
        warc: documents of WARC records, by source; empty if there is none, or there are more than `SOURCES`.
        crawls: Crawls that the metadata name.
        lines: number of the lines, but blank ones between rows, and the digest of these (see `join_digests`), if all
            were read.
        labels: Labels that rows say, with the number of these.
    """

    size: int
    sha256: str = ""
    types: dict[str, Type] = {}
    number: int = 0
    content_size: int = 0
    whole: bool = True
    numeric: list[str] = []
    rounded: list[str] = []
    too_large: int = 0
    warc: dict[str, Crawled] = {}
    crawls: set[str] = set()
    lines: tuple[int, int] | None = None
    labels: dict[str, int] = {}


def scan_file(work: ScanJob, report: Report) -> FileScan:
    """RowScanner at a file; return what was found.

    Raises:
        DataError: if it is not there, or a row is no object.
    """
    result = stat(work.path)
    if result is None:
        raise DataError(f"expected a data file, got {missing_reason(work.path)}; {DAMAGED}", path=work.path)
    scan = FileScan(result.size)
    if work.rows or (work.lines and work.first is None):
        scanner = RowScanner(work, scan)
        with Lines(work.path, work.max_bytes) as lines:
            position = Position(report, lines.stored)
            for line in lines:
                if work.first is not None and scan.number >= work.first:
                    scan.whole = False
                    break
                scanner.add(line, lines.number)
                position(1)
        scanner.finish()
    elif work.columns:
        scan.types = _column_types(work.path)
    if work.digest:
        scan.sha256 = sha256_of(work.path)
    return scan


_BASE, _PRIME = 0x9E3779B97F4A7C15F39CC0605CEDC835, (1 << 127) - 1


def _with(before: tuple[int, int], line: bytes) -> tuple[int, int]:
    return before[0] + 1, (before[1] * _BASE + xxhash.xxh3_128_intdigest(line)) % _PRIME


def join_digests(parts: Iterable[tuple[int, int]]) -> tuple[int, int]:
    """Return the number and digest of the lines of concatenated files.

    The digest is a polynomial of the lines' xxh3-128: it depends on the lines and their order, and not on where one
    file ends and another begins, nor on how they are compressed.
    """
    number, digest = 0, 0
    for more, of_more in parts:
        number, digest = number + more, (digest * pow(_BASE, more, _PRIME) + of_more) % _PRIME
    return number, digest


def _column_types(path: str) -> dict[str, Type]:
    """Return a Parquet file's column types by its footer; none without pyarrow."""
    try:
        import pyarrow as pa
    except ImportError:
        return {}
    try:
        with open_parquet(path) as file:
            types, nulls = types_of(file.metadata), leaves_with_nulls(file.metadata)
            return {
                field.name: _read_type(types[field.name], field.type, null=field.name in nulls)
                for field in file.schema_arrow
            }
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"expected a sound Parquet file, got damage: {error}", path=path) from None


def _read_type(type_: Type, arrow: Any, *, null: bool = True) -> Type:
    """Return the JSON type with Arrow's own types, as readers give it.

    Args:
        type_: Type of their JSON.
        arrow: Type of Arrow.
        null: True if some values may be null although the JSON type does not say so.
    """
    import pyarrow as pa

    if pa.types.is_dictionary(arrow):
        return _read_type(type_, arrow.value_type, null=null)
    inner = bare(type_)
    if inner is not type_:
        return nullable(_read_type(inner, arrow))
    if inner.kind == "object":
        return Type("object", fields=tuple((n, _read_type(t, arrow.field(n).type)) for n, t in inner.fields))
    if inner.kind == "list":
        return Type("list", _read_type(inner.item or ANY, arrow.value_type))
    kind = next((kind for pattern, kind in _OF_ARROW.items() if re.match(pattern, str(arrow))), None)
    result = Type(kind) if kind else type_
    return nullable(result) if null and type_ == ANY else result


_OF_ARROW = {
    "timestamp": "datetime",
    "date": "date",
    "time": "time",
    "decimal": "decimal",
    "duration": "duration",
    "(large_|fixed_size_)?binary": "bytes",
    "null": "null",
}
"""Kinds of values by the names of types of Arrow."""


def sha256_of(path: str) -> str:
    return stored_digest(path, hashlib.sha256())


class RowScanner:
    """A look at the lines of a file, one after the other.

    Args:
        work: Asks for it.
        scan: Gets what is found.
    """

    def __init__(self, work: ScanJob, scan: FileScan) -> None:
        self._work = work
        self.scan = scan
        self._decoder = msgspec.json.Decoder(dict[str, msgspec.Raw])
        self._large: set[str] = set()  # keys with integers beyond `EXACT`
        self._texts: dict[str, bool] = {}  # whether all were numbers
        self._lines = (0, 0)
        self._headers: dict[str, Any] = {}  # of the row
        self._label = label_reader(work.format.writer().READING) if work.format and work.rows else None

    def add(self, line: bytes, number: int) -> None:
        """Take the next line; of files whose lines are no rows that are described only the digest is wanted.

        Raises:
            DataError: if a row is no object.
        """
        work, scan = self._work, self.scan
        if not work.rows:
            self._lines = _with(self._lines, line)  # in text, blank ones end documents
            return
        if not line.strip():
            return
        row = self._row(line, number)
        self._lines = _with(self._lines, line)
        scan.number += 1
        scan.content_size += len(line) + 1
        for key, raw in row.items():
            if self._texts.get(key, True) and bytes(memoryview(raw)[:1]) == b'"':
                self._texts[key] = _is_numeric(raw)
        self._add(row)
        if self._label and (label := self._label(line)):
            scan.labels[label] = scan.labels.get(label, 0) + 1

    def finish(self) -> FileScan:
        """Return the results over all lines."""
        scan = self.scan
        scan.lines = self._lines if scan.whole else None
        scan.numeric = sorted(key for key, numeric in self._texts.items() if numeric)
        scan.rounded = sorted(
            key
            for key in self._large
            if (type_ := scan.types[key]).kind not in INTEGERS and bare(type_).kind in (*INTEGERS, "float")
        )
        return scan

    def _row(self, line: bytes, number: int) -> dict[str, msgspec.Raw]:
        try:
            return self._decoder.decode(line)
        except BAD_ROW as error:
            raise DataError(f"expected a JSON object, got: {error}", path=self._work.path, line=number) from None

    def _add(self, row: dict[str, msgspec.Raw]) -> None:
        types = self.scan.types
        first = self.scan.number == 1
        self._headers = {}
        for key, raw in row.items():
            type_ = self._type_of(key, raw)
            types[key] = merged(types[key], type_) if key in types else type_ if first else nullable(type_)
        for key in types.keys() - row.keys():
            types[key] = nullable(types[key])
        if self._headers:
            self._add_warc(row.get("source"))

    def _add_warc(self, source: msgspec.Raw | None) -> None:
        name = "" if source is None else _text_of(source)
        warc = self.scan.warc
        result = warc.setdefault(name if name in warc or len(warc) < SOURCES else "", Crawled())
        result.documents += 1
        if len(result.headers) <= KEYS:
            result.headers.update(dict.fromkeys(self._headers))
        date = self._headers.get("warc-date")
        if isinstance(date, str) and _FORMS["datetime"].fullmatch(date):
            first, last = result.dates or (date, date)
            result.dates = (min(first, date), max(last, date))

    def _note(self, key: str, value: Any) -> None:
        """Note the origin of the row by its metadata or headers."""
        if not isinstance(value, dict):
            return
        headers = value if key == "warc_headers" else value.get("warc_headers")
        if isinstance(headers, dict):
            self._headers = headers
        for name in folders.FIELDS if key == "metadata" else ():
            if isinstance(value.get(name), str):
                self.scan.crawls.update(folders.NAMES.findall(value[name]))

    def _type_of(self, key: str, raw: msgspec.Raw) -> Type:
        if key not in _WELL_KNOWN and bytes(memoryview(raw)[:1]) == b'"':
            return STR
        try:
            value = msgspec.json.decode(raw)
        except BAD_ROW:
            return ANY
        if key in ("metadata", "warc_headers"):
            self._note(key, value)
        elif isinstance(value, int) and abs(value) > EXACT:
            self._large.add(key)
        return self._infer(value, key, spans=key == "attributes")

    def _infer(self, value: Any, key: str, *, spans: bool) -> Type:
        match value:
            case bool() | float() | None:
                return _PLAIN[type(value)]
            case int():
                if not -LARGEST // 2 <= value < LARGEST:
                    self.scan.too_large = self.scan.too_large or self.scan.number
                return INT if -(2**63) <= value < 2**63 else LONG if 0 <= value < 2**64 else HUGE
            case str():
                form = _WELL_KNOWN.get(key)
                return Type(form) if form and _FORMS[form].fullmatch(value) else STR
            case [int(), int(), int() | float()] if spans and not any(isinstance(x, bool) for x in value):
                return SPAN
            case list():
                return Type("list", reduce(merged, (self._infer(item, "", spans=spans) for item in value), NEVER))
            case dict() if len(value) <= KEYS:
                inner = ((str(name), self._infer(item, str(name), spans=spans)) for name, item in value.items())
                return Type("object", fields=tuple(inner))
        return Type("map", ANY)


def _text_of(raw: msgspec.Raw) -> str:
    """Return a text; empty if the value is none."""
    try:
        return msgspec.json.decode(raw, type=str)
    except BAD_ROW:
        return ""


def _is_numeric(raw: msgspec.Raw) -> bool:
    start = bytes(memoryview(raw)[:40])
    if start[1:2] not in _NUMERIC_STARTS:
        return False
    try:
        return bool(NUMERIC.fullmatch(msgspec.json.decode(raw, type=str)))
    except BAD_ROW:
        return False
