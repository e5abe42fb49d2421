"""The table of code points is what Unicode says, and can be made again."""

import importlib
import unicodedata
import zipfile
from pathlib import Path

import numpy as np
import pytest

from tests.text.test_words import CHANGED, same_unicode, simple_fold
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


def test_folds_are_those_of_python_where_it_knows_them(folded: list[int]) -> None:
    new = {0x1FD3: 0x390, 0x1FE3: 0x3B0, 0xFB05: 0xFB06}  # folded since Unicode 15.1
    for point in POINTS:
        if unicodedata.category(chr(point)) not in ("Cn", "Cs") and folded[point] != ord(simple_fold(chr(point))):
            assert new.get(point) == folded[point], f"U+{point:04X}"
    assert folded[0x1C89] == 0x1C8A, "a pair since Unicode 16"
    assert [folded[folded[point]] for point in POINTS] == [folded[point] for point in POINTS]


@same_unicode
def test_the_table_is_what_regex_says(numbers: list[int]) -> None:
    import regex

    every = "".join(map(chr, POINTS))
    for number, name in enumerate(CLASSES[1:], 1):
        said = {ord(char) for char in regex.findall(rf"\p{{WB={name.replace('_', '')}}}", every)}
        assert {point for point in POINTS if numbers[point] & BREAKS == number} == said, name


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
