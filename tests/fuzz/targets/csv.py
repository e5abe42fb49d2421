"""CSV in two dialects; what is read is what Python's `csv` reads of sound files."""

import csv as library
import io

from tests.fuzz.targets._files import read_input

SEEDS = [
    b'id,text,n\na,"one, two",1\nb,"a ""q"" b",\n',
    b'text\r\n"a\r\nb"\r\n\r\nc\r\n',
    "text;n\nGrüße;1.5\n'x;y';true\n".encode(),
    b"text,text\na,b\n",
    b'\xef\xbb\xbftext\na\\"b\n',
]


def check(data: bytes) -> None:
    read_input(data, "csv", delimiter=";", quote="'", escape="\\", encoding="latin-1")
    read_input(data, "csv", quote=None, header=("text", "n"), typed={"n": "float"})
    read_input(data, "csv", typed={"n": "json"})
    found = read_input(data, "csv")
    if found.rows and b"\0" not in data and data[:2] != b"\x1f\x8b":
        text = data.removeprefix(b"\xef\xbb\xbf").decode()
        rows = [row for row in library.reader(io.StringIO(text, newline=""), strict=True) if row]
        if len({*rows[0]}) == len(rows[0]) and "\r" not in text:
            at = rows[0].index("text")
            assert [row[2] for row in found.rows] == [row[at] for row in rows[1:]]
