"""Models of all kinds, trained in the tests, and texts to try them with."""

import os
import random
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tests.conftest import ROOT
from tests.waiting import PATIENCE
from toolkit.data.documents import Prediction
from toolkit.text.fasttext.model import FastTextModel
from toolkit.text.line_table import PADDING, LineTable

WORDS = ["alpha", "beta", "gamma", "δέλτα", "эпсилон", "zeta", "中文", "🙂", "a", "éé", "x1", "__label__c"]
ENDS = ["", "", "s", "en", "ом", *map(str, range(60))]
ASCII = "abcdefgzABZ019<>_/\x01\x1c\x1f\x7f.,;"
WIDE = "éßñ\x85\xa0\u2028\u0301\ufeffжщ中文字\U0001f600\U0001f1e9\U0010ffffא"
LONGEST = 40
PROB = 1e-5
STEP = 1 / 128  # between neighbours in the library's table of sigmoids, at most


# --- models -----------------------------------------------------------------------------------------------------------


def odd_words(chance: random.Random, lengths: Iterable[int]) -> list[str]:
    """A word of each length, of one script or another."""
    return ["".join(chance.choices(chance.choice([ASCII, "ab", WIDE, ASCII + WIDE]), k=n)) for n in lengths]


KNOWN = [a + b for a in WORDS[:-1] for b in ENDS] + odd_words(random.Random(1), [*range(1, LONGEST + 1)] * 4)


def training(path: Path, labels: Sequence[str], lines: int = 1200, prefix: str = "__label__") -> Path:
    """A text that some models are trained on: the label follows from the words."""
    chance = random.Random(7)
    text = []
    for _ in range(lines):
        words = [chance.choice(KNOWN) for _ in range(chance.randint(1, 9))]
        label = labels[sum(map(ord, "".join(words[:2]))) % len(labels)]
        text.append(f"{prefix}{label} {' '.join(words)}")
    path.write_text("\n".join(text) + "\n", encoding="utf-8")
    return path


def trained(
    path: Path, *, labels: int | Sequence[str] = 7, quantise: dict[str, Any] | None = None, **options: Any
) -> str:
    """The path of a model."""
    import fasttext

    names = list(map(str, range(labels))) if isinstance(labels, int) else labels
    text = str(training(path.with_suffix(".txt"), names, prefix=options.get("label", "__label__")))
    # the library sets a tenth of its memory in each thread; with fewer than eleven it trains on what was there
    model = fasttext.train_supervised(text, thread=12, verbose=0, **{"epoch": 3, **options})
    if quantise is not None:
        model.quantize(input=text, verbose=0, **{"qnorm": True, "thread": 12, **quantise})
    model.save_model(str(path))
    return str(path)


KINDS: dict[str, dict[str, Any]] = {
    "hs": {"loss": "hs", "minn": 2, "maxn": 4, "bucket": 2000, "dim": 16},
    "hs, pruned and quantised": {
        "loss": "hs", "minn": 2, "maxn": 4, "bucket": 2000, "dim": 16, "quantise": {"cutoff": 400, "dsub": 2},
    },
    "hs, pruned, of word n-grams, without norms": {
        "loss": "hs", "minn": 2, "maxn": 4, "wordNgrams": 3, "bucket": 3000, "dim": 17,
        "quantise": {"cutoff": 900, "dsub": 3, "qnorm": False},
    },
    "softmax, pruned and trained again": {
        "loss": "softmax", "minn": 1, "maxn": 3, "bucket": 2000, "dim": 15,
        "quantise": {"cutoff": 700, "dsub": 4, "retrain": True},
    },
    "softmax, quantised whole": {"minn": 2, "maxn": 4, "bucket": 900, "dim": 8, "quantise": {"dsub": 1}},
    "softmax, pruned without n-grams": {"dim": 12, "quantise": {"cutoff": 300, "dsub": 2}},
    "softmax": {"loss": "softmax", "minn": 3, "maxn": 6, "bucket": 1000, "dim": 10},
    "softmax, word n-grams": {"loss": "softmax", "wordNgrams": 3, "bucket": 5000, "dim": 7},
    "softmax, long word n-grams": {"wordNgrams": 5, "minn": 2, "maxn": 4, "bucket": 200_003, "dim": 33},
    "softmax, quantised output": {
        "loss": "softmax", "minn": 1, "maxn": 2, "bucket": 500, "dim": 12, "labels": 2000,
        "quantise": {"dsub": 2, "qout": True},
    },
    "softmax, one label": {"labels": ["日本"], "minn": 2, "maxn": 2, "bucket": 64, "dim": 3},
    "hs, one label": {"labels": ["x"], "loss": "hs", "dim": 1},
    "hs, two labels, rare words unknown": {"labels": 2, "loss": "hs", "minn": 1, "maxn": 1, "minCount": 20, "dim": 8},
    "hs, odd labels": {
        "labels": ["", "日本", 'a"b\\c', "__label__x", "<>&", "\x01\x7f"],
        "loss": "hs", "minn": 0, "maxn": 12, "bucket": 2, "lr": 0.02, "dim": 100,
    },
    "ova": {"loss": "ova", "wordNgrams": 2, "minn": 2, "maxn": 3, "bucket": 999, "dim": 20},
    "ns": {"loss": "ns", "dim": 9},
    "words alone": {"loss": "hs", "dim": 33},
}  # fmt: skip


class Pair(NamedTuple):
    """A model as we read it, and as the library does."""

    ours: FastTextModel
    library: Any
    kind: str


def pair_of(path: str, kind: str = "") -> Pair:
    import fasttext

    return Pair(FastTextModel(path), fasttext.load_model(path).f, kind)


def of_library(model: Any, texts: Sequence[str], k: int, threshold: float) -> list[list[tuple[str, float]]]:
    """What the library says; it predicts also where there is no word, from the end of the line."""
    labels, probs = model.multilinePredict([text + "\n" for text in texts], k, threshold, "strict")
    return [
        [(label.removeprefix("__label__"), prob) for label, prob in zip(*found, strict=True)]
        if text.strip(" \t\n\v\f\r\0")
        else []
        for text, *found in zip(texts, labels, probs, strict=True)
    ]


def agree(ours: Sequence[Prediction], library: list[tuple[str, float]], within: float = PROB) -> bool:
    """The same labels and probabilities, but for the order of labels that are as probable."""
    if len(ours) != len(library) or any(abs(a.prob - b) > within for a, (_, b) in zip(ours, library, strict=True)):
        return False
    probs = dict(library)
    return all(
        found.label == label or abs(probs.get(found.label, found.prob) - prob) <= within
        for found, (label, prob) in zip(ours, library, strict=True)
    )


def check(pair: Pair, texts: Sequence[str], k: int, threshold: float = 0.0) -> None:
    ours, library = pair.ours.predict(texts, k=k, threshold=threshold), of_library(pair.library, texts, k, threshold)
    different = [(text, a, b) for text, a, b in zip(texts, ours, library, strict=True) if not agree(a, b)]
    if pair.kind in ("ova", "ns"):  # the order of additions may decide between two neighbours in a table, rarely
        assert [text for text, a, b in different if not agree(a, b, STEP)] == []
        assert len(different) <= 1 + len(texts) // 200
    else:
        assert different == []


# --- texts ------------------------------------------------------------------------------------------------------------

ODD = [
    "",
    " ",
    "</s>",
    "alpha </s> beta",
    "alpha beta </s>",
    "__label__a",
    "__label__zz beta",
    "__label__",
    "_ __ __label __label_",
    "\t\v\f\r",
    "a" * 3000,
    "é" * 1500,
    "\x01\x7f",
    "alpha  beta\r",
    "alpha\x1cbeta\x1fgamma\x85zeta\xa0a\u2028x1",
    "<alpha> < > << <</s>> </s",
]
SEPARATORS = [*[" "] * 12, "\t", "\v", "\f", "\r", "  "]


def odd_line(chance: random.Random, longest: int = 30) -> str:
    """Words that are known, unknown or meant to mislead, between separators of all kinds."""
    pieces = [chance.choice(["", "", "", " ", "\t "])]
    for _ in range(chance.choice([1, 2, 3, 4, 5, chance.randint(0, longest)])):
        unknown = odd_words(chance, [chance.randint(1, LONGEST)])
        pieces += [
            chance.choice([chance.choice(KNOWN), *unknown, chance.choice(KNOWN) + "x", *chance.sample(ODD[1:9], 1)])
        ]
        pieces += [chance.choice(SEPARATORS)]
    return "".join(pieces[: -chance.randint(0, 1) or None])


def mixed_words(n: int) -> str:
    chance = random.Random(n)
    return " ".join(chance.choices([*KNOWN[:50], "zzqj", "что", "文", "ongezien", "x1y"], k=n))


def table(lines: Sequence[bytes], behind: bytes = b"\n" * PADDING) -> LineTable:
    """Lines that need not be UTF-8, as no text has them."""
    data = bytearray(b"\n")
    starts, ends = [], []
    for line in lines:
        starts.append(len(data))
        data += line + b"\n"
        ends.append(len(data) - 1)
    data += behind
    at, to = np.array(starts, np.int64), np.array(ends, np.int64)
    return LineTable(np.frombuffer(data, np.int8), at, to, to - at, np.array([0, len(lines)], np.int64))


def broken_lines(n: int) -> list[bytes]:
    chance = random.Random(n)
    lines = [
        bytes(range(1, 256)).replace(b"\n", b""),
        b"\x80" * 9000,
        b"\xff" * 9000,
        b"\xf0\x9f" * 4500,
        b"\0a\0",
        b"\0",
    ]
    for _ in range(n):
        data = bytearray(
            "".join(chance.choices("aé文\U0001f600 ж", k=chance.choice([1, 2, 7, 8, 9, 30, 200]))), "utf-8"
        )
        for _ in range(chance.randint(1, 5)):
            data[chance.randrange(len(data))] = chance.choice([0, 1, 0x80, 0xBF, 0xC0, 0xFF, 0xE2, 0xF0, 0x41])
        lines.append(bytes(data))
        lines.append(bytes(chance.choices(range(0x80, 0xC0), k=chance.randint(1, 40))))
    return lines


# --- processes --------------------------------------------------------------------------------------------------------


def in_process(code: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Python code of its own process, which may crash."""
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        cwd=ROOT, env={**os.environ, **environment}, capture_output=True, text=True, timeout=PATIENCE,
    )  # fmt: skip
