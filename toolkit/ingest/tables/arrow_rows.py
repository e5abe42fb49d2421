"""Record batches of Arrow as documents: what is shared by the formats whose rows pyarrow reads."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec

from toolkit.data.documents import BAD_ROW
from toolkit.data.tables.values import HELD, not_finite, objects
from toolkit.errors import DataError
from toolkit.ingest.reader import Draft, Input


def drafts(
    batch: Any, schema: Any, make: Callable[[dict[str, Any], int], Draft], source: Input, number: int
) -> Iterator[Sequence[Draft]]:
    """Yield the documents of a batch of rows, some at a time.

    Args:
        batch: of Arrow.
        schema: as `toolkit.data.tables.values.plain_schema` gives it.
        make: gives the document of a row (see `toolkit.ingest.tables.fields.FieldReader.draft`).
        source: the input; rows that cannot be read are its bad items.
        number: of rows before these.
    """
    some = max(1, HELD * batch.num_rows // max(1, batch.nbytes))
    for start in range(0, batch.num_rows, some):
        piece = batch.slice(start, some)
        found = []
        for i, row in enumerate(_rows(piece, schema, source), number + start + 1):
            if isinstance(row, Exception):
                source.bad("not of the format", f"expected a row that can be read, got: {row}", b"", i)
                continue
            try:
                found.append(make({**row}, i))
            except (*BAD_ROW, DataError) as error:
                if (draft := source.refuse(error, msgspec.json.encode(row), i)) is not None:
                    found.append(draft)
        yield found


def _rows(piece: Any, schema: Any, source: Input) -> list[dict[str, Any] | Exception]:
    """Return rows as objects; in place of one whose values Python cannot have, the error."""
    try:
        found = objects(piece, schema)
    except (ValueError, OverflowError) as error:  # also those of Arrow; invalid UTF-8 is one
        if piece.num_rows == 1:
            return [error]
    else:
        if count := sum(map(not_finite, piece.columns)):
            source.counts["not_finite"] += count
        return [*found]
    return [row for i in range(piece.num_rows) for row in _rows(piece.slice(i, 1), schema, source)]
