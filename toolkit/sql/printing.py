"""Results of queries as text and in formats, and the shell."""

import csv
import datetime as dt
import io
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext, suppress
from typing import Any, Literal

import msgspec

from toolkit.data.excerpts import IN_MARKDOWN, columns as columns_of, escaped, head, unlike_formula, width
from toolkit.data.schema import is_number
from toolkit.data.tables.parquet import Sink
from toolkit.errors import ConfigError, ToolkitError, amount, did_you_mean
from toolkit.interrupts import forget, is_terminated, raising
from toolkit.sql.session import Database, ResultColumn
from toolkit.storage.outputs import NamedOutput

PROMPT, MORE = "sql> ", "...> "

HELP = """\
A statement ends with `;` and may have several lines.
.tables         the views
.schema [NAME]  the columns of a view, or of all, with their types
.help           this
.quit           ends the shell, as Ctrl-D does; Ctrl-C ends a query, or drops what you have typed"""

_TOKEN = re.compile(
    r"""'(?:[^']|'')*('|\Z) | "(?:[^"]|"")*("|\Z) | --[^\n]*(\n|\Z) | /\*.*?(\*/|\Z) | \$(\w*)\$.*?(\$\5\$|\Z) | .""",
    re.DOTALL | re.VERBOSE,
)
_ENDS = (1, 2, 4, 6)  # groups that are empty where a quotation or a comment goes on


def is_complete(text: str) -> bool:
    """Return True if a text ends with an unquoted semicolon.

    >>> is_complete("select ';'"), is_complete("select ';' ; -- so")
    (False, True)
    """
    last = ""
    for token in _TOKEN.finditer(text):
        text_of_token = token[0]
        if any(token[i] == "" for i in _ENDS):
            return False
        if not text_of_token.isspace() and not text_of_token.startswith(("--", "/*")):
            last = text_of_token
    return last == ";"


def run(session: Database, rows: int) -> int:
    """Answer statements until the end of the input; return how many statements failed.

    Args:
        session: Session of queries.
        rows: Rows of a result that are shown.
    """
    is_person = sys.stdin.isatty()
    if is_person:
        with suppress(ImportError):
            import readline  # noqa: F401  # gives `input` its history and keys
        print(f"{len(session.names)} views: {', '.join(session.names)}. `.help` says more.", flush=True)
    failed = 0
    for statement in _statements(is_person=is_person):
        if statement in (".quit", ".exit"):
            break
        try:
            _answer(session, statement, rows)
        except ToolkitError as error:
            failed += 1
            print(f"error: {error}", file=sys.stderr, flush=True)
        except KeyboardInterrupt:
            if not _resume(is_person=is_person):
                raise
            print("interrupted", file=sys.stderr, flush=True)
    return failed


def _resume(*, is_person: bool) -> bool:
    """Return True if the shell continues after an interruption: Ctrl-C is for what is done, and nothing else."""
    if not is_person or is_terminated():
        return False
    forget()
    return True


def _statements(*, is_person: bool) -> Iterator[str]:
    """Yield statements and dot commands."""
    statement = ""
    while True:
        try:
            with raising():
                line = input((MORE if statement else PROMPT) if is_person else "")
        except EOFError:
            if is_person:
                print()
            if statement.strip():
                yield statement
            return
        except KeyboardInterrupt:
            if not _resume(is_person=is_person):
                raise
            print()
            statement = ""
            continue
        if not statement and line.strip().startswith("."):
            yield line.strip()
            continue
        statement = f"{statement}\n{line}" if statement else line
        if is_complete(statement):
            yield statement
            statement = ""
        elif not statement.strip():
            statement = ""


def _answer(session: Database, statement: str, rows: int) -> None:
    if not statement.startswith("."):
        print(result_table(session, statement, rows), flush=True)
        return
    command, _, name = statement.partition(" ")
    answers: dict[str, Callable[[], str]] = {
        ".help": lambda: HELP,
        ".tables": lambda: "\n".join(session.names),
        ".schema": lambda: schema(session, name.strip().strip('"')),
    }
    if command not in answers:
        raise ToolkitError(f"expected {', '.join([*answers, '.quit'])}, got {command!r}")
    print(answers[command](), flush=True)


def schema(session: Database, name: str) -> str:
    """Return the columns of a view with their types; those of all views without a name.

    Raises:
        ToolkitError: if there is no such view.
    """
    name = session.aliases.get(name, name)
    if name and name not in session.names:
        hint = did_you_mean(name, session.names) or f"; there are: {', '.join(session.names)}"
        raise ToolkitError(f"expected a view, got {name!r}{hint}")
    views = []
    for item in [name] if name else session.names:
        listed = [f"  {column.name}  {column.type}" for column in session.describe(item)]
        views.append("\n".join([item, *listed]))
    return "\n\n".join(views)


def result_table(session: Database, statement: str, rows: int) -> str:
    """Return the first rows of a statement's result as a table."""
    result = session.execute(statement)
    results = []
    for row in result.rows():
        results.append(row)
        if len(results) > rows:
            break
    if not result.columns:
        return ""
    more = f"\nthe first {rows:,} rows; `--rows` shows more, `--output` takes all" if len(results) > rows else ""
    return table(result.columns, results[:rows]) + more


Format = Literal["table", "csv", "json", "jsonl", "markdown", "parquet"]

SUFFIXES: dict[str, Format] = {
    ".csv": "csv", ".json": "json", ".jsonl": "jsonl", ".md": "markdown", ".parquet": "parquet",
}  # fmt: skip

NARROW = 8
"""Columns of a terminal that a value gets at least, if it needs them."""

_NUMBERS = ("INT", "DOUBLE", "FLOAT", "DECIMAL")


def format_of(output: str | None, format: Format | None) -> Format:
    """Return the format of a result: as given, or as its file is called.

    Raises:
        ConfigError: if neither tells it.
    """
    if format is not None:
        return format
    if output is None:
        return "table"
    for suffix, result in SUFFIXES.items():
        if output.endswith(suffix):
            return result
    raise ConfigError(f"--output: expected a name that ends in {' '.join(SUFFIXES)}, or --format, got {output}")


# --- a table ----------------------------------------------------------------------------------------------------------


def table(columns: Sequence[ResultColumn], rows: Sequence[Sequence[Any]]) -> str:
    """Return rows as text in columns, cut to the terminal's width; nothing in it moves the cursor."""
    widest = width()
    cells = [[head(_text(value), widest) for value in row] for row in rows]
    titles = [head(column.name, widest) for column in columns]
    widths = [max(map(columns_of, item)) for item in zip(titles, *cells, strict=True)]
    while sum(widths) + 2 * (len(widths) - 1) > widest and max(widths) > NARROW:
        over = sum(widths) + 2 * (len(widths) - 1) - widest
        largest = max(widths)
        second = max((width for width in widths if width < largest), default=NARROW)
        most = widths.count(largest)
        to = max(NARROW, second, largest - -(-over // most))
        widths = [to if width == largest else width for width in widths]
    right = [column.type.endswith(_NUMBERS) or column.type.startswith(_NUMBERS) for column in columns]
    lines = [_line(titles, widths, right), "  ".join("-" * width for width in widths)]
    return "\n".join([*lines, *(_line(row, widths, right) for row in cells)])


def _line(cells: Sequence[str], widths: Sequence[int], right: Sequence[bool]) -> str:
    padded = []
    for cell, room, is_right in zip(cells, widths, right, strict=True):
        fits = cell if columns_of(cell) <= room else head(cell, room)
        blanks = " " * max(0, room - columns_of(fits))
        padded.append(blanks + fits if is_right else fits + blanks)
    return "  ".join(padded).rstrip()


def _text(value: Any) -> str:
    """Return a value as text: a text as it is, what has parts as JSON."""
    if value is None:
        return "null"
    if isinstance(value, str):
        return value
    if isinstance(value, bool | list | dict | tuple):
        return _encode(value).decode()
    if isinstance(value, bytes):
        return "0x" + value.hex()
    return str(value)


def _plain(value: Any) -> Any:
    """Return a substitute in JSON for a value of another type."""
    if isinstance(value, bytes | memoryview):
        return "0x" + bytes(value).hex()
    if isinstance(value, dt.timedelta):
        return str(value)
    if isinstance(value, dict):  # keys are no texts
        return {_text(key): item for key, item in value.items()}
    return str(value)


_ENCODER = msgspec.json.Encoder(enc_hook=_plain, decimal_format="number")


def _encode(value: Any) -> bytes:
    try:
        return _ENCODER.encode(value)
    except (TypeError, OverflowError, msgspec.MsgspecError):  # a MAP whose keys are no texts, an integer of 128 bits
        return _ENCODER.encode(_json_types(value))


def _json_types(value: Any) -> Any:
    if isinstance(value, dict):
        return {_text(key): _json_types(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return list(map(_json_types, value))
    if isinstance(value, int) and not -(2**63) <= value < 2**64:
        return msgspec.Raw(str(value).encode())
    return value


# --- formats ----------------------------------------------------------------------------------------------------------


def objects(columns: Sequence[ResultColumn], rows: Iterable[Sequence[Any]]) -> Iterator[bytes]:
    """Yield rows as JSON objects; a column of JSON is put in as it is, two columns of one name get numbers."""
    names = _distinct(columns)
    raw = [column.type == "JSON" for column in columns]
    for row in rows:
        values = (
            msgspec.Raw(value.encode()) if is_json and isinstance(value, str) else value
            for value, is_json in zip(row, raw, strict=True)
        )
        yield _encode(dict(zip(names, values, strict=True)))


def _distinct(columns: Sequence[ResultColumn]) -> list[str]:
    names: list[str] = []
    for column in columns:
        name, number = column.name, 1
        while name in names:
            number += 1
            name = f"{column.name}_{number}"
        names.append(name)
    return names


class Formulas:
    """Disarms and counts cells with formulas."""

    def __init__(self, *, keeps: bool) -> None:
        self._keeps = keeps
        self.count = 0

    def cell(self, value: Any) -> Any:
        """Return a cell; a text that begins as formulas do has an apostrophe before it."""
        if value is None or is_number(value):
            return value
        text = _text(value)
        if self._keeps or not isinstance(value, str):
            return text  # a number, such as a decimal, or a time that is negative is none
        cell = unlike_formula(text)
        self.count += cell != text
        return cell


def _csv(columns: Sequence[ResultColumn], rows: Iterable[Sequence[Any]], formulas: Formulas) -> Iterator[bytes]:
    buffer = io.StringIO()
    write = csv.writer(buffer, lineterminator="\r\n").writerow
    write([formulas.cell(column.name) for column in columns])
    for row in rows:
        write(map(formulas.cell, row))
        yield buffer.getvalue().encode()
        buffer.seek(0)
        buffer.truncate()
    yield buffer.getvalue().encode()


def _json(columns: Sequence[ResultColumn], rows: Iterable[Sequence[Any]]) -> Iterator[bytes]:
    before = b"["
    for object_ in objects(columns, rows):
        yield before + b"\n" + object_
        before = b","
    yield b"\n]\n" if before == b"," else b"[]\n"


def _jsonl(columns: Sequence[ResultColumn], rows: Iterable[Sequence[Any]]) -> Iterator[bytes]:
    for object_ in objects(columns, rows):
        yield object_ + b"\n"


def _markdown(columns: Sequence[ResultColumn], rows: Iterable[Sequence[Any]]) -> Iterator[bytes]:
    yield _markdown_line(column.name for column in columns)
    yield _markdown_line("---" for _ in columns)
    for row in rows:
        yield _markdown_line(map(_text, row))


def _markdown_line(cells: Iterable[str]) -> bytes:
    texts = (cell if cell == "---" else escaped(cell).translate(IN_MARKDOWN) for cell in cells)
    return f"| {' | '.join(texts)} |\n".encode()


_WRITERS: dict[str, Callable[[Sequence[ResultColumn], Iterable[Sequence[Any]]], Iterator[bytes]]] = {
    "json": _json, "jsonl": _jsonl, "markdown": _markdown,
}  # fmt: skip


def write(session: Database, query: str, format: Format, output: NamedOutput | None, *, formulas: bool = False) -> str:
    """Write a result to a file or to standard output; return what is to be said.

    Args:
        session: Session that has what the query names.
        query: Query whose result it is.
        format: any but a table.
        output: the file; None for standard output.
        formulas: True if cells of CSV may be formulas.

    Raises:
        ToolkitError: if the query fails on the way.
    """
    if format == "parquet":
        return _write_parquet(session, query, output)
    result = session.execute(query)
    cells = Formulas(keeps=formulas)
    count = 0

    def counted() -> Iterator[tuple[Any, ...]]:
        nonlocal count
        for row in result.rows():
            count += 1
            yield row

    rows = counted()
    pieces = _csv(result.columns, rows, cells) if format == "csv" else _WRITERS[format](result.columns, rows)
    with output or nullcontext(sys.stdout.buffer) as out:
        for piece in pieces:
            out.write(piece)
    message = f"{amount(count, 'row')} -> {output.path}" if output else ""
    if cells.count:
        noun = "cell begins as a formula and has" if cells.count == 1 else "cells begin as formulas and have"
        warning = f"{cells.count:,} {noun} an apostrophe before it; `--formulas`, or another format, keeps texts"
        print(f"warning: {warning}", file=sys.stderr)
    return message


def _write_parquet(session: Database, query: str, output: NamedOutput | None) -> str:
    import pyarrow as pa
    import pyarrow.parquet as pq

    if output is None:
        raise ConfigError("--format parquet: expected --output FILE, got none")
    batches = session.batches(query)
    schema = next(batches)
    rows = 0
    try:
        with (
            output as out,
            Sink(out) as sink,
            pq.ParquetWriter(sink, schema, compression="zstd", compression_level=3) as file,
        ):
            for batch in batches:
                file.write_batch(batch)
                rows += batch.num_rows
    except pa.ArrowNotImplementedError as error:
        raise ConfigError(f"--format parquet: expected columns that Parquet has, got: {escaped(str(error))}") from None
    return f"{amount(rows, 'row')} -> {output.path}"
