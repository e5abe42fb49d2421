"""Ten changes of what a command gives, made in the run under test; the replay has to report each.

`plugin` writes a folder for ``PYTHONPATH``. Its ``sitecustomize`` lets the command run in a process of its own, and
changes files and output when it has ended, so that it knows nothing of the toolkit but its entry point.
"""

import gzip
import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

Rows = list[bytes]


class Outcome(NamedTuple):
    """What a command gave.

    Attributes:
        output: File of standard output.
        error: File of standard error.
    """

    output: Path
    error: Path

    def rows(self, folder: str, change: Callable[[Rows], Rows]) -> None:
        """Change the rows of the first file below a folder."""
        path = next((path for path in sorted(Path(folder).rglob("*.jsonl.gz")) if ".toolkit" not in path.parts), None)
        if path:
            rows = change(gzip.decompress(path.read_bytes()).splitlines(keepends=True))
            path.write_bytes(gzip.compress(b"".join(rows), mtime=0))

    def json(self, change: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
        """Change what is printed as JSON."""
        text = self.output.read_text()
        if text.startswith("{"):
            self.output.write_text(json.dumps(change(json.loads(text))))


DOCUMENTS, ATTRIBUTES = "data/quickstart/documents", "data/quickstart/attributes/shape-0"
ANNOTATED = "data/quickstart/oscar"


def _reversed_keys(rows: Rows) -> Rows:
    row = json.loads(rows[0])
    return [json.dumps(dict(reversed(row.items())), separators=(",", ":")).encode() + b"\n", *rows[1:]]


def _last_digit(rows: Rows) -> Rows:
    return [re.sub(rb"(\d)([,}])", lambda m: b"%d%s" % ((int(m[1]) + 1) % 10, m[2]), rows[0], count=1), *rows[1:]]


def _renamed(value: dict[str, Any]) -> dict[str, Any]:
    return {"renamed" if key == "mix" else key: each for key, each in value.items()}


def _totals(change: Callable[[int], Any]) -> Callable[[dict[str, Any]], dict[str, Any]]:
    def changed(value: dict[str, Any]) -> dict[str, Any]:
        value["mix"]["totals"]["kept"] = change(value["mix"]["totals"]["kept"])
        return value

    return changed


def _missing(_: Outcome) -> None:
    next(iter(sorted(Path(ANNOTATED).rglob("*_sha256.txt")))).unlink()


CHANGES: dict[str, Callable[[Outcome], Any]] = {
    "a byte of a text": lambda outcome: outcome.rows(
        DOCUMENTS, lambda rows: [rows[0].replace(b'"text":"', b'"text":"-', 1), *rows[1:]]
    ),
    "an order of rows": lambda outcome: outcome.rows(DOCUMENTS, lambda rows: [rows[1], rows[0], *rows[2:]]),
    "an order of keys": lambda outcome: outcome.rows(ATTRIBUTES, _reversed_keys),
    "a key of JSON": lambda outcome: outcome.json(_renamed),
    "a type": lambda outcome: outcome.json(_totals(str)),
    "an exit code": lambda outcome: 1,
    "a message": lambda outcome: outcome.error.write_text(outcome.error.read_text().replace("expected", "wanted")),
    "a missing file": _missing,
    "a count": lambda outcome: outcome.json(_totals(lambda count: count + 1)),
    "the last digit of an attribute": lambda outcome: outcome.rows(ATTRIBUTES, _last_digit),
}
"""Changes by name; one that returns 1 changes the exit status."""


def plugin(folder: Path, name: str) -> Path:
    """Write a folder for ``PYTHONPATH`` that makes a change; return it."""
    folder.mkdir(parents=True)
    (folder / "sitecustomize.py").write_text(f"from tests.replay.planted import plant\nplant({name!r})\n")
    return folder


def plant(name: str) -> None:
    """Let the entry point of the toolkit make a change when a command has ended."""
    from toolkit import cli

    entry = cli.entry

    def changed() -> None:
        child = os.fork()
        if child == 0:
            entry()
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        outcome = Outcome(*(Path(os.readlink(f"/proc/self/fd/{number}")) for number in (1, 2)))
        if CHANGES[name](outcome) == 1 and name == "an exit code":
            status = 1
        os._exit(status)

    cli.entry = changed  # type: ignore[assignment]
