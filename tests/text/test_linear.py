"""Linear models: n-grams and predictions against slow Python, and files that are none."""

import itertools
import math
from collections import Counter
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st

from toolkit.errors import ConfigError
from toolkit.text.line_table import LineTable
from toolkit.text.linear import model
from toolkit.text.linear.model import (
    BETWEEN,
    EDGE,
    MANY,
    WORD,
    About,
    LinearModel,
    Orders,
    Window,
    outcomes,
    packed,
    read,
)
from toolkit.text.unicode_table import FOLD, characters
from toolkit.text.words import PRIME, SEED, Words

LOW = 2**64 - 1


def bucket(hash_: int, kind: int, buckets: int) -> int:
    mixed = (hash_ ^ (hash_ >> 32)) * PRIME & LOW
    return (mixed >> 32) & (buckets - 2) | kind


def folded(word: str) -> list[int]:
    table = characters()
    return [ord(c) + (int(table.classes[(table.blocks[ord(c) >> 8] << 8) | (ord(c) & 255)]) >> FOLD) for c in word]


def counted(text: str, orders: Orders) -> Counter[int]:
    """The buckets of a text, slowly."""
    words = [folded(word) for word in Words.of(LineTable.of([text]), "segments").strings()]
    found: Counter[int] = Counter()
    hashes = []
    for word in words:
        hash_ = SEED
        for point in word:
            hash_ = (hash_ ^ point) * PRIME & LOW
        hashes.append(hash_ ^ (hash_ >> 32))
        padded = [EDGE, *word, EDGE]
        for n in range(orders.least_characters, orders.most_characters + 1):
            for i in range(len(padded) - n + 1):
                hash_ = SEED
                for point in padded[i : i + n]:
                    hash_ = (hash_ ^ point) * PRIME & LOW
                found[bucket(hash_, 1, orders.buckets)] += 1
    for n in range(orders.least_words, orders.most_words + 1):
        for i in range(len(hashes) - n + 1):
            hash_ = WORD
            for k, word_hash in enumerate(hashes[i : i + n]):
                hash_ = (hash_ if not k else hash_ ^ BETWEEN) ^ word_hash
                hash_ = hash_ * PRIME & LOW
            found[bucket(hash_, 0, orders.buckets)] += 1
    return found


ORDERS = st.builds(
    lambda words, characters, bits: Orders(
        min(words), max(words), min(characters, default=1), max(characters, default=0), 1 << bits
    ),
    st.tuples(st.integers(1, 3), st.integers(1, 3)),
    st.just(()) | st.tuples(st.integers(1, 6), st.integers(1, 6)),
    st.integers(8, 12),
)
TEXTS = st.lists(
    st.text(st.sampled_from("abAB ß.İ,é\n汉字1\0ſ") | st.characters(codec="utf-8"), max_size=40), max_size=4
)


@given(TEXTS, ORDERS)
def test_ngrams_are_those_of_slow_code(texts: list[str], orders: Orders) -> None:
    found = model.count(Words.of(LineTable.of(texts), "segments"), orders)
    for i, text in enumerate(texts):
        own = slice(found.bounds[i], found.bounds[i + 1])
        there = dict(zip(found.buckets[own].tolist(), found.times[own].tolist(), strict=True))
        assert there == dict(counted(text, orders))


def test_ngrams_that_are_there_often_count_as_many() -> None:
    orders = Orders(1, 1, 1, 0, 256)
    found = model.count(Words.of(LineTable.of(["a " * 1000 + "b"]), "segments"), orders)
    assert sorted(found.times.tolist()) == [1, MANY]


ABOUTS = {
    "regression": About(task="regression", words=(1, 2), characters=(3, 5), buckets=1024),
    "two classes": About(task="classes", labels=["no", "yes"], words=(1, 1), characters=None, buckets=256),
    "classes": About(task="classes", labels=["a", "b", "c"], words=(1, 2), characters=(2, 3), buckets=512),
    "labels": About(task="multilabel", labels=["x", "y"], words=(1, 2), characters=(4, 4), buckets=512),
    "grades": About(task="ordinal", labels=["1", "2", "3.5"], words=(1, 2), characters=(3, 3), buckets=512),
}


DATA = 256 * 2 * 4 + 8


def made(about: About, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    table = random.normal(size=(about.buckets, 1 + about.outputs)).astype(np.float32)
    table[:, 0] = np.abs(table[:, 0]) + 1
    return table, random.normal(size=about.outputs)


@pytest.mark.parametrize("about", ABOUTS.values(), ids=ABOUTS)
def test_predictions_are_those_of_slow_code(about: About) -> None:
    texts = ["", "One river, one ONE bridge.", "Η βιβλιοθήκη ανοίγει", "a\nb\r\nc", "x" * 300]
    table, intercepts = made(about)
    found = LinearModel(about, table.reshape(-1), intercepts).predict(texts)
    for text, said in zip(texts, found, strict=True):
        values = {b: (1 + math.log(min(n, MANY))) * float(table[b, 0]) for b, n in counted(text, about.orders).items()}
        length = math.sqrt(sum(value * value for value in values.values())) or 1.0
        sums = [
            sum(value * float(table[b, 1 + k]) for b, value in values.items()) / length + intercepts[k]
            for k in range(about.outputs)
        ]
        if about.task == "regression":
            assert said.score == pytest.approx(sums[0], abs=1e-5)
            continue
        ones = [1 / (1 + math.exp(-each)) for each in sums]
        if about.task == "multilabel":
            wanted = ones
        elif about.task == "ordinal":
            least = [1.0, *(min(ones[: i + 1]) for i in range(len(ones))), 0.0]
            wanted = [a - b for a, b in itertools.pairwise(least)]
            assert said.score == pytest.approx(sum(p * float(g) for p, g in zip(wanted, about.labels, strict=True)))
        else:
            wanted = [1 - ones[0], ones[0]] if len(ones) == 1 else [each / sum(ones) for each in ones]
        assert said.scores == pytest.approx(dict(zip(about.labels, wanted, strict=True)), abs=1e-5)
        assert said.label == max(said.scores, key=said.scores.__getitem__) == next(iter(said.scores))


def test_probabilities_of_grades_never_fall_below_0() -> None:
    found = outcomes(ABOUTS["grades"], np.array([[-3.0, 3.0], [2.0, -2.0]]))
    assert (found >= 0).all()
    assert found.sum(axis=1) == pytest.approx(1.0)


def test_a_window_is_what_the_model_sees() -> None:
    about = ABOUTS["regression"]
    model = LinearModel(about, *[each.reshape(-1) for each in made(about)])
    text = "begin of it " + "middle " * 20 + "the end"

    def score(text: str, window: Window | None = None) -> float:
        return model.predict([text], window)[0].score

    assert score(text, Window(lead=5)) == score("begin")
    pieces = Window(pieces=["begin", "middle", "end"], characters=7)
    each = [score("begin o"), score(text[(len(text) - 7) // 2 :][:7]), score("the end")]
    assert score(text, pieces) == pytest.approx(sum(each) / 3)
    assert score("short", pieces) == score("short")
    for aggregate, wanted in (("max", max(each)), ("min", min(each))):
        window = Window(pieces=["begin", "middle", "end"], characters=7, aggregate=aggregate)  # type: ignore[arg-type]
        assert model.predict(["", text, "a"], window)[1].score == pytest.approx(wanted)


@pytest.mark.parametrize(
    "window", [Window(), Window(lead=1, pieces=["end"]), Window(pieces=["end"]), Window(lead=3, characters=3)]
)
def test_a_window_that_is_none(window: Window) -> None:
    with pytest.raises(ConfigError, match="window"):
        window.check()


# --- files ------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def good() -> bytes:
    return packed(ABOUTS["two classes"], *made(ABOUTS["two classes"]))


def test_a_file_is_read_back(tmp_path: Path, good: bytes) -> None:
    (tmp_path / "m").write_bytes(good)
    about = ABOUTS["two classes"]
    table, intercepts = made(about)
    there = LinearModel(about, table.reshape(-1), intercepts).predict(["one text", ""])
    assert read(str(tmp_path / "m")).predict(["one text", ""]) == there


@given(st.data())
def test_a_damaged_file_is_refused(tmp_path_factory: pytest.TempPathFactory, good: bytes, data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(good) - 1) | st.integers(0, 500))
    damaged = bytearray(good)
    match data.draw(st.sampled_from(["change", "cut", "more"])):
        case "change":
            damaged[place] ^= data.draw(st.integers(1, 255))
        case "cut":
            del damaged[place:]
        case _:
            damaged += b"x" * (place + 1)
    path = tmp_path_factory.mktemp("m") / "model"
    path.write_bytes(damaged)
    if damaged[-DATA:] == good[-DATA:] and len(damaged) == len(good):  # it may be a letter of a label
        with suppress(ConfigError):
            read(str(path))
        return
    with pytest.raises(ConfigError, match="expected a linear model, whole, got"):
        read(str(path))


@pytest.mark.parametrize("number", [math.nan, math.inf, 1e30])
def test_numbers_that_are_none_are_refused(tmp_path: Path, number: float) -> None:
    table, intercepts = made(ABOUTS["two classes"])
    table[7, 1] = number
    (tmp_path / "m").write_bytes(packed(ABOUTS["two classes"], table, intercepts))
    with pytest.raises(ConfigError, match="NaN, infinite or too large"):
        read(str(tmp_path / "m"))


@pytest.mark.parametrize(
    "about",
    [
        About(task="classes", labels=["a"], words=(1, 1), buckets=256),
        About(task="regression", labels=["a"], words=(1, 1), buckets=256),
        About(task="ordinal", labels=["2", "1"], words=(1, 1), buckets=256),
        About(task="ordinal", labels=["1", "b"], words=(1, 1), buckets=256),
        About(task="regression", words=(1, 99), buckets=256),
        About(task="regression", words=(2, 1), buckets=256),
        About(task="regression", words=(1, 1), characters=(0, 3), buckets=256),
        About(task="regression", words=(1, 1), buckets=300),
        About(task="regression", words=(1, 1), buckets=2),
        About(task="regression", words=(1, 1), buckets=1 << 40),
    ],
)
def test_what_no_model_can_be(about: About) -> None:
    with pytest.raises(ConfigError):
        about.check()
