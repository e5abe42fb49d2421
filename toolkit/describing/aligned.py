"""Attribute files beside their documents, before they are described as aligned."""

from collections.abc import Callable

from toolkit import records, rowindex, validating
from toolkit.config import ConfigStruct
from toolkit.dataset import Dataset
from toolkit.errors import DataError, ToolkitError
from toolkit.ingest_records import carried_shards

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
    of_set = validating.Work(
        kind="attributes",
        path=work.shard,
        set=work.set,
        dataset=work.dataset,
        first=work.first,
        max_document_bytes=work.max_bytes,
    )
    if found := validating.check_file(of_set, report).findings:
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
    documents = rowindex.current(dataset, shard)
    if records.load_schema(dataset, set_name) is None:
        rows = records.look_at(dataset, set_name, shard).rows
    else:
        record = records.load_record(dataset, set_name, shard)
        if record is None:
            command = "tag" if carried_shards(dataset, set_name) is None else "ingest"
            raise DataError(f"expected a completion record, got none; run `toolkit {command}`", path=work.path)
        if not records.is_intact(dataset, set_name, shard, record):
            raise DataError("expected the file that its completion record describes, it was changed", path=work.path)
        if documents:
            records.check_lineage(dataset, set_name, shard, documents)
        rows = record.rows
    if documents and documents.rows != rows:
        raise DataError(
            f"expected {documents.rows:,} rows, as many as {dataset.shard_path(shard)} has, got {rows:,}",
            path=work.path,
        )
