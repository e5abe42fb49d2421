"""Distributions: exact where values are few, close to exact where they are many, the same in whatever order."""

import itertools
import random

import msgspec
import numpy as np
import pytest

from toolkit.aggregate import distributions
from toolkit.aggregate.distributions import (
    EXACT,
    QUANTILES,
    Distribution,
    Distributions,
    Leaf,
    leaves,
    summary,
    together,
)
from toolkit.aggregate.histogram import ACCURACY
from toolkit.data import schema
from toolkit.data.schema import FLOAT, INT, SPAN, SPANS, STR, Type, list_of, nullable
from toolkit.errors import DataError

NUMBER = Leaf("x", "number", lambda value: (value,))
TEXT = Leaf("t", "text", lambda value: (value,))


def test_leaves_of_types() -> None:
    prediction = Type("object", fields=(("label", STR), ("prob", nullable(FLOAT))))
    type_ = Type("object", fields=(("lines", list_of(nullable(prediction))), ("spans", SPANS), ("m", Type("map", INT))))
    value = msgspec.json.decode(
        b'{"lines": [{"label": "en", "prob": null}, null], "spans": [[0, 2, 0.5], [3, 4, 1]], "m": {"a": 1}}',
        type=schema.to_python(type_),
    )
    assert {leaf.path: list(leaf.get(value)) for leaf in leaves("k", type_)} == {
        "len(k.lines)": [2],
        "k.lines[].label": ["en", None],
        "k.lines[].prob": [None, None],
        "len(k.spans)": [2],
        "k.spans[].score": [0.5, 1.0],
        "len(k.m)": [1],
    }
    assert [leaf.get(None) for leaf in leaves("k", nullable(prediction))] == [(None,), (None,)]


def test_few_values_are_counted_one_by_one() -> None:
    found = Distributions()
    found.add('"en"', TEXT, ["a", "b", None, "a"])
    assert summary(found.finished()[0]) == {
        "values": 3, "nulls": 1, "null_share": 0.25, "null_lists": 0,
        "counts": [{"value": "a", "count": 2}, {"value": "b", "count": 1}],
    }  # fmt: skip


def test_a_list_that_is_null_has_no_null_elements() -> None:
    type_ = nullable(list_of(nullable(Type("object", fields=(("prob", nullable(FLOAT)),)))))
    decoder = msgspec.json.Decoder(schema.to_python(type_))
    values = [decoder.decode(text) for text in (b'[{"prob": 0.5}, {"prob": null}, null]', b"null", b"[]")]
    found = Distributions()
    for leaf in leaves("k", type_):
        found.add("null", leaf, [each for value in values for each in leaf.get(value)])
    parts = msgspec.json.decode(msgspec.json.encode(found.finished()), type=list[Distribution])
    merged = Distributions()
    merged.merge(parts)
    assert {each.attribute: (each.count, each.nulls, each.no_lists) for each in merged.finished()} == {
        "k[].prob": (1, 2, 1),
        "len(k)": (2, 1, 0),
    }


def test_one_span_counts_as_an_object() -> None:
    span = msgspec.json.decode(b"[3, 5, 0.25]", type=schema.to_python(SPAN))
    expected = {"k.start": [3], "k.end": [5], "k.score": [0.25]}
    assert {leaf.path: list(leaf.get(span)) for leaf in leaves("k", SPAN)} == expected
    assert [leaf.get(None) for leaf in leaves("k", nullable(SPAN))] == [(None,)] * 3


@pytest.mark.parametrize("many", [False, True])
def test_quantiles_are_of_the_nearest_rank(many: bool) -> None:
    found = Distributions()
    found.add("null", NUMBER, [0.33, 4.33])
    (each,) = found.finished()
    if many:
        each = msgspec.structs.replace(each, values=None)
    expected = {"0.01": 0.33, "0.5": 0.33, "0.75": 4.33, "0.95": 4.33, "0.99": 4.33}
    numbers = summary(each)["quantiles"]
    assert {share: numbers[share] for share in expected} == pytest.approx(expected, rel=ACCURACY)


@pytest.mark.parametrize("count", [1, 2, 3, 20, 100, 200])
def test_the_rank_is_not_off_by_rounding(count: int) -> None:
    found = Distributions()
    found.add("null", NUMBER, range(1, count + 1))
    ranks = {share: -(-count * round(float(share) * 100) // 100) for share in QUANTILES}
    assert summary(found.finished()[0])["quantiles"] == ranks


@pytest.mark.parametrize("count", [EXACT, 50_000])
def test_quantiles_are_as_close_as_promised(count: int) -> None:
    values = np.random.default_rng(1).lognormal(0, 3, size=count) - 2
    found = Distributions()
    for some in np.array_split(values, 7):
        found.add("null", NUMBER, [*some.tolist(), None])
    numbers = summary(found.finished()[0])
    exact = np.quantile(values, [float(share) for share in QUANTILES], method="inverted_cdf")
    limit = 0 if count <= EXACT else ACCURACY
    assert np.allclose(list(numbers["quantiles"].values()), exact, rtol=limit * 1.001, atol=0)
    assert (numbers["min"], numbers["max"], numbers["nulls"]) == (values.min(), values.max(), 7)
    assert numbers["mean"] == pytest.approx(values.mean())
    assert (numbers["counts"] is None) == (count > EXACT)


def test_merging_gives_the_same_buckets_in_any_order_and_through_a_file() -> None:
    values = [random.Random(2).gauss(0, 1e3) for _ in range(9000)] + [0.0, -0.0, 1e308, -1e-308, 2**70, 10**400]
    parts = []
    for some in (values[:10], values[10:5000], values[5000:]):
        each = Distributions()
        each.add("null", NUMBER, some)
        parts.append(msgspec.json.encode(each.finished()))
    merged = []
    for order in itertools.permutations(parts):
        whole = Distributions()
        for part in order:
            whole.merge(msgspec.json.decode(part, type=list[distributions.Distribution]))
        merged.append(together(whole.finished()).buckets)
    at_once = Distributions()
    at_once.add("null", NUMBER, values)
    assert merged == [at_once.finished()[0].buckets] * len(merged)


def test_what_one_part_has_too_many_of_is_not_counted_in_the_whole() -> None:
    whole = Distributions()
    for texts in (["a"], [str(n) for n in range(EXACT + 1)]):
        part = Distributions()
        part.add("null", TEXT, texts)
        whole.merge(part.finished())
    assert summary(whole.finished()[0])["counts"] is None


def test_too_many_distributions_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(distributions, "MOST", 1)
    found = Distributions()
    found.add("a", TEXT, [])
    with pytest.raises(DataError, match="expected at most 1 distributions"):
        found.add("b", TEXT, [])
