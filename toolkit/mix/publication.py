"""Publication of a mix: the new output appears, then what only the old one had goes.

``.toolkit/manifest.json`` describes what is published. While it is being changed, ``.toolkit/publishing.json`` says
what is to be done; a run that finds one finishes it first.

Tells if a mix of these shards, by these settings, is what is published already.
"""

import os
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby, zip_longest
from operator import attrgetter
from typing import Any

import msgspec
import xxhash

from toolkit.data.dataset import Dataset, normal_path
from toolkit.errors import ConfigError, Unreadable, amount, few
from toolkit.mix import assemble, bindings, intermediates, plan
from toolkit.mix.budget.bounds import GroupBudget
from toolkit.mix.orphans import OrphanCounts
from toolkit.mix.rule_effects.counts import RuleEffect, SizesByLabel, Totals
from toolkit.mix.settings import MixSettings
from toolkit.records import origins
from toolkit.records.origins import Origin
from toolkit.rules.kinds import kind_called
from toolkit.rules.kinds.repeat import Unit
from toolkit.rules.rule import Role
from toolkit.storage import Stat, json_files, paths, store_of
from toolkit.storage.freshness import Derived, FileRecord, files_state, state
from toolkit.storage.outputs import Output, OutputBatch, write_file
from toolkit.storage.threads import for_each, results_of


class LabelTotals(msgspec.Struct, kw_only=True):
    """The documents (or pieces), bytes, stored bytes and parts of a label."""

    documents: int = 0
    content_size: int = 0
    size: int = 0
    parts: int = 0


class InputEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A shard of the mix, by content digests."""

    stream: str = ""
    shard: str
    documents: str
    attributes: dict[str, str]
    rows: int

    @property
    def key(self) -> str:
        """Return the name of the shard, unique among all streams."""
        return f"{self.stream}/{self.shard}" if self.stream else self.shard


_ENTRY = msgspec.json.Decoder(InputEntry)


class _Inputs(msgspec.Struct):
    inputs: list[InputEntry]


class _InputsOfIntent(msgspec.Struct):
    manifest: _Inputs


class BlocklistCount(msgspec.Struct, frozen=True, kw_only=True):
    """Entries of a blocklist, and how many of them matched a document."""

    rule: str
    entries: int
    matched: int


class Unseen(msgspec.Struct, frozen=True, kw_only=True):
    """A field or text of a rule missing in documents.

    Attributes:
        rule: Rule by name.
        stream: Stream that the rule decides over.
        field: Field as in ``metadata.adult``; or a comparison, ``label == "german"``.
        compares: True if it is a comparison with a text, which is never true.
        shards: First shards in which no document has it; none if no document at all has it.
        missing, of: Number of these shards, of all with documents.
        got: Kind of its values in these shards, if it is another kind than in others: ``a text``.
        usual: Kind of its values in most others then.
    """

    rule: str
    stream: str = ""
    field: str
    compares: bool = False
    shards: list[str] = []
    missing: int = msgspec.field(name="lacking")
    of: int
    got: str = ""
    usual: str = ""


class OrphanCount(msgspec.Struct, frozen=True, kw_only=True):
    """Documents dropped as copies of dropped documents, by rule and set.

    Attributes:
        rule, set: Names of rule and set.
        stream: Stream that the rule decides over.
        documents: Number of documents.
    """

    rule: str
    set: str
    stream: str = ""
    documents: int


class BudgetFound(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a budget.

    Attributes:
        unit: Unit of amounts.
        bounds: Bounds by group, the greatest hash that is taken.
        groups: Groups, sorted by name.
        redistributed: True if others give what a group lacks.
    """

    unit: Unit
    redistributed: bool = False
    bounds: dict[str, int]
    groups: list[GroupBudget]


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """The record of a published mix. The same inputs and settings give the same manifest, wherever they are.

    Attributes:
        digest: Digest of inputs and settings.
        toolkit: Version.
        settings: Rules, sets, format and its options.
        sets: Schema of each joined set, for those who have only the output; with streams under ``stream/set``.
        lineage: Digests of the schemas of the sets that joined sets were made from.
        models: Names of the models of the sets' taggers, by sha256.
        raw_inputs: Shards as JSON, sorted by stream and path; see `inputs`.
        omitted: Shards that failed and were left out on request, with the reason.
        totals: Documents and code points, read and kept.
        rules: Effect of each rule, in order.
        blocklists: Blocklists of the rules that have one.
        unseen: Fields of rules that no document of a shard has.
        orphans: Documents that are dropped as copies of documents that are not kept, where that is allowed.
        counts: Documents that the writer left out, or counted besides, by name.
        not_carried: Documents of the inputs that have a field which the output does not carry, by its path.
        unlike_dolma: Documents that stay here, and not in Dolma, or the reverse, as 1 and 1.0 are two numbers to it.
        statistics: Statistics by label as rules have it, what was read and what stays; of a format that parts documents
            by the labels of the pieces.
        budget: Result of the budget, if there is one.
        labels: Totals by label.
        rejected: Totals of the dropped documents, if they are kept.
        parts: Files, sorted.
        files: Checksum files by path, with their content.
    """

    version: int = 1
    digest: str
    toolkit: str
    settings: dict[str, Any]
    sets: dict[str, Any]
    lineage: dict[str, dict[str, str]] = {}
    models: dict[str, str] = {}
    raw_inputs: msgspec.Raw = msgspec.field(name="inputs")
    omitted: dict[str, str]
    totals: Totals
    rules: list[RuleEffect]
    blocklists: list[BlocklistCount] = []
    unseen: list[Unseen] = []
    orphans: list[OrphanCount] = []
    counts: dict[str, int]
    not_carried: dict[str, int] = {}
    unlike_dolma: int = 0
    statistics: SizesByLabel = {}
    budget: BudgetFound | None = None
    labels: dict[str, LabelTotals]
    rejected: LabelTotals | None = None
    parts: list[assemble.PartRecord]
    files: dict[str, str]

    @property
    def inputs(self) -> Iterator[InputEntry]:
        """Yield the shards, each decoded when it is asked for: a million of them take a gigabyte."""
        return map(_ENTRY.decode, msgspec.json.decode(self.raw_inputs, type=list[msgspec.Raw]))

    def check_inputs(self, *, in_intent: bool = False) -> None:
        """Decode each shard; raise msgspec.DecodeError as for all of them. An intent has the manifest `in_intent`."""
        try:
            deque(self.inputs, 0)
        except msgspec.DecodeError:
            whole = b'{"inputs":%b}' % bytes(self.raw_inputs)
            if in_intent:
                msgspec.json.decode(b'{"manifest":%b}' % whole, type=_InputsOfIntent)
            msgspec.json.decode(whole, type=_Inputs)
            raise

    @property
    def paths(self) -> set[str]:
        """Return the paths of all its files, below the output folder."""
        return {file.path for part in self.parts for file in part.files} | set(self.files)

    @property
    def relabels(self) -> bool:
        """Return True if `route` rules, or the setting `label`, choose the files."""
        return bool(self.settings["label"]) or self.routes

    @property
    def routes(self) -> bool:
        """Return True if `route` rules choose the files of documents."""
        rules = (rule for stream in self.settings["streams"] for rule in stream["rules"])
        return any(kind_called(str(rule.get("kind"))).ROLE is Role.ROUTES for rule in rules)

    @property
    def splits(self) -> dict[str, float]:
        """Return the shares of the splits, each a folder of files; may be empty."""
        return dict(self.settings.get("splits", ()))

    def label_of_rows(self, label: str) -> str:
        """Return a label of files without the folder of its split."""
        return label.partition("/")[2] if self.splits and label else label

    def split_of_files(self, label: str) -> str:
        """Return the split of a label of files; empty if the files are not parted by split."""
        return label.partition("/")[0] if self.splits else ""


def orphan_counts(works: Sequence[bindings.ShardToMix], orphans: OrphanCounts) -> list[OrphanCount]:
    """Return the number of orphans by stream, rule and set.

    Args:
        works: Shards that were judged, in that order.
        orphans: Orphans.
    """
    counts: Counter[tuple[str, int, int]] = Counter()
    names: dict[tuple[str, int, int], OrphanCount] = {}
    for (shard, rule, set_), documents in sorted(orphans.counts.items()):
        stream = works[shard].stream
        key = stream.name, rule, set_
        counts[key] += documents
        names[key] = OrphanCount(
            rule=stream.all_rules[rule].name, set=works[shard].sets[set_].set, stream=stream.name, documents=counts[key]
        )
    return [names[key] for key in sorted(names)]


def manifest_path(output: str) -> str:
    return paths.join(paths.work_folder(output), "manifest.json")


def intent_path(output: str) -> str:
    return paths.join(paths.work_folder(output), "publishing.json")


def load_manifest(output: str, read: Callable[[str], bytes] | None = None) -> Manifest | None:
    """Return the manifest of a published output. A DataError says why it cannot be read. See
    `json_files.load_strictly`.
    """
    remedy = f"restore it, or move {output} away and mix again"
    return json_files.load_strictly(manifest_path(output), Manifest, remedy, read, check=Manifest.check_inputs)


def check_output(output: str, datasets: Sequence[Dataset], *, overwrite: bool) -> str:
    """Check the output folder of a mix. Return a note about an output of other datasets that it replaces.

    Raises:
        ConfigError: if files are there that no mix published, or the output of other datasets.
    """
    if _is_ours(output):
        published, origin = _published_as(output)
        counts = (len(published.parts), "part"), (published.totals.kept, "document")
        goes = f"{', '.join(amount(*count) for count in counts)}, labels: {few(sorted(published.labels))}"
        return origins.check(output, origin, datasets, goes, overwrite=overwrite)
    for relative in paths.list_files(output):
        if _is_ours(output):  # another run has just published it
            return check_output(output, datasets, overwrite=overwrite)
        raise ConfigError(
            f"{paths.join(output, relative)}: expected an empty folder, or the output of an earlier mix; "
            "choose another `output.path`, or move the files away"
        )
    return ""


def _published_as(output: str) -> tuple[Manifest, Origin]:
    """Return manifest and origin of an output. Its publication may have been interrupted."""
    intent = _load_intent(output)
    manifest = intent.manifest if intent else load_manifest(output)
    assert manifest is not None, "it is ours"
    shards = {entry.shard: entry.documents for entry in manifest.inputs if entry.rows}
    recorded = intent.datasets if intent else (origin.datasets if (origin := origins.load(output)) else {})
    return manifest, Origin(datasets=recorded, shards=shards)


def origin_of(output: str) -> Origin | None:
    """Return the origin of a published output; None if there is none."""
    return _published_as(output)[1] if _is_ours(output) else None


def note_datasets(output: str, datasets: Sequence[Dataset]) -> None:
    """Record the datasets of a published output: they may have moved since."""
    origins.save(output, {origins.OUTPUT: Origin(datasets=origins.places_of(datasets))})


def _is_ours(output: str) -> bool:
    """Return True if a mix publishes, or has published, an output. During a publication both are recorded."""
    return is_unfinished(output) or load_manifest(output) is not None


def is_unfinished(output: str) -> bool:
    """Return True if the publication of an output was interrupted."""
    return paths.exists(intent_path(output))


def fault_of(output: str, manifest: Manifest) -> str:
    """Return the fault of a file of an output: missing, or of another size. It is empty if there is none."""
    files = _files(output, manifest)
    if not (path := files_state(files).changed):
        return ""
    (size,) = {file.size for file in files if file.path == path}
    if not paths.exists(path):
        return f"{path}: expected a file that the manifest lists, got {paths.missing_reason(path)}; run `toolkit mix`"
    return f"{path}: expected {size} bytes by the manifest, got {paths.size_of(path)}; run `toolkit mix`"


def _files(output: str, manifest: Manifest) -> list[FileRecord]:
    """Return the files of an output, as the manifest describes them."""
    files = [FileRecord(paths.below(output, file.path), file.size) for part in manifest.parts for file in part.files]
    return files + [FileRecord(paths.below(output, path), len(text.encode())) for path, text in manifest.files.items()]


def check_rejected(output: str, folder: str) -> None:
    """Raise ConfigError if the folder for dropped documents has other files."""
    ours = _published(output)
    for relative in paths.list_files(folder):
        path = paths.join(folder, relative)
        if normal_path(path) not in ours and not is_unfinished(output) and normal_path(path) not in _published(output):
            raise ConfigError(
                f"{path}: expected an empty folder for dropped documents, or that of an earlier mix; "
                "choose another `rejected:`, or move the files away"
            )


def _published(output: str) -> set[str]:
    """Return the comparable paths of the files of an output."""
    manifest = load_manifest(output)
    return {normal_path(paths.below(output, path)) for path in manifest.paths} if manifest else set()


def checksum_files(parts: list[assemble.PartRecord], settings: MixSettings) -> dict[str, str]:
    """Return checksum files by path: ``<hex><two spaces><name>``, sorted by name, relative to the file's folder."""
    lines: dict[str, list[tuple[str, str]]] = {}
    for part in parts:
        path = settings.checksums(part.label)
        for file in part.files:
            name = os.path.relpath(file.path, os.path.dirname(path) or ".")
            lines.setdefault(path, []).append((name, file.sha256))
    return {
        path: "".join(f"{digest}  {name}\n" for name, digest in sorted(results))
        for path, results in sorted(lines.items())
    }


def publish(output: str, manifest: Manifest, datasets: Sequence[Dataset], keeps: str = "") -> None:
    """Make the staged parts of a manifest the output.

    Args:
        output: Output of the mix.
        manifest: Manifest of what is staged.
        datasets: Datasets that it was made from.
        keeps: Digest of the settings whose intermediates stay, because the documents do not.
    """
    old = load_manifest(output)
    obsolete = (old.paths if old else set()) - manifest.paths
    places = origins.places_of(datasets)
    intent = PublishIntent(manifest=manifest, datasets=places, obsolete=sorted(obsolete), keeps=keeps)
    write_file(intent_path(output), msgspec.json.encode(intent))
    _finish(output, intent)


def finish_interrupted(output: str) -> bool:
    """Finish an interrupted publication; return True if there was one."""
    intent = _load_intent(output)
    if intent is None:
        return False
    _finish(output, intent)
    return True


def _load_intent(output: str) -> "PublishIntent | None":
    remedy = "delete it; the next mix publishes all of it again"
    path = intent_path(output)
    return json_files.load_strictly(
        path, PublishIntent, remedy, check=lambda intent: intent.manifest.check_inputs(in_intent=True)
    )


class PublishIntent(msgspec.Struct, frozen=True, kw_only=True):
    """A publication to finish after a kill."""

    manifest: Manifest
    datasets: dict[str, str]
    obsolete: list[str]
    keeps: str = ""


def _finish(output: str, intent: PublishIntent) -> None:
    manifest = intent.manifest
    with OutputBatch() as files:

        def appear(file: assemble.StoredFile) -> None:
            staged = assemble.staged_path(output, manifest.digest, file.path)
            if paths.exists(staged):
                files.move(staged, paths.below(output, file.path))

        def write(file: tuple[str, str]) -> None:
            with Output(paths.below(output, file[0]), files) as out:
                out.write(file[1].encode())

        for_each(appear, [file for part in manifest.parts for file in part.files])
        for_each(write, manifest.files.items())
    origins.save(output, {origins.OUTPUT: Origin(datasets=intent.datasets)})
    json_files.save(manifest_path(output), manifest)
    for path in intent.obsolete:
        obsolete = paths.below(output, path)
        paths.remove(obsolete)
        folder = os.path.dirname(obsolete)
        outside = ".." in path.split("/")  # a folder of dropped documents: FOLDER/documents
        paths.remove_empty_folders(folder, os.path.dirname(os.path.dirname(folder)) if outside else output)
    clear_work(output, intent.keeps)
    paths.remove(intent_path(output))


def clear_work(output: str, keeps: str = "") -> None:
    """Delete intermediates and staged parts.

    Args:
        output: Output of the mix.
        keeps: Digest of the settings whose intermediates stay.
    """
    paths.remove_tree(paths.join(paths.work_folder(output), "parts"))
    paths.remove_tree(paths.join(paths.work_folder(output), "budget"))
    stages = paths.join(paths.work_folder(output), "stage")
    for name in store_of(stages).folders(stages):
        if name != keeps:
            paths.remove_tree(paths.join(stages, name))
    if not keeps:
        paths.remove_tree(stages)


Inputs = Callable[[bindings.ShardToMix], tuple[str, dict[str, str]] | None]
"""The content digests of a shard's documents, and of its attributes by set; None if they are not right."""


def unchanged_manifest(
    listed: Sequence[bindings.ShardToMix], inputs: Inputs = intermediates.inputs_now
) -> Manifest | None:
    """Return the manifest, if just this mix of these inputs is published."""
    settings = listed[0].settings
    output = settings.output.path
    manifest = load_manifest(output)
    if manifest is None or any(
        entry is None or work is None or (entry.stream, entry.shard) != (work.stream.name, work.shard)
        for entry, work in zip_longest(manifest.inputs, listed)
    ):
        return None
    by_key = listed if len(settings.streams) == 1 else sorted(listed, key=attrgetter("key"))
    results = ((work.key, *digests) for work, digests in _results_of(inputs, by_key) if digests)
    digest = plan.digest_of(results, settings.stage_digest(), settings.output.part_size, [])
    published = state(Derived(made_of=manifest.digest), [("", digest)], files=lambda _: _files(output, manifest))
    return manifest if published.is_done and not is_unfinished(output) else None


def _results_of(
    inputs: Inputs, works: Iterable[bindings.ShardToMix]
) -> Iterator[tuple[bindings.ShardToMix, tuple[str, dict[str, str]] | None]]:
    """Yield shards with their inputs; threads look at those with no answer in memory."""
    return results_of(inputs, works, intermediates.listed_inputs() if inputs is intermediates.inputs_now else inputs)


class Published:
    """The published shards, as far as they were made by these settings.

    Attributes:
        shards: Number of shards in it.
        fault: Fault of its files, if they are those of these settings.
    """

    def __init__(self, settings: MixSettings) -> None:
        output = self._output = settings.output.path
        manifest = load_manifest(output)
        self._digest = manifest and manifest.digest
        self._is_unfinished = manifest is not None and is_unfinished(output)
        if manifest and manifest.settings != settings.recorded():
            manifest = None
        self.fault = fault_of(output, manifest) if manifest else ""
        if manifest and (self.fault or self._is_unfinished):
            manifest = None
        self._entries = _digests(output, manifest) if manifest else {}
        self.shards = sum(map(len, self._entries.values()))

    def has_changed(self) -> bool:
        """Return True if another mix has been published since. The inputs of the former may be gone."""
        manifest = load_manifest(self._output)
        if (manifest and manifest.digest) != self._digest:
            return True
        return self._is_unfinished and not is_unfinished(self._output)

    def knows(self, work: bindings.ShardToMix) -> bool:
        """Return True if a shard is in it, as it was."""
        return work.shard in self._entries.get(work.stream.name, ())

    def has(self, work: bindings.ShardToMix, inputs: tuple[str, dict[str, str]] | None) -> bool:
        """Return True if a shard is in it, as it is."""
        entry = self._entries.get(work.stream.name, {}).get(work.shard)
        record = Derived(made_of=entry.stamp) if entry else None
        return state(record, [("", inputs and _digest(*inputs))]).is_done


def _digests(output: str, manifest: Manifest) -> dict[str, Mapping[str, Stat | None]]:
    """Return the digest of each published shard as a stamp, by stream: packed, if they are in our order."""

    def listed(inputs: Iterable[InputEntry]) -> Iterator[tuple[str, Stat]]:
        return ((e.shard, Stat(0, _digest(e.documents, e.attributes))) for e in inputs if "\0" not in e.shard)

    try:
        by_stream = groupby(manifest.inputs, attrgetter("stream"))
        return {stream: paths.Listing(output, listed(inputs)) for stream, inputs in by_stream}
    except Unreadable:  # a program that has rewritten the manifest may have sorted it otherwise
        by_stream = groupby(sorted(manifest.inputs, key=attrgetter("stream")), attrgetter("stream"))
        return {stream: dict(listed(inputs)) for stream, inputs in by_stream}


def _digest(documents: str, attributes: dict[str, str]) -> str:
    """Return one digest of those of a shard: 100,000 shards have a million of them."""
    return xxhash.xxh3_128_hexdigest(msgspec.json.encode((documents, attributes), order="sorted"))


def is_unchanged(listed: Sequence[bindings.ShardToMix], inputs: Inputs = intermediates.inputs_now) -> bool:
    """Return True if these shards are published with these settings. They must be unchanged; others may be published
    with them.
    """
    if not listed:
        return True
    result = Published(listed[0].settings)
    return all(result.has(*item) for item in _results_of(inputs, listed))
