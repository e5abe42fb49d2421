"""Browse documents and attributes in a browser, and label them by hand."""

import getpass
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar

import msgspec

from toolkit.command_options import Flag, Inspecting, Limited
from toolkit.commands import _mix_preparation as preparation, _sections as sections, _tracing as tracing
from toolkit.commands.trace import tokens_of
from toolkit.config.settings import ConfigNode
from toolkit.data.dataset import Dataset, open_dataset
from toolkit.data.document_fields import OwnTypes
from toolkit.errors import ConfigError, amount, choices
from toolkit.ingest import inputs
from toolkit.inspect import targets
from toolkit.inspect.documents import expected_format, merged_types
from toolkit.mix.bindings import ShardToMix
from toolkit.mix.join import JoinedSet, names_for_rules, null_safe
from toolkit.mix.publication import Manifest
from toolkit.mix.settings import REJECTED, MixSettings, Stream
from toolkit.stages.context import Context, Outcome
from toolkit.stages.dispatch import open_context
from toolkit.storage.paths import join
from toolkit.view.answers import CorpusAnswers
from toolkit.view.corpus import Corpus
from toolkit.view.dataset import DatasetCorpus, Explainer
from toolkit.view.files import FileCorpus
from toolkit.view.labels import LabelFile, question_of
from toolkit.view.questions import MixNames
from toolkit.view.server import ViewServer


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
        context, context.dataset, context.options.config or "", sections.mix(context) if context.has("mix") else None
    )


def of_path(context: Context, path: str) -> Corpus:
    """Return the corpus at a path: a dataset, an output, a release, or documents.

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
    """Return True if an output refuses duplicate ids."""
    return not any(stream.get("duplicate_ids") == "allow" for stream in manifest.settings.get("streams", ()))


def of_dataset(context: Context, dataset: Dataset, title: str, mix: MixSettings | None = None) -> DatasetCorpus:
    """Return a dataset with all of its attribute sets; their keys are called as the mix calls them."""
    shards = context.shards(dataset)[0]
    names = dataset.sets() if dataset.attributes else []
    resolved = context.source_of(dataset, shards).resolve_each(names, "view", check="warn")
    context.warn(resolved.unreadable.values())
    own = inputs.of_documents(dataset, shards)
    streams = [stream for stream in mix.streams if stream.dataset.documents == dataset.documents] if mix else []
    resolved.sets = [_named_by(streams, joined) for joined in resolved.sets]
    return DatasetCorpus(
        title,
        resolved,
        own=own,
        mix=_as_in(mix, streams, resolved.sets, own) if mix else MixNames(),
        sources=[source for entry in context.entries if (source := entry.settings().source)],
        max_bytes=context.config.max_document_bytes,
    )


def _named_by(streams: Sequence[Stream], joined: JoinedSet) -> JoinedSet:
    """Return a set with its keys' names in a mix: in the first stream that joins it."""
    names = next(
        (attribute.as_ for stream in streams for attribute in stream.attributes if attribute.set == joined.set), {}
    )
    keys = [msgspec.structs.replace(key, name=names.get(key.key, key.name)) for key in joined.keys]
    return msgspec.structs.replace(joined, keys=keys)


def _as_in(mix: MixSettings, streams: Sequence[Stream], sets: Sequence[JoinedSet], own: OwnTypes | None) -> MixNames:
    """Return the names of a mix for conditions."""
    joined = list(dict.fromkeys(attribute.set for stream in streams for attribute in stream.attributes))
    names = names_for_rules([item for item in sets if item.set in joined], own)
    return MixNames(
        sets=joined,
        label=mix.label or null_safe(mix.writer().label(), names) or "",
        rules=[rule for stream in streams for rule in stream.all_rules],
        names={key.key: key.name for item in sets for key in item.keys if key.key != key.name},
    )


def explainer_of(context: Context, corpus: DatasetCorpus) -> Explainer:
    """Return an explainer for the mix of a configuration, prepared on demand."""
    options = context.options
    value = {**context.source.value, "executor": {"type": "in_process"}}  # a thread of a server begins no processes
    source = ConfigNode(value, context.source.name, context.source.lines, context.source.inside)
    options = msgspec.structs.replace(options, config_node=source, dry_run=True, quiet=True)

    def prepared() -> tuple[Sequence[ShardToMix], Mapping[str, str]]:
        mine = open_context(options)
        prepared_mix = preparation.fill_budget(
            mine, preparation.prepare(mine, preparation.settings_of(mine, writes=False))
        )
        return prepared_mix.works, prepared_mix.unreadable

    def trace(work: ShardToMix, row: int) -> dict[str, Any]:
        pieces = msgspec.to_builtins(list(tokens_of(open_context(options), {(work.key, row): (None,)})))
        return {**tracing.origin(work.dataset, work.shard, row), "pieces": pieces}

    return Explainer(corpus, prepared, trace)


def rules_of(context: Context) -> list[dict[str, str]]:
    """Return the dropping rules of a mix, in written form."""
    rules = [rule for stream in sections.mix(context).streams for rule in stream.all_rules if rule.ROLE.drops]
    written = {rule.name: rule for rule in reversed(rules)}  # streams may share rules
    return [
        {"name": name, "expression": " and ".join(written[name].expressions)}
        for name in dict.fromkeys(rule.name for rule in rules)
    ]


VERDICT = "verdict=keep,drop"
"""The default question about documents."""


class Options(Inspecting, Limited, frozen=True, kw_only=True):
    """Options of ``toolkit view``.

    Attributes:
        port: the port on 127.0.0.1 (any free port)
        set: a set that is switched on at the start (all sets); you can give several
        label: a question for labels by hand: NAME=LABEL,LABEL or NAME=0..5 (verdict=keep,drop); you can give several
        labels: the file for the labels (NAME.labels.jsonl in the current folder)
        annotator: name of the person who labels (the user's name)
    """

    EXAMPLES: ClassVar = (
        "toolkit view -c configs/quickstart.yaml",
        "toolkit view data/oscar --label quality=good,bad --labels labels.jsonl",
    )

    port: Annotated[int | None, Flag(metavar="N")] = None
    set: Annotated[tuple[str, ...], Flag()] = ()
    label: Annotated[tuple[str, ...], Flag(metavar="NAME=LABELS")] = ()
    labels: Annotated[str | None, Flag(metavar="FILE")] = None
    annotator: Annotated[str | None, Flag(metavar="NAME")] = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.port is not None and self.port > 65535:
            raise ConfigError(f"--port: expected a number up to 65535, got {self.port}")
        if self.config is None and len(self.targets) != 1:
            raise ConfigError(f"expected one path, got {len(self.targets)}")


def run(context: Context, options: Options) -> Outcome:
    """Serve the pages until the process is interrupted. The address is the first line of standard output."""
    if context.is_dolma:
        raise ConfigError(
            "expected a configuration of our own form, got one of Dolma's; give the folder of its documents"
        )
    explainer, rules = None, []
    if options.config is not None and options.text_field is None:
        if extra := [target for target in options.targets if "=" not in target]:
            raise ConfigError(f"expected a path, or -c FILE with settings KEY=VALUE, got -c and the path {extra[0]!r}")
        dataset = of_configuration(context)
        if context.has("mix"):
            explainer, rules = explainer_of(context, dataset), rules_of(context)
        corpus: Corpus = dataset
    else:
        corpus = of_path(context, options.targets[0])
    visible_sets = _visible_sets(options, corpus)
    questions = [question_of(item) for item in options.label or (VERDICT,)]
    with LabelFile(_path_of(options), questions, options.annotator or _user()) as labels:
        answers = CorpusAnswers(corpus, labels, explainer, rules, visible_sets)
        with ViewServer(answers, options.port or 0, debug=options.debug) as server:
            try:
                print(msgspec.json.encode({"url": server.url}).decode() if options.json else server.url, flush=True)
                _tell(options, corpus)
                server.serve()
            finally:
                if len(labels) and not options.quiet:
                    print(f"labels of {amount(len(labels), 'document')} -> {labels.path}", file=sys.stderr)
    return Outcome()


def _visible_sets(options: Options, corpus: Corpus) -> list[str]:
    names = [values.name for values in corpus.sets]
    for name in options.set:
        if name not in names:
            raise ConfigError(f"--set {name}: expected a set{choices(name, names)}")
    return list(options.set) or names


def _path_of(options: Options) -> str:
    """Return the path of the labels: in the current folder, called as what is looked at."""
    if options.labels is not None:
        return options.labels
    name = os.path.basename((options.config or options.targets[0]).rstrip("/"))
    return f"{name.partition('.')[0] or 'view'}.labels.jsonl"


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # a user without a name
        return "somebody"


def _tell(options: Options, corpus: Corpus) -> None:
    if options.quiet:
        return
    counts = [shard.rows for shard in corpus.shards]
    documents = sum(count for count in counts if count is not None)
    count_text = f"{documents:,} documents" + (" or more" if None in counts else "")
    unit = "shard" if isinstance(corpus, DatasetCorpus) else "file"
    print(f"{corpus.title}: {count_text} in {amount(len(counts), unit)}; Ctrl-C ends it", file=sys.stderr)
