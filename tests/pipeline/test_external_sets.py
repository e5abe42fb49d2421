"""Sets of other programs, of Dolma's form and as Parquet, on disk and in a bucket, wherever a command reads a set."""

import json
from pathlib import Path
from typing import Any

import pytest

import toolkit
from tests.conftest import Run
from tests.learn.annotate.conftest import PROMPT
from tests.learn.annotate.server import serving
from tests.pipeline.conftest import Project, attributes, document, write_rows
from tests.storage.conftest import bucket, seaweed
from toolkit.data import schema
from toolkit.data.alignment import attribute_lines
from toolkit.data.dataset import open_dataset
from toolkit.data.tables.from_arrow import entry
from toolkit.storage import store_of
from toolkit.storage.outputs import write_file
from toolkit.storage.paths import remove

pytestmark = pytest.mark.slow

__all__ = ["bucket", "seaweed"]

pa = pytest.importorskip("pyarrow", exc_type=ImportError)
pq = pytest.importorskip("pyarrow.parquet", exc_type=ImportError)

COUNT = 12
PATHS = ("a.jsonl.gz", "b.jsonl.gz")


def _values(i: int) -> dict[str, Any]:
    lines = [{"label": "en", "prob": 0.5}, {"label": "de" if i % 2 else "en", "prob": 0.25}]
    spans = [[0, 4, 1.0]] if i % 3 == 0 else []
    return {"p": float(i), "bad": spans, "line_language": lines, "genre": "x" if i > 5 else "y", "emb": [1.0 * i, 1.0]}


@pytest.fixture(params=["dolma", "parquet"])
def form(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=["disk", pytest.param("bucket", marks=pytest.mark.slow)])
def project(tmp_path: Path, run: Run, form: str, request: pytest.FixtureRequest) -> Project:
    """Documents in pairs of equal texts, and a set of another program with all kinds of values."""
    found = Project(tmp_path, run, {})
    for name in PATHS:
        rows = [document(f"{name}-{i}", f"text number {i // 2}\nand more of {name}", "s") for i in range(COUNT)]
        write_rows(found.documents / name, rows)
        values = [_values(i) for i in range(COUNT)]
        path = found.attributes / "ext-0" / name
        if form == "parquet":
            path = path.with_name(name.partition(".")[0] + ".parquet")
            path.parent.mkdir(parents=True, exist_ok=True)
            spans = pa.list_(pa.struct([("start", pa.int64()), ("end", pa.int64()), ("score", pa.float64())]))
            columns: dict[str, Any] = {key: [each[key] for each in values] for key in values[0]}
            fields = ("start", "end", "score")
            bad = [[dict(zip(fields, span, strict=True)) for span in each] for each in columns["bad"]]
            columns |= {"bad": pa.array(bad, spans), "id": [row["id"] for row in rows], "source": ["s"] * COUNT}
            types = {key: schema.infer(value) for key, value in values[0].items()}  # as `toolkit export` declares them
            pq.write_table(pa.table(columns).replace_schema_metadata(entry("ext-0", types)), path)
        else:  # rows without spans lack the key
            left = [{key: value for key, value in each.items() if value != []} for each in values]
            write_rows(path, [attributes(f"{name}-{i}", each) for i, each in enumerate(left)])
    found.config["dataset"] = str(found.data)
    if request.param == "bucket":
        root = request.getfixturevalue("bucket") + "/data"
        for path in found.data.rglob("*"):
            if path.is_file():
                write_file(f"{root}/{path.relative_to(found.data)}", path.read_bytes())
        found.config["dataset"] = root
    return found


def _rows(project: Project, name: str) -> list[Any]:
    """Return the values of a set of one key, in both shards."""
    found = []
    for shard in PATHS:
        with attribute_lines(f"{project.config['dataset']}/attributes/{name}/{shard}") as lines:
            found += [next(iter(json.loads(line)["attributes"].values())) for line in lines]
    return found


def test_each_command_that_makes_sets_reads_them(project: Project) -> None:
    """Keys are found by an expression alone, by the name of the set, and by an option that names set and key."""
    project.config |= {
        "tag": {
            "when-0": {"tagger": "length", "when": "p > 5 and line_language[0].prob > 0"},
            "when-1": {"tagger": "length", "when": "len(bad) > 0", "attributes": ["ext-0"]},
            "without-0": {"tagger": "length", "without": "ext-0.bad"},
            "lines-0": {"tagger": "language", "lines": "ext-0.line_language"},
        },
        "dedup": {
            "exact-0": {"kind": "exact", "keep": {"max": "p"}, "when": "len(bad) >= 0", "scope": "genre"},
            "near-0": {"kind": "near", "when": "p < 0"},
        },
        "sample": {"sample-0": {"documents": 4, "by": "ext-0.genre", "when": "len(bad) > 0"}},
        "calibrate": {
            "rank-0": {"kind": "rank", "score": "ext-0.p", "within": "genre"},
            "map-0": {"kind": "map", "method": "isotonic", "score": "p", "labels": "ext-0.p"},
        },
        "train": {"model-0": {"labels": "genre", "task": "classes", "minimum": 1, "when": "p >= 0"}},
        "mix": {"attributes": ["ext-0", "when-0"], "output": {"format": "dolma", "path": str(project.out)}},
    }
    with serving() as server:
        entry = {"endpoint": server.url, "model": "m", "prompt": PROMPT, "answers": str(project.root / "answers")}
        project.config["annotate"] = {"edu-0": {**entry, "when": "p > 5"}}
        project.ok("run")
        asked = len(server.bodies)
        project.ok("train")
        kinds = [i for _ in PATHS for i in range(COUNT)]
        assert [value is not None for value in _rows(project, "when-0")] == [i > 5 for i in kinds]
        assert [value is not None for value in _rows(project, "when-1")] == [i % 3 == 0 for i in kinds]
        texts = [len(f"text number {i // 2}\nand more of {name}") for name in PATHS for i in range(COUNT)]
        without = [text - (4 if i % 3 == 0 else 0) for text, i in zip(texts, kinds, strict=True)]
        assert [value["chars"] for value in _rows(project, "without-0")] == without
        assert {value["label"] for value in _rows(project, "lines-0")} == {"en", "de"}
        assert [value is not None for value in _rows(project, "edu-0")] == [i > 5 for i in kinds]
        assert [value["duplicate_of"] is None for value in _rows(project, "exact-0")] == [i % 2 == 1 for i in kinds]
        assert {value["duplicate_of"] for value in _rows(project, "near-0")} == {None}
        drawn = [i for i, value in zip(kinds, _rows(project, "sample-0"), strict=True) if value["chosen"]]
        assert (len(drawn), {i % 3 for i in drawn}) == (4, {0})
        assert [value["rank"] for value in _rows(project, "rank-0")][:2] == [0.5 / 6, 1.5 / 6]
        project.ok("validate")
        assert "all is done" in project.ok("status").out
        project.ok("run")
        assert len(server.bodies) == asked


COMMANDS = {
    "report": ["report", "-o", "{root}/report.html"],
    "head": ["head"],
    "stats": ["stats", "--attribute", "p"],
    "sql": ["sql", 'SELECT count(*) FROM "ext-0", joined WHERE len(joined.bad) > 0'],
    "compare": ["compare", "ext-0", "ext-0"],
    "evaluate": ["evaluate", "ext-0.p", "--against", "ext-0.p", "--by", "ext-0.genre", "--attributes", "ext-0"],
    "where": ["evaluate", "ext-0.p", "--against", "ext-0.p", "--where", "len(bad) > 0", "--attributes", "ext-0"],
    "export": ["export", "--parquet", "{root}/parquet", "--set", "ext-0"],
    "dry run": ["mix", "--dry-run"],
    "explain": ["mix", "--explain", "a.jsonl.gz-3"],
    "validate": ["validate"],
    "mix": ["mix"],
    "card": ["stats", "{root}/out"],
}


def test_each_command_that_looks_reads_them(project: Project) -> None:
    rules = [{"drop": "p < 2"}, {"replace": "bad", "by": "X"}]
    output = {"format": "dolma", "path": str(project.out)}
    project.config["mix"] = {"attributes": ["ext-0"], "rules": rules, "output": output}
    for command in COMMANDS.values():
        project(*(part.replace("{root}", str(project.root)) for part in command)).succeeds()
    assert len(project.output()) == 2 * (COUNT - 2)


def test_a_shard_without_its_file_is_not_what_tag_makes(project: Project) -> None:
    output = {"format": "dolma", "path": str(project.out)}
    project.config["mix"] = {"attributes": ["ext-0"], "rules": [], "output": output}
    dataset = open_dataset(project.config["dataset"], None, None)
    remove(dataset.attribute_file("ext-0", PATHS[0]))
    project("mix").fails(1, "another program made the set, and must write this file, too")
    project.config["mix"]["rules"] = [{"drop": "unknown > 1"}]  # which that file may have
    ran = project("mix", "--json").fails(1, "1 failed:")
    assert "another program made the set" in ran.json["failed"][0]
    assert "error:" not in ran.err
    with pytest.raises(toolkit.Failed, match="another program made the set") as failed:
        toolkit.mix(project.yaml)
    assert failed.value.failures == ran.json["failed"]


@pytest.mark.parametrize("form", ["dolma"], indirect=True)
def test_a_look_at_a_set_that_cannot_be_read_is_no_result(project: Project) -> None:
    """Where findings are a result, too."""
    project.config["tag"] = {"q-0": {"tagger": "noise", "when": "p < 3"}}
    for name in PATHS:
        path = f"{project.config['dataset']}/attributes/ext-0/{name}"
        write_file(path, store_of(path).read(path)[:-20])
    for look in (toolkit.validate, toolkit.status):
        with pytest.raises(toolkit.Failed, match="expected whole compressed data"):
            look(project.yaml)
