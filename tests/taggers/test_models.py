"""The vote of the lines against a slow rendering of what ungoliant does (reference/oscar.md, 1a, steps 7 and 8)."""

import math
import shutil
import sys
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from taggers.agreement import Agreement
from taggers.fasttext_label import FasttextLabel
from taggers.fasttext_spans import FasttextSpans, _lines, _sentences
from taggers.language import Language, Vote
from taggers.line_language import LineLanguage
from taggers.perplexity import Perplexity, _normal
from taggers.text_language import TextLanguage
from tests.pipeline.conftest import Project, project, small
from toolkit import ConfigError, Document, MissingExtra, Prediction
from toolkit.config.settings import convert, parse
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


# The vote of several sets, against a few lines of plain Python; and in a configuration.

__all__ = ["project", "small"]

AGREEMENT_LABELS = st.sampled_from(["en", "de", "fr", None])


@given(st.lists(AGREEMENT_LABELS, min_size=2, max_size=6), st.integers(1, 3), st.booleans())
def test_the_vote(labels: list[str | None], least: int, first: bool) -> None:
    names = [f"s-{i}.k.label" for i in range(len(labels))]
    document = Document("text")
    for name, label in zip(names, labels, strict=True):
        document.give(name, label)
    found = Agreement(of=names, min_votes=least, tie="first" if first else "none").tag(document)
    there = [label for label in labels if label is not None]
    votes = max((there.count(label) for label in there), default=0)
    winners = [label for i, label in enumerate(there) if there.count(label) == votes and label not in there[:i]]
    wins = votes >= least and (len(winners) == 1 or (first and winners))
    assert (found.label, found.votes, found.voters) == (winners[0] if wins else None, votes, len(there))
    assert found.agreement == (votes / len(there) if there else 0)


def test_sets_vote_in_a_configuration(small: Project) -> None:
    """A set that is not there, and one that votes twice, are refused before anything is written."""
    small.config["tag"] = {
        "one-0": {"tagger": "text_language"},
        "two-0": {"tagger": "text_language", "labels": "oscar"},
        "vote-0": {"tagger": "agreement", "of": ["one-0.text_language.label", "two-0.text_language.label"]},
    }
    small.ok("tag")
    shards = [path.relative_to(small.documents) for path in small.documents.rglob("*.gz")]
    for value in [value for shard in shards for value in small.values("vote-0", str(shard))]:
        assert value["agreement"]["votes"] == value["agreement"]["voters"] in (0, 2)
    for of, message in (
        (["one-0.text_language.label", "three-0.x.label"], "of[1]: 'three-0.x.label': expected an attribute set"),
        (["one-0.text_language.label"] * 2, "expected each set once"),
        (["one-0.text_language.label"], "of"),
        (["one-0.text_language", "two-0.text_language"], "of[0]: 'one-0.text_language': expected a value of type str"),
    ):
        small.config["tag"]["vote-1"] = {"tagger": "agreement", "of": of}
        small("tag").fails(2, message)
    assert not (small.attributes / "vote-1").exists()


# Labels of texts are what the fastText library predicts for the line that a peer would give it.

TEXTS = ["", "\n \t", "buy now\ncheap", "the river\nis LONG", "now\u2028long", "buy\x85long\r\nriver\n", "\0cheap"]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    import fasttext

    folder = tmp_path_factory.mktemp("model")
    lines = ["__label__low buy now cheap", "__label__high the river is long", "__label__so so"] * 50
    (folder / "lines.txt").write_text("\n".join(lines) + "\n")
    made = fasttext.train_supervised(str(folder / "lines.txt"), thread=12, verbose=0, epoch=20, dim=8, minCount=1)
    made.save_model(str(folder / "model.bin"))
    return str(folder / "model.bin")


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ({}, lambda text: text.replace("\n", " ")),
        ({"line_ends": "all_spaces"}, lambda text: " ".join(text.splitlines())),
        ({"line_ends": "deleted"}, lambda text: text.replace("\n", "")),
        ({"lower": True}, lambda text: text.lower().replace("\n", " ")),
        ({"k": 2}, lambda text: text.replace("\n", " ")),
        ({"min_prob": 0.4}, lambda text: text.replace("\n", " ")),
    ],
)
def test_labels_are_those_of_the_library(model: str, options: dict[str, Any], line: Callable[[str], str]) -> None:
    import fasttext

    library = fasttext.load_model(model)
    found = FasttextLabel(model=model, **options).tag_batch([Document(text) for text in TEXTS])
    for text, value in zip(TEXTS, found, strict=True):
        read = line(text).replace("\0", "")
        k, threshold = options.get("k", -1), options.get("min_prob", 0.0)
        wanted = library.f.predict(read + "\n", k, threshold, "strict") if read.strip() else []
        labels = {label.removeprefix("__label__"): prob for prob, label in wanted}
        assert value.scores == pytest.approx(labels, abs=1e-5)
        assert (value.label, value.prob) == (next(iter(value.scores.items())) if labels else (None, 0.0))
        assert list(value.scores.values()) == sorted(value.scores.values(), reverse=True)


def test_there_is_no_label_without_a_place(model: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="k"):
        convert(parse('{"model": "m", "k": 0}'), FasttextLabel, "tagger fasttext_label")
    (tmp_path / "none.bin").write_bytes(b"no model")
    with pytest.raises(ConfigError):
        FasttextLabel(model=str(tmp_path / "none.bin")).tag(Document("a"))


# Sentences against a slow rendering; labels are those of each sentence by itself.

ENDS, CLOSE = ".!?…", "\"')]’”»"
WIDE_ENDS, WIDE_CLOSE = "。！？｡", "」』）’”"


def slow(text: str) -> list[str]:
    """Sentences, character by character."""
    found, start, at = [], 0, 0
    while at < len(text):
        end = at
        if text[at] in ENDS:
            while end < len(text) and text[end] in ENDS:
                end += 1
            while end < len(text) and text[end] in CLOSE:
                end += 1
            ends = end < len(text) and text[end].isspace()
        elif text[at] in WIDE_ENDS:
            while end < len(text) and text[end] in WIDE_ENDS:
                end += 1
            while end < len(text) and text[end] in WIDE_CLOSE:
                end += 1
            ends = True
        else:
            ends = text[at] == "\n"
            end += 1
        if ends:
            found.append(text[start:end])
            start = end
        at = end
    return [sentence.strip() for sentence in (*found, text[start:]) if sentence.strip()]


@given(st.text(st.sampled_from('ab .!?…"”)。！」\n\r\u2028'), max_size=40))
def test_sentences_end_where_they_are_said_to(text: str) -> None:
    spans = list(_sentences(text))
    assert [text[start:end] for start, end in spans] == slow(text)
    lines = [text[start:end] for start, end in _lines(text)]
    assert lines == [line.strip() for line in text.split("\n") if line.strip()]


def test_labels_are_those_of_each_sentence() -> None:
    text = "The library opens. Das ist ALLES!\n\n Η βιβλιοθήκη 图书馆。真的吗? 12 "
    for unit, cut in (("sentence", _sentences), ("line", _lines)):
        for lower in (False, True):
            found = FasttextSpans(model="lid.176.ftz", unit=unit, k=3, min_prob=0.1, lower=lower).tag(Document(text))  # type: ignore[arg-type]
            alone = FasttextLabel(model="lid.176.ftz", k=3, min_prob=0.1, lower=lower)
            wanted = {span: alone.tag(Document(text[slice(*span)])).scores for span in cut(text)}
            by_span: dict[tuple[int, int], dict[str, float]] = {span: {} for span in wanted}
            for label, spans in found.items():
                assert spans == sorted(spans)
                for span in spans:
                    by_span[span.start, span.end][label] = span.score
            assert by_span == wanted
    only = FasttextSpans(model="lid.176.ftz", labels=("de", "xx")).tag(Document(text))
    assert list(only) == ["de"]


@pytest.mark.slow
@pytest.mark.parametrize("piece", [".", '."', ". ", "。", " ", "." + '"' * 1000, "!x", "…\n"])
def test_time_grows_with_the_length(piece: str) -> None:
    start = time.process_time()
    assert sum(1 for _ in _sentences(piece * (250_000 // len(piece)))) >= 0
    assert time.process_time() - start < 20


# Perplexity: a model made by hand, one for each language, and CCNet's normalisation.

TINY = str(Path(__file__).parent / "files" / "tiny.arpa")


def test_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "kenlm", None)
    with pytest.raises(MissingExtra, match=r"kenlm .*: pip install 'tagmix\[kenlm\]'"):
        Perplexity(model=str(shutil.copy(TINY, tmp_path))).tag(Document("a"))
    with pytest.raises(ConfigError, match=r"got nothing at 'none\.arpa'"):
        Perplexity(model="none.arpa").tag(Document("a"))
    assert Perplexity(model="none.arpa").tag(Document("")) is None


@pytest.mark.parametrize(
    ("text", "logs"),
    [
        ("a", [-0.1, -0.2 - 0.5]),
        ("a b\na", [-0.1, -0.2, -0.2 - 0.5, -0.2 - 0.5]),
        ("b", [-0.3 - 0.7, -0.2 - 0.5]),
        ("\u00a0été\t", [-0.3 - 2.0, -0.5]),
        (" \n\u3000", None),
    ],
)
def test_by_hand(text: str, logs: list[float] | None) -> None:
    pytest.importorskip("kenlm", reason="extra `kenlm`")
    found = Perplexity(model=TINY).tag(Document(text))
    if logs is None:
        assert found is None
    else:
        assert found == pytest.approx(10 ** (-sum(logs) / len(logs)), rel=1e-6)


def test_one_model_for_each_language(tmp_path: Path) -> None:
    pytest.importorskip("kenlm", reason="extra `kenlm`")
    shutil.copy(TINY, tmp_path / "en.arpa")
    shutil.copy(TINY, tmp_path / "fr.arpa.bin")
    expected = Perplexity(model=TINY).tag(Document("a"))
    for language, value in (("en", expected), ("fr", expected), ("de", None), (None, None)):
        assert Perplexity(model=str(tmp_path), language=language).tag(Document("a")) == value


def test_pieces_as_in_ccnet(tmp_path: Path) -> None:
    pytest.importorskip("kenlm", reason="extra `kenlm`")
    sentencepiece = pytest.importorskip("sentencepiece", reason="extra `kenlm`")
    lines = iter(["a b ab ba aab abb", "b a bb aa", "ab ab a b"] * 50)
    with (tmp_path / "en.sp.model").open("wb") as out:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=lines, model_writer=out, vocab_size=10, minloglevel=2, hard_vocab_limit=False
        )
    tagger = Perplexity(model=TINY, sentencepiece=str(tmp_path), language="en")
    found = tagger.tag(Document("Ä b\nab"))
    assert found is not None
    assert found == round(found, 1)
    assert found == tagger.tag(Document("a bab")), "lines are stuck together"
    assert tagger.tag(Document(" \n")) is None


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("  Été 2024, „Größe“\n", 'ete 0000, "große"'),
        ("a\tb\r\nc\x7f\x85d", "abcd"),
        ("（１）—…％。", "(0) - ...%."),
        ("», 12！", '", 00!'),
    ],
)
def test_normalised_as_in_ccnet(text: str, normal: str) -> None:
    assert _normal(text) == normal
