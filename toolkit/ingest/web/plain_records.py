"""Records of WARC files as nearly all of them are: found many at once by compiled code, which writes headers as JSON.

What is not plain (see `toolkit.ingest.web.kernel.find_plain`), or not sound, is left to `toolkit.ingest.web.records`.
"""

import functools
from collections.abc import Iterator
from typing import TYPE_CHECKING, Protocol

import msgspec

if TYPE_CHECKING:
    from toolkit.text.kernels.compiling import Compiled

BEGIN, BLOCK, END, TYPE, TYPE_END, ID, ID_END, DATE, DATE_END, JSON, JSON_END = range(11)
"""Columns of what is found of a record: where it, its block and headers begin and end; -1 for a header that it has not;
and where its headers stand as JSON."""

COLUMNS = 11

HEADERS = 64
"""A record has fewer, and a head fewer than a hundred times as many bytes."""

_LEAST = 40
"""A record has more bytes."""

_LINE_ENDS = 4
"""Bytes behind the block of a record."""


class Record(msgspec.Struct):
    """One record.

    Attributes:
        type: its WARC-Type.
        id, date: its WARC-Record-ID and WARC-Date, if it has them.
        headers: a JSON object: names lower-case, values as they are, a repeated name's joined by ``, ``.
        block: what follows them; None if it is larger than a document may be.
        offset: of the record in the uncompressed file.
        end: of its block there.
    """

    type: str
    id: str | None
    date: str | None
    headers: msgspec.Raw
    block: bytes | None
    offset: int
    end: int

    @property
    def fields(self) -> dict[str, str]:
        """The headers by their names."""
        return _FIELDS.decode(self.headers)


_FIELDS = msgspec.json.Decoder(dict[str, str])


class Tape(Protocol):
    """A stream of which something may have been read that has not been used."""

    def take(self) -> tuple[bytes, int]:
        """Return what has been read and not been used, and its offset."""

    def more(self, least: int) -> bytes:
        """Return the next bytes, at least so many if there are; none at the end."""

    def give_back(self, rest: bytes, offset: int) -> None:
        """Take back what has not been used, and its offset."""


def plain_records(tape: Tape, largest: int) -> Iterator[Record]:
    """Yield the plain records from where a tape is; where they end, the last one is given back with what follows.

    A record is given when the next one has been found where it should be, or the tape has ended behind it.

    Args:
        tape: of records.
        largest: the most bytes of a block.
    """
    part, offset = tape.take()
    part = part or tape.more(1)
    ended = not part
    while not ended:
        found, json, is_whole = _find(part, largest)
        for row in found[:-1]:
            yield _record(part, offset, row, json)
        rest = found[-1][BEGIN] if found else 0
        more = b"" if is_whole else tape.more((len(part) - rest) // 4)  # a large record is joined few times
        ended = not more
        if found and ended and not is_whole and found[-1][END] + _LINE_ENDS == len(part):
            yield _record(part, offset, found[-1], json)
            rest = len(part)
        part, offset = part[rest:] + more, offset + rest
    tape.give_back(part, offset)


def _record(part: bytes, offset: int, row: list[int], json: bytes) -> Record:
    begin, block, end, type_, type_end, id_, id_end, date, date_end, headers, headers_end = row
    return Record(
        part[type_:type_end].decode(),
        part[id_:id_end].decode() if id_ >= 0 else None,
        part[date:date_end].decode() if date >= 0 else None,
        msgspec.Raw(json[headers:headers_end]),
        part[block:end],
        offset + begin,
        offset + end,
    )


def _find(part: bytes, largest: int) -> tuple[list[list[int]], bytes, bool]:
    """Return the columns of plain records, their JSON, and whether what follows them is whole, and none."""
    import numpy as np

    places = np.empty((len(part) // _LEAST + 1, COLUMNS), dtype=np.int64)
    json, state = np.empty(2 * len(part), dtype=np.int8), np.zeros(2, dtype=np.int64)
    seen = np.empty(HEADERS, dtype=np.uint64)
    try:
        _finder()(np.frombuffer(part, dtype=np.int8), len(part), largest, seen, places, json, state)
    except (ImportError, OSError, RuntimeError):  # there is no code for this machine
        return [], b"", True
    rows = places[: state[0]]
    return rows.tolist(), json[: rows[-1, JSON_END] if len(rows) else 0].tobytes(), not state[1]


@functools.cache
def _finder() -> "Compiled":
    from toolkit.text.kernels.compiling import Compiled

    return Compiled(
        "toolkit.ingest.web.kernel:find_plain", "int8* int64 int64 uint64* int64* int8* int64*", uses=[__name__]
    )
