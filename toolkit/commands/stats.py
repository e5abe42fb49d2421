"""``toolkit stats``: how much there is of what, and how attributes are distributed."""

import tempfile
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

import msgspec

from toolkit import records
from toolkit.commands import Context, Outcome, failures
from toolkit.commands.counted import prepare
from toolkit.errors import ConfigError, did_you_mean
from toolkit.executors import Task
from toolkit.mixing import publish
from toolkit.mixing import settings as mix_settings
from toolkit.paths import is_folder, join, size_of
from toolkit.rules import Rule
from toolkit.stats import groups, plots, shard, tables
from toolkit.stats.distributions import Distribution, Distributions, together
from toolkit.stats.histograms import Histogram, text
from toolkit.stats.shard import Record, Settings, Work
from toolkit.stats.sketch import Sketch
from toolkit.stats.thresholds import thresholds
from toolkit.streams import write_file

FORMATS = {".md": "markdown", ".csv": "csv", ".json": "json"}

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
            message = f"{len(broken)} of {len(tasks)} {counting.unit} failed; those that did not are not read again"
            return Outcome(text=message, data={"failed": broken}, failures=broken, exit_code=1)
        distributions = _distributions(counting.works)
        if options.histogram:
            return _histogram(context, options.histogram, distributions, counting.rules)
        found = [
            tables.Table.of(by, _merged(counting.works, number, join(temporary, f"all-{number}")), options.top,
                            unicode=settings.unicode)
            for number, by in enumerate(settings.by)
        ]  # fmt: skip
    skipped = sum(result.value.skipped for result in results if result.value)
    data = {
        "inputs": {"files": len(tasks), "read": len(tasks) - skipped},
        "tables": [table.data() for table in found],
        "attributes": tables.distributions_data(distributions),
    }
    rendered = _rendered(context, found, distributions)
    return _delivered(context, rendered, data, counting.notes)


def _check(context: Context) -> None:
    """Raises ConfigError for options that do not go together, or that need a package which is not there."""
    options = context.options
    if options.output:
        known = plots.PICTURES if options.histogram else tuple(FORMATS)
        if not options.output.endswith(known):
            raise ConfigError(f"--output {options.output}: expected a file that ends in {', '.join(known)}")
    if options.histogram or options.attributes:
        Sketch()
    if options.histogram and options.output:
        plots.check_installed()
    if options.histogram and (options.by or options.attributes or options.mix):
        raise ConfigError("expected --histogram without --by, --attribute and --mix")
    if options.mix and (options.by or options.attributes or options.label or options.first or options.unicode_words):
        raise ConfigError("expected --mix by itself: it shows what the mix has noted, and reads nothing")


def _rendered(context: Context, found: list[tables.Table], distributions: list[Distribution]) -> dict[str, str]:
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
    if not path:
        return Outcome(text=(rendered[context.options.format] + notes).rstrip(), data=data)
    kind = next(kind for suffix, kind in FORMATS.items() if path.endswith(suffix))
    write_file(path, rendered[kind].encode())
    return Outcome(text=path + notes, data=data)


# --- merging ----------------------------------------------------------------------------------------------------------


def _merged(works: Iterable[Work], number: int, folder: str) -> Iterable[groups.Group]:
    """The groups of all files for the ``--by`` of that number."""
    merged = groups.Groups(folder)
    for work in works:
        rows: Iterator[groups.Group] = groups.read(work.groups_path(number))
        while some := list(islice(rows, MERGED)):
            merged.add_sums([key for key, _ in some], [row for _, row in some])
    return merged


def _distributions(works: Iterable[Work]) -> list[Distribution]:
    merged = Distributions()
    for work in works:
        if work.settings.attributes:
            record = records.load_strictly(work.record_path, Record)
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
        raise ConfigError(f"{folder}: expected the output of a mix, got none; run `toolkit mix`")
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
    found = mix_settings.read_section(context.section("mix"), context.folder, lambda: context.dataset)
    if not is_folder(found.output.path):
        raise ConfigError(f"{found.output.path}: expected the output of a mix, got nothing there; run `toolkit mix`")
    return found.output.path
