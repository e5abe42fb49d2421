"""Delete leftovers of killed runs, samples, or everything derived from one input; stop other runs first."""

import difflib
from collections.abc import Sequence
from contextlib import suppress
from typing import Annotated, ClassVar

from toolkit.command_options import CommandResult, Flag, Looking, Words
from toolkit.commands import _sections as sections
from toolkit.data.dataset import Dataset, open_dataset
from toolkit.errors import ConfigError, NothingThere, amount
from toolkit.ingest import attempts, ingest_config
from toolkit.make import make_config
from toolkit.records import external_sets, ingested, left_out, sets as records
from toolkit.records.ingested import lost_shards
from toolkit.stages.context import Context, Outcome
from toolkit.storage import store_of
from toolkit.storage.paths import BOOKKEEPING, is_folder, join, no_folder, remove_tree
from toolkit.tag import sample


class Cleaning(CommandResult, kw_only=True):
    """The result of `clean`: leftovers of runs, samples, and whether they are deleted now."""

    leftovers: list[str]
    samples: list[str]
    deleted: bool


class ForgottenInputs(CommandResult, kw_only=True):
    """The result of `clean --forget`: inputs, their shards, and whether what was made of them is deleted now."""

    inputs: list[str]
    shards: list[str]
    deleted: bool


class Options(Looking, frozen=True, kw_only=True):
    """Options of ``toolkit clean``.

    Attributes:
        targets: folders; settings, which override those of the file
        dry_run: delete nothing; list the files
        forget: delete what was made of an input, or of a shard whose documents are gone, and the records of it; or the
            records of an attribute set of another program
    """

    WRITES: ClassVar = True
    EXAMPLES: ClassVar = ("toolkit clean data/quickstart", "toolkit clean -c crawl.yaml --forget cc/a.warc.wet.gz")

    targets: Annotated[tuple[str, ...], Words()] = ()
    dry_run: Annotated[bool, Flag()] = False
    forget: Annotated[tuple[str, ...], Flag(metavar="NAME")] = ()


def run(context: Context, options: Options) -> Outcome:
    """Delete leftovers of ended processes, unfinished uploads to S3, and samples.

    Those of other machines are deleted, too: the nodes of a cluster that died do not come back to do it. With `forget`,
    the outputs of inputs are deleted instead, and their records.
    """
    if options.forget:
        return _forget(context, options)
    results = {
        leftover: root for root in _roots(context) for leftover in store_of(root).leftovers(root, any_owner=True)
    }
    samples = [folder for folder in _samples(context) if is_folder(folder)]
    if not options.dry_run:
        for leftover, root in results.items():
            store_of(root).discard(leftover)
        for folder in samples:
            remove_tree(folder)
    action = "would be deleted" if options.dry_run else "deleted"
    more = f", and {amount(len(samples), 'sample')}" if samples else ""
    return Outcome(
        text="\n".join([*results, *samples, f"{len(results)} files and uploads {action}{more}"]),
        data=Cleaning(leftovers=list(results), samples=samples, deleted=not options.dry_run),
    )


def _samples(context: Context) -> list[str]:
    """Return the sample folders of the dataset, or given folders."""
    if context.options.targets:
        folders = map(_folder, context.options.targets)
        return list(dict.fromkeys(join(folder, BOOKKEEPING, sample.FOLDER) for folder in folders))
    return [sample.folder_of(context.dataset)] if context.has_dataset else []


def _forget(context: Context, options: Options) -> Outcome:
    """Delete the outputs of inputs, or of lost shards, then their records. After a kill, the same command does the
    rest.

    Raises:
        ConfigError: if there is no configuration with a dataset, or a name is of nothing that can be forgotten.
    """
    if not context.has_dataset:
        raise ConfigError(
            "--forget: expected a configuration with a dataset (-c), or `-c CONFIG dataset=ROOT`; got none"
        )
    dataset, holds = context.dataset, ingest_config.holds(context.entries)
    with context.lease(dataset.bookkeeping, dataset.documents, dict.fromkeys(holds, "")):
        ingested_inputs = dict(ingested.undamaged_summary(dataset).inputs.items())
        sets = external_sets.sets_seen(dataset)
        existing: list[str] = []
        with suppress(NothingThere):
            existing = dataset.shards()
        lost = lost_shards(dataset, existing, ingested_inputs.items())
        if unknown := [
            name for name in options.forget if not (name in ingested_inputs or name in lost or name in sets)
        ]:
            like = difflib.get_close_matches(unknown[0], [*ingested_inputs, *lost, *sets], cutoff=0) or ["none"]
            raise ConfigError(
                "--forget: expected an input that was ingested, as its record names it, a shard whose documents are "
                f"gone, or a set of another program, got {unknown[0]}; there is {like[0]}"
            )
        inputs = dict.fromkeys(name for name in options.forget if name in ingested_inputs)
        shards = sorted(
            {shard for key in inputs for shard in ingested_inputs[key].shards} | lost.keys() & {*options.forget}
        )
        results = _derived_documents(context, shards)
        if not options.dry_run:
            for home, of in results:
                with context.lease(home.bookkeeping, home.attributes, {f"the set {make_config.DOCUMENTS}": ""}):
                    attempts.forget_shards(open_dataset(home.attributes, None, None), of)
                    make_config.forget_shards(
                        home, of
                    )  # last: the same command, after a kill, knows them by these records
            external_sets.forget(dataset, shards, [name for name in options.forget if name in sets])
            attempts.forget_shards(dataset, shards)
            for _, record in ingested.load_others(dataset, lambda key: key not in inputs):
                left_out.forget(dataset, record)
            ingested.forget(dataset, inputs)
    action = "would be deleted" if options.dry_run else "deleted"
    named = amount(len(options.forget), "input" if len(inputs) == len(options.forget) else "name")
    paths = [dataset.shard_path(shard) for shard in shards]
    derived = [home.shard_path(shard) for home, of in results for shard in of]
    return Outcome(
        text="\n".join([*paths, *derived, f"{named}: {amount(len(paths), 'shard')} {action}"]),
        data=ForgottenInputs(inputs=[*inputs], shards=shards, deleted=not options.dry_run),
    )


def _derived_documents(context: Context, shards: Sequence[str]) -> list[tuple[Dataset, list[str]]]:
    """Return the documents of ``make:`` from these shards, by dataset."""
    section = context.section(make_config.SECTION) if context.has(make_config.SECTION) else None
    homes = map(make_config.home_of, make_config.roots(section) if section else ())
    return [(home, sorted({*shards} & {*records.recorded_shards(home, make_config.DOCUMENTS)})) for home in homes]


def _roots(context: Context) -> list[str]:
    """Return the given folders, or all output folders of the configuration."""
    if context.options.targets:
        return list(dict.fromkeys(map(_folder, context.options.targets)))
    roots = []
    if context.has_dataset:
        dataset = context.dataset
        roots += [*dataset.written, dataset.attributes, dataset.bookkeeping]
    if context.has(make_config.SECTION):
        roots += make_config.roots(context.section(make_config.SECTION))
    for mix in map(sections.mix, sections.mixes(context).values()):
        roots += [mix.output.path, *([mix.rejected] if mix.rejected else [])]
    if not roots:
        raise ConfigError(f"{context.options.config}: expected folders that are written in, got none")
    return list(dict.fromkeys(roots))


def _folder(target: str) -> str:
    """Return a folder; on S3 it may have only uploads."""
    root = target.rstrip("/")
    store = store_of(target)
    if not store.can_write or root.endswith(":") or (store.is_local and not is_folder(root)):
        expected = "expected a folder on disk, or s3://BUCKET and a prefix; check its name"
        raise ConfigError(f"{target}: {expected}{no_folder(root)}")
    return root
