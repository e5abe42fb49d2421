"""The shards that a dataset had: one that is gone and was not forgotten is named, and nothing is made without it."""

from collections.abc import Callable, Iterable, Mapping

from toolkit.data import record_logs, row_index
from toolkit.data.dataset import Dataset
from toolkit.records.ingested import InputRecord
from toolkit.storage import store_of
from toolkit.storage.globs import glob_regex
from toolkit.storage.paths import exists, fixed_part, is_glob, join, lacking


def lost_shards(
    dataset: Dataset,
    shards: Iterable[str],
    inputs: Mapping[str, InputRecord],
    concern: Callable[[str], bool] = lambda shard: True,
) -> dict[str, str]:
    """Return a message for each shard that was ingested or indexed and whose documents are gone, by shard, sorted.

    Args:
        dataset: Dataset of the documents.
        shards: Shards that are there.
        inputs: Records of inputs, by `toolkit.records.ingested.load_all`.
        concern: Tells whether a shard matters.
    """
    there, lost = set(shards), dict[str, str]()
    for key, record in inputs.items():
        for shard in record.shards:
            if shard not in there and concern(shard) and _is_gone(dataset, shard):
                path = dataset.shard_path(shard)
                got = "`run --per-shard` has deleted them" if record.deleted else f"got {lacking(path)}"
                lost[shard] = (
                    f"{path}: expected the documents of {record.input}, {got}; run `toolkit ingest`, or "
                    f"`toolkit clean --forget {key}` to remove what is left of it"
                )
    root = row_index.root_of(dataset)
    for shard in record_logs.of(dataset).keys(record_logs.ROWS) if store_of(dataset.documents).can_list else ():
        if shard in there or shard in lost or not concern(shard):
            continue
        state = row_index.recorded(dataset, shard)
        if state and (state.root, state.reader) == (root, row_index.reader_of(dataset)) and _is_gone(dataset, shard):
            path = dataset.shard_path(shard)
            lost[shard] = (
                f"{path}: expected the documents that were there before, got {lacking(path)}; restore the file, or run "
                f"`toolkit clean --forget {shard}` to remove what is left of it"
            )
    return dict(sorted(lost.items()))


def _is_gone(dataset: Dataset, shard: str) -> bool:
    """Return whether a shard that was not listed has no file, and is not left out by a glob."""
    file, pattern = dataset.file_of(shard), dataset.in_place.pattern if dataset.in_place else ""
    inside = pattern[len(fixed_part(pattern)) :].lstrip("/")
    if not dataset.admits(file) or (is_glob(pattern) and not glob_regex(inside).match(file)):
        return False
    if pattern and dataset.is_flat and not is_glob(pattern) and join(dataset.documents, file) != pattern:
        return False  # the path is that of another file
    return not exists(dataset.shard_path(shard))  # another run may have just ingested it
