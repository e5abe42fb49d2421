"""The page of `toolkit view` in a browser: hostile documents run nothing, and the keyboard is enough."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.browser.chromium import Browser
from tests.view.sites import TEXTS, Site, lay_out, serving

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    root = tmp_path_factory.mktemp("site")
    with serving(lay_out(root), root / "l.jsonl") as found:
        yield found


def _address(site: Site, kept: str = "") -> str:
    return f"http://127.0.0.1:{site.port}/?token={site.token}#{kept}"


def _open(browser: Browser, site: Site, kept: str = "", width: int = 1400, *, dark: bool = False) -> None:
    browser.open(_address(site, kept), width, dark=dark)
    browser.wait("document.querySelector('#main h2')")


def _press(browser: Browser, *keys: str) -> None:
    from selenium.webdriver.common.action_chains import ActionChains

    for key in keys:
        ActionChains(browser.driver).send_keys(key).perform()


def _shows(browser: Browser, id: str) -> None:
    browser.wait(f"document.querySelector('#main h2')?.textContent === {json.dumps(id)}")


def test_hostile_documents_run_nothing_and_reach_nobody(browser: Browser, site: Site) -> None:
    _open(browser, site)
    browser.run("document.getElementById('why').click()")
    for number in range(len(TEXTS)):
        browser.run(f"document.querySelectorAll('#list button')[{number}].click()")
        _shows(browser, f"hostile-{number} <b>")
        browser.wait("document.querySelector('#explained .fate')")
        assert browser.run("return globalThis.canary") is None
        made = "#main :is(script, img, svg, style, link, a, base, b)"
        assert browser.run(f"return document.querySelectorAll('{made}').length") == 0
    assert browser.run("return document.querySelector('#explained tbody th').textContent") == "long </td><script>"
    asked = [each for each in browser.requests() if not each.startswith(("about:", "data:"))]
    assert asked
    assert {each.split("/api/")[0].split("?")[0].rstrip("/") for each in asked} == {f"http://127.0.0.1:{site.port}"}
    assert browser.console() == []


def test_the_policy_holds_even_if_the_page_made_a_mistake(browser: Browser, site: Site) -> None:
    """What a document could do if its text became HTML: nothing."""
    _open(browser, site)
    attempts = """
      const told = [];
      document.addEventListener("securitypolicyviolation", (event) => told.push(event.effectiveDirective));
      const main = document.getElementById("main"), code = "globalThis.canary = true";
      try { main.innerHTML = `<img src=x onerror='${code}'>`; } catch (error) { told.push(error.name); }
      const script = document.createElement("script");
      try { script.textContent = code; document.body.append(script); } catch (error) { told.push(error.name); }
      const frame = document.createElement("iframe"); frame.src = "http://127.0.0.1:1/"; document.body.append(frame);
      const image = document.createElement("img"); image.src = "http://127.0.0.1:1/x.png"; document.body.append(image);
      const done = arguments[0];
      const look = () => ["TypeError", "img-src"].every((each) => told.includes(each))
        ? done([told, globalThis.canary === undefined]) : setTimeout(look, 20);
      look();
    """
    told, is_clean = browser.driver.execute_async_script(attempts)
    assert is_clean
    assert {"TypeError", "img-src"} <= {*told}
    browser.console()


def test_labels_by_keyboard_alone(browser: Browser, site: Site) -> None:
    _open(browser, site, f"first={len(TEXTS)}")
    _shows(browser, "b-0")
    _press(browser, "j")
    _shows(browser, "b-1")
    _press(browser, "1")
    browser.wait("document.querySelector('#list [aria-current] .given')")
    _press(browser, "j")
    _shows(browser, "b-2")
    _press(browser, "2")
    browser.wait("document.querySelectorAll('#list .given').length === 2")
    _press(browser, "k")
    _shows(browser, "b-1")
    assert browser.run("return document.activeElement.closest('#list') !== null")
    rows = [json.loads(line) for line in Path(site.labels.path).read_text().splitlines()]
    assert [(row["data"]["document_id"], row["annotations"][0]["result"][0]["value"]) for row in rows] == [
        ("b-1", {"choices": ["keep"]}),
        ("b-2", {"choices": ["drop"]}),
    ]
    _press(browser, "1")
    browser.wait("document.querySelectorAll('#list .given').length === 1")
    _press(browser, "a", "3")  # and where all is answered, to the next one
    browser.wait("document.querySelectorAll('#list .given').length === 2")
    _press(browser, "1")
    _shows(browser, "b-2")
    _press(browser, "a", "k")
    _shows(browser, "b-1")
    _press(browser, "1")
    browser.wait("document.querySelectorAll('#main .labelling [aria-pressed=true]').length === 1")
    _press(browser, "3")
    browser.wait("document.querySelectorAll('#list .given').length === 1")
    _press(browser, "\ue007")  # Enter: to the document
    assert browser.run("return document.activeElement.id") == "main"
    _press(browser, "\ue00c", "n")  # Escape: back; the next page
    _shows(browser, "b-20")
    _press(browser, "/")
    _press(browser, *"line_shape.lines > 99", "\ue007")
    browser.wait("document.querySelector('#range').textContent.includes('of ')")
    browser.wait("document.querySelectorAll('#list button').length < 5")
    _press(browser, "\ue00c", "g", *"b-77", "\ue007")
    _shows(browser, "b-77")
    browser.run("document.getElementById('clear').click()")
    _press(browser, "g", *(["\ue003"] * 4), *"#101", "\ue007")
    browser.wait("document.querySelector('#range').textContent.startsWith('101–')")
    browser.run(
        "document.getElementById('where').value = 'line_shape.liness > 3';"
        "document.getElementById('search').requestSubmit()"
    )
    browser.wait("document.getElementById('problem').textContent.includes(\"did you mean 'lines'?\")")
    assert browser.run("return document.getElementById('where').getAttribute('aria-invalid')") == "true"
    assert [line for line in browser.console() if "400" not in line] == []


def test_the_document_is_one_of_the_list_and_keys_label_it(browser: Browser, site: Site) -> None:
    """After a filter, a rule and their end; without a document keys do nothing; what others have labelled is shown."""
    path = Path(site.labels.path)

    def label_of(id: str) -> list[str]:
        rows = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
        found = [row["annotations"][0]["result"] for row in rows if row["data"]["document_id"] == id]
        return [
            result["value"]["choices"][0] for results in found for result in results if "choices" in result["value"]
        ]

    def search(where: str) -> None:
        browser.run(f"document.getElementById('where').value = {json.dumps(where)}")
        browser.run("document.getElementById('search').requestSubmit()")

    _open(browser, site, f"first={len(TEXTS)}")
    _shows(browser, "b-0")
    before = label_of("b-0")
    search("document.id == 'b-33'")
    _shows(browser, "b-33")
    _press(browser, "2")
    browser.wait("document.querySelector('#list [aria-current] .given')")
    assert (label_of("b-33"), label_of("b-0")) == (["drop"], before)
    search("document.id == 'nobody'")
    browser.wait("document.getElementById('range').textContent === 'no documents'")
    assert browser.run("return document.getElementById('main').textContent") == ""
    content = path.read_bytes()
    _press(browser, "1")
    assert path.read_bytes() == content
    browser.run("document.getElementById('clear').click()")
    browser.wait("document.querySelector('#list [aria-current]') && document.querySelector('#main h2')")
    browser.run("document.getElementById('rules-box').open = true")
    rules = browser.run("return document.querySelectorAll('#rules button').length")
    for rule in range(rules):
        browser.run(f"document.querySelectorAll('#rules button')[{rule}].click()")
        browser.wait("!document.getElementById('range').textContent.includes('looking')")
        there = [f"(document.querySelector('{each}') !== null)" for each in ("#list button", "#list [aria-current]")]
        browser.wait(" && ".join(f"{each} === (document.querySelector('#main h2') !== null)" for each in there))
    browser.run("document.getElementById('clear').click()")
    search("document.id == 'b-34' or document.id == 'b-33'")
    _shows(browser, "b-33")
    path.write_bytes(path.read_bytes().replace(b'"drop"', b'"keep"'))  # an editor
    _press(browser, "j")
    _shows(browser, "b-34")
    _press(browser, "2")
    browser.wait("document.getElementById('problem').textContent.includes('b-33: verdict: keep, was drop')")
    browser.wait("document.querySelector('#list .given').textContent === 'verdict: keep'")
    assert (label_of("b-33"), label_of("b-34")) == (["keep"], ["drop"])
    _press(browser, "k")
    _shows(browser, "b-33")
    assert browser.run("return document.querySelector('#main .labelling [aria-pressed=true]').textContent") == "keep1"


@pytest.mark.parametrize(("width", "dark"), [(360, False), (360, True), (800, False), (1400, True)])
def test_accessible_and_no_wider_than_the_screen(browser: Browser, site: Site, width: int, dark: bool) -> None:
    _open(browser, site, "at=0.4", width, dark=dark)
    if width < 800:
        browser.run("document.querySelector('#list button').click()")
        browser.wait("document.body.classList.contains('reading')")
    browser.run("document.getElementById('why').click(); document.getElementById('sets-box').open = true")
    browser.wait("document.querySelector('#explained .fate')")
    assert browser.axe() == []
    assert browser.run("return document.documentElement.scrollWidth") <= width


def test_without_the_token_or_the_server_the_page_says_so(browser: Browser, site: Site) -> None:
    browser.open(f"http://127.0.0.1:{site.port}/")
    assert "open the whole address" in browser.run("return document.body.textContent")
    _open(browser, site)
    browser.run("globalThis.fetch = () => Promise.reject(new TypeError('gone'))")
    _press(browser, "j")
    browser.wait("document.getElementById('problem').textContent.includes('has ended; start it again')")
