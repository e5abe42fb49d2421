"""List all taggers; with names, describe these taggers and measure their speed."""

import importlib.metadata
import inspect
import os
import sys
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, ClassVar

import msgspec

from toolkit import distribution
from toolkit.command_options import CommandResult, Flag, Options as CommonOptions, Words
from toolkit.config.docstrings import documentation, purpose
from toolkit.data import schema
from toolkit.data.documents import Document
from toolkit.errors import ConfigError, ToolkitError, amount, choices
from toolkit.plugins import default_name
from toolkit.stages.context import Context, Outcome, table
from toolkit.tag import tagger, tagger_docs, trial
from toolkit.tag.tagger import TAGGERS, Example, Tagger

LINE_CHARS = 90
VALUE_CHARS = 200
MORE = "`toolkit taggers NAME` describes one, and measures it."
MEASURED = 1000
"""Documents of a file on which a tagger is measured at most."""


class ListedTagger(msgspec.Struct, kw_only=True):
    """A tagger in the list: its name, what it is about, where it comes from, and what is wrong with it."""

    name: str
    about: str = ""
    origin: str = msgspec.field(name="from")
    error: str | None = None


class TaggerList(CommandResult, kw_only=True):
    """The result of `taggers`."""

    taggers: list[ListedTagger]


class NeededExtra(msgspec.Struct, kw_only=True):
    """Extra of a tagger or an option's choice; and its installation."""

    extra: str
    choice: str = msgspec.field(name="for")
    installed: bool | None


class TaggerDescription(msgspec.Struct, kw_only=True):
    """A tagger: its documentation, its value, its options, what it reads and needs, and what it costs."""

    name: str
    tagger: str
    origin: str = msgspec.field(name="from")
    file: str
    class_: str = msgspec.field(name="class")
    documentation: str
    source: str
    value: Any
    type: str
    values: list[tagger_docs.Value]
    options: list[tagger_docs.Option]
    variants: list[str]
    reads: list[tagger_docs.Read]
    models: dict[str, str]
    extras: list[NeededExtra]
    examples: list[Example]
    cost: trial.Cost | None = None
    not_measured: str | None = None


class TaggerDescriptions(CommandResult, kw_only=True):
    """The result of `taggers NAME`."""

    taggers: list[TaggerDescription]


class Options(CommonOptions, frozen=True, kw_only=True):
    """Options of ``toolkit taggers``.

    Attributes:
        targets: names, path/file.py, path/file.py:Class, package.module:Class; TAGGER.OPTION=VALUE
        files: list the taggers of this file, too
        sample: measure on this text or shard, instead of made-up pages; - is standard input
        lines: each line of the text is a document, with --try
    """

    SETTINGS: ClassVar = False
    EXAMPLES: ClassVar = ("toolkit taggers", "toolkit taggers line_shape")

    targets: Annotated[tuple[str, ...], Words("TAGGER | KEY=VALUE")] = ()
    files: Annotated[tuple[str, ...], Flag("--file", metavar="FILE")] = ()
    sample: Annotated[str | None, Flag("--try", metavar="FILE")] = None
    lines: Annotated[bool, Flag()] = False


def run(context: Context, options: Options) -> Outcome:
    """List all taggers, or describe the named ones."""
    if not options.targets:
        if options.overrides or options.sample:
            raise ConfigError("expected the name of a tagger, too; `toolkit taggers` lists them")
        return _list(options.files)
    entries = trial.entries_of([*options.targets, *options.files])
    for assignment in options.overrides:
        if (key := trial.key_of(assignment)) not in entries:
            raise ConfigError(
                f"{assignment!r}: expected TAGGER.OPTION=VALUE, got no tagger {key!r}{choices(key, entries)}"
            )
    descriptions = [_measured(context, options, key, entry) for key, entry in entries.items()]
    return Outcome(text="\n\n\n".join(map(_show, descriptions)), data=TaggerDescriptions(taggers=descriptions))


# --- all of them ------------------------------------------------------------------------------------------------------


def _list(files: Iterable[str]) -> Outcome:
    listed_taggers = [_line(name) for name in TAGGERS.names()]
    for path in files:
        try:
            listed_taggers += [_line(reference) for reference in TAGGERS.in_file(path)]
        except ConfigError as error:
            listed_taggers.append(ListedTagger(name=path, origin=f"file {path}", error=_one_line(error)))
    rows = [["tagger", "what it is about", "from"]]
    rows += [
        [listed_tagger.name, _cut(listed_tagger.about), listed_tagger.origin]
        for listed_tagger in listed_taggers
        if not listed_tagger.error
    ]
    broken = [
        f"{listed_tagger.name} ({listed_tagger.origin}): {listed_tagger.error}"
        for listed_tagger in listed_taggers
        if listed_tagger.error
    ]
    return Outcome(
        text="\n".join([table(rows), "", *broken, *([""] if broken else []), MORE]),
        data=TaggerList(taggers=listed_taggers),
        exit_code=1 if broken else 0,
    )


def _line(reference: str) -> ListedTagger:
    """Return a tagger's line of the list, or its error."""
    line = ListedTagger(name=reference, origin=_origin(reference))
    try:
        class_ = TAGGERS.find(reference)
        tagger.value_type(class_)
        tagger_docs.options(class_)
        line.about = purpose(class_, reference)
    except Exception as error:  # a broken tagger hides no other
        line.error = _one_line(error)
    return line


def _origin(reference: str) -> str:
    """Return the origin of a tagger."""
    place, colon, _ = reference.rpartition(":")
    if colon:
        return f"file {place}" if place.endswith(".py") else f"module {place}"
    for entry in importlib.metadata.entry_points(group=TAGGERS.group):
        if entry.name == reference and not TAGGERS.is_built_in(reference):
            return f"{entry.dist.name} {entry.dist.version}" if entry.dist else entry.value
    return "built in"


def _one_line(error: BaseException) -> str:
    is_ours = isinstance(error, ToolkitError)
    return " ".join((str(error) if is_ours else f"{type(error).__name__}: {error}").split())


def _cut(text: str) -> str:
    return text if len(text) <= LINE_CHARS else text[: LINE_CHARS - 1] + "…"


# --- one --------------------------------------------------------------------------------------------------------------


def _described(reference: str) -> TaggerDescription:
    class_ = TAGGERS.find(reference)
    try:
        return _facts(reference, class_)
    except (TypeError, NameError, ValueError) as error:
        raise ConfigError(f"{reference}: expected types that msgspec knows, got {_one_line(error)}") from None


def _facts(reference: str, class_: type[Tagger]) -> TaggerDescription:
    value = tagger.value_type(class_)
    return TaggerDescription(
        name=default_name(reference),
        tagger=reference,
        origin=_origin(reference),
        file=os.path.relpath(inspect.getfile(class_)) if hasattr(sys.modules[class_.__module__], "__file__") else "",
        class_=f"{class_.__module__}:{class_.__name__}",
        documentation=documentation(class_),
        source=tagger_docs.source(class_),
        value=schema.to_json(value),
        type=str(value),
        values=list(tagger_docs.values(class_)),
        options=list(tagger_docs.options(class_)),
        variants=tagger_docs.choices(class_, "variant"),
        reads=list(tagger_docs.reads(class_)),
        models=tagger_docs.models(class_),
        extras=[
            NeededExtra(extra=extra, choice=choice, installed=_is_installed(extra))
            for extra, choice in tagger_docs.extras(class_).items()
        ],
        examples=list(class_.EXAMPLES),
    )


def _is_installed(extra: str) -> bool | None:
    """Return True if the packages of an extra are installed.

    None if there is no such extra.
    """
    names = distribution.requirements_of(extra)
    for name in names:
        try:
            importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            return False
    return True if names else None


def _measured(context: Context, options: Options, key: str, entry: Mapping[str, Any]) -> TaggerDescription:
    """Return a tagger with its cost here, or the reason without it."""
    description = _described(entry["tagger"])
    overrides = [assignment for assignment in options.overrides if trial.key_of(assignment) == key]
    try:
        documents = _documents(context, options)
        steps = trial.steps_of(trial.plan_of({key: dict(entry)}, overrides, complete=True))
        description.cost = trial.measure(steps, key, documents)
    except ToolkitError as error:
        if overrides or options.sample or len(entry) > 1:
            raise
        description.not_measured = _one_line(error)
    return description


def _documents(context: Context, options: Options) -> list[Document]:
    if options.sample is None:
        return trial.sample_pages()
    limit = context.config.max_document_bytes
    return [t.document for t in trial.read_documents(options.sample, MEASURED, lines=options.lines, max_bytes=limit)]


def _show(description: TaggerDescription) -> str:
    lines = [
        f"{description.name}  ({description.origin}; {description.file or description.class_})",
        "",
        description.documentation,
    ]
    if description.source:
        lines += ["", f"Source: {description.source}"]
    facts = [("value", description.type)]
    facts += [("reads", _read(read)) for read in description.reads]
    facts += [("model", f"{option}: {model or 'required'}") for option, model in description.models.items()]
    if description.variants:
        facts.append(("variants", ", ".join(description.variants)))
    facts += [("extra", _extra(extra)) for extra in description.extras]
    facts.append(("cost", _show_cost(description)))
    width = max(len(name) for name, _ in facts)
    lines += ["", *(f"{name.ljust(width)}  {text}" for name, text in facts)]
    if parts := [value for value in description.values if value.name]:
        rows = [["value", "type", "what it is"]]
        rows += [
            [getattr(part, column).replace("`", "") for column in ("name", "type", "description")] for part in parts
        ]
        lines += ["", table(rows)]
    if description.options:
        rows = [["option", "type", "default", "what it is"]]
        rows += [[o.name, *(getattr(o, column).replace("`", "") for column in ("type", "default", "description"))]
                 for o in description.options]  # fmt: skip
        lines += ["", table(rows)]
    class_ = TAGGERS.find(description.tagger)
    for example in class_.EXAMPLES:
        lines += ["", *(f"  {line}" for line in tagger_docs.example(example, VALUE_CHARS))]
    return "\n".join(lines)


def _read(read: tagger_docs.Read) -> str:
    value = ", or a value" if read.or_value else ""
    return f"{read.key} (option {read.option}{value}{'' if read.required else '; if it is given'})"


def _extra(extra: NeededExtra) -> str:
    needed = f" for {extra.choice}" if extra.choice else ""
    missing = "" if extra.installed else f"; not installed: {distribution.install_line(extra.extra)}"
    return f"{extra.extra}{needed}{missing}"


def _show_cost(description: TaggerDescription) -> str:
    cost = description.cost
    if cost is None:
        return f"not measured: {description.not_measured}"
    start = f"; {cost.start_seconds} s until it has begun" if cost.start_seconds >= 0.1 else ""
    return (
        f"{cost.mb_per_s:g} MB/s a core, {cost.ns_per_char:g} ns a character "
        f"(here, now, alone; {amount(cost.documents, 'document')}, {cost.bytes / 1e6:.2g} MB){start}"
    )
