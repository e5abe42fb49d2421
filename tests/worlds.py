"""The files that pages name: what a reader would have before typing a page, made up and small.

`EXTRA` has for each page what makes its files in a folder with the dataset of the quickstart, and the sections that
are added to configurations of the page that say no dataset: these are fragments.
"""

import gzip
import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests import pages

QUALITY_OF_OURS = '''
import msgspec
from toolkit import Document, Tagger

class Score(msgspec.Struct):
    score: float

class Quality(Tagger):
    """A score."""

    EXAMPLES = ()

    def tag(self, document: Document) -> Score:
        return Score(float(len(document.text)))
'''
Made = Callable[[Path], None]
OWN = "data/fragment"
"""A dataset of which each fragment of a configuration gets a copy."""
TOKENIZER = "configs/sample/tokenizer.json"


def nothing(_: Path) -> None:
    """Make no file: the dataset of the quickstart is enough."""


def _ids(folder: Path) -> list[str]:
    found = sorted((folder / "data/quickstart/documents").rglob("*.gz"))
    return [json.loads(line)["id"] for path in found for line in gzip.decompress(path.read_bytes()).splitlines()]


def _text(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())


def _lines(path: Path, rows: list[dict[str, Any]]) -> None:
    _text(path, "".join(json.dumps(row) + "\n" for row in rows))


def _datasets(*names: str, whole: bool = False) -> Made:
    """Give datasets of these names the documents of the quickstart, or all that it has."""

    def made(folder: Path) -> None:
        for name in names:
            for part in ("documents", "attributes", ".toolkit")[: 3 if whole else 1]:
                shutil.copytree(folder / "data/quickstart" / part, folder / name / part)

    return made


def _wet(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(folder / "configs/sample/sample-00000.warc.wet.gz", folder / name)


def _fasttext(path: Path, *labels: str) -> None:
    """Train a tiny model of these labels."""
    import fasttext

    examples = path.with_suffix(".txt")
    words = {label: " ".join(f"{label}{n}" for n in range(5)) for label in labels}
    _text(examples, "".join(f"__label__{label} {words[label]}\n" for label in labels) * 20)
    model = fasttext.train_supervised(str(examples), dim=8, lr=0.1, minCount=1, thread=12, verbose=0)
    model.save_model(str(path))


def _attributes_of_others(folder: Path) -> None:
    pa = pytest.importorskip("pyarrow", exc_type=ImportError)
    pq = pytest.importorskip("pyarrow.parquet", exc_type=ImportError)
    _datasets("data/web")(folder)
    rows = [{"doc_id": id, "quality": n % 10 / 10, "toxicity": 0.0} for n, id in enumerate(_ids(folder))]
    for name, found in {
        "signals/a.parquet": rows,
        "normalized/part-0.parquet": [{"id": row["doc_id"], "text": "A text."} for row in rows],
        "attributes/quality/part-0.parquet": [{"id": row["doc_id"], "score": row["quality"]} for row in rows],
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.Table.from_pylist(found), folder / name)
    name, texts = "2023-06/0000/en_head.json.gz", ["word " * n for n in (40, 60, 80)]
    signals = [{"rps_doc_word_count": [[0, len(text), len(text.split())]], "ccnet_perplexity": []} for text in texts]
    files: dict[str, list[dict[str, Any]]] = {
        f"rpv2/documents/{name}": [{"raw_content": text, "url": "http://a.example"} for text in texts],
        f"rpv2/quality_signals/{name.replace('.json', '.signals.json')}": [
            {"id": f"{name}/{i}", "id_int": i, "quality_signals": each} for i, each in enumerate(signals)
        ],
    }
    for path, lines in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        _lines(folder / path, lines)


def _calibration(folder: Path) -> None:
    _datasets("data/crawl", OWN)(folder)
    _fasttext(folder / "edu.bin", "edu", "other")
    scores = [{"id": id, "edu": {"score": n / 50}, "dclm": {"score": n % 7}} for n, id in enumerate(_ids(folder))]
    _lines(folder / "scores.jsonl", scores)


def _configuration(folder: Path) -> None:
    _datasets("data/crawl", "data/wiki", whole=True)(folder)
    _datasets("archive", OWN, "crawl")(folder)
    shutil.rmtree(folder / "data/quickstart")
    _wet(folder, "wet/a.warc.wet.gz", "mine/a.wet.gz")
    _lines(folder / "threads/x/a.jsonl", [{"id": "1", "text": "A thread."}])
    _lines(folder / "raw/x/a.jsonl.gz", [{"post_id": "1", "body": "A post.", "meta": {"date": "2024-05-17"}}])
    for name in ("books/a.txt", "notes/a.txt"):
        _text(folder / name, "A text.\n")
    _fasttext(folder / "english.bin", "good", "bad")


def _contamination(folder: Path) -> None:
    _datasets("data/crawl")(folder)
    _lines(folder / "evals/a.jsonl", [{"id": "1", "question": "Which of these " * 20, "choices": ["one", "two"]}])


def _dedup(folder: Path) -> None:
    _datasets("data/crawl", OWN)(folder)
    _text(folder / "my/quality.py", QUALITY_OF_OURS)


def _descriptions(folder: Path) -> None:
    shutil.copytree(folder / "data/quickstart/oscar", folder / "data/released")
    described = next(block.text for block in pages.blocks("docs/croissant.md") if block.language == "yaml")
    _text(folder / "quickstart.yaml", described)


def _formats(folder: Path) -> None:
    _datasets("data/crawl")(folder)
    body = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<p>A page about a tide mill.</p>"
    head = {
        "WARC-Type": "response",
        "WARC-Record-ID": "<urn:uuid:1>",
        "WARC-Date": "2024-05-17T00:00:00Z",
        "WARC-Target-URI": "https://mill.example/",
        "Content-Type": "application/http; msgtype=response",
        "Content-Length": str(len(body)),
    }
    lines = "".join(f"{name}: {value}\r\n" for name, value in head.items())
    _text(folder / "warc/a.warc.gz", f"WARC/1.0\r\n{lines}\r\n{body}\r\n\r\n")
    sure = {"label": "en", "prob": 0.9}
    metadata = {"identification": sure, "harmful_pp": 1.5, "tlsh": None, "quality_warnings": None, "categories": ["a"]}
    row = {"content": "A page.", "warc_headers": {"warc-record-id": "<urn:uuid:1>"}}
    metadata["sentence_identifications"] = [sure]
    _lines(folder / "oscar/en.jsonl", [row | {"metadata": metadata}])


def _storage(folder: Path) -> None:
    _datasets("data/crawl")(folder)
    for number in range(4):
        _wet(folder, f"wet/{number}.warc.wet.gz")
    _text(folder / "crawl.yaml", (folder / "configs/quickstart.yaml").read_text(encoding="utf-8"))


def _tokens(folder: Path) -> None:
    pytest.importorskip("tokenizers", reason="the extra tokens")
    _datasets("data/crawl", OWN)(folder)
    found = json.loads((folder / TOKENIZER).read_text(encoding="utf-8"))
    number = max(found["model"]["vocab"].values()) + 1
    end = found["added_tokens"][-1] | {
        "id": max(number, found["added_tokens"][-1]["id"] + 1),
        "content": "<|endoftext|>",
    }
    _text(folder / "models/tokenizer.json", json.dumps(found | {"added_tokens": [*found["added_tokens"], end]}))


def _training(folder: Path) -> None:
    _datasets("data/crawl")(folder)
    words = ["river", "lesson", "casino", "cheap"]
    texts = [f"{words[n % 4]} {words[n % 3]} {n}" for n in range(80)]
    rows = [{"id": str(n), "text": text, "scores": {"score": n % 5}} for n, text in enumerate(texts)]
    _lines(folder / "edu/a.jsonl.gz", rows)
    _lines(
        folder / "annotations/a.jsonl", [{"document_id": id, "scores": [n % 5]} for n, id in enumerate(_ids(folder))]
    )
    _text(folder / "labelled/a.txt", "".join(f"__label__{['good', 'bad'][n % 2]} {t}\n" for n, t in enumerate(texts)))


LANGUAGE = {"lines-0": "line_language", "language-0": {"tagger": "text_language", "as": "language"}}
QUALITY = {"quality-0": {"tagger": "random", "as": "quality"}}
OTHER = {"dataset": OWN}

EXTRA: dict[str, tuple[Made, Mapping[str, Any]]] = {
    "attributes-of-others.md": (_attributes_of_others, {}),
    "calibration.md": (
        _calibration,
        OTHER
        | {"align": {"scores-0": {"from": "scores.jsonl", "id": "id", "values": ["edu.score", "dclm.score"]}}}
        | {"tag": LANGUAGE},
    ),
    "configuration.md": (
        _configuration,
        OTHER
        | {
            "tag": LANGUAGE,
            "dedup": {"once-0": {"kind": "exact", "unit": "line", "as": "once"}},
            "duplicate_ids": "allow",  # data/crawl and data/wiki are one dataset here
        },
    ),
    "contamination.md": (_contamination, {}),
    "croissant.md": (_descriptions, {}),
    "dataset-card.md": (_descriptions, {}),
    "disclosure.md": (_descriptions, {}),
    "dedup.md": (_dedup, OTHER | {"tag": LANGUAGE | {"quality-0": "my/quality.py:Quality"}}),
    "formats.md": (_formats, OTHER | {"ingest": [{"format": "oscar", "from": ["oscar/*.jsonl"], "source": "oscar"}]}),
    "mixing-budgets.md": (
        _datasets(OWN),
        OTHER
        | {"tag": LANGUAGE | QUALITY | {"tokens-0": {"tagger": "tokens", "tokenizer": f"recipe:{TOKENIZER[8:]}"}}},
    ),
    "near-duplicates.md": (_datasets("data/crawl"), {}),
    "passages.md": (_tokens, {}),
    "sampling.md": (_datasets("data/crawl"), {}),
    "storage.md": (_storage, {}),
    "tokens.md": (_tokens, OTHER),
    "training.md": (_training, {"dataset": "data/walk"}),
}
"""Of pages: what makes the files that they name, and the sections that are added to fragments of configurations."""
