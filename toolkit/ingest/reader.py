"""The contract of input formats: `Reader`, what it is given (`Input`) and what it makes (`Draft`).

A reader *is* its configuration: a frozen Struct whose fields are its options. It yields the documents of one input.
"""

import base64
import codecs
import io
import itertools
import operator
import tempfile
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import IO, Any, ClassVar, NamedTuple, TypeVar, cast, overload

import msgspec

from toolkit.config.settings import FROZEN, ConfigNode, plain
from toolkit.data import documents, schema
from toolkit.data.dataset import START, Begin, Sieve
from toolkit.data.document_fields import OwnTypes
from toolkit.errors import ConfigError, DataError, ToolkitError
from toolkit.ingest import folders
from toolkit.ingest.file_kinds import binary_kind
from toolkit.plugins import Kind
from toolkit.records.left_out import LeftOutOutput, identity
from toolkit.session import cached
from toolkit.storage.compression import MAGIC_BYTES, compression_in
from toolkit.storage.outputs import OptionalRows
from toolkit.storage.reading import HEAD, READ, Decompressed, Lines, LongLine, open_stored

T = TypeVar("T")

SAMPLE = 1000
"""Documents whose fields tell those of all, where no schema does."""

SAMPLE_BYTES = 16 << 20
"""Bytes of texts among them, about."""

_INFLATED = 100
"""Bytes of a compressed file with a schema for each stored byte, at most, when only its schema is read."""


_NULL = "; `null_text: skip` leaves such items out and counts them, `null_text: empty` takes an empty text"

_ENCODED = "; if the file has another encoding, convert it: iconv -f WINDOWS-1252 -t UTF-8"


class Draft(msgspec.Struct, kw_only=True):
    """A document made of one item of an input.

    Attributes:
        text: Text of the document.
        id: None if the input has none.
        source: None for that of the configuration.
        shard: Shard of values: the shard of the document, where its id is that of others, too.
        added: when whoever gathered the data got the document; of a crawl, when the page was fetched.
        created: the best guess of when the document was made. Neither depends on the run.
        metadata: an object, as a dict or JSON text.
        extra: other top-level keys, kept.
        attributes: Attributes by set and key, as JSON text, for the attribute sets that the reader declares.
        number: 1-based ordinal in the input, which makes an id where there is none; line for messages.
        raw: a row that already is a document, kept byte by byte.
        utf8: the text in UTF-8, if it is at hand.
        is_null: True if its text is null in the input.
        paths: the paths of the row's fields (see `toolkit.data.document_fields.paths_in`), if the reader knows them.
        cleared: bytes by which the row is shorter because a takedown lists the document; readers leave it.
    """

    text: str
    number: int
    id: str | None = None
    source: str | None = None
    shard: str | None = None
    added: str | None = None
    created: str | None = None
    metadata: dict[str, Any] | msgspec.Raw | None = None
    extra: dict[str, Any] = {}
    attributes: dict[str, dict[str, msgspec.Raw]] | None = None
    raw: bytes | None = None
    utf8: bytes | None = None
    paths: tuple[str, ...] | None = None
    is_null: bool = False
    cleared: int = 0

    def fields(self, id: str) -> tuple[str, ...] | dict[str, Any] | None:
        """Return the paths of the row's fields, or its top-level fields; None of a `raw` one."""
        if self.raw is not None or (self.paths and id == self.id):
            return self.paths
        standard = {"id": id, "text": "", "source": "", "added": self.added, "created": self.created}
        return {**standard, **self.extra, "metadata": self.metadata}


class NullText(msgspec.ValidationError):
    """An item with a null text; `null_text` of the configuration decides what becomes of it.

    Args:
        message: Message if the item is bad.
        draft: Draft of the item, with an empty text.
    """

    def __init__(self, message: str, draft: Draft) -> None:
        super().__init__(message)
        self.draft = draft
        draft.is_null = True


def with_empty_text(row: bytes, key: str = "text") -> bytes | None:
    """Return a row of JSON with an empty text for null; None if it has another text, or none."""
    fields = msgspec.json.decode(row, type=dict[str, msgspec.Raw])
    return msgspec.json.encode(fields | {key: ""}) if bytes(fields.get(key, b"")) == b"null" else None


class DraftColumns(Sequence[Draft]):
    """Documents as columns, for a reader of many at once; makes a `Draft` only on request.

    Args:
        utf8: all texts one behind the other, in valid UTF-8; other bytes may stand between them.
        bounds: offsets in `utf8`, at which texts begin; without `ends` the text of row i ends at the next one.
        ends: offsets at which they end.
        columns: Columns by name of a field of `Draft` (``number`` must be one), its value for each row.

    Raises:
        ValueError: if a column is unknown, or has not one value for each row, or an offset is outside of the bytes.
    """

    def __init__(
        self, utf8: bytes, bounds: Sequence[int], ends: Sequence[int] | None = None, **columns: Sequence[Any]
    ) -> None:
        self.utf8 = utf8
        self.begins, self.ends = (bounds[:-1], bounds[1:]) if ends is None else (bounds, ends)
        self.columns = columns
        for name, column in {"number": (), "ends": self.ends, **columns}.items():
            if name not in ("ends", *Draft.__struct_fields__):
                raise ValueError(f"expected columns of fields of a Draft, got {name}")
            if len(column) != len(self):
                raise ValueError(f"expected {len(self):,} values of {name}, one for each text, got {len(column):,}")
        if not 0 <= min(self.begins, default=0) <= max(self.ends, default=0) <= len(utf8):
            raise ValueError(f"expected offsets from 0 to {len(utf8):,}, got an end at {max(self.ends):,}")
        if any(map(operator.gt, self.begins, self.ends)):
            raise ValueError("expected texts that end behind their begin, got one that ends before it")

    def __len__(self) -> int:
        return len(self.begins)

    @overload
    def __getitem__(self, index: int) -> Draft: ...
    @overload
    def __getitem__(self, index: slice) -> list[Draft]: ...
    def __getitem__(self, index: int | slice) -> Draft | list[Draft]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        row = range(len(self))[index]
        text = self.utf8[self.begins[row] : self.ends[row]].decode()
        return Draft(text=text, **{name: column[row] for name, column in self.columns.items()})


class EndOfSample(ToolkitError):
    """The end of the sample of an input."""


class Sample:
    """The remaining bytes and lines of a sample.

    Bad items, blank lines and what is inflated count, of which a sample of documents knows nothing.
    """

    def __init__(self) -> None:
        self._bytes, self._lines = 16 * SAMPLE_BYTES, 100 * SAMPLE
        self._least = (0, 0)

    def next_input(self) -> None:
        """Allow the next input half of the remaining sample."""
        self._least = (self._bytes // 2, self._lines // 2)

    def take(self, size: int, lines: int = 0) -> None:
        """Count bytes and lines of the sample.

        Raises:
            EndOfSample: if they are too many.
        """
        self._bytes -= size
        self._lines -= lines
        if self._bytes < self._least[0] or self._lines < self._least[1]:
            raise EndOfSample


class _SampledBytes(Decompressed):
    """Decompressed bytes of a sample."""

    def __init__(self, path: str, stored: IO[bytes] | None, sample: Sample) -> None:
        super().__init__(path, stored)
        self._sample = sample

    def read(self, size: int = -1) -> bytes:
        data = super().read(size)
        self._sample.take(len(data))
        return data


class Input:
    """An input file, as a reader sees it.

    Attributes:
        path: Path for messages.
        counts: Counts by name, for the record; readers add to it.
        source: Source of the configuration.
        max_bytes: a document may not be larger.
        skip: True if bad items are kept aside (`bad`) and not an error.
        begin: Start of the reading: a reader counts items from `begin.number`. Another place than the start is given
            to readers with `MEMBERS`, of which the stream begins there, and to those that note `parts`.
        sample: bounds what is read of it, if its beginning is enough.
        null_text: Treatment of items with a null text: ``skip``, ``empty``, ``error``; None for the format's way.
        left_out: notes the items that become no document, if that is wanted.
        sieve: says which rows of a table become documents, if not all of them do.
        indexes: True if rows of a table are `toolkit.data.dataset.IndexRow`.
        parts: readers add the number of items before a part of the file, and the part's own number, before they give
            items of it.

    Args:
        rejects: Output for bad items.
        opened: gives the stored bytes, if they are not simply those at the path.
    """

    def __init__(
        self,
        path: str,
        source: str | None,
        max_bytes: int,
        rejects: "Rejects | None",
        opened: Callable[[], IO[bytes]] | None = None,
        begin: Begin = START,
        *,
        sample: Sample | None = None,
    ) -> None:
        self.path = path
        self.sample = sample
        self.begin = begin
        self.parts: list[tuple[int, int]] = []
        self.source = source
        self.max_bytes = max_bytes
        self.counts: Counter[str] = Counter()
        self.skip = rejects is not None
        self.null_text: str | None = None
        self.left_out: LeftOutOutput | None = None
        self.sieve: Sieve | None = None
        self.indexes = False
        self._rejects = rejects
        self._opened = opened
        self._lines: Lines | None = None

    @property
    def line(self) -> int | None:
        """Return the number of the last line from `lines`; None without such lines."""
        return self._lines.number if self._lines else None

    def stream(self) -> Decompressed:
        """Return the input's bytes, decompressed; use it in a ``with`` block."""
        stored = self._opened() if self._opened else None
        return _SampledBytes(self.path, stored, self.sample) if self.sample else Decompressed(self.path, stored)

    def head(self, size: int) -> bytes:
        """Return the first bytes of the input, decompressed.

        Raises:
            DataError: if they cannot be read.
        """
        with self.stream() as stream:
            return stream.read(size)

    def lines(self) -> Lines:
        r"""Return the input's lines, without ``\n`` and without a byte order mark; use it in a ``with`` block.

        With `skip` a line that is too long is given as `LongLine`, which `items` keeps aside; else it is an error.
        """
        stored = self._opened() if self._opened else None
        lines = _InputLines(self.path, self.max_bytes, stored=stored, long_lines=self.skip)
        lines.sample = self.sample
        self._lines = lines
        return lines

    @contextmanager
    def file(self) -> Iterator[IO[bytes]]:
        """Open the input's bytes, decompressed, as a seekable file.

        What is compressed, in a bucket or on the web is copied to a temporary file first.
        """
        with ExitStack() as stack:
            stored = stack.enter_context(self._opened() if self._opened else open_stored(self.path))
            is_plain = stored.seekable() and not compression_in(stored.read(MAGIC_BYTES))
            if stored.seekable():
                stored.seek(0)
            if not is_plain:
                copy = stack.enter_context(tempfile.TemporaryFile())
                with Decompressed(self.path, stored) as stream:
                    while block := stream.read(READ):
                        copy.write(block)
                        if self.sample and copy.tell() > _INFLATED * max(READ, stream.stored()):
                            raise DataError(
                                f"expected at most {_INFLATED} bytes for each that is stored, got more before its "
                                "schema; decompress the file",
                                path=self.path,
                            )
                copy.seek(0)
                stored = copy
            yield stored if hasattr(stored, "read1") else io.BufferedReader(cast("io.RawIOBase", stored), READ)

    def items(self, lines: Lines, make: Callable[[bytes, int], T | None], most: int | None = None) -> Iterator[T]:
        """Yield the result for each line; errors of libraries become bad items, or errors with a line, here alone.

        Args:
            lines: Lines of the input.
            make: Function of a line and its number; None for a line that it has refused itself. It may raise `BAD_ROW`,
                and DataError without a path.
            most: number of lines that are read; all by default.
        """
        for line in itertools.islice(lines, most):
            if isinstance(line, LongLine):
                self.too_large("line", line, lines.number, line.size, line.offset)
                continue
            try:
                result = make(line, lines.number)
            except (*documents.BAD_ROW, DataError) as error:
                if (draft := self.refuse(error, line, lines.number)) is not None:
                    yield cast("T", draft)
                continue
            if documents.is_nested_too_deeply(line):
                message = f"expected at most {documents.MAX_NESTING} lists and objects in each other, got more"
                self.bad("nested too deeply", message, line, lines.number)
            elif result is not None:
                yield result

    def leave_out(
        self, reason: str, number: int, *, id: str | None = None, url: str | None = None, source: str | None = None
    ) -> None:
        """Count and record an undamaged item without a document.

        Args:
            reason: a short name, by which it is counted.
            number: line or ordinal in the input, from 1.
            id: Id of the document that it would be, if known.
            url: URL of that document, if known.
            source: Source of that document, if it is not that of the configuration.
        """
        self.counts[reason] += 1
        if self.left_out is not None:
            self.left_out.add(number, reason, id, url, source)

    def refuse(self, error: Exception, raw: bytes, number: int) -> Draft | None:
        """Treat an unusable item as `bad`; return the document of one whose text is null.

        Args:
            error: one of `BAD_ROW`, or a DataError, which is raised again if it has a path.
            raw: the item.
            number: line or ordinal in the input, from 1.
        """
        if isinstance(error, NullText) and self.null_text in ("skip", "empty"):
            return error.draft
        if not isinstance(error, DataError):
            fault = documents.fault_of(raw, error)
            hint = _NULL if isinstance(error, NullText) else _ENCODED if fault == "invalid UTF-8" else ""
            is_own = fault == "value out of range"  # what the reader's code makes of a value
            message = (
                f"expected an item of the format, got: {error}" if is_own else documents.explain_bad_row(raw, error)
            )
            self.bad(fault, message + hint, raw, number)
        elif error.path:
            raise error
        else:
            self.bad("not of the format", error.message, raw, number, error.id)
        return None

    def too_large(
        self, item: str, raw: bytes, number: int, size: int, offset: int | None = None, id: str | None = None
    ) -> None:
        """Treat a line or document above `max_bytes` as `bad`; only its beginning is at hand."""
        message = f"expected a {item} of at most {self.max_bytes:,} bytes, got {size:,}; raise `max_document_bytes`"
        self.bad("too large", message, raw, number, id, size=size, offset=offset)

    def bad(
        self,
        reason: str,
        message: str,
        raw: bytes,
        number: int,
        id: str | None = None,
        *,
        size: int | None = None,
        offset: int | None = None,
    ) -> None:
        """Raise DataError for a bad item; with `skip` keep it aside and count it.

        Args:
            reason: a short name; the item is counted as ``rejected.<reason>``.
            message: expected …, got ….
            raw: the item, as much as is at hand.
            number: line or ordinal in the input, from 1.
            id: Id of the document, if known.
            size: bytes of the item, if only its beginning is at hand.
            offset: Offset of the item in the uncompressed input, if known.
        """
        if self._rejects is None:
            raise DataError(message, path=self.path, line=number, id=id)
        self._rejects.add(self.path, reason, message, raw, number, size=size, offset=offset)
        own_id, url = identity(raw) if self.left_out is not None else (None, None)
        self.leave_out(f"rejected.{reason}", number, id=id or own_id, url=url)

    def lose(
        self, reason: str, message: str, raw: bytes, number: int, id: str | None = None, url: str | None = None
    ) -> None:
        """Count an unreadable, undamaged item as ``lost.<reason>``; it is never an error.

        It is kept aside where bad items are; the arguments are those of `bad`, and the URL of the document.
        """
        if self._rejects is not None:
            self._rejects.add(self.path, reason, message, raw, number)
        self.leave_out(f"lost.{reason}", number, id=id, url=url)


class _InputLines(Lines):
    """Lines as other programs write them: some begin a file with a byte order mark."""

    sample: Sample | None = None

    def _read(self) -> bytes:
        block = super()._read()
        if self.sample:
            self.sample.take(len(block))
        return block

    def __next__(self) -> bytes:
        line = super().__next__()
        if self.sample:
            self.sample.take(0, lines=1)
        if self.number > 1 or isinstance(line, LongLine):
            return line
        if line.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            raise DataError(
                "expected UTF-8, got a file that begins with the byte order mark of UTF-16; "
                "convert it: iconv -f UTF-16 -t UTF-8",
                path=self.path,
                line=1,
            )
        if result := binary_kind(line):
            raise DataError(f"expected lines of text, got {result}", path=self.path)
        return line.removeprefix(codecs.BOM_UTF8)


class Capture(NamedTuple):
    """An answer of a server.

    Attributes:
        url: Address that was asked for.
        date: WARC-Date.
        status: HTTP status.
        headers: All values of each header, by lower-case name.
        body: Content without HTTP's codings; empty if it has one that is not known, or is too large.
    """

    url: str
    date: str
    status: int
    headers: Mapping[str, Sequence[str]]
    body: bytes


class Reader(msgspec.Struct, **FROZEN):
    """Reads one input format: extend it. Its fields are its options, given beside ``format:`` in the configuration."""

    VERSION: ClassVar[str] = "1"
    """Part of the recorded settings; change it whenever it makes other documents of an input."""

    SUFFIXES: ClassVar[tuple[str, ...]] = ()
    """Taken off a file's name (before that, a compression's) to name its shard; the longest that fits."""

    PACK: ClassVar[int | None] = None
    """Inputs with fewer stored bytes share shards, unless the configuration has another `pack`."""

    MEMBERS: ClassVar[bool] = False
    """Whether in compressed files each item usually is a gzip member, so that reading can begin at any of them."""

    RECORDS: ClassVar[bool] = False
    """Whether items are records of which the row index keeps where they are stored: file, offset, length."""

    LINES: ClassVar[bool] = False
    """Whether each line, or some lines, are an item, so that of a truncated file whole lines can be kept."""

    IN_PLACE: ClassVar[bool] = False
    """Whether the files can be documents in place: read again by each command, as fast as documents or nearly so."""

    TYPES: ClassVar[Mapping[str, Any]] = {}
    """Types of the attributes in each set that the format carries, by key: as the annotation of a tagger's `tag`."""

    PLUGIN: ClassVar[tuple[str, Kind[Any], str] | None] = None
    """An option that names a plugin, the plugin's kind, and the default name: the plugin's options stand beside it."""

    OPTIONS: ClassVar[tuple[str, ...]] = ()
    """Names of the options of that plugin, in the class that `with_options` returns."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if hasattr(cls, "attribute_set"):  # or the values would be lost without a word
            new = "toolkit.Reader.attribute_sets, a list,"
            raise ImportError(
                f"attribute_set of {cls.__name__} is {new} now; CHANGELOG.md lists all names that have changed"
            )

    @staticmethod
    def captures(path: str, limit: int) -> Iterator[Capture]:
        """Yield the answers of servers in WARC files; see `toolkit.ingest.web.records.captures`."""
        from toolkit.ingest.web.records import captures

        return captures(path, limit)

    @classmethod
    def with_options(cls, options: ConfigNode) -> "type[Reader]":
        """Return the class for the options of a configuration: with those of the plugin that they name, if any.

        Raises:
            ConfigError: with its place, if there is no such plugin, or its options are called as those of the format.
        """
        if cls.PLUGIN is None:
            return cls
        option, kind, default = cls.PLUGIN
        reference = options.value.get(option, default)
        if not isinstance(reference, str):
            return cls
        with options.errors_at(option, keeps=True):
            return _with_plugin(cls, kind.find(reference), f"{option} {reference}")

    def check(self) -> None:
        """Raise ConfigError if it cannot read here with these options; called before anything is read."""

    def read(self, source: Input) -> Iterator[Draft]:
        """Yield the documents of an input, in order: override this, or `read_batches`.

        Raises:
            DataError: if the input is damaged, or not of this format.
        """
        if type(self).read_batches is Reader.read_batches:
            raise NotImplementedError(type(self).__name__)
        yield from itertools.chain.from_iterable(self.read_batches(source))

    def read_batches(self, source: Input) -> Iterator[Sequence[Draft]]:
        """Yield documents in batches of any size. Override it where many at once are faster (`DraftColumns`).

        The engine calls nothing else. Here each document is a batch, so that bad items that the reader finds, and
        those that the engine finds, are kept aside in the order of the input.
        """
        for draft in self.read(source):
            yield (draft,)

    def tables(self, source: Input, fields: Collection[str]) -> Iterator[Any] | None:
        """Return `toolkit.ingest.tables.arrow.TableRows` of fields of documents; None where columns are no fields.

        Args:
            source: the input.
            fields: top-level ones.

        Raises:
            DataError: as of `read`.
        """
        return None

    def attribute_sets(self) -> Sequence[str]:
        """Return the names of the sets for `Draft.attributes`; none if the format carries no attributes."""
        return ()

    def set_settings(self, name: str) -> dict[str, Any]:
        """Return the recorded settings of a set, beside its format."""
        return {"version": "1"}

    def own_types(self, inputs: "Sequence[Input]") -> OwnTypes | None:
        """Return the types of the own fields of documents of these inputs; None if nobody knows them.

        The engine holds each document against them, so that rules can count on them.

        Args:
            inputs: all of an entry, in order; bad items of them are passed over.
        """
        return None

    def inputs(self, pattern: str) -> Sequence[folders.ListedFile]:
        """Return the inputs at a path, glob or folder of the configuration.

        Raises:
            NothingThere: if there is none.
            ConfigError: if it cannot be one.
        """
        return folders.list_inputs(pattern, self.SUFFIXES)

    def settings(self) -> dict[str, Any]:
        """Return the options, in their recorded form."""
        results: dict[str, Any] = plain(self)
        return results

    @classmethod
    def types(cls) -> dict[str, schema.Type]:
        """Return the declared types of the format's attributes."""
        return {key: schema.from_annotation(annotation, key) for key, annotation in cls.TYPES.items()}


def first_drafts(reader: Reader, inputs: Iterable[Input], *, tolerant: bool = False) -> Iterator[Draft]:
    """Yield the first documents of inputs with a `sample`: at most `SAMPLE`, of about `SAMPLE_BYTES`.

    Args:
        reader: Reader of their format.
        inputs: Inputs in order.
        tolerant: True if the next input follows a damaged one.

    Raises:
        DataError: if one is damaged.
    """
    count = size = 0
    for source in inputs:
        if source.sample:
            source.sample.next_input()
        try:
            for draft in itertools.chain.from_iterable(reader.read_batches(source)):
                yield draft
                count += 1
                size += len(draft.text) + sum(len(value) for value in draft.extra.values() if isinstance(value, str))
                if count >= SAMPLE or size > SAMPLE_BYTES:
                    return
        except ToolkitError as error:
            if not (tolerant or isinstance(error, EndOfSample)):
                raise


@cached(16)
def _with_plugin(reader: type[Reader], plugin: type[msgspec.Struct], label: str) -> type[Reader]:
    """Return a format with the options of a plugin among its own."""
    options = msgspec.structs.fields(plugin)
    if clashes := {option.encode_name for option in options} & {*reader.__struct_encode_fields__}:
        raise ConfigError(f"{label}: expected no option {min(clashes)!r}, because the format has one of this name, too")
    field: Any = msgspec.field  # its stubs know no field that may have either default
    fields = [
        (option.name, option.type, field(default=option.default, default_factory=option.default_factory))
        for option in options
    ]
    result = msgspec.defstruct(
        reader.__name__,
        fields,
        bases=(reader,),
        namespace={"OPTIONS": tuple(option.encode_name for option in options), "__doc__": reader.__doc__},
        module=reader.__module__,
        kw_only=True,
        **FROZEN,
    )
    return cast("type[Reader]", result)


READERS: Kind[Reader] = Kind("input format", "toolkit.ingest.formats", "toolkit.readers", Reader)


class Rejects(OptionalRows):
    """Writes a reject file: a line for each bad item, with its bytes in base64; no file if there is no bad item.

    Of an item of more than `HEAD` bytes there are as many from its beginning, its size and (if known) its offset in the
    uncompressed input: so that no item is held in memory, and none is kept twice that is as large as its input.

    Args:
        path: Path of the file.
        is_listed: Function that returns True for an item of which nothing may be kept, because a takedown lists it.
    """

    def __init__(self, path: str, is_listed: Callable[[bytes], bool] = lambda raw: False) -> None:
        super().__init__(path)
        self._is_listed = is_listed

    def add(
        self,
        input: str,
        reason: str,
        message: str,
        raw: bytes,
        number: int,
        *,
        size: int | None = None,
        offset: int | None = None,
    ) -> None:
        if self._is_listed(raw):
            message, raw, size, offset = "a takedown lists it", b"", None, None
        row: dict[str, Any] = {"input": input, "number": number, "reason": reason, "message": message}
        size = len(raw) if size is None else size
        if size > HEAD:
            row |= {"bytes": size} | ({} if offset is None else {"offset": offset})
        self.write_row(msgspec.json.encode(row | {"base64": base64.b64encode(raw[:HEAD]).decode()}))


def check_document(line: bytes) -> documents.DocumentRow:
    """Return a row of a document, decoded.

    Raises:
        msgspec.DecodeError, UnicodeDecodeError: if it is not.
    """
    row = documents.DOCUMENT_DECODER.decode(line)
    documents.check_metadata(row.metadata)
    if not line.isascii():
        line.decode()
    return row
