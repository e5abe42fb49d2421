"""A very small corpus: two inputs, two labels, two sets of which one reads the other, and what is made of them."""

import functools
import gzip
import json
import random
import re
import tempfile
from pathlib import Path
from typing import Any

from tests.conftest import ROOT
from tests.crawls import make_crawl

INPUTS = 2


@functools.cache
def crawl() -> dict[str, bytes]:
    """A crawl with its index, of which no glob of the configuration takes a file."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        make_crawl(root, files=2, pages=8, share=0.4, parts=1, hosts=3)
        paths = (path for path in root.rglob("*") if path.is_file() and "robotstxt" not in str(path))
        return {f"in/crawl/{path.relative_to(root)}": path.read_bytes() for path in sorted(paths)}


def inputs() -> dict[str, bytes]:
    """Inputs by path, of which one line of one is bad; values of others; and an item of an evaluation."""
    found, chance = dict(crawl()), random.Random(0)
    for number in range(INPUTS):
        texts = ["de" if i % 3 == 1 else "en" for i in range(6)]
        texts = [f"{label} {''.join(chance.choices('abcdefgh  klmnop', k=180))}" for label in texts]
        texts[5] = texts[5][:90] + texts[4][90:]  # a passage that is there twice
        rows = [json.dumps({"id": f"{number}-{i}", "text": text}).encode() for i, text in enumerate(texts)]
        rows += [b'{"id": "bad"}'] if number == 1 else []
        found[f"in/{'ab'[number % 2]}/{number}.jsonl.gz"] = gzip.compress(b"".join(r + b"\n" for r in rows), mtime=0)
        values = [{"id": f"{number}-{i}", "grade": i / 2, "score": i} for i in reversed(range(6))]
        found[f"values/{number}.jsonl"] = b"".join(json.dumps(each).encode() + b"\n" for each in values)
        found["items/exam.jsonl.gz"] = gzip.compress(json.dumps({"text": texts[0]}).encode(), mtime=0)
    return found


def config(root: str, **more: Any) -> dict[str, Any]:
    """The configuration, with everything below a root."""
    own = f"{ROOT}/tests/faults/taggers.py"
    return {
        "dataset": f"{root}/data",
        "processes": 1,
        "ingest": [{"format": "jsonl", "from": f"{root}/in/**/*.jsonl.gz", "source": "s", "on_error": "skip"}],
        "tag": {"tongue-0": f"{own}:Tongue", "known-0": {"tagger": f"{own}:Known", "of": "tongue-0"}},
        "mix": {
            "attributes": ["tongue-0", "known-0"],
            "rules": [{"drop": "document.id == '0-1'", "name": "one"}, {"keep": "known", "name": "known"}],
            "output": {"format": "dolma", "by": "tongue", "path": f"{root}/out", "part_size": "2 kB"},
        },
        **more,
    }


def plain(text: str) -> str:
    """What a command prints, without what is different each time."""
    text = re.sub(r"\b\d+(\.\d+)? (ms|s|min)\b", "N s", text)
    text = re.sub(r'"(seconds|age|since)": ?[\d.e-]+', r'"\1": N', text)
    return re.sub(r"[\d.,]+ (documents|MB|kB)/s", r"N \1/s", text)
