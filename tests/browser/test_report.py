"""The page of a report, in a browser: it works, for everybody, and no document that it shows can do anything."""

import json
import tomllib
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.browser import made
from tests.browser.chromium import Browser
from tests.marks import slow
from toolkit.mix.rule_effects.counts import Totals
from toolkit.pages import assets
from toolkit.pages.report import SCRIPTS, STYLES, render
from toolkit.report import facts

pytestmark = pytest.mark.slow

REPORT = made.report(documents=6000, languages=13, runs=2)
OPEN = "for (const one of [...each.querySelectorAll('details')].slice(0, 2)) one.open = true"
JSONLD = {"@type": "Dataset", "name": f"</script><script>{made.CANARY}</script>"}


@pytest.fixture(scope="module")
def page(folder: Path) -> str:
    """The address of a report on two runs, with hostile documents."""
    written = folder / "report.html"
    written.write_bytes(render(made.encoded(REPORT), json.dumps(JSONLD).encode()))
    return written.as_uri()


def show(browser: Browser, address: str, width: int = 1400, *, dark: bool = False) -> None:
    browser.open(address, width, dark=dark)
    browser.wait("document.documentElement.dataset.ready")


def choose(browser: Browser, label: str) -> None:
    """Choose a language, as people do."""
    browser.run("delete document.documentElement.dataset.ready")
    browser.run(
        "const select = document.getElementById('label'); select.value = arguments[0];"
        "select.dispatchEvent(new Event('change'))",
        f"={label}",
    )
    browser.wait("document.documentElement.dataset.ready")


def opened(browser: Browser, address: str, width: int, *, dark: bool) -> None:
    """Show a page with something open, and a chart drawn, in each section."""
    show(browser, address, width, dark=dark)
    browser.run(f"for (const each of document.querySelectorAll('main > section')) {OPEN}")
    browser.wait("document.querySelector('#scores canvas') || (document.getElementById('scores').scrollIntoView(), 0)")


@pytest.mark.parametrize(("width", "dark"), slow((360, False), (800, True), (1400, False)))
def test_it_is_quiet_alone_and_as_wide_as_the_window(browser: Browser, page: str, width: int, dark: bool) -> None:
    opened(browser, page, width, dark=dark)
    assert browser.console() == []
    assert browser.requests() == [page]
    assert browser.run("return document.documentElement.scrollWidth") <= width


def test_no_number_of_a_table_scrolls_out_of_a_narrow_window(browser: Browser, page: str) -> None:
    show(browser, page, 400)
    boxes = browser.run(
        "return [...document.querySelectorAll('.sheet .scroll')].map((box) => box.scrollWidth - box.clientWidth)"
    )
    assert boxes
    assert max(boxes) <= 1


@pytest.mark.parametrize(("width", "dark"), slow((360, False), (1400, True)))
def test_people_without_a_mouse_or_eyes_can_use_it(browser: Browser, page: str, width: int, dark: bool) -> None:
    opened(browser, page, width, dark=dark)
    assert browser.axe() == []


def test_what_hostile_documents_have_stays_text(browser: Browser, page: str) -> None:
    show(browser, page)
    choose(browser, "en")
    browser.run("for (const each of document.querySelectorAll('details')) each.open = true")
    browser.wait(
        f"document.querySelectorAll('#samples .document').length >= {len(made.HOSTILE)}".replace(
            "arguments[0]", str(len(made.HOSTILE))
        )
    )
    for more in browser.run("return [...document.querySelectorAll('#samples .document button')]"):
        browser.run("arguments[0].click()", more)
    shown = browser.run(
        "return [...document.querySelectorAll('#samples .document .lines')].map(each => each.textContent)"
    )
    assert made.CANARY in shown[0]
    assert "constructor.constructor" in shown[3]
    assert {"RLO", "LRI", "PS", "LS"} <= {
        *browser.run("return [...document.querySelectorAll('.control')].map(each => each.textContent)")
    }
    assert len(shown[6]) > 1_000_000
    assert browser.run(
        "return globalThis.canary === undefined"
        " && !document.querySelector('main :is(script, img, iframe, base, meta, link, style)')"
    )
    assert browser.run(
        "return [...document.querySelectorAll('a')].every(each => /^(https?|file):$/.test(each.protocol))"
    )
    assert browser.console() == []
    assert browser.requests() == [page]
    described = browser.run("return document.querySelector('script[type=\"application/ld+json\"]').textContent")
    assert json.loads(described) == JSONLD


def test_the_policy_stops_what_would_run(browser: Browser, page: str) -> None:
    """The guard behind the guard: code in the page that is not ours does not run, wherever it comes from."""
    show(browser, page)
    browser.run(
        "document.querySelector('main').insertAdjacentHTML('beforeend', arguments[0])",
        f"<img src=x onerror='{made.CANARY}'><p style='color: red'></p>"
        f'<a id=trap href="javascript:{made.CANARY}">x</a>',
    )
    browser.run(
        "const made = document.createElement('script'); made.textContent = arguments[0]; document.body.append(made)",
        made.CANARY,
    )
    browser.run("document.getElementById('trap').click()")
    said = browser.wait("globalThis.canary || true") and browser.console()
    assert browser.run("return globalThis.canary") is None
    assert len([each for each in said if "Content Security Policy" in each]) >= 3


def test_a_language_is_chosen_for_the_whole_page_and_its_costliest_rule_shown(browser: Browser, page: str) -> None:
    show(browser, page)
    choose(browser, "fi")
    run = REPORT.runs[0]
    worst = max(run.rules, key=lambda rule: rule.labels["fi"][0])
    assert worst.name in browser.run("return document.querySelector('#summary .lede').textContent")
    assert browser.run("return document.querySelector('#rules tbody th').textContent") == worst.name
    assert worst.name in browser.run("return document.querySelector('#rule h3').textContent")
    places = next(each for each in run.of_rules if each.rule == worst.name).labels.get("fi", [])
    assert browser.run("return document.querySelectorAll('#rule ol.samples')[0]?.children.length || 0") == min(
        10, len(places)
    )
    browser.run("document.querySelector('#languages tbody th button').click()")
    browser.wait("document.documentElement.dataset.label === 'en'")


def test_tables_are_sorted_and_filtered_by_keys(browser: Browser, page: str) -> None:
    show(browser, page)
    cells = "[...document.querySelectorAll('#languages tbody td:nth-child(3)')]"
    numbers = f"{cells}.map(each => Number(each.innerText.replace(/\\D/g, '')))"
    read = "#languages thead th:nth-child(3)"
    assert (first := browser.run(f"return {numbers}")) == sorted(first, reverse=True)
    browser.press(f"{read} button", "\ue007")
    assert (then := browser.run(f"return {numbers}")) == sorted(then)
    assert browser.run(f"return document.querySelector('{read}').getAttribute('aria-sort')") == "ascending"
    browser.press("#languages input[type=search]", *"hebr")
    assert browser.run("return [...document.querySelectorAll('#languages tbody th')].map(each => each.innerText)") == [
        "Hebrew he"
    ]
    assert browser.run("return document.getElementById('said').textContent").startswith("1 of ")


def test_a_threshold_is_moved_by_keys_by_the_mouse_and_to_a_half(browser: Browser, page: str) -> None:
    show(browser, page)
    choose(browser, "fi")
    score = next(each for each in REPORT.runs[0].scores if each.field == "language.prob")
    mark, total = score.marks[0], sum(score.counts["fi"])
    card = "[id='score-language.prob']"
    browser.run(f"document.querySelector(\"{card}\").scrollIntoView({{behavior: 'instant'}})")
    browser.wait(f'document.querySelector("{card} .over")')

    def dropped() -> tuple[float, int, int]:
        knob = browser.run(f"return document.querySelector(\"{card} [role=slider]\").getAttribute('aria-valuenow')")
        cells = browser.run(
            f'return [...document.querySelectorAll("{card} .effect tr:first-child td")].map(each => each.innerText)'
        )
        drops, keeps = [int("".join(filter(str.isdigit, each))) for each in cells[1:3]]
        return float(knob), drops, keeps

    assert dropped() == (0.6, mark.holds["fi"], total - mark.holds["fi"]), "as configured, it is exact"
    browser.press(f"{card} [role=slider]", *["\ue014"] * 5)
    value, drops, keeps = dropped()
    assert value == pytest.approx(0.61)
    assert mark.holds["fi"] < drops
    assert drops + keeps == total
    browser.run(f'document.querySelector("{card} .half").click()')
    value, drops, keeps = dropped()
    assert abs(drops - keeps) < 0.01 * total
    from selenium.webdriver import ActionChains

    knob = browser.driver.find_element("css selector", f"{card} [role=slider]")
    ActionChains(browser.driver).drag_and_drop_by_offset(knob, -80, 0).perform()
    assert dropped()[0] < value
    browser.run(f'[...document.querySelectorAll("{card} .dial button")].at(-1).click()')
    assert dropped()[0] == 0.6


def test_what_many_documents_have_goes_or_stays_together(browser: Browser, page: str) -> None:
    """Of 100 documents 70 have 0 and 20 have 1, each the edge of a bin; the others are spread over the first bin."""
    show(browser, page)
    bins = "const bins = page.bins([0, 1, 2]), counts = [80, 20], on = [70, 20];"
    below = "[0, 0.5, 1, 1.5, -1].map(value => bins.below(counts, value, on))"
    assert browser.run(f"{bins} return {below}") == [0, 75, 80, 100, 0]
    assert browser.run(f"{bins} return {below.replace('on)', 'on, true)')}") == [70, 75, 100, 100, 0]
    assert browser.run(f"{bins} return [0.5, 0.75, 0.9].map(share => bins.quantile(counts, share, on))") == [0, 0.5, 1]


def test_a_score_without_a_threshold_can_be_given_one(browser: Browser, page: str) -> None:
    show(browser, page)
    browser.run("[...document.querySelectorAll('#scores > .body > button')].at(-1).click()")
    browser.run("document.querySelector('[data-key=\"try/perplexity.value\"]').click()")
    browser.wait("document.querySelector('[id=\"score-perplexity.value\"] [role=slider]')")
    shown = browser.run("return document.querySelector('[id=\"score-perplexity.value\"] .effect tbody tr').innerText")
    assert shown.count("≈") == 2


def test_two_runs_stand_side_by_side(browser: Browser, page: str) -> None:
    show(browser, page)
    one, other = REPORT.runs
    rows = browser.run(
        "return [...document.querySelector('#two tbody').rows].map(row => [...row.cells].map(cell => cell.textContent))"
    )
    assert rows[1][1:3] == [f"{one.totals.kept:,}", f"{other.totals.kept:,}"]
    assert browser.run(
        "return [...document.querySelectorAll('#two del, #two ins')].map(each => each.textContent.trim())"
    ) == ["− # crawl-0.yaml", "+ # crawl-1.yaml"]
    assert "1,234 documents dropped as copies of documents" in browser.run("return duplicates.textContent")
    browser.run("delete document.documentElement.dataset.ready; page.report.choose({run: 1})")
    browser.wait("document.documentElement.dataset.ready")
    assert f"{other.totals.kept:,}" in browser.run("return document.querySelector('#summary .tile.kept').textContent")


def test_what_stays_and_what_is_written_are_told_apart(browser: Browser, folder: Path) -> None:
    """A rule `repeat` writes documents again: more may be written than were read, and some are dropped all the same."""
    copied = made.report(documents=900, languages=3, hostile=False)
    (run,) = copied.runs
    for each in run.labels:
        each.after = made.sizes_of(3 * each.after.documents)
    run.totals.copies, run.totals.copy_chars = 2 * run.totals.kept, 2 * run.totals.kept_chars
    (folder / "copied.html").write_bytes(render(made.encoded(copied), None))
    show(browser, (folder / "copied.html").as_uri())
    tiles = "return [...document.querySelectorAll('.tile')].map(tile => tile.innerText.split('\\n').slice(0, 2))"
    told = dict(browser.run(tiles))
    assert told["Documents that stay"] == f"{run.totals.kept:,}"
    assert told["Documents written"] == f"{3 * run.totals.kept:,}"
    choose(browser, "fi")
    told = dict(browser.run(tiles))
    read = next(each.before.documents for each in run.labels if each.label == "fi")
    stay = read - sum(rule.labels["fi"][0] for rule in run.rules)
    assert (told["Documents read"], told["Documents that stay"]) == (f"{read:,}", f"{stay:,}")
    assert told["Documents written"] == f"{3 * stay:,}"
    assert f"{read - stay:,} are dropped" in browser.run("return document.querySelector('.meter-legend').textContent")


def test_a_report_with_nothing_in_it_is_a_page(browser: Browser, folder: Path) -> None:
    empty = facts.Report(
        title="empty",
        toolkit="0",
        languages={},
        runs=[facts.Run(name="x", totals=Totals(), missing={"scores": "no set"})],
    )
    (folder / "empty.html").write_bytes(render(msgspec.json.encode(empty)))
    show(browser, (folder / "empty.html").as_uri())
    assert browser.console() == []
    hidden = browser.run("return [...document.querySelectorAll('main > section[hidden]')].map(each => each.id)")
    assert "two" in hidden
    assert "scores" in hidden
    assert "no set" in browser.run("return document.querySelector('#summary details').textContent")
    assert browser.axe() == []


def test_json_in_a_page_is_the_same_value_and_ends_no_element() -> None:
    value: Any = {"a": "</script><!--\u2028\u202e&amp;\x7f", "<b>": ["\U0001f600", 1.5, None]}
    written = assets.embedded(msgspec.json.encode(value))
    assert json.loads(written) == value
    assert not {*written} & {*"<>&\u2028\u202e\x7f"}


def test_parts_can_stand_in_a_page() -> None:
    """No part ends the element that it stands in, and none asks for anything outside."""
    for name in (*STYLES, *SCRIPTS):
        text = assets.text(name).lower()
        assert "</s" not in text.replace("</style", "</s") if name.endswith(".css") else "</script" not in text
        assert "<!--" not in text
        assert "@import" not in text
        assert name.endswith(".js") or "url(" not in text


def test_an_installation_has_all_parts() -> None:
    listed = tomllib.loads((assets.FOLDER.parents[1] / "pyproject.toml").read_text(encoding="utf-8"))
    patterns = listed["tool"]["setuptools"]["package-data"]["toolkit.pages"]
    packed = {path for pattern in patterns for path in assets.FOLDER.glob(pattern) if path.is_file()}
    there = {path for path in assets.FOLDER.rglob("*") if path.is_file() and path.suffix not in (".py", ".pyc")}
    assert packed == there


def test_the_same_facts_make_the_same_page() -> None:
    written = made.encoded(made.report(hostile=False, documents=1000, languages=5))
    assert render(written) == render(written)
    with pytest.raises(msgspec.ValidationError):
        render(b'{"title": 1}')
