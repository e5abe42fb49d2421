"""Facts about a dataset or an output; the card, the Croissant document and the report present them."""

from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from toolkit.config.scale import Scale
from toolkit.data.schema import Type
from toolkit.mix.rule_effects.counts import RuleEffect, SizesByLabel, Totals
from toolkit.records.origins import Origin

if TYPE_CHECKING:
    from toolkit.inspect.targets import Format


class DataFile(msgspec.Struct, frozen=True):
    """A file below the root.

    Attributes:
        path: Path below the root.
        size: Stored bytes.
        sha256: Digest of the stored bytes.
        media_type: Type of the content, whether compressed or not.
        rows: Documents that it holds, if that is known.
        content_size: Uncompressed bytes, if that is known.
        lines: Number and digest of its lines (see `scan.join_digests`), if these are known.
        split: Split that the file is of, where a mix has divided its files by split; else empty.
    """

    path: str
    size: int
    sha256: str
    media_type: str
    rows: int | None = None
    content_size: int | None = None
    lines: tuple[int, int] | None = None
    split: str = ""


class ExampleRow(NamedTuple):
    """A row, decoded, with its file and its number there from 0."""

    path: str
    number: int
    value: dict[str, Any]


class FileGroup(msgspec.Struct, frozen=True):
    """Files of one kind.

    Attributes:
        includes: Globs over relative paths that match these files and no others, also where ``*`` spans folders.
        paths: Paths of the files.
        columns: Types of the rows' top-level keys, if all rows have been looked at, or are declared.
    """

    name: str
    description: str
    media_type: str
    includes: list[str]
    paths: list[str]
    columns: dict[str, Type] = {}


class RecordField(msgspec.Struct, frozen=True):
    """A field of a record type: a value in a column of its rows.

    Attributes:
        name: Name in the record type; parts of what was lifted out of an object are joined by ``.``.
        column: Top-level key of the rows.
        keys: Keys that lead from there to the value.
        type: Type of `toolkit.data.schema`, and ``datetime``, ``digits``, ``url`` for texts that are all of that form.
            An object has only scalars, and lists of such.
        references: Id of the field that lists its values; empty if none does.
        labels: Names of its parts whose values are on a declared scale; empty for its own values.
    """

    name: str
    column: str
    keys: tuple[str, ...]
    type: Type
    description: str = ""
    references: str = ""
    labels: tuple[str, ...] = ()


class PathField(msgspec.Struct, frozen=True):
    """A field from the place of a row: from the path of its file by a pattern of one group, or its number.

    Attributes:
        pattern: None for the row's number in the file, from 0, or another property as it is.
        references: Id as of `RecordField`.
        property: Property of the file, by Croissant's name; empty for the path, or without a pattern the number.
    """

    name: str
    description: str
    pattern: str | None = None
    references: str = ""
    property: str = ""


class Undescribed(NamedTuple):
    """A value of the rows without description, and the reason."""

    name: str
    why: str


class RecordType(msgspec.Struct, frozen=True):
    """A kind of row.

    Attributes:
        group: Group of the files that hold them.
        key: Names of the fields that identify one; of a part of a struct, after the struct's and a slash.
        scales: Scales that labels in its rows declare, by the name of the record set that lists their values.
        examples: First rows over the files in order.
    """

    name: str
    description: str
    group: str
    key: list[str]
    places: list[PathField]
    fields: list[RecordField]
    scales: dict[str, Scale] = {}
    undescribed: list[Undescribed] = []
    examples: list[ExampleRow] = []


class Label(msgspec.Struct, frozen=True):
    """A label of an output, with its files and, if counted, documents."""

    label: str
    documents: int | None
    paths: list[str] = []


class Split(NamedTuple):
    """A split with its share as asked for, and its documents."""

    name: str
    share: float
    documents: int


class Ingested(msgspec.Struct, frozen=True):
    """Inputs with the same ingest settings.

    Attributes:
        names: Names of the input files, without their folders.
        crawls: Crawls of Common Crawl, by the names of the inputs' paths.
        settings: Settings of the entry, with its format.
        counts: Counts by reason.
        in_place: True for files that are the documents themselves: none were written.
    """

    names: list[str]
    crawls: list[str]
    settings: dict[str, Any]
    documents: int
    counts: dict[str, int]
    in_place: bool = False


class Crawled(msgspec.Struct):
    """Documents of a source with WARC headers.

    Attributes:
        documents: Number of them.
        headers: Names, in the order in which they come, at most `fields.KEYS` and one more.
        dates: ``warc-date`` of the first and the last record.
    """

    documents: int = 0
    headers: dict[str, None] = {}
    dates: tuple[str, str] | None = None

    def add(self, other: "Crawled") -> None:
        """Add those of another file."""
        self.documents += other.documents
        self.headers |= other.headers
        if other.dates:
            first, last = self.dates or other.dates
            self.dates = (min(first, other.dates[0]), max(last, other.dates[1]))


class Tagged(msgspec.Struct, frozen=True):
    """A key of an attribute set.

    Attributes:
        made_by: Tagger, version, options as recorded, models with their names where these are known; None for a set
            of which nothing is recorded.
        in_rows: True if the described rows hold part of its values; else only rules have read them.
    """

    set: str
    key: str
    made_by: dict[str, Any] | None
    in_rows: bool = True


class Mixture(msgspec.Struct, frozen=True):
    """The work of a mix.

    Attributes:
        rules: Effect of each, in order, with its settings.
        statistics: Sizes by label of what was read and what stays.
    """

    toolkit: str
    format: str
    options: dict[str, Any]
    totals: Totals
    rules: list[tuple[RuleEffect, dict[str, Any]]]
    counts: dict[str, int]
    omitted: list[str]
    statistics: SizesByLabel = {}


class ClearedDocuments(msgspec.Struct, frozen=True):
    """Takedowns: sha256 of their lists, and the number of documents that were cleared, or dropped by a mix."""

    lists: list[str]
    documents: int


class Facts(msgspec.Struct, frozen=True):
    """Known facts of a dataset or an output.

    Attributes:
        root: Folder that all paths are below.
        label_name: Name of what labels are: ``language``, or ``label``.
        languages: Labels of languages that documents have, whether the files are divided by them or not, sorted.
        crawled: Documents of WARC records, by source; an empty one if rows do not say.
        crawls: Crawls that the metadata of documents name.
        takedown: Takedowns of a dataset, or what they had dropped from an output.
        rows: Documents that were looked at, if these are all.
        example: Path of the first document and the row, or of a file of text the text; None if examples are not wanted.
        id_keys: Keys that lead to the id of a row of the first group.
        prefix: Folder of that group's files, with a slash.
        format: Format of the files of an output; None of documents.
        is_output: True for the output of a mix, or a release in that form; else it is a dataset.
        taggers: Taggers of the attributes beside the documents that are described, or were mixed, by these' names.
        splits: Splits by hash of the id, if they were asked for.
        notes: Notes for whoever asked for the description.
        origin: Datasets that it was made from, where these are known.
    """

    root: str
    groups: list[FileGroup]
    files: list[DataFile]
    records: list[RecordType]
    labels: list[Label] = []
    label_name: str = "language"
    languages: list[str] = []
    ingested: list[Ingested] = []
    takedown: ClearedDocuments | None = None
    tagged: list[Tagged] = []
    mixture: Mixture | None = None
    crawled: dict[str, Crawled] = {}
    crawls: list[str] = []
    rows: int | None = None
    example: tuple[str, dict[str, Any] | str] | None = None
    id_keys: tuple[str, ...] = ("id",)
    prefix: str = ""
    format: "Format | None" = None
    splits: list[Split] = []
    notes: list[str] = []
    is_output: bool = False
    taggers: dict[str, str] = {}
    origin: Origin | None = None
