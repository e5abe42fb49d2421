"""Inputs with a pipeline over them, made the same wherever they are laid out: `Project`s that have not run."""

import random
from pathlib import Path
from typing import Any

from tests.conftest import Run
from tests.pipeline.conftest import Project, document, oscar_tags, write_rows
from tests.recipes import mix_of

SEEN = {"kind": "exact", "unit": "line", "normalize": "ccnet", "as": "seen_lines"}


def oscar(root: Path, run: Run) -> Project:
    """Some inputs, and a pipeline over them with two workers and small parts."""
    text = "the quick brown fox jumps over a lazy dog while der schnelle Fuchs springt und le renard saute"
    words = text.split()
    chance = random.Random(5)
    for number in range(4):
        rows = [
            {"id": f"{number}-{i}", "text": "\n".join(" ".join(chance.choices(words, k=9)) for _ in range(i % 9))}
            for i in range(250)
        ]
        write_rows(root / "in" / f"{number}.jsonl.gz", rows)
    config: dict[str, Any] = {
        "dataset": str(root / "data"),
        "processes": 2,
        "ingest": [{"format": "jsonl", "from": [f"{root}/in/*"], "source": "j", "shard_size": "40 kB"}],
        "tag": oscar_tags(min_prob=0.1),
        "mix": mix_of(
            root / "out",
            {"drop": "language.label is None", "name": "unidentified"},
            {"drop": "line_shape.lines < 2", "name": "few"},
            attributes=[*oscar_tags()],
            format="oscar",
            output={"part_size": "30 kB"},
        ),
    }
    return Project(root, run, config)


def with_copies(root: Path, run: Run) -> Project:
    """Inputs with copies and repeated lines, and a pipeline over them with two workers and many partitions."""
    chance = random.Random(6)
    words = ["the", "quick", "brown", "fox", "jumps", "over", "a", "lazy", "dog"]
    lines = [" ".join(chance.choices(words, k=4)) for _ in range(200)]
    for number in range(4):
        texts = ["\n".join(chance.choices(lines, k=i % 9)) for i in range(250)]
        write_rows(root / f"in/{number}.jsonl.gz", [{"id": f"{number}-{i}", "text": x} for i, x in enumerate(texts)])
    config: dict[str, Any] = {
        "dataset": str(root / "data"),
        "processes": 2,
        "ingest": [{"format": "jsonl", "from": [f"{root}/in/*"], "source": "j", "shard_size": "40 kB"}],
        "tag": {"shape-0": "line_shape"},
        "dedup": {
            "exact-0": {"kind": "exact", "keep": {"max": "line_shape.chars"}, "normalize": "unicode", "memory": 20_000},
            "lines-0": SEEN | {"when": "exact.duplicate_of is None", "memory": 2000},
            "near-0": {"kind": "near", "jaccard": 0.6, "memory": 200_000},
        },
        "mix": mix_of(
            root / "out",
            {"drop": "exact.duplicate_of is not None", "name": "copies"},
            {"cut": "seen_lines.spans", "name": "repeated"},
            attributes=["exact-0", "lines-0"],
            output={"part_size": "30 kB"},
        ),
    }
    return Project(root, run, config)


def of_every_kind(root: Path, run: Run, processes: int = 1) -> Project:
    """Documents with copies, repeated lines, and texts that have most in common; and an evaluation of two of them."""
    chance = random.Random(8)
    words = ["".join(chance.choices("abcdefghijk", k=5)) for _ in range(400)]
    lines = [" ".join(chance.choices(words, k=7)) for _ in range(300)]
    texts = [chance.choices(lines, k=1 + i % 12) for i in range(60)]
    for shard in range(4):
        rows = []
        for i in range(120):
            text = list(chance.choice(texts))
            if i % 3 == 0:
                text[chance.randrange(len(text))] = chance.choice(lines)
            rows.append(document(f"{shard}-{i}", "\n".join(text)))
        write_rows(root / f"data/documents/{shard}.jsonl.gz", rows)
    write_rows(root / "items/exam.jsonl", [{"text": "\n".join(text)} for text in texts[10:12]])
    config = {
        "dataset": str(root / "data"),
        "processes": processes,
        "dedup": {
            "exact-0": {"kind": "exact", "memory": 20_000},
            "lines-0": {"kind": "exact", "unit": "line", "normalize": "ccnet", "as": "lines", "memory": 4000,
                        "when": "exact.duplicate_of is None"},
            "near-0": {"kind": "near", "jaccard": 0.7, "memory": 200_000},
            "items-0": {"kind": "contamination", "against": [str(root / "items")]},
            "passages-0": {"kind": "passages", "length": 50, "memory": 100_000},
            "bloom-0": {"kind": "exact", "unit": "line", "approximate": "bloom", "false_positive_rate": 0.01,
                        "as": "again"},
            "paragraphs-0": {"kind": "exact", "unit": "paragraph", "keep": {"max": "document.chars"}, "as": "parts"},
        },
    }  # fmt: skip
    return Project(root, run, config)
