"""Commands at once: some rounds and meetings, and as many as one likes by ``python -m tests.races`` (`.meetings`)."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.conftest import seaweed
from tests.races.meetings import PAIRS, meetings
from tests.races.rounds import Track, track
from tests.sessions import forget_stores
from tests.storage.conftest import use
from tests.storage.servers import Seaweed

__all__ = ["seaweed"]

FEW = ("shares of run", "the same run", "status 0 while shares end")


@pytest.fixture(scope="module")
def on_disk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Track]:
    with track(tmp_path_factory.mktemp("races"), on_bucket=False) as found:
        yield found


@pytest.fixture(scope="module")
def on_bucket(tmp_path_factory: pytest.TempPathFactory, seaweed: Seaweed) -> Iterator[Track]:
    with pytest.MonkeyPatch.context() as patch:
        use(patch, seaweed.url)
        with Track(tmp_path_factory.mktemp("races"), seaweed) as found:
            yield found
    forget_stores()


def wrong(here: Track, place: str, seeds: range) -> list[str]:
    played = [here.play(seed, place) for seed in seeds]
    return [f"{one.name}: {each}" for one in played for each in one.wrong]


def met(here: Track, root: str, names: tuple[str, ...], most: int) -> list[str]:
    played = [one for pair in PAIRS if pair.name in names for one in meetings(here, pair, root, most, 0)]
    return [f"{one.pair.name} at {one.at}: {each}" for one in played for each in one.wrong]


@pytest.mark.slow
def test_commands_at_once_on_disk_make_what_one_makes(on_disk: Track) -> None:
    assert wrong(on_disk, "folder", range(500, 503)) == []


@pytest.mark.slow
def test_commands_that_meet_on_disk_lose_nothing(on_disk: Track, tmp_path: Path) -> None:
    assert met(on_disk, str(tmp_path / "root"), FEW, 4) == []


@pytest.mark.slow
@pytest.mark.s3
def test_commands_at_once_in_a_bucket_make_what_one_makes(on_bucket: Track) -> None:
    assert wrong(on_bucket, "bucket", range(602, 604)) == []


@pytest.mark.slow
@pytest.mark.s3
def test_commands_that_meet_in_a_bucket_lose_nothing(on_bucket: Track) -> None:
    assert met(on_bucket, "s3://races/meeting", FEW, 2) == []


@pytest.mark.long
@pytest.mark.s3
@pytest.mark.timeout(4 * 3600)
@pytest.mark.parametrize("place", ["folder", "bucket"])
def test_a_hundred_rounds(place: str, on_bucket: Track) -> None:
    assert wrong(on_bucket, place, range(1000, 1100)) == []


@pytest.mark.long
@pytest.mark.s3
@pytest.mark.timeout(4 * 3600)
def test_each_pair_in_a_bucket(on_bucket: Track) -> None:
    assert met(on_bucket, "s3://races/meeting", tuple(pair.name for pair in PAIRS), 10) == []
