"""Count documents, lines, characters, bytes and words; show how attributes are distributed."""

import os
import re
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal

import msgspec

from toolkit.aggregate import drawing, keys, tables
from toolkit.aggregate.columns import folder_of
from toolkit.aggregate.distributions import Distribution, leaves, merge_labels
from toolkit.aggregate.histogram import Histogram, merged
from toolkit.aggregate.tables import LengthsByLabel
from toolkit.aggregate.thresholds import thresholds
from toolkit.command_options import CommandResult, FailedResult, Flag, Inspecting, Limited, Words, absent
from toolkit.commands import _sections as sections
from toolkit.data.dataset import Dataset
from toolkit.errors import ConfigError, amount, did_you_mean
from toolkit.execution.executors import Result, Task
from toolkit.ingest import inputs
from toolkit.inspect import counting, targets as inspected
from toolkit.inspect.counting import (
    COUNT,
    LABELS_AT,
    CountJob,
    CountResult,
    MergedCounts,
    Part,
    Settings,
    count_file,
    merged_groups,
    merged_records,
)
from toolkit.inspect.documents import expected_format, merged_types
from toolkit.inspect.targets import Format, recorded_format
from toolkit.interop.external_rows import ForeignRows, ForeignTable
from toolkit.mix import publication, settings as mix_settings
from toolkit.mix.join import JoinedSet, names_for_rules, null_safe
from toolkit.mix.rule_effects.counts import BeforeAfter, SizesByLabel
from toolkit.mix.settings import Stream
from toolkit.mix.writer import Writer
from toolkit.records import ingested, left_out
from toolkit.rules.checker import Name
from toolkit.rules.kinds import kind_called
from toolkit.rules.rule import Rule
from toolkit.session import current
from toolkit.source import Resolved
from toolkit.stages.context import Context, Outcome, failures
from toolkit.storage import compression
from toolkit.storage.outputs import NamedOutput
from toolkit.storage.paths import check_writable, join, not_in, size_of, strip_suffix
from toolkit.storage.stores.local.scratch import scratch
from toolkit.text.counting import Counts
from toolkit.text.languages.labels import label_of_path

_REMEDIES = {
    "--mix": ": it shows what the mix has noted, and reads nothing",
    "--histogram": ": it draws one attribute of all documents",
    "--attribute": " but with --by, too",
    "--lengths": " but with --by, too",
    "--json": ": it has every number as it is",
}

TOP = 1000
"""Groups that are shown, unless `--top` says otherwise."""


class Statistics(CommandResult, kw_only=True):
    """The result of `stats`.

    Attributes:
        inputs: Number of files, and of those that were read now.
        tables: A table for each ``by``, with its groups.
        attributes: Distributions that were asked for.
        lengths: Lengths of documents with --lengths, of all and by label.
        rejected: Items that ingest rejected, by reason.
    """

    inputs: dict[str, int]
    tables: list[dict[str, Any]]
    attributes: list[dict[str, Any]]
    lengths: dict[str, Any] = absent()
    rejected: dict[str, int]


class Options(Inspecting, Limited, frozen=True, kw_only=True):
    """Options of ``toolkit stats``.

    Attributes:
        targets: datasets, outputs or files; settings, which override those of the file
        first: read only the first N rows of each file
        by: group by label (the default), source, crawl, host, reason (why a mix dropped them), or an expression as in
            rules; you can give several
        label: an expression for the label, instead of that of the mix
        unicode_words: count words by Unicode's boundaries, too
        attributes: show how the values of an attribute or a field (language.prob) are distributed; `all` for every one
        histogram: draw how the values of a field are distributed, with the thresholds of the rules
        lengths: show how long documents are, in characters, by label
        mix: show what the last mix read and kept, from its manifest; or compare two outputs
        top: show the N largest groups (1000)
        format: format of the tables (markdown)
        output: write to this file: .md, .csv or .json; a picture to .png, .svg or .pdf

    Raises:
        ConfigError: for options that do not go together.
    """

    EXAMPLES: ClassVar = (
        "toolkit stats data/quickstart/oscar",
        "toolkit stats -c configs/quickstart.yaml --by host --top 20",
        "toolkit stats -c configs/quickstart.yaml --histogram language.prob --output prob.svg",
        "toolkit stats data/quickstart/oscar --lengths",
    )

    targets: Annotated[tuple[str, ...], Words()] = ()
    first: Annotated[int | None, Flag(metavar="N")] = None
    by: Annotated[tuple[str, ...], Flag(metavar="WHAT")] = ()
    label: Annotated[str | None, Flag(metavar="EXPRESSION")] = None
    unicode_words: Annotated[bool, Flag()] = False
    attributes: Annotated[tuple[str, ...], Flag("--attribute", metavar="NAME")] = ()
    histogram: Annotated[str | None, Flag(metavar="NAME")] = None
    lengths: Annotated[bool, Flag()] = False
    mix: Annotated[bool, Flag()] = False
    top: Annotated[int | None, Flag(metavar="N")] = None
    format: Annotated[Literal["markdown", "csv", "json"] | None, Flag()] = None
    output: Annotated[str | None, Flag(metavar="FILE")] = None

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_together(self)
        if self.output:
            suffixes = drawing.PICTURES if self.histogram else (*FORMATS, *drawing.PICTURES)
            if not self.output.endswith(suffixes):
                raise ConfigError(f"--output {self.output}: expected a file that ends in {', '.join(suffixes)}")
            if self.output.endswith(drawing.PICTURES) and (self.attributes or self.mix):
                target = (
                    "--histogram for a picture of an attribute" if self.attributes else ".md, .csv or .json with --mix"
                )
                raise ConfigError(f"--output {self.output}: expected {target}")
            if self.format not in (None, text_format_of(self.output)):
                raise ConfigError(
                    f"expected --output or --format, got both: --output {self.output} says another format "
                    f"than --format {self.format}"
                )


def run(context: Context, options: Options) -> Outcome:
    """Count the targets, or the dataset of a configuration; or show what a mix noted."""
    if options.output and options.output.endswith(drawing.PICTURES):
        drawing.check_installed()
    output = NamedOutput(options.output, "--output") if options.output else None
    if options.mix:
        return before_and_after(context, options.format, output)
    settings = Settings(
        by=list(options.by or (["label"] if not (options.attributes or options.histogram or options.lengths) else [])),
        label=options.label,
        unicode=options.unicode_words,
        attributes=[options.histogram] if options.histogram else list(options.attributes),
        lengths=options.lengths,
        first=options.first,
    )
    with scratch() as temporary:
        counting = prepare(context, options.targets, settings, temporary)
        results = counting.results(context, "stats")
        if broken := failures(results):
            of = amount(len(results), counting.unit.removesuffix("s"))
            message = f"{len(broken)} of {of} failed; those that did not are not read again"
            return Outcome(text=message, data=FailedResult(failed=broken), failures=broken)
        merged = merged_records(counting.works)
        documents = sum(result.value.documents for result in results if result.value)
        if options.histogram and not documents:
            raise ConfigError(f"--histogram {options.histogram}: expected values, got no documents")
        if options.histogram:
            return histogram_of(options.histogram, merged.distributions, counting.rules, output)
        top = options.top or TOP
        result = [
            tables.Table.of(
                by,
                merged_groups(counting.works, number, join(temporary, f"all-{number}")),
                top,
                unicode=settings.unicode,
            )
            for number, by in enumerate(settings.by)
        ]
    skipped = sum(result.value.skipped for result in results if result.value)
    data = Statistics(
        inputs={"files": len(results), "read": len(results) - skipped},
        tables=[table.data() for table in result],
        attributes=tables.distributions_data(merged.distributions),
        rejected=dict(counting.rejected),
    )
    if options.lengths:
        data.lengths = tables.lengths_data(merged.lengths)
    notes = counting.notes + ("" if documents else "\nthere are no documents")
    if counting.rejected:
        reasons = ", ".join(f"{count:,} {reason}" for reason, count in counting.rejected.items())
        notes += f"\n\nrejected by ingest: {amount(counting.rejected.total(), 'item')}: {reasons}"
    if output and output.path.endswith(drawing.PICTURES):
        draw_sizes(output, result, merged.lengths)
        return Outcome(text=output.path + notes, data=data)
    return deliver(render(result, merged, lengths=options.lengths), data, notes, options.format, output)


def _check_together(options: Options) -> None:
    """Raise ConfigError for an option without effect beside another."""
    values = {
        "--by": options.by,
        "--label": options.label,
        "--unicode-words": options.unicode_words,
        "--attribute": options.attributes,
        "--lengths": options.lengths,
        "--histogram": options.histogram,
        "--first": options.first,
        "--limit": options.limit,
        "--top": options.top,
        "--format": options.format,
    }
    idle: dict[str, tuple[str, ...]] = {}
    if options.mix:
        reading = ("--by", "--label", "--unicode-words", "--attribute", "--histogram", "--first", "--limit", "--top")
        idle["--mix"] = (*reading, "--lengths")
    if options.histogram:
        idle["--histogram"] = ("--by", "--label", "--unicode-words", "--attribute", "--lengths", "--top", "--format")
    for option in ("--attribute", "--lengths"):
        if values[option] and not options.by:
            idle[option] = ("--unicode-words", "--top")
    if options.json and options.format != "json":
        idle["--json"] = ("--format",)
    for option, useless in idle.items():
        if result := next((other for other in useless if values[other]), None):
            raise ConfigError(f"expected {option} without {result}, which has no effect here{_REMEDIES[option]}")


# --- what is counted --------------------------------------------------------------------------------------------------


class Counting(msgspec.Struct):
    """Files to count.

    Attributes:
        works: files.
        rules: Rules of the configuration's mix.
        unit: Name of a file.
        notes: Remarks on left-out inputs.
        rejected: items that ingests of these datasets have rejected, by reason.
    """

    works: list[CountJob] = []
    rules: list[Rule] = []
    unit: str = "files"
    notes: str = ""
    rejected: Counter[str] = msgspec.field(default_factory=Counter)

    def results(self, context: Context, title: str) -> list[Result[CountResult]]:
        """Count the files, unless they are counted; small shards become durable together."""
        context.sweep(*{part.folder: None for work in self.works for part in work.parts})
        tasks = [Task(work.path, work, size_of(work.path)) for work in self.works]
        in_shards = all(work.shard for work in self.works)
        return list(context.run(title, COUNT if in_shards else count_file, tasks, self.unit))


def prepare(
    context: Context, targets: Sequence[str], settings: Settings, temporary: str, *, keep: bool = True
) -> Counting:
    """Return the files of the targets, or of the configuration.

    Args:
        context: Context of the command.
        targets: the paths; none for the configuration.
        settings: Settings of the count.
        temporary: folder for results that cannot be kept where they belong.
        keep: True if they are kept there.

    Raises:
        ConfigError: if there is nothing to count, or it cannot be counted so.
    """
    finder = _CountFinder(context, settings, temporary, keep=keep)
    for target in targets:
        finder.add_target(target.rstrip("/"))
    if not targets:
        finder.add_configured()
    if not finder.counting.works and not finder.emptied:
        raise ConfigError("expected documents to count, got none")
    _check_attributes(settings, finder.counting.works)
    return finder.counting


def prepare_dataset(
    context: Context, dataset: Dataset, settings: Settings, temporary: str, *, keep: bool = True
) -> Counting:
    """Return the shards of one dataset, with all its sets; otherwise as `prepare`."""
    finder = _CountFinder(context, settings, temporary, keep=keep)
    finder.add_dataset(dataset)
    return finder.counting


class _CountFinder:
    """Finds the files, and the folders of their counts.

    Attributes:
        counting: so far.
        emptied: True if there is an output of a mix that kept nothing.
    """

    def __init__(self, context: Context, settings: Settings, temporary: str, *, keep: bool) -> None:
        self.counting = Counting()
        self.emptied = False
        self._context = context
        self._settings = settings
        self._temporary = temporary
        self._keep = keep
        self._not_kept = 0

    def add_target(self, target: str) -> None:
        result = inspected.expected(target)
        if result.kind == "dataset":
            self.add_dataset(Dataset(join(target, "documents"), join(target, "attributes")))
        else:
            self._add_files(result)

    def add_dataset(self, dataset: Dataset) -> None:
        """Add a dataset with all its sets; a key that two sets have cannot be named."""
        names, shards = [], set(dataset.shards())
        for name in dataset.sets():
            covered = inputs.carried_shards(dataset, name)
            if covered is None or shards <= covered:
                names.append(name)
            else:
                self.counting.notes += f"\n{name}: left out, because it has attributes of some shards only"
        self._add_stream(Stream.over(dataset, names, "stats"), self._settings)

    def add_configured(self) -> None:
        context, settings = self._context, self._settings
        if not context.has("mix"):
            self.add_dataset(context.dataset)
            return
        mix = sections.mix(context)
        if not settings.label and mix.label:
            settings = msgspec.structs.replace(settings, label=mix.label)
        for stream in mix.streams:
            self.counting.rules += stream.rules
            self._add_stream(stream, settings, mix.writer().label())

    def _folders(self, find: Callable[[], str]) -> tuple[str, str]:
        """Return the folders for results and for columns.

        They are below the one that `find` gives; else for this run only.
        """
        if self._keep:
            try:
                folder = find()
                check_writable(counting.counts_folder(folder), "stats")
                return counting.counts_folder(folder), folder_of(folder)
            except ConfigError as error:
                if not self._context.options.quiet:
                    print(f"warning: what is counted is not kept: {error}", file=sys.stderr)
        self._not_kept += 1
        temporary = join(self._temporary, f"kept-{self._not_kept}")
        return temporary, temporary

    def _add_files(self, target: inspected.Target) -> None:
        """Add the files of a folder, or one file."""
        home = inspected.home_of(target.path)
        manifest = publication.load_manifest(home.root) if home.kind == "output" else None
        labels = {part.path: part.label for part in manifest.parts} if manifest else {}
        results = [join(target.folder, path) for path in target.files]
        self.emptied = self.emptied or (target.kind == "output" and not results)
        types = merged_types(manifest) if manifest else {}
        root = home.root if home.kind == "files" else ""
        about = [home.kind, root, types, *(current().columns if current().columns[0] else ())]
        folder, _ = self._folders(lambda: counting.base_folder(home))
        paths = {home.name(path): path for path in results}
        for name in self._context.limited(list(paths)):
            path, label = paths[name], labels.get(name)
            format_ = _format_of(path, label, manifest)
            writer = format_.writer() if format_ else None
            settings = _with_label_of(writer, self._settings)
            work = CountJob(
                settings=settings,
                parts=[Part(part, join(folder, part.digest(*about)), []) for part in settings.split],
                name=name,
                file=path,
                format=format_,
                types=types,
                label=_label(path, name, writer) if label is None else label,
                max_document_bytes=2 * self._context.config.max_document_bytes,
            )
            counting.keys_of(work)
            self.counting.works.append(work)

    def _add_stream(self, stream: Stream, settings: Settings, label: str | None = None) -> None:
        shards, notes = self._context.shards(stream.dataset)
        self.counting.notes += notes
        self.counting.rejected.update(left_out.by_reason(record for _, record in ingested.load_all(stream.dataset)))
        self.counting.unit = "shards"
        own = inputs.of_documents(stream.dataset, shards)
        stream = msgspec.structs.replace(stream, own=own, text=None)  # sizes are those of the documents' own text
        source = self._context.source_of(stream.dataset, shards)
        resolved = source.typed(stream)
        try:
            settings = _labelled(settings, names_for_rules(resolved.sets, stream.own), label)
            needed = [_needed(part, resolved) for part in settings.split]
        except ConfigError:
            resolved.refuse_unreadable()
            raise
        used = {item.set for some in needed for item in some}
        joined = [item for item in resolved.sets if item.set in used]
        if not all(item.ours for item in joined):
            resolved.refuse_unreadable()
        source.check([item.set for item in joined], "warn")
        folder, columns = self._folders(lambda: stream.dataset.bookkeeping)
        limit, lineage = self._context.config.max_document_bytes, stream.dataset.lineage.items()
        parts = [
            Part(part, join(folder, part.digest(some, *lineage)), [item.set for item in some])
            for part, some in zip(settings.split, needed, strict=True)
        ]
        self.counting.works += [
            CountJob(
                settings=settings, parts=parts, columns=columns, name=one.shard, shard=one, max_document_bytes=limit
            )
            for one in Resolved(stream, shards, joined).joined(limit)
        ]


# --- outputs ----------------------------------------------------------------------------------------------------------


def _format_of(path: str, label: str | None, manifest: publication.Manifest | None) -> Format | None:
    """Return the format of a file of an output; None for documents, as those are that a mix has dropped."""
    if manifest is None or label is None:
        return expected_format(path)
    return None if label == mix_settings.REJECTED else recorded_format(manifest.settings)


def _with_label_of(writer: Writer | None, settings: Settings) -> Settings:
    """Return the settings with the format's label, unless another is requested."""
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
    """Return the name of a file without number and suffix. It is the label where the path says no other."""
    name = strip_suffix(strip_suffix(os.path.basename(path), tuple(compression.SUFFIXES)), [suffix])
    return re.sub(r"_part_\d+$", "", name)


# --- datasets ---------------------------------------------------------------------------------------------------------


def _labelled(settings: Settings, names: Mapping[str, Name], label: str | None) -> Settings:
    """Return the settings with the requested label, or a default.

    The default is that of the mix, or the first that there is.
    """
    if settings.label is None:
        one_label = label is None or label.startswith(("'", '"'))  # a format that has but one says nothing of documents
        result = (null_safe(path, names) for path in (LABELS_AT if one_label else (label,)))
        return msgspec.structs.replace(settings, label=next((path for path in result if path), None))
    return msgspec.structs.replace(settings, label=null_safe(settings.label, names) or settings.label)


def _needed(settings: Settings, resolved: Resolved) -> list[JoinedSet]:
    """Return the sets for some settings."""
    work = CountJob(settings=settings, name="", shard=resolved.joined_to(""), max_document_bytes=1)
    used = counting.keys_of(work).rules.needs.keys | set(counting.leaves_of(work))
    _check_attributes(settings, [work])
    return [joined for joined in resolved.sets if any(key.name in used for key in joined.keys)]


def _check_attributes(settings: Settings, listed: list[CountJob]) -> None:
    """Raise ConfigError for an unknown attribute."""
    if not settings.attributes or not listed:
        return
    types = {key: type_ for work in listed[:1] for key, type_ in counting.types_of(work).items()}
    paths = [leaf.path for key, type_ in types.items() for leaf in leaves(key, type_)]
    for attribute in settings.attributes:
        if not any(counting.is_part(path, attribute) for path in paths):
            hint = did_you_mean(attribute, [*types, *paths]) or f"; there are: {', '.join(paths) or 'none'}"
            if attribute in types:
                hint = f", of type {types[attribute]}; there are: {', '.join(paths) or 'none'}"
            elif not types and not listed[0].shard:
                hint = "; files by themselves have none that are known: count their dataset, or an output of a mix"
            raise ConfigError(f"expected an attribute with values that can be counted, got {attribute!r}{hint}")


# --- tables, pictures and histograms ----------------------------------------------------------------------------------


FORMATS = {".md": "markdown", ".csv": "csv", ".json": "json"}


class MixStatistics(CommandResult, kw_only=True):
    """The result of `stats --mix`: sizes before and after a mix, or in two outputs.

    Attributes:
        labels, total: Sizes by label, and of all documents.
        output: Path of the output.
        rejected: Documents that each rule dropped.
        other: Path of the other output.
    """

    labels: list[dict[str, Any]]
    total: dict[str, dict[str, int]]
    output: str
    rejected: dict[str, int] = absent()
    other: str = absent()


def draw_sizes(output: NamedOutput, listed: list[tables.Table], lengths: LengthsByLabel) -> None:
    """Draw the sizes of the first table's groups, and their lengths; or the lengths of all."""
    suffix = output.path.rpartition(".")[2]
    if not listed:
        output.save(drawing.lengths_of_all(merged(lengths.values()), suffix))
        return
    number, rest = listed[0].rest
    rows = [(tables.display(group), counts.bytes) for group, counts in listed[0].groups]
    rows += [(f"{number:,} more", rest.bytes)] if number and len(rows) <= drawing.MOST else []
    by_group: list[Histogram] = []
    if lengths and listed[0].by in keys.LABELS and not number:
        by_group = [lengths.get(msgspec.json.encode(group).decode(), Histogram()) for group, _ in listed[0].groups]
    output.save(drawing.sizes_and_lengths(rows, by_group, suffix))


def render(listed: list[tables.Table], merged: MergedCounts, *, lengths: bool) -> dict[str, str]:
    """Return the tables in each format of text."""
    labels = len(tables.by_attribute(merged.distributions)) == 1
    some = [tables.table_markdown(table) for table in listed]
    some += [tables.distributions_markdown(merged.distributions, labels=labels)] if merged.distributions else []
    some += [tables.lengths_markdown(merged.lengths)] if lengths else []
    rows = [tables.table_csv(table) for table in listed]
    rows += [tables.distributions_csv(merged.distributions)] if merged.distributions else []
    rows += [tables.lengths_csv(merged.lengths)] if lengths else []
    return {"markdown": "\n\n".join(some) + "\n", "csv": "\n".join(rows)}


def deliver(
    rendered: dict[str, str], data: CommandResult, notes: str, format_: str | None, output: NamedOutput | None
) -> Outcome:
    """Return the outcome on standard output, or write it in a file.

    Args:
        rendered: Tables by format.
        data: Result of the command.
        notes: Remarks below the tables, for people.
        format_: Format on standard output.
        output: File.
    """
    rendered["json"] = msgspec.json.format(msgspec.json.encode(data), indent=1).decode() + "\n"
    format_ = format_ or "markdown"
    if output is None and format_ == "markdown":
        return Outcome(text=(rendered[format_] + notes).strip("\n"), data=data)
    if output is None:
        print(notes.strip(), end="\n" if notes else "", file=sys.stderr)  # programs read the other formats
        return Outcome(text=rendered[format_].rstrip(), data=data, for_programs=True)
    output.save(rendered[text_format_of(output.path)].encode())
    return Outcome(text=output.path + notes, data=data)


def text_format_of(path: str) -> str:
    """Return the format of text of a file, by its name; empty for others."""
    return next((kind for suffix, kind in FORMATS.items() if path.endswith(suffix)), "")


# --- histograms -------------------------------------------------------------------------------------------------------


def histogram_of(
    attribute: str, distributions: list[Distribution], rules: list[Rule], output: NamedOutput | None
) -> Outcome:
    """Return a histogram of an attribute, with the thresholds of rules; it is drawn into a file, too."""
    listed = tables.by_attribute(distributions)
    if attribute not in listed:
        hint = did_you_mean(attribute, listed) or (f"; there are: {', '.join(listed)}" if listed else "")
        raise ConfigError(f"--histogram {attribute}: expected one value of each document or element{hint}")
    histogram = drawing.Bars.of(merge_labels(listed[attribute]), thresholds(rules, attribute))
    lines = drawing.text(histogram)
    if output:
        drawing.draw(histogram, output)
        lines += f"\n\n{output.path}"
    return Outcome(text=lines, data=histogram.data())


# --- before and after a mix -------------------------------------------------------------------------------------------


def before_and_after(context: Context, format_: str | None, output: NamedOutput | None) -> Outcome:
    """Show the sizes in a manifest, or in two; no data are read."""
    if len(context.options.targets) == 2:  # an original and another edition
        return deliver(*_editions(*(folder.rstrip("/") for folder in context.options.targets)), "", format_, output)
    folder = sections.output(context)
    manifest = _manifest(folder)
    statistics = manifest.statistics
    dropped: dict[str, int] = {}
    for effect in manifest.rules:
        if kind_called(effect.kind).ROLE.drops:
            dropped[effect.name] = dropped.get(effect.name, 0) + effect.documents
    data = _mix_statistics(statistics, output=folder, rejected=dropped)
    rendered = {"markdown": tables.mix_markdown(statistics) + "\n", "csv": tables.mix_csv(statistics)}
    lines = [f"  {name}: {count:,}" for name, count in dropped.items() if count]
    notes = "\n".join(["\n\ndropped by rule", *lines]) if lines else ""
    return deliver(rendered, data, notes, format_, output)


def _editions(original: str, other: str) -> tuple[dict[str, str], MixStatistics]:
    """Return the sizes of two outputs, by label: tables by format, and the numbers."""
    first, second = _manifest(original).statistics, _manifest(other).statistics
    statistics = {
        label: BeforeAfter(*(item[label].after if label in item else Counts() for item in (first, second)))
        for label in {**first, **second}
        if any(label in item and item[label].after.documents for item in (first, second))
    }
    names = ("original", os.path.basename(other))
    rendered = {
        "markdown": tables.mix_markdown(statistics, names) + "\n",
        "csv": tables.mix_csv(statistics, ("original", names[1])),
    }
    return rendered, _mix_statistics(statistics, output=original, other=other)


def _manifest(folder: str) -> publication.Manifest:
    """Return the manifest of a mix, with statistics."""
    manifest = publication.load_manifest(folder)
    if manifest is None:
        raise ConfigError(f"{folder}: expected the output of a mix, got none; run `toolkit mix`{not_in(folder)}")
    if not manifest.statistics and manifest.totals.rows:
        raise ConfigError(
            f"{publication.manifest_path(folder)}: expected statistics, got the manifest of an earlier version; "
            "delete it with the output, and run `toolkit mix`"
        )
    return manifest


def _mix_statistics(statistics: SizesByLabel, **more: Any) -> MixStatistics:
    rows, _ = tables.mix_rows(statistics)
    labels = [
        {"label": label, "before": _numbers(statistic.before), "after": _numbers(statistic.after)}
        for label, statistic in statistics.items()
    ]
    total = {"before": _numbers(rows[-1][1]), "after": _numbers(rows[-1][2])}
    return MixStatistics(labels=labels, total=total, **more)


def _numbers(counts: Any) -> dict[str, int]:
    return {name: value for name, value in msgspec.to_builtins(counts).items() if value is not None}
