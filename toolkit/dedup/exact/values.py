"""Step 3: the values of a shard's documents, from its runs and from what was resolved."""

from collections.abc import Iterator

import msgspec
import numpy as np

from toolkit.dedup.exact.resolving import Whole, losers, parts_of, staying
from toolkit.dedup.exact.runs import ABSENT, FIRST, RunOfShard
from toolkit.dedup.records import SignedShard

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


def _pieces(run: RunOfShard, stays: np.ndarray) -> Iterator[msgspec.Raw]:
    items = run.items()
    compared = items != ABSENT
    seen = compared.copy()
    numbers = items[compared]
    seen[compared] = ~(stays[numbers & np.uint32(_NUMBER)] & (numbers >= FIRST))
    sizes = run.sizes()
    at = 0
    for pieces, before in run.bounds().tolist():
        mine = seen[at : at + pieces]
        if mine.any():
            ends = np.cumsum(sizes[at : at + pieces], dtype=np.int64) + before
            edges = np.flatnonzero(np.diff(np.r_[0, mine.astype("i1"), 0]))
            begins = np.r_[before, ends]
            spans = begins[edges].reshape(-1, 2).tolist()
            chars = sum(end - begin for begin, end in spans)
            text = ",".join([f"[{begin},{end},1.0]" for begin, end in spans])
        else:
            text, chars = "", 0
        flags = ",".join(["true" if each else "false" for each in mine.tolist()])
        yield msgspec.Raw(f'{{"seen":[{flags}],"spans":[{text}],"chars_seen":{chars}}}'.encode())
        at += pieces
