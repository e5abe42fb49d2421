"""Compiled code is kept and taken only where nobody else can have written it."""

import os
import shutil
import stat
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.waiting import PATIENCE
from toolkit.session import Session
from toolkit.storage.stores.local.scratch import PrivateFolder, UnsafeFolder
from toolkit.text.kernels.compiling import code_folder

CODE = b"machine code"


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


@contextmanager
def open_folder() -> Iterator[Path]:
    """A folder that others may pass; pytest's own are closed to them, so that rights below mean nothing."""
    made = Path(tempfile.mkdtemp())
    made.chmod(0o755)
    if not all(mode_of(parent) & 0o011 for parent in made.parents):
        pytest.skip("what is temporary is closed to other users here")
    try:
        yield made
    finally:
        shutil.rmtree(made)


@pytest.fixture(autouse=True)
def place(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The cache and what is temporary, each in a folder of its own, which others may read."""
    with open_folder() as folder:
        for name in ("cache", "temporary"):
            (folder / name).mkdir()
        monkeypatch.setenv("TOOLKIT_CACHE", str(folder / "cache"))
        monkeypatch.setattr("tempfile.tempdir", str(folder / "temporary"))
        with Session().bound():  # which has told nothing yet
            yield folder


def used() -> str | None:
    with code_folder() as folder:
        return folder.path if folder else None


def test_a_folder_is_made_for_its_user_alone(place: Path) -> None:
    with code_folder() as folder:
        assert folder
        assert folder.path == str(place / "cache" / "compiled")
        assert folder.read("a.o") is None
        folder.write("a.o", CODE)
        folder.write("a.o", CODE * 2)
        assert folder.read("a.o") == CODE * 2
    assert mode_of(place / "cache" / "compiled") == 0o700
    assert [(path.name, mode_of(path)) for path in (place / "cache" / "compiled").iterdir()] == [("a.o", 0o600)]


def test_a_folder_that_others_may_read_is_closed(place: Path) -> None:
    (place / "cache" / "compiled").mkdir()
    (place / "cache" / "compiled").chmod(0o755)
    assert used() == str(place / "cache" / "compiled")
    assert mode_of(place / "cache" / "compiled") == 0o700


def own(path: Path) -> Path:
    path.mkdir(exist_ok=True)
    return path


UNSAFE: dict[str, tuple[Callable[[Path], None], str]] = {
    "the folder, group": (lambda cache: own(cache / "compiled").chmod(0o770), "others may write to it"),
    "the folder, all": (lambda cache: own(cache / "compiled").chmod(0o777), "others may write to it"),
    "the folder, sticky": (lambda cache: own(cache / "compiled").chmod(0o1777), "others may write to it"),
    "above it, group": (lambda cache: cache.chmod(0o775), "others may write to {cache}"),
    "above it, all": (lambda cache: cache.chmod(0o777), "others may write to {cache}"),
    "far above it": (lambda cache: cache.parent.chmod(0o757), "others may write to {cache.parent}"),
}


@pytest.mark.parametrize("case", UNSAFE)
def test_where_others_may_write_nothing_is_kept_and_one_note_says_so(
    place: Path, case: str, capsys: pytest.CaptureFixture[str]
) -> None:
    cache = place / "cache"
    spoil, why = UNSAFE[case]
    spoil(cache)
    with pytest.raises(UnsafeFolder):
        PrivateFolder(str(cache / "compiled"))
    found = [used() for _ in range(3)]
    told = capsys.readouterr().err.splitlines()
    above = case == "far above it"  # of both
    assert found == 3 * [None if above else str(place / "temporary" / f"tagmix-{os.geteuid()}")]
    assert len(told) == 1 + above
    assert told[0].startswith(f"{cache}/compiled: compiled code is neither kept nor taken there: ")
    assert why.format(cache=cache) in told[0]
    assert "set TOOLKIT_CACHE to a folder of your own" in told[0]


def test_a_sticky_folder_above_is_safe(place: Path) -> None:
    (place / "cache").chmod(0o1777)
    assert used() == str(place / "cache" / "compiled")


def test_below_a_folder_that_others_cannot_pass_they_may_have_rights(place: Path) -> None:
    """As in a home of mode 0700 with a umask of 002."""
    place.chmod(0o700)
    (place / "cache").chmod(0o775)
    own(place / "cache" / "compiled").chmod(0o775)
    assert used() == str(place / "cache" / "compiled")
    assert mode_of(place / "cache" / "compiled") == 0o700


def test_a_folder_of_another_user_is_not_used(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert used()
    mine = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: mine + 1)
    with pytest.raises(UnsafeFolder, match=f"belongs to another user \\(number {mine}\\)"):
        PrivateFolder(str(place / "cache" / "compiled"))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_a_way_through_a_folder_of_another_user_is_not_gone(place: Path) -> None:
    os.chown(place / "cache", 12345, -1)
    with pytest.raises(UnsafeFolder, match="cache belongs to another user"):
        PrivateFolder(str(place / "cache" / "compiled"))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_a_file_of_another_user_is_not_read(place: Path) -> None:
    with PrivateFolder(str(place / "cache" / "compiled")) as folder:
        folder.write("a.o", CODE)
        os.chown(place / "cache" / "compiled" / "a.o", 12345, -1)
        assert folder.read("a.o") is None
        folder.write("a.o", CODE)
        assert folder.read("a.o") == CODE


@pytest.mark.parametrize("kind", ["link", "writable", "folder", "fifo"])
def test_what_is_not_a_file_of_the_user_alone_is_not_read(place: Path, kind: str) -> None:
    with PrivateFolder(str(place / "cache" / "compiled")) as folder:
        path = place / "cache" / "compiled" / "a.o"
        if kind == "link":
            folder.write("b.o", CODE)
            path.symlink_to("b.o")
        elif kind == "writable":
            folder.write("a.o", CODE)
            path.chmod(0o620)
        elif kind == "folder":
            path.mkdir()
        else:
            os.mkfifo(path)
        assert folder.read("a.o") is None


def test_the_folder_itself_is_no_link(place: Path) -> None:
    own(place / "elsewhere").chmod(0o700)
    (place / "cache" / "compiled").symlink_to(place / "elsewhere")
    with pytest.raises(OSError, match=r"(symbolic links|Not a directory)"):
        PrivateFolder(str(place / "cache" / "compiled"))
    assert used() == str(place / "temporary" / f"tagmix-{os.geteuid()}")
    assert not list((place / "elsewhere").iterdir())


def test_links_on_the_way_lead_where_they_lead(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As homes that are links to another disk; what counts is who may write there."""
    (place / "link").symlink_to(place / "cache")
    monkeypatch.setenv("TOOLKIT_CACHE", str(place / "link"))
    assert used() == str(place / "link" / "compiled")
    (place / "cache").chmod(0o777)
    assert used() == str(place / "temporary" / f"tagmix-{os.geteuid()}")


def test_what_was_opened_is_what_is_read(place: Path) -> None:
    """Another folder in the place of one that was looked at changes nothing."""
    compiled = place / "cache" / "compiled"
    with PrivateFolder(str(compiled)) as folder:
        folder.write("a.o", CODE)
        compiled.rename(place / "away")
        own(compiled)
        (compiled / "a.o").write_bytes(b"evil")
        assert folder.read("a.o") == CODE


def test_without_a_place_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLKIT_CACHE", "/dev/null/cache")
    monkeypatch.setattr("tempfile.tempdir", "/dev/null")
    assert used() is None


def test_one_works_while_others_wait(place: Path) -> None:
    compiled = str(place / "cache" / "compiled")
    with PrivateFolder(compiled) as one, PrivateFolder(compiled) as other:
        done = threading.Event()

        def work() -> None:
            with other.locked():
                done.set()

        with one.locked():
            thread = threading.Thread(target=work)
            thread.start()
            assert not done.wait(0.05)
        thread.join()
        assert done.is_set()


LOADED = """
import sys
import numpy as np
from toolkit.text.kernels.compiling import compiled

@compiled("int64* int64*")
def double(values, found):
    found[0] = 2 * values[0]

found = np.zeros(1, np.int64)
double(np.array([21]), found)
print(found[0], "numba" in sys.modules)
"""


@pytest.mark.slow
def test_code_that_somebody_else_could_have_put_there_is_not_run(place: Path) -> None:
    (place / "main.py").write_text(LOADED)
    environment = {
        **os.environ,
        "TMPDIR": str(place / "temporary"),
        "PYTHONPATH": str(Path(__file__).parent.parent.parent),
    }

    def run() -> tuple[str, str]:
        main = [sys.executable, str(place / "main.py")]
        ran = subprocess.run(main, env=environment, capture_output=True, text=True, check=True, timeout=PATIENCE)
        return ran.stdout, ran.stderr

    (place / "temporary").chmod(0o777)
    assert run()[0] == "42 True\n"
    assert run() == ("42 False\n", "")
    (place / "cache" / "compiled").chmod(0o777)
    for _ in range(2):
        out, err = run()
        assert out == "42 True\n"
        assert err.count("compiled code is neither kept nor taken there: others may write to it") == 1
        assert err.count(f"there: others may write to {place}/temporary;") == 1
    (place / "cache" / "compiled").chmod(0o700)
    assert run() == ("42 False\n", "")
