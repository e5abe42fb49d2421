"""``text: SET.KEY.field``: taggers, duplicates and mixes do with it what they do with documents that have this text."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.pipeline.conftest import Project, document, read_rows, write_rows
from tests.pipeline.test_extractors import ARTICLE, FIRST, SECOND
from tests.pipeline.test_warc import HTML, http, record, warc, write_warc

SHARDS = ("a.jsonl.gz", "b.jsonl.gz")
LONG = 575
REF = "other-0.other.text"
LINE = "The library of the town opens at nine and closes at six on all days of the week"


def texts() -> list[str | None]:
    """Other texts, of which some are null, equal, nearly equal, or have common lines."""
    found: list[str | None] = []
    for i in range(40):
        body = " ".join(f"word{(i % 20) * 7 + j}" for j in range(60))
        found.append(None if i % 9 == 4 else f"{LINE} {i % 3}.\n{body}\nüñí {i % 20} me@example{i % 5}.org")
    return found


TAG: dict[str, Any] = {
    "many-0": {"taggers": ["length", "line_shape", "emails", "gopher_quality"]},
    "lines-0": {"tagger": "line_shape", "as": "shape"},
}
DEDUP: dict[str, Any] = {
    "exact-0": {"kind": "exact"},
    "lines-1": {"kind": "exact", "unit": "line", "as": "lines"},
    "near-0": {"kind": "near"},
    "passages-0": {"kind": "passages", "length": 200},
}


def configure(project: Project, *, chosen: bool) -> None:
    """A dataset with other texts, or one whose documents have those texts, without those that have none."""
    name = "chosen" if chosen else "plain"
    given = {"text": REF} if chosen else {}
    project.config |= {"dataset": str(project.root / name), "processes": 1}
    rows = [
        document(f"d{i}", f"own text {i}" if chosen else text or "", metadata={"other": text, "lang": "en"})
        for i, text in rows_of()
    ]
    for n, shard in enumerate(SHARDS):
        write_rows(project.root / name / "documents" / shard, rows[n::2])
    other = {"other-0": {"tagger": "tests.pipeline.plugins:Other", "as": "other"}}
    asked = {} if chosen else {"when": "other is not None"}
    project.config["tag"] = other | {
        each: (entry if "taggers" in entry else dict(entry)) | given | asked for each, entry in TAG.items()
    }
    project.config["dedup"] = {each: entry | given | asked for each, entry in DEDUP.items()}


def rows_of() -> list[tuple[int, str | None]]:
    return list(enumerate(texts()))


def mix(project: Project, output: dict[str, Any], *, chosen: bool, name: str) -> None:
    drop = [] if chosen else [{"drop": "other is None or emails is None", "name": "null_text"}]
    project.config["mix"] = {
        "attributes": ["other-0", "many-0", "exact-0", "lines-1"],
        "rules": [
            *drop,
            {"drop": "metadata.lang is None", "name": "no_label"},
            {"drop": f"document.chars > {LONG}", "name": "long"},
            {"drop": "exact.duplicate_of is not None", "name": "copy"},
            {"replace": "emails", "by": "@"},
        ],
        "output": output | {"path": str(project.root / f"out-{name}")},
    } | ({"text": REF} if chosen else {})


@pytest.fixture
def both(project: Project) -> Callable[[Callable[[bool], Any]], tuple[Any, Any]]:
    def run(do: Callable[[bool], Any]) -> tuple[Any, Any]:
        found = []
        for chosen in (True, False):
            configure(project, chosen=chosen)
            found.append(do(chosen))
        return found[0], found[1]

    return run


Both = Callable[[Callable[[bool], Any]], tuple[Any, Any]]


def values(root: Path, sets: Any) -> dict[str, Any]:
    return {
        f"{name}/{shard}": [row["attributes"] for row in read_rows(root / "attributes" / name / shard)]
        for name in sets
        for shard in SHARDS
    }


@pytest.mark.slow
def test_taggers_and_duplicates_see_the_chosen_text(project: Project, both: Both) -> None:
    def do(chosen: bool) -> dict[str, Any]:
        project.ok("tag")
        project.ok("dedup")
        project.ok("validate")
        project.ok("status")
        again = project.ok("tag").out
        assert next(line.split()[-4:-1] for line in again.splitlines() if line.startswith("lines-0")) == [
            "0",
            "2",
            "36",
        ]
        return values(Path(project.config["dataset"]), [*TAG, *DEDUP])

    chosen, plain = both(do)
    assert chosen == plain
    assert any(row["near"]["duplicate_of"] for row in chosen["near-0/b.jsonl.gz"])
    assert all(
        (row["length"] is None) == (row["shape"] is None) for row in chosen["many-0/a.jsonl.gz"] if "shape" in row
    )


def contents(folder: Path) -> dict[str, bytes]:
    """The files of an output; of rows their texts."""
    found = {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}
    return {name: data for name, data in found.items() if ".toolkit" not in name and "sha256" not in name}


OUTPUTS: dict[str, dict[str, Any]] = {
    "dolma": {"provenance": "line"},
    "parquet": {},
    "text": {"identification": "metadata.lang"},
}


@pytest.mark.slow
@pytest.mark.parametrize(("output", "processes"), [("dolma", 2), ("parquet", 1), ("text", 1)])
def test_a_mix_writes_the_chosen_text(project: Project, both: Both, output: str, processes: int) -> None:
    def do(chosen: bool) -> Any:
        mix(project, {"format": output} | OUTPUTS[output], chosen=chosen, name=f"{output}-{chosen}")
        project.config["processes"] = processes
        if processes > 1:
            project.config["executor"] = {"type": "local"}
        project.ok("tag")
        project.ok("dedup")
        shown = project.ok("mix", "--dry-run", "--json").json
        mixed = project.ok("mix", "--json").json
        project.ok("validate")
        rules = {rule["name"]: (rule["documents"], rule["chars"]) for rule in mixed["rules"]}
        assert {rule["name"]: rule["documents"] for rule in shown["rules"]} == {n: d for n, (d, _) in rules.items()}
        return rules, contents(project.root / f"out-{output}-{chosen}")

    (rules, files), (plain_rules, plain_files) = both(do)
    assert rules == plain_rules
    assert rules["null_text"] == (4, 0)
    assert files == plain_files


@pytest.mark.slow
def test_a_run_from_web_pages_uses_the_text_of_another_extractor(project: Project) -> None:
    pages = (ARTICLE, "<nav><a href=/>Home</a></nav>", ARTICLE.replace("Home", "Start"))
    path = write_warc(project.root, *(record(i, http(body, HTML)) for i, body in enumerate(pages)))
    text = {"text": "traf-0.extracted.text"}
    project.config |= {
        "ingest": [warc(path, extract={"traf-0": "trafilatura"})],
        "tag": {
            "length-0": {"tagger": "length"} | text,
            "lines-0": {"tagger": "line_language", "model": "lid.176.ftz"} | text,
        }
        | {"language-0": {"tagger": "language", "lines": "lines-0"} | text},
        "dedup": {"exact-0": {"kind": "exact"} | text},
        "mix": text
        | {
            "attributes": ["lines-0", "language-0", "exact-0"],
            "rules": [
                {"drop": "document.chars == 0 or language.label is None", "name": "empty"},
                {"drop": "exact.duplicate_of is not None", "name": "copy"},
            ],
            "output": {"format": "oscar", "path": str(project.root / "out")},
        },
    }
    project.ok("run")
    (row,) = read_rows(project.root / "out/en/en.jsonl.gz")
    assert row["content"] == f"{FIRST}\n{SECOND}"
    assert len(row["metadata"]["sentence_identifications"]) == 2
    assert project.ok("status").code == 0
    assert project.ok("validate").code == 0
    project.ok("report", "-o", str(project.root / "report.html"))
    assert project.ok("stats", "--json").json["tables"][0]["groups"][-1]["documents"] > 0
    assert "; `text:` is given, so the documents were read with their text" in project.ok("mix", "--dry-run").out
    shown = project.ok("mix", "--dry-run", "--json").json
    assert {rule["name"]: rule["documents"] for rule in shown["rules"]} == {"null_text": 0, "empty": 1, "copy": 1}
    project.config["mix"].pop("text")
    drop = "line_language is None or language is None or language.label is None"
    project.config["mix"]["rules"] = [{"drop": drop, "name": "empty"}]
    project("mix").fails(
        2, "has places in `text: traf-0.extracted.text`, and is used here with the documents' own text"
    )


def test_what_cannot_be_is_refused(project: Project) -> None:
    changes: list[tuple[dict[str, Any], str]] = [
        (
            {"tag": {"a-0": {"tagger": "length", "text": "other-0"}}},
            "tag.a-0.text: expected SET.KEY[.field], which names",
        ),
        ({"tag": {"a-0": {"tagger": "length", "text": "no-0.other"}}}, "text: 'no-0.other': expected an attribute set"),
        ({"tag": {"a-0": {"tagger": "length", "text": "other-0.other.chars"}}}, "expected a value of type str | null"),
        (
            {"tag": {"a-0": {"tagger": "length", "text": REF, "without": "e-0.emails"}, "e-0": "emails"}},
            "tag.a-0.text: expected `text` or `without`, got both",
        ),
        (
            {"tag": {"a-0": {"tagger": "length", "without": "e-0.emails"}, "e-0": {"tagger": "emails", "text": REF}}},
            "has places in `text: other-0.other.text`, and is used here with the documents' own text",
        ),
        (
            {"sample": {"s-0": {"documents": 3, "text": REF}}},
            "expected `text` in a section `dedup:`, got it in this one",
        ),
        ({"dedup": {"d-0": {"kind": "exact", "text": "other-0.other.chars"}}}, "expected a text, or null, got a value"),
        (
            {"dedup": {"d-0": {"kind": "exact", "text": "metadata.other"}}},
            "text: expected SET.KEY[.field], which names",
        ),
        ({"dedup": {"d-0": {"kind": "exact", "text": "other-0.other.txt"}}}, "expected a field, got 'txt'"),
        (
            {"mix": {"text": "other-0.other", "output": {"format": "dolma", "path": "out"}}},
            "config.yaml:1: mix.text: 'other-0.other': expected a text, or null, got",
        ),
        (
            {"mix": {"text": REF, "output": {"format": "dolma", "path": "out", "by": "other.txet"}}},
            "got no such field; did you mean 'text'?",
        ),
    ]
    write_rows(project.documents / "a.jsonl.gz", [document("d", "text", metadata={"other": "x"})])
    project.config["tag"] = {"other-0": {"tagger": "tests.pipeline.plugins:Other", "as": "other"}}
    project.ok("tag")
    config = project.config
    for changed, message in changes:
        project.config = config | {name: {**config.get(name, {}), **entries} for name, entries in changed.items()}
        project(next(iter(changed))).fails(2, message)


def test_edits_change_the_values_of_the_text_that_they_edit(project: Project) -> None:
    other = "The library opens at nine.\nWrite to me@example.org or come by."
    rows = [document("d", "own", metadata={"other": other}), document("e", "own", metadata={"other": None})]
    write_rows(project.documents / "a.jsonl.gz", rows)
    text = {"text": REF}
    lines = {"tagger": "line_language", "model": "lid.176.ftz"} | text
    project.config["tag"] = {
        "other-0": {"tagger": "tests.pipeline.plugins:Other", "as": "other"},
        "lines-0": lines,
        "language-0": {"tagger": "language", "lines": "lines-0"} | text,
        "edited-0": {"taggers": [{"tagger": "length", "as": "edited"}, "emails"]} | text,
        "own-0": "length",
    }
    project.ok("tag")

    def mixed(name: str, output: str, *rules: dict[str, Any]) -> list[Any]:
        attributes = [each for each in project.config["tag"] if each != "other-0"]
        edit = {"replace": "emails", "by": "@"}
        project.config["mix"] = text | {"attributes": attributes, "rules": [*rules, edit]}
        project.config["mix"]["output"] = {"format": output, "path": str(project.root / output)}
        project.ok("mix")
        return read_rows(project.root / output / name)

    (row,) = mixed("en/en.jsonl.gz", "oscar", {"drop": "language.label is None", "name": "unidentified"})
    assert row["content"] == other.replace("me@example.org", "@")
    assert len(row["metadata"]["sentence_identifications"]) == 2
    sets = [{"set": "edited", "to": "edited.chars"}, {"set": "own", "to": "length.chars"}]
    (row,) = mixed("documents/documents.jsonl.gz", "dolma", *sets)
    assert row["metadata"] | {"edited": len(other) - 13, "own": 3} == row["metadata"]
