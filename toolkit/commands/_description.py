"""Provide the section `about:` and the facts for describing commands."""

import sys
from collections.abc import Callable, Sequence
from typing import Annotated, Literal, NamedTuple, TypeVar

from msgspec.structs import replace

from toolkit.command_options import Flag, Inspecting, Words
from toolkit.commands import _sections as sections
from toolkit.config.settings import ConfigNode
from toolkit.data.dataset import Dataset
from toolkit.describe import splits
from toolkit.describe.about import About
from toolkit.describe.dataset import dataset_facts
from toolkit.describe.model import Facts
from toolkit.describe.output import output_facts
from toolkit.describe.record_types import DescribeRequest
from toolkit.describe.scan import FileScan, ScanJob, scan_file, sha256_of
from toolkit.describe.splits import SplitJob
from toolkit.errors import ConfigError
from toolkit.execution.executors import R, Report, Task
from toolkit.inspect import targets
from toolkit.mix import publication
from toolkit.records import origins
from toolkit.stages.context import Context, all_values
from toolkit.storage.paths import exists, is_folder, join, not_in
from toolkit.validate.croissant import Describe
from toolkit.validate.file_checks import ValidateJob, check_aligned

W = TypeVar("W", ScanJob, SplitJob, ValidateJob)


class DescriptionOptions(Inspecting, frozen=True, kw_only=True):
    """Options of commands for descriptions of a dataset or an output.

    Attributes:
        targets: an output or a dataset; settings, which override those of the file
        of: the thing to describe; by default the output, if there is a mix
        first: read only the first N rows of each file
        dry_run: write nothing; print the result
        check: write nothing; exit status 1 if the file is out of date
        overwrite: replace the description of another dataset, or one that the toolkit did not write
    """

    targets: Annotated[tuple[str, ...], Words()] = ()
    of: Annotated[Literal["dataset", "output"] | None, Flag()] = None
    first: Annotated[int | None, Flag(metavar="N")] = None
    dry_run: Annotated[bool, Flag()] = False
    check: Annotated[bool, Flag()] = False
    overwrite: Annotated[bool, Flag()] = False


def section(context: Context) -> ConfigNode:
    """Return the section ``about:``; without a configuration, what the command line gives of it, and of all others.

    Raises:
        ConfigError: if the command line names another thing than a folder.
    """
    if context.options.config is not None:
        config_node = context.source.at("about") if context.has("about") else ConfigNode({}, context.options.config)
    else:
        config_node = context.source.at("about") if context.has("about") else context.source
    for target in context.options.targets:
        if not is_folder(target):
            got = "a file" if exists(target) else "nothing there"
            raise ConfigError(f"{target}: expected the folder of an output, or of a dataset, got {got}")
    return config_node


def facts_of(context: Context, options: DescriptionOptions, examples: int) -> Facts:
    """Return the facts about the target, or the configuration's output or dataset.

    Args:
        context: Context of the command.
        options: Options of the command.
        examples: Rows of each file to keep as examples.

    Raises:
        ConfigError: if there is nothing to describe.
        ToolkitError: naming files that cannot be read.
    """
    request = _request(context, options.first, examples)
    if options.targets:
        target = options.targets[0].rstrip("/")
        if options.targets[1:]:
            raise ConfigError(f"expected one path, got {', '.join(options.targets)}")
        of = options.of or ("dataset" if targets.expected(target).kind == "dataset" else "output")
        if of == "output":
            return replace(output_facts(target, [], request), origin=publication.origin_of(target))
        dataset = Dataset(join(target, "documents"), join(target, "attributes"))
        return replace(dataset_facts(dataset, request), origin=origins.origin_of([dataset]))
    of = options.of or ("output" if context.has("mix") else "dataset")
    if of == "dataset":
        facts = dataset_facts(context.dataset, request)
        if unfinished := context.shards(context.dataset)[1]:
            facts.notes.append(unfinished.strip())
        return replace(facts, origin=origins.origin_of([context.dataset]))
    settings = sections.mix(context)
    folder = settings.output.path
    if publication.load_manifest(folder) is None:
        raise ConfigError(f"{folder}: expected the output of a mix, got none; run `toolkit mix`{not_in(folder)}")
    datasets = [stream.dataset for stream in settings.streams]
    origins.check(folder, publication.origin_of(folder), datasets, "its description", overwrite=options.overwrite)
    return replace(output_facts(folder, datasets, request), origin=origins.origin_of(datasets))


class ScanCache(NamedTuple):
    """Results of earlier reads of one command, for a description.

    Attributes:
        scans: Outcomes of looks at whole files, by path.
        aligned: Sets and shards whose attributes were held against the documents.
    """

    scans: dict[str, FileScan]
    aligned: set[tuple[Dataset, str, str]]


def describer(context: Context, cache: ScanCache) -> Describe:
    """Return a function for facts with splits; nothing is written."""

    def describe(target: Dataset | str, about: About, first: int | None) -> Facts:
        request = _request(context, first, about.examples, cache)
        facts = dataset_facts(target, request) if isinstance(target, Dataset) else output_facts(target, [], request)
        return facts if first is not None else split(context, about, facts, dry_run=True)

    return describe


def _request(context: Context, first: int | None, examples: int, cache: ScanCache | None = None) -> DescribeRequest:
    max_bytes = context.config.max_document_bytes
    results, aligned = cache or ScanCache({}, set())

    def looks(works: list[ScanJob]) -> list[FileScan]:
        for work in works:
            if work.path in results and work.digest and not results[work.path].sha256:
                results[work.path].sha256 = sha256_of(work.path)
        missing = [work for work in works if work.path not in results]
        new = dict(
            zip((work.path for work in missing), run_each(context, "looking at files", scan_file, missing), strict=True)
        )
        if first is None:
            results.update(new)
        return [new[work.path] if work.path in new else results[work.path] for work in works]

    def aligns(dataset: Dataset, set_name: str, shards: Sequence[str]) -> None:
        works = [
            ValidateJob("attributes", shard, max_bytes, dataset, set_name, first=first)
            for shard in shards
            if (dataset, set_name, shard) not in aligned
        ]
        run_each(context, "align", check_aligned, works)
        aligned.update((dataset, set_name, shard) for shard in shards if first is None)

    return DescribeRequest(looks, aligns, first, examples, max_bytes)


def split(context: Context, about: About, facts: Facts, *, dry_run: bool) -> Facts:
    """Return the facts with the requested splits. Their files are written, except in a dry run.

    Raises:
        ConfigError: if files should be parted by split, and are not.
    """
    if (
        about.splits.get("by") == "file" and facts.is_output
    ):  # the documents of a dataset are not parted: a hash of the id decides
        if {split.name: split.share for split in facts.splits} != about.shares:
            raise ConfigError(
                f"{facts.root}: expected the output of a mix that parts its files by about.splits, got another; "
                "run `toolkit mix`"
            )
        return facts
    if not about.splits:
        return facts
    works = splits.plan(facts, about.shares, context.config.max_document_bytes, about.examples, dry_run=dry_run)
    return splits.added(
        facts, about.shares, run_each(context, "writing which split each document is in", splits.write, works)
    )


def is_replaced(facts: Facts, name: str, *, overwrite: bool) -> bool:
    """Return true to replace a description of another dataset; print a warning.

    Raises:
        ConfigError: if it is of another dataset, and may not be replaced.
    """
    path = join(facts.root, name)
    origin = origins.load(facts.root, name) if exists(path) and facts.origin else None
    replaced = facts.origin and origins.check(path, origin, facts.origin, "a description", overwrite=overwrite)
    if replaced:
        print(replaced, file=sys.stderr)
    return bool(replaced)


def note_origin(facts: Facts, name: str) -> None:
    """Record the origin of a description."""
    if facts.origin:
        origins.save(facts.root, {name: facts.origin})


def run_each(context: Context, step: str, function: Callable[[W, Report], R], works: list[W]) -> list[R]:
    """Return the result of a function for each file.

    Raises:
        ToolkitError: if it fails for one, with the messages of all.
    """
    if not works:
        return []
    return all_values(context.run(step, function, [Task(work.path, work) for work in works], "files"))
