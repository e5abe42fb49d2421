"""Ridge and logistic regression out of core are those of dense algebra."""

from pathlib import Path

import numpy as np
import pytest

from toolkit.exchange.sealed import write_sealed
from toolkit.learn.train.kinds.linear import solver
from toolkit.learn.train.kinds.linear.solver import BUCKETS, ROWS, TIMES, Counted, Problem, solve
from toolkit.text.line_table import LineTable
from toolkit.text.linear import ngrams
from toolkit.text.words import Words

SIZE = 256


@pytest.fixture
def texts(tmp_path: Path) -> tuple[Counted, np.ndarray]:
    """Rows of two shards, and the same as a dense matrix of tf, before idf and lengths."""
    random = np.random.default_rng(5)
    words = [f"w{i}" for i in range(60)]
    orders = ngrams.Orders(1, 1, 1, 0, SIZE)
    dense = []
    for shard in ("a", "b"):
        listed = [" ".join(random.choice(words, size=random.integers(0, 30))) for _ in range(40)]
        found = ngrams.count(Words.of(LineTable.of(listed), "segments"), orders)
        write_sealed(str(tmp_path / shard / BUCKETS), found.buckets.tobytes())
        write_sealed(str(tmp_path / shard / TIMES), found.times.tobytes())
        write_sealed(str(tmp_path / shard / ROWS), np.diff(found.bounds).astype("<u4").tobytes())
        for a, b in zip(found.bounds, found.bounds[1:], strict=False):
            row = np.zeros(SIZE)
            row[found.buckets[a:b]] = ngrams.tf_table()[found.times[a:b]]
            dense.append(row)
    return Counted([str(tmp_path / "a"), str(tmp_path / "b")], SIZE), np.array(dense)


def test_products_out_of_core_are_those_of_the_matrix(
    texts: tuple[Counted, np.ndarray], monkeypatch: pytest.MonkeyPatch
) -> None:
    rows, dense = texts
    random = np.random.default_rng(1)
    vector, factors = random.normal(size=SIZE), random.normal(size=len(dense))
    monkeypatch.setattr(solver, "PIECE", 50)
    assert len([*rows.pieces()]) > 10
    assert rows.product(vector) == pytest.approx(dense @ vector)
    assert rows.sum(factors) == pytest.approx(dense.T @ factors)
    assert rows.lengths(vector) == pytest.approx(np.maximum(np.linalg.norm(dense * vector, axis=1), 1e-150))
    half = factors > 0
    assert rows.frequencies(half).tolist() == (dense[half] > 0).sum(axis=0).tolist()
    assert rows.back_and_forth(vector, lambda found, own: found * factors[own]) == pytest.approx(
        dense.T @ (factors * (dense @ vector))
    )


@pytest.mark.parametrize("logistic", [False, True])
def test_the_gradient_is_nothing_at_the_solution(texts: tuple[Counted, np.ndarray], *, logistic: bool) -> None:
    """And rows without weight are without effect: the test split is one of them."""
    rows, dense = texts
    random = np.random.default_rng(2)
    idf = 1 + random.random(SIZE)
    lengths = rows.lengths(idf)
    weights = np.where(np.arange(len(dense)) % 4 == 0, 0.0, 1 + random.random(len(dense)))
    hidden = dense @ random.normal(size=SIZE)
    target = (hidden > np.median(hidden)).astype(np.float64) if logistic else hidden
    matrix = dense * idf / lengths[:, None]
    found = solve(Problem(rows, idf, lengths, weights, target, logistic, 0.1))
    sums = matrix @ found.weights + found.intercept
    assert found.sums == pytest.approx(sums)
    error = weights * ((1 / (1 + np.exp(-sums)) if logistic else sums) - target)
    start = weights * ((weights @ target / weights.sum()) - target)
    gradient = np.append(matrix.T @ error + 0.1 * found.weights, error.sum())
    assert np.linalg.norm(gradient) < 1e-2 * np.linalg.norm(np.append(matrix.T @ start, start.sum()))
    target[weights == 0] += 5
    again = solve(Problem(rows, idf, lengths, weights, target, logistic, 0.1))
    assert again.weights.tobytes() == found.weights.tobytes()
