"""The page that `toolkit report` writes: whole, escaped, with the description of the output that lies beside it."""

import json
import re

import msgspec
import pytest

from tests.pipeline.conftest import Project, attributes, document, write_rows
from toolkit.report import facts

HOSTILE = "</script><script>globalThis.canary = true</script>\u2028\u202e"


@pytest.fixture
def reported(project: Project) -> Project:
    """A mix of documents that attack the page."""
    rows = [(f"{HOSTILE}{row}", row / 10) for row in range(10)]
    write_rows(project.documents / "0.jsonl.gz", [document(name, HOSTILE * 3, HOSTILE) for name, _ in rows])
    write_rows(project.attributes / "set-0/0.jsonl.gz", [attributes(name, {"q": q}, HOSTILE) for name, q in rows])
    rules = [{"drop": "q < 0.5", "name": HOSTILE}]
    output = {"format": "dolma", "path": str(project.out)}
    project.config["mix"] = {"attributes": ["set-0"], "label": "'en'", "rules": rules, "output": output}
    return project


def embedded(page: str, kind: str) -> str:
    (found,) = re.findall(rf'<script type="{re.escape(kind)}"[^>]*>(.*?)</script>', page, re.DOTALL)
    return str(found)


def test_the_page_has_the_facts_and_the_description_and_nothing_else_that_runs(reported: Project) -> None:
    reported.ok("mix")
    described = {"@type": "sc:Dataset", "name": HOSTILE}
    (reported.out / "croissant.json").write_text(json.dumps(described), encoding="utf-8")
    reported.ok("report", "-o", reported.root / "report.json")
    reported.ok("report", "-o", reported.root / "report.html")
    page = (reported.root / "report.html").read_text(encoding="utf-8")
    assert json.loads(embedded(page, "application/ld+json")) == described
    found = msgspec.json.decode(embedded(page, "application/json"), type=facts.Report)
    assert found == msgspec.json.decode((reported.root / "report.json").read_bytes(), type=facts.Report)
    assert found.runs[0].rules[0].documents == 5
    assert "<script>globalThis.canary" not in page
    assert not re.search("[\u2028\u202e]", page)
    assert not re.search(r"<(img|link|script|iframe)\b[^>]*\b(src|href)=", page), "nothing is loaded"


def test_a_broken_description_is_told(reported: Project) -> None:
    reported.ok("mix")
    (reported.out / "croissant.json").write_text("{", encoding="utf-8")
    failed = reported("report", "-o", reported.root / "report.html")
    assert "croissant.json: expected JSON, got: " in failed.err
    assert not (reported.root / "report.html").exists()
