"""The reference pages, made from the code: commands, taggers, input and output formats.

    python -m toolkit.reference            writes docs/commands.md, docs/taggers.md, docs/formats-reference.md
    python -m toolkit.reference --check    exit status 1 if one of them is not what the code says

Only built-in plugins are described, not those of other installed packages. The pages are the same with every supported
version of Python.
"""

import argparse
import inspect
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec
import msgspec.inspect as mi

from toolkit import cli, tagger
from toolkit.ingesting import Common, Trim
from toolkit.mixing.settings import OutputSettings
from toolkit.plugins import Kind
from toolkit.reader import READERS
from toolkit.streams import Size
from toolkit.writer import WRITERS

FOLDER = Path(__file__).parent.parent / "docs"

_NOTE = "<!-- Made from the code by `python -m toolkit.reference`; change it there. -->"


def pages() -> dict[str, str]:
    """The text of each page, by file name."""
    made = {"commands.md": _commands(), "taggers.md": _taggers(), "formats-reference.md": _formats()}
    return {
        name: "\n".join([_NOTE, "", *lines]).rstrip().replace("\n\n\n", "\n\n") + "\n" for name, lines in made.items()
    }


def stale(folder: Path = FOLDER) -> list[str]:
    """Names of the pages that are missing, or not what the code says."""
    return [
        name
        for name, text in pages().items()
        if not (folder / name).is_file() or (folder / name).read_text(encoding="utf-8") != text
    ]


# --- commands ---------------------------------------------------------------------------------------------------------


def _commands() -> list[str]:
    top = cli.parser()
    lines = ["# Commands", "", str(top.description), "", str(top.epilog), ""]
    lines += [f"- [toolkit {name}](#toolkit-{name}): {about}" for name, about in cli.COMMANDS.items()]
    lines += ["", "`toolkit --version` prints the version; `-h` behind a command prints what is below.", ""]
    subcommands = next(found for action in _actions(top) if isinstance(found := action.choices, dict))
    for name, command in subcommands.items():
        lines += [f"## toolkit {name}", "", str(command.description), ""]
        lines += ["```sh", str(command.epilog).removeprefix("Example: "), "```", ""]
        rows = [[f"`{_spelling(a)}`", _sentence(a)] for a in _actions(command) if a.dest != "help"]
        lines += [*_table(["argument", "what it does"], rows), ""]
    return lines


def _actions(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    return parser._actions  # noqa: SLF001  # the formatted help differs between versions of Python


def _spelling(action: argparse.Action) -> str:
    value = "" if action.nargs == 0 else str(action.metavar or action.dest.upper())
    if not action.option_strings:
        return f"{value} …"
    return ", ".join(f"{option} {value}".rstrip() for option in action.option_strings)


def _sentence(action: argparse.Action) -> str:
    return (action.help or "") + ("; required" if action.required and action.option_strings else "")


# --- plugins ----------------------------------------------------------------------------------------------------------


def built_in(kind: Kind[Any]) -> dict[str, type[Any]]:
    """The built-in plugins of a kind, by name."""
    found = {name: kind.find(name) for name in kind.names()}
    return {name: class_ for name, class_ in found.items() if class_.__module__ == f"{kind.package}.{name}"}


def _taggers() -> list[str]:
    found = built_in(tagger.TAGGERS)
    lines = ["# Taggers", "", "The built-in taggers. How to add one: [writing a tagger](writing-a-tagger.md).", ""]
    lines += [f"- [{name}](#{name}): {_first_line(class_)}" for name, class_ in found.items()] + [""]
    for name, class_ in found.items():
        lines += [f"## {name}", "", *_about(class_), f"Value: `{tagger.value_type(class_)}`", ""]
        lines += _options(class_)
        for example in class_.EXAMPLES:
            lines += ["```text", *_example(example), "```", ""]
    return lines


def _example(example: tagger.Example) -> Iterable[str]:
    yield f"text: {_json(example.text)}"
    for what in ("options", "attributes", "metadata"):
        for key, value in getattr(example, what).items():
            yield f"{key}: {_json(value)}"
    yield f"value: {_json(example.value)}"


def _formats() -> list[str]:
    lines = ["# Formats and their options", "", "What files look like: [formats](formats.md).", ""]
    lines += ["## Input formats", "", "Options of an entry of `ingest:`, whatever its format:", ""]
    lines += [*_options(Common), "Options of `trim`:", "", *_options(Trim)]
    for name, class_ in built_in(READERS).items():
        lines += [f"### Input format {name}", "", *_about(class_)]
        suffixes = ", ".join(f"`{suffix}`" for suffix in class_.SUFFIXES)
        lines += [f"A shard is named by the file's name without {suffixes} (and before that `.gz`, `.zst`).", ""]
        if class_.TYPES:
            lines += ["Attributes:", "", *(f"- `{key}`: `{type_}`" for key, type_ in class_.TYPES.items()), ""]
        lines += _options(class_)
    lines += ["## Output formats", "", "Options of `output:`, whatever the format:", "", *_options(OutputSettings)]
    for name, class_ in built_in(WRITERS).items():
        lines += [f"### Output format {name}", "", *_about(class_)]
        compression = " and the suffix of the compression" if class_.CONCATENATES else ""
        lines += [f"Parts end in `{class_.SUFFIX}`{compression}.", "", *_options(class_)]
    return lines


def _about(class_: type[Any]) -> list[str]:
    """The class's docstring, and what its module's says of the source."""
    _, source, rest = (inspect.getdoc(sys.modules[class_.__module__]) or "").partition("\nSource: ")
    found = (source.strip() + " " + rest.partition("\n\n")[0]).strip()
    return [*(inspect.getdoc(class_) or "").splitlines(), "", *found.splitlines(), ""]


def _first_line(class_: type[Any]) -> str:
    return (inspect.getdoc(class_) or "").partition("\n\n")[0].replace("\n", " ")


def _options(class_: type[msgspec.Struct]) -> list[str]:
    rows = []
    for field in msgspec.structs.fields(class_):
        info, description = mi.type_info(field.type), ""
        if isinstance(info, mi.Metadata):
            description = str((info.extra_json_schema or {}).get("description", ""))
        rows.append([f"`{field.encode_name}`", _type_name(info), _default(field), description])
    return [*_table(["option", "type", "default", "what it is"], rows), ""] if rows else ["No options.", ""]


def _default(field: Any) -> str:
    if isinstance(field.default, msgspec.Struct) or field.default_factory is not msgspec.NODEFAULT:
        return "`{}`"
    if field.default is msgspec.NODEFAULT:
        return "required"
    return "none" if field.default is None else f"`{_json(field.default)}`"


def _type_name(info: mi.Type) -> str:
    match info:
        case mi.Metadata():
            return _type_name(info.type)
        case mi.UnionType():
            return " or ".join(_type_name(t) for t in info.types if not isinstance(t, mi.NoneType))
        case mi.LiteralType():
            return " or ".join(f"`{value}`" for value in info.values)
        case mi.IntType() | mi.FloatType():
            name = "integer" if isinstance(info, mi.IntType) else "number"
            limits = [f"{sign} {value}" for sign, value in (("≥", info.ge), ("≤", info.le)) if value is not None]
            return " ".join([name, *limits])
        case mi.ListType() | mi.CollectionType():
            return f"list of {_type_name(info.item_type)}"
        case mi.CustomType() if info.cls is Size:
            return "size"
        case mi.StructType():
            return "{" + ", ".join(f.encode_name for f in info.fields) + "}"
    return {"StrType": "text", "BoolType": "true or false", "DictType": "mapping"}.get(type(info).__name__, "any")


def _json(value: Any) -> str:
    return msgspec.json.encode(value, enc_hook=int).decode()


def _table(head: list[str], rows: list[list[str]]) -> list[str]:
    listed = [head, ["---"] * len(head), *([cell.replace("|", "\\|") for cell in row] for row in rows)]
    return ["| " + " | ".join(row) + " |" for row in listed]


def main(arguments: list[str]) -> int:
    """Writes or checks the pages; the exit status."""
    found = stale()
    if "--check" in arguments:
        for name in found:
            print(f"docs/{name}: expected what the code says; run `python -m toolkit.reference`", file=sys.stderr)
        return 1 if found else 0
    for name in found:
        (FOLDER / name).write_text(pages()[name], encoding="utf-8")
        print(f"docs/{name}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
