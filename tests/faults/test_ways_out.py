"""What is no regular file, or has changed meanwhile, in the place of each file that a command writes."""

import os
import stat
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Ran, Run
from tests.pipeline.test_origins import Corpora
from toolkit.errors import ConfigError
from toolkit.storage.outputs import NamedOutput
from toolkit.view.labels import Asking, Labels

ROWS = ("link", "fifo", "device", "socket", "changed")


@dataclass(frozen=True)
class Column:
    """A file that a command writes.

    Attributes:
        name: of the column.
        command: its arguments; ``{root}`` is the folder of all, ``{config}`` a configuration.
        file: that it writes, below the root.
        named: whether a user names the file, or may edit it; else it is one of the toolkit's own.
        new: whether the command refuses whatever is there.
        before: commands whose results it needs.
    """

    name: str
    command: str
    file: str
    named: bool = True
    new: bool = False
    before: tuple[str, ...] = ("tag",)


COLUMNS = (
    Column("sql", "sql|SELECT id FROM joined ORDER BY id|-c|{config}|--output|{root}/f.csv", "f.csv"),
    Column("sql parquet", "sql|SELECT id FROM joined|-c|{config}|--output|{root}/f.parquet", "f.parquet"),
    Column("stats", "stats|-c|{config}|--by|source|--output|{root}/f.csv", "f.csv"),
    Column("stats json", "stats|-c|{config}|--by|source|--output|{root}/f.json", "f.json"),
    Column("report", "report|-c|{config}|-o|{root}/f.html|--overwrite", "f.html"),
    Column("report json", "report|-c|{config}|-o|{root}/f.json|--overwrite", "f.json"),
    Column("lock", "mix|-c|{config}|--lock|{root}/f.json", "f.json"),
    Column("tokenize lock", "tokenize|-c|{config}|--lock|{root}/f.json", "f.json"),
    Column("card", "card|-c|{config}|--overwrite", "out/README.md", before=("tag", "mix")),
    Column("croissant", "croissant|-c|{config}", "out/croissant.json", before=("tag", "mix")),
    Column("init", "init|fineweb|-o|{root}/f.yaml", "f.yaml", new=True),
    Column("init --from", "init|--from|{root}/a/documents/0.jsonl|-o|{root}/f.yaml", "f.yaml", new=True),
    Column("annotate", "annotate|-c|{config}|--to|label-studio|--output|{root}/f.json", "f.json", new=True),
    Column("tag", "tag|-c|{config}|--overwrite", "a/attributes/length-0/0.jsonl", named=False, before=()),
    Column("mix", "mix|-c|{config}", "out/documents/documents.jsonl.gz", named=False),
    Column("tokenize", "tokenize|-c|{config}", "tokens/tokens.npy", named=False),
    Column("export", "export|-c|{config}|--parquet|{root}/exported", "exported/length-0/0.parquet", named=False),
    Column("publish", "publish|{root}/out|--to|{root}/published", "published/croissant.json", named=False,
           before=("tag", "mix", "croissant", "card")),
)  # fmt: skip


class Bench:
    """A corpus, and commands on it."""

    def __init__(self, root: Path, run: Run) -> None:
        self.root, self.run, self.corpora = root, run, Corpora(root, run)
        self.config = self.corpora.config("a")

    def __call__(self, command: str) -> Ran:
        given = [each.format(root=self.root, config=self.config) for each in command.split("|")]
        return self.run(*given)

    def prepare(self, column: Column) -> Path:
        """Do what the command needs; return the path of its file, which is not there."""
        for command in column.before:
            ran = self(f"{command}|-c|{{config}}")
            assert ran.code == 0, ran.err
        path = self.root / column.file
        path.parent.mkdir(parents=True, exist_ok=True)
        return path


@pytest.fixture
def bench(tmp_path: Path, run: Run) -> Bench:
    return Bench(tmp_path, run)


def _is_plain(path: Path) -> bool:
    return stat.S_ISREG(path.lstat().st_mode)


def _refused(ran: Ran, path: Path, before: os.stat_result) -> None:
    """The command says what is there, and that is as it was."""
    assert ran.code in (1, 2), (ran.code, ran.out, ran.err)
    assert str(path) in ran.err
    assert "Traceback" not in ran.err
    now = path.lstat()
    assert (now.st_ino, now.st_mode, now.st_rdev) == (before.st_ino, before.st_mode, before.st_rdev)


def _link(bench: Bench, column: Column, path: Path) -> None:
    precious = bench.root / "precious" / path.name
    precious.parent.mkdir()
    if column.name != "croissant":  # or it is no description; then the link leads to a file that is not there yet
        precious.write_bytes(b"")
    path.symlink_to(precious)
    before, ran = path.lstat(), bench(column.command)
    if column.named and not column.new:
        assert ran.code == 0, ran.err
        assert (path.is_symlink(), bool(precious.read_bytes())) == (True, True)
    else:
        _refused(ran, path, before)
        assert (os.readlink(path), precious.read_bytes()) == (str(precious), b"")


def _fifo(bench: Bench, column: Column, path: Path) -> None:
    os.mkfifo(path)
    before, taken = path.lstat(), list[bytes]()
    if not column.named or column.new or path.name in ("README.md", "croissant.json"):  # which are read first
        _refused(bench(column.command), path, before)
        return
    reader = threading.Thread(target=lambda: taken.append(path.read_bytes()))
    reader.start()
    ran = bench(column.command)
    if ran.code:  # or the reader waits for ever
        os.close(os.open(path, os.O_RDWR))
    reader.join()
    assert ran.code == 0, ran.err
    assert (bool(taken[0]), path.lstat().st_ino) == (True, before.st_ino)


def _device(bench: Bench, column: Column, path: Path) -> None:
    if os.geteuid():
        pytest.skip("only root makes devices")
    os.mknod(path, stat.S_IFCHR | 0o600, os.makedev(1, 3))
    before, ran = path.lstat(), bench(column.command)
    if column.named and not column.new and path.name not in ("README.md", "croissant.json"):
        assert ran.code == 0, ran.err
    else:
        _refused(ran, path, before)
    assert stat.S_ISCHR(path.lstat().st_mode)


def _socket(bench: Bench, column: Column, path: Path) -> None:
    os.mknod(path, stat.S_IFSOCK | 0o600)
    before = path.lstat()
    _refused(bench(column.command), path, before)


def _changed(bench: Bench, column: Column, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not column.named or column.new:
        pytest.skip("nobody edits it, or it is never replaced")
    begin = NamedOutput.__enter__

    def edited(self: NamedOutput) -> Any:
        if self.path == str(path):
            path.write_bytes(b"edited")
        return begin(self)

    monkeypatch.setattr(NamedOutput, "__enter__", edited)
    ran = bench(column.command)
    assert (ran.code, f"{path}: expected the file as it was when the command began" in ran.err) == (1, True), ran.err
    assert (path.read_bytes(), _is_plain(path)) == (b"edited", True)


@pytest.mark.parametrize("row", ["fifo", "device", "socket"])
def test_a_viewer_keeps_labels_in_a_file_only(row: str, tmp_path: Path) -> None:
    """A link is followed (see `tests.view.test_labels`, which also changes the file meanwhile)."""
    if row == "device" and os.geteuid():
        pytest.skip("only root makes devices")
    kinds = {"fifo": stat.S_IFIFO, "device": stat.S_IFCHR, "socket": stat.S_IFSOCK}
    os.mknod(tmp_path / "labels.jsonl", kinds[row] | 0o600, os.makedev(1, 3) if row == "device" else 0)
    before = (tmp_path / "labels.jsonl").lstat()
    labels = Labels(str(tmp_path / "labels.jsonl"), [Asking("q", ("a", "b"))], "ann")
    with pytest.raises(ConfigError, match="--labels: expected a file in an existing folder"):
        labels.__enter__()
    assert (tmp_path / "labels.jsonl").lstat() == before
    assert os.listdir(tmp_path) == ["labels.jsonl"]


@pytest.mark.parametrize("row", ROWS)
@pytest.mark.parametrize("column", COLUMNS, ids=lambda column: column.name)
def test_it_is_written_through_or_refused_and_never_replaced(
    column: Column, row: str, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("pyarrow", "duckdb"):
        pytest.importorskip(module)
    path = bench.prepare(column)
    if row == "changed":
        _changed(bench, column, path, monkeypatch)
        return
    works: dict[str, Callable[[Bench, Column, Path], None]] = {
        "link": _link, "fifo": _fifo, "device": _device, "socket": _socket,
    }  # fmt: skip
    works[row](bench, column, path)
    assert [each for each in bench.root.rglob(".*.tmp") if each.is_file()] == []
