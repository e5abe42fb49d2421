"""Rules that edit text in a mix: what comes out, and that nothing beside the text is stale."""

import json
import shutil
from typing import Any

import pytest

from tests.pipeline.conftest import Project, attributes, document, write_rows
from toolkit.storage.models import resolve

SHARD = "a.jsonl.gz"

EN, FR = {"label": "en", "prob": 0.9}, {"label": "fr", "prob": 0.95}
LINES = ["one english line", "une ligne", "another english line", ""]


@pytest.fixture
def labelled(project: Project) -> Project:
    """An OSCAR file of two documents, ingested, its vote redone, cut to the lines of the document's language."""
    lines = [
        {
            "content": "\n".join(LINES),
            "warc_headers": {"warc-record-id": "1"},
            "metadata": {"identification": EN, "annotation": None, "sentence_identifications": [EN, FR, EN, None]},
        },
        {
            "content": "une ligne\r\nen français",
            "warc_headers": {"warc-record-id": "2"},
            "metadata": {"identification": FR, "annotation": None, "sentence_identifications": [FR, FR]},
        },
    ]
    path = write_rows(project.root / "in.jsonl", lines)
    project.config |= {
        "ingest": [{"format": "oscar", "from": [str(path)], "source": "o"}],
        "tag": {"language-0": {"tagger": "language", "lines": "oscar-0"}, "shape-0": "line_shape"},
        "mix": {
            "attributes": ["oscar-0", "language-0"],
            "rules": [
                {"drop": "language.label is None"},
                {"cut": "lines", "when": "line_language is None or line_language.label != language.label"},
            ],
            "output": {"format": "oscar", "path": str(project.out)},
        },
    }
    return project


def test_lines_are_cut_with_their_identifications_and_the_vote_is_taken_anew(labelled: Project) -> None:
    labelled.ok("run")
    found = {row["warc_headers"]["warc-record-id"]: row for row in labelled.output()}
    assert found["1"]["content"] == "one english line\nanother english line"
    assert found["1"]["metadata"] == {
        "identification": {"label": "en", "prob": 0.90000004},  # summed in float32
        "annotation": None,
        "sentence_identifications": [EN, EN],
    }
    assert found["2"]["content"] == "une ligne\nen français"
    labelled.ok("validate")


def test_a_dry_run_counts_the_lines_that_would_be_cut(labelled: Project) -> None:
    labelled.ok("ingest")
    labelled.ok("tag")
    effects = labelled.ok("mix", "--dry-run", "--json").json["rules"]
    assert [(effect["documents"], effect["spans"]) for effect in effects] == [(0, 0), (1, 2)]
    effects = labelled.ok("mix", "--json").json["rules"]
    assert [(effect["documents"], effect["spans"]) for effect in effects] == [(0, 0), (1, 2)]


def test_a_value_for_each_line_is_asked_for(labelled: Project) -> None:
    labelled.config["mix"]["rules"][1]["when"] = "line_shape.lines > 2"
    labelled.config["mix"]["attributes"].append("shape-0")
    labelled.ok("run")
    assert [row["warc_headers"]["warc-record-id"] for row in labelled.output()] == ["2"]
    labelled.config["mix"]["rules"][1]["when"] = "line.chars < 12"
    labelled.ok("mix")
    assert [row["content"] for row in labelled.output()] == ["one english line\nanother english line"]


def spans(
    project: Project, values: dict[str, Any], rules: list[dict[str, Any]], text: str = "mail a@b.c or d@e.f ü"
) -> Any:
    write_rows(project.documents / SHARD, [document("1", text, extra={"kept": [1]})])
    write_rows(project.attributes / "pii" / SHARD, [attributes("1", values)])
    project.mixes(*rules, attributes=["pii"])
    return project("mix")


EMAILS = {"emails": [[5, 10, 1.0], [14, 19, 0.4]], "flag": True}


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        ({"replace": "emails", "by": "|||EMAIL|||"}, "mail |||EMAIL||| or |||EMAIL||| ü"),
        ({"replace": "emails", "by": "<{tag}:{}>", "name": "pii"}, "mail <pii:a@b.c> or <pii:d@e.f> ü"),
        ({"replace": "emails", "by": "X", "min_score": 0.5}, "mail X or d@e.f ü"),
        ({"replace": "emails", "by": "X", "max_score": 1.0}, "mail a@b.c or X ü"),
        ({"cut": "[s for s in emails if s.score < 0.5]"}, "mail a@b.c or  ü"),
        ({"cut": "emails", "when": "not flag"}, "mail a@b.c or d@e.f ü"),
    ],
)
def test_spans_are_replaced_or_cut(project: Project, rule: dict[str, Any], text: str) -> None:
    spans(project, EMAILS, [rule]).succeeds()
    (found,) = project.output()
    assert found == document("1", text, extra={"kept": [1]})


def test_a_span_out_of_range_names_the_document(project: Project) -> None:
    spans(project, {"emails": [[5, 100, 1.0]]}, [{"cut": "emails"}]).fails(
        1, f"{SHARD}:1: rule 'emails'", "got [5, 100]; `past_end: clamp`", "(document '1')"
    )
    assert project.output() == []


def test_a_document_that_edits_leave_empty_is_counted(project: Project) -> None:
    spans(project, {"all": [[0, 3, 1.0]]}, [{"cut": "all"}], text="abc").fails(
        1, "got 0 of 1 (dropped: 1 by documents empty after edits)"
    )
    project.config["mix"]["allow_empty"] = True
    assert "documents empty after edits: 1" in project.ok("mix").out
    for command in (["mix", "--explain"], ["trace", "--id"]):
        assert "  left out: edits leave no text" in project.ok(*command, "1").out
        assert project.ok(*command, "1", "--json").json["documents"][0]["emptied"]
    project.config["mix"]["output"]["keep_empty"] = True
    assert "  stays" in project.ok("mix", "--explain", "1").out


@pytest.mark.parametrize("editing", [True, False])
def test_what_looks_at_no_text_says_that_it_makes_no_edits(project: Project, editing: bool) -> None:
    rule = {"cut": "all"} if editing else {"annotate": "x", "when": "flag"}
    spans(project, {"all": [[0, 3, 1.0]], "flag": True}, [rule], text="abc")
    other = project.root / "other.yaml"
    other.write_text(json.dumps(project.config | {"mix": project.config["mix"] | {"rules": []}}))
    for arguments in (["--dry-run"], ["--compare", other]):
        assert ("without text count as kept" in project.ok("mix", *arguments).out) is editing
        assert project.ok("mix", *arguments, "--json").json["before_edits"] is editing
    assert project.run("mix", "-c", other, "--compare", project.yaml, "--json").json["before_edits"] is editing


def test_what_is_replaced_are_spans(project: Project) -> None:
    spans(project, EMAILS, [{"replace": "flag", "by": ""}]).fails(2, "expected spans")


def test_a_model_that_an_option_names_judges_the_edited_text_anew(project: Project) -> None:
    french = "La bibliothèque municipale ouvre à neuf heures le matin, et ferme à six heures le soir."
    text = f"{french}\nThe library opens at nine."
    write_rows(project.documents / SHARD, [document("1", text)])
    write_rows(project.attributes / "spans" / SHARD, [attributes("1", {"french": [[0, len(french), 1.0]]})])
    model = project.root / "model.ftz"
    shutil.copy(resolve("lid.176.ftz"), model)
    project.config |= {
        "dataset": str(project.data),
        "tag": {"text-0": {"tagger": "fasttext_label", "model": str(model), "k": 1}},
        "mix": {
            "attributes": ["text-0", "spans"],
            "rules": [{"drop": "fasttext_label.label is None"}, {"replace": "french", "by": ""}],
            "output": {"format": "dolma", "by": "fasttext_label", "path": str(project.out)},
        },
    }
    project.ok("tag")
    project.ok("mix")
    assert [path.parent.name for path in project.out.rglob("*.jsonl.gz")] == ["en"]
    model.write_bytes(b"another")
    project("mix").fails(2, "another")
