"""Record logs: each entry that is read is one that was written, whatever else the file holds."""

import gzip

from tests.fuzz.targets._files import refuses
from toolkit.storage.record_log import LogEntry, LogFile, NewestEntries, entry_of, header, line_of

_ENTRIES = [
    LogEntry("rows", "a", 1, b'{"version":3,"size":5}'),
    LogEntry("set x-0", "a", 2, b'{"rows":3}'),
    LogEntry("set x-0", "a", 3, None),
    LogEntry("ingest", "b/ü", 1, b"{}"),
]
_PLAIN = header(len(_ENTRIES)) + b"\n" + b"".join(line_of(each) + b"\n" for each in _ENTRIES)
SEEDS = [
    _PLAIN,
    gzip.compress(_PLAIN, mtime=0),
    gzip.compress(_PLAIN[:300], mtime=0) + gzip.compress(_PLAIN[300:], mtime=0),
    header(0) + b"\n",
]


def check(data: bytes) -> None:
    contents, found = LogFile("j", data), list[LogEntry]()
    refuses(lambda: found.extend(contents))
    for each in found:
        assert entry_of(line_of(each)) == each
    state = NewestEntries(found)
    for each in found:
        held = state.get(each.place)
        assert held is not None
        assert held.rank >= each.rank
    if not contents.fault and found:
        assert [*LogFile("j", header(len(found)) + b"\n" + b"".join(line_of(e) + b"\n" for e in found))] == found
