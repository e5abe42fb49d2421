"""Looks at one data file: its checksum, its keys and types; and what many files, or their first rows, tell together."""

import contextlib
import dataclasses
import hashlib
import itertools
import re
from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

import msgspec
import xxhash

from toolkit.config.settings import ConfigStruct
from toolkit.data.documents import BAD_ROW
from toolkit.data.schema import ANY, BOOL, FLOAT, INT, NEVER, NULL, SPAN, STR, Type, nullable
from toolkit.data.tables.columns import leaves_with_nulls, types_of
from toolkit.data.tables.footers import open_parquet
from toolkit.errors import DAMAGED, DataError
from toolkit.ingest import folders
from toolkit.inspect.describe.facts import Crawled, Field, Group, PathField, RecordType, Undescribed
from toolkit.inspect.describe.facts.fields import HUGE, INTEGERS, KEYS, LONG, SCALARS, TEXTS, bare, fields_of, merged
from toolkit.inspect.documents import label_reader
from toolkit.inspect.targets import Format
from toolkit.inspect.validate.one_file import ValidateJob
from toolkit.runs.executors import Report
from toolkit.runs.progress import Position
from toolkit.storage.paths import join, lacking, stat
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

DATES = re.compile(r".+(_at|_time)|modified|date|timestamp.*", re.IGNORECASE)
"""Names of columns that pandas makes dates of."""


class LookJob(ConfigStruct):
    """A file to look at.

    Attributes:
        path: of the file.
        digest: whether its checksum is wanted.
        rows: whether its rows are; they are JSON objects.
        columns: Whether the types of its columns are; it is a Parquet file.
        lines: whether the digest of its lines is wanted, though they are no rows that are described.
        first: at most so many rows.
        max_bytes: of a row.
        format: of an output, which knows where rows have their label; None for other files.
    """

    path: str
    max_bytes: int
    format: Format | None = None
    digest: bool = False
    rows: bool = False
    columns: bool = False
    lines: bool = False
    first: int | None = None


@dataclass
class FromWarc:
    """Documents that are of WARC records, as the headers that were kept tell.

    Attributes:
        number: of them.
        headers: names, at most `KEYS` and one more.
        dates: first and last ``warc-date``.
    """

    number: int = 0
    headers: dict[str, None] = field(default_factory=dict)
    dates: tuple[str, str] | None = None

    def add(self, other: "FromWarc") -> None:
        """Add those of another file."""
        self.number += other.number
        self.headers |= other.headers
        if other.dates:
            first, last = self.dates or other.dates
            self.dates = (min(first, other.dates[0]), max(last, other.dates[1]))


@dataclass
class Looked:
    """The outcome of a look.

    Attributes:
        size: stored bytes.
        sha256: of these, if it was wanted.
        types: of the top-level keys that some row has; null where a row has not.
        number: of rows that were looked at.
        content_size: of their bytes, with line ends.
        whole: whether there are no more rows.
        numeric: top-level keys whose texts are all numbers.
        rounded: top-level keys with integers that readers change, because other rows have none there, or fractions.
        too_large: first row that has an integer of `LARGEST` or more, from 1; 0 if none has.
        warc: documents of WARC records, by source; empty if there is none, or there are more than `SOURCES`.
        crawls: that the metadata name.
        lines: number of the lines, but blank ones between rows, and the digest of these (see `joined`), if all were
            read.
        labels: that rows say, with the number of these.
    """

    size: int
    sha256: str = ""
    types: dict[str, Type] = field(default_factory=dict)
    number: int = 0
    content_size: int = 0
    whole: bool = True
    numeric: list[str] = field(default_factory=list)
    rounded: list[str] = field(default_factory=list)
    too_large: int = 0
    warc: dict[str, FromWarc] = field(default_factory=dict)
    crawls: set[str] = field(default_factory=set)
    lines: tuple[int, int] | None = None
    labels: dict[str, int] = field(default_factory=dict)


def look(work: LookJob, report: Report) -> Looked:
    """Look at a file; return what was found.

    Raises:
        DataError: if it is not there, or a row is no object.
    """
    found = stat(work.path)
    if found is None:
        raise DataError(f"expected a data file, got {lacking(work.path)}; {DAMAGED}", path=work.path)
    looked = Looked(found.size, sha256_of(work.path) if work.digest else "")
    if work.rows:
        _Look(work, looked).run(report)
    elif work.columns:
        looked.types = _column_types(work.path)
    elif work.lines and work.first is None:
        looked.lines = (0, 0)
        with Lines(work.path, work.max_bytes) as lines:
            done = Position(report, lines.stored)
            for line in lines:
                looked.lines = _with(looked.lines, line)  # in text, blank ones end documents
                done(1)
    return looked


_BASE, _PRIME = 0x9E3779B97F4A7C15F39CC0605CEDC835, (1 << 127) - 1


def _with(before: tuple[int, int], line: bytes) -> tuple[int, int]:
    return before[0] + 1, (before[1] * _BASE + xxhash.xxh3_128_intdigest(line)) % _PRIME


def joined(parts: Iterable[tuple[int, int]]) -> tuple[int, int]:
    """Return the number and digest of the lines of files one behind the other, from those of each.

    The digest is a polynomial of the lines' xxh3-128: it depends on the lines and their order, and not on where one
    file ends and another begins, nor on how they are compressed.
    """
    number, digest = 0, 0
    for more, of_more in parts:
        number, digest = number + more, (digest * pow(_BASE, more, _PRIME) + of_more) % _PRIME
    return number, digest


def _column_types(path: str) -> dict[str, Type]:
    """Return the types of the columns of a Parquet file by its footer; none where pyarrow is not installed."""
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
    """Return the type of values of Arrow as readers of Parquet give them, which have more than JSON has.

    Args:
        type_: Type of their JSON.
        arrow: Type of Arrow.
        null: Whether some may be null, where the type of the JSON does not say so.
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
    found = Type(kind) if kind else type_
    return nullable(found) if null and type_ == ANY else found


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


class _Look:
    def __init__(self, work: LookJob, looked: Looked) -> None:
        self._work = work
        self._looked = looked
        self._decoder = msgspec.json.Decoder(dict[str, msgspec.Raw])
        self._large: set[str] = set()  # keys with integers beyond `EXACT`
        self._headers: dict[str, Any] = {}  # of the row
        self._label = label_reader(work.format.writer().READING) if work.format else None

    def run(self, report: Report) -> None:
        work, looked = self._work, self._looked
        texts: dict[str, bool] = {}  # whether all were numbers
        all_lines = (0, 0)
        with Lines(work.path, work.max_bytes) as lines:
            done = Position(report, lines.stored)
            for line in lines:
                if work.first is not None and looked.number >= work.first:
                    looked.whole = False
                    break
                if not line.strip():
                    continue
                row = self._row(line, lines.number)
                all_lines = _with(all_lines, line)
                looked.number += 1
                looked.content_size += len(line) + 1
                for key, raw in row.items():
                    if texts.get(key, True) and bytes(memoryview(raw)[:1]) == b'"':
                        texts[key] = _is_numeric(raw)
                self._add(row)
                if self._label and (label := self._label(line)):
                    looked.labels[label] = looked.labels.get(label, 0) + 1
                done(1)
        looked.lines = all_lines if looked.whole else None
        looked.numeric = sorted(key for key, numeric in texts.items() if numeric)
        looked.rounded = sorted(
            key
            for key in self._large
            if (type_ := looked.types[key]).kind not in INTEGERS and bare(type_).kind in (*INTEGERS, "float")
        )

    def _row(self, line: bytes, number: int) -> dict[str, msgspec.Raw]:
        try:
            return self._decoder.decode(line)
        except BAD_ROW as error:
            raise DataError(f"expected a JSON object, got: {error}", path=self._work.path, line=number) from None

    def _add(self, row: dict[str, msgspec.Raw]) -> None:
        types = self._looked.types
        first = self._looked.number == 1
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
        warc = self._looked.warc
        found = warc.setdefault(name if name in warc or len(warc) < SOURCES else "", FromWarc())
        found.number += 1
        if len(found.headers) <= KEYS:
            found.headers.update(dict.fromkeys(self._headers))
        date = self._headers.get("warc-date")
        if isinstance(date, str) and _FORMS["datetime"].fullmatch(date):
            first, last = found.dates or (date, date)
            found.dates = (min(first, date), max(last, date))

    def _note(self, key: str, value: Any) -> None:
        """Note what metadata, or headers, tell of where the row comes from."""
        if not isinstance(value, dict):
            return
        headers = value if key == "warc_headers" else value.get("warc_headers")
        if isinstance(headers, dict):
            self._headers = headers
        for name in folders.FIELDS if key == "metadata" else ():
            if isinstance(value.get(name), str):
                self._looked.crawls.update(folders.NAMES.findall(value[name]))

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
                    self._looked.too_large = self._looked.too_large or self._looked.number
                return INT if -(2**63) <= value < 2**63 else LONG if 0 <= value < 2**64 else HUGE
            case str():
                form = _WELL_KNOWN.get(key)
                return Type(form) if form and _FORMS[form].fullmatch(value) else STR
            case [int(), int(), int() | float()] if spans and not any(isinstance(x, bool) for x in value):
                return SPAN
            case list():
                return Type("list", reduce(merged, (self._infer(each, "", spans=spans) for each in value), NEVER))
            case dict() if len(value) <= KEYS:
                inner = ((str(name), self._infer(each, str(name), spans=spans)) for name, each in value.items())
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


def merge_types(found: Sequence[Looked]) -> tuple[dict[str, Type], set[str]]:
    """Return the types of all files together, and the keys that some file has not in any row."""
    types: dict[str, Type] = {}
    files = [looked for looked in found if looked.types]
    for looked in files:
        for key, type_ in looked.types.items():
            types[key] = merged(types[key], type_) if key in types else type_
    absent = {key for key in types if any(key not in looked.types for looked in files)}
    return types, absent


@dataclasses.dataclass(frozen=True)
class Asked:
    """What is asked of a description, and how files are looked at.

    Attributes:
        looks: runs looks at files, in the order given.
        aligns: checks attribute files beside their documents.
        first: rows of each file that are looked at; None for all.
        examples: rows that are kept.
        max_bytes: of a document.
    """

    looks: Callable[[list[LookJob]], list[Looked]]
    aligns: Callable[[list[ValidateJob]], object]
    first: int | None
    examples: int
    max_bytes: int


DOCUMENT = {
    "id": "Identifies the document within its source.",
    "source": "Where the document comes from.",
    "text": "The text of the document.",
    "added": "When the document was gathered; for Common Crawl when the page was fetched.",
    "created": "Best guess of when the document was made; of a WARC file the date that the server sent.",
    "metadata": "What the source says of the document.",
}


def apart(places: Iterable[PathField], fields: Iterable[Field]) -> list[PathField]:
    """Return the fields that say where a row lies, under other names where a field of the rows has theirs."""
    taken = {field.name for field in fields}
    return [dataclasses.replace(p, name=f"path_{p.name}") if p.name in taken else p for p in places]


Rows = Callable[[str], Generator[dict[str, Any], None, None]]
"""Reads a file row by row."""


def json_rows(max_bytes: int) -> Rows:
    """Return a reader of files whose lines are objects."""

    def rows(path: str) -> Generator[dict[str, Any], None, None]:
        with Lines(path, max_bytes) as lines:
            yield from (msgspec.json.decode(line) for line in lines if line.strip())

    return rows


def first_rows(root: str, paths: Iterable[str], number: int, rows: Rows) -> list[tuple[str, int, dict[str, Any]]]:
    """Return the first rows over the files in order, each with its file's path and its number in it."""
    found: list[tuple[str, int, dict[str, Any]]] = []
    for path in paths:
        if len(found) == number:
            break
        with contextlib.closing(rows(join(root, path))) as some:
            found += [(path, i, row) for i, row in enumerate(itertools.islice(some, number - len(found)))]
    return found


def documents(
    group: Group,
    types: dict[str, Type],
    absent: set[str],
    examples: list[tuple[str, int, dict[str, Any]]],
    places: list[PathField],
) -> RecordType:
    """Return the record type of documents."""
    described, refused = columns(types, absent)
    order = dict.fromkeys((*DOCUMENT, *described))
    fields, more = fields_of([(k, described[k]) for k in order if k in described], descriptions=DOCUMENT)
    return RecordType(
        name="documents",
        description="One record a document.",
        group=group.name,
        key=["source", "id"] if {"source", "id"} <= {field.name for field in fields} else [],
        places=apart(places, fields),
        fields=fields,
        undescribed=[*refused, *more],
        examples=examples,
    )


def columns(types: dict[str, Type], absent: set[str]) -> tuple[dict[str, Type], list[Undescribed]]:
    """Return the columns that pandas reads as they are, and the others."""
    described, refused = {}, []
    for name, type_ in types.items():
        if name in absent:
            refused.append(Undescribed(name, "some files have no such key in any row that was looked at"))
        elif DATES.fullmatch(name) and bare(type_).kind in SCALARS:
            refused.append(Undescribed(name, "Croissant's reader makes dates of columns of this name"))
        else:
            described[name] = type_
    return described, refused


def changed_notes(paths: Sequence[str], looked: Sequence[Looked], record: RecordType | None) -> list[str]:
    """Return notes about values at top level that readers change; they leave what lies deeper as it is."""
    kinds = {field.column: field.type.kind for field in record.fields if not field.keys} if record else {}
    texts = [column for column, kind in kinds.items() if kind in TEXTS and kind != "digits"]
    numbers = [column for column, kind in kinds.items() if kind in (*INTEGERS, "float")]
    found = list(zip(paths, looked, strict=True))
    changed = "every `{}` is a number; Croissant's reader changes such texts (0001 becomes 1)"
    rounded = "`{}` has integers beyond 2^53, and rows without one; Croissant's reader rounds such integers"
    notes = [_note([path for path, each in found if name in each.numeric], changed.format(name)) for name in texts]
    notes += [_note([path for path, each in found if name in each.rounded], rounded.format(name)) for name in numbers]
    return [note for note in notes if note]


def unreadable_notes(paths: Sequence[str], looked: Sequence[Looked]) -> list[str]:
    """Return a note about values because of which readers take nothing of a file."""
    large = [f"{path}:{each.too_large}" for path, each in zip(paths, looked, strict=True) if each.too_large]
    note = _note(large, "an integer of 2^64 or more; Croissant's reader cannot read the file")
    return [note] if note else []


def _note(places: Sequence[str], text: str) -> str:
    more = f" (and in {len(places) - 1:,} more files)" if places[1:] else ""
    return f"{places[0]}: {text}{more}" if places else ""


def crawled(looked: Sequence[Looked]) -> list[Crawled]:
    """Return the documents of WARC records in all files, by source, sorted."""
    sources: dict[str, FromWarc] = {}
    for each in looked:
        for source, found in each.warc.items():
            sources.setdefault(source, FromWarc()).add(found)
    return [
        Crawled(source, found.number, list(found.headers) if len(found.headers) <= KEYS else [], found.dates)
        for source, found in sorted(sources.items())
    ]


def origins(looked: Sequence[Looked], *, whole: bool) -> dict[str, Any]:
    """Return what the rows of documents tell of where they come from, as facts; whole: whether these are all."""
    return {
        "crawled": crawled(looked),
        "crawls": sorted({crawl for each in looked for crawl in each.crawls}),
        "rows": sum(each.number for each in looked) if whole else None,
    }
