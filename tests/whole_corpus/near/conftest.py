"""A dataset of which near duplicates are found, and what they are by brute force."""

import random
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Run
from tests.pipeline.conftest import Project, document, write_rows

NO_SPACES = re.compile("[\u0e00-\u0e7f\u3040-\u309f\u4e00-\u9fff]")
TOKEN = re.compile(r"[\u0e01-\u0e30\u0e32\u0e33\u0e40-\u0e46][\u0e31\u0e34-\u0e3a\u0e47-\u0e4e]*"
                   r"|[\u3040-\u309f\u4e00-\u9fff]|[^\W\u0e00-\u0e7f\u3040-\u309f\u4e00-\u9fff]+")  # fmt: skip


def slow_shingles(text: str, ngram: int = 5, characters: int | None = None) -> frozenset[tuple[str, ...]]:
    """The shingles of a text, by a few regular expressions that do for the texts of these tests."""
    characters = characters or 2 * ngram
    tokens = TOKEN.findall(text.lower())
    weights = [ngram if NO_SPACES.match(token) else characters for token in tokens]
    found = set()
    for i in range(len(tokens)):
        weight, j = 0, i
        while j < len(tokens) and weight < ngram * characters:
            weight, j = weight + weights[j], j + 1
        if weight >= ngram * characters:
            found.add(tuple(tokens[i:j]))
    return frozenset(found)


def jaccard(a: frozenset[Any], b: frozenset[Any]) -> float:
    return len(a & b) / len(a | b) if a or b else 0.0


def vocabulary(size: int, seed: int = 1) -> list[str]:
    letters = random.Random(seed)
    return ["".join(letters.choices("abcdefghijklmnop", k=letters.randint(2, 9))) for _ in range(size)]


def edited(words: Sequence[str], edits: int, vocabulary_: Sequence[str], random_: random.Random) -> list[str]:
    """Words of which some, far from one another, are replaced."""
    found = list(words)
    for at in random_.sample(range(len(found)), edits):
        found[at] = random_.choice(vocabulary_)
    return found


class Near(Project):
    """With a set of near duplicates."""

    def write(self, texts: Iterable[str], shards: int = 3, **more: Sequence[Any]) -> None:
        """Write documents ``d0``, ``d1`` …, in order, to shards."""
        rows = [
            document(f"d{i}", text, **{key: values[i] for key, values in more.items()}) for i, text in enumerate(texts)
        ]
        for old in self.documents.rglob("*.gz"):
            old.unlink()
        size = -(-len(rows) // shards)
        for i in range(0, len(rows), size):
            write_rows(self.documents / "cc" / f"s{i // size}.jsonl.gz", rows[i : i + size])

    def near(self, **options: Any) -> list[dict[str, Any]]:
        """What `dedup` says of each document."""
        self.config["dedup"] = {"near-0": {"kind": "near", **options}}
        self.ok("dedup", "--overwrite", "--quiet")
        return self.found()

    def found(self) -> list[dict[str, Any]]:
        """What the set says of each document."""
        shards = sorted(path.name for path in (self.documents / "cc").iterdir())
        return [values["near"] for name in shards for values in self.values("near-0", f"cc/{name}")]


def kept_for(values: Sequence[dict[str, Any]]) -> list[int | None]:
    """Of each document the number of that it is a duplicate of."""
    return [int(each["duplicate_of"][1][1:]) if each["duplicate_of"] else None for each in values]


@pytest.fixture
def near(tmp_path: Path, run: Run) -> Near:
    """An empty dataset."""
    return Near(tmp_path, run, {"dataset": str(tmp_path / "data"), "processes": 1})
