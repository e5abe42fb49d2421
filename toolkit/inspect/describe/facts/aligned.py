"""Checks of attribute files beside their documents, before they are described as aligned."""

from toolkit.data import row_index
from toolkit.data.dataset import Dataset
from toolkit.errors import DataError, ToolkitError
from toolkit.ingest.inputs import carried_shards
from toolkit.inspect.validate.one_file import ValidateJob, check_file
from toolkit.records import foreign, outdated, sets
from toolkit.runs.executors import Report


def check(work: ValidateJob, report: Report) -> bool:
    """Check an attribute file; it fits, or this raises.

    Raises:
        ToolkitError: with what `toolkit validate` says of the file.
    """
    if found := check_file(work, report).findings:
        raise ToolkitError("\n".join(found))
    if work.first is not None and work.dataset:
        _check_records(work, work.dataset)
    return True


def _check_records(work: ValidateJob, dataset: Dataset) -> None:
    """Check what is recorded of the file, in place of the rows that are not read.

    Raises:
        DataError: if it is not the file of the record, or has other rows than the documents.
        StaleError: if it was made from others.
    """
    set_name, shard = work.set, work.path
    path = dataset.attribute_file(set_name, shard)
    documents = row_index.current(dataset, shard)
    if sets.load_schema(dataset, set_name) is None:
        rows = foreign.look_at(dataset, set_name, shard).rows
    else:
        record = sets.load_record(dataset, set_name, shard)
        if record is None:
            carried = carried_shards(dataset, set_name) is not None
            command = "ingest" if carried else sets.command_of(dataset, set_name)
            got = "one that is damaged" if sets.is_damaged(dataset, set_name, shard) else "none"
            raise DataError(f"expected a completion record, got {got}; run `toolkit {command}`", path=path)
        if not sets.is_intact(dataset, set_name, shard, record):
            raise DataError(
                "expected the file that its completion record describes, got one that was changed later", path=path
            )
        if documents:
            outdated.check_lineage(dataset, set_name, shard, documents)
        rows = record.rows
    if documents and documents.rows != rows:
        raise DataError(
            f"expected {documents.rows:,} rows, as many as {dataset.shard_path(shard)} has, got {rows:,}",
            path=path,
        )
