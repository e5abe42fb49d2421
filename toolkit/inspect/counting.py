"""Statistics of one file, kept with the digest of what was read, so that only what has changed is read again.

``<folder>/<name>.counts``    a `Record`, written last
``<folder>/<name>.0.groups``  the groups of the first ``--by``, and so on

The name of the file stands there by `toolkit.storage.paths.unlike_data`: what matches a glob for data would be taken
for data.
"""

import re
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import msgspec
import xxhash

from toolkit.aggregate import groups
from toolkit.aggregate.distributions import Distribution, Distributions, Leaf, leaves
from toolkit.aggregate.histogram import Histogram
from toolkit.aggregate.keys import Keys
from toolkit.aggregate.samples import Sample, Samples, chosen
from toolkit.aggregate.tables import LengthsByLabel
from toolkit.config.settings import ConfigStruct
from toolkit.data import schema
from toolkit.data.documents import BAD_ROW, Document, LateDocument, Rejected
from toolkit.data.schema import Type
from toolkit.errors import DAMAGED, ConfigError, DataError, ToolkitError
from toolkit.inspect.documents import ARGUMENTS, FileDocuments, names_in_file, shard_documents
from toolkit.inspect.targets import Format, Home
from toolkit.mix.join import JoinedShard, inputs_of, joint_rows
from toolkit.mix.joined_sets import names_for_rules
from toolkit.mix.settings import work_folder
from toolkit.mix.writer import Reading, Writer
from toolkit.rules.checker import Name
from toolkit.runs.executors import Report
from toolkit.runs.progress import Position
from toolkit.storage import json_files, store_of
from toolkit.storage.artifact import Artifact, FileRecord, State, state
from toolkit.storage.models import cache_folder
from toolkit.storage.paths import (
    BOOKKEEPING,
    join,
    lacking,
    parent_of,
    remove,
    remove_empty_folders,
    remove_tree,
    stat,
    unlike_data,
)
from toolkit.storage.reading import version_read
from toolkit.text.batch import in_blocks
from toolkit.text.counting import COLUMNS, measure, measure_json
from toolkit.text.kernels.signatures import Array

VERSION = 3
"""Of what is counted; files that were counted by another version are counted anew."""


class Settings(ConfigStruct, kw_only=True):
    """The settings of a count.

    Attributes:
        by: `toolkit.aggregate.keys.NAMED` or expressions.
        label: expression of the label, None for what a file says by itself.
        unicode: whether Unicode's words are counted.
        attributes: of which distributions are made: paths, or parts of them.
        lengths: whether it is counted how long documents are, by label.
        samples: documents that are kept as samples, see `toolkit.aggregate.samples`.
        first: at most so many documents of a file.
    """

    by: list[str]
    label: str | None = None
    unicode: bool = False
    attributes: list[str] = []
    lengths: bool = False
    samples: int = 0
    first: int | None = None

    def digest(self, *more: object) -> str:
        """Return a digest of what determines the numbers beside the inputs."""
        return xxhash.xxh3_128_hexdigest(msgspec.json.encode((VERSION, self, more), enc_hook=repr))


class CountJob(ConfigStruct, kw_only=True):
    """A file to count: a shard with the sets that are joined to it, or a file of an output.

    Attributes:
        folder: that results are kept in.
        name: of the file in it.
        format: of a file of an output; None for documents.
        types: of the attributes that are in the documents of an output, by name, in the form of `toolkit.data.schema`.
        label: of a file of an output, if its documents do not say.
    """

    settings: Settings
    folder: str
    name: str
    shard: JoinedShard | None = None
    file: str = ""
    format: Format | None = None
    types: dict[str, Any] = {}
    label: str | None = None
    max_document_bytes: int

    @property
    def path(self) -> str:
        """Return the path of the documents."""
        return self.shard.path if self.shard else self.file

    @property
    def writer(self) -> Writer | None:
        """Return the format of a file of an output; None for documents."""
        return self.format.writer() if self.format else None

    @property
    def record_path(self) -> str:
        return join(self.folder, unlike_data(self.name) + ".counts")

    def groups_path(self, number: int) -> str:
        """Return the path of the groups of the ``--by`` of that number."""
        return join(self.folder, f"{unlike_data(self.name)}.{number}.groups")


class Record(Artifact, frozen=True, kw_only=True):
    """The counts of a file.

    Attributes:
        size, stamp: of the file, the quick test.
        content: xxh3-128 (hex) of its uncompressed bytes.
        attributes: likewise of the joined attributes, by set.
        label: that the file gave its documents.
        documents: that were read.
        distributions: of attributes.
        lengths: by label.
        samples: that are kept.
    """

    size: int
    stamp: str
    content: str
    attributes: dict[str, str]
    label: str | None
    documents: int
    distributions: list[Distribution]
    lengths: LengthsByLabel = {}
    samples: list[Sample] = []

    @property
    def lineage(self) -> dict[str, str]:
        return {"": self.content, **self.attributes}

    @property
    def made_with(self) -> tuple[str | None]:
        return (self.label,)


class CountResult(ConfigStruct):
    """The outcome of a count."""

    documents: int
    skipped: bool


def names_of(work: CountJob) -> tuple[dict[str, Name], tuple[str, ...]]:
    """Return what expressions may use, and the variables that this refers to."""
    if work.shard:
        sets = work.shard.sets
        return names_for_rules(sets, work.shard.stream.own), (*(f"r{i}" for i in range(len(sets))), "document")
    return names_in_file(work.writer, work.types), ARGUMENTS


_REJECTED = Name(schema.nullable(schema.from_annotation(Rejected, "rejected")), "document.rejected")
"""Of documents that a mix has dropped."""


def keys_of(work: CountJob) -> Keys:
    """Return the keys of the documents of a file.

    Raises:
        ConfigError: if they cannot be grouped so.
    """
    names, arguments = names_of(work)
    if work.writer is None or Reading() == work.writer.READING:  # lines are as those of documents
        names = {"rejected": _REJECTED} | names
    label = work.settings.label or (msgspec.json.encode(work.label).decode() if work.label is not None else None)
    return Keys(work.settings.by, names, arguments, label, work.path)


def types_of(work: CountJob) -> dict[str, Type]:
    """Return the types of the attributes, by their names in expressions."""
    return {key: name.type for key, name in names_of(work)[0].items() if not name.open}


def leaves_of(work: CountJob) -> dict[str, list[Leaf]]:
    """Return the values of which distributions are made, by the key of their attribute."""
    found: dict[str, list[Leaf]] = {}
    for key, type_ in types_of(work).items():
        for leaf in leaves(key, type_):
            if any(is_part(leaf.path, wanted) for wanted in work.settings.attributes):
                found.setdefault(key, []).append(leaf)
    return found


def is_part(path: str, wanted: str) -> bool:
    """Return whether a path is of, or inside, the attribute that is wanted; ``all`` is every one."""
    inner = path.removeprefix("len(").removesuffix(")")
    return wanted in ("all", path, inner) or inner.startswith((f"{wanted}.", f"{wanted}[]"))


# --- counting ---------------------------------------------------------------------------------------------------------


def count_file(work: CountJob, report: Report) -> CountResult:
    """Count a file, unless that has been done.

    Raises:
        DataError: if it, or what is joined to it, is not what it should be; an expression cannot use a value.
    """
    before = stat(work.path)
    if before is None:
        raise DataError(f"expected a file, got {lacking(work.path)}; {DAMAGED}", path=work.path)
    content, attributes = "", dict[str, str]()
    if work.shard and work.shard.sets:
        documents, attributes = inputs_of(work.shard)
        content = documents.content
    old = json_files.load(work.record_path, Record)
    if old and _state(work, old, content, attributes).is_done:
        report(old.documents, 0)
        return CountResult(documents=old.documents, skipped=True)
    remove(work.record_path)
    keys, leaves_by_key = keys_of(work), leaves_of(work)
    distributions, lengths = Distributions(), LengthsByLabel()
    samples = Samples(work.settings.samples)
    count = 0
    with tempfile.TemporaryDirectory(prefix="toolkit-stats-") as temporary:
        tables = [groups.Groups(join(temporary, str(i))) for i in range(len(work.settings.by))]
        rows = _Rows(work, keys, leaves_by_key)
        done = Position(report, lambda: rows.stored())
        for block in in_blocks(islice(rows, work.settings.first), lambda row: len(row[0].row) or len(row[0].text)):
            sizes = _sizes([document for document, _ in block], work, count)
            found = list(zip(*_keys(block, keys, work, count), strict=True))
            for table, column in zip(tables, found, strict=True):
                table.add(column, sizes)
            if leaves_by_key:
                _add_values(distributions, block, keys, rows.getters)
            if work.settings.lengths:
                _add_lengths(lengths, block, keys, sizes)
            if work.settings.samples:
                for number, (document, values) in enumerate(block, count + 1):
                    samples.add(f"{work.name}:{number}", keys.label(*values, document), document)
            count += len(block)
            done(len(block))
        for number, table in enumerate(tables):
            groups.write(work.groups_path(number), iter(table))
    content = content or rows.content
    read = version_read(work.path, before, content)
    record = Record(
        size=read.size,
        stamp=read.stamp,
        content=content,
        attributes=attributes,
        label=work.label,
        documents=count,
        distributions=distributions.finished(),
        lengths=lengths,
        samples=samples.kept(),
    )
    json_files.save(work.record_path, record)
    return CountResult(documents=count, skipped=False)


def _state(work: CountJob, record: Record | None, content: str, attributes: Mapping[str, str]) -> State:
    """Return the state of the counts of a file; its content is only known where sets are joined to it."""

    def files(record: Record) -> list[FileRecord]:
        of_groups = [FileRecord(work.groups_path(number)) for number in range(len(work.settings.by))]
        stamp = None if content else record.stamp
        return [*of_groups, FileRecord(work.path, record.size, stamp, record.content)]

    inputs = [("", content or (record.content if record else "")), *attributes.items()]
    return state(record, inputs, (work.label,), files)


def _sizes(documents: Sequence[Document], work: CountJob, before: int) -> Any:
    """Return the measures of the texts; before: number of documents before these."""
    reading = work.writer.READING if work.writer else Reading()
    unicode, joined = work.settings.unicode, reading.joined
    late = [document for document in documents if isinstance(document, LateDocument)]
    if len(late) < len(documents):
        return measure([document.text for document in documents], unicode=unicode, joined=joined)
    sizes, bad = measure_json([document.raw_text for document in late], unicode=unicode, joined=joined)
    for place in bad:
        try:
            sizes[place] = measure([late[place].text], unicode=unicode, joined=joined)[0]
        except BAD_ROW as error:
            message = f"expected a text in UTF-8, got another value - at $.{reading.text}: {error}"
            number = before + place + 1
            raise DataError(message, path=work.path, line=number, id=late[place].id or None) from None
    return sizes


def _keys(block: Sequence[tuple[Document, list[Any]]], keys: Keys, work: CountJob, before: int) -> Iterator[list[str]]:
    for number, (document, values) in enumerate(block, before + 1):
        try:
            yield keys.of(values, document)
        except DataError as error:
            raise DataError(error.message, path=work.path, line=number, id=document.id or None) from None


def _add_values(
    found: Distributions,
    block: Sequence[tuple[Document, list[Any]]],
    keys: Keys,
    getters: Sequence[tuple[int, str, Leaf]],
) -> None:
    """Add the values of a block; all those of a label at once."""
    by_label: dict[str, list[list[Any]]] = defaultdict(list)
    for document, values in block:
        by_label[keys.label(*values, document)].append(values)
    for label, rows in by_label.items():
        for place, name, leaf in getters:
            found.add(label, leaf, [each for values in rows for each in leaf.get(getattr(values[place], name))])


def _add_lengths(found: LengthsByLabel, block: Sequence[tuple[Document, list[Any]]], keys: Keys, sizes: Array) -> None:
    """Add the lengths of a block by label; sizes: what `toolkit.text.counting.measure` gives."""
    places: dict[str, list[int]] = defaultdict(list)
    for place, (document, values) in enumerate(block):
        places[keys.label(*values, document)].append(place)
    column = COLUMNS.index("chars")
    for label, some in places.items():
        found.setdefault(label, Histogram()).add(sizes[some, column])


class _Rows:
    """The documents of a file, each with the values that expressions see.

    Attributes:
        content: xxh3-128 (hex) of the uncompressed bytes, once all have been read; empty if it is known otherwise.
        getters: of the distributions: place among the values, the key's name there, what is taken of it.
        stored: returns how many bytes of the file have been read; none while sets are joined to it.
    """

    def __init__(self, work: CountJob, keys: Keys, wanted: Mapping[str, list[Leaf]]) -> None:
        self.content = ""
        self.stored: Callable[[], int] = int
        self._work = work
        self._used = keys.used | set(wanted)
        self._fields = {**keys.used_fields, **{key: {""} for key in wanted}}  # of these all
        self.getters = [
            (place, schema.field_name(name), leaf) for key, found in wanted.items()
            for place, name in [self._place(key)] for leaf in found
        ]  # fmt: skip

    def _place(self, key: str) -> tuple[int, str]:
        if self._work.shard is None:
            return 0, key
        return next(
            (i, each.key)
            for i, joined in enumerate(self._work.shard.sets)
            for each in joined.keys
            if each.name == key and not each.hidden
        )

    def __iter__(self) -> Iterator[tuple[Document, list[Any]]]:
        work = self._work
        if work.shard is None:
            source = FileDocuments(work.file, work.writer, work.max_document_bytes, self._fields, work.types)
            self.stored = source.stored
            yield from source
            self.content = source.content
        elif work.shard.sets:
            with ExitStack() as stack:
                for document, _, _, values in joint_rows(work.shard, stack, self._used, self._fields, late=True):
                    yield document, values
        else:
            shard = work.shard
            with shard.dataset.lines(shard.shard, work.max_document_bytes, digest=True) as lines:
                self.stored = lines.stored
                for document in shard_documents(lines, work.path):
                    yield document, []
            self.content = lines.content or ""


# --- where counts are kept, and what those of all files come to -------------------------------------------------------

_FORMER = re.compile(r"[0-9a-f]{32}|v(\d+)")


def base_folder(home: Home) -> str:
    """Return the bookkeeping folder that counts of what lies in a home are kept below; the cache for files of others.

    Raises:
        ConfigError: if it is the cache of a user who has none.
    """
    if home.kind == "files":
        try:
            return cache_folder()
        except RuntimeError:
            raise ConfigError("expected a home folder, got a user without one; set TOOLKIT_CACHE") from None
    return work_folder(home.root) if home.kind == "output" else join(home.root, BOOKKEEPING)


def counts_folder(folder: str) -> str:
    """Return the folder below a bookkeeping folder for what this version counts."""
    return join(folder, "stats", f"v{VERSION}")


def forget_former(folder: str) -> None:
    """Delete what an earlier version has kept below a bookkeeping folder, which nobody can ask for any more."""
    stats = join(folder, "stats")
    with suppress(ToolkitError, OSError):  # it may not be ours to write in
        former = [name for name in store_of(stats).folders(stats) if _is_former(name)]
        for name in former:
            remove_tree(join(stats, name))
        if former:
            remove_empty_folders(stats, parent_of(folder))


def _is_former(name: str) -> bool:
    found = _FORMER.fullmatch(name)
    return found is not None and int(found[1] or 0) < VERSION


MERGED = 4096
"""Groups that are merged at a time."""


def merged_groups(works: Iterable[CountJob], number: int, folder: str) -> Iterable[groups.Group]:
    """Return the groups of all files for the ``--by`` of that number; folder: for what does not fit into memory."""
    merged = groups.Groups(folder)
    for work in works:
        rows: Iterator[groups.Group] = groups.read(work.groups_path(number))
        while some := list(islice(rows, MERGED)):
            merged.add_sums([key for key, _ in some], [row for _, row in some])
    return merged


@dataclass
class Merged:
    """What is counted of all documents, beside their groups."""

    distributions: list[Distribution] = field(default_factory=list)
    lengths: LengthsByLabel = field(default_factory=dict)
    samples: list[Sample] = field(default_factory=list)


def merged_records(works: Iterable[CountJob]) -> Merged:
    """Return what the records of all files come to."""
    distributions, found = Distributions(), Merged()
    number = 0
    for work in works:
        number = work.settings.samples
        if not (work.settings.attributes or work.settings.lengths or number):
            continue
        if record := json_files.load_strictly(work.record_path, Record):
            distributions.merge(record.distributions)
            for label, each in record.lengths.items():
                found.lengths.setdefault(label, Histogram()).merge(each)
            found.samples = chosen([*found.samples, *record.samples], number)
    found.distributions = distributions.finished()
    return found
