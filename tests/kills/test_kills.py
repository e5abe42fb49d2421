"""Commands that are sent signals: some, and as many as one likes by ``python -m tests.kills``."""

import os
from collections.abc import Iterator

import pytest

from tests.faults.cells import Bench
from tests.faults.conftest import bucket_bench, folder_bench, seaweed
from tests.faults.places import Strike
from tests.kills import uploads
from tests.kills.rounds import Campaign, rounds, several
from toolkit.storage.record_log import RecordLog

__all__ = ["bucket_bench", "folder_bench", "seaweed"]

FEW = ["ingest", "tag", "mix", "run"]


def play(bench: Bench, where: str, signals: int, seed: int, names: list[str]) -> Iterator[str]:
    """What is wrong with rounds."""
    for one in rounds(Campaign(bench), signals, seed, [where], names):
        yield from (f"{one}: {each}" for each in one.wrong)


@pytest.mark.slow
def test_every_command_may_be_stopped(folder_bench: Bench) -> None:
    assert list(play(folder_bench, "folder", 20, 2, [])) == []


@pytest.mark.slow
@pytest.mark.s3
def test_commands_on_a_bucket_may_be_stopped(bucket_bench: Bench) -> None:
    assert list(play(bucket_bench, "bucket", 7, 3, FEW)) == []


@pytest.mark.slow
@pytest.mark.s3
def test_uploads_in_parts_may_be_stopped(bucket_bench: Bench) -> None:
    played = list(uploads.rounds(Campaign(bucket_bench), 4, 5, ["mix", "run"]))
    assert len(played) == 4
    assert [f"{one}: {each}" for one in played for each in one.wrong] == []


@pytest.mark.long
@pytest.mark.s3
@pytest.mark.timeout(4 * 3600)
@pytest.mark.parametrize("where", ["folder", "bucket"])
def test_hundreds_of_signals(where: str, bucket_bench: Bench) -> None:
    assert list(play(bucket_bench, where, 250, 4, [])) == []


def die_before_merging() -> None:
    """Ends a command that would merge its records."""

    def die(self: RecordLog, **_: object) -> None:
        os._exit(7)

    RecordLog.merge = die  # type: ignore[method-assign]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["calibrate", "dedup", "sample"])
def test_what_a_killed_run_has_noted_is_merged_by_one_with_nothing_to_do(name: str, folder_bench: Bench) -> None:
    """By the command, though only its workers look at the records."""
    place, column = folder_bench.folder, several(name, 2)
    place.restore(folder_bench.state(place, column.before))
    assert folder_bench.run(place, column, Strike(), f"{__name__}:die_before_merging").code == 7
    assert [name for name in place.state() if "record-log/segments/" in name]
    assert folder_bench.run(place, column, Strike()).code == 0
    assert [name for name in place.state() if "record-log/segments/" in name] == []
