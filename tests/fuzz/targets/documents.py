"""Documents and OSCAR's lines, which are JSON of a fixed form, with whatever attributes they carry."""

import json

from tests.fuzz.targets._files import read_input

_DOCUMENT = {
    "id": "a", "text": "x\ny", "source": "s", "added": "2024-01-01", "metadata": {"k": [1]}, "attributes": {"n": 1},
}  # fmt: skip
_OSCAR = {
    "content": "a\nb",
    "warc_headers": {"warc-record-id": "x", "content-length": "3"},
    "metadata": {
        "identification": {"label": "en", "prob": 1.0},
        "annotation": ["tiny"],
        "sentence_identifications": [None, {"label": "en", "prob": 0.5}],
    },
}
SEEDS = [json.dumps(each).encode() + b"\n" for each in (_DOCUMENT, _OSCAR)]


def check(data: bytes) -> None:
    read_input(data, "dolma")
    read_input(data, "oscar")
