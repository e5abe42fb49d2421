"""The vote of the lines against a slow rendering of what ungoliant does (reference/oscar.md, 1a, steps 7 and 8)."""

import math
from collections import Counter
from functools import partial
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from taggers.language import Language, Vote
from taggers.line_language import LineLanguage
from taggers.text_language import TextLanguage
from toolkit import Document, Prediction
from toolkit.tag.tagger import settings as recorded_settings
from toolkit.text import LinePredictions, in_form, shortest_float32

Labelled = tuple[str, str | None, float]
"""A line's text, its language if it is identified, and the probability."""


def vote(*lines: Labelled, **options: Any) -> Vote:
    tagger = Language(lines="lines-0", **options)
    document = Document("".join(text + "\n" for text, _, _ in lines))
    document.give("lines-0", [Prediction(label, prob) if label else None for _, label, prob in lines])
    return tagger.tag_batch([document])[0]


def slow_multilingual(lines: list[Labelled]) -> bool:
    """Step 7: ``StrictMultilingual::default()`` on the list of lines."""
    n = len(lines)
    counts = Counter(label for _, label, _ in lines)  # None is a key only if there is such a line
    sure = sum(1 for _, label, prob in lines if label is not None and prob >= 0.8)
    languages = [label for label in counts if label is not None]
    if n < 10 or not sure / n > 0.8 or not 2 <= len(languages) <= 5:
        return False
    t = math.floor(n / len(counts))
    return all(counts[label] >= t for label in languages) and counts[None] <= t


def slow_vote(lines: list[Labelled]) -> tuple[str | None, np.float32]:
    """Step 8: bytes and float32 sums by key, in the order of the lines; the key with most bytes."""
    sizes: dict[str | None, int] = {}
    sums: dict[str | None, np.float32] = {}
    total = 0
    for text, label, prob in lines:
        size = len(text.encode())
        total += size
        sizes[label] = sizes.get(label, 0) + size
        weight = np.float32(prob) if label is not None else np.float32(1)
        sums[label] = np.float32(sums.get(label, np.float32(0)) + np.float32(np.float32(size) * weight))
    most = max(sizes.values())
    winner = sorted((key for key in sizes if sizes[key] == most), key=lambda key: (key is None, key or ""))[0]
    return winner, np.float32(sums[winner] / np.float32(total)) if total else np.float32(0)


LABELS = st.sampled_from(["en", "fr", "de", "es", "it", "pt", None])
PROBS = st.floats(0.8, 1.0001).map(lambda prob: shortest_float32([prob])[0])
LINES: st.SearchStrategy[list[Labelled]] = st.tuples(
    st.lists(LABELS, min_size=1, max_size=6),
    st.lists(st.tuples(st.text("ab é\U0001f600", max_size=40), st.integers(0, 5), PROBS), min_size=1, max_size=40),
).map(lambda drawn: [(text, drawn[0][i % len(drawn[0])], prob) for text, i, prob in drawn[1]])


@given(LINES)
def test_the_vote_is_that_of_the_original(lines: list[Labelled]) -> None:
    found = vote(*lines)
    label, prob = slow_vote(lines)
    if slow_multilingual(lines):
        assert (found.label, found.prob, found.multilingual) == ("multi", 0.5, True)
    else:
        assert (found.label, found.multilingual) == (label, False)
        assert np.float32(found.prob) == prob, "to the last bit"


@settings(max_examples=50)
@given(LINES)
def test_shares_are_of_the_languages_most_bytes_first(lines: list[Labelled]) -> None:
    shares = vote(*lines).shares
    expected = Counter({label: 0 for _, label, _ in lines if label})
    for text, label, _ in lines:
        if label:
            expected[label] += len(text.encode())
    assert list(shares) == sorted(expected, key=lambda label: (-expected[label], label))
    assert {label: share.bytes for label, share in shares.items()} == expected
    assert {label: share.lines for label, share in shares.items()} == Counter(label for _, label, _ in lines if label)


@given(st.lists(st.tuples(st.integers(1, 2000), PROBS), min_size=1, max_size=200))
def test_probabilities_are_float32_sums_in_the_order_of_the_lines(lines: list[tuple[int, float]]) -> None:
    labelled: list[Labelled] = [("x" * size, "en", prob) for size, prob in lines]
    found = vote(*labelled).prob
    assert np.float32(found) == slow_vote(labelled)[1]
    assert repr(found) == str(np.float32(found)), "written as the shortest text of that float32"
    assert msgspec.json.decode(msgspec.json.encode(found)) == found


# --- the quirks -------------------------------------------------------------------------------------------------------


def lines(counts: dict[str | None, int], prob: float = 0.9) -> list[Labelled]:
    return [("line", label, prob) for label, count in counts.items() for _ in range(count)]


@pytest.mark.parametrize(
    ("counts", "multilingual"),
    [
        ({"en": 5, "fr": 5}, True),
        ({"en": 6, "fr": 4}, False),
        ({"en": 6, "fr": 4, None: 1}, True),
        ({"en": 2, "fr": 2, "de": 2, "es": 2, "it": 2}, True),
        ({"en": 2, "fr": 2, "de": 2, "es": 2, "it": 2, "pt": 2}, False),
        ({"en": 4, "fr": 4, None: 2}, False),
        ({"en": 9, "fr": 9, None: 4}, True),
        ({"en": 8, "fr": 8, None: 4}, False),
        ({"en": 2, "fr": 3, "de": 3, "es": 3, "it": 3, None: 2}, True),
        ({"en": 2, "fr": 3, "de": 3, "es": 3, "it": 3, None: 3}, False),
        ({"en": 4, "fr": 5}, False),
        ({"en": 10}, False),
        ({"en": 10, None: 1}, False),
        ({"en": 6, "fr": 5}, True),
        ({"en": 7, "fr": 5}, False),
    ],
    ids=str,
)
def test_a_document_is_multilingual_by_the_floor_rule(counts: dict[str | None, int], multilingual: bool) -> None:
    assert slow_multilingual(lines(counts)) is multilingual
    found = vote(*lines(counts))
    assert found.multilingual is multilingual
    assert (found.label == "multi") is multilingual
    assert vote(*lines(counts)[::-1]).multilingual is multilingual, "whatever the order"


def test_unsure_lines_are_counted_by_the_options() -> None:
    ten = lines({"en": 5, "fr": 5}, prob=0.7)
    assert not vote(*ten).multilingual
    assert vote(*ten, min_prob=0.7).multilingual
    assert not vote(*lines({"en": 4, "fr": 4})).multilingual
    assert vote(*lines({"en": 4, "fr": 4}), min_lines=8).multilingual
    assert not vote(*lines({"en": 4, "fr": 4, "de": 4}), max_languages=2).multilingual
    assert vote(*lines({"en": 4, "fr": 4, None: 2}), min_share=0.79).multilingual


def test_bytes_decide_not_lines_nor_probabilities() -> None:
    assert vote(("a", "en", 1.0), ("b", "en", 1.0), ("long", "fr", 0.8)).label == "fr"
    assert vote(("aaaa", "en", 1.0), ("ééé", "fr", 0.8)).label == "fr", "UTF-8 bytes, not characters"
    assert vote(("aaa", "en", 1.0), ("éé", "fr", 0.8)).prob == pytest.approx(4 * 0.8 / 7)


def test_the_alphabetically_first_wins_a_tie_and_a_language_wins_over_none() -> None:
    for ordered in (("b", "fr", 0.9), ("a", "en", 0.8)), (("a", "en", 0.8), ("b", "fr", 0.9)):
        assert vote(*ordered).label == "en"
    assert vote(("a", None, 0.0), ("b", "zz", 0.9)).label == "zz"
    more = vote(("aa", None, 0.0), ("b", "zz", 0.9))
    assert (more.label, more.prob, list(more.shares)) == (None, 0.6666667, ["zz"])


def test_documents_without_bytes_have_no_language_or_the_one_of_their_empty_lines() -> None:
    assert vote() == Vote(None, 0.0, False, {})
    assert (vote(("", None, 0.0)).label, vote(("", None, 0.0)).prob) == (None, 0.0)
    assert (vote(("", "en", 0.9)).label, vote(("", "en", 0.9)).prob) == ("en", 0.0)


def test_line_ends_are_not_counted() -> None:
    tagger = Language(lines="lines-0")
    predictions = [Prediction("en", 0.9), None, Prediction("fr", 1.0)]
    found = []
    for end in ("\n", "\r\n"):
        document = Document(end.join(["aa", "", "b"]))
        document.give("lines-0", predictions)
        found.append(tagger.tag(document))
    assert found[0] == found[1]
    assert found[0].shares["en"].bytes == 2


def test_a_value_too_few_or_too_many_is_an_error() -> None:
    document = Document("a\nb")
    for count in (1, 3):
        document.give("lines-0", [None] * count)
        with pytest.raises(ValueError, match=f"expected a value for each of 2 lines, got {count}"):
            Language(lines="lines-0").tag(document)


def test_labels_of_models_in_other_forms() -> None:
    """The option came later: where it has its default, sets that are there were made with the same settings."""
    text = "D'Schwyz isch es Land z'mitts in Europa, wo me Dütsch, Französisch und Italienisch redt."
    labels = {
        form: TextLanguage(labels=form).tag_batch([Document(text)])[0].label for form in ("model", "bcp47", "oscar")
    }
    assert labels == {"model": "als", "bcp47": "gsw", "oscar": "als"}
    lines = LineLanguage(labels="bcp47", min_prob=0).tag(Document(text))
    assert [line and line.label for line in lines] == ["gsw"]
    recorded = [
        recorded_settings(TextLanguage(labels=form), "text_language", "key")["options"] for form in ("model", "oscar")
    ]
    assert [options.get("labels") for options in recorded] == [None, "oscar"]


def test_lines_whose_label_names_no_language_have_none() -> None:
    lines: list[list[Prediction | None]] = [
        [Prediction("eng_Latn", 0.5), None],
        [],
        [Prediction("zxx_Zzzz", 0.9), Prediction("en", 1.0)],
    ]
    found = LinePredictions.of(lines).renamed(partial(in_form, form="bcp47"))
    assert [found.value(i) for i in range(3)] == [[Prediction("en", 0.5), None], [], [None, Prediction("en", 1.0)]]
