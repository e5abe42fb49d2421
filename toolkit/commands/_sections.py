"""What the sections of a configuration come to that several commands need, each read once."""

import os
from collections.abc import Callable, Mapping
from functools import partial

import msgspec

from toolkit.data.dataset import Dataset
from toolkit.describe.about import read_splits
from toolkit.errors import ConfigError
from toolkit.ingest import section as ingest_section
from toolkit.mix import settings as mix_settings
from toolkit.mix.settings import MixSettings
from toolkit.records.sets import SetSchema
from toolkit.stages.context import Context
from toolkit.storage.paths import is_folder, not_in
from toolkit.tag import declared
from toolkit.tag import plan as tag_plan
from toolkit.tag.run import ShardToTag, settings_of


def aligned(context: Context) -> dict[str, SetSchema]:
    """Return the schemas of the sets that the section ``align:`` makes, by their inputs as they are now.

    Raises:
        ConfigError: naming the place in the file, if that cannot be told.
    """
    if not context.has("align"):
        return {}
    from toolkit.align import section

    def read() -> dict[str, SetSchema]:
        entries, limit = section.read_section(context.section("align")), context.config.max_document_bytes
        return {entry.set: section.schema_of(entry, entry.inputs(), limit) for entry in entries}

    return context.once("align", read)


def tags(context: Context) -> tag_plan.Plan:
    """Return the plan of the section ``tag:``.

    Raises:
        ConfigError: naming the place in the file; if there is no such section, too.
    """

    def before() -> dict[str, SetSchema]:
        made = aligned(context) if context.options.command == "run" else {}
        return ingest_section.set_schemas(context.entries) | made

    def read() -> tag_plan.Plan:
        elsewhere = others(context, lambda: context.dataset, before)
        return tag_plan.read_section(context.section("tag"), elsewhere, context.own_types_known)

    return context.once("tag", read)


def others(
    context: Context, dataset: Callable[[], Dataset], planned: Callable[[], Mapping[str, SetSchema]]
) -> tag_plan.Others:
    """Return what gives the types of sets that a section reads and does not make; as `declared.types_elsewhere`."""
    return declared.types_elsewhere(
        dataset, planned, lambda name: [] if name in context.made_sets else context.external(name)
    )


def to_tag(context: Context, plan: tag_plan.Plan, schemas: Mapping[str, SetSchema]) -> ShardToTag:
    """Return how each shard is tagged by a plan, whose sets have these schemas; its name is empty."""
    return ShardToTag(
        dataset=context.dataset,
        plan=plan,
        settings=settings_of({name: schemas[name] for name in plan.sets}),
        shard="",
        max_document_bytes=context.config.max_document_bytes,
    )


def annotations(context: Context, known: Mapping[str, SetSchema] | None = None) -> dict[str, tag_plan.Plan]:
    """Return the plans of the sets of the section ``annotate:``, in its order.

    Args:
        context: Context of the configuration.
        known: Sets that earlier sections make; by default those that are on disk.

    Raises:
        ConfigError: naming the place in the file; if there is no such section, too.
    """
    from toolkit.learn.annotate import section

    made = context.known_sets("annotate") if known is None else known
    place, dataset = context.section("annotate"), context.dataset
    return section.read_section(place, dataset, made, partial(others, context), context.own_types_known)


def mix(context: Context) -> MixSettings:
    """Return the settings of the section ``mix:``, with what `about.splits` says of the files of the output.

    Raises:
        ConfigError: naming the place in the file; if there is no such section, too.
    """

    def read() -> MixSettings:
        folder, ids = os.path.dirname(context.options.config or ""), context.config.duplicate_ids
        found = mix_settings.read_section(context.section("mix"), folder, lambda: context.dataset, ids)
        splits = read_splits(context.section("about")) if context.has("about") else None
        return msgspec.structs.replace(found, splits=splits.shares) if splits and splits.by == "file" else found

    return context.once("mix", read)


def output(context: Context) -> str:
    """Return the folder of the output that a path names; without one, that of the section ``mix:``.

    Raises:
        ConfigError: if several paths are named, or the mix of the configuration has not been run.
    """
    named = context.options.targets
    if len(named) > 1:
        raise ConfigError(f"expected one output, got {len(named)}: {', '.join(named)}")
    folder = named[0].rstrip("/") if named else mix(context).output.path
    if not named and not is_folder(folder):
        lacks = f"expected the output of a mix, got nothing there; run `toolkit mix`{not_in(folder)}"
        raise ConfigError(f"{folder}: {lacks}")
    return folder
