"""Stop words are as the package has them, in lower case."""

import msgspec
import pytest

from taggers.gopher_quality import GopherQuality
from taggers.redpajama import Redpajama
from taggers.roots import Roots
from taggers.statistics import Statistics
from taggers.word_list import WordList
from toolkit import Document, Tagger
from toolkit.text import stop_words

WORDS = {"de": {"daß", "außer", "muß"}, "el": {"της"}}


def test_case_is_not_folded() -> None:
    for language, words in WORDS.items():
        assert words <= stop_words(language)
        assert all(word == word.lower() for word in stop_words(language))


@pytest.mark.parametrize(
    ("tagger", "options", "field"),
    [
        (GopherQuality, {}, "stop_words"),
        (Roots, {}, "stop_words"),
        (Statistics, {}, "pct_stopwords"),
        (Statistics, {"variant": "eurolingua"}, "pct_stopwords"),
        (Redpajama, {}, "rps_doc_stop_word_fraction"),
    ],
)
def test_taggers_find_what_folding_would_change(tagger: type[Tagger], options: dict[str, str], field: str) -> None:
    made = msgspec.convert({"language": "de", **options}, tagger)
    assert getattr(made.tag(Document("muß\nMond")), field) > 0


def test_the_list_of_words_does_too() -> None:
    made = msgspec.convert({"lists": "stop_words", "language": "el"}, WordList)
    with_final_sigma, without = (msgspec.to_builtins(made.tag(Document(text))) for text in ("της", "ωω"))
    assert with_final_sigma != without
