"""The sets of a ``tag:`` section as they are declared on disk: their schemas, and whether they are as declared."""

from collections.abc import Callable, Collection, Iterable, Mapping
from functools import cache
from typing import Any

import msgspec

from toolkit.config import scale as scales, settings as config
from toolkit.config.settings import ConfigNode
from toolkit.data import chosen_text, schema
from toolkit.data.dataset import Dataset
from toolkit.errors import ConfigError, MissingExtra, MissingModel, UnknownPlugin, did_you_mean, errors_from
from toolkit.records import sets as records
from toolkit.records.external_sets import External, types_of
from toolkit.records.set_declaration import declare_set, differences, digest_of, edits, made_otherwise, what_to_declare
from toolkit.rules.text_edits import edits_in
from toolkit.storage import models, store_of
from toolkit.tag import plan as tag_plan, tagger
from toolkit.tag.plan import Plan, Step, build


def set_schemas(
    plan: Plan,
    dataset: Dataset,
    planned: Mapping[str, records.SetSchema] | None = None,
    digest: Callable[[str], str] = models.digest,
) -> dict[str, records.SetSchema]:
    """Return the schema of each set of the plan on disk.

    Attributes that the taggers read are checked.

    Args:
        plan: Plan of the ``tag:`` section.
        dataset: Dataset with other sets.
        planned: sets that an ingest before will write.
        digest: Digest of a model.

    Raises:
        ConfigError: if an attribute that is read is not there or not of the type that is expected, or a model is not.
    """
    steps = build(plan)
    results: dict[str, records.SetSchema] = {}
    for set_name in dict.fromkeys(step.set for step in steps):
        mine = [step for step in steps if step.set == set_name]
        keys = {
            step.key: records.key_schema(
                step.stored,
                _settings(step, digest) | dataset.lineage,
                step.entry.code,
                tagger.model_options(step.tagger) | step.entry.place_of_tagger | step.entry.files,
            )
            for step in mine
        }
        reads: dict[str, str] = {}
        for step in mine:
            for reference in step.references:
                other = results.get(reference.set) or (planned or {}).get(reference.set)
                other = other or records.load_schema(dataset, reference.set)
                here = {s.key: s.stored for s in mine} if reference.set == set_name else None
                types = here or (other.types() if other else None)
                of = keys if here else other.keys if other else {}
                _check_reference(step, reference, types, of, [*results, *(planned or ())], dataset)
                if reference.set != set_name:
                    reads[reference.set] = digest_of(other)
        ordered = {entry.key: keys[entry.key] for entry in plan.sets[set_name]}
        results[set_name] = records.SetSchema(keys=ordered, reads=dict(sorted(reads.items())))
    return {set_name: results[set_name] for set_name in plan.sets}


def types_elsewhere(
    dataset: Callable[[], Dataset], planned: Callable[[], Mapping[str, records.SetSchema]], external: External
) -> Callable[[], Mapping[str, Mapping[str, schema.Type]]]:
    """Return a function to the types of other sets.

    They exist, or will be ingested; it is for `plan.read_section`.

    Args:
        dataset: gives the dataset.
        planned: gives the sets that an ingest writes.
        external: Function that returns the contents of the files of an external set.
    """

    @cache
    def load_types() -> dict[str, dict[str, schema.Type]]:
        dataset_ = dataset()
        schemas = {name: records.load_schema(dataset_, name) for name in dataset_.sets()} | dict(planned())
        types = {name: schema.types() for name, schema in schemas.items() if schema}
        for name in schemas.keys() - types.keys():
            types[name] = {key: type_ for key, (type_, _) in types_of(external(name)).items()}
        return {name: type_ for name, type_ in types.items() if type_}

    return load_types


def _settings(step: Step, digest: Callable[[str], str]) -> dict[str, Any]:
    try:
        if digest is models.digest:  # or else the model need not be here
            tagger.check_models(step.tagger)
        results = tagger.settings(step.tagger, step.entry.recorded or step.entry.reference, step.key, digest)
        results |= {tag_plan.WITHOUT: step.entry.without} if step.entry.without else {}
        if step.entry.text:
            results |= {chosen_text.OPTION: msgspec.to_builtins(edits_in(step.entry.text)) or step.entry.text}
        results |= {scales.OPTION: config.plain(step.entry.scale)} if step.entry.scale else {}
        condition = step.entry.when
        results |= {tag_plan.WHEN: condition.text} if condition else {}
        return results | {tag_plan.SETS: condition.sets} if condition and condition.sets else results
    except MissingModel as error:
        raise MissingModel(f"{step.entry.place}: {error}") from None
    except ConfigError as error:
        raise ConfigError(f"{step.entry.place}: {error}") from None


def _check_reference(
    step: Step,
    reference: tagger.Reference,
    types: Mapping[str, schema.Type] | None,
    keys: Mapping[str, records.KeySchema],
    planned: Iterable[str],
    dataset: Dataset,
) -> None:
    """Raise ConfigError unless the attribute exists with its type and text."""
    where = f"{step.entry.place}: {reference.option}: {reference.text!r}"
    if types is None and reference.set not in dataset.sets():
        names = sorted({*planned, *dataset.sets()})
        hint = did_you_mean(reference.set, names) or f"; there are: {', '.join(names) or 'none'}"
        raise ConfigError(f"{where}: expected an attribute set, got {reference.set!r}{hint}")
    if types is not None and reference.key not in types:
        hint = did_you_mean(reference.key, types) or f"; there are: {', '.join(types)}"
        raise ConfigError(f"{where}: expected a key of the set {reference.set}, got {reference.key!r}{hint}")
    if reference.option == tag_plan.WHEN:
        return
    expected = schema.from_annotation(reference.type, where)
    result = None if types is None else types[reference.key]
    type_ = _type_read(reference, result) if result else expected  # one of another program is known when it is read
    if result and reference.option != chosen_text.OPTION:
        theirs = chosen_text.text_of(keys[reference.key].settings) if reference.key in keys else None
        with errors_from(f"{step.entry.place}: {reference.option}"):
            chosen_text.check_same(step.entry.chosen, theirs, type_ or result, reference.text)
    if type_ is None or not schema.fits(type_, expected):
        hint = ""
        if type_ and type_.item and type_.kind == "nullable" and schema.fits(type_.item, expected):
            hint = (
                f"; let the tagger see only documents with a value: `when: {reference.key} is not "
                f"None`, or the same `when` as {reference.set}"
            )
        raise ConfigError(f"{where}: expected a value of type {expected}, got {type_ or 'no such field'}{hint}")
    with errors_from(where):
        if step.entry.edits:
            tag_plan.check_read(reference, type_)


def _type_read(reference: tagger.Reference, type_: schema.Type) -> schema.Type | None:
    """Return the type of the value at a reference; None without the field."""
    place, may_lack = reference.key, False
    for name in (*reference.path, None):
        if type_.kind == "nullable" and type_.item:
            may_lack = may_lack or place not in reference.proven
            type_ = type_.item
        if name is None:
            break
        inner = type_.get(name)
        if inner is None:
            return None
        place, type_ = f"{place}.{name}", inner
    return schema.nullable(type_) if may_lack else type_


def prepare(
    plan: Plan,
    dataset: Dataset,
    planned: Mapping[str, records.SetSchema] | None = None,
    *,
    overwrite: bool,
    accept_code: Collection[str] = (),
    write: bool = True,
    command: str = "tag",
) -> dict[str, records.SetSchema]:
    """Declare the sets of a plan: what is on disk under their names must have been made with the same settings.

    Args:
        plan: Plan of the ``tag:`` section.
        dataset: Dataset of the sets.
        planned: sets that an ingest before will write.
        overwrite: True if what was made with other settings is to be made again.
        accept_code: sets whose taggers' code may have changed, because their values have not.
        write: True if anything is written.
        command: Command that makes the sets, as its section is called.

    Raises:
        ConfigError: if a set was made with other settings, other code, or by another program, and overwrite is not
            given.
    """
    for set_name in accept_code:
        if set_name not in plan.sets:
            hint = did_you_mean(set_name, plan.sets) or f"; there are: {', '.join(plan.sets)}"
            raise ConfigError(f"--accept-code: expected a set of the section `tag:`, got {set_name!r}{hint}")
    schemas = set_schemas(plan, dataset, planned)
    declare = {
        name: result
        for name, new in schemas.items()
        if (
            result := what_to_declare(
                dataset, name, new, overwrite=overwrite, is_accepted=name in accept_code, command=command
            )
        )
    }
    if write:
        for set_name in sorted(declare, key=lambda name: declare[name] != "changed"):
            declare_set(dataset, set_name, schemas[set_name], forget=declare[set_name] == "changed")
        for step in build(plan):
            if names := tagger.model_names(step.tagger):
                records.save_models(dataset, step.set, names)
    return schemas


def check_section(
    section: ConfigNode,
    dataset: Dataset,
    names: Collection[str],
    planned: Mapping[str, records.SetSchema],
    elsewhere: tag_plan.Others,
    own: tag_plan.Own,
) -> list[str]:
    """Check existing sets against the section.

    A set is compared with what it reads, too: the section may have changed a set that only another one reads.

    Args:
        section: the section ``tag:``.
        dataset: Dataset that it is about.
        names: Names of the sets that are to be used; those that the section does not have are not compared.
        planned: sets that the inputs carry.
        elsewhere: See `toolkit.tag.plan.read_sets`.
        own: gives the types of the own fields of documents.

    Returns:
        What could not be compared, because a tagger is not installed here: a warning for each set.

    Raises:
        ConfigError: if one was made with other settings or other code, or the section is not one.
    """
    if not isinstance(section.value, dict):
        raise section.error((), "expected `SET: TAGGER | [TAGGER, …]`")
    warnings = []
    for name in names:
        set_schema = records.load_schema(dataset, name)
        if name not in section.value or set_schema is None:
            continue
        try:
            expected = _planned_schema(dataset, name, planned, tag_plan.read_sets(section, [name], elsewhere, own))
        except (UnknownPlugin, MissingExtra) as error:
            if tag_plan.references_in(section, name) != {
                key: key_schema.settings.get("tagger") for key, key_schema in set_schema.keys.items()
            }:
                raise
            warnings.append(f"the set {name!r} cannot be compared with the section `tag:` here: {error}")
            continue
        if results := differences(set_schema, expected):
            raise made_otherwise(name, "settings", results)
        if results := edits(set_schema, expected):
            raise made_otherwise(name, "code", results)
    return warnings


def _planned_schema(
    dataset: Dataset, name: str, planned: Mapping[str, records.SetSchema], plan: tag_plan.Plan
) -> records.SetSchema:
    """Return the section's schema of a set."""
    digests = {called: sha256 for item in plan.sets for sha256, called in records.load_models(dataset, item).items()}
    return set_schemas(plan, dataset, planned, _digest_of(digests))[name]


def _digest_of(digests: Mapping[str, str]) -> Callable[[str], str]:
    """Return a function to the digest of a model.

    The model need not be here as long as its name is the same.
    """

    def digest(model: str) -> str:
        name = tagger.model_name(model)
        if model in models.SHA256:
            return models.SHA256[model]
        if name in digests and not store_of(model).can_list:
            return digests[name]
        try:
            return models.digest(model)
        except MissingModel:
            if name not in digests:
                raise
            return digests[name]

    return digest
