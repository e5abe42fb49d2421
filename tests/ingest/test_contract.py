"""Every input format keeps the contract of `toolkit.testing`; batches of columns give what documents give."""

import csv
import io
import json
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any

import msgspec
import pytest

from toolkit import DataError, Draft, DraftColumns, Input, Reader
from toolkit.describe.croissant import BASE, context
from toolkit.errors import MissingExtra
from toolkit.ingest.ingest_config import Common
from toolkit.ingest.input_rows.rows import InputRows
from toolkit.ingest.reader import READERS
from toolkit.testing import check_reader
from toolkit.testing.readers import check_in_new_process, input_of

TEXTS = ["The library opens at nine.\nIt closes at six.", "Η βιβλιοθήκη ανοίγει.", "no line end"]
DAY = "2024-02-29T00:00:00Z"
PAGE = "HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n\r\n<html><body><pre>{}</pre></body></html>"


def warc(type_: str, blocks: Sequence[str]) -> bytes:
    """A WARC file with a record of each block."""
    found = b""
    for i, block in enumerate(blocks):
        data = block.encode()
        head = f"WARC/1.0\r\nWARC-Type: {type_}\r\nWARC-Record-ID: <urn:uuid:{i}>\r\nWARC-Date: {DAY}\r\n"
        found += f"{head}Content-Length: {len(data)}\r\n\r\n".encode() + data + b"\r\n\r\n"
    return found


def rows(*objects: object) -> bytes:
    return b"".join(json.dumps(each, ensure_ascii=False).encode() + b"\n" for each in objects)


def oscar(text: str) -> object:
    sentences = [{"label": "en", "prob": 0.5}, None][: text.count("\n") + 1]
    metadata = {"identification": {"label": "en", "prob": 0.5}, "annotation": None}
    headers = {"warc-record-id": f"<{len(text)}>", "warc-date": DAY}
    return {"content": text, "warc_headers": headers, "metadata": metadata | {"sentence_identifications": sentences}}


DOLMA = rows(*({"id": text[:3], "text": text, "source": "s"} for text in TEXTS))
TABLE = [{"text": text, "url": "x", "of": {"a": [1, None]}} for text in TEXTS]


def parquet() -> bytes:
    """A Parquet file with a row group for each two documents."""
    pq = pytest.importorskip("pyarrow.parquet", exc_type=ImportError)
    pa = pytest.importorskip("pyarrow", exc_type=ImportError)
    out = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(TABLE), out, row_group_size=2)
    return out.getvalue()


def arrow() -> bytes:
    """A stream of Arrow, as `datasets` writes it."""
    pa = pytest.importorskip("pyarrow", exc_type=ImportError)
    out = io.BytesIO()
    table = pa.Table.from_pylist(TABLE)
    with pa.ipc.new_stream(out, table.schema) as writer:
        writer.write_table(table, max_chunksize=2)
    return out.getvalue()


def croissant() -> bytes:
    """A Croissant file with its records in it."""
    pytest.importorskip("mlcroissant", reason="the extra `croissant` is not installed")
    fields = [{"@type": "cr:Field", "@id": f"pages/{n}", "name": n, "dataType": "sc:Text"} for n in ("text", "url")]
    records = {"@type": "cr:RecordSet", "@id": "pages", "name": "pages", "field": fields}
    records["data"] = [{"pages/text": text, "pages/url": "x"} for text in TEXTS]
    about = {"@type": "sc:Dataset", "name": "pages", "conformsTo": f"{BASE}1.1", "recordSet": [records]}
    return json.dumps({"@context": context("1.1"), **about}).encode()


def table(delimiter: str) -> bytes:
    out = io.StringIO()
    writer = csv.writer(out, delimiter=delimiter)
    writer.writerows([("text", "url"), *((text, "x") for text in TEXTS)])
    return out.getvalue().encode()


SAMPLES: dict[str, Callable[[], bytes] | bytes] = {
    "arrow": arrow,
    "croissant": croissant,
    "csv": table(","),
    "dolma": DOLMA,
    "fasttext": "".join(f"__label__a {' '.join(text.split())}\n" for text in TEXTS).encode(),
    "jsonl": rows(*({"text": text, "url": "x"} for text in TEXTS)),
    "oscar": rows(*map(oscar, TEXTS)),
    "text": "\n\n".join([*TEXTS, ""]).encode(),
    "parquet": parquet,
    "tsv": table("\t"),
    "warc": warc("response", [PAGE.format(text) for text in TEXTS]),
    "wet": warc("conversion", TEXTS),
}


@pytest.mark.parametrize("name", READERS.names())
def test_a_format_keeps_the_contract(name: str) -> None:
    texts = [" ".join(text.split()) for text in TEXTS] if name == "fasttext" else TEXTS  # a text is in one line there
    check_reader(READERS.find(name), sample_of(name), texts, new_process=False)


@pytest.mark.slow
def test_documents_are_the_same_in_another_process() -> None:
    usable = []
    for name in READERS.names():
        with suppress(MissingExtra):
            usable.append((READERS.find(name)(), sample_of(name)))
    check_in_new_process(*usable)


def sample_of(name: str) -> bytes:
    sample = SAMPLES[name]
    return sample if isinstance(sample, bytes) else sample()


class Columns(Reader):
    """A document a line, all of them in columns."""

    def read(self, source: Input) -> Iterator[Draft]:
        for batch in self.read_batches(source):
            yield from batch

    def read_batches(self, source: Input) -> Iterator[DraftColumns]:
        with source.stream() as stream:
            lines = stream.read().splitlines()
        bounds = [0]
        for line in lines:
            bounds.append(bounds[-1] + len(line))
        yield DraftColumns(b"".join(lines), bounds, number=range(1, len(lines) + 1), id=[f"#{len(x)}" for x in lines])


class Given(Reader):
    """What a test gives, in place of documents."""

    TYPES = {"stars": int}

    what: Any = None

    def attribute_sets(self) -> list[str]:
        return ["rated-0"]

    def read(self, source: Input) -> Any:
        yield self.what


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ({"id": "1", "text": "one"}, "input: expected a Draft with texts of the format Given, got dict"),
        (None, "input: expected a Draft with texts of the format Given, got NoneType"),
        (Draft(text="one", id=5, number=7), "input:7: expected a Draft with texts of the format Given, got id 5"),  # type: ignore[arg-type]
        (Draft(text=None, number=7), "input:7: expected a Draft with texts of the format Given, got text None"),  # type: ignore[arg-type]
        (Draft(text="one", source=b"s", number=7), "format Given, got source b's'"),  # type: ignore[arg-type]
        (Draft(text="one", added=5, number=7), "format Given, got added 5"),  # type: ignore[arg-type]
        (Draft(text="one", metadata="m", number=7), "format Given, got metadata 'm'"),  # type: ignore[arg-type]
        (Draft(text="one", number=7, metadata=msgspec.Raw(b"{oops")), "format Given: expected a JSON object"),
        (Draft(text="one", number=7, metadata=msgspec.Raw(b'{"a":\n1}')), "expected a row without line feeds"),
        (Draft(text="one", number=7, extra={"text": "two"}), "expected the id, text and source of the Draft"),
        (Draft(text="one", number=7, id="1", raw=b'{"id":"1"}'), "expected field text, got an object without it"),
        (
            Draft(text="one", number=7, attributes={"rated-0": {"stars": msgspec.Raw(b"1")}, "other": {}}),
            "alone, got also other",
        ),
        (
            Draft(text="one", number=7, attributes={"rated-0": {"stars": msgspec.Raw(b"\n5")}}),
            "expected attributes without line feeds",
        ),
        (
            Draft(text="one", number=7, attributes={"rated-0": {"stars": msgspec.Raw(b'"five"')}}),
            "format Given: expected a whole number, got a text - at $.stars",
        ),
    ],
)
def test_what_is_no_document_is_refused(what: object, message: str) -> None:
    common = Common(format="given", from_=["x"], source="s")
    with pytest.raises(DataError, match=re.escape(message)):
        list(InputRows(input_of(b"x"), common, Given(what=what), "x").rows())


class ByLine(Reader):
    """What a test does with lines, or with columns that it makes of all."""

    make: Any = None
    columns: dict[str, Any] = {}

    def read(self, source: Input) -> Iterator[Draft]:
        with source.lines() as lines:
            yield from source.items(lines, lambda line, number: Draft(text=line.decode(), number=self.make(line)))

    def read_batches(self, source: Input) -> Iterator[Sequence[Draft]]:
        return super().read_batches(source) if self.make else iter([DraftColumns(**self.columns)])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (int, "input:2: expected an item of the format, got: invalid literal for int() with base 10: b'two'"),
        (lambda line: {b"1": 1}[line], "input:2: format ByLine failed: KeyError: b'two'; correct ByLine.read"),
        (lambda line: line.number, "input:1: format ByLine failed: AttributeError: 'bytes' object has no attribute"),
    ],
)
def test_an_error_of_the_code_of_a_format_names_it_and_the_line(make: Any, message: str) -> None:
    common = Common(format="given", from_=["x"], source="s")
    with pytest.raises(DataError, match=re.escape(message)):
        list(InputRows(input_of(b"1\ntwo\n"), common, ByLine(make=make), "x").rows())


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"number": [1]}, "format ByLine failed: ValueError: expected 2 values of number, one for each text, got 1"),
        ({}, "expected 2 values of number, one for each text, got 0"),
        ({"number": [1, 2], "id": ["1"]}, "expected 2 values of id, one for each text, got 1"),
        ({"number": [1, 2], "ends": [1]}, "expected 2 values of ends, one for each text, got 1"),
        ({"number": [1, 2], "url": ["x", "y"]}, "expected columns of fields of a Draft, got url"),
        ({"number": [1, 2], "id": ["1", 2]}, "input:2: expected a Draft with texts of the format ByLine, got id 2"),
        ({"number": [1, 2], "id": ["1", "2"], "created": [None, 3]}, "format ByLine, got created 3"),
        ({"number": [1, 2], "id": ["1", "2"], "metadata": [{}, "m"]}, "format ByLine, got metadata 'm'"),
        ({"number": [1, 2], "bounds": [0, 1, 3]}, "expected offsets from 0 to 2, got an end at 3"),
        ({"number": [1, 2], "utf8": b"\xff\xff"}, "format ByLine failed: UnicodeDecodeError: 'utf-8' codec"),
    ],
)
def test_columns_that_are_no_documents_are_refused(columns: dict[str, Any], message: str) -> None:
    common = Common(format="given", from_=["x"], source="s")
    bounds = [0, 1] if "ends" in columns else [0, 1, 2]
    with pytest.raises(DataError, match=re.escape(message)):
        list(InputRows(input_of(b""), common, ByLine(columns={"utf8": b"xy", "bounds": bounds, **columns}), "x").rows())


def test_columns_are_documents() -> None:
    (batch,) = Columns().read_batches(input_of("one\nGröße\n\n".encode()))
    wanted = [Draft(text="one", number=1, id="#3"), Draft(text="Größe", number=2, id="#7")]
    assert len(batch) == 3
    assert list(batch) == [*wanted, Draft(text="", number=3, id="#0")]
    assert batch[:2] == wanted
    assert batch[-2] == wanted[1]
    with pytest.raises(IndexError):
        batch[3]


def test_a_default_batch_is_a_document_so_that_bad_items_keep_their_order() -> None:
    """What the reader finds bad behind a document is found after the document was taken."""
    batches = READERS.find("dolma")().read_batches(input_of(DOLMA + b"{}\n"))
    assert [len(next(batches)) for _ in TEXTS] == [1, 1, 1]
    with pytest.raises(DataError, match="expected field id"):
        next(batches)
