"""What stands in the pages: blocks, and the commands in them, run as a reader would."""

import re
import shlex
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import NamedTuple

from tests.conftest import Run

ROOT = Path(__file__).parent.parent
BLOCK = re.compile(r"^( *)```(\w*)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
NOT_RUN = re.compile(r"<!-- not run: ([^>]+) -->\s*\Z")


class Block(NamedTuple):
    """A block of a page.

    `file` is the name of the file that the prose before it names last. `unrun` says why no test runs the block: the
    page has ``<!-- not run: REASON -->`` before it.
    """

    language: str
    text: str
    file: str
    unrun: str


class Shown(NamedTuple):
    """A command in a page, and the lines that are shown of what it prints."""

    command: str
    lines: list[str]


def text_of(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


def blocks(page: str) -> list[Block]:
    """Return the blocks of a page, in order."""
    found, end = [], 0
    text = text_of(page)
    for match in BLOCK.finditer(text):
        before = text[end : match.start()]
        named = re.findall(r"`((?:[\w.-]+/)+[\w.-]+\.\w+)`", before)
        unrun = NOT_RUN.search(before)
        file = named[-1] if named else ""
        found.append(Block(match[2], textwrap.dedent(match[3]), file, unrun[1].strip() if unrun else ""))
        end = match.end()
    return found


def commands(block: Block) -> list[Shown]:
    """Return the commands of a block: lines that begin with ``$ ``, with what follows; in ``sh`` else all lines."""
    found: list[Shown] = []
    plain = block.language == "sh" and "$ " not in block.text
    for line in block.text.splitlines():
        if found and not found[-1].lines and _goes_on(found[-1].command):
            found[-1] = Shown(f"{found[-1].command}\n{line}", [])
        elif line.startswith("$ ") or (plain and line and not line.startswith("#")):
            found.append(Shown(line.removeprefix("$ "), []))
        elif found and line.strip():
            found[-1].lines.append(line)
    return found


def _goes_on(command: str) -> bool:
    """Return whether a command has more lines: after a backslash, or within quotes."""
    try:
        shlex.split(command, comments=True)
    except ValueError:
        return True
    return command.endswith("\\")


def carried_out(command: str, folder: Path, run: Run, status: int = 0) -> str:
    """Return what a command line prints, run in a folder which is the current one; ``toolkit`` is this one."""
    words = shlex.split(command, comments=True)
    if words[0] == "toolkit" and "\n" not in command.strip() and not {"|", "&&", ">"} & set(words):
        ran = run(*words[1:])
        code, printed = ran.code, ran.out + ran.err
    else:
        prefix = f'toolkit() {{ "{sys.executable}" -m toolkit "$@"; }}; '
        done = subprocess.run(["bash", "-c", prefix + command], cwd=folder, capture_output=True, text=True, check=False)
        code, printed = done.returncode, done.stdout + done.stderr
    assert code == status, (command, printed)
    return printed


def assert_shown(lines: list[str], printed: str) -> None:
    """Check that the lines which a page shows are those of the output; ``…`` stands for what is left out.

    A line that the page breaks is one in the output.
    """
    if " ".join(" ".join(lines).split()) in " ".join(printed.split()):
        return
    there = [line.rstrip() for line in printed.splitlines()]
    for line in (line.rstrip() for line in lines):
        start, left_out, _ = line.partition("…")
        assert any(each == line or (left_out and each.startswith(start.rstrip())) for each in there), (line, printed)
