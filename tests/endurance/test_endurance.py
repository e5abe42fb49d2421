"""The watch over long runs: what grows is told, and a short run is watched to its end."""

import json
from pathlib import Path

import pytest

from tests.endurance.__main__ import _crawl, _table
from tests.endurance.deep import SHAPES, text
from tests.endurance.generated import documents, pool, wet
from tests.endurance.watched import Done, Look

MB = 10**6
SAMPLE = sorted((Path(__file__).parents[2] / "configs" / "sample").glob("*.warc.wet.gz"))


def _looks(*, memory: float = 0.0, files: float = 0.0, cpu: float = 0.0) -> list[Look]:
    """A hundred looks at a run; what is named grows by this share of its first value from begin to end."""
    looks, seconds = [], 0.0
    for n in range(1, 101):
        seconds += 1 + cpu * n / 100
        held, opened = int(200 * MB * (1 + memory * n / 100)), int(30 * (1 + files * n / 100))
        looks.append(Look(float(n), seconds, held, opened, 0, 2, Done("run", n / 100)))
    return looks


def test_a_flat_run_is_flat() -> None:
    assert _table("run", _looks()) == []
    assert _table("run", _looks(memory=0.05, files=0.05, cpu=0.1)) == []


@pytest.mark.parametrize(
    ("grows", "said"), [("memory", "run, memory"), ("files", "run, files"), ("cpu", "of CPU time")]
)
def test_what_grows_is_told(grows: str, said: str) -> None:
    (problem,) = _table("run", _looks(**{grows: 1.0}))
    assert said in problem


def test_generated_files_are_functions_of_their_numbers(tmp_path: Path) -> None:
    pages = pool(SAMPLE)
    assert wet(pages, 3, 100_000) == wet(pages, 3, 100_000) != wet(pages, 4, 100_000)
    documents(tmp_path, 1, 100_000)
    first = (tmp_path / "00001.jsonl.gz").read_bytes()
    documents(tmp_path, 1, 100_000)
    assert (tmp_path / "00001.jsonl.gz").read_bytes() == first


@pytest.mark.parametrize("shape", SHAPES)
def test_large_documents_have_the_size_that_is_asked_for(shape: str) -> None:
    size = len(json.dumps(text(shape, 500_000), ensure_ascii=False).encode())
    assert 400_000 < size < 600_000


@pytest.mark.slow
def test_a_crawl_is_watched_to_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("tests.endurance.watched.EVERY", 0.2)
    assert _crawl(tmp_path, 10, 500_000, 1) == 0, capsys.readouterr().out
    printed = capsys.readouterr().out
    assert "exit status 0" in printed
    assert "flat" in printed
