"""``toolkit validate``: are documents, attributes and outputs what they should be?"""

import os

from toolkit.commands.steps import mix_section
from toolkit.commands.steps import shards as sharing
from toolkit.commands.steps.context import Context, Outcome
from toolkit.data import row_index
from toolkit.data.dataset import Dataset
from toolkit.errors import NoDocuments
from toolkit.ingest import inputs
from toolkit.inspect import targets
from toolkit.inspect.describe import check
from toolkit.inspect.describe.card import check as card_check
from toolkit.inspect.describe.check.files import Checked, FileCheck, check_file
from toolkit.inspect.describe.croissant import document
from toolkit.inspect.targets import format_of, recorded_format
from toolkit.inspect.validate import dataset as whole_dataset
from toolkit.inspect.validate import one_file
from toolkit.inspect.validate.one_file import ValidateJob
from toolkit.inspect.validate.output import check_folder
from toolkit.mix import publish
from toolkit.mix import settings as mix_settings
from toolkit.mix.writer import Writer
from toolkit.records import ingested, rejected, sets
from toolkit.runs.executors import Result, Task
from toolkit.storage.concurrent import for_each
from toolkit.storage.paths import exists, is_folder, join, size_of
from toolkit.tag import declared
from toolkit.tag import plan as tag_plan
from toolkit.text.languages.labels import label_of_path


def run(context: Context) -> Outcome:
    """Checks what the configuration, or the given paths, name. Any finding makes the exit status 1."""
    targets = context.options.targets
    findings: list[str] = []
    checked: list[str] = []
    warnings: list[str] = []
    described: list[str] = []
    if targets:
        for target in (target.rstrip("/") for target in targets):
            if check.is_croissant(target):
                described.append(target)
            else:
                findings += _check_target(context, target, checked)
                described += _beside(target)
    else:
        settings = None
        datasets = [context.dataset] if context.has_dataset or not context.has("mix") else []
        if context.has("mix"):
            settings = mix_section.read(context)
            datasets += [stream.dataset for stream in settings.streams]
        for dataset in dict.fromkeys(datasets):
            findings += _check_dataset(context, dataset, checked) + _check_card(context, dataset)
            described += _beside(os.path.dirname(dataset.documents))
        if context.has("tag"):
            findings += _check_settings(context)
        if settings and is_folder(settings.output.path):
            findings += _check_output(context, settings.output.path, checked, settings.rejected)
            findings += [] if context.options.shard else _check_current(context, settings)
            described += _beside(settings.output.path)
    for path in dict.fromkeys(described):
        found = _check_croissant(context, path)
        checked.append(path)
        findings += found.findings
        warnings += found.warnings
    lines = [*findings, *(f"warning: {warning}" for warning in warnings)]
    text = "\n".join(lines) + ("\n\n" if lines else "") + f"checked {', '.join(checked)}: {len(findings)} findings"
    if context.in_part or context.options.first is not None:
        text += "\nleft out: documents that are there twice, and what else is about all shards together"
    if context.share and context.share.is_empty:
        text += "\n" + context.share.nothing()
    data = {"checked": checked, "findings": findings, "warnings": warnings}
    return Outcome(text=text, data=data, exit_code=1 if findings else 0)


def _beside(folder: str) -> list[str]:
    """The Croissant file of a folder, if it has one."""
    path = join(folder, document.NAME)
    return [path] if exists(path) else []


def _check_croissant(context: Context, path: str) -> Checked:
    """Check a Croissant document, and each file that it describes."""

    def each_file(works: list[FileCheck]) -> list[Result[Checked]]:
        return context.run("croissant", check_file, [Task(work.path, work) for work in works], "files")

    return check.check(path, context.options.first, _limit(context), each_file)


def _check_target(context: Context, target: str, checked: list[str]) -> list[str]:
    known = targets.expected(target)
    if known.kind == "dataset":
        dataset = Dataset(join(target, "documents"), join(target, "attributes"))
        return _check_dataset(context, dataset, checked) + _check_card(context, dataset)
    if known.kind in ("output", "release") and not known.is_file:
        return _check_output(context, target, checked, files=known.files if known.kind == "release" else None)
    if not known.is_file:
        others = (*targets.DESCRIPTIONS, "splits/**")
        dataset = Dataset(target, join(target, ".toolkit", "none"), exclude=others)
        findings = _check_dataset(context, dataset, checked)
        return findings + (card_check.check_documents(dataset, known.files) if _is_whole(context) else [])
    folder, name = os.path.split(target)
    checked.append(target)
    if (found := format_of(target)) is not None:
        work = ValidateJob(
            kind="output",
            path=target,
            format=found.name,
            options=found.options,
            label=label_of_path(name),
            labels=context.options.labels,
            max_document_bytes=_limit(context),
            first=context.options.first,
        )
    else:
        work = ValidateJob(
            kind="documents",
            path=name,
            dataset=Dataset(folder or ".", join(folder or ".", ".toolkit", "none")),
            max_document_bytes=_limit(context),
            first=context.options.first if context.options.first is not None else 1 << 60,
        )
    return _run(context, "validate", [work])


def _check_card(context: Context, dataset: Dataset) -> list[str]:
    return card_check.check_dataset(dataset, _shards(context, dataset)) if _is_whole(context) else []


def _limit(context: Context) -> int:
    return context.config.max_document_bytes


def _check_dataset(context: Context, dataset: Dataset, checked: list[str]) -> list[str]:
    first = context.options.first
    shards = context.limited(_shards(context, dataset))
    checked.append(f"{len(shards)} shards of {dataset.documents}")
    findings = _run(
        context,
        "documents",
        [
            ValidateJob(kind="documents", path=s, dataset=dataset, max_document_bytes=_limit(context), first=first)
            for s in shards
        ],
    )
    for set_name in dataset.sets():
        extra = [] if context.in_part else whole_dataset.extra_files(dataset, set_name, shards)
        covered = inputs.carried_shards(dataset, set_name)
        works = [
            ValidateJob(
                kind="attributes",
                path=shard,
                dataset=dataset,
                set=set_name,
                max_document_bytes=_limit(context),
                first=first,
            )
            for shard in [*(s for s in shards if covered is None or s in covered), *extra]
        ]
        checked.append(f"the set {set_name}")
        findings += _run(context, set_name, works)
    if first is None and context.options.shard is None:
        findings += whole_dataset.check_ingested(dataset)
        findings += map(str, rejected.too_many(ingested.load_undamaged(dataset), dataset.bookkeeping))
        findings += [
            f"{path}: expected to be ingested, it failed or was interrupted" for path in inputs.unfinished(dataset)
        ]
        repeated = one_file.Findings()
        for finding in whole_dataset.duplicates(dataset, shards):
            repeated.add(finding)
        findings += repeated.listed(dataset.documents)
    return findings


def _shards(context: Context, dataset: Dataset) -> list[str]:
    """Of the run's share; none where all were deleted on purpose."""
    try:
        return sharing.mine(context, dataset)
    except NoDocuments:
        if not ingested.deleted_shards(dataset):
            raise
        return []


def _check_output(
    context: Context, folder: str, checked: list[str], rejected: str | None = None, files: list[str] | None = None
) -> list[str]:
    """Check an output, or the files of a release."""
    manifest = publish.load_manifest(folder)
    files = targets.data_files(folder) if files is None else files
    mine = files
    if context.share:
        sizes = for_each(lambda path: size_of(join(folder, path)), files)
        mine = context.share.owned("file", dict(zip(files, sizes, strict=True)))
    checked.append(f"{len(mine)} files of {folder}")
    documents = {part.path: part.documents for part in manifest.parts} if manifest else {}
    labels = _labels(manifest, files)
    fields = mix_settings.MixSettings.added_fields(manifest.settings) if manifest else []
    found = recorded_format(manifest.settings) if manifest else None
    works, unknown = [], []
    for path in context.limited(mine):
        is_rejected = _is_rejected(folder, path, manifest, rejected)
        found = found if manifest or is_rejected else format_of(join(folder, path)) or found  # damaged: as the others
        if found is None and not is_rejected:
            unknown.append(f"{join(folder, path)}: expected the lines of a format that is installed, got others")
            continue
        works.append(
            ValidateJob(
                kind="rejected" if is_rejected else "output",
                path=join(folder, path),
                format=found.name if found else "",
                options=found.options if found else {},
                fields=fields,
                documents=documents.get(path),
                label=labels.get(path),
                labels=context.options.labels if manifest is None else "any",  # what a mix was told to write is right
                max_document_bytes=_limit(context),
                first=context.options.first,
            )
        )
    results = _results(context, "output", works, "files")
    findings = [*unknown, *_findings(results)]
    if context.options.first is None and context.options.shard is None:
        findings += check_folder(folder)
    if _is_whole(context):
        done = {work.path: result.value for work, result in zip(works, results, strict=True) if work.kind == "output"}
        mine = [path for path in files if join(folder, path) in done]
        writer = found.writer() if found else Writer()
        findings += card_check.check_output(folder, manifest, writer, mine, [done[join(folder, path)] for path in mine])
    return findings


def _is_whole(context: Context) -> bool:
    """Return whether all rows of all files are looked at, so that their numbers are known."""
    return context.options.first is None and not context.in_part


def _labels(manifest: publish.Manifest | None, files: list[str]) -> dict[str, str]:
    """Return the labels that rows of files should have; of an output whose rules or settings give others, none."""
    if manifest is None:
        return {path: label for path in files if (label := label_of_path(path)) is not None}
    if manifest.relabels:
        return {}
    parts = (part for part in manifest.parts if part.label != mix_settings.REJECTED)
    return {part.path: manifest.label_of_rows(part.label) for part in parts}


def _is_rejected(folder: str, path: str, manifest: publish.Manifest | None, rejected: str | None) -> bool:
    """Whether a file has dropped documents: by the manifest, by the configuration, else by its rows."""
    labels = {part.path: part.label for part in manifest.parts} if manifest else {}
    if path in labels:
        return labels[path] == mix_settings.REJECTED
    below = os.path.relpath(join(folder, path), rejected).split(os.sep)[0] if rejected else os.pardir
    return below != os.pardir or one_file.is_rejected(join(folder, path))


def _check_current(context: Context, settings: mix_settings.MixSettings) -> list[str]:
    """Whether the output is what the configuration would make now."""
    manifest = publish.load_manifest(settings.output.path)
    if manifest is None:
        return []
    path = publish.manifest_path(settings.output.path)
    if manifest.settings != settings.recorded():
        return [f"{path}: expected the output of this configuration, got that of other settings; run `toolkit mix`"]
    datasets = {stream.name: stream.dataset for stream in settings.streams}
    there = [
        (name, shard)
        for name, dataset in datasets.items()
        for shard in sorted({*_shards(context, dataset), *ingested.deleted_shards(dataset)})
    ]
    there = [(name, shard) for name, shard in there if (f"{name}/{shard}" if name else shard) not in manifest.omitted]
    if [(entry.stream, entry.shard) for entry in manifest.inputs] != there:
        return [f"{path}: expected the output of the shards that there are now, got that of others; run `toolkit mix`"]
    stale, remedy = [], "; run `toolkit mix`"
    for entry in manifest.inputs:
        dataset = datasets[entry.stream]
        state = row_index.current(dataset, entry.shard)
        if state is not None and state.content != entry.documents:
            made = f"made from an earlier version of {entry.shard}"
            stale.append(f"{path}: expected the documents of now, {made}{remedy}")
        for set_name, digest in entry.attributes.items():
            record = sets.load_record(dataset, set_name, entry.shard)
            if record is not None and record.output.content != digest:
                made = f"made from earlier attributes {set_name} of {entry.shard}"
                stale.append(f"{path}: expected the attributes of now, {made}{remedy}")
    return stale


def _check_settings(context: Context) -> list[str]:
    """Whether the sets were made as the configuration says."""
    findings = []
    schemas = declared.set_schemas(tag_plan.read_section(context.section("tag")), context.dataset)
    for set_name, wanted in schemas.items():
        found = sets.load_schema(context.dataset, set_name)
        different = (
            declared.differences(found, wanted) + declared.edits(found, wanted) if found else ["it is not there"]
        )
        findings += [
            f"the set {set_name}: expected it as the configuration says: {line}; run `toolkit tag`"
            for line in different
        ]
    return findings


def _run(context: Context, what: str, works: list[ValidateJob], unit: str = "shards") -> list[str]:
    return _findings(_results(context, what, works, unit))


def _results(context: Context, what: str, works: list[ValidateJob], unit: str) -> list[Result[one_file.Checked]]:
    return context.run(what, one_file.check_file, [Task(f"{w.set} {w.path}", w) for w in works], unit)


def _findings(results: list[Result[one_file.Checked]]) -> list[str]:
    found: list[str] = []
    for result in results:
        found += result.value.findings if result.value else []
        found += [result.failure.message] if result.failure else []
    return found
