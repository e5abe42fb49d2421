"""What is browsed, of a configuration or a path: a dataset with all its sets, or the files of an output."""

from collections.abc import Mapping, Sequence

import msgspec

from toolkit.commands.mixing import budgets, preparation
from toolkit.commands.opening import open_context
from toolkit.commands.steps import shards as sharing
from toolkit.commands.steps.context import Context
from toolkit.config.settings import Source
from toolkit.data.dataset import Dataset, open_dataset
from toolkit.data.own_types import OwnTypes
from toolkit.errors import ConfigError
from toolkit.ingest import own_types
from toolkit.inspect import targets
from toolkit.inspect.documents import expected_format, merged_types
from toolkit.mix.join import ShardToMix
from toolkit.mix.joined_sets import JoinedSet, names_for_rules, null_safe
from toolkit.mix.publish import Manifest
from toolkit.mix.settings import REJECTED, MixSettings, Stream
from toolkit.storage.paths import join
from toolkit.view.conditions import AsInMix
from toolkit.view.corpus import Corpus
from toolkit.view.dataset import DatasetCorpus
from toolkit.view.explained import Explainer
from toolkit.view.files import FileCorpus


def of_configuration(context: Context) -> DatasetCorpus:
    """Return the dataset of a configuration.

    Raises:
        ConfigError: if it names none.
    """
    if not context.has_dataset:
        raise ConfigError(
            f"{context.options.config}: expected `dataset:` or `documents:`, got neither; give the folder of one of "
            "its datasets: `toolkit view FOLDER`"
        )
    return of_dataset(
        context, context.dataset, context.options.config or "", context.mix if context.has("mix") else None
    )


def of_path(context: Context, path: str) -> Corpus:
    """Return what lies at a path: a dataset, an output, a release, or documents.

    Raises:
        ConfigError: if it is none of these.
    """
    target = targets.expected(path)
    if target.kind == "dataset":
        return of_dataset(context, open_dataset(target.path, None, None), target.path)
    manifest = target.manifest
    rows = {part.path: part.documents for part in manifest.parts if part.label != REJECTED} if manifest else {}
    files = [(name, join(target.folder, name), rows.get(name)) for name in context.limited(target.files)]
    if not files:
        raise ConfigError(f"{path}: expected files with documents, got none")
    format_ = targets.recorded_format(manifest.settings) if manifest else expected_format(files[0][1])
    return FileCorpus(
        target.path,
        target.kind,
        files,
        writer=format_.writer() if format_ else None,
        merged=merged_types(manifest) if manifest else {},
        max_bytes=2 * context.config.max_document_bytes,
        is_unique=_is_unique(manifest) if manifest else target.kind == "release" or len(files) == 1,
    )


def _is_unique(manifest: Manifest) -> bool:
    """Return whether documents of an output have ids of their own, because others were refused."""
    return not any(stream.get("duplicate_ids") == "allow" for stream in manifest.settings.get("streams", ()))


def of_dataset(context: Context, dataset: Dataset, title: str, mix: MixSettings | None = None) -> DatasetCorpus:
    """Return a dataset, with all attribute sets that are there; their keys are called as the mix calls them."""
    shards = context.limited(sharing.shards(context, dataset)[0])
    names = dataset.sets() if dataset.attributes else []
    resolved = context.source_of(dataset, shards).resolve_each(names, "view", check="warn")
    context.warn(resolved.unreadable.values())
    own = own_types.of_documents(dataset, shards)
    streams = [each for each in mix.streams if each.dataset.documents == dataset.documents] if mix else []
    sets = [_named_by(streams, joined) for joined in resolved.sets]
    return DatasetCorpus(
        title,
        dataset,
        shards,
        {joined.set: joined for joined in sets},
        own=own,
        mix=_as_in(mix, streams, sets, own) if mix else AsInMix(),
        sources=[source for entry in context.entries if (source := entry.settings().source)],
        max_bytes=context.config.max_document_bytes,
    )


def _named_by(streams: Sequence[Stream], joined: JoinedSet) -> JoinedSet:
    """Return a set with the names that its keys have in a mix: in the first stream that joins it."""
    names = next((each.as_ for stream in streams for each in stream.attributes if each.set == joined.set), {})
    keys = [msgspec.structs.replace(key, name=names.get(key.key, key.name)) for key in joined.keys]
    return msgspec.structs.replace(joined, keys=keys)


def _as_in(mix: MixSettings, streams: Sequence[Stream], sets: Sequence[JoinedSet], own: OwnTypes | None) -> AsInMix:
    """Return what conditions may use as the rules of the streams do."""
    joined = list(dict.fromkeys(each.set for stream in streams for each in stream.attributes))
    names = names_for_rules([each for each in sets if each.set in joined], own)
    return AsInMix(
        sets=joined,
        label=mix.label or null_safe(mix.writer().label(), names) or "",
        rules=[rule for stream in streams for rule in stream.all_rules],
        names={key.key: key.name for each in sets for key in each.keys if key.key != key.name},
    )


def explainer_of(context: Context, corpus: DatasetCorpus) -> Explainer:
    """Return what explains documents by the mix of a configuration, which is prepared when somebody asks."""
    options = context.options
    value = {**context.source.value, "executor": {"type": "in_process"}}  # a thread of a server begins no processes
    source = Source(value, context.source.name, context.source.lines, context.source.inside)
    options = msgspec.structs.replace(options, given=source, dry_run=True, quiet=True)

    def prepared() -> tuple[Sequence[ShardToMix], Mapping[str, str]]:
        mine = open_context(options)
        found = budgets.fill(mine, preparation.prepare(mine, preparation.settings_of(mine, writes=False)))
        return found.works, found.unreadable

    return Explainer(corpus, prepared)


def rules_of(context: Context) -> list[dict[str, str]]:
    """Return the rules of a mix that drop documents, as they are written."""
    rules = [rule for stream in context.mix.streams for rule in stream.all_rules if rule.ROLE.drops]
    written = {rule.name: rule for rule in reversed(rules)}  # streams may share rules
    return [
        {"name": name, "expression": " and ".join(written[name].expressions)}
        for name in dict.fromkeys(rule.name for rule in rules)
    ]
