"""A session of queries: DuckDB in memory, with the views that queries name, which can write and open nothing."""

import atexit
import re
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import wait
from contextlib import ExitStack, suppress
from types import TracebackType
from typing import Any, NamedTuple, Protocol, Self, TypeVar

from toolkit.data.excerpts import escaped
from toolkit.errors import ConfigError, ToolkitError, did_you_mean
from toolkit.interrupts import AWAKE, check, interrupts_deferred
from toolkit.sql.streams import Faults
from toolkit.sql.views import STREAM, View, literal, quoted
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


class Column(NamedTuple):
    """A column of a result, with the type as SQL writes it."""

    name: str
    type: str


class Result:
    """The result of a statement, read some rows at a time.

    Attributes:
        columns: Columns of it.
    """

    def __init__(self, session: "Database", cursor: Any, sql: str) -> None:
        self._session, self._cursor, self._sql = session, cursor, sql
        self.columns = [Column(item[0], str(item[1])) for item in cursor.description or ()]

    def rows(self) -> Iterator[tuple[Any, ...]]:
        """Yield the rows as Python's values.

        Raises:
            ToolkitError: if the query fails on the way.
        """
        with self._session.explaining(self._sql):
            while some := self._session.apart(lambda: self._cursor.fetchmany(FETCHED)):
                yield from some


class Database:
    """Queries over views that are made when a query names them. A context manager.

    Args:
        views: Views by name, what makes each.
        aliases: other names of views.
        faults: Faults that the views' streams have.
        memory: bytes that DuckDB may take; what needs more goes to files in a temporary folder.
        threads: Threads that work.

    Attributes:
        aliases: as they were given.
    """

    def __init__(
        self,
        views: Mapping[str, Callable[[], View]],
        aliases: Mapping[str, str],
        faults: Faults,
        *,
        memory: int,
        threads: int,
    ) -> None:
        self._makers, self.aliases, self._faults = views, aliases, faults
        self._settings = (f"memory_limit='{memory}B'", f"threads={threads}")
        self._made: set[str] = set()
        self._stack = ExitStack()

    @property
    def names(self) -> list[str]:
        """The names of the views."""
        return list(self._makers)

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

    def execute(self, sql: str) -> Result:
        """Return the result of a statement, or of the last one of several.

        Raises:
            ConfigError: for what is wrong with it, with its place.
            ToolkitError: for what is wrong with the files that it reads.
        """
        self._prepare(sql)
        with self.explaining(sql):
            cursor = self.apart(lambda: self._connection.execute(sql))
        if cursor is None:
            raise ConfigError("sql: expected a statement, got none")
        return Result(self, cursor, sql)

    def batches(self, sql: str, rows: int = 8 * FETCHED) -> Generator[Any, None, None]:
        """Yield the schema of pyarrow of a query's result, then record batches of so many rows.

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

    def explaining(self, sql: str) -> "_Explaining":
        """Return a context manager in which DuckDB's errors become ours."""
        return _Explaining(sql, self._faults, self.names)

    def apart(self, work: Callable[[], T]) -> T:
        """Return what a function gives, in a thread of its own: a signal that comes meanwhile ends the query."""
        with interrupts_deferred():
            done = self._thread.submit(work)
            try:
                while not done.done():
                    check()
                    wait([done], timeout=AWAKE)
            except BaseException:
                while not done.done():  # a query that has not begun yet does not notice
                    self._connection.interrupt()
                    wait([done], timeout=AWAKE)
                raise
            return done.result()

    def describe(self, name: str) -> list[Column]:
        """Return the columns of a view."""
        return [Column(row[0], row[1]) for row in self.execute(f"DESCRIBE {quoted(name)}").rows()]

    def _prepare(self, sql: str) -> None:
        """Make the views that a statement names."""
        for name in self._named(sql):
            self._make(name)
        self._faults.found.clear()

    def _named(self, sql: str) -> list[str]:
        """Return the views whose names stand in a statement, or all where it may ask what there is."""
        said = sql.casefold()
        if any(word in said for word in ALL):
            return list(self._makers)
        known = {name: name for name in self._makers} | dict(self.aliases)
        return list(dict.fromkeys(view for name, view in known.items() if name.casefold() in said))

    def _make(self, name: str) -> None:
        if name in self._made:
            return
        view = self._makers[name]()
        stream = f"stream of {name}"
        # A stream that was registered would be a view of its own, among those that `SHOW TABLES` lists.
        relation = self._connection.from_arrow(view.stream)
        asked = relation.query(stream, view.query.replace(STREAM, quoted(stream)))
        assert asked is not None  # it is a SELECT
        asked.create_view(name)
        for alias, of in self.aliases.items():
            if of == name:
                self._connection.execute(f"CREATE VIEW {quoted(alias)} AS FROM {quoted(name)}")
        self._made.add(name)


class Views(Protocol):
    """The views that can be queried.

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
        memory: as of `Database`.
        threads: as of `Database`.

    Raises:
        ToolkitError: as `Database.execute`; also while batches are read.
    """
    import pyarrow as pa

    stack = ExitStack()
    try:
        session = stack.enter_context(
            Database(views.makers, aliases_of(list(views.makers)), views.faults, memory=memory, threads=threads)
        )
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


class _Explaining:
    """Makes errors of DuckDB ours: those of our streams are told as they were."""

    def __init__(self, sql: str, faults: Faults, views: Sequence[str]) -> None:
        self._sql, self._faults, self._views = sql, faults, views

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        import duckdb

        if error is None or isinstance(error, ToolkitError | GeneratorExit):
            return
        if _is_interrupt(error):
            raise KeyboardInterrupt from None
        if self._faults.found:
            raise self._faults.found[0] from None
        if isinstance(error, duckdb.Error):
            raise explained(str(error), self._sql, self._views) from None


def _is_interrupt(error: BaseException) -> bool:
    """Return whether Ctrl-C ended a query: in DuckDB, or in a stream of ours, whose error DuckDB spells out."""
    said = str(error)
    if isinstance(error, RuntimeError) and "interrupted" in said.casefold():
        return True
    return "Python exception: " in said and said.rstrip().endswith("KeyboardInterrupt")


_PLACE = re.compile(r"\n\s*LINE (\d+): (.*)\n( *)\^", re.DOTALL)
_UNKNOWN = re.compile(r"Table with name (.+?) does not exist!", re.DOTALL)
_OF_DATA = ("Out of Memory", "IO Error", "Conversion", "Invalid Input", "Out of Range", "Interrupt", "INTERNAL")


def explained(said: str, sql: str, views: Sequence[str]) -> ToolkitError:
    """Return the error of DuckDB as one line with its place in the query.

    Args:
        said: by DuckDB.
        sql: the query.
        views: Views that there are.
    """
    place = ""
    if match := _PLACE.search(said):
        number, excerpt, spaces = int(match[1]), match[2], match[3]
        said = said[: match.start()]
        at = len(spaces) - len(f"LINE {number}: ")
        lines = sql.split("\n")
        line = lines[number - 1] if number <= len(lines) else ""
        before = line.find(excerpt.removeprefix("...").removesuffix("..."))
        column = at - (3 if excerpt.startswith("...") else 0) + max(before, 0) + 1
        place = f":{number}:{max(column, 1)}"
    said = said.partition("\nPossible solutions")[0]  # settings that are not the user's
    unknown = _UNKNOWN.search(said)
    if unknown:
        said = said[: unknown.end()]
    message = escaped(" ".join(said.split()))
    hint = _hint_of(unknown[1], views) if unknown else _hint(message)
    is_usage = place or not message.startswith(_OF_DATA) or "has been locked" in message
    kind = ConfigError if is_usage else ToolkitError
    return kind(f"sql{place}: {message}{hint}")


def _hint_of(name: str, views: Sequence[str]) -> str:
    hint = did_you_mean(name, views)
    return f" {hint[2:]}" if hint else f" there are: {', '.join(views)}"


def _hint(message: str) -> str:
    if "file system operations are disabled" in message or "external extensions" in message:
        return "; a query can only read the views; `--output FILE` writes its result"
    if message.startswith("Out of Memory"):
        return "; give it more with `--memory`"
    return ""


def aliases_of(names: Sequence[str]) -> dict[str, str]:
    """Return names that need no quotes for those that do, where nothing else is called so.

    >>> aliases_of(["documents", "lines-0", "a-1", "a_1"])
    {'lines_0': 'lines-0'}
    """
    known = {name.casefold() for name in names}
    results: dict[str, str] = {}
    for name in names:
        plain = re.sub(r"\W", "_", name)
        if plain.casefold() not in known:
            results[plain] = name
            known.add(plain.casefold())
    return results
