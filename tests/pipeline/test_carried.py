"""Fields that an output has no place for are named, with the documents that have them, by all that show a mix."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from tests.pipeline.conftest import Project, document, write_rows
from toolkit.data import row_index
from toolkit.data.dataset import open_dataset

ROWS: list[dict[str, Any] | None] = [
    {"url": "http://a.org", "date": None, "of": {"lang": "en", "score": 0.5}},
    {"url": "http://b.org", "of": {}, "empty": None},
    {"url": None, "date": "2020", "of": {"lang": "de"}},
    None,
]
OWN: list[dict[str, Any]] = [
    {"added": "2021-01-01T00:00:00Z"},
    {"own": [1]},
    {"own": None},
    {"own": 1.5, "attributes": {"a": 1}},
]
LOST = {
    "added": 1,
    "attributes": 1,
    "id": 4,
    "metadata.date": 1,
    "metadata.of": 1,
    "metadata.of.lang": 2,
    "metadata.of.score": 1,
    "metadata.url": 2,
    "own": 2,
    "source": 4,
}


def rows() -> list[dict[str, Any]]:
    return [
        document(str(i), f"text {i}", metadata=metadata, **more)
        for i, (metadata, more) in enumerate(zip(ROWS, OWN, strict=True))
    ]


@pytest.fixture
def lossy(project: Project) -> Project:
    project.config["tag"] = {"shape-0": "line_shape"}
    output = {"format": "text", "path": str(project.out), "identification": "metadata.of.lang"}
    project.config["mix"] = {
        "attributes": ["shape-0"],
        "rules": [{"drop": "metadata.of.lang is None", "name": "no language"}],
        "output": output,
    }
    return project


@pytest.mark.parametrize("how", ["one pass", "step by step", "two processes", "others' documents", "in place"])
def test_fields_are_counted_alike_however_documents_come(how: str, lossy: Project) -> None:
    lossy.config["executor"] = {"type": "local" if how == "two processes" else "in_process"}
    lossy.config["processes"] = 2 if how == "two processes" else 1
    entry = {"format": "jsonl", "source": "s"}
    if how == "others' documents":
        write_rows(lossy.documents / "a.jsonl.gz", rows())
    else:
        path = write_rows(lossy.root / "in/a.jsonl", rows())
        if how == "in place":
            lossy.config["documents"] = {**entry, "path": str(path)}
        else:
            lossy.config["ingest"] = [{**entry, "from": [str(path)]}]
    if how == "step by step":
        lossy.ok("ingest")
        lossy.ok("tag")
    ran = lossy.ok("run", "--json").json["mix"]
    assert ran["not_carried"] == LOST
    shown = lossy.ok("mix", "--dry-run", "--json").json
    assert shown["not_carried"] == LOST
    assert lossy.ok("mix", "--json").json["not_carried"] == LOST  # of an output that is there
    for text in (lossy.ok("mix").out, lossy.ok("mix", "--dry-run").out):
        assert "that the output does not carry:\n  id: 4 documents\n  source: 4 documents" in text
        assert "  metadata.url: 2 documents\n" in text
    page = lossy.root / "report.html"
    lossy.ok("report", "--output", page)
    assert '"not_carried":' + json.dumps(LOST, separators=(",", ":")) in page.read_text()


def test_what_is_carried_is_not_named(lossy: Project) -> None:
    write_rows(lossy.documents / "a.jsonl.gz", rows())
    lossy.ok("tag")
    lossy.config["mix"]["rules"] = []
    expected: dict[str, dict[str, int]] = {"dolma": {}, "dolma without": {"own": 2, "metadata.url": 2}}
    outputs: dict[str, dict[str, Any]] = {
        "dolma": {"format": "dolma"},
        "dolma without": {"format": "dolma", "discard": ["own", "metadata"]},
    }
    for name, output in outputs.items():
        lossy.config["mix"]["output"] = {**output, "path": str(lossy.root / name)}
        found = lossy.ok("mix", "--json").json["not_carried"]
        assert found.items() >= expected[name].items()
        assert name == "dolma without" or not found


def test_oscar_carries_the_headers_of_records_and_what_is_mapped(pipeline: Project) -> None:
    documents = copy.deepcopy(pipeline.config["ingest"])
    found = pipeline.ok("run", "--json").json["mix"]["not_carried"]
    assert found == {"source": 43}
    dataset = open_dataset(str(pipeline.data), None, None)
    states = {shard: row_index.current(dataset, shard) for shard in dataset.shards()}
    assert states == {shard: row_index.build(dataset, shard, 1 << 20) for shard in states}
    documents[0] |= {"ids": "{path}/{id}", "source": "other"}
    pipeline.config |= {"dataset": str(pipeline.root / "other"), "ingest": documents}
    pipeline.config["mix"]["output"] = {"format": "oscar", "path": str(pipeline.root / "other-out")}
    found = pipeline.ok("run", "--json").json["mix"]["not_carried"]
    assert found == {"id": 43, "source": 43}


def test_keys_that_are_data_are_one_field(project: Project) -> None:
    metadata = [{"m": {f"key {i} {k}": 1 for k in range(3)}} for i in range(100)]
    write_rows(
        project.documents / "a.jsonl.gz",
        [document(str(i), "text", metadata=each) for i, each in enumerate([*metadata, {"m": {}}, {"m": 1}])],
    )
    project.config["mix"] = {"attributes": [], "rules": [], "output": {"format": "x", "path": str(project.out)}}
    plugin = Path(project.root, "plain.py")
    plugin.write_text(
        "from toolkit import Writer\n\n\nclass Plain(Writer):\n"
        "    def encode(self, document, mixed):\n        return [('all', document.row + b'\\n')]\n"
    )
    project.config["mix"]["output"]["format"] = f"{plugin}:Plain"
    found = project.ok("mix", "--json").json["not_carried"]
    assert found == {"id": 102, "metadata.m": 102, "source": 102}
