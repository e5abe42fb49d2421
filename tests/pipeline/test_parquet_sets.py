"""Attribute sets of others whose files are Parquet: joined row by row, where they lie."""

import json
from pathlib import Path
from typing import Any

import pytest

import toolkit
from tests.conftest import Ran, Run
from tests.marks import slow
from tests.pipeline.conftest import Project, document, tree, write_rows

pa = pytest.importorskip("pyarrow", exc_type=ImportError)
pq = pytest.importorskip("pyarrow.parquet", exc_type=ImportError)

ROWS = 300


def table(path: Path, columns: dict[str, Any], group: int = 64) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), path, row_group_size=group)
    return path


def quality(ids: list[str], **more: Any) -> dict[str, Any]:
    """Columns as Marin's attributes have them."""
    return {
        "id": ids,
        "score": [i / len(ids) for i in range(len(ids))],
        "label": [None if i % 3 == 0 else f"l{i % 3}" for i in range(len(ids))],
        "signals": [{"lines": i, "words": [i, i + 1]} for i in range(len(ids))],
        **more,
    }


IDS = {shard: [f"{shard}{i}" for i in range(ROWS)] for shard in "ab"}


@pytest.fixture
def joined(project: Project) -> Project:
    """Two shards, and beside them a set of tables without sources."""
    for shard, ids in IDS.items():
        write_rows(project.documents / f"x/{shard}.jsonl.gz", [document(id, f"text {id}") for id in ids])
        table(project.attributes / f"q/x/{shard}.parquet", quality(ids))
    project.config["mix"] = {
        "attributes": ["q"],
        "rules": [{"keep": "score >= 0.5 and signals.lines < 200"}, {"drop": 'label == "l1"'}],
        "output": {"format": "dolma", "path": str(project.out), "attributes": True},
    }
    return project


def test_a_mix_reads_a_table_where_it_lies(joined: Project) -> None:
    before = tree(joined.attributes)
    dry = joined.ok("mix", "--dry-run", "--json").json["totals"]["kept"]
    joined.ok("mix")
    rows = joined.output()
    wanted = [id for ids in IDS.values() for i, id in enumerate(ids) if 150 <= i < 200 and i % 3 != 1]
    assert [row["id"] for row in rows] == wanted
    assert dry == len(wanted)
    assert rows[0]["attributes"] == {"score": 0.5, "label": None, "signals": {"lines": 150, "words": [150, 151]}}
    assert tree(joined.attributes) == before
    assert joined.ok("status").out
    assert "was there already" in joined.ok("mix").out


def test_types_are_those_of_the_columns(joined: Project) -> None:
    """A column of which the statistics count no null needs no test; a number that JSON lacks is a null."""
    found = toolkit.Dataset(joined.config | {"mix": {}}).joined("q").types
    assert {key: str(type_) for key, type_ in found.items()} == {
        "score": "float",
        "label": "str | null",
        "signals": "{lines: int, words: list[int]}",
    }
    for rule, told in (("label > 'l1'", "may be null"), ("scores > 1", "score"), ("score == 'x'", "float")):
        joined.config["mix"]["rules"] = [{"drop": rule}]
        joined("mix", "--dry-run").fails(2, told)
    scores = [0.5] * ROWS
    scores[7] = float("nan")
    table(joined.attributes / "q/x/a.parquet", quality(IDS["a"], score=scores))
    joined.config["mix"]["rules"] = [{"drop": "score is None", "name": "unknown"}, {"keep": "score > 0"}]
    dry = joined.ok("mix", "--dry-run", "--json").json
    assert dry["rules"][0]["documents"] == 1


def _reversed(project: Project) -> None:
    table(project.attributes / "q/x/b.parquet", quality(IDS["b"][:100] + IDS["b"][:99:-1]))


def _shorter(project: Project) -> None:
    table(project.attributes / "q/x/b.parquet", quality(IDS["b"][:100]))


def _longer(project: Project) -> None:
    table(project.attributes / "q/x/b.parquet", quality([*IDS["b"], "more"]))


def _of_another_source(project: Project) -> None:
    table(project.attributes / "q/x/b.parquet", quality(IDS["b"], source=["s"] * 100 + ["t"] * 200))


def _missing(project: Project) -> None:
    (project.attributes / "q/x/b.parquet").unlink()


def _without_id(project: Project) -> None:
    table(project.attributes / "q/x/b.parquet", {"ident": IDS["b"], "score": [0.0] * ROWS})


def _null_id(project: Project) -> None:
    table(project.attributes / "q/x/b.parquet", quality([*IDS["b"][:100], None, *IDS["b"][101:]]))  # type: ignore[list-item]


def _truncated(project: Project) -> None:
    path = project.attributes / "q/x/b.parquet"
    path.write_bytes(path.read_bytes()[:-30])


FAULTS = {
    _reversed: ("b.parquet:101: ", "got those of 'b299'", "`toolkit align`"),
    _shorter: ("b.parquet:101: ", "got the end of the file", "`toolkit align`"),
    _longer: ("b.parquet:301: ", "expected the end of the file", "`toolkit align`"),
    _of_another_source: ("b.parquet:101: ", "got those of 'b100' from 't'", "`toolkit align`"),
    _missing: ("q/x/b.parquet", "expected the attributes of"),
    _without_id: ("b.parquet: ", "expected a column 'id' or 'doc_id'", "ident", "`toolkit align`"),
    _null_id: ("b.parquet:101: ", "expected a text or an integer in the column 'id', got null"),
    _truncated: ("b.parquet: ", "expected a sound Parquet file"),
}


@pytest.mark.parametrize(
    "fault",
    [_reversed, _without_id, _truncated, *slow(_shorter, _longer, _of_another_source, _missing, _null_id)],
    ids=lambda fault: fault.__name__.strip("_"),
)
def test_what_does_not_fit_is_named_by_file_and_row(joined: Project, fault: Any) -> None:
    """By the mix, a dry run that reads no documents, validate, and rows in Python."""
    fault(joined)
    for command in (["mix"], ["mix", "--dry-run"], ["validate"]):
        ran = joined(*command)
        told = ran.out + ran.err
        assert ran.code == 1, told
        for part in FAULTS[fault]:
            assert part in told, (command, told)
        assert "Traceback" not in told
    with pytest.raises(toolkit.ToolkitError) as error:
        list(toolkit.Dataset(joined.config).joined("q"))
    assert FAULTS[fault][0] in str(error.value)


def test_a_dry_run_tells_documents_of_several_sources_apart(joined: Project) -> None:
    """Rows without a source are held against the documents by their ids."""
    some = [document(id, "t", source=f"s{i // 100}") for i, id in enumerate(IDS["a"])]
    write_rows(joined.documents / "x/a.jsonl.gz", some)
    joined.ok("mix", "--dry-run")
    some[250]["id"] = "other"
    write_rows(joined.documents / "x/a.jsonl.gz", some)
    ran = joined("mix", "--dry-run").fails(1)
    assert "x/a.parquet:251: expected the attributes of" in ran.out + ran.err


def test_ids_may_be_integers_under_their_other_name(project: Project) -> None:
    write_rows(project.documents / "a.json.gz", [document(str(i), "t") for i in range(5)])
    table(project.attributes / "s/a.parquet", {"doc_id": range(5), "source": ["s"] * 5, "n": range(5)})
    found = [row["n"] for row in toolkit.Dataset(project.data).joined("s", where="n > 1")]
    assert found == [2, 3, 4]


def test_documents_in_place_join_tables_of_the_same_names(tmp_path: Path, run: Run) -> None:
    """As normalised documents and their attributes lie beside one another in Marin."""
    ids = IDS["a"]
    table(tmp_path / "docs/part-0.parquet", {"id": ids, "text": [f"text {id}" for id in ids]})
    table(tmp_path / "attributes/q/part-0.parquet", quality(ids))
    config = tmp_path / "c.yaml"
    config.write_text(
        f"documents: {{format: parquet, path: {tmp_path}/docs, source: m}}\nattributes: {tmp_path}/attributes\n"
        "tag: {far-0: length}\n"
        "mix: {attributes: [q, far-0], rules: [{keep: score > 0.9}],"
        f" output: {{format: dolma, path: {tmp_path}/out}}}}\n"
    )
    ran: Ran = run("run", "-c", config, "--json")
    assert ran.code == 0, ran.err
    assert run("stats", "-c", config, "--by", "label").code == 0
    assert run("validate", "-c", config).code == 0
    shown = run("head", "-c", config, "-n", 1, "--json")
    assert json.loads(shown.out)["documents"][0]["attributes"]["q"]["score"] == 0.0
    mixed = run("mix", "-c", config, "--json").json["totals"]
    assert (mixed["rows"], mixed["kept"]) == (300, 29)


@pytest.mark.slow
def test_tables_are_described_as_files(joined: Project) -> None:
    joined.config["about"] = {
        "name": "n",
        "description": "d",
        "license": "https://spdx.org/licenses/CC0-1.0.html",
        "url": "https://example.org",
        "creator": {"type": "Person", "name": "c"},
        "date_published": "2026-01-01",
    }
    joined.ok("croissant", "--of", "dataset")
    described = json.loads((joined.data / "croissant.json").read_text())
    assert "attributes/q/**/*.parquet" in json.dumps(described)
    joined.ok("card", "--of", "dataset")
    joined.ok("croissant", "--check", "--of", "dataset")
    joined.ok("card", "--check", "--of", "dataset")
    assert "| true " in joined.ok("stats", "--by", "signals.lines > 7").out
    assert joined.ok("head", "-n", 1).out
    joined.ok("tag", "--sample", 20, "tag.length-0=length")
