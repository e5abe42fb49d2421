"""What a ``tag:`` section says: sets, their taggers in the order of what they read, and the schemas on disk."""

import graphlib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeVar

import msgspec
import xxhash

from toolkit import config, models, records, schema, tagger
from toolkit.config import ConfigStruct, Source
from toolkit.errors import ConfigError, MissingExtra, MissingModel, UnknownPlugin, did_you_mean
from toolkit.expressions import is_name
from toolkit.paths import Dataset, is_set_name, list_files
from toolkit.plugin_code import changes, code_of
from toolkit.plugins import default_name
from toolkit.tagger import TAGGERS, Reference, Tagger

T = TypeVar("T")


class Entry(ConfigStruct):
    """A tagger in a configuration, as data.

    Attributes:
        key: the top-level key that it writes.
        reference: by which the class is found.
        options: what the configuration gives.
        place: file, line and key, for messages.
        code: digests of the class's code when the plan was read (see `toolkit.plugin_code`).
    """

    key: str
    reference: str
    options: dict[str, Any]
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
        references: the attributes that it reads.
        type: declared.
        annotation: of the values, in Python.
    """

    set: str
    key: str
    entry: Entry
    tagger: Tagger
    references: tuple[Reference, ...]
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
    value = section.value[set_name]
    if not is_set_name(set_name):
        raise section.error((set_name,), "expected a set name of letters, digits, - and _")
    entries: list[Entry] = []
    for place in places_of(section, set_name):
        entry = _read_entry(place)
        if any(entry.key == other.key for other in entries):
            raise place.error((), f"expected each key of a set once, got {entry.key!r} twice; give one an `as:`")
        entries.append(entry)
    if not value:
        raise section.error((set_name,), "expected at least one tagger, got none")
    return entries


def places_of(section: Source, set_name: str) -> list[Source]:
    """Return the entries of a set as the section has them."""
    value = section.value[set_name]
    if isinstance(value, list):
        return [section.at(set_name, i) for i in range(len(value))]
    return [section.at(set_name)]


def reference_of(place: Source) -> tuple[str, str | None, Source]:
    """Return the reference to the class, the alias and the options of an entry.

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


def _read_entry(place: Source) -> Entry:
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
    config.convert(options, class_, f"tagger {reference}")
    where = ": ".join(part for part in (place.place(()), f"tagger {reference}") if part)
    key = key or default_name(reference)
    return Entry(key=key, reference=reference, options=options.value, place=where, code=code)


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
                references = tuple(tagger.references(built))
            except ConfigError as error:
                raise ConfigError(f"{entry.place}: {error}") from None
            type_, annotation = tagger.value_type(class_), tagger.value_annotation(class_)
            steps[set_name, entry.key] = Step(set_name, entry.key, entry, built, references, type_, annotation)
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
        keys = {
            step.key: records.KeySchema(schema.to_json(step.type), _settings(step, digest), step.entry.code)
            for step in mine
        }
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
    return xxhash.xxh3_128_hexdigest(msgspec.json.encode(found.without_code() if found else None))


def _settings(step: Step, digest: Callable[[str], str]) -> dict[str, Any]:
    try:
        if digest is models.digest:  # or else the model need not be here
            tagger.check_models(step.tagger)
        return tagger.settings(step.tagger, step.entry.reference, step.key, digest)
    except MissingModel as error:
        raise MissingModel(f"{step.entry.place}: {error}") from None
    except ConfigError as error:
        raise ConfigError(f"{step.entry.place}: {error}") from None


def _check_reference(
    step: Step, reference: Reference, keys: Mapping[str, schema.Type] | None, planned: Iterable[str], dataset: Dataset
) -> None:
    where = f"{step.entry.place}: {reference.option}: {reference.text!r}"
    if keys is None and reference.set in dataset.sets():
        return  # written by another program: known when it is read
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


def differences(old: records.SetSchema, new: records.SetSchema) -> list[str]:
    """What has changed between two schemas of a set, a line each; empty if nothing."""
    lines = []
    before, after = msgspec.to_builtins(old.without_code()), msgspec.to_builtins(new.without_code())

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
        elif old != new:  # it did not know the code
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
