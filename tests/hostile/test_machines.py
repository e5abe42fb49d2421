"""Machines as nobody wishes them: full disks, pipes among the data, closed streams, a folder that is gone."""

import errno
import gzip
import json
import os
import re
import socket
import subprocess
import sys
import unicodedata
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Ran, Run
from tests.faults import corpus
from tests.faults.cells import Bench
from tests.faults.columns import COLUMNS, Column
from tests.faults.driver import bench
from tests.faults.places import File, State, Strike
from tests.marks import slow
from tests.pipeline.conftest import Project, document, write_rows
from toolkit.errors import Unreadable, advice
from toolkit.storage.stores.local import Local, temporary_name


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
        project.ingest({"format": "jsonl", "from": path, "source": "s"}).fails(
            1, f"{path}: expected a file, got ", "write it to one first"
        )


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


@pytest.mark.slow
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
        ran = project.ingest({"format": "jsonl", "from": [str(path)], "source": "s", "shard_size": 1000}).fails(code)
        assert code == 0 or "expected names of at most 230 bytes" in ran.err


# Characters that move, hide or reverse what a terminal shows never reach one from ids, texts and values of documents.
#
# Each command of the fault matrix is run on documents whose ids and texts are full of them, and on files that are
# damaged so that errors quote them.

HOSTILE = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202e\u2066\x7f\x00\x08"
"""Sets the title, clears the screen, changes the colour (by one character), the direction, deletes."""

LINES = "\n"

FORGED = "error: forged"
"""Begins a line of its own in ids, and, where a command forgets that they may have several lines, in what it prints."""


def inputs() -> State:
    """The corpus, with ids and texts of that kind."""
    found = {}
    for name, data in corpus.inputs().items():
        if ".json" not in name:  # the files of a crawl
            found[name] = File("1700000000000000000", data)
            continue
        plain = gzip.decompress(data) if name.endswith(".gz") else data
        rows = [json.loads(line) for line in plain.splitlines()]
        for row in rows:
            if "id" in row:
                row["id"] += f"{HOSTILE}\n{FORGED}"
            if "text" in row:
                row["text"] = row["text"][:40] + HOSTILE + "\r" + row["text"][40:]
        plain = b"".join(json.dumps(row).encode() + b"\n" for row in rows)
        data = gzip.compress(plain, mtime=0) if name.endswith(".gz") else plain
        found[name] = File("1700000000000000000", data)
    return found


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    with bench(tmp_path_factory.mktemp("terminal"), None) as found:
        vars(found)["_inputs"] = inputs()
        yield found


def misleading(text: str) -> set[str]:
    """Return the characters that no terminal should get."""
    return {c for c in text if unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp") and c not in LINES}


def run(hostile: Bench, column: Column, *more: str, before: State | None = None) -> Ran:
    """Run a column's command in its state, or in another one."""
    place = hostile.folder
    place.restore(hostile.undisturbed(place, column)[0].before if before is None else before)
    return hostile.run(place, replace(column, command=" ".join([column.command, *more])), Strike())


def check(ran: Ran, what: str) -> None:
    said = ran.out + ran.err
    shown = [line for line in said.split("\n") if misleading(line) or line.strip().startswith(FORGED)]
    assert not shown, f"{what}: {[ascii(line[:300]) for line in shown[:3]]}"
    assert "Traceback" not in said


_QUICK = ("head", "validate", "mix")

_LOOKS = (
    Column("try", "tag --try {root}/data/documents/s/a/0.jsonl.gz", "ingested", ""),
    Column("explain", "mix --explain 2", "tagged", ""),
    Column("by", "stats --by document.id --by tongue.label --attribute all", "tagged", ""),
)
"""Commands that show documents, beside those of the matrix."""


@pytest.mark.slow
@pytest.mark.parametrize(
    "column",
    [
        pytest.param(each, id=each.name, marks=[] if each.name in _QUICK else pytest.mark.slow)
        for each in (*COLUMNS, *_LOOKS)
    ],
)
def test_what_a_command_prints_misleads_no_terminal(column: Column, hostile: Bench) -> None:
    check(hostile.undisturbed(hostile.folder, column)[0].ran, column.name)
    if column in _LOOKS or column.name in _QUICK:  # JSON of all commands is printed by one statement
        check(run(hostile, column, "--json"), f"{column.name} --json")


SPOILT: dict[str, Any] = {
    "another id": lambda row: row | {"id": "other" + HOSTILE},
    "no text": lambda row: {key: value for key, value in row.items() if key not in ("text", "attributes")},
    "wrong type": lambda row: row | {"text": [HOSTILE], "attributes": {"tongue": HOSTILE, "known": HOSTILE}},
    "another key": lambda row: row | {HOSTILE: 1, "attributes": {HOSTILE: 1}},
    "another label": lambda row: row | {"attributes": {"tongue": {"label": HOSTILE, "prob": 0.5}, "known": True}},
    "no JSON": lambda row: None,
}


_FIRST = ("another id", "another label", "no JSON")


def spoilt(data: bytes, how: str) -> bytes:
    """Return a file of rows, of which the second is spoilt."""
    rows = [json.loads(line) for line in gzip.decompress(data).splitlines()]
    rows[1] = SPOILT[how](rows[1])
    lines = [HOSTILE if row is None else json.dumps(row) for row in rows]
    return gzip.compress("".join(f"{line}\n" for line in lines).encode(), mtime=0)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "how"),
    [
        *(("documents", how) for how in _FIRST),
        *slow(*(("documents", how) for how in SPOILT if how not in _FIRST)),
        *slow(*(("attributes/tongue-0", how) for how in SPOILT if how not in ("no JSON", "no text"))),
    ],
)
def test_what_an_error_quotes_misleads_no_terminal(kind: str, how: str, hostile: Bench) -> None:
    columns = {column.name: column for column in COLUMNS}
    state = dict(hostile.state(hostile.folder, "tagged"))
    name = next(each for each in sorted(state) if re.match(rf"data/{kind}/.*\.gz", each))
    state[name] = File("1700000000000000001", spoilt(state[name].data, how))
    failed = 0
    for each in ("mix", "validate", "head", "tag"):
        ran = run(hostile, columns[each], before=state)
        check(ran, f"{each}, {how}")
        failed += ran.code != 0
    assert failed or how == "another key"


@pytest.mark.slow
def test_what_an_input_holds_misleads_no_terminal(hostile: Bench) -> None:
    column = next(column for column in COLUMNS if column.name == "ingest")
    for how in SPOILT:
        state = inputs()
        name = "in/a/0.jsonl.gz"
        state[name] = File("1700000000000000001", spoilt(state[name].data, how))
        check(run(hostile, column, "ingest.0.on_error=error", before=state), how)


@pytest.mark.slow
def test_names_of_files_mislead_no_terminal(hostile: Bench, tmp_path: Path) -> None:
    column = next(column for column in COLUMNS if column.name == "ingest")
    state = inputs()
    state["in/a/\x1b[31m\u202e.jsonl.gz"] = File("1700000000000000001", b"no rows")
    check(run(hostile, column, before=state), "a name")


def test_an_error_about_a_path_with_lines_forges_none(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / f"a\n{FORGED}\x1b[2J"
    (folder / "documents").mkdir(parents=True)
    (folder / "documents" / f"b\n{FORGED}.jsonl").write_text("no row\n")
    for command, place in (("stats", folder), ("head", folder / "documents" / f"b\n{FORGED}.jsonl")):
        ran = run(command, place).fails(1, "expected a JSON object")
        assert not [line for line in ran.err.split("\n") if line.startswith(FORGED)], ran.err


def test_an_error_shows_the_beginning_of_a_long_rule(run: Run, tmp_path: Path) -> None:
    rule = " or ".join(f"document.chars > {number}" for number in range(300)) + " or nobody.knows"
    (tmp_path / "c.yaml").write_text(json.dumps({
        "dataset": str(tmp_path), "mix": {"rules": [{"drop": rule}], "output": {"format": "dolma", "path": "o"}},
    }))  # fmt: skip
    (tmp_path / "documents").mkdir()
    (tmp_path / "documents" / "a.jsonl").write_text('{"id": "1", "text": "a", "source": "s"}\n')
    ran = run("mix", "-c", tmp_path / "c.yaml").fails(2, "expected an attribute, got 'nobody'")
    assert len(ran.err) < 1000
