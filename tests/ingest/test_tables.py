"""Tables of others (Parquet, Arrow, CSV) as documents: columns, damage, and what a row may not be."""

import io
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from toolkit import DataError, Draft
from toolkit.config.settings import ConfigNode, convert
from toolkit.errors import ConfigError
from toolkit.ingest.formats.arrow import Arrow
from toolkit.ingest.formats.csv import Csv
from toolkit.ingest.formats.jsonl import Jsonl
from toolkit.ingest.formats.parquet import Parquet
from toolkit.ingest.reader import Input, Rejects
from toolkit.ingest.tables.fields import FieldReader
from toolkit.testing.readers import input_of

pa = pytest.importorskip("pyarrow", exc_type=ImportError)
pq = pytest.importorskip("pyarrow.parquet", exc_type=ImportError)


def parquet(rows: list[dict[str, Any]], **options: Any) -> bytes:
    out = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows), out, **options)
    return out.getvalue()


def stream(rows: list[dict[str, Any]], chunk: int = 2) -> bytes:
    out = io.BytesIO()
    table = pa.Table.from_pylist(rows)
    with pa.ipc.new_stream(out, table.schema) as writer:
        writer.write_table(table, max_chunksize=chunk)
    return out.getvalue()


def csv_of(*lines: str) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode()


def read_table(table: Any) -> list[Draft]:
    out = io.BytesIO()
    pq.write_table(table, out)
    return list(Parquet().read(input_of(out.getvalue())))


def options(class_: type[FieldReader], **given: Any) -> FieldReader:
    return convert(ConfigNode(given), class_)


def read(reader: FieldReader, content: bytes) -> list[Draft]:
    return list(reader.read(input_of(content)))


ROWS = [{"text": f"text {i}", "url": f"u{i}", "score": i / 2, "of": {"a": [i, None]}} for i in range(5)]
WAYS = {
    "jsonl": (Jsonl, b"".join(json.dumps(row).encode() + b"\n" for row in ROWS)),
    "parquet": (Parquet, parquet(ROWS, row_group_size=2)),
    "arrow": (Arrow, stream(ROWS)),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("given", "metadata", "extra"),
    [
        ({}, None, {"url": "u1", "score": 0.5, "of": {"a": [1, None]}}),
        ({"metadata": "rest"}, {"url": "u1", "score": 0.5, "of": {"a": [1, None]}}, {}),
        ({"metadata": ["of", "url"]}, {"of": {"a": [1, None]}, "url": "u1"}, {"score": 0.5}),
        ({"metadata": ["url"], "leave_out": "rest"}, {"url": "u1"}, {}),
        ({"metadata": "rest", "leave_out": ["of"]}, {"url": "u1", "score": 0.5}, {}),
        ({"metadata": ["url"], "fields": {"metadata": "of"}}, {"a": [1, None], "url": "u1"}, {"score": 0.5}),
        ({"metadata": ["url"], "fields": {"id": "url"}}, {"url": "u1"}, {"score": 0.5, "of": {"a": [1, None]}}),
    ],
)
def test_flat_fields_become_metadata(way: str, given: dict[str, Any], metadata: Any, extra: dict[str, Any]) -> None:
    class_, content = WAYS[way]
    found = read(options(class_, **given), content)
    assert [draft.text for draft in found] == [row["text"] for row in ROWS]
    assert [draft.number for draft in found] == [1, 2, 3, 4, 5]
    assert found[1].metadata == metadata
    assert list(found[1].metadata or ()) == list(metadata or ())
    assert found[1].extra == extra
    assert found[1].id == ("u1" if "id" in given.get("fields", {}) else None)


def test_a_name_that_metadata_have_already_is_refused_where_it_would_be_lost() -> None:
    row = {"text": "a", "url": "1", "metadata": {"url": "1", "n": 1}}
    assert read(Jsonl(metadata=("url",)), json.dumps(row).encode())[0].metadata == {"url": "1", "n": 1}
    with pytest.raises(
        DataError, match=r'input:1: expected one value of `metadata.url`, got "2" in the metadata and "1"'
    ):
        read(Jsonl(metadata=("url",)), json.dumps(row | {"metadata": {"url": "2"}}).encode())


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"metadata": "rest", "leave_out": "rest"}, "expected rest in metadata or in leave_out, got it in both"),
        ({"metadata": ["a"], "leave_out": ["a"]}, "expected 'a' in metadata or in leave_out, got it in both"),
        ({"metadata": "all"}, "rest"),
    ],
)
def test_options_that_contradict_are_refused(given: dict[str, Any], expected: str) -> None:
    with pytest.raises(ConfigError, match=expected):
        options(Jsonl, **given)


def test_metadata_may_be_a_json_text_as_the_writer_of_parquet_has_it() -> None:
    row = {"text": "a", "metadata": '{"url": "x"}', "attributes": '{"n": 1}', "added": None}
    (found,) = read(Parquet(), parquet([row]))
    assert (found.metadata, found.extra, found.added) == ({"url": "x"}, {"attributes": {"n": 1}}, None)
    with pytest.raises(DataError, match='input:1: expected metadata as an object, or its JSON text, got the text "x"'):
        read(Parquet(), parquet([{"text": "a", "metadata": "x"}]))


# --- parquet and arrow ------------------------------------------------------------------------------------------------


def test_only_needed_columns_are_read() -> None:
    """A column that is left out may be damaged: nobody looks at it."""
    noise = [{"text": "a" * 9, "blob": bytes(range(256)) * 40 + bytes([i])} for i in range(50)]
    content = bytearray(parquet(noise, compression="none", write_page_checksum=True, use_dictionary=False))
    at = content.index(bytes(range(256)))
    content[at] ^= 1
    assert len(read(Parquet(leave_out=("blob",)), bytes(content))) == 50
    assert len(read(Parquet(leave_out="rest"), bytes(content))) == 50
    with pytest.raises(DataError, match=r"expected a sound Parquet file, got damage in row group 1 of 1: .*CRC"):
        read(Parquet(), bytes(content))


def test_values_of_arrow_become_those_of_json() -> None:
    when = datetime(2024, 2, 29, 12, 0, 0, 7, tzinfo=UTC)
    table = pa.table(
        {
            "text": pa.array(["a"], pa.large_string()),
            "added": pa.array([when], pa.timestamp("ns", "UTC")),
            "day": pa.array([when.date()]),
            "kind": pa.array(["x"]).dictionary_encode(),
            "map": pa.array([[("k", when)]], pa.map_(pa.string(), pa.timestamp("ns", "UTC"))),
            "nan": pa.array([float("nan")]),
            "in": pa.array([[{"f": float("inf")}]]),
        }
    )
    out = io.BytesIO()
    pq.write_table(table, out)
    source = input_of(out.getvalue())
    (found,) = Parquet().read(source)
    assert found.added == "2024-02-29T12:00:00.000007Z"
    assert json.loads(json.dumps(found.extra, default=str))["kind"] == "x"
    assert source.counts == {"not_finite.nan": 1, "not_finite.in": 1}


def test_times_in_nanoseconds_keep_all_their_digits() -> None:
    """At any depth; what is whole microseconds looks as it does in a column of microseconds."""
    stamp, zoned = pa.timestamp("ns"), pa.timestamp("ns", "Europe/Berlin")
    table = pa.table(
        {
            "text": ["a", "b"],
            "at": pa.array([1, 1000], stamp),
            "zone": pa.array([-1, None], zoned),
            "list": pa.array([[7, None], []], pa.list_(stamp)),
            "in": pa.array([{"t": 10**18 + 2, "n": 1}, None], pa.struct({"t": stamp, "n": pa.int8()})),
            "map": pa.array([[("k", 1)], []], pa.map_(pa.string(), pa.time64("ns"))),
            "kind": pa.array([1, 2000], stamp).dictionary_encode(),
            "took": pa.array([-2001, 3000], pa.duration("ns")),
        }
    )
    for content in (table, table.slice(1)):  # in the second no time has such a part
        out = io.BytesIO()
        pq.write_table(content, out)
        found = [msgspec.to_builtins(draft.extra) for draft in Parquet().read(input_of(out.getvalue()))]
        assert found[-1] == {
            "at": "1970-01-01T00:00:00.000001",
            "zone": None,
            "list": [],
            "in": None,
            "map": {},
            "kind": "1970-01-01T00:00:00.000002",
            "took": "PT0.000003S",
        }
    assert msgspec.to_builtins(read_table(table)[0].extra) == {
        "at": "1970-01-01T00:00:00.000000001",
        "zone": "1970-01-01T00:59:59.999999999+01:00",
        "list": ["1970-01-01T00:00:00.000000007", None],
        "in": {"t": "2001-09-09T01:46:40.000000002", "n": 1},
        "map": {"k": "00:00:00.000000001"},
        "kind": "1970-01-01T00:00:00.000000001",
        "took": "-PT0.000002001S",
    }


@pytest.mark.parametrize(
    ("values", "said"),
    [
        (pa.array([[("a", 1), ("a", 2)]], pa.map_(pa.string(), pa.int64())), "duplicate key"),
        (pa.array([[("a", 1), ("a", 2)]], pa.map_(pa.string(), pa.timestamp("ns"))), "a map has a key twice"),
    ],
)
def test_a_value_that_cannot_be_had_is_told_with_its_column(values: Any, said: str) -> None:
    with pytest.raises(DataError, match=f"input:1: expected a row that can be read, got: .*{said}.*, in the column 'c"):
        read_table(pa.table({"text": ["a"], "c": values}))


@pytest.mark.parametrize(
    ("class_", "content", "place"),
    [
        (Parquet, parquet(ROWS, row_group_size=2), "in its footer"),
        (Arrow, stream(ROWS), r"(after|in) (record batch \d|its beginning)"),
    ],
)
def test_a_truncated_file_is_an_error_wherever_it_ends(class_: type[FieldReader], content: bytes, place: str) -> None:
    for end in (*range(0, len(content), 97), len(content) - 8, len(content) - 1):
        with pytest.raises(DataError, match=rf"input(:\d)?: expected a sound .* file, got damage {place}: "):
            read(class_(), content[:end])


def test_names_that_are_no_text_are_damage() -> None:
    rows = [{"text": "a", "of": {"abcdef": 1}}]
    for class_, content in ((Arrow, stream(rows)), (Parquet, parquet(rows))):
        for name in (b"abcdef", b"text"):
            with pytest.raises(DataError, match=r"expected a (sound|column)"):
                read(class_(), content.replace(name, name[:-1] + b"\xff"))


def test_damage_in_a_row_group_names_it_and_the_row() -> None:
    plain = {"compression": "none", "use_dictionary": False, "write_statistics": False}
    content = bytearray(parquet(ROWS, row_group_size=2, write_page_checksum=True, **plain))
    content[content.index(b"text 2") + 1] ^= 1
    with pytest.raises(DataError, match=r"input:3: expected a sound Parquet file, got damage in row group 2 of 3: "):
        read(Parquet(), bytes(content))


@pytest.mark.parametrize(
    ("rows", "given", "expected"),
    [
        ([{"body": "a"}], {}, r"input: expected a column 'text' of texts; say which it is: `fields: {text: NAME}`"),
        (
            [{"text": "a", "url": "x"}],
            {"metadata": ["ulr"]},
            "column 'ulr' of `metadata`, got none; did you mean 'url'",
        ),
        ([{"text": "a"}, {"text": None}], {}, "input:2: expected a text in text, got null"),
        ([{"text": 7}], {}, r"input:1: expected a text, got a whole number - at \$.text"),
    ],
)
def test_what_a_table_must_have(rows: list[dict[str, Any]], given: dict[str, Any], expected: str) -> None:
    for class_, content in ((Parquet, parquet(rows)), (Arrow, stream(rows))):
        with pytest.raises(DataError, match=expected):
            read(options(class_, **given), content)


def test_a_row_that_is_no_text_is_one_bad_row(tmp_path: Any) -> None:
    """Parquet files may have other bytes than UTF-8 in columns of texts; the other rows stay."""
    good = parquet([{"text": f"text {i}"} for i in range(9)], compression="none", use_dictionary=False)
    content = good.replace(b"text 4", b"text\xff4")
    with Rejects(str(tmp_path / "rejects.jsonl")) as rejects:
        source = Input("x", "s", 1 << 20, rejects, lambda: io.BytesIO(content))
        found = list(Parquet().read(source))
    assert [draft.number for draft in found] == [1, 2, 3, 4, 6, 7, 8, 9]
    assert source.counts == {"rejected.not of the format": 1}


def test_a_missing_package_is_told_with_the_line_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    for class_ in (Parquet, Arrow):
        with pytest.raises(ConfigError, match=r"expected the package pyarrow .*: pip install 'tagmix\[parquet\]'"):
            options(class_)


# --- csv --------------------------------------------------------------------------------------------------------------


def test_quoted_fields_have_delimiters_line_breaks_and_quotes() -> None:
    content = csv_of("id,text,n", '1,"a,\r\nb ""c""",x', "2,,", "3,last,y")
    found = read(Csv(), content)
    assert [(draft.id, draft.text, draft.number) for draft in found] == [
        ("1", 'a,\r\nb "c"', 2),
        ("2", "", 4),
        ("3", "last", 5),
    ]
    assert [draft.extra for draft in found] == [{"n": "x"}, {"n": None}, {"n": "y"}]


def test_columns_may_be_named_and_typed() -> None:
    given = {"delimiter": ";", "header": ["text", "n", "x", "ok", "j"], "metadata": "rest"}
    typed = {"n": "int", "x": "float", "ok": "bool", "j": "json"}
    found = read(options(Csv, **given, typed=typed), csv_of('a;7;.5;true;"{""k"": [1]}"', "b;;;;"))
    assert found[0].metadata == {"n": 7, "x": 0.5, "ok": True, "j": {"k": [1]}}
    assert found[1].metadata == dict.fromkeys(typed)
    for value in ("007", "1_000", "7.0", "x"):
        with pytest.raises(DataError, match=f"input:1: expected int in the column 'n', got '{value}'"):
            read(options(Csv, **given, typed=typed), csv_of(f"a;{value};;;"))


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (csv_of("id,text", "1,a,b"), "input:2: expected 2 fields as there are columns, got 3"),
        (csv_of("id,text", '1,"a"b'), 'input:2: expected a row of CSV, got: , expected after "; .*`quote: null`'),
        (csv_of("id,text", '1,"a', "b", "c"), "input:2: expected a quote that closes .*, got the end of the file"),
        (
            csv_of("id,text", "1,\xe9").decode().encode("latin-1"),
            "input:2: expected UTF-8, got .* at byte 3 of a line; .*`enc",
        ),
        (
            csv_of("id,text", '1,"a', *["b" * 9000] * 200),
            "input:2: expected a row of at most 1,048,576 bytes, got a longer",
        ),
        (b"id,text\r1,a\r", r"input:1: expected rows that end in .*, got a .r inside a row; .*: tr "),
        (csv_of("text,text", "1,a"), "expected columns of different names, got 'text' twice"),
        (csv_of("id,body", "1,a"), "expected a column 'text' of texts; .* there are: id, body"),
        (b"", "expected a row with the names of the columns, got an empty file"),
    ],
)
def test_what_is_no_table_is_an_error_with_the_line_at_which_the_row_begins(content: bytes, expected: str) -> None:
    with pytest.raises(DataError, match=expected):
        read(Csv(), content)


def test_bad_rows_are_kept_aside_and_reading_goes_on(tmp_path: Any) -> None:
    """Also behind a line that is not of the encoding."""
    content = csv_of("id,text", "1,a", "", "2,b,c", '3,"d"e', "4,\xe9", "5,last").decode().encode("latin-1")
    with Rejects(str(tmp_path / "rejects.jsonl")) as rejects:
        source = Input("x", "s", 1 << 20, rejects, lambda: io.BytesIO(content))
        assert [draft.id for draft in Csv().read(source)] == ["1", "5"]
    assert source.counts == {"blank_line": 1, "rejected.not of the format": 2, "rejected.invalid UTF-8": 1}


@pytest.mark.parametrize("header", [b"id,t\xe9xt,text", b'"id"x,text', b"id,text\r1,a\r"])
def test_bad_names_of_columns_are_an_error_also_where_bad_rows_are_skipped(header: bytes, tmp_path: Any) -> None:
    """Or else the next row would be taken for the names."""
    content = header + b"\nid,text\n1,a\n"
    with Rejects(str(tmp_path / "rejects.jsonl")) as rejects:
        source = Input("x", "s", 1 << 20, rejects, lambda: io.BytesIO(content))
        with pytest.raises(DataError, match="x:1: expected"):
            list(Csv().read(source))


def test_encodings_are_declared() -> None:
    content = csv_of("id,text", "1,Größe „x“").decode().encode("windows-1252")
    assert read(options(Csv, encoding="windows-1252"), content)[0].text == "Größe „x“"
    for wrong in ("utf-16", "utf-7", "nothing", "rot13"):
        with pytest.raises(ConfigError, match="expected an encoding in which ASCII is ASCII"):
            options(Csv, encoding=wrong)


def test_a_file_without_quotes_is_read_as_it_is() -> None:
    found = read(options(Csv, quote=None, delimiter="\t"), csv_of("id\ttext", '1\tsay "no', '2\t"yes" I said'))
    assert [draft.text for draft in found] == ['say "no', '"yes" I said']


def test_memory_is_bounded_by_a_batch_not_by_a_row_group() -> None:
    rows = [{"text": "x" * 100_000} for _ in range(200)]
    sizes: Iterator[int] = (len(batch) for batch in Parquet().read_batches(input_of(parquet(rows))))
    assert max(sizes) < 100
