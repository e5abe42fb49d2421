"""A dataset as rows: documents, alone or joined with attribute sets."""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from toolkit.api import arguments
from toolkit.api.arguments import Configuration, Overrides
from toolkit.api.rows import Row, Rows, rules_of
from toolkit.config.settings import ConfigNode
from toolkit.data.documents import Document
from toolkit.data.schema import is_number
from toolkit.errors import ConfigError, DataError, did_you_mean, errors_from
from toolkit.lazy_numpy import np
from toolkit.session import Session

if TYPE_CHECKING:
    import pyarrow as pa

    from toolkit.data.dataset import Dataset as Places
    from toolkit.mix.join import JoinedShard
    from toolkit.mix.joined_sets import JoinedSet
    from toolkit.mix.settings import Stream
    from toolkit.stages.context import Context
    from toolkit.text.kernels.signatures import Array


_TOGETHER = 4096


class Vectors(NamedTuple):
    """The vectors of documents, in the order of shards and rows.

    Attributes:
        ids: IDs of the documents.
        sources: Sources of the documents; source and id identify one.
        values: float16 (documents, numbers).
    """

    ids: list[str]
    sources: list[str]
    values: "Array"


def vectors_of(rows: "Iterable[Row]", attribute: str, path: Sequence[str]) -> Vectors:
    """Return the vectors of rows.

    Args:
        rows: Rows joined with the set.
        attribute: Requested name, for messages.
        path: Key, and fields inside.

    Raises:
        DataError: if a row has no vector, or of another length than the first.
    """
    result = Vectors([], [], np.empty((0, 0), np.float16))
    parts: list[Array] = []
    block: list[list[float]] = []
    length = 0
    for row in rows:
        value: Any = row.attributes
        for name in path:
            value = value.get(name) if isinstance(value, dict) else None
        length = length or (len(value) if isinstance(value, list) else 0)
        if not isinstance(value, list) or not value or len(value) != length or not all(map(is_number, value)):
            expected = f"{length:,} numbers" if length else "a list of numbers"
            got = f"{len(value):,} values" if isinstance(value, list) else "null" if value is None else str(value)[:40]
            hint = "; leave out documents without by `where`" if value is None else ""
            message = f"{attribute}: expected {expected}, got {got}{hint}"
            raise DataError(message, path=row.shard, line=row.number, id=row.document.id)
        result.ids.append(row.document.id)
        result.sources.append(row.document.source)
        block.append(value)
        if len(block) == _TOGETHER:
            parts.append(np.array(block, np.float16))
            block.clear()
    if block:
        parts.append(np.array(block, np.float16))
    return result._replace(values=np.concatenate(parts)) if parts else result


Set = str | Mapping[str, Any]
"""An attribute set, or ``{"set": NAME, "as": {KEY: ITS_NAME}}``."""


class Dataset:
    """A dataset on disk, in a bucket, or of external files.

    Args:
        dataset: a folder with ``documents`` and ``attributes``, or the path of one in a bucket; or a configuration: a
            path that ends in .yaml or .yml, YAML (a text of several lines), or a mapping such as ``{"documents":
            "s3://…", "attributes": "data/…"}``.
        overrides: Overrides of the configuration: ``["dataset=data/other"]``, or a mapping.

    Raises:
        ConfigError: if the configuration cannot be read.
    """

    def __init__(self, dataset: Configuration, *, overrides: Overrides = ()) -> None:
        arguments.check(dataset)
        self._session = Session()
        with self._session.bound():
            if arguments.is_configuration(dataset) or os.path.isfile(dataset):  # type: ignore[arg-type]  # no mapping
                self._name = arguments.named(dataset)
                source = arguments.read(dataset, overrides)
            else:
                self._name = os.fspath(dataset)  # type: ignore[arg-type]  # mappings are configurations
                if overrides:
                    raise ConfigError(f"expected overrides with a configuration, got the folder {self._name}")
                source = ConfigNode({"dataset": self._name}, self._name)
        if isinstance(source.value, dict):  # reading needs no processes
            source.value = {**source.value, "executor": {"type": "in_process"}}
        self._source = source

    @property
    def shards(self) -> list[str]:
        """The relative paths of all shards, sorted.

        Raises:
            NoDocuments: if there are none.
            DataError: if a file among them is no shard, or one that was ingested is gone.
        """
        with self._context() as context:
            return context.shards(context.dataset)[0]

    @property
    def sets(self) -> list[str]:
        """The names of the attribute sets on disk."""
        with self._context() as context:
            return context.dataset.sets()

    def documents(
        self,
        *,
        shards: Iterable[str] | None = None,
        shard: tuple[int, int] | None = None,
        where: str | None = None,
        ids: Iterable[str] | None = None,
    ) -> Rows[Document]:
        """Return the documents; see `joined`. An expression may use ``document`` and ``metadata``."""
        works, joined = self._plan((), shards, shard, where)
        return Rows(works, joined, _ids(ids), self._session, joined=False)

    def joined(
        self,
        *sets: Set,
        shards: Iterable[str] | None = None,
        shard: tuple[int, int] | None = None,
        where: str | None = None,
        ids: Iterable[str] | None = None,
        text: bool = True,
    ) -> Rows[Row]:
        """Return documents joined with attribute sets, checked as for a mix.

        Checks of the whole run here, checks of a shard when it is read: a set that is missing, short, damaged or stale
        is an error with file, line and id, and never a row without its attributes.

        Args:
            *sets: Sets to join; ``{"set": NAME, "as": {KEY: ITS_NAME}}`` if two have the same key.
            shards: Relative paths of shards, in reading order; all by default.
            shard: Share ``(i, n)``: only the share i of n, as the commands count it.
            where: An expression of rules that selects documents.
            ids: IDs of documents; all shards are searched for them.
            text: False to read attributes and row indexes alone, as a dry run does, which is several times as fast:
                documents have only `id`, `source` and `chars` then.

        Raises:
            ConfigError: for whatever is wrong with sets, shards or the expression.
            DataError: if shards are gone, or sets of duplicates were resolved over others.
        """
        if not sets:
            with self._context() as context:
                existing = ", ".join(context.dataset.sets()) or "none"
            raise ConfigError(f"joined: expected attribute sets, got none; there are: {existing}")
        works, joined = self._plan(sets, shards, shard, where, text=text)
        return Rows(works, joined, _ids(ids), self._session, joined=True, text=text)

    def array(
        self,
        attribute: str,
        *,
        shards: Iterable[str] | None = None,
        shard: tuple[int, int] | None = None,
        where: str | None = None,
    ) -> "Vectors":
        """Return the vectors of an attribute, in memory.

        Args:
            attribute: Attribute ``SET.KEY[.field]``, such as ``embed-0.embedding``: a list of as many numbers in each
                document.
            shards: Argument of `joined`.
            shard: Argument of `joined`.
            where: Argument of `joined`; such as ``embedding is not None``, for a set with ``when``.

        Raises:
            ConfigError: as `joined` does.
            DataError: if a document has none, or of another length, with its place.
        """
        set_name, *path = attribute.split(".") if isinstance(attribute, str) else [""]
        if not path or not all((set_name, *path)):
            raise ConfigError(f"array: expected SET.KEY[.field], got {attribute!r}")
        return vectors_of(self.joined(set_name, shards=shards, shard=shard, where=where, text=False), attribute, path)

    def sql(self, query: str, *, memory: str | int = "2 GB") -> "pa.RecordBatchReader":
        """Return the result of a query over the views of ``toolkit sql``.

        Args:
            query: Query of DuckDB's SQL.
            memory: Memory of the query; larger queries use temporary files.

        Raises:
            MissingExtra: if DuckDB is not installed (extra `sql`).
            ConfigError: for what is wrong with the query, with its place.
            DataError: as `joined`; also while the result is read.
        """
        from toolkit.distribution import require_extra

        require_extra("sql", "queries in SQL", "pyarrow")
        from toolkit.commands.sql import catalog_of
        from toolkit.sql import session
        from toolkit.storage_options import Size

        with errors_from("memory", of=ValueError):
            size = Size.parse(memory)
        with self._context() as context:
            return session.reader(query, catalog_of(context, ()), memory=size, threads=2)

    def __repr__(self) -> str:
        return f"Dataset({self._name!r})"

    # --- how they are read --------------------------------------------------------------------------------------------

    @contextmanager
    def _context(self, shard: tuple[int, int] | None = None) -> "Iterator[Context]":
        from toolkit.command_line import Options
        from toolkit.stages.dispatch import open_context

        options = Options(config=self._name, config_node=self._source, quiet=True, shard=arguments.share(shard))
        with self._session.bound(), open_context(options) as context:
            if context.is_dolma:
                expected = "expected a configuration of our own form, or a folder"
                raise ConfigError(f"{self._name}: {expected}; got one of Dolma's")
            yield context

    def _plan(
        self,
        sets: Sequence[Set],
        shards: Iterable[str] | None,
        shard: tuple[int, int] | None,
        where: str | None,
        *,
        text: bool = True,
    ) -> "tuple[list[JoinedShard], list[JoinedSet]]":
        """Return the shards, and their joined sets."""
        from toolkit.ingest import input_types

        with self._context(shard) as context:
            stream = _stream(context.dataset, sets, where)
            existing, _ = context.shards(stream.dataset, judges=bool(sets))
            chosen = existing if shards is None else _named(shards, existing, stream.dataset)
            stream = msgspec.structs.replace(stream, own=input_types.of_documents(stream.dataset, existing))
            resolved = context.source_of(stream.dataset, existing).resolve(
                stream, check="strict"
            )  # types of all shards
            resolved = resolved.of(chosen).refuse_unreadable()
            rules = rules_of(stream, resolved.sets)
            if rules.needs.documents and not text:
                raise ConfigError(f"where: expected an expression over attributes with `text=False`, got {where!r}")
            return resolved.joined(context.config.max_document_bytes), resolved.sets


def _stream(dataset: "Places", sets: Sequence[Any], where: Any) -> "Stream":
    from toolkit.mix.joined_sets import read_joined
    from toolkit.mix.settings import Stream
    from toolkit.rules.rules_yaml import read_rules

    for item in sets:
        if not isinstance(item, str | Mapping):
            raise ConfigError(f"joined: expected attribute sets, one after the other, got {item!r}")
    entries = ConfigNode({"attributes": [item if isinstance(item, str) else dict(item) for item in sets]}, "joined")
    if where is not None and (not isinstance(where, str) or not where.strip()):
        raise ConfigError(f"where: expected an expression, got {where!r}")
    rules = [] if where is None else read_rules(ConfigNode([{"keep": where, "name": where}], "where"))
    return Stream(name="", dataset=dataset, attributes=read_joined(entries), rules=rules)


def _named(shards: Iterable[str], existing: list[str], dataset: "Places") -> list[str]:
    """Return the named shards, each once.

    Raises:
        ConfigError: if one is not there.
    """
    results = list(dict.fromkeys(arguments.words("shards", shards)))
    for shard in results:
        if shard not in existing:
            hint = did_you_mean(shard, existing) or f"; there are {len(existing)}, such as {existing[0]}"
            raise ConfigError(f"shards: expected relative paths below {dataset.documents}, got {shard!r}{hint}")
    return results


def _ids(ids: Iterable[str] | None) -> frozenset[str] | None:
    return None if ids is None else frozenset(arguments.words("ids", ids))
