"""WARC files become documents: pages in any encoding, and what crawlers and servers do to them."""

import base64
import gzip
import tracemalloc
from collections import Counter
from pathlib import Path
from typing import Any

import brotli
import pytest

from tests.pipeline.conftest import JsonRows, Project, read_rows, tree
from toolkit.config.settings import ConfigNode
from toolkit.errors import ConfigError, DataError
from toolkit.ingest.formats.warc import Warc
from toolkit.ingest.reader import READERS, Draft, Input
from toolkit.ingest.web.extractor import ExtractorSpec, SentPage, page_reader

RUSSIAN = "Привет, мир! Это довольно длинный текст на русском языке."
JAPANESE = "これは日本語の文章です。文字コードの判定を試します。"
HTML = "Content-Type: text/html"
FETCHED = "2024-01-01T00:00:00Z"


def record(
    number: int, block: bytes, *, type: str = "response", extra: str = "", kind: str = "application/http"
) -> bytes:
    head = (
        f"WARC/1.0\r\nWARC-Type: {type}\r\nWARC-Target-URI: http://host/{number}\r\nWARC-Date: 2024-01-01"
        f"T00:00:00Z\r\nWARC-Record-ID: <urn:uuid:{number}>\r\n{extra}Content-Type: {kind}\r\n"
        f"Content-Length: {len(block)}\r\n\r\n"
    )
    return head.encode() + block + b"\r\n\r\n"


def http(body: str | bytes, *headers: str, status: str = "200 OK") -> bytes:
    block = body.encode() if isinstance(body, str) else body
    return "\r\n".join((f"HTTP/1.1 {status}", *headers, "", "")).encode() + block


def page(text: str, codec: str = "utf-8", head: str = "") -> bytes:
    return f"<html><head>{head}</head><body><p>{text}</p></body></html>".encode(codec)


def write_warc(root: Path, *records: bytes, name: str = "w.warc.gz") -> Path:
    """A WARC file: a gzip member for each record, as crawlers write them."""
    path = root / "in" / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b"".join(gzip.compress(each) if name.endswith(".gz") else each for each in records))
    return path


def read(path: Path, max_bytes: int = 100_000_000, **options: Any) -> tuple[list[Draft], Counter[str]]:
    source = Input(str(path), "s", max_bytes, None)
    return list(Warc.with_options(ConfigNode(options))(**options).read(source)), source.counts


def warc(path: Path, **options: Any) -> dict[str, Any]:
    return {"format": "warc", "from": [str(path)], "source": "cc", **options}


def rows(project: Project, path: Path, **options: Any) -> tuple[JsonRows, dict[str, int]]:
    project.config["ingest"] = [warc(path, **options)]
    counts: dict[str, int] = project.ok("ingest", "--json").json["counts"]
    return project.shard("cc/w.jsonl.gz"), counts


# --- when it was made -------------------------------------------------------------------------------------------------


DATES = {
    "Date: Tue, 20 Apr 2021 12:00:00 GMT": "2021-04-20T12:00:00Z",
    "date: Tuesday, 20-Apr-21 12:00:00 GMT": "2021-04-20T12:00:00Z",
    "DATE:Tue Apr 20 12:00:00 2021": "2021-04-20T12:00:00Z",
    "Date: Tue, 20 Apr 2021 12:00:00 +0200": "2021-04-20T10:00:00Z",
    "Date: Sunday, 20-Apr-80 12:00:00 GMT": FETCHED,  # 1980: there was no web
    "Date: Thu, 01 Jan 1970 00:00:00 GMT": FETCHED,
    "Date: Mi, 20. April": FETCHED,
    "Date:": FETCHED,
    "X-Date: Tue, 20 Apr 2021 12:00:00 GMT": FETCHED,
}


def test_pages_were_created_when_their_server_says(project: Project) -> None:
    records = [record(i, http(page("text"), HTML, date)) for i, date in enumerate(DATES)]
    found, _ = rows(project, write_warc(project.root, *records))
    assert [row["created"] for row in found] == list(DATES.values())
    assert {row["added"] for row in found} == {FETCHED}


def test_without_any_date_there_is_none(project: Project) -> None:
    bare = record(1, http(page("text"), HTML)).replace(b"WARC-Date: 2024-01-01T00:00:00Z\r\n", b"")
    sent = record(2, http(page("text"), HTML, "Date: never")).replace(b"WARC-Date: 2024-01-01T00:00:00Z\r\n", b"")
    file = record(3, page("text"), type="resource", kind="text/html")
    found, _ = rows(project, write_warc(project.root, bare, sent, file), resources=True)
    assert [(row.get("added"), row.get("created")) for row in found] == [(None, None), (None, None), (FETCHED, FETCHED)]


# --- what is read -----------------------------------------------------------------------------------------------------

PAGE = """<!doctype html><html lang=en><head><title>Boats &amp;
 birds</title><meta charset=utf-8><style>p {color: red}</style><script>var x = "<p>not this</p>"</script></head>
<body><nav><ul><li><a href=/a>Home</a><li>News</ul></nav>
<h1>On   boats</h1><!-- nor this --><p>First <b>line</b>,<br>second&nbsp;line.
<p hidden>secret</p><table><tr><td>one<td>two<tr><td>three</table><img alt="a bird" src=b.png>
<form><input value=field><button>Send</button></form><noscript>No script.</noscript>
<pre>  def f():
    pass</pre>&#x1F426; &lt;end&gt;</body></html>"""

TEXT = """Boats & birds
Home
News
On boats
First line,
second line.
secret
one two
three
def f():
pass
\U0001f426 <end>"""


def test_a_page_becomes_a_document(project: Project) -> None:
    info = record(0, b"software: x\r\n", type="warcinfo")
    answer = record(1, http(PAGE, "Content-Type: Text/HTML; charset=UTF-8"), extra="X-One: a\r\nX-ONE: b\r\n")
    found, counts = rows(project, write_warc(project.root, info, answer))
    assert found == [
        {
            "id": "<urn:uuid:1>",
            "text": TEXT,
            "source": "cc",
            "added": "2024-01-01T00:00:00Z",
            "created": "2024-01-01T00:00:00Z",
            "metadata": {
                "warc_headers": {
                    "warc-type": "response",
                    "warc-target-uri": "http://host/1",
                    "warc-date": "2024-01-01T00:00:00Z",
                    "warc-record-id": "<urn:uuid:1>",
                    "x-one": "a, b",
                    "content-type": "application/http",
                    "content-length": found[0]["metadata"]["warc_headers"]["content-length"],
                },
                "http": {"content_type": "Text/HTML; charset=UTF-8", "charset": "utf-8", "headers": {}, "meta": {}},
            },
        }
    ]
    assert counts == {"documents": 1, "record.warcinfo": 1}
    assert "1 done (1 before)" in project.ok("ingest").out


def test_options_add_and_leave_out_parts_of_a_page() -> None:
    def lines(**options: Any) -> list[str]:
        read_page = page_reader(ExtractorSpec("resiliparse", options))
        return read_page(SentPage(PAGE.encode(), "", is_html=True)).text.split("\n")

    assert lines(title=False) == TEXT.split("\n")[1:]
    assert "a bird" in " ".join(lines(alt_texts=True))
    assert "No script." in " ".join(lines(noscript=True))
    assert "Send" in " ".join(lines(form_fields=True))
    assert "/a" in " ".join(lines(links=True))
    assert "• News" in lines(list_bullets=True)
    assert "    pass" in lines(layout="formatted")
    assert "News" not in lines(main_content=True)
    assert "On boats" in lines(main_content=True)


def test_records_and_answers_that_are_no_pages_are_counted(tmp_path: Path) -> None:
    kinds = ["image/png", "application/json; charset=utf-8", "text/css", "IMAGE/PNG"]
    path = write_warc(
        tmp_path,
        record(1, b"GET / HTTP/1.1\r\n\r\n", type="request"),
        record(2, b"fetch: 1", type="metadata"),
        record(3, b"<p>x", type="resource", kind="text/html"),
        record(4, b"text", type="conversion"),
        record(5, http(page("moved"), HTML, status="301 Moved")),
        record(6, http(page("gone"), HTML, status="404 Not Found")),
        record(7, b"20240101 1.2.3.4", kind="text/dns"),
        *(record(8, http("x", f"Content-Type: {kind}")) for kind in kinds),
        record(9, http("", HTML)),
        record(10, http("<p> <br>", HTML)),
        record(11, http(b"%PDF-1.4 ...", HTML)),
        record(12, http("xx", HTML, "Content-Encoding: compress")),
        record(13, http(page("kept"), HTML)),
    )
    drafts, counts = read(path)
    assert [draft.text for draft in drafts] == ["kept"]
    assert counts == {
        "record.request": 1,
        "record.metadata": 1,
        "record.resource": 1,
        "record.conversion": 1,
        "status.301": 1,
        "status.404": 1,
        "not_http": 1,
        "content_type.image/png": 2,
        "content_type.application/json": 1,
        "content_type.text/css": 1,
        "empty": 1,
        "no_text": 1,
        "binary": 1,
        "content_encoding.compress": 1,
    }
    drafts, counts = read(path, status=(404,), resources=True, content_types=("text/html", "text/css"))
    assert [draft.text for draft in drafts] == ["x", "gone"]


def test_plain_text_stays_as_it_is_and_a_missing_type_is_sniffed(tmp_path: Path) -> None:
    path = write_warc(
        tmp_path,
        record(1, http("  a\r\n\r\n<p>b &amp; c\n", "Content-Type: text/plain")),
        record(2, http(page("no type"))),
        record(3, http("no type, no tag", "Content-Type: nonsense")),
        record(4, http(b"\x00\x01\x02")),
    )
    drafts, counts = read(path)
    assert [draft.text for draft in drafts] == ["  a\r\n\r\n<p>b &amp; c\n", "no type", "no type, no tag"]
    assert counts == {"content_type.missing": 3, "content_type.application/octet-stream": 1}


def test_codings_and_encodings_are_undone(tmp_path: Path) -> None:
    chunked = b"5\r\n<p>ab\r\n4\r\ncdef\r\n0\r\n\r\n"
    path = write_warc(
        tmp_path,
        record(1, http(chunked, HTML, "Transfer-Encoding: chunked")),
        record(2, http(page("not chunked"), HTML, "Transfer-Encoding: chunked")),
        record(3, http(gzip.compress(page("zipped")), HTML, "Content-Encoding: gzip")),
        record(4, http(brotli.compress(page("brotli")), HTML, "Content-Encoding: br")),
        record(5, http(page(RUSSIAN, "cp1251"), HTML + "; charset=windows-1251")),
        record(6, http(page(JAPANESE, "cp932", "<meta charset=shift_jis>"), HTML)),
        record(7, http(b"\xff\xfe" + page(JAPANESE, "utf-16-le"), HTML + "; charset=utf-8")),
        record(8, http(page(RUSSIAN, "cp1251"), HTML + "; charset=utf-8")),
        record(9, http(page(RUSSIAN) + b"\xff", HTML + "; charset=utf-8"), extra="WARC-Truncated: length\r\n"),
        record(10, http(page(RUSSIAN, "koi8-r"), HTML)),
        record(11, http(page("a\0b\x0b&#xD800;&#0;"), HTML)),
    )
    drafts, counts = read(path)
    texts = ["abcdef", "not chunked", "zipped", "brotli", RUSSIAN, JAPANESE, JAPANESE, RUSSIAN, RUSSIAN + "\n\ufffd"]
    assert [draft.text for draft in drafts[:-1]] == [*texts, RUSSIAN]
    assert drafts[-1].text.encode()
    charsets = [draft.metadata["http"]["charset"] for draft in drafts if isinstance(draft.metadata, dict)]
    assert charsets[4:10] == ["windows-1251", "shift_jis", "utf-16le", "windows-1251", "utf-8", "koi8-r"]
    assert counts == {
        "http.not_chunked": 1,
        "charset.disbelieved": 1,
        "charset.guessed": 2,
        "charset.replaced": 1,
        "truncated.length": 1,
    }


# --- what is bad ------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_page_that_takes_too_long_costs_one_page_and_is_kept_aside(project: Project) -> None:
    slow = "<p>slow" + "<span>" * 100_000 + "</div>" * 100_000
    path = write_warc(project.root, *(record(i, http(b, HTML)) for i, b in enumerate(("<p>a", slow, "<p>b"))))
    found, counts = rows(project, path, timeout=0.5, on_error="skip")
    assert [row["text"] for row in found] == ["a", "b"]
    assert counts == {"documents": 2, "lost.timeout": 1}
    (kept,) = read_rows(project.data / ".toolkit/rejects/cc/w.jsonl.gz")
    assert (kept["number"], kept["reason"]) == (2, "timeout")
    assert base64.b64decode(kept["base64"]) == http(slow, HTML)


@pytest.mark.slow
@pytest.mark.parametrize("extractor", ["resiliparse", "trafilatura"])
def test_hostile_pages_cost_nothing_but_themselves(tmp_path: Path, extractor: str) -> None:
    hostile = [
        "<div>" * 100_000 + "x",
        "<b><p>" * 10_000,
        "<table><tr><td>" * 20_000,
        "<" * 1_000_000,
        "&" * 1_000_000,
        "<!--" * 100_000,
        "<script>" + "x" * 1_000_000,
        "\0" * 1_000_000,
        "<svg><![CDATA[" * 10_000,
        "<select>" * 50_000,
        "<a " + " ".join(f"a{i}=1" for i in range(150_000)) + ">x",
    ]
    last = "<html><body><p>The last page is an ordinary one, and long enough to be content.</p></body></html>"
    path = write_warc(tmp_path, *(record(i, http(body, HTML)) for i, body in enumerate((*hostile, last))))
    drafts, counts = read(path, extractor=extractor, timeout=2)
    assert drafts[-1].text.startswith("The last page")
    lost = sum(counts[name] for name in ("lost.timeout", "lost.crash", "no_text", "binary"))
    assert len(drafts) + lost == len(hostile) + 1


@pytest.mark.slow
def test_what_is_too_large_is_passed_over(tmp_path: Path) -> None:
    video = record(2, http(b"\1" * 5_000_000, "Content-Type: video/mp4"))
    path = write_warc(tmp_path, record(1, http(page("a"), HTML)), video, record(3, http(page("b" * 900), HTML)))
    for name in ("w.warc.gz", "w.warc"):
        path = write_warc(
            tmp_path, record(1, http(page("a"), HTML)), video, record(3, http(page("b"), HTML)), name=name
        )
        drafts, counts = read(path, max_bytes=1_000_000)
        assert [draft.text for draft in drafts] == ["a", "b"]
        assert counts["too_large"] == 1
    bomb = record(1, http(gzip.compress(b"<p>" + b"x" * 9_000_000), HTML, "Content-Encoding: gzip"))
    drafts, counts = read(write_warc(tmp_path, bomb))
    assert (drafts, counts) == ([], {"too_large": 1})


@pytest.mark.slow
def test_a_large_record_is_not_held(tmp_path: Path) -> None:
    video = record(1, http(bytes(60_000_000), "Content-Type: video/mp4"))
    path = write_warc(tmp_path, video, record(2, http("x", "Content-Type: image/png")))
    tracemalloc.start()
    assert read(path, max_bytes=1_000_000)[1]["too_large"] == 1
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20_000_000


def test_a_truncated_record_is_an_error_or_kept_aside(project: Project) -> None:
    records = [record(i, http(page(f"page {i}"), HTML)) for i in range(3)]
    path = write_warc(project.root, records[0], records[1][:-30], records[2], name="w.warc")
    project.ingest(warc(path)).fails(1, f"{path}: record 2: expected two line ends")
    found, counts = rows(project, path, on_error="skip")
    assert [row["text"] for row in found] == ["page 0", "page 2"]
    assert counts["rejected.record"] == 1


def test_an_arc_file_is_named(tmp_path: Path) -> None:
    path = write_warc(tmp_path, b"filedesc://x.arc.gz 0.0.0.0 20240101000000 text/plain 70\n1 0 Alexa\n" * 3)
    with pytest.raises(DataError, match="expected a WARC file, got one in the older format ARC"):
        read(path)


@pytest.mark.slow
def test_the_same_bytes_with_any_number_of_processes(project: Project) -> None:
    for n in range(3):
        write_warc(project.root, *(record(i, http(PAGE + str(i), HTML)) for i in range(3)), name=f"{n}.warc.gz")
    trees = []
    for processes in (1, 2):
        project.config |= {"processes": processes, "dataset": str(project.root / f"data{processes}")}
        project.config["ingest"] = [warc(project.root / "in" / "*.gz")]
        project.ok("ingest")
        trees.append(tree(project.root / f"data{processes}" / "documents"))
    assert trees[0] == trees[1]
    assert len(trees[0]) == 3


def test_without_trafilatura_the_message_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"pip install 'tagmix\[trafilatura\]'"):
        Warc.with_options(ConfigNode({"extractor": "trafilatura"}))(extractor="trafilatura").check()


# --- real files -------------------------------------------------------------------------------------------------------

REAL = {
    "aut_example.warc.gz": 129,
    "ccia_html-lang-attribute.warc": 5,
    "ccia_text-extraction-test.warc": 1,
    "dolma_sample-0000.warc.gz": 22,
    "dolma_sample-0001.warc.gz": 15,
    "resiliparse_clipped.warc.gz": "truncated",
    "resiliparse_clueweb-quirk.warc.gz": 29,
    "resiliparse_warcfile.warc.gz": 16,
    "smart_open_crlf_at_1k_boundary.warc.gz": 1,
    "warcio_example-bad-non-chunked.warc.gz": 1,
    "warcio_example-digest.warc": 0,
    "warcio_example-iana.org-chunked.warc": 1,
    "warcio_example-trunc.warc": "record 3: expected two line ends",
    "warcio_example-wrong-chunks.warc.gz": "record 1: expected two line ends",
    "warcio_example.arc.gz": "the older format ARC",
    "warcio_example.warc": 1,
    "warcio_example.warc.gz": 1,
    "warcio_post-test.warc.gz": 0,
    "whirlwind.warc.gz": 1,
}
"""Documents of each file, or what its error says."""


@pytest.mark.slow
@pytest.mark.parametrize("name", REAL)
def test_real_files_are_read_or_named(shared: Path, name: str) -> None:
    expected = REAL[name]
    if isinstance(expected, str):
        with pytest.raises(DataError, match=expected) as error:
            read(shared / "warc" / name)
        assert name in str(error.value)
    else:
        drafts, _ = read(shared / "warc" / name)
        assert len(drafts) == expected


def test_every_real_file_is_known(shared: Path) -> None:
    assert {path.name for path in (shared / "warc").iterdir()} == set(REAL)


def test_the_text_is_near_that_of_common_crawl(shared: Path) -> None:
    (theirs,) = READERS.find("wet")().read(Input(str(shared / "wet/whirlwind.warc.wet.gz"), "s", 10**8, None))
    ours = read(shared / "warc/whirlwind.warc.gz")[0][0]
    common = Counter(theirs.text.split()) & Counter(ours.text.split())
    assert common.total() / len(ours.text.split()) > 0.98
    assert common.total() / len(theirs.text.split()) > 0.92


@pytest.mark.slow
def test_addresses_in_angle_brackets_are_found_as_they_are(project: Project) -> None:
    """WARC 1.0 has them so, and GNU Wget writes them."""
    records = [record(1, http(page("A text"), HTML)), record(2, http("no page", "Content-Type: image/png"))]
    bracketed = [
        each.replace(b"http://host/", b"<http://host/").replace(b"\r\nWARC-Date", b">\r\nWARC-Date") for each in records
    ]
    project.ingest(warc(write_warc(project.root, *bracketed))).succeeds()
    shown = project.ok("head", "--id", "http://host/1", "--json").json
    assert shown["documents"][0]["id"] == "<urn:uuid:1>"
    project.ok("head", "--id", "http://host/2").shows("content_type.image/png")
    (project.root / "list.txt").write_text("<http://host/1>\n")
    taken = project.ok("takedown", project.root / "list.txt", "--json").json
    assert ([each["id"] for each in taken["documents"]], taken["unmatched"]) == (["<urn:uuid:1>"], [])
