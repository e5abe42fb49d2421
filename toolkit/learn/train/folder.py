"""The folder of a model: the model, its card and their checksums, which appear together.

``card.json``    a `Card`, written last: without it, and with another model than it says, nothing is loaded
``SHA256SUMS``   of both, for ``sha256sum -c``
"""

import hashlib
import importlib.metadata
import sys
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from typing import Any

import msgspec
import xxhash

from toolkit import distribution
from toolkit.data.dataset import Dataset
from toolkit.data.row_index import current
from toolkit.errors import ConfigError, DataError, amount
from toolkit.records import origins
from toolkit.records.freshness import ShardAttributes
from toolkit.storage import json_files, store_of
from toolkit.storage.artifact import Artifact, FileRecord, State, state, stored_sha256
from toolkit.storage.models import CARD, ModelFile, digest_of_files
from toolkit.storage.outputs import Output, Together
from toolkit.storage.paths import join, remove

SUMS = "SHA256SUMS"


class ModelFacts(msgspec.Struct, frozen=True, kw_only=True):
    """The facts about a model: its kind, its training, its metrics.

    Attributes:
        version: Version of the form of the card.
        name: Name of the model.
        kind, task, labels: What it predicts, and how.
        licence: Licence of the model, if one was given.
        made_from: Digest of documents, labels and settings.
        settings, chosen: Settings with which it was trained, and those chosen by valid.
        documents: Number of documents of each split, by label.
        left_out: Number of documents that were not used, by reason.
        metrics: Metrics of valid and test, each beside its baseline.
        versions: Versions of the packages that trained it.
        files: Files of the model, with size and sha256.
    """

    version: int = 1
    name: str
    kind: str
    task: str
    labels: list[str]
    licence: str | None
    made_from: str
    settings: dict[str, Any]
    chosen: dict[str, Any]
    documents: dict[str, dict[str, int]]
    left_out: dict[str, int]
    metrics: dict[str, dict[str, Any]]
    versions: dict[str, str]
    files: dict[str, ModelFile]


class Card(Artifact, ModelFacts, frozen=True, kw_only=True):
    """The card of a model.

    Attributes:
        learnt_from: Digests of the attributes of each set that it learnt from, by digests of shards (see `labels_of`).
    """

    learnt_from: dict[str, dict[str, str]] = {}

    @property
    def lineage(self) -> dict[str, str]:
        return {"": self.made_from}

    @property
    def digest(self) -> str:
        """Return the sha256 by which the model is known."""
        return digest_of_files({name: file.sha256 for name, file in self.files.items()})


def labels_of(dataset: Dataset, set_name: str, shards: Iterable[str]) -> dict[str, str]:
    """Return the digests of a set's attributes, by digests of shards; shards without attributes are left out.

    The digest of a shard is of its path and of its documents, so that no other dataset has the same.
    """
    found: dict[str, str] = {}
    for shard in shards:
        state = current(dataset, shard)
        with suppress(DataError):
            if state is not None:
                key = xxhash.xxh3_64_hexdigest(f"{shard} {state.content}".encode())
                found[key] = ShardAttributes(dataset, set_name, shard).content()[:16]
    return found


def models_folder(dataset: Dataset) -> str:
    """Return the folder of the models of a dataset that no path is given for: beside its attributes."""
    parent, _, name = dataset.attributes.rstrip("/").rpartition("/")
    return join(parent, "models") if name == "attributes" and parent else "models"


def with_files(dataset: Dataset, digests: Collection[str]) -> list[Card]:
    """Return the cards of those models of a dataset that are known by one of these sha256."""
    root = models_folder(dataset)
    cards = [load(join(root, name)) for name in store_of(root).folders(root)]
    return [card for card in cards if card and card.digest in digests]


def state_of(folder: str, card: Card | None, made_from: str | None) -> State:
    """Return the state of the model in a folder, whose files are read."""

    def files(card: Card) -> list[FileRecord]:
        listed = card.files.items()
        return [FileRecord(join(folder, name), file.size, "", file.sha256, stored_sha256) for name, file in listed]

    return state(card, [("", made_from)], files=files)


def load(folder: str) -> Card | None:
    """Return the card in a folder; None if there is none, or a damaged one."""
    return json_files.load(join(folder, CARD), Card)


def check_free(
    folder: str, name: str, made_from: str | None, found: Card | None, dataset: Dataset, *, overwrite: bool
) -> None:
    """Check that a model may be written to a folder: nothing is there, or the same model, or it may be replaced.

    Raises:
        ConfigError: if it may not.
    """
    if found is None or state(found, [("", made_from)]).is_done:
        return
    learnt = sum(found.documents.get("train", {}).values())
    goes = f"the model {found.name} ({amount(learnt, 'document')} to learn from)"
    if replaced := origins.check(folder, origins.load(*_split(folder)), [dataset], goes, overwrite=overwrite):
        print(replaced, file=sys.stderr)
    if overwrite:
        return
    raise ConfigError(
        f"{folder}: expected no model, or one made from the same labels with the same settings, got another one; give "
        f"the new one a name of its own ({name} stays, and sets that were made with it), or add --overwrite"
    )


def _split(folder: str) -> tuple[str, str]:
    """Return the folder that a model lies in, which has the records about it, and its name there."""
    parent, _, name = folder.rstrip("/").rpartition("/")
    return parent or ("/" if folder.startswith("/") else "."), name


def write(folder: str, model: Mapping[str, bytes], card: Card, dataset: Dataset) -> None:
    """Write the files of a model, its card and checksums; `files` of the card are set here."""
    files = {name: ModelFile(size=len(data), sha256=hashlib.sha256(data).hexdigest()) for name, data in model.items()}
    text = msgspec.json.format(msgspec.json.encode(msgspec.structs.replace(card, files=files)), indent=1) + b"\n"
    digests = {name: file.sha256 for name, file in files.items()} | {CARD: hashlib.sha256(text).hexdigest()}
    sums = "".join(f"{digest}  {name}\n" for name, digest in digests.items())
    remove(join(folder, CARD))  # what is not complete has none
    with Together() as together:
        for name, content in {**model, SUMS: sums.encode()}.items():
            with Output(join(folder, name), together) as output:
                output.write(content)
    parent, name = _split(folder)
    origins.save(parent, {name: origins.origin_of([dataset])})
    with Output(join(folder, CARD)) as output:
        output.write(text)


def versions(*packages: str) -> dict[str, str]:
    """Return the versions of the toolkit and of some packages."""
    return {name: importlib.metadata.version(name) for name in (distribution.NAME, *packages)}
