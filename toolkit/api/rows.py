"""Rows of a dataset: documents, alone or joined, read shard by shard."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

import msgspec

from toolkit.data.documents import NO_ATTRIBUTES, Document
from toolkit.data.schema import Type
from toolkit.data.tables.to_arrow import Value, arrow_type, record_batch, shape_of
from toolkit.distribution import require_extra
from toolkit.errors import ConfigError, DataError, mismatch
from toolkit.session import Session

if TYPE_CHECKING:
    import datasets
    import pyarrow as pa

    from toolkit.mix.join import JoinedShard, Joint
    from toolkit.mix.joined_sets import JoinedSet
    from toolkit.mix.settings import Stream
    from toolkit.rules.ruleset import RuleSet

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
    from toolkit.mix.joined_sets import names_for_rules
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
