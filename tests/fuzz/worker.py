"""Reads mutants in a process that may crash: ``python -m tests.fuzz.worker ours|library FOLDER SEED …``.

Prints a JSON object a mutant: its seed, and what became of it. Before one is read its bytes stand in a file of the
folder, named after the process, so that they are there after a crash.
"""

import json
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import fasttext
import numpy as np

from tests.fuzz import bases
from tests.fuzz.guards import Guards
from tests.fuzz.mutants import mutant
from toolkit.errors import ConfigError
from toolkit.text.fasttext import model as fasttext_model, model_file
from toolkit.text.fasttext.arrays import SEPARATORS
from toolkit.text.line_table import PADDING, LineTable

TEXTS = [
    "alpha beta δέλτα",
    "alphas betaen 中文ом a9 9 éé </s> x",
    "unseen эпсилон __label__0 __label__zz 🙂🙂",
    "a" * 700 + " " + "é" * 300,
    " ".join(bases.WORDS),
    "The library opens at nine.",
    "x",
    "",
]
K = 3
READS = 8
"""Bytes that compiled code may read behind the last line."""

Labels = list[list[tuple[str, float]]]


def ours(path: str, guards: Guards) -> dict[str, Any]:
    """What our reader makes of a file, with a count of its work."""
    events = 0

    def count(*_: object) -> None:
        nonlocal events
        events += 1

    def work() -> int:
        return events + guards.elements

    guards.elements = 0
    sys.setprofile(count)
    try:
        contents = model_file.read(path)
        model = fasttext_model._Compiled(contents)
    except ConfigError as error:
        return {"refused": str(error).partition(": ")[2].partition(": expected")[0], "work": work()}
    finally:
        sys.setprofile(None)
    loaded = work()
    lines = LineTable.of(["\n".join(TEXTS)])
    lines = lines._replace(utf8=lines.utf8[: len(lines.utf8) - PADDING + READS])
    found = []
    for at_end in (True, False):
        guards.at_end = at_end
        labels, probs = model(lines, k=K, threshold=0.0)
        found.append((labels.tobytes(), probs.tobytes()))
    assert np.isfinite(probs).all(), "expected probabilities"
    largest = max(
        float(np.abs(model._model.word_rows).max(initial=0)), float(np.abs(model._model.output).max(initial=0))
    )
    largest = max(largest, float(np.abs(model._model.buckets.rows).max(initial=0)))
    said = _said(contents.labels, labels, probs)
    return {"said": said, "twice": found[0] == found[1], "work": loaded, "largest": largest, "loss": contents.loss}


def library(path: str) -> dict[str, Any]:
    """What the fastText library makes of a file that we accept."""
    model, k = fasttext.load_model(path), min(K, len(model_file.read(path).labels))
    lines = "\n".join(TEXTS).removesuffix("\n").split("\n")  # as a table of lines has them
    texts = [line.encode().strip(SEPARATORS).decode() for line in lines]
    results = [model.f.predict(text + "\n", k, 0.0, "strict") if text else [] for text in texts]
    return {"said": [[(label, prob) for prob, label in result] for result in results]}


def _said(names: list[str], labels: Any, probs: Any) -> Labels:
    """Return the labels of each text with their probabilities, best first."""
    rows = zip(labels.tolist(), probs.tolist(), strict=True)
    return [[(names[i], prob) for i, prob in zip(*row, strict=True) if i >= 0] for row in rows]


def main(what: str, folder: str, seeds: Iterable[int]) -> None:
    made = bases.load(Path(folder))
    guards = Guards()
    if what == "ours":
        guards.install()
    path = Path(folder, f"{os.getpid()}.mutant")
    for seed in seeds:
        kind, data = mutant(seed, made)
        path.write_bytes(data)
        print(json.dumps({"seed": seed, "path": str(path)}), flush=True)
        guards.at_end = seed % 2 == 0
        found = ours(str(path), guards) if what == "ours" else library(str(path))
        passes = data[:4] == made[0].data[:4] and data[4:8] in (b"\x0b\0\0\0", b"\x0c\0\0\0")
        print(json.dumps({"seed": seed, "kind": kind, "passes": passes, "size": len(data), **found}), flush=True)
    path.unlink(missing_ok=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], json.load(sys.stdin))
