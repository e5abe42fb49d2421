"""What a ``tag:`` section says: sets, their taggers in the order of what they read, and the schemas on disk."""

import graphlib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeVar

import msgspec
import xxhash

from toolkit.config import settings as config
from toolkit.config.plugin_code import changes, code_of
from toolkit.config.settings import ConfigStruct, Source
from toolkit.data import schema
from toolkit.data.dataset import Dataset
from toolkit.data.metadata_fields import METADATA, MetadataField
from toolkit.errors import ConfigError, MissingExtra, MissingModel, UnknownPlugin, did_you_mean
from toolkit.plugins import default_name
from toolkit.records import sets as records
from toolkit.rules.expressions import is_name
from toolkit.storage import models
from toolkit.storage.paths import is_set_name, list_files
from toolkit.tag import tagger, without
from toolkit.tag.tagger import TAGGERS, Reference, Tagger

T = TypeVar("T")


class Entry(ConfigStruct):
    """A tagger in a configuration, as data.

    Attributes:
        key: the top-level key that it writes.
        reference: by which the class is found.
        options: what the configuration gives.
        without: the spans that its texts are given without (see `toolkit.tag.without`).
        place: file, line and key, for messages.
        code: digests of the class's code when the plan was read (see `toolkit.config.plugin_code`).
    """

    key: str
    reference: str
    options: dict[str, Any]
    without: str | None = None
    place: str = ""
    code: dict[str, str] = {}


class Plan(ConfigStruct):
    """What a `toolkit tag` does, as data that can be sent to a worker."""

    sets: dict[str, list[Entry]]


@dataclass(frozen=True)
class Step:
    """A configured tagger in its place.

    Attributes:
        set, key: where its value goes.
        entry: of the configuration.
        tagger: configured.
        references: the attributes that it reads, and those of `without`.
        fields: of the documents' metadata that it reads.
        without: the spans that its texts are given without.
        type: declared.
        annotation: of the values, in Python.
    """

    set: str
    key: str
    entry: Entry
    tagger: Tagger
    references: tuple[Reference, ...]
    fields: tuple[MetadataField, ...]
    without: Reference | None
    type: schema.Type
    annotation: Any


def read_section(section: Source) -> Plan:
    """The plan that a ``tag:`` section describes; options are checked, nothing is loaded.

    Raises:
        ConfigError: naming the place in the file.
    """
    if not isinstance(section.value, dict):
        raise section.error((), "expected `SET: TAGGER | [TAGGER, …]`")
    return Plan(sets={set_name: _read_set(section, set_name) for set_name in section.value})


def read_sets(section: Source, names: Iterable[str]) -> Plan:
    """Return the plan of some of the sets of a ``tag:`` section, and of those of the section that they read.

    Raises:
        ConfigError: as `read_section`; what other sets say is not looked at.
    """
    sets: dict[str, list[Entry]] = {}
    todo = [name for name in names if name in section.value]
    while todo:
        name = todo.pop()
        if name not in sets:
            sets[name] = _read_set(section, name)
            steps = _build(msgspec.json.encode(Plan(sets={name: sets[name]})))
            todo += [r.set for step in steps for r in step.references if r.set in section.value]
    return Plan(sets={name: sets[name] for name in section.value if name in sets})


def _read_set(section: Source, set_name: str) -> list[Entry]:
    if not is_set_name(set_name):
        raise section.error((set_name,), "expected a set name of letters, digits, - and _")
    if set_name == METADATA:
        what = f"`{METADATA}.field` in an option is a field of the document's metadata"
        raise section.error((set_name,), f"expected another set name than {METADATA!r}: {what}")
    entries: list[Entry] = []
    shared = _of_all(section, set_name)
    for place in places_of(section, set_name):
        entry = _read_entry(place, shared)
        if any(entry.key == other.key for other in entries):
            raise place.error((), f"expected each key of a set once, got {entry.key!r} twice; give one an `as:`")
        entries.append(entry)
    if not entries:
        raise section.error((set_name,), "expected at least one tagger, got none")
    return entries


def _of_all(section: Source, set_name: str) -> Source:
    """Return the options that a set of the form ``{taggers: […], option: …}`` gives all its taggers."""
    place = section.at(set_name)
    if not _is_long(place.value):
        place.value = {}
        return place
    shared = config.divide(place, {"taggers"})[1]
    for key in shared.value:
        if key not in OF_SETS:
            raise shared.error((key,), f"expected {' or '.join(OF_SETS)} beside `taggers`, got {key!r}")
    return shared


def _is_long(value: Any) -> bool:
    return isinstance(value, dict) and "taggers" in value


def places_of(section: Source, set_name: str) -> list[Source]:
    """Return the entries of a set as the section has them."""
    place = section.at(set_name)
    if _is_long(place.value):
        place = place.at("taggers")
    return [place.at(i) for i in range(len(place.value))] if isinstance(place.value, list) else [place]


OF_SETS = {without.OPTION: None}
"""Options of any set, by name with their defaults. They stand beside a tagger, or beside `taggers` for all of a set."""


def reference_of(place: Source) -> tuple[str, str | None, Source]:
    """Return the reference to the class, the alias and the options of an entry, those of any set among them.

    Raises:
        ConfigError: if it is not of the form of one.
    """
    if isinstance(place.value, str):
        reference, key, options = place.value, None, place.at()
        options.value = {}
    else:
        taken, options = config.split(place, {"tagger": None, "as": None})
        reference, key = taken["tagger"], taken["as"]
    if not isinstance(reference, str) or not isinstance(key, str | None):
        raise place.error((), "expected a tagger's name, or {tagger: NAME, as: ALIAS, option: …}")
    return reference, key, options


def _read_entry(place: Source, shared: Source) -> Entry:
    reference, key, options = reference_of(place)
    if key is not None and not is_name(key):
        raise place.error(("as",), f"expected a name that rules can use, of letters, digits and _, got {key!r}")
    try:
        class_ = TAGGERS.find(reference)
        code = code_of(class_)
    except (UnknownPlugin, MissingExtra) as error:
        raise type(error)(str(place.error((), str(error)))) from None
    except ConfigError as error:
        raise place.error((), str(error)) from None
    if taken := {field.encode_name for field in msgspec.structs.fields(class_)} & {"tagger", "as", "taggers", *OF_SETS}:
        raise place.error(
            (), f"expected a tagger without an option {min(taken)!r}, which stands for another thing here"
        )
    own, options = config.divide(options, OF_SETS)
    if twice := own.value.keys() & shared.value.keys():
        raise own.error((min(twice),), f"expected {min(twice)} once, got it beside `taggers`, too")
    config.convert(options, class_, f"tagger {reference}")
    removed = _without(own if own.value else shared, class_, reference)
    where = ": ".join(part for part in (place.place(()), f"tagger {reference}") if part)
    key = key or default_name(reference)
    return Entry(key=key, reference=reference, options=options.value, without=removed, place=where, code=code)


def _without(given: Source, class_: type[Tagger], reference: str) -> str | None:
    """Return the option `without` of an entry, checked."""
    text = given.value.get(without.OPTION)
    if text is None:
        return None
    try:
        without.check_values(class_, f"the tagger {reference}")
        return without.reference_of(text).text
    except ConfigError as error:
        raise given.error((without.OPTION,), str(error)) from None


@lru_cache(maxsize=4)
def _build(encoded: bytes) -> tuple[Step, ...]:
    steps: dict[tuple[str, str], Step] = {}
    for set_name, entries in msgspec.json.decode(encoded, type=Plan).sets.items():
        for entry in entries:
            class_ = TAGGERS.find(entry.reference)
            if edited := changes(entry.code, code_of(class_)):
                raise ConfigError(
                    f"{entry.place}: expected the same code for the whole run, got other code in {', '.join(edited)}; "
                    "leave it while a run works, and have the same on all machines; run again"
                )
            built = config.convert(Source(entry.options), class_, f"tagger {entry.reference}")
            try:
                references, fields = tuple(tagger.references(built)), tuple(tagger.metadata_fields(built))
            except ConfigError as error:
                raise ConfigError(f"{entry.place}: {error}") from None
            removed = without.reference_of(entry.without) if entry.without else None
            references += (removed,) if removed else ()
            type_, annotation = tagger.value_type(class_), tagger.value_annotation(class_)
            steps[set_name, entry.key] = Step(
                set_name, entry.key, entry, built, references, fields, removed, type_, annotation
            )
    sets: dict[str, list[str]] = {set_name: [] for set_name, _ in steps}
    keys: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for (set_name, key), step in steps.items():
        keys[set_name, key] = [(r.set, r.key) for r in step.references if (r.set, r.key) in steps]
        sets[set_name] += [r.set for r in step.references if r.set in sets and r.set != set_name]
    order = {set_name: i for i, set_name in enumerate(_sorted(sets))}
    ordered = [steps[name] for name in _sorted(keys)]
    return tuple(sorted(ordered, key=lambda step: order[step.set]))


def _sorted(reads: Mapping[T, Iterable[T]]) -> list[T]:
    try:
        return list(graphlib.TopologicalSorter(reads).static_order())
    except graphlib.CycleError as error:
        cycle = " -> ".join(n if isinstance(n, str) else ".".join(n) for n in error.args[1])
        raise ConfigError(f"tag: expected sets and taggers that do not read each other, got {cycle}") from None


def build(plan: Plan) -> list[Step]:
    """The configured taggers, each after those that it reads, those of a set together.

    Raises:
        ConfigError: if two read each other.
    """
    return list(_build(msgspec.json.encode(plan)))


def set_schemas(
    plan: Plan,
    dataset: Dataset,
    planned: Mapping[str, records.SetSchema] | None = None,
    digest: Callable[[str], str] = models.digest,
) -> dict[str, records.SetSchema]:
    """The schema that each set of the plan has on disk; checks what the taggers read against what there is.

    Args:
        plan: of the ``tag:`` section.
        dataset: where other sets are.
        planned: sets that an ingest before will write.
        digest: of a model.

    Raises:
        ConfigError: if an attribute that is read is not there or not of the type that is expected, or a model is not.
    """
    steps = build(plan)
    found: dict[str, records.SetSchema] = {}
    for set_name in dict.fromkeys(step.set for step in steps):
        mine = [step for step in steps if step.set == set_name]
        keys = {step.key: records.key_schema(step.type, _settings(step, digest), step.entry.code) for step in mine}
        reads: dict[str, str] = {}
        for step in mine:
            for reference in step.references:
                other = found.get(reference.set) or (planned or {}).get(reference.set)
                other = other or records.load_schema(dataset, reference.set)
                here = {s.key: s.type for s in mine} if reference.set == set_name else None
                types = here or (other.types() if other else None)
                _check_reference(step, reference, types, [*found, *(planned or ())], dataset)
                if reference.set != set_name:
                    reads[reference.set] = _digest(other)
        ordered = {entry.key: keys[entry.key] for entry in plan.sets[set_name]}
        found[set_name] = records.SetSchema(keys=ordered, reads=dict(sorted(reads.items())))
    return {set_name: found[set_name] for set_name in plan.sets}


def _digest(found: records.SetSchema | None) -> str:
    """Return the digest by which sets that are made from another know it; None is one of another program."""
    return xxhash.xxh3_128_hexdigest(msgspec.json.encode(found.of_values() if found else None))


def _settings(step: Step, digest: Callable[[str], str]) -> dict[str, Any]:
    try:
        if digest is models.digest:  # or else the model need not be here
            tagger.check_models(step.tagger)
        found = tagger.settings(step.tagger, step.entry.reference, step.key, digest)
        return found | {without.OPTION: step.entry.without} if step.without else found
    except MissingModel as error:
        raise MissingModel(f"{step.entry.place}: {error}") from None
    except ConfigError as error:
        raise ConfigError(f"{step.entry.place}: {error}") from None


def _check_reference(
    step: Step, reference: Reference, keys: Mapping[str, schema.Type] | None, planned: Iterable[str], dataset: Dataset
) -> None:
    where = f"{step.entry.place}: {reference.option}: {reference.text!r}"
    if keys is None and reference.set in dataset.sets():  # written by another program: known when it is read
        return _check_read(step, reference, schema.from_annotation(reference.type, where), where)
    if keys is None:
        known = sorted({*planned, *dataset.sets()})
        hint = did_you_mean(reference.set, known) or f"; there are: {', '.join(known) or 'none'}"
        raise ConfigError(f"{where}: expected an attribute set, got {reference.set!r}{hint}")
    if reference.key not in keys:
        hint = did_you_mean(reference.key, keys) or f"; there are: {', '.join(keys)}"
        raise ConfigError(f"{where}: expected a key of the set {reference.set}, got {reference.key!r}{hint}")
    type_: schema.Type | None = keys[reference.key]
    for name in reference.path:
        type_ = type_.get(name) if type_ else None
    wanted = schema.from_annotation(reference.type, where)
    if type_ is None or not schema.fits(type_, wanted):
        raise ConfigError(f"{where}: expected a value of type {wanted}, got {type_ or 'no such field'}")
    _check_read(step, reference, type_, where)


def _check_read(step: Step, reference: Reference, type_: schema.Type, where: str) -> None:
    if step.without:
        try:
            without.check_read(reference, type_)
        except ConfigError as error:
            raise ConfigError(f"{where}: {error}") from None


def differences(old: records.SetSchema, new: records.SetSchema) -> list[str]:
    """What has changed between two schemas of a set, a line each; empty if nothing."""
    lines = []
    before, after = msgspec.to_builtins(old.of_values()), msgspec.to_builtins(new.of_values())

    def compare(a: Any, b: Any, path: str) -> None:
        if isinstance(a, dict) and isinstance(b, dict):
            for key in dict.fromkeys((*a, *b)):
                compare(a.get(key, "absent"), b.get(key, "absent"), f"{path}.{key}" if path else str(key))
        elif a != b:
            lines.append(f"{path}: {_short(a)} -> {_short(b)}")

    compare(before["keys"], after["keys"], "")
    compare(before["reads"], after["reads"], "made from")
    if not lines and list(before["keys"]) != list(after["keys"]):
        lines.append(f"order of keys: {', '.join(before['keys'])} -> {', '.join(after['keys'])}")
    return lines


def edits(old: records.SetSchema, new: records.SetSchema) -> list[str]:
    """Return which code of a set's taggers differs between two schemas of it, a line for each tagger.

    Code that one of them does not know (an earlier version of the toolkit wrote it) is not compared.
    """
    return [
        f"the code of {key} has changed: {', '.join(files)}"
        for key, each in new.keys.items()
        if key in old.keys and (files := changes(old.keys[key].code, each.code))
    ]


def _short(value: Any) -> str:
    text = value if value == "absent" else msgspec.json.encode(value).decode()
    return text if len(text) < 80 else text[:77] + "..."


def made_otherwise(set_name: str, what: str, found: Sequence[str]) -> ConfigError:
    """Return the refusal of a set that is not as the section says.

    Args:
        set_name: of it.
        what: ``settings`` or ``code`` differs.
        found: what `differences` or `edits` gave.
    """
    accept = f", or `toolkit tag --accept-code {set_name}` if no value has changed" if what == "code" else ""
    return ConfigError(
        f"expected the set {set_name!r} as the section `tag:` says, got one that was made with other {what}:\n  "
        + "\n  ".join(found)
        + f"\nchoose another set name and run `toolkit tag` (the old values stay), or `toolkit tag --overwrite`{accept}"
    )


def prepare(
    plan: Plan,
    dataset: Dataset,
    planned: Mapping[str, records.SetSchema] | None = None,
    *,
    overwrite: bool,
    accept_code: Collection[str] = (),
    write: bool = True,
) -> dict[str, records.SetSchema]:
    """Declares the sets of a plan: what is on disk under their names must have been made with the same settings.

    Args:
        plan: of the ``tag:`` section.
        dataset: where the sets are.
        planned: sets that an ingest before will write.
        overwrite: whether what was made with other settings is to be made again.
        accept_code: sets whose taggers' code may have changed, because their values have not.
        write: whether anything is written.

    Raises:
        ConfigError: if a set was made with other settings, other code, or by another program, and overwrite is not
            given.
    """
    for set_name in accept_code:
        if set_name not in plan.sets:
            hint = did_you_mean(set_name, plan.sets) or f"; there are: {', '.join(plan.sets)}"
            raise ConfigError(f"--accept-code: expected a set of the section `tag:`, got {set_name!r}{hint}")
    schemas = set_schemas(plan, dataset, planned)
    changed: list[str] = []
    learned: list[str] = []
    for set_name, new in schemas.items():
        old = records.load_schema(dataset, set_name)
        if old is None:
            folder = dataset.attribute_path(set_name, "")
            foreign = next(list_files(folder), None) is not None and not overwrite
            if foreign and records.load_schema(dataset, set_name) is None:  # or another share has just declared it
                raise ConfigError(
                    f"{folder}: expected a set that this toolkit made, got files without its records; "
                    "choose another set name, or --overwrite"
                )
            changed.append(set_name)
        elif found := differences(old, new):
            if not overwrite and records.recorded_shards(dataset, set_name):
                raise made_otherwise(set_name, "settings", found)
            changed.append(set_name)
        elif found := edits(old, new):
            made = records.recorded_shards(dataset, set_name)
            if made and not overwrite and set_name not in accept_code:
                raise made_otherwise(set_name, "code", found)
            (changed if overwrite and set_name not in accept_code else learned).append(set_name)
        elif old != new:  # it did not know the code, or what a value is was worded otherwise
            learned.append(set_name)
    for set_name in (*changed, *learned) if write else ():
        old, new = records.load_schema(dataset, set_name), schemas[set_name]
        settings = {key: each.settings for key, each in new.keys.items()}
        edited = old is not None and edits(old, new)  # of which a record says nothing
        for shard in records.recorded_shards(dataset, set_name) if set_name in changed and old != new else ():
            record = records.load_record(dataset, set_name, shard)
            if edited or record is None or record.settings != settings:  # or another share has just written it
                records.forget(dataset, set_name, shard)
        records.save_schema(dataset, set_name, new)
    for step in build(plan) if write else ():
        if names := tagger.model_names(step.tagger):
            records.save_models(dataset, step.set, names)
    return schemas
