"""Labels of texts are what the fastText library predicts for the line that a peer would give it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from taggers.fasttext_label import FasttextLabel
from toolkit import Document
from toolkit.config.settings import convert, parse
from toolkit.errors import ConfigError

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
