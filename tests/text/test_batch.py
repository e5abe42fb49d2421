"""Lines and values of many documents as arrays are what they are one by one; their JSON is what `msgspec` writes."""

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import example, given, strategies as st

from toolkit import Document
from toolkit.data.documents import Prediction, split_lines
from toolkit.text.batch import Batch, Column
from toolkit.text.fasttext.model import LinePredictions
from toolkit.text.json_strings import decoded
from toolkit.text.line_table import PADDING, LineTable
from toolkit.text.portable_floats import shortest_float32

# --- lines ------------------------------------------------------------------------------------------------------------

PIECES = [
    "\n",
    "\r",
    "\r\n",
    "\n\n",
    "\0",
    "\u2028",
    "\x85",
    "\v",
    "\f",
    "\x1c",
    "a",
    "é",
    "文",
    "\U0001f600",
    "\u0301",
    " ",
]
TEXTS = st.lists(
    st.lists(st.sampled_from(PIECES), max_size=12).map("".join) | st.text(st.characters(exclude_categories=["Cs"])),
    max_size=6,
)


@given(TEXTS)
@example([])
@example([""])
@example(["", "", "\n", ""])
@example(["\r", "\r\r\n", "\r\n\r", "a\r"])
@example(["a\n", "a", "a\n\n", "\na"])
def test_lines_are_those_of_each_text(texts: list[str]) -> None:
    table, wanted = LineTable.of(texts), [split_lines(text) for text in texts]
    data = table.utf8.tobytes()
    found = [
        [data[table.starts[i] : table.ends[i]].decode() for i in range(table.bounds[j], table.bounds[j + 1])]
        for j in range(len(texts))
    ]
    assert found == wanted
    flat = [line for lines in wanted for line in lines]
    assert table.chars.tolist() == list(map(len, flat))
    assert table.bytes.tolist() == [len(line.encode()) for line in flat]
    assert table.bounds.tolist() == np.cumsum([0, *map(len, wanted)]).tolist()
    assert table.sums(table.chars).tolist() == [sum(map(len, lines)) for lines in wanted]
    assert table.sums(table.chars == 1).tolist() == [sum(len(line) == 1 for line in lines) for lines in wanted]


@given(TEXTS)
def test_around_each_line_there_is_a_separator_and_room_behind_the_last(texts: list[str]) -> None:
    table = LineTable.of(texts)
    data = table.utf8.tobytes()
    assert table.utf8.flags.writeable
    assert data[:1] == b"\n"
    assert data[-PADDING:] == b"\n" * PADDING
    for start, end in zip(table.starts.tolist(), table.ends.tolist(), strict=True):
        assert data[start - 1 : start] == b"\n"
        assert data[end : end + 1] in (b"\n", b"\r")
        assert end <= len(data) - PADDING - 1


@given(TEXTS)
def test_documents_have_the_same_lines_together(texts: list[str]) -> None:
    documents = [Document(text) for text in texts]
    lines = Batch.of(documents).lines
    assert lines.bytes.tolist() == [size for document in documents for size in document.line_bytes]
    assert lines.chars.tolist() == [end - start for document in documents for start, end in document.line_spans]


@given(TEXTS)
def test_line_feeds_are_counted_in_each_text(texts: list[str]) -> None:
    documents, together = (
        list(map(Document, texts)),
        decoded([msgspec.Raw(msgspec.json.encode(text)) for text in texts]),
    )
    for batch in (Batch(documents), Batch(documents, together)):
        assert batch.feeds.tolist() == [text.count("\n") for text in texts]


def test_a_large_text_has_all_its_lines() -> None:
    text = "é" * 1000 + "\n"
    table = LineTable.of([text * 3000, "", text])
    assert table.bounds.tolist() == [0, 3000, 3000, 3001]
    assert set(table.bytes.tolist()) == {2000}
    assert table.sums(table.chars).tolist() == [3_000_000, 0, 1000]


def test_a_text_that_is_no_unicode_is_refused() -> None:
    with pytest.raises(UnicodeEncodeError):
        LineTable.of(["a", "\ud800"])


# --- predictions ------------------------------------------------------------------------------------------------------

BORDERS = [
    0.0, 1e-45, 1.1754942e-38, 1.1754944e-38, 9.999e-4, 0.00099999993, 1e-3, 0.0010000002, 0.0099999998, 0.01, 0.1,
    0.5, 0.8, 0.99999994, 1.0, 1.0000001, 1.00001, 1.0001, 1.5, 2.0, 0.3, 0.33333334, 0.0625, 2**-10, 1e-5, 1e-4,
]  # fmt: skip
PROBS = st.floats(0, 2, width=32) | st.floats(2**-10, 1, width=32) | st.sampled_from(BORDERS)
LABEL = st.sampled_from(
    ["en", "", 'a"b', "\\", "\n\t\0\x1f\x7f", "日本", "\u2028\u2029", "\U0001f600", "</s>", "é" * 30]
)
LABELS = st.lists(LABEL | st.text(max_size=5), min_size=1, max_size=5, unique=True)


@st.composite
def predictions(draw: st.DrawFn) -> LinePredictions:
    labels = draw(LABELS)
    counts = draw(st.lists(st.integers(0, 6), max_size=6))
    n = sum(counts)
    numbers = draw(st.lists(st.integers(-1, len(labels) - 1), min_size=n, max_size=n))
    probs = draw(st.lists(PROBS, min_size=n, max_size=n))
    bounds = np.cumsum([0, *counts], dtype=np.int64)
    return LinePredictions(labels, np.array(numbers, np.int32), np.array(probs, np.float32), bounds)


def one_by_one(column: LinePredictions) -> list[list[Prediction | None]]:
    return [
        [
            Prediction(column.labels[column.numbers[i]], shortest_float32([column.probs[i]])[0])
            if column.numbers[i] >= 0
            else None
            for i in range(begin, end)
        ]
        for begin, end in zip(column.bounds.tolist(), column.bounds.tolist()[1:], strict=False)
    ]


@given(predictions())
def test_raw_values_are_what_is_written_of_the_objects(column: LinePredictions) -> None:
    objects = one_by_one(column)
    assert list(column) == objects
    assert [bytes(raw) for raw in column.raw()] == [msgspec.json.encode(value) for value in objects]


def raw_probs(probs: "np.ndarray[Any, Any]") -> list[bytes]:
    """Of lines with these probabilities, a value each."""
    n = len(probs)
    column = LinePredictions(["x"], np.zeros(n, np.int32), probs, np.arange(n + 1, dtype=np.int64))
    return [bytes(raw) for raw in column.raw()]


def of_objects(probs: "np.ndarray[Any, Any]") -> list[bytes]:
    return [msgspec.json.encode([Prediction("x", prob)]) for prob in shortest_float32(probs)]


def test_borders_are_written_as_of_the_objects() -> None:
    around = [np.nextafter(np.float32(p), np.float32(to)) for p in BORDERS for to in (0, 9)]
    probs = np.array([*BORDERS, *around], np.float32)
    assert raw_probs(probs) == of_objects(probs)
    assert [float(str(prob)) for prob in probs] == shortest_float32(probs)


@pytest.mark.parametrize("low", [0.0, 1e-5, 9e-4, 1e-3, 9e-3, 0.1, 0.5, 0.99, 1.0])
def test_thousands_of_probabilities_are_written_as_of_the_objects(low: float) -> None:
    """Neighbours, and numbers with few digits."""
    chance = np.random.default_rng(3)
    first = np.float32(low).view(np.int32)
    neighbours = np.arange(first, first + 2000, dtype=np.int32).view(np.float32)
    few = np.round(chance.random(2000) + low, chance.integers(1, 8)).astype(np.float32)
    probs = np.concatenate([neighbours, few, (chance.random(2000) * 2).astype(np.float32)])
    assert raw_probs(probs) == of_objects(probs)


@pytest.mark.slow
def test_millions_of_probabilities_are_written_as_of_the_objects() -> None:
    """Every 97th float32 from the smallest that is written without an exponent to 1.0001."""
    ends = np.array([1e-3, 1.0001], np.float32).view(np.int32)
    probs = np.arange(ends[0], ends[1], 97, dtype=np.int32).view(np.float32)
    assert raw_probs(probs) == of_objects(probs)


@given(predictions())
def test_predictions_come_back_from_their_values(column: LinePredictions) -> None:
    assert LinePredictions.of(column) is column
    again = LinePredictions.of(list(column))
    assert list(again) == list(column)
    assert again.raw() == column.raw()
    assert again.bounds.tolist() == column.bounds.tolist()


def column_of(n: int) -> LinePredictions:
    """Texts with one line each, the first without a language."""
    numbers, probs = np.arange(-1, n - 1, dtype=np.int32), np.full(n, 0.75, np.float32)
    return LinePredictions([f"l{i}" for i in range(n)], numbers, probs, np.arange(n + 1, dtype=np.int64))


def test_a_column_is_a_sequence() -> None:
    column = column_of(5)
    values = list(column)
    assert values[0] == [None]
    assert values[2] == [Prediction("l1", 0.75)]
    assert (len(column), column[-1], column[-5]) == (5, values[4], values[0])
    assert (column[1:3], column[::-2], column[9:]) == (values[1:3], values[::-2], [])
    assert list(reversed(column)) == values[::-1]
    assert values[3] in column
    assert column.index(values[3]) == 3
    for index in (5, -6):
        with pytest.raises(IndexError):
            column[index]


def test_columns_without_values() -> None:
    for counts in ([], [0], [0, 0]):
        column = LinePredictions(
            [], np.empty(0, np.int32), np.empty(0, np.float32), np.cumsum([0, *counts], dtype=np.int64)
        )
        assert list(column) == [[] for _ in counts]
        assert [bytes(raw) for raw in column.raw()] == [b"[]" for _ in counts]
    with pytest.raises(IndexError):
        column_of(0)[0]


# --- batches ----------------------------------------------------------------------------------------------------------


class Numbers(Column[int]):
    """Squares, made one at a time."""

    def __init__(self, n: int) -> None:
        self._n = n
        self.made: list[int] = []

    def __len__(self) -> int:
        return self._n

    def value(self, index: int) -> int:
        self.made.append(index)
        return index * index

    def raw(self) -> list[msgspec.Raw]:
        return [msgspec.Raw(b"%d" % (i * i)) for i in range(self._n)]


def test_a_batch_gives_columns_as_they_are_and_documents_their_values_when_they_ask() -> None:
    documents = [Document("a"), Document("b\nc"), Document("")]
    batch, column = Batch.of(documents), Numbers(3)
    batch.give("set.numbers", column)
    assert batch.attribute("set.numbers") is column
    assert column.made == []
    assert [documents[2].attribute("set.numbers"), documents[2].attribute("set.numbers")] == [4, 4]
    assert column.made == [2], "made once"


def test_a_batch_gives_lists_to_its_documents() -> None:
    batch = Batch.of([Document("a"), Document("b")])
    batch.give("set.key", iter([1, "x"]))
    assert [batch.attribute("set.key"), [document.attribute("set.key") for document in batch]] == [[1, "x"]] * 2
    for values in ([1], [1, 2, 3]):
        with pytest.raises(ValueError):
            batch.give("set.key", values)


def test_a_batch_is_the_sequence_of_its_documents() -> None:
    documents: Sequence[Document] = [Document("a"), Document("b\nc")]
    batch = Batch.of(documents)
    assert Batch.of(batch) is batch
    assert (len(batch), list(batch), batch[1], batch[-1:]) == (2, documents, documents[1], documents[1:])
    assert batch.lines is batch.lines
    assert len(Batch.of([]).lines.starts) == 0


def test_what_several_taggers_need_is_computed_once_for_each_choice_of_arguments() -> None:
    calls = []

    def sizes(batch: Batch, factor: int) -> list[int]:
        calls.append(factor)
        return [factor * len(document.text) for document in batch]

    batch = Batch([Document("a"), Document("bcd")])
    assert [batch.once(sizes, 2), batch.once(sizes, 3), batch.once(sizes, 2)] == [[2, 6], [3, 9], [2, 6]]
    assert calls == [2, 3]
    assert Batch([Document("a")]).once(sizes, 2) == [2]
