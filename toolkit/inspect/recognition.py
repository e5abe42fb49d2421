"""Which output format a file is of, by what wrote it, or by what the installed formats say of it."""

import functools
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

import msgspec

from toolkit.config.settings import Source, convert
from toolkit.data.documents import BAD_ROW
from toolkit.errors import ConfigError, ToolkitError
from toolkit.interop import foreign
from toolkit.mix.writer import WRITERS, Reading, Writer, find_writer
from toolkit.storage.reading import Lines

LONGEST = 1 << 30
"""Bytes of a first line, at most."""


class Format(NamedTuple):
    """An output format as it can be sent to a worker: what `find_writer` takes, and its options."""

    name: str
    options: dict[str, Any]

    def writer(self) -> Writer:
        """Return the writer.

        Raises:
            ConfigError: if the format, or such an option of it, is not here.
        """
        return _made(self.name, msgspec.json.encode(self.options))


@functools.lru_cache(16)
def _made(name: str, options: bytes) -> Writer:
    return convert(Source(msgspec.json.decode(options)), find_writer(name, "the format of an output"))


def recorded(settings: Mapping[str, Any]) -> Format:
    """Return the format that the settings in a manifest name."""
    return Format(settings["format"], settings["options"])


def recognised(path: str) -> Format | None:
    """Return the format of a file without a manifest; None if it has documents, or nothing that is known.

    The installed formats are asked in the order of their names, whether they take it for their own. One that cannot be
    imported here is passed over. Rows of others that have a text are of the last one, which is not installed.
    """
    line = first_line(path)
    for name in WRITERS.names():
        with suppress(ConfigError):
            writer = WRITERS.find(name)
            if (found := writer.of_file(path, line)) is not None:
                return Format(name, _options(found))
    options = foreign.of_line(line)
    return None if options is None else Format(_FOREIGN, options)


_FOREIGN = f"{foreign.__name__}:{foreign.ForeignRows.__name__}"


def first_line(path: str) -> bytes:
    """Return the first line of a file, decompressed; nothing if there is none that can be read."""
    try:
        with Lines(path, LONGEST) as lines:
            return next(lines, b"")
    except ToolkitError:
        return b""


def label_reader(reading: Reading) -> Callable[[bytes], str | None] | None:
    """Return what reads the label in a line that is JSON; None where lines do not say it by a plain path of fields.

    Of a line without a label, or that is damaged, it gives None; those of languages it gives in lower case.
    """
    keys = [reading.values, *reading.label.split(".")]
    if not all(key.isidentifier() for key in keys):
        return None
    row: Any = str
    for key in reversed(keys):
        row = msgspec.defstruct("Row", [("inner", row | None, None)], rename={"inner": key})
    decoder = msgspec.json.Decoder(row)

    def label_of(line: bytes) -> str | None:
        try:
            value = decoder.decode(line)
        except BAD_ROW:
            return None
        while value is not None and not isinstance(value, str):
            value = value.inner
        return value.lower() if value and reading.is_language else value

    return label_of


def suffixes() -> frozenset[str]:
    """Return the suffixes of parts of all installed formats, without those of compressions."""
    return _suffixes(tuple(WRITERS.names()))


@functools.lru_cache(4)
def _suffixes(names: tuple[str, ...]) -> frozenset[str]:
    found = set()
    for name in names:
        with suppress(ConfigError):
            found.add(WRITERS.find(name).SUFFIX)
    return frozenset(found)


def _options(writer: Writer) -> dict[str, Any]:
    """Return the options of a writer that are not its defaults."""
    default = type(writer)()
    given = {
        field.encode_name: (getattr(writer, field.name), getattr(default, field.name))
        for field in msgspec.structs.fields(writer)
    }
    return {name: msgspec.to_builtins(value) for name, (value, usual) in given.items() if value != usual}
