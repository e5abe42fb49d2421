"""Views have the rows and the values of the files, with the declared types; what a mix would refuse is an error."""

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import toolkit
from tests.pipeline.conftest import Project, attributes, document, read_rows, write_rows
from tests.sql.conftest import Query
from toolkit.data.dataset import Dataset
from toolkit.data.documents import Document
from toolkit.errors import DataError
from toolkit.inspect.targets import Format
from toolkit.session import Session
from toolkit.sql import streams, views
from toolkit.sql.session import Database
from toolkit.sql.streams import Faults
from toolkit.sql.views import File, Parts, of_parts

pa = pytest.importorskip("pyarrow", reason="queries need pyarrow")
pq = pytest.importorskip("pyarrow.parquet", reason="queries need pyarrow")


def named(spans: list[Any]) -> list[dict[str, Any]]:
    return [dict(zip(("start", "end", "score"), each, strict=True)) for each in spans]


def test_values_at_the_edges_are_those_of_our_reader(edges: Project, query: Query) -> None:
    found = query('SELECT * FROM "edges-0" ORDER BY "row"')
    rows = list(toolkit.Dataset(str(edges.data)).joined("edges-0"))
    for got, row in zip(found, rows, strict=True):
        value = row["edges"]
        assert (got["shard"], got["row"], got["id"], got["source"]) == ("x.jsonl.gz", row.number, row.document.id, "s")
        plain = json.loads(json.dumps(value))
        plain["spans"] = named(plain["spans"])
        plain["by_name"] = {name: named(spans) for name, spans in plain["by_name"].items()}
        if plain["inner"]:
            plain["inner"]["spans"] = named(plain["inner"]["spans"])
        got["edges"]["free"] = json.loads(got["edges"]["free"] or "null")  # JSON within a struct is a text
        assert got["edges"] == plain
        assert str(got["edges"]["score"]) == str(plain["score"])  # -0.0


def test_types_are_those_of_the_schema(edges: Project, query: Query) -> None:
    types = {row["column_name"]: row["column_type"] for row in query("DESCRIBE joined")}
    span = "STRUCT(start BIGINT, end BIGINT, score DOUBLE)"
    assert types["edges"].replace('"', "") == (
        f"STRUCT(number BIGINT, score DOUBLE, text VARCHAR, maybe VARCHAR, flag BOOLEAN, spans {span}[], "
        f"by_name MAP(VARCHAR, {span}[]), counts MAP(VARCHAR, BIGINT), free JSON, holes DOUBLE[], "
        f"inner STRUCT(spans {span}[], label VARCHAR))"
    )
    assert (types["row"], types["chars"], types["text"], types["metadata"]) == ("BIGINT", "BIGINT", "VARCHAR", "JSON")


def test_documents_are_those_of_our_reader(project: Project, query: Query) -> None:
    """Also where keys are repeated, unknown or absent, and where a text has NUL."""
    lines = [
        b'{"id":"1","text":"first","text":"last","source":"s","metadata":{"a":1e400}}',
        b'{"metadata": {"a" : 1.0} , "text":"a\\u0000b", "other":{"id":2},"source":"s","id":"2","created":null}',
        '{"id":"3","text":"\\ud83d\\ude00 ä","source":"","added":"2020-01-01"}'.encode(),
    ]
    write_rows(project.documents / "x.jsonl.gz", lines)
    found = query("SELECT id, source, text, added, created, chars, bytes, length(text) AS n FROM documents")
    rows = list(toolkit.Dataset(str(project.data)).documents())
    assert [(f["id"], f["source"], f["text"], f["added"], f["created"]) for f in found] == [
        (r.id, r.source, r.text, r.field("added"), r.field("created")) for r in rows
    ]
    assert [f["text"] for f in found] == ["last", "a\0b", "\U0001f600 ä"]
    assert [(f["chars"], f["bytes"]) for f in found] == [(4, 4), (3, 3), (3, 7)]
    assert query("SELECT metadata IS NULL AS is_null FROM documents WHERE id = '3'") == [{"is_null": True}]


@pytest.mark.parametrize("name", ["x.jsonl", "x.jsonl.gz", "x.jsonl.zst"])
def test_any_compression(name: str, project: Project, query: Query) -> None:
    from toolkit.storage.outputs import RowOutput

    with RowOutput(str(project.documents / name)) as out:
        out.write_rows(json.dumps(document(str(i), "t" * i)).encode() for i in range(1, 4))
    project.config["tag"] = {"shape-0": ["noise"]}
    project.ok("tag")
    assert query("SELECT sum(noise.chars) AS n, sum(length(text)) AS m FROM joined") == [{"n": 6, "m": 6}]


def test_documents_in_place(project: Project, query: Query) -> None:
    write_rows(project.root / "theirs" / "x.jsonl.gz", [{"key": 7, "body": "a\nb"}, {"key": 8, "body": "c"}])
    place = {"format": "jsonl", "path": str(project.root / "theirs"), "source": "t"}
    place["fields"] = {"id": "key", "text": "body"}  # type: ignore[assignment]  # a mapping among texts
    project.config |= {"documents": place, "attributes": str(project.attributes), "tag": {"shape-0": ["line_shape"]}}
    del project.config["dataset"]
    project.ok("tag")
    found = query('SELECT shard, "row", id, text, line_shape.lines AS n FROM joined')
    assert [tuple(row.values()) for row in found] == [
        ("x.jsonl.gz.jsonl.gz", 1, "7", "a\nb", 2),
        ("x.jsonl.gz.jsonl.gz", 2, "8", "c", 1),
    ]


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"metadata": "rest"}, {"metadata": ["d"], "trim": {"min_chars": 1}}])
def test_tables_in_place_have_the_values_of_their_rows(
    options: dict[str, Any], project: Project, query: Query, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = {
        "id": pa.array([1, None, *range(3, 10)]),
        "text": ["a\nb", None, *(f'ä 𝄞 "{i}"' * i for i in range(3, 10))],
        "source": pa.array([None, *"ababbaab"]),
        "created": pa.array(["2020-01-01T00:00:00Z", *[None] * 8]),
        "f": pa.array([0.7, float("nan"), None, *range(6)], pa.float32()),
        "d": pa.array([{"x": [1.5, None]}, *[None] * 8]),
        'say "hi"': pa.array(range(9)),
    }
    pq.write_table(pa.table(table), project.root / "a.parquet", row_group_size=4)
    place = {"format": "parquet", "path": str(project.root / "a.parquet"), "source": "t", "null_text": "empty"}
    project.config |= {"documents": place | options, "attributes": str(project.attributes)}
    del project.config["dataset"]
    monkeypatch.setattr(streams, "PIECE_ROWS", 3)
    queries = [
        f"SELECT {fields} FROM documents" for fields in ("*", "source", "id, chars", "metadata", "text, created")
    ]
    found = [query(sql) for sql in queries]
    monkeypatch.setattr(Dataset, "tables", lambda *_: None)
    assert found == [query(sql) for sql in queries]
    assert len(found[0]) >= 8


def test_the_rule_of_a_mix_counts_what_the_mix_counts(small: Project, query: Query) -> None:
    small.config["tag"]["copy-0"] = ["line_shape"]
    small.config["mix"]["attributes"] = ["shape-0", {"set": "copy-0", "as": {"line_shape": "again"}}]
    small.config["mix"]["rules"] = [{"drop": "line_shape.lines > 2 or again.chars < 2", "name": "long"}]
    small.ok("tag")
    totals = small.ok("mix", "--json").out
    kept = json.loads(totals)["totals"]
    rule = "NOT (line_shape.lines > 2 OR again.chars < 2)"
    assert query(f"SELECT count(*) AS kept, sum(chars) AS kept_chars FROM joined WHERE {rule}") == [
        {"kept": kept["kept"], "kept_chars": kept["kept_chars"]}
    ]
    by_hand = """SELECT count(*) AS n FROM documents JOIN "shape-0" USING (shard, "row") JOIN copy_0 AS c
        USING (shard, "row") WHERE NOT ("shape-0".line_shape.lines > 2 OR c.line_shape.chars < 2)"""
    assert query(by_hand) == [{"n": kept["kept"]}]
    assert query("SELECT count(*) AS n FROM output") == [{"n": kept["kept"]}]


def test_only_what_is_asked_for_is_read(small: Project, query: Query, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[frozenset[str]] = []
    read = streams.Shards.batches

    def batches(self: streams.Shards, columns: frozenset[str]) -> object:
        asked.append(columns)
        return read(self, columns)

    monkeypatch.setattr(streams.Shards, "batches", batches)
    assert query("SELECT count(*) AS n, sum(chars) AS chars FROM documents")[0]["n"] == 12
    assert query("SELECT max(noise.chars) AS n FROM joined WHERE shard = 'a.jsonl.gz'") != []
    assert [columns & {"text", "id", "metadata"} for columns in asked] == [frozenset(), frozenset()]
    assert "s0" in asked[1]


@pytest.mark.slow
def test_batches_are_bounded(small: Project, query: Query, monkeypatch: pytest.MonkeyPatch) -> None:
    everything = query('SELECT * FROM joined ORDER BY shard, "row"')
    for rows, size in ((2, 8 << 20), (8192, 10), (1, 1)):
        monkeypatch.setattr(streams, "PIECE_ROWS", rows)
        monkeypatch.setattr(streams, "PIECE_BYTES", size)
        assert query('SELECT * FROM joined ORDER BY shard, "row"') == everything
    assert query("SELECT id FROM joined WHERE \"row\" > 3 AND shard IN ('a.jsonl.gz', 'deep/er/c.jsonl.gz')") == [
        {"id": each} for each in ("a-4", "a-5", "deep/er/c-4")
    ]


def test_sets_of_other_programs(by_hand: Project, query: Query) -> None:
    """Rows may lack a key, and a source; they are held against the documents all the same."""
    rows = read_rows(by_hand.attributes / "exp" / "a.jsonl.gz")
    rows[1]["attributes"] = {}
    del rows[2]["source"]
    write_rows(by_hand.attributes / "exp" / "a.jsonl.gz", rows)
    found = query("SELECT id, exp__lines__count AS spans FROM exp WHERE shard = 'a.jsonl.gz'")
    assert [row["spans"] for row in found][:2] == [[{"start": 0, "end": 7, "score": 1.0}], []]
    rows[3]["id"] = "another"
    write_rows(by_hand.attributes / "exp" / "a.jsonl.gz", rows)
    for sql in ("SELECT count(*) FROM exp", "SELECT sum(len(exp__lines__count)) FROM joined"):
        by_hand("sql", sql).fails(1, "a.jsonl.gz:4: expected the attributes of")


@pytest.mark.slow
def test_a_file_that_a_mix_refuses_is_an_error_with_its_line(small: Project) -> None:
    path = small.attributes / "shape-0" / "b.jsonl.gz"
    sound, rows = path.read_bytes(), read_rows(path)
    short = gzip.compress(b"".join(json.dumps(row).encode() + b"\n" for row in rows[:2]))
    misaligned = gzip.compress(b"".join(json.dumps(row).encode() + b"\n" for row in [rows[1], rows[0], rows[2]]))
    for broken, place in ((None, ":1"), (short, ":3"), (misaligned, ":1"), (sound[:-20], ":")):
        if broken is None:
            path.unlink()
        else:
            path.write_bytes(broken)
        for sql in ("SELECT count(*) FROM shape_0", "SELECT avg(noise.chars) FROM joined", 'SELECT id FROM "shape-0"'):
            ran = small("sql", sql).fails(1, f"b.jsonl.gz{place}")
            assert ran.err.count("\n") == 1, ran.err
    path.write_bytes(sound)
    write_rows(small.documents / "b.jsonl.gz", [document(f"b-{i}", "new") for i in range(1, 4)])
    small("sql", "SELECT avg(noise.chars) FROM joined").fails(
        1, "as it is now, got those of an earlier version; run `toolkit tag`"
    )
    assert small("sql", "SELECT count(*) FROM documents").code == 0  # which needs no attributes


def test_names_that_are_taken_have_their_set_before_them(project: Project, query: Query) -> None:
    write_rows(project.documents / "x.jsonl", [document("1", "a")])
    for name, keys in (("a-1", {"text": 1, "N": 2}), ("b", {"n": 3, "row": [[0, 1, 1.0]]})):
        write_rows(project.attributes / name / "x.jsonl", [attributes("1", keys)])
    (row,) = query("SELECT * FROM joined")
    assert (row["text"], row["a-1.text"], row["N"], row["b.n"]) == ("a", 1, 2, 3)
    assert row["row"] == 1
    assert row["b.row"] == [{"start": 0, "end": 1, "score": 1.0}]
    assert query('SELECT n, "b.row"[1].score AS s FROM b') == [{"n": 3, "s": 1.0}]


def test_sets_that_are_called_as_views_or_differ_by_case_have_underscores(project: Project) -> None:
    write_rows(project.documents / "x.jsonl", [document("1", "a")])
    for number, name in enumerate(["documents", "OUTPUT", "a", "A"]):
        write_rows(project.attributes / name / "x.jsonl", [attributes("1", {"n": number})])
    sql = 'SELECT t.n, o.n AS o, a.n AS a, b.n AS b FROM documents_ t, "OUTPUT_" o, "A" a, "a_" b, documents'
    ran = project.run("sql", sql, project.data, "--json").succeeds()
    assert ran.json["rows"] == [{"n": 0, "o": 1, "a": 3, "b": 2}]


def test_an_output_without_ids_has_none(tmp_path: Path) -> None:
    part = write_rows(tmp_path / "en.jsonl.gz", [{"content": "x", "warc_headers": {}, "metadata": {}}])
    faults = Faults()
    listed = Parts([File("en.jsonl.gz", str(part), Format("oscar", {}), "en")], {}, 1 << 20)
    view = of_parts(listed, faults, Session())
    with Database({"output": lambda: view}, faults, memory=1 << 30, threads=1) as session:
        assert list(session.execute("SELECT id, source, chars FROM output").rows()) == [(None, None, 1)]


def test_tables_have_the_values_of_their_documents(tmp_path: Path) -> None:
    """Columns of other types than ours, a column that is missing, and texts that are wrong."""
    path = tmp_path / "t.parquet"
    table = {"content": ["x\ny", "é"], "id": [7, None], "metadata": [{"at": 0.5, "n": None}, None]}
    pq.write_table(pa.table(table), path)

    def rows(sql: str) -> list[Any]:
        faults, listed = Faults(), Parts([File("t.parquet", str(path), Format("parquet", {}), None)], {}, 1 << 20)
        with Database({"output": lambda: of_parts(listed, faults, Session())}, faults, memory=1 << 30, threads=1) as db:
            return list(db.execute(sql).rows())

    assert rows("SELECT part, row, label, id, source, chars, text, metadata FROM output") == [
        ("t.parquet", 1, None, "7", None, 3, "x\ny", '{"at":0.5,"n":null}'),
        ("t.parquet", 2, None, None, None, 1, "é", None),
    ]
    assert rows("SELECT count(*) FROM output") == [(2,)]
    texts = pa.array(['{"a":1}', "{}", "no object", None]).dictionary_encode()
    pq.write_table(pa.table({"text": ["x"] * 4, "metadata": texts, "id": texts}), path)
    values = [('{"a":1}', '{"a":1}'), (None, "{}"), (None, "no object"), (None, None)]
    assert rows("SELECT metadata, id FROM output") == values
    pq.write_table(pa.table({"text": ["x", None, "y"]}), path)
    with pytest.raises(DataError, match="expected a text in 'text', got null") as error:
        rows("SELECT max(text) FROM output")
    assert error.value.line == 2
    not_utf8 = pa.StringArray.from_buffers(2, *pa.array([b"x", b"\xff"]).buffers()[1:])
    pq.write_table(pa.table({"text": not_utf8}), path)
    with pytest.raises(DataError, match="Invalid UTF8"):
        rows("SELECT max(text) FROM output")


@pytest.mark.slow
def test_an_output_alone_and_files_of_others(small: Project) -> None:
    small.config["mix"]["output"]["attributes"] = True
    small.ok("mix")
    sql = "SELECT id, chars, text, line_shape.lines AS n FROM output ORDER BY id LIMIT 2"
    ran = small.run("sql", sql, small.out, "--json")
    assert ran.json["rows"] == [
        {"id": "a-1", "chars": 7, "text": "one\ntwo", "n": 2},
        {"id": "a-2", "chars": 8, "text": "one line", "n": 1},
    ], ran.err
    part = next(path for path in sorted(small.out.rglob("*.gz")) if ".toolkit" not in path.parts)
    part.write_bytes(part.read_bytes()[:-9])
    small.run("sql", "SELECT count(*) FROM output", small.out).fails(1, "that the manifest describes")
    path = write_rows(small.root / "others.jsonl", [document("1", "x")])
    ran = small.run("sql", "SELECT id FROM output", path, "--json")
    assert ran.json["rows"] == [{"id": "1"}]


def test_a_dataset_and_an_output_are_queried_together(small: Project) -> None:
    small.ok("mix")
    sql = "SELECT count(*) AS n FROM documents WHERE id NOT IN (SELECT id FROM output)"
    ran = small.run("sql", sql, small.data, small.out, "--json")
    assert ran.json["rows"] == [{"n": 3}], ran.err


def test_limit_is_of_shards(small: Project, query: Query) -> None:
    assert query("SELECT DISTINCT shard FROM shape_0", "--limit", 1) == [{"shard": "a.jsonl.gz"}]


def test_in_python(small: Project) -> None:
    dataset = toolkit.Dataset(str(small.data))
    table = dataset.sql("SELECT shard, sum(noise.chars) AS n FROM joined GROUP BY ALL ORDER BY 1").read_all()
    assert table.column_names == ["shard", "n"]
    assert len(table) == 3
    (small.attributes / "shape-0" / "b.jsonl.gz").unlink()
    with pytest.raises(toolkit.DataError, match=r"b\.jsonl\.gz:1: "):
        dataset.sql("FROM joined").read_all()
    with pytest.raises(toolkit.ConfigError, match=r"sql:1:8: .*nois"):
        dataset.sql("SELECT nois FROM joined")


def test_what_there_is_are_the_views(small: Project, query: Query) -> None:
    duckdb = pytest.importorskip("duckdb")
    if int(duckdb.__version__.partition(".")[0]) < 2:
        pytest.skip("DuckDB before 2 lists what its relations are made of, too")
    assert [row["name"] for row in query("SHOW TABLES")] == ["documents", "joined", "shape-0", "shape_0"]
    found = query("SELECT table_schema, table_name FROM information_schema.tables")
    assert {row["table_schema"] for row in found} == {"main"}


@pytest.mark.parametrize(("texts", "batches"), [(True, [2, 1]), (False, [3])])
def test_a_batch_ends_with_the_document_that_fills_it(
    texts: bool, batches: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Texts that nobody asks for fill none."""
    monkeypatch.setattr(views, "BYTES", 6)
    documents: Iterator[tuple[Document, list[Any]]] = iter([(Document(id=str(i), text="abc"), []) for i in range(3)])
    found = []
    while rows := views._next_rows(documents, texts):
        found.append(len(rows))
    assert found == batches


def test_a_format_that_reads_its_files_in_its_own_way_is_asked_for_documents(tmp_path: Path) -> None:
    """`read_file` of a subclass is not passed over because the class above it has `read_columns`."""
    (tmp_path / "loud.py").write_text(
        "from toolkit import Document\nfrom mixers.parquet import Parquet\n\n\nclass Loud(Parquet):\n"
        "    def read_file(self, path):\n"
        "        for document, label in super().read_file(path):\n"
        "            yield Document(document.text.upper()), label\n\n\n"
        "class Quiet(Loud):\n"
        "    def read_columns(self, path, names):\n"
        "        yield from ()\n"
    )
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"text": ["a", "b"]}), path)

    def texts(name: str) -> list[Any]:
        listed = Parts([File("t.parquet", str(path), Format(f"{tmp_path}/loud.py:{name}", {}), None)], {}, 1 << 20)
        faults = Faults()
        with Database({"output": lambda: of_parts(listed, faults, Session())}, faults, memory=1 << 30, threads=1) as db:
            return [text for (text,) in db.execute("SELECT text FROM output").rows()]

    assert texts("Loud") == ["A", "B"]
    assert texts("Quiet") == []


def test_attributes_that_a_format_does_not_give_back_are_not_shown_as_null(project: Project) -> None:
    """Parquet has the attributes of the mix in a column of JSON, which its reader of documents leaves out."""
    write_rows(project.documents / "x.jsonl", [document("1", "a")])
    write_rows(project.attributes / "a-0" / "x.jsonl", [attributes("1", {"n": 1})])
    project.config["mix"] = {
        "attributes": ["a-0"],
        "output": {"format": "parquet", "path": str(project.out), "attributes": True},
    }
    project.ok("mix")
    assert "n" not in project.run("sql", "SELECT * FROM output", project.out, "--json").succeeds().json["rows"][0]
    project.run("sql", "SELECT n FROM output", project.out).fails(2, '"n" not found')
    project.run("stats", project.out, "--by", "n").fails(2, "expected an attribute, got 'n'")
    project.run("stats", project.out, "--attribute", "all").succeeds()


def test_an_integer_that_sql_has_no_type_for_is_an_error_that_says_so(project: Project) -> None:
    write_rows(project.documents / "x.jsonl", [document("1", "a")])
    write_rows(project.attributes / "a-0" / "x.jsonl", [attributes("1", {"n": 2**64 - 1})])
    project.run("sql", "SELECT max(n) FROM joined", project.data).fails(1, "18446744073709551615; an `int` has 64 bits")
