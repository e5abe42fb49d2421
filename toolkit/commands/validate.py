"""Check documents, attribute sets and outputs."""

import os
from collections.abc import Iterator
from typing import Annotated, Any, ClassVar, Literal

from toolkit.command_options import CommandResult, Flag, Inspecting, Limited, Shared, Words
from toolkit.commands import _mix_preparation as preparation, _sections as sections
from toolkit.commands._description import ScanCache, describer
from toolkit.commands.dedup import plan_of
from toolkit.config.settings import stages
from toolkit.data import line_index, row_index
from toolkit.data.dataset import Dataset
from toolkit.describe import dataset as of_dataset
from toolkit.describe.about import About
from toolkit.describe.croissant import NAME as CROISSANT
from toolkit.describe.output import scan_job
from toolkit.errors import ConfigError, NoDocuments, ToolkitError, amount
from toolkit.execution.executors import Task
from toolkit.execution.grouped import shard_tasks
from toolkit.exporting.shard import indexes_in
from toolkit.ingest import inputs
from toolkit.inspect import targets
from toolkit.inspect.targets import format_of, recorded_format
from toolkit.mix import publication, settings as mix_settings
from toolkit.mix.intermediates import check_shard
from toolkit.mix.lock import Lock, load as load_lock
from toolkit.records import ingested, set_declaration, sets
from toolkit.source import external_sets
from toolkit.stages.context import Context, Outcome, failures
from toolkit.stages.set_state import state_of
from toolkit.storage.freshness import State
from toolkit.storage.paths import exists, is_folder, join, missing_reason, size_of
from toolkit.storage.threads import for_each
from toolkit.tag import schema_check
from toolkit.text.languages.labels import label_of_path
from toolkit.validate import card, croissant, croissant_reader, file_checks, output, output as whole_dataset
from toolkit.validate.output import check_folder, check_lock


class Validation(CommandResult, kw_only=True):
    """The result of `validate`; true if there is no finding but advice.

    Attributes:
        checked: Names of what was checked.
        findings: Each with its message and its severity.
    """

    checked: list[str]
    findings: list[croissant_reader.Finding]

    def __bool__(self) -> bool:
        return not self.faults

    @property
    def faults(self) -> list[croissant_reader.Finding]:
        """The findings except advice."""
        return [finding for finding in self.findings if finding.severity != "advice"]


class Options(Inspecting, Shared, Limited, frozen=True, kw_only=True):
    """Options of ``toolkit validate``.

    Attributes:
        targets: datasets, outputs or files; settings, which override those of the file
        lock: check the output by its lock, too: what it was made of, and its parts
        first: check only the first N rows of each file
        data: ask for the data of an external Croissant file, also from the web, and read all records
        labels: labels that an OSCAR release may have: known languages (lid.176's, GlotLID's), or any
    """

    WRITES: ClassVar = True
    EXAMPLES: ClassVar = ("toolkit validate data/quickstart/oscar --first 100",)

    targets: Annotated[tuple[str, ...], Words()] = ()
    lock: Annotated[str | None, Flag(metavar="FILE")] = None
    first: Annotated[int | None, Flag(metavar="N")] = None
    data: Annotated[bool, Flag()] = False
    labels: Annotated[Literal["known", "any"], Flag()] = "known"

    def __post_init__(self) -> None:
        Inspecting.__post_init__(self)
        if self.lock is None:
            return
        if (self.first or self.limit or self.shard) is not None:
            raise ConfigError("expected --lock without --first, --limit and --shard: a lock is of a whole output")
        if len(self.targets) > 1:
            raise ConfigError(f"expected one output with --lock, got {len(self.targets)} paths")


def run(context: Context, options: Options) -> Outcome:
    """Check the configuration's data, or the given paths. Any finding but advice makes the exit status 1."""
    checks = _Validator(context, options)
    lock = None if options.lock is None else load_lock(options.lock)
    if options.targets:
        for target in options.targets:
            path = target.rstrip("/")
            if lock is None or not _is_unknown(path):
                checks.check_target(path)
    else:
        checks.check_configured()
    if lock is not None:
        checks.check_lock(lock)
    return checks.outcome()


def _is_unknown(path: str) -> bool:
    """Return true for folders of unknown kind, like tokens without manifest."""
    if not is_folder(path):
        return False
    target = targets.target_of(path)
    return target is None or target.kind == "documents"


class _Validator:
    """Run checks one after the other, and gather their findings."""

    def __init__(self, context: Context, options: Options) -> None:
        self.context = context
        self.options = options
        self.limit = context.config.max_document_bytes
        self.whole = options.first is None and not context.in_part
        """True if all rows of all files are looked at, so that their numbers are known."""
        self.checked: list[str] = []
        self.findings: list[str] = []
        self._joined: set[tuple[Dataset, str]] = set()
        """Sets of the mix, which says what becomes of spans that end past the text."""
        self._described: dict[str, None] = {}
        """Croissant files to be checked, after everything else."""
        self._cards: dict[str, Dataset | str] = {}
        """Folders with cards to be checked after everything else, and what these describe."""
        self._cache = ScanCache({}, set())
        self._datasets: list[Dataset] = []
        """Datasets of the configuration."""

    def outcome(self) -> Outcome:
        """Check the Croissant files and cards, and report all findings."""
        findings = [croissant_reader.Finding(message) for message in self.findings]
        describe, options = describer(self.context, self._cache), self.options
        for folder, target in self._cards.items() if self.whole else ():
            try:
                findings += map(croissant_reader.Finding, card.check(folder, describe(target, About(examples=0), None)))
            except ToolkitError as error:
                findings += map(croissant_reader.Finding, str(error).splitlines())
        for path in self._described:
            self.checked.append(path)
            findings += croissant.check(path, describe, self._datasets, options.first, data=options.data)
        findings = list(dict.fromkeys(findings))
        faults = [finding for finding in findings if finding.severity != "advice"]
        lines = [*map(str, faults), *(str(finding) for finding in findings if finding.severity == "advice")]
        text = "\n".join(lines) + ("\n\n" if lines else "")
        text += f"checked {', '.join(self.checked)}: {amount(len(faults), 'finding')}"
        if not self.whole:
            text += "\nleft out: documents that are there twice, and what else is about all shards together"
        share = self.context.share
        if share and share.is_empty:
            text += "\n" + share.nothing()
        data = Validation(checked=self.checked, findings=findings)
        return Outcome(text=text, data=data, exit_code=1 if faults else 0)

    def check_configured(self) -> None:
        """Check the datasets and the output of the configuration."""
        context = self.context
        mixes = {name: (of_mix, sections.mix(of_mix)) for name, of_mix in sections.mixes(context).items()}
        streams = [stream for _, settings in mixes.values() for stream in settings.streams]
        self._joined = {(stream.dataset, joining.set) for stream in streams for joining in stream.attributes}
        datasets = [context.dataset] if context.has_dataset or not mixes else []
        datasets += [stream.dataset for stream in streams]
        self._datasets = list(dict.fromkeys(datasets))
        for dataset in self._datasets:
            folder = os.path.dirname(dataset.documents) if dataset.is_described else ""
            self._note_description(folder, dataset)
            self._check_documents(dataset)
        if context.has("tag"):
            self._check_settings()
        for name in filter(context.has, stages("whole")):
            self._check_whole(name)
        for dataset, name in sorted(self._joined, key=lambda joined: joined[1]):
            is_told = any(f"the set {name}:" in finding for finding in self.findings)
            if name not in dataset.sets() and not is_told and self._shards(dataset):  # `run --per-shard` leaves none
                path = join(dataset.attributes, name)
                self.findings.append(f"{path}: expected the attributes that the mix joins, got {missing_reason(path)}")
        for name, (of_mix, settings) in mixes.items():
            if self.whole:
                self._check_mix(of_mix, settings)
            if not is_folder(settings.output.path):
                continue
            self._note_description(settings.output.path, settings.output.path)
            self._check_output(settings.output.path, settings.rejected)
            if not self.options.shard:
                path, command = publication.manifest_path(settings.output.path), sections.command_of(name)
                self.findings += [f"{path}: {fault}; run `toolkit {command}`" for fault in self._outdated(settings)]

    def check_target(self, target: str) -> None:
        """Check a dataset, an output, a release, a folder, or a file."""
        if croissant_reader.is_croissant(target):
            self._described[target] = None
            return
        if indexes := [target] if target.endswith(line_index.SUFFIX) else indexes_in(target):
            self.checked.append(target)
            for path in indexes:
                self.findings += output.check(path, self.options.first, self.limit)
            return
        kind = targets.expected(target)
        if kind.is_file:
            self._check_file(target)
            return
        of_target = Dataset(join(target, "documents"), join(target, "attributes")) if kind.kind == "dataset" else target
        self._note_description(target, of_target)
        if isinstance(of_target, Dataset):
            self._check_documents(of_target)
        elif kind.kind in ("output", "release"):
            self._check_output(target, files=kind.files if kind.kind == "release" else None)
        else:
            excluded = (*targets.DESCRIPTIONS, "splits/**")
            self._check_documents(Dataset(target, join(target, ".toolkit", "none"), exclude=excluded))

    def check_lock(self, lock: Lock) -> None:
        """Check the only target, or the configuration's output, by a lock."""
        targets = self.options.targets
        folder = targets[0].rstrip("/") if targets else sections.mix(self.context).output.path
        self.checked.append(f"{folder} by the lock {self.options.lock}")
        self.findings += [f"{folder}: {line} (by {self.options.lock})" for line in check_lock(folder, lock)]

    def _note_description(self, folder: str, target: Dataset | str) -> None:
        """Note the Croissant file and card of a folder. The data are read later."""
        if folder and exists(join(folder, CROISSANT)):
            self._described[join(folder, CROISSANT)] = None
        if folder and (of := card.described_by(folder)):
            # a published output with its parts in `documents/` looks like a dataset
            self._cards[folder] = folder if of == "output" else target

    # --- documents and attributes -------------------------------------------------------------------------------------

    def _check_documents(self, dataset: Dataset) -> list[str]:
        """Check the shards of a dataset, and their attributes; return all shards of the run's share."""
        mine = self._shards(dataset)
        shards = self.context.limited(mine)
        self.checked.append(f"{amount(len(shards), 'shard')} of {dataset.documents}")
        described = self.whole and bool(self._described or self._cards)
        self._run(
            "documents",
            [
                self._job(
                    "documents",
                    shard,
                    dataset=dataset,
                    scan_job=of_dataset.scan_job(dataset, shard, self.limit, digest=False) if described else None,
                )
                for shard in shards
            ],
        )
        states: dict[str, State] = {}
        for set_name in dataset.sets():
            extra = [] if self.context.in_part else whole_dataset.extra_files(dataset, set_name, shards)
            covered = inputs.carried_shards(dataset, set_name)
            self.checked.append(f"the set {set_name}")
            listed = [*(shard for shard in shards if covered is None or shard in covered), *extra]
            of_set = {"dataset": dataset, "set": set_name, "judges_spans": (dataset, set_name) not in self._joined}
            self._run(set_name, [self._job("attributes", shard, **of_set) for shard in listed])
            self._cache.aligned.update((dataset, set_name, shard) for shard in listed if self.options.first is None)
            state = state_of(dataset, set_name, shards, complete=not self.context.in_part, states=states)
            self.findings += [str(state.error)] if state.error else []
        if self.options.first is None and self.options.shard is None:
            self.findings += whole_dataset.check_ingested(dataset, mine)
            self.findings += map(str, ingested.summary(dataset).items.too_many(dataset.bookkeeping))
            self.findings += [
                f"{path}: expected to be ingested, it failed or was interrupted"
                for path in ingested.unfinished(dataset)
            ]
            repeated = file_checks.Findings()
            for error_of in whole_dataset.duplicates(dataset, shards):
                repeated.add(error_of() if repeated.count < file_checks.SHOWN else "")
            self.findings += repeated.as_list(dataset.documents)
        return mine

    def _job(self, kind: str, path: str, **more: Any) -> file_checks.ValidateJob:
        """Return the check of a file, or of its `--first` rows."""
        how: dict[str, Any] = {"max_document_bytes": self.limit, "first": self.options.first, **more}
        return file_checks.ValidateJob(kind=kind, path=path, **how)

    def _shards(self, dataset: Dataset) -> list[str]:
        """Return the shards of the run's share; none where all were deleted on purpose."""
        try:
            return self.context.mine(dataset)
        except NoDocuments:
            if not ingested.deleted_shards(dataset):
                raise
            return []

    def _check_settings(self) -> None:
        """Check the settings of the sets against the configuration."""
        dataset = self.context.dataset
        for set_name, expected in schema_check.set_schemas(sections.tags(self.context), dataset).items():
            set_schema = sets.load_schema(dataset, set_name)
            different = (
                set_declaration.differences(set_schema, expected) + set_declaration.edits(set_schema, expected)
                if set_schema
                else ["it is not there"]
            )
            self.findings += [
                f"the set {set_name}: expected it as the configuration says: {line}; run `toolkit tag`"
                for line in different
            ]

    def _check_mix(self, context: Context, settings: mix_settings.MixSettings) -> None:
        """Check the external sets of the mix: it runs, and writes nothing."""
        if not any(external_sets(stream, {}) for stream in settings.streams):
            return
        try:
            prepared = preparation.prepare(context, settings)
            works = [work for work in prepared.works if not all(joined.ours for joined in work.sets)]
            results = [
                *prepared.unreadable.values(),
                *failures(self.context.run("mix", check_shard, shard_tasks(works))),
            ]
        except ToolkitError as error:
            results = [str(error)]
        self.findings += [finding for finding in results if finding not in self.findings]

    def _check_whole(self, section_name: str) -> None:
        """Check the corpus-wide sets of a section against the configuration."""
        try:
            plan, dataset = plan_of(self.context, section_name), self.context.dataset
            set_declaration.check_made(dataset, plan.schemas, plan.schemas, section_name)
        except ConfigError as error:
            self.findings.append(str(error))
            return
        self.findings += [
            f"the set {name}: expected it as the configuration says, it is not there; run `toolkit {section_name}`"
            for name in plan.schemas
            if sets.load_schema(dataset, name) is None
        ]

    # --- files and outputs --------------------------------------------------------------------------------------------

    def _check_file(self, target: str) -> None:
        folder, name = os.path.split(target)
        self.checked.append(target)
        if (result := format_of(target)) is not None:
            label = label_of_path(name)
            work = self._job("output", target, format=result, label=label, labels=self.options.labels)
        else:
            dataset = Dataset(folder or ".", join(folder or ".", ".toolkit", "none"))
            first = 1 << 60 if self.options.first is None else self.options.first  # no records: a file has none
            work = self._job("documents", name, dataset=dataset, first=first)
        self._run("validate", [work])

    def _check_output(self, folder: str, rejected: str | None = None, files: list[str] | None = None) -> None:
        """Check an output, or the files of a release."""
        manifest = publication.load_manifest(folder)
        files = targets.data_files(folder) if files is None else files
        mine = self._of_share(folder, files)
        self.checked.append(f"{amount(len(mine), 'file')} of {folder}")
        documents = {part.path: part.documents for part in manifest.parts} if manifest else {}
        labels = _labels(manifest, files)
        fields = mix_settings.MixSettings.added_fields(manifest.settings) if manifest else []
        result = recorded_format(manifest.settings) if manifest else None
        works, described = [], self.whole and bool(self._described or self._cards)
        for path in self.context.limited(mine):
            is_rejected = _is_rejected(folder, path, manifest, rejected)
            if not (manifest or is_rejected):
                result = format_of(join(folder, path)) or result  # a damaged file is of the format of the others
            if result is None and not is_rejected:
                finding = "expected the lines of a format that is installed, got others"
                self.findings.append(f"{join(folder, path)}: {finding}")
                continue
            works.append(
                self._job(
                    "rejected" if is_rejected else "output",
                    join(folder, path),
                    format=result,
                    fields=fields,
                    documents=documents.get(path),
                    label=labels.get(path),
                    labels=self.options.labels if manifest is None else "any",  # a mix may be told any
                    scan_job=scan_job(join(folder, path), result, self.limit, digest=False)
                    if described and not is_rejected
                    else None,
                )
            )
        self._run("output", works, "files")
        if self.options.first is None and self.options.shard is None:
            self.findings += check_folder(folder)

    def _of_share(self, folder: str, files: list[str]) -> list[str]:
        """Return the files of an output in the run's share."""
        if not self.context.share:
            return files
        sizes = for_each(lambda path: size_of(join(folder, path)), files)
        return self.context.share.owned("file", dict(zip(files, sizes, strict=True)))

    def _outdated(self, settings: mix_settings.MixSettings) -> Iterator[str]:
        """Yield differences between the output and the configuration's present result."""
        manifest = publication.load_manifest(settings.output.path)
        if manifest is None:
            return
        if manifest.settings != settings.recorded():
            yield "expected the output of this configuration, got that of other settings"
            return
        datasets = {stream.name: stream.dataset for stream in settings.streams}
        shards = [
            (name, shard)
            for name, dataset in datasets.items()
            for shard in sorted({*self._shards(dataset), *ingested.deleted_shards(dataset)})
            if (f"{name}/{shard}" if name else shard) not in manifest.omitted
        ]
        if [(entry.stream, entry.shard) for entry in manifest.inputs] != shards:
            yield "expected the output of the present shards, got that of other shards"
            return
        for entry in manifest.inputs:
            dataset, made_from = datasets[entry.stream], "got one made from"
            state = row_index.current(dataset, entry.shard)
            if state is not None and state.content != entry.documents:
                yield f"expected an output of the present documents, {made_from} an earlier version of {entry.shard}"
            for name, digest in entry.attributes.items():
                record = sets.load_record(dataset, name, entry.shard)
                if record is not None and record.output.content != digest:
                    old = f"earlier attributes {name} of {entry.shard}"
                    yield f"expected an output of the present attributes, {made_from} {old}"

    def _run(self, step: str, works: list[file_checks.ValidateJob], unit: str = "shards") -> None:
        """Check each file by itself; what is found is added."""
        sizes = for_each(size_of, [work.file for work in works])
        tasks = [Task(f"{work.set} {work.path}", work, size) for work, size in zip(works, sizes, strict=True)]
        results = self.context.run(step, file_checks.check_file, tasks, unit)
        for work, result in zip(works, results, strict=True):
            self.findings += result.value.findings if result.value else []
            self.findings += [result.failure.message] if result.failure else []
            if result.value and result.value.scan:
                self._cache.scans[work.file] = result.value.scan


def _labels(manifest: publication.Manifest | None, files: list[str]) -> dict[str, str]:
    """Return the expected labels of rows by file; none for an output with relabelling."""
    if manifest is None:
        return {path: label for path in files if (label := label_of_path(path)) is not None}
    if manifest.relabels:
        return {}
    parts = (part for part in manifest.parts if part.label != mix_settings.REJECTED)
    return {part.path: manifest.label_of_rows(part.label) for part in parts}


def _is_rejected(folder: str, path: str, manifest: publication.Manifest | None, rejected: str | None) -> bool:
    """Return true for a file of dropped documents: by the manifest, the configuration, or its rows."""
    labels = {part.path: part.label for part in manifest.parts} if manifest else {}
    if path in labels:
        return labels[path] == mix_settings.REJECTED
    below = os.path.relpath(join(folder, path), rejected).split(os.sep)[0] if rejected else os.pardir
    return below != os.pardir or file_checks.is_rejected(join(folder, path))
