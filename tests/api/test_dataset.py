"""A dataset as rows: what they hold, how they are chosen, and that no row comes without what belongs to it."""

import gzip
import pickle
from typing import Any, assert_type, cast

import pytest

import toolkit
from tests.pipeline.conftest import Project, attributes, document, id_of, read_rows, write_rows
from toolkit.api.dataset import Row, Rows

ALL = [id_of("a.jsonl.gz", i) for i in range(1, 6)] + [id_of("b.jsonl.gz", i) for i in range(1, 4)]
ALL += [id_of("deep/er/c.jsonl.gz", i) for i in range(1, 5)]


def ids(rows: Any) -> list[str]:
    return [getattr(row, "document", row).id for row in rows]


def test_rows_are_those_of_the_files(small: Project, root: str) -> None:
    dataset = toolkit.Dataset(root)
    assert dataset.shards == ["a.jsonl.gz", "b.jsonl.gz", "deep/er/c.jsonl.gz"]
    assert dataset.sets == ["shape-0"]
    rows = dataset.joined("shape-0")
    assert_type(rows, Rows[Row])
    assert_type(next(iter(dataset.documents())), toolkit.Document)
    for shard in dataset.shards:
        for row, stored, values in zip(
            rows.of_shard(shard), small.shard(shard), small.values("shape-0", shard), strict=True
        ):
            assert (row.document.id, row.document.text, row.document.metadata) == (stored["id"], stored["text"], {})
            assert row.attributes == values
            assert row["line_shape"] == values["line_shape"]
            assert (row.shard, row.document.field("n")) == (shard, row.number)
    assert ids(rows) == ids(rows) == ids(dataset.documents()) == ALL
    assert str(rows.types["noise"]) == "{chars: int, noise: int}"
    with pytest.raises(KeyError, match=r"expected a key of the joined sets, got 'nois'; did you mean .*noise"):
        next(iter(rows))["nois"]


def test_rows_are_chosen_by_shard_share_expression_and_id(root: str) -> None:
    dataset = toolkit.Dataset(root)
    assert ids(dataset.joined("shape-0", shards=["b.jsonl.gz"])) == ALL[5:8]
    shares = [ids(dataset.joined("shape-0", shard=(i, 2))) for i in range(2)]
    assert sorted(shares[0] + shares[1]) == sorted(ALL)
    assert len(shares[0]) * len(shares[1]) > 0
    assert ids(dataset.joined("shape-0", where="line_shape.lines > 2")) == ["a-3", "b-2", "deep/er/c-3"]
    assert ids(dataset.joined("shape-0", ids=["b-2", "a-1", "none"])) == ["a-1", "b-2"]
    assert ids(dataset.documents(where="document.chars > 100", ids=["b-1", "b-2"])) == ["b-1"]
    renamed = dataset.joined({"set": "shape-0", "as": {"noise": "other"}}, where="other.chars > 100")
    assert [sorted(row.attributes) for row in renamed] == [["line_shape", "other"]]


def test_rows_without_text_read_attributes_and_indexes_alone(small: Project, root: str) -> None:
    rows = toolkit.Dataset(root).joined("shape-0", text=False, where="line_shape.lines > 2")
    whole = toolkit.Dataset(root).joined("shape-0", where="line_shape.lines > 2")
    facts = [[(row.document.id, row.document.source, row.document.chars, row.attributes, row.number) for row in each]
             for each in (rows, whole)]  # fmt: skip
    assert facts[0] == facts[1] != []
    with pytest.raises(toolkit.ConfigError, match="document that was not read"):
        _ = next(iter(rows)).document.text
    with pytest.raises(toolkit.ConfigError, match="expected an expression over attributes"):
        toolkit.Dataset(root).joined("shape-0", text=False, where="metadata.x is not None")


def test_no_shards_are_no_rows_of_the_same_types(root: str) -> None:
    none = toolkit.Dataset(root).joined("shape-0", shards=[])
    assert (list(none), none.shards, list(none.types)) == ([], [], ["line_shape", "noise"])


def test_rows_can_be_pickled(root: str) -> None:
    rows = toolkit.Dataset(root).joined("shape-0", where="line_shape.lines > 2")
    assert ids(pickle.loads(pickle.dumps(rows))) == ids(rows)


def test_a_configuration_says_where_things_are(small: Project, root: str) -> None:
    there = {"documents": str(small.documents), "attributes": str(small.attributes)}
    assert ids(toolkit.Dataset(there).joined("shape-0")) == ALL
    assert ids(toolkit.Dataset(small.yaml).joined("shape-0")) == ALL
    assert ids(toolkit.Dataset(f"dataset: {root}\n").documents()) == ALL
    assert ids(toolkit.Dataset(small.yaml.rename(small.root / "config.json")).documents()) == ALL
    assert ids(toolkit.Dataset(small.yaml, overrides=[f"documents={small.documents}/b*"]).documents()) == ALL[5:8]


def test_sets_of_other_programs_are_joined(by_hand: Project) -> None:
    rows = toolkit.Dataset(by_hand.data).joined("exp")
    first = next(iter(rows))
    assert first["exp__lines__count"] == [(0, 7, 1.0)]
    assert str(rows.types["exp__lines__count"]) == "list[span]"
    assert toolkit.Dataset(by_hand.data).joined("exp", shards=[]).types == rows.types


# --- what may not be joined -------------------------------------------------------------------------------------------


def test_a_set_that_is_missing_short_damaged_or_of_others_is_an_error(small: Project, root: str) -> None:
    path = small.attributes / "shape-0" / "b.jsonl.gz"
    stored, rows = path.read_bytes(), read_rows(path)
    faults: dict[str, Any] = {
        "no such file": None,
        "got the end of the file": gzip.compress(b""),
        r"b\.jsonl\.gz:2: expected the attributes of .*b\.jsonl\.gz:2, got those of 'b-3'": [rows[0], rows[2], rows[1]],
        "expected the end of the file after 3 rows": [*rows, attributes("b-4", rows[0]["attributes"])],
        "b.jsonl.gz": stored[:-9],
    }
    for words, fault in faults.items():
        if fault is None:
            path.unlink()
        elif isinstance(fault, bytes):
            path.write_bytes(fault)
        else:
            write_rows(path, fault)
        for text in (True, False):
            joined = toolkit.Dataset(root).joined("shape-0", text=text)
            assert ids(joined.of_shard("a.jsonl.gz")) == ALL[:5]
            with pytest.raises(toolkit.DataError, match=words) as caught:
                list(joined)
            assert caught.value.path == str(path)
        path.write_bytes(stored)


def test_a_stale_set_is_an_error(small: Project, root: str) -> None:
    write_rows(small.documents / "b.jsonl.gz", [document(f"b-{i}", f"new {i}") for i in range(1, 4)])
    with pytest.raises(toolkit.StaleError, match=r"b\.jsonl\.gz: .*run `toolkit tag`"):
        list(toolkit.Dataset(root).joined("shape-0"))


def test_a_set_made_otherwise_than_the_configuration_says_is_an_error(small: Project) -> None:
    small.config["tag"] = {"shape-0": [{"tagger": "line_shape", "short_chars": 7}, "noise"]}
    with pytest.raises(toolkit.ConfigError, match="short_chars"):
        toolkit.Dataset(small.config).joined("shape-0")


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda dataset: dataset.joined(), "expected attribute sets, got none; there are: shape-0"),
        (lambda dataset: dataset.joined("shap-0"), r"expected an attribute set .*got 'shap-0'.*did you mean 'shape-0'"),
        (lambda dataset: dataset.joined("shape-0", where="lin_shape.lines > 1"), r"where.*lin_shape"),
        (lambda dataset: dataset.joined("shape-0", where="line_shape.lines"), "where: .*expected bool, got int"),
        (lambda dataset: dataset.joined(["shape-0"]), "expected attribute sets, one after the other"),
        (lambda dataset: dataset.joined("shape-0", where=" "), "where: expected an expression, got ' '"),
        (lambda dataset: toolkit.Dataset(cast("Any", 3)), "expected a configuration: a path, YAML or a mapping"),
        (lambda dataset: dataset.joined("shape-0", shards=["c.jsonl.gz"]), r"shards: expected relative paths below"),
        (lambda dataset: dataset.joined("shape-0", shards="a.jsonl.gz"), "shards: expected a list of texts"),
        (lambda dataset: dataset.joined("shape-0", ids="a-1"), "ids: expected a list of texts"),
        (lambda dataset: dataset.joined("shape-0", shard=(1, 1)), "expected .i, n."),
        (lambda dataset: dataset.joined("shape-0", "shape-0"), "expected each key once"),
        (lambda dataset: dataset.documents(where="line_shape.lines > 1"), "line_shape"),
        (lambda dataset: toolkit.Dataset("nowhere").documents(), "nowhere/documents: expected documents, got none"),
    ],
)
def test_mistakes_are_told_before_anything_is_read(call: Any, words: str, root: str) -> None:
    with pytest.raises(toolkit.ConfigError, match=words):
        call(toolkit.Dataset(root))


def test_a_rule_that_fails_names_the_document(small: Project, root: str) -> None:
    rows = toolkit.Dataset(root).joined("shape-0", where="1 // line_shape.lines >= 0")
    with pytest.raises(toolkit.DataError, match=r"documents/a\.jsonl\.gz:4: .*\(document 'a-4'\)"):
        list(rows)
