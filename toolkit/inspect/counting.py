"""Statistics of one file in parts, each kept with a digest: what was counted once is there for all.

``<folder>/<part>/<name>.counts``  a `Record`, written last; of one ``--by``, of lengths, samples, or attributes
``<folder>/<part>/<name>.groups``  the groups of a ``--by``

The name of the file stands there by `toolkit.storage.paths.escape_path`: what matches a glob for data would be taken
for data.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Any

import msgspec
import xxhash

from toolkit.aggregate import groups, histogram, keys
from toolkit.aggregate.columns import columns_of, decoding, rows_of
from toolkit.aggregate.distributions import Distribution, Distributions, Leaf, leaves
from toolkit.aggregate.samples import SampledDocument, Samples, chosen
from toolkit.aggregate.tables import LengthsByLabel
from toolkit.config.settings import ConfigStruct
from toolkit.data import record_logs, row_index, schema
from toolkit.data.documents import BAD_ROW, Document, LateDocument, Rejected
from toolkit.data.schema import Type
from toolkit.errors import DAMAGED, ConfigError, DataError
from toolkit.execution.executors import Report
from toolkit.execution.grouped import Work, run_batch
from toolkit.execution.progress import Position
from toolkit.inspect.documents import ARGUMENTS, FileDocuments, names_in_file, shard_documents
from toolkit.inspect.targets import Format, Home
from toolkit.mix.join import JoinedShard, inputs_of, joint_rows, names_for_rules
from toolkit.mix.writer import Reading, Writer
from toolkit.rules.checker import Name
from toolkit.rules.ruleset import RuleSet
from toolkit.storage import Stat, json_files, paths
from toolkit.storage.freshness import Artifact, FileRecord, State, state
from toolkit.storage.models import cache_folder
from toolkit.storage.reading import version_read
from toolkit.storage.record_log import Group, RecordLog
from toolkit.storage.stores.local.scratch import scratch
from toolkit.text.batch import in_blocks
from toolkit.text.counting import COLUMNS, measure, measure_json

LABELS_AT = ("language.label", "oscar.identification.label")
"""Expressions for the label of documents, if no mix has one."""

VERSION = 5
"""Of what is counted; files that were counted by another version are counted anew."""


class Settings(ConfigStruct, kw_only=True):
    """The settings of a count.

    Attributes:
        by: `toolkit.aggregate.keys.NAMED` or expressions.
        label: expression of the label, None for what a file says by itself.
        unicode: True if Unicode's words are counted.
        attributes: Attributes of which distributions are made: paths, or parts of them.
        lengths: True if it is counted how long documents are, by label.
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
        """Return a digest of all settings beside the inputs."""
        return xxhash.xxh3_128_hexdigest(msgspec.json.encode((VERSION, self, more), enc_hook=repr))

    @property
    def split(self) -> "list[Settings]":
        """Return the settings of each part: each ``--by``, then attributes, lengths and samples."""
        nothing = Settings(by=[], label=self.label, first=self.first)
        of = partial(msgspec.structs.replace, nothing)
        unlabelled = {*keys.NAMED} - {*keys.LABELS}
        settings = [of(by=[by], unicode=self.unicode, label=None if by in unlabelled else self.label) for by in self.by]
        settings += [of(attributes=self.attributes)] if self.attributes else []
        settings += [of(lengths=True)] if self.lengths else []
        return settings + ([of(samples=self.samples)] if self.samples else [])

    def only(self, parts: "Sequence[Settings]") -> "Settings":
        """Return the settings for some of the parts."""
        return msgspec.structs.replace(
            self,
            label=next((part.label for part in parts if part.label), None),
            by=[by for part in parts for by in part.by],
            attributes=[name for part in parts for name in part.attributes],
            lengths=any(part.lengths for part in parts),
            samples=max(part.samples for part in parts),
        )


class Part(ConfigStruct):
    """A part of the counts.

    Attributes:
        settings: Settings of it alone.
        folder: Folder that its results are kept in.
        sets: Sets that are joined for it.
    """

    settings: Settings
    folder: str
    sets: list[str]


class CountJob(ConfigStruct, kw_only=True):
    """A file to count: a shard with the sets that are joined to it, or a file of an output.

    Attributes:
        parts: Parts of the settings.
        columns: folder for the columns of shards; empty if they are not kept.
        name: Name of the file in these folders.
        format: Format of a file of an output; None for documents.
        types: Types of the attributes that are in the documents of an output, by name, in the form of
            `toolkit.data.schema`.
        label: Label of a file of an output, if its documents do not say.
    """

    settings: Settings
    parts: list[Part] = []
    columns: str = ""
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

    def path_of(self, part: Part, suffix: str = "counts") -> str:
        """Return the path of a part's counts."""
        return paths.join(part.folder, f"{paths.escape_path(self.name)}.{suffix}")


class Record(Artifact, frozen=True, kw_only=True):
    """The counts of a file.

    Attributes:
        size, stamp: of the file, the quick test.
        content: xxh3-128 (hex) of its uncompressed bytes.
        attributes: xxh3-128 (hex) of the joined attributes, by set.
        label: Label that the file gave its documents.
        documents: Documents that were read.
        distributions: Distributions of attributes.
        lengths: Lengths by label.
        samples: Samples that are kept.
    """

    size: int
    stamp: str
    content: str
    attributes: dict[str, str]
    label: str | None
    documents: int
    distributions: list[Distribution] = []
    lengths: LengthsByLabel = {}
    samples: list[SampledDocument] = []

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
    """Return the names for expressions, and their variables."""
    if work.shard:
        sets = work.shard.sets
        return names_for_rules(sets, work.shard.stream.own), (*(f"r{i}" for i in range(len(sets))), "document")
    return names_in_file(work.writer, work.types), ARGUMENTS


_REJECTED = Name(schema.nullable(schema.from_annotation(Rejected, "rejected")), "document.rejected")
"""Of documents that a mix has dropped."""


def keys_of(work: CountJob) -> keys.Keys:
    """Return the keys of the documents of a file.

    Raises:
        ConfigError: if they cannot be grouped so.
    """
    names, arguments = names_of(work)
    if work.writer is None or Reading() == work.writer.READING:  # lines are as those of documents
        names = {"rejected": _REJECTED} | names
    label = work.settings.label or (msgspec.json.encode(work.label).decode() if work.label is not None else None)
    return keys.Keys(work.settings.by, names, arguments, label, work.path)


def types_of(work: CountJob) -> dict[str, Type]:
    """Return the types of the attributes, by their names in expressions."""
    return {key: name.type for key, name in names_of(work)[0].items() if not name.open}


def leaves_of(work: CountJob) -> dict[str, list[Leaf]]:
    """Return the leaves of the requested distributions, by attribute."""
    results: dict[str, list[Leaf]] = {}
    for key, type_ in types_of(work).items():
        for leaf in leaves(key, type_):
            if any(is_part(leaf.path, attribute) for attribute in work.settings.attributes):
                results.setdefault(key, []).append(leaf)
    return results


def is_part(path: str, attribute: str) -> bool:
    """Return True if a path is of, or inside, an attribute; ``all`` is every one."""
    inner = path.removeprefix("len(").removesuffix(")")
    return attribute in ("all", path, inner) or inner.startswith((f"{attribute}.", f"{attribute}[]"))


# --- counting ---------------------------------------------------------------------------------------------------------


def count_file(work: CountJob, report: Report, group: Group | None = None) -> CountResult:
    """Count a file, unless it is counted. With a group, what is counted becomes durable with it.

    Raises:
        DataError: if it, or what is joined to it, is not what it should be; an expression cannot use a value.
    """
    before = paths.stat(work.path)
    if before is None:
        raise DataError(f"expected a file, got {paths.missing_reason(work.path)}; {DAMAGED}", path=work.path)
    content, attributes = "", dict[str, str]()
    if work.shard and work.shard.sets:
        documents, attributes = inputs_of(work.shard)
        content = documents.content
    elif work.shard and work.columns and (indexed := row_index.current(work.shard.dataset, work.shard.shard)):
        content = indexed.content
    records = [json_files.load(work.path_of(part), Record) for part in work.parts]
    states = [_state(work, part, old, content, attributes) for part, old in zip(work.parts, records, strict=True)]
    todo = [part for part, state in zip(work.parts, states, strict=True) if not state.is_done]
    if not todo:
        number = max(old.documents for old in records if old)
        report(number, 0)
        return CountResult(documents=number, skipped=True)
    for part in todo:
        paths.remove(work.path_of(part))
    job = msgspec.structs.replace(work, settings=work.settings.only([part.settings for part in todo]))
    with scratch() as temporary:
        counts = _Counts(job, temporary)
        source = _FileDocuments(job, counts.rules, report, group, reads=counts.needs_documents or not content)
        try:
            for rows in source:
                counts.add(rows)
        except DataError as error:
            raise (
                error if error.path else DataError(error.message, path=work.path, line=error.line, id=error.id)
            ) from None
        content = content or source.content
        counts.save(todo, version_read(work.path, before, content), content, attributes, group)
    return CountResult(documents=counts.documents, skipped=False)


def _log_of(work: CountJob) -> RecordLog:
    assert work.shard
    return record_logs.of(work.shard.dataset)


COUNT = Work(count_file, partial(run_batch, count_file, _log_of))
"""Counts shards; `count_file` alone counts files of an output."""


class _Counts:
    """The counts of a file.

    Args:
        work: the file.
        temporary: folder for what does not fit into memory.

    Attributes:
        documents: so far.
        rules: Rules that say what must be read.
        needs_documents: True if texts, or more of the documents than their sizes, must be read.
    """

    def __init__(self, work: CountJob, temporary: str) -> None:
        self._work, settings = work, work.settings
        self._keys, leaves_by_key = keys_of(work), leaves_of(work)
        self.rules = decoding(self._keys.rules, leaves_by_key)
        self.needs_documents = bool(
            self._keys.needs_documents or settings.unicode or settings.samples or settings.first is not None
        )
        self._getters = [(*_place(work, key), leaf) for key, leave in leaves_by_key.items() for leaf in leave]
        self._tables = [groups.Groups(paths.join(temporary, str(i))) for i in range(len(settings.by))]
        self._distributions, self._lengths = Distributions(), LengthsByLabel()
        self._samples = Samples(settings.samples)
        self.documents = 0

    def add(self, rows: keys.CountedRows) -> None:
        """Add documents."""
        settings = self._work.settings
        for table, column in zip(self._tables, self._keys.of(rows), strict=True):
            table.add(column, rows.sizes)
        labels = self._keys.labels(rows) if self._getters or settings.lengths or settings.samples else []
        for label, some in _places(labels).items():
            for place, name, leaf in self._getters:
                values = [getattr(rows.arguments[i][place], name) for i in some]
                self._distributions.add(label, leaf, [item for value in values for item in leaf.get(value)])
            if settings.lengths:
                self._lengths.setdefault(label, histogram.Histogram()).add(rows.sizes[some, _CHARS])
        for number, label in enumerate(labels if settings.samples else ()):
            name = f"{self._work.name}:{rows.number + number + 1}"
            self._samples.add(name, label, rows.arguments[number][-1])
        self.documents += len(rows.arguments)

    def save(
        self, parts: Sequence[Part], read: Stat, content: str, attributes: Mapping[str, str], group: Group | None
    ) -> None:
        """Keep the parts."""
        together = group.files if group else None
        tables = iter(self._tables)
        for part in parts:
            if part.settings.by:
                groups.write(self._work.path_of(part, "groups"), iter(next(tables)), together)
            record = Record(
                size=read.size,
                stamp=read.stamp,
                content=content,
                attributes={name: attributes[name] for name in part.sets},
                label=self._work.label,
                documents=self.documents,
                distributions=self._distributions.finished() if part.settings.attributes else [],
                lengths=self._lengths if part.settings.lengths else {},
                samples=self._samples.finish() if part.settings.samples else [],
            )
            json_files.save(self._work.path_of(part), record, together)


_CHARS = COLUMNS.index("chars")


def _places(labels: Sequence[str]) -> dict[str, list[int]]:
    """Return the places of each label."""
    results: dict[str, list[int]] = defaultdict(list)
    for place, label in enumerate(labels):
        results[label].append(place)
    return results


def _state(work: CountJob, part: Part, record: Record | None, content: str, attributes: Mapping[str, str]) -> State:
    """Return the state of a part of the counts; the content of a file is only known where sets are joined to it."""

    def files(record: Record) -> list[FileRecord]:
        of_groups = [FileRecord(work.path_of(part, "groups"))] if part.settings.by else []
        stamp = None if content else record.stamp
        return [*of_groups, FileRecord(work.path, record.size, stamp, record.content)]

    inputs = [("", content or (record.content if record else "")), *((name, attributes[name]) for name in part.sets)]
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


def _place(work: CountJob, key: str) -> tuple[int, str]:
    """Return the place of the values of a key: their place among those of a document, and their name there."""
    if work.shard is None:
        return 0, schema.field_name(key)
    return next(
        (i, schema.field_name(item.key))
        for i, joined in enumerate(work.shard.sets)
        for item in joined.keys
        if item.name == key and not item.hidden
    )


class _FileDocuments:
    """The documents of a file: without their texts where attributes, row index and columns say all that is asked.

    Attributes:
        content: xxh3-128 (hex) of the uncompressed bytes, once all have been read; empty if it is known otherwise.
    """

    def __init__(self, work: CountJob, rules: RuleSet, report: Report, group: Group | None, *, reads: bool) -> None:
        self.content = ""
        self._stored: Callable[[], int] = int
        self._work, self._rules, self._report, self._group, self._reads = work, rules, report, group, reads

    def __iter__(self) -> Iterator[keys.CountedRows]:
        work, shard = self._work, self._work.shard
        if shard and work.columns and not self._reads:
            for rows in rows_of(shard, self._rules, columns_of(shard, work.columns, self._report, self._group)):
                yield rows
                self._report(len(rows.arguments), 0)
            return
        position = Position(self._report, lambda: self._stored())
        number = 0
        documents = islice(self._documents(), work.settings.first)
        for block in in_blocks(documents, lambda row: len(row[0].row) or len(row[0].text)):
            sizes = _sizes([document for document, _ in block], work, number)
            yield keys.CountedRows(number, [(*values, document) for document, values in block], sizes, {})
            number += len(block)
            position(len(block))

    def _documents(self) -> Iterator[tuple[Document, list[Any]]]:
        work, needs = self._work, self._rules.needs
        if work.shard is None:
            source = FileDocuments(work.file, work.writer, work.max_document_bytes, needs.fields, work.types)
            self._stored = source.stored
            yield from source
            self.content = source.content
        elif work.shard.sets:
            for document, _, _, values in joint_rows(work.shard, needs.keys, needs.fields, late=True):
                yield document, values
        else:
            shard = work.shard
            with shard.dataset.lines(shard.shard, work.max_document_bytes, digest=True) as lines:
                self._stored = lines.stored
                for document in shard_documents(lines, work.path):
                    yield document, []
            self.content = lines.content or ""


# --- where counts are kept, and what those of all files come to -------------------------------------------------------


def base_folder(home: Home) -> str:
    """Return the bookkeeping folder of counts in a home; the cache for external files.

    Raises:
        ConfigError: if it is the cache of a user who has none.
    """
    if home.kind == "files":
        try:
            return cache_folder()
        except RuntimeError:
            raise ConfigError("expected a home folder, got a user without one; set TOOLKIT_CACHE") from None
    return paths.work_folder(home.root) if home.kind == "output" else paths.join(home.root, paths.BOOKKEEPING)


def counts_folder(folder: str) -> str:
    """Return the folder of this version's counts."""
    return paths.join(folder, "stats", f"v{VERSION}")


def merged_groups(works: Iterable[CountJob], number: int, folder: str) -> Iterable[groups.Group]:
    """Return the groups of all files for a ``--by``, by its number; folder: for what does not fit into memory."""
    return groups.merged((work.path_of(work.parts[number], "groups") for work in works), folder)


class MergedCounts(msgspec.Struct):
    """The counts of all documents, beside their groups."""

    distributions: list[Distribution] = []
    lengths: LengthsByLabel = {}
    samples: list[SampledDocument] = []


def merged_records(works: Iterable[CountJob]) -> MergedCounts:
    """Return the merged records of all files."""
    distributions, result = Distributions(), MergedCounts()
    for work in works:
        records = (json_files.load_strictly(work.path_of(part), Record) for part in work.parts if not part.settings.by)
        for record in filter(None, records):
            distributions.merge(record.distributions)
            for label, length in record.lengths.items():
                result.lengths.setdefault(label, histogram.Histogram()).merge(length)
            result.samples = chosen([*result.samples, *record.samples], work.settings.samples)
    result.distributions = distributions.finished()
    return result
