"""Step 2b, per shard: the text of stretches that share an anchor with others, read again, in files of their units.

A unit is a range of anchors. Files are sections by unit; a section has, of some stretches of the unit in their order:
ranks, hashes of anchors, numbers in the shard, passages, code points where whole characters begin and end, bytes at
the end that are part of another one (one number each), and texts, as long as the passages say.
"""

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from toolkit.config.settings import ConfigStruct
from toolkit.data.documents import DocumentRow
from toolkit.runs.executors import Report
from toolkit.storage.json_files import load, save
from toolkit.storage.paths import join
from toolkit.text.kernels.signatures import Array
from toolkit.whole.exact.resolving import Whole, grouped, parts_of
from toolkit.whole.exact.runs import FIRST
from toolkit.whole.passages.stretches import PLACE, first_bytes
from toolkit.whole.passages.units import Counted
from toolkit.whole.records import SignedShard
from toolkit.whole.sealed import read_sealed
from toolkit.whole.sections import packed, write_sections
from toolkit.whole.sign import documents_of

ASKED = "asked"
PLACES = "places"
"""File of a shard's signatures: the `PLACE` of each stretch."""

TYPES = ("<f8", "<u8", "<u4", "<u4", "<u4", "<u4", "u1", "u1")
_PART = 12  # of the memory: of texts that are held, so that their passages have room when they are compared
_ROW = 400  # bytes of memory that a stretch takes beside its text


class ToAsk(ConfigStruct):
    """A shard of which the text of some stretches is read.

    Attributes:
        signed: the shard.
        resolved: folder of what is known of equal stretches.
        length: bytes of a passage.
        counted: what passages are counted in.
        units: how many there are.
        memory: bytes that may be used.
        folder: to write to.
    """

    signed: SignedShard
    resolved: str
    length: int
    counted: Counted
    units: int
    memory: int
    folder: str


class Asked(ConfigStruct):
    """How many files were written, and how many passages each unit has in them."""

    files: int
    passages: list[int]


class Stretch(NamedTuple):
    """Stretches of a run, of which texts are read, column by column, in their order.

    Attributes:
        rows: of their documents in the shard.
        begins: bytes of the document before each.
        items: their numbers in the shard.
        passages: how many each has.
        anchors: the hash of the anchor of each.
        ranks: float64; the lowest stays.
        places: `PLACE`.
    """

    rows: Array
    begins: Array
    items: Array
    passages: Array
    anchors: Array
    ranks: Array
    places: Array


def asked_runs(work: ToAsk) -> Iterator[Stretch]:
    """Yield the stretches of each run of a shard whose text is to be read."""
    whole, numbers = parts_of(work.resolved, work.signed.number)
    rows = items = 0
    for number in numbers:
        yield _asked(work, whole, number, rows, items)
        rows, items = rows + whole.runs[number].run.documents, items + whole.runs[number].run.items


def _asked(work: ToAsk, whole: Whole, number: int, row: int, first: int) -> Stretch:
    run = whole.runs[number]
    items, counts, sizes = run.items(), run.bounds()[:, 0].astype(np.int64), run.sizes()
    keys = (items & np.uint32(FIRST - 1)).astype(np.int64)
    which = np.flatnonzero(((items & np.uint32(FIRST)) != 0) & grouped(work.resolved, whole, number)[keys])
    documents = np.repeat(np.arange(len(counts)), counts)
    known = run.read(run.run.at, run.run.keys, whole.layout.dtype)[keys[which]]
    own = whole.layout.ranks and run.own
    return Stretch(
        rows=row + documents[which],
        begins=first_bytes(sizes, counts)[which],
        items=first + which,
        passages=sizes[which].astype(np.int64),
        anchors=known["hi"],
        ranks=known["rank"] if own else np.full(len(which), 0.0 if run.own else -np.inf),
        places=places_of(work.signed, first, len(items))[which],
    )


def places_of(signed: SignedShard, first: int, count: int) -> Array:
    """Return the places of some stretches of a shard that follow one another."""
    data = read_sealed(signed.path(PLACES), PLACE.itemsize * first, PLACE.itemsize * count)
    return np.frombuffer(data, dtype=PLACE)


def ask_shard(work: ToAsk, report: Report) -> Asked:
    """Write the text of the stretches of a shard that are to be compared, unless that was done before.

    Raises:
        DataError: if the documents are others than those that have been signed.
    """
    path = join(work.folder, f"{ASKED}-{work.signed.number}")
    if done := load(path + ".json", Asked):
        return done
    is_wanted = np.zeros(work.signed.record.rows, dtype=bool)
    for stretches in asked_runs(work):
        is_wanted[stretches.rows] = True
    passages = [0] * work.units
    files = 0
    if is_wanted.any():
        documents = documents_of(work.signed, is_wanted)
        for files, (stretches, texts) in enumerate(_texts(work, documents), 1):  # how many there are
            write_sections(f"{path}-{files - 1}", _sections(stretches, texts, passages))
        next(documents, None)  # which are held against what was signed when all have been read
    found = Asked(files=files, passages=passages)
    save(path + ".json", found)
    return found


def _texts(work: ToAsk, documents: Iterator[DocumentRow]) -> Iterator[tuple[Stretch, list[bytes]]]:
    """Yield stretches with their texts, as many at a time as there is room for."""
    form = work.counted.form
    for stretches in asked_runs(work):
        held: list[bytes] = []
        begin = size = 0
        text, last = b"", -1
        ends = stretches.begins + stretches.passages + (work.length - 1)
        places = zip(stretches.rows.tolist(), stretches.begins.tolist(), ends.tolist(), strict=True)
        for number, (row, first, behind) in enumerate(places, 1):
            if row != last:
                text, last = form(next(documents).text), row
            held.append(text[first:behind])
            size += behind - first + _ROW
            if size > work.memory // _PART or number == len(stretches.rows):
                yield Stretch(*(column[begin:number] for column in stretches)), held
                begin, size, held = number, 0, []


def _sections(stretches: Stretch, texts: list[bytes], passages: list[int]) -> Iterator[bytes]:
    """Yield the section of each unit, whose passages are counted."""
    units = ((stretches.anchors >> np.uint64(32)) * np.uint64(len(passages))) >> np.uint64(32)
    order = np.argsort(units, kind="stable")
    edges = np.searchsorted(units[order], np.arange(len(passages) + 1)).tolist()
    for unit, (first, behind) in enumerate(pairwise(edges)):
        which = order[first:behind]
        passages[unit] += int(stretches.passages[which].sum())
        places = stretches.places[which]
        columns = [column[which] for column in (stretches.ranks, stretches.anchors, stretches.items)]
        columns += [stretches.passages[which], places["start"], places["end"], places["over"]]
        columns += [np.frombuffer(b"".join([texts[i] for i in which.tolist()]), dtype="u1")]
        typed = [column.astype(type_) for column, type_ in zip(columns, TYPES, strict=True)]
        yield packed(typed) if len(which) else b""
