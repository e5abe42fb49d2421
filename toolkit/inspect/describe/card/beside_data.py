"""What `toolkit validate` knows of data files, held against the dataset card that lies beside them."""

import os
from collections.abc import Iterable, Sequence

from toolkit.data import row_index
from toolkit.data.dataset import Dataset
from toolkit.ingest import inputs
from toolkit.inspect.describe.card import check, page
from toolkit.inspect.describe.card.check import DataFile
from toolkit.inspect.describe.facts.data_file import Looked
from toolkit.inspect.describe.facts.labels import labelling
from toolkit.inspect.validate.one_file import Checked
from toolkit.mix.publish import Manifest
from toolkit.mix.writer import Writer
from toolkit.records import sets
from toolkit.storage import store_of
from toolkit.storage.paths import exists, join, size_of


def check_output(
    folder: str, manifest: Manifest | None, writer: Writer, paths: Sequence[str], done: Sequence[Checked | None]
) -> list[str]:
    """Return what the card of an output, or a release, says that is not so.

    Args:
        folder: of the output.
        manifest: None of a release.
        writer: of its files.
        paths: of the files with documents, below the folder.
        done: what the check of each has counted; None where it failed.
    """
    if not (text := _read(folder)):
        return []
    parts = {part.path: part for part in manifest.parts} if manifest else {}
    looked = [Looked(0, number=(each.rows if each else 0) or 0, labels=each.labels if each else {}) for each in done]
    labels = labelling(manifest, writer, paths, looked, whole=True)
    by_path = {path: each.label for each in labels.labels for path in each.paths}
    files = []
    for path, each in zip(paths, done, strict=True):
        part = parts.get(path)
        rows, content = (each.rows, each.size) if each and each.rows is not None else (None, None)
        if part and rows is None:
            rows, content = part.documents, part.content_size
        split = manifest.split_of_files(part.label) if manifest and part else ""
        files.append(DataFile(path, size_of(join(folder, path)), rows, content, by_path.get(path), split))
    return _findings(folder, text, files, labels.languages)


def check_documents(dataset: Dataset, shards: Sequence[str]) -> list[str]:
    """Return what the card of a folder of documents says that is not so; the folder is the root of the documents."""
    if not (text := _read(dataset.documents)):
        return []
    labels = labelling(None, Writer(), shards, [Looked(0)] * len(shards), whole=False)
    by_path = {path: each.label for each in labels.labels for path in each.paths}
    files = [_shard(dataset, shard, shard, by_path.get(shard)) for shard in shards]
    return _findings(dataset.documents, text, files, labels.languages)


def check_dataset(dataset: Dataset, shards: Sequence[str]) -> list[str]:
    """Return what the card of a dataset, beside the folder of its documents, says that is not so."""
    folder = os.path.dirname(dataset.documents)
    if not (text := _read(folder)):
        return []
    files = [_shard(dataset, shard, join(os.path.basename(dataset.documents), shard)) for shard in shards]
    for name in dataset.sets():
        covered = inputs.carried_shards(dataset, name)
        for shard in shards if covered is None else [shard for shard in shards if shard in covered]:
            path = join(os.path.basename(dataset.attributes), name, shard)
            done = sets.load_record(dataset, name, shard)
            size = size_of(dataset.attribute_path(name, shard))
            files.append(DataFile(path, size, done.rows if done else None, has_documents=False))
    return _findings(folder, text, files, [])


def _shard(dataset: Dataset, shard: str, path: str, label: str | None = None) -> DataFile:
    state = row_index.current(dataset, shard)
    return DataFile(path, size_of(dataset.shard_path(shard)), state.rows if state else None, label=label)


def _read(folder: str) -> str:
    """Return the text of a card of ours; empty if there is none."""
    path = join(folder, page.NAME)
    text = store_of(path).read(path).decode(errors="replace") if exists(path) else ""
    return text if check.is_card(text) else ""


def _findings(folder: str, text: str, files: Sequence[DataFile], languages: Iterable[str]) -> list[str]:
    return check.findings(join(folder, page.NAME), text, files, languages)
