"""Compares a ``tag:`` section with the sets that it has made, before they are used."""

from collections.abc import Callable, Collection, Mapping

from toolkit.config.settings import Source
from toolkit.data.dataset import Dataset
from toolkit.errors import MissingExtra, MissingModel, UnknownPlugin
from toolkit.plugins import default_name
from toolkit.records import sets
from toolkit.storage import models, store_of
from toolkit.tag import declared, tagger
from toolkit.tag import plan as tag_plan


def check(
    section: Source,
    dataset: Dataset,
    names: Collection[str],
    planned: Mapping[str, sets.SetSchema],
    others: tag_plan.Others,
    own: tag_plan.Own,
) -> list[str]:
    """Check that sets were made as the section says now.

    A set is compared with what it reads, too: the section may have changed a set that only another one reads.

    Args:
        section: the section ``tag:``.
        dataset: that it is about.
        names: of the sets that are to be used; those that the section does not have are not compared.
        planned: sets that the inputs carry.
        others: as of `toolkit.tag.plan.read_sets`.
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
        made = sets.load_schema(dataset, name)
        if name not in section.value or made is None:
            continue
        try:
            wanted = _wanted(dataset, name, planned, tag_plan.read_sets(section, [name], others, own))
        except (UnknownPlugin, MissingExtra) as error:
            if _references(section, name) != {key: found.settings.get("tagger") for key, found in made.keys.items()}:
                raise
            warnings.append(f"the set {name!r} cannot be compared with the section `tag:` here: {error}")
            continue
        if found := declared.differences(made, wanted):
            raise declared.made_otherwise(name, "settings", found)
        if found := declared.edits(made, wanted):
            raise declared.made_otherwise(name, "code", found)
    return warnings


def _wanted(dataset: Dataset, name: str, planned: Mapping[str, sets.SetSchema], plan: tag_plan.Plan) -> sets.SetSchema:
    """Return the schema that the section gives a set."""
    known = {called: sha256 for each in plan.sets for sha256, called in sets.load_models(dataset, each).items()}
    return declared.set_schemas(plan, dataset, planned, _digest_of(known))[name]


def _digest_of(known: Mapping[str, str]) -> Callable[[str], str]:
    """Return what gives the digest of a model that need not be here, as long as it is called what it was called."""

    def digest(model: str) -> str:
        name = tagger.model_name(model)
        if model in models.SHA256:
            return models.SHA256[model]
        if name in known and not store_of(model).can_list:
            return known[name]
        try:
            return models.digest(model)
        except MissingModel:
            if name not in known:
                raise
            return known[name]

    return digest


def _references(section: Source, name: str) -> dict[str, str]:
    """Return the reference to each tagger of a set, by its key."""
    found = {}
    for place in tag_plan.places_of(section, name):
        reference, key, _ = tag_plan.reference_of(place)
        found[key or default_name(reference)] = reference
    return found
