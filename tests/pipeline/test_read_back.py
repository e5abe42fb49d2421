"""What the toolkit writes it reads: each output format, ingested again, gives equal documents, as far as it can."""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT, Run
from tests.pipeline.conftest import JsonRows, Project, read_bytes, read_rows, sha256sum_accepts, strays, tree

HEADERS = {"warc-type": "conversion", "warc-record-id": "", "warc-date": "2024-01-01T00:00:00Z", "x": 'é "q" \\ /'}
TEXTS = [
    "one line",
    "two\nlines",
    "é ü 漢字 \U0001f600",
    'a "quote" \\ and \t tab',
    "  around  ",
    "last\u2028 one\u0085 line",
]
"""Without blank lines, and without a line feed at the end, which not every format can tell from none."""


def _documents() -> JsonRows:
    return [
        {
            "id": f"<urn:uuid:{i}>",
            "text": text,
            "source": "s",
            "added": HEADERS["warc-date"],
            "created": HEADERS["warc-date"],
            "metadata": {"warc_headers": {**HEADERS, "warc-record-id": f"<urn:uuid:{i}>"}},
        }
        for i, text in enumerate(TEXTS)
    ]


def _same(row: dict[str, Any]) -> dict[str, Any]:
    return row


def _text(row: dict[str, Any]) -> dict[str, Any]:
    return {"text": row["text"]}


CASES: dict[str, tuple[dict[str, Any], dict[str, Any], Callable[[dict[str, Any]], dict[str, Any]]]] = {
    "dolma": ({}, {"format": "dolma", "from": "out/**/*.jsonl.gz"}, _same),
    "dolma, as JSON Lines": ({"format": "dolma"}, {"format": "jsonl", "from": "out/**/*.jsonl.gz"}, _same),
    "parquet": (
        {},
        {"format": "parquet", "from": "out/**/*.parquet", "leave_out": ["label", "prob", "annotation", "attributes"]},
        _same,
    ),
    "oscar": ({}, {"format": "oscar", "from": "out/**/*.jsonl.gz"}, _same),
    "text": ({}, {"format": "text", "from": "out/**/*.txt.gz"}, _text),
}
"""By output format: its options, the entry that reads it, and what of a document it holds."""


@pytest.mark.parametrize("case", CASES)
def test_documents_come_back(project: Project, case: str) -> None:
    options, entry, holds = CASES[case]
    rows = _documents()
    project.documents.mkdir(parents=True)
    (project.documents / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    values = [
        {"language": {"label": "en", "prob": 0.5}, "line_language": [{"label": "en", "prob": 0.5}] * len(lines)}
        for lines in (row["text"].split("\n") for row in rows)
    ]
    (project.attributes / "l-0").mkdir(parents=True)
    attributes = [
        {"id": row["id"], "source": "s", "attributes": found} for row, found in zip(rows, values, strict=True)
    ]
    (project.attributes / "l-0/a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in attributes))
    output = {"format": case, **options, "path": str(project.out)}
    project.config["mix"] = {"attributes": ["l-0"], "output": output}
    if case == "parquet":
        pytest.importorskip("pyarrow.parquet", exc_type=ImportError)
    project.ok("mix")
    project.config = {key: project.config[key] for key in ("executor",) if key in project.config}
    project.config["dataset"] = str(project.root / "again")
    pattern = str(project.root / entry["from"])
    assert project.ingest({**entry, "from": pattern, "source": "s"}).code == 0
    paths = sorted((project.root / "again/documents").rglob("*.jsonl.gz"))
    again = [row for path in paths for row in read_rows(path)]
    assert [holds(row) for row in again] == [holds(row) for row in rows]


def test_what_is_gathered_comes_back_with_its_types(project: Project) -> None:
    """Metadata of Parquet are JSON texts: numbers, nulls, lists and objects in them stay what they are."""
    pytest.importorskip("pyarrow.parquet", exc_type=ImportError)
    metadata = {"year": 2020, "score": 0.5, "none": None, "tags": ["a", "b"], "of": {"deep": {"er": True}}}
    project.documents.mkdir(parents=True)
    row = {"id": "1", "text": "t", "source": "s", "metadata": metadata}
    (project.documents / "a.jsonl").write_text(json.dumps(row) + "\n")
    project.config["mix"] = {"output": {"format": "parquet", "path": str(project.out)}}
    project.ok("mix")
    project.config = {key: project.config[key] for key in ("executor",) if key in project.config}
    project.config["dataset"] = str(project.root / "again")
    left_out = ["label", "prob", "annotation", "attributes"]
    entry = {"format": "parquet", "from": f"{project.out}/**/*.parquet", "source": "s", "leave_out": left_out}
    assert project.ingest(entry).code == 0
    (path,) = (project.root / "again/documents").rglob("*.jsonl.gz")
    assert read_rows(path) == [row]


# Real documents of OSCAR 22.01, taken apart and put together again, are the same bytes.


@pytest.fixture
def golden(project: Project, shared: Path) -> tuple[Project, list[bytes]]:
    """The released documents, and the recipe of OSCAR 22.01 over them."""
    released = shared / "oscar-22.01" / "real-22.01-sample.jsonl"
    project.config |= {
        "ingest": [{"format": "oscar", "from": [str(released)], "source": "oscar"}],
        "tag": {"language-0": {"tagger": "language", "lines": "oscar-0"}, "shape-0": ["line_shape", "noise"]},
        "mix": {
            "attributes": ["oscar-0", "language-0", "shape-0"],
            "rules": [{"include": str(ROOT / "configs" / "oscar-22.01.yaml")}],
            "output": {"format": "oscar", "path": str(project.out)},
        },
    }
    return project, released.read_bytes().splitlines()


def test_released_documents_come_out_byte_by_byte(golden: tuple[Project, list[bytes]]) -> None:
    project, released = golden
    project.ok("run")
    written = [line for path in project.out.rglob("*.jsonl.gz") for line in read_bytes(path).splitlines()]
    assert len(released) == 23
    assert sorted(written) == sorted(released)
    assert strays(project.root) == []
    project.ok("validate")


def test_a_release_can_pass_through_with_its_own_values(golden: tuple[Project, list[bytes]]) -> None:
    project, released = golden
    del project.config["tag"]
    output = {"identification": "oscar.identification", "annotation": "oscar.annotation"}
    project.config["mix"] = {
        "attributes": ["oscar-0"],
        "output": {"format": "oscar", "path": str(project.out)} | output,
    }
    project.ok("run")
    written = [line for path in project.out.rglob("*.jsonl.gz") for line in read_bytes(path).splitlines()]
    assert sorted(written) == sorted(released)


@pytest.mark.slow
def test_documents_of_a_language_keep_their_order(golden: tuple[Project, list[bytes]]) -> None:
    project, released = golden
    project.config["mix"]["output"]["part_size"] = 20_000
    project.ok("run")
    for folder in (path for path in project.out.iterdir() if path.name != ".toolkit"):
        parts = sorted(folder.glob("*.jsonl.gz"), key=lambda path: (len(path.name), path.name))
        written = [line for part in parts for line in read_bytes(part).splitlines()]
        assert written == [line for line in released if line in set(written)]


@pytest.mark.slow
def test_real_wet_files_go_the_whole_way(pipeline: Project, shared: Path) -> None:
    pipeline.config["ingest"][0]["from"] = [f"{shared}/wet/*.wet*"]
    pipeline.ok("run")
    found = pipeline.ok("run", "--json").json
    assert found["ingest"]["skipped"] == 4
    checksums = sorted(pipeline.out.rglob("*_sha256.txt"))
    assert checksums
    assert all(map(sha256sum_accepts, checksums))
    pipeline.ok("validate")


def test_a_real_file_without_a_valid_record_fails_by_name(pipeline: Project, shared: Path) -> None:
    bad = shared / "wet" / "cc_net_sample.warc.txt"
    pipeline.config["ingest"][0]["from"].append(str(bad))
    pipeline("run").fails(1, str(bad))
    assert len(list(pipeline.documents.rglob("*.jsonl.gz"))) == 2
    assert tree(pipeline.out) == {}


# ``--json``: values have their types, in every command.

STRINGIFIED = re.compile(
    r"-?\d+(,\d{3})*(\.\d+)?([eE][-+]?\d+)?( ?%)?|None|True|False|null|true|false|nan|inf|-|\[.*\]|\{.*\}"
)
DOCUMENTS = re.compile(r".*\.first\[\d+\]\.documents\[")
"""Documents as they are; their values are those of the inputs."""

JSON_TEXTS = (".id", ".version", ".type")
"""Keys that have texts though they may look like numbers or objects; types are written as in messages."""


def stringified(value: Any, path: str = "$") -> Iterator[str]:
    """The places of texts that should have been something else."""
    if isinstance(value, dict):
        for key, each in value.items():
            yield from stringified(each, f"{path}.{key}")
    elif isinstance(value, list):
        for i, each in enumerate(value):
            yield from stringified(each, f"{path}[{i}]")
    elif (
        isinstance(value, str)
        and STRINGIFIED.fullmatch(value.strip())
        and not (path.endswith(JSON_TEXTS) or DOCUMENTS.match(path))
    ):
        yield f"{path}: {value!r}"


@pytest.fixture(scope="module")
def commands() -> list[list[str]]:
    """Command lines of all that prints results; CONFIG, DATA and OUT stand for paths."""
    return [
        ["ingest", "-c", "CONFIG", "--dry-run"],
        ["run", "-c", "CONFIG", "--dry-run"],
        ["run", "-c", "CONFIG"],
        ["run", "-c", "CONFIG"],
        ["status", "-c", "CONFIG"],
        ["ingest", "-c", "CONFIG"],
        ["tag", "-c", "CONFIG"],
        ["tag", "-c", "CONFIG", "--dry-run"],
        ["tag", "--try", "DATA/documents/cc/sample-00000.jsonl.gz", "line_shape", "noise", "-n", "1"],
        ["mix", "-c", "CONFIG"],
        ["mix", "-c", "CONFIG", "--dry-run"],
        ["mix", "-c", "CONFIG", "--explain", "2"],
        ["mix", "-c", "CONFIG", "--compare", "OTHER"],
        ["validate", "-c", "CONFIG"],
        ["validate", "OUT"],
        ["head", "DATA/documents/cc/sample-00000.jsonl.gz", "-n", "1"],
        ["stats", "-c", "CONFIG", "--by", "label", "--by", "line_shape.lines", "--by", "language.multilingual"],
        ["stats", "-c", "CONFIG", "--attribute", "all"],
        ["stats", "-c", "CONFIG", "--histogram", "language.prob"],
        ["stats", "OUT", "--mix"],
        ["stats", "REJECTED", "--by", "rejected.rule"],
        ["taggers", "line_shape"],
        ["card", "-c", "CONFIG", "--of", "output", "--dry-run"],
        ["clean", "DATA"],
    ]


@pytest.mark.slow
def test_no_command_gives_numbers_as_texts(pipeline: Project, run: Run, commands: list[list[str]]) -> None:
    rejected = pipeline.root / "rejected"
    pipeline.config["mix"]["rejected"] = str(rejected)
    other = pipeline.root / "other.yaml"
    config = json.loads(json.dumps(pipeline.config))
    config["mix"]["rules"] = [{"drop": "language.label is None"}, {"drop": "language.prob > 0.9"}]
    other.write_text(json.dumps(config))
    paths = {
        "CONFIG": pipeline.yaml, "OTHER": other, "DATA": pipeline.data, "OUT": pipeline.out, "REJECTED": rejected,
    }  # fmt: skip
    for line in commands:
        given = [re.sub(r"^[A-Z]+", lambda m: str(paths.get(m[0], m[0])), word) for word in line]
        ran = run(*given, "--json").succeeds()
        assert list(stringified(ran.json)) == [], line


def test_explained_values_are_those_of_the_document(small: Project) -> None:
    small.config["mix"]["rules"] = [
        {"drop": "line_shape.lines > 2 and noise.chars > 0", "name": "long"},
        {"annotate": "new", "when": "document.metadata == document.metadata and document.chars >= 0"},
    ]
    found = small.ok("mix", "--explain", "a-1", "--json").json["documents"][0]
    values = found["steps"][0]["values"]
    assert values["line_shape.lines"] == 2
    assert isinstance(values["noise.chars"], int)
    assert found["steps"][1]["values"]["document.metadata"] == {}
    assert "line_shape.lines = 2" in small.ok("mix", "--explain", "a-1").out


def test_dropped_documents_are_grouped_by_their_rule(small: Project) -> None:
    rejected = small.root / "rejected"
    small.config["mix"]["rejected"] = str(rejected)
    small.config["mix"]["rules"].append({"drop": "line_shape.lines == 0", "name": "none"})
    small.ok("mix")
    for target in (rejected, rejected / "documents" / "rejected.jsonl.gz"):
        (table,) = small.run("stats", target, "--by", "rejected.rule", "--json").json["tables"]
        assert {each["group"]: each["documents"] for each in table["groups"]} == {"long": 3, "none": 1}
    (table,) = small.run("stats", small.out, "--by", "rejected.rule", "--json").json["tables"]
    assert {each["group"]: each["documents"] for each in table["groups"]} == {None: 8}
    small.run("stats", rejected, "--by", "rejected.rul").fails(2, "rejected")
