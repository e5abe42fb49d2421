"""The text of a page's bytes, as browsers find it."""

import pytest

from toolkit.ingest.web.html import charset_of, decode_page

RUSSIAN = "Привет, мир! Это довольно длинный текст на русском языке, чтобы было что узнавать."
JAPANESE = "これは日本語の文章です。文字コードの判定を試します。"


def page(text: str, codec: str, head: str = "") -> bytes:
    return f"<html><head>{head}<title>t</title></head><body><p>{text}</p></body></html>".encode(codec)


@pytest.mark.parametrize(
    ("label", "charset"),
    [
        ("latin1", "windows-1252"),
        (" ISO-8859-1 ", "windows-1252"),
        ("us-ascii", "windows-1252"),
        ("utf8", "utf-8"),
        ("GB2312", "gbk"),
        ("x-sjis", "shift_jis"),
        ("iso-8859-9", "windows-1254"),
        ("iso-8859-2", "iso-8859-2"),
        ("tis-620", "windows-874"),
        ("ks_c_5601-1987", "euc-kr"),
        ("utf-16", "utf-16le"),
        ("macintosh", "macintosh"),
        ("x-mac-cyrillic", "x-mac-cyrillic"),
        ("none", None),
        ("utf-7", None),
        ("é", None),
        ("", None),
    ],
)
def test_labels_mean_what_browsers_take_them_for(label: str, charset: str | None) -> None:
    assert charset_of(label) == charset


@pytest.mark.parametrize(
    ("data", "label", "charset", "text"),
    [
        (page(RUSSIAN, "cp1251"), "windows-1251", "windows-1251", RUSSIAN),
        (page(RUSSIAN, "koi8-r", '<META content="text/html; charset=KOI8-R" http-equiv=x>'), "", "koi8-r", RUSSIAN),
        (page(RUSSIAN, "cp1251", "<!-- <meta charset=koi8-r> --><meta charset='cp1251'>"), "", "windows-1251", RUSSIAN),
        (page(RUSSIAN, "koi8-r", "<meta charset=windows-1251>"), "koi8-r", "koi8-r", RUSSIAN),
        (b'<?xml version="1.0" encoding="shift_jis"?>' + page(JAPANESE, "cp932"), "", "shift_jis", JAPANESE),
        (page("① 髙", "cp932"), "Shift_JIS", "shift_jis", "① 髙"),
        (page("€ “x”", "cp1252"), "iso-8859-1", "windows-1252", "€ “x”"),
        ("\ufeff".encode("utf-16-le") + page(JAPANESE, "utf-16-le"), "utf-8", "utf-16le", JAPANESE),
        ("\ufeff".encode("utf-16-be") + page(JAPANESE, "utf-16-be"), "", "utf-16be", JAPANESE),
        ("\ufeff".encode() + page(JAPANESE, "utf-8"), "euc-jp", "utf-8", JAPANESE),
        (page(JAPANESE, "utf-8", "<meta charset=utf-16>"), "", "utf-8", JAPANESE),
        (page("x", "ascii", " " * 5000 + "<meta charset=gbk>"), "", "gbk", "x"),
        (page("\u4e2d\u6587\U00020087", "gb18030"), "gb2312", "gbk", "\u4e2d\u6587\U00020087"),
    ],
)
def test_the_encoding_is_found_as_browsers_do(data: bytes, label: str, charset: str, text: str) -> None:
    found = decode_page(data, label)
    assert found.charset == charset
    assert f"<p>{text}</p>" in found.text
    assert not found.text.startswith("\ufeff")
    assert (found.guessed, found.disbelieved, found.replaced) == (False, False, False)


@pytest.mark.parametrize(
    ("codec", "charset", "text"),
    [
        ("utf-8", "utf-8", JAPANESE),
        ("cp1251", "windows-1251", RUSSIAN),
        ("euc_jp", "euc-jp", JAPANESE),
        ("ascii", "utf-8", "plain"),
    ],
)
def test_without_a_declaration_it_is_found_from_the_bytes(codec: str, charset: str, text: str) -> None:
    found = decode_page(page(text, codec), "no such encoding")
    assert (found.charset, found.disbelieved, found.replaced) == (charset, False, False)
    assert found.guessed == (charset != "utf-8")
    assert text in found.text


def test_plain_text_declares_nothing() -> None:
    data = "<meta charset=koi8-r> ü".encode()
    assert decode_page(data, "", declares=False).charset == "utf-8"
    assert decode_page(data, "").charset == "koi8-r"


def test_an_encoding_in_which_most_is_invalid_is_not_believed() -> None:
    found = decode_page(page(RUSSIAN, "cp1251"), "utf-8")
    assert (found.charset, found.disbelieved, found.replaced) == ("windows-1251", True, False)
    assert RUSSIAN in found.text
    found = decode_page(page(RUSSIAN, "cp1251", "<meta charset=windows-1251>"), "utf-8")
    assert (found.charset, found.disbelieved, found.guessed) == ("windows-1251", True, False)


def test_a_few_invalid_bytes_are_replaced() -> None:
    found = decode_page(page(RUSSIAN, "utf-8") + b"\xff and \xc3", "utf-8")
    assert (found.charset, found.disbelieved, found.replaced) == ("utf-8", False, True)
    assert found.text.endswith("\ufffd and \ufffd")
    cut = page(JAPANESE, "utf-8")[:-18]
    assert decode_page(cut + "語".encode()[:2], "").charset == "utf-8"


def test_bytes_that_windows_1252_does_not_assign_are_controls() -> None:
    found = decode_page(b"a\x81b\x80", "latin1")
    assert (found.text, found.replaced) == ("a\x81b€", False)
    greek = decode_page(b"<p>\xe1\xe2\xe3\xd2</p>", "windows-1253")
    assert (greek.text, greek.replaced) == ("<p>αβγ\ufffd</p>", True)
