"""The one pass of ``toolkit run``: what tag and mix do to a shard, done while its documents are made by ingest.

The commands behind it find that done, and do what is left: of other shards, and of the whole dataset. With
``--per-shard`` nothing is left: documents and attributes are deleted when they are mixed.
"""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec

from toolkit.commands import _mix_editions as editions
from toolkit.commands import _mix_preparation as preparation
from toolkit.commands import _sections as sections
from toolkit.config.settings import stages
from toolkit.data.dataset import Dataset
from toolkit.errors import ConfigError, quoted
from toolkit.ingest import plan as ingest_plan
from toolkit.ingest import section as ingest_section
from toolkit.mix import join, publish
from toolkit.mix.settings import MixSettings
from toolkit.one_pass import InputToPass
from toolkit.stages.context import Context
from toolkit.tag import declared
from toolkit.tag import run as tagging

if TYPE_CHECKING:
    from toolkit.whole import section as whole_section
    from toolkit.whole.sign import ShardToSign


@dataclass
class Passing:
    """What is done with each input's documents while they are made.

    Attributes:
        tag: how they are tagged, if they are; its shard is empty.
        mix: likewise.
        sign: likewise; of entries that read no sets but those which are made on the way.
        plans: of the sections that it is of.
        deletes: whether documents and attributes are deleted when they are mixed.
        tagged: shards of which attributes were written, once they have been.
        failed: why shards could not be mixed, by key, where they are deleted.
    """

    tag: tagging.ShardToTag | None
    mix: join.ShardToMix | None
    sign: "ShardToSign | None" = None
    plans: "list[whole_section.Plan]" = field(default_factory=list)
    deletes: bool = False
    tagged: set[str] = field(default_factory=set)
    failed: dict[str, str] = field(default_factory=dict)

    def of(self, work: ingest_plan.InputToIngest) -> InputToPass:
        """Return the work on an input."""
        return InputToPass(input=work, tag=self.tag, mix=self.mix, sign=self.sign)

    @contextmanager
    def lease(self, context: Context) -> Iterator[None]:
        """Lease what is written beside the documents, and declare the sets."""
        dataset = context.dataset
        with ExitStack() as stack:
            if self.tag:
                holds = tagging.holds(self.tag.settings)
                stack.enter_context(context.lease(dataset.bookkeeping, dataset.attributes, holds))
                declared.prepare(
                    self.tag.plan,
                    dataset,
                    {**ingest_section.set_schemas(context.entries), **sections.aligned(context)},
                    overwrite=context.options.overwrite,
                )
            for plan in self.plans:
                from toolkit.whole import section as whole_section

                stack.enter_context(context.lease(dataset.bookkeeping, dataset.attributes, whole_section.holds(plan)))
            if self.mix:
                output = self.mix.settings.output.path
                if context.share is None:
                    with context.lease_output(output):
                        publish.finish_interrupted(output)
                stack.enter_context(context.lease_output(output, self.mix.settings.stage_digest()))
            yield


def plan(context: Context, plans: Mapping[str, Any]) -> Passing | None:
    """Return what can be done with documents while they are made; None if nothing can.

    All sections have been checked. A run of some inputs goes stage by stage: its first shards need not be theirs.

    Args:
        context: of the configuration.
        plans: what each section comes to, by the name of its stage.
    """
    if context.options.limit is not None:
        return None
    tagged, wholes = plans.get("tag", {}), [plans[name] for name in stages("whole") if name in plans]
    made = {**ingest_section.set_schemas(context.entries), **tagged}
    tag = sections.to_tag(context, sections.tags(context), tagged) if tagged else None
    mix = None
    if context.has("mix"):
        settings = sections.mix(context)
        stream = settings.streams[0]
        is_own = [each.dataset for each in settings.streams] == [context.dataset]
        is_whole = not (stream.dataset.include or stream.dataset.exclude)
        if is_own and is_whole and all(given.set in made for given in stream.attributes):
            mix = preparation.to_be(context, settings, stream, made)
    entries = [entry for plan in wholes for entry in plan.entries if made.keys() >= {*entry.reads}]
    sign = _to_sign(context, entries) if entries else None
    return Passing(tag, mix, sign, wholes if sign else []) if tag or mix or sign else None


def _to_sign(context: Context, entries: "list[whole_section.Entry]") -> "ShardToSign":
    """Return how each shard is signed; its name is empty."""
    from toolkit.whole.sign import ShardToSign

    return ShardToSign(
        dataset=context.dataset,
        entries=entries,
        shard="",
        max_document_bytes=context.config.max_document_bytes,
    )


# --- documents that are deleted ---------------------------------------------------------------------------------------


def plan_per_shard(context: Context, *, writes: bool) -> Passing:
    """Return what is done with documents before they are deleted.

    Nothing is written but, if it `writes`, what finds out whether it can.

    Raises:
        ConfigError: if the configuration is not one that can be run input by input.
    """
    dataset = context.dataset
    settings = _settings(context, dataset, writes=writes)
    made, tag = ingest_section.set_schemas(context.entries), None
    if context.has("tag"):
        planned, overwrite = {**made, **sections.aligned(context)}, context.options.overwrite
        tagged = declared.prepare(sections.tags(context), dataset, planned, overwrite=overwrite, write=False)
        made, tag = {**made, **tagged}, sections.to_tag(context, sections.tags(context), tagged)
    for given in settings.streams[0].attributes:
        if given.set not in made:  # it may have cost much, and would be deleted
            raise ConfigError(
                f"{settings.place}: expected only sets that this configuration makes, got "
                f"{given.set!r}: --per-shard deletes attributes, and could not make this set again; run "
                f"without --per-shard"
            )
    return Passing(tag, preparation.to_be(context, settings, settings.streams[0], made), deletes=True)


def _settings(context: Context, dataset: Dataset, *, writes: bool) -> MixSettings:
    """Return the settings of the mix, which must be of this dataset alone."""
    context.section("ingest"), context.section("mix")
    if editions.of(context):
        raise context.section("mix").error(
            (editions.KEY,),
            "expected no editions with --per-shard, which deletes the documents after the mix; run without --per-shard",
        )
    if context.has("tokenize"):
        raise context.section("tokenize").error(
            (),
            "expected no section `tokenize:` with --per-shard, which deletes the documents after "
            "the mix; make tokens the output of the mix: `output: {format: tokens, …}`",
        )
    for name in (each for each in stages("sets", "whole") if each != "tag" and context.has(each)):
        raise context.section(name).error(
            (),
            f"expected no section `{name}:` with --per-shard: its sets need the documents of all "
            f"shards, which --per-shard deletes one after the other; run without --per-shard",
        )
    settings = preparation.settings_of(context, writes=writes)
    if [stream.dataset for stream in settings.streams] != [dataset]:
        raise ConfigError(
            f"{settings.place}: with --per-shard, expected a mix of the dataset of this "
            f"configuration alone, got other datasets; run without --per-shard"
        )
    if what := settings.needs_all_shards:
        raise ConfigError(
            f"{settings.place}: with --per-shard, expected a mix without {what}, which needs all "
            f"shards at once; run without --per-shard"
        )
    if dataset.include or dataset.exclude:
        raise ConfigError(
            f"{settings.place}: with --per-shard, expected a dataset without `include` and "
            f"`exclude`; run without --per-shard"
        )
    for rule in settings.streams[0].rules:
        if rule.foreign:
            raise ConfigError(
                f"{rule.place}: rule {quoted(rule.name)}: with --per-shard, expected an expression, got "
                f"{rule.foreign.syntax}, whose patterns must be checked against the attributes of all "
                f"shards; run without --per-shard"
            )
    return msgspec.structs.replace(settings, deletes=True)
