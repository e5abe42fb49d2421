"""A session of queries: DuckDB in memory, with the views that queries name, which can write and open nothing."""

import atexit
import re
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import wait
from contextlib import ExitStack, contextmanager, suppress
from types import TracebackType
from typing import Any, NamedTuple, Protocol, Self, TypeVar

from toolkit.data.excerpts import escaped
from toolkit.data.tables.to_arrow import INT_BITS
from toolkit.errors import ConfigError, ToolkitError, did_you_mean
from toolkit.interrupts import AWAKE, check, interrupts_deferred
from toolkit.sql.streams import Faults
from toolkit.sql.views import STREAM, View, literal, quote
from toolkit.storage.json_files import know_types
from toolkit.storage.stores.local.scratch import scratch
from toolkit.storage.threads import pool

T = TypeVar("T")

FETCHED = 1024
"""Rows of a result that are objects at a time."""

ALL = ("show", "describe", "summarize", "pragma", "information_schema", "duckdb_", "pg_", "sqlite_", "comment")
"""Words of queries about what views there are."""

_SETTINGS = (
    "enable_progress_bar=false",
    "autoinstall_known_extensions=false",
    "autoload_known_extensions=false",
    "allow_community_extensions=false",
    "python_enable_replacements=false",
    "enable_external_access=false",
    "lock_configuration=true",
)
"""No query reaches a file, a variable of Python or an extension; these settings cannot be changed any more."""


class ResultColumn(NamedTuple):
    """A column of a result, with the type as SQL writes it."""

    name: str
    type: str


class StatementResult:
    """The result of a statement, read some rows at a time.

    Attributes:
        columns: Columns of it.
    """

    def __init__(self, session: "Database", cursor: Any, sql: str) -> None:
        self._session, self._cursor, self._sql = session, cursor, sql
        self.columns = [ResultColumn(item[0], str(item[1])) for item in cursor.description or ()]

    def rows(self) -> Iterator[tuple[Any, ...]]:
        """Yield the rows as Python's values.

        Raises:
            ToolkitError: if the query fails on the way.
        """
        with self._session.explaining(self._sql):
            while some := self._session.apart(lambda: self._cursor.fetchmany(FETCHED)):
                yield from some


class Database:
    """Queries over views, created when a query names them. A context manager.

    Args:
        views: Makers of views, by name.
        faults: Errors of the views' streams.
        memory: Bytes that DuckDB may take; what needs more goes to files in a temporary folder.
        threads: Number of threads.

    Attributes:
        names: Names of the views.
        aliases: Views by names that need no quotes.
    """

    def __init__(self, views: Mapping[str, Callable[[], View]], faults: Faults, *, memory: int, threads: int) -> None:
        self._makers, self._faults = views, faults
        self.names = list(views)
        self.aliases = aliases_of(self.names)
        self._settings = (f"memory_limit='{memory}B'", f"threads={threads}")
        self._created: set[str] = set()
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        import duckdb

        know_types()  # DuckDB's threads read the views
        self._thread = self._stack.enter_context(pool(1))
        folder = self._stack.enter_context(scratch())
        self._connection = self._stack.enter_context(duckdb.connect())
        for setting in (*self._settings, f"temp_directory={literal(folder)}", *_SETTINGS):
            self._connection.execute(f"SET {setting}")
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        with suppress(Exception):  # a query that was interrupted
            self._connection.interrupt()
        self._stack.close()
        del self._connection

    def execute(self, sql: str) -> StatementResult:
        """Return the result of the last statement.

        Raises:
            ConfigError: for what is wrong with it, with its place.
            ToolkitError: for what is wrong with the files that it reads.
        """
        self._prepare(sql)
        with self.explaining(sql):
            cursor = self.apart(lambda: self._connection.execute(sql))
        if cursor is None:
            raise ConfigError("sql: expected a statement, got none")
        return StatementResult(self, cursor, sql)

    def batches(self, sql: str, rows: int = 8 * FETCHED) -> Generator[Any, None, None]:
        """Yield the pyarrow schema of a result, then its record batches.

        Raises:
            ToolkitError: as `execute`, also on the way.
        """
        self._prepare(sql)
        with self.explaining(sql):
            relation = self.apart(lambda: self._relation(sql))
            if relation is None:
                raise ConfigError("sql: expected a query, got another statement")
            read = getattr(relation, "to_arrow_reader", None) or relation.fetch_record_batch  # before DuckDB 2
            reader = self.apart(lambda: read(rows))
            yield reader.schema
            while (batch := self.apart(lambda: next(reader, None))) is not None:
                yield batch

    def _relation(self, sql: str) -> Any:
        try:
            return self._connection.sql(sql)
        except Exception:
            self._connection.execute(sql)  # whose errors say where
            raise

    @contextmanager
    def explaining(self, sql: str) -> Iterator[None]:
        """Replace errors of DuckDB by ours; those of our streams are raised as they were."""
        import duckdb

        try:
            yield
        except (ToolkitError, GeneratorExit):
            raise
        except BaseException as error:
            if _is_interrupt(error):
                raise KeyboardInterrupt from None
            if self._faults.errors:
                raise self._faults.errors[0] from None
            if isinstance(error, duckdb.Error):
                raise query_error(str(error), sql, self.names) from None
            raise

    def apart(self, work: Callable[[], T]) -> T:
        """Return the result of a function, run in another thread: a signal that comes meanwhile ends the query."""
        with interrupts_deferred():
            future = self._thread.submit(work)
            try:
                while not future.done():
                    check()
                    wait([future], timeout=AWAKE)
            except BaseException:
                while not future.done():  # a query that has not begun yet does not notice
                    self._connection.interrupt()
                    wait([future], timeout=AWAKE)
                raise
            return future.result()

    def describe(self, name: str) -> list[ResultColumn]:
        """Return the columns of a view."""
        return [ResultColumn(row[0], row[1]) for row in self.execute(f"DESCRIBE {quote(name)}").rows()]

    def _prepare(self, sql: str) -> None:
        """Create the views in a statement."""
        folded = sql.casefold()
        lists_views = any(word in folded for word in ALL)
        for name, view in (dict(zip(self.names, self.names, strict=True)) | self.aliases).items():
            if lists_views or name.casefold() in folded:
                self._make(view)
        self._faults.errors.clear()

    def _make(self, name: str) -> None:
        if name in self._created:
            return
        view = self._makers[name]()
        stream = f"stream of {name}"
        # A stream that was registered would be a view of its own, among those that `SHOW TABLES` lists.
        relation = self._connection.from_arrow(view.stream)
        selection = relation.query(stream, view.query.replace(STREAM, quote(stream)))
        assert selection is not None  # it is a SELECT
        selection.create_view(name)
        for alias, of in self.aliases.items():
            if of == name:
                self._connection.execute(f"CREATE VIEW {quote(alias)} AS FROM {quote(name)}")
        self._created.add(name)


class Views(Protocol):
    """The available views.

    Attributes:
        makers: Makers of views, by name.
        faults: Faults that all of them have.
    """

    makers: dict[str, Callable[[], View]]
    faults: Faults


def reader(query: str, views: Views, *, memory: int, threads: int) -> Any:
    """Return a reader of the record batches of a result; the session ends with it.

    Args:
        query: Query of one statement.
        views: Views that it can name.
        memory: Bytes for DuckDB, as in `Database`.
        threads: Number of threads.

    Raises:
        ToolkitError: as `Database.execute`; also while batches are read.
    """
    import pyarrow as pa

    stack = ExitStack()
    try:
        session = stack.enter_context(Database(views.makers, views.faults, memory=memory, threads=threads))
        batches = session.batches(query)
        schema = next(batches)
    except BaseException:
        stack.close()
        raise

    def read() -> Iterator[Any]:
        with stack:
            yield from batches

    # one that is not read to its end holds a database, which complains if modules go first
    atexit.register(stack.close)
    stack.callback(batches.close)
    stack.callback(atexit.unregister, stack.close)
    return pa.RecordBatchReader.from_batches(schema, read())


def _is_interrupt(error: BaseException) -> bool:
    """Return True if Ctrl-C ended a query: in DuckDB, or in a stream of ours, whose error DuckDB spells out."""
    message = str(error)
    if isinstance(error, RuntimeError) and "interrupted" in message.casefold():
        return True
    return "Python exception: " in message and message.rstrip().endswith("KeyboardInterrupt")


_PLACE = re.compile(r"\n\s*LINE (\d+): (.*)\n( *)\^", re.DOTALL)
_UNKNOWN = re.compile(r"Table with name (.+?) does not exist!", re.DOTALL)
_TOO_LARGE = re.compile(r"Failed to cast value to numerical: -?\d{19,}$")
_OF_DATA = ("Out of Memory", "IO Error", "Conversion", "Invalid Input", "Out of Range", "Interrupt", "INTERNAL")


def query_error(text: str, sql: str, views: Sequence[str]) -> ToolkitError:
    """Return an error of DuckDB as one line with its place.

    Args:
        text: Message of DuckDB.
        sql: the query.
        views: Views that there are.
    """
    place = ""
    if match := _PLACE.search(text):
        number, excerpt, spaces = int(match[1]), match[2], match[3]
        text = text[: match.start()]
        at = len(spaces) - len(f"LINE {number}: ")
        lines = sql.split("\n")
        line = lines[number - 1] if number <= len(lines) else ""
        before = line.find(excerpt.removeprefix("...").removesuffix("..."))
        column = at - (3 if excerpt.startswith("...") else 0) + max(before, 0) + 1
        place = f":{number}:{max(column, 1)}"
    text = text.partition("\nPossible solutions")[0]  # settings that are not the user's
    unknown = _UNKNOWN.search(text)
    if unknown:
        text = text[: unknown.end()]
    message = escaped(" ".join(text.split()))
    if unknown:
        near = did_you_mean(unknown[1], views)
        hint = f" {near[2:]}" if near else f" there are: {', '.join(views)}"
    elif "file system operations are disabled" in message or "external extensions" in message:
        hint = "; a query can only read the views; `--output FILE` writes its result"
    elif _TOO_LARGE.search(message):
        hint = f"; {INT_BITS}"
    else:
        hint = "; give it more with `--memory`" if message.startswith("Out of Memory") else ""
    is_usage = place or not message.startswith(_OF_DATA) or "has been locked" in message
    kind = ConfigError if is_usage else ToolkitError
    return kind(f"sql{place}: {message}{hint}")


def aliases_of(names: Sequence[str]) -> dict[str, str]:
    """Return free aliases without quotes for names with quotes.

    >>> aliases_of(["documents", "lines-0", "a-1", "a_1"])
    {'lines_0': 'lines-0'}
    """
    folded = {name.casefold() for name in names}
    results: dict[str, str] = {}
    for name in names:
        plain = re.sub(r"\W", "_", name)
        if plain.casefold() not in folded:
            results[plain] = name
            folded.add(plain.casefold())
    return results
