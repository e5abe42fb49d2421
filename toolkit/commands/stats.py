"""``toolkit stats``: how much there is of what, and how attributes are distributed."""

import sys
import tempfile
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

import msgspec

from toolkit.commands.steps import mix_section
from toolkit.commands.steps.context import Context, Options, Outcome, failures
from toolkit.commands.steps.counted import prepare
from toolkit.errors import ConfigError, amount, did_you_mean
from toolkit.inspect.stats import groups, plots, shard, tables
from toolkit.inspect.stats.distributions import Distribution, Distributions, together
from toolkit.inspect.stats.histograms import Histogram, text
from toolkit.inspect.stats.shard import CountJob, Record, Settings
from toolkit.inspect.stats.sketch import Sketch
from toolkit.inspect.stats.thresholds import thresholds
from toolkit.mix import publish
from toolkit.rules import Rule
from toolkit.runs.executors import Task
from toolkit.storage import json_files
from toolkit.storage.paths import is_folder, join, not_in, size_of
from toolkit.storage.streams import write_file

FORMATS = {".md": "markdown", ".csv": "csv", ".json": "json"}

_REMEDIES = {
    "--mix": ": it shows what the mix has noted, and reads nothing",
    "--histogram": ": it draws one attribute of all documents",
    "--attribute": " but with --by, too",
    "--json": ": it has every number as it is",
}

TOP = 1000
"""Groups that are shown."""

MERGED = 4096
"""Groups that are taken from a file at a time."""


def run(context: Context) -> Outcome:
    """Counts what the paths name, or the dataset of a configuration; or shows what a mix noted."""
    options = context.options
    _check(context)
    if options.mix:
        return _before_and_after(context)
    settings = Settings(
        by=list(options.by or (["label"] if not (options.attributes or options.histogram) else [])),
        label=options.label,
        unicode=options.unicode_words,
        attributes=[options.histogram] if options.histogram else list(options.attributes),
        first=options.first,
    )
    with tempfile.TemporaryDirectory(prefix="toolkit-stats-") as temporary:
        counting = prepare(context, settings, temporary)
        context.sweep(*{work.folder: None for work in counting.works})
        tasks = [Task(work.path, work, size_of(work.path)) for work in counting.works]
        results = context.run("stats", shard.count_file, tasks, counting.unit)
        if broken := failures(results):
            of = amount(len(tasks), counting.unit.removesuffix("s"))
            message = f"{len(broken)} of {of} failed; those that did not are not read again"
            return Outcome(text=message, data={"failed": broken}, failures=broken, exit_code=1)
        distributions = _distributions(counting.works)
        documents = sum(result.value.documents for result in results if result.value)
        if options.histogram and not documents:
            raise ConfigError(f"--histogram {options.histogram}: expected values, got no documents")
        if options.histogram:
            return _histogram(context, options.histogram, distributions, counting.rules)
        found = [
            tables.Table.of(by, _merged(counting.works, number, join(temporary, f"all-{number}")), options.top or TOP,
                            unicode=settings.unicode)
            for number, by in enumerate(settings.by)
        ]  # fmt: skip
    skipped = sum(result.value.skipped for result in results if result.value)
    data = {
        "inputs": {"files": len(tasks), "read": len(tasks) - skipped},
        "tables": [table.data() for table in found],
        "attributes": tables.distributions_data(distributions),
    }
    rendered = _rendered(found, distributions)
    return _delivered(context, rendered, data, counting.notes + ("" if documents else "\nthere are no documents"))


def _check(context: Context) -> None:
    """Raises ConfigError for options that do not go together, or that need a package which is not there."""
    options = context.options
    _check_together(options)
    if options.output:
        known = plots.PICTURES if options.histogram else tuple(FORMATS)
        if not options.output.endswith(known):
            raise ConfigError(f"--output {options.output}: expected a file that ends in {', '.join(known)}")
        if options.format not in (None, _format_of(options.output)):
            raise ConfigError(
                f"expected --output or --format, got both: --output {options.output} says another format "
                f"than --format {options.format}"
            )
    if options.histogram or options.attributes:
        Sketch()
    if options.histogram and options.output:
        plots.check_installed()


def _check_together(options: Options) -> None:
    """Raises ConfigError for an option that would do nothing beside another."""
    given = {
        "--by": options.by,
        "--label": options.label,
        "--unicode-words": options.unicode_words,
        "--attribute": options.attributes,
        "--histogram": options.histogram,
        "--first": options.first,
        "--limit": options.limit,
        "--top": options.top,
        "--format": options.format,
    }
    idle: dict[str, tuple[str, ...]] = {}
    if options.mix:
        reading = ("--by", "--label", "--unicode-words", "--attribute", "--histogram", "--first", "--limit", "--top")
        idle["--mix"] = reading
    if options.histogram:
        idle["--histogram"] = ("--by", "--label", "--unicode-words", "--attribute", "--top", "--format")
    if options.attributes and not options.by:
        idle["--attribute"] = ("--unicode-words", "--top")
    if options.json and options.format != "json":
        idle["--json"] = ("--format",)
    for option, others in idle.items():
        if found := next((other for other in others if given[other]), None):
            raise ConfigError(f"expected {option} without {found}, which does nothing beside it{_REMEDIES[option]}")


def _rendered(found: list[tables.Table], distributions: list[Distribution]) -> dict[str, str]:
    """The tables in each format of text."""
    labels = len(tables.by_attribute(distributions)) == 1
    some = [tables.table_markdown(table) for table in found]
    some += [tables.distributions_markdown(distributions, labels=labels)] if distributions else []
    rows = [tables.table_csv(table) for table in found]
    rows += [tables.distributions_csv(distributions)] if distributions else []
    return {"markdown": "\n\n".join(some) + "\n", "csv": "\n".join(rows)}


def _delivered(context: Context, rendered: dict[str, str], data: dict[str, Any], notes: str = "") -> Outcome:
    """On standard output, or in a file."""
    path = context.options.output
    rendered["json"] = msgspec.json.format(msgspec.json.encode(data), indent=1).decode() + "\n"
    format_ = context.options.format or "markdown"
    if not path and format_ == "markdown":
        return Outcome(text=(rendered[format_] + notes).strip("\n"), data=data)
    if not path:
        print(notes.strip(), end="\n" if notes else "", file=sys.stderr)  # programs read the other formats
        return Outcome(text=rendered[format_].rstrip(), data=data)
    write_file(path, rendered[_format_of(path)].encode())
    return Outcome(text=path + notes, data=data)


def _format_of(path: str) -> str:
    return next((kind for suffix, kind in FORMATS.items() if path.endswith(suffix)), "")


# --- merging ----------------------------------------------------------------------------------------------------------


def _merged(works: Iterable[CountJob], number: int, folder: str) -> Iterable[groups.Group]:
    """The groups of all files for the ``--by`` of that number."""
    merged = groups.Groups(folder)
    for work in works:
        rows: Iterator[groups.Group] = groups.read(work.groups_path(number))
        while some := list(islice(rows, MERGED)):
            merged.add_sums([key for key, _ in some], [row for _, row in some])
    return merged


def _distributions(works: Iterable[CountJob]) -> list[Distribution]:
    merged = Distributions()
    for work in works:
        if work.settings.attributes:
            record = json_files.load_strictly(work.record_path, Record)
            merged.merge(record.distributions if record else ())
    return merged.finished()


# --- histograms -------------------------------------------------------------------------------------------------------


def _histogram(context: Context, attribute: str, found: list[Distribution], rules: list[Rule]) -> Outcome:
    listed = tables.by_attribute(found)
    if attribute not in listed:
        hint = did_you_mean(attribute, listed) or (f"; there are: {', '.join(listed)}" if listed else "")
        raise ConfigError(f"--histogram {attribute}: expected one value of each document or element{hint}")
    histogram = Histogram.of(together(listed[attribute]), thresholds(rules, attribute))
    shown = text(histogram)
    if context.options.output:
        plots.draw(histogram, context.options.output)
        shown += f"\n\n{context.options.output}"
    return Outcome(text=shown, data=histogram.data())


# --- before and after a mix -------------------------------------------------------------------------------------------


def _before_and_after(context: Context) -> Outcome:
    """From the manifest: nothing is read."""
    folder = _output(context)
    manifest = publish.load_manifest(folder)
    if manifest is None:
        raise ConfigError(f"{folder}: expected the output of a mix, got none; run `toolkit mix`{not_in(folder)}")
    if not manifest.statistics and manifest.totals.rows:
        raise ConfigError(
            f"{publish.manifest_path(folder)}: expected statistics, got the manifest of an earlier version; "
            "delete it with the output, and run `toolkit mix`"
        )
    rows, _ = tables.mix_rows(manifest.statistics)
    data = {
        "output": folder,
        "labels": [
            {"label": label, "before": _numbers(each.before), "after": _numbers(each.after)}
            for label, each in manifest.statistics.items()
        ],
        "total": {"before": _numbers(rows[-1][1]), "after": _numbers(rows[-1][2])},
    }
    rendered = {"markdown": tables.mix_markdown(manifest.statistics) + "\n", "csv": tables.mix_csv(manifest.statistics)}
    return _delivered(context, rendered, data)


def _numbers(counts: Any) -> dict[str, int]:
    return {name: value for name, value in msgspec.to_builtins(counts).items() if value is not None}


def _output(context: Context) -> str:
    targets = context.options.targets
    if len(targets) > 1:
        raise ConfigError(f"expected one output with --mix, got {len(targets)}")
    if targets:
        return targets[0].rstrip("/")
    folder = mix_section.read(context).output.path
    if not is_folder(folder):
        raise ConfigError(
            f"{folder}: expected the output of a mix, got nothing there; run `toolkit mix`{not_in(folder)}"
        )
    return folder
