"""The table of code points is what Unicode says, and can be made again."""

import decimal
import importlib
import json
import math
import random
import sys
import time
import unicodedata
import zipfile
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import msgspec
import numpy as np
import pytest
from hypothesis import example, given, settings

from tests.text.test_words import CHANGED, same_unicode, simple_fold
from toolkit.data.documents import DocumentRow
from toolkit.text import (
    NUMBER as CODE_POINTS_NUMBER,
    SPACE as CODE_POINTS_SPACE,
    UPPER as CODE_POINTS_UPPER,
    LineTable,
    count_code_points,
    count_marked,
    decomposed,
    lower_decomposed,
    split_lines,
)
from toolkit.text.json_strings import DecodedTexts, decoded, documents_in, encoded, placed, sound
from toolkit.text.kernels.split_mix import sequence
from toolkit.text.line_table import LineTable as JsonStringsLineTable
from toolkit.text.normal_forms import SHORT
from toolkit.text.portable_floats import natural_logs, shortest_float32
from toolkit.text.unicode_table import (
    ALPHA,
    BREAKS,
    CLASSES,
    FILE,
    FOLD,
    LAST,
    LOWER,
    NUMBER,
    NUMERALS_SINCE,
    PUNCTUATION,
    SPACE,
    TITLE,
    UNDERSCORE,
    UNICODE,
    UPPER,
    characters,
    main,
)

MODULE = importlib.import_module("toolkit.text.unicode_table")  # `toolkit.text.unicode_table` is its function
POINTS = [point for point in range(LAST + 1) if not 0xD800 <= point <= 0xDFFF]


@pytest.fixture(scope="module")
def numbers() -> list[int]:
    found = characters()
    points = np.arange(LAST + 1)
    return list(found.classes[(found.blocks[points >> 8] << 8) | (points & 255)].tolist())


@pytest.fixture(scope="module")
def folded(numbers: list[int]) -> list[int]:
    return [point + (number >> FOLD) for point, number in enumerate(numbers)]


def of_python(char: str) -> int:
    category = unicodedata.category(char)
    facts = {
        SPACE: char.isspace(),
        ALPHA: char.isalpha(),
        NUMBER: char.isdecimal() or char.isdigit() or char.isnumeric(),
        UPPER: char.isupper(),
        LOWER: char.islower(),
        TITLE: category == "Lt",
        PUNCTUATION: category[0] in "PS",
        UNDERSCORE: char == "_",
    }
    return sum(bit for bit, holds in facts.items() if holds)


@pytest.mark.slow
def test_the_table_says_what_python_says_of_what_python_knows(numbers: list[int]) -> None:
    bits = SPACE | ALPHA | NUMBER | UPPER | LOWER | TITLE | PUNCTUATION | UNDERSCORE
    for point in POINTS:
        char = chr(point)
        if unicodedata.category(char) != "Cn" and char not in CHANGED:
            assert numbers[point] & bits == of_python(char), f"U+{point:04X}"


def test_letters_that_became_numerals_are_none(numbers: list[int]) -> None:
    """So counts are those of programs that ran before Unicode 15.1."""
    assert [numbers[ord(char)] & (ALPHA | NUMBER) for char in NUMERALS_SINCE] == [ALPHA] * len(NUMERALS_SINCE)
    assert [numbers[ord(char)] & (ALPHA | NUMBER) for char in "一億½Ⅷ"] == [ALPHA | NUMBER] * 2 + [NUMBER] * 2


@pytest.mark.slow
def test_folds_are_those_of_python_where_it_knows_them(folded: list[int]) -> None:
    new = {0x1FD3: 0x390, 0x1FE3: 0x3B0, 0xFB05: 0xFB06}  # folded since Unicode 15.1
    for point in POINTS:
        if unicodedata.category(chr(point)) not in ("Cn", "Cs") and folded[point] != ord(simple_fold(chr(point))):
            assert new.get(point) == folded[point], f"U+{point:04X}"
    assert folded[0x1C89] == 0x1C8A, "a pair since Unicode 16"
    assert [folded[folded[point]] for point in POINTS] == [folded[point] for point in POINTS]


@pytest.mark.slow
@same_unicode
def test_the_table_is_what_regex_says(numbers: list[int]) -> None:
    import regex

    every = "".join(map(chr, POINTS))
    for number, name in enumerate(CLASSES[1:], 1):
        said = {ord(char) for char in regex.findall(rf"\p{{WB={name.replace('_', '')}}}", every)}
        assert {point for point in POINTS if numbers[point] & BREAKS == number} == said, name


@pytest.mark.slow
@same_unicode
def test_the_file_is_what_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its content byte by byte; how small that becomes is the compressor's matter."""
    files = [Path(FILE), tmp_path / "again.npz"]
    monkeypatch.setattr(MODULE, "FILE", str(files[1]))
    main()
    kept, again = ({name: archive.read(name) for name in archive.namelist()} for archive in map(zipfile.ZipFile, files))
    assert kept == again


def test_the_version_is_that_of_the_documentation() -> None:
    for module in (MODULE, importlib.import_module("toolkit.text.words")):
        assert f"Unicode {UNICODE.removesuffix('.0')}" in (module.__doc__ or "")


# Code points of a kind are counted as Python has them.

TEXTS = st.lists(st.text("aA1 \t\r\n\x85éÉ一½Ⅷ\u2028\U0001d400\U0001f600"), max_size=4)


@given(TEXTS)
def test_code_points_of_a_kind_are_counted(texts: list[str]) -> None:
    lines = [line for text in texts for line in split_lines(text)]
    table = LineTable.of(texts)
    for kind, is_kind in (
        (CODE_POINTS_UPPER, str.isupper),
        (CODE_POINTS_NUMBER, str.isnumeric),
        (CODE_POINTS_SPACE, str.isspace),
    ):
        expected = [sum(map(is_kind, line)) for line in lines]
        assert count_code_points(table, kind).tolist() == expected
    either = [sum(c.isupper() or c.isspace() for c in line) for line in lines]
    assert count_code_points(table, CODE_POINTS_UPPER | CODE_POINTS_SPACE).tolist() == either


@given(TEXTS)
def test_code_points_that_a_table_marks_are_counted(texts: list[str]) -> None:
    lines = [line for text in texts for line in split_lines(text)]
    found = count_marked(LineTable.of(texts), lambda last: (np.arange(last + 1) % 3 == 0).astype(np.uint8))
    assert found.tolist() == [sum(ord(c) % 3 == 0 for c in line) for line in lines]


@pytest.mark.parametrize("last", [0x7F, 0x80, 0x7FF, 0x800, 0xFFFF, 0x10000, 0x3FFFF, 0x40000, 0x10FFFF])
def test_a_table_of_marks_is_as_long_as_the_text_needs(last: int) -> None:
    asked = []

    def marks(last: int) -> "np.ndarray[tuple[int], np.dtype[np.uint8]]":
        asked.append(last)
        return np.ones(last + 1, np.uint8)

    assert count_marked(LineTable.of([f"a\n{chr(last)}"]), marks).tolist() == [1, 1]
    assert next(each for each in (0x7F, 0x7FF, 0xFFFF, 0x3FFFF, 0x10FFFF) if each >= last) == asked[0]


# Decomposition against Python's own, and in linear time.

MARKS = "\u0301\u0323\u0344\u0f73\u0f71\u05b0\u0345\U0001d165"


@settings(deadline=None)
@given(st.text() | st.text("aệ한\u1100\u1161" + MARKS))
def test_it_is_what_python_has(text: str) -> None:
    assert decomposed(text) == unicodedata.normalize("NFD", text)


def test_it_is_what_python_has_where_many_marks_follow_each_other() -> None:
    rand = random.Random(3)
    for size in (SHORT - 1, SHORT, SHORT + 1, 500):
        for before in ("", "a", "ệ", "한"):
            text = before + "".join(rand.choices(MARKS, k=size)) + "é"
            assert decomposed(text) == unicodedata.normalize("NFD", text)


def lower_and_decomposed(text: str) -> str:
    return unicodedata.normalize("NFD", text.lower())


@settings(deadline=None)
@given(st.lists(st.text() | st.text("aệ한Σσİ. _\r\n\0\u1100\u1161" + MARKS)))
def test_batches_are_in_lower_case_and_decomposed_as_python_has_them(texts: list[str]) -> None:
    results = lower_decomposed(LineTable.of(texts), b"._")
    for text, result in zip(texts, results, strict=True):
        ended = text + "\n" * (text != "" and not text.endswith("\n"))
        assert result.decode() == lower_and_decomposed(ended.replace(".", "").replace("_", ""))


@pytest.mark.slow
def test_every_character_has_the_lower_case_and_the_decomposition_of_this_python() -> None:
    every = "".join(f"{chr(c)} " for c in range(sys.maxunicode + 1) if not 0xD800 <= c < 0xE000)
    assert b"".join(lower_decomposed(LineTable.of([every]))).decode() == lower_and_decomposed(every + "\n")


def test_many_marks_out_of_order_in_a_batch_are_put_in_order() -> None:
    text = "a" + "\u0301\u0323" * 20_000
    assert lower_decomposed(LineTable.of(["b", text, "Σ"])) == [
        b"b\n",
        f"{decomposed(text)}\n".encode(),
        "σ\n".encode(),
    ]


@pytest.mark.slow
def test_marks_without_end_take_linear_time() -> None:
    start = time.process_time()
    decomposed("a" + "\u0301\u0323" * 200_000)
    decomposed("\u0f73" * 200_000)
    assert time.process_time() - start < 5


# float32 as text: the shortest that reads back, as numpy's own formatting has it. Logarithms, by exact decimals.

PROBABILITIES = st.floats(0, 1 + 2**-13, width=32)
ANY = st.floats(width=32, allow_nan=False, allow_infinity=False)


@given(st.lists(PROBABILITIES | ANY, max_size=3))
def test_many_numbers_get_the_text_of_each(values: list[float]) -> None:
    wanted = [float(str(np.float32(value))) for value in values]
    assert shortest_float32(values) == wanted
    assert shortest_float32(values * 20) == wanted * 20, "from some number on all together"


def test_a_hundred_thousand_probabilities_are_the_shortest() -> None:
    values = np.random.default_rng(3).random(100_000, dtype=np.float32)
    assert shortest_float32(values) == [float(str(value)) for value in values]


@given(st.floats(1e-300, 1e300))
@example(1 - 2**-53)
@example(1 + 2**-52)
def test_logarithms_are_right_but_for_the_last_digit(value: float) -> None:
    found = natural_logs([value]).item()
    with decimal.localcontext(prec=50):
        error = abs(decimal.Decimal(found) - decimal.Decimal(value).ln())
    assert error <= decimal.Decimal(math.ulp(found))


@pytest.mark.slow
def test_logarithms_of_whole_numbers_do_not_depend_on_how_many_there_are() -> None:
    together = natural_logs(np.arange(1, 10_001))
    assert together.tolist() == [natural_logs([i]).item() for i in range(1, 10_001)]
    assert np.abs(together - [math.log(i) for i in range(1, 10_001)]).max() <= math.ulp(8.0)


# JSON strings as texts in UTF-8 are what msgspec makes of them.


def _texts(found: DecodedTexts) -> list[bytes]:
    return [found.lines.utf8[begin:end].tobytes() for begin, end in found.places.tolist()]


TEXT = st.text(st.characters(exclude_categories=["Cs"]) | st.sampled_from('\\"\n\t\r\b\f/é€𝒳\u2028\x7f'))


@given(st.lists(st.tuples(TEXT, st.booleans()), max_size=6))
def test_texts_and_their_lines_are_those_of_python(given_: list[tuple[str, bool]]) -> None:
    found = decoded([msgspec.Raw(json.dumps(text, ensure_ascii=ascii_).encode()) for text, ascii_ in given_])
    texts = [text for text, _ in given_]
    assert found
    assert _texts(found) == [text.encode() for text in texts]
    assert [each.tolist() for each in found.lines] == [each.tolist() for each in JsonStringsLineTable.of(texts)]
    assert found.texts == _texts(found)
    assert found.chars.tolist() == list(map(len, texts))
    assert found.open_ended.tolist() == [text != "" and not text.endswith("\n") for text in texts]


PIECES = [
    *('"', "\\", "\\\\", "\\n", "\\/", "\\u00e9", "\\uD83D", "\\uDE00", "\\u12", "\\ud83dx", "\\x"),
    *("a", "é", "€", "𝒳", "\x1f"),
]
EDGES = (0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0, 0xC1, 0xC2, 0xDF, 0xE0, 0xED, 0xEF, 0xF0, 0xF4, 0xF5, 0xFF)
BYTES = [*map(str.encode, PIECES), *(bytes([edge]) for edge in EDGES)]


@given(st.lists(TEXT | TEXT.map(lambda text: 9 * text), min_size=1, max_size=6))
def test_rows_are_encoded_as_msgspec_does(texts: list[str]) -> None:
    fields = [{"id": ',"text":"' + text, "text": "", "n": number} for number, text in enumerate(texts)]
    lines, chars = encoded(*placed(list(map(str.encode, texts))), list(map(msgspec.json.encode, fields)), b',"text":"')
    assert lines == [msgspec.json.encode(row | {"text": text}) for row, text in zip(fields, texts, strict=True)]
    assert chars == list(map(len, texts))


@given(st.lists(st.lists(st.sampled_from(BYTES)).map(b"".join), min_size=1, max_size=6))
def test_what_is_utf8_is_what_python_decodes(texts: list[bytes]) -> None:
    assert sound(*placed(texts)) == [text == text.decode(errors="ignore").encode() for text in texts]


@given(st.lists(st.sampled_from(BYTES), max_size=6))
def test_what_msgspec_does_not_take_is_no_text(pieces: list[bytes]) -> None:
    raw = b'"' + b"".join(pieces) + b'"'
    try:
        expected: Any = msgspec.json.decode(raw, type=str).encode()
        msgspec.json.decode(raw, type=msgspec.Raw)
    except (msgspec.DecodeError, UnicodeError):
        expected = None
    try:
        msgspec.json.decode(raw, type=msgspec.Raw)  # what is not one string is none of ours to judge
    except msgspec.DecodeError:
        return
    found = decoded([msgspec.Raw(raw)])
    assert (_texts(found)[0] if found else None) == expected


FIELDS = st.fixed_dictionaries(
    {"id": TEXT, "text": TEXT, "source": TEXT},
    optional={
        "idx": st.none(),
        "added": TEXT,
        "metadata": st.dictionaries(TEXT | st.sampled_from(["id", "text"]), st.lists(TEXT) | st.floats(-9, 9)),
        "n": st.integers() | st.booleans(),
    },
)
SPACES = [(",", ":"), (", ", ": "), (" ,\t", "\r: ")]


@given(st.lists(st.tuples(FIELDS, st.randoms(), st.booleans(), st.sampled_from(SPACES)), min_size=1, max_size=5))
def test_documents_in_rows_are_those_of_msgspec(drawn: list[tuple[dict[str, Any], Any, bool, tuple[str, str]]]) -> None:
    lines = []
    for fields, order, ascii_, spaces in drawn:
        items = order.sample(list(fields.items()), len(fields))
        lines.append(
            json.dumps(dict(items), ensure_ascii=ascii_, separators=spaces).encode()
            + spaces[1].replace(":", "").encode()
        )
    found = documents_in(b"\n".join(lines))
    rows = [msgspec.json.decode(line, type=DocumentRow) for line in lines]
    assert found
    assert found[0] == [msgspec.json.encode({"source": row.source, "id": row.id}) for row in rows]
    assert found[1].texts == [row.text.encode() for row in rows]


GOOD = b'{"id":"a","text":"b","source":"c"}'


@pytest.mark.parametrize(
    "odd",
    [
        *(b"", b" ", b"{}", b"[]", b"1", b'"', GOOD[:-1], GOOD + b"}", GOOD + b" x", GOOD[:-2], GOOD * 2),
        *(b'{"id":"a","text":"b"}', b'{"id":"a","text":"b","source":null}', b'{"id":1,"text":"b","source":"c"}'),
        *(b'{"id":"a","id":"a","text":"b","source":"c"}', b'{"\\u0069d":"a","text":"b","source":"c"}'),
        *(b'{"id":"a","text":["b"],"source":"c"}', b'{"id":"a","text":"\\x","source":"c"}', b'{"id":"\\x' + GOOD[7:]),
        *(
            b'{"id":"a","text":"\\ud800","source":"c"}',
            b'{"id":"a","text":"\xff","source":"c"}',
            b'{"m":{[,' + GOOD[1:],
        ),
    ],
)
def test_other_rows_are_left_to_a_parser(odd: bytes) -> None:
    for rows in (b"%b", GOOD + b"\n%b", b"%b\n" + GOOD):
        assert documents_in(rows % odd) is None
        assert documents_in(rows % GOOD) is not None


@pytest.mark.parametrize("other", ["1", "null", "[]", '{"a": "b"}', "true"])
def test_other_values_are_no_texts(other: str) -> None:
    assert decoded([msgspec.Raw(b'"a"'), msgspec.Raw(other.encode())]) is None


def test_no_strings() -> None:
    found = decoded([])
    assert found
    assert found.lines.bounds.tolist() == [0]


# SplitMix64 gives the numbers that its authors' program gives.


def test_the_first_numbers_from_the_state_0() -> None:
    assert sequence(3) == [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F]
    assert sequence(0) == []
