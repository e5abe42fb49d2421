"""The section ``annotate:``: sets, each the plan of one tagger, `toolkit.learn.annotate.annotator`."""

import os
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from toolkit.config import recipes, settings as config
from toolkit.config.settings import ConfigNode
from toolkit.data import chosen_text
from toolkit.data.dataset import Dataset
from toolkit.errors import ConfigError
from toolkit.learn.annotate import prompt as prompts
from toolkit.learn.annotate.annotator import BATCH, Annotator, answers_folder
from toolkit.records import sets as records
from toolkit.storage import store_of
from toolkit.storage.paths import where_looked
from toolkit.tag import plan as tag_plan, schema_check
from toolkit.tag.plan import SETS, WHEN, WITHOUT

ANNOTATOR = f"{Annotator.__module__}:{Annotator.__name__}"
"""The tagger, as schemas and records name it."""

_OF_SETS = ("as", WHEN, SETS, WITHOUT, chosen_text.OPTION)


def read_section(
    section: ConfigNode,
    dataset: Dataset,
    earlier: Mapping[str, records.SetSchema],
    types_elsewhere: Callable[[Callable[[], Dataset], Callable[[], Mapping[str, records.SetSchema]]], tag_plan.Others],
    own: tag_plan.Own,
) -> dict[str, tag_plan.Plan]:
    """Return the plan of each set, in the order of the section; options are checked, nobody is asked.

    Args:
        section: Section of the configuration.
        dataset: Dataset of the documents, and of sets that `when` reads.
        earlier: sets that earlier sections make, which need not be there yet.
        types_elsewhere: Function `toolkit.tag.schema_check.types_elsewhere`, with the external sets.
        own: gives the types of the own fields of documents.

    Raises:
        ConfigError: naming the place in the file.
    """
    if not isinstance(section.value, dict) or not section.value:
        raise section.error((), "expected `SET: {endpoint: …, model: …, prompt: …}`")
    plans: dict[str, tag_plan.Plan] = {}
    schemas = dict(earlier)
    for name in section.value:
        place = as_tag(section, name, dataset)
        elsewhere = types_elsewhere(lambda: dataset, partial(dict, schemas))
        try:
            plan = plans[name] = _with_file(tag_plan.read_section(place, elsewhere, own), section.value[name]["prompt"])
            schemas |= schema_check.set_schemas(plan, dataset, schemas)
        except ConfigError as error:
            raise type(error)(str(error).replace(f"tagger {ANNOTATOR}", f"annotate.{name}")) from None
    return plans


def _with_file(plan: tag_plan.Plan, prompt: Any) -> tag_plan.Plan:
    """Return a plan with the name of the user's prompt file. Without such a file, the plan is unchanged."""
    if not isinstance(prompt, str) or Path(prompt).is_relative_to(recipes.FOLDER):
        return plan
    files = {"prompt": prompt}
    sets = {
        name: [msgspec.structs.replace(entry, files=files) for entry in entries] for name, entries in plan.sets.items()
    }
    return tag_plan.Plan(sets=sets)


def is_prompt_of(path: str, key: records.KeySchema) -> bool:
    """Return True if a file has the prompt of a key."""
    try:
        return prompts.load(config.load(path)) == msgspec.convert(key.settings["options"]["prompt"], prompts.Prompt)
    except ConfigError:
        return False


def as_tag(section: ConfigNode, name: str, dataset: Dataset) -> ConfigNode:
    """Return an entry as a section ``tag:`` of one set.

    Raises:
        ConfigError: for whatever is wrong with its options.
    """
    place = section.at()
    annotator, options = annotator_of(section.at(name), dataset)
    place.value = {name: {"as": annotator.prompt.key, **options, "tagger": ANNOTATOR}}
    return place


def annotator_of(place: ConfigNode, dataset: Dataset) -> tuple[Annotator, dict[str, Any]]:
    """Return the annotator of an entry, and its complete options. These have the prompt and the folder of the answers.

    Raises:
        ConfigError: for whatever is wrong with it.
    """
    if not isinstance(place.value, dict):
        raise place.error((), f"expected {{endpoint: …, model: …, prompt: …}}, got {place.value!r}")
    config.refuse_unknown(place, Annotator, _OF_SETS, "an entry of `annotate:`")
    values = dict(place.value)
    if "prompt" in values:
        values["prompt"] = config.plain(_prompt(place))
    if isinstance(endpoint := values.get("endpoint"), str) and endpoint.startswith(BATCH):
        values["endpoint"] = BATCH + os.path.join(place.root, os.path.expanduser(endpoint.removeprefix(BATCH)))
    values["answers"] = values.get("answers") or answers_folder(dataset)
    if isinstance(values["answers"], str) and not store_of(values["answers"]).is_local:
        raise place.error(
            ("answers",),
            f"expected a folder on a disk for the answers, got {values['answers']}: objects of a bucket cannot grow. "
            "Name one, and keep it: a run goes on from it",
        )
    options = place.at()
    options.value = {key: value for key, value in values.items() if key not in _OF_SETS}
    annotator = config.convert(options, Annotator, "an entry of `annotate:`")
    with place.errors_at(keeps=True):
        annotator.check()
    return annotator, values


def _prompt(place: ConfigNode) -> prompts.Prompt:
    """Return the prompt of an entry: that of a file, or what stands there."""
    prompt = place.value["prompt"]
    if isinstance(prompt, dict):
        return prompts.load(place.at("prompt"))
    if not isinstance(prompt, str):
        raise place.error(
            ("prompt",), f"expected the path of a prompt, or {{prompt_name: …, prompt: …}}, got {prompt!r}"
        )
    if store_of(prompt).is_local and not os.path.exists(prompt):
        raise place.error(
            ("prompt",),
            f"expected the path of a prompt, got {prompt!r}, which is not there; `recipe:prompts/…` are ours"
            f"{where_looked(prompt)}",
        )
    return prompts.load(config.load(prompt))


def schemas_of(
    plans: Mapping[str, tag_plan.Plan],
    dataset: Dataset,
    earlier: Mapping[str, records.SetSchema],
    *,
    overwrite: bool,
    write: bool = False,
) -> dict[str, records.SetSchema]:
    """Return the schemas of the sets; what is on disk under their names must have been made with the same settings.

    Arguments and errors as of `toolkit.tag.schema_check.prepare`.
    """
    results: dict[str, records.SetSchema] = {}
    for plan in plans.values():
        results |= schema_check.prepare(
            plan, dataset, {**earlier, **results}, overwrite=overwrite, write=write, command="annotate"
        )
    return results
