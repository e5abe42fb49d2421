"""OSCAR's lines by release: the fields and labels of 23.01; lines are checked as what they are."""

import copy
import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import SHARED, Run
from tests.mixers.test_contract import HEADERS, document_of, writer_of
from tests.pipeline.conftest import Project, read_bytes, read_rows, write_rows
from tests.schemas import fault_of
from toolkit import Mixed, Prediction
from toolkit.errors import ConfigError

OPTIONS = {"annotation": "oscar.annotation", "harmful_pp": "oscar.harmful_pp", "tlsh": "oscar.tlsh"}
OPTIONS |= {"categories": "oscar.categories"}
OSCAR = writer_of("oscar", {"schema": "23.01", **OPTIONS})


def encoded(
    label: str = "en", annotations: tuple[str, ...] = (), options: Any = None, **values: Any
) -> tuple[str, str]:
    """Label and line of a document of two lines."""
    writer = writer_of("oscar", {"schema": "23.01"} if options is None else options)
    values |= {"identification": Prediction(label, 0.75)}
    values |= {"sentence_identifications": [Prediction(label, 0.9), None]}
    found = writer.encode(document_of("one\r\ntwö", f'{{"warc_headers":{HEADERS}}}'), Mixed(values, list(annotations)))
    ((label, data),) = found
    return label, data.decode()


# Keys and their order are those of the released files; the texts are made up.
FULL = (
    f'{{"content":"one\\ntwö","warc_headers":{HEADERS},"metadata":{{"identification":{{"label":"en","prob":0.75}},'
    '"harmful_pp":4063.1814,"tlsh":"tlsh:T125315F","quality_warnings":["short_sentences","header"],'
    '"categories":["examen_pix","liste_bu"],"sentence_identifications":[{"label":"en","prob":0.9},null]}}\n'
)
BARE = (
    f'{{"content":"one\\ntwö","warc_headers":{HEADERS},"metadata":{{"identification":{{"label":"en","prob":0.75}},'
    '"harmful_pp":null,"tlsh":null,"quality_warnings":null,"categories":null,'
    '"sentence_identifications":[{"label":"en","prob":0.9},null]}}\n'
)
BARE_2201 = (
    f'{{"content":"one\\ntwö","warc_headers":{HEADERS},"metadata":{{"identification":{{"label":"en","prob":0.75}},'
    '"annotation":null,"sentence_identifications":[{"label":"en","prob":0.9},null]}}\n'
)


# --- writing ----------------------------------------------------------------------------------------------------------


def test_a_line_of_2301_is_exactly_this() -> None:
    _, line = encoded(
        annotations=("header",),
        annotation=["short_sentences", "header"],
        harmful_pp=4063.1814,
        tlsh="tlsh:T125315F",
        categories=["examen_pix", "liste_bu"],
    )
    assert line == FULL


def test_what_no_attribute_is_named_for_is_null() -> None:
    assert encoded() == ("en", BARE)
    assert encoded(options={}) == ("en", BARE_2201)


def test_no_category_is_null_as_no_warning_is() -> None:
    assert encoded(annotation=[], categories=[])[1] == BARE


def test_each_option_is_an_attribute_that_is_wanted() -> None:
    wanted = {option: each.path for option, each in OSCAR.wants().items()}
    assert wanted == OPTIONS | {"identification": "language", "sentence_identifications": "line_language"}
    assert list(writer_of("oscar", {"schema": "23.01"}).wants()) == ["identification", "sentence_identifications"]


@pytest.mark.parametrize("option", ["harmful_pp", "tlsh", "categories"])
def test_what_2201_has_no_field_for_is_refused(option: str) -> None:
    for schema in ({}, {"schema": "22.01"}):
        with pytest.raises(ConfigError, match=f"expected schema 23.01 with the option {option}, got schema 22.01"):
            writer_of("oscar", {**schema, option: "x"})


@pytest.mark.parametrize(
    ("options", "label", "written"),
    [
        ({"schema": "23.01"}, "als", "gsw"),
        ({"schema": "23.01"}, "eml", "x-eml"),
        ({"schema": "23.01"}, "sh", "sh"),
        ({"schema": "23.01", "labels": {}}, "als", "als"),
        ({"schema": "23.01", "labels": {"no": "nb"}}, "no", "nb"),
        ({}, "als", "als"),
        ({"labels": {"als": "gsw"}}, "als", "gsw"),
    ],
)
def test_labels_are_those_of_the_release_or_of_the_option(options: dict[str, Any], label: str, written: str) -> None:
    found, line = encoded(label, options=options)
    metadata = json.loads(line)["metadata"]
    assert found == metadata["identification"]["label"] == written
    assert metadata["identification"]["prob"] == 0.75
    assert metadata["sentence_identifications"] == [{"label": written, "prob": 0.9}, None]


# --- checking ---------------------------------------------------------------------------------------------------------


def test_a_line_is_checked_as_what_it_is_where_no_schema_is_known() -> None:
    default = writer_of("oscar", {})
    for line in (FULL, BARE, BARE_2201):
        assert default.check(line.strip().encode()) is None


def test_a_schema_that_is_known_is_insisted_on() -> None:
    assert OSCAR.check(FULL.strip().encode()) is None
    problem = OSCAR.check(BARE_2201.strip().encode())
    assert problem is not None
    assert "annotation" in problem


BROKEN = [
    ("tlsh", ..., "expected field tlsh"),
    ("tlsh", 1, "$.metadata.tlsh"),
    ("harmful_pp", ..., "expected field harmful_pp"),
    ("harmful_pp", "4063.1814", "$.metadata.harmful_pp"),
    ("categories", "blog", "$.metadata.categories"),
    ("quality_warnings", "tiny", "$.metadata.quality_warnings"),
    ("adult", True, "unknown field adult"),
    ("sentence_identifications", [None], "for each of 2 lines, got 1"),
    ("sentence_identifications", [None, {"label": "FR", "prob": 1}], "sentence_identifications[1].label"),
]


@pytest.mark.parametrize(("key", "value", "words"), BROKEN)
@pytest.mark.parametrize("writer", [OSCAR, writer_of("oscar", {})], ids=["23.01", "default"])
def test_broken_lines_of_2301_are_refused_as_such(writer: Any, key: str, value: Any, words: str) -> None:
    row = json.loads(FULL)
    if value is ...:
        del row["metadata"][key]
    else:
        row["metadata"][key] = value
    problem = writer.check(json.dumps(row).encode())
    assert problem is not None
    assert words in problem


# --- whole releases ---------------------------------------------------------------------------------------------------


@pytest.fixture
def release(tmp_path: Path) -> Path:
    """A release of 23.01, without any record of ours."""
    path = write_rows(tmp_path / "release" / "en" / "en.jsonl.gz", [line.strip().encode() for line in (FULL, BARE)])
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    (path.parent / "checksum.sha256").write_text(f"{digest}  {path.name}\n")
    return tmp_path / "release"


def test_a_release_of_2301_has_no_finding(run: Run, release: Path) -> None:
    for target in (release, release / "en" / "en.jsonl.gz"):
        ran = run("validate", target)
        assert (ran.code, "0 findings" in ran.out) == (0, True), ran.out


@pytest.mark.slow
def test_a_release_of_2301_passes_through_with_its_own_values(run: Run, release: Path, tmp_path: Path) -> None:
    project = Project(tmp_path, run, {"dataset": str(tmp_path / "data"), "executor": {"type": "in_process"}})
    output = {"format": "oscar", "schema": "23.01", "identification": "oscar.identification", **OPTIONS}
    project.config |= {
        "ingest": [{"format": "oscar", "from": [f"{release}/*/*.jsonl.gz"], "source": "oscar"}],
        "mix": {"attributes": ["oscar-0"], "output": {**output, "path": str(project.out), "compression": "none"}},
    }
    project.ok("run")
    assert read_bytes(project.out / "en" / "en.jsonl").decode() == FULL + BARE
    project.ok("validate")


# The JSON Schemas of OSCAR's releases in docs/schemas: released lines are valid, and so is each line that we write.

LINES = {"22.01": [BARE_2201], "23.01": [BARE, FULL]}


@pytest.mark.parametrize("release", LINES)
def test_lines_of_a_release_are_valid_and_those_of_the_other_are_not(release: str) -> None:
    for other, lines in LINES.items():
        for line in lines:
            assert (fault_of(json.loads(line), release) is None) == (other == release)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("content",), None),
        (("warc_headers",), {"warc-date": 1}),
        (("metadata", "identification", "label"), "En"),
        (("metadata", "identification", "prob"), "0.5"),
        (("metadata", "identification", "prob"), 1.5),
        (("metadata", "annotation"), []),
        (("metadata", "sentence_identifications"), None),
        (("metadata", "sentence_identifications"), [{"label": "en"}]),
        (("more",), 1),
    ],
)
def test_damage_is_found(path: tuple[str, ...], value: Any) -> None:
    line = json.loads(BARE_2201)
    assert fault_of(line, "22.01") is None
    inside = line
    for key in path[:-1]:
        inside = inside[key]
    inside[path[-1]] = value
    assert fault_of(line, "22.01")


def test_a_field_that_a_rule_sets_is_allowed() -> None:
    line = copy.deepcopy(json.loads(BARE_2201))
    line["metadata"]["provenance"] = "a:1"
    assert fault_of(line, "22.01") is None


def test_released_documents_are_valid() -> None:
    path = SHARED / "oscar-22.01" / "real-22.01-sample.jsonl"
    if not path.exists():
        pytest.skip("the sample of the release is not here")
    assert [fault_of(row, "22.01") for row in read_rows(path)] == [None] * 23


# --- labels as the published schema spells them -----------------------------------------------------------------------


def test_labels_with_a_capital_are_read(tmp_path: Path, run: Run) -> None:
    (tmp_path / "en").mkdir()
    released = tmp_path / "en" / "en.jsonl"
    released.write_text(BARE_2201.replace('"label":"en"', '"label":"En"'))
    assert '"En"' in released.read_text()
    assert run("validate", released).code == 0
    counted = run("stats", released, "--json").succeeds().shows('"en"')
    assert '"En"' not in counted.out
    entry = f"[{{format: oscar, from: ['{released}'], source: s}}]"
    config = tmp_path / "c.yaml"
    config.write_text(f"""
dataset: {tmp_path / "data"}
ingest: {entry}
mix:
  attributes: [oscar-0]
  output: {{format: oscar, path: {tmp_path / "out"}, identification: oscar.identification}}
""")
    run("run", "-c", config, "--quiet").succeeds()
    (row,) = read_rows(tmp_path / "out" / "en" / "en.jsonl.gz")
    assert row == json.loads(BARE_2201)


@pytest.mark.parametrize("label", ["EN", "eN", "En_"])
def test_other_spellings_are_findings(label: str, tmp_path: Path, run: Run) -> None:
    path = tmp_path / "en.jsonl"
    path.write_text(BARE_2201.replace('"label":"en"', f'"label":"{label}"'))
    run("validate", path).fails(1).shows(f"expected a lower-case label, got '{label}'")
