"""The judge finds what is wrong: a cell that cannot fail is no test."""

import pytest

from tests.conftest import Ran
from tests.faults.cells import Bench, cells
from tests.faults.columns import COLUMNS
from tests.faults.judge import Disturbed, Undisturbed, judge
from tests.faults.places import File, State
from tests.faults.rows import ROWS

BY_ID = {cell.id: cell for cell in cells()}
EIO = next(row for row in ROWS if row.name == "EIO")


@pytest.mark.parametrize(
    ("cell", "change", "question"),
    [
        ("mix-gone-shard-EIO-ingest_records", "swallow_errors", "1"),
        ("tag-ENOSPC-attributes", "leave_temporaries", "3"),
        ("tag-ENOSPC-attributes", "write_in_place", "3"),
        ("tag-EIO-attributes", "end_well", "1"),
        ("mix-EIO-manifest", "publish_without_manifest", "4"),
        ("status-EIO-shard_records", "say_nothing", "2"),
    ],
)
def test_a_broken_toolkit_is_found(cell: str, change: str, question: str, folder_bench: Bench) -> None:
    played = folder_bench.play(BY_ID[cell], f"tests.faults.broken:{change}")
    assert question in {each[0] for wrong in played.wrong.values() for each in wrong}


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
