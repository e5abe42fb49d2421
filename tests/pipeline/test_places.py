"""Places that a configuration reads and writes: apart, none empty, and no name leads out of its folder."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.marks import slow
from tests.pipeline.conftest import Project, attributes, document, read_rows, tree, write_rows
from tests.recipes import mix_of
from toolkit.data.dataset import Dataset
from toolkit.errors import DataError


def refused(project: Project, command: str = "mix") -> str:
    """What is said of a configuration that is refused; nothing is written."""
    before = tree(project.root, bookkeeping=True)
    ran = project(command).fails(2)
    after = tree(project.root, bookkeeping=True)
    assert {name: digest for name, digest in after.items() if name != "config.yaml"} == {
        name: digest for name, digest in before.items() if name != "config.yaml"
    }
    return ran.err


# --- output, dropped documents, datasets ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("output", "rejected"),
    [("out", "linked"), ("linked_data/documents/out", None), ("a\0b", None), ("out", "a\0b"), ("out", "s3://bucket/x")],
)
def test_places_that_are_not_apart_are_refused(
    small: Project, monkeypatch: pytest.MonkeyPatch, output: str, rejected: str | None
) -> None:
    """Those without links are in `tests/errors`."""
    monkeypatch.chdir(small.root)
    (small.root / "linked").symlink_to("out")
    (small.root / "linked_data").symlink_to("data")
    small.config["dataset"] = "data"
    for name in ("documents", "rejected"):
        small.config["mix"]["output"] |= {"path": output, "name": name}
        if rejected is not None:
            small.config["mix"]["rejected"] = rejected
        assert re.search(r"config\.yaml:1: mix\.(output|rejected): expected ", refused(small))


@pytest.mark.parametrize(
    ("output", "rejected"),
    [
        ("data/out", "data/rejected"),
        ("data/documents-out", "documents"),
        *slow(("out", "rejected"), ("out", "out-rejected")),
    ],
)
def test_places_beside_each_other_are_used(
    small: Project, monkeypatch: pytest.MonkeyPatch, output: str, rejected: str
) -> None:
    monkeypatch.chdir(small.root)
    small.config["dataset"] = "data"
    small.config["mix"] |= {"rejected": rejected, "output": {"format": "dolma", "path": output}}
    small.ok("mix")
    kept = read_rows(small.root / output / "documents" / "documents.jsonl.gz")
    dropped = read_rows(small.root / rejected / "documents" / "rejected.jsonl.gz")
    assert (len(kept), len(dropped)) == (9, 3)
    small.ok("mix")
    small.config["mix"]["rules"] = [{"drop": "line_shape.lines > 6", "name": "longer"}]
    small.ok("mix")
    assert len(read_rows(small.root / rejected / "documents" / "rejected.jsonl.gz")) == 1


def test_dropped_documents_go_where_they_are_wanted_if_the_output_is_a_link(
    small: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder is named from the output, whose parent the file system would take to be that of the link's target."""
    monkeypatch.chdir(small.root)
    (small.root / "disk" / "deep" / "out").mkdir(parents=True)
    (small.root / "out").symlink_to("disk/deep/out")
    small.config["mix"] |= {"rejected": "rejected", "output": {"format": "dolma", "path": "out"}}
    small.ok("mix")
    assert (small.root / "rejected" / "documents" / "rejected.jsonl.gz").exists()
    small.config["mix"]["rules"] = []
    small.ok("mix")
    assert not list((small.root / "rejected").rglob("*.gz"))
    small.ok("validate", str(small.root / "out"))


def test_inputs_are_apart_from_what_is_written(small: Project) -> None:
    small.config["ingest"] = [{"format": "dolma", "from": f"{small.data}/**/a.jsonl.gz", "source": "again"}]
    assert "expected inputs outside of" in refused(small, "ingest")
    small.ok("mix")
    small.config["ingest"] = [{"format": "dolma", "from": f"{small.out}/**/*.jsonl.gz", "source": "again"}]
    assert "expected inputs outside of" in refused(small, "run")


# --- names ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "source",
    ["../../../evil", "/tmp/evil", "a/../../b", "a//b", "a/", "", ".", "..", "./a", "a\0b", ".toolkit", "a/.toolkit"],
)
def test_a_source_stays_among_the_documents(project: Project, source: str) -> None:
    write_rows(project.root / "raw" / "a.jsonl", [{"id": "1", "text": "x"}])
    project.config["ingest"] = [{"format": "jsonl", "from": f"{project.root}/raw/a.jsonl", "source": source}]
    assert "ingest[0].source: expected a" in refused(project, "ingest")


def test_a_source_may_be_a_folder_of_folders(project: Project) -> None:
    write_rows(project.root / "raw" / "a.jsonl", [{"id": "1", "text": "x"}])
    assert project.ingest({"format": "jsonl", "from": f"{project.root}/raw/a.jsonl", "source": "cc/2024"}).code == 0
    assert (project.documents / "cc" / "2024" / "a.jsonl.gz").exists()


@pytest.mark.parametrize("shard", ["a/../../b.jsonl", "a//b.jsonl", "../b.jsonl"])
def test_a_shard_that_a_listing_names_stays_below_its_root(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shard: str
) -> None:
    """The keys of a bucket may have any parts; on disk they would lead elsewhere."""
    monkeypatch.setattr("toolkit.storage.paths.list_files", lambda root: iter([shard]))
    with pytest.raises(DataError, match="expected a relative path without empty parts"):
        Dataset(str(tmp_path / "documents"), str(tmp_path / "attributes")).shards()


# --- parts ------------------------------------------------------------------------------------------------------------


def labelled(project: Project, labels: list[str], **output: Any) -> None:
    """A dataset whose documents have these labels."""
    rows = [document(str(i), "some text here", n=i) for i in range(len(labels))]
    write_rows(project.documents / "a.jsonl", rows)
    values = [
        attributes(row["id"], {"by": {"label": label, "prob": 1.0}}) for row, label in zip(rows, labels, strict=True)
    ]
    write_rows(project.attributes / "said" / "a.jsonl", values)
    project.config["mix"] = {"attributes": ["said"], "output": {"path": str(project.out), **output}}


@pytest.mark.parametrize("label", ["../x", "a/b", "", ".", "a\0b", ".toolkit"])
def test_a_label_that_leads_elsewhere_fails_its_shard(project: Project, label: str) -> None:
    labelled(project, ["en", label], format="dolma", by="by")
    project("mix").fails(1, "a.jsonl:2: expected a label")
    assert not tree(project.out)


@pytest.mark.parametrize(
    ("labels", "output"),
    [
        (["en", "en", "en_part_1"], {"format": "text", "identification": "by", "part_size": "16 B"}),
        (["en", "en_sha256"], {"format": "text", "identification": "by", "compression": "none"}),
    ],
)
def test_labels_that_come_to_one_file_are_refused(project: Project, labels: list[str], output: dict[str, Any]) -> None:
    """Parts beside each other, and a part where the checksums of another label are."""
    labelled(project, labels, **output)
    project("mix").fails(2, "expected a path of its own for each")
    assert not tree(project.out)


def test_labels_that_differ_in_case_are_two(project: Project) -> None:
    labelled(project, ["en", "EN"], format="dolma", by="by")
    project.ok("mix")
    assert sorted(path.name for path in (project.out / "documents").iterdir()) == ["EN", "en"]


# --- fields of the metadata -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("format_", ["dolma", "parquet"])
@pytest.mark.parametrize("there", [5, [1], *slow("text", True)])
def test_a_field_goes_into_nothing_but_an_object(small: Project, format_: str, there: object) -> None:
    if format_ == "parquet":
        pytest.importorskip("pyarrow")
    rows = read_rows(small.documents / "b.jsonl.gz")
    rows[1]["metadata"] = {"n": {"k": there}}
    write_rows(small.documents / "b.jsonl.gz", rows)
    small.ok("tag")
    small.config["mix"] |= mix_of(small.out, {"set": "n.k.b", "to": "1"}, format=format_)
    small("mix").fails(
        1,
        "b.jsonl.gz:2: expected an object or null at metadata.n.k, to give metadata.n.k.b a value",
        json.dumps(there),
        "(document 'b-2')",
    )
    assert not tree(small.out)


def test_a_field_goes_into_objects_and_where_nothing_is(small: Project) -> None:
    rows = read_rows(small.documents / "b.jsonl.gz")
    for row, metadata in zip(rows, ({"n": {"a": 1}}, {"n": None}, None), strict=True):
        row["metadata"] = metadata
    write_rows(small.documents / "b.jsonl.gz", rows)
    small.ok("tag")
    small.config["mix"]["rules"] = [{"set": "n.b", "to": "1"}]
    small.ok("mix")
    found = [row["metadata"] for row in small.output() if row["id"].startswith("b")]
    assert found == [{"n": {"a": 1, "b": 1}}, {"n": {"b": 1}}, {"n": {"b": 1}}]
