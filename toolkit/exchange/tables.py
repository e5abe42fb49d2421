"""Tables in DuckDB, for joins, sorts and ranks.

A table is a mapping of names to NumPy arrays of one length. What an answer says must not depend on memory: each order
is total, sums are of integers, and hashes are ours.
"""

import copy
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any, Self

from toolkit.storage.stores.local.scratch import scratch
from toolkit.text.kernels.signatures import Array

MEMORY = 256_000_000
"""Bytes of a task, unless its stage has an option for that."""

LEAST = 32_000_000
"""Bytes of memory that DuckDB needs."""


class Tables:
    """A database of one task; a context manager. What does not fit into memory is in the folder for temporary files.

    Args:
        memory: Bytes of the task. Half of them are for DuckDB, tables and answers have the rest: a table may take an
            eighth.
    """

    def __init__(self, memory: int) -> None:
        self._memory = max(memory // 2, LEAST)
        self._stack = ExitStack()
        self._names: set[str] = set()

    def __enter__(self) -> Self:
        import duckdb

        folder = self._stack.enter_context(scratch())
        settings: dict[str, str | bool | int | float | list[str]] = {
            "threads": 1,
            "memory_limit": f"{self._memory}B",
            "temp_directory": folder,
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
        }
        self._connection: Any = self._stack.enter_context(duckdb.connect(config=settings))
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @contextmanager
    def beside(self) -> Iterator[Self]:
        """Give the same database, for another thread."""
        other = copy.copy(self)
        with self._connection.cursor() as connection:
            vars(other)["_connection"] = connection
            yield other

    def run(self, sql: str, parameters: Mapping[str, Any] | None = None, **tables: Any) -> Any:
        """Return the result of a statement, for its ``fetch…`` methods.

        Args:
            sql: Statement.
            parameters: Values by name, of ``$name`` in it.
            tables: Tables of pyarrow that it names.
        """
        for name, table in tables.items():
            self._connection.register(name, table)
        return self._connection.execute(sql, dict(parameters or {}))

    def types(self, table: Any) -> dict[str, str]:
        """Return the columns of a pyarrow table, with types in SQL."""
        return {name: type_ for name, type_, *_ in self.run("DESCRIBE described", described=table).fetchall()}

    def query(self, sql: str, **tables: Mapping[str, Array]) -> dict[str, Array]:
        """Return the columns of an answer without nulls; nothing of a statement without one."""
        for name, columns in tables.items():
            self._connection.register(name, dict(columns))
        answer: dict[str, Array] = self._connection.execute(sql).fetchnumpy()
        return answer

    def append(self, name: str, **columns: Array) -> None:
        """Append rows to a table of the database, or create it."""
        self._connection.register("rows_to_append", columns)
        new = name not in self._names
        self._names.add(name)
        self._connection.execute(f"{'CREATE TABLE' if new else 'INSERT INTO'} {name}{' AS' * new} FROM rows_to_append")
