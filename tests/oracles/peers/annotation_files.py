"""What ml_filter's own classes and commands make of annotation files, and a file as its writer would write it.

    PEER/bin/python annotation_files.py EXPERIMENT
    PEER/bin/python annotation_files.py EXPERIMENT RAW GROUND_TRUTH FOLDER

Written to standard output as JSON. EXPERIMENT has `generated_annotations`, of which all files are read by the classes,
and the first is aggregated and evaluated; RAW is a file of documents. FOLDER is for copies under the names that
ml_filter searches for, `annotations_….jsonl`, which are not those that it writes.
"""

import json
import shutil
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from ml_filter.analysis.aggregate_scores import aggregate_scores
from ml_filter.analysis.evaluate_predicted_annotations import evaluate_predicted_annotations
from ml_filter.data_processing.document import Annotation, DocumentProcessingStatus, MetaInformation
from ml_filter.data_processing.document_processor import DocumentProcessor
from ml_filter.data_processing.report_statistics import _load_validated_jsonl_as_dataframe


def read(experiment: Path) -> dict[str, Any]:
    """Return what ml_filter's classes read."""
    files = sorted(experiment.glob("**/*__annotations_*.jsonl"))
    lines = [line for path in files for line in path.read_text().splitlines()]
    annotations = [Annotation.model_validate_json(line) for line in lines]
    return {
        "same": [each.model_dump_json() for each in annotations] == lines,
        "ids": [each.document_id for each in annotations],
        "scores": [each.scores for each in annotations],
        "most common": [
            score for path in files for score in _load_validated_jsonl_as_dataframe(path)["score"].tolist()
        ],
    }


def computed(experiment: Path, truth: Path, folder: Path) -> dict[str, Any]:
    """Return what ml_filter's commands compute."""
    (folder / "named/de").mkdir(parents=True)
    shutil.copy(min(experiment.glob("**/*__annotations_*.jsonl")), folder / "named/de/annotations_peer.jsonl")
    labels, aggregated = [0, 1, 2, 3, 4, 5], {}
    for how in ("mean", "majority", "min", "max"):
        aggregate_scores(folder / "named", folder / how, how, labels)
        (path,) = (folder / how).iterdir()
        aggregated[how] = {row["id"]: row["score"] for row in map(json.loads, path.read_text().splitlines())}
    evaluate_predicted_annotations(folder / "named", folder / "evaluated", truth, "mean", labels, [3])
    (path,) = (folder / "evaluated").rglob("ir_*.json")
    return {"aggregated": aggregated, "evaluated": json.loads(path.read_text())}


def write(id: str, raw: Path, folder: Path) -> Path:
    """Write a file as ml_filter does, and return its path."""
    own = Annotation(
        document_id=id,
        scores=[1.0, None],
        explanations=["a", "b"],
        errors=[[], ["c"]],
        time_stamps=[1, 2],
        document_processing_status=[DocumentProcessingStatus.SUCCESS, DocumentProcessingStatus.ERROR_FAULTY_SCORE],
        meta_information=MetaInformation(
            prompt_name="edu",
            prompt_lang="de",
            model_name="org/m",
            raw_data_file_path=str(raw),
            out_tokens_per_second=1.0,
        ),
    )
    place: Any = SimpleNamespace(experiment_dir_path=folder / "own")
    path: Path = DocumentProcessor._create_out_file_path(place, own, raw.parent.parent)
    path.write_text(json.dumps(own.model_dump()) + "\n")
    return path


given = [Path(argument) for argument in sys.argv[1:]]
found = read(given[0])
if len(given) > 1:
    _, raw, truth, folder = given
    found |= computed(given[0], truth, folder)
    found["written"] = str(write(found["ids"][0], raw, folder))
print(json.dumps(found))
