"""How what is counted is shown: tables in three formats of text, pictures, histograms; and sizes around a mix."""

import os
import sys
from typing import Any

import msgspec

from toolkit.aggregate import drawing, tables
from toolkit.aggregate.distributions import Distribution, together
from toolkit.aggregate.drawing import Bars, text
from toolkit.aggregate.histogram import Histogram, merged
from toolkit.aggregate.keys import LABELS
from toolkit.aggregate.tables import LengthsByLabel
from toolkit.aggregate.thresholds import thresholds
from toolkit.commands import _sections as sections
from toolkit.errors import ConfigError, did_you_mean
from toolkit.inspect.counting import Merged
from toolkit.mix import publish
from toolkit.mix.effects.counts import BeforeAfter, SizesByLabel
from toolkit.result import CommandResult, absent
from toolkit.rules import Rule, kind_called
from toolkit.stages.context import Context
from toolkit.stages.outcome import Outcome
from toolkit.storage.outputs import NamedOutput
from toolkit.storage.paths import not_in
from toolkit.text.counting import Counts

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


def draw_sizes(output: NamedOutput, found: list[tables.Table], lengths: LengthsByLabel) -> None:
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


def render(found: list[tables.Table], merged: Merged, *, lengths: bool) -> dict[str, str]:
    """Return the tables in each format of text."""
    labels = len(tables.by_attribute(merged.distributions)) == 1
    some = [tables.table_markdown(table) for table in found]
    some += [tables.distributions_markdown(merged.distributions, labels=labels)] if merged.distributions else []
    some += [tables.lengths_markdown(merged.lengths)] if lengths else []
    rows = [tables.table_csv(table) for table in found]
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


def histogram_of(attribute: str, found: list[Distribution], rules: list[Rule], output: NamedOutput | None) -> Outcome:
    """Return a histogram of an attribute, with the thresholds of rules; it is drawn into a file, too."""
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


def before_and_after(context: Context, format_: str | None, output: NamedOutput | None) -> Outcome:
    """Show what the manifest says, or those of two editions; no data are read."""
    if len(context.options.targets) == 2:  # an original and another edition
        return deliver(*_editions(*(folder.rstrip("/") for folder in context.options.targets)), "", format_, output)
    folder = sections.output(context)
    manifest = _noted(folder)
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
    """Return what is in two outputs, by label: tables by format, and the numbers."""
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
    return rendered, _mix_statistics(statistics, output=original, other=other)


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
