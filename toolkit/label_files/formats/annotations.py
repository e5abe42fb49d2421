"""Annotation files of ml_filter, in all their variants: the key ``annotation`` of a set.

Source: ml_filter (Modalities, formerly EuroLingua-GPT), ``documentation/data_format.md``, "Document annotation format",
and ``data_processing/document.py``; files of 2024 with ``model`` and ``prompt`` in place of ``model_name`` and
``prompt_name``; ground truth of people, which has an id and scores alone; what ``aggregate_scores`` writes, with one
``score``, or ``"invalid"``.

    00009__annotations_meta-llama--Llama-3.1-70B-Instruct_fine_web_edu_en.jsonl
    {"document_id": …, "scores": [1, null, 2], "explanations": […], "errors": [[…], null, []], "time_stamps": […],
        "document_processing_status": […], "meta_information": {"prompt_name": …, "prompt_lang": …, "model_name": …,
        "raw_data_file_path": …, "out_tokens_per_second": …}}

Files are written under the documented name, without the underscore that ml_filter itself writes before the suffix;
``prompt_lang`` is the language of the prompt.
"""

import json
import math
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, Literal

import msgspec

from toolkit.data.schema import Type, from_annotation
from toolkit.errors import DataError, short
from toolkit.ingest.reader import Draft, Input
from toolkit.label_files.reader import Aggregate, AnnotationReader, aggregated, numbered_items
from toolkit.storage.paths import fault_of_name

KEY = "annotation"


class AnnotationOfFile(msgspec.Struct, frozen=True, kw_only=True):
    """A document's annotation in a file, sample by sample, as stored.

    Attributes:
        score: Aggregate of the valid scores; null if there is none.
        valid: scores that count: those that are there, and are among the `labels` that are given.
        scores: Scores of each sample; null where there is none.
        explanations: Explanations of each sample.
        errors: Errors of each sample, in words; a text by itself is a list of one.
        statuses: Statuses of each sample.
        time_stamps: Time stamps of each sample, in seconds since 1970.
        model_name: Name of the model.
        prompt_name: Name of the prompt.
        prompt_lang: Language of the prompt; ml_filter itself writes that of the document.
        raw_data_file_path: Path of the document's file.
        out_tokens_per_second: Speed of the model in tokens per second.
    """

    score: float | None
    valid: int
    scores: list[float | None]
    explanations: list[str]
    errors: list[list[str]]
    statuses: list[str]
    time_stamps: list[int]
    model_name: str | None
    prompt_name: str | None
    prompt_lang: str | None
    raw_data_file_path: str | None
    out_tokens_per_second: float | None


class _Meta(msgspec.Struct):
    prompt_name: str | None = None
    prompt: str | None = None
    prompt_lang: str | None = None
    model_name: str | None = None
    model: str | None = None
    raw_data_file_path: str | None = None
    out_tokens_per_second: float | None = None


class _AnnotationRow(msgspec.Struct):
    scores: list[float | None] | float | msgspec.UnsetType | None = msgspec.UNSET
    score: float | Literal["invalid"] | msgspec.UnsetType | None = msgspec.UNSET
    explanations: list[str | None] | None = None
    explanation: list[str | None] | str | None = None
    errors: list[list[str] | str | None] | None = None
    time_stamps: list[float | None] | None = None
    document_processing_status: list[str] | str | None = None
    meta_information: _Meta | None = None


class Annotations(AnnotationReader):
    """JSON Lines of ml_filter, a line a document, in any order. The id is `document_id`, or `id`.

    All that the file says of each sample is kept. `score` is the aggregate of the scores that are numbers, and among
    `labels` if that is given. Files are recognised by their names (``…__annotations_….jsonl``, or the folder
    ``generated_annotations``), with the underscore that ml_filter writes before the suffix, or without it.

    Attributes:
        aggregate: the way in which the scores of a document are combined
        labels: valid scores; others are left out, and counted
    """

    SUFFIXES = (".jsonl",)
    NAMED: ClassVar[str] = r"__annotations_[^/]*\.jsonl(\.\w+)?$|(^|/)generated_annotations/?$"

    aggregate: Aggregate = "mean"
    labels: tuple[float, ...] = ()

    def value_types(self, inputs: Sequence[Input]) -> dict[str, Type]:
        """Return the type of the one key; the first row is read, so that another file is told before work begins."""
        next(self.read(inputs[0]), None)
        return {KEY: from_annotation(AnnotationOfFile, KEY)}

    def read(self, source: Input) -> Iterator[Draft]:
        """Yield the annotations of a file, in its order; scores are counted in `source.counts`."""
        for row, number in numbered_items(source, _decoded):
            try:
                annotation = self._of_row(msgspec.convert(row, _AnnotationRow), source)
                yield self.draft(row, number, ("document_id", "id"), {KEY: annotation})
            except (msgspec.ValidationError, DataError) as error:
                message = error.message if isinstance(error, DataError) else f"expected an annotation, got: {error}"
                raise DataError(message, path=source.path, line=number) from None

    def _of_row(self, row: _AnnotationRow, source: Input) -> AnnotationOfFile:
        value = row.score if isinstance(row.scores, msgspec.UnsetType) else row.scores
        if isinstance(value, msgspec.UnsetType):
            raise DataError("expected an annotation with `scores`, got none")
        listed = value if isinstance(value, list) else [value]
        scores = [score if isinstance(score, float) and math.isfinite(score) else None for score in listed]
        present = [score for score in scores if score is not None]
        valid = [score for score in present if not self.labels or score in self.labels]
        source.counts["scores"] += len(scores)
        source.counts["without a score"] += len(scores) - len(present)
        source.counts["not among the labels"] += len(present) - len(valid)
        source.counts["documents without a valid score"] += not valid
        meta = row.meta_information or _Meta()
        written = row.explanations if row.explanations is not None else row.explanation
        return AnnotationOfFile(
            score=aggregated(valid, self.aggregate),
            valid=len(valid),
            scores=scores,
            explanations=[item or "" for item in _listed(written)],
            errors=[_listed(error) for error in row.errors or []],
            statuses=_listed(row.document_processing_status),
            time_stamps=[int(time_stamp or 0) for time_stamp in row.time_stamps or []],
            model_name=meta.model_name if meta.model_name is not None else meta.model,
            prompt_name=meta.prompt_name if meta.prompt_name is not None else meta.prompt,
            prompt_lang=meta.prompt_lang,
            raw_data_file_path=meta.raw_data_file_path,
            out_tokens_per_second=meta.out_tokens_per_second,
        )


def _listed(value: Any) -> list[Any]:
    """Return a value as a list; empty for null."""
    if value is None:
        return []
    return value if isinstance(value, list) else [value]


def _decoded(line: bytes) -> dict[str, Any]:
    """Return a row; `NaN` and `Infinity`, which Python's json writes and no other reads, are null."""
    try:
        result = msgspec.json.decode(line)
    except msgspec.DecodeError:
        if b"NaN" not in line and b"Infinity" not in line:
            raise
        result = json.loads(line, parse_constant=lambda _: None)
    if not isinstance(result, dict):
        raise DataError(f"expected an annotation, an object with `document_id` and `scores`, got {short(result)}")
    return result


# --- writing ----------------------------------------------------------------------------------------------------------


FOLDER = "generated_annotations"
"""Folder of annotation files below an experiment."""

STATUSES = ("success", "error_server", "error_no_generated_text", "error_faulty_score", "request_collected")
"""Outcomes of a sample in ml_filter."""


def path_of(stem: str, names: tuple[str, str, str]) -> str:
    """Return the path of a raw file's annotation file below an experiment.

    Args:
        stem: Place of the raw file, without suffixes: ``2014-41/de/00055``.
        names: Model, prompt and language.

    Raises:
        DataError: if the names can be no file's.
    """
    folder, slash, stem = stem.rpartition("/")
    name = "_".join([f"{stem}__annotations", *(name.replace("/", "--") for name in names)]) + ".jsonl"
    path = f"{FOLDER}/{folder}{slash}{name}"
    if fault := fault_of_name(path) or (len(name.encode()) > 255 and f"expected at most 255 bytes, got {name!r}"):
        raise DataError(f"the name of an annotation file: {fault}; give shorter names: --model-name, --prompt-name")
    return path


def samples_of(value: Any, id: str) -> dict[str, Any] | None:
    """Return the samples of a value, by field; None if it says nothing.

    Raises:
        DataError: if there are no scores in it.
    """
    results = value if isinstance(value, dict) else {"scores": value if isinstance(value, list) else [value]}
    if value is None:
        return None
    if not isinstance(results.get("scores"), list):
        results = results | {"scores": [results.get("score")]} if "score" in results else results
    scores = results.get("scores")
    if not isinstance(scores, list) or any(not isinstance(score, int | float | None) for score in scores):
        message = f"expected a number, a list of numbers, or an object with `score` or `scores`, got {short(value)}"
        raise DataError(f"{message}; name a field of it: `--from SET.KEY.field`", id=id)
    return results | {"scores": [None if score is None else float(score) for score in scores]}


def line_of(id: str, samples: dict[str, Any], names: tuple[str, str, str], raw: str) -> dict[str, Any]:
    """Return an annotation as ml_filter's class has it."""
    model, prompt, language = names
    scores = samples["scores"]
    statuses = samples.get("statuses") or []
    tokens, seconds = samples.get("completion_tokens") or 0, samples.get("seconds") or 0.0
    speed = samples.get("out_tokens_per_second") or (tokens / seconds if seconds else 0.0)
    return {
        "document_id": id,
        "scores": scores,
        "explanations": _padded(samples.get("explanations"), scores, ""),
        "errors": _padded(samples.get("errors"), scores, []),
        "time_stamps": _padded(samples.get("time_stamps"), scores, 0),
        "document_processing_status": [
            _status(score, statuses[i] if i < len(statuses) else "") for i, score in enumerate(scores)
        ],
        "meta_information": {
            "prompt_name": prompt,
            "prompt_lang": language,
            "model_name": model,
            "raw_data_file_path": raw,
            "out_tokens_per_second": speed,
        },
        "request": None,
    }


def _padded(values: list[Any] | None, scores: list[Any], blank: Any) -> list[Any]:
    """Return a list with an element for each score."""
    results = values or []
    return results + [blank] * (len(scores) - len(results))


def _status(score: float | None, status: str) -> str:
    if status in STATUSES:
        return status
    if status == "error_refused":  # which ml_filter does not tell from other faults of the server
        return "error_server"
    return "success" if score is not None else "error_faulty_score"
