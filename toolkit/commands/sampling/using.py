"""Looks at a sample instead of its dataset."""

import msgspec

from toolkit.commands.steps.context import Context
from toolkit.data import row_index
from toolkit.data.dataset import Dataset
from toolkit.errors import ConfigError, DataError
from toolkit.ingest import section as ingest_section
from toolkit.mix.settings import MixSettings
from toolkit.records import sets as records
from toolkit.storage.threads import for_each
from toolkit.tag import check, sample


def in_mix(context: Context, settings: MixSettings, *, wanted: bool) -> tuple[MixSettings, str]:
    """Return the settings of a mix that is looked at, over the sample if one is meant; and what it is over, for people.

    The sample is meant if it is asked for, or a set that is joined is there in the sample alone.

    Raises:
        ConfigError: if there is no sample of these documents, or it was made with other settings.
    """
    names = [each.set for each in settings.streams[0].attributes]
    is_own = context.has_dataset and [each.dataset for each in settings.streams] == [context.dataset]
    if not is_own:
        if wanted:
            raise ConfigError(
                f"{settings.place}: with --sample, expected a mix of the dataset of this configuration "
                f"alone, got other datasets"
            )
        return settings, ""
    if not wanted and not only_sampled(context.dataset, names):
        return settings, ""
    found = of(context, names)
    drawn, own = sample.dataset_of(context.dataset), context.own_types_known()
    stream = msgspec.structs.replace(settings.streams[0], dataset=drawn, own=own)
    return msgspec.structs.replace(settings, streams=[stream]), str(found)


def refuse(context: Context, settings: MixSettings) -> None:
    """Check that no set of a mix is there in a sample alone.

    Raises:
        ConfigError: naming the first.
    """
    for stream in settings.streams if context.has_dataset else ():
        names = [each.set for each in stream.attributes] if stream.dataset == context.dataset else []
        if alone := only_sampled(context.dataset, names):
            raise ConfigError(
                f"{settings.place}: expected the set {alone[0]!r} of all documents, got a sample of it; run `toolkit "
                "tag`, or look at the sample: `toolkit mix --dry-run`"
            )


def only_sampled(dataset: Dataset, names: list[str]) -> list[str]:
    """Return those of some sets of which there is only a sample."""
    there = set(dataset.sets())
    missing = [name for name in names if name not in there]
    found = sample.load(dataset) if missing else None
    return [name for name in missing if found and name in found.sets]


def of(context: Context, names: list[str]) -> sample.Sample:
    """Return the sample of the configuration's dataset, which sets of it may be read of.

    Raises:
        ConfigError: if there is none, or it was made of other documents or with other settings.
    """
    dataset = context.dataset
    found = sample.load(dataset)
    if found is None:
        raise ConfigError(f"expected a sample of {dataset.documents}, got none; run `toolkit tag --sample N`")
    again = f"run `toolkit tag --sample {found.documents}` again"
    shards = dataset.shards()
    states = dict(zip(shards, for_each(lambda shard: row_index.current(dataset, shard), shards), strict=True))
    there = {name: state for name, state in states.items() if state}
    if len(there) < len(states) or sample.digest(there) != found.input:
        raise ConfigError(f"expected a sample of the present documents, got one of other documents; {again}")
    drawn = sample.dataset_of(dataset)
    for name in names:
        if records.load_schema(drawn, name) is None and name not in drawn.sets():
            raise ConfigError(f"expected the set {name!r} in the sample, got none; {again}")
    if context.has("tag"):
        try:
            planned = ingest_section.set_schemas(context.entries)
            others = context.others(lambda: drawn, lambda: planned)
            check.check(context.section("tag"), drawn, names, planned, others, context.own_types_known)
        except (ConfigError, DataError) as error:
            raise ConfigError(f"{found}: {error}\nor {again}") from None
    return found
