"""The files that ``toolkit stats`` counts: those of paths, or of a configuration."""

import os
import re
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from toolkit.aggregate.columns import folder_of
from toolkit.aggregate.distributions import leaves
from toolkit.data.dataset import Dataset
from toolkit.errors import ConfigError, did_you_mean
from toolkit.ingest import inputs, own_types
from toolkit.inspect import counting
from toolkit.inspect import targets as inspected
from toolkit.inspect.counting import CountJob, Part, Settings
from toolkit.inspect.documents import expected_format, merged_types
from toolkit.inspect.targets import Format, recorded_format
from toolkit.interop.foreign import ForeignRows, ForeignTable
from toolkit.mix import publish
from toolkit.mix import settings as mix_settings
from toolkit.mix.joined_sets import JoinedSet, names_for_rules, null_safe
from toolkit.mix.settings import Stream
from toolkit.mix.writer import Writer
from toolkit.records import ingested, rejected
from toolkit.rules import Rule
from toolkit.rules.checker import Name
from toolkit.session import current
from toolkit.source import Resolved
from toolkit.stages import shards as sharing
from toolkit.stages.context import Context
from toolkit.storage import compression
from toolkit.storage.paths import check_writable, join, strip_suffix
from toolkit.text.languages.labels import label_of_path

LABELS_AT = ("language.label", "oscar.identification.label")
"""Expressions for the label of documents, if no mix has one."""


@dataclass
class Counting:
    """Files that are to be counted.

    Attributes:
        works: files.
        rules: of the configuration's mix.
        unit: what files are.
        notes: what is to be said of inputs that are not in it.
        rejected: items that ingests of these datasets have rejected, by reason.
    """

    works: list[CountJob] = field(default_factory=list)
    rules: list[Rule] = field(default_factory=list)
    unit: str = "files"
    notes: str = ""
    rejected: Counter[str] = field(default_factory=Counter)


def prepare(
    context: Context, targets: Sequence[str], settings: Settings, temporary: str, *, keep: bool = True
) -> Counting:
    """Return the files that the paths name, or those of the configuration.

    Args:
        context: of the command.
        targets: the paths; none for the configuration.
        settings: what is counted.
        temporary: folder for results that cannot be kept where they belong.
        keep: whether they are kept there.

    Raises:
        ConfigError: if there is nothing to count, or it cannot be counted so.
    """
    finder = _Finder(context, settings, temporary, keep=keep)
    for target in targets:
        finder.add_target(target.rstrip("/"))
    if not targets:
        finder.add_configured()
    if not finder.found.works and not finder.emptied:
        raise ConfigError("expected documents to count, got none")
    _check_attributes(settings, finder.found.works)
    return finder.found


def prepare_dataset(
    context: Context, dataset: Dataset, settings: Settings, temporary: str, *, keep: bool = True
) -> Counting:
    """Return the shards of one dataset, with all its sets; otherwise as `prepare`."""
    finder = _Finder(context, settings, temporary, keep=keep)
    finder.add_dataset(dataset)
    return finder.found


class _Finder:
    """Finds the files, and where what is counted in each is kept.

    Attributes:
        found: so far.
        emptied: whether there is an output of a mix that kept nothing.
    """

    def __init__(self, context: Context, settings: Settings, temporary: str, *, keep: bool) -> None:
        self.found = Counting()
        self.emptied = False
        self._context = context
        self._settings = settings
        self._temporary = temporary
        self._keep = keep
        self._not_kept = 0

    def add_target(self, target: str) -> None:
        found = inspected.expected(target)
        if found.kind == "dataset":
            self.add_dataset(Dataset(join(target, "documents"), join(target, "attributes")))
        else:
            self._add_files(found)

    def add_dataset(self, dataset: Dataset) -> None:
        """Add all that there is; a key that two sets have cannot be named."""
        names, shards = [], set(dataset.shards())
        for name in dataset.sets():
            covered = inputs.carried_shards(dataset, name)
            if covered is None or shards <= covered:
                names.append(name)
            else:
                self.found.notes += f"\n{name}: left out, because it has attributes of some shards only"
        self._add_stream(Stream.over(dataset, names, "stats"), self._settings)

    def add_configured(self) -> None:
        context, settings = self._context, self._settings
        if not context.has("mix"):
            self.add_dataset(context.dataset)
            return
        mix = context.mix
        if not settings.label and mix.label:
            settings = msgspec.structs.replace(settings, label=mix.label)
        for stream in mix.streams:
            self.found.rules += stream.rules
            self._add_stream(stream, settings, mix.writer().label())

    def _kept(self, find: Callable[[], str]) -> tuple[str, str]:
        """Return the folders for results, and for columns, below one that a function gives; else for this run only."""
        if self._keep:
            try:
                folder = find()
                check_writable(counting.counts_folder(folder), "stats")
                return counting.counts_folder(folder), folder_of(folder)
            except ConfigError as error:
                if not self._context.options.quiet:
                    print(f"warning: what is counted is not kept: {error}", file=sys.stderr)
        self._not_kept += 1
        kept = join(self._temporary, f"kept-{self._not_kept}")
        return kept, kept

    def _add_files(self, target: inspected.Target) -> None:
        """Add the files of a folder, or one file."""
        home = inspected.home_of(target.path)
        manifest = publish.load_manifest(home.root) if home.kind == "output" else None
        labels = {part.path: part.label for part in manifest.parts} if manifest else {}
        found = [join(target.folder, path) for path in target.files]
        self.emptied = self.emptied or (target.kind == "output" and not found)
        types = merged_types(manifest) if manifest else {}
        root = home.root if home.kind == "files" else ""
        about = [home.kind, root, types, *(current().columns if current().columns[0] else ())]
        kept, _ = self._kept(lambda: counting.base_folder(home))
        paths = {home.name(path): path for path in found}
        for name in self._context.limited(list(paths)):
            path, label = paths[name], labels.get(name)
            format_ = _format_of(path, label, manifest)
            writer = format_.writer() if format_ else None
            settings = _with_label_of(writer, self._settings)
            work = CountJob(
                settings=settings,
                parts=[Part(part, join(kept, part.digest(*about)), []) for part in settings.split],
                name=name,
                file=path,
                format=format_,
                types=types,
                label=_label(path, name, writer) if label is None else label,
                max_document_bytes=2 * self._context.config.max_document_bytes,
            )
            counting.keys_of(work)
            self.found.works.append(work)

    def _add_stream(self, stream: Stream, settings: Settings, label: str | None = None) -> None:
        shards, notes = sharing.shards(self._context, stream.dataset)
        self.found.notes += notes
        self.found.rejected.update(rejected.by_reason(ingested.load_all(stream.dataset).values()))
        self.found.unit = "shards"
        shards = self._context.limited(shards)
        own = own_types.of_documents(stream.dataset, shards)
        stream = msgspec.structs.replace(stream, own=own, text=None)  # sizes are those of the documents' own text
        source = self._context.source_of(stream.dataset, shards)
        resolved = source.typed(stream)
        try:
            settings = _labelled(settings, names_for_rules(resolved.sets, stream.own), label)
            needed = [_needed(part, resolved) for part in settings.split]
        except ConfigError:
            resolved.refuse_unreadable()
            raise
        used = {each.set for some in needed for each in some}
        joined = [each for each in resolved.sets if each.set in used]
        if not all(each.ours for each in joined):
            resolved.refuse_unreadable()
        source.check([each.set for each in joined], "warn")
        kept, columns = self._kept(lambda: stream.dataset.bookkeeping)
        limit, lineage = self._context.config.max_document_bytes, stream.dataset.lineage.items()
        parts = [
            Part(part, join(kept, part.digest(some, *lineage)), [each.set for each in some])
            for part, some in zip(settings.split, needed, strict=True)
        ]
        self.found.works += [
            CountJob(
                settings=settings, parts=parts, columns=columns, name=one.shard, shard=one, max_document_bytes=limit
            )
            for one in Resolved(stream, shards, joined).joined(limit)
        ]


# --- outputs ----------------------------------------------------------------------------------------------------------


def _format_of(path: str, label: str | None, manifest: publish.Manifest | None) -> Format | None:
    """Return the format of a file of an output; None for documents, as those are that a mix has dropped."""
    if manifest is None or label is None:
        return expected_format(path)
    return None if label == mix_settings.REJECTED else recorded_format(manifest.settings)


def _with_label_of(writer: Writer | None, settings: Settings) -> Settings:
    """Return the settings with the label that a format's rows have, if no other is asked for."""
    if writer and writer.READING.label and settings.label is None:
        return msgspec.structs.replace(settings, label=writer.READING.label)
    return settings


def _label(path: str, name: str, writer: Writer | None) -> str | None:
    """Return the label of all rows of a file, by its name; None if rows have their own, or it is not known."""
    if writer and writer.READING.label:
        return None
    label = label_of_path(name)
    if label is None and writer and not isinstance(writer, ForeignRows | ForeignTable):
        return _stem(path, writer.SUFFIX)
    return label


def _stem(path: str, suffix: str) -> str:
    """Return the name of a file without number and suffix, which is the label where the path says no other."""
    name = strip_suffix(strip_suffix(os.path.basename(path), tuple(compression.SUFFIXES)), [suffix])
    return re.sub(r"_part_\d+$", "", name)


# --- datasets ---------------------------------------------------------------------------------------------------------


def _labelled(settings: Settings, names: Mapping[str, Name], label: str | None) -> Settings:
    """Return the settings with the label that is asked for, or that of the mix, or the first that there is."""
    if settings.label is None:
        one_label = label is None or label.startswith(("'", '"'))  # a format that has but one says nothing of documents
        found = (null_safe(path, names) for path in (LABELS_AT if one_label else (label,)))
        return msgspec.structs.replace(settings, label=next((path for path in found if path), None))
    return msgspec.structs.replace(settings, label=null_safe(settings.label, names) or settings.label)


def _needed(settings: Settings, resolved: Resolved) -> list[JoinedSet]:
    """Return the sets that are needed for some settings."""
    work = CountJob(settings=settings, name="", shard=resolved.joined_to(""), max_document_bytes=1)
    used = counting.keys_of(work).rules.needs.keys | set(counting.leaves_of(work))
    _check_attributes(settings, [work])
    return [joined for joined in resolved.sets if any(key.name in used for key in joined.keys)]


def _check_attributes(settings: Settings, listed: list[CountJob]) -> None:
    """Raise ConfigError for an attribute of which nothing is known."""
    if not settings.attributes or not listed:
        return
    types = {key: type_ for work in listed[:1] for key, type_ in counting.types_of(work).items()}
    paths = [leaf.path for key, type_ in types.items() for leaf in leaves(key, type_)]
    for wanted in settings.attributes:
        if not any(counting.is_part(path, wanted) for path in paths):
            hint = did_you_mean(wanted, [*types, *paths]) or f"; there are: {', '.join(paths) or 'none'}"
            if wanted in types:
                hint = f", of type {types[wanted]}; there are: {', '.join(paths) or 'none'}"
            elif not types and not listed[0].shard:
                hint = "; files by themselves have none that are known: count their dataset, or an output of a mix"
            raise ConfigError(f"expected an attribute with values that can be counted, got {wanted!r}{hint}")
