"""Types of documents' own fields: told before documents are made, stored, held against each row, used by rules."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

import toolkit
from tests.conftest import Run
from tests.recipes import mix_of
from toolkit.data.document_fields import OwnTypes, RowCheck, is_within, of_rows, together
from toolkit.errors import DataError

pytestmark = pytest.mark.slow

pa = pytest.importorskip("pyarrow", exc_type=ImportError)
pq = pytest.importorskip("pyarrow.parquet", exc_type=ImportError)

VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.floats(-9, 9) | st.text(max_size=2),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=6,
)


@given(st.lists(st.dictionaries(st.sampled_from("xyz"), VALUES), max_size=5))
def test_rows_have_the_types_that_they_tell(rows: list[dict[str, Any]]) -> None:
    """So no sample is refused for what is in it."""
    documents = [{"id": "1", "text": "t", "source": "s", "metadata": row} | row for row in rows]
    check = RowCheck(of_rows(documents, "rows"))
    for document in documents:
        check.check(json.dumps(document).encode())


def test_types_of_several_places_hold_for_all() -> None:
    one = OwnTypes(fields={"metadata": {"a": "int"}, "document": {}}, closed=["metadata"])
    other = OwnTypes(fields={"metadata": {"a": {"nullable": "float"}, "b": "str"}, "document": {}}, closed=["metadata"])
    both = together([one, other])
    assert both
    assert both.fields["metadata"] == {"a": {"nullable": "float"}, "b": {"nullable": "str"}}
    assert is_within(one, both)
    assert not is_within(both, one)
    assert together([one, None]) is None


def test_a_row_of_another_type_is_told_by_field() -> None:
    check = RowCheck(OwnTypes(fields={"metadata": {"year": "int"}}, known_by="the first rows"))
    with pytest.raises(
        DataError, match=r"expected a whole number, got null - at metadata.year; its type is that of the first"
    ):
        check.check(b'{"id":"1","metadata":{"year":null}}')
    with pytest.raises(DataError, match="expected field"):
        check.check(b'{"id":"1"}')


# --- as a user has it -------------------------------------------------------------------------------------------------


def _rows(count: int) -> list[dict[str, Any]]:
    return [
        {"text": f"text {i}", "id": str(i), "lang": "en" if i % 2 else None, "score": i / 10, "of": {"deep": i}}
        for i in range(count)
    ]


def _config(folder: Path, entry: str, rule: str, name: str = "own.yaml") -> Path:
    path = folder / name
    path.write_text(
        f"dataset: {folder}/data\nexecutor: {{type: in_process}}\ningest: [{{{entry}, source: s, metadata: rest}}]\n"
        f"mix: {{rules: [{{keep: '{rule}'}}], output: {{format: dolma, path: {folder}/out}}}}\n"
    )
    return path


def test_parquet_types_are_those_of_all_files(tmp_path: Path, run: Run) -> None:
    """A column without nulls by the statistics of all files needs no test; with nulls in one file it does."""
    pq.write_table(pa.Table.from_pylist(_rows(4)), tmp_path / "a.parquet", row_group_size=2)
    pq.write_table(pa.Table.from_pylist(_rows(3)), tmp_path / "b.parquet")
    pq.write_table(pa.Table.from_pylist(_rows(3)).slice(0, 0), tmp_path / "empty.parquet")  # has no nulls, either
    entry = f'format: parquet, from: {tmp_path}/*.parquet, ids: "{{path}}/{{id}}"'
    for rule, said in [
        ('metadata.lang > "a"', "metadata.lang may be null here"),
        ('metadata.lnag == "en"', "did you mean 'lang'"),
        ("metadata.of.dep == 1", "did you mean 'deep'"),
        ('metadata.score == "high"', "expected values that compare, got float == str"),
        ("document.score > 1", "expected a field that documents have"),
    ]:
        run("run", "-c", _config(tmp_path, entry, rule)).fails(2, said)
        assert not (tmp_path / "data/documents").exists()
    config = _config(tmp_path, entry, "metadata.score > 0.1 and metadata.of.deep > 1")
    assert run("run", "-c", config).code == 0
    (stored,) = (tmp_path / "data/.toolkit/types").iterdir()
    assert json.loads(stored.read_text())["types"]["fields"]["metadata"]["score"] == "float"
    run("mix", "-c", _config(tmp_path, entry, 'metadata.lang > "a"')).fails(2, "metadata.lang may be null here")
    more = [*_rows(2), {**_rows(1)[0], "score": None}]
    pq.write_table(pa.Table.from_pylist(more), tmp_path / "c.parquet")
    run("run", "-c", _config(tmp_path, entry, "metadata.score > 0.1")).fails(2, "metadata.score may be null here")


def test_a_null_that_statistics_do_not_tell_fails_with_file_and_row(tmp_path: Path, run: Run) -> None:
    rows = _rows(3)
    rows[1]["score"] = float("nan")  # which JSON does not have: it becomes null
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "a.parquet")
    run("ingest", "-c", _config(tmp_path, f"format: parquet, from: {tmp_path}/a.parquet", "True")).fails(
        1, "a.parquet:2: expected a number, got null or NaN - at metadata.score"
    )
    declared = f"format: parquet, from: {tmp_path}/a.parquet, typed: {{score: float}}"
    assert run("ingest", "-c", _config(tmp_path, declared, "True")).code == 0


@pytest.mark.parametrize("command", ["run", "ingest"])
def test_a_later_misfit_names_file_and_row(tmp_path: Path, run: Run, command: str) -> None:
    """The same in a pass and in single commands; `typed` says otherwise, and `not_null` more."""
    rows = _rows(1200)
    rows[1100]["score"] = "high"
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    rule = "metadata.score is not None and metadata.score > 3"
    entry = f"format: jsonl, from: {tmp_path}/a.jsonl"
    run(command, "-c", _config(tmp_path, entry, rule)).fails(
        1, "a.jsonl:1101: expected a number or null, got a text - at metadata.score", "the first 1,000 rows"
    )
    skipped = run(command, "-c", _config(tmp_path, entry + ", on_error: skip", rule), "--json")
    counts = (skipped.json["ingest"] if command == "run" else skipped.json)["counts"]
    assert counts == {"documents": 1199, "rejected.wrong type": 1}


def test_declared_types_go_before_those_of_rows(tmp_path: Path, run: Run) -> None:
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in _rows(3)))
    entry = f"format: jsonl, from: {tmp_path}/a.jsonl"
    rule = "metadata.score > 0.1"
    assert "may be null here" in run("run", "-c", _config(tmp_path, entry, rule)).err
    assert run("run", "-c", _config(tmp_path, entry + ", not_null: [score, of.deep]", rule)).code == 0
    run("run", "-c", _config(tmp_path, entry + ", not_null: [late]", rule)).fails(2, "give `typed: {late: …}`")
    new = _config(tmp_path, entry + ", not_null: [lang]", "True"), f"dataset={tmp_path}/new"
    run("run", "-c", *new, f"mix.output.path={tmp_path}/new-out").fails(
        1, "a.jsonl:1: expected a text, got null - at metadata.lang"
    )


def test_documents_of_unknown_origin_have_fields_of_any_type(tmp_path: Path, run: Run) -> None:
    pq.write_table(pa.Table.from_pylist(_rows(3)), tmp_path / "a.parquet")
    entry = f"format: parquet, from: {tmp_path}/a.parquet"
    assert run("run", "-c", _config(tmp_path, entry, "metadata.score > 0.1")).code == 0
    by_hand = {"id": "x", "text": "t", "source": "s"}
    (tmp_path / "data/documents/hand.jsonl").write_text(json.dumps(by_hand) + "\n")
    run("mix", "-c", _config(tmp_path, entry, "metadata.score > 0.1")).fails(2, "metadata.score may be null here")


# --- in place ---------------------------------------------------------------------------------------------------------


def _in_place(folder: Path, documents: str, rule: str) -> Path:
    path = folder / "in-place.yaml"
    path.write_text(
        f"dataset: {folder}/data\nexecutor: {{type: in_process}}\n"
        f"documents: {{{documents}, source: s, metadata: rest}}\ntag: {{length-0: length}}\n"
        f"mix: {{rules: [{{keep: '{rule}'}}], output: {{format: dolma, path: {folder}/out}}}}\n"
    )
    return path


def test_files_in_place_have_the_types_of_their_columns(tmp_path: Path, run: Run) -> None:
    """The errors are those after an ingest, before anything is read."""
    pq.write_table(pa.Table.from_pylist(_rows(4)), tmp_path / "a.parquet", row_group_size=2)
    pq.write_table(pa.Table.from_pylist(_rows(3)), tmp_path / "b.parquet")
    documents = f'format: parquet, path: "{tmp_path}/*.parquet", ids: "{{path}}/{{id}}"'
    for rule, said in [
        ('metadata.lang > "a"', "metadata.lang may be null here"),
        ('metadata.lnag == "en"', "did you mean 'lang'"),
        ('metadata.score == "high"', "expected values that compare, got float == str"),
        ("document.score > 1", "expected a field that documents have"),
    ]:
        for command in ("mix", "run"):
            run(command, "-c", _in_place(tmp_path, documents, rule)).fails(2, said)
    assert not (tmp_path / "data/attributes").exists()
    run("mix", "-c", _in_place(tmp_path, documents, "True"), f"mix.output.path={tmp_path}").fails(
        2, "expected a path separate from"
    )
    config = _in_place(tmp_path, documents, "metadata.score > 0.1 and metadata.of.deep > 1")
    assert run("run", "-c", config).code == 0
    pq.write_table(pa.Table.from_pylist([*_rows(2), {**_rows(1)[0], "score": None}]), tmp_path / "c.parquet")
    run("mix", "-c", config).fails(2, "metadata.score may be null here")


def test_rows_in_place_are_held_against_types(tmp_path: Path, run: Run) -> None:
    """Of JSON Lines they are those of the first rows, or declared."""
    rows = _rows(1200)
    rows[1100]["score"] = "high"
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    rule = "metadata.score is not None and metadata.score > 3"
    documents = f"format: jsonl, path: {tmp_path}/a.jsonl"
    for command in ("run", "tag", "stats"):
        failed = run(command, "-c", _in_place(tmp_path, documents, rule)).fails(1)
        assert "a.jsonl:1101: expected a number or null, got a text - at metadata.score" in failed.err + failed.out
    declared = _in_place(tmp_path, documents + ", typed: {score: json}", "metadata.score != 3")
    assert run("run", "-c", declared).code == 0
    rows[1100]["score"] = 1.5
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    not_null = _in_place(tmp_path, documents + ", not_null: [score]", "metadata.score > 3")
    assert run("run", "-c", not_null).code == 0
    run("tag", "-c", _in_place(tmp_path, documents + ", not_null: [late]", rule)).fails(2, "give `typed: {late: …}`")


@pytest.mark.parametrize("field", ["metadata.lang", "document.lang", "document.of.lang"])
def test_a_label_that_is_never_null_needs_no_rule(tmp_path: Path, run: Run, field: str) -> None:
    """Rules and tables know it, where the field has a type, too."""
    rows = [{"id": str(i), "text": "t", "lang": label, "of": {"lang": label}} for i, label in enumerate(("en", "de"))]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "a.parquet")
    more = ", metadata: rest" if field.startswith("metadata") else ""
    config = tmp_path / "c.yaml"
    config.write_text(
        f"dataset: {tmp_path}/data\nexecutor: {{type: in_process}}\n"
        f"documents: {{format: parquet, path: {tmp_path}/a.parquet, source: s{more}}}\n"
        f'mix: {{rules: [{{annotate: found, when: label == "en"}}], '
        f"output: {{format: dolma, by: {field}, path: {tmp_path}/out}}}}\n"
    )
    dry = run("mix", "-c", config, "--dry-run", "--json").json
    found = run("mix", "-c", config, "--json").json
    assert [rule["documents"] for shown in (dry, found) for rule in shown["rules"]] == [1, 1]
    assert set(dry["labels"]) == set(found["labels"]) == {"en", "de"}


@pytest.mark.parametrize("rows", [["en", None], [{"label": "en"}, None], ["en", {"label": "de"}, None]])
def test_rules_know_the_label_of_a_field_of_documents(tmp_path: Path, run: Run, rows: list[Any]) -> None:
    lines = [json.dumps({"id": str(i), "text": "t", "lang": row}) for i, row in enumerate(rows)]
    (tmp_path / "a.jsonl").write_text("\n".join(lines))
    config = tmp_path / "c.yaml"
    config.write_text(
        f"dataset: {tmp_path}/data\nexecutor: {{type: in_process}}\n"
        f"ingest: [{{format: jsonl, from: {tmp_path}/a.jsonl, source: s}}]\n"
        f"mix: {{rules: [{{drop: label is None, name: none}}], "
        f"output: {{format: dolma, by: document.lang, path: {tmp_path}/out}}}}\n"
    )
    found = run("run", "-c", config, "--json").json["mix"]
    assert [rule["documents"] for rule in found["rules"]] == [1]
    assert set(found["labels"]) == {"en", "de"} if len(rows) > 2 else {"en"}


@pytest.mark.parametrize(
    ("label", "message"),
    [
        ("get(document.lang)", "expected get(map, key, default), in `get(document.lang)`"),
        ("get(document.lang, 'code', 'none')", "expected map, got str, in `document.lang`"),
    ],
)
def test_a_wrong_label_is_not_replaced_by_the_field_in_it(tmp_path: Path, run: Run, label: str, message: str) -> None:
    pq.write_table(pa.Table.from_pylist([{"id": "1", "text": "t", "lang": "en"}]), tmp_path / "a.parquet")
    (tmp_path / "c.yaml").write_text(
        f"dataset: {tmp_path}/data\ndocuments: {{format: parquet, path: {tmp_path}/a.parquet, source: s}}\n"
    )
    run("stats", "-c", tmp_path / "c.yaml", "--by", "label", "--label", label).fails(2, message)


def test_sections_stats_and_rows_know_the_types_too(tmp_path: Path, run: Run) -> None:
    """Of ingested documents and of those in place: a misspelt field is told before anything is read."""
    pq.write_table(pa.Table.from_pylist(_rows(20)), tmp_path / "a.parquet")
    entry = f"format: parquet, from: {tmp_path}/a.parquet"
    assert run("ingest", "-c", _config(tmp_path, entry, "True")).code == 0
    ingested, placed = tmp_path / "data", tmp_path / "placed"
    places: list[dict[str, Any]] = [
        {"dataset": str(ingested)},
        {
            "dataset": str(placed),
            "documents": {"format": "parquet", "path": str(tmp_path / "a.parquet"), "source": "s", "metadata": "rest"},
        },
    ]
    wrong = {
        "dedup": {"exact-0": {"kind": "exact", "when": "metadata.scroe > 1"}},
        "sample": {"some-0": {"documents": 3, "by": "metadata.scroe"}},
    }
    right = {
        "dedup": {"exact-0": {"kind": "exact", "when": "metadata.score > 1"}},
        "sample": {"some-0": {"documents": 3, "weight": "metadata.score"}},
    }
    for place in places:
        for name, section in wrong.items():
            with pytest.raises(toolkit.ConfigError, match="did you mean 'score'"):
                getattr(toolkit, name)(place | {name: section})
            assert getattr(toolkit, name)(place | {name: right[name]}).shards == 1
        with pytest.raises(toolkit.ConfigError, match="did you mean 'score'"):
            toolkit.stats(place, by=["metadata.scroe"])
        assert toolkit.stats(place, by=["metadata.score > 1"]).tables[0]["total"]["documents"] == 20
        assert toolkit.stats(place, by=["metadata.lang"]).tables[0]["total"]["documents"] == 20
        rows = toolkit.Dataset(place).documents(where="metadata.score > 1")
        assert len(list(rows)) == 9
        with pytest.raises(toolkit.ConfigError, match="may be null"):
            list(toolkit.Dataset(place).documents(where='metadata.lang > "a"'))


@pytest.mark.parametrize("way", ["ingested", "in place"])
def test_conditions_of_taggers_options_lists_and_samples_know_them_too(tmp_path: Path, run: Run, way: str) -> None:
    """What is never null needs no test, and a field that no document has is told, in a run and in single commands."""
    pq.write_table(pa.Table.from_pylist(_rows(40)), tmp_path / "a.parquet")
    (tmp_path / "hosts.txt").write_text("a.example\n")
    form = {"format": "parquet", "source": "s", "metadata": "rest"}
    files: dict[str, Any] = {"ingest": [{**form, "from": "a.parquet"}]}
    if way == "in place":
        files = {"documents": {**form, "path": "a.parquet"}}
    rules: list[dict[str, Any]] = [{"keep": "length is not None"}, {"keep": "metadata.score > 2", "name": "high"}]

    def configured(**given: Any) -> str:
        config: dict[str, Any] = {
            "dataset": "data",
            "executor": {"type": "in_process"},
            **files,
            "tag": {"length-0": {"tagger": "length", "when": "metadata.score > 1"}},
            "dedup": {"exact-0": {"kind": "exact", "when": "metadata.score > 1"}},
            "mix": mix_of(tmp_path / "out", *rules, attributes=["length-0", "exact-0"]),
        }
        (tmp_path / "c.yaml").write_text(json.dumps(config | given))
        return str(tmp_path / "c.yaml")

    files = json.loads(json.dumps(files).replace("a.parquet", str(tmp_path / "a.parquet")))
    dataset = {"dataset": str(tmp_path / "data")}
    done = run("run", "-c", configured(**dataset), "--json").json
    assert (done["tag"]["asked"], done["mix"]["totals"]["kept"]) == ({"length-0": 29}, 19)
    for command in ("run", "tag", "mix", "status", "validate"):
        run(command, "-c", configured(**dataset)).succeeds()
    assert run("tag", "-c", configured(**dataset), "--sample", 20).code == 0
    run("mix", "-c", configured(**dataset), "--dry-run", "--sample", "--json").succeeds()
    wrong = {"statistics-0": {"tagger": "statistics", "language": "metadata.lnag"}}
    listed = {"drop": "blocklist", "files": str(tmp_path / "hosts.txt"), "url": "metadata.lnag"}
    for section, wrong_one in (
        ("tag", {"tag": {"length-1": {"tagger": "length", "when": 'metadata.lnag == "en"'}}}),
        ("tag", {"tag": wrong}),
        ("mix", {"mix": {"rules": [listed], "output": {"format": "dolma", "path": str(tmp_path / "out")}}}),
    ):
        run(section, "-c", configured(**dataset, **wrong_one)).fails(2, "did you mean 'lang'")
