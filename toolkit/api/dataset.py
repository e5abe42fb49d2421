"""A dataset as rows: documents, alone or joined with attribute sets, read shard by shard."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar, cast

import msgspec

from toolkit.api import arguments
from toolkit.api.arguments import Configuration, Overrides
from toolkit.config.settings import ConfigNode
from toolkit.data.documents import NO_ATTRIBUTES, Document
from toolkit.data.schema import Type, is_number
from toolkit.data.tables.to_arrow import Value, arrow_type, record_batch, shape_of
from toolkit.distribution import require_extra
from toolkit.errors import ConfigError, DataError, did_you_mean, errors_from, mismatch
from toolkit.lazy_numpy import np
from toolkit.session import Session

if TYPE_CHECKING:
    import datasets
    import pyarrow as pa

    from toolkit.data.dataset import Dataset as Places
    from toolkit.mix.join import JoinedSet, JoinedShard, Joint
    from toolkit.mix.settings import Stream
    from toolkit.rules.ruleset import RuleSet
    from toolkit.stages.context import Context
    from toolkit.text.kernels.signatures import Array


NAMED = ("id", "source")
OWN = (*NAMED, "text", "added", "created", "metadata")
"""The columns of a document; those of the first need no reading of it."""

HELD_ROWS, HELD_BYTES = 4096, 16 << 20
"""Rows, and characters of their texts, of a record batch at most; a single document may have more."""

Reading = Callable[[str, bool], "Iterator[Row]"]
"""Gives the rows of a shard; whether with their texts."""


def _examples(
    rows_of: Reading, types: dict[str, Type], names: tuple[str, ...], shards: list[str]
) -> Iterator[dict[str, Any]]:
    values, text = _values(names, types), _asks_for_texts(names)
    for shard in shards:
        for row in rows_of(shard, text):
            yield {name: value(row) for name, value in values.items()}


def _asks_for_texts(names: Sequence[str]) -> bool:
    return any(name in OWN and name not in NAMED for name in names)


def _columns(types: Mapping[str, Type], requested: Sequence[str] | None, *, text: bool) -> Sequence[str]:
    """Return the names of columns.

    Raises:
        ConfigError: if one is not there, or two have one name.
    """
    if twice := [name for name in types if name in OWN]:
        raise ConfigError(
            f"expected attributes with other names than the columns of documents, got {twice[0]!r}; rename it: "
            f'{{"set": SET, "as": {{"{twice[0]}": "NEW_NAME"}}}}'
        )
    names = [*(OWN if text else NAMED), *types]
    if isinstance(requested, str):
        raise ConfigError(f"columns: expected a list of names, got {requested!r}")
    for name in requested or ():
        if name not in names:
            raise ConfigError(f"columns: expected a column, {mismatch(name, names)}")
    return names if requested is None else list(dict.fromkeys(requested))


def _batches(
    rows_of: Reading, shards: Sequence[str], types: Mapping[str, Type], schema: "pa.Schema"
) -> "Iterator[pa.RecordBatch]":
    values, text = _values(schema.names, types), _asks_for_texts(schema.names)
    for shard in shards:
        rows: list[Row] = []
        size = 0
        for row in rows_of(shard, text):
            rows.append(row)
            size += row.document.chars if text else 0
            if len(rows) >= HELD_ROWS or size >= HELD_BYTES:
                yield _batch(rows, values, schema)
                rows, size = [], 0
        if rows:
            yield _batch(rows, values, schema)


def _batch(rows: "list[Row]", values: Mapping[str, Value], schema: "pa.Schema") -> "pa.RecordBatch":
    numbers = rows[0].number, rows[-1].number
    return record_batch(schema, lambda name: list(map(values[name], rows)), numbers, path=rows[0].shard)


# --- types and values -------------------------------------------------------------------------------------------------


def _type_of(name: str, types: Mapping[str, Type]) -> "pa.DataType":
    import pyarrow as pa

    if name in OWN:
        return pa.large_string() if name in ("text", "metadata") else pa.string()
    return arrow_type(types[name])


def _values(names: Sequence[str], types: Mapping[str, Type]) -> dict[str, Value]:
    """Return a function for the value of each column of a row."""

    def of_attribute(name: str) -> Value:
        shaped = shape_of(types[name])
        return (lambda row: row.attributes[name]) if shaped is None else (lambda row: shaped(row.attributes[name]))

    return {name: _OF_DOCUMENTS[name] if name in OWN else of_attribute(name) for name in names}


def _metadata(row: "Row") -> str | None:
    raw = bytes(row.document.raw_metadata)
    return None if raw in (b"null", bytes(NO_ATTRIBUTES)) else raw.decode()


_OF_DOCUMENTS: dict[str, Value] = {
    "id": lambda row: row.document.id,
    "source": lambda row: row.document.source,
    "text": lambda row: row.document.text,
    "added": lambda row: row.document.field("added"),
    "created": lambda row: row.document.field("created"),
    "metadata": _metadata,
}


T = TypeVar("T")

TOGETHER = 64
"""Documents that are looked at together where rows are filtered."""


class Row:
    """A document with its attributes.

    Attributes:
        document: Document with `id`, `source`, `text`, `lines`, `metadata` and the other views of taggers.
        shard: Shard that it is in.
        number: Number of the row in the shard, from 1.
    """

    __slots__ = ("_names", "_plain", "_values", "document", "number", "shard")

    def __init__(
        self, document: Document, shard: str, number: int, names: Sequence[dict[str, str]], values: list[Any]
    ) -> None:
        self.document, self.shard, self.number = document, shard, number
        self._names, self._values = names, values
        self._plain: dict[str, Any] | None = None

    @property
    def attributes(self) -> dict[str, Any]:
        """The values by their keys, as plain data: dicts, lists, texts, numbers, None; a span is a tuple."""
        if self._plain is None:
            plain: dict[str, Any] = {}
            for names, values in zip(self._names, self._values, strict=True):
                builtins = msgspec.to_builtins(values)
                plain.update(builtins if not names else {names[key]: builtins[key] for key in names})
            self._plain = plain
        return self._plain

    def __getitem__(self, key: str) -> Any:
        """Return the value of a key: ``row["language"]["label"]``."""
        try:
            return self.attributes[key]
        except KeyError:
            raise KeyError(f"expected a key of the joined sets, {mismatch(key, self.attributes)}") from None

    def __repr__(self) -> str:
        return f"Row({self.shard}:{self.number}, id={self.document.id!r}, attributes={self.attributes!r})"


class Unread(Document):
    """A document with `id`, `source` and `chars` alone. They come from attributes and the row index."""

    def __init__(self, id: str, source: str | None, chars: int) -> None:
        self.id, self.source, self._chars = id, source or "", chars

    @property
    def chars(self) -> int:
        return self._chars

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        raise ConfigError(f"expected id, source or chars of a document that was not read (`text=False`), got {name!r}")


class Rows(Generic[T]):
    """Chosen rows, to read as often as you like; none stays in memory. `Dataset` makes them.

    They can be pickled and sent to other processes. polars, DuckDB and pyarrow read them as they are, by Arrow's C
    stream interface: ``polars.DataFrame(rows)``.

    Args:
        works: Shards.
        sets: Joined sets.
        ids: IDs of documents; None for all.
        session: Session to read in.
        joined: True if rows have attributes beside their documents.
        text: True to read documents; False if attributes and row indexes are enough.
    """

    def __init__(
        self,
        works: "Sequence[JoinedShard]",
        sets: "Sequence[JoinedSet]",
        ids: frozenset[str] | None,
        session: Session,
        *,
        joined: bool,
        text: bool = True,
    ) -> None:
        self._works, self._sets = {work.shard: work for work in works}, sets
        self._ids, self._session, self._joined, self._text = ids, session, joined, text

    @property
    def shards(self) -> list[str]:
        """The shards in reading order."""
        return list(self._works)

    @property
    def types(self) -> "dict[str, Type]":
        """The declared type of each attribute, by its key; ``str`` gives it as in the docs."""
        return {key.name: key.declared for joined in self._sets for key in joined.keys}

    def __iter__(self) -> Iterator[T]:
        for shard in self._works:
            yield from self.of_shard(shard)

    def of_shard(self, shard: str) -> Iterator[T]:
        """Yield the rows of one of `shards`, in order.

        Raises:
            ToolkitError: as `Dataset.joined`.
        """
        rows: Iterator[Any] = self._rows(shard, text=self._text)
        yield from self._session.steps(rows if self._joined else (row.document for row in rows))

    def _rows(self, shard: str, *, text: bool) -> Iterator[Row]:
        from toolkit.mix.join import inputs_of

        work = self._works[shard]
        if work.sets:
            inputs_of(work)
        names = [_renamed(joined) for joined in work.sets]
        if not text and not (rules := rules_of(cast("Stream", work.stream), work.sets)).needs.documents:
            for document, number, values in self._without_text(work, rules):
                yield Row(document, shard, number, names, values)
            return
        for document, number, _, values in self._with_text(work):
            yield Row(document, shard, number, names, values)

    def _without_text(self, work: "JoinedShard", rules: "RuleSet") -> Iterator[tuple[Document, int, list[Any]]]:
        """Yield documents without text, with their numbers and values."""
        from toolkit.mix.rule_effects.preview import blocks

        rules.needs.keys.update(["document", *(key.name for joined in work.sets for key in joined.keys)])
        rules.needs.fields.clear()
        rules.needs.source = True
        number = 0
        for block in blocks(work, rules):
            for values, chars, outcome in zip(block.values(), block.chars, block.outcomes, strict=True):
                number += 1
                *of_sets, result = values
                if not isinstance(outcome, int) and (self._ids is None or result.id in self._ids):
                    yield Unread(result.id, result.source, chars), number, of_sets

    def _with_text(self, work: "JoinedShard") -> "Iterator[Joint]":
        """Yield the selected rows."""
        from toolkit.mix.join import joint_rows

        rows = joint_rows(work, {key.name for joined in work.sets for key in joined.keys})
        if self._ids is not None:
            ids = self._ids
            rows = (row for row in rows if row[0].id in ids)
        stream = cast("Stream", work.stream)
        return _filtered(rows, rules_of(stream, work.sets), work) if stream.rules else rows

    def to_arrow(self, columns: Sequence[str] | None = None) -> "pa.RecordBatchReader":
        """Return the rows as record batches, for pyarrow, polars, pandas and DuckDB.

        The columns are ``id``, ``source``, ``text``, ``added``, ``created``, ``metadata`` (a JSON text, null where
        there is none), and one for each attribute, of its declared type: a span is a struct of ``start``, ``end`` and
        ``score``, a map a list of structs of ``key`` and ``value``, a value of no declared type a JSON text.

        Args:
            columns: Columns in order; all by default. With only ``id``, ``source`` and attributes, no text is read.

        Raises:
            MissingExtra: if pyarrow is not installed (extra `parquet`).
            ConfigError: if there is no such column, or an attribute is called as one that documents have.
        """
        require_extra("parquet", "Arrow's record batches", "pyarrow")
        import pyarrow as pa

        names, types = _columns(self.types, columns, text=self._text), self.types
        schema = pa.schema([pa.field(name, _type_of(name, types)) for name in names])
        return pa.RecordBatchReader.from_batches(schema, _batches(self._read, self.shards, types, schema))

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Return Arrow's C stream of all columns."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def _read(self, shard: str, text: bool) -> Iterator[Row]:
        return self._rows(shard, text=text and self._text)

    def to_iterable_dataset(self) -> "datasets.IterableDataset":
        """Return the rows as a Hugging Face `datasets.IterableDataset`.

        It shares the shards among its workers. Examples have the columns of `to_arrow`.

        Raises:
            MissingExtra: if `datasets` is not installed (extra `datasets`).
        """
        require_extra("datasets", "an IterableDataset", "datasets")
        import datasets
        import pyarrow as pa

        names, types = _columns(self.types, None, text=self._text), self.types
        features = datasets.Features.from_arrow_schema(pa.schema([(name, _type_of(name, types)) for name in names]))
        arguments = {"rows_of": self._read, "types": types, "names": tuple(names), "shards": self.shards}
        return datasets.IterableDataset.from_generator(_examples, features=features, gen_kwargs=arguments)

    def __repr__(self) -> str:
        content = f"joined with {', '.join(self.types)}" if self._joined else "documents"
        return f"Rows({content}; {len(self._works)} shards)"


def _renamed(joined: "JoinedSet") -> dict[str, str]:
    """Return the name of each key; nothing where all have their own."""
    names = {key.key: key.name for key in joined.keys}
    return {} if all(key == name for key, name in names.items()) else names


def rules_of(stream: "Stream", sets: "Sequence[JoinedSet]") -> "RuleSet":
    """Return the compiled expression for rows, if there is one.

    Raises:
        ConfigError: if it cannot be used with these sets.
    """
    from toolkit.mix.join import names_for_rules
    from toolkit.rules.ruleset import RuleSet

    return RuleSet(stream.rules, names_for_rules(sets, stream.own), (*(f"r{i}" for i in range(len(sets))), "document"))


def _filtered(rows: "Iterator[Joint]", rules: "RuleSet", work: "JoinedShard") -> "Iterator[Joint]":
    """Yield the rows with no dropping rule.

    Raises:
        DataError: naming the document that a rule cannot decide about.
    """
    from toolkit.mix.join import at_document

    while some := list(islice(rows, TOGETHER)):
        columns = [list(column) for column in zip(*(row[3] for row in some), strict=True)]
        try:
            outcomes = rules.outcomes([*columns, [row[0] for row in some]])
        except DataError as error:
            row = some[(error.line or 1) - 1]
            raise at_document(error, work, row[1], row[0].id) from None
        yield from (row for row, outcome in zip(some, outcomes, strict=True) if not isinstance(outcome, int))


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
        from toolkit.command_options import Options
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
        from toolkit.ingest import inputs

        with self._context(shard) as context:
            stream = _stream(context.dataset, sets, where)
            existing, _ = context.shards(stream.dataset, judges=bool(sets))
            chosen = existing if shards is None else _named(shards, existing, stream.dataset)
            stream = msgspec.structs.replace(stream, own=inputs.of_documents(stream.dataset, existing))
            resolved = context.source_of(stream.dataset, existing).resolve(
                stream, check="strict"
            )  # types of all shards
            resolved = resolved.of(chosen).refuse_unreadable()
            rules = rules_of(stream, resolved.sets)
            if rules.needs.documents and not text:
                raise ConfigError(f"where: expected an expression over attributes with `text=False`, got {where!r}")
            return resolved.joined(context.config.max_document_bytes), resolved.sets


def _stream(dataset: "Places", sets: Sequence[Any], where: Any) -> "Stream":
    from toolkit.mix.join import read_joined
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
