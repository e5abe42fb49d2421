"""Marks that end a sentence, and sentences as spaCy's sentencizer has them."""

import pytest
import regex

from toolkit.text import TERMINALS, characters_in, spacy_sentence_ends, spacy_sentences


def test_marks_are_what_ends_a_sentence_but_for_the_newest_and_three_of_khmer() -> None:
    others = {mark for mark in TERMINALS if not regex.match(r"\p{Sentence_Terminal}", mark)}
    assert (len(TERMINALS), others) == (159, {"\u17d6", "\u17d9", "\u17da"})


def test_characters_are_those_of_ranges() -> None:
    assert "".join(characters_in("41-43 5a 1f600")) == "ABCZ\U0001f600"


@pytest.mark.parametrize(
    ("text", "sentences"),
    [("", 0), ("One", 1), ("One. Two", 2), ("One.) Two", 2), ("One... Two!", 1), ("一。二。", 1), ("One。 Two", 2)],
)
def test_sentences_begin_behind_marks(text: str, sentences: int) -> None:
    assert spacy_sentences(text, "en") == sentences == len(spacy_sentence_ends(text, "en"))


def test_white_space_belongs_to_the_sentence_after_it() -> None:
    assert spacy_sentence_ends("One.)  Two\n\nthree! \n", "en") == [5, 18, 20]
