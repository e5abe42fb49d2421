"""Write the reference pages from the code: commands, taggers, formats, rules and Python names.

    python -m toolkit.reference [FOLDER]    writes them to FOLDER, by default docs/reference, which git ignores

Sphinx builds the site with them. Only built-in plugins are described, not those of other
installed packages. The pages are the same with every supported version of Python.
"""

import importlib
import inspect
import re
import sys
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from toolkit import command_options
from toolkit.align.align_config import Common as AlignedSet
from toolkit.command_options import Argument, arguments
from toolkit.config import docstrings, recipes, settings
from toolkit.data.schema import SPANS
from toolkit.describe.about import About
from toolkit.execution.workers import EXECUTORS
from toolkit.ingest.ingest_config import Common, Trim
from toolkit.ingest.reader import READERS
from toolkit.learn.annotate.annotator import Annotator
from toolkit.learn.annotate.prompt import Prompt
from toolkit.learn.train.trainer import TRAINERS
from toolkit.mix.budget import BudgetForm
from toolkit.mix.settings import OutputSettings
from toolkit.mix.writer import WRITERS
from toolkit.plugins import Kind
from toolkit.rules.kinds import all_forms
from toolkit.storage_options import StorageOptions
from toolkit.tag import tagger, tagger_docs
from toolkit.whole_corpus.corpus_config import Common as SetOptions
from toolkit.whole_corpus.kind import KINDS

FOLDER = Path(__file__).parent.parent / "docs" / "reference"
SHARED = 5
"""So many commands with the same argument, or formats with the same option, and it is described once."""

OPTION = ["option", "type", "default", "what it is"]

AGAINST = [
    "`against`",
    "text, mapping or list",
    "none",
    "other datasets, whose documents stay: ROOT, or {documents: …}",
]
"""The row of an option that kinds of duplicates take and no class declares."""

EXAMPLE_CHARS = 200
"""An example of a tagger shows at most so many characters of a value."""

PUBLIC = {
    "toolkit": "For notebooks, scripts and plugins: the commands as functions, datasets, what plugins extend.",
    "toolkit.text": "For taggers that work on many texts at once.",
    "toolkit.testing": "For the tests of plugins.",
}
"""The modules from which Python code imports, and for what."""


def pages() -> dict[str, str]:
    """Return the text of each page, by its path in the folder."""
    results = {
        "commands.md": _commands(),
        "taggers.md": _taggers(),
        "formats.md": _formats(),
        "rules.md": _rules(),
        "configuration.md": _configuration(),
        "recipes.md": _recipes(),
        "python-names.md": _python_names(),
    } | {f"taggers/{name}.md": _tagger(name, class_) for name, class_ in built_in(tagger.TAGGERS).items()}
    return {name: _page(name, lines) for name, lines in results.items()}


def _page(name: str, lines: list[str]) -> str:
    """Join the lines; links are to pages of docs/, those that begin with ``./`` to other pages of the reference."""
    text = "\n".join(lines).rstrip().replace("\n\n\n", "\n\n") + "\n"
    return re.sub(r"\]\((?=[\w-]+\.md)", f"]({'../' * (1 + name.count('/'))}", text)


def write(folder: Path = FOLDER) -> None:
    """Write the pages to their folder, and delete other pages from it."""
    results = {folder / name: text for name, text in pages().items()}
    for path in folder.rglob("*.md"):
        if path not in results:
            path.unlink()
    for path, text in results.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.is_file() or path.read_text(encoding="utf-8") != text:  # Sphinx reads only what is newer
            path.write_text(text, encoding="utf-8")


# --- commands ---------------------------------------------------------------------------------------------------------


def _commands() -> list[str]:
    top = command_options.parser()
    lines = ["# Commands", "", "This page lists every command with its arguments.", "", str(top.epilog), ""]
    lines += [f"- [toolkit {name}](#toolkit-{name}): {command_options.about(name)}" for name in command_options.names()]
    lines += ["", "`toolkit --version` prints the version. `toolkit COMMAND -h` prints the arguments of a command.", ""]
    rows = {
        name: [
            (f"`{_spelling(argument)}`", argument.help + ("; required" if argument.required else ""))
            for argument in arguments(command_options.find(name).Options)
        ]
        for name in command_options.names()
    }
    shared = _shared(rows)
    head = ["argument", "what it does"]
    lines += ["## Arguments of many commands", "", *_table(head, map(list, shared)), ""]
    for name, listed in rows.items():
        lines += [f"## toolkit {name}", "", "```sh", *command_options.examples(name), "```", ""]
        own = [list(row) for row in listed if row not in shared]
        lines += [*_table(head, own), ""] if own else []
        if also := ", ".join(row[0] for row in listed if row in shared):
            lines += [f"Also [of many commands](#arguments-of-many-commands): {also}.", ""]
    return lines


def _shared(listed: Mapping[str, Sequence[tuple[str, ...]]], least: int = SHARED) -> list[tuple[str, ...]]:
    """Return the rows of at least so many: of several with the same name, the most frequent one."""
    counts = Counter(row for rows in listed.values() for row in rows)
    most = {row[0]: row for row, _ in reversed(counts.most_common())}
    return [row for row in counts if counts[row] >= least and most[row[0]] == row]


def _spelling(argument: Argument) -> str:
    if not argument.names:
        return f"{argument.metavar} …"
    return ", ".join(f"{name} {argument.metavar}".rstrip() for name in argument.names)


# --- plugins ----------------------------------------------------------------------------------------------------------


def built_in(kind: Kind[Any]) -> dict[str, type[Any]]:
    """Return the built-in plugins of a kind, by name."""
    results = {name: kind.find(name) for name in kind.names()}
    return {name: class_ for name, class_ in results.items() if class_.__module__ == f"{kind.package}.{name}"}


def _taggers() -> list[str]:
    lines = [
        "# Taggers",
        "",
        "This page lists the built-in taggers with the types of their values and their options. Each has a page with",
        "its values, options, source and examples. `toolkit taggers` lists those of other packages, too; `toolkit",
        "taggers NAME` measures speed. How to add one: [writing a tagger](writing-a-tagger.md).",
        "",
    ]
    groups: dict[str, list[str]] = {"Values of documents": [], "Values of lines, and other lists": [], "Spans": []}
    for name, class_ in built_in(tagger.TAGGERS).items():
        type_ = tagger.value_type(class_)
        group = "Spans" if type_ == SPANS else list(groups)[type_.kind == "list"]
        about = f"{docstrings.purpose(class_, name)} [In full](taggers/{name}.md)."
        groups[group] += [f"### {name}", "", about, "", *_brief(class_)]
    for group, listed in groups.items():
        lines += [f"## {group}", "", *listed]
    return lines


def _brief(class_: type[tagger.Tagger]) -> list[str]:
    """Return a tagger's top value types, and its options' names."""
    parts = [v for v in tagger_docs.values(class_) if v.name and "." not in v.name and not v.name.endswith("[]")]
    value = ", ".join(f"`{v.name}: {v.type}`" for v in parts) or f"`{tagger.value_type(class_)}`"
    many = " a list of" if parts and tagger.value_type(class_).kind == "list" else ""
    options = ", ".join(
        f"`{o.name}`{' (required)' if o.default == 'required' else ''}" for o in tagger_docs.options(class_)
    )
    needs = [f"- {line}" for line in _needs(class_) if line]
    return [f"- Value:{many} {value}", *([f"- Options: {options}"] if options else []), *needs, ""]


def _tagger(name: str, class_: type[tagger.Tagger]) -> list[str]:
    lines = [f"# {name}", "", *_about(class_), *_values(class_), *_needs(class_), *_options(class_)]
    for example in class_.EXAMPLES:
        lines += ["```text", *tagger_docs.example(example, EXAMPLE_CHARS), "```", ""]
    return [*lines, "All [taggers](../taggers.md)."]


def _values(class_: type[tagger.Tagger]) -> list[str]:
    rows = [[f"`{v.name}`", f"`{v.type}`", v.description] for v in tagger_docs.values(class_) if v.name]
    if not rows:
        return [f"Value: `{tagger.value_type(class_)}`", ""]
    kind = "a list of objects" if tagger.value_type(class_).kind == "list" else "an object"
    return [f"Value: {kind}", "", *_table(["value", "type", "what it is"], rows), ""]


def _needs(class_: type[tagger.Tagger]) -> Iterable[str]:
    """Yield a tagger's variants, inputs and required extras."""
    if variants := tagger_docs.choices(class_, "variant"):
        yield from (f"Variants: {', '.join(f'`{variant}`' for variant in variants)}", "")
    if reads := tagger_docs.reads(class_):
        yield from (f"Reads: {', '.join(f'`{read.key}` (`{read.option}`)' for read in reads)}", "")
    for extra, choice in tagger_docs.extras(class_).items():
        yield from (f"Extra: `{extra}`{f', for `{choice}`' if choice else ''}", "")


def _formats() -> list[str]:
    lines = [
        "# Formats and their options",
        "",
        "This page lists the options of each input and output format. What the files look like: [formats](formats.md).",
        "",
    ]
    lines += ["## Input formats", "", "Options of an entry of `ingest:`, whatever its format:", ""]
    lines += [*_options(Common), "Options of `trim`:", "", *_options(Trim)]
    readers = built_in(READERS)
    shared = _shared({name: list(map(tuple, _rows(class_))) for name, class_ in readers.items()})
    lines += ["### Options of many input formats", "", *_table(OPTION, map(list, shared)), ""]
    for name, class_ in readers.items():
        lines += [f"### Input format {name}", "", *_about(class_)]
        suffixes = ", ".join(f"`{suffix}`" for suffix in class_.SUFFIXES)
        lines += [f"A shard is named by the file's name without {suffixes} (and before that a compression's).", ""]
        if class_.TYPES:
            lines += ["Attributes:", "", *(f"- `{key}`: `{type_}`" for key, type_ in class_.types().items()), ""]
        lines += _options(class_, shared)
        if class_.PLUGIN:
            _, kind, default = class_.PLUGIN
            for plugin, result in built_in(kind).items():
                title = f"#### {kind.word.capitalize()} {plugin}"
                lines += [title + (" (default)" if plugin == default else ""), "", *_about(result), *_options(result)]
    lines += ["## Output formats", "", "Options of `output:`, whatever the format:", "", *_options(OutputSettings)]
    for name, class_ in built_in(WRITERS).items():
        lines += [f"### Output format {name}", "", *_about(class_)]
        compression = " and the suffix of the compression" if class_.CONCATENATES else ""
        lines += [f"Parts end in `{class_.SUFFIX}`{compression}.", "", *_options(class_)]
    return lines


def _configuration() -> list[str]:
    """List the options of sections: each is a Struct, or a plugin that is one."""
    lines = [
        "# Keys of the configuration",
        "",
        "This page lists the keys of the configuration and the options of each section, with types and defaults. How",
        "they work: [configuration](configuration.md). Options of taggers are in [taggers](./taggers.md), those of",
        "`ingest:`, `output:` and `tokenize:` in [formats](./formats.md), of rules in [rules](./rules.md).",
        "",
        *_keys("Top level", settings.Config),
    ]
    for name, executor in built_in(EXECUTORS).items():
        lines += _keys(f"executor: {name}", executor.Settings)
    lines += [*_keys("storage", StorageOptions), *_keys("align", AlignedSet)]
    lines += _keys("dedup, sample and calibrate: all kinds", SetOptions)
    for section in ("dedup", "sample", "calibrate"):
        for name, kind in built_in(KINDS).items():
            if section == kind.SECTION:
                title = section if name == section else f"{section}: {name}"
                lines += [f"## {title}", "", *_table(OPTION, [*_rows(kind), *([AGAINST] if kind.AGAINST else [])]), ""]
    trainers = built_in(TRAINERS)
    shared = _shared({name: list(map(tuple, _rows(class_))) for name, class_ in trainers.items()}, len(trainers))
    lines += ["## train: all kinds", "", *_table(OPTION, map(list, shared)), ""]
    for name, trainer in trainers.items():
        own = [row for row in _rows(trainer) if tuple(row) not in shared]
        lines += [f"## train: {name}", "", *_table(OPTION, own), ""]
    lines += [*_keys("annotate", Annotator), *_keys("annotate: a prompt", Prompt), *_keys("mix: budget", BudgetForm)]
    return [*lines, *_keys("about", About)]


def _keys(title: str, class_: type[msgspec.Struct]) -> list[str]:
    return [f"## {title}", "", *_options(class_)]


def _rules() -> list[str]:
    lines = [
        "# Kinds of rules and their options",
        "",
        "This page lists the options of each rule of a mix. How rules work together: [rules](rules.md). `E` stands for",
        "an [expression](rules.md#expressions).",
        "",
    ]
    for form in all_forms():
        lines += [f"## {form.KEY}{f': {form.WORD}' if form.WORD else ''}", "", docstrings.documentation(form), ""]
        lines += _options(form)
    return lines


def _recipes() -> list[str]:
    lines = ["# Recipes", "", "This page lists the ready configurations: `toolkit run -c recipe:NAME`.", ""]
    rows = [[f"`{name}`", recipes.about(name)] for name in recipes.names()]
    return [*lines, *_table(["name", "what it makes"], rows)]


def _python_names() -> list[str]:
    lines = [
        "# Python names",
        "",
        "This page lists the names that Python code imports, with the first line of each docstring. `help(NAME)` shows",
        "the whole docstring, and so does this page on the site. How to use the names: [in",
        "Python](in-python.md), [writing a tagger](writing-a-tagger.md) and its neighbours.",
    ]
    for module, about in PUBLIC.items():
        result = importlib.import_module(module)
        named = {name: getattr(result, name) for name in sorted(result.__all__, key=str.lower)}
        documented = {
            name: value
            for name, value in named.items()
            if value is not Any and (isinstance(value, type) or inspect.isroutine(value))
        }
        rows = [[f"`{name}`", (inspect.getdoc(value) or "").partition("\n")[0]] for name, value in documented.items()]
        lines += ["", f"## {module}", "", about, "", *_table(["name", "what it is or does"], rows)]
        if rest := [name for name in named if name not in documented]:
            lines += ["", f"Types and constants: {', '.join(f'`{name}`' for name in rest)}."]
    return lines


def _about(class_: type[Any]) -> list[str]:
    """Return the docstring of a class, and the source from its module's."""
    lines = [*docstrings.documentation(class_).splitlines(), ""]
    if source := tagger_docs.source(class_):
        lines += [*f"Source: {source}".splitlines(), ""]
    return lines


def _rows(class_: type[msgspec.Struct]) -> list[list[str]]:
    return [[f"`{o.name}`", o.type, o.default, o.description] for o in tagger_docs.options(class_)]


def _options(class_: type[msgspec.Struct], shared: Collection[tuple[str, ...]] = ()) -> list[str]:
    rows = _rows(class_)
    own = [row for row in rows if tuple(row) not in shared]
    lines = [*_table(OPTION, own), ""] if own else [] if rows else ["No options.", ""]
    if also := ", ".join(row[0] for row in rows if tuple(row) in shared):
        lines += [f"Also [of many input formats](#options-of-many-input-formats): {also}.", ""]
    return lines


def _table(head: list[str], rows: Iterable[list[str]]) -> list[str]:
    listed = [head, ["---"] * len(head), *([cell.replace("|", "\\|") for cell in row] for row in rows)]
    return ["| " + " | ".join(row) + " |" for row in listed]


if __name__ == "__main__":
    write(*map(Path, sys.argv[1:2]))
