"""The section ``make:``: stages of authors of plugins, each of which makes an attribute set, or new documents."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import msgspec

from toolkit.config import settings as config
from toolkit.config.docstrings import first_line
from toolkit.config.plugin_code import code_of
from toolkit.config.root import recorded_reference
from toolkit.config.settings import ConfigNode, ConfigStruct
from toolkit.data import schema
from toolkit.data.dataset import Dataset
from toolkit.data.documents import Document
from toolkit.data.own_types import OwnTypes
from toolkit.data.places import Place, check_apart
from toolkit.errors import ConfigError, MissingExtra, UnknownPlugin, mismatch
from toolkit.plugins import default_name
from toolkit.records import sets
from toolkit.records.foreign import External
from toolkit.rules.expressions import A_NAME, is_name
from toolkit.storage.paths import is_set_name, join
from toolkit.tag import tagger
from toolkit.tag.declared import digest_of
from toolkit.whole import section as whole_section
from toolkit.whole.stage import STAGES, Stage, made_of_each

SECTION = "make"
DOCUMENTS = "documents"
"""The folder of new documents below their root, by which their records know them."""

_COMMON = {"stage": None, "as": None, "dataset": None}


class Entry(ConfigStruct):
    """A stage of the section.

    Attributes:
        name: Name of the entry, and of its attribute set.
        key: Key of the values.
        reference: Reference by which the class is found.
        options: Options of the class.
        root: Root of the new documents; empty if it makes attributes.
        place: Place in the configuration, for messages.
        whole: True if it needs all documents; then it is an entry of `toolkit.whole.section`, too.
    """

    name: str
    key: str
    reference: str
    options: dict[str, Any]
    root: str
    place: str
    whole: bool = False

    def stage(self) -> Stage:
        """Return the configured stage."""
        return config.convert(ConfigNode(self.options), STAGES.find(self.reference), f"stage {self.reference}")

    def references(self) -> list[tagger.Reference]:
        """Return the attributes that it reads."""
        return tagger.references(self.stage())

    def reads(self) -> list[str]:
        """Return the sets that it reads, each once."""
        return [*dict.fromkeys(reference.set for reference in self.references())]

    def home(self, dataset: Dataset) -> tuple[Dataset, str]:
        """Return where its files and records are, as a dataset and the name of a set: the new documents are one."""
        return (home_of(self.root), DOCUMENTS) if self.root else (dataset, self.name)

    def values(self) -> Any:
        """Return the annotation of what it makes of a document."""
        return made_of_each(STAGES.find(self.reference))


def read_section(section: ConfigNode, dataset: Dataset) -> list[Entry]:
    """Return the stages of a section, in its order; options are checked, nothing is loaded.

    Raises:
        ConfigError: naming the place in the file.
    """
    if not isinstance(section.value, dict):
        raise section.error((), "expected `NAME: {stage: …, option: …}`")
    return [_read_entry(section.at(name), name, dataset) for name in section.value]


def _read_entry(place: ConfigNode, name: str, dataset: Dataset) -> Entry:
    if not is_set_name(name):
        raise place.error((), "expected a name of letters, digits, - and _")
    if not isinstance(place.value, dict) or not isinstance(place.value.get("stage"), str):
        raise place.error((), f"expected {{stage: path/file.py:Class, option: …}}, got {place.value!r}")
    common, options = config.split(place, _COMMON)
    reference, alias, root = common["stage"], common["as"], common["dataset"]
    if alias is not None and not (isinstance(alias, str) and is_name(alias)):
        raise place.error(("as",), f"expected {A_NAME}, got {alias!r}")
    if root is not None and not (isinstance(root, str) and root.strip()):
        raise place.error(("dataset",), f"expected the root of the new documents, got {root!r}")
    try:
        class_ = STAGES.find(reference)
    except (UnknownPlugin, MissingExtra) as error:
        raise type(error)(str(place.error(("stage",), str(error)))) from None
    except ConfigError as error:
        raise place.error(("stage",), str(error)) from None
    if taken := {field.encode_name for field in msgspec.structs.fields(class_)} & _COMMON.keys():
        raise place.error((), f"expected a stage without an option {min(taken)!r}, which has another meaning here")
    config.convert(options, class_, f"stage {reference}")
    root = root and root.rstrip("/")
    entry = Entry(
        name=name,
        key=alias or default_name(reference),
        reference=reference,
        options=options.value,
        root=root or "",
        place=place.where(()),
        whole=class_.needs_all(),
    )
    if entry.values() is None:
        expected = "expected a `make` whose annotation says what it returns: `Sequence[int]`, or `Sequence[Document]`"
        if entry.whole:
            expected = "expected annotations of what `extract`, `combine` and `finish` return, such as `Sequence[int]`"
        raise place.error(("stage",), f"{expected}; got none")
    _check_root(entry, place, dataset)
    return entry


def _check_root(entry: Entry, place: ConfigNode, dataset: Dataset) -> None:
    """Raise ConfigError unless there is a root for new documents, and for nothing else."""
    makes_documents = entry.values() is Document
    if makes_documents != bool(entry.root):
        wanted = (
            "expected `dataset: ROOT`, where its new documents go"
            if makes_documents
            else ("expected no `dataset`: its `make` returns values, which are attributes of the documents there are")
        )
        raise place.error(("dataset",) if entry.root else (), wanted)
    if makes_documents:
        if dataset.in_place:
            raise place.error(("stage",), "expected documents that `ingest` has made, got a dataset in place")
        home = Place(entry.root, "the new documents", place.where(()))
        check_apart([home], [Place(dataset.documents, "the documents"), Place(dataset.attributes, "the attributes")])


def whole_plan(
    section: ConfigNode,
    entry: Entry,
    dataset: Dataset,
    known: Mapping[str, sets.SetSchema],
    own: OwnTypes | None,
    external: External,
) -> whole_section.Plan:
    """Return the plan of a stage that needs all documents; arguments and errors as of `whole_section.read_section`."""
    options = {"as": entry.key, "stage": entry.reference, "options": entry.options}
    others = {name: schema for name, schema in known.items() if name != entry.name}
    alone = replace(section, value={entry.name: options})
    return whole_section.read_section(alone, dataset, others, SECTION, own, external=external)


def roots(section: ConfigNode) -> list[str]:
    """Return the roots of the new documents of a section, each once; no stage is loaded."""
    entries = section.value.values() if isinstance(section.value, dict) else ()
    found = [entry["dataset"] for entry in entries if isinstance(entry, dict) and isinstance(entry.get("dataset"), str)]
    return [*dict.fromkeys(root.rstrip("/") for root in found)]


def home_of(root: str) -> Dataset:
    """Return the new documents below a root, as a dataset."""
    return Dataset(join(root, DOCUMENTS), root)


def schema_of(
    entry: Entry, dataset: Dataset, planned: Mapping[str, sets.SetSchema], *, checks: bool = True
) -> sets.SetSchema:
    """Return the schema of what a stage makes; its settings are compared with those on disk by it.

    Args:
        entry: Stage of the section.
        dataset: Dataset whose sets it reads.
        planned: Sets that will have been made by then.
        checks: Whether models and what the stage itself checks must be there.

    Raises:
        ConfigError: if it reads what is not there, or cannot run here.
    """
    stage = entry.stage()
    try:
        if checks:
            stage.check()
        found = tagger.settings(stage, recorded_reference(entry.reference), entry.key)
    except ConfigError as error:
        raise type(error)(f"{entry.place}: {error}") from None
    found["stage"] = found.pop("tagger")
    reads = {}
    for reference in entry.references():
        other = planned.get(reference.set) or sets.load_schema(dataset, reference.set)
        there = {*planned, *dataset.sets()}
        if other is None and reference.set not in there:
            raise ConfigError(
                f"{entry.place}: {reference.option}: expected an attribute set, "
                f"{mismatch(reference.set, sorted(there))}"
            )
        if other is not None and reference.key not in other.keys:
            raise ConfigError(
                f"{entry.place}: {reference.option}: expected a key of the set {reference.set}, "
                f"{mismatch(reference.key, other.keys)}"
            )
        reads[reference.set] = digest_of(other)
    key, type_ = (DOCUMENTS, schema.ANY) if entry.root else (entry.key, value_type(entry))
    settings = found | dataset.lineage
    known = sets.key_schema(type_, settings, code_of(type(stage)), tagger.model_options(stage))
    return sets.SetSchema(keys={key: known}, reads=dict(sorted(reads.items())))


def value_type(entry: Entry) -> schema.Type:
    """Return the declared type of the values of a stage that makes attributes."""
    class_ = STAGES.find(entry.reference)
    found = schema.from_annotation(entry.values(), f"stage {class_.__name__}")
    return schema.about(found, found.description or first_line(class_).replace("``", "`"))
