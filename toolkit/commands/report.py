"""Write a self-contained HTML report: inputs, rule effects, sizes, distributions, samples."""

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from json import JSONDecodeError, JSONDecoder
from typing import Annotated, Any, ClassVar, NamedTuple

import msgspec

from toolkit.aggregate.columns import folder_of
from toolkit.command_options import CommandResult, FailedResult, Flag, Limited, Looking, Words
from toolkit.commands import _mix_preparation as preparation
from toolkit.commands._mix_preparation import PreparedMix
from toolkit.config import settings as config
from toolkit.config.redaction import conceal, conceal_override
from toolkit.config.settings import ConfigNode
from toolkit.data import row_index
from toolkit.data.dataset import Dataset
from toolkit.describe import croissant
from toolkit.describe.provenance import counted
from toolkit.distribution import VERSION
from toolkit.errors import ConfigError, StepFailed, amount
from toolkit.execution.executors import Report, Task
from toolkit.execution.grouped import Work, log_of_dataset, run_batch
from toolkit.ingest.tables.arrow import NOT_FINITE
from toolkit.inspect import targets
from toolkit.mix import intermediates, plan, publication
from toolkit.mix.bindings import ShardToMix
from toolkit.mix.publication import unchanged_manifest
from toolkit.mix.rule_effects.counts import Totals, added
from toolkit.mix.rule_effects.preview import uneven_losses
from toolkit.mix.settings import MixSettings, OutputSettings, Stream
from toolkit.pages.report import render
from toolkit.records import ingested, origins, sets as records
from toolkit.records.origins import Origin
from toolkit.report import facts, output_facts, shard_stats
from toolkit.report.gather import MixInput, gather
from toolkit.stages.context import Context, Outcome, all_values
from toolkit.stages.dispatch import opened_apart
from toolkit.storage import outputs, record_log, store, store_of
from toolkit.storage.paths import check_writable, exists, join, size_of
from toolkit.storage.stores.local.scratch import scratch

LABELS = ("language.label", "text_language.label")
"""Where documents have their label, if there is no mix that says it: the first attribute that there is."""


class Reported(NamedTuple):
    """The facts of a run, their origin, and faults of the output."""

    facts: facts.Run
    origin: Origin
    faults: Sequence[str] = ()


def of_configuration(context: Context, name: str, share: float) -> Reported:
    """Return the facts of the mix of a configuration.

    Args:
        context: Context of the configuration.
        name: Name of the run.
        share: Share of the bytes of samples.

    Raises:
        ConfigError: for whatever is wrong with it.
        StepFailed: if shards cannot be read.
    """
    if context.is_dolma:
        advice = "give the folder of its output, or of its documents"
        raise ConfigError(f"{name}: expected a configuration of this toolkit, got one of Dolma's; {advice}")
    if not context.has("mix"):
        return of_dataset(context, context.dataset, name, share)
    return _of_mix(context, preparation.settings_of(context, writes=False), name, share)


def of_dataset(context: Context, dataset: Dataset, name: str, share: float) -> Reported:
    """Return the facts of a dataset with all its sets, without rules; arguments and errors as of `of_configuration`."""
    nowhere = join(dataset.bookkeeping, "report", "nowhere")
    stream = Stream.over(dataset, dataset.sets(), "report")
    output = OutputSettings(format="dolma", path=nowhere)
    settings = MixSettings(streams=[stream], output=output, options={}, label=_label_of(dataset))
    mix = _of_mix(context, settings, name, share)
    mix.facts.output = ""
    mix.facts.notes = [*mix.facts.notes[:-1], "There are no rules: all documents stay."]
    return mix


def _label_of(dataset: Dataset) -> str | None:
    """Return the expression of the label of a dataset's documents."""
    schemas = filter(None, (records.load_schema(dataset, item) for item in dataset.sets()))
    types = {key: type_ for schema in schemas for key, type_ in schema.types().items()}
    for path in LABELS:
        key = path.partition(".")[0]
        if key in types:
            return f"{path} if {key} is not None else None" if types[key].kind == "nullable" else path
    return None


def _of_mix(context: Context, settings: MixSettings, name: str, share: float) -> Reported:
    prepared = preparation.prepare(context, settings)
    if prepared.unreadable:
        raise StepFailed(*prepared.unreadable.values())
    _index(context, prepared.works)
    with intermediates.looking(settings):
        published = preparation.as_published(prepared)
    prepared = published or preparation.fill_budget(context, prepared)
    if prepared.unreadable:
        raise StepFailed(*prepared.unreadable.values())
    if not prepared.works:
        raise ConfigError("expected documents to report on, got none")
    with intermediates.looking(prepared.settings):
        manifest = unchanged_manifest(prepared.works)
    with scratch() as temporary:
        folders = _folders(context, prepared.works, temporary)
        context.sweep(*(folder for pair in folders.values() for folder in pair))
        mix = MixInput(
            name=name,
            settings=prepared.settings,
            works=prepared.works,
            sets=prepared.sets,
            budget=prepared.budget,
            manifest=manifest,
            config=text_of(context),
            folders=folders,
            temporary=temporary,
            share=share,
        )
        run = gather(mix, _runner(context))
    context.merge_records()
    run.complete = context.options.limit is None
    faults = list(_faults(prepared)) if manifest is None else []
    run.notes = [*_notes(context, prepared), *faults]
    if run.orphans:
        number = amount(sum(orphan.documents for orphan in run.orphans), "document")
        run.notes.append(f"{number} dropped as copies of documents that are not kept: their texts are lost.")
    if manifest is None:
        run.notes.append(_why_not_mixed(prepared, damaged=bool(faults), complete=run.complete))
    datasets = [stream.dataset for stream in prepared.settings.streams]
    run.notes += _made_null(prepared.works)
    return Reported(run, origins.origin_of(datasets), faults)


def _index(context: Context, works: Sequence[ShardToMix]) -> None:
    """Index the shards without an up-to-date index: else nobody can tell whether the mix is of them."""
    missing = [work for work in works if row_index.current(work.dataset, work.shard) is None]
    if missing:
        _runner(context)("making row indexes", _INDEX, [(work.name, work, work) for work in missing])


def _ensure(work: ShardToMix, report: Report, group: record_log.Group | None = None) -> None:
    state = row_index.ensure(work.dataset, work.shard, work.max_document_bytes, group)
    report(state.rows, 0)


_INDEX = Work(_ensure, partial(run_batch, _ensure, log_of_dataset))


def text_of(context: Context) -> str:
    """Return the text of a configuration with overrides, without secrets."""
    path = context.options.config
    if context.options.config_node is not None or path is None or not os.path.isfile(path):
        text = config.dump(context.source.value)
    else:
        with open(path, encoding="utf-8", errors="replace") as file:
            text = file.read()
    return conceal(text) + "".join(f"# {conceal_override(override)}\n" for override in context.options.overrides)


def _runner(context: Context) -> Callable[[str, Callable[..., Any], Sequence[tuple[str, Any, ShardToMix]]], list[Any]]:
    def run(title: str, function: Callable[..., Any], listed: Sequence[tuple[str, Any, ShardToMix]]) -> list[Any]:
        tasks = [Task(name, payload, size_of(work.path), key=work.key) for name, payload, work in listed]
        return all_values(context.run(title, function, tasks))

    return run


def _folders(context: Context, works: Sequence[ShardToMix], temporary: str) -> dict[str, tuple[str, str]]:
    """Return the folders of counts: in the records of each dataset, or, where they cannot be, for this run only."""
    results: dict[str, tuple[str, str]] = {}
    for bookkeeping in dict.fromkeys(work.dataset.bookkeeping for work in works):
        folder, columns = join(bookkeeping, "report", f"v{shard_stats.VERSION}"), folder_of(bookkeeping)
        try:
            check_writable(folder, "report")
        except ConfigError as error:
            if not context.options.quiet:
                print(f"warning: what is counted is not kept: {error}", file=sys.stderr)
            folder = columns = os.path.join(temporary, f"kept-{len(results)}")
        results[bookkeeping] = folder, columns
    return results


# --- what a reader must know ------------------------------------------------------------------------------------------


def _made_null(works: Sequence[ShardToMix]) -> list[str]:
    """Return a note on numbers now null, if any."""
    shards: dict[Dataset, list[str]] = {}
    for work in works:
        shards.setdefault(work.dataset, []).append(work.shard)
    counts = [row_index.counts(dataset, names) for dataset, names in shards.items()]
    counts += [record.counts for dataset in shards for _, record in ingested.load_all(dataset)]
    losses = counted({name: count for name, count in added(counts).items() if name.startswith(NOT_FINITE)})
    return [f"What came in had {losses}."] if losses else []


def _notes(context: Context, prepared: PreparedMix) -> list[str]:
    notes = [line for line in prepared.notes.strip().splitlines() if line]
    if context.options.limit is not None:
        notes.append(f"Only the first {amount(len(prepared.works), 'shard')} of {prepared.shards} were looked at.")
    return notes


def _faults(prepared: PreparedMix) -> Iterator[str]:
    """Yield the faults of an output of these settings."""
    folder = prepared.settings.output.path
    manifest = publication.load_manifest(folder)
    if manifest is None or publication.is_unfinished(folder) or manifest.settings != prepared.settings.recorded():
        return
    if fault := publication.fault_of(folder, manifest):
        yield fault
    elif prepared.settings.budget is None:  # whose bounds the digest has, too
        settings = prepared.settings
        inputs = sorted((entry.key, entry.documents, entry.attributes) for entry in manifest.inputs)
        digest = plan.digest_of(inputs, settings.stage_digest(), settings.output.part_size, list(manifest.omitted))
        if digest != manifest.digest:
            got = f"expected the digest {digest} of its inputs and settings, got {manifest.digest}"
            yield f"{publication.manifest_path(folder)}: {got}; run `toolkit mix`"


def _why_not_mixed(prepared: PreparedMix, *, damaged: bool, complete: bool) -> str:
    """Return the reason for missing figures of the mix."""
    folder = prepared.settings.output.path
    would = "Not mixed yet: figures show what the rules would keep, before edits"
    manifest = publication.load_manifest(folder)
    if manifest is None:
        return f"The mix has not been made. {would}."
    if damaged:
        return f"{would}."
    if publication.is_unfinished(folder):
        return f"The publication of {folder} is not complete. {would}; run `toolkit mix`."
    if manifest.settings != prepared.settings.recorded():
        other = _differs(manifest.settings, prepared.settings.recorded())
        return f"{folder} was made with other settings ({other}). {would}; run `toolkit mix`."
    if not complete:
        return f"{folder} was made from more shards than these. {would}."
    return f"{folder} was made from other inputs than the present ones. {would}; run `toolkit mix`."


def _differs(one: dict[str, Any], other: dict[str, Any]) -> str:
    """Return the names of different settings."""
    names = [name for name in dict.fromkeys([*one, *other]) if name != "streams" and one.get(name) != other.get(name)]
    streams = zip(one.get("streams", []), other.get("streams", []), strict=False)
    inner = [name for a, b in streams for name in dict.fromkeys([*a, *b]) if a.get(name) != b.get(name)]
    if len(one.get("streams", [])) != len(other.get("streams", [])):
        inner.append("streams")
    return ", ".join(dict.fromkeys([*inner, *names]))


SUFFIXES = (".html", ".json")


class RunSummary(msgspec.Struct, kw_only=True):
    """A run in a report: its name, whether it is mixed, its totals, and documents without attributes by set."""

    name: str
    mixed: bool
    totals: Totals
    missing: dict[str, str]


class ReportSummary(CommandResult, kw_only=True):
    """The result of `report`.

    Attributes:
        output: Path of the page, None if none was written.
        runs: Runs that it shows.
        notes: Remarks for its readers.
        failed: Faults of an output.
    """

    output: str | None
    runs: list[RunSummary]
    notes: list[str]
    failed: list[str]

    def for_python(self) -> facts.Report:
        """Return the facts of the page."""
        report: facts.Report = vars(self)["report"]
        return report


class Options(Looking, Limited, frozen=True, kw_only=True):
    """Options of ``toolkit report``.

    Attributes:
        targets: an output or a dataset, or two side by side; settings, which override those of the file
        compare: another configuration, output or dataset that is shown beside the first
        output: write to this file: .html, or .json for programs
        overwrite: replace a report on another dataset, or another file
        title: the title of the page

    Raises:
        ConfigError: for options that do not go together.
    """

    EXAMPLES: ClassVar = (
        "toolkit report -c configs/quickstart.yaml -o report.html",
        "toolkit report -c configs/quickstart.yaml --compare stricter.yaml -o both.html",
        "toolkit report data/quickstart/oscar -o report.html",
    )

    targets: Annotated[tuple[str, ...], Words()] = ()
    compare: Annotated[str | None, Flag(metavar="FILE")] = None
    output: Annotated[str | None, Flag("-o", "--output", metavar="FILE")] = "report.html"
    overwrite: Annotated[bool, Flag()] = False
    title: Annotated[str | None, Flag(metavar="TEXT")] = None
    other: ConfigNode | None = None
    """The other configuration itself, where it is in no file."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.output and not self.output.endswith(SUFFIXES):
            raise ConfigError(f"--output {self.output}: expected a file that ends in {' or '.join(SUFFIXES)}")
        if self.config is None and (self.limit is not None or len(self.targets) + (self.compare is not None) > 2):
            message = "--limit only with a configuration" if self.limit is not None else "one path, or two"
            raise ConfigError(f"expected {message}, got {' '.join(self.targets)}; -c names a configuration")

    @property
    def only_shows(self) -> bool:
        return True

    @property
    def keeps_indexes(self) -> bool:
        return True


def run(context: Context, options: Options) -> Outcome:
    """Gather the facts of one or two runs, and write the page."""
    file = outputs.NamedOutput(options.output, "--output") if options.output else None
    store.note_roots([os.path.dirname(os.path.abspath(options.output))] if options.output else [])
    try:
        results = _runs(context, options)
    except StepFailed as failed:
        text = f"{amount(len(failed.messages), 'shard')} cannot be read, so no report was written"
        messages = list(failed.messages)
        return Outcome(text=text, data=FailedResult(failed=messages), failures=messages)
    faults = [fault for item in results for fault in item.faults]
    result = [item.facts for item in results]
    labels = {label.label for run in result for label in run.labels}
    origin = origins.union(item.origin for item in results).without_places
    if file:
        _check_replaced(file.path, origin, overwrite=options.overwrite)
    report = facts.Report(
        origin=origin,
        title=options.title or " and ".join(run.name for run in result),
        toolkit=VERSION,
        languages=output_facts.languages_of(labels),
        runs=result,
    )
    for run in result:
        drops = [rule.labels for rule in run.rules if rule.role == "drops"]
        most = {size.label: max((by.get(size.label, (0,))[0] for by in drops), default=0) for size in run.labels}
        counts = {size.label: (size.before.documents, size.after.documents, most[size.label]) for size in run.labels}
        run.notes += uneven_losses(counts)
    if file:
        encoded = msgspec.json.encode(report)
        is_json = file.path.endswith(".json")
        file.save(encoded + b"\n" if is_json else render(encoded, _described(report.runs[0])))
    notes = [f"{run.name}: {note}" if len(result) > 1 else note for run in result for note in run.notes]
    runs = [RunSummary(name=run.name, mixed=run.mixed, totals=run.totals, missing=run.missing) for run in result]
    data = ReportSummary(output=options.output, runs=runs, notes=notes, failed=faults)
    vars(data)["report"] = report
    text = "\n".join([*filter(None, [options.output]), *(note for note in notes if note not in faults)])
    return Outcome(text=text, data=data, failures=faults)


def _check_replaced(path: str, origin: Origin, *, overwrite: bool) -> None:
    """Check the file to write; say what goes if it replaces a report on another dataset.

    Raises:
        ConfigError: if it is another file.
    """
    if not size_of(path):
        return
    earlier = origin_in(path)
    if earlier is None and not overwrite:
        raise ConfigError(
            f"{path}: expected no file, or a report on {origin}, got a file that `toolkit report` did not write; "
            "choose another path, or add --overwrite"
        )
    if replaced := origins.check(path, earlier, origin, "a report", overwrite=overwrite):
        print(replaced, file=sys.stderr)


def origin_in(path: str) -> Origin | None:
    """Return the origin of a report; None of another file."""
    text, mark = store_of(path).read(path).decode(errors="replace"), '"origin":'
    at = text.find(mark) + len(mark)
    try:
        return msgspec.convert(JSONDecoder().raw_decode(text, at)[0] if at >= len(mark) else None, Origin)
    except (JSONDecodeError, msgspec.ValidationError):
        return None


def _described(run: facts.Run) -> bytes | None:
    """Return the Croissant description of the output, for search engines; nothing where it has not.

    Raises:
        ConfigError: if the file is no JSON.
    """
    path = join(run.output, croissant.NAME)
    if not run.mixed or not exists(path):
        return None
    data = store_of(path).read(path)
    try:
        msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: expected JSON, got: {error}; run `toolkit croissant` again") from None
    return data


def _runs(context: Context, options: Options) -> list[Reported]:
    paths = [*options.targets, *([options.compare] if options.compare is not None else [])]
    share = 1 / (len(paths) + (options.config is not None))
    results = []
    if options.config is not None:
        results.append(of_configuration(context, _name(options.config), share))
    for other in paths:
        results.append(_other(context, options, other.rstrip("/"), share))
    return results


def _other(context: Context, options: Options, path: str, share: float) -> Reported:
    """Return the facts of an output, or of another configuration's mix."""
    if options.other is None and not path.endswith((".yaml", ".yml")) and not path.startswith("recipe:"):
        target = targets.expected(path)
        if target.kind == "dataset":
            dataset = Dataset(join(path, "documents"), join(path, "attributes"))
            return of_dataset(context, dataset, _name(path), share)
        if target.kind != "output":
            raise ConfigError(f"{path}: expected a dataset, or the output of a mix, got {target.kind}")
        return _of_output(path)
    options = msgspec.structs.replace(options, config=path, targets=(), overrides=(), config_node=options.other)
    with opened_apart(options) as opened:
        return of_configuration(opened, _name(path), share)


def _of_output(folder: str) -> Reported:
    run = output_facts.run_of_output(folder, _name(folder))
    manifest = publication.load_manifest(folder)
    fault = publication.fault_of(folder, manifest) if manifest else ""
    return Reported(run, publication.origin_of(folder) or Origin(datasets={}), [fault] if fault else [])


def _name(path: str) -> str:
    return os.path.basename(path.rstrip("/")).removesuffix(".yaml").removesuffix(".yml") or path
