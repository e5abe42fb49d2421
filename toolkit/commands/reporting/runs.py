"""The runs of which a report is: of a configuration's mix, or of an output."""

import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from toolkit.commands.mixing import budgets, preparation
from toolkit.commands.mixing.preparation import PreparedMix
from toolkit.commands.steps.context import Context
from toolkit.commands.steps.outcome import StepFailed, all_values
from toolkit.config import settings as config
from toolkit.config.concealing import concealed, concealed_override
from toolkit.data import row_index
from toolkit.data.dataset import Dataset
from toolkit.errors import ConfigError, amount
from toolkit.mix import plan, publish, stage, unchanged
from toolkit.mix.join import ShardToMix
from toolkit.mix.settings import Joined, MixSettings, OutputSettings, Stream
from toolkit.records import origins
from toolkit.records import sets as records
from toolkit.records.origins import Origin
from toolkit.report import facts
from toolkit.report.gather import Gathered, gather
from toolkit.report.one_shard import VERSION
from toolkit.runs.executors import Report, Task
from toolkit.storage.paths import check_writable, join, size_of

LABELS = ("language.label", "text_language.label")
"""Where documents have their label, if there is no mix that says it: the first attribute that there is."""


class Reported(NamedTuple):
    """The facts of a run, what they are on, and what is wrong with its output."""

    facts: facts.Run
    origin: Origin
    faults: Sequence[str] = ()


def of_configuration(context: Context, name: str, share: float) -> Reported:
    """Return the facts of the mix of a configuration.

    Args:
        context: of the configuration.
        name: of the run.
        share: of the bytes of samples.

    Raises:
        ConfigError: for whatever is wrong with it.
        StepFailed: if shards cannot be read.
    """
    if context.is_dolma:
        raise ConfigError(f"{name}: expected a configuration of this toolkit, got one of Dolma's")
    if not context.has("mix"):
        return of_dataset(context, context.dataset, name, share)
    return _of_mix(context, preparation.settings_of(context, writes=False), name, share)


def of_dataset(context: Context, dataset: Dataset, name: str, share: float) -> Reported:
    """Return the facts of a dataset with all its sets, without rules; arguments and errors as of `of_configuration`."""
    joined = [Joined(set=each, place="report") for each in dataset.sets()]
    nowhere = join(dataset.bookkeeping, "report", "nowhere")
    stream = Stream(name="", dataset=dataset, attributes=joined, rules=[], same_keys="later")
    output = OutputSettings(format="dolma", path=nowhere)
    settings = MixSettings(streams=[stream], output=output, options={}, label=_label_of(dataset))
    found = _of_mix(context, settings, name, share)
    found.facts.output = ""
    found.facts.notes = [*found.facts.notes[:-1], "There are no rules: all documents stay."]
    return found


def _label_of(dataset: Dataset) -> str | None:
    """Return the expression of the label of a dataset's documents, by what its sets are called."""
    schemas = filter(None, (records.load_schema(dataset, each) for each in dataset.sets()))
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
    with stage.looking(settings):
        published = budgets.as_published(prepared)
    prepared = published or budgets.fill(context, prepared)
    if prepared.unreadable:
        raise StepFailed(*prepared.unreadable.values())
    if not prepared.works:
        raise ConfigError("expected documents to report on, got none")
    with stage.looking(prepared.settings):
        manifest = unchanged.whole(prepared.works)
    with tempfile.TemporaryDirectory(prefix="toolkit-report-") as temporary:
        folders = _folders(context, prepared.works, temporary)
        context.sweep(*folders.values())
        given = Gathered(
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
        found = gather(given, _runner(context))
    context.merge_records()
    found.complete = context.options.limit is None
    faults = list(_faults(prepared)) if manifest is None else []
    found.notes = [*_notes(context, prepared), *faults]
    if found.orphans:
        number = amount(sum(each.documents for each in found.orphans), "document")
        found.notes.append(f"{number} dropped as copies of documents that are not kept: their texts are lost.")
    if manifest is None:
        found.notes.append(_why_not_mixed(prepared, damaged=bool(faults), complete=found.complete))
    datasets = [stream.dataset for stream in prepared.settings.streams]
    return Reported(found, origins.origin_of(datasets), faults)


def _index(context: Context, works: Sequence[ShardToMix]) -> None:
    """Index the shards that are not indexed as they are now: else nobody can tell whether the mix is of them."""
    left = [work for work in works if row_index.current(work.dataset, work.shard) is None]
    if left:
        _runner(context)("index", _ensure, [(work.name, work, work) for work in left])


def _ensure(work: ShardToMix, report: Report) -> None:
    state = row_index.ensure(work.dataset, work.shard, work.max_document_bytes)
    report(state.rows, 0)


def text_of(context: Context) -> str:
    """Return the text of a configuration, with what overrides it, and without secrets."""
    path = context.options.config
    if context.options.given is not None or path is None or not os.path.isfile(path):
        text = config.dump(context.source.value)
    else:
        with open(path, encoding="utf-8", errors="replace") as file:
            text = file.read()
    return concealed(text) + "".join(f"# {concealed_override(each)}\n" for each in context.options.overrides)


def _runner(context: Context) -> Callable[[str, Callable[..., Any], Sequence[tuple[str, Any, ShardToMix]]], list[Any]]:
    def run(what: str, function: Callable[..., Any], listed: Sequence[tuple[str, Any, ShardToMix]]) -> list[Any]:
        tasks = [Task(name, payload, size_of(work.path), key=work.key) for name, payload, work in listed]
        return all_values(context.run(what, function, tasks))

    return run


def _folders(context: Context, works: Sequence[ShardToMix], temporary: str) -> dict[str, str]:
    """Return where counts are kept: in the records of each dataset, or, where they cannot be, for this run only."""
    found: dict[str, str] = {}
    for bookkeeping in dict.fromkeys(work.dataset.bookkeeping for work in works):
        folder = join(bookkeeping, "report", f"v{VERSION}")
        try:
            check_writable(folder, "report")
        except ConfigError as error:
            if not context.options.quiet:
                print(f"warning: what is counted is not kept: {error}", file=sys.stderr)
            folder = os.path.join(temporary, f"kept-{len(found)}")
        found[bookkeeping] = folder
    return found


# --- what a reader must know ------------------------------------------------------------------------------------------


def _notes(context: Context, prepared: PreparedMix) -> list[str]:
    notes = [line for line in prepared.notes.strip().splitlines() if line]
    if context.options.limit is not None:
        notes.append(f"Only the first {amount(len(prepared.works), 'shard')} of {prepared.known} were looked at.")
    return notes


def _faults(prepared: PreparedMix) -> Iterator[str]:
    """Yield what is wrong with an output that these settings made."""
    folder = prepared.settings.output.path
    made = publish.load_manifest(folder)
    if made is None or publish.is_unfinished(folder) or made.settings != prepared.settings.recorded():
        return
    if fault := publish.fault_of(folder, made):
        yield fault
    elif prepared.settings.budget is None:  # whose bounds the digest has, too
        settings = prepared.settings
        inputs = sorted((entry.key, entry.documents, entry.attributes) for entry in made.inputs)
        digest = plan.digest_of(inputs, settings.stage_digest(), settings.output.part_size, list(made.omitted))
        if digest != made.digest:
            got = f"expected the digest {digest} of its inputs and settings, got {made.digest}"
            yield f"{publish.manifest_path(folder)}: {got}; run `toolkit mix`"


def _why_not_mixed(prepared: PreparedMix, *, damaged: bool, complete: bool) -> str:
    """Return why what is shown of the documents that stay is what would stay, and not what was written."""
    folder = prepared.settings.output.path
    would = "What stays is what these rules would keep, with the texts as they are before edits"
    made = publish.load_manifest(folder)
    if made is None:
        return f"The mix has not been made. {would}."
    if damaged:
        return f"{would}."
    if publish.is_unfinished(folder):
        return f"The publication of {folder} is not complete. {would}; run `toolkit mix`."
    if made.settings != prepared.settings.recorded():
        other = _differs(made.settings, prepared.settings.recorded())
        return f"{folder} was made with other settings ({other}). {would}; run `toolkit mix`."
    if not complete:
        return f"{folder} was made from more shards than these. {would}."
    return f"{folder} was made from other inputs than the present ones. {would}; run `toolkit mix`."


def _differs(one: dict[str, Any], other: dict[str, Any]) -> str:
    """Return which settings differ, by name."""
    names = [name for name in dict.fromkeys([*one, *other]) if name != "streams" and one.get(name) != other.get(name)]
    streams = zip(one.get("streams", []), other.get("streams", []), strict=False)
    inner = [name for a, b in streams for name in dict.fromkeys([*a, *b]) if a.get(name) != b.get(name)]
    if len(one.get("streams", [])) != len(other.get("streams", [])):
        inner.append("streams")
    return ", ".join(dict.fromkeys([*inner, *names]))
