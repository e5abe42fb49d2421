"""EuroLingua's counts: nothing is counted of nothing; the rest is with the tagger `statistics`."""

import pytest

from taggers._eurolingua import eurolingua_statistics


def test_of_an_empty_text_all_is_0_but_its_one_line() -> None:
    found = eurolingua_statistics("", None, None)
    nothing = dict.fromkeys(("pct_stopwords", "bad_word_rate"))
    one = {
        "num_lines",
        "num_short_lines",
        "has_short_header",
        "has_short_footer",
        "pct_short_lines",
        "short_line_ratio",
    }
    assert {name: value for name, value in found.items() if value} == dict.fromkeys(one, 1)
    assert {name for name, value in found.items() if value is None} == set(nothing)


@pytest.mark.parametrize(("text", "rate"), [("Darn it", 500.0), ("darned", 0.0), ("darn", 1000.0), ("darn.", 500.0)])
def test_bad_words_are_by_pieces_the_empty_one_too(text: str, rate: float) -> None:
    assert eurolingua_statistics(text, None, frozenset({"darn"}))["bad_word_rate"] == rate


def test_the_rate_of_bad_words_is_not_rounded() -> None:
    rate = eurolingua_statistics("darn it or not it is so too far", None, frozenset({"darn"}))["bad_word_rate"]
    assert rate == 1 / 9 * 1000 != 1000 * 1 / 9


def test_without_a_list_of_its_own_a_language_has_no_bad_words() -> None:
    assert eurolingua_statistics("darn", None, frozenset())["bad_word_rate"] == 0.0
