"""Line ends other than a line feed between the lines that C4 keeps: datatrove puts line feeds there."""

import json
from pathlib import Path

import pytest

from tests.oracles.c4 import C4
from tests.oracles.fineweb import Fineweb
from tests.oracles.frame import Oracle, write_pages
from tests.oracles.pages import Page
from tests.oracles.written import SENTENCES

ENDS = ("\r", "\v", "\f", "\x1c", "\x1d", "\x1e", "\x85", "\u2028", "\u2029")


@pytest.mark.parametrize("kind", [C4, Fineweb], ids=["c4", "fineweb"])
def test_pages_with_odd_line_ends_are_those_with_line_feeds(kind: type[Oracle], tmp_path: Path) -> None:
    """The same decision, and the same text, whichever character ends the lines."""
    lines = [line.replace(". ", f". {number} ") for number, line in enumerate(SENTENCES["en"].split("\n"))]
    few = [*lines, *["Home page here today"] * 3]  # repeated lines, of which FineWeb drops a page that has too many
    oracle = kind()
    pages = []
    for name, own in (("plain", lines), ("few", few)):
        for number, end in enumerate(("\n", "\r\n", "\n\n", *ENDS, *(f" {end} " for end in ENDS), "\u2028\n\u2029")):
            pages.append(Page(f"{name}:{number}", end.join(own)))
            pages.append(Page(f"{name}:{number}:mixed", "\n".join(own[:5]) + end + "\n".join(own[5:]) + end))
    write_pages(pages, tmp_path / "pages.jsonl")
    found = {verdict.id: (verdict.reason, verdict.text) for verdict in oracle.ours(tmp_path / "pages.jsonl", tmp_path)}
    for name in ("plain", "few"):
        of_name = {id: each for id, each in found.items() if id.startswith(name)}
        unlike = {id for id, each in of_name.items() if each != of_name[f"{name}:0"]}
        assert not unlike, json.dumps({id: of_name[id] for id in [f"{name}:0", *sorted(unlike)[:2]]}, indent=1)
    assert found["plain:0"][0] == ""
