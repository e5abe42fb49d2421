"""Words by language as datatrove splits them, and the tables that say how.

datatrove_words.json has words as datatrove 0.10.1 gave them (tests/oracles/tables/words.py).
"""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from taggers.gopher_quality import GopherQuality
from taggers.gopher_repetition import GopherRepetition
from taggers.length import Length
from taggers.repeated_ngrams import RepeatedNgrams
from taggers.roots import Roots
from toolkit import ConfigError, MissingExtra, distribution
from toolkit.text import load_fasttext
from toolkit.text.languages.dictionary_words import _LIBRARIES, dictionary_words
from toolkit.text.languages.tables import glotlid_label, stop_word_lists, thresholds, tokenizer_of
from toolkit.text.languages.words import _splitter, check_word_language, datatrove_words
from toolkit.text.line_table import LineTable
from toolkit.text.words import Words

RECORDED = json.loads((Path(__file__).parent / "datatrove_words.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("label", sorted({case["label"] for case in RECORDED}))
def test_words_are_datatroves(label: str) -> None:
    for case in RECORDED:
        if case["label"] == label:
            assert datatrove_words(case["text"], label) == case["words"]


def test_every_language_of_fineweb_2_has_a_tokenizer_thresholds_and_stop_words() -> None:
    table, words = thresholds("fineweb-2-baedee4"), stop_word_lists("fineweb-2-baedee4-stop-words")
    assert len([label for label in table if "_" in label]) == 1927
    assert table.keys() == words.keys()
    assert all(tokenizer_of(label) for label in table)
    assert {len(numbers) for numbers in table.values()} == {16}
    assert (table["deu_Latn"]["dup_line_frac"], table["deu_Latn"]["line_punct_thr"]) == (0.282, 0.143)
    assert "wurde" in words["deu_Latn"]


@pytest.mark.parametrize(
    ("lid", "label"),
    [("de", "deu_Latn"), ("als", "gsw_Latn"), ("sr", "srp_Cyrl"), ("zh", "cmn_Hani"), ("deu_Latn", "deu_Latn")],
)
def test_labels_of_lid_176_lead_to_those_of_glotlid(lid: str, label: str) -> None:
    assert glotlid_label(lid) == label
    assert thresholds("fineweb-2-baedee4")[lid] == thresholds("fineweb-2-baedee4")[label]


def test_all_labels_of_lid_176_but_english_have_thresholds() -> None:
    labels = {label.removeprefix("__label__") for label in load_fasttext("lid.176.ftz").labels}
    assert len(labels) == 176
    assert labels - thresholds("fineweb-2-baedee4").keys() == {"en"}


def test_a_language_without_a_tokenizer_has_that_of_all_languages() -> None:
    assert datatrove_words("z.B. don't", None) == datatrove_words("z.B. don't", "xyz_Abcd") == ["z.", "B.", "don't"]
    assert datatrove_words("z.B. don't", "de") == ["z.B.", "don't"]


def test_a_library_that_is_missing_is_named_with_its_extra_and_licence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "kiwipiepy", None)
    dictionary_words.cache_clear()
    with pytest.raises(MissingExtra, match=r"kiwipiepy.*LGPL-3\.0.*tagmix\[words-ko\]"):
        check_word_language("ko")
    monkeypatch.setitem(sys.modules, "stanza", None)
    with pytest.raises(MissingExtra, match=r"stanza.*Apache-2\.0.*tagmix\[words-stanza\]"):
        datatrove_words("Сәлем", "kaz_Cyrl")


def test_languages_without_blanks_are_split_by_their_dictionary(monkeypatch: pytest.MonkeyPatch) -> None:
    def pairs(text: str, language: str | None) -> list[str]:
        return [text[i : i + 2] for i in range(0, len(text), 2)]

    monkeypatch.setattr("toolkit.text.languages.words.datatrove_words", pairs)
    texts = ["កខគឃ\u200bងច! ABC d'e\n។ ឆជឈ", "it's ក ខគ", "", "กข"]
    words = Words.of(LineTable.of(texts), "dictionary", ["km", "en", None, "tha_Thai"])
    assert words.strings() == ["កខ", "គឃ", "ងច", "ABC", "d'e", "ឆជ", "ឈ", "it's", "ក", "ខ", "គ", "กข"]
    assert words.counts.tolist() == [7, 4, 0, 1]


@pytest.mark.parametrize("tagger", [GopherQuality, GopherRepetition, Length, RepeatedNgrams, Roots])
def test_dictionaries_need_a_language_and_its_library(tagger: type[Length], monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match="expected the option `language` with `dictionary`"):
        tagger(splitter="dictionary").check()
    monkeypatch.setitem(sys.modules, "khmernltk", None)
    dictionary_words.cache_clear()
    _splitter.cache_clear()
    with pytest.raises(MissingExtra, match=r"tagmix\[words-km\]"):
        tagger(splitter="dictionary", language="km").check()
    assert issubclass(MissingExtra, ConfigError)


def test_extras_of_libraries_are_those_of_the_distribution() -> None:
    for library in _LIBRARIES.values():
        assert library.package.lower() in map(str.lower, distribution.requirements_of(library.extra))


def test_an_unknown_language_is_refused_where_it_is_written() -> None:
    with pytest.raises(ConfigError, match="expected a label of lid"):
        check_word_language("german")
    check_word_language("language-0.language.label")


MODULES: dict[str, Any] = {"ja": "sudachipy", "zh": "jieba", "vi": "pyvi", "th": "pythainlp", "ko": "kiwipiepy"}
SENTENCES = {
    "ja": ("図書館は九時に開きます。", ["図書", "館", "は", "九", "時", "に", "開き", "ます", "。"]),
    "zh": ("图书馆九点开门。", ["图书馆", "九点", "开门", "。"]),
    "th": ("ห้องสมุดเปิดเก้าโมง", ["ห้องสมุด", "เปิด", "เก้า", "โมง"]),
}


@pytest.mark.parametrize("language", SENTENCES)
def test_words_by_dictionaries(language: str) -> None:
    pytest.importorskip(MODULES[language], reason=f"the extra words-{language} is not installed")
    text, words = SENTENCES[language]
    assert datatrove_words(text, language) == words
