"""Documents: the one definition of a line, the shared views, and rows that say what is wrong with them."""

import json
import pickle
from collections.abc import Iterator

import pytest
from hypothesis import example, given, settings, strategies as st

from toolkit.data.documents import DOCUMENT_DECODER, Document, Rows, Span, joined_lines, split_lines, to_document
from toolkit.errors import AlignmentError, DataError

TEXTS = (
    st.lists(
        st.sampled_from(
            ["\n", "\r", "\r\n", "\x0b", "\x0c", "\x1c", "\x85", "\u2028", "\u2029", "\0", "a", "é", "\U0001f600"]
        )
    ).map("".join)
    | st.text()
)


def slow_lines(text: str) -> list[str]:
    r"""Code point by code point: ``\n`` ends a line, one ``\r`` at a line's end is not part of it."""
    lines, line = [], ""
    for char in text:
        if char == "\n":
            lines.append(line)
            line = ""
        else:
            line += char
    if line:
        lines.append(line)
    return [line[:-1] if line[-1:] == "\r" else line for line in lines]


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("", []),
        ("\n", [""]),
        ("a", ["a"]),
        ("a\n", ["a"]),
        ("a\n\n", ["a", ""]),
        ("\na", ["", "a"]),
        ("a\r\nb\r\n", ["a", "b"]),
        ("a\r\r\nb", ["a\r", "b"]),
        ("a\rb", ["a\rb"]),
        ("a\r", ["a"]),
        ("\r\n", [""]),
        ("a\u2028b\x85c\x0cd\x0be\x1cf", ["a\u2028b\x85c\x0cd\x0be\x1cf"]),
    ],
)
def test_lines_end_at_line_feeds_only(text: str, lines: list[str]) -> None:
    assert split_lines(text) == lines


@given(TEXTS)
@example("a\n\r")
def test_lines_are_those_of_a_slow_reader(text: str) -> None:
    assert split_lines(text) == slow_lines(text)
    assert joined_lines(text) == "\n".join(slow_lines(text))


@given(TEXTS)
def test_views_agree_with_the_lines(text: str) -> None:
    document = Document(text)
    assert document.lines == split_lines(text)
    assert document.line_bytes == [len(line.encode()) for line in document.lines]
    assert [text[start:end] for start, end in document.line_spans] == document.lines
    starts = [start for start, _ in document.line_spans]
    assert starts == sorted(set(starts))
    assert all(start == 0 or text[start - 1] == "\n" for start in starts)


@settings(max_examples=50)
@given(TEXTS)
def test_lines_joined_and_split_again_are_the_same_unless_the_last_is_empty(text: str) -> None:
    lines = [line.rstrip("\r") for line in split_lines(text)]
    while lines and not lines[-1]:
        lines.pop()
    assert split_lines("\n".join(lines)) == lines


def test_metadata_is_read_only_when_it_is_asked_for() -> None:
    lazy = next(_documents(b'{"id":"a","text":"","source":"s","metadata":{"x": 1}}'))
    assert bytes(lazy.raw_metadata) == b'{"x": 1}'
    assert lazy.metadata == {"x": 1}
    for row in (b'{"id":"a","text":"","source":"s","metadata":null}', b'{"id":"a","text":"","source":"s"}'):
        without = next(_documents(row))
        assert (without.metadata, bytes(without.raw_metadata)) == ({}, b"null")
    assert Document("", metadata={"x": 1}).metadata == {"x": 1}
    assert bytes(Document("", metadata={"x": 1}).raw_metadata) == b'{"x":1}'


def test_spans_are_three_numbers() -> None:
    assert json.dumps(Span(1, 2)) == "[1, 2, 1.0]"


# --- rows -------------------------------------------------------------------------------------------------------------

GOOD = b'{"id":"good","text":"t","source":"s"}'


def _documents(*lines: bytes) -> Iterator[Document]:
    rows = Rows(iter(lines), DOCUMENT_DECODER, "x/a.jsonl.gz")
    return (to_document(row, rows, line) for row, line in rows)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"", "expected a JSON object, got a blank line"),
        (b" \r", "expected a JSON object, got a blank line"),
        (b'{"id":"x","text":""}', "expected field source, got an object without it (document 'x')"),
        (b'{"source":"s","text":""}', "expected field id, got an object without it"),
        (b'{"id":"x","source":"s"}', "expected field text, got an object without it (document 'x')"),
        (b'{"id":1,"text":"","source":"s"}', "expected a text, got a whole number - at $.id"),
        (b'{"id":"x","text":null,"source":"s"}', "expected a text, got null - at $.text (document 'x')"),
        (
            b'{"id":"x","text":"","source":"s","added":3}',
            "expected a text or null, got a whole number - at $.added (document 'x')",
        ),
        (
            b'{"id":"x","text":"","source":"s","metadata":[]}',
            "expected an object or null - at $.metadata (document 'x')",
        ),
        (
            b'{"id":"x","text":"","source":"s","metadata":"n"}',
            "expected an object or null - at $.metadata (document 'x')",
        ),
        (b"[]", "expected an object, got a list"),
        (b"null", "expected an object, got null"),
        (
            b"\xef\xbb\xbf" + GOOD,
            "expected a JSON object, got a byte order mark before it; remove it, or let `toolkit ingest` read the file",
        ),
    ],
)
def test_a_bad_row_names_path_line_and_id(line: bytes, message: str) -> None:
    with pytest.raises(DataError) as raised:
        list(_documents(GOOD, GOOD, line, GOOD))
    assert str(raised.value) == f"x/a.jsonl.gz:3: {message}"


@pytest.mark.parametrize(
    "line",
    [
        b'{"id":"x","text":"\xff","source":"s"}',
        b'{"id":"\xc3(","text":"","source":"s"}',
        b'{"id":"x","text":"\xed\xa0\x80","source":"s"}',
        b'{"id":"x","text":"\\ud800","source":"s"}',
        b'{"id":"x","text":"\\udc00\\ud800","source":"s"}',
        b'{"id":"x","text":"","source":"s"',
        b'{"id":"x","text":"","source":"s"} {}',
        b'{"id":"x","text":"","source":"s","metadata":{]}',
        b"{'id':'x'}",
        GOOD.decode().encode("utf-16"),
    ],
    ids=repr,
)
def test_a_row_that_is_not_json_in_utf_8_is_an_error(line: bytes) -> None:
    with pytest.raises(
        DataError, match=r"^x/a\.jsonl\.gz:2: expected a JSON object (in UTF-8, got a line|of characters, got)"
    ):
        list(_documents(GOOD, line))


def test_good_rows_keep_their_line_and_unknown_keys_are_allowed() -> None:
    line = b'{"extra":[1],"source":"s","text":"a\\u0000\\n\\ud83d\\ude00","id":"","created":null,"metadata":null}\r'
    (document,) = _documents(line)
    assert (document.id, document.text, document.source, document.row) == ("", "a\0\n\U0001f600", "s", line)


@pytest.mark.parametrize("kind", [DataError, AlignmentError])
def test_errors_travel_between_processes(kind: type[DataError]) -> None:
    error = pickle.loads(pickle.dumps(kind("expected a, got b", path="p", line=3, id="x")))
    assert type(error) is kind
    assert (str(error), error.path, error.line, error.id) == ("p:3: expected a, got b (document 'x')", "p", 3, "x")
