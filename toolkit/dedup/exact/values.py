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
    bounds = run.bounds()
    firsts = np.r_[0, np.cumsum(bounds[:, 0], dtype=np.int64)]  # the first piece of each document
    ends = np.cumsum(run.sizes(), dtype=np.int64)
    begins = ends - run.sizes()
    shift = bounds[:, 1] - np.r_[0, ends][firsts[:-1]]
    owners = np.repeat(np.arange(len(bounds)), bounds[:, 0])
    edge = np.zeros(len(seen) + 1, dtype=bool)
    edge[firsts] = True
    after = np.r_[False, seen[:-1]]
    opens = np.flatnonzero(seen & (~after | edge[:-1]))
    closes = np.flatnonzero(seen & (~np.r_[seen[1:], False] | edge[1:]))
    spans = np.stack([begins[opens] + shift[owners[opens]], ends[closes] + shift[owners[closes]]], axis=1)
    places: list[int] = np.asarray(np.searchsorted(opens, firsts)).tolist()
    flags = ["true" if each else "false" for each in seen.tolist()]
    listed: list[list[int]] = spans.tolist()
    pieces: list[int] = firsts.tolist()
    for i in range(len(bounds)):
        mine = listed[places[i] : places[i + 1]]
        text = ",".join([f"[{begin},{end},1.0]" for begin, end in mine])
        chars = sum([end - begin for begin, end in mine])
        of_pieces = ",".join(flags[pieces[i] : pieces[i + 1]])
        yield msgspec.Raw(f'{{"seen":[{of_pieces}],"spans":[{text}],"chars_seen":{chars}}}'.encode())
