"""From paths, or a configuration, to the files that ``toolkit stats`` counts."""

import os
import re
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import msgspec

from toolkit.commands.mixing import works
from toolkit.commands.steps import mix_section
from toolkit.commands.steps import shards as sharing
from toolkit.commands.steps.context import Context
from toolkit.data import schema
from toolkit.data.dataset import Dataset
from toolkit.errors import ConfigError, did_you_mean
from toolkit.inspect import targets
from toolkit.inspect.documents import expected_format
from toolkit.inspect.stats import cache, shard
from toolkit.inspect.stats.distributions import leaves
from toolkit.inspect.stats.keys import LABELS
from toolkit.inspect.stats.shard import CountJob, Settings
from toolkit.inspect.targets import Format, recorded_format
from toolkit.interop.foreign import ForeignRows
from toolkit.mix import joined_sets, publish
from toolkit.mix import settings as mix_settings
from toolkit.mix.join import JoinedShard
from toolkit.mix.joined_sets import JoinedSet, Key, names_for_rules, null_safe
from toolkit.mix.settings import Joined, Stream
from toolkit.rules import Rule
from toolkit.storage import compression
from toolkit.storage.paths import BOOKKEEPING, check_writable, join, strip_suffix
from toolkit.text.languages.labels import label_of_path

_PATHS = ("language.label", "oscar.identification.label")
"""Where documents have a label, if no mix says so."""


@dataclass
class Counting:
    """What is to be counted.

    Attributes:
        works: files.
        rules: of the configuration's mix.
        unit: what files are.
        notes: what is to be said of inputs that are not in it.
        emptied: whether there is an output of a mix that kept nothing.
    """

    works: list[CountJob] = field(default_factory=list)
    rules: list[Rule] = field(default_factory=list)
    unit: str = "files"
    notes: str = ""
    emptied: bool = False


def prepare(context: Context, settings: Settings, temporary: str) -> Counting:
    """The files that the paths name, or those of the configuration.

    Args:
        context: of the command.
        settings: what is counted.
        temporary: folder for results that cannot be kept where they belong.

    Raises:
        ConfigError: if there is nothing to count, or it cannot be counted so.
    """
    counting = Counting()
    place = _Place(temporary, quiet=context.options.quiet)
    for target in context.options.targets:
        _add_target(context, settings, counting, target.rstrip("/"), place)
    if not context.options.targets:
        _add_configured(context, settings, counting, place)
    if not counting.works and not counting.emptied:
        raise ConfigError("expected documents to count, got none")
    _check_attributes(settings, counting.works)
    return counting


class _Place:
    """Where results are kept, below a folder; if that cannot be, for this run only."""

    def __init__(self, temporary: str, *, quiet: bool) -> None:
        self._temporary = temporary
        self._quiet = quiet
        self._number = 0

    def of(self, find: Callable[[], str], digest: str) -> str:
        """The folder for what was asked for, below the one that a function gives."""
        try:
            folder = find()
            kept = join(cache.counts_folder(folder), digest)
            check_writable(kept, "stats")
            cache.forget_former(folder)
        except ConfigError as error:
            if not self._quiet:
                print(f"warning: what is counted is not kept: {error}", file=sys.stderr)
            self._number += 1
            kept = join(self._temporary, f"kept-{self._number}")
        return kept


def _add_target(context: Context, settings: Settings, counting: Counting, target: str, place: _Place) -> None:
    found = targets.expected(target)
    if found.kind == "dataset":
        dataset = Dataset(join(target, "documents"), join(target, "attributes"))
        _add_stream(context, settings, counting, _stream_of(dataset), None, place)
    else:
        _add_files(context, settings, counting, found, place)


def _add_configured(context: Context, settings: Settings, counting: Counting, place: _Place) -> None:
    if not context.has("mix"):
        _add_stream(context, settings, counting, _stream_of(context.dataset), None, place)
        return
    found = mix_section.read(context)
    for stream in found.streams:
        counting.rules += stream.rules
        own = settings if settings.label or not found.label else msgspec.structs.replace(settings, label=found.label)
        _add_stream(context, own, counting, stream, found.writer().label(), place)


# --- outputs ----------------------------------------------------------------------------------------------------------


def _add_files(context: Context, settings: Settings, counting: Counting, target: targets.Target, place: _Place) -> None:
    """Add those of a folder, or one."""
    home = targets.home_of(target.path)
    manifest = publish.load_manifest(home.root) if home.kind == "output" else None
    labels = {part.path: part.label for part in manifest.parts} if manifest else {}
    cache.forget_former(join(target.folder, BOOKKEEPING))
    found = [join(target.folder, path) for path in target.files]
    counting.emptied = counting.emptied or (target.kind == "output" and not found)
    types = _merged(manifest) if manifest else {}
    kept = place.of(
        lambda: cache.base_folder(home), settings.digest(home.kind, home.root if home.kind == "files" else "", types)
    )
    paths = {home.name(path): path for path in found}
    for name in context.limited(list(paths)):
        path, label = paths[name], labels.get(name)
        format_ = _format_of(path, label, manifest)
        counting.works.append(_work(context, settings, path, name, format_, label, types, kept))


def _merged(manifest: publish.Manifest) -> dict[str, Any]:
    """The types of the attributes that a mix merged into its documents; null where only some streams have them."""
    streams = manifest.settings["streams"]
    types: dict[str, schema.Type] = {}
    sure = Counter[str]()
    for stream in streams if recorded_format(manifest.settings).writer().takes_all() else ():
        paths = (join(stream["name"], joined["set"]) for joined in stream["attributes"])
        keys = [key for path in paths for key in msgspec.convert(manifest.sets.get(path, []), list[Key])]
        sure.update({key.name for key in keys if not key.default})
        for key in keys:
            types[key.name] = schema.union(types.get(key.name, schema.NEVER), key.declared)
    nullable = {name for name in types if sure[name] < len(streams)}
    return {
        name: schema.to_json(schema.nullable(type_) if name in nullable else type_)
        for name, type_ in sorted(types.items())
    }


def _format_of(path: str, label: str | None, manifest: publish.Manifest | None) -> Format | None:
    """The format of a file of an output; None for documents, as those are that a mix has dropped."""
    if manifest is None or label is None:
        return expected_format(path)
    return None if label == mix_settings.REJECTED else recorded_format(manifest.settings)


def _work(
    context: Context,
    settings: Settings,
    path: str,
    name: str,
    format_: Format | None,
    label: str | None,
    types: dict[str, Any],
    kept: str,
) -> CountJob:
    writer = format_.writer() if format_ else None
    if writer and writer.READING.label and settings.label is None:
        settings = msgspec.structs.replace(settings, label=writer.READING.label)
    if label is None and not (writer and writer.READING.label):
        label = label_of_path(name)
        if label is None and writer and not isinstance(writer, ForeignRows):
            label = _stem(path, writer.SUFFIX)
    work = CountJob(
        settings=settings,
        folder=kept,
        name=name,
        file=path,
        format=format_.name if format_ else "",
        options=format_.options if format_ else {},
        types=types,
        label=label,
        max_document_bytes=2 * context.config.max_document_bytes,
    )
    shard.keys_of(work)
    return work


def _stem(path: str, suffix: str) -> str:
    """Return the name of a file without number and suffix, which is the label where the path says no other."""
    name = strip_suffix(strip_suffix(os.path.basename(path), tuple(compression.SUFFIXES)), [suffix])
    return re.sub(r"_part_\d+$", "", name)


# --- datasets ---------------------------------------------------------------------------------------------------------


def _stream_of(dataset: Dataset) -> Stream:
    """All that there is; a key that two sets have cannot be named."""
    joined = [Joined(set=name, place="stats") for name in dataset.sets()]
    return Stream(name="", dataset=dataset, attributes=joined, rules=[], same_keys="later")


def _add_stream(
    context: Context, settings: Settings, counting: Counting, stream: Stream, label: str | None, place: _Place
) -> None:
    shards, notes = sharing.shards(context, stream.dataset)
    counting.notes += notes
    shards = context.limited(shards)
    counting.unit = "shards"
    joined, settings, unreadable = _joined(context, settings, stream, label, shards)
    if unreadable:
        raise ConfigError("\n".join(unreadable.values()))
    kept = place.of(lambda: stream.dataset.bookkeeping, settings.digest(joined))
    for path in shards:
        one = JoinedShard(stream=stream, sets=joined, shard=path, max_document_bytes=context.config.max_document_bytes)
        counting.works.append(
            CountJob(settings=settings, folder=kept, name=path, shard=one, max_document_bytes=one.max_document_bytes)
        )


def _joined(
    context: Context, settings: Settings, stream: Stream, label: str | None, shards: list[str]
) -> tuple[list[JoinedSet], Settings, dict[str, str]]:
    """The sets that are needed, and the settings with the label; why shards of other programs' sets cannot be read."""
    foreign = {*joined_sets.foreign_sets(stream, {})}
    ours = [joined for joined in stream.attributes if joined.set not in foreign]
    if not (foreign and settings.attributes):
        try:  # files of other programs must be read to know their types
            found, resolved = _needed(
                settings, _with(stream, ours), joined_sets.resolve_sets(_with(stream, ours), {}, {}), label
            )
            if not foreign or resolved.label or not {*settings.by} & {*LABELS}:
                return found, resolved, {}
        except ConfigError:
            if not foreign:
                raise
    seen, unreadable = works.look_at_foreign(context, stream, shards)
    return *_needed(settings, stream, joined_sets.resolve_sets(stream, {}, seen), label), unreadable


def _with(stream: Stream, attributes: list[Joined]) -> Stream:
    return msgspec.structs.replace(stream, attributes=attributes)


def _needed(
    settings: Settings, stream: Stream, joined: list[JoinedSet], label: str | None
) -> tuple[list[JoinedSet], Settings]:
    names = names_for_rules(joined)
    if settings.label is None:
        one_label = label is None or label.startswith(("'", '"'))  # a format that has but one says nothing of documents
        found = (null_safe(path, names) for path in (_PATHS if one_label else (label,)))
        settings = msgspec.structs.replace(settings, label=next((path for path in found if path), None))
    else:
        settings = msgspec.structs.replace(settings, label=null_safe(settings.label, names) or settings.label)
    one = JoinedShard(stream=stream, sets=joined, shard="", max_document_bytes=1)
    work = CountJob(settings=settings, folder="", name="", shard=one, max_document_bytes=1)
    used = shard.keys_of(work).used | set(shard.leaves_of(work))
    _check_attributes(settings, [work])
    return [each for each in joined if any(key.name in used for key in each.keys)], settings


def _check_attributes(settings: Settings, listed: list[CountJob]) -> None:
    """Raises ConfigError for an attribute of which nothing is known."""
    if not settings.attributes or not listed:
        return
    types = {key: type_ for work in listed[:1] for key, type_ in shard.types_of(work).items()}
    paths = [leaf.path for key, type_ in types.items() for leaf in leaves(key, type_)]
    for wanted in settings.attributes:
        if not any(shard.is_part(path, wanted) for path in paths):
            hint = did_you_mean(wanted, [*types, *paths]) or f"; there are: {', '.join(paths) or 'none'}"
            if wanted in types:
                hint = f", of type {types[wanted]}; there are: {', '.join(paths) or 'none'}"
            elif not types and not listed[0].shard:
                hint = "; files by themselves have none that are known: count their dataset, or an output of a mix"
            raise ConfigError(f"expected an attribute with values that can be counted, got {wanted!r}{hint}")
