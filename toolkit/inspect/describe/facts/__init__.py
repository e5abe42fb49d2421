"""Facts about a dataset or an output, whatever they are printed as: files, record types, how it was made."""

from dataclasses import dataclass, field
from typing import Any

from toolkit.config.scale import Scale
from toolkit.data.schema import Type
from toolkit.inspect.targets import Format
from toolkit.mix.effects.counts import RuleEffect, SizesByLabel, Totals
from toolkit.records.origins import Origin


@dataclass(frozen=True)
class File:
    """A file below the root.

    Attributes:
        path: relative.
        size, sha256: of the stored bytes.
        media_type: of its content, whether compressed or not.
        rows: documents that it holds, if that is known.
        content_size: of its uncompressed bytes, if that is known.
        lines: number and digest of its lines (see `data_file.joined`), if these are known.
        split: that the file is of, where a mix has parted its files by split; else empty.
    """

    path: str
    size: int
    sha256: str
    media_type: str
    rows: int | None = None
    content_size: int | None = None
    lines: tuple[int, int] | None = None
    split: str = ""


@dataclass(frozen=True)
class Group:
    """Files of one kind.

    Attributes:
        includes: globs over relative paths that match these files and no others, also where ``*`` spans folders.
        paths: of the files.
        columns: types of the rows' top-level keys, if all rows have been looked at, or are declared.
        examples: first rows over the files in order, decoded.
    """

    name: str
    description: str
    media_type: str
    includes: list[str]
    paths: list[str]
    columns: dict[str, Type] = field(default_factory=dict)
    examples: list[dict[str, Any]] = field(default_factory=list)


@dataclass(frozen=True)
class Field:
    """A field of a record type: a value in a column of its rows.

    Attributes:
        name: in the record type; parts of what was lifted out of an object are joined by ``.``.
        column: top-level key of the rows.
        keys: that lead from there to the value.
        type: of `toolkit.data.schema`, and ``datetime``, ``digits``, ``url`` for texts that are all of that form. An
            object has only scalars, and lists of such.
        references: the id of the field that lists its values; empty if none does.
        scale: Record set of the scale of its values; empty without one.
    """

    name: str
    column: str
    keys: tuple[str, ...]
    type: Type
    description: str = ""
    references: str = ""
    scale: str = ""


@dataclass(frozen=True)
class PathField:
    """A field that is read from where the row lies: from the file's path by a pattern of one group, or its number.

    Attributes:
        pattern: None for the row's number in the file, from 0, or another property as it is.
        references: as of `Field`.
        property: of the file, by Croissant's name, that it is; empty for the path, or without a pattern the number.
    """

    name: str
    description: str
    pattern: str | None = None
    references: str = ""
    property: str = ""


@dataclass(frozen=True)
class Undescribed:
    """A value in the rows that cannot be described."""

    name: str
    why: str


@dataclass(frozen=True)
class RecordType:
    """A kind of row.

    Attributes:
        group: of the files that hold them.
        key: names of the fields that identify one; of a part of a struct, behind the struct's and a slash.
        scales: that labels in its rows declare, by the name of the record set that lists their values.
        examples: rows, decoded, with their file's path and their number.
    """

    name: str
    description: str
    group: str
    key: list[str]
    places: list[PathField]
    fields: list[Field]
    scales: dict[str, Scale] = field(default_factory=dict)
    undescribed: list[Undescribed] = field(default_factory=list)
    examples: list[tuple[str, int, dict[str, Any]]] = field(default_factory=list)


@dataclass(frozen=True)
class Label:
    """A label by which an output is cut.

    Attributes:
        documents: if they have been counted.
        paths: of its files.
    """

    label: str
    documents: int | None
    paths: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Split:
    """A split with its share as asked for, and its documents."""

    name: str
    share: float
    documents: int


@dataclass(frozen=True)
class Ingested:
    """Inputs that were read with the same settings.

    Attributes:
        names: of the input files, without their folders.
        crawls: of Common Crawl, by the names of the inputs' paths.
        settings: of the entry, with its format.
        counts: by reason.
        in_place: whether the files themselves are the documents, and none were written.
    """

    names: list[str]
    crawls: list[str]
    settings: dict[str, Any]
    documents: int
    counts: dict[str, int]
    in_place: bool = False


@dataclass(frozen=True)
class Crawled:
    """Documents of a source that are of WARC records, as the headers that were kept tell.

    Attributes:
        source: empty if rows do not say.
        documents: that were looked at.
        headers: names, in the order in which they come; empty if they are not fixed.
        dates: of the first and the last record.
    """

    source: str
    documents: int
    headers: list[str]
    dates: tuple[str, str] | None


@dataclass(frozen=True)
class Example:
    """The first document.

    Attributes:
        path: of its file.
        value: the row, decoded; of a file of text, the text.
    """

    path: str
    value: dict[str, Any] | str


@dataclass(frozen=True)
class Tagged:
    """A key of an attribute set.

    Attributes:
        made_by: tagger, version, options as recorded, models with their names where these are known; None for a set
            of which nothing is recorded.
        in_rows: whether something of its values is in the rows that are described; else only rules have read them.
    """

    set: str
    key: str
    made_by: dict[str, Any] | None
    in_rows: bool = True


@dataclass(frozen=True)
class Mixture:
    """The work of a mix.

    Attributes:
        rules: what each did, in order, with its settings.
        statistics: by label, what was read and what stays.
    """

    toolkit: str
    format: str
    options: dict[str, Any]
    totals: Totals
    rules: list[tuple[RuleEffect, dict[str, Any]]]
    counts: dict[str, int]
    omitted: list[str]
    statistics: SizesByLabel = field(default_factory=dict)


@dataclass(frozen=True)
class Facts:
    """All that is known of a dataset or an output.

    Attributes:
        root: folder that all paths are below.
        label_name: what labels are: ``language``, or ``label``.
        languages: labels of languages that documents have, whether the files are cut by them or not, sorted.
        crawled: documents of WARC records, by source.
        crawls: that the metadata of documents name.
        rows: documents that were looked at, if these are all.
        example: the first document, if examples are wanted.
        id_keys: that lead to the id of a row of the first group.
        prefix: of the paths of that group.
        format: Format of the files of an output; None of documents.
        is_output: whether it is the output of a mix, or a release in that form; else a dataset.
        taggers: of the attributes beside the documents that are described, or were mixed, by the names of these.
        splits: by hash of the id, if they were asked for.
        notes: what whoever asked for the description should know.
        origin: datasets that it was made from, where these are known.
    """

    root: str
    groups: list[Group]
    files: list[File]
    records: list[RecordType]
    labels: list[Label] = field(default_factory=list)
    label_name: str = "language"
    languages: list[str] = field(default_factory=list)
    ingested: list[Ingested] = field(default_factory=list)
    tagged: list[Tagged] = field(default_factory=list)
    mixture: Mixture | None = None
    crawled: list[Crawled] = field(default_factory=list)
    crawls: list[str] = field(default_factory=list)
    rows: int | None = None
    example: Example | None = None
    id_keys: tuple[str, ...] = ("id",)
    prefix: str = ""
    format: Format | None = None
    splits: list[Split] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    is_output: bool = False
    taggers: dict[str, str] = field(default_factory=dict)
    origin: Origin | None = None
