"""An interactive prompt for queries: statements of several lines that end with a semicolon, and a few dot commands."""

import re
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from toolkit.errors import ToolkitError, did_you_mean
from toolkit.sql import printing
from toolkit.sql.session import Session

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
    """Return whether a text ends with a semicolon that is not in quotes or a comment.

    >>> is_complete("select ';'"), is_complete("select ';' ; -- so")
    (False, True)
    """
    last = ""
    for token in _TOKEN.finditer(text):
        said = token[0]
        if any(token[i] == "" for i in _ENDS):
            return False
        if not said.isspace() and not said.startswith(("--", "/*")):
            last = said
    return last == ";"


def run(session: Session, rows: int) -> int:
    """Answer what is typed, or comes by a pipe, until its end; return how many statements failed.

    Args:
        session: of queries.
        rows: of a result that are shown.
    """
    is_person = sys.stdin.isatty()
    if is_person:
        with suppress(ImportError):
            import readline  # noqa: F401  # gives `input` its history and keys
        print(f"{len(session.names)} views: {', '.join(session.names)}. `.help` says more.", flush=True)
    failed = 0
    with _plain_interrupts():
        for statement in _statements(is_person=is_person):
            if statement in (".quit", ".exit"):
                break
            try:
                _answer(session, statement, rows)
            except ToolkitError as error:
                failed += 1
                print(f"error: {error}", file=sys.stderr, flush=True)
            except KeyboardInterrupt:
                if not is_person:
                    raise
                print("interrupted", file=sys.stderr, flush=True)
    return failed


@contextmanager
def _plain_interrupts() -> Iterator[None]:
    """Let Ctrl-C interrupt what is done, and nothing else: the process goes on."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _statements(*, is_person: bool) -> Iterator[str]:
    """Yield statements and dot commands."""
    held = ""
    while True:
        try:
            line = input((MORE if held else PROMPT) if is_person else "")
        except EOFError:
            if is_person:
                print()
            if held.strip():
                yield held
            return
        except KeyboardInterrupt:
            if not is_person:
                raise
            print()
            held = ""
            continue
        if not held and line.strip().startswith("."):
            yield line.strip()
            continue
        held = f"{held}\n{line}" if held else line
        if is_complete(held):
            yield held
            held = ""
        elif not held.strip():
            held = ""


def _answer(session: Session, statement: str, rows: int) -> None:
    if not statement.startswith("."):
        print(shown(session, statement, rows), flush=True)
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


def schema(session: Session, name: str) -> str:
    """Return the columns of a view with their types; those of all views without a name.

    Raises:
        ToolkitError: if there is no such view.
    """
    name = session.aliases.get(name, name)
    if name and name not in session.names:
        hint = did_you_mean(name, session.names) or f"; there are: {', '.join(session.names)}"
        raise ToolkitError(f"expected a view, got {name!r}{hint}")
    shown = []
    for each in [name] if name else session.names:
        listed = [f"  {column.name}  {column.type}" for column in session.describe(each)]
        shown.append("\n".join([each, *listed]))
    return "\n\n".join(shown)


def shown(session: Session, statement: str, rows: int) -> str:
    """Return the result of a statement as a table of the first rows."""
    result = session.execute(statement)
    found = []
    for row in result.rows():
        found.append(row)
        if len(found) > rows:
            break
    if not result.columns:
        return ""
    more = f"\nthe first {rows:,} rows; `--rows` shows more, `--output` takes all" if len(found) > rows else ""
    return printing.table(result.columns, found[:rows]) + more
