"""Batches have each text once, no more of them than they may, and are the same for the same lengths."""

from hypothesis import given
from hypothesis import strategies as st

from toolkit.text.encoders.tokens import Batches


@given(st.lists(st.integers(0, 50), max_size=80), st.integers(1, 9), st.integers(1, 120))
def test_each_text_is_in_one_batch_that_is_not_too_large(lengths: list[int], documents: int, tokens: int) -> None:
    found = Batches(documents=documents, tokens=tokens).of(lengths)
    assert sorted(i for batch in found for i in batch) == list(range(len(lengths)))
    for batch in found:
        assert len(batch) <= documents
        assert len(batch) == 1 or len(batch) * max(lengths[i] for i in batch) <= tokens
    flat = [lengths[i] for batch in found for i in batch]
    assert flat == sorted(lengths, reverse=True)


def test_batches_are_filled_and_equal_lengths_stay_in_order() -> None:
    assert Batches(documents=2, tokens=8).of([4, 4, 1, 9, 4]) == [[3], [0, 1], [4, 2]]
    assert Batches().of([]) == []
