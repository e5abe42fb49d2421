"""Importance weights by their formula, scores as fastText gives them."""

import math
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from taggers.redpajama_models import RedpajamaModels, feature_counts
from toolkit import ConfigError, Document
from toolkit.text import LineTable, Words, load_fasttext


def signals(text: str, **options: Any) -> dict[str, Any]:
    value = RedpajamaModels(**options).tag(Document(text))
    return {name.removeprefix("rps_doc_"): v for name, v in msgspec.to_builtins(value).items()}


def test_importance_is_the_sum_over_raw_words_and_pairs(tmp_path: Path) -> None:
    source, books = feature_counts(["a b c", "b c d e"], 16), feature_counts(["a a a", "b"], 16)
    np.savez(tmp_path / "i.npz", source=source[0], books=books[0], source_length=source[1], books_length=books[1])
    text = "A a... b"
    one = Words.of(LineTable.of([text]), "word_punct").hashes
    two = one[:-1] * np.uint64(0x9E3779B97F4A7C15) + one[1:]
    logs = [np.log(counts / counts.sum() + 1e-8) for counts, _ in (books, source)]
    expected = sum(logs[0][h % 16] - logs[1][h % 16] for h in [*one.tolist(), *two.tolist()])
    found = signals(text, importance=str(tmp_path / "i.npz"))
    assert found["books_importance"] == pytest.approx(expected, abs=1e-8)
    poisson = [math.exp(-mean) * mean ** len(text) / math.factorial(len(text)) for _, mean in (books, source)]
    correction = math.log(poisson[0] + 1e-8) - math.log(poisson[1] + 1e-8)
    assert found["books_importance_length_correction"] == pytest.approx(expected + correction, abs=2e-8)
    assert found["wikipedia_importance"] is None
    assert signals("", importance=str(tmp_path / "i.npz"))["books_importance"] is None
    np.savez(tmp_path / "bad.npz", books=books[0])
    with pytest.raises(ConfigError, match="with `source` among them"):
        signals(text, importance=str(tmp_path / "bad.npz"))


def test_scores_are_probabilities_of_not_being_from_the_crawl(tmp_path: Path) -> None:
    import fasttext

    lines = ["__label__cc buy now cheap", "__label__wiki the river is long"] * 50
    (tmp_path / "lines.txt").write_text("\n".join(lines) + "\n")
    model = fasttext.train_supervised(str(tmp_path / "lines.txt"), thread=12, verbose=0, epoch=20, dim=8, minCount=1)
    model.save_model(path := str(tmp_path / "model.bin"))
    for text, sign in (("buy now\ncheap", -1), ("the river\r\n is long", 1)):
        (best,) = load_fasttext(path).predict([" ".join(text.splitlines())])[0]
        prob = float(np.float32(best.prob))
        found = signals(text, palm_model=path)
        assert found["ml_palm_score"] == round(prob if sign > 0 else 1 - prob, 8)
        assert (found["ml_palm_score"] > 0.5) is (sign > 0)
        assert found["ml_wikiref_score"] is None
    assert signals("", palm_model=path)["ml_palm_score"] is None
