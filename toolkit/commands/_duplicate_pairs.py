"""Pairs of duplicates of a document, with their differences."""

import difflib
import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import msgspec

from toolkit.data.alignment import MAX_ROW, missing_file
from toolkit.data.dataset import Dataset
from toolkit.data.documents import DOCUMENT_DECODER, DocumentRow, Rows
from toolkit.data.excerpts import escaped
from toolkit.errors import ConfigError, amount
from toolkit.stages.context import Outcome
from toolkit.storage.paths import exists
from toolkit.storage.reading import Lines
from toolkit.whole_corpus.corpus_config import Entry, Plan

PAIRS = 3
"""Pairs that are shown of each set."""

_EDITS, _AROUND, _CHARS = 8, 4, 120
_MOST_WORDS = 20_000  # of both texts; finding what differs takes time by their product
_WORD = re.compile(r"\S+")


Name = tuple[str, ...]
"""Source and id; and shard and row, where ids are not unique."""


class Pair(NamedTuple):
    """A duplicate with its value in a set, and its original."""

    set: str
    name: Name
    original: Name
    value: dict[str, Any]


class _PairRow(msgspec.Struct):
    source: str
    id: str
    attributes: dict[str, Any]


_ROW = msgspec.json.Decoder(_PairRow)


def _name(row: _PairRow | DocumentRow, place: str) -> Name:
    return (row.source, row.id, place) if place else (row.source, row.id)


def explain(dataset: Dataset, plan: Plan, shards: Sequence[str], id: str, max_bytes: int) -> Outcome:
    """Show the pairs of duplicates of a document, with their differences.

    Args:
        dataset: Dataset of the documents.
        plan: Plan of the sets.
        shards: Shards that are looked at.
        id: id of the document.
        max_bytes: Maximum bytes of a document.

    Raises:
        ConfigError: if no document has the id.
    """
    messages: list[str] = []
    data: list[dict[str, Any]] = []
    for entry in plan.entries:
        value, pairs = _pairs(dataset, entry, shards, id)
        if value is None:
            raise ConfigError(f"expected a document with the id {id!r}, got none in {amount(len(shards), 'shard')}")
        if "duplicate_of" not in value:
            continue  # a set of lines or paragraphs
        if not pairs:
            messages.append(f"{entry.set}: {id} is not a duplicate, and has none")
        for pair in pairs:
            texts = _texts([dataset, *entry.against], {pair.name, pair.original}, max_bytes)
            edits = (
                differences(texts[pair.original], texts[pair.name])
                if texts.keys() >= {pair.name, pair.original}
                else []
            )
            messages.append(_format(pair, edits))
            data.append(
                {"set": pair.set, "name": pair.name, "kept": pair.original, "value": pair.value, "differences": edits}
            )
    return Outcome(text="\n\n".join(messages), data={"pairs": data})


def _pairs(dataset: Dataset, entry: Entry, shards: Sequence[str], id: str) -> tuple[Any, list[Pair]]:
    """Return the value of the document in a set, and its pairs."""
    mine: Any = None
    pairs: list[Pair] = []
    within = msgspec.json.encode(id)
    for shard in shards:
        path = dataset.attribute_path(entry.set, shard)
        if not exists(path):
            raise missing_file(path, dataset, shard, "dedup")
        with Lines(path, MAX_ROW) as lines:
            for line in lines:
                if within not in line:
                    continue
                row = _ROW.decode(line)
                value = row.attributes[entry.key]
                of = value.get("duplicate_of")
                if row.id == id:
                    mine = value
                if of and id in (row.id, of[1]) and (len(pairs) < PAIRS or row.id == id):
                    name = _name(row, dataset.place_of(shard, lines.number))
                    pairs.append(Pair(entry.set, name, tuple(of), value))
    return mine, pairs


def _texts(datasets: Sequence[Dataset], names: set[Name], max_bytes: int) -> dict[Name, str]:
    """Return the texts of documents; reading ends where all have been found."""
    results: dict[Name, str] = {}
    for row, place in (row for dataset in datasets for row in _rows(dataset, names, max_bytes)):
        if (name := _name(row, place)) in names:
            results.setdefault(name, row.text)
            if len(results) == len(names):
                break
    return results


def _rows(dataset: Dataset, names: set[Name], max_bytes: int) -> Iterator[tuple[DocumentRow, str]]:
    ids = [msgspec.json.encode(name[1]) for name in names]
    for shard in dataset.shards():
        path = dataset.shard_path(shard)
        with dataset.lines(shard, max_bytes) as lines:
            for line in lines:
                if any(id_ in line for id_ in ids):
                    row, _ = next(Rows(iter([line]), DOCUMENT_DECODER, path, lines.number - 1))
                    yield row, dataset.place_of(shard, lines.number)


def differences(original: str, other: str) -> list[str]:
    """Return the first differences of two texts, with some words around: ``[-kept-]{+other+}``."""
    old, new = _WORD.findall(original), _WORD.findall(other)
    if len(old) + len(new) > _MOST_WORDS:
        old, new = original.splitlines(), other.splitlines()
    results = []
    for tag, a, a_end, b, b_end in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag == "equal":
            continue
        removed = f"[-{_cut(old[a:a_end])}-]" if a_end > a else ""
        come = f"{{+{_cut(new[b:b_end])}+}}" if b_end > b else ""
        before, behind = " ".join(old[max(0, a - _AROUND) : a]), " ".join(old[a_end : a_end + _AROUND])
        results.append(" ".join(filter(None, (before, removed + come, behind))))
        if len(results) == _EDITS:
            break
    return results


def _cut(words: Sequence[str]) -> str:
    text = " ".join(words)
    return text if len(text) <= _CHARS else text[:_CHARS] + "…"


def _format(pair: Pair, edits: list[str]) -> str:
    of, original = (
        f"{escaped(id_)} ({escaped(', '.join((source, *at)))})" for source, id_, *at in (pair.name, pair.original)
    )
    lines = [f"{pair.set}: {of} is a duplicate of {original}"]
    evidence = [
        f"{key} {value:.4g}" if isinstance(value, float) else f"{key} {value}"
        for key, value in pair.value.items()
        if isinstance(value, int | float)
    ]
    lines += [f"  {', '.join(evidence)}"] if evidence else []
    lines += [f"  {edit}" for edit in edits] or ["  no word differs"]
    return "\n".join(lines)
