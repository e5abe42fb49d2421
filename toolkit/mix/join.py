"""Joining: the documents of a shard, row by row with their attributes; and whether these may be joined at all.

Attribute sets joined to a dataset: configuration, keys, names for expressions.
"""

import contextlib
import functools
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from itertools import compress, count, islice, repeat
from operator import attrgetter
from typing import Any, Literal, NamedTuple, Protocol, Self, cast

import msgspec

from toolkit.config import settings as config
from toolkit.config.scale import Declared, declared_in
from toolkit.config.settings import ConfigNode, ConfigStruct
from toolkit.data import chosen_text, dataset, document_fields, row_index, schema
from toolkit.data.alignment import AttributeRows, attribute_lines
from toolkit.data.dataset import Dataset
from toolkit.data.document_fields import label_of
from toolkit.data.documents import (
    BAD_ROW,
    DOCUMENT_DECODER,
    LATE_DECODER,
    Document,
    DocumentRow,
    LateDocument,
    LateRow,
    Rows,
    check_metadata,
    to_document,
)
from toolkit.errors import ConfigError, DataError, StaleError, did_you_mean, errors_from
from toolkit.execution.blocks import Block, in_blocks, next_block
from toolkit.records import sets as records
from toolkit.records.sets import ShardSets
from toolkit.rules import checker, compiling, expression_tree, expressions
from toolkit.rules.expressions import WHOLE
from toolkit.session import current
from toolkit.storage.json_files import decoder_of
from toolkit.storage.paths import exists, fault_of_name
from toolkit.text.batch import Batch
from toolkit.text.counting import measure, measure_json
from toolkit.text.json_strings import decoded


class JoinedOption(ConfigStruct):
    """A set among ``attributes:``, with other names for some of its keys.

    Attributes:
        set: the attribute set
        as_: {key: its name in the mix}
    """

    set: str
    as_: dict[str, str] = msgspec.field(name="as", default_factory=dict)


class Joined(JoinedOption):
    """A joined set with its place in the file, for messages."""

    place: str = ""


class JoinedDataset(ConfigStruct):
    """A dataset with its joined sets.

    Attributes:
        name: Name of the stream that it is of a mix; empty for the only one.
        same_keys: True if two sets may have one key, the value of the later counting where it has one.
        text: Text that is taken for that of its documents (see `toolkit.data.chosen_text`); None for their own.
        own: Types of the own fields of its documents, if they are known; they decide nothing but what rules may ask.
    """

    name: str
    dataset: Dataset
    attributes: list[Joined]
    same_keys: Literal["refuse", "later"] = "refuse"
    text: str | None = None
    own: document_fields.OwnTypes | None = None

    @classmethod
    def over(cls, dataset: Dataset, sets: Iterable[str] = (), place: str = "") -> Self:
        """Return a dataset with sets as they are; `place` is for messages."""
        joined = [Joined(set=name, place=place) for name in sets]
        return cls(name="", dataset=dataset, attributes=joined, same_keys="later")


def read_joined(section: ConfigNode) -> list[Joined]:
    """Return the sets in ``attributes:`` of a section.

    Raises:
        ConfigError: if one is not written so.
    """
    joined = []
    for i, entry in enumerate(section.value.get("attributes", [])):
        place = section.at("attributes", i)
        joined_option = JoinedOption(entry) if isinstance(entry, str) else config.convert(place, JoinedOption)
        if wrong := [name for name in joined_option.as_.values() if not expressions.is_name(name)]:
            raise place.error(("as",), f"expected {expressions.A_NAME}, got {wrong[0]!r}")
        if (fault := fault_of_name(joined_option.set)) or "/" in joined_option.set:
            raise place.error(
                (), fault or f"expected the name of an attribute set, without `/`, got {joined_option.set!r}"
            )
        joined.append(Joined(set=joined_option.set, as_=joined_option.as_, place=place.where(())))
    return joined


class JoinedKey(ConfigStruct):
    """A key of a joined set.

    Attributes:
        key: Key in the file.
        name: Name in the mix.
        type: Type in the form of `toolkit.data.schema`.
        default: True if rows may lack it: spans are then none, other values null.
        present_type: Present type of the value where rows have it, if they may lack it.
        settings: Settings of its tagger, if we have its records.
        code: Digests of the tagger's code (see `toolkit.config.plugin_code`).
        descriptions: Descriptions of the value and its parts (see `toolkit.data.schema.descriptions`), if we have its
            records.
        models: Paths of the models of its tagger, by option, if we have its records.
        hidden: True if another set has the key too, so that rules cannot tell which is meant.
    """

    key: str
    name: str
    type: Any
    default: bool = False
    present_type: Any = None
    settings: dict[str, Any] | None = None
    code: dict[str, str] = {}
    descriptions: dict[str, str] = {}
    models: dict[str, str] = {}
    hidden: bool = False

    @property
    def declared(self) -> schema.Type:
        return _declared(msgspec.json.encode(self.type), msgspec.json.encode(self.descriptions))

    @property
    def absent(self) -> Any:
        """Return the value of rows without the key."""
        return [] if self.default and self.declared.kind == "list" else None

    @property
    def present(self) -> schema.Type | None:
        return schema.from_json(self.present_type) if self.default else None


@functools.lru_cache(1024)  # each shard asks for it some times
def _declared(type_: bytes, descriptions: bytes) -> schema.Type:
    return schema.described(schema.from_json(msgspec.json.decode(type_)), msgspec.json.decode(descriptions))


class JoinedSet(ConfigStruct):
    """A set as it is joined.

    Attributes:
        set: Name.
        keys: Keys of it.
        ours: True if we have records of it.
        reads: Digests of the schemas of the sets it was made from, by name.
    """

    set: str
    keys: list[JoinedKey]
    ours: bool
    reads: dict[str, str] = {}


def scale_of(text: str, sets: Sequence[JoinedSet]) -> Declared:
    """Return the declared scale of `SET.KEY[.field]` or `KEY[.field]`; None of other expressions."""
    named = chosen_text.split_reference(text)
    results = [
        key.settings
        for joined in sets
        for key in joined.keys
        if named and ((joined.set, key.key) == named[:2] or (key.name == named.set and not key.hidden))
    ]
    return declared_in(results[0]) if results and results[0] else None


def set_hint(
    name: str, stream: JoinedDataset, joined: Iterable[JoinedSet], planned: Mapping[str, records.SetSchema]
) -> str:
    """Return the remedy for a rule with an unknown name, or nothing. A set may have the name.

    Args:
        name: Name in the rule.
        stream: JoinedDataset of the rule.
        joined: Sets that it joins.
        planned: Sets that will have been written before the mix.
    """
    if keys := next((item.keys for item in joined if item.set == name), None):
        return f", the name of a set; in rules, keys stand as names: {', '.join(key.name for key in keys)}"
    for set_name in sorted({*stream.dataset.sets(), *planned} - {item.set for item in joined}):
        set_schema = planned.get(set_name) or records.load_schema(stream.dataset, set_name)
        if set_name == name or (set_schema and name in set_schema.keys):
            return f"; the set {set_name} has it, so add {set_name} to `attributes:`"
    return ""


# --- rules over them --------------------------------------------------------------------------------------------------


def names_for_rules(sets: Iterable[JoinedSet], own: document_fields.OwnTypes | None = None) -> dict[str, checker.Name]:
    """Return the names for expressions. The keys of set i are fields of the argument ``ri``; the last argument is
    ``document``.

    Args:
        sets: Sets that are joined.
        own: Types of the own fields of documents, if they are known.
    """
    names = {
        key.name: checker.Name(key.declared, f"r{i}.{schema.field_name(key.key)}", key.present)
        for i, joined in enumerate(sets)
        for key in joined.keys
        if not key.hidden
    }
    return expressions.of_document(own=own) | names


class ChosenText(NamedTuple):
    """The chosen text of a stream's documents.

    Attributes:
        of: Function that returns it from the values of a row in all sets, and the document; None where it is null.
        name: Name of its key in the mix.
        fields: Field of the value that it is in; empty if the value is the text.
    """

    of: Callable[..., str | None]
    name: str
    fields: set[str]


def chosen_text_of(stream: JoinedDataset, sets: list[JoinedSet]) -> ChosenText | None:
    """Return the chosen text of a stream; None for the documents' own.

    Raises:
        ConfigError: if there is no such value, or it is no text.
    """
    if stream.text is None:
        return None
    reference = chosen_text.parse_reference(stream.text)
    place = next((attribute.place for attribute in stream.attributes if attribute.set == reference.set), "")
    option = "" if place.endswith(f".{chosen_text.OPTION}") else f"{chosen_text.OPTION}: "
    where = f"{place}: {option}{stream.text!r}"
    keys = {key.key: key.name for joined in sets if joined.set == reference.set for key in joined.keys}
    if reference.key not in keys:
        hint = did_you_mean(reference.key, keys) or f"; there are: {', '.join(keys)}"
        raise ConfigError(f"{where}: expected a key of the set {reference.set}, got {reference.key!r}{hint}")
    name, names = keys[reference.key], names_for_rules(sets, stream.own)
    path = ".".join((name, *reference.path))
    with errors_from(where, of=expression_tree.ExpressionError):
        expression = expressions.check(null_safe(path, names) or path, names)
    if expression.type.not_null != schema.STR:
        raise ConfigError(f"{where}: expected a text, or null, got a value of type {expression.type}")
    function = compiling.compile_function(expression.code, (*(f"r{i}" for i in range(len(sets))), "document"))
    return ChosenText(function, name, {*reference.path[:1]})


def null_safe(path: str | None, names: Mapping[str, checker.Name]) -> str | None:
    """Return a null-safe expression of a dotted path; None without such a path.

    A path that ends in ``.label`` may lead to a text, which is then the label. So may a top-level field, for which
    `toolkit.data.document_fields.label_of` has an expression of any type.
    """
    texts: list[str] = [path, path.removesuffix(".label")] if path else []
    field = (path or "").removeprefix("get(").partition(",")[0]
    if is_own := label_of(field) == path:
        texts[1:] = [f"{field}.label", field]
    for text in texts:
        parts = text.split(".")
        around = [".".join(parts[:i]) for i in range(1 + is_own, len(parts))]
        tested = f"{text} if {' and '.join(f'{item} is not None' for item in around) or 'True'} else None"
        for expression in (text, tested):
            # what the format wants is said where its values are bound
            with contextlib.suppress(expression_tree.ExpressionError):
                if expressions.check(expression, names).type.not_null == schema.STR or text == path:
                    return expression
    return None


class JoinedShard(ConfigStruct, kw_only=True):
    """A shard with its joined sets.

    Attributes:
        stream: Stream that it belongs to.
        sets: Sets that are joined.
        processes: Processes that work on it.
    """

    stream: JoinedDataset
    sets: list[JoinedSet]
    shard: str
    max_document_bytes: int
    processes: int = 1

    @classmethod
    def of(cls, dataset: Dataset, sets: list[JoinedSet], shard: str, max_document_bytes: int) -> Self:
        """Return a shard with these sets, and no rules."""
        stream = JoinedDataset.over(dataset, [joined.set for joined in sets])
        return cls(stream=stream, sets=sets, shard=shard, max_document_bytes=max_document_bytes)

    @property
    def dataset(self) -> Dataset:
        return self.stream.dataset

    @property
    def key(self) -> str:
        """Return the name of the shard, unique among all streams."""
        return f"{self.stream.name}/{self.shard}" if self.stream.name else self.shard

    @property
    def path(self) -> str:
        """Return the path of the documents."""
        return self.dataset.shard_path(self.shard)

    def attributes_of(self, joined: JoinedSet) -> str:
        """Return the path of the shard's attributes in a set; those of another program may be Parquet."""
        of = self.dataset.attribute_path if joined.ours else self.dataset.attribute_file
        return of(joined.set, self.shard)

    @property
    def name(self) -> str:
        """Return the path behind the stream's name, for people."""
        return f"{self.stream.name}: {self.path}" if self.stream.name else self.path


def inputs_of(work: JoinedShard, *, learn: bool = False) -> tuple[row_index.ShardState, dict[str, str]]:
    """Return the state of a shard and the digests of its attributes.

    Args:
        work: Shard and the sets.
        learn: See `toolkit.records.sets.ShardAttributes.state`.

    Raises:
        DataError: if a file is missing, damaged, not complete, or stale; rows that do not match are named by line.
    """
    dataset, shard = work.dataset, work.shard
    try:
        state = row_index.ensure(dataset, shard, work.max_document_bytes)
    except DataError:
        for joined in work.sets:  # they may know more: the id of a document that is missing
            if exists(work.attributes_of(joined)):
                _find_fault(work, joined)
        raise
    return state, digests_of(work, ShardSets(dataset, shard, state), learn=learn)


def digests_of(work: JoinedShard, shard: ShardSets, *, learn: bool = False) -> dict[str, str]:
    """Return the digests of a shard's attributes; errors as of `inputs_of`."""
    digests = {}
    for joined in work.sets:
        try:
            digests[joined.set] = shard.finished(joined.set) or shard[joined.set].content(learn=learn)
        except StaleError:
            raise
        except DataError:
            if not exists(work.attributes_of(joined)):
                raise records.missing_attributes(work.dataset, joined.set, work.shard) from None
            if joined.ours:
                _find_fault(work, joined)
            raise
    return digests


def _find_fault(work: JoinedShard, joined: JoinedSet) -> None:
    """Join one set with the documents. The error names the first row that differs."""
    one = msgspec.structs.replace(work, sets=[joined])
    for _ in joint_rows(one, {key.name for key in joined.keys}):
        pass


_ATTRIBUTES = attrgetter("attributes")


class RowDecoder:
    """Decodes rows of a set: ``id``, ``source``, and ``attributes`` with the values of these keys of the mix.

    Args:
        joined: Set.
        keys: Keys of the mix.
        fields: Fields of the values of keys, where no more is needed (see `toolkit.rules.rule.Needs`).
        names: True if ``id`` and ``source`` are decoded.

    Attributes:
        decoder: Decoder of rows.
        is_empty: True if none of these keys is in the set.
        absent: Values where a row of another program has none at all (Dolma's deduper writes ``[]`` then).
    """

    def __init__(
        self, joined: JoinedSet, keys: set[str], fields: Mapping[str, set[str]] | None = None, *, names: bool = True
    ) -> None:
        fields = fields or {}
        used = [key for key in joined.keys if key.name in keys]
        defaults: dict[str, Any] = {key.key: key.absent for key in used if key.default}
        types = {key.key: schema.to_python(narrowed(key.declared, fields.get(key.name))) for key in used}
        values: Any = schema.struct_of(types, defaults)
        self.absent: Any = values() if not joined.ours and len(defaults) == len(used) else None
        if self.absent is not None:
            values = values | list
        parts: list[Any] = [("attributes", values)]
        parts += [("id", str | None, None), ("source", str | None, None)] if names else []
        self.is_empty = not used
        self.decoder: msgspec.json.Decoder[Any] = decoder_of(msgspec.defstruct("Row", parts, gc=False))

    def columns(self, rows: list[Any]) -> list[Any]:
        """Return the values of decoded rows."""
        return list(map(_ATTRIBUTES if self.absent is None else self.values, rows))

    def values(self, row: Any) -> Any:
        """Return the values of a decoded row."""
        return self.absent if row.attributes == [] else row.attributes


def row_decoder(joined: JoinedSet, keys: set[str], fields: Mapping[str, set[str]] | None = None) -> RowDecoder:
    """Return the decoder of rows of a set, made once. Arguments are those of `RowDecoder`."""
    fields_by_key = {key.name: fields and fields.get(key.name) for key in joined.keys if key.name in keys}
    key = msgspec.msgpack.encode((joined, fields_by_key), order="sorted")
    return current().get_or_make((RowDecoder, key), lambda: RowDecoder(joined, keys, fields))


def narrowed(type_: schema.Type, fields: set[str] | None) -> schema.Type:
    """Return the type with these fields only; the others need not be decoded."""
    if fields is None or WHOLE in fields:
        return type_
    if type_.kind == "nullable" and type_.item:
        return schema.nullable(narrowed(type_.item, fields))
    return schema.Type(type_.kind, type_.item, tuple(field for field in type_.fields if field[0] in fields))


Measured = list[int]
"""The numbers of `toolkit.text.counting.COLUMNS` of a text."""

_AnyRow = DocumentRow | LateRow

Joint = tuple[Document, int, list[bytes], list[Any]]


def columns_of(rows: Sequence[Joint]) -> list[Sequence[Any]]:
    """Return the values of rows by argument of rules, the documents last."""
    return [*zip(*(row[3] for row in rows), strict=True), [row[0] for row in rows]]


class JointBlock(NamedTuple):
    """A block of documents, the number before it, and rows of sets.

    `dropped` is what was counted of rows of tables that a sieve has dropped; empty bytes stand for them.
    """

    number: int
    documents: Block
    attribute_blocks: list[Block]
    dropped: Any = None


def joint_blocks(work: JoinedShard, stack: ExitStack, sieve: "Sieve | None" = None) -> Iterator[JointBlock]:
    """Yield the rows of a shard and its sets in blocks, unread.

    Args:
        work: Shard and the sets.
        stack: Stack that closes the files.
        sieve: Sieve that drops rows of tables before they are made.

    Raises:
        AlignmentError: if a set has more rows than the documents.
    """
    dataset, shard, path = work.dataset, work.shard, work.path
    ahead = work.processes > 1
    lines = stack.enter_context(dataset.lines(shard, work.max_document_bytes, ahead=ahead, sieve=sieve))
    paths = list(map(work.attributes_of, work.sets))
    attribute_rows: list[Iterator[bytes]] = [
        stack.enter_context(attribute_lines(other, ahead=ahead)) for other in paths
    ]
    if sieve:
        sieve.attribute_rows = [*map(RowsAhead, attribute_rows)]
        attribute_rows = [*sieve.attribute_rows]
    number = 0
    for block in in_blocks(lines, lines.stored, _SIEVED if sieve else 0, _size if sieve else len):
        beside = [next_block(other, block.rows_beside) for other in attribute_rows]
        yield JointBlock(number, block, beside, sieve.take_counts() if sieve else None)
        number += len(block.lines)
    for other_path, other in zip(paths, attribute_rows, strict=True):
        AttributeRows(other_path, path, block=other, number=number).finish(number)


_SIEVED = 4096
"""Rows of a block of which a sieve drops some."""


def _size(row: bytes) -> int:
    return len(row) + (len(row.utf8) if isinstance(row, dataset.GappedRow) else 0)


class RowsAhead(Iterator[bytes]):
    """Rows with a look-ahead."""

    def __init__(self, rows: Iterator[bytes]) -> None:
        self._rows, self._buffer = rows, deque[bytes]()
        self._number = 0
        self._fault: DataError | None = None

    def __next__(self) -> bytes:
        self._number += 1
        if not self._buffer and self._fault:
            raise self._fault
        return self._buffer.popleft() if self._buffer else next(self._rows)

    def ahead(self, number: int, rows: int) -> list[bytes]:
        """Return so many rows behind the first `number`; fewer where they end, or cannot be read."""
        begin = number - self._number
        try:
            self._buffer.extend(islice(self._rows, max(0, begin + rows - len(self._buffer))))
        except DataError as error:
            self._fault = error
        return [*islice(self._buffer, begin, begin + rows)]


class Sieve(dataset.Sieve, Protocol):
    """Drops rows of tables before they are made.

    Attributes:
        attribute_rows: Rows of each joined set.
    """

    attribute_rows: list[RowsAhead]

    def take_counts(self) -> Any:
        """Return the counts of rows dropped since the last call."""


class Joiner:
    """Joins blocks of rows.

    Args:
        work: Shard and the sets.
        keys: Keys of the mix, whose values are decoded.
        fields: Fields of these values, where no more is needed.
        joined: True if `Document.joined` has the attributes.
        late: True if texts are decoded when they are asked for, by a caller that looks whether they are texts.
    """

    def __init__(
        self,
        work: JoinedShard,
        keys: set[str],
        fields: Mapping[str, set[str]] | None = None,
        *,
        joined: bool = False,
        late: bool = False,
    ) -> None:
        self._work, self._joined, self._late = work, joined, late
        self._chosen = chosen_text_of(work.stream, work.sets)
        if self._chosen:
            name = self._chosen.name
            if fields is not None and (name not in keys or name in fields):
                fields = {**fields, name: fields.get(name, set()) | (self._chosen.fields or {WHOLE})}
            keys = {*keys, name}
        self._decoders = [row_decoder(item, keys, fields) for item in work.sets]
        self._paths = list(map(work.attributes_of, work.sets))

    def rows(self, block: JointBlock) -> Iterator[Joint]:
        """Return the documents of a block with numbers, lines and values.

        Raises:
            AlignmentError: if a set's rows are not those of the documents.
        """
        return iter(self._at_once(block) or self._one_by_one(block))

    def measured(self, block: JointBlock, *, unicode: bool) -> Iterator[tuple[Joint, Measured]]:
        """Return `rows` with the measures of their texts. The joiner must have late texts, which are checked here.

        Args:
            block: Block of rows.
            unicode: True if Unicode's words are counted.
        """
        rows = self._at_once(block)
        if rows is not None and (self._chosen or block.dropped is not None):
            sizes, bad = measure([row[0].utf8 for row in rows], unicode=unicode), list[int]()
        elif rows is not None:
            sizes, bad = measure_json([cast("LateDocument", row[0]).raw_text for row in rows], unicode=unicode)
        if rows is not None and not bad:
            listed = sizes.tolist()
            for row, item in zip(rows, listed, strict=True):
                if isinstance(row[0], LateDocument):
                    row[0].counted = item[1]
            return zip(rows, listed, strict=True)
        return ((row, measure([row[0].text], unicode=unicode)[0].tolist()) for row in self._one_by_one(block))

    def encoded(self, block: JointBlock, *, texts: bool = True) -> tuple[Batch, list[list[Any]]]:
        """Return the encoded documents of a block, and their values.

        Of a joiner of late texts, which are looked at here unless `texts` is false: none is needed. Errors are those of
        `rows`.
        """
        rows, result = self._at_once(block), None
        if rows is not None and texts:
            result = decoded([cast("LateDocument", row[0]).raw_text for row in rows])
        if rows is None or (texts and result is None):
            rows = list(self._one_by_one(block))
        return Batch([row[0] for row in rows], result), [row[3] for row in rows]

    def fresh(
        self, number: int, documents: Sequence[Document], attribute_rows: Sequence[Sequence[bytes]], *, unicode: bool
    ) -> Iterator[tuple[Joint, Measured]]:
        """Return new documents with their attributes and measures, as `measured` does.

        Args:
            number: Number of documents before them.
            documents: Documents with their lines.
            attribute_rows: Rows of these documents, by set.
            unicode: True if Unicode's words are counted.
        """
        lines = zip(*attribute_rows, strict=True) if attribute_rows else repeat(())
        rows = [
            self._joint(document, i, list(of_sets), list(result))
            for i, (document, of_sets, result) in enumerate(
                zip(documents, lines, self.values(attribute_rows), strict=False), number + 1
            )
        ]
        texts = [row[0].text.encode() if self._chosen else row[0].utf8 for row in rows]
        yield from zip(rows, measure(texts, unicode=unicode).tolist(), strict=True)

    def values(self, attribute_rows: Sequence[Sequence[bytes]]) -> Iterator[tuple[Any, ...]]:
        """Return the values of new rows in all sets; endless without sets.

        Args:
            attribute_rows: Rows by set.
        """
        columns = [
            [None] * len(rows) if decoder.is_empty else decoder.columns(list(map(decoder.decoder.decode, rows)))
            for decoder, rows in zip(self._decoders, attribute_rows, strict=True)
        ]
        return zip(*columns, strict=True) if columns else repeat(())

    def columns(self, ids: list[str], sources: list[str], blocks: Sequence[Block]) -> list[list[Any]] | None:
        """Return the values in each set of rows for documents; None if something is wrong with one."""
        try:
            result = [
                list(map(decoder.decoder.decode, other.lines))
                for decoder, other in zip(self._decoders, blocks, strict=True)
            ]
        except BAD_ROW:
            return None
        for item, rows in zip(self._work.sets, result, strict=True):
            if [row.id for row in rows] != ids:
                return None
            theirs = [row.source for row in rows]
            if theirs != sources and (
                item.ours or any(b not in (a, None) for a, b in zip(sources, theirs, strict=True))
            ):
                return None
        return [decoder.columns(rows) for decoder, rows in zip(self._decoders, result, strict=True)]

    def _at_once(self, block: JointBlock) -> list[Joint] | None:
        """Return the rows; None if something is wrong with one."""
        documents, blocks = block.documents, block.attribute_blocks
        if documents.fault or any(len(other.lines) != len(documents.lines) for other in blocks):
            return None
        numbers: Iterable[int] = count(block.number + 1)
        if block.dropped is not None:
            numbers = [*compress(numbers, documents.lines)]
            blocks = [Block([*compress(other.lines, documents.lines)]) for other in blocks]
            documents = Block([*filter(None, documents.lines)])
        try:
            decode: Callable[[bytes], _AnyRow] = LATE_DECODER.decode if self._late else DOCUMENT_DECODER.decode
            rows = list(map(decode, documents.lines))
            for row in rows:
                check_metadata(row.metadata)
        except BAD_ROW:
            return None
        columns = self.columns([row.id for row in rows], [row.source for row in rows], blocks)
        if columns is None:
            return None
        lines = zip(*(other.lines for other in blocks), strict=True) if blocks else repeat(())
        values = zip(*columns, strict=True) if columns else repeat(())
        make: Any = LateDocument if self._late else Document
        result: list[Document] = [
            make(row.text, id=row.id, source=row.source, metadata=row.metadata, row=raw)
            for row, raw in zip(rows, documents.lines, strict=True)
        ]
        for document in result:
            if isinstance(document.row, dataset.GappedRow):
                document.utf8 = document.row.utf8
        if not (self._chosen or blocks or self._work.dataset.duplicate_ids == "allow"):
            return [(document, number, [], []) for document, number in zip(result, numbers, strict=False)]
        listed = zip(result, numbers, lines, values, strict=False)
        return [self._joint(document, number, [*line], [*value]) for document, number, line, value in listed]

    def _joint(self, document: Document, number: int, lines: list[bytes], values: list[Any]) -> Joint:
        if self._chosen:  # a document without it is dropped by the rule for that
            document = document.with_text(self._chosen.of(*values, document) or "")
        if place := self._work.dataset.place_of(self._work.shard, number):
            document.place = place
        if self._joined and lines:
            document.join(lambda: plain_values(self._work.sets, map(RAW_ATTRIBUTES.decode, lines)))
        return document, number, lines, values

    def _one_by_one(self, block: JointBlock) -> Iterator[Joint]:
        """Yield rows one by one, up to a faulty row. The error names it."""
        path = self._work.path
        if block.dropped is not None:
            for i, line in enumerate(block.documents.lines):
                if line:
                    line = line.filled() if isinstance(line, dataset.GappedRow) else line
                    others_of = [Block(other.lines[i : i + 1], other.fault) for other in block.attribute_blocks]
                    yield from self._one_by_one(JointBlock(block.number + i, Block([line]), others_of))
            ending = [Block(other.lines[len(block.documents.lines) :], other.fault) for other in block.attribute_blocks]
            block = JointBlock(block.number + len(block.documents.lines), Block([], block.documents.fault), ending)
        documents = Rows(iter(block.documents), DOCUMENT_DECODER, path, block.number)
        attribute_rows = [
            AttributeRows(other, path, decoder.decoder, any_source=not item.ours, block=rows, number=block.number)
            for other, item, decoder, rows in zip(
                self._paths, self._work.sets, self._decoders, block.attribute_blocks, strict=True
            )
        ]
        for row, line in _named(documents, attribute_rows):
            lines: list[bytes] = []
            values: list[Any] = []
            for other, decoder in zip(attribute_rows, self._decoders, strict=True):
                result, other_line = other.take(row.id, row.source, documents.number)
                lines.append(other_line)
                values.append(decoder.values(result))
            yield self._joint(to_document(row, documents, line), documents.number, lines, values)


def joint_rows(
    work: JoinedShard,
    keys: set[str],
    fields: Mapping[str, set[str]] | None = None,
    *,
    joined: bool = False,
    late: bool = False,
) -> Iterator[Joint]:
    """Yield the documents of a shard, joined: see `joint_blocks` and `Joiner`; files are open until it is closed."""
    joiner = Joiner(work, keys, fields, joined=joined, late=late)
    with ExitStack() as stack:
        for block in joint_blocks(work, stack):
            yield from joiner.rows(block)


def at_document(error: DataError, work: JoinedShard, number: int, id: str | None) -> DataError:
    """Return an error with its place, if it has none. That is the row of a document, or of an external set.

    Args:
        error: Error of a rule or a writer.
        work: Shard.
        number: Number of the row.
        id: Id of the document.
    """
    if error.path:
        return error
    blamed = [item for item in work.sets if not item.ours and any(key.name in error.keys for key in item.keys)]
    path = work.attributes_of(blamed[0]) if len(blamed) == 1 else work.path
    return DataError(error.message, path=path, line=number, id=id)


def merged(sets: list[JoinedSet], rows: Iterable["RawAttributes"]) -> dict[str, msgspec.Raw]:
    """Return the attributes of a document as JSON texts, by name."""
    results: dict[str, msgspec.Raw] = {}
    for joined, row in zip(sets, rows, strict=True):
        if isinstance(row.attributes, dict):
            names = {key.key: key.name for key in joined.keys}
            results.update({names[key]: value for key, value in row.attributes.items()})
    return results


def plain_values(sets: list[JoinedSet], rows: Iterable["RawAttributes"]) -> dict[str, Any]:
    """Return the attributes of a document as plain data, by name."""
    return {name: msgspec.json.decode(value) for name, value in merged(sets, rows).items()}


class RawAttributes(msgspec.Struct):
    """A row of attributes, its values as JSON texts; Dolma's deduper writes ``[]`` for none."""

    attributes: dict[str, msgspec.Raw] | list[Any]

    def value(self, key: str, absent: Any = None) -> Any:
        """Return a value as plain data; a row of another program may lack it."""
        result = self.attributes.get(key) if isinstance(self.attributes, dict) else None
        return absent if result is None else msgspec.json.decode(result)


RAW_ATTRIBUTES = msgspec.json.Decoder(RawAttributes)


def _named(documents: Rows[DocumentRow], attribute_rows: list[AttributeRows]) -> Iterator[tuple[DocumentRow, bytes]]:
    """Yield the rows of documents; if one cannot be read, the attributes beside it tell its id."""
    try:
        yield from documents
    except DataError as error:
        id = error.id or next((other.next_id() for other in attribute_rows), None)
        raise DataError(error.message, path=error.path, line=error.line, id=id) from None
