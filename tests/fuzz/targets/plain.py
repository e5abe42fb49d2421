"""Formats of plain lines: text, tab-separated, fastText's labelled lines."""

from tests.fuzz.targets._files import read_input

SEEDS = [
    b"a page\nof text\n",
    b"__label__en __label__x a b\n__label__de c\n",
    b"text\tn\na\t1\n",
    "Grüße\r\n\x85 next".encode(),
    b"\xef\xbb\xbfx",
    b"\xff\xfea\0",
]


def check(data: bytes) -> None:
    for format in ("text", "tsv", "fasttext"):
        read_input(data, format)
