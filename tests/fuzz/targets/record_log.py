"""Record logs: each entry that is read is one that was written, whatever else the file holds."""

import gzip

from tests.fuzz.targets._files import refuses
from toolkit.storage.record_log import Contents, Entry, State, entry_of, header, line_of

_ENTRIES = [
    Entry("rows", "a", 1, b'{"version":3,"size":5}'),
    Entry("set x-0", "a", 2, b'{"rows":3}'),
    Entry("set x-0", "a", 3, None),
    Entry("ingest", "b/ü", 1, b"{}"),
]
_PLAIN = header(len(_ENTRIES)) + b"\n" + b"".join(line_of(each) + b"\n" for each in _ENTRIES)
SEEDS = [
    _PLAIN,
    gzip.compress(_PLAIN, mtime=0),
    gzip.compress(_PLAIN[:300], mtime=0) + gzip.compress(_PLAIN[300:], mtime=0),
    header(0) + b"\n",
]


def check(data: bytes) -> None:
    contents, found = Contents("j", data), list[Entry]()
    refuses(lambda: found.extend(contents))
    for each in found:
        assert entry_of(line_of(each)) == each
    state = State(found)
    for each in found:
        held = state.get(each.place)
        assert held is not None
        assert held.rank >= each.rank
    if not contents.fault and found:
        assert [*Contents("j", header(len(found)) + b"\n" + b"".join(line_of(e) + b"\n" for e in found))] == found
