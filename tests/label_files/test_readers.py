"""Files of annotations as values by id: every variant that has been written, and what is none."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings, strategies as st

from tests.conftest import ROOT, Run
from tests.pipeline.test_annotation_files import annotation, attributes, config, raw_files, write_lines
from toolkit.errors import DataError
from toolkit.ingest.reader import Draft, Input
from toolkit.label_files import reader
from toolkit.label_files.reader import ANNOTATIONS, AnnotationReader, aggregated, named_so

LIMIT = 10_000_000


def read(path: Path, content: bytes, form: str = "annotations", **options: Any) -> tuple[list[Draft], dict[str, int]]:
    path.write_bytes(content)
    source = Input(str(path), None, LIMIT, None)
    reader: AnnotationReader = msgspec.convert(options, ANNOTATIONS.find(form))
    return list(reader.read(source)), source.counts


def line(row: Any) -> bytes:
    return json.dumps(row).encode() + b"\n"


# --- ml_filter --------------------------------------------------------------------------------------------------------

_SCORES = st.lists(st.none() | st.integers(-1, 9) | st.floats(0, 9, allow_nan=False), max_size=5)
_NAMES = st.text(max_size=5)


@st.composite
def variants(draw: st.DrawFn) -> tuple[dict[str, Any], dict[str, Any]]:
    """A row in one of the variants, and what it says."""
    id, scores = draw(st.text(min_size=1) | st.integers(0)), draw(_SCORES)
    row: dict[str, Any] = {draw(st.sampled_from(["document_id", "id"])): id, "scores": scores}
    said: dict[str, Any] = {"id": str(id), "scores": scores, "errors": [], "model_name": None, "prompt_name": None}
    if draw(st.booleans()):  # else it is ground truth of people
        row["explanations"] = ["x" for _ in scores]
        flat, nested = [_NAMES, st.none() | st.lists(_NAMES, max_size=2)]
        errors = draw(st.lists(flat if draw(st.booleans()) else nested, min_size=len(scores), max_size=len(scores)))
        said["errors"] = [[each] if isinstance(each, str) else each or [] for each in errors]
        said["model_name"], said["prompt_name"] = draw(_NAMES), draw(_NAMES)
        old = draw(st.booleans())
        row |= {
            "errors": errors,
            "time_stamps": [1 for _ in scores],
            "document_processing_status": ["success" for _ in scores],
            "meta_information": {
                "prompt" if old else "prompt_name": said["prompt_name"],
                "model" if old else "model_name": said["model_name"],
                "prompt_lang": "en",
                **draw(st.sampled_from([{}, {"raw_data_file_path": "/raw"}, {"out_tokens_per_second": 1.5}])),
            },
            **draw(st.sampled_from([{}, {"request": None}, {"request": {"a": 1}}])),
        }
    keys = draw(st.permutations(list(row)))
    return {key: row[key] for key in keys}, said


@given(st.lists(variants(), max_size=5), st.sampled_from(["mean", "median", "majority", "min", "max"]))
def test_all_variants_are_read(tmp_path_factory: Any, rows: list[Any], aggregate: Any) -> None:
    """In any order of keys; nothing of a row is lost, and the score is that of the valid ones."""
    path = tmp_path_factory.mktemp("files") / "9__annotations_m--x_p_en_.jsonl"
    labels = (0, 1, 2, 3, 4, 5)
    drafts, counts = read(path, b"".join(line(row) for row, _ in rows), aggregate=aggregate, labels=labels)
    assert [draft.id for draft in drafts] == [said["id"] for _, said in rows]
    valid = 0
    for draft, (_, said) in zip(drafts, rows, strict=True):
        found = draft.extra["annotation"]
        assert {name: getattr(found, name) for name in said if name != "id"} == {
            name: value for name, value in said.items() if name != "id"
        }
        good = [score for score in said["scores"] if score in labels]
        assert (found.valid, found.score) == (len(good), aggregated(good, aggregate))
        valid += len(good)
    assert counts["scores"] - counts["without a score"] - counts["not among the labels"] == valid


def test_what_python_writes_and_json_has_not_is_no_score(tmp_path: Path) -> None:
    drafts, counts = read(tmp_path / "x", b'{"id": "a", "scores": [-Infinity, NaN, 2.0], "explanation": [""]}\n')
    assert drafts[0].extra["annotation"].scores == [None, None, 2.0]
    assert counts["without a score"] == 2


def test_what_ml_filter_has_aggregated_is_read(tmp_path: Path) -> None:
    rows = [{"id": id, "score": score, "aggregation_type": "mean"} for id, score in (("a", 2), ("b", "invalid"))]
    drafts, _ = read(tmp_path / "x", b"".join(map(line, rows)))
    assert [draft.extra["annotation"].score for draft in drafts] == [2.0, None]


def test_a_large_explanation_is_kept(tmp_path: Path) -> None:
    large = "é" * 1_000_000
    drafts, _ = read(tmp_path / "x", line({"document_id": "a", "scores": [1], "explanations": [large]}))
    assert drafts[0].extra["annotation"].explanations == [large]


@pytest.mark.parametrize(
    ("row", "said"),
    [
        (b'{"document_id": "a", "scores": [1}', "expected a JSON object in UTF-8"),
        (b"[1, 2]", "expected an annotation, an object with `document_id` and `scores`, got [1,2]"),
        (b'{"scores": [1]}', "expected 'document_id' or 'id', the id of the document, got none"),
        (b'{"document_id": "a"}', "expected an annotation with `scores`, got none"),
        (b'{"document_id": ["a"], "scores": [1]}', "expected a text or an integer in 'document_id'"),
        (b'{"document_id": "a", "scores": ["x"]}', "`$.scores[0]`"),
        (b'{"document_id": "a", "scores": {"mean": 1}}', "`$.scores`"),
        (b'{"document_id": "a", "scores": [1], "explanations": [1]}', "`$.explanations[0]`"),
        (b'{"document_id": "a", "scores": [1], "errors": [[1]]}', "`$.errors[0][0]`"),
        (b'{"document_id": "a", "scores": [1], "meta_information": "x"}', "`$.meta_information`"),
        (b'{"document_id": "a\xff", "scores": [1]}', "UTF-8"),
        (b'{"document_id": "a", "scores": ' + b"[" * 1_000_000, "nested"),
    ],
)
def test_rows_that_are_no_annotations_are_named(tmp_path: Path, row: bytes, said: str) -> None:
    path = tmp_path / "x.jsonl"
    with pytest.raises(DataError) as caught:
        read(path, line({"id": 1, "scores": [1]}) + row + b"\n")
    assert str(caught.value).startswith(f"{path}:2: ")
    assert said in str(caught.value)


def test_files_are_recognised_by_their_names() -> None:
    for name in ("9__annotations_m--x_p_en.jsonl", "9__annotations_m--x_p_en_.jsonl", "a__annotations_*.jsonl.gz"):
        assert named_so(f"s3://bucket/exp/generated_annotations/de/{name}") == "annotations"
    assert named_so("exp/generated_annotations") == "annotations"
    assert named_so("annotations.jsonl") == named_so("x/__annotations_/y.jsonl") == ""


# --- people -----------------------------------------------------------------------------------------------------------


def task(id: str, *results: tuple[str, str, dict[str, Any]], who: Any = 1, **more: Any) -> dict[str, Any]:
    found = [{"from_name": name, "to_name": "text", "type": type, "value": value} for name, type, value in results]
    annotation = {"result": found, "completed_by": who, **more}
    return {"data": {"text": 'a "text" [', "document_id": id}, "annotations": [annotation]}


def choices(*names: str) -> tuple[str, str, dict[str, Any]]:
    return ("q", "choices", {"choices": names})


def test_several_people_answer_in_label_studio(tmp_path: Path) -> None:
    """Choices, ratings, numbers and texts; what was skipped and regions are counted."""
    first = task("a", choices("good"), ("edu", "rating", {"rating": 4}), who={"email": "a@x"})
    second = task(
        "a",
        choices("bad"),
        ("edu", "number", {"number": 1}),
        ("note", "textarea", {"text": "so"}),
        ("topics", "choices", {"choices": ["x", "y"]}),
        ("who", "labels", {"start": 0, "end": 1, "labels": ["P"]}),
    )
    skipped = task("a", choices("bad"), was_cancelled=True)
    item = {**first, "annotations": first["annotations"] + second["annotations"] + skipped["annotations"]}
    content = json.dumps([item], indent=2).encode()
    (draft,), counts = read(tmp_path / "x.json", content, "label_studio", several=["topics"])
    assert msgspec.to_builtins(draft.extra) == {
        "q": {"label": "good", "labels": ["good", "bad"], "annotators": ["a@x", "1"]},
        "edu": {"score": 2.5, "scores": [4.0, 1.0], "annotators": ["a@x", "1"]},
        "note": {"texts": ["so"], "annotators": ["1"]},
        "topics": {"labels": ["x", "y"], "chosen": [["x", "y"]], "annotators": ["1"]},
    }
    counted = {"answers": 6, "skipped annotations": 1, "left out: labels": 1}
    assert counts == counted | {"items without an answer": 0}


def test_records_of_argilla_are_read(tmp_path: Path) -> None:
    one = {
        "id": "a", "fields": {"text": "x"},
        "responses": {"q": [{"value": "good", "user_id": "u"}, {"value": "bad", "user_id": "v"}], "r": [{"value": 3}]},
    }  # fmt: skip
    other = {
        "id": "b", "fields": {"text": "x"},
        "responses": {
            "q": [{"value": "bad", "user_id": "u"}, {"value": "good", "user_id": "v", "status": "discarded"}],
            "r": [{"value": 1, "status": "submitted"}],
        },
    }  # fmt: skip
    for content in (json.dumps([one, other]).encode(), line(one) + line(other)):
        drafts, counts = read(tmp_path / "x.json", content, "argilla")
        found = [msgspec.to_builtins(draft.extra) for draft in drafts]
        assert [draft.id for draft in drafts] == ["a", "b"]
        assert found[0]["q"] == {"label": "good", "labels": ["good", "bad"], "annotators": ["u", "v"]}
        assert (found[1]["q"]["labels"], found[1]["r"]["score"]) == (["bad"], 1.0)
        assert counts["answers that are discarded"] == 1


@pytest.mark.parametrize(
    ("content", "form", "said"),
    [
        (b'[{"id": 1, "text": "x", "quality": "good"}]', "label_studio", ":1: expected a task with `annotations`"),
        (json.dumps([task("a"), 3]).encode(), "label_studio", ":2: expected an object, got 3"),
        (json.dumps([{"data": {}, "annotations": []}]).encode(), "label_studio", ":1: expected 'data.document_id' or"),
        (json.dumps([task("a")]).encode()[:-1], "label_studio", ":1: expected `]`"),
        (json.dumps([task("a")]).encode() + b"x", "label_studio", ":1: expected nothing after the list"),
        (b"[{},,{}]", "label_studio", ":1: expected a task"),
        (b"[1,]", "label_studio", ":1: expected an object"),
        (b'[{"data": 1,]', "label_studio", "expected"),
        (json.dumps([task("a", choices("x", "y"))]).encode(), "label_studio", "`several: [q]`"),
        (
            json.dumps([task("a", ("q", "rating", {"rating": 1})), task("b", choices("x"))]).encode(),
            "label_studio",
            ":2: q: expected scores, as before, got labels",
        ),
        (b'{"id": "a", "fields": {}}', "argilla", ":1: expected a record with `responses`"),
        (b'{"external_id": "a", "responses": []}', "argilla", ":1: expected `responses` by question, as Argilla 2 has"),
        (b'{"id": "a", "responses": {"q": "x"}}', "argilla", "expected an item as Argilla exports it"),
    ],
)
def test_exports_that_are_none_are_named(tmp_path: Path, content: bytes, form: str, said: str) -> None:
    with pytest.raises(DataError) as caught:
        read(tmp_path / "x.json", content, form)
    assert str(caught.value).startswith(str(tmp_path / "x.json"))
    assert said in str(caught.value)


_SCALARS = st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.text(max_size=5)
_JSON = st.recursive(
    _SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=5), inner), max_leaves=5
)


@settings(max_examples=50)
@given(st.lists(_JSON, max_size=4), st.sampled_from([None, 1]), st.booleans(), st.integers(1, 40))
def test_items_of_a_list_are_those_that_json_reads(
    tmp_path_factory: Any, values: list[Any], indent: int | None, ascii: bool, block: int
) -> None:
    """Wherever blocks of the file end."""
    path = tmp_path_factory.mktemp("lists") / "x.json"
    path.write_bytes(json.dumps(values, indent=indent, ensure_ascii=ascii).encode("utf-8", "surrogatepass"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reader, "_BLOCK", block)
        assert [item for item, _ in reader.items(Input(str(path), None, LIMIT, None))] == values


# Annotation files beside the programs that they are of: ml_filter, Label Studio, Argilla.
#
# Their environment is made by hand with ``tests/oracles/peers/ml-filter.txt`` and ``labelling.txt``, and named by
# ``ANNOTATION_PEERS``; without it nothing here is tested.

PEERS = os.environ.get("ANNOTATION_PEERS", "")
SCRIPTS = ROOT / "tests/oracles/peers"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not PEERS, reason="ANNOTATION_PEERS names no environment with ml_filter, label-studio-sdk, argilla"
    ),
]


def ask(script: str, *arguments: object) -> Any:
    line = [f"{PEERS}/bin/python", str(SCRIPTS / script), *map(str, arguments)]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture
def corpus(tmp_path: Path, run: Run) -> Path:
    """A dataset with annotations of a model, and scores that a tagger gives."""
    ids = raw_files(tmp_path)
    rows = [annotation(id, [i % 6, None, 9, (i + 1) % 6, i % 6]) for i, id in enumerate(ids)]
    write_lines(tmp_path / "exp/generated_annotations/x__annotations_org--model-7B_edu_en_.jsonl", rows)
    path = config(tmp_path, "scores-0: {from: exp/generated_annotations, labels: [0, 1, 2, 3, 4, 5]}")
    with path.open("a") as out:
        out.write("tag: {size-0: length}\n")
    for command in ("ingest", "align", "tag"):
        assert run(command, "-c", path).code == 0
    return path


def scores(folder: Path, name: str) -> dict[str, float | None]:
    return {id: value["annotation"] and value["annotation"]["score"] for id, value in attributes(folder, name).items()}


def test_ml_filter_reads_what_is_written_and_its_files_are_read(corpus: Path, tmp_path: Path, run: Run) -> None:
    """Its class gives back the same bytes, its commands compute what ours do, and its writer's file is read."""
    out, folder, raw = tmp_path / "out", tmp_path / "peer", tmp_path / "raw/2014-41/de/00000.jsonl"
    assert run("annotate", "-c", corpus, "--from", "scores-0", "-o", out).code == 0
    truth = [annotation(f"de-{i}", [i % 6]) for i in range(6)]
    for row in truth:
        row["meta_information"]["model_name"] = "gt"
    write_lines(tmp_path / "annotations_gt.jsonl", truth)
    folder.mkdir()
    told = ask("annotation_files.py", out, raw, tmp_path / "annotations_gt.jsonl", folder)
    assert told["same"]
    assert told["ids"] == [f"{language}-{i}" for language in ("de", "fr") for i in range(6)]
    for how, theirs in told["aggregated"].items():
        align = f"{how}-0: {{from: exp/generated_annotations, aggregate: {how}, labels: [0, 1, 2, 3, 4, 5]}}"
        assert run("align", "-c", config(tmp_path, align)).code == 0
        ours = scores(tmp_path, f"{how}-0")
        assert theirs == {id: ours[id] for id in theirs}
    assert told["evaluated"]
    own = Path(told["written"])
    assert own.name == "00000__annotations_org--m_edu_de_.jsonl"
    path = config(tmp_path, f"own-0: {{from: {own.relative_to(tmp_path)}, missing: null}}")
    assert run("align", "-c", path).code == 0
    assert scores(tmp_path, "own-0")["de-0"] == 1.0


def test_ml_filter_reads_scores_of_a_tagger(corpus: Path, tmp_path: Path, run: Run) -> None:
    assert run("annotate", "-c", corpus, "--from", "size-0.length.chars", "-o", tmp_path / "out").code == 0
    told = ask("annotation_files.py", tmp_path / "out")
    assert told["same"]
    assert told["most common"] == [score for (score,) in told["scores"]]


def test_label_studio_and_argilla_take_what_is_written_and_what_argilla_writes_is_read(
    corpus: Path, tmp_path: Path, run: Run
) -> None:
    value = "scores-0.annotation.score"
    for form in ("label-studio", "argilla"):
        options = ["--to", form, "-o", tmp_path / f"{form}.json", "--question", "edu"]
        assert run("annotate", "-c", corpus, "--from", value, *options).code == 0
    told = ask("labelling.py", tmp_path / "label-studio.json", tmp_path / "argilla.json", tmp_path)
    assert (told["faults"], told["valid"]) == ([], True)
    assert told["ids"] == list(scores(tmp_path, "scores-0"))
    assert [each["edu"]["value"] for each in told["suggestions"]] == list(scores(tmp_path, "scores-0").values())
    assert run("align", "-c", config(tmp_path, "people-0: {format: argilla, from: answered.json}")).code == 0
    found = attributes(tmp_path, "people-0")["de-0"]
    assert (found["edu"]["score"], found["edu"]["scores"]) == (3.5, [3.0, 4.0])
    assert found["quality"]["labels"] == ["good", "bad"]
