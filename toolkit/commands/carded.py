"""What `toolkit validate` knows of data files, held against the dataset card that lies beside them."""

import os
from collections.abc import Iterable, Sequence

from toolkit import ingest_records, records, rowindex
from toolkit.dataset import Dataset
from toolkit.describing import card, checking_card
from toolkit.describing.checking_card import DataFile
from toolkit.describing.labelling import labelling
from toolkit.describing.looking import Looked
from toolkit.mixing.publish import Manifest
from toolkit.paths import exists, join, size_of
from toolkit.stores import store_of
from toolkit.validating import Checked
from toolkit.writer import Writer


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
        covered = ingest_records.carried_shards(dataset, name)
        for shard in shards if covered is None else [shard for shard in shards if shard in covered]:
            path = join(os.path.basename(dataset.attributes), name, shard)
            done = records.load_record(dataset, name, shard)
            size = size_of(dataset.attribute_path(name, shard))
            files.append(DataFile(path, size, done.rows if done else None, has_documents=False))
    return _findings(folder, text, files, [])


def _shard(dataset: Dataset, shard: str, path: str, label: str | None = None) -> DataFile:
    state = rowindex.current(dataset, shard)
    return DataFile(path, size_of(dataset.shard_path(shard)), state.rows if state else None, label=label)


def _read(folder: str) -> str:
    """Return the text of a card of ours; empty if there is none."""
    path = join(folder, card.NAME)
    text = store_of(path).read(path).decode(errors="replace") if exists(path) else ""
    return text if checking_card.is_card(text) else ""


def _findings(folder: str, text: str, files: Sequence[DataFile], languages: Iterable[str]) -> list[str]:
    return checking_card.findings(join(folder, card.NAME), text, files, languages)
