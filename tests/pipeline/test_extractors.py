"""Extractors: every built-in one keeps the contract, and a page that one crashes on costs exactly that page."""

from typing import Any

import pytest

from tests.pages import blocks
from tests.pipeline.conftest import Project, read_rows
from tests.pipeline.test_warc import HTML, http, record, warc, write_warc
from toolkit import Extracted, Extractor, Page
from toolkit.ingest.web.extractor import EXTRACTORS
from toolkit.testing import check_extractor

pytestmark = pytest.mark.slow

FIRST = (
    "The library of the town opens at nine, and it closes at six on all days of the week but for Sundays, when nobody "
    "works there. Whoever brings back a book late pays for it, and whoever loses one buys another."
)
SECOND = (
    "In the summer it is closed for two weeks, so that the shelves can be counted, and books that nobody has asked for "
    "in ten years are sold in front of the house. The money is spent on new ones, which readers may propose."
)
ARTICLE = (
    f"<html><head><title>Hours</title></head><body><nav><a href=/>Home</a></nav><p>{FIRST}</p><p>{SECOND}</p></body>"
)
TEXTS = {
    "resiliparse": f"Hours\nHome\n{FIRST}\n{SECOND}",
    "trafilatura": f"{FIRST}\n{SECOND}",
    "justext": f"{FIRST}\n{SECOND}",
}

FRAGILE = '''
import ctypes
import time

from toolkit import Extracted, Extractor, Page


class Fragile(Extractor):
    """The title, and what it knows of the page; some pages crash it."""

    word: str = "text"

    def extract(self, page: Page) -> Extracted:
        if "segfault" in page.decoded:
            ctypes.string_at(0)
        if "loop" in page.decoded:
            while True:
                pass
        if "raise" in page.decoded:
            raise ValueError("no such page")
        text = f"{self.word}: {len(page.html)} bytes"
        return Extracted(text, "A title", {"url": page.url, "type": page.headers["content-type"][-1]})
'''


@pytest.mark.parametrize("name", EXTRACTORS.names())
def test_an_extractor_keeps_the_contract(name: str) -> None:
    check_extractor(EXTRACTORS.find(name), {ARTICLE: TEXTS[name]}, new_process=False)


class _Changing(Extractor):
    """Gives another text each time."""

    def extract(self, page: Page) -> Extracted:
        self.__dict__["calls"] = self.__dict__.get("calls", 0) + 1
        return Extracted(f"text {self.__dict__['calls']}")


def test_the_suite_names_what_is_wrong() -> None:
    with pytest.raises(AssertionError, match="keep nothing from one page to the next"):
        check_extractor(_Changing, {ARTICLE: "text 1"}, new_process=False)


def fragile(project: Project, *bodies: str, **options: object) -> dict[str, Any]:
    (project.root / "own.py").write_text(FRAGILE, encoding="utf-8")
    path = write_warc(project.root, *(record(i, http(body, HTML)) for i, body in enumerate(bodies, 1)))
    return warc(path, extractor=f"{project.root}/own.py:Fragile", timeout=0.5, **options)


def test_a_page_that_crashes_an_extractor_costs_that_page_and_is_named(project: Project) -> None:
    pages = ("one", "segfault", "loop", "raise", "five5")
    project.ingest(fragile(project, *pages, word="page", on_error="skip")).succeeds()
    rows = read_rows(project.data / "documents/cc/w.jsonl.gz")
    assert [row["text"] for row in rows] == ["page: 3 bytes", "page: 5 bytes"]
    assert rows[0]["metadata"]["page"] == {"title": "A title", "url": "http://host/1", "type": "text/html"}
    counts = project.ok("ingest", "--json").json["counts"]
    assert counts == {"documents": 2, "lost.crash": 2, "lost.timeout": 1}
    kept = read_rows(project.data / ".toolkit/rejects/cc/w.jsonl.gz")
    assert [(row["number"], row["reason"]) for row in kept] == [(2, "crash"), (3, "timeout"), (4, "crash")]
    assert "SIGSEGV" in kept[0]["message"]
    assert "ValueError: no such page" in kept[2]["message"]


def test_an_extractor_that_fails_on_nearly_every_page_fails_its_entry(project: Project) -> None:
    assert project.ingest(fragile(project, *["raise"] * 9, "one")).code == 0, "single pages are lost alone"
    entry = fragile(project, *["raise"] * 10, "one", on_error="skip")
    message = "expected the texts of 11 pages, got 1: 10 lost.crash; `on_error: skip` keeps"
    project.ingest(entry).fails(1, message, "w.warc.gz")
    project.ingest(entry).fails(1, message)
    project.config["tag"] = {"length-0": "length"}
    project("tag").fails(1, message)
    project.ingest({**entry, "max_rejected": 1}).succeeds()


def test_an_extractor_that_changes_makes_other_documents(project: Project) -> None:
    entry = fragile(project, "one")
    assert project.ingest(entry).code == 0
    assert "(1 before)" in project.ingest(entry).out
    assert "word: 'text' -> 'page'" in project.ingest({**entry, "word": "page"}).err
    own = project.root / "own.py"
    own.write_text(FRAGILE.replace("bytes", "octets"), encoding="utf-8")
    project.ingest(entry).fails(2, "the code of the format has changed: own.py")


def test_other_extractors_write_sets_row_by_row(project: Project) -> None:
    bodies = (ARTICLE, "<p>segfault", "<p>loop", "plain")
    (project.root / "own.py").write_text(FRAGILE, encoding="utf-8")
    own = f"{project.root}/own.py:Fragile"
    path = write_warc(
        project.root,
        *(
            record(i, http(body, HTML if body != "plain" else "Content-Type: text/plain"))
            for i, body in enumerate(bodies)
        ),
    )
    extract = {"traf-0": "trafilatura", "own-0": {"extractor": own, "word": "page"}}
    entry = warc(path, title=False, extract=extract, timeout=0.5)
    project.config |= {"tag": {"length-0": "length"}, "processes": 1}
    project.config["mix"] = {
        "attributes": [{"set": "traf-0", "as": {"extracted": "traf"}}, {"set": "own-0", "as": {"extracted": "own"}}],
        "rules": [{"drop": "own is None", "name": "lost"}, {"keep": "traf is not None and traf.chars > 4"}],
        "output": {"format": "dolma", "path": str(project.root / "out")},
    }
    project.config["ingest"] = [entry]
    project.ok("run")
    assert project.ok("ingest", "--json").json["counts"] == {
        "documents": 4,
        "extract.own-0.crash": 1,
        "extract.own-0.timeout": 1,
    }
    found = {name: read_rows(project.attributes / name / "cc/w.jsonl.gz") for name in extract}
    traf, mine = ([row["attributes"]["extracted"] for row in rows] for rows in found.values())
    assert traf[0] == {"text": f"{FIRST}\n{SECOND}", "chars": len(FIRST) + 1 + len(SECOND)}
    assert mine == [{"text": f"page: {len(ARTICLE)} bytes", "chars": 15}, None, None, {"text": "plain", "chars": 5}]
    ids = [row["id"] for row in read_rows(project.documents / "cc/w.jsonl.gz")]
    assert all([row["id"] for row in rows] == ids for rows in found.values())
    kept = read_rows(project.root / "out/documents/documents.jsonl.gz")
    assert [row["id"] for row in kept] == [ids[0], ids[3]]
    assert project.ok("validate").code == 0
    assert project.ok("status").code == 0
    assert "(1 before)" in project.ok("ingest").out
    project.config["ingest"] = [{**entry, "extract": {"traf-0": {"extractor": "trafilatura", "comments": False}}}]
    project("ingest").fails(2, "extract.traf-0.comments: True -> False")


def test_the_extractor_of_the_page_keeps_the_contract(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    own, suite = (block.text for block in blocks("docs/extractors.md") if block.language == "python")
    (project.root / "paragraphs.py").write_text(own, encoding="utf-8")
    monkeypatch.syspath_prepend(str(project.root))
    names: dict[str, Any] = {}
    exec(suite, names)
    names["test_it_is_an_extractor"]()
    path = write_warc(project.root, record(1, http(ARTICLE, HTML)))
    project.config["ingest"] = [warc(path, extractor=f"{project.root}/paragraphs.py:Paragraphs", min_words=5)]
    project.ok("ingest")
    (row,) = read_rows(project.data / "documents/cc/w.jsonl.gz")
    assert row["text"] == f"{FIRST}\n{SECOND}"
    assert row["metadata"]["page"] == {"title": "Hours", "paragraphs": 2}
