"""Print the features with which Hugging Face datasets reads an OSCAR output.

It prints Python that declares the features. Every output format whose lines have a type has them.
"""

import textwrap
from collections.abc import Mapping
from typing import Annotated, ClassVar

import msgspec

from toolkit.command_line import Flag, Limited, Looking, Words
from toolkit.commands.steps.context import Context
from toolkit.commands.steps.outcome import Outcome
from toolkit.data import schema
from toolkit.data.documents import explain_bad_row
from toolkit.data.schema import Type
from toolkit.errors import ConfigError
from toolkit.inspect import targets
from toolkit.inspect.targets import format_of, recorded_format
from toolkit.mix import publish
from toolkit.mix.writer import Writer
from toolkit.storage.paths import join
from toolkit.storage.reading import Lines

_VALUES = {"bool": "bool", "int": "int64", "float": "float64", "str": "string"}


class Options(Looking, Limited, frozen=True, kw_only=True):
    """Options of ``toolkit features``."""

    EXAMPLES: ClassVar = ("toolkit features data/quickstart/oscar",)

    targets: Annotated[tuple[str, ...], Words("an output; settings, which override those of the file")] = ()
    first: Annotated[int | None, Flag("read only the first N rows of each file", metavar="N")] = None


def run(context: Context, options: Options) -> Outcome:
    """Print the features of an output; of keys that depend on the data, such as header names, those really there."""
    folder = context.output
    files = targets.data_files(folder)
    if not files:
        raise ConfigError(f"{folder}: expected an output, got no data files")
    manifest = publish.load_manifest(folder)
    found = recorded_format(manifest.settings) if manifest else format_of(join(folder, files[0]))
    writer = found.writer() if found else None
    if writer is None or not writer.has_json_lines() or writer.line() is None:
        raise ConfigError(
            f"{folder}: expected a format that declares its lines, got {found.name if found else 'another'}, which "
            "loads without features; `toolkit card` writes the types of its rows"
        )
    columns = dict(schema.from_annotation(writer.line(), type(writer).__name__).fields)
    keys = _keys(
        context, options.first, folder, files, [name for name, type_ in columns.items() if type_.kind == "map"]
    )
    return Outcome(text=_python(writer, folder, files[0], columns, keys), data=keys, for_programs=True)


def _keys(context: Context, first: int | None, folder: str, files: list[str], names: list[str]) -> dict[str, list[str]]:
    """Return the keys that the mappings at the top level of lines have, sorted, by the names of these."""
    row_type = msgspec.defstruct("Line", [(name, dict[str, msgspec.Raw]) for name in names])
    decoder = msgspec.json.Decoder(row_type)
    found: dict[str, set[str]] = {name: set() for name in names}
    for path in files if names else ():
        with Lines(join(folder, path), 2 * context.config.max_document_bytes) as lines:
            for number, line in enumerate(lines, 1):
                if first is not None and number > first:
                    break
                try:
                    row = decoder.decode(line)
                except (msgspec.DecodeError, UnicodeDecodeError) as error:
                    raise ConfigError(f"{path}:{number}: {explain_bad_row(line, error)}") from None
                for name, there in found.items():
                    there.update(getattr(row, name))
    return {name: sorted(there) for name, there in found.items()}


def _python(writer: Writer, folder: str, path: str, columns: Mapping[str, Type], keys: Mapping[str, list[str]]) -> str:
    fields = [
        f'"{name}": {_object(dict.fromkeys(keys[name], type_.item or schema.ANY)) if name in keys else _type(type_)},'
        for name, type_ in columns.items()
    ]
    pattern = f"{folder}/{writer.stem('*')}{path[path.index(writer.SUFFIX) :]}"
    return (
        "from datasets import Features, List, Value, load_dataset\n\nfeatures = Features({\n"
        + textwrap.indent("\n".join(fields), "    ")
        + f'\n}})\ndata = load_dataset("json", data_files="{pattern}", features=features)'
    )


def _object(fields: Mapping[str, Type]) -> str:
    inner = "\n".join(f'"{name}": {_type(type_)},' for name, type_ in fields.items())
    return "{\n" + textwrap.indent(inner, "    ") + "\n}" if inner else "{}"


def _type(type_: Type) -> str:
    """Return a type as Python; what has no fixed one is left to the library, as JSON."""
    if type_.kind == "nullable" and type_.item:
        return _type(type_.item)
    if type_.kind == "object":
        return _object(dict(type_.fields))
    if type_.kind == "list":
        return f"List({_type(type_.item or schema.ANY)})"
    return f'Value("{_VALUES.get(type_.kind, "json")}")'
