"""Machines as nobody wishes them: full disks, pipes among the data, closed streams, a folder that is gone."""

import errno
import json
import os
import re
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.pipeline.conftest import Project, document, strays, write_rows
from tests.pipeline.test_ingest import INFO, record, write_wet
from toolkit.errors import Unreadable, advice
from toolkit.storage.stores.local import Local
from toolkit.storage.stores.local.writing import temporary_name

LIMITED = """
import resource, sys
from toolkit.cli import main
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]), -1))
sys.exit(main(sys.argv[2:]))
"""


def limited(project: Project, command: str, room: int, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A command for which no file can be larger than so many bytes: as a full disk, by the kernel."""
    line = [sys.executable, "-c", LIMITED, str(room), command, "-c", str(project.yaml), *arguments]
    return subprocess.run(line, capture_output=True, text=True, check=False)


@pytest.fixture
def noisy(project: Project) -> Project:
    """An input, documents and attributes that are a few kilobytes each, and do not compress."""
    text = os.urandom(20_000).hex()
    write_wet(project, INFO, record(1, text))
    entry = {"format": "wet", "from": [str(project.root / "in" / "*.gz")], "source": "cc"}
    project.config |= {"ingest": [entry], "tag": {"shape-0": ["line_shape", "noise"]}}
    project.mixes(attributes=["shape-0"])
    return project


@pytest.mark.parametrize("command", ["ingest", "tag", "mix"])
@pytest.mark.parametrize("room", [0, pytest.param(100, marks=pytest.mark.slow), 4000])
def test_a_full_disk_names_the_file_that_is_written(command: str, room: int, noisy: Project) -> None:
    for before in ("ingest", "tag"):
        if command not in (before, "ingest"):
            noisy.ok(before)
    ran = limited(noisy, command, room)
    if ran.returncode == 0:
        assert (command, room) == ("tag", 4000)  # whose files are small
        return
    assert ran.returncode == 1
    named = re.findall(
        r"(\S+): expected a file that can be written, got: File too large; the file system, or", ran.stderr
    )
    assert named, ran.stderr
    assert not [path for path in named if path.startswith(str(noisy.root / "in"))]
    assert "Traceback" not in ran.stderr
    assert [stray for stray in strays(noisy.root) if stray.endswith(".tmp")] == []
    noisy.ok("run")


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EACCES, errno.EMFILE])
@pytest.mark.parametrize("call", ["open", "write", "fsync", "replace"])
def test_every_step_of_writing_names_the_file(
    number: int, call: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any, **__: Any) -> Any:
        raise OSError(number, os.strerror(number))

    path = tmp_path / "x" / "y.gz"
    store = Local()

    def write() -> None:
        made = store.writing(str(path))
        if call == "write":
            made._file.close()
            made._file = type("Full", (), {"write": fail, "close": fail})()
        try:
            made.write(b"x")
            made.commit()
        finally:
            made.abort()

    with monkeypatch.context() as patched:
        if call == "open":
            patched.setattr("builtins.open", fail)
        elif call in ("fsync", "replace"):
            patched.setattr(f"os.{call}", fail)
        with pytest.raises(Unreadable) as raised:
            write()
    assert str(raised.value).startswith(f"{path}: expected a file that can be written, got: {os.strerror(number)}; ")
    assert not list(tmp_path.rglob("*.tmp"))


def test_what_to_do_about_an_error_of_the_system() -> None:
    assert advice(OSError(errno.ENOSPC, "No space left on device")) == (
        "No space left on device; free some space, then run the same command again"
    )
    assert advice(OSError(errno.EIO, "Input/output error")) == (
        "Input/output error; look after the disk or its server, then run again"
    )


def make_pipe(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    os.mkfifo(path)


def make_socket(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    folder = os.getcwd()
    os.chdir(path.parent)  # the address of a socket is short
    try:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(path.name)
    finally:
        os.chdir(folder)


@pytest.mark.parametrize(("make", "kind"), [(make_pipe, r"a pipe \(FIFO\)"), (make_socket, "a socket")])
@pytest.mark.parametrize("place", ["input", "documents", "attributes", "record"])
def test_what_is_no_file_among_the_data_is_named(place: str, make: Any, kind: str, small: Project) -> None:
    small.ok("tag")
    path = {
        "input": small.root / "in" / "x.jsonl",
        "documents": small.documents / "x.jsonl.gz",
        "attributes": small.attributes / "shape-0" / "a.jsonl.gz",
        "record": small.data / ".toolkit" / "record-log" / "records.jsonl.gz",
    }[place]
    path.unlink(missing_ok=True)
    make(path)
    small.config["ingest"] = [{"format": "jsonl", "from": [str(small.root / "in" / "*")], "source": "s"}]
    commands = {"input": ["ingest"], "documents": ["tag", "mix", "stats", "validate"], "record": []}
    for command in commands.get(place, ["mix", "validate"]):
        ran = small(command)
        assert ran.code in (1, 2), command
        assert re.search(rf"{re.escape(str(path))}(:1)?: expected", ran.err + ran.out)
    if place in ("input", "documents"):
        assert re.search(kind, ran.err + ran.out)
    if place == "record":
        small("tag")  # which does not wait


def test_a_stream_of_another_process_is_no_input(project: Project) -> None:
    for path in ("/dev/stdin", "/dev/null", "/proc/self/fd/0"):
        ran = project.ingest({"format": "jsonl", "from": path, "source": "s"})
        assert ran.code == 1
        assert f"{path}: expected a file, got " in ran.err
        assert "write it to one first" in ran.err


def test_a_configuration_may_come_from_a_pipe(small: Project) -> None:
    reading, writing = os.pipe()
    os.write(writing, json.dumps(small.config).encode())
    os.close(writing)
    try:
        assert small.run("tag", "-c", f"/dev/fd/{reading}").code == 0
    finally:
        os.close(reading)


# --- what the caller gives --------------------------------------------------------------------------------------------


def shell(line: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """A line of a shell, in which ``toolkit`` is the command."""
    line = line.replace("toolkit", f"{sys.executable} -m toolkit.cli")
    return subprocess.run(["/bin/sh", "-c", line], capture_output=True, text=True, check=False, cwd=folder)


def test_a_working_directory_that_is_gone_is_said(small: Project) -> None:
    gone = small.root / "gone"
    gone.mkdir()
    ran = shell(f"cd {gone} && rmdir {gone} && toolkit tag -c {small.yaml}", small.root)
    assert ran.returncode == 2
    assert ran.stderr.startswith("error: the working directory is gone (")
    assert "Traceback" not in ran.stderr


@pytest.mark.slow
def test_closed_streams_change_no_file_and_end_with_a_word(small: Project) -> None:
    small.config["executor"] = {"type": "local"}
    small.config["processes"] = 2
    tag = f"toolkit tag -c {small.yaml}"
    ran = shell(f"{tag} 2>&-", small.root)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "3 shards" in ran.stdout or ran.stdout
    small.ok("validate")
    ran = shell(f"{tag} --overwrite >&-", small.root)
    assert ran.returncode == 1
    assert (
        "error: expected to write to standard output, got: Bad file descriptor (the work itself is done)" in ran.stderr
    )
    ran = shell(f"{tag} processes=0 2>&-", small.root)
    assert ran.returncode == 2
    assert ran.stdout.startswith("error: ")
    assert shell(f"{tag} processes=0 2>&- >&-", small.root).returncode == 2
    assert shell(f"{tag} >&- 2>&- <&-", small.root).returncode == 1
    assert shell(f"{tag} <&-", small.root).returncode == 0
    small.ok("validate")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full here")
def test_a_full_standard_output_is_an_error(small: Project) -> None:
    ran = shell(f"toolkit tag -c {small.yaml} > /dev/full", small.root)
    assert ran.returncode == 1
    assert "error: expected to write to standard output, got: No space left on device; free some" in ran.stderr
    assert "Exception ignored" not in ran.stderr


# --- names ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["x" * 255, "é" * 127, "x" * 250 + ".gz"])
def test_a_temporary_name_is_no_longer_than_names_may_be(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    assert len(os.fsencode(os.path.basename(temporary_name(str(path))))) <= 255
    made = Local().writing(str(path))
    made.write(b"x")
    made.commit()
    assert path.read_bytes() == b"x"


def test_a_name_that_is_too_long_is_said_before_anything_is_written(project: Project) -> None:
    for length, code in ((230, 0), (231, 2), (255, 2)):
        path = project.root / "in" / ("x" * (length - 6) + ".jsonl")
        write_rows(path, [document("1", "x")])
        ran = project.ingest({"format": "jsonl", "from": [str(path)], "source": "s", "shard_size": 1000})
        assert ran.code == code, ran.err
        assert code == 0 or "expected names of at most 230 bytes" in ran.err
