"""Browse documents and their attributes in a browser, and label them by hand."""

import getpass
import os
import sys
from typing import Annotated, ClassVar

import msgspec

from toolkit.commands.command_line.options import Flag, Limited, Looking
from toolkit.commands.steps.context import Context
from toolkit.commands.steps.outcome import Outcome
from toolkit.commands.viewing import corpora
from toolkit.errors import ConfigError, amount, did_you_mean
from toolkit.view.answers import Answers
from toolkit.view.corpus import Corpus
from toolkit.view.dataset import DatasetCorpus
from toolkit.view.labels import Labels, asking_of
from toolkit.view.server import ViewServer

VERDICT = "verdict=keep,drop"
"""What is asked about documents if nothing is said."""


class Options(Looking, Limited, frozen=True, kw_only=True):
    """Options of ``toolkit view``."""

    EXAMPLES: ClassVar = (
        "toolkit view -c configs/quickstart.yaml",
        "toolkit view data/oscar --label quality=good,bad --labels labels.jsonl",
    )

    port: Annotated[int | None, Flag("the port on 127.0.0.1 (any free port)", metavar="N")] = None
    set: Annotated[
        tuple[str, ...], Flag("a set that is switched on at the start (all sets); you can give several")
    ] = ()
    label: Annotated[
        tuple[str, ...],
        Flag(
            f"a question for labels by hand: NAME=LABEL,LABEL or NAME=0..5 ({VERDICT}); you can give several",
            metavar="NAME=LABELS",
        ),
    ] = ()
    labels: Annotated[
        str | None, Flag("the file for the labels (NAME.labels.jsonl in the current folder)", metavar="FILE")
    ] = None
    annotator: Annotated[str | None, Flag("who gives the labels (the user's name)", metavar="NAME")] = None

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
        if extra := [each for each in options.targets if "=" not in each]:
            raise ConfigError(f"expected a path, or -c FILE with settings KEY=VALUE, got -c and the path {extra[0]!r}")
        dataset = corpora.of_configuration(context)
        if context.has("mix"):
            explainer, rules = corpora.explainer_of(context, dataset), corpora.rules_of(context)
        corpus: Corpus = dataset
    else:
        corpus = corpora.of_path(context, options.targets[0])
    shown = _shown(options, corpus)
    questions = [asking_of(each) for each in options.label or (VERDICT,)]
    with Labels(_path_of(options), questions, options.annotator or _user()) as labels:
        answers = Answers(corpus, labels, explainer, rules, shown)
        with ViewServer(answers, options.port or 0, debug=options.debug) as server:
            try:
                print(msgspec.json.encode({"url": server.url}).decode() if options.json else server.url, flush=True)
                _tell(options, corpus)
                server.serve()
            finally:
                if len(labels) and not options.quiet:
                    print(f"labels of {amount(len(labels), 'document')} -> {labels.path}", file=sys.stderr)
    return Outcome()


def _shown(options: Options, corpus: Corpus) -> list[str]:
    known = [each.name for each in corpus.sets]
    for name in options.set:
        if name not in known:
            hint = did_you_mean(name, known) or f"; there are: {', '.join(known) or 'none'}"
            raise ConfigError(f"--set {name}: expected a set{hint}")
    return list(options.set) or known


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
    counts = [each.rows for each in corpus.shards]
    documents = sum(count for count in counts if count is not None)
    known = f"{documents:,} documents" + (" or more" if None in counts else "")
    what = "shard" if isinstance(corpus, DatasetCorpus) else "file"
    print(f"{corpus.title}: {known} in {amount(len(counts), what)}; Ctrl-C ends it", file=sys.stderr)
