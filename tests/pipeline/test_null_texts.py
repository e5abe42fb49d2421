"""Items whose text is null are left out, empty or bad, as the configuration says, in every format and in place."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.marks import slow
from tests.pipeline.conftest import Project, document, read_rows, write_rows

TEXTS = ["One.", None, "Three.", None, "Five."]


def write(folder: Path, format: str, texts: list[str | None]) -> dict[str, Any]:
    """Write a file; return the options that read it."""
    folder.mkdir(exist_ok=True)
    rows = [{"id": f"d{i}", "text": text, "url": f"https://a.example/{i}"} for i, text in enumerate(texts, 1)]
    options: dict[str, Any] = {}
    path = folder / f"a.{format}"
    if format in ("parquet", "arrow"):
        import pyarrow as pa
        import pyarrow.parquet as pq

        table = pa.Table.from_pylist(
            rows, pa.schema([("id", pa.string()), ("text", pa.string()), ("url", pa.string())])
        )
        if format == "parquet":
            pq.write_table(table, path, row_group_size=2)
        else:
            with pa.OSFile(str(path), "wb") as out, pa.ipc.new_file(out, table.schema) as writer:
                writer.write_table(table)
        return options
    if format == "csv":
        lines = ["id,text,url", *(f"{row['id']},{row['text'] or ''},{row['url']}" for row in rows)]
    elif format == "oscar":
        path = folder / "a.jsonl"
        label = {"label": "en", "prob": 0.9}
        lines = [
            json.dumps(
                {
                    "content": row["text"],
                    "warc_headers": {"warc-record-id": row["id"], "warc-target-uri": row["url"]},
                    "metadata": {
                        "identification": label,
                        "annotation": None,
                        "sentence_identifications": [label] if row["text"] else [],
                    },
                }
            )
            for row in rows
        ]
    elif format == "nested":
        path, options = folder / "a.jsonl", {"fields": {"text": "of.text"}}
        lines = [json.dumps({"id": row["id"], "of": {"text": row["text"]}, "url": row["url"]}) for row in rows]
    else:
        path = folder / "a.jsonl"
        lines = [json.dumps(row) for row in rows]
    path.write_text("".join(line + "\n" for line in lines))
    return options


SOME = ["oscar", "csv", "parquet", *slow("jsonl", "nested", "dolma", "arrow")]


def entry(project: Project, format: str, **options: Any) -> dict[str, Any]:
    given = write(project.root / "in", format, TEXTS)
    name = "jsonl" if format == "nested" else format
    return {"format": name, "from": [f"{project.root}/in/*"], "source": "s", **given, **options}


@pytest.mark.parametrize("format", SOME)
def test_an_ingest_leaves_them_out_or_makes_them_empty(format: str, project: Project) -> None:
    if format in ("parquet", "arrow"):
        pytest.importorskip("pyarrow")
    assert project.ingest(entry(project, format, null_text="skip")).code == 0
    (shard,) = project.documents.rglob("*.jsonl.gz")
    assert [(row["id"], row["text"]) for row in read_rows(shard)] == [("d1", "One."), ("d3", "Three."), ("d5", "Five.")]
    assert project.ok("status", "--json").code == 0
    (found,) = project.ok("head", "--id", "d4", "--json").json["left_out"]
    assert (found["reason"], found["url"]) == ("null_text", "https://a.example/4")
    project.config["ingest"][0]["null_text"] = "empty"
    ran = project.ok("ingest", "--overwrite", "--json").json
    assert "null_text" not in ran["counts"]
    assert [row["text"] for row in read_rows(shard)] == [text or "" for text in TEXTS]


@pytest.mark.parametrize("format", SOME)
def test_they_are_bad_items_by_default_but_of_csv(format: str, project: Project) -> None:
    if format in ("parquet", "arrow"):
        pytest.importorskip("pyarrow")
    bad = entry(project, format, null_text="error")
    ran = project.ingest(bad)
    assert ran.code == 1
    assert f"in/a.{'jsonl' if format in ('nested', 'dolma', 'oscar') else format}:" in ran.err
    assert "got null" in ran.err
    assert "`null_text: skip` leaves such items out" in ran.err
    del bad["null_text"]
    if format == "csv":
        assert project.ingest(bad).code == 0
        assert [row["text"] for row in project.shard("s/a.jsonl.gz")] == [text or "" for text in TEXTS]
        return
    assert project.ingest(bad).code == 1
    assert project.ingest({**bad, "on_error": "skip", "max_rejected": 1.0}).code == 0
    counts = project.ok("ingest", "--json").json["counts"]
    assert sum(n for name, n in counts.items() if name.startswith("rejected.")) == 2


@pytest.mark.parametrize("format", ["jsonl", "parquet"])
def test_in_place_rows_are_those_that_an_ingest_would_make(format: str, project: Project) -> None:
    """Attributes, single documents and the mix are of the same rows, whatever was left out before them."""
    if format == "parquet":
        pytest.importorskip("pyarrow")
    given = write(project.root / "in", format, TEXTS)
    place = {"format": format, "path": f"{project.root}/in", "source": "s", "null_text": "skip", **given}
    del project.config["dataset"]
    project.config |= {"documents": place, "attributes": f"{project.data}/attributes", "tag": {"length-0": "length"}}
    project.mixes({"drop": "length.chars < 5", "name": "short"}, attributes=["length-0"])
    project.ok("tag")
    (attributes,) = (project.attributes / "length-0").rglob("*.jsonl.gz")
    rows = [(row["id"], row["attributes"]["length"]["chars"]) for row in read_rows(attributes)]
    assert rows == [("d1", 4), ("d3", 6), ("d5", 5)]
    (found,) = project.ok("head", "--id", "d5", "--json").json["documents"]
    assert (found["text"], found["attributes"]["length-0"]["length"]["chars"]) == ("Five.", 5)
    for options in ((), ("--dry-run",)):
        assert "read in place: null_text: 2" in project.ok("mix", *options).out
    assert [row["id"] for row in project.output()] == ["d3", "d5"]
    project.ok("validate")
    place["null_text"] = "empty"
    project("mix").fails(2, "null_text")


def test_init_proposes_what_works_as_it_is_and_in_place(project: Project) -> None:
    for format in ("jsonl", "parquet"):
        if format == "parquet":
            pytest.importorskip("pyarrow")
        folder = project.root / format
        write(folder, format, TEXTS * 5)
        path = project.root / f"{format}.yaml"
        assert project.run("init", "--from", folder, "-o", path).code == 0
        text = path.read_text()
        assert "null_text: skip" in text
        assert "2 of the first" not in text
        assert "10 of the first 25 rows have a text that is null" in text
        in_place = next(line for line in text.split("\n") if line.startswith("#   documents: "))
        here = project.root / f"{format}-here.yaml"
        here.write_text(f"attributes: {project.root}/here-{format}/attributes\n{in_place.removeprefix('#   ')}\n"
                        "tag: {length-0: length}\n")  # fmt: skip
        ran = project.run("tag", "-c", here).succeeds()
        assert ran.out.startswith("1 shard, 15 documents")


# Nulls in rules, as in Python: what a mix, a dry run and a run in one pass decide, and the nulls that they count.

LABELS = ["de", "en", None, "de", None]


@pytest.fixture
def pages(project: Project) -> Project:
    rows = [document(str(i), "text", url=f"u{i}", metadata={"lang": label}) for i, label in enumerate(LABELS)]
    write_rows(project.root / "in" / "a.jsonl.gz", rows)
    project.config["ingest"] = [{"format": "dolma", "from": [str(project.root / "in" / "a.jsonl.gz")]}]
    project.config["tag"] = {"shape-0": ["line_shape"]}
    return project


def mixed(project: Project, *rules: dict[str, Any]) -> list[tuple[list[str], list[int]]]:
    """The documents that stay and the nulls of each rule: in one pass, in a mix, and in a dry run."""
    output = {"format": "dolma", "path": str(project.out)}
    project.config["mix"] = {"attributes": ["shape-0"], "rules": list(rules), "output": output}
    project.ok("run")
    found = []
    for command in (("mix", "--json"), ("mix", "--json", "--overwrite"), ("mix", "--dry-run", "--json")):
        ran = project.ok(*command).json
        assert ran["totals"]["kept"] == len(project.output())
        found.append(([row["id"] for row in project.output()], [rule["nulls"] for rule in ran["rules"]]))
    return found


@pytest.mark.parametrize(
    ("rules", "ids", "nulls"),
    [
        ([{"keep": "document.url == 'u1' or metadata.lang == 'de'"}], ["0", "1", "3"], [2]),
        ([{"keep": "metadata.lang in ['de', 'en']"}], ["0", "1", "3"], [2]),
        ([{"drop": "metadata.lang is None"}, {"drop": "metadata.lang == 'en'"}], ["0", "3"], [0, 0]),
        ([{"set": "x", "to": "document.url", "when": "metadata.lang == 'en'"}], list("01234"), [2]),
        *slow(
            ([{"keep": "metadata.lang == 'de'"}], ["0", "3"], [2]),
            ([{"drop": "metadata.lang == 'de'"}], ["1", "2", "4"], [2]),
            ([{"drop": "metadata.lang != 'de'"}], ["0", "3"], [2]),
            ([{"drop": "metadata.lang not in ['de']"}], ["0", "3"], [2]),
            (
                [{"drop": "document.id == '2'"}, {"annotate": "x", "when": "metadata.lang == 'en'"}],
                list("0134"),
                [0, 1],
            ),
            ([{"keep": "document.url in ['u1', 'u4'] and document.gone == None"}], ["1", "4"], [0]),
        ),
    ],
)
def test_a_null_equals_nothing_and_is_in_no_list(
    rules: list[dict[str, Any]], ids: list[str], nulls: list[int], pages: Project
) -> None:
    assert mixed(pages, *rules) == [(ids, nulls)] * 3


@pytest.mark.slow
def test_the_table_shows_nulls_where_there_are_some(pages: Project) -> None:
    mixed(pages, {"drop": "metadata.lang == 'en'", "name": "english"})
    shown = pages.ok("mix", "--dry-run").out
    assert "nulls" in shown
    mixed(pages, {"drop": "document.id == '1'", "name": "one"})
    assert "nulls" not in pages.ok("mix", "--dry-run").out


def test_a_field_whose_type_nobody_declared_may_be_the_label(pages: Project) -> None:
    pages.config["mix"] = {
        "rules": [{"drop": "label is None", "name": "unidentified"}, {"drop": "min_n > 1", "name": "language"}],
        "label": "metadata.lang",
        "parameters": {"min_n": 1},
        "languages": {"en": {"min_n": 2}},
        "output": {"format": "dolma", "path": str(pages.out)},
    }
    pages.ok("run")
    assert [row["id"] for row in pages.output()] == ["0", "3"]
