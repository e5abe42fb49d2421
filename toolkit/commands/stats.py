"""Count documents, lines, characters, bytes and words; show how attributes are distributed."""

import os
import sys
import tempfile
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

import msgspec

from toolkit.aggregate import drawing, tables
from toolkit.aggregate.distributions import Distribution, together
from toolkit.aggregate.drawing import Bars, text
from toolkit.aggregate.histogram import Histogram, merged
from toolkit.aggregate.keys import LABELS
from toolkit.aggregate.tables import LengthsByLabel
from toolkit.aggregate.thresholds import thresholds
from toolkit.command_line import Flag, Limited, Looking, Words
from toolkit.commands._stats_files import prepare
from toolkit.errors import ConfigError, amount, did_you_mean
from toolkit.inspect.counting import Merged, Settings, count_file, merged_groups, merged_records
from toolkit.mix import publish
from toolkit.mix.effects.counts import BeforeAfter, SizesByLabel
from toolkit.result import CommandResult, FailedResult, absent
from toolkit.rules import Rule, kind_called
from toolkit.runs.executors import Task
from toolkit.stages.context import Context
from toolkit.stages.outcome import Outcome, failures
from toolkit.storage.outputs import NamedOutput
from toolkit.storage.paths import join, not_in, size_of
from toolkit.text.counting import Counts

FORMATS = {".md": "markdown", ".csv": "csv", ".json": "json"}

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
        lengths: With --lengths, the lengths of documents, of all and by label.
        rejected: Items that ingest rejected, by reason.
    """

    inputs: dict[str, int]
    tables: list[dict[str, Any]]
    attributes: list[dict[str, Any]]
    lengths: dict[str, Any] = absent()
    rejected: dict[str, int]


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


class Options(Looking, Limited, frozen=True, kw_only=True):
    """Options of ``toolkit stats``.

    Raises:
        ConfigError: for options that do not go together.
    """

    EXAMPLES: ClassVar = (
        "toolkit stats data/quickstart/oscar",
        "toolkit stats -c configs/quickstart.yaml --by host --top 20",
        "toolkit stats -c configs/quickstart.yaml --histogram language.prob --output prob.svg",
        "toolkit stats data/quickstart/oscar --lengths",
    )

    targets: Annotated[
        tuple[str, ...], Words("datasets, outputs or files; settings, which override those of the file")
    ] = ()
    first: Annotated[int | None, Flag("read only the first N rows of each file", metavar="N")] = None
    by: Annotated[
        tuple[str, ...],
        Flag(
            "group by label (the default), source, crawl, host, reason (why a mix dropped them), or an expression "
            "as in rules; you can give several",
            metavar="WHAT",
        ),
    ] = ()
    label: Annotated[
        str | None, Flag("an expression for the label, instead of that of the mix", metavar="EXPRESSION")
    ] = None
    unicode_words: Annotated[bool, Flag("count words by Unicode's boundaries, too")] = False
    attributes: Annotated[
        tuple[str, ...],
        Flag(
            "show how the values of an attribute or a field (language.prob) are distributed; `all` for every one",
            "--attribute",
            metavar="NAME",
        ),
    ] = ()
    histogram: Annotated[
        str | None,
        Flag("draw how the values of a field are distributed, with the thresholds of the rules", metavar="NAME"),
    ] = None
    lengths: Annotated[bool, Flag("show how long documents are, in characters, by label")] = False
    mix: Annotated[bool, Flag("show what the last mix read and kept, from its manifest; or compare two outputs")] = (
        False
    )
    top: Annotated[int | None, Flag("show the N largest groups (1000)", metavar="N")] = None
    format: Annotated[Literal["markdown", "csv", "json"] | None, Flag("format of the tables (markdown)")] = None
    output: Annotated[
        str | None,
        Flag("write to this file: .md, .csv or .json; a picture to .png, .svg or .pdf", metavar="FILE"),
    ] = None

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_together(self)
        if self.output:
            known = drawing.PICTURES if self.histogram else (*FORMATS, *drawing.PICTURES)
            if not self.output.endswith(known):
                raise ConfigError(f"--output {self.output}: expected a file that ends in {', '.join(known)}")
            if self.output.endswith(drawing.PICTURES) and (self.attributes or self.mix):
                what = (
                    "--histogram for a picture of an attribute" if self.attributes else ".md, .csv or .json with --mix"
                )
                raise ConfigError(f"--output {self.output}: expected {what}")
            if self.format not in (None, _format_of(self.output)):
                raise ConfigError(
                    f"expected --output or --format, got both: --output {self.output} says another format "
                    f"than --format {self.format}"
                )


def run(context: Context, options: Options) -> Outcome:
    """Count what the paths name, or the dataset of a configuration; or show what a mix noted."""
    _check_installed(options)
    output = NamedOutput(options.output, "--output") if options.output else None
    if options.mix:
        return _before_and_after(context, options, output)
    settings = Settings(
        by=list(options.by or (["label"] if not (options.attributes or options.histogram or options.lengths) else [])),
        label=options.label,
        unicode=options.unicode_words,
        attributes=[options.histogram] if options.histogram else list(options.attributes),
        lengths=options.lengths,
        first=options.first,
    )
    with tempfile.TemporaryDirectory(prefix="toolkit-stats-") as temporary:
        counting = prepare(context, options.targets, settings, temporary)
        context.sweep(*{part.folder: None for work in counting.works for part in work.parts})
        tasks = [Task(work.path, work, size_of(work.path)) for work in counting.works]
        results = context.run("stats", count_file, tasks, counting.unit)
        if broken := failures(results):
            of = amount(len(tasks), counting.unit.removesuffix("s"))
            message = f"{len(broken)} of {of} failed; those that did not are not read again"
            return Outcome(text=message, data=FailedResult(failed=broken), failures=broken, exit_code=1)
        merged = merged_records(counting.works)
        documents = sum(result.value.documents for result in results if result.value)
        if options.histogram and not documents:
            raise ConfigError(f"--histogram {options.histogram}: expected values, got no documents")
        if options.histogram:
            return _histogram(output, options.histogram, merged.distributions, counting.rules)
        top = options.top or TOP
        found = [
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
        inputs={"files": len(tasks), "read": len(tasks) - skipped},
        tables=[table.data() for table in found],
        attributes=tables.distributions_data(merged.distributions),
        rejected=dict(counting.rejected),
    )
    if options.lengths:
        data.lengths = tables.lengths_data(merged.lengths)
    notes = counting.notes + ("" if documents else "\nthere are no documents")
    if counting.rejected:
        notes += f"\n\nrejected by ingest: {amount(counting.rejected.total(), 'item')}: {_listed(counting.rejected)}"
    if output and output.path.endswith(drawing.PICTURES):
        _draw(output, found, merged.lengths)
        return Outcome(text=output.path + notes, data=data)
    return _delivered(options, output, _rendered(found, merged, lengths=options.lengths), data, notes)


def _draw(output: NamedOutput, found: list[tables.Table], lengths: LengthsByLabel) -> None:
    """Draw the sizes of the first table's groups, beside them the lengths of labels; or the lengths of all."""
    suffix = output.path.rpartition(".")[2]
    if not found:
        output.save(drawing.lengths_of_all(merged(lengths.values()), suffix))
        return
    number, others = found[0].others
    rows = [(tables.shown(group), counts.bytes) for group, counts in found[0].groups]
    rows += [(f"{number:,} more", others.bytes)] if number and len(rows) <= drawing.MOST else []
    by_group: list[Histogram] = []
    if lengths and found[0].by in LABELS and not number:
        by_group = [lengths.get(msgspec.json.encode(group).decode(), Histogram()) for group, _ in found[0].groups]
    output.save(drawing.sizes_and_lengths(rows, by_group, suffix))


def _listed(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count:,} {reason}" for reason, count in counts.items())


def _check_installed(options: Options) -> None:
    """Raise MissingExtra if something needs a package which is not there."""
    if options.output and options.output.endswith(drawing.PICTURES):
        drawing.check_installed()


def _check_together(options: Options) -> None:
    """Raise ConfigError for an option that would do nothing beside another."""
    given = {
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
        if given[option] and not options.by:
            idle[option] = ("--unicode-words", "--top")
    if options.json and options.format != "json":
        idle["--json"] = ("--format",)
    for option, others in idle.items():
        if found := next((other for other in others if given[other]), None):
            raise ConfigError(f"expected {option} without {found}, which has no effect here{_REMEDIES[option]}")


def _rendered(found: list[tables.Table], merged: Merged, *, lengths: bool) -> dict[str, str]:
    """Return the tables in each format of text."""
    labels = len(tables.by_attribute(merged.distributions)) == 1
    some = [tables.table_markdown(table) for table in found]
    some += [tables.distributions_markdown(merged.distributions, labels=labels)] if merged.distributions else []
    some += [tables.lengths_markdown(merged.lengths)] if lengths else []
    rows = [tables.table_csv(table) for table in found]
    rows += [tables.distributions_csv(merged.distributions)] if merged.distributions else []
    rows += [tables.lengths_csv(merged.lengths)] if lengths else []
    return {"markdown": "\n\n".join(some) + "\n", "csv": "\n".join(rows)}


def _delivered(
    options: Options, output: NamedOutput | None, rendered: dict[str, str], data: CommandResult, notes: str = ""
) -> Outcome:
    """Return the outcome on standard output, or write it in a file."""
    rendered["json"] = msgspec.json.format(msgspec.json.encode(data), indent=1).decode() + "\n"
    format_ = options.format or "markdown"
    if output is None and format_ == "markdown":
        return Outcome(text=(rendered[format_] + notes).strip("\n"), data=data)
    if output is None:
        print(notes.strip(), end="\n" if notes else "", file=sys.stderr)  # programs read the other formats
        return Outcome(text=rendered[format_].rstrip(), data=data, for_programs=True)
    output.save(rendered[_format_of(output.path)].encode())
    return Outcome(text=output.path + notes, data=data)


def _format_of(path: str) -> str:
    return next((kind for suffix, kind in FORMATS.items() if path.endswith(suffix)), "")


# --- histograms -------------------------------------------------------------------------------------------------------


def _histogram(output: NamedOutput | None, attribute: str, found: list[Distribution], rules: list[Rule]) -> Outcome:
    listed = tables.by_attribute(found)
    if attribute not in listed:
        hint = did_you_mean(attribute, listed) or (f"; there are: {', '.join(listed)}" if listed else "")
        raise ConfigError(f"--histogram {attribute}: expected one value of each document or element{hint}")
    histogram = Bars.of(together(listed[attribute]), thresholds(rules, attribute))
    shown = text(histogram)
    if output:
        drawing.draw(histogram, output)
        shown += f"\n\n{output.path}"
    return Outcome(text=shown, data=histogram.data())


# --- before and after a mix -------------------------------------------------------------------------------------------


def _before_and_after(context: Context, options: Options, named: NamedOutput | None) -> Outcome:
    """Show what the manifest says, or those of two editions; no data are read."""
    if len(options.targets) == 2:  # an original and another edition
        return _editions(options, named, *(folder.rstrip("/") for folder in options.targets))
    folder = context.output
    manifest = _noted(folder)
    statistics = manifest.statistics
    dropped: dict[str, int] = {}
    for effect in manifest.rules:
        if kind_called(effect.kind).ROLE.drops:
            dropped[effect.name] = dropped.get(effect.name, 0) + effect.documents
    data = _mix_statistics(statistics, output=folder, rejected=dropped)
    rendered = {"markdown": tables.mix_markdown(statistics) + "\n", "csv": tables.mix_csv(statistics)}
    lines = [f"  {name}: {count:,}" for name, count in dropped.items() if count]
    return _delivered(options, named, rendered, data, "\n".join(["\n\ndropped by rule", *lines]) if lines else "")


def _editions(options: Options, named: NamedOutput | None, original: str, other: str) -> Outcome:
    """Show what is in two outputs, by label."""
    first, second = _noted(original).statistics, _noted(other).statistics
    statistics = {
        label: BeforeAfter(*(each[label].after if label in each else Counts() for each in (first, second)))
        for label in {**first, **second}
        if any(label in each and each[label].after.documents for each in (first, second))
    }
    names = ("original", os.path.basename(other))
    rendered = {
        "markdown": tables.mix_markdown(statistics, names) + "\n",
        "csv": tables.mix_csv(statistics, ("original", names[1])),
    }
    data = _mix_statistics(statistics, output=original, other=other)
    return _delivered(options, named, rendered, data)


def _noted(folder: str) -> publish.Manifest:
    """Return what a mix has noted, with statistics."""
    manifest = publish.load_manifest(folder)
    if manifest is None:
        raise ConfigError(f"{folder}: expected the output of a mix, got none; run `toolkit mix`{not_in(folder)}")
    if not manifest.statistics and manifest.totals.rows:
        raise ConfigError(
            f"{publish.manifest_path(folder)}: expected statistics, got the manifest of an earlier version; "
            "delete it with the output, and run `toolkit mix`"
        )
    return manifest


def _mix_statistics(statistics: SizesByLabel, **more: Any) -> MixStatistics:
    rows, _ = tables.mix_rows(statistics)
    labels = [
        {"label": label, "before": _numbers(each.before), "after": _numbers(each.after)}
        for label, each in statistics.items()
    ]
    total = {"before": _numbers(rows[-1][1]), "after": _numbers(rows[-1][2])}
    return MixStatistics(labels=labels, total=total, **more)


def _numbers(counts: Any) -> dict[str, int]:
    return {name: value for name, value in msgspec.to_builtins(counts).items() if value is not None}
