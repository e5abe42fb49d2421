"""Join documents and attributes, apply the rules, and write the output."""

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from itertools import chain
from typing import TYPE_CHECKING, Annotated

import msgspec

from toolkit.command_options import Configured, Flag, StageOptions, natural
from toolkit.commands import (
    _mix_finish as publishing,
    _mix_preparation as preparation,
    _sections as sections,
    _tag_sample as using,
)
from toolkit.commands._mix_finish import MixResult
from toolkit.commands._mix_preparation import PreparedMix
from toolkit.config.settings import ConfigNode
from toolkit.data import row_index
from toolkit.data.dataset import Dataset
from toolkit.describe.provenance import counted
from toolkit.errors import ConfigError, DataError, NothingThere, ToolkitError, amount, few
from toolkit.execution.executors import Task
from toolkit.execution.grouped import shard_tasks
from toolkit.mix import bindings, intermediates, join, lock, publication
from toolkit.mix.join import JoinedSet
from toolkit.mix.publication import Manifest, is_unchanged, unchanged_manifest
from toolkit.mix.rule_effects.counts import added
from toolkit.mix.settings import TOKENS as FORMAT, MixSettings, Stream
from toolkit.records import external_sets, sets
from toolkit.records.failures import FailureRecords
from toolkit.records.origins import Origin
from toolkit.stages.context import Context, Outcome, with_share
from toolkit.stages.declaration import Checked, Declaration, Look, Progress
from toolkit.stages.disk_quota import DOCUMENT, FILES, NO_DISK, DiskEstimate, DiskUse, EstimateOf, text_of
from toolkit.stages.set_state import state_of
from toolkit.stages.tasks import skip_finished
from toolkit.storage import freshness
from toolkit.storage.addresses import reveal_url
from toolkit.storage.outputs import NamedOutput
from toolkit.storage.paths import absolute, exists, size_of, work_folder
from toolkit.storage.store import note_roots
from toolkit.storage.threads import results_of

if TYPE_CHECKING:
    from toolkit.commands._mix_previews import SampleChoice


class Locking(Configured, StageOptions, frozen=True, kw_only=True):
    """Options of commands with a published output.

    Attributes:
        lock: write a lock: digests of all that the output was made from, and of its parts (without FILE:
            OUTPUT.lock.json)
        locked: make the output only if all is as this lock says; otherwise name what differs, and write nothing
    """

    lock: Annotated[str | None, Flag(metavar="FILE", alone="")] = None
    locked: Annotated[str | None, Flag(metavar="FILE")] = None

    def __post_init__(self) -> None:
        if self.lock is not None and self.dry_run:
            raise ConfigError("expected --lock without --dry-run: a lock is of an output")
        if self.lock and "=" in self.lock and not self.lock.endswith(".json"):
            raise ConfigError(f"expected the path of a file after --lock, got {self.lock}; put settings before it")
        for option, value in (("lock", self.lock), ("locked", self.locked)):
            if value is not None and self.shard is not None:
                raise ConfigError(
                    f"expected --{option} without --shard; give it to the last step, which publishes the output"
                )


def begin(context: Context, options: Locking) -> dict[str, NamedOutput]:
    """Check the mix and its editions against their locks. Nothing has been written yet.

    Return the locks to write, by edition.

    Raises:
        ConfigError: if they are not, with each difference; if a lock cannot be written, or there is none.
    """
    if options.lock is None and options.locked is None:
        return {}
    note_roots(os.path.dirname(path) or "." for path in (options.lock, options.locked) if path)
    if context.is_dolma:
        raise ConfigError("--lock and --locked take configurations of our own form, this one is of Dolma's")
    outputs, differences = dict[str, NamedOutput](), list[str]()
    mixes: dict[str, AbstractContextManager[Context]] = {"": nullcontext(context), **sections.editions(context)}
    for name, mix in mixes.items():
        with mix as own:
            settings = preparation.settings_of(own, writes=False)
            if options.lock is not None:
                outputs[name] = _output(options, settings, options.lock, name)
            if options.locked is not None:
                lines = _differences(own, settings, _path(settings, options.locked, name))
                differences += [f"edition {name}: {line}" if name else line for line in lines]
    if differences:
        message = f"{options.locked}: expected what the lock describes, got something else; nothing was written:"
        raise ConfigError("\n  ".join([message, *differences, "make it as it was, or choose another lock"]))
    return outputs


def _output(options: Locking, settings: MixSettings, argument: str, edition: str) -> NamedOutput:
    """Return the lock to write."""
    path, output = _path(settings, argument, edition), absolute(settings.output.path)
    if absolute(path).startswith(f"{output}/"):
        raise ConfigError(f"{path}: expected a file outside the output {output}, which holds only its own files")
    named = NamedOutput(path, "--lock")
    if size_of(path) and not options.overwrite:
        _check_lock(settings, path)
    return named


def _check_lock(settings: MixSettings, path: str) -> None:
    """Check the owner of a lock: this output, or the same dataset.

    Raises:
        ConfigError: if it is another file.
    """
    way_out = "would be replaced; choose another file, or add --overwrite"
    try:
        existing = lock.load(path)
    except ConfigError:
        raise ConfigError(
            f"{path}: expected no file, or a lock of this dataset, got a file that is no lock, or a lock that somebody "
            f"has changed, which {way_out}"
        ) from None
    origin = Origin(datasets={}, shards=lock.contents_of(existing))
    if origin.is_of([stream.dataset for stream in settings.streams]):
        return
    published = publication.load_manifest(settings.output.path)
    if not published or _lock(settings, published) != existing:
        documents = amount(sum(shard.documents for shard in existing.documents.values()), "document")
        raise ConfigError(
            f"{path}: expected no file, or a lock of this dataset, got a lock of other documents ({documents}, in "
            f"{few(sorted(existing.documents))}), which {way_out}"
        )


def _differences(context: Context, settings: MixSettings, path: str) -> list[str]:
    expected = lock.load(path)
    prepared = preparation.prepare(context, settings)
    results = context.run(
        "taking digests of the inputs", lock.input_of, [Task(work.name, work, key=work.key) for work in prepared.works]
    )
    broken = [*prepared.unreadable.values(), *(result.failure.message for result in results if result.failure)]
    if broken:
        raise ToolkitError(
            "\n  ".join([f"{path}: the shards could not be compared with it; nothing was written:", *broken])
        )
    manifest = publishing.begun(prepared, [result.value for result in results if result.value])
    result = msgspec.structs.replace(_lock(settings, manifest), omitted=expected.omitted)
    return lock.differences(expected, result)


def finish(
    context: Context, options: Locking, outcome: Outcome, locks: Mapping[str, NamedOutput], edition: str = ""
) -> None:
    """Compare a published output with its lock, and write its lock.

    Args:
        context: Context of the mix, or of an edition.
        options: Options of the command.
        outcome: Outcome of it, to which this is added: parts that differ are failures.
        locks: Result of `begin`.
        edition: Name.
    """
    if not getattr(outcome.data, "published", False) or (options.lock is None and options.locked is None):
        return
    settings = sections.mix(context)
    manifest = publication.load_manifest(settings.output.path)
    assert manifest is not None, "it was just published"
    result = _lock(settings, manifest)
    if options.locked is not None:
        path = _path(settings, options.locked, edition)
        expected = lock.load(path)
        if broken := lock.part_differences(expected, result):
            outcome.failures += [f"{settings.output.path}: {line}, by {path}" for line in broken]
            outcome.exit_code = 1
        else:
            outcome.text += f"\n\n{settings.output.path} is what {path} describes"
    if output := locks.get(edition):
        lock.save(output, result)
        outcome.text += f"\n\nlock -> {output.path}"
        outcome.data.lock = output.path


def _lock(settings: MixSettings, manifest: Manifest) -> lock.Lock:
    return lock.lock_of(manifest, concatenates=settings.writer().CONCATENATES)


def _path(settings: MixSettings, path: str, edition: str) -> str:
    """Return the path of a lock: beside the output if none is given; that of an edition has its name in it."""
    if not path:
        return f"{settings.output.path.rstrip('/')}.lock.json"
    stem, ending = os.path.splitext(path)
    return f"{stem}.{edition}{ending}" if edition else path


class Options(Locking, frozen=True, kw_only=True):
    """Options of ``toolkit mix``.

    Attributes:
        explain: show why the rules keep or drop the document of this id or URL, or N documents of each rule (-n)
        compare: show which documents the mix of another configuration would change
        count: number of documents shown for each rule or change (3)
        rule: show documents of this rule only
        seed: show a random sample with this seed, instead of the first documents
        sample: look at the sample that `tag --sample` has made, instead of all documents
    """

    explain: Annotated[str | None, Flag(metavar="ID|URL|N", parse=reveal_url, alone="")] = None
    compare: Annotated[str | None, Flag(metavar="FILE")] = None
    count: Annotated[int, Flag("-n", metavar="N")] = 3
    rule: Annotated[str | None, Flag(metavar="NAME")] = None
    seed: Annotated[int | None, Flag(parse=natural, metavar="N")] = None
    sample: Annotated[bool, Flag()] = False
    other: ConfigNode | None = None
    """The other configuration itself, where it is in no file."""

    def __post_init__(self) -> None:
        Locking.__post_init__(self)
        looks = self.explain is not None or self.compare is not None
        if looks and (self.lock is not None or self.locked is not None):
            raise ConfigError("expected --lock and --locked without --explain and --compare, which write no output")
        for option, value in (("rule", self.rule), ("seed", self.seed)):
            if value is not None and self.explain is None and self.compare is None:
                raise ConfigError(f"expected --{option} only with --explain or --compare")

    @property
    def selection(self) -> "SampleChoice":
        """Return the selection of documents to show."""
        from toolkit.commands._mix_previews import SampleChoice

        samples = int(self.explain) if self.explain and self.explain.isdecimal() and int(self.explain) else self.count
        return SampleChoice(samples, self.rule, self.seed)

    @property
    def only_shows(self) -> bool:
        return self.dry_run or self.explain is not None or self.compare is not None


def run(context: Context, options: Options) -> Outcome:
    """Make the mix, then its editions; `--explain` and `--compare` are about the mix alone."""
    outputs = begin(context, options)
    outcome = _run(context, options)
    finish(context, options, outcome, outputs)
    if options.explain is not None or options.compare is not None:
        return outcome
    for name, edition in sections.editions(context).items():
        if outcome.exit_code:
            outcome.text += f"\n\nstopped before the edition {name}"
            break
        with edition:
            more = _run(edition, options)
            finish(edition, options, more, outputs, name)
        outcome.text += f"\n\nedition {name}:\n{more.text}"
        outcome.data.editions = (outcome.data.editions or {}) | {name: more.data}
        outcome.failures += more.failures
        outcome.exit_code = max(outcome.exit_code, more.exit_code)
    return outcome


def _run(context: Context, options: Options) -> Outcome:
    """Mix: stage 1 per shard, plan, stage 2 per part, publication."""
    if context.is_dolma:
        if options.compare:
            raise ConfigError("--compare takes configurations of our own form, this one is of Dolma's")
        from toolkit.commands import _dolma as dolma

        return dolma.run(context, options, run)
    settings = preparation.settings_of(context, writes=not options.only_shows)
    output = settings.output.path
    if replaced := preparation.check_output(context, settings):
        print(replaced, file=sys.stderr)
    over = ""
    if options.only_shows:
        settings, over = using.in_mix(context, settings, requested=options.sample)
    elif options.sample:
        raise ConfigError("expected --sample only with --dry-run, --explain or --compare: a mix takes all documents")
    else:
        using.refuse(context, settings)
    if why := _waits_for(context, settings):
        text = f"{context.named}{output} is not begun: {why}; {context.next_step}"
        return Outcome(text=text, data=MixResult(output=output, published=False, shards=0, failed=[]))
    prepared = preparation.fill_budget(context, preparation.prepare(context, settings))
    settings = prepared.settings
    if context.share and not (prepared.works or prepared.unreadable):
        data = MixResult(output=output, published=False, shards=0, failed=[])
        return Outcome(text=context.share.nothing(), data=data)
    if options.only_shows:
        return _look(context, options, prepared, over)
    if context.only_per_shard:
        with context.lease_output(output, settings.stage_digest()):
            return _first_stage(context, prepared)
    publishing.check_limit(context, output, len(prepared.works) + len(prepared.unreadable), prepared.shards)
    if prepared.unreadable and settings.on_failed_shard == "stop":
        return publishing.failed(output, list(prepared.unreadable.values()))
    with context.lease_output(output):
        outcome = _mix(context, prepared)
    outcome.text += prepared.notes
    _add_read_in_place(outcome, prepared)
    return outcome


def _add_read_in_place(outcome: Outcome, prepared: PreparedMix) -> None:
    """Add the counts of items left out or changed by readers. The readers are those of files in place."""
    shards: dict[Dataset, list[str]] = {}
    for work in prepared.works:
        shards.setdefault(work.dataset, []).append(work.shard)
    counts = added(row_index.counts(dataset, names) for dataset, names in shards.items())
    outcome.data.read_in_place = {name: count for name, count in counts.items() if name != "documents"}
    outcome.text += f"\n\nread in place: {text}" if (text := counted(counts)) else ""


def _waits_for(context: Context, settings: MixSettings) -> str:
    """Return the inputs needed by the mix and not complete; may be empty. They depend on shards that the run does not
    have.
    """
    own = [stream for stream in settings.streams if context.waiting and stream.dataset == context.dataset]
    if waits := context.waiting & {joined.set for stream in own for joined in stream.attributes}:
        return f"it joins {', '.join(sorted(waits))}, made of all shards together"
    if context.only_per_shard and settings.budget:
        return f"the budget of {settings.budget.unit} depends on all shards"
    if context.is_broken and settings.streams[0].weight is not None:  # a share is refused
        return "the weights of its streams depend on all shards"
    return ""


def _look(context: Context, options: Options, prepared: PreparedMix, over: str) -> Outcome:
    """Show the effects of the mix. `over` names a sample in place of all documents."""
    from toolkit.commands import _mix_previews as previews

    if options.compare is not None:
        outcome = previews.compare(
            context, prepared, options.compare, options.selection, options.other, sampled=bool(over)
        )
    elif options.explain is not None:
        target = options.explain
        is_id = bool(target) and (not target.isdecimal() or previews.has_id(prepared, target))
        outcome = previews.explain(context, prepared, target if is_id else None, options.selection)
    else:
        outcome = with_share(context, previews.dry_run(context, prepared))
        _add_read_in_place(outcome, prepared)
    outcome.exit_code = max(outcome.exit_code, *(2 if isinstance(e, ConfigError) else 1 for e in prepared.refused), 0)
    outcome.data.sample = over or None
    outcome.text = f"{over}\n{outcome.text}" if over else outcome.text
    return outcome


def _encode(context: Context, prepared: PreparedMix, *, whole: bool) -> tuple[Manifest | None, bool, list[str]]:
    """Run the first stage of a mix.

    Args:
        context: Context of the configuration.
        prepared: Mix.
        whole: True if it is of all shards.

    Returns:
        The manifest of one that is published already; whether there was anything to do; messages of shards that failed,
        which are then among those that the mix leaves out.
    """
    settings, listed = prepared.settings, prepared.works
    output = settings.output.path
    context.sweep(output, *{stream.dataset.bookkeeping: None for stream in settings.streams})
    if whole:
        publication.finish_interrupted(output)
    with intermediates.looking(settings):
        manifest = unchanged_manifest(listed) if whole and listed and not prepared.unreadable else None
        if manifest:
            return manifest, False, []
        failure_records = FailureRecords(work_folder(output), "mix")
        works = listed if whole or not is_unchanged(listed) else []
        todo, finished = skip_finished(works, intermediates.as_it_was, failure_records, lambda work: size_of(work.path))
        tasks = shard_tasks(todo)
    needs = _needs(context, tasks)
    intermediates.records_of(output, settings.stage_digest())  # which the end of the command will merge
    results = context.run(
        "mix", intermediates.WORK, tasks, spreads=True, failed=failure_records, needs=needs, finished=finished
    )
    if whole:
        failure_records.keep_only(chain((work.key for work in listed), prepared.unreadable))
    broken = {work.key: result.failure.message for work, result in zip(todo, results, strict=True) if result.failure}
    prepared.unreadable |= broken
    return None, bool(todo or finished), [*broken.values()]


def _mix(context: Context, prepared: PreparedMix) -> Outcome:
    settings = prepared.settings
    manifest, _, broken = _encode(context, prepared, whole=True)
    if manifest:
        return publishing.already(context, settings, manifest)
    if broken and settings.on_failed_shard == "stop":
        return publishing.failed(settings.output.path, broken)
    return publishing.finish(context, prepared, prepared.unreadable)


def _first_stage(context: Context, prepared: PreparedMix) -> Outcome:
    """Run the first stage for some of the shards. A mix of all finishes it."""
    output = prepared.settings.output.path
    _, is_new, failed = _encode(context, prepared, whole=False)
    broken, ready = [*prepared.unreadable.values()], len(prepared.works) - len(failed)
    are = f"{amount(ready, 'shard')} {'is' if ready == 1 else 'are'}"
    text = f"{context.named}{are} published in {output}"
    if context.is_broken:
        text = f"{context.named}nothing was published in {output}, for which {are} ready; {context.next_step}"
    elif is_new or broken:
        text = f"{context.named}{are} ready for {output}, {len(broken)} failed; {context.next_step}"
    text += prepared.notes
    data = MixResult(output=output, published=False, shards=len(prepared.works), failed=broken)
    return Outcome(text=text, data=data, failures=broken)


# --- as a stage -------------------------------------------------------------------------------------------------------


Mixes = Callable[[Context], Mapping[str, Context]]
"""The contexts of mixes in a configuration, by name."""


def progress(look: Look, mixes: Mixes = sections.mix_and_editions) -> Iterator[Progress]:
    """Yield the progress of mixes and their publication."""
    for name, context in mixes(look.context).items():
        yield from _progress(look, name, sections.mix(context))


def _progress(look: Look, name: str, settings: MixSettings) -> Iterator[Progress]:
    published: publication.Published = look.published[name]
    reason = settings.needs_all_shards
    by_stream = {stream.name: _works(look, settings, stream) for stream in settings.streams}
    listed = (work for works in by_stream.values() for work in works or () if work.key not in look.deleted)
    stale, listed_inputs = _stale(look, settings), intermediates.listed_inputs()

    def quick(work: bindings.ShardToMix) -> tuple[str, bool] | None:
        """Return the result of `cause` for a published shard, by listings alone."""
        inputs = None if work.stream.name in stale else listed_inputs(work)
        return ("", True) if inputs and published.has(work, inputs) else None

    def cause(work: bindings.ShardToMix) -> tuple[str, bool]:
        """Return the reason of an unfinished shard, and True if published."""
        try:
            if why := stale.get(work.stream.name):
                raise why
            documents, attributes = _inputs(work)
        except ToolkitError as error:
            return str(error), False
        if published.has(work, (documents, attributes)):
            return "", True
        if not reason and intermediates.made_from(
            work, documents, attributes
        ):  # whose settings count shares and bounds
            return "", False
        if published.fault:
            return "what was made from it is damaged", False
        return "made from something that has changed" if published.knows(work) else "not begun", False

    causes, published_count = dict[str, str](), sum(look.deleted.values())
    for work, (why, is_in) in results_of(cause, listed, quick):
        causes[work.key] = why
        published_count += is_in
    if None in by_stream.values() and not causes and not look.deleted:
        yield Progress(name, unknown="there are no documents yet; run `toolkit ingest`")
        return
    output, is_done = settings.output.path, published.shards == published_count == len(causes) + len(look.deleted)
    command = sections.command_of(name)
    if reason and not is_done:
        depends = f"{reason} {'depend' if reason.endswith('s') else 'depends'} on all shards"
        yield Progress(name, unknown=f"{depends}: `toolkit {command} --dry-run` looks at them")
        return
    yield Progress(name, "mix", causes | dict.fromkeys(sorted(look.deleted), ""))
    if look.context.in_part:
        return
    failed = {} if is_done else FailureRecords(work_folder(output), "write").load()
    why = "" if is_done else published.fault or f"`toolkit {command}` puts the parts together"
    broken = {key: record.message for key, record in failed.items()}
    publishing = "publish" if name == "mix" else f"publish of {name}"
    yield Progress(publishing, "write", {} if failed else {output: why}, failed=broken, is_one=True)


def _stale(look: Look, settings: MixSettings) -> dict[str, DataError]:
    """Return the error of a set of each stream. Streams without an error have none."""
    stale: dict[str, DataError] = {}
    for stream in settings.streams:
        states: dict[str, freshness.State] = {}
        complete = not look.context.in_part and not look.deleted
        with suppress(NothingThere):
            shards = look.shards(stream.dataset)
            for joined in stream.attributes:
                state = state_of(stream.dataset, joined.set, shards, complete=complete, states=states)
                if state.error:
                    stale.setdefault(stream.name, state.error)
    return stale


def _works(look: Look, settings: MixSettings, stream: Stream) -> Iterator[bindings.ShardToMix] | None:
    """Yield the shards of a stream; None without documents."""
    joined = [
        JoinedSet(set=attribute.set, keys=[], ours=sets.load_schema(stream.dataset, attribute.set) is not None)
        for attribute in stream.attributes
    ]
    try:
        shards = look.shards(stream.dataset)
    except NothingThere:
        return None
    template = preparation.unbound(look.context, settings, stream, joined)
    return (msgspec.structs.replace(template, shard=shard) for shard in shards)


def _inputs(work: bindings.ShardToMix) -> tuple[str, dict[str, str]]:
    """Return the content digests of a shard's inputs, from records alone.

    Raises:
        ToolkitError: if they are not known, or not what they should be.
    """
    shard = sets.ShardSets.now(work.dataset, work.shard)
    if shard.version is None:
        raise DataError("its documents are not indexed, or have changed")
    for joined in work.sets:
        if shard.finished(joined.set) or (joined.ours and shard[joined.set].state().is_done):
            continue
        if not exists(work.attributes_of(joined)):
            raise DataError(f"it has no attributes {joined.set}")
        if not joined.ours and external_sets.seen_now(work.dataset, joined.set, work.shard) is None:
            raise DataError(f"its attributes {joined.set} have not been looked at, or have changed")
        if joined.ours and shard[joined.set].record is None:
            command = sets.command_of(work.dataset, joined.set)
            raise DataError(f"its attributes {joined.set} are not complete; run `toolkit {command}`")
    return shard.version[0], join.digests_of(work, shard)


def looked(look: Look, mixes: Mixes = sections.mix_and_editions) -> str:
    """Note inputs and outputs of mixes; return the folder of the first records."""
    folders = dict[str, str]()
    for name, context in mixes(look.context).items():
        settings = preparation.settings_of(context, writes=False)
        look.datasets += [stream.dataset for stream in settings.streams]
        look.listings.append(intermediates.looking(settings))
        look.published[name] = publication.Published(settings)
        folders[name] = work_folder(settings.output.path)
    look.folders |= folders
    return next(iter(folders.values()))


def check(context: Context, checked: Checked) -> MixSettings:
    """Return the settings of a mix, checked; its rules only where all sets are known."""
    settings = preparation.settings_of(context, writes=not context.options.dry_run)
    preparation.check_output(context, settings)
    if not checked.faults:  # or else sets are not known, and what is said of them would be wrong
        preparation.check(context, settings, checked.sets)
    return settings


def _check_all(context: Context, checked: Checked) -> None:
    settings = check(context, checked)
    shares = context.options.shard is not None or getattr(context.options, "per_shard", False)
    checked.outputs[settings.output.path] = settings.stage_digest() if shares else ""
    if context.options.limit is not None and context.options.shard is None:  # of the documents that there are already
        counts = list[int]()
        for stream in settings.streams:
            with suppress(ConfigError):  # there are none yet
                counts.append(len(stream.dataset.shards()))
        now = sum(min(context.options.limit, count) for count in counts)
        publishing.check_limit(context, settings.output.path, now, sum(counts))
    for edition in sections.editions(context).values():
        check(edition, checked)


TOKENS = 0.9
"""Bytes that are kept of a byte of text, of tokens: four or five characters each, of four bytes."""

MIXED = {"": 0.42, "gzip": 0.42, "gzip-fast": 0.46, "zstd": 0.42, "none": 1.0}
"""Bytes that are kept of a byte of text, of documents that are kept, by compression."""

CHOSEN = 0.5
"""The part of its documents that a mix with rules is taken to keep: a run is not refused for what rules would drop."""

SORTED, LINE = 24, 80
"""Bytes that a shuffle keeps of each document or line until the mix is published, and bytes of text of a line."""


def _estimate(context: Context) -> DiskUse:
    mix = context.config.mix
    output = mix["output"] if isinstance(mix.get("output"), dict) else {}
    size = TOKENS if output.get("format") == FORMAT else MIXED.get(str(output.get("compression", "")), 0.42)
    written = (context.written or context.config).mix
    editions = written.get("editions")
    mixes = [written, *(editions.values() if isinstance(editions, dict) else ())]
    outputs = [mix.get("output") for mix in mixes if isinstance(mix, dict)]
    return DiskUse(
        mixed=size,
        chosen=CHOSEN if mix.get("rules") or mix.get("streams") else 1.0,
        needs_documents=bool(mix.get("editions")),
        folders=[*(output.get("path") for output in outputs if isinstance(output, dict)), written.get("rejected")],
    )


def _needs(context: Context, tasks: list[Task[bindings.ShardToMix]]) -> EstimateOf:
    """Return a function for the disk space of shards. Its form is that of `Disk.checked`."""
    estimate = _estimate(context)

    def need(task: Task[bindings.ShardToMix]) -> DiskEstimate:
        work = task.payload
        shuffle = work.settings.output.shuffle
        sorted_ = SORTED / (LINE if shuffle.unit == "line" else DOCUMENT) if shuffle else 0.0
        size = round(text_of(task) * (estimate.mixed + sorted_))
        later = round(size * estimate.chosen)
        record = intermediates.load_stage(work.settings.output.path, work.settings.stage_digest(), work.key)
        return NO_DISK._replace(later=later) if record else DiskEstimate(size + FILES, later + FILES, later)

    return context.disk.checked(tasks, need)


STAGE = Declaration(
    "per shard", progress, _check_all, looked, disk_use=_estimate, continues_after_failure=True, on_dataset=False
)
