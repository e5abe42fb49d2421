"""Annotation files in and out: joined by id in any order, written one for each raw file, and read back the same."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Run

LANGUAGES = ("de", "fr")


def raw_files(folder: Path, documents: int = 6) -> list[str]:
    """Write raw files, one a language, and return the ids of their documents."""
    ids = []
    for number, language in enumerate(LANGUAGES):
        path = folder / f"raw/2014-41/{language}/0000{number}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        rows = [{"id": f"{language}-{i}", "text": f"A text of number {i}. " * (i + 1)} for i in range(documents)]
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        ids += [row["id"] for row in rows]
    return ids


def annotation(id: str, scores: list[Any], **more: Any) -> dict[str, Any]:
    return {
        "document_id": id,
        "scores": scores,
        "explanations": [f"score {score}" for score in scores],
        "errors": [[] if score is not None else ["no score"] for score in scores],
        "time_stamps": [1733491228 + i for i in range(len(scores))],
        "document_processing_status": ["success" if s is not None else "error_faulty_score" for s in scores],
        "meta_information": {
            "prompt_name": "edu",
            "prompt_lang": "en",
            "model_name": "org/model-7B",
            "raw_data_file_path": "/elsewhere/00000.jsonl",
            "out_tokens_per_second": 12.5,
        },
        **more,
    }


def write_lines(path: Path, rows: list[dict[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def config(folder: Path, align: str = "scores-0: {from: exp/generated_annotations}", ingest: str = "") -> Path:
    path = folder / "c.yaml"
    path.write_text(
        f"dataset: {folder}/data\nexecutor: {{type: in_process}}\n"
        f"ingest: [{{format: jsonl, from: ['{folder}/raw/**/*.jsonl'], source: cc{ingest}}}]\n"
        f"align: {{{align.replace('from: ', f'from: {folder}/')}}}\n"
    )
    return path


def attributes(folder: Path, name: str) -> dict[str, Any]:
    files = sorted((folder / f"data/attributes/{name}").rglob("*.gz"))
    rows = [json.loads(line) for path in files for line in gzip.decompress(path.read_bytes()).splitlines()]
    return {row["id"]: row["attributes"] for row in rows}


@pytest.fixture
def annotated(tmp_path: Path, run: Run) -> Path:
    """A dataset with a set that was joined from annotation files, in another order than the documents."""
    ids = raw_files(tmp_path)
    rows = [annotation(id, [i % 6, None, 9, i % 6]) for i, id in enumerate(ids)]
    folder = tmp_path / "exp/generated_annotations/2014-41"
    write_lines(folder / "de/00000__annotations_org--model-7B_edu_en_.jsonl", rows[5::-1])
    write_lines(folder / "fr/00001__annotations_org--model-7B_edu_en.jsonl", rows[6:])
    path = config(tmp_path, "scores-0: {from: exp/generated_annotations, labels: [0, 1, 2, 3, 4, 5]}")
    assert run("ingest", "-c", path).code == 0
    made = run("align", "-c", path, "--json").succeeds()
    assert made.json["sets"]["scores-0"]["annotations"] == {
        "scores": 48, "without a score": 12, "not among the labels": 12,
    }  # fmt: skip
    return path


def written(folder: Path) -> dict[str, list[dict[str, Any]]]:
    paths = sorted(folder.rglob("*.jsonl"))
    return {
        str(path.relative_to(folder)): [json.loads(line) for line in path.read_text().splitlines()] for path in paths
    }


def test_a_set_goes_back_into_files_one_for_each_raw_file(annotated: Path, tmp_path: Path, run: Run) -> None:
    """All fields of ml_filter, under the documented names; a rerun in the same folder writes only what has changed."""
    said = run("annotate", "-c", annotated, "--from", "scores-0", "--output", tmp_path / "out", "--json").succeeds()
    assert {name: said.json[name] for name in ("files", "written", "documents", "without")} == {
        "files": 2, "written": 2, "documents": 12, "without": 0,
    }  # fmt: skip
    found = written(tmp_path / "out/generated_annotations")
    assert list(found) == [
        "2014-41/de/00000__annotations_org--model-7B_edu_en.jsonl",
        "2014-41/fr/00001__annotations_org--model-7B_edu_en.jsonl",
    ]
    for language, rows in zip(LANGUAGES, found.values(), strict=True):
        assert [row["document_id"] for row in rows] == [f"{language}-{i}" for i in range(6)]
        raw = f"{tmp_path}/raw/2014-41/{language}/0000{LANGUAGES.index(language)}.jsonl"
        assert {row["meta_information"]["raw_data_file_path"] for row in rows} == {raw}
    wanted = annotation("de-1", [1, None, 9, 1], request=None)
    wanted["meta_information"]["raw_data_file_path"] = f"{tmp_path}/raw/2014-41/de/00000.jsonl"
    assert found["2014-41/de/00000__annotations_org--model-7B_edu_en.jsonl"][1] == wanted
    again = run("annotate", "-c", annotated, "--from", "scores-0", "--output", tmp_path / "out", "--json")
    assert (again.json["files"], again.json["written"]) == (2, 0)
    (tmp_path / "out/generated_annotations/2014-41/de/00000__annotations_org--model-7B_edu_en.jsonl").unlink()
    again = run("annotate", "-c", annotated, "--from", "scores-0", "--output", tmp_path / "out", "--json")
    assert (again.json["files"], again.json["written"]) == (2, 1)
    other = ("--from", "scores-0.annotation.valid", "--output", tmp_path / "out")
    run("annotate", "-c", annotated, *other).fails(2, "expected a new folder, or one that", "got one with scores-0;")
    moved = tmp_path / "other.yaml"
    moved.write_text(annotated.read_text().replace("/data\n", "/data2\n").replace("source: cc", "source: cc2"))
    for command in ("ingest", "align"):
        assert run(command, "-c", moved).code == 0
    options = ("--from", "scores-0", "--output", tmp_path / "out")
    run("annotate", "-c", moved, *options).fails(2, f"or what was made from {tmp_path}/data2, got what was made from")
    assert written(tmp_path / "out/generated_annotations") == found
    before = attributes(tmp_path, "scores-0")
    path = config(tmp_path, "scores-1: {from: out, format: annotations, labels: [0, 1, 2, 3, 4, 5]}")
    assert run("align", "-c", path).code == 0
    for id, value in attributes(tmp_path, "scores-1").items():
        assert value["annotation"] | {"raw_data_file_path": ""} == before[id]["annotation"] | {"raw_data_file_path": ""}


def test_any_score_is_written_with_names_that_are_given(annotated: Path, tmp_path: Path, run: Run) -> None:
    """Of a tagger, of a field of a set, of documents that are chosen; not what is no score, and not into any folder."""
    with annotated.open("a") as out:
        out.write("tag: {size-0: length}\n")
    assert run("tag", "-c", annotated).code == 0
    where = ["--where", "document.chars > 50", "--model-name", "a/b"]
    run("annotate", "-c", annotated, "--from", "size-0.length.chars", "-o", tmp_path / "o", *where, "--json").succeeds()
    found = written(tmp_path / "o/generated_annotations")
    assert list(found) == [
        f"2014-41/{name}/0000{i}__annotations_a--b_size-0_und.jsonl" for i, name in enumerate(LANGUAGES)
    ]
    assert [row["document_id"] for row in found[next(iter(found))]] == ["de-2", "de-3", "de-4", "de-5"]
    first = found[next(iter(found))][0]
    assert (first["scores"], first["document_processing_status"]) == ([first["scores"][0]], ["success"])
    refusals = {
        ("--from", "scores-0.annotation.errors", "-o", "x"): "expected a number, a list of numbers, or an object",
        ("--from", "nothing-0", "-o", "x"): "expected a set",
        ("--from", "scores-0"): "expected --output, the folder of the experiment",
        ("--from", "scores-0", "-o", str(tmp_path / "exp")): "expected a new folder, or one that this command has",
        ("--from", "scores-0", "-o", "x", "--shard", "0/2"): "expected no --shard with --from or --to",
        ("--from", "document.chars", "-o", "x"): "expected --model-name NAME, got none",
        ("--output", "x"): "--output: expected it only with --from or --to",
        ("--to", "ml-filter", "-o", "x"): "expected --from SET",
    }
    for options, message in refusals.items():
        run("annotate", "-c", annotated, *options).fails(2, message)
    assert not Path("x").exists()


@pytest.mark.parametrize("ingest", [", pack: 1 MB", ", shard_size: 200 B", ", pack: 1 MB, shard_size: 200 B"])
def test_raw_files_are_told_apart_in_packs_and_cut_shards(tmp_path: Path, run: Run, ingest: str) -> None:
    ids = raw_files(tmp_path)
    write_lines(tmp_path / "people.jsonl", [{"document_id": id, "scores": [len(id)]} for id in reversed(ids)])
    path = config(tmp_path, "scores-0: {from: people.jsonl, format: annotations}", ingest)
    for command in ("ingest", "align"):
        assert run(command, "-c", path).code == 0
    run("annotate", "-c", path, "--from", "scores-0", "-o", tmp_path / "out", "--json").succeeds()
    found = written(tmp_path / "out/generated_annotations")
    assert list(found) == [
        f"2014-41/{name}/0000{i}__annotations_scores-0_scores-0_und.jsonl" for i, name in enumerate(LANGUAGES)
    ]
    assert [row["document_id"] for rows in found.values() for row in rows] == ids


@pytest.mark.slow
def test_annotations_are_labels_of_train_and_evaluate(annotated: Path, tmp_path: Path, run: Run) -> None:
    with annotated.open("a") as out:
        out.write("train: {edu-1: {labels: scores-0.annotation.score, task: regression, minimum: 2}}\n")
    run("train", "-c", annotated, "--dry-run", "--json").succeeds()
    files = f"{{files: {tmp_path}/exp/generated_annotations, value: annotation.score}}"
    for against in ("scores-0.annotation.score", files):
        said = run("evaluate", "scores-0.annotation.score", "--against", against, "-c", annotated, "--json").succeeds()
        assert said.json["looked_at"] == 12


def test_documents_go_to_people_and_come_back(annotated: Path, tmp_path: Path, run: Run) -> None:
    """As tasks of Label Studio and records of Argilla, with suggestions; the answers are a set."""
    for form in ("label-studio", "argilla"):
        out = tmp_path / f"{form}.json"
        options = ["--to", form, "-o", out, "--where", "document.chars > 50", "--question", "edu", "--json"]
        said = run("annotate", "-c", annotated, "--from", "scores-0.annotation.score", *options).succeeds()
        assert run("annotate", "-c", annotated, *options).code == 2  # there is a file
        items = json.loads(out.read_text())
        assert len(items) == said.json["documents"] == 8
        for item in items:
            if form == "label-studio":
                item["annotations"] = [{"completed_by": who, **item["predictions"][0]} for who in (1, 2)]
            else:
                item["responses"] = {"edu": [{"user_id": "u", "value": item["suggestions"]["edu"]["value"]}] * 2}
        out.write_text(json.dumps(items))
        path = config(tmp_path, f"people-0: {{format: {form.replace('-', '_')}, from: {form}.json, missing: null}}")
        assert run("align", "-c", path, "--overwrite").code == 0
        before = attributes(tmp_path, "scores-0")
        for id, value in attributes(tmp_path, "people-0").items():
            if value["edu"] is not None:
                score = before[id]["annotation"]["score"]
                assert (value["edu"]["score"], value["edu"]["scores"]) == (score, [score, score])
    bare = run("annotate", "-c", annotated, "--to", "label-studio", "-o", tmp_path / "bare.json", "--json")
    assert (bare.code, bare.json["documents"]) == (0, 12)
    assert set(json.loads((tmp_path / "bare.json").read_text())[0]) == {"data"}
    run(
        "annotate", "-c", annotated, "--to", "argilla", "-o", tmp_path / "none.json", "--where", "document.chars < 0"
    ).fails(1, "expected documents for which it is true")
    assert not (tmp_path / "none.json").exists()
