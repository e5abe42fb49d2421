"""One way out: whatever is written or deleted on a disk goes through the store of local files."""

import ast
import os
import re
import stat
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.sources import nodes
from toolkit.errors import ConfigError, DataError, ToolkitError
from toolkit.storage.outputs import NamedOutput, Output, write_file
from toolkit.storage.paths import move, remove, remove_tree
from toolkit.storage.stores.local.scratch import machine, owner, scratch, tidy_scratch

WAY_OUT = {
    "toolkit/storage/stores/local/scratch.py": "the way out: private folders, scratch files, logs and locks",
    "toolkit/storage/stores/local/__init__.py": "the way out: files that appear, deleting, and empty folders",
    "toolkit/cli.py": "standard output that has broken is /dev/null",
    "toolkit/execution/processes.py": "standard streams that are closed are /dev/null",
    "toolkit/execution/forkserver.py": "its own socket, in a folder that is gone at once",
    "toolkit/testing/writers.py": "tests of plugins, in temporary folders of theirs",
    "toolkit/reference.py": "makes pages of this project, in its checkout",
}  # fmt: skip
"""Modules that may change files, and why. `tempfile` may make files without names; folders are made by `scratch`.
Descriptors may be used anywhere: the way out has opened them."""

_OS = re.compile(
    r"os\.(replace|rename|renames|unlink|remove|rmdir|removedirs|link|symlink|truncate|mkdir|makedirs|chmod"
    r"|mkfifo|mknod)|shutil\.(rmtree|move|copy|copyfile|copy2|copytree)"
    r"|.*\.(unlink|rmdir|touch|write_text|write_bytes|symlink_to|hardlink_to)"
    r"|tempfile\.(TemporaryDirectory|NamedTemporaryFile|mkdtemp|mkstemp)"
)


def _changes_files(node: ast.AST) -> bool:
    """Whether a call changes a file, or opens one for writing; names that are only handed on count, too."""
    if isinstance(node, ast.Attribute):
        return bool(_OS.fullmatch(ast.unparse(node)))
    if not isinstance(node, ast.Call):
        return False
    called, literals = ast.unparse(node.func), [each.value for each in ast.walk(node) if isinstance(each, ast.Constant)]
    if called == "os.open":
        return bool(re.search(r"O_(WRONLY|RDWR|CREAT|APPEND|TRUNC)", ast.unparse(node)))
    modes = [each for each in literals if isinstance(each, str) and re.fullmatch(r"[rwaxbt+]{1,3}", each)]
    return (called in ("open", "io.open") or called.endswith(".open")) and any(
        set(each) & set("wax+") for each in modes
    )


@pytest.mark.slow
def test_nothing_else_changes_files() -> None:
    """A module that does is listed with its reason; what is listed does so."""
    found = {
        str(path.relative_to(ROOT))
        for folder in ("toolkit", "taggers", "mixers")
        for path in (ROOT / folder).rglob("*.py")
        if any(map(_changes_files, nodes(path)))
    }
    assert found == {*WAY_OUT}


# --- what is in the place of a file of ours ---------------------------------------------------------------------------


SPECIAL: dict[str, Callable[[Path], object]] = {
    "link": lambda path: path.symlink_to(path.with_name("precious")),
    "fifo": os.mkfifo,
    "socket": lambda path: os.mknod(path, stat.S_IFSOCK | 0o600),
    "device": lambda path: os.mknod(path, stat.S_IFCHR | 0o600, os.makedev(1, 3)),
    "block": lambda path: os.mknod(path, stat.S_IFBLK | 0o600, os.makedev(7, 250)),
}
NEEDS_ROOT = {"device", "block"}


@pytest.fixture(params=[*SPECIAL])
def special(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """What is no file, in the place of one; beside it is the file that a link leads to."""
    if request.param in NEEDS_ROOT and os.geteuid():
        pytest.skip("only root makes devices")
    (tmp_path / "precious").write_bytes(b"precious")
    SPECIAL[request.param](tmp_path / "file")
    return tmp_path / "file"


@pytest.mark.parametrize("work", ["write", "move", "remove"])
def test_what_is_no_file_is_neither_replaced_nor_deleted(special: Path, work: str) -> None:
    before = special.lstat()
    (special.parent / "staged").write_bytes(b"staged")
    works: dict[str, Callable[[], object]] = {
        "write": lambda: write_file(str(special), b"new"),
        "move": lambda: move(str(special.parent / "staged"), str(special)),
        "remove": lambda: remove(str(special)),
    }
    with pytest.raises(DataError, match="expected a file of the toolkit, or nothing, got a"):
        works[work]()
    assert special.lstat() == before
    assert {path.name: path.read_bytes() for path in special.parent.iterdir() if path != special} == {
        "precious": b"precious",
        "staged": b"staged",
    }


def test_what_appears_while_a_file_is_written_is_not_replaced(tmp_path: Path) -> None:
    """The look before the first byte does not see it."""

    def write() -> None:
        with Output(str(tmp_path / "file")) as out:
            out.write(b"new")
            os.mkfifo(tmp_path / "file")

    with pytest.raises(DataError, match="got a pipe"):
        write()
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_no_tree_is_deleted_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "precious" / "inner").mkdir(parents=True)
    (tmp_path / "precious" / "inner" / "file").write_bytes(b"precious")
    (tmp_path / "link").symlink_to("precious")
    for root in ("link", "link/"):
        with pytest.raises(DataError, match="got a symbolic link"):
            remove_tree(str(tmp_path / root))
    (tmp_path / "ours").mkdir()
    (tmp_path / "ours" / "link").symlink_to("../precious")
    (tmp_path / "ours" / "file").symlink_to("../precious/inner/file")
    remove_tree(str(tmp_path / "ours"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link", "precious"]
    assert (tmp_path / "precious" / "inner" / "file").read_bytes() == b"precious"


# --- folders in shared places ----------------------------------------------------------------------------------------


def test_scratch_folders_of_killed_processes_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder is of its user alone; those of processes that run, of other machines, and links stay."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "file").write_bytes(b"precious")
    (tmp_path / f"tagmix-{machine()}.1-1.aaaaaaaa" / "inner").mkdir(parents=True)
    stay = {"precious", f"tagmix-{machine()}.1-1.bbbbbbbb", "tagmix-other-00000000.1-1.cccccccc", "tagmix-0"}
    (tmp_path / f"tagmix-{machine()}.1-1.bbbbbbbb").symlink_to(tmp_path / "precious")
    for name in ("tagmix-other-00000000.1-1.cccccccc", "tagmix-0"):
        (tmp_path / name).mkdir()
    with scratch() as folder:
        made = Path(folder)
        assert (made.parent, stat.S_IMODE(made.stat().st_mode)) == (tmp_path, 0o700)
        assert made.name.startswith(f"tagmix-{owner()}.")
        (made / "file").write_bytes(b"")
        tidy_scratch()
        assert {each.name for each in tmp_path.iterdir()} == {*stay, made.name}
    assert {each.name for each in tmp_path.iterdir()} == stay
    assert (tmp_path / "precious" / "file").read_bytes() == b"precious"


# --- what a user names ------------------------------------------------------------------------------------------------


def test_a_link_that_a_user_names_is_followed(tmp_path: Path) -> None:
    """To a file, to one that is not there yet, and over another link; the links stay."""
    (tmp_path / "there").write_bytes(b"old")
    for name, target in {"a": "there", "b": "new", "c": "a"}.items():
        (tmp_path / name).symlink_to(target)
        NamedOutput(str(tmp_path / name), "--output").save(name.encode())
        assert os.readlink(tmp_path / name) == target
    assert {name: (tmp_path / name).read_bytes() for name in ("there", "new")} == {"there": b"c", "new": b"b"}
    assert len([*tmp_path.iterdir()]) == 5


def test_a_pipe_takes_what_is_complete_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    taken: list[bytes] = []
    reader = threading.Thread(target=lambda: taken.append(path.read_bytes()))
    reader.start()

    def fail() -> None:
        with NamedOutput(str(path), "--output") as out:
            out.write(b"a part")
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    NamedOutput(str(path), "--output").save(b"all")
    reader.join()
    assert taken == [b"all"]
    assert stat.S_ISFIFO(path.stat().st_mode)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes devices")
def test_a_device_takes_what_is_written_or_says_why_not(tmp_path: Path) -> None:
    for name, minor in {"null": 3, "full": 7}.items():
        os.mknod(tmp_path / name, stat.S_IFCHR | 0o600, os.makedev(1, minor))
    NamedOutput(str(tmp_path / "null"), "--output").save(b"all")
    with pytest.raises(ToolkitError, match=r"full: expected a pipe or a device that takes .*No space left"):
        NamedOutput(str(tmp_path / "full"), "--output").save(b"all")
    assert all(stat.S_ISCHR(path.stat().st_mode) for path in tmp_path.iterdir())


@pytest.mark.parametrize("kind", ["socket", "block", "folder"])
def test_what_takes_no_bytes_is_refused_before_any_work(tmp_path: Path, kind: str) -> None:
    if kind in NEEDS_ROOT and os.geteuid():
        pytest.skip("only root makes devices")
    SPECIAL.get(kind, Path.mkdir)(tmp_path / "file")
    with pytest.raises(ConfigError, match=r"file: expected a file to write, got a .*(socket|device|folder)"):
        NamedOutput(str(tmp_path / "file"), "--output")


@pytest.mark.parametrize("before", [None, b"old"])
@pytest.mark.parametrize("after", [None, b"edited"])
def test_what_somebody_has_changed_meanwhile_stays(tmp_path: Path, before: bytes | None, after: bytes | None) -> None:
    path = tmp_path / "file"
    if before is not None:
        path.write_bytes(before)
    output = NamedOutput(str(path), "--output")
    if before == after:
        output.save(b"new")
        assert path.read_bytes() == b"new"
        return
    path.unlink(missing_ok=True)
    if after is not None:
        path.write_bytes(after)
    with pytest.raises(DataError, match="expected the file as it was when the command began"):
        output.save(b"new")
    assert [each.read_bytes() for each in tmp_path.iterdir()] == ([] if after is None else [after])
