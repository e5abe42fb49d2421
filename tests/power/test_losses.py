"""The power fails while commands run: what was synced leads the next run to the same bytes."""

import random
from pathlib import Path

import pytest

from tests.faults.cells import Bench
from tests.faults.conftest import folder_bench
from tests.power.__main__ import EVERY, USUAL
from tests.power.losses import Losses

__all__ = ["folder_bench"]


def play(bench: Bench, folder: Path, name: str, cuts: int) -> list[str]:
    """What is wrong after cuts at calls that are drawn, and after one behind the end."""
    losses, chance = Losses(bench, folder), random.Random(name)
    calls = losses.calls(name)
    assert calls
    chosen = sorted(chance.sample(range(1, calls + 1), min(cuts, calls)))
    played = [losses.after_the_end(name), *(losses.cut(name, call, i % 3 or None) for i, call in enumerate(chosen))]
    return [f"{loss}: {each}" for loss in played for each in loss.wrong]


@pytest.mark.slow
def test_a_mix_is_whole_after_the_power_failed(folder_bench: Bench, tmp_path: Path) -> None:
    assert play(folder_bench, tmp_path, "mix", 2) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in USUAL if name != "mix"])
def test_commands_go_on_after_the_power_failed(name: str, folder_bench: Bench, tmp_path: Path) -> None:
    assert play(folder_bench, tmp_path, name, 2) == []


@pytest.mark.long
@pytest.mark.timeout(4 * 3600)
@pytest.mark.parametrize("name", EVERY)
def test_the_power_fails_before_each_sync(name: str, folder_bench: Bench, tmp_path: Path) -> None:
    assert play(folder_bench, tmp_path, name, 10**6) == []


@pytest.mark.slow
def test_a_command_that_synced_nothing_would_be_found(folder_bench: Bench, tmp_path: Path) -> None:
    """The shim sees nothing of what is not synced, so all that the command made is lost."""
    losses = Losses(folder_bench, tmp_path)
    losses.calls("ingest")
    known = losses.after_the_end("ingest")
    assert known.wrong == []
    losses.change = "tests.power.test_losses:sync_nothing"
    assert losses.after_the_end("ingest").wrong != []


def sync_nothing() -> None:
    """Installs a shim to which only the last call is told."""
    import os

    from tests.power import shim

    shim.install()
    told, folders = os.fsync, [0]

    def fsync(descriptor: int) -> None:
        folders[0] += 1
        if folders[0] > 60:
            told(descriptor)

    os.fsync = fsync  # type: ignore[assignment]
