"""Ranks: those of a sort in memory, or within the error; the same for any memory, runs and shards."""

import random
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from tests.marks import slow
from tests.whole_corpus.making import Made, make, write_shards
from toolkit.config.settings import ConfigNode
from toolkit.errors import ToolkitError
from toolkit.whole_corpus import corpus_config, score_runs as runs
from toolkit.whole_corpus.score_runs import RankSteps, added, stepped, steps_of, thinned

Row = dict[str, Any]

OPTIONS = {"kind": "rank", "score": "document.metadata['s']", "within": "document.source"}


def corpus(count: int, seed: int = 0) -> list[Row]:
    """Documents of three sources, with scores of which many are equal, and some are null."""
    drawn = random.Random(seed)
    return [
        {
            "id": f"{i}",
            "source": drawn.choice(["web", "web", "bücher", "c"]),
            "text": "t",
            "metadata": {"s": drawn.choice([drawn.random(), 0.5, -0.0, 0, 7, None]), "t": drawn.random()},
        }
        for i in range(count)
    ]


def ranked(rows: Sequence[Row], field: str = "s") -> list[float | None]:
    """Return the rank of each document by its definition."""
    found: list[float | None] = []
    for row in rows:
        score = row["metadata"][field]
        same = [other["metadata"][field] for other in rows if other["source"] == row["source"]]
        group = [other for other in same if other is not None]
        below, equal = sum(other < score for other in group if score is not None), group.count(score)
        found.append(None if score is None else (2 * below + equal) / (2 * len(group)))
    return found


def made_of(root: Path, rows: Sequence[Row], cuts: Sequence[int], **options: Any) -> tuple[list[float | None], Made]:
    """Return the ranks of documents that lie in shards, which end at the cuts."""
    bounds = [0, *cuts, len(rows)]
    shards = {f"{i}.jsonl.gz": rows[begin:end] for i, (begin, end) in enumerate(pairwise(bounds))}
    made = make(write_shards(root, shards), {"quality-0": OPTIONS | options}, name="calibrate")
    return [value["rank"] for name in shards for value in made.values[name]], made


@pytest.mark.parametrize(
    ("step", "size", "memory"), [(512, 1 << 19, 10**8), (3, 20, 300), *slow((2, 1 << 19, 2000), (1, 7, 1))]
)
def test_ranks_are_those_of_a_sort_in_any_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: int, size: int, memory: int
) -> None:
    monkeypatch.setattr(runs, "STEP", step)
    monkeypatch.setattr(runs, "ROWS", size)
    rows = corpus(300)
    found, made = made_of(tmp_path, rows, [100, 100, 107], memory=memory)
    assert found == ranked(rows)
    assert [row["documents"] for row in made.resolutions["quality-0"].tables["groups"]] == [
        sum(row["source"] == source and row["metadata"]["s"] is not None for row in rows)
        for source in ("bücher", "c", "web")
    ]


SCORES = st.lists(st.integers(0, 9) | st.floats(-5, 5, width=16), min_size=1, max_size=60)


@given(st.lists(SCORES, min_size=1, max_size=5), st.sampled_from([0.01, 0.05, 0.1]))
def test_ranks_from_knots_are_within_their_error(parts: list[list[float]], error: float) -> None:
    knots = []
    for part in parts:
        scores, counts = np.unique(np.array(part, dtype=float), return_counts=True)
        below = np.cumsum(counts) - counts
        kept = thinned(below, counts, error)
        found = np.zeros(len(kept), dtype=runs.KNOT)
        found["score"], found["below"], found["count"] = scores[kept], below[kept], counts[kept]
        knots.append(found)
    whole = np.array([score for part in parts for score in part], dtype=float)
    _check_within(added(knots, error), whole, error)
    _check_within(steps_of(whole, error), whole, error / 2)


def _check_within(found: RankSteps, scores: Any, error: float) -> None:
    asked = np.unique(scores)
    exact = np.array([((scores < each).sum() + (scores == each).sum() / 2) / len(scores) for each in asked])
    ranks = stepped(found.scores, found.at, found.between, asked)
    assert np.abs(ranks - exact).max() <= error + 1e-12
    assert (np.diff(ranks) >= 0).all()
    assert found.documents == len(scores)


def test_the_best_tenth_is_what_has_a_rank_from_nine_tenths_on(tmp_path: Path) -> None:
    """And documents with the same score stand in their middle together."""
    rows = [{"id": f"{i}", "source": "s", "text": "t", "metadata": {"s": i}} for i in range(200)]
    found, _ = made_of(tmp_path / "all", rows, [])
    assert [rank for rank in found if rank is not None and rank >= 0.9] == [(i + 0.5) / 200 for i in range(180, 200)]
    best_are_equal = [row | {"metadata": {"s": min(i, 170)}} for i, row in enumerate(rows)]
    tied, _ = made_of(tmp_path / "tied", best_are_equal, [])
    assert {*tied[170:]} == {(170 + 15) / 200}


@pytest.mark.parametrize("combine", ["max", "mean"])
def test_several_scores_are_ranked_one_by_one_and_combined(tmp_path: Path, combine: str) -> None:
    rows = corpus(150)
    scores = ["document.metadata['s']", "document.metadata['t']"]
    found, made = made_of(tmp_path, rows, [60], score=scores, combine=combine)
    both = [row for row in rows if row["metadata"]["s"] is not None]  # others are not ranked at all
    pairs = iter(zip(ranked(both, "s"), ranked(both, "t"), strict=True))
    for row, rank in zip(rows, found, strict=True):
        if row["metadata"]["s"] is None:
            assert rank is None
        else:
            a, b = next(pairs)
            assert a is not None
            assert b is not None
            assert rank == (max(a, b) if combine == "max" else (a + b) / 2)
    assert {row["score"] for row in made.resolutions["quality-0"].tables["groups"]} == set(scores)


def test_what_cannot_be_ranked_is_told(tmp_path: Path) -> None:
    rows = [
        {"id": f"{i}", "source": source, "text": "t", "metadata": {"s": score}}
        for i, (source, score) in enumerate(
            [("flat", 1)] * 4 + [("few", 2), ("few", 3)] + [("good", i) for i in range(5)]
        )
    ]
    found, made = made_of(tmp_path / "3", rows, [], minimum=3)
    assert found[:6] == [0.5] * 4 + [None] * 2
    assert made.resolutions["quality-0"].notes == [
        "warning: the score does not vary, so each document has the rank 0.5: flat",
        "groups of fewer than 3 documents, which have no rank: few 2",
    ]
    found, made = made_of(tmp_path / "none", [row | {"metadata": {"s": None}} for row in rows], [])
    assert found == [None] * len(rows)
    assert made.resolutions["quality-0"].counts == {"with a score": 0, "groups": 0}


def test_documents_without_a_group_are_one_and_lists_name_several(tmp_path: Path) -> None:
    rows = [
        {"id": f"{i}", "source": "ab"[i % 2], "text": "t", "metadata": {"s": i, "l": "x" if i < 6 else None}}
        for i in range(12)
    ]
    within = ["document.metadata['l']", "document.source"]
    found, made = made_of(tmp_path, rows, [5], within=within)
    assert [row["group"] for row in made.resolutions["quality-0"].tables["groups"]] == [
        "null/a", "null/b", "x/a", "x/b"
    ]  # fmt: skip
    assert found[:6] == [1 / 6, 1 / 6, 0.5, 0.5, 5 / 6, 5 / 6] == found[6:]


def test_a_rank_is_never_null_where_each_document_has_a_score(tmp_path: Path) -> None:
    dataset = write_shards(tmp_path, {"a.jsonl.gz": corpus(5)})

    def type_of(**options: Any) -> Any:
        plan = corpus_config.read_section(
            ConfigNode({"quality-0": OPTIONS | {"score": "document.chars"} | options}), dataset, {}, "calibrate"
        )
        assert [*plan.schemas["quality-0"].keys] == ["quality"]
        return plan.schemas["quality-0"].keys["quality"].type["object"]["rank"]

    assert type_of() == "float"
    for options in ({"minimum": 2}, {"when": "document.chars > 1"}, {"score": "document.metadata['s']"}):
        assert type_of(**options) == {"nullable": "float"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"score": []}, "score: expected at least one, got none"),
        ({"score": ["1", "2"]}, "expected `combine: max` or `combine: mean` with several scores"),
        ({"combine": "max"}, "combine: expected several scores"),
        ({"sketch": 0.5}, "sketch"),
        ({"score": "document.id"}, "expected a number, or null, got a value of type str"),
        ({"score": "document.metadata['u']"}, "expected a number, or null, got 'high'"),
        ({"score": "1e308 * 10 * (document.chars + 1)"}, "expected a finite number, or null, got inf"),
        ({"kind": "exact"}, "expected 'exact' in the section `dedup:`"),
        ({"kind": "rang"}, "did you mean 'rank'"),
        ({"wihtin": "document.source"}, "did you mean 'within'"),
    ],
)
def test_what_is_wrong_is_said(tmp_path: Path, options: dict[str, Any], message: str) -> None:
    rows = [row | {"metadata": row["metadata"] | {"u": "high"}} for row in corpus(5)]
    with pytest.raises(ToolkitError) as raised:
        made_of(tmp_path, rows, [], **options)
    assert message in str(raised.value)
