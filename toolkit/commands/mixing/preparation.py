"""From a ``mix:`` section to the shards that are mixed: sets, types and rules of each stream, checked."""

import difflib
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from toolkit.commands.steps import places
from toolkit.commands.steps import shards as sharing
from toolkit.commands.steps.context import Context
from toolkit.commands.steps.outcome import failures
from toolkit.data import row_index
from toolkit.data.alignment import is_of_experiment
from toolkit.errors import ConfigError, ToolkitError, did_you_mean
from toolkit.ingest import plan
from toolkit.mix import binding, joined_sets, publish
from toolkit.mix.effects import preview
from toolkit.mix.join import ShardToMix
from toolkit.mix.joined_sets import JoinedSet
from toolkit.mix.settings import MixSettings, Stream
from toolkit.records import sets as records
from toolkit.records.foreign import Seen, look_at
from toolkit.rules import filters
from toolkit.runs.executors import Task
from toolkit.storage.paths import check_writable, size_of
from toolkit.storage.threads import for_each
from toolkit.tag import check as tag_check

SLIP = 0.8
"""How like two names are of which one is taken for a slip of the other (see difflib)."""


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
    """

    settings: MixSettings
    works: list[ShardToMix] = field(default_factory=list)
    sets: dict[str, list[JoinedSet]] = field(default_factory=dict)
    unreadable: dict[str, str] = field(default_factory=dict)
    known: int = 0
    notes: str = ""


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


def check_output(settings: MixSettings) -> None:
    """Check that output and dropped documents go where nothing else is, or what a mix has made.

    Raises:
        ConfigError: if something else is there.
    """
    publish.check_output(settings.output.path)
    if settings.rejected is not None:
        publish.check_rejected(settings.output.path, settings.rejected)


def check(context: Context, settings: MixSettings, planned: Mapping[str, records.SetSchema]) -> None:
    """Checks the section before what it needs is there.

    Args:
        context: of the configuration.
        settings: of the mix.
        planned: the sets of its own dataset that will have been written by then.

    Raises:
        ConfigError: for whatever is wrong.
    """
    for stream in settings.streams:
        will_be = planned if context.has_dataset and stream.dataset == context.dataset else {}
        if not joined_sets.foreign_sets(stream, will_be):  # their types are known when they are read
            bound(settings, stream, joined_sets.resolve_sets(stream, will_be, {}))


def check_sets(context: Context, settings: MixSettings) -> None:
    """Check that the sets which a mix joins were made as the configuration's section ``tag:`` says now.

    Raises:
        ConfigError: if one was made otherwise.
    """
    if not context.has("tag") or not context.has_dataset:
        return
    planned = plan.set_schemas(context.entries)
    for stream in settings.streams:
        if stream.dataset == context.dataset:
            joined = [each.set for each in stream.attributes]
            for warning in tag_check.check(context.section("tag"), stream.dataset, joined, planned):
                print(f"warning: {warning}", file=sys.stderr)


def bound(
    settings: MixSettings, stream: Stream, joined: list[JoinedSet]
) -> tuple[dict[str, binding.Binding], list[binding.Binding]]:
    """The attributes that the writer, and the rules that set fields, get; all that they need is checked."""
    rules = joined_sets.compile_rules(settings, stream, joined)
    return binding.bind_writer(settings, joined, rules), binding.bind_rules(settings, joined, rules)


def prepare(context: Context, settings: MixSettings) -> PreparedMix:
    """The shards of all streams, with what is joined to them.

    Raises:
        ConfigError: for whatever is wrong with sets and rules.
        DataError: if shards that are known are gone.
    """
    check_sets(context, settings)
    prepared = PreparedMix(settings)
    if settings.streams[0].weight is not None and context.options.shard:
        raise ConfigError(f"{settings.place}: expected a mix without weights for --shard: they depend on all shards")
    for stream in settings.streams:
        _add_stream(context, prepared, stream)
    fails = prepared.unreadable and settings.on_failed_shard == "stop"
    if settings.streams[0].weight is not None and not fails:
        _weigh(context, prepared)
    return prepared


def _add_stream(context: Context, prepared: PreparedMix, stream: Stream) -> None:
    shards, notes = sharing.shards(context, stream.dataset, judges=True)
    prepared.known += len(shards)
    prepared.notes += notes
    if context.share and not shards:
        return  # the sets need not be there yet
    shards = context.limited(shards)
    seen, unreadable = look_at_foreign(context, stream, shards)
    joined = prepared.sets[stream.name] = joined_sets.resolve_sets(stream, {}, seen)
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
        _index(context, works)
        if not unreadable:  # or else it is not known which attributes there are
            in_part = context.options.shard is not None
            for note in _check_patterns(stream, joined, _inline_keys(works), in_part=in_part):
                print(f"warning: {note}", file=sys.stderr)
        _note_patterns(context, prepared.settings, stream, joined)


def _index(context: Context, works: list[ShardToMix]) -> None:
    """Reads the shards that have no row index yet, which tells whether documents have attributes of their own."""
    todo = [work for work in works if row_index.current(work.dataset, work.shard) is None]
    if todo:
        context.run("index", index_shard, tasks(todo))  # what is wrong with a shard is said where it is mixed


def _inline_keys(works: list[ShardToMix]) -> set[str] | None:
    """Return the names of the attributes that documents have of their own; None if they are not known."""
    found: set[str] = set()
    for state in for_each(lambda work: row_index.current(work.dataset, work.shard), works):
        if state is None or state.inline_keys is None:
            return None
        found.update(state.inline_keys)
    return found


def index_shard(work: ShardToMix, report: Any) -> None:
    """Makes the row index of a shard."""
    row_index.ensure(work.dataset, work.shard, work.max_document_bytes)


def _check_patterns(stream: Stream, joined: list[JoinedSet], inline: set[str] | None, *, in_part: bool) -> list[str]:
    """Return what is to be said of patterns that ask for attributes which no row has, or not every row.

    An attribute that no row has is an error: the rule would drop every document, or none. Only where other programs
    leave keys out because they found nothing, it is a warning, unless all documents would be dropped then.

    Args:
        stream: with the patterns.
        joined: its sets.
        inline: the names of the attributes that documents have of their own; None if they are not known.
        in_part: whether only some of the shards were looked at, as by a share: what is missing may be in others.

    Raises:
        ConfigError: for an attribute that is not there.
    """
    known = {key.name for each in joined for key in each.keys} | (inline or set())
    lacked = {key.name for each in joined for key in each.keys if key.default}
    notes = []
    for rule in stream.rules:
        foreign = rule.foreign
        if foreign is None or foreign.strict:
            continue
        of_jq = foreign.syntax == "jq" and foreign.match
        if of_jq and (guarded := {key for text in foreign.texts for key in filters.guarded_keys(text)} & lacked):
            notes.append(
                f"{rule.place}: rule {rule.name!r}: some rows lack {min(guarded)!r}: `?` gives null there, which "
                "compares, where Dolma gives nothing; a rule that tests for it first means the same in both"
            )
        missing = {text: filters.named_keys(text, foreign.syntax) - known for text in foreign.texts}
        asked = sorted({key for keys in missing.values() for key in keys})
        if not asked or inline is None:
            continue
        drops_all = foreign.keeps and all(missing.values())
        fails = drops_all or of_jq
        key = next((key for key in asked if fails or not _may_be_rare(key, joined, inline)), asked[0])
        what = f"{rule.place}: rule {rule.name!r}: expected an attribute that a row has, got {key!r}"
        hint = did_you_mean(key, known) or f"; there are: {', '.join(sorted(known)) or 'none'}"
        if in_part or not (fails or not _may_be_rare(key, joined, inline)):
            notes.append(what + did_you_mean(key, known))
        elif foreign.syntax == "jq":
            raise ConfigError(f"{what}{hint}; if documents may lack it, write `{key}?`")
        else:
            raise ConfigError(f"{what}{hint}" + ("" if drops_all else "; if no document has it, leave the pattern out"))
    return notes


def _may_be_rare(key: str, joined: list[JoinedSet], inline: set[str]) -> bool:
    """Tell whether rows of another program may lack a key because nothing was found.

    Dolma's tagger leaves out ``exp__tagger__label`` where there are no spans of the label, its deduper the only key. A
    key is taken for a slip if it is very like one that there is, and of no experiment that has others.
    """
    foreign = {each.key for found in joined if not found.ours for each in found.keys} | inline
    if any(not found.ours and not found.keys for found in joined):
        return True
    if is_of_experiment(key, foreign):
        return True
    return bool(foreign) and not difflib.get_close_matches(key, foreign, n=1, cutoff=SLIP)


def _note_patterns(context: Context, settings: MixSettings, stream: Stream, joined: list[JoinedSet]) -> None:
    """Says which patterns of other languages run as expressions of ours, and which in their library."""
    asked = [text for rule in stream.rules if rule.foreign for text in rule.foreign.texts]
    if context.options.quiet:
        return
    slow = joined_sets.compile_rules(settings, stream, joined).needs.by_library
    of_stream = f" of the stream {stream.name}" if stream.name else ""
    print(f"{len(asked) - len(slow)} of {len(asked)} patterns{of_stream} run compiled", file=sys.stderr)
    for pattern in slow:
        print(f"runs in the library of its language, for each document: {pattern}", file=sys.stderr)


def tasks(works: list[ShardToMix]) -> list[Task[ShardToMix]]:
    """A task for each shard, named by its path (streams may share one), with its size."""
    sizes = for_each(size_of, [work.path for work in works])
    return [Task(work.name, work, size, key=work.key) for work, size in zip(works, sizes, strict=True)]


# --- weights ----------------------------------------------------------------------------------------------------------


def _weigh(context: Context, prepared: PreparedMix) -> None:
    """Finds the share of each stream's documents that brings the kept characters to the weights.

    The stream that is shortest for its weight gives all it has; nothing is repeated.
    """
    found = context.run("weigh", preview.preview_shard, tasks(prepared.works))
    if broken := failures(found):
        raise ConfigError("the weights of the streams cannot be told:\n" + "\n".join(broken))
    chars = {stream.name: 0 for stream in prepared.settings.streams}
    for work, result in zip(prepared.works, found, strict=True):
        chars[work.stream.name] += result.value.totals.kept_chars if result.value else 0
    weights = {stream.name: stream.weight or 0.0 for stream in prepared.settings.streams}
    if empty := [name for name, n in chars.items() if not n]:
        raise ConfigError(
            f"{prepared.settings.place}: the stream {empty[0]!r} keeps nothing, so weights have no meaning"
        )
    unit = min(chars[name] / weight for name, weight in weights.items())
    shares = {name: min(1.0, unit * weight / chars[name]) for name, weight in weights.items()}
    streams = {
        stream.name: msgspec.structs.replace(stream, share=shares[stream.name]) for stream in prepared.settings.streams
    }
    prepared.settings = msgspec.structs.replace(prepared.settings, streams=list(streams.values()))
    prepared.works = [
        msgspec.structs.replace(work, settings=prepared.settings, stream=streams[work.stream.name])
        for work in prepared.works
    ]


# --- attributes that another program made -----------------------------------------------------------------------------


class Look(msgspec.Struct, frozen=True):
    """One attribute file of another program."""

    dataset: Any
    set: str
    shard: str


def look(work: Look, report: Any) -> Seen:
    """Reads a foreign attribute file."""
    return look_at(work.dataset, work.set, work.shard)


def look_at_foreign(
    context: Context, stream: Stream, shards: list[str]
) -> tuple[dict[str, list[Seen]], dict[str, str]]:
    """What the files of other programs hold, by set; and for each of the shards that cannot be read, why.

    Their types are those of all shards, so a share looks at the others' files, too: behind its own, because by then the
    other shares have noted what is in theirs.
    """
    foreign = joined_sets.foreign_sets(stream, {})
    if not foreign:
        return {}, {}
    ours = set(shards)
    others = [shard for shard in stream.dataset.shards() if shard not in ours] if context.share else []
    listed = [
        Task(f"{name}/{shard}", Look(stream.dataset, name, shard)) for shard in [*shards, *others] for name in foreign
    ]
    results = context.run("look at foreign attributes", look, listed, "files")
    seen: dict[str, list[Seen]] = {name: [] for name in foreign}
    unreadable: dict[str, str] = {}
    for task, result in zip(listed, results, strict=True):
        if result.value:
            seen[task.payload.set].append(result.value)
        elif result.failure and task.payload.shard in ours:
            unreadable.setdefault(task.payload.shard, result.failure.message)
    return seen, unreadable
