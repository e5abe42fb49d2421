"""The page of a report: its facts, and what shows them, in one file."""

from typing import Any

import msgspec

from toolkit.pages import assets

SECTIONS = (
    ("summary", "Summary", ""),
    ("two", "Two runs", "Differences are those of the second run from the first."),
    ("rules", "Rules", "What each rule costs. Choose one to see the documents that it drops."),
    (
        "scores",
        "Scores",
        "Move a threshold, by mouse or by the arrow keys, to see what it would drop and keep by itself.",
    ),
    ("samples", "Samples", ""),
    ("languages", "Languages", "Choose a language, and the whole page is about it."),
    ("groups", "Sources and hosts", ""),
    ("lengths", "Lengths", ""),
    ("spans", "Personal data and spans", ""),
    ("duplicates", "Duplicates", ""),
    ("pairs", "Near duplicates", "Pairs of documents, and what only one of them has."),
    ("budget", "Budget", ""),
    ("came-in", "What came in", ""),
    ("speed", "Speed", ""),
    ("made-with", "Made with", ""),
)
"""Places of the page: what scripts know it by, its heading, and what one can do there."""

STYLES = (
    f"{assets.CHARTS}.css",
    *(f"static/{name}.css" for name in ("base", "document", "charts", "report/frame", "report/parts")),
)
SCRIPTS = (
    f"{assets.CHARTS}.js",
    *(f"static/{name}.js" for name in ("dom", "tables", "document", "histogram", "difference")),
    *(
        f"static/report/{name}.js"
        for name in ("state", "summary", "rules", "scores", "samples", "sizes", "two", "start")
    ),
)


class _Totals(msgspec.Struct):
    rows: int = 0
    remaining: int = msgspec.field(default=0, name="kept")


class _Run(msgspec.Struct):
    name: str
    totals: _Totals


class _Report(msgspec.Struct):
    """Text of the page without a script."""

    title: str
    toolkit: str
    runs: list[_Run]


def render(facts: bytes, jsonld: bytes | None = None) -> bytes:
    """Return the page of a report: HTML in UTF-8, whole in one file, the same bytes for the same facts.

    Args:
        facts: a report as JSON; `toolkit.report.facts` has its form.
        jsonld: a description of the dataset for search engines, as JSON-LD; none without.

    Raises:
        msgspec.ValidationError: if the facts are not those of a report.
    """
    from markupsafe import Markup

    values: dict[str, Any] = {"facts": Markup(assets.embedded(facts))}  # noqa: S704 - escaped by `embedded`
    values["jsonld"] = None if jsonld is None else Markup(assets.embedded(jsonld))  # noqa: S704
    report = msgspec.json.decode(facts, type=_Report)
    result = assets.page("report.html", STYLES, SCRIPTS, title=report.title, report=report, sections=SECTIONS, **values)
    return result.encode()
