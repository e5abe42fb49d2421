"""Attribute files beside their documents, before they are described as aligned."""

from collections.abc import Callable

from toolkit.config.settings import ConfigStruct
from toolkit.data import row_index
from toolkit.data.dataset import Dataset
from toolkit.errors import DataError, ToolkitError
from toolkit.ingest.inputs import carried_shards
from toolkit.inspect import validation
from toolkit.records import foreign, lineage, sets

Report = Callable[[int, int], None]


class Work(ConfigStruct):
    """An attribute file to check.

    Attributes:
        path: of the file.
        shard: whose documents it describes.
        first: rows that are compared; all by default.
        max_bytes: of a document.
    """

    path: str
    dataset: Dataset
    set: str
    shard: str
    first: int | None
    max_bytes: int


def check(work: Work, report: Report) -> bool:
    """Whether it fits; it does, or this raises.

    Raises:
        ToolkitError: with what `toolkit validate` says of the file.
    """
    of_set = validation.Work(
        kind="attributes",
        path=work.shard,
        set=work.set,
        dataset=work.dataset,
        first=work.first,
        max_document_bytes=work.max_bytes,
    )
    if found := validation.check_file(of_set, report).findings:
        raise ToolkitError("\n".join(found))
    if work.first is not None:
        _check_records(work)
    return True


def _check_records(work: Work) -> None:
    """What is recorded of the file, in place of the rows that are not read.

    Raises:
        DataError: if it is not the file of the record, or has other rows than the documents.
        StaleError: if it was made from others.
    """
    dataset, set_name, shard = work.dataset, work.set, work.shard
    documents = row_index.current(dataset, shard)
    if sets.load_schema(dataset, set_name) is None:
        rows = foreign.look_at(dataset, set_name, shard).rows
    else:
        record = sets.load_record(dataset, set_name, shard)
        if record is None:
            command = "tag" if carried_shards(dataset, set_name) is None else "ingest"
            raise DataError(f"expected a completion record, got none; run `toolkit {command}`", path=work.path)
        if not sets.is_intact(dataset, set_name, shard, record):
            raise DataError("expected the file that its completion record describes, it was changed", path=work.path)
        if documents:
            lineage.check_lineage(dataset, set_name, shard, documents)
        rows = record.rows
    if documents and documents.rows != rows:
        raise DataError(
            f"expected {documents.rows:,} rows, as many as {dataset.shard_path(shard)} has, got {rows:,}",
            path=work.path,
        )
