"""Columns of the matrix: commands, what is there before, and the kinds of files that they have to do with."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Column:
    """A command.

    Attributes:
        name: of the column.
        command: its arguments beside the configuration; ``{root}`` is that of the corpus.
        before: a name of `STATES`.
        touches: kinds of files that it asks for, or writes, in a bucket or in a folder.
        more: of the configuration, beside that of the corpus; ``mix`` is merged into the section.
        lacks: a file that is not there before, though it is in that state.
        configured: whether it is given the configuration.
        verifies: kinds of files of which it must find, or make again, each that is damaged; others may do without it.
        sweeps: whether it deletes what killed runs have left; others leave that to the next run, or to `toolkit clean`.
        finds: what it says of damaged files, beside what their rows say, and that it names their shards: an expression.
        passes: a name of `STATES`, if it makes what is there then, and deletes it.
    """

    name: str
    command: str
    before: str
    touches: str
    more: tuple[tuple[str, Any], ...] = ()
    lacks: str = ""
    configured: bool = True
    verifies: str = ""
    sweeps: bool = True
    finds: str = ""
    passes: str = ""


STATES = {"laid out": "", "ingested": "ingest", "tagged": "tag", "mixed": "mix"}
"""What is there before a command, and the command that makes it of what was there before that."""

_ABOUT = (
    ("about", {
        "name": "c", "description": "d", "creator": {"type": "Person", "name": "E"}, "license": "https://example.org/l",
        "date_published": "2026-01-31", "url": "https://example.org/", "version": "1.0.0",
    }),
)  # fmt: skip
_OTHER_RULE = (("rules", [{"drop": "document.id == '0-2'", "name": "other"}, {"drop": "tongue.label == 'de'"}]),)

_INGESTED = "documents attributes row_indexes ingest_records"
_DATA = "documents attributes schemas shard_records row_indexes ingest_records"
_OUT = "intermediates staged_parts manifest checksums parts"
_ALL = f"inputs rejects {_DATA} {_OUT} claims failures others"

_SHARD = "data/documents/s/b/1.jsonl.gz"

_MIXING = f"inputs {_DATA} {_OUT} rejects claims failures others"
_DESCRIBED = "documents attributes manifest parts checksums ingest_records descriptions others"
_STATUS = f"inputs {_DATA} manifest checksums claims failures parts others"
_VALIDATED = f"{_DATA} manifest checksums parts descriptions others"
_VERIFIED = "documents attributes schemas shard_records row_indexes manifest checksums parts"
_HEAD = "head {root}/data/documents/s/a/0.jsonl.gz"

COLUMNS = (
    Column("ingest", "ingest", "laid out", f"inputs rejects {_INGESTED} parts claims failures others"),
    Column("tag", "tag", "ingested", f"inputs {_DATA} parts rejects claims failures others"),
    Column("mix", "mix", "tagged", _MIXING),
    Column("remix", "mix", "mixed", _MIXING, (("mix", dict(_OTHER_RULE)),)),
    Column("mix-gone-shard", "mix", "tagged", f"{_DATA} rejects manifest parts others", lacks=_SHARD),
    Column("run", "run", "laid out", _ALL),
    Column("again", "run", "mixed", _ALL),
    Column("per-shard", "run --per-shard", "laid out", _ALL, passes="tagged"),
    Column("status", "status", "mixed", _STATUS, finds="changed|not indexed|gone|damaged"),
    Column("validate", "validate", "mixed", _VALIDATED, verifies=_VERIFIED, sweeps=False),
    Column("head", _HEAD, "mixed", "documents attributes others", configured=False),
    Column("stats", "stats {root}/out", "mixed", "manifest parts others", configured=False),
    Column("dry-mix", "mix --dry-run", "tagged", f"inputs {_DATA} manifest parts others"),
    Column("croissant", "croissant", "mixed", _DESCRIBED, _ABOUT, sweeps=False),
    Column("card", "card", "mixed", _DESCRIBED, _ABOUT, sweeps=False),
    Column("clean", "clean {root}", "mixed", f"inputs rejects {_DATA} parts others", configured=False),
)  # fmt: skip
