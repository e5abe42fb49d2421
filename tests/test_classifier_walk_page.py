"""The walk from labels to a corpus: every block of the page runs, and a second version adds a model and a set alone."""

import gzip
import json
import random
from pathlib import Path
from typing import Any

import pytest

from tests import pages, walk
from tests.text.encoders.classifiers import write_encoder

WORDS = {
    "en": (["river", "mountain", "lesson", "science"], ["click", "buy", "cheap", "casino"], "the of and to in that is"),
    "es": (
        ["río", "montaña", "lección", "ciencia"],
        ["clic", "compra", "barato", "casino"],
        "el de que los las por con",
    ),
    "sr": (["река", "планина", "лекција", "наука"], ["кликни", "купи", "јефтино", "казино"], "је да се на за су од"),
}

TFIDF = """
import json, toolkit
with open("tfidf.jsonl", "w") as file:
    for row in toolkit.Dataset("data/walk").joined("splits-0"):
        if row.document.source == "edu":
            file.write(json.dumps({"id": row.document.id, "tfidf": len(row.document.text) / 100}) + "\\n")
"""


def text(chance: random.Random, language: str, share: float) -> str:
    good, bad, common = WORDS[language]
    found = [chance.choice(good if chance.random() < share else bad) for _ in range(20)]
    return " ".join(word for pair in zip(found, chance.choices(common.split(), k=20), strict=True) for word in pair)


def make(folder: Path) -> None:
    """Write files of the names and fields that the page has."""
    chance = random.Random(2)
    rows: dict[str, list[dict[str, Any]]] = {}
    for name, language, count in (
        ("fineweb_edu_annotated_1000", "en", 160),
        ("dclm_majority_data", "en", 100),
        ("fineweb2_spa_Latn", "es", 100),
        ("fineweb2_srp_Cyrl", "sr", 100),
    ):
        for i in range(count):
            share = (i % 5) / 4
            row: dict[str, Any] = {"text": f"{text(chance, language, share)} {i}"}
            if "edu" in name:
                row |= {"id": str(i), "scores": {"score": i % 5}}
            elif "dclm" in name:
                row |= {"label": int(share > 0.5)}
            else:
                row |= {"id": f"{language}-{i}", "filter_reason": None if share > 0.5 else "short"}
            rows.setdefault(name, []).append(row)
    (folder / "quality").mkdir()
    for name, found in rows.items():
        lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in found)
        (folder / "quality" / f"{name}.jsonl.gz").write_bytes(gzip.compress(lines.encode()))


@pytest.mark.slow
def test_the_page_runs_from_labels_to_a_corpus_and_a_second_version(tmp_path: Path) -> None:
    make(tmp_path)
    without, instead = [walk.ENCODER], {"tfidf.py": TFIDF}
    if walk.has(*walk.PACKAGES):
        words = [word for good, bad, common in WORDS.values() for word in (*good, *bad, *common.split())]
        write_encoder(tmp_path / "encoder", head=False, words=words)
        (larger,) = (block.text for block in pages.blocks(walk.PAGE) if block.text.startswith(f"# {walk.LARGER}"))
        instead[walk.LARGER] = larger.replace("max_tokens: 128", "max_tokens: 64")
    else:
        without.append(walk.LARGER)
    printed = dict(walk.carried_out(tmp_path, instead, without))
    shown = "".join(printed.values())
    assert (shown.count("trained: linear"), shown.count("trained: fasttext")) == (4, 3)
    assert shown.count("trained: head") == shown.count("trained: encoder") == walk.has(*walk.PACKAGES)
    (judged,) = (said for commands, said in printed.items() if "$EXPECTED" in commands)
    assert judged.count("judged; numbers that predict") == 5
    assert "A to source only" in judged, "there are two sources in FineWeb-2's pages"
    (listed,) = (said for commands, said in printed.items() if "diff" in commands)
    added = {line[2:] for line in listed.splitlines() if line[:1] in "<>"}
    files = {path.rpartition("/")[0] for path in added}
    assert files == {"data/walk/models/edu-linear-2"} | {
        f"data/walk/attributes/edu-2/{source}" for source in ("edu", "dclm", "spanish", "serbian")
    }
    assert "<" not in {line[:1] for line in listed.splitlines()}
    assert (tmp_path / "data/better").exists()


def test_test_documents_are_hidden_from_all_models() -> None:
    """Each entry that the page trains takes its split from the sample, and leaves out the test split."""
    found = [block.text for block in pages.blocks(walk.PAGE) if "\ntrain:" in block.text]
    assert len(found) == 3
    for page in found:
        assert page.count("task:") == page.count("split:") == page.count("*known") + page.count('!= "test" else None')
