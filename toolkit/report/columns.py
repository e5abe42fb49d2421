"""What reports need of documents beside their attributes: lines, words, source, host and crawl of each, kept by shard.

Rules can then be changed, and reported on again, without a text being read: ``<folder>/<shard>.columns`` holds a
`Columns`, compressed. It takes a few bytes a document.
"""

import zlib
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import msgspec

from toolkit.aggregate import keys
from toolkit.data import row_index
from toolkit.mix.join import JoinedShard, Joiner, joint_blocks
from toolkit.runs.executors import Report
from toolkit.storage import store_of
from toolkit.storage.outputs import write_file
from toolkit.storage.paths import join, unlike_data
from toolkit.text.counting import COLUMNS

if TYPE_CHECKING:
    import numpy as np

VERSION = 1

KINDS = ("source", "host", "crawl")
"""How documents are grouped; top-level domains are those of hosts."""

_LINES, _WORDS = COLUMNS.index("lines"), COLUMNS.index("words")


class Columns(msgspec.Struct, frozen=True, kw_only=True):
    """The columns of a shard.

    Attributes:
        content: digest of the documents.
        lines, words: int32 of each row.
        values: of each of `KINDS`, the different keys, JSON texts.
        places: likewise int32 of each row, places among these.
    """

    version: int = VERSION
    content: str
    lines: bytes
    words: bytes
    values: dict[str, list[str]]
    places: dict[str, bytes]

    def array(self, data: bytes) -> "np.ndarray[Any, Any]":
        """Return one of the columns."""
        import numpy as np

        return np.frombuffer(data, dtype="<i4")


_DECODER = msgspec.msgpack.Decoder(Columns)


def columns_of(work: JoinedShard, folder: str, report: Report) -> Columns:
    """Return the columns of a shard that has been indexed; read its documents if that has not been done.

    Args:
        work: the shard.
        folder: that columns are kept in.
        report: told of what is read.

    Raises:
        DataError: if a row is not a document.
    """
    state = row_index.ensure(work.dataset, work.shard, work.max_document_bytes)
    path = join(folder, unlike_data(work.shard) + ".columns")
    found = _loaded(path)
    if found and found.version == VERSION and found.content == state.content:
        return found
    own = msgspec.structs.replace(work.stream, text=None)  # columns are about the documents' own text
    made = _made(msgspec.structs.replace(work, sets=[], stream=own), state.content, report)
    write_file(path, zlib.compress(msgspec.msgpack.encode(made), 1))
    return made


def _loaded(path: str) -> Columns | None:
    """Return columns that were kept; None if there are none, or they are damaged: then they are made anew."""
    try:
        return _DECODER.decode(zlib.decompress(store_of(path).read(path)))
    except (FileNotFoundError, NotADirectoryError, zlib.error, msgspec.DecodeError, UnicodeDecodeError):
        return None


def _made(work: JoinedShard, content: str, report: Report) -> Columns:
    import numpy as np

    seen: dict[str, dict[str, int]] = {kind: {} for kind in KINDS}
    places: dict[str, list[np.ndarray[Any, Any]]] = {kind: [] for kind in KINDS}
    lines: list[np.ndarray[Any, Any]] = []
    words: list[np.ndarray[Any, Any]] = []
    path = work.path
    with ExitStack() as stack:
        joiner = Joiner(work, set(), late=True)
        for block in joint_blocks(work, stack):
            rows = list(joiner.measured(block, unicode=False))
            lines.append(np.array([size[_LINES] for _, size in rows], dtype="<i4"))
            words.append(np.array([size[_WORDS] for _, size in rows], dtype="<i4"))
            for kind, known in seen.items():
                found = [keys.of_document(kind, path, row[0]) for row, _ in rows]
                places[kind].append(np.array([known.setdefault(key, len(known)) for key in found], dtype="<i4"))
            report(0, block.documents.stored)
    none = np.zeros(0, dtype="<i4")
    return Columns(
        content=content,
        lines=np.concatenate([none, *lines]).tobytes(),
        words=np.concatenate([none, *words]).tobytes(),
        values={kind: list(known) for kind, known in seen.items()},
        places={kind: np.concatenate([none, *found]).tobytes() for kind, found in places.items()},
    )
