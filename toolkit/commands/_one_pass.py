"""The one pass of ``toolkit run``: what tag and mix do to a shard, done while its documents are made by ingest.

The commands behind it find that done, and do what is left: of other shards, and of the whole dataset.
"""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

from toolkit.commands import _mix_preparation as preparation
from toolkit.ingest import plan as ingest_plan
from toolkit.ingest import section as ingest_section
from toolkit.mix import join, publish
from toolkit.one_pass import InputToPass
from toolkit.records import sets as records
from toolkit.stages.context import Context
from toolkit.tag import declared
from toolkit.tag import plan as tag_plan
from toolkit.tag import run as tagging
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
        tagged: shards of which attributes were written, once they have been.
    """

    tag: tagging.ShardToTag | None
    mix: join.ShardToMix | None
    sign: ShardToSign | None = None
    plans: list[whole_section.Plan] = field(default_factory=list)
    tagged: set[str] = field(default_factory=set)

    def of(self, work: ingest_plan.InputToIngest) -> InputToPass:
        """Return the work on an input."""
        return InputToPass(input=work, tag=self.tag, mix=self.mix, sign=self.sign)

    @contextmanager
    def claimed(self, context: Context) -> Iterator[None]:
        """Claim what is written beside the documents, and declare the sets."""
        dataset = context.dataset
        with ExitStack() as stack:
            if self.tag:
                holds = tagging.holds(self.tag.settings)
                stack.enter_context(context.claimed(dataset.bookkeeping, dataset.attributes, holds))
                declared.prepare(
                    self.tag.plan,
                    dataset,
                    {**ingest_section.set_schemas(context.entries), **context.aligned},
                    overwrite=context.options.overwrite,
                )
            for plan in self.plans:
                stack.enter_context(context.claimed(dataset.bookkeeping, dataset.attributes, whole_section.holds(plan)))
            if self.mix:
                output = self.mix.settings.output.path
                if context.share is None:
                    with context.claimed_output(output):
                        publish.finish_interrupted(output)
                stack.enter_context(context.claimed_output(output, self.mix.settings.stage_digest()))
            yield


def plan(context: Context, tagged: Mapping[str, records.SetSchema], wholes: list[whole_section.Plan]) -> Passing | None:
    """Return what can be done with documents while they are made; None if nothing can.

    All sections have been checked. A run of some inputs goes stage by stage: its first shards need not be theirs.

    Args:
        context: of the configuration.
        tagged: the schemas of the sets that are tagged.
        wholes: the plans of the sections over the whole dataset.
    """
    if context.options.limit is not None:
        return None
    made = {**ingest_section.set_schemas(context.entries), **tagged}
    tag = to_tag(context, context.tags, tagged) if tagged else None
    mix = None
    if context.has("mix"):
        settings = context.mix
        stream = settings.streams[0]
        is_own = [each.dataset for each in settings.streams] == [context.dataset]
        is_whole = not (stream.dataset.include or stream.dataset.exclude)
        if is_own and is_whole and all(given.set in made for given in stream.attributes):
            mix = preparation.to_be(context, settings, stream, made)
    entries = [entry for plan in wholes for entry in plan.entries if made.keys() >= {*entry.reads}]
    sign = _to_sign(context, entries) if entries else None
    return Passing(tag, mix, sign, wholes if sign else []) if tag or mix or sign else None


def _to_sign(context: Context, entries: list[whole_section.Entry]) -> ShardToSign:
    """Return how each shard is signed; its name is empty."""
    return ShardToSign(
        dataset=context.dataset,
        entries=entries,
        shard="",
        max_document_bytes=context.config.max_document_bytes,
    )


def schemas(
    context: Context, tags: tag_plan.Plan, carried: Mapping[str, records.SetSchema]
) -> dict[str, records.SetSchema]:
    """Return the schemas of the sets that will be tagged, beside those that inputs carry."""
    if not tags.sets:
        return {}
    planned = {**carried, **context.aligned}
    return declared.prepare(tags, context.dataset, planned, overwrite=context.options.overwrite, write=False)


def to_tag(context: Context, tags: tag_plan.Plan, tagged: Mapping[str, records.SetSchema]) -> tagging.ShardToTag:
    """Return how each shard is tagged; its name is empty."""
    return tagging.ShardToTag(
        dataset=context.dataset,
        plan=tags,
        settings=tagging.settings_of(tagged),
        shard="",
        max_document_bytes=context.config.max_document_bytes,
    )
