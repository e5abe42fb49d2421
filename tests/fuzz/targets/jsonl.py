"""JSON Lines; what is read is what Python's own `json` reads."""

import gzip
import json

from tests.fuzz.targets._files import read_input
from toolkit.storage.compression import compress_zstd

_ROWS = b'{"id": "a", "text": "one"}\n{"text": "\\ud83d\\ude42 two", "source": "t", "added": null, "x": [{"y": 1}]}\n'
SEEDS = [
    _ROWS,
    gzip.compress(_ROWS, mtime=0),
    compress_zstd(_ROWS),
    b"\xef\xbb\xbf" + _ROWS.replace(b"\n", b"\r\n"),
    b'{"text": "", "metadata": {"a": 1e400, "b": 123456789012345678901234567890}, "id": 7}\n\n',
]


def check(data: bytes) -> None:
    found = read_input(data, "jsonl")
    if not found.rows or data[:2] == b"\x1f\x8b" or data[:3] == b"BZh" or data[:4] in (b"\x28\xb5\x2f\xfd", b"\xfd7zX"):
        return
    lines = data.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    lines = lines[:-1] if not lines[-1] else lines
    texts = [json.loads(line, strict=True)["text"] for line in lines if line.strip()]
    assert [row[2] for row in found.rows] == texts
