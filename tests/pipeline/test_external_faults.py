"""What a mix refuses in sets of other programs, `validate` finds, at the same row: one check serves both."""

import json
import math
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Run
from tests.marks import slow
from tests.pipeline.conftest import Project, attributes, document, write_rows

COUNT = 8
PATHS = ("a.jsonl.gz", "b.jsonl.gz")
PLACES = (("a.jsonl.gz", 0), ("b.jsonl.gz", 4), ("b.jsonl.gz", COUNT - 1))

Rows = list[Any]
Change = Callable[[Rows, int], object]
"""Changes some of the rows of a shard, at an index."""


def _value(key: str, value: Any) -> Change:
    return lambda rows, i: rows[i]["attributes"].update({key: value})


def _span(*parts: Any) -> Change:
    return _value("bad", [list(parts)])


def _row(**parts: Any) -> Change:
    return lambda rows, i: rows[i].update(parts)


def _line(change: Callable[[str], str]) -> Change:
    def changed(rows: Rows, i: int) -> None:
        rows[i] = change(json.dumps(rows[i])).encode("utf-8", "surrogateescape")

    return changed


def _swapped(rows: Rows, i: int) -> None:
    other = i - 1 if i else 1
    rows[i], rows[other] = rows[other], rows[i]


FAULTS: dict[str, Change] = {
    "null attributes": _row(attributes=None),
    "no attributes": lambda rows, i: rows[i].pop("attributes"),
    "attributes that are a text": _row(attributes="x"),
    "null score": _span(0, 4, None),
    "score that is a text": _span(0, 4, "x"),
    "score that is a truth value": _span(0, 4, True),
    "score NaN": _span(0, 4, math.nan),
    "score out of range": _line(lambda text: text.replace('"p":', '"bad": [[0, 4, 1e999]], "p":')),
    "float start": _span(0.5, 4, 1.0),
    "float end": _span(0, 4.0, 1.0),
    "negative start": _span(-1, 4, 1.0),
    "reversed": _span(4, 1, 1.0),
    "end past the text": _span(0, 999, 1.0),
    "past the text": _span(900, 999, 1.0),
    "large end": _span(0, 1 << 70, 1.0),
    "start that is a text": _span("0", 4, 1.0),
    "no score": _span(0, 4),
    "null span": _value("bad", [None]),
    "null spans": _value("bad", None),
    "spans that are a text": _value("bad", "x"),
    "spans that are a number": _value("bad", 3),
    "no number": lambda rows, i: rows[i]["attributes"].pop("p"),
    "null number": _value("p", None),
    "number that is a text": _value("p", "x"),
    "number NaN": _value("p", math.nan),
    "row too few": lambda rows, i: rows.pop(i),
    "row too many": lambda rows, i: rows.insert(i, rows[i]),
    "rows swapped": _swapped,
    "other id": _row(id="z"),
    "no id": lambda rows, i: rows[i].pop("id"),
    "other source": _row(source="z"),
    "damaged JSON": _line(lambda text: text[:-3]),
    "empty line": _line(lambda text: ""),
    "not UTF-8": _line(lambda text: text.replace("s", "\udcff", 1)),
}
SOUND: dict[str, Change] = {
    "no source": _row(source=None),
    "another key": _value("more", 1),
    "no spans": _value("bad", []),
    "no change": lambda rows, i: None,
}


def _rows(name: str) -> Rows:
    spans = [{"bad": [[0, 4, 1.0]]} if i % 2 == 0 else {} for i in range(COUNT)]
    return [attributes(f"{name}-{i}", {**of_row, "p": float(i)}) for i, of_row in enumerate(spans)]


@pytest.fixture
def project(tmp_path: Path, run: Run) -> Project:
    found = Project(tmp_path, run, {"dataset": str(tmp_path / "data"), "processes": 1})
    for name in PATHS:
        write_rows(found.documents / name, [document(f"{name}-{i}", f"text number {i}", "s") for i in range(COUNT)])
    found.mixes({"drop": "p < 0"}, {"replace": "bad", "by": "X"}, attributes=["ext-0"])
    return found


def _places(text: str) -> set[str]:
    return set(re.findall(r"ext-0/([ab]\.(?:jsonl\.gz|parquet):\d+)", text))


def _check(
    project: Project,
    fault: str,
    write: Callable[[str, Rows], object],
    row_of: Callable[[str], Any],
    places: Sequence[tuple[str, int]] = PLACES,
) -> None:
    """Hold `validate` against `mix`, with or without what the first of the two has noted of the files."""
    change = (FAULTS | SOUND)[fault]
    for shard, i in places:
        project("clean", "--forget", "ext-0")  # or else a key of the shard before would be missed
        for name in PATHS:
            rows = _rows(name)
            if name == shard:
                change(rows, i)
            write(name, [row_of(row) for row in rows])
        checked, mixed = project("validate"), project("mix")
        assert checked.code == (1 if fault in FAULTS else 0), (shard, i, checked.out)
        assert (mixed.code != 0) == (checked.code == 1), (shard, i, mixed.err)
        assert _places(checked.out) == _places(mixed.err), (shard, i, checked.out, mixed.err)
        assert len(_places(mixed.err)) == (fault in FAULTS), (shard, i, mixed.err)


@pytest.mark.slow
@pytest.mark.parametrize("fault", [*FAULTS, *SOUND])
def test_validate_finds_what_a_mix_refuses(project: Project, fault: str) -> None:
    def write(name: str, rows: Rows) -> None:
        write_rows(project.attributes / "ext-0" / name, rows)

    _check(project, fault, write, lambda row: row)


OF_TABLES = (
    "null number",
    "number NaN",
    "row too few",
    "row too many",
    "rows swapped",
    "other id",
    "no id",
    "other source",
    "no source",
    "no change",
)
"""What a table can have: a column has values of one type, none of which is a span."""


@pytest.mark.parametrize(
    "fault", [*OF_TABLES[1::5], *slow(*(fault for number, fault in enumerate(OF_TABLES) if number % 5 != 1))]
)
def test_validate_finds_what_a_mix_refuses_in_tables(project: Project, fault: str) -> None:
    pa, pq = (pytest.importorskip(name, exc_type=ImportError) for name in ("pyarrow", "pyarrow.parquet"))
    project.config["mix"]["rules"] = [{"drop": "p < 0"}]

    def write(name: str, rows: Rows) -> None:
        path = project.attributes / "ext-0" / name.replace(".jsonl.gz", ".parquet")
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.Table.from_pylist(rows), path)

    def row_of(row: Any) -> Any:
        return {"id": row.get("id"), "source": row["source"], "p": row["attributes"]["p"]}

    _check(project, fault, write, row_of, PLACES[-1:])


@pytest.mark.parametrize("fault", ["end past the text", "past the text", "reversed", "negative start", "no change"])
def test_validate_knows_where_texts_end_without_a_configuration(project: Project, run: Run, fault: str) -> None:
    """Where a mix joins the set it says what becomes of such spans: `past_end: clamp` takes them."""
    for name in PATHS:
        rows = _rows(name)
        (FAULTS | SOUND)[fault](rows, 4)
        write_rows(project.attributes / "ext-0" / name, rows)
    ran = run("validate", project.data)
    places = {f"{name}:5" for name in PATHS} if fault in FAULTS else set()
    assert (ran.code, _places(ran.out)) == (1 if places else 0, places), ran.out
    if fault == "end past the text":
        mix = project.config["mix"]
        stream = {"attributes": mix.pop("attributes"), "rules": mix.pop("rules"), "past_end": "clamp"}
        mix["streams"] = {"web": stream}
        assert project("validate").code == 0
