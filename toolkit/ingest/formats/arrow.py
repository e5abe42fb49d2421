"""Arrow files, as `datasets.save_to_disk` and others write them: fields are columns, by name.

Source: the Arrow IPC formats, stream and file, https://arrow.apache.org/docs/format/Columnar.html.
"""

import io
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import Any

from toolkit.data.document_fields import OwnTypes, together
from toolkit.data.schema import Type, nullable
from toolkit.data.tables import from_arrow
from toolkit.data.tables.from_arrow import plain_type
from toolkit.errors import ToolkitError
from toolkit.ingest import folders
from toolkit.ingest.reader import Draft, Input
from toolkit.ingest.tables import arrow
from toolkit.ingest.tables.fields import FieldReader

_OF_FILES = b"ARROW1"
"""The first bytes of Arrow's files; its streams have others."""


class Arrow(FieldReader):
    """One row a document, of Arrow's streams and of its files (Feather); columns are read as those of `parquet`.

    `from:` may be a folder that `datasets.save_to_disk` wrote: the files that its `state.json` names are read, of all
    splits or of `split:`. Files need the package pyarrow: `tagmix[parquet]`.
    """

    VERSION = "2"
    SUFFIXES = (".arrow", ".feather")

    def __post_init__(self) -> None:
        from_arrow.check_installed("Arrow files")
        super().__post_init__()

    def inputs(self, pattern: str) -> Sequence[folders.ListedFile]:
        if folders.is_listable(pattern):
            return folders.inputs_of_folder(pattern, self.SUFFIXES, self.config, self.split)
        return super().inputs(pattern)

    def own_types(self, inputs: Sequence[Input]) -> OwnTypes | None:
        """Return the types of the columns of all files; Arrow has no statistics, so any may be null."""
        try:
            return together(self.placed(*_columns(source)) for source in inputs)
        except ToolkitError:
            return None  # a file is damaged, which is told where it is ingested

    def read_batches(self, source: Input) -> Iterator[Sequence[Draft]]:
        rows = 0
        names: list[str] = []
        schema: Any = None
        for batch in _batches(source):
            if schema is None:
                names = self.columns(batch.schema.names, source.path)
                schema = from_arrow.plain_schema(batch.select(names).schema, source.path)
            yield from arrow.drafts(batch.select(names), schema, self.draft, source, rows, self.plain(schema))
            rows += batch.num_rows


def _batches(source: Input) -> Iterator[Any]:
    """Yield rows of Arrow; whatever pyarrow finds wrong is an error of the file, by row and record batch."""
    import pyarrow as pa

    row, place = 0, "in its beginning"
    try:
        with ExitStack() as stack:
            for number, batch in enumerate(_open_batches(source, stack), 1):
                place = f"in record batch {number}"
                from_arrow.names_in(batch.schema)
                batch.validate(full=True)  # offsets out of range would end the process
                yield batch
                row += batch.num_rows
                place = f"after record batch {number}"
    except (pa.ArrowException, OSError, ValueError, OverflowError, EOFError) as error:
        raise from_arrow.damage("Arrow file", error, source.path, place, row + 1 if row else None) from None


def _columns(source: Input) -> tuple[dict[str, Type], Any]:
    for batch in _batches(source):
        return {field.name: nullable(plain_type(field.type)) for field in batch.schema}, batch.schema
    return {}, ()


def _open_batches(source: Input, stack: ExitStack) -> Iterator[Any]:
    """Yield the record batches of a file or a stream."""
    import pyarrow as pa

    if source.head(len(_OF_FILES)) == _OF_FILES:
        file = stack.enter_context(pa.ipc.open_file(stack.enter_context(source.file())))
        yield from map(file.get_batch, range(file.num_record_batches))
        return
    stream = _Exact(stack.enter_context(source.stream()))
    yield from stack.enter_context(pa.ipc.open_stream(pa.PythonFile(stream, mode="r")))
    if stream.ended:
        raise EOFError("the stream has no end, it is truncated")
    if stream.read(1):
        raise ValueError("there is something after the end of the stream")


class _Exact(io.RawIOBase):
    """A stream with a mark for reads beyond its end: for pyarrow, one that is cut off may end there."""

    def __init__(self, stream: Any) -> None:
        super().__init__()
        self._stream = stream
        self.ended = False

    def readable(self) -> bool:
        return True

    def read(self, size: int | None = -1) -> bytes:
        """Return so many bytes, fewer only at the end."""
        remaining = -1 if size is None else size
        pieces = []
        while remaining and (piece := self._stream.read(remaining)):
            pieces.append(piece)
            remaining -= len(piece) if remaining > 0 else 0
        self.ended = self.ended or remaining > 0
        return b"".join(pieces)
