"""WARC records in a buffer, found by compiled code."""

from typing import NamedTuple

import msgspec

from toolkit.lazy_numpy import np
from toolkit.text.kernels.compiling import Compiled
from toolkit.text.kernels.signatures import Array, Bytes, Int64s, UInt8s

NAMES = ("warc-type", "warc-record-id", "warc-date", "content-length", "warc-block-digest", "warc-payload-digest")
"""Headers with a known place."""

LONGEST_HEAD, MOST_NAMES = 1 << 16, 64
"""Bytes and headers of a head above which a record is left to other code."""

ROW, VALUES, JSON_END, DIGEST = 17, 3, 15, 16
"""Numbers of a record, and places in them.

First its offset, that of its block, and the end of this; then the bounds of the value of each of `NAMES`, -1 for none;
the end of its JSON; and 2 if its digest has been decoded, 1 if it has another one, 0 without one.
"""


class Scan(NamedTuple):
    """Room for the records of a buffer.

    Attributes:
        names: `NAMES`, one behind the other.
        name_bounds: Offsets at which these begin, and the end.
        own_names: Places of the names of a record.
        places: `ROW` numbers for each record.
        digests: SHA-1 of each block, 20 bytes, as its header has it.
        headers: JSON of the headers of all records.
        state: Number of records; offset of what follows; 1 if that is a record in another form.
    """

    names: Bytes
    name_bounds: Int64s
    own_names: Int64s
    places: Int64s
    digests: UInt8s
    headers: Bytes
    state: Int64s


_scan = Compiled("toolkit.text.kernels.warc_records:scan_records", "int8* int64 int64 int64", Scan)


class ScannedRecords(NamedTuple):
    """Records at the beginning of a buffer.

    Attributes:
        places: Numbers of each record; int64 (records, `ROW`).
        headers: JSON of the headers of each.
        digests: SHA-1 of each, 20 bytes.
        is_blocked: True if a record in another form follows.
    """

    places: Array
    headers: list[msgspec.Raw]
    digests: bytes
    is_blocked: bool


def scan(data: bytes, limit: int) -> ScannedRecords:
    """Return the whole records at the beginning of a buffer.

    The first in an unusual form ends them.

    Args:
        data: Buffer.
        limit: Bytes of the largest block.
    """
    most = data.count(b"WARC/1.") + 1  # so that what follows the last one is looked at
    names = np.frombuffer("".join(NAMES).encode(), dtype=np.int8)
    room = Scan(
        names,
        np.cumsum([0, *map(len, NAMES)], dtype=np.int64),
        np.empty(2 * MOST_NAMES, dtype=np.int64),
        np.empty((most, ROW), dtype=np.int64),
        np.empty((most, 20), dtype=np.uint8),
        np.empty(2 * len(data) + MOST_NAMES, dtype=np.int8),
        np.zeros(3, dtype=np.int64),
    )
    if data:
        _scan(np.frombuffer(data, dtype=np.int8), len(data), most, limit, room)
    count, _, is_blocked = room.state.tolist()
    places, begin, headers = room.places[:count], 0, list[msgspec.Raw]()
    view = memoryview(room.headers.data)
    for end in places[:, JSON_END].tolist():
        headers.append(msgspec.Raw(view[begin:end].tobytes()))
        begin = end
    return ScannedRecords(places, headers, room.digests[:count].tobytes(), bool(is_blocked))
