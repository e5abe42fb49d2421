"""Killing ``toolkit dedup`` at any moment costs nothing but time, whatever kinds of duplicates it looks for."""

import random
from pathlib import Path

import pytest

from tests.conftest import Run
from tests.pipeline.conftest import Project, document, tree, write_rows
from tests.pipeline.test_kill import kill_at_random

KILLS = {1: 40, 2: 12}
"""For each number of processes."""


def prepare(root: Path, run: Run, processes: int) -> Project:
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
        },
    }  # fmt: skip
    return Project(root, run, config)


def prepare_every_kind(root: Path, run: Run, processes: int = 1) -> Project:
    """The same with paragraphs, and lines by a Bloom filter."""
    project = prepare(root, run, processes)
    bloom = {"kind": "exact", "unit": "line", "approximate": "bloom", "false_positive_rate": 0.01, "as": "again"}
    paragraphs = {"kind": "exact", "unit": "paragraph", "keep": {"max": "document.chars"}, "as": "paragraphs"}
    project.config["dedup"] |= {"bloom-0": bloom, "paragraphs-0": paragraphs}
    return project


@pytest.mark.slow
@pytest.mark.parametrize("processes", [pytest.param(1, marks=pytest.mark.long), 2])
def test_dedup_killed_at_random_moments_ends_with_the_same_bytes(tmp_path: Path, run: Run, processes: int) -> None:
    expected = prepare_every_kind(tmp_path / "whole", run, 3 - processes)
    expected.ok("dedup")
    whole = tree(expected.attributes)
    assert len(whole) == 28
    project = prepare_every_kind(tmp_path, run, processes)
    made = (project.attributes, project.data / ".toolkit")
    kill_at_random(project, ("dedup",), made, whole, KILLS[processes], processes)
    project.ok("validate")
