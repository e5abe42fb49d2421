"""Patterns of other languages in the rules of a mix, held against the attributes that there are."""

import difflib
import sys
from collections.abc import Mapping
from typing import Any

from toolkit.commands.steps.context import Context
from toolkit.data import row_index
from toolkit.data.alignment import is_of_experiment
from toolkit.data.row_index import ShardState
from toolkit.errors import ConfigError, did_you_mean, quoted
from toolkit.mix import joined_sets
from toolkit.mix.join import ShardToMix
from toolkit.mix.joined_sets import JoinedSet
from toolkit.mix.settings import MixSettings, Stream
from toolkit.mix.stage import shard_tasks
from toolkit.rules import filters
from toolkit.storage.threads import for_each

SLIP = 0.8
"""Similarity of two names (see difflib) from which one is taken for a slip of the other."""


def check(
    context: Context,
    settings: MixSettings,
    stream: Stream,
    works: list[ShardToMix],
    joined: list[JoinedSet],
    *,
    complete: bool,
) -> None:
    """Check the patterns of a stream; warn of what they may not mean, and tell which run compiled.

    Args:
        context: of the configuration.
        settings: of the mix.
        stream: with the patterns.
        works: its shards.
        joined: its sets.
        complete: whether all attributes that there are are known; if not, patterns are not held against them.

    Raises:
        ConfigError: for an attribute that no row has.
    """
    made = _index(context, works)
    if complete:
        in_part = context.only_per_shard
        context.warn(_faults(stream, joined, _inline_keys(works, made), in_part=in_part))
    _tell_compiled(context, settings, stream, joined)


def _index(context: Context, works: list[ShardToMix]) -> dict[str, ShardState | None]:
    """Read the shards that have no row index yet; return what that tells of each, by the path of its work."""
    todo = [work for work in works if row_index.current(work.dataset, work.shard) is None]
    if not todo:
        return {}
    results = context.run("index", index_shard, shard_tasks(todo))  # what is wrong is said where a shard is mixed
    return {work.path: result.value for work, result in zip(todo, results, strict=True)}


def _inline_keys(works: list[ShardToMix], made: Mapping[str, ShardState | None]) -> set[str] | None:
    """Return the names of the attributes that documents have of their own; None if they are not known.

    Args:
        works: the shards.
        made: by the paths of some, the states that they have been found in just now: a dry run keeps none.
    """
    found: set[str] = set()

    def state_of(work: ShardToMix) -> ShardState | None:
        return made[work.path] if work.path in made else row_index.current(work.dataset, work.shard)

    for state in for_each(state_of, works):
        if state is None or state.inline_keys is None:
            return None
        found.update(state.inline_keys)
    return found


def index_shard(work: ShardToMix, report: Any) -> ShardState:
    """Make the row index of a shard; return its state."""
    return row_index.ensure(work.dataset, work.shard, work.max_document_bytes)


def _faults(stream: Stream, joined: list[JoinedSet], inline: set[str] | None, *, in_part: bool) -> list[str]:
    """Return warnings of patterns that ask for attributes which no row has, or not every row.

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
                f"{rule.place}: rule {quoted(rule.name)}: some rows lack {min(guarded)!r}: `?` gives null there, which "
                "compares, where Dolma gives nothing; a rule that tests for it first means the same in both"
            )
        missing = {text: filters.named_keys(text, foreign.syntax) - known for text in foreign.texts}
        asked = sorted({key for keys in missing.values() for key in keys})
        if not asked or inline is None:
            continue
        drops_all = foreign.keeps and all(missing.values())
        fails = drops_all or of_jq
        key = next((key for key in asked if fails or not _may_be_rare(key, joined, inline)), asked[0])
        what = f"{rule.place}: rule {quoted(rule.name)}: expected an attribute that a row has, got {key!r}"
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


def _tell_compiled(context: Context, settings: MixSettings, stream: Stream, joined: list[JoinedSet]) -> None:
    """Tell which patterns of other languages run as expressions of ours, and which in their library."""
    asked = [text for rule in stream.rules if rule.foreign for text in rule.foreign.texts]
    if context.options.quiet:
        return
    slow = joined_sets.compile_rules(settings, stream, joined).needs.by_library
    of_stream = f" of the stream {stream.name}" if stream.name else ""
    print(f"{len(asked) - len(slow)} of {len(asked)} patterns{of_stream} run compiled", file=sys.stderr)
    for pattern in slow:
        print(f"runs in the library of its language, for each document: {pattern}", file=sys.stderr)
