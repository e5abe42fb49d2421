"""The preparation of a mix: its shards, with the sets, types and rules of each stream, checked."""

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from toolkit.commands.mixing import patterns
from toolkit.commands.steps import places
from toolkit.commands.steps import shards as sharing
from toolkit.commands.steps.context import Context
from toolkit.commands.steps.outcome import failures
from toolkit.data.dataset import SHARD_SUFFIXES, Dataset
from toolkit.errors import ConfigError, DataError, ToolkitError
from toolkit.ingest import own_types
from toolkit.mix import binding, joined_sets, publish
from toolkit.mix.effects import preview
from toolkit.mix.effects.counts import Totals
from toolkit.mix.join import ShardToMix
from toolkit.mix.joined_sets import JoinedSet
from toolkit.mix.publish import BudgetFound
from toolkit.mix.settings import MixSettings, Stream
from toolkit.mix.stage import shard_tasks
from toolkit.records import identity
from toolkit.records import sets as records
from toolkit.rules.compiling import UnknownAttribute
from toolkit.storage.paths import check_writable, strip_suffix

_NO_SETS: Mapping[str, records.SetSchema] = {}


@dataclass
class PreparedMix:
    """A mix that is ready to begin.

    Attributes:
        settings: with what the weights of streams come to.
        works: its shards, sorted by stream and path.
        sets: that each stream joins, by its name.
        unreadable: for shards whose foreign attributes cannot be read, why, by key.
        known: how many shards there are beside those that `--limit` lets in.
        notes: what is to be said of inputs that are not in it.
        budget: what that comes to, if there is one.
    """

    settings: MixSettings
    works: list[ShardToMix] = field(default_factory=list)
    sets: dict[str, list[JoinedSet]] = field(default_factory=dict)
    unreadable: dict[str, str] = field(default_factory=dict)
    known: int = 0
    notes: str = ""
    budget: BudgetFound | None = None


def settings_of(context: Context, *, writes: bool = True) -> MixSettings:
    """Return the settings of a configuration's mix, its paths checked.

    Args:
        context: of the configuration.
        writes: whether the output will be written; on S3, whether it can be is found out by an upload.
    """
    settings = context.mix
    settings.writer().check_installed()
    places.check_mix(context, settings)
    for path in filter(None, (settings.output.path, settings.rejected) if writes else ()):
        check_writable(path, settings.place)
    return settings


def check_output(context: Context, settings: MixSettings) -> str:
    """Check that output and dropped documents go where nothing else is, or what a mix of these datasets has made.

    Return what is replaced that was made from other datasets.

    Raises:
        ConfigError: if something else is there.
    """
    datasets = [stream.dataset for stream in settings.streams]
    replaced = publish.check_output(settings.output.path, datasets, overwrite=context.options.overwrite)
    if settings.rejected is not None:
        publish.check_rejected(settings.output.path, settings.rejected)
    return replaced


def check(context: Context, settings: MixSettings, planned: Mapping[str, records.SetSchema]) -> None:
    """Check the section before what it needs is there.

    Args:
        context: of the configuration.
        settings: of the mix.
        planned: the sets of its own dataset that will have been written by then.

    Raises:
        ConfigError: for whatever is wrong.
    """
    for stream in settings.streams:
        is_own = context.has_dataset and stream.dataset == context.dataset
        will_be = planned if is_own else {}
        if not joined_sets.foreign_sets(stream, will_be):  # their types are known when they are read
            known = msgspec.structs.replace(stream, own=context.own_types_to_be() if is_own else None)
            bound(settings, known, joined_sets.resolve_sets(stream, will_be, {}), will_be)


def bound(
    settings: MixSettings, stream: Stream, joined: list[JoinedSet], planned: Mapping[str, records.SetSchema] = _NO_SETS
) -> tuple[dict[str, binding.Binding], list[binding.Binding]]:
    """Return the attributes of the writer, and those of rules that set fields; check all that they need.

    Args:
        settings: Settings of the mix.
        stream: Stream to check.
        joined: Sets that the stream joins.
        planned: Sets that will have been written by then.

    Raises:
        ConfigError: for a rule or an option that cannot be used.
    """
    try:
        rules = joined_sets.compile_rules(settings, stream, joined)
    except UnknownAttribute as error:
        hint = joined_sets.set_hint(error.name, stream, joined, planned)
        raise ConfigError(f"{error.message}{hint}" if hint else str(error)) from None
    return binding.bind_writer(settings, joined, rules), binding.bind_rules(settings, joined, rules)


def prepare(context: Context, settings: MixSettings) -> PreparedMix:
    """Return the shards of all streams, with what is joined to them.

    Raises:
        ConfigError: for whatever is wrong with sets and rules.
        DataError: if shards that are known are gone.
    """
    prepared = PreparedMix(settings)
    if settings.streams[0].weight is not None and context.options.shard:
        raise ConfigError(f"{settings.place}: expected a mix without weights for --shard: they depend on all shards")
    for stream in settings.streams:
        _add_stream(context, prepared, stream)
    if settings.writer().is_per_shard():
        _check_names(prepared)
    fails = prepared.unreadable and settings.on_failed_shard == "stop"
    if settings.streams[0].weight is not None and not fails:
        return _weigh(context, prepared)
    return prepared


def _add_stream(context: Context, prepared: PreparedMix, stream: Stream) -> None:
    shards, notes = sharing.shards(context, stream.dataset, judges=True)
    prepared.known += len(shards)
    prepared.notes += notes
    if context.share and not shards:
        return  # the sets need not be there yet
    if stream.own is None:  # or else it is over a sample, whose documents are of other shards
        stream = msgspec.structs.replace(stream, own=own_types.of_documents(stream.dataset, shards))
    shards = context.limited(shards)
    resolved = context.source_of(stream.dataset, shards).resolve(stream, check="strict")
    joined, unreadable = resolved.sets, resolved.unreadable
    prepared.sets[stream.name] = joined
    try:
        bindings, set_bindings = bound(prepared.settings, stream, joined)
    except ConfigError:
        if unreadable:  # what rules lack may be in there
            raise ToolkitError("\n".join(unreadable.values())) from None
        raise
    for shard in shards:
        work = ShardToMix(
            settings=prepared.settings,
            stream=stream,
            sets=joined,
            bindings=bindings,
            set_bindings=set_bindings,
            shard=shard,
            max_document_bytes=context.config.max_document_bytes,
        )
        if shard in unreadable:
            prepared.unreadable[work.key] = unreadable[shard]
        else:
            prepared.works.append(work)
    if any(rule.foreign for rule in stream.rules):
        works = [work for work in prepared.works if work.stream is stream]
        patterns.check(context, prepared.settings, stream, works, joined, complete=not unreadable)


def _check_names(prepared: PreparedMix) -> None:
    """Raise ConfigError if two shards, each of which has an output of its own, have one name."""
    shards: dict[str, str] = {}
    for work in prepared.works:
        name = strip_suffix(work.shard, SHARD_SUFFIXES)
        if (other := shards.setdefault(name, work.name)) != work.name:
            raise ConfigError(
                f"{prepared.settings.place}: expected a name of its own for each shard with `layout: inputs`, got "
                f"{name!r} for {other} and {work.name}; make an output of each by itself, or leave `layout` out"
            )


def shared_ids(context: Context, listed: Iterable[tuple[Dataset, str]]) -> str:
    """Return why documents of the datasets are refused for their ids; empty where they may be.

    Where nothing is written, this prints a warning and returns an empty text.
    """
    shards: dict[Dataset, list[str]] = {}
    for dataset, shard in listed:
        shards.setdefault(dataset, []).append(shard)
    limit, only_shows = context.config.max_document_bytes, context.options.only_shows
    for dataset, names in shards.items():
        try:
            identity.check_unique(dataset, sorted({*names}), limit, write=not only_shows)
        except DataError as error:
            if not only_shows:
                return str(error)
            context.warn([str(error)])
    return ""


# --- weights ----------------------------------------------------------------------------------------------------------


def _weigh(context: Context, prepared: PreparedMix) -> PreparedMix:
    """Return the mix with the share of each stream's documents that brings the kept characters to the weights.

    The stream that is shortest for its weight gives all it has; nothing is repeated.
    """
    found = context.run("weigh", preview.preview_shard, shard_tasks(prepared.works))
    if broken := failures(found):
        raise ConfigError("weights need the characters of each stream, which cannot be counted:\n" + "\n".join(broken))
    chars = {stream.name: 0 for stream in prepared.settings.streams}
    for work, result in zip(prepared.works, found, strict=True):
        totals = result.value.totals if result.value else Totals()
        chars[work.stream.name] += totals.kept_chars + totals.copy_chars
    weights = {stream.name: stream.weight or 0.0 for stream in prepared.settings.streams}
    if empty := [name for name, n in chars.items() if not n]:
        raise ConfigError(
            f"{prepared.settings.place}: the stream {empty[0]!r} keeps nothing, so weights have no meaning"
        )
    unit = min(chars[name] / weight for name, weight in weights.items())
    shares = {name: min(1.0, unit * weight / chars[name]) for name, weight in weights.items()}
    streams = [msgspec.structs.replace(stream, share=shares[stream.name]) for stream in prepared.settings.streams]
    return with_streams(prepared, streams)


def with_streams(prepared: PreparedMix, streams: Sequence[Stream], budget: BudgetFound | None = None) -> PreparedMix:
    """Return a mix with the shares and the budget that its streams, in their order, have now.

    Args:
        prepared: the mix.
        streams: changed in these alone.
        budget: what it came to.
    """
    settings = msgspec.structs.replace(prepared.settings, streams=list(streams))
    by_name = {stream.name: {"share": stream.share, "budget": stream.budget} for stream in streams}
    works = [
        msgspec.structs.replace(
            work, settings=settings, stream=msgspec.structs.replace(work.stream, **by_name[work.stream.name])
        )
        for work in prepared.works
    ]
    return dataclasses.replace(prepared, settings=settings, works=works, budget=budget)
