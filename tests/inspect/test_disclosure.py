"""A disclosure of training content: every number by DuckDB from the files again, and nothing that nobody said."""

import json
from pathlib import Path
from typing import Any

import duckdb
import pytest
from publicsuffixlist import PublicSuffixList

import toolkit
from tests.pipeline.conftest import Project, document, write_rows
from toolkit.describe.disclosure import Disclosure, FormAnswer, page

pytestmark = pytest.mark.slow

WORD = r"[^\s\x0b\x1c-\x1f\x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}]+"
HEADERS = "json->>'$.warc_headers"
BY = {
    "modality": "'text'",
    "language": "json->>'$.metadata.identification.label'",
    "host": f"lower(regexp_extract({HEADERS}.warc-target-uri', '^[a-z]+://([^/:?#]+)', 1))",
    "date": f"{HEADERS}.warc-date'",
}
"""Expressions for what documents of an OSCAR output are counted by."""


def recount(out: Path) -> dict[str, list[dict[str, Any]]]:
    """What a disclosure must say of an OSCAR output, from its files alone."""
    sizes = f"""count(*)::INT documents, sum(len(regexp_extract_all(text, '{WORD}')))::INT words,
        sum(length(text))::INT characters, sum(strlen(text))::INT bytes"""
    found: dict[str, list[dict[str, Any]]] = {}
    with duckdb.connect() as connection:
        files = f"read_ndjson_objects('{out}/*/*.jsonl.gz')"
        connection.execute(f"CREATE TABLE d AS SELECT json, json->>'$.content' AS text FROM {files}")
        for name, each in BY.items():
            rows = connection.execute(f"SELECT {each} AS {name}, {sizes} FROM d GROUP BY 1").fetchall()
            names = [column[0] for column in connection.description or ()]
            found[name] = [dict(zip(names, row, strict=True)) for row in rows]
    suffixes, domains = PublicSuffixList(), dict[str, dict[str, Any]]()
    for row in found.pop("host"):
        host = row.pop("host")
        name = suffixes.privatesuffix(host) or host
        domains[name] = {key: domains.get(name, {}).get(key, 0) + value for key, value in row.items()}
    return found | {"domain": [{"domain": name, **row} for name, row in domains.items()]}


def by_id(found: Disclosure) -> dict[str, FormAnswer]:
    return {each.id: each for each in found.answers}


def assert_recounted(found: dict[str, FormAnswer], out: Path) -> None:
    """Each number of the answers about sizes, languages, domains and periods."""
    counted = recount(out)
    for id, name in (("size", "modality"), ("languages", "language"), ("domains", "domain")):
        assert sorted(found[id].rows, key=str) == sorted(counted[name], key=str), id
    words = [row["words"] for row in found["domains"].rows]
    assert words == sorted(words, reverse=True)
    assert found["domains"].totals == {"domains": len(words), "without": 0}
    dates = sorted(row["date"] for row in counted["date"])
    whole = {"source": "", "documents": counted["modality"][0]["documents"], "first": dates[0], "last": dates[-1]}
    assert (found["period"].rows, found["latest"].text) == ([whole], dates[-1])


def test_every_number_is_counted_again_from_the_output(released: Project) -> None:
    ran = released.ok("disclose", "about.disclosure.model=M-1")
    written = json.loads((released.out / "disclosure.json").read_bytes())
    found = toolkit.disclose(str(released.out))
    answers = by_id(found)
    assert_recounted(answers, released.out)
    totals = json.loads((released.out / ".toolkit" / "manifest.json").read_bytes())["totals"]
    assert answers["size"].rows[0]["documents"] == totals["kept"]
    assert f"{totals['kept']:,} of {totals['rows']:,} documents kept" in answers["processing"].text
    assert written["blank"] == [each["id"] for each in written["answers"] if not each["origin"]]
    assert {"representative", "public", "crawlers", "illegal", "sources"} <= {*written["blank"]}
    assert "model" not in written["blank"]
    assert "answered" in ran.out
    assert "complian" not in page(found).lower()
    node = released.ok("croissant", "--spec", "1.1", "--dry-run", "about.usage=duo:0000042").json
    assert node["usageInfo"] == {"@type": "sc:CreativeWork", "url": "duo:0000042"}
    assert [(each.id, each.before, each.after) for each in found.changes if each.id == "model"] == [
        ("model", "M-1", None)
    ]


def test_opt_outs_are_those_that_rules_have_read(project: Project) -> None:
    urls = {
        "a": "https://www.a.example/p/x",
        "b": "https://none.example/",
        "c": "https://x.co.uk/",
        "d": "http://[::1]/",
    }
    rows = [document(id, f"text of {id}", metadata={"url": url}) for id, url in urls.items()]
    write_rows(project.documents / "a.jsonl.gz", [*rows, document("e", "no address")])
    captures = "tests/taggers/files/robots.warc"
    project.config |= {
        "tag": {
            "rights-0": [{"tagger": "robots", "captures": captures, "agents": ["GPTBot"]}, "tdm_reservation"],
            "shape-0": ["line_shape"],
        },
        "mix": {
            "attributes": ["rights-0", "shape-0"],
            "rules": [{"drop": 'robots.agents["GPTBot"].answer == "unknown"', "name": "unknown"}],
            "output": {"format": "dolma", "path": str(project.out)},
        },
    }
    project.ok("tag")
    answers = by_id(toolkit.disclose(project.config, dry_run=True, of="dataset"))
    assert [row["domain"] for row in answers["domains"].rows] == ["::1", "a.example", "none.example", "x.co.uk"]
    assert answers["domains"].totals == {"domains": 4, "without": 1}
    assert [(row["set"], row["rule"]) for row in answers["reservations"].rows] == [("rights-0", None)] * 2
    project.ok("mix")
    project.ok("disclose")
    found = json.loads((project.out / "disclosure.json").read_bytes())
    (reserved,) = [each for each in found["answers"] if each["id"] == "reservations"]
    assert reserved["rows"] == [
        {
            "set": "rights-0",
            "tagger": "robots 1",
            "agents": "GPTBot",
            "rule": "unknown",
            "expression": 'robots.agents["GPTBot"].answer == "unknown"',
            "documents": 4,
        }
    ]
    assert project("disclose", "--check").code == 0
    project.ok("card")
    assert "## Disclosure" in (project.out / "README.md").read_text()
    assert not project("validate").out.count("disclosure.json")
    project.config["mix"]["rules"] = []
    project.ok("mix")
    assert project("disclose", "--check").code == 1
    assert "since the last one" in project.ok("disclose").out


def test_forms_and_answers_are_checked(small: Project, tmp_path: Path) -> None:
    small.ok("mix")
    form = tmp_path / "mine.yaml"
    form.write_text(
        "{title: t, source: s, date: d, sections: [{section: x, fields: [{id: a, field: f, answer: sise}]}]}"
    )
    for arguments, message in (
        (("--form", "eu"), "no form is called 'eu'"),
        (("--form", form), "mine.yaml:1: sections[0].fields[0].answer: expected one of"),
        (("about.disclosure.nobody=x",), "expected a field of the form, got 'nobody'"),
        (("--first", 3), "expected all documents"),
    ):
        small("disclose", *arguments).fails(2, message)
    assert not (small.out / "disclosure.json").exists()


def test_numbers_of_real_pages_are_counted_again(project: Project, shared: Path) -> None:
    wet = shared / "wet" / "bench" / "CC-TEST-00000.warc.wet.gz"
    project.config |= {
        "ingest": [{"format": "wet", "from": [str(wet)], "source": "cc"}],
        "tag": {"lines-0": {"tagger": "line_language"}, "language-0": {"tagger": "language", "lines": "lines-0"}},
        "mix": {
            "attributes": ["lines-0", "language-0"],
            "rules": [{"drop": "language.label is None"}],
            "output": {"format": "oscar", "path": str(project.out)},
        },
    }
    project.ok("run")
    assert_recounted(by_id(toolkit.disclose(project.config)), project.out)
