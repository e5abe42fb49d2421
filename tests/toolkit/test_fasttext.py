"""The compiled predictions say what the fastText library says: for every loss, quantised or not, and odd texts."""

import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolkit import models
from toolkit.batch import LineTable
from toolkit.documents import split_lines
from toolkit.errors import ConfigError
from toolkit.fasttext_model import FastTextModel, load_fasttext

WORDS = ["alpha", "beta", "gamma", "δέλτα", "эпсилон", "zeta", "中文", "🙂", "a", "éé", "x1", "__label__c"]
ENDS = ["", "", "s", "en", "ом", *map(str, range(60))]
PROB = 1e-5


def training(path: Path, labels: int = 7) -> Path:
    """A text that some models are trained on: the label follows from the words."""
    chance = random.Random(7)
    lines = []
    for _ in range(2000):
        words = [chance.choice(WORDS[:-1]) + chance.choice(ENDS) for _ in range(chance.randint(1, 9))]
        label = sum(map(ord, "".join(words[:2]))) % labels
        lines.append(f"__label__{label} {' '.join(words)}")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


KINDS: dict[str, dict[str, Any]] = {
    "hs": {"loss": "hs", "minn": 2, "maxn": 4, "bucket": 2000, "dim": 16},
    "hs, pruned and quantised": {"loss": "hs", "minn": 2, "maxn": 4, "bucket": 2000, "dim": 16, "quantise": 400},
    "softmax": {"loss": "softmax", "minn": 3, "maxn": 6, "bucket": 1000, "dim": 10},
    "softmax, word n-grams": {"loss": "softmax", "wordNgrams": 3, "bucket": 5000, "dim": 7},
    "softmax, quantised output": {"loss": "softmax", "minn": 1, "maxn": 2, "bucket": 500, "dim": 12, "labels": 2000},
    "ova": {"loss": "ova", "wordNgrams": 2, "minn": 2, "maxn": 3, "bucket": 999, "dim": 20},
    "ns": {"loss": "ns", "dim": 9},
    "words alone": {"loss": "hs", "dim": 33},
}


@pytest.fixture(scope="module", params=KINDS)
def pair(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[FastTextModel, Any]:
    """A model as we read it, and as the library does."""
    import fasttext

    folder = tmp_path_factory.mktemp("model")
    options = dict(KINDS[request.param])
    cutoff, labels = options.pop("quantise", None), options.pop("labels", 7)
    # the library sets a tenth of its memory in each thread; with fewer than eleven it trains on what was there
    trained = fasttext.train_supervised(
        str(training(folder / "t.txt", labels)), epoch=3, thread=12, verbose=0, **options
    )
    path = str(folder / "model.bin")
    if cutoff or labels > 256:  # the least that can be quantised
        trained.quantize(cutoff=cutoff or 0, qout=labels > 256, qnorm=True, dsub=2, verbose=0)
    trained.save_model(path)
    return FastTextModel(path), fasttext.load_model(path).f


def of_library(model: Any, texts: list[str], k: int, threshold: float) -> list[list[tuple[str, float]]]:
    """What the library says; it predicts also where there is no word, from the end of the line."""
    labels, probs = model.multilinePredict([text + "\n" for text in texts], k, threshold, "strict")
    return [
        [(label.removeprefix("__label__"), prob) for label, prob in zip(*found, strict=True)] if text.split() else []
        for text, *found in zip(texts, labels, probs, strict=True)
    ]


def agree(ours: list[Any], library: list[tuple[str, float]]) -> bool:
    """The same labels and probabilities, but for the order of labels that are as probable."""
    if len(ours) != len(library) or any(abs(a.prob - b) > PROB for a, (_, b) in zip(ours, library, strict=True)):
        return False
    probs = dict(library)
    return all(
        found.label == label or abs(probs.get(found.label, found.prob) - prob) <= PROB
        for found, (label, prob) in zip(ours, library, strict=True)
    )


ODD = [
    "",
    " ",
    "</s>",
    "alpha </s> beta",
    "__label__a",
    "__label__zz beta",
    "\t\v\f\r",
    "a" * 3000,
    "é" * 1500,
    "\x01\x7f",
    "alpha  beta\r",
]


@pytest.mark.parametrize(("k", "threshold"), [(1, 0.0), (1, 0.8), (3, 0.0), (50, 0.05)])
def test_texts_get_the_labels_of_the_library(pair: tuple[FastTextModel, Any], k: int, threshold: float) -> None:
    chance = random.Random(k)
    texts = [
        *ODD,
        *(" ".join(chance.choices([*WORDS, "unseen", "ungesehen"], k=chance.randint(1, 12))) for _ in range(500)),
    ]
    ours = pair[0].predict(texts, k=k, threshold=threshold)
    different = [
        t for t, a, b in zip(texts, ours, of_library(pair[1], texts, k, threshold), strict=True) if not agree(a, b)
    ]
    assert different == []


@settings(max_examples=150, deadline=None)
@given(st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n\0")), max_size=5))
def test_any_text_gets_the_label_of_the_library(texts: list[str]) -> None:
    import fasttext

    library = fasttext.load_model(models.resolve("lid.176.ftz")).f
    ours = load_fasttext("lid.176.ftz").predict(texts, k=2)
    words = [text if text.strip(" \t\n\r\v\f") else "" for text in texts]
    labels, probs = library.multilinePredict([text + "\n" for text in texts], 2, 0.0, "strict")
    for text, found, *wanted in zip(words, ours, labels, probs, strict=True):
        expected = [(a.removeprefix("__label__"), b) for a, b in zip(*wanted, strict=True)] if text else []
        assert agree(found, expected), text


@settings(max_examples=100, deadline=None)
@given(st.lists(st.text(st.sampled_from("ab é\n\r\u2028\0"), max_size=30), max_size=5), st.integers(0, 4))
def test_lines_are_those_of_documents(texts: list[str], min_chars: int) -> None:
    model = load_fasttext("lid.176.ftz")
    found = list(model.predict_lines(LineTable.of(texts), min_chars=min_chars))
    lines = [[line if len(line) >= min_chars else "" for line in split_lines(text)] for text in texts]
    assert found == [[next(iter(row), None) for row in model.predict(each)] for each in lines]


def test_without_the_compiled_code_the_library_predicts_and_the_log_says_so(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    path = models.resolve("lid.176.ftz")
    texts = [*ODD, "The library opens at nine.", "Die Bibliothek öffnet um neun.\r", "図書館は九時に開く", "a\0b"]
    wanted = FastTextModel(path)

    def read(path: str) -> None:
        raise ImportError("no numba")

    monkeypatch.setattr("toolkit.fasttext_file.read", read)
    capfd.readouterr()
    model = FastTextModel(path)
    assert "by the fastText library, several times slower: ImportError: no numba" in capfd.readouterr().err
    for k, threshold in ((1, 0.0), (1, 0.8), (4, 0.01)):
        pairs = zip(
            model.predict(texts, k=k, threshold=threshold), wanted.predict(texts, k=k, threshold=threshold), strict=True
        )
        assert all(agree(b, [(found.label, found.prob) for found in a]) for a, b in pairs)
    lines = LineTable.of(["\n".join(texts), "", "one more"])
    assert len(model.predict_lines(lines)) == 3


@pytest.mark.parametrize("data", [b"", b"no model", b"\xba\x16\x4f\x2f\x0c\0\0\0"])
def test_what_is_no_model_is_refused(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "x.bin"
    path.write_bytes(data)
    with pytest.raises(ConfigError, match="expected a fastText model"):
        FastTextModel(str(path))


def test_a_model_that_was_cut_short_is_refused(tmp_path: Path) -> None:
    whole = Path(models.resolve("lid.176.ftz")).read_bytes()
    for size in (100, 5000, 200_000, len(whole) - 1):
        (tmp_path / "x.ftz").write_bytes(whole[:size])
        with pytest.raises(ConfigError, match=r"x\.ftz: expected"):
            FastTextModel(str(tmp_path / "x.ftz"))


def test_a_model_of_word_vectors_is_refused(tmp_path: Path) -> None:
    import fasttext

    trained = fasttext.train_unsupervised(str(training(tmp_path / "t.txt")), dim=4, epoch=1, thread=12, verbose=0)
    trained.save_model(str(tmp_path / "v.bin"))
    with pytest.raises(ConfigError, match="expected a supervised fastText model"):
        FastTextModel(str(tmp_path / "v.bin"))
