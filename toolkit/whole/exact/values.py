"""Step 3: the values of a shard's documents, from its runs and from what was resolved."""

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import msgspec
import numpy as np

from toolkit.text.kernels.compiling import Compiled
from toolkit.text.kernels.signatures import UInt8s, UInt32s
from toolkit.whole.exact.resolving import Whole, losers, parts_of, staying
from toolkit.whole.exact.runs import ABSENT, FIRST, RunOfShard
from toolkit.whole.records import SignedShard

_NUMBER = FIRST - 1


def of_documents(signed: SignedShard, folder: str) -> Iterator[msgspec.Raw]:
    """Yield ``{"duplicate_of", "copies"}`` of each document."""
    whole, places = parts_of(folder, signed.number)
    for place in places:
        yield from _documents(folder, whole, place)


_ABSENT = msgspec.Raw(b'{"duplicate_of":null,"copies":0}')
_ALONE = msgspec.Raw(b'{"duplicate_of":null,"copies":1}')


def _documents(folder: str, whole: Whole, place: int) -> Iterator[msgspec.Raw]:
    run = whole.runs[place]
    found = losers(folder, whole, place)
    among = {key: i for i, key in enumerate(found.keys.tolist())}
    copies, stays = found.copies.tolist(), found.stays.tolist()
    for item in run.items().tolist():
        if item == ABSENT:
            yield _ABSENT
        elif (i := among.get(item & _NUMBER)) is None:
            yield _ALONE
        else:
            of = b"null" if stays[i] and item & FIRST else found.names[i]
            yield msgspec.Raw(b'{"duplicate_of":%b,"copies":%d}' % (of, copies[i]))


def of_pieces(signed: SignedShard, folder: str) -> Iterator[msgspec.Raw]:
    """Yield ``{"seen", "spans", "chars_seen"}`` of each document."""
    whole, places = parts_of(folder, signed.number)
    for place in places:
        yield from _pieces(whole.runs[place], staying(folder, whole, place))


class Piled(NamedTuple):
    """The pieces of a run.

    Attributes:
        items: uint32, of each piece, as in the run.
        sizes: uint32, of each piece, its code points.
        bounds: uint32, of each document, its pieces, and the code points before them.
        stays: uint8, of each hash, whether it stays in this run; and 1, for pieces that are not compared.
        keys: how many hashes.
        parts: uint8, `_PARTS`, of which the first bytes say where each begins, and the last ends.
    """

    items: UInt32s
    sizes: UInt32s
    bounds: UInt32s
    stays: UInt8s
    keys: int
    parts: UInt8s


_PARTS = (b'{"seen":[', b'],"spans":[', b'],"chars_seen":', b",1.0]")


def _parts() -> np.ndarray:
    places = np.cumsum([len(_PARTS) + 1, *map(len, _PARTS)]).astype("u1")
    return np.concatenate([places, np.frombuffer(b"".join(_PARTS), dtype="u1")])


_values = Compiled(
    "toolkit.whole.exact.kernel:values", Piled, "int64 uint8* int64*", uses=["toolkit.text.kernels.intrinsics"]
)

_SPAN, _VALUE = len(b"[,,1.0],") + 2 * 10, len(b'{"seen":[],"spans":[],"chars_seen":}') + 10
"""Bytes of JSON, at most: numbers have ten digits."""


def _pieces(run: RunOfShard, stays: np.ndarray) -> Iterator[msgspec.Raw]:
    items, bounds = run.items(), run.bounds()
    pieces, documents = len(items), len(bounds)
    out = np.empty(len(b"false,") * pieces + _SPAN * ((pieces + documents) // 2 + 1) + _VALUE * documents, dtype="u1")
    ends = np.zeros(documents + 1, dtype=np.int64)
    piled = Piled(
        items, run.sizes(), np.ascontiguousarray(bounds), np.append(stays, True).astype("u1"), len(stays), _parts()
    )
    _values(piled, documents, out, ends[1:])
    found = out[: ends[-1]].tobytes()
    for begin, end in pairwise(ends.tolist()):
        yield msgspec.Raw(found[begin:end])
