"""The judge finds what is wrong: a cell that cannot fail is no test."""

import gzip
import json
from dataclasses import replace

import msgspec
import pytest

from tests.conftest import Ran
from tests.faults.cells import Bench, cells
from tests.faults.columns import COLUMNS
from tests.faults.judge import Disturbed, Undisturbed, judge
from tests.faults.places import File, State
from tests.faults.rows import ROWS
from toolkit.storage.record_log import LogEntry, header, line_of

BY_ID = {cell.id: cell for cell in cells()}
EIO = next(row for row in ROWS if row.name == "EIO")


@pytest.mark.parametrize(
    ("cell", "change", "question"),
    [
        ("mix-EIO-shard_records", "swallow_errors", "4"),
        ("tag-ENOSPC-attributes", "leave_temporaries", "3"),
        ("tag-ENOSPC-attributes", "write_in_place", "3"),
        ("tag-EIO-attributes", "end_well", "1"),
        ("mix-EIO-manifest", "publish_without_manifest", "4"),
        ("status-EIO-shard_records", "say_nothing", "2"),
    ],
)
@pytest.mark.slow
def test_a_broken_toolkit_is_found(cell: str, change: str, question: str, folder_bench: Bench) -> None:
    played = folder_bench.play(BY_ID[cell], f"tests.faults.broken:{change}")
    assert question in {each[0] for wrong in played.wrong.values() for each in wrong}


@pytest.mark.slow
def test_a_command_that_fails_undisturbed_is_no_measure(folder_bench: Bench) -> None:
    column = replace(COLUMN["tag"], name="tag wrongly", command="tag --limit no")
    with pytest.raises(RuntimeError, match=r"tag wrongly: expected status 0 of it undisturbed, got .*--limit"):
        folder_bench.undisturbed(folder_bench.folder, column)


@pytest.mark.slow
def test_what_is_right_is_not_found_wrong(folder_bench: Bench) -> None:
    played = folder_bench.play(BY_ID["tag-ENOSPC-attributes"])
    assert played.wrong
    assert not any(played.wrong.values())


DOCUMENT = "data/documents/x.jsonl.gz"


@pytest.mark.parametrize(
    ("ran", "after", "again", "healed", "wrong"),
    [
        (Ran(1, "", f"/r/{DOCUMENT}: expected x, got: Input/output error; run again"), "old", 0, "new", ""),
        (Ran(0, "", ""), "new", 0, "new", ""),
        (Ran(0, "", ""), "old", 0, "new", "1"),
        (Ran(2, "", f"/r/{DOCUMENT}: expected x, got: Input/output error; run again"), "old", 0, "new", "1"),
        (Ran(1, "", "expected x, got: Input/output error; run again"), "old", 0, "new", "2"),
        (Ran(1, "", f"/r/{DOCUMENT}: expected x, got y; run again"), "old", 0, "new", "2"),
        (Ran(1, "", f"/r/{DOCUMENT}: got Input/output error"), "old", 0, "new", "2"),
        (Ran(1, "", f"Traceback /r/{DOCUMENT}: got Input/output error; run again"), "old", 0, "new", "2"),
        (Ran(1, "", f"/r/{DOCUMENT}: got Input/output error; run again"), "ne", 0, "new", "3"),
        (Ran(1, "", f"/r/{DOCUMENT}: got Input/output error; run again"), "old", 1, "new", "4"),
        (Ran(1, "", f"/r/{DOCUMENT}: got Input/output error; run again"), "old", 0, "newer", "4"),
    ],
)
def test_each_question_is_asked(ran: Ran, after: str, again: int, healed: str, wrong: str) -> None:
    def state(data: str) -> State:
        return {DOCUMENT: File("1", data.encode())}

    undisturbed = Undisturbed(state("old"), Ran(0, "", ""), state("new"))
    found = Disturbed("/r", [DOCUMENT], ran, state(after), Ran(again, "", ""), state(healed))
    assert {each[0] for each in judge(EIO, COLUMNS[0], undisturbed, found)} == set(wrong)


COLUMN = {column.name: column for column in COLUMNS}
ROW = {row.name: row for row in ROWS}
SHARD = "x.jsonl.gz"
VALUES = f"data/attributes/k-0/{SHARD}"
RECORD = "data/.toolkit/record-log/records.jsonl.gz"
INPUT = "data/.toolkit/inputs/records.jsonl.gz"


def _file(data: object) -> File:
    return File("1", data.encode() if isinstance(data, str) else json.dumps(data).encode())


def _record_log(entry: LogEntry) -> File:
    return File("1", gzip.compress(b"\n".join([header(1), line_of(entry), b""])))


def _input(deleted: bool) -> File:
    return _record_log(LogEntry("ingest", SHARD, 1, json.dumps({"shards": {}, "deleted": deleted}).encode()))


@pytest.mark.parametrize(
    ("there", "deleted", "wrong"),
    [
        ({DOCUMENT: "d", VALUES: "v"}, False, ""),
        ({VALUES: "v"}, True, ""),
        ({}, True, ""),
        ({}, False, "3"),  # the record of an input is to say so before anything is deleted
        ({DOCUMENT: "d"}, False, "3"),
        ({DOCUMENT: "d", VALUES: "half"}, True, "3"),
    ],
)
def test_what_a_run_makes_on_the_way_may_be_whole_or_deleted(there: dict[str, str], deleted: bool, wrong: str) -> None:
    made = {DOCUMENT: _file("d"), VALUES: _file("v")}
    said = msgspec.json.encode({"output": {"sha256": made[VALUES].digest}})
    record = {INPUT: _input(deleted), RECORD: _record_log(LogEntry("set k-0", SHARD, 1, said))}
    done = {INPUT: _input(True), RECORD: record[RECORD]}
    ran = Ran(1, "", f"/r/{DOCUMENT}: expected x, got: Input/output error; run again")
    undisturbed = Undisturbed({}, Ran(0, "", ""), done, made)
    found = Disturbed("/r", [DOCUMENT], ran, {n: _file(d) for n, d in there.items()} | record, Ran(0, "", ""), done)
    assert {each[0] for each in judge(EIO, COLUMN["per-shard"], undisturbed, found)} == set(wrong)


@pytest.mark.parametrize(
    ("column", "said", "is_remade", "wrong"),
    [
        ("stats", Ran(0, "8 documents", ""), False, ""),  # it did without the file
        ("stats", Ran(0, "7 documents", ""), False, "1"),
        ("mix", Ran(0, "7 documents", ""), True, ""),
        ("stats", Ran(0, "7 documents", f"warning: /r/{DOCUMENT}: expected x"), False, ""),
        ("stats", Ran(1, "", f"/r/{DOCUMENT}: expected x; make it again"), False, ""),
        ("validate", Ran(0, "8 documents", ""), False, "1"),
        ("validate", Ran(0, "8 documents", ""), True, ""),
        ("validate", Ran(1, f"/r/{DOCUMENT}: expected x; make it again", ""), False, ""),
        ("validate", Ran(1, f"/r/{DOCUMENT}: expected x", ""), False, "2"),
    ],
)
def test_a_damaged_file_is_told_unless_it_does_not_matter(column: str, said: Ran, is_remade: bool, wrong: str) -> None:
    state = {DOCUMENT: _file("d")}
    undisturbed = Undisturbed(state, Ran(0, "8 documents", ""), state)
    found = Disturbed("/r", [DOCUMENT], said, state, Ran(0, "8 documents", ""), state, is_remade)
    assert {each[0] for each in judge(ROW["truncated"], COLUMN[column], undisturbed, found)} == set(wrong)


@pytest.mark.parametrize(
    ("said", "wrong"),
    [
        ("/r: expected the folder /r, which existed when the run began, got none: it has vanished. Put it back", ""),
        (
            "/r/*: expected at least one file, got no match; there is no folder /r: check the path, or mount the disk",
            "",
        ),
        ("/r/in/*: expected at least one file, got no match; check its name", "2"),
    ],
)
def test_a_folder_that_is_gone_is_named_as_such(said: str, wrong: str) -> None:
    undisturbed = Undisturbed({}, Ran(0, "", ""), {})
    found = Disturbed("/r", ["in"], Ran(2, "", said), {}, Ran(0, "", ""), {})
    assert {each[0] for each in judge(ROW["gone"], COLUMN["ingest"], undisturbed, found)} == set(wrong)
