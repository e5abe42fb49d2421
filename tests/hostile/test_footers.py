"""Parquet files whose footer ends the process that reads it: an error of the file, whatever reads it."""

import io
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import Run
from tests.fuzz.targets import CRASHERS
from toolkit.data.tables import parquet
from toolkit.errors import DataError

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

ROOT = Path(__file__).parent.parent.parent
CRASHER = CRASHERS / "parquet" / "definition-level-histogram"
TOLD = "damage in its footer: reading it ended a process (SIGABRT): Definition level histogram size mismatch"


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a sound file and one that ends processes."""
    monkeypatch.chdir(tmp_path)
    inside = tmp_path / "in"
    inside.mkdir()
    pq.write_table(pa.table({"id": ["a", "b"], "text": ["one two", "three"], "q": [0.5, 1.5]}), inside / "good.parquet")
    (inside / "bad.parquet").write_bytes(CRASHER.read_bytes())
    return tmp_path


@pytest.mark.slow
def test_each_command_tells_it_and_does_the_rest(run: Run, place: Path) -> None:
    (place / "c.yaml").write_text("""
dataset: data
processes: 1
ingest:
  - {format: parquet, from: "in/*.parquet", source: web}
""")
    (place / "p.yaml").write_text("""
documents: {format: parquet, path: in, source: web}
attributes: attributes
processes: 1
tag:
  taggers: [dolma_gopher]
""")
    (place / "a.yaml").write_text("""
documents: {format: parquet, path: in, source: web}
attributes: attributes
align:
  of-others: {format: parquet, from: in, id: id, values: [q]}
""")
    commands = [
        ("ingest", "-c", "c.yaml"),
        ("tag", "-c", "p.yaml"),
        ("validate", "-c", "p.yaml"),
        ("sql", "-c", "p.yaml", "SELECT sum(length(text)) FROM documents"),
        ("align", "-c", "a.yaml"),
        ("validate", "in/bad.parquet"),
        ("stats", "in"),
        ("head", "in/bad.parquet"),
    ]
    for command in commands:
        ended = run(*command)
        assert ended.code in (1, 2), command
        assert f"in/bad.parquet: expected a sound Parquet file, got {TOLD}" in ended.out + ended.err, command
        assert "Traceback" not in ended.err, command
    assert (place / "data/documents/web/good.jsonl.gz").exists()
    assert (place / "attributes/taggers/good.parquet.jsonl.gz").exists()


def _read(data: bytes) -> int:
    with parquet.checked_parquet(io.BytesIO(data), "x.parquet") as file:
        return int(file.metadata.num_rows)


def test_the_process_starts_without_numpy() -> None:
    """Half of its start was numpy's."""
    written = io.BytesIO()
    table = pa.table({"text": ["a", None], "o": [{"x": 1.5}, None], "l": [[1], []], "m": pa.array([b"", b"a"])})
    pq.write_table(table.append_column("t", pa.array([0, None], pa.timestamp("ns", "UTC"))), written)
    footer = parquet._footer(written)
    command = [sys.executable, "-P", "-X", "importtime", str(parquet._PROGRAM)]
    result = subprocess.run(command, input=len(footer).to_bytes(8, "little") + footer, capture_output=True, check=True)
    assert result.stdout == b"."
    assert b"pyarrow._parquet" in result.stderr
    assert b"numpy" not in result.stderr


@pytest.mark.slow
def test_one_process_reads_all_footers_and_each_once(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checks = parquet._FooterChecks()
    monkeypatch.setattr(parquet, "_CHECKS", checks)
    good = (place / "in/good.parquet").read_bytes()
    assert _read(good) == 2
    child = checks._child
    assert child
    os.kill(child.pid, signal.SIGKILL)
    assert _read(good) == 2  # it is known
    with pytest.raises(DataError, match=r"x\.parquet: .*Definition level histogram"):
        _read(CRASHER.read_bytes())
    other = io.BytesIO()
    pq.write_table(pa.table({"n": [1, 2, 3]}), other)
    assert _read(other.getvalue()) == 3  # by a new process
    checks.end()


@pytest.mark.slow
def test_what_ends_the_process_from_outside_costs_no_file(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checks = parquet._FooterChecks()
    monkeypatch.setattr(parquet, "_CHECKS", checks)
    assert _read((place / "in/good.parquet").read_bytes()) == 2
    assert checks._child
    os.kill(checks._child.pid, signal.SIGKILL)
    other = io.BytesIO()
    pq.write_table(pa.table({"n": [1, 2, 3]}), other)
    assert _read(other.getvalue()) == 3
    checks.end()


def test_a_footer_may_take_only_so_long(place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    slow = tmp_path / "footer_child.py"
    text = Path(parquet.__file__).with_name("footer_child.py").read_text()
    text = text.replace("SECONDS = 20\n", "SECONDS = 0.01\n").replace("def _walk", "def _unused")
    slow.write_text(
        text.replace("if __name__", "def _walk(_: object) -> None:\n    while True:\n        pass\n\n\nif __name__")
    )
    checks = parquet._FooterChecks(slow)
    monkeypatch.setattr(parquet, "_CHECKS", checks)
    with pytest.raises(DataError, match=r"x\.parquet: .*in its footer: reading it took too long"):
        _read((place / "in/good.parquet").read_bytes())


def test_all_parquet_files_are_opened_in_one_place() -> None:
    opening = re.compile(
        r"\b(ParquetFile|read_metadata|(?<!ipc\.)read_schema|read_table|ParquetDataset|read_parquet)\("
    )
    sources = [path for folder in ("toolkit", "taggers", "mixers") for path in (ROOT / folder).rglob("*.py")]
    found = {path.name for path in sources if opening.search(path.read_text())}
    assert found == {"parquet.py", "footer_child.py"}
