"""Helpers: the memory in which blocks and results are handed over."""

import os
from collections.abc import Iterator
from typing import Any

import pytest

from tests.runs.functions import act
from tests.runs.test_blocks import collected
from toolkit.runs.blocks import in_order
from toolkit.runs.helpers import KEPT, SharedFile


@pytest.fixture
def ends() -> Iterator[tuple[SharedFile, SharedFile]]:
    """A file as both processes have it."""
    ours = SharedFile()
    theirs = SharedFile(os.dup(ours._number))
    yield ours, theirs
    ours.close()
    theirs.close()


def size_of(file: SharedFile) -> int:
    return os.fstat(file._number).st_size


def test_what_one_puts_the_other_takes_whatever_its_size(ends: tuple[SharedFile, SharedFile]) -> None:
    ours, theirs = ends
    values: list[Any] = [b"", [b"line"] * 200, {"a": ("é", None)}, b"x" * 5_000_000, 1, b"y" * (KEPT + 1), "z" * 70_000]
    for value in values * 2:
        for giver, taker in ((ours, theirs), (theirs, ours)):
            assert taker.take(giver.put(value)) == value


def test_memory_of_a_very_large_block_is_given_back(ends: tuple[SharedFile, SharedFile]) -> None:
    ours, theirs = ends
    assert len(theirs.take(ours.put(bytes(1000)))) == 1000
    assert 1000 <= size_of(ours) <= KEPT, "what is small stays for the next one"
    assert len(theirs.take(ours.put(bytes(3 * KEPT)))) == 3 * KEPT
    assert size_of(ours) == 0
    assert ours.take(theirs.put("answer")) == "answer"


def test_a_block_that_cannot_be_sent_is_an_error_in_its_place() -> None:
    blocks: list[Any] = [0, 1, lambda: None, 3]
    found, error = collected(in_order(act, {}, iter(blocks), 2))
    assert [block for block, _ in found] == [0, 1]
    assert "lambda" in str(error)


def test_a_system_without_files_in_memory_has_others_without_names(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(name: str) -> int:
        raise OSError(38, "Function not implemented")

    monkeypatch.setattr(os, "memfd_create", refuse)
    found = list(in_order(act, {}, iter(range(20)), 2))
    assert [block for block, _ in found] == list(range(20))
