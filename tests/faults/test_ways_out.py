"""What is no regular file, or has changed meanwhile, in the place of each file that a command writes."""

import ctypes
import json
import os
import stat
import struct
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Ran, Run
from tests.pipeline.test_fetch import write_release
from tests.pipeline.test_origins import Corpora
from toolkit.errors import ConfigError
from toolkit.storage.outputs import NamedOutput
from toolkit.view.labels import LabelFile, LabelQuestion

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
        config: Sections in place of those of the configuration; None leaves one out.
    """

    name: str
    command: str
    file: str
    named: bool = True
    new: bool = False
    before: tuple[str, ...] = ("tag",)
    config: Mapping[str, Any] = field(default_factory=dict)


_SAMPLE = {"documents": 5}
_MODEL = {"task": "classes", "labels": "1 if document.id > 'a-0-2' else 0", "buckets": 256, "minimum": 1}
_INGEST = {"format": "jsonl", "from": ["{root}/raw.jsonl"], "source": "s", "on_error": "skip"}
_INGESTED: dict[str, Any] = {"dataset": "{root}/i", "ingest": [_INGEST], "tag": {}, "mix": None}

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
    Column("ingest", "ingest|-c|{config}", "i/documents/s/raw.jsonl.gz", named=False, before=(), config=_INGESTED),
    Column("rejects", "ingest|-c|{config}", "i/.toolkit/rejects/s/raw.jsonl.gz", named=False, before=(),
           config=_INGESTED),
    Column("sample ids", "sample|-c|{config}", "f.jsonl", before=(), named=False,
           config={"sample": {"eval-0": {**_SAMPLE, "ids": "{root}/f.jsonl"}}}),
    Column("sample copy", "sample|-c|{config}", "f.jsonl.gz", before=(), named=False,
           config={"sample": {"eval-0": {**_SAMPLE, "copy": {"path": "{root}/f.jsonl.gz"}}}}),
    Column("fetch", "fetch|{root}/release|--label|fr|--to|{root}/got", "got/fr/fr.jsonl.gz", named=False, before=()),
    Column("fetch sums", "fetch|{root}/release|--label|fr|--to|{root}/got", "got/fr/fr_sha256.txt", named=False,
           before=()),
    Column("train", "train|-c|{config}", "a/models/kind-0/card.json", named=False,
           config={"train": {"kind-0": _MODEL}}),
    Column("evaluate plots", "evaluate|-c|{config}|length.bytes|--against|length.words|--plots|{root}/plots|"
           "--rounds|10", "plots/groups-source.svg"),
    Column("stats picture", "stats|-c|{config}|--histogram|length.words|--output|{root}/f.png", "f.png"),
    Column("annotate --from", "annotate|-c|{config}|--from|length-0.length.words|-o|{root}/gen",
           "gen/generated_annotations/0__annotations_length_length-0_und.jsonl", named=False,
           before=("tag", "annotate|--from|length-0.length.words|-o|{root}/gen")),
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
        if column.config:
            self.config = self.corpora.config("a", **column.config)
            text = self.config.read_text().replace("{root}", str(self.root))
            sections = {name: each for name, each in json.loads(text).items() if each is not None}
            self.config.write_text(json.dumps(sections))
        (self.root / "raw.jsonl").write_text('{"text": "one"}\n{bad\n')
        if column.name.startswith("fetch"):
            write_release(str(self.root / "release"), {"fr": 1})
        for command in column.before:
            self(f"{command}|-c|{{config}}").succeeds()
        path = self.root / column.file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
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
    begin = NamedOutput.__enter__

    def edited(self: NamedOutput) -> Any:
        if self.path == str(path):
            path.write_bytes(b"edited")
        return begin(self)

    monkeypatch.setattr(NamedOutput, "__enter__", edited)
    bench(column.command).fails(1, f"{path}: expected the file as it was when the command began")
    assert (path.read_bytes(), _is_plain(path)) == (b"edited", True)


@pytest.mark.parametrize("row", ["fifo", "device", "socket"])
def test_a_viewer_keeps_labels_in_a_file_only(row: str, tmp_path: Path) -> None:
    """A link is followed (see `tests.view.test_labels`, which also changes the file meanwhile)."""
    if row == "device" and os.geteuid():
        pytest.skip("only root makes devices")
    kinds = {"fifo": stat.S_IFIFO, "device": stat.S_IFCHR, "socket": stat.S_IFSOCK}
    os.mknod(tmp_path / "labels.jsonl", kinds[row] | 0o600, os.makedev(1, 3) if row == "device" else 0)
    before = (tmp_path / "labels.jsonl").lstat()
    labels = LabelFile(str(tmp_path / "labels.jsonl"), [LabelQuestion("q", ("a", "b"))], "ann")
    with pytest.raises(ConfigError, match="--labels: expected a file in an existing folder"):
        labels.__enter__()
    assert (tmp_path / "labels.jsonl").lstat() == before
    assert os.listdir(tmp_path) == ["labels.jsonl"]


def often(column: Column) -> tuple[str, ...]:
    """The rows that are not slow tests: links, and changes, of those that write in ways of their own."""
    own = ("sql", "stats", "report json", "croissant", "init", "annotate", "tag", "mix", "ingest", "fetch", "train")
    return ("link", "changed") if column.name in own else ()


_CELLS = [
    pytest.param(column, row, id=f"{column.name}-{row}", marks=[] if row in often(column) else [pytest.mark.slow])
    for column in COLUMNS
    for row in ROWS
    if row != "changed" or (column.named and not column.new)  # nobody edits the others, or they are never replaced
]


@pytest.mark.parametrize(("column", "row"), _CELLS)
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


NOBODY = 65534


@contextmanager
def _nobody() -> Iterator[None]:
    """Be another user than root, who may read everything: Python may be where only root can go."""
    os.setegid(NOBODY)
    os.seteuid(NOBODY)
    header, sets = struct.pack("Ii", 0x20080522, 0), ctypes.create_string_buffer(24)
    libc = ctypes.CDLL(None)
    libc.capget(header, sets)
    _, *others = struct.unpack("6I", sets.raw)
    libc.capset(header, struct.pack("6I", 1 << 2, *others))  # CAP_DAC_READ_SEARCH, of those that root had
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(0)


def _give(folder: Path, owner: int) -> None:
    for path in (folder, *folder.rglob("*")):
        os.chown(path, owner, owner, follow_symlinks=False)


@pytest.fixture
def shared() -> Iterator[Path]:
    """A folder that everybody can reach, unlike those of pytest; root and nobody work on it."""
    if os.geteuid():
        pytest.skip("only root can be two users")
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        yield Path(folder)


@pytest.mark.slow
@pytest.mark.parametrize("column", COLUMNS, ids=lambda column: column.name)
def test_a_folder_of_another_user_is_named_and_left_as_it_is(column: Column, shared: Path, run: Run) -> None:
    """Root may write into a folder of nobody's; nobody may not into one of root's, though all else is theirs."""
    for module in ("pyarrow", "duckdb"):
        pytest.importorskip(module)
    for name, user, owner in (("theirs", 0, NOBODY), ("ours", NOBODY, 0)):
        (shared / name).mkdir()
        bench = Bench(shared / name, run)
        path = bench.prepare(column)
        _give(bench.root, NOBODY)
        os.chown(path.parent, owner, owner)
        before = sorted(os.listdir(path.parent))
        if not user:  # first: it compiles and imports, which nobody keeps
            ran = bench(column.command)
            assert (ran.code, path.is_file()) == (0, True), ran.err
            continue
        with _nobody():
            ran = bench(column.command)
        assert ran.code in (1, 2), (ran.code, ran.out, ran.err)
        assert ("Traceback" in ran.err, str(path.parent) in ran.err) == (False, True), ran.err
        assert sorted(os.listdir(path.parent)) == before
