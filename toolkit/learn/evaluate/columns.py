"""Values of documents in columns: 8 bytes a number, 4 bytes a label and one table of the labels."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import msgspec
import numpy as np

from toolkit.config.settings import ConfigStruct
from toolkit.errors import ConfigError, short
from toolkit.learn.evaluate.metrics import Array

Kind = Literal["null", "number", "bool", "label", "list"]
"""What the values of a column are, beside null: ``null`` of one that has nothing else."""

_ENCODER = msgspec.json.Encoder(order="sorted")


class Part(ConfigStruct):
    """The column of a shard, as it is sent from its worker.

    Attributes:
        kind: of the values.
        data: float64, not a number for null; or int32 codes, -1 for null.
        table: the values of codes, as JSON; a list is a set, its members sorted.
    """

    kind: Kind
    data: bytes
    table: list[str] = []


@dataclass(frozen=True)
class Column:
    """The values of all documents; `values` and `table` as in `Part`, the table in order."""

    kind: Kind
    values: Array
    table: list[Any]

    @property
    def is_null(self) -> Array:
        """Return where there is no value."""
        null: Array = np.isnan(self.values) if self.values.dtype.kind == "f" else self.values < 0
        return null

    def taken(self, rows: Array) -> "Column":
        """Return the column of some rows."""
        return Column(self.kind, self.values[rows], self.table)


def part_of(values: Sequence[Any], what: str) -> Part:
    """Return the column of some values.

    Raises:
        ConfigError: if they are not all of a kind that can be judged.
    """
    kind: Kind = "null"
    for value in values:
        if value is None:
            continue
        found = _kind(value)
        if found is None or kind not in ("null", found):
            other = "" if kind == "null" else f" beside a {kind}"
            raise ConfigError(
                f"{what}: expected numbers, texts, true and false, or lists of texts; got {short(value)}{other}"
            )
        kind = found
    if kind in ("null", "number"):
        return Part(kind, np.array([np.nan if v is None else v for v in values], dtype=np.float64).tobytes())
    table: dict[str, int] = {}
    codes = [-1 if value is None else table.setdefault(_text(value), len(table)) for value in values]
    return Part(kind, np.array(codes, dtype=np.int32).tobytes(), list(table))


def _kind(value: Any) -> Kind | None:
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int | float):
        return "number"
    if isinstance(value, str):
        return "label"
    is_list = isinstance(value, list | tuple) and all(isinstance(each, str) for each in value)
    return "list" if is_list else None


def _text(value: Any) -> str:
    return _ENCODER.encode(sorted(set(value)) if isinstance(value, list | tuple) else value).decode()


def joined(parts: Iterable[Part], what: str) -> Column:
    """Return the column of all shards.

    Raises:
        ConfigError: if they are of several kinds.
    """
    listed = list(parts)
    kinds = {part.kind for part in listed} - {"null"}
    if len(kinds) > 1:
        raise ConfigError(f"{what}: expected values of one kind, got {' and '.join(sorted(kinds))}")
    if not kinds or kinds == {"number"}:
        numbers = [np.frombuffer(part.data, dtype=np.float64) for part in listed]
        return Column(kinds.pop() if kinds else "null", np.concatenate([np.empty(0), *numbers]), [])
    decoded = {text: msgspec.json.decode(text) for part in listed for text in part.table}
    texts = sorted(decoded, key=lambda text: decoded[text])
    places = {text: i for i, text in enumerate(texts)}
    codes = [np.empty(0, dtype=np.int32)]
    for part in listed:
        if part.kind == "null":
            codes.append(np.full(len(part.data) // 8, -1, dtype=np.int32))
        else:
            new = np.array([*(places[text] for text in part.table), -1], dtype=np.int32)
            codes.append(new[np.frombuffer(part.data, dtype=np.int32)])
    return Column(kinds.pop(), np.concatenate(codes), [decoded[text] for text in texts])


BINS = (20, 50, 100, 200, 500, 1_000, 5_000, 20_000)
"""Where bins begin, behind the first."""

_EDGES = (0, *BINS)
NAMES = [f"{low:,} to {high - 1:,}" for low, high in zip(_EDGES, BINS, strict=False)] + [f"from {BINS[-1]:,}"]


def binned_lengths(chars: Column) -> Column:
    """Return the bin of each length."""
    return Column("label", np.searchsorted(BINS, chars.values, side="right").astype(np.int32), NAMES)
