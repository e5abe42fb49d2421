"""The section ``train:``: its entries, each a model, and what it is made from."""

from collections.abc import Mapping, Sequence

import msgspec
import xxhash

from toolkit.config import settings as config
from toolkit.config.settings import ConfigNode
from toolkit.data.dataset import Dataset
from toolkit.data.row_index import current
from toolkit.errors import ConfigError, UnknownPlugin
from toolkit.learn.train.folder import models_folder
from toolkit.learn.train.trainer import TRAINERS, Trainer
from toolkit.records.foreign import External
from toolkit.records.freshness import ShardAttributes
from toolkit.records.sets import SetSchema
from toolkit.storage.paths import is_set_name, join
from toolkit.whole import section as whole
from toolkit.whole.section import Entry, Plan

DEFAULT = "linear"
"""The kind of a model where none is named."""

_OF_ALL = {"when", "attributes"}


def read_section(section: ConfigNode, dataset: Dataset, known: Mapping[str, SetSchema], external: External) -> Plan:
    """Return the plan of the section: of each entry what `toolkit.whole` gathers for it.

    Raises:
        ConfigError: naming the place in the file.
    """
    if not isinstance(section.value, dict):
        raise section.error((), "expected `MODEL: {labels: …, task: …}`")
    entries = section.at()
    entries.value = {name: as_whole(section.at(name), name) for name in section.value}
    plan = whole.read_section(entries, dataset, known, "train", external=external)
    folders: dict[str, str] = {}
    for entry in plan.entries:
        folder = folder_of(dataset, entry)
        if folder in folders:
            raise section.error((entry.set,), f"expected a folder of its own, got that of {folders[folder]}: {folder}")
        folders[folder] = entry.set
    return plan


def as_whole(place: ConfigNode, name: str) -> dict[str, object]:
    """Return an entry as `toolkit.whole` takes it, its options checked.

    Raises:
        ConfigError: naming the place in the file.
    """
    if not is_set_name(name):
        raise place.error((), f"expected a name of letters, digits, - and _, got {name!r}")
    own, rest = config.divide(place, {"kind", *_OF_ALL})
    kind = own.value.get("kind", DEFAULT)
    try:
        class_ = TRAINERS.find(str(kind))
    except UnknownPlugin as error:
        raise UnknownPlugin(str(place.error(("kind",), str(error)))) from None
    config.refuse_unknown(rest, class_, {"kind", *_OF_ALL}, f"kind {kind}")
    config.convert(rest, class_, f"kind {kind}")
    return {**place.value, "kind": f"{class_.__module__}:{class_.__name__}", "as": "model"}


def trainer_of(entry: Entry) -> Trainer:
    """Return the kind of a model with its options."""
    found = entry.configured()
    assert isinstance(found, Trainer)
    return found


def folder_of(dataset: Dataset, entry: Entry) -> str:
    """Return the folder of a model: beside the folder of the attributes, if no path is given."""
    given = trainer_of(entry).path
    if given is not None:
        if not given.strip():
            raise ConfigError(f"{entry.place}: path: expected a folder, got none")
        return given.rstrip("/")
    return join(models_folder(dataset), entry.set)


def made_from(dataset: Dataset, entry: Entry, shards: Sequence[str]) -> str | None:
    """Return a digest of all that a model is made from; None if that is not known without reading the documents.

    Raises:
        DataError: if attributes that are read are missing, damaged or stale.
    """
    digest = xxhash.xxh3_128(msgspec.json.encode(entry.recorded, order="sorted"))
    for shard in shards:
        state = current(dataset, shard)
        if state is None:
            return None
        reads = {name: ShardAttributes(dataset, name, shard, state).content() for name in entry.reads}
        digest.update(msgspec.json.encode([shard, state.content, reads]))
    return digest.hexdigest()
