"""Annotation files beside the programs that they are of: ml_filter, Label Studio, Argilla.

Their environment is made by hand with ``tests/oracles/peers/ml-filter.txt`` and ``labelling.txt``, and named by
``ANNOTATION_PEERS``; without it nothing here is tested.
"""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT, Run
from tests.pipeline.test_annotation_files import annotation, attributes, config, raw_files, write_lines

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
