"""What targets share: files in memory, and the oracle of input formats."""

import atexit
import io
import json
import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from toolkit.errors import ToolkitError
from toolkit.ingest.ingest_config import Common
from toolkit.ingest.input_rows.rows import InputRows
from toolkit.ingest.reader import READERS, Input, Rejects

MOST = 20_000
"""Bytes of a document."""
NAME = "x.in"

Row = tuple[str, str, str]
"""Id, source and text."""


class Kept(Rejects):
    """Bad items, counted."""

    def __init__(self) -> None:
        super().__init__("")
        self.items = 0

    def add(self, *_: Any, **__: Any) -> None:
        self.items += 1


class Outcome:
    """What became of an input.

    Attributes:
        rows: of its documents; None where it was refused as a whole.
        counts: what was left out.
    """

    def __init__(self, data: bytes, format: str, options: dict[str, Any], *, skip: bool) -> None:
        kept = Kept() if skip else None
        source = Input(NAME, "s", MOST, kept, lambda: io.BytesIO(data))
        reader = READERS.find(format)(**options)
        self.rows: list[Row] | None = []
        try:
            for row in InputRows(source, Common(format=format), reader, NAME).rows():
                found = json.loads(row.line.decode("utf-8"))
                assert isinstance(found, dict)
                text = row.draft.text if row.draft else (row.utf8 or b"").decode("utf-8")
                if row.draft is None or row.draft.raw is None:
                    assert (found["id"], found["text"], found["source"]) == (row.id, text, row.source)
                assert len(text.encode("utf-8").decode("utf-8")) == row.chars
                self.rows.append((row.id, row.source, text))
        except ToolkitError as error:
            assert NAME in str(error), f"expected an error that names the file, got {error}"  # noqa: PT017
            self.rows = None
        self.counts = {name: count for name, count in source.counts.items() if count}
        rejected = sum(count for name, count in self.counts.items() if name.startswith("rejected."))
        lost = sum(count for name, count in self.counts.items() if name.startswith("lost."))
        assert kept is None or kept.items == rejected + lost, "expected each bad item to be counted once"
        assert skip or not rejected, "expected bad items to be errors"


def read_input(data: bytes, format: str, **options: Any) -> Outcome:
    """Read an input in both ways, hold them against each other, and return what the strict one gave."""
    strict, patient = (Outcome(data, format, options, skip=skip) for skip in (False, True))
    if strict.rows is not None:
        assert patient.rows == strict.rows, "expected the same documents whether bad ones are skipped or not"
        assert patient.counts == strict.counts
    return strict


_FOLDER = tempfile.mkdtemp(prefix="fuzz-", dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None)
atexit.register(shutil.rmtree, _FOLDER, ignore_errors=True)


def file_of(data: bytes, name: str = "x") -> str:
    """Return the path of a file with these bytes; the next call takes its place."""
    path = Path(_FOLDER, f"{os.getpid()}-{name}")
    path.write_bytes(data)
    return str(path)


def refuses(function: Callable[[], Any]) -> bool:
    """Run a function; return whether it refused by an error of ours."""
    try:
        function()
    except ToolkitError as error:
        assert str(error).strip(), "expected an error that says something"  # noqa: PT017
        assert len(str(error)) < 100_000, "expected an error that people can read"  # noqa: PT017
        return True
    return False
