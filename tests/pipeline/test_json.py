"""``--json``: values have their types, in every command."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.conftest import Run
from tests.pipeline.conftest import Project

STRINGIFIED = re.compile(
    r"-?\d+(,\d{3})*(\.\d+)?([eE][-+]?\d+)?( ?%)?|None|True|False|null|true|false|nan|inf|-|\[.*\]|\{.*\}"
)
DOCUMENTS = re.compile(r".*\.first\[\d+\]\.documents\[")
"""Documents as they are; their values are those of the inputs."""

TEXTS = (".id", ".version", ".type")
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
        and not (path.endswith(TEXTS) or DOCUMENTS.match(path))
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
