"""Maps of scores: nearest to labels, or of the same rank; fitted once, kept, and used for what comes later."""

import json
import random
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from tests.whole_corpus.making import Made, make, write_shards
from toolkit.errors import ToolkitError
from toolkit.whole_corpus.kinds.map import fit_isotonic
from toolkit.whole_corpus.records import Model

Row = dict[str, Any]
Array = np.ndarray[Any, np.dtype[Any]]

ISOTONIC = {
    "kind": "map",
    "method": "isotonic",
    "score": "document.metadata['s']",
    "labels": "document.metadata['l']",
    "within": "document.source",
}


# --- isotonic regression ----------------------------------------------------------------------------------------------

PAIRS = st.lists(st.tuples(st.integers(0, 8), st.integers(0, 4)), min_size=1, max_size=30)


@given(PAIRS)
def test_isotonic_is_the_greatest_of_least_means(pairs: list[tuple[int, int]]) -> None:
    """By the formula of the regression, which needs no pooling: the max over starts of the min over ends of means."""
    scores = sorted({score for score, _ in pairs})
    labels = [[label for score, label in pairs if score == each] for each in scores]

    def mean(first: int, last: int) -> float:
        found = [label for each in labels[first : last + 1] for label in each]
        return sum(found) / len(found)

    expected = [max(min(mean(a, b) for b in range(i, len(scores))) for a in range(i + 1)) for i in range(len(scores))]
    x, y = fit_isotonic(*np.array(pairs, dtype=float).T)
    assert np.interp(scores, x, y) == pytest.approx(expected)
    assert all(a <= b for a, b in pairwise(y.tolist()))


def test_isotonic_is_that_of_scikit_learn() -> None:
    """Numbers of `IsotonicRegression(out_of_bounds="clip")` of scikit-learn 1.9.1."""
    scores = [0.1, 0.1, 0.2, 0.3, 0.35, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95]
    x, y = fit_isotonic(np.array(scores), np.array([0, 1, 0, 2, 1, 1, 3, 2, 2, 4, 3, 4], dtype=float))
    assert x.tolist() == [0.1, 0.2, 0.3, 0.4, 0.5, 0.7, 0.8, 0.9, 0.95]
    assert y.tolist() == pytest.approx([1 / 3, 1 / 3, 4 / 3, 4 / 3, 7 / 3, 7 / 3, 3.5, 3.5, 4.0])
    asked = [0.0, 0.15, 0.25, 0.33, 0.45, 0.55, 0.75, 0.85, 0.99, 2.0]
    expected = [1 / 3, 1 / 3, 5 / 6, 4 / 3, 1.8333333333333335, 7 / 3, 2.916666666666667, 3.5, 4.0, 4.0]
    assert np.interp(asked, x, y).tolist() == pytest.approx(expected)


# --- sets -------------------------------------------------------------------------------------------------------------


def corpus(count: int, seed: int = 0, shift: float = 0.0) -> list[Row]:
    """Documents of two sources, whose scores are labels and noise, those of `b` half as large; half have labels."""
    drawn = random.Random(seed)
    rows = []
    for i in range(count):
        source, label = drawn.choice("ab"), drawn.randrange(5)
        score = (label + drawn.random() + shift) / (10 if source == "b" else 5)
        given_ = label if drawn.random() < 0.5 else None
        rows.append({"id": f"{seed}-{i}", "source": source, "text": "t", "metadata": {"s": score, "l": given_}})
    return rows


def mapped(
    root: Path, shards: dict[str, list[Row]], *, refit: bool = False, overwrite: bool = False, **options: Any
) -> Made:
    dataset = write_shards(root, shards)
    return make(dataset, {"cal-0": ISOTONIC | options}, name="calibrate", refit=refit, overwrite=overwrite)


def values(made: Made, shard: str = "a.jsonl.gz") -> list[float | None]:
    return [value["score"] for value in made.values[shard]]


def fitted_in(root: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((root / ".toolkit/dedup/cal-0/map.json").read_text())
    return found


def test_a_map_fitted_on_labels_makes_groups_alike(tmp_path: Path) -> None:
    rows = corpus(400)
    made = mapped(tmp_path, {"a.jsonl.gz": rows})
    for source in "ab":
        mine = [row["metadata"] for row in rows if row["source"] == source and row["metadata"]["l"] is not None]
        x, y = fit_isotonic(np.array([each["s"] for each in mine]), np.array([float(each["l"]) for each in mine]))
        of = [i for i, row in enumerate(rows) if row["source"] == source]
        found = [values(made)[i] for i in of]
        assert found == np.interp([rows[i]["metadata"]["s"] for i in of], x, y).tolist()
        group = fitted_in(tmp_path)["groups"][source]
        assert (group["x"], group["y"], group["documents"]) == (x.tolist(), y.tolist(), len(mine))
        assert group["errors"][1] < 0.2 < group["errors"][0]
    curve = made.resolutions["cal-0"].tables["curve"]
    assert sum(each["documents"] for each in curve) == sum(row["metadata"]["l"] is not None for row in rows)
    assert all(abs(each["label"] - each["value"]) < 0.4 for each in curve)


def test_new_shards_use_the_map_that_was_fitted(tmp_path: Path) -> None:
    first = mapped(tmp_path, {"a.jsonl.gz": corpus(200)})
    before = fitted_in(tmp_path)
    both = {"a.jsonl.gz": corpus(200), "b.jsonl.gz": corpus(100, seed=1, shift=9)}
    made = mapped(tmp_path, both)
    assert fitted_in(tmp_path) == before
    assert made.written == ["cal-0 b.jsonl.gz"]
    assert made.resolutions["cal-0"].notes == [
        "the map stays as fitted, on 109 documents of 1 shard; there are 2 now; `--refit` fits it again"
    ]
    assert set(values(made, "b.jsonl.gz")) == {before["groups"][source]["y"][-1] for source in "ab"}  # beyond its end
    again = mapped(tmp_path, both, refit=True)
    assert fitted_in(tmp_path)["digest"] != before["digest"]
    assert fitted_in(tmp_path)["shards"] == 2
    assert again.written == ["cal-0 a.jsonl.gz", "cal-0 b.jsonl.gz"]
    assert values(again) != values(first)


def test_other_settings_fit_anew_and_their_set_is_refused_before(tmp_path: Path) -> None:
    shards = {"a.jsonl.gz": corpus(200)}
    mapped(tmp_path, shards)
    before = fitted_in(tmp_path)
    with pytest.raises(ToolkitError, match="choose another set name"):
        mapped(tmp_path, shards, minimum=20)
    mapped(tmp_path, shards, overwrite=True, minimum=20)
    assert fitted_in(tmp_path)["settings"] != before["settings"]
    assert fitted_in(tmp_path)["groups"] == before["groups"]


@pytest.mark.parametrize("last", [False, True])
def test_a_refit_that_is_killed_leaves_no_values_of_two_maps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, last: bool
) -> None:
    """Before the values of the old map are forgotten, and after that."""
    mapped(tmp_path, {"a.jsonl.gz": corpus(200)})
    both = {"a.jsonl.gz": corpus(200), "b.jsonl.gz": corpus(100, seed=1, shift=9)}
    mapped(tmp_path, both)

    def killed(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(
            "toolkit.whole_corpus.records.save_resolution" if last else "toolkit.records.sets.forget_all", killed
        )
        with pytest.raises(KeyboardInterrupt):
            mapped(tmp_path, both, refit=True)
    made = mapped(tmp_path, both)
    assert fitted_in(tmp_path)["shards"] == 2
    assert made.written == ["cal-0 a.jsonl.gz", "cal-0 b.jsonl.gz"]


def test_a_map_is_used_elsewhere_by_its_file(tmp_path: Path) -> None:
    rows = corpus(200)
    made = mapped(tmp_path / "one", {"a.jsonl.gz": rows})
    path = tmp_path / "edu.json"
    path.write_bytes((tmp_path / "one/.toolkit/dedup/cal-0/map.json").read_bytes())
    new = {"a.jsonl.gz": [*rows, rows[0] | {"id": "new", "source": "c"}]}
    there: dict[str, Any] = {"method": None, "labels": None, "model": str(path)}
    found = mapped(tmp_path / "two", new, **there)
    assert values(found) == [*values(made), None]
    assert found.resolutions["cal-0"].model == Model(str(path), fitted_in(tmp_path / "one")["digest"])
    pooled = mapped(tmp_path / "three", new, small="pool", **there)
    assert values(pooled)[:-1] == values(made)
    assert values(pooled)[-1] is not None
    with pytest.raises(ToolkitError, match="expected `within` as the map was fitted with"):
        mapped(tmp_path / "four", new, within=[], **there)


def test_a_map_that_was_changed_is_refused(tmp_path: Path) -> None:
    shards = {"a.jsonl.gz": corpus(200)}
    mapped(tmp_path, shards)
    path = tmp_path / ".toolkit/dedup/cal-0/map.json"
    sound = path.read_text()
    path.write_text(sound.replace('"shards": 1', '"shards": 3'))
    with pytest.raises(ToolkitError, match="got one that was changed afterwards; restore it, or `toolkit calibrate"):
        mapped(tmp_path, shards)
    path.write_text(sound)
    assert mapped(tmp_path, shards).written == []
    path.unlink()  # then it is fitted anew, which gives the same
    assert mapped(tmp_path, shards).written == []
    assert path.read_text() == sound


def test_quantile_maps_are_ranks_and_what_has_these_ranks(tmp_path: Path) -> None:
    rows = corpus(600)
    scores = np.array([row["metadata"]["s"] for row in rows])
    is_a = np.array([row["source"] == "a" for row in rows])
    options: dict[str, Any] = {"method": "quantile", "labels": None, "knots": 200}
    ranks: Array = np.array(values(mapped(tmp_path / "uniform", {"a.jsonl.gz": rows}, to="uniform", **options)))
    for mine in (is_a, ~is_a):
        exact = (scores[mine].argsort().argsort() + 0.5) / mine.sum()
        assert np.abs(ranks[mine] - exact).max() <= 1 / 200
    same: Array = np.array(values(mapped(tmp_path / "corpus", {"a.jsonl.gz": rows}, to="corpus", **options)))
    for mine in (is_a, ~is_a):
        for share in (0.1, 0.5, 0.9):  # the same share of each group is below what that share of all is below
            assert (same[mine] <= np.quantile(scores, share)).mean() == pytest.approx(share, abs=0.02)
    made = mapped(tmp_path / "labels", {"a.jsonl.gz": rows}, method="quantile")
    like: Array = np.array(values(made))
    labels = [row["metadata"]["l"] for row in rows if row["source"] == "b" and row["metadata"]["l"] is not None]
    assert like[~is_a].mean() == pytest.approx(np.mean(labels), abs=0.15)


def test_small_groups_have_no_values_or_those_of_all_together(tmp_path: Path) -> None:
    few = {"id": "x", "source": "few", "text": "t", "metadata": {"s": 0.5, "l": 2}}
    level = [few | {"id": f"l{i}", "source": "level", "metadata": {"s": i, "l": -i}} for i in range(10)]
    flat = [few | {"id": f"f{i}", "source": "flat", "metadata": {"s": 1, "l": i % 2}} for i in range(10)]
    shards = {"a.jsonl.gz": [*corpus(100), few, *level, *flat]}
    made = mapped(tmp_path / "none", shards)
    assert values(made)[100:] == [None] + [-4.5] * 10 + [0.5] * 10
    assert made.resolutions["cal-0"].notes == [
        "warning: the score does not vary, so its map has one value: flat",
        "warning: labels do not rise with the score, so its map has one value: level",
        "groups too small for a map of their own, which have no values: few 1",
    ]
    assert values(mapped(tmp_path / "pool", shards, small="pool"))[100] is not None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": None}, "expected `method: isotonic`, `method: quantile`, or `model: FILE`; got none"),
        ({"labels": None}, "expected `labels` with `method: isotonic`"),
        ({"to": "corpus"}, "expected `labels` with `method: isotonic`, and neither `to` nor `knots`"),
        ({"method": "quantile", "to": "uniform"}, "expected `to: corpus`, `to: uniform` or `labels`"),
        ({"model": "none.json"}, "expected `model` without method, labels"),
        ({"model": "none.json", "method": None, "labels": None}, "expected a model file, got nothing at 'none.json'"),
        ({"scale": {"values": ["bad", "good"]}}, "scale: expected numbers for the labels of a map, got texts"),
        ({"scale": "nonee"}, "scale: expected a mapping or none, got 'nonee'"),
        ({"model": "none.json", "method": None, "labels": None, "scale": "none"}, "expected `model` without scale"),
        ({"labels": "None"}, "expected at least 10 documents with both a score and a label (`minimum`)"),
        ({"labels": "document.id"}, "labels: expected a number, or null, got a value of type str"),
        ({"memory": 100}, "memory: expected at least 1 MB for all labels, got 100 bytes"),
    ],
)
def test_what_is_wrong_is_said(tmp_path: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ToolkitError) as raised:
        mapped(tmp_path, {"a.jsonl.gz": corpus(50)}, **options)
    assert message in str(raised.value)
