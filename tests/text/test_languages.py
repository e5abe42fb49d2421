"""Labels of languages, by the table and by paths."""

import msgspec
import pytest
import regex
from hypothesis import given, settings, strategies as st

from taggers.gopher_quality import GopherQuality
from taggers.redpajama import Redpajama
from taggers.roots import Roots
from taggers.statistics import Statistics
from taggers.word_list import WordList
from toolkit import Document, Tagger
from toolkit.text import TERMINALS, characters_in, spacy_sentence_ends, spacy_sentences, stop_words
from toolkit.text.languages.labels import (
    LID_176,
    WELL_FORMED,
    code_of,
    in_form,
    is_known,
    label_of_path,
    tag_of,
    tags_of,
)
from toolkit.text.languages.tables import glotlid_label, language, named_rows, thresholds
from toolkit.text.line_table import LineTable
from toolkit.text.listed_phrases import occurrences
from toolkit.text.words import Words


def test_the_labels_of_lid_176_are_tags() -> None:
    assert len(LID_176) == 176
    tags = {label: tag_of(label) for label in LID_176}
    assert {label: tag for label, tag in tags.items() if tag != label} == {"als": "gsw", "eml": "x-eml"}


@pytest.mark.parametrize(
    ("label", "tag"),
    [
        ("Als", "gsw"),
        ("EN", "en"),
        ("bh", "bh"),
        ("bih", "bh"),
        ("sh", "sh"),
        ("iw", "he"),
        ("deu_Latn", "de"),
        ("deu_latn", "de"),
        ("deu_Cyrl", "de-Cyrl"),
        ("srp_Cyrl", "sr-Cyrl"),
        ("zho_Hans", "zh-Hans"),
        ("cmn_Hani", "cmn-Hani"),
        ("hbs_Latn", "sh-Latn"),
        ("als_Latn", "als-Latn"),  # here it is Tosk Albanian
        ("nob_Latn", "nb"),
        ("pt_br", "pt-BR"),
        ("zh-hant-tw", "zh-Hant-TW"),
        ("sl-rozaj", "sl-rozaj"),
        ("x-eml", "x-eml"),
        ("multi", None),
        ("und_Latn", None),
        ("zxx_Zzzz", None),
        ("xx", None),
        ("documents", None),
        ("", None),
        ("a b", None),
    ],
)
def test_a_label_is_a_tag_in_its_usual_case(label: str, tag: str | None) -> None:
    assert tag_of(label) == tag
    if tag is not None:
        assert WELL_FORMED.fullmatch(tag)
        assert tag_of(tag) == tag


def test_tags_are_given_once_and_codes_without_script() -> None:
    assert tags_of(["als", "gsw", "multi", "deu_Latn", "de", "srp_Cyrl"]) == ["gsw", "de", "sr-Cyrl"]
    assert [code_of(tag) for tag in ("sr-Cyrl", "gsw", "x-eml")] == ["sr", "gsw", None]


def test_known_are_labels_of_models_and_what_releases_made_of_them() -> None:
    for label in ("en", "En", "multi", "Multi", "gsw", "x-eml", "als", "deu_Latn", "eng-Latn"):
        assert is_known(label)
    for label in ("xx", "documents", "en_part_1", "", "english"):
        assert not is_known(label)


@pytest.mark.parametrize(
    ("path", "label"),
    [
        ("de/de.jsonl.gz", "de"),
        ("de/de_part_12.jsonl.gz", "de"),
        ("de_meta/de_meta_part_1.jsonl.gz", "de"),
        ("de_meta/de_meta.jsonl.gz", "de"),
        ("22.01/de_meta/de_meta_134.jsonl.zst", "de"),
        ("de_meta.jsonl", "de"),
        ("x-eml_meta/x-eml_meta_part_1.jsonl.zst", "x-eml"),
        ("multi_meta/multi_meta_part_2.jsonl.gz", "multi"),
        ("en_part_1/en_part_1.jsonl.gz", "en_part_1"),
        ("en_part_1/en_part_1_part_2.jsonl.gz", "en_part_1"),
        ("en/en_part_1.jsonl.gz", "en"),
        ("en_part_1.txt.gz", "en"),
        ("a.b/a.b_part_2.parquet", "a.b"),
        ("deu_Latn/000_00000.parquet", "deu_Latn"),
        ("data/de.parquet", "de"),
        ("data/train-00000.parquet", None),
        ("sample.jsonl", None),
        ("_meta/_meta.jsonl", "_meta"),
    ],
)
def test_the_label_of_a_path_has_no_number_and_no_meta(path: str, label: str | None) -> None:
    assert label_of_path(path) == label


@pytest.mark.parametrize(
    ("label", "tag", "oscar"),
    [
        ("eng_Latn", "en", "en"),
        ("arb_Arab", "arb-Arab", "ar"),
        ("cmn_Hani", "cmn-Hani", "zh"),
        ("zho_Hant", "zh-Hant", "zh"),
        ("als_Latn", "als-Latn", "sq"),
        ("gsw_Latn", "gsw", "als"),
        ("als", "gsw", "als"),
        ("eml", "x-eml", "eml"),
        ("nob_Latn", "nb", "no"),
        ("yor_Latn", "yo-Latn", "yo"),
        ("gaz_Latn", "gaz-Latn", "gaz-latn"),
        ("zxx_Zzzz", None, None),
        ("und_Latn", None, None),
    ],
)
def test_labels_in_other_forms(label: str, tag: str | None, oscar: str | None) -> None:
    """A label of lid.176 is one of OSCAR; GlotLID's ``als`` is another language."""
    assert (in_form(label, "bcp47"), in_form(label, "oscar"), in_form(label, "model")) == (tag, oscar, label)


def test_each_label_of_lid_176_is_oscars() -> None:
    assert {label: in_form(label, "oscar") for label in LID_176} == {label: label for label in LID_176}


# Names and scripts of languages.


@pytest.mark.parametrize(
    ("label", "title", "script", "tag"),
    [
        ("fi", "Finnish", "Latin", "fi"),
        ("eng_Latn", "English", "Latin", "en"),
        ("zh", "Chinese", "Han", "zh"),
        ("zho_Hans", "Chinese (Simplified Han)", "Simplified Han", "zh-Hans"),
        ("cmn_Hani", "Mandarin Chinese", "Han", "cmn-Hani"),
        ("kor_Hang", "Korean", "Hangul", "ko-Hang"),
        ("srp_Cyrl", "Serbian", "Cyrillic", "sr-Cyrl"),
        ("sr-Latn", "Serbian (Latin)", "Latin", "sr-Latn"),
        ("arb_Latn", "Standard Arabic (Latin)", "Latin", "arb-Latn"),
        ("pt_br", "Portuguese (BR)", "Latin", "pt-BR"),
        ("zh-Hans-CN", "Chinese (Simplified Han, CN)", "Simplified Han", "zh-Hans-CN"),
        ("als", "Alemannic", "Latin", "gsw"),  # lid.176's
        ("als_Latn", "Tosk Albanian", "Latin", "als-Latn"),
        ("eml", "Emilian-Romagnol", "Latin", "x-eml"),
        ("diq", "Dimli", "Latin", "diq"),
        ("multi", "Multiple languages", "", None),
        ("und_Latn", "und_Latn", "", None),
        ("no label", "no label", "", None),
        ("x-ours", "x-ours", "", "x-ours"),
        ("", "", "", None),
    ],
)
def test_a_label_written_out(label: str, title: str, script: str, tag: str | None) -> None:
    found = language(label)
    assert (found.label, found.title, found.script, found.tag) == (label, title, script, tag)


def test_each_label_of_the_models_has_a_name_and_its_own_script() -> None:
    """Of lid.176 and of GlotLID, as FineWeb-2 has it; where a label of GlotLID names a script, it is that one."""
    of_glotlid = {label for label in thresholds("fineweb-2-baedee4") if "_" in label}
    assert len(of_glotlid) > 1000
    codes = {code: name for code, name, _ in named_rows("scripts-cldr-47.tsv")}
    for label in LID_176 | of_glotlid:
        found = language(label)
        assert found.name not in ("", label), label
        assert codes[found.script_code] == found.script, label
        if "_" in label and found.tag and label[4:] in found.tag:
            assert found.script_code == label[4:]


def test_usual_scripts_agree_with_the_other_table_of_languages() -> None:
    """CLDR's likely scripts and the scripts of the Wikipedias that lid.176 was trained on."""
    said = {label: (language(label).script_code, glotlid_label(label)[4:]) for label in LID_176}
    assert {label: pair for label, pair in said.items() if pair[0] != pair[1]} == {"ko": ("Kore", "Hang")}


def test_what_runs_right_to_left() -> None:
    found = {label for label in LID_176 if language(label).rtl}
    assert found == {*"ar arz azb ckb dv fa he lrc mzn pnb ps sd ug ur yi".split()}  # noqa: SIM905
    assert language("kas_Deva").rtl is False
    assert language("kas_Arab").rtl is True


# Stop words are as the package has them, in lower case.

WORDS = {"de": {"daß", "außer", "muß"}, "el": {"της"}}


def test_case_is_not_folded() -> None:
    for name, words in WORDS.items():
        assert words <= stop_words(name)
        assert all(word == word.lower() for word in stop_words(name))


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


# Marks that end a sentence, and sentences as spaCy's sentencizer has them.


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


# Occurrences of lists of words and phrases, beside a slow plain count.

LISTED_PHRASES_WORDS = st.lists(st.sampled_from(["a", "B", "été", "日"]), max_size=12).map(" ".join)


def plain(text: str, known: frozenset[str]) -> int:
    words = text.casefold().split()
    phrases = {tuple(entry.casefold().split()) for entry in known} - {()}
    return sum(words[i : i + len(phrase)] == list(phrase) for phrase in phrases for i in range(len(words)))


@settings(deadline=None)  # the first text waits for the compiler
@given(
    st.lists(st.tuples(LISTED_PHRASES_WORDS, st.none() | st.frozensets(LISTED_PHRASES_WORDS, max_size=4)), max_size=5)
)
def test_occurrences(cases: list[tuple[str, frozenset[str] | None]]) -> None:
    texts, lists = [text for text, _ in cases], [known for _, known in cases]
    found = occurrences(Words.of(LineTable.of(texts)), lists)
    assert found.tolist() == [plain(text, known) if known else 0 for text, known in cases]


def test_entries_are_whole_words_in_any_case() -> None:
    table = LineTable.of(["Holy, COW! unholy cow\nholy"])
    for words in (Words.of(table), Words.of(table, "segments")):
        assert occurrences(words, [frozenset({"holy cow", "holy", "!", ""})]).tolist() == [3]
