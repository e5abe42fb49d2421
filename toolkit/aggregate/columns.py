"""Columns of a shard: lines, words, source, host and crawl of each document, kept so that texts are read once.

``<bookkeeping>/columns/<shard>.columns`` holds `Columns`, a few bytes a document. With the row index and the attributes
they are all that reports and most statistics need: rules, labels and groups can change without a text being read.
"""

import copy
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from typing import Any

import msgspec

from toolkit import partial_sums
from toolkit.aggregate import keys
from toolkit.data import row_index
from toolkit.execution.executors import Report
from toolkit.lazy_numpy import np
from toolkit.mix.join import JoinedShard, Joiner, joint_blocks
from toolkit.mix.rule_effects.preview import BLOCK, blocks
from toolkit.rules.expressions import WHOLE
from toolkit.rules.ruleset import RuleSet
from toolkit.storage.paths import escape_path, join
from toolkit.storage.record_log import Group
from toolkit.text.counting import COLUMNS

VERSION = 1

KINDS = ("source", "host", "crawl")
"""How documents are grouped; top-level domains are those of hosts."""

_LINES, _WORDS = COLUMNS.index("lines"), COLUMNS.index("words")


class Columns(msgspec.Struct, frozen=True, kw_only=True):
    """The columns of a shard.

    Attributes:
        content: digest of the documents.
        lines, words: int32 of each row.
        values: Values of each of `KINDS`, the different keys, JSON texts.
        places: Places of each of `KINDS`, int32 of each row, its place among these.
    """

    version: int = VERSION
    content: str
    lines: bytes
    words: bytes
    values: dict[str, list[str]]
    places: dict[str, bytes]

    def array(self, data: bytes) -> "np.ndarray[Any, Any]":
        """Return one of the columns."""
        return np.frombuffer(data, dtype="<i4")


def columns_of(work: JoinedShard, folder: str, report: Report, group: Group | None = None) -> Columns:
    """Return the columns of an indexed shard; read its documents if that has not been done.

    Args:
        work: the shard.
        folder: Folder that columns are kept in.
        report: told of what is read.
        group: Group with which they become durable; None for at once.

    Raises:
        DataError: if a row is not a document.
    """
    state = row_index.ensure(work.dataset, work.shard, work.max_document_bytes, group)
    path = join(folder, escape_path(work.shard) + ".columns")
    columns = partial_sums.load(path, Columns)
    if columns and columns.version == VERSION and columns.content == state.content:
        return columns
    own = msgspec.structs.replace(work.stream, text=None)  # columns are about the documents' own text
    result = _count(msgspec.structs.replace(work, sets=[], stream=own), state.content, report)
    partial_sums.save(path, result, group.files if group else None)
    return result


def _count(work: JoinedShard, content: str, report: Report) -> Columns:
    numbers: dict[str, dict[str, int]] = {kind: {} for kind in KINDS}
    places: dict[str, list[np.ndarray[Any, Any]]] = {kind: [] for kind in KINDS}
    lines: list[np.ndarray[Any, Any]] = []
    words: list[np.ndarray[Any, Any]] = []
    with ExitStack() as stack:
        joiner = Joiner(work, set(), late=True)
        for block in joint_blocks(work, stack):
            rows = list(joiner.measured(block, unicode=False))
            lines.append(np.array([size[_LINES] for _, size in rows], dtype="<i4"))
            words.append(np.array([size[_WORDS] for _, size in rows], dtype="<i4"))
            for kind, of_document in keys.of_documents(work.path, (row[0] for row, _ in rows)).items():
                table = numbers[kind]
                places[kind].append(np.array([table.setdefault(key, len(table)) for key in of_document], dtype="<i4"))
            report(0, block.documents.stored)
    none = np.zeros(0, dtype="<i4")
    return Columns(
        content=content,
        lines=np.concatenate([none, *lines]).tobytes(),
        words=np.concatenate([none, *words]).tobytes(),
        values={kind: list(table) for kind, table in numbers.items()},
        places={kind: np.concatenate([none, *place]).tobytes() for kind, place in places.items()},
    )


def folder_of(bookkeeping: str) -> str:
    """Return the folder of columns."""
    return join(bookkeeping, "columns")


def decoding(rules: RuleSet, names: Iterable[str]) -> RuleSet:
    """Return rules with some more decoded attributes; the rules are shared in a process."""
    result, names = copy.copy(rules), set(names)
    fields = {**rules.needs.fields, **{name: {WHOLE} for name in names}}
    result.needs = msgspec.structs.replace(rules.needs, keys=rules.needs.keys | names, fields=fields)
    return result


def rows_of(work: JoinedShard, rules: RuleSet, columns: Columns) -> Iterator[keys.CountedRows]:
    """Yield the documents of a shard without their texts.

    Args:
        work: the shard, which has been indexed.
        rules: Rules that say which attributes are needed.
        columns: Columns of its documents.
    """
    lines, words = columns.array(columns.lines), columns.array(columns.words)
    places = {kind: columns.array(data) for kind, data in columns.places.items()}
    number = 0
    for arguments, chars, size in _blocks(work, rules):
        here = slice(number, number + len(chars))
        sizes = np.zeros((len(chars), len(COLUMNS)), dtype=np.int64)
        sizes[:, 0], sizes[:, 1], sizes[:, 2], sizes[:, 3] = lines[here], chars, size, words[here]
        named = {kind: [columns.values[kind][i] for i in place[here].tolist()] for kind, place in places.items()}
        yield keys.CountedRows(number, arguments, sizes, named)
        number += len(chars)


def _blocks(work: JoinedShard, rules: RuleSet) -> Iterator[tuple[list[tuple[Any, ...]], Any, Any]]:
    """Yield the arguments, code points and bytes of documents; the row index has the sizes if nothing else is asked."""
    if work.sets or rules.needs.keys:
        for block in blocks(work, rules):
            yield list(block.values()), block.chars, block.bytes
        return
    for result in row_index.read(work.dataset, work.shard, BLOCK):
        yield [(None,)] * len(result), result["chars"], result["bytes"]
