"""The contract of output formats: `Writer`, and what it is given.

A writer *is* its configuration: a frozen Struct whose fields are its options. It turns documents into labelled bytes;
the engine groups them by label, compresses, cuts into parts, and writes.
"""

import functools
import re
from collections import Counter
from collections.abc import Collection, Generator, Iterable, Iterator, Mapping, Sequence
from typing import IO, Any, ClassVar, Self

import msgspec

from toolkit.config.settings import FROZEN
from toolkit.data.document_fields import DOT, SAME, label_of as expression_of_label
from toolkit.data.documents import Document, explain_bad_row
from toolkit.errors import ConfigError, DataError, errors_from
from toolkit.plugins import Kind
from toolkit.storage.json_files import decoder_of
from toolkit.text.batch import Batch

_LABEL = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_. -]{0,98}[A-Za-z0-9_.-])?")


class Wanted(msgspec.Struct, frozen=True):
    """An attribute for a writer.

    Attributes:
        path: ``KEY[.field…]`` among the attributes of the mix, or ``metadata.field…`` of the document; what the option
            holds.
        type: Msgspec type that the value is decoded to.
        not_null: True if a null must have been ruled out before (for the dotted path given here, relative to the
            value), because the format has no place for it.
    """

    path: str
    type: Any
    not_null: tuple[str, ...] = ()


class Mixed(msgspec.Struct, frozen=True):
    """The values and annotations of a document in a mix.

    Attributes:
        values: Attributes that the writer wants, by option name.
        annotations: Annotations of `annotate` rules, in the order of the rules.
        attributes: All attributes of the mix as JSON texts by key, if the writer `takes_all` and sets are joined; else
            None.
        counts: add here what the format leaves out, has no place for, or counts besides, such as tokens; the end of
            the mix shows it.
        fields: Fields that `set` rules, and the option `provenance`, add to the metadata: JSON texts, in mappings where
            they are nested (see `merge_fields`); for a writer with `FIELDS`.
        shard: Path of the document's shard below the documents root, without suffix.
        path: Path of the documents file of the shard, as the configuration names it.
        row: Number of the document in its shard, from 1.
        copy: Number of the copy, from 1, in a mix with a rule `repeat`; 0 in others. It is among the `fields`, too.
        origin: Path of the shard with its suffix, behind ``STREAM/`` where streams have names.
        edits: Stretches of the text that rules have replaced, in order: start and end, and how many code points stand
            in their place.
    """

    values: Mapping[str, Any]
    annotations: list[str]
    attributes: dict[str, msgspec.Raw] | None = None
    counts: Counter[str] = msgspec.field(default_factory=Counter)
    fields: Mapping[str, Any] = {}
    shard: str = ""
    row: int = 0
    copy: int = 0
    origin: str = ""
    edits: Sequence[tuple[int, int, int]] = ()
    path: str = ""


TEXT_KEY = b',"text":"'
"""What stands before a text that is copied, see `Writer.copies_text`."""

Pieces = Sequence[tuple[str, bytes]]
"""The bytes of a document, each with the label of the output that they go to."""


class MixedBatch:
    """Documents to encode together, with their values by row or by column.

    Args:
        documents: Documents, in order.
        mixed: Values and annotations of each document.
        columns: Values of options that exist as columns, too.

    Attributes:
        documents: Documents with views on all texts in one buffer, computed on demand (`Batch.lines`).
        counts: Counts of what the format leaves out, as `Mixed.counts`; add to them.
        shard: Path as in `Mixed`, the same for all.
    """

    def __init__(
        self, documents: Sequence[Document], mixed: Sequence[Mixed], columns: Mapping[str, Sequence[Any]] | None = None
    ) -> None:
        self.documents = Batch.of(documents)
        self._mixed = mixed
        self._columns = columns or {}
        self.counts: Counter[str] = mixed[0].counts if mixed else Counter()
        self.shard = mixed[0].shard if mixed else ""

    def __len__(self) -> int:
        return len(self._mixed)

    def __iter__(self) -> Iterator[tuple[Document, Mixed]]:
        """Yield the rows: each document, and what is known of it."""
        return zip(self.documents, self._mixed, strict=True)

    def values(self, option: str) -> Sequence[Any]:
        """Return the column of an attribute of the writer: its value for each document.

        It is a `toolkit.text` column (`LinePredictions`) where a tagger has just made it as one.
        """
        if option in self._columns:
            return self._columns[option]
        return [mixed.values[option] for mixed in self._mixed]

    @property
    def annotations(self) -> Sequence[list[str]]:
        """Return the column of `Mixed.annotations`."""
        return [mixed.annotations for mixed in self._mixed]

    @property
    def attributes(self) -> Sequence[dict[str, msgspec.Raw] | None]:
        """Return the column of `Mixed.attributes`."""
        return [mixed.attributes for mixed in self._mixed]

    @property
    def fields(self) -> Sequence[Mapping[str, Any]]:
        """Return the column of `Mixed.fields`."""
        return [mixed.fields for mixed in self._mixed]


class Reading(msgspec.Struct, frozen=True):
    """How an output is read again; the defaults are right for lines such as documents have.

    Attributes:
        text: Key of the text in a line.
        joined: True if the text is lines joined by line feeds, without one behind the last.
        headers: Key of the WARC headers in a line, if they do not stand in ``metadata``.
        values: Key of an object in a line whose fields expressions may use (``toolkit stats --by``). Unless there are
            `headers`, it is another one than ``metadata``.
        types: Types of these fields, by name. What may be null may be absent. A format whose lines are no JSON can have
            ``label`` here.
        label: Expression over these fields that gives the label of a document; if empty, it has that of its part.
        is_language: True if the label is that of a language, in each row that of the folder which its file lies in.
    """

    text: str = "text"
    joined: bool = False
    headers: str = ""
    values: str = "attributes"
    types: Mapping[str, Any] = {}
    label: str = ""
    is_language: bool = False


class Writer(msgspec.Struct, dict=True, **FROZEN):
    """Encodes documents in an output format, and reads its own files again: extend it."""

    VERSION: ClassVar[str] = "1"
    """Part of the recorded settings; change it whenever the bytes change."""

    SUFFIX: ClassVar[str] = ".jsonl"
    """Suffix of parts, before that of the compression."""

    COMPRESSION: ClassVar[str] = "gzip"
    """Of the parts, where the configuration names none."""

    FIELDS: ClassVar[bool] = False
    """True if it has a place for the fields of `Mixed.fields`."""

    COLUMNS: ClassVar[bool] = False
    """True if it has columns for what documents bring, of the types that tables of inputs gave them: `own_columns`."""

    own_columns: ClassVar[str] = ""
    """The columns that documents bring, where `assemble` is called (see `toolkit.arrow_schema`)."""

    CONCATENATES: ClassVar[bool] = True
    """True if an output is what `encode` gives, one behind the other; if not, `assemble` makes the file of it."""

    HAS_TEXT: ClassVar[bool] = True
    """False if documents cannot be read back from its files: tokens, say."""

    ABOUT: ClassVar[Mapping[str, str]] = {}
    """Descriptions of the fields of `line`, by name."""

    ID: ClassVar[tuple[str, ...]] = ("id",)
    """Keys that lead to the id in a line."""

    READING: ClassVar[Reading] = Reading()
    """Says where a line has its text, and what else is known of it."""

    def check_installed(self) -> None:
        """Raise MissingExtra if a required package is missing; called before anything runs."""

    def wants(self) -> dict[str, Wanted]:
        """Return the attributes for the writer, by option name."""
        return {}

    def label(self) -> str | None:
        """Return the expression of a document's label, or a quoted text. See `toolkit.label_of`.

        None if only `encode` knows. Rules call it ``label``; a dry run counts by it.
        """
        return None

    def takes_all(self) -> bool:
        """Return True if the writer takes the JSON texts of all attributes."""
        return False

    def takes_stale(self) -> bool:
        """Return True if the writer takes attributes of unedited texts."""
        return False

    def carries(self, fields: Collection[str]) -> Collection[str]:
        """Return the fields of documents in its files, as dotted paths. A path stands for the whole field.

        A mix names all other fields, with the numbers of documents that have them. By default it is the text alone.

        Args:
            fields: Paths of fields that documents have. Documents with ``metadata.warc_headers`` are asked about by
                themselves.
        """
        return ("text",)

    def copies_text(self) -> bool:
        """Return True if pieces have the text once, as JSON.

        It follows the first ``,"text":``, and nothing else in the piece depends on it. `encode` then gets rows of
        tables with an empty text, and the engine puts the text in. Subclasses do not inherit the answer.
        """
        return False

    def parts_documents(self) -> bool:
        """Return True if pieces of one document have different labels. The pieces are then counted (`text_of`)."""
        return False

    def text_of(self, piece: bytes) -> bytes:
        """Return the text, in UTF-8, of a piece given by `encode`."""
        raise NotImplementedError(type(self).__name__)

    def encode(self, document: Document, mixed: Mixed) -> Iterable[tuple[str, bytes]]:
        r"""Return the document's bytes, each piece with its label.

        The bytes of a label are concatenated as they are, so they end in ``\n``; output is cut between them.

        Raises:
            DataError: if the format has no place for the document; file, line and id are added to the message.
        """
        raise NotImplementedError(type(self).__name__)

    def encode_batch(self, batch: MixedBatch) -> Sequence[Pieces]:
        """Return the pieces of each document, in order. Override it where many at once are faster.

        The engine calls nothing else. If it fails, the engine calls `encode` for one document after the other, so that
        the message names the document.
        """
        return [[*self.encode(document, mixed)] for document, mixed in batch]

    def is_lines(self) -> bool:
        """Return True if files are lines of text, in any order."""
        return False

    def assemble(self, pieces: Iterator[bytes], out: IO[bytes]) -> None:
        """Write the file of a part; for a format without concatenation.

        Args:
            pieces: Pieces of `encode`, in order: whole lines, together about 1 MiB, more only of one document. Take all
                of them, one by one.
            out: File for the bytes; the caller closes it, and it cannot seek.
        """
        raise NotImplementedError(type(self).__name__)

    def assemble_files(self, pieces: Iterator[bytes], files: Sequence[IO[bytes]]) -> None:
        """Write the files of a part; by default `assemble` writes the first.

        Args:
            pieces: Pieces as of `assemble`.
            files: Take the bytes of each, in this order; as `out` of `assemble`. Where they are on a disk, they have an
                attribute `folder`: the place for temporary files.
        """
        self.assemble(pieces, files[0])

    def on_disk(self, stored: int, content: int) -> tuple[int, int]:
        """Return estimated bytes of files and of temporary files. They count for `max_disk`.

        Args:
            stored: Bytes of what the part is made of.
            content: Number of these, uncompressed.
        """
        return stored, 0

    def beside(self, path: str) -> Sequence[str]:
        """Return the paths of files beside a part; for a format without concatenation.

        Args:
            path: Path of the part.
        """
        return ()

    def is_divided(self) -> bool:
        """Return True if the documents of a label are divided into parts."""
        return True

    def is_per_shard(self) -> bool:
        """Return True if each shard has its own output. Its label is `Mixed.shard`."""
        return False

    def stem(self, label: str) -> str:
        """Return the path of a label's output, without suffix and part number. It is below the output folder.

        Labels that `route` rules give may have ``/`` in them: folders.
        """
        return f"{label}/{label.rpartition('/')[2]}"

    def part(self, label: str, number: int, parts: int, compression: str) -> str:
        """Return the path of a part below the output folder.

        Args:
            label: Label of its documents.
            number: Number of the part, from 1.
            parts: Parts of the label.
            compression: Suffix of the compression.
        """
        return part_name(self.stem(label), self.SUFFIX + compression, number, parts)

    def checksums(self, label: str) -> str:
        """Return the path of a label's checksum file below the output folder."""
        return f"{self.stem(label)}_sha256.txt"

    def line(self) -> Any:
        """Return the msgspec type of a line (or row) of output; None if lines are documents, or no JSON."""
        return None

    @classmethod
    def of_file(cls, path: str, line: bytes) -> Self | None:
        """Return the writer of a file without manifest; None for another format.

        A file that is damaged is still one of its format: `check` says what is wrong with it.

        Args:
            path: Path of the file, with all its suffixes.
            line: First line, decompressed; empty if there is none.
        """
        return None

    def respelled(self, line: bytes) -> bytes:
        """Return a line in the spelling of the format; most are unchanged."""
        return line

    def check(self, line: bytes) -> str | None:
        """Return the fault of a line of output, ``expected …, got …``; None if sound.

        By default a line is held against the type that `line` gives, if it gives one. What `set` rules, or
        `provenance`, have added to ``metadata`` is not in the line.
        """
        if self._decoder is not None:
            try:
                self._decoder.decode(line)
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                return explain_bad_row(line, error)
        return None

    @functools.cached_property
    def _decoder(self) -> "msgspec.json.Decoder[Any] | None":
        type_ = self.line() if self.has_json_lines() else None
        return None if type_ is None else decoder_of(type_)

    def read(self, lines: Iterator[bytes], max_bytes: int) -> Iterator[tuple[Document, str | None]] | None:
        """Return the documents of a file with their labels (None: that of the part); for lines that are no JSON.

        Args:
            lines: Lines of the file, without their line ends.
            max_bytes: Maximum bytes of a document; a longer one is a DataError.

        Returns:
            None if lines are JSON objects: then they are read as `READING` and `ID` say.
        """
        return None

    def read_file(self, path: str) -> Iterator[tuple[Document, str | None]]:
        """Return the documents of a file with labels; for a format without concatenation.

        Raises:
            DataError: if it is damaged.
        """
        if not self.HAS_TEXT:
            raise ConfigError(
                f"{path}: expected a file with texts, got one that has none; look at the documents instead"
            )
        raise ConfigError(
            f"{path}: expected a format that reads its own files, got {type(self).__name__}, which has no `read_file`"
        )

    def read_columns(self, path: str, names: Sequence[str]) -> Iterator[Any] | None:
        """Return the documents of a file as record batches of pyarrow.

        Args:
            path: Path of the file.
            names: Columns to read, in order: of ``id``, ``source``, ``text``, ``label`` (strings), and ``metadata``
                (JSON objects). A value is null where the document has none.

        Returns:
            None for a format that has no such reader: then `read_file` is called, and so it is for a class that
            overrides `read_file` alone.

        Raises:
            DataError: if the file is damaged.
        """
        return None

    def has_json_lines(self) -> bool:
        """Return True if lines of output are JSON objects."""
        return self.CONCATENATES and self.read(iter(()), 0) is None

    def read_rows(self, path: str) -> Generator[dict[str, Any], None, None]:
        """Yield the rows of a file as `line` has them; for examples.

        Raises:
            DataError: if it is damaged.
        """
        yield from ()

    def check_file(
        self, path: str, documents: int | None = None, first: int | None = None
    ) -> Iterator[tuple[int | None, str]]:
        """Yield the faults of a file, with row numbers or None. Rows count from 1; it is for a format without
        concatenation.

        Args:
            path: Path of the file.
            documents: Documents that it should have, if that is known.
            first: Number of rows to look at; None for all.
        """
        return iter(())

    @staticmethod
    def label_of(path: str) -> str:
        """Return the expression of the label of an attribute, for `label`."""
        return expression_of_label(path)

    @staticmethod
    def own_fields(paths: Iterable[str]) -> list[str]:
        """Return the fields of documents among paths of attributes, for `carries`."""
        return [path.removeprefix("document.") for path in paths if path.startswith(("metadata.", "document."))]

    @staticmethod
    def check_label(label: str) -> str:
        """Return the label, if it cannot lead out of the output folder; raise DataError otherwise."""
        return check_label(label)

    @staticmethod
    def merge_fields(old: msgspec.Raw | None, new: Mapping[str, Any], at: str = "metadata") -> msgspec.Raw:
        """Return the JSON text of an object with other values for keys."""
        return merge_fields(old, new, at)


WRITERS: Kind[Writer] = Kind("output format", "mixers", "toolkit.writers", Writer)


def merge_fields(old: msgspec.Raw | None, new: Mapping[str, Any], at: str = "metadata") -> msgspec.Raw:
    """Return the JSON text of an object with other values for keys. The object may be null, or missing.

    Mappings go into the objects that are there, or that null leaves a place for.

    Args:
        old: JSON text of the object.
        new: Values, JSON texts, or mappings of them.
        at: Path of the object, for messages.

    Raises:
        DataError: if something else than an object is where a mapping goes: it is not replaced.
    """
    try:
        result = msgspec.json.decode(old or b"{}", type=dict[str, msgspec.Raw] | None) or {}
    except msgspec.ValidationError:
        paths, got = ", ".join(f"{at}.{key}" for key in new), bytes(old or b"")[:80].decode(errors="replace")
        raise DataError(
            f"expected an object or null at {at}, to give {paths} a value, got {got}; choose another field, or set "
            f"{at} itself"
        ) from None
    for key, value in new.items():
        inside = result.get(key)
        nests = isinstance(value, Mapping) and inside is not None
        result[key] = merge_fields(inside, value, f"{at}.{key}") if nests else msgspec.Raw(msgspec.json.encode(value))
    return msgspec.Raw(msgspec.json.encode(result))


def not_carried(writer: Writer, fields: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """Return the fields missing in a writer's files, with document counts.

    Args:
        writer: Writer of the output.
        fields: Documents by the paths of their fields (see `toolkit.data.document_fields.FieldCounts`).
    """
    result: Counter[str] = Counter()
    for counts in fields:
        carried = (*writer.carries([path for path in counts if path not in SAME]),)

        def is_carried(path: str) -> bool:
            return any(path == item or path.startswith(f"{item}.") for item in carried)  # noqa: B023

        for path, documents in counts.items():
            if not path.endswith(".") and path not in SAME and not is_carried(path):
                result[path.replace(DOT, ".")] += documents
        for same, path in SAME.items():
            if path in result and is_carried(same.partition("=")[2]):
                result[path] -= counts.get(same, 0)
    return dict(sorted((+result).items()))


def part_name(stem: str, suffix: str, number: int, parts: int) -> str:
    """Return ``en/en.jsonl.gz`` if there is one part, else ``en/en_part_1.jsonl.gz``, numbered from 1."""
    return f"{stem}{suffix}" if parts == 1 else f"{stem}_part_{number}{suffix}"


@functools.lru_cache(1 << 12)  # each piece of a document is asked about
def check_label(label: str) -> str:
    """Return the label, if it cannot lead out of the output folder.

    Raises:
        DataError: if it is not letters, digits, ``_ . -`` and spaces between them, beginning with a letter or digit.
    """
    if not _LABEL.fullmatch(label):
        raise DataError(
            "expected a label of letters, digits, _ . - and inner spaces, at most 100, that begins with one of the "
            f"first two, got {label!r}"
        )
    return label


@functools.lru_cache(1 << 12)
def check_folder(label: str) -> str:
    """Return the label as `check_label` does; it may lead into folders: ``a/b``."""
    for part in label.split("/"):
        check_label(part)
    return label


def find_writer(reference: str, where: str) -> type[Writer]:
    """Return the class of an output format.

    Raises:
        ConfigError: if there is none; it begins with the place in the configuration.
    """
    with errors_from(where):
        return WRITERS.find(reference)
