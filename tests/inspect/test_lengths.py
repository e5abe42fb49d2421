"""How long documents are, and which ones are samples: the same in whatever parts they come."""

import random

import numpy as np
import pytest

from toolkit.data.documents import Document
from toolkit.inspect.stats import plots
from toolkit.inspect.stats.groups import CHARS, Samples, chosen
from toolkit.inspect.stats.lengths import Lengths, binned_lengths


def _lengths(numbers: list[int]) -> Lengths:
    found = Lengths()
    found.add(np.array(numbers, dtype=np.int64))
    return found


def test_lengths_are_added_up_in_any_parts_and_quantiles_are_right_to_a_hundredth() -> None:
    draw = random.Random(5)
    numbers = [int(10 ** draw.uniform(0, 7)) for _ in range(3000)] + [0, 255, 256, 257, 10**9]
    whole, parts = _lengths(numbers), Lengths()
    for start in (2000, 0, 1000, 3000):
        parts.merge(_lengths(numbers[start : start + 1000]))
    assert parts.summary() == whole.summary()
    assert (whole.total, whole.least, whole.greatest, whole.documents) == (sum(numbers), 0, 10**9, len(numbers))
    ranked = sorted(numbers)
    for share, place in (("0.05", 150), ("0.5", 1502), ("0.95", 2854)):
        assert whole.quantile(share) == pytest.approx(ranked[place], rel=0.011)


def test_lengths_below_256_and_bins_at_powers_of_two_are_exact() -> None:
    found = _lengths([0, 1, 1, 3, 4, 7, 8, 100, 255, 256, 511, 512])
    assert found.quantile("0.5") == 7
    edges, counts = binned_lengths(found)
    assert edges == [0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024]
    assert counts == [1, 2, 1, 2, 1, 0, 0, 1, 1, 2, 1]
    assert binned_lengths(Lengths()) == ([0, 1], [0])
    assert Lengths().summary()["quantiles"]["0.5"] == 0


def test_samples_depend_on_ids_alone_and_are_of_several_labels() -> None:
    documents = [(f'"{label}"', Document(f"text {i}" * 300, id=f"{label}-{i}")) for label in "abc" for i in range(40)]
    documents += [('"a"', Document("x", id=f"more-{i}")) for i in range(500)]

    def kept(some: list[tuple[str, Document]]) -> Samples:
        found = Samples(3)
        for label, document in some:
            found.add("file:1", label, document)
        return found

    whole = kept(documents).kept()
    assert {each.label for each in whole} == {'"a"', '"b"', '"c"'}
    parts = [kept(documents[start::7]).kept() for start in range(7)]
    random.Random(1).shuffle(parts)
    assert chosen((each for part in parts for each in part), 3) == whole
    assert all(len(each.text) == CHARS and each.chars > CHARS for each in whole if not each.id.startswith("more"))
    one = kept([pair for pair in documents if pair[0] == '"a"'])
    assert len(one.kept()) == 3  # of one label, where there are no others


@pytest.mark.parametrize("suffix", ["png", "svg"])
def test_pictures_are_the_same_each_time_and_take_any_text(suffix: str) -> None:
    pytest.importorskip("matplotlib")
    sizes = [("$x_$ \u202ea\x00 中文 <b>", 10**9), *((f"label {i}", 10**6) for i in range(30))]
    lengths = [_lengths([10, 1000, 5000]), *[Lengths()] * 30]
    first = plots.sizes_and_lengths(sizes, lengths, suffix)
    assert first == plots.sizes_and_lengths(sizes, lengths, suffix)
    if suffix == "svg":
        text = first.decode()
        assert "$x_$" in text
        assert "\u202e" not in text
        assert "<b>" not in text
        assert "7 more" in text
        assert "<dc:date>" not in text
