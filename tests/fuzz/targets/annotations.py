"""Files of annotations: ml_filter's, Argilla's and Label Studio's."""

import io
import json
from functools import partial

from tests.fuzz.targets._files import MOST, NAME, refuses
from toolkit.ingest.reader import Input
from toolkit.label_files.reader import ANNOTATIONS, AnnotationReader

SEEDS = [
    json.dumps({"document_id": "a", "scores": [1, 2.5, None], "explanations": ["x", "y", "z"],
                "errors": [[], None, ["e"]], "meta_information": {"prompt_name": "p", "model_name": "m"}}).encode(),
    json.dumps([{"id": 1, "data": {"id": "a"}, "annotations": [{"result": [
        {"from_name": "c", "type": "choices", "value": {"choices": ["x"]}}], "completed_by": 1}]}]).encode(),
    json.dumps({"id": "u", "metadata": {"document_id": "a"},
                "responses": {"q": [{"value": "x", "user_id": "1"}]}}).encode(),
    b"[1, [2], {\"a\": \"]\"}]",
]  # fmt: skip


def check(data: bytes) -> None:
    for form in ANNOTATIONS.names():
        reader = ANNOTATIONS.find(form)()
        source = Input(NAME, None, MOST, None, lambda: io.BytesIO(data))
        refuses(partial(_all, reader, source))
        refuses(partial(reader.own_types, [source]))


def _all(reader: AnnotationReader, source: Input) -> None:
    for _ in reader.read(source):
        pass
