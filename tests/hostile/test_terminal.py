"""Characters that move, hide or reverse what a terminal shows never reach one from ids, texts and values of documents.

Each command of the fault matrix is run on documents whose ids and texts are full of them, and on files that are damaged
so that errors quote them.
"""

import gzip
import json
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Ran, Run
from tests.faults import corpus
from tests.faults.cells import Bench
from tests.faults.columns import COLUMNS, Column
from tests.faults.driver import bench
from tests.faults.places import File, State, Strike
from tests.marks import slow

HOSTILE = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202e\u2066\x7f\x00\x08"
"""Sets the title, clears the screen, changes the colour (by one character), the direction, deletes."""

LINES = "\n"

FORGED = "error: forged"
"""Begins a line of its own in ids, and, where a command forgets that they may have several lines, in what it prints."""


def inputs() -> State:
    """The corpus, with ids and texts of that kind."""
    found = {}
    for name, data in corpus.inputs().items():
        if ".json" not in name:  # the files of a crawl
            found[name] = File("1700000000000000000", data)
            continue
        plain = gzip.decompress(data) if name.endswith(".gz") else data
        rows = [json.loads(line) for line in plain.splitlines()]
        for row in rows:
            if "id" in row:
                row["id"] += f"{HOSTILE}\n{FORGED}"
            if "text" in row:
                row["text"] = row["text"][:40] + HOSTILE + "\r" + row["text"][40:]
        plain = b"".join(json.dumps(row).encode() + b"\n" for row in rows)
        data = gzip.compress(plain, mtime=0) if name.endswith(".gz") else plain
        found[name] = File("1700000000000000000", data)
    return found


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    with bench(tmp_path_factory.mktemp("terminal"), None) as found:
        vars(found)["_inputs"] = inputs()
        yield found


def misleading(text: str) -> set[str]:
    """Return the characters that no terminal should get."""
    return {c for c in text if unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp") and c not in LINES}


def run(hostile: Bench, column: Column, *more: str, before: State | None = None) -> Ran:
    """Run a column's command in its state, or in another one."""
    place = hostile.folder
    place.restore(hostile.undisturbed(place, column)[0].before if before is None else before)
    return hostile.run(place, replace(column, command=" ".join([column.command, *more])), Strike())


def check(ran: Ran, what: str) -> None:
    said = ran.out + ran.err
    shown = [line for line in said.split("\n") if misleading(line) or line.strip().startswith(FORGED)]
    assert not shown, f"{what}: {[ascii(line[:300]) for line in shown[:3]]}"
    assert "Traceback" not in said


_QUICK = ("head", "validate", "mix")

_LOOKS = (
    Column("try", "tag --try {root}/data/documents/s/a/0.jsonl.gz", "ingested", ""),
    Column("explain", "mix --explain 2", "tagged", ""),
    Column("by", "stats --by document.id --by tongue.label --attribute all", "tagged", ""),
)
"""Commands that show documents, beside those of the matrix."""


@pytest.mark.parametrize(
    "column",
    [
        pytest.param(each, id=each.name, marks=[] if each.name in _QUICK else pytest.mark.slow)
        for each in (*COLUMNS, *_LOOKS)
    ],
)
def test_what_a_command_prints_misleads_no_terminal(column: Column, hostile: Bench) -> None:
    check(run(hostile, column), column.name)
    check(run(hostile, column, "--json"), f"{column.name} --json")


SPOILT: dict[str, Any] = {
    "another id": lambda row: row | {"id": "other" + HOSTILE},
    "no text": lambda row: {key: value for key, value in row.items() if key not in ("text", "attributes")},
    "wrong type": lambda row: row | {"text": [HOSTILE], "attributes": {"tongue": HOSTILE, "known": HOSTILE}},
    "another key": lambda row: row | {HOSTILE: 1, "attributes": {HOSTILE: 1}},
    "another label": lambda row: row | {"attributes": {"tongue": {"label": HOSTILE, "prob": 0.5}, "known": True}},
    "no JSON": lambda row: None,
}


_FIRST = ("another id", "another label", "no JSON")


def spoilt(data: bytes, how: str) -> bytes:
    """Return a file of rows, of which the second is spoilt."""
    rows = [json.loads(line) for line in gzip.decompress(data).splitlines()]
    rows[1] = SPOILT[how](rows[1])
    lines = [HOSTILE if row is None else json.dumps(row) for row in rows]
    return gzip.compress("".join(f"{line}\n" for line in lines).encode(), mtime=0)


@pytest.mark.parametrize("kind", ["documents", pytest.param("attributes/tongue-0", marks=pytest.mark.slow)])
@pytest.mark.parametrize("how", [*_FIRST, *slow(*(how for how in SPOILT if how not in _FIRST))])
def test_what_an_error_quotes_misleads_no_terminal(kind: str, how: str, hostile: Bench) -> None:
    columns = {column.name: column for column in COLUMNS}
    state = dict(hostile.state(hostile.folder, "tagged"))
    name = next(each for each in sorted(state) if re.match(rf"data/{kind}/.*\.gz", each))
    state[name] = File("1700000000000000001", spoilt(state[name].data, how))
    failed = 0
    for each in ("mix", "validate", "head", "tag"):
        ran = run(hostile, columns[each], before=state)
        check(ran, f"{each}, {how}")
        failed += ran.code != 0
    assert failed or how == "another key"


def test_what_an_input_holds_misleads_no_terminal(hostile: Bench) -> None:
    column = next(column for column in COLUMNS if column.name == "ingest")
    for how in SPOILT:
        state = inputs()
        name = "in/a/0.jsonl.gz"
        state[name] = File("1700000000000000001", spoilt(state[name].data, how))
        check(run(hostile, column, "ingest.0.on_error=error", before=state), how)


def test_names_of_files_mislead_no_terminal(hostile: Bench, tmp_path: Path) -> None:
    column = next(column for column in COLUMNS if column.name == "ingest")
    state = inputs()
    state["in/a/\x1b[31m\u202e.jsonl.gz"] = File("1700000000000000001", b"no rows")
    check(run(hostile, column, before=state), "a name")


def test_an_error_about_a_path_with_lines_forges_none(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / f"a\n{FORGED}\x1b[2J"
    (folder / "documents").mkdir(parents=True)
    (folder / "documents" / f"b\n{FORGED}.jsonl").write_text("no row\n")
    for command, place in (("stats", folder), ("head", folder / "documents" / f"b\n{FORGED}.jsonl")):
        ran = run(command, place).fails(1, "expected a JSON object")
        assert not [line for line in ran.err.split("\n") if line.startswith(FORGED)], ran.err


def test_an_error_shows_the_beginning_of_a_long_rule(run: Run, tmp_path: Path) -> None:
    rule = " or ".join(f"document.chars > {number}" for number in range(300)) + " or nobody.knows"
    (tmp_path / "c.yaml").write_text(json.dumps({
        "dataset": str(tmp_path), "mix": {"rules": [{"drop": rule}], "output": {"format": "dolma", "path": "o"}},
    }))  # fmt: skip
    (tmp_path / "documents").mkdir()
    (tmp_path / "documents" / "a.jsonl").write_text('{"id": "1", "text": "a", "source": "s"}\n')
    ran = run("mix", "-c", tmp_path / "c.yaml").fails(2, "expected an attribute, got 'nobody'")
    assert len(ran.err) < 1000
