"""The page of a dataset card, in a browser: quiet, alone, good for everybody, and nothing of a document runs."""

import base64
import json
from pathlib import Path

import pytest

from tests.browser import made
from tests.browser.chromium import Browser
from toolkit.describe.card_numbers import code, fenced, quoted
from toolkit.pages.card import page_of

PIXEL = base64.b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII=")
HOSTILE = f"</pre><script>{made.CANARY}</script>\n<img src=x onerror='{made.CANARY}'>\n```\n# x\n\u202etxt"
CROISSANT = {"@type": "sc:Dataset", "name": f"</script><script>{made.CANARY}</script><!--"}


@pytest.fixture(scope="module")
def page(folder: Path) -> str:
    """The address of the page of a card, whose texts are hostile, and whose tables and lines are long."""
    cells = " | ".join(["a long heading"] * 12)
    table = f"| {cells} |\n|{' --- |' * 11} ---: |\n" + f"| {code(HOSTILE)} |{' 1,000 |' * 11}\n"
    parts = [
        "---\npretty_name: x\n---\n# A corpus",
        "## Statistics\n\n![How long documents are](card.png)",
        table,
        "## Samples",
        quoted(HOSTILE + "x" * 3000),
        quoted("שלום עולם " * 40),
        "\n".join(fenced(HOSTILE.split("\n"), "text")),
        f"<script>{made.CANARY}</script>",
    ]
    written = folder / "card.html"
    made_page = page_of("\n\n".join(parts), {"card.png": PIXEL}, json.dumps(CROISSANT).encode())
    written.write_text(made_page, encoding="utf-8")
    return written.as_uri()


@pytest.mark.slow
@pytest.mark.parametrize(("width", "dark"), [(360, False), (1400, True)])
def test_it_is_quiet_alone_and_good_for_everybody(browser: Browser, page: str, width: int, dark: bool) -> None:
    browser.open(page, width, dark=dark)
    assert browser.console() == []
    assert [each for each in browser.requests() if not each.startswith("data:image/png;")] == [page]
    assert browser.run("return document.documentElement.scrollWidth") <= width
    assert browser.axe() == []
    assert browser.run("return document.querySelector('img').naturalWidth") == 1
    assert browser.run("return document.querySelectorAll('script').length") == 1
    found = browser.run("return JSON.parse(document.querySelector('script').textContent)")
    assert found == CROISSANT
    direction = "return [...document.querySelectorAll('pre')].map(each => getComputedStyle(each).direction)"
    assert browser.run(direction)[:2] == ["ltr", "rtl"]
