"""The page of a dataset card: what the card says, the description in it, and nothing that runs."""

import json
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.conftest import Run
from tests.inspect.conftest import ABOUT
from tests.inspect.reading import load
from tests.inspect.test_card_counted import HOSTILE
from tests.pipeline.conftest import Project, document, write_rows
from toolkit.pages import assets
from toolkit.pages.card import LARGEST, fault_of, linked_data, page_of

Attributes = list[tuple[str, str | None]]


class Page(HTMLParser):
    """What a browser would make of a page: elements with their attributes, text outside of scripts, scripts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.scripts: list[str] = []
        self._raw = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: Attributes) -> None:
        self.elements.append((tag, dict(attrs)))
        self._raw = tag if tag in ("script", "style") else ""

    def handle_endtag(self, tag: str) -> None:
        self._raw = ""

    def handle_data(self, data: str) -> None:
        (self.scripts if self._raw == "script" else self.texts).append(data)

    def of(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]


def description(folder: Path) -> Any:
    return json.loads((folder / "croissant.json").read_bytes())


@pytest.fixture
def hostile(project: Project) -> Project:
    """An output whose texts, ids, addresses and name try to be more than text."""
    rows = [
        document(f"{i}</script><b>", text, metadata={"url": f"https://a|<b>{i}.example/"})
        for i, text in enumerate(HOSTILE)
    ]
    write_rows(project.documents / "a.jsonl.gz", rows)
    about = ABOUT | {"description": "</script><script>alert(1)</script> <!-- <script> \u2028 ]]> &amp;", "examples": 5}
    about |= {"name": "A <i>corpus</i> & more", "scores": False}
    project.config |= {"mix": {"output": {"format": "dolma", "path": str(project.out)}}, "about": about}
    project.ok("mix")
    project.ok("croissant")
    project.ok("card", "--html")
    return project


def test_nothing_of_a_document_runs_or_is_an_element(hostile: Project) -> None:
    page = Page((hostile.out / "card.html").read_text(encoding="utf-8"))
    assert page.of("script") == [{"type": "application/ld+json"}]
    tags = {tag for tag, _ in page.elements}
    assert not tags & {"img", "iframe", "object", "form", "b", "i", "base", "svg", "link"} - {"img"}
    assert all(str(each["src"]).startswith("data:image/png;base64,") and each["alt"] for each in page.of("img"))
    assert not [name for _, attributes in page.elements for name in attributes if name.startswith("on")]
    assert not [attributes for _, attributes in page.elements if "style" in attributes]
    ours = ("#", "https://example.org/", "https://spdx.org/")
    assert all(str(each["href"]).startswith(ours) for each in page.of("a"))
    shown = "".join(page.texts)
    assert "<img src=x onerror=alert(1)> &lt; [a](javascript:alert(1))" in shown
    assert "A <i>corpus</i> & more" in shown
    policy = next(each["content"] for each in page.of("meta") if each.get("http-equiv"))
    assert str(policy).startswith("default-src 'none'; script-src 'none'; style-src 'sha256-")
    assert "img-src data:" in str(policy)


def test_the_page_has_the_description_that_stands_beside_it(hostile: Project) -> None:
    page = Page((hostile.out / "card.html").read_text(encoding="utf-8"))
    assert [json.loads(text) for text in page.scripts] == [description(hostile.out)]
    raw = (hostile.out / "card.html").read_text(encoding="utf-8").partition("ld+json")[2].partition("</script>")[0]
    assert not set("<&\u2028\u2029") & set(raw.partition(">")[2])


def test_a_table_has_heads_and_scrolls_by_keyboard(hostile: Project) -> None:
    page = Page((hostile.out / "card.html").read_text(encoding="utf-8"))
    assert len(page.of("table")) == len([each for each in page.of("div") if each.get("tabindex") == "0"])
    scopes = [each.get("scope") for each in page.of("th")]
    assert set(scopes) == {"col", "row"}
    names = [each["href"] for each in page.of("a") if str(each["href"]).startswith("#")]
    ids = [f"#{attributes['id']}" for _, attributes in page.elements if "id" in attributes]
    assert set(names) <= set(ids)
    assert len(set(ids)) == len(ids)
    assert [tag for tag, _ in page.elements].count("h1") == 1


@pytest.mark.slow
def test_a_page_follows_the_card_and_the_description(hostile: Project, run: Run) -> None:
    before = (hostile.out / "card.html").read_bytes()
    hostile.ok("card")  # it is there, so it is written with the card
    assert (hostile.out / "card.html").read_bytes() == before
    hostile.ok("card", "--check")
    hostile.ok("validate")
    to = hostile.root / "published"
    dry = hostile.ok("publish", "--to", to, "--dry-run", "--json").json["files"]
    assert set(dry[-4:]) >= {"card.html", "croissant.json", "README.md"}
    assert dry[-1] == "README.md"
    hostile.config["about"]["keywords"] = ["new"]
    hostile.ok("croissant", "--quiet")
    ran = hostile("validate").fails(1)
    assert "card.html: expected the Croissant file beside it, got another; run `toolkit card --html`" in ran.out
    hostile.ok("card")
    hostile.ok("publish", "--to", to)
    run("validate", to).succeeds()
    (hostile.out / "card.html").unlink()
    assert hostile.ok("publish", "--to", to, "--json").json["deleted"] == ["card.html"]
    (hostile.out / "croissant.json").unlink()
    hostile("card", "--html").fails(2, "croissant.json: expected a description for card.html; run `toolkit croissant`")


def test_what_the_user_keeps_in_a_card_is_in_the_page() -> None:
    text = (
        "---\na: 1\n---\n# T\n\n<!-- toolkit: card. Made. -->\n\n## S\n\n"
        "<!-- toolkit: keep x -->\n**mine** <em>no</em>\n<!-- toolkit: end x -->\n"
    )
    made = page_of(text, {}, b"{}")
    assert "<strong>mine</strong> &lt;em&gt;no&lt;/em&gt;" in made
    assert "toolkit:" not in made
    assert "a: 1" not in made
    assert fault_of(made, text, b"{}") == ""
    assert fault_of(made, text + "x", b"{}") == "the card"
    assert fault_of(made, text, b'{"a": 1}') == "the Croissant file"


def test_a_large_description_goes_without_its_files() -> None:
    files = [{"@type": "cr:FileObject", "@id": f"{i}", "contentUrl": "x" * 100} for i in range(LARGEST // 100)]
    sets = [{"@type": "cr:FileSet", "@id": "s"}]
    whole = {"distribution": [*files, *sets], "recordSet": [{"@id": "r", "examples": [1]}]}
    found = json.loads(linked_data(msgspec.json.encode(whole)))
    assert found == {"distribution": sets, "recordSet": [{"@id": "r"}]}


@pytest.mark.parametrize(
    "text", ["</script>", "<!--<script>", "]]>", "\u2028\u2029", "\u202e", "&lt;", "\x7f\ufeff", '"\\']
)
def test_json_in_a_script_is_the_same_value_and_no_html(text: str) -> None:
    found = assets.embedded(msgspec.json.encode({text: [text]}))
    assert json.loads(found) == {text: [text]}
    assert not set("<>&\u2028\u2029\u202e\x7f\ufeff") & set(found)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # pandas and rdflib have many
def test_mlcroissant_takes_the_description_of_a_page(hostile: Project) -> None:
    pytest.importorskip("mlcroissant", reason="the extra `croissant` is not installed")
    text = "".join(Page((hostile.out / "card.html").read_text(encoding="utf-8")).scripts)
    path = hostile.out / "from-page.json"
    path.write_text(text)
    assert len(list(load(path).records("documents"))) == len(HOSTILE)
