"""The four questions that each cell is judged by.

1. Is the exit status right? 0 is right only where everything is as without the fault.
2. Does the message name what was struck and the true cause, and say what to do?
3. Is nothing half-written visible?
4. Does the same command, without the fault, lead to the bytes of an undisturbed run, and leave nothing behind?
"""

import os.path
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from tests.conftest import Ran
from tests.faults.columns import Column
from tests.faults.corpus import plain
from tests.faults.kinds import is_shown, kind_of
from tests.faults.places import File, State
from tests.faults.rows import Row
from toolkit.data.record_logs import INGEST
from toolkit.storage.record_log import LogEntry, LogFile, RecordKey

SHARD = re.compile(r"\w/\d\.jsonl\.gz")
"""A shard in a path."""

ADVICE = re.compile(
    r"(?i)\bagain\b|\blater\b|the same command|\bwait|\bcheck |\brestore\b|\bdelete\b|\bmove\b|\bset `|\bchoose\b|"
    r"\brun `|\bmake\b|\bfree |\braise `|\bsee\b|\blet\b|\blook after\b|\bput it back\b|\bmount(ed)?\b|"
    r"\bexclude\b|toolkit clean|`toolkit run` does|is the address right"
)
"""Words by which a message says what to do."""

FALSE_CAUSES = re.compile(
    r"Traceback|got none of that name|got nothing there|got no match|got no such file|No such object|is gone|not begun|"
    r"run `toolkit (ingest|tag)` first|check key and secret|may be written in|got none;|another run|No such file"
)
"""What is not true of any fault that only is in the way: causes that a message must not name."""

ABOUT = {
    r"data/\.toolkit/rows/(.+?)\.bin": r"{root}/data/documents/\1",
    r"data/\.toolkit/sets/([^/]+)/(?:schema|models)\.json": r"\1",
    r"data/\.toolkit/dedup/([^/]+)/.*": r"\1",
    r"items/.*": "items-0",
}
"""What records are about, by which a message may name them: documents, a set, attributes."""

OF_A_RUN = ("answers", "ledger")
"""Kinds of files that have names of the run that wrote them: what they hold is seen in the sets made of it."""

PASSING = ("leases", "failures")
"""Kinds of files that end by themselves, or with the next run: no harm is done where one cannot be deleted."""


@dataclass(frozen=True)
class Undisturbed:
    """What a command does without a fault.

    Attributes:
        passes: what it makes on the way, and deletes.
        seconds: that it took.
    """

    before: State
    ran: Ran
    after: State
    passes: State = field(default_factory=dict)
    seconds: float = 0.0


@dataclass(frozen=True)
class Disturbed:
    """What a command did.

    Attributes:
        paths: below the root, that were struck.
        ran: the command, and what was there after it.
        again: the same without the fault, and what was there after that.
        is_remade: whether a file that was damaged before the command is no longer what the damage left. One that is
            was put back from a copy before `after`.
    """

    root: str
    paths: Sequence[str]
    ran: Ran
    after: State
    again: Ran
    healed: State
    is_remade: bool = False


def judge(row: Row, column: Column, undisturbed: Undisturbed, found: Disturbed) -> list[str]:
    """What is wrong, each a sentence that begins with the number of its question; none is good.

    Args:
        row: whose fault it was.
        column: whose command it was.
        undisturbed: without it.
        found: with it.
    """
    if row.where == "file" and any(kind_of(path) in column.decides.split() for path in found.paths):
        row = replace(row, codes=(*row.codes, 2), cause=f"{row.cause}|made with other settings")
    wrong = _status(row, undisturbed, found)
    damaged = [path for path in found.paths if kind_of(path) in column.verifies.split() and not found.is_remade]
    if damaged and row.where == "file" and found.ran.code == undisturbed.ran.code:
        wrong.append(f"1: status {found.ran.code}, but {damaged[0]} is damaged")
    if found.ran.code != undisturbed.ran.code:
        wrong += _message(row, column, found)
    wrong += half_written(row, undisturbed, found)
    return wrong + rerun(row, column, undisturbed, found)


def shown(state: State) -> dict[str, str]:
    """Digests of what is visible."""
    return {name: file.digest for name, file in state.items() if is_shown(name) and "?upload=" not in name}


def _status(row: Row, undisturbed: Undisturbed, found: Disturbed) -> list[str]:
    code, expected = found.ran.code, undisturbed.ran.code
    if code == expected:
        may_tell = row.where == "file" and (found.is_remade or _is_warned_of(row, found))
        what_it_says = undisturbed.ran if may_tell else found.ran
        return [f"1: status {code}, but {what}" for what in different(undisturbed, what_it_says, found.after)]
    if not row.lasts:
        return [f"1: expected status {expected} of what passes, got {code}: {_end(found.ran)}"]
    if code not in row.codes:
        return [f"1: expected status {' or '.join(map(str, row.codes))}, got {code}: {_end(found.ran)}"]
    written = [name for name in found.after.keys() - undisturbed.before.keys() if "?upload=" not in name]
    if code == 2 and written:
        return ["1: status 2, but something was written"]
    return []


def _is_warned_of(row: Row, found: Disturbed) -> bool:
    """Whether a line of the log names the file and the cause."""
    return any(
        f"{found.root}/{found.paths[0]}" in line and re.search(row.cause, line) for line in found.ran.err.splitlines()
    )


def different(undisturbed: Undisturbed, ran: Ran, after: State) -> list[str]:
    """How an outcome is not that of an undisturbed run."""
    wrong = _unlike(shown(undisturbed.after), shown(after))
    if plain(ran.out) != plain(undisturbed.ran.out):
        wrong.append(f"it prints {_end(ran)}")
    left = sorted(after.keys() - undisturbed.after.keys())
    kept = (*PASSING, *OF_A_RUN)
    return wrong + [f"{name} is left" for name in left if kind_of(name) not in kept and "?upload=" not in name]


def _unlike(wanted: Mapping[str, str], got: Mapping[str, str]) -> list[str]:
    return [
        f"{name} is {'missing' if name not in got else 'not wanted' if name not in wanted else 'different'}"
        for name in sorted(wanted.keys() | got.keys())
        if wanted.get(name) != got.get(name)
    ]


def _message(row: Row, column: Column, found: Disturbed) -> list[str]:
    said = found.ran.out + found.ran.err
    wrong = []
    everywhere = row.spreads or row.fault == "gone"  # then whatever was met first is named
    named = [n for path in found.paths for n in _names(found.root, path)]
    if everywhere:
        named = [f"{found.root}{end}" for end in "/:,"]
    if column.finds and row.where == "file":
        shards = (SHARD.search(path) for path in found.paths)
        named += [shard[0] if shard else f"{found.root}/out" for shard in shards]
    if not any(name in said for name in named):
        wrong.append(f"2: none of {sorted(set(found.paths))[:3]} is named: {_end(found.ran)}")
    cause = f"{row.cause}|{column.finds}" if column.finds and row.where == "file" else row.cause
    if not re.search(cause, said):
        wrong.append(f"2: the cause is not named: {_end(found.ran)}")
    if not ADVICE.search(said):
        wrong.append(f"2: nothing says what to do: {_end(found.ran)}")
    false = FALSE_CAUSES.search(re.sub(row.true, "", said) if row.true else said)
    if false and not re.search(row.cause, false[0]):
        wrong.append(f"2: a false cause is named, {false[0]!r}: {_end(found.ran)}")
    return wrong


def _names(root: str, path: str) -> list[str]:
    """What a message may call what was struck: the path, or of a hidden file the one that it becomes."""
    folder, _, name = f"{root}/{path}".removesuffix("/.").rstrip("/").rpartition("/")
    names = [f"{folder}/{name}"] if name != "probe" else [folder.removesuffix("/.toolkit")]
    names += [
        found.expand(of.format(root=root)) for record, of in ABOUT.items() if (found := re.fullmatch(record, path))
    ]
    if not os.path.splitext(name)[1] or kind_of(path) in ("intermediates", "staged_parts"):
        while "/.toolkit/" in folder:  # what is deleted as a whole is named as a whole
            names.append(folder)
            folder = folder.rpartition("/")[0]
    if written := re.fullmatch(r"\.(.+)\.[^.]+\.\d+-\d+\.\d+\.tmp", name):
        names.append(f"{folder}/{written[1]}")
    return names


def half_written(row: Row, undisturbed: Undisturbed, found: Disturbed) -> list[str]:
    wrong = []
    if row.fault != "gone":  # in a folder that has vanished nothing can be deleted
        wrong += [f"3: the temporary file {name} is left" for name in found.after if name.endswith(".tmp")]
    before, done, now = shown(undisturbed.before), shown(undisturbed.after), shown(found.after)
    passing = shown(undisturbed.passes)
    for name, digest in now.items():
        if digest not in (before.get(name), done.get(name), passing.get(name)):
            wrong.append(f"3: {name} is neither what it was nor what it should become")
    published = [name for name in now if kind_of(name) in ("parts", "checksums")]
    manifest, record_log = "out/.toolkit/manifest.json", "out/.toolkit/publishing.json"
    for name, file in found.after.items():
        if name == manifest and record_log in found.after:  # which says that it is just being replaced
            continue
        wrong += [
            f"3: {name} says that {each} is complete"
            for each in _not_there(name, file.data, now)
            if undisturbed.before.get(name) != file  # else it said so before
            and not _is_deleted(each, found.after)
        ]
    before_records = recorded(undisturbed.before)
    new = {path: said for path, said in recorded(found.after).items() if before_records.get(path) != said}
    wrong += [
        f"3: a record says that {each} is complete" for each in _others(new, now) if not _is_deleted(each, found.after)
    ]
    if published and manifest not in now and record_log not in found.after:
        wrong.append(f"3: {published[0]} is published, and no manifest says of what")
    failed = found.ran.code != undisturbed.ran.code
    if failed and now.get(manifest) != before.get(manifest) and record_log not in found.after:
        wrong += [] if _is_whole(now, done) else ["3: the manifest is another, and parts are missing"]
    return wrong


def _is_whole(now: Mapping[str, str], done: Mapping[str, str]) -> bool:
    return all(now.get(name) == digest for name, digest in done.items() if kind_of(name) in ("parts", "checksums"))


def _is_deleted(path: str, now: State) -> bool:
    """Whether the record of an input says that what was made of it is deleted: that is noted before it is."""
    shard = re.fullmatch(r"data/(?:documents|attributes/[^/]+)/(.*)", path)
    record = _records(now, "inputs").get((INGEST, shard[1])) if shard else None
    return record is not None and record.get("deleted") is True


def _not_there(name: str, data: bytes, now: Mapping[str, str]) -> list[str]:
    """Files that a record says are complete, and that are not as it says."""
    try:
        record = msgspec.json.decode(data) if name.endswith(".json") else None
    except msgspec.DecodeError:
        return []
    if not isinstance(record, dict) or record.get("deleted"):
        return []
    listed: dict[str, Any] = {}
    if name == "out/.toolkit/manifest.json":
        listed |= {f"out/{part['path']}": part for part in record["parts"]}
    return _others(listed, now)


def _others(listed: Mapping[str, Any], now: Mapping[str, str]) -> list[str]:
    return [
        path
        for path, state in listed.items()
        if isinstance(state, dict) and "sha256" in state and now.get(path) != state["sha256"]
    ]


def recorded(files: State) -> dict[str, Any]:
    """What the records in record logs say of files of documents and attributes, whatever segments they are in."""
    found = {
        f"data/attributes/{kind.removeprefix('set ')}/{key}": record["output"]
        for (kind, key), record in _records(files, "record-log").items()
        if kind.startswith("set ")
    }
    for record in _records(files, "inputs").values():
        if not record.get("deleted", True):  # else its documents are gone on purpose, or an attempt has not ended
            found |= {f"data/documents/{name}": state for name, state in record["shards"].items()}
    return found


def _records(files: State, record_log: str) -> dict[RecordKey, Any]:
    """The records in the record log of the dataset in a folder."""
    found: dict[RecordKey, LogEntry] = {}
    for name, file in files.items():
        if re.fullmatch(rf"data/\.toolkit/{record_log}/(segments/[^.]+|records)\.jsonl\.gz", name):
            for entry in LogFile(name, file.data):
                if entry.place not in found or found[entry.place].rank < entry.rank:
                    found[entry.place] = entry
    return {place: msgspec.json.decode(entry.record) for place, entry in found.items() if entry.record}


def _says_nothing(name: str, file: File) -> bool:
    """Return whether it is a file of records of which none holds: a failure was noted, and forgotten."""
    return name.endswith("/record-log/records.records") and not any(entry.record for entry in LogFile(name, file.data))


def rerun(row: Row, column: Column, undisturbed: Undisturbed, found: Disturbed) -> list[str]:
    if found.again.code != undisturbed.ran.code:
        return [f"4: expected status {undisturbed.ran.code} of the rerun, got {found.again.code}: {_end(found.again)}"]
    wrong = [f"4: after the rerun, {what}" for what in _unlike(shown(undisturbed.after), shown(found.healed))]
    return (
        wrong
        + [
            f"4: after the rerun, {name} is left"
            for name in sorted(found.healed.keys() - undisturbed.after.keys())
            if "?upload=" not in name
            and kind_of(name) not in OF_A_RUN  # of whom nobody knows on S3; `toolkit clean` deletes them
            and not (row.fault == "gone" and not column.sweeps and name.endswith(".tmp"))
            and not ("/record-log/segments/" in name and not column.sweeps)  # the next run merges it
            and not _says_nothing(name, found.healed[name])
            and kind_of(name) != "leases"  # of a run that has ended; the next run with something to do deletes it
        ]
        + [
            f"4: after the rerun, {name} is missing"
            for name in sorted(undisturbed.after.keys() - found.healed.keys())
            if kind_of(name) not in OF_A_RUN
        ]
    )


def _end(ran: Ran) -> str:
    """What it said last."""
    said = [line for line in (ran.out + "\n" + ran.err).splitlines() if line.strip()]
    return repr(" | ".join(os.path.expandvars(line) for line in said[-4:]))[:700]
