"""Linear models: their file, and what compiled code makes of texts with it."""

import numpy as np

from tests.fuzz.targets._files import file_of, refuses
from toolkit.text.linear.model import About, LinearModel, Task, packed, read

TEXTS = ["", "alpha beta", "Grüße 日本語 🙂 " * 9, "\0\n\n x"]


def _seed(task: Task, labels: list[str], characters: tuple[int, int] | None) -> bytes:
    about = About(task=task, labels=labels, words=(1, 2), characters=characters, buckets=256)
    table = np.arange(256 * (1 + about.outputs), dtype=np.float32).reshape(256, -1) % 7 / 10
    return packed(about, table, np.zeros(about.outputs))


SEEDS = [
    _seed("regression", [], None),
    _seed("classes", ["a", "b"], (2, 3)),
    _seed("ordinal", ["0", "1", "2"], None),
    _seed("multilabel", ["a"], (1, 10)),
]


def check(data: bytes) -> None:
    path, found = file_of(data), list[LinearModel]()
    if refuses(lambda: found.append(read(path))):
        return
    first, second = (found[0].predict(TEXTS) for _ in range(2))
    assert first == second
    assert len(first) == len(TEXTS)
    assert all(np.isfinite(said.score) for said in first if said.score is not None)
