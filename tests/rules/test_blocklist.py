"""Blocklists: what an entry is, which documents it matches, and where it stands."""

import gzip
from pathlib import Path

import pytest

from toolkit.data.urls import host_of, url_of
from toolkit.errors import DataError
from toolkit.rules.blocklist import BlocklistEntries, Entries


def blocklist(tmp_path: Path, *lines: str | bytes, entries: Entries = "any", end: bytes = b"\n") -> BlocklistEntries:
    path = tmp_path / "list.txt"
    path.write_bytes(b"".join((line.encode() if isinstance(line, str) else line) + end for line in lines))
    return BlocklistEntries([str(path)], entries)


@pytest.mark.parametrize(
    ("entry", "matches", "others"),
    [
        ("d-1", [("d-1", "s", None), ("d-1", "t", None)], [("d-12", "s", None), ("D-1", "s", None)]),
        ("s\td-1", [("d-1", "s", None)], [("d-1", "t", None), ("s\td-1", "s", None)]),
        ("s\ta\tb", [("a\tb", "s", None)], [("b", "s", None)]),
        ('{"id": "1", "source": "s", "text": "long", "n": [1]}', [("1", "s", None)], [("1", "t", None)]),
        ('{"id": "1", "source": null}', [("1", "s", None), ("1", "t", None)], [("2", "s", None)]),
        (
            "Example.COM",
            [("", "", "http://example.com"), ("", "", "HTTPS://a.b.EXAMPLE.com:8080/x?y"), ("Example.COM", "", None)],
            [
                ("", "", "http://example.com.org/"),
                ("", "", "http://myexample.com/"),
                ("", "", "http://o.org/example.com"),
            ],
        ),
        ("example.com.", [("", "", "http://example.com/")], []),
        (
            "bücher.de",
            [("", "", "http://xn--bcher-kva.de/"), ("", "", "http://www.BÜCHER.de/")],
            [("", "", "http://bucher.de")],
        ),
        ("xn--bcher-kva.de", [("", "", "http://bücher.de/a")], []),
        ("пример.рф", [("", "", "http://пример.рф/")], []),
        (
            "http://user@Example.com:80/a/b/?q=1#top",
            [("", "", "https://example.com/a/b?q=1"), ("", "", "example.com:443/a/b/?q=1#x")],
            [
                ("", "", "https://example.com/a/b"),
                ("", "", "https://example.com/A/b?q=1"),
                ("", "", "http://www.example.com/a/b?q=1"),
            ],
        ),
        ("http://a.b:81/", [("", "", "http://a.b:81")], [("", "", "http://a.b/")]),
        ("http://[", [("http://[", "", None)], [("", "", "http://a/")]),
    ],
)
def test_an_entry_matches_these_documents_and_no_others(
    tmp_path: Path, entry: str, matches: list[tuple[str, str, str | None]], others: list[tuple[str, str, str | None]]
) -> None:
    found = blocklist(tmp_path, "another", entry, "third.example")
    for each in matches:
        assert found.find(*each) == [1], each
    for each in others:
        assert found.find(*each) == [], each


@pytest.mark.parametrize(
    ("entries", "matched"), [("any", {"id", "host", "URL"}), ("ids", {"id"}), ("hosts", {"host"}), ("urls", {"URL"})]
)
def test_entries_are_only_what_they_are_said_to_be(tmp_path: Path, entries: Entries, matched: set[str]) -> None:
    found = blocklist(
        tmp_path, "a.example", "http://a.example/x" if entries != "urls" else "a.example/x", entries=entries
    )
    asked = {
        "id": found.find("a.example", "s", None),
        "host": found.find("1", "s", "http://b.a.example/y"),
        "URL": [each for each in found.find("1", "s", "https://a.example/x") if each == 1 and entries != "hosts"],
    }
    assert {name for name, each in asked.items() if each} == matched
    assert found.needs_url is (entries != "ids")


def test_a_url_with_another_inside_and_no_scheme_is_a_url(tmp_path: Path) -> None:
    found = blocklist(tmp_path, "a.example/go?to=http://b.example/", entries="urls")
    assert found.find("1", "s", "https://a.example/go?to=http://b.example/") == [0]


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_lines_are_entries_whatever_ends_them_and_comments_are_none(tmp_path: Path, end: bytes) -> None:
    found = blocklist(tmp_path, "\ufeffa", "", "# b", "   ", " c\t", "s\td", "\t# e", end=end)
    assert [found.find(id, "s", None) for id in ("a", "# b", "c", "d", "b", "")] == [[0], [], [1], [2], [], []]
    assert [found.show(number).rpartition(".txt:")[2] for number in range(len(found))] == ["1: a", "5: c", "6: s\td"]


def test_an_entry_that_stands_twice_is_matched_in_both_places(tmp_path: Path) -> None:
    first, none, second = tmp_path / "a.txt", tmp_path / "b.txt.gz", tmp_path / "c.jsonl.gz"
    first.write_text("1\n2\n")
    none.write_bytes(gzip.compress(b"# nothing\n"))
    second.write_bytes(gzip.compress(b'{"id": "1"}'))
    found = BlocklistEntries([str(first), str(none), str(second)])
    assert found.find("1", "s", None) == [0, 2]
    assert [found.show(number) for number in found.without([0])] == [f"{first}:2: 2", f'{second}:1: {{"id": "1"}}']


def test_what_is_shown_of_an_entry_that_is_a_whole_document_is_short(tmp_path: Path) -> None:
    shown = blocklist(tmp_path, '{"id": "1", "text": "' + "x" * 5000 + '"}').show(0)
    assert len(shown) < 400
    assert shown.endswith("xx…")


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ('{"id": 1}', "list.txt:2: expected a text, got a whole number - at $.id"),
        ('{"source": "s"}', "list.txt:2: expected field id, got an object without it"),
        ('{"id": "1"', "list.txt:2: expected a JSON object"),
        (b"\xff", "list.txt:2: expected UTF-8"),
        (b'{"id": "\xff"}', "list.txt:2: "),
    ],
)
def test_a_line_that_is_no_entry_is_an_error_with_its_place(tmp_path: Path, entry: str | bytes, message: str) -> None:
    with pytest.raises(DataError) as raised:
        blocklist(tmp_path, "fine", entry)
    assert message in str(raised.value)


def test_the_url_of_a_document_is_where_it_is_said_to_be_or_where_it_usually_is() -> None:
    wet = {"warc_headers": {"warc-target-uri": "http://a/"}, "url": "http://b/"}
    assert url_of({"metadata": wet}, "") == "http://a/"
    assert url_of({"metadata": {"url": "http://b/", "warc_headers": None}}, "") == "http://b/"
    assert url_of({"metadata": {"a": {"b": "http://c/"}}}, "metadata.a.b") == "http://c/"
    wget = {"warc_headers": {"warc-target-uri": "<http://a.example/b>"}}
    assert url_of({"metadata": wget}, "") == "http://a.example/b"
    assert host_of("<http://a.example/b>") == "a.example"
    for metadata in (None, {}, {"url": 3}, {"url": {"x": 1}}, [1]):
        assert url_of({"metadata": metadata}, "") is None
