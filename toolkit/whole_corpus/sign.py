"""Step 1, per shard: the signatures of documents that are joined with the values of expressions.

documents/X ──blocks──┐
attributes/<set>/X ───┴──> expressions ──Block──> the Signer of each entry ──> .toolkit/dedup/SET/signatures/X/…
"""

import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from itertools import chain, islice
from typing import Any, Self, cast

import msgspec
from msgspec.structs import replace

from toolkit.data import chosen_text, record_logs, row_index
from toolkit.data.alignment import attribute_lines
from toolkit.data.dataset import Dataset, IndexRow
from toolkit.data.document_fields import paths_in
from toolkit.data.documents import (
    BAD_ROW,
    DOCUMENT_DECODER,
    DocumentRow,
    FreshDocument,
    LateDocuments,
    LateRow,
    Rows,
    check_metadata,
)
from toolkit.data.row_index import Indexing, ShardState, current, indexing
from toolkit.errors import DataError
from toolkit.execution.blocks import Block, in_blocks
from toolkit.execution.executors import Report, Task
from toolkit.execution.grouped import ShardDone, ShardWork, shard_tasks
from toolkit.execution.progress import Position, Share
from toolkit.mix.join import JoinedShard, Joiner, JointBlock, RowDecoder, at_document, inputs_of, joint_blocks
from toolkit.records.sets import ShardAttributes
from toolkit.records.takedown import takedown_of
from toolkit.rules.text_edits import EditedDocument, edits_in, text_after
from toolkit.storage.freshness import State, state
from toolkit.storage.outputs import RowOutput
from toolkit.storage.paths import join, list_files, listing_cache, remove, stat
from toolkit.storage.reading import Lines, version_read
from toolkit.storage.record_log import Group
from toolkit.text.batch import Batch
from toolkit.text.editing import Edit
from toolkit.text.json_strings import DecodedTexts, decoded, documents_in
from toolkit.text.kernels.signatures import Array
from toolkit.whole_corpus import records as signature_records
from toolkit.whole_corpus.corpus_config import Entry
from toolkit.whole_corpus.expressions import Evaluator
from toolkit.whole_corpus.kind import Files, TextBlock

_ENCODER = msgspec.json.Encoder()
_ROWS = 1 << 12  # that are signed together where no text is read


class ShardToSign(ShardWork, kw_only=True):
    """A shard to sign for several entries in one pass."""

    entries: list[Entry]
    max_document_bytes: int


def works(dataset: Dataset, entries: list[Entry], shards: Sequence[str], max_document_bytes: int) -> list[Task[Any]]:
    """Return tasks to sign shards for the entries of one pass."""
    whole = ShardToSign(dataset=dataset, entries=entries, shard="", max_document_bytes=max_document_bytes)
    results = [msgspec.structs.replace(whole, shard=shard) for shard in shards]
    reads = {name for entry in entries for name in entry.reads}
    with dataset.listing_cache(reads), listing_cache(*(folder_of(dataset, entry) for entry in entries)):
        return shard_tasks(results, as_it_was)


def works_against(entry: Entry, share: tuple[int, int] | None, max_document_bytes: int) -> list[Task[Any]]:
    """Return tasks to sign the datasets of an entry's `against`; a share has its part of the shards."""
    tasks: list[Task[Any]] = []
    index, count = share or (0, 1)
    for other in entry.against:
        tasks += works(other, [entry], other.shards()[index::count], max_document_bytes)
    return [replace(task, key=f"{entry.set} {task.name}") for task in tasks]


def folder_of(dataset: Dataset, entry: Entry) -> str:
    """Return the folder of the signatures of a dataset's shards."""
    return signature_records.signatures_folder(dataset, entry.set)


def signatures_state(
    dataset: Dataset,
    entry: Entry,
    shard: str,
    documents: ShardState | None,
    *,
    quick: bool = False,
    learn: bool = False,
) -> State:
    """Return the state of a shard's signatures; `quick` and `learn` as of `ShardAttributes.state`."""
    record = signature_records.load_record(dataset, entry.set, shard)
    inputs = ShardAttributes(dataset, entry.set, shard, documents).inputs(entry.reads, quick=quick)
    result = state(record, inputs, entry.recorded, signature_records.files_in(dataset, entry.set, shard), quick=quick)
    if record and learn and result.stamps:
        folder = join(folder_of(dataset, entry), shard)
        files = {
            name: msgspec.structs.replace(file, stamp=result.stamps.get(join(folder, name), file.stamp))
            for name, file in record.files.items()
        }
        encoded = msgspec.json.encode(msgspec.structs.replace(record, files=files))
        record_logs.of(dataset).save({signature_records.place_of(entry.set, shard): encoded})
    return result


def outdated(work: ShardToSign, documents: ShardState | None, *, quick: bool = False, learn: bool = False) -> list[str]:
    """Return the sets with outdated signatures of a shard; `quick` and `learn` as of `signatures_state`."""
    return [
        entry.set
        for entry in work.entries
        if not signatures_state(work.dataset, entry, work.shard, documents, quick=quick, learn=learn).is_done
    ]


def as_it_was(work: ShardToSign) -> ShardDone | None:
    """Return the cached outcome of an unchanged shard, by records and stamps; None if that is not known.

    Nothing is read but these, and nothing written.
    """
    documents = current(work.dataset, work.shard)
    if documents is None or outdated(work, documents, quick=True):
        return None
    return ShardDone(shard=work.shard, documents=documents.rows)


def sign_shard(work: ShardToSign, report: Report) -> ShardDone:
    """Make the missing or outdated signatures of a shard.

    Raises:
        DataError: if documents, or attributes that are read, are not what they should be; nothing was written.
    """
    dataset, shard = work.dataset, work.shard
    indexed, digests = current(dataset, shard), dict[str, str]()
    todo = outdated(work, indexed, learn=True)
    if not todo:
        assert indexed
        report(indexed.rows, 0)
        return ShardDone(shard=shard, documents=indexed.rows)
    whole = _joined(work, todo)
    if indexed or whole.sets:
        indexed, digests = inputs_of(whole, learn=True)
    before = stat(whole.path)
    with Signing(work, todo) as signing:
        with ExitStack() as stack:
            index = indexed or stack.enter_context(indexing(dataset, shard, work.max_document_bytes))
            for block in _blocks(signing, index, report, stack):
                signing.add(*block)
        signing.finish()
    if indexed:
        version_read(whole.path, before, indexed.content)
    state_of_all = index.state if isinstance(index, Indexing) else index
    signing.record(state_of_all, digests)
    return ShardDone(shard=shard, documents=state_of_all.rows, written=todo)


_Rows = tuple[int, Batch, Sequence[list[Any]], Sequence[bytes] | None]
"""Arguments of `Signing.add`; names are there if the index proves the rows, which then need no parser of JSON."""


def _blocks(signing: "Signing", index: ShardState | Indexing, report: Report, stack: ExitStack) -> Iterator[_Rows]:
    """Yield a shard's documents, and report them after their use.

    Args:
        signing: Signatures that are made of them.
        index: State of documents that have been indexed; of new ones the index, which is made meanwhile.
        report: Report of the task.
        stack: Stack that closes the files.

    Raises:
        DataError: if documents or attributes are not what they should be, or not what was indexed.
    """
    whole, first = signing.whole, 0
    joiner = Joiner(whole, signing.keys, late=True)
    if isinstance(index, Indexing):
        for block in in_blocks(index.lines, index.lines.stored):
            rows, texts = _rows_to_index(block)
            documents = Batch(index.documents(rows), texts)
            yield first, documents, [[] for _ in documents], None
            first += len(documents)
            report(len(documents), block.stored)
        return
    if not signing.reads_documents:
        share = Share(report, index.rows, index.size)
        for documents, values in _without_documents(whole, signing.keys, stack):
            yield first, documents, values, None
            first += len(documents)
            share(len(documents))
    elif whole.sets:
        for joint in joint_blocks(whole, stack):
            documents, values = joiner.encoded(joint, texts=signing.reads_texts)
            yield joint.number, documents, values, None
            report(len(documents), joint.documents.stored)
    else:
        lines = stack.enter_context(whole.dataset.lines(whole.shard, whole.max_document_bytes, digest=True))
        position = Position(report, lines.stored)
        for data in lines.joined():
            names = None
            if plain := documents_in(data):
                names, decoded_texts = plain
                documents, values = Batch(LateDocuments(data, len(names)), decoded_texts), [list[Any]()] * len(names)
            else:
                documents, values = joiner.encoded(JointBlock(lines.number, Block(data.split(b"\n")), []))
            yield lines.number, documents, values, names
            lines.number += len(documents)
            position(len(documents))
        row_index.check_content(whole.dataset, whole.shard, index, lines.content)


class _PlainRow(LateRow, forbid_unknown_fields=True):
    """A row without other fields, its text still as JSON."""


_PLAIN_DECODER = msgspec.json.Decoder(_PlainRow)


def _rows_to_index(block: Block) -> tuple[Iterable[bytes], DecodedTexts | None]:
    """Return the rows of a block, and their texts if decoded together."""
    texts, lines = None, block.lines
    if not block.fault and not isinstance(lines[0], IndexRow):
        with suppress(*BAD_ROW):
            rows = list(map(_PLAIN_DECODER.decode, lines))
            for row in rows:
                check_metadata(row.metadata)
            texts = decoded([row.text for row in rows])
    if texts is None:
        return block, None
    return [
        IndexRow.of(FreshDocument(row.id, row.source, line, utf8, chars), paths_in(msgspec.structs.asdict(row)))
        for row, line, utf8, chars in zip(rows, lines, texts.texts, texts.chars.tolist(), strict=True)
    ], texts


def _without_documents(work: JoinedShard, keys: set[str], stack: ExitStack) -> Iterator[tuple[Batch, list[list[Any]]]]:
    """Yield documents without texts, and values of all sets."""
    from toolkit.mix.rule_effects.preview import indexed_rows  # which needs much

    names = next(i for i, joined in enumerate(work.sets) if joined.ours)
    decoders = [RowDecoder(item, keys, names=i == names or not item.ours) for i, item in enumerate(work.sets)]
    blocks = [
        indexed_rows(work, joined, decoder.decoder, row_index.read(work.dataset, work.shard, _ROWS), stack)
        for joined, decoder in zip(work.sets, decoders, strict=True)
    ]
    for rows in zip(*blocks, strict=True):
        columns = [decoder.columns(row) for decoder, row in zip(decoders, rows, strict=True)]
        yield Batch(rows[names]), [[*values] for values in zip(*columns, strict=True)]


def _joined(work: ShardToSign, todo: Sequence[str]) -> JoinedShard:
    """Return the shard with the joined sets of some entries: those of each entry behind one another."""
    joined = [item for entry in work.entries if entry.set in todo for item in entry.joined]
    return JoinedShard.of(work.dataset, joined, work.shard, work.max_document_bytes)


class Signing:
    """Makes the signatures of a shard: all documents, in order; then `finish`, and `record` when the files are there.

    A context manager; what was there before goes when it begins, and an error leaves nothing.

    Attributes:
        whole: the shard with the sets whose values are given with each document.
        keys: Keys of these sets that are asked for.
        reads_documents: True unless the names of documents and the values of these sets are enough.
        reads_texts: True if texts, or other fields of documents, are read, too.

    Args:
        work: the shard and entries.
        todo: the sets whose signatures are made.
        group: Group with which their records become durable; without one they are at once.
    """

    def __init__(self, work: ShardToSign, todo: Sequence[str], group: Group | None = None) -> None:
        self.whole = _joined(work, todo)
        self._shard = work.shard
        self._todo = [entry for entry in work.entries if entry.set in todo]
        self._log, self._group = record_logs.of(work.dataset), group

    def __enter__(self) -> Self:
        self._log.forget(signature_records.place_of(entry.set, self._shard) for entry in self._todo)
        places = [(entry, join(folder_of(self.whole.dataset, entry), self._shard)) for entry in self._todo]
        for _, folder in places:
            for name in list_files(folder):  # what another attempt at once has not ended stays
                remove(join(folder, name))
        self._files = ExitStack()
        try:
            self._entries = [_EntrySigning(entry, folder, self.whole.sets, self._files) for entry, folder in places]
        except BaseException:
            self._files.__exit__(*sys.exc_info())
            raise
        self.keys = {key for entry in self._entries for key in entry.keys}
        has_names = any(joined.ours for joined in self.whole.sets) and self.whole.dataset.duplicate_ids != "allow"
        self._takedown = takedown_of(self.whole.dataset)
        by_url = self._takedown is not None and self._takedown.entries.needs_url
        self.reads_texts = any(entry.reads_documents for entry in self._entries)
        self.reads_documents = not has_names or by_url or self.reads_texts
        return self

    def __exit__(self, *raised: Any) -> None:
        self._files.__exit__(*raised)

    def add(
        self, first: int, documents: Batch, values: Sequence[list[Any]], names: Sequence[bytes] | None = None
    ) -> None:
        """Take documents.

        Args:
            first: Number of documents before them.
            documents: Documents.
            values: Values of each in all joined sets.
            names: ``{"source":…,"id":…}`` of each, if they are known.
        """
        if names is None:
            listed = [{"source": document.source, "id": document.id} for document in documents]
            names = _ENCODER.encode_lines(listed).split(b"\n")[:-1]
        block, dataset = TextBlock(first, documents, [True] * len(documents), {}, names), self.whole.dataset
        if dataset.duplicate_ids == "allow":
            numbers = range(first + 1, first + len(documents) + 1)
            block = block._replace(places=[dataset.place_of(self._shard, number) for number in numbers])
            for document, place in zip(documents, block.places, strict=True):
                document.place = place
        listed_rows = {*self._takedown.rows(documents)} if self._takedown else set[int]()
        for entry in self._entries:
            try:
                entry.add(block, values, listed_rows)
            except DataError as error:
                raise at_document(error, self.whole, error.line or 0, error.id) from None

    def finish(self) -> None:
        """End the signatures, behind the last document."""
        self._results = [entry.signer.finish() for entry in self._entries]

    def record(self, documents: ShardState, digests: Mapping[str, str]) -> None:
        """Record the complete signatures.

        Args:
            documents: State of the documents.
            digests: Digests of the contents of the sets that were read, by name.
        """
        records = {}
        for entry, (counts, details) in zip(self._entries, self._results, strict=True):
            record = signature_records.SignatureRecord(
                input=documents,
                settings=entry.entry.recorded,
                reads={name: digests[name] for name in entry.entry.reads},
                files=entry.files.states(),
                rows=documents.rows,
                compared=entry.compared,
                counts=counts,
                details=details,
            )
            records[signature_records.place_of(entry.entry.set, self._shard)] = msgspec.json.encode(record)
        if self._group is None:
            self._log.save(records)
            return
        for place, encoded in records.items():
            self._group.save(place, encoded, self._log)


class _EntrySigning:
    """The signer of an entry, with its files and expressions.

    Args:
        entry: Entry of the section.
        folder: Folder of the shard's signatures.
        sets: Sets that are joined, those of the entry among them.
        stack: closes files.
    """

    def __init__(self, entry: Entry, folder: str, sets: list[Any], stack: ExitStack) -> None:
        self.entry = entry
        self.files = Files(folder, stack)
        self.names = RowOutput(self.files.path(signature_records.NAMES))
        self.files.add(signature_records.NAMES, self.names)
        kind, checked = entry.configured(), entry.checked()
        self.signer = kind.signer(self.files)
        of_sets = {key.name for joined in entry.joined for key in joined.keys}
        asks = any({*item.expression.names} - of_sets for item in checked)  # `metadata`, too, is the document's
        self.reads_documents = kind.TEXTS or asks or entry.text is not None
        self.keys = {name for item in checked for name in item.expression.names if name != "document"}
        self._edits = RowOutput(self.files.path(EDITS)) if edits_in(entry.text) else None
        if self._edits:
            self.files.add(EDITS, self._edits)
        self._evaluator = Evaluator(checked, len(entry.joined), entry.text)
        self._asks = bool(checked) or self._edits is not None
        self._columns = [next(i for i, item in enumerate(sets) if item is mine) for mine in entry.joined]
        self.compared = 0

    def add(self, block: TextBlock, values: Sequence[list[Any]], listed_rows: Collection[int]) -> None:
        """Give the signer documents with their values in all joined sets; rows of the takedown list do not compete."""
        if self._asks:
            mine = ([row[column] for column in self._columns] for row in values)
            answer = self._evaluator.block(block.first, block.documents, mine)
            block = answer._replace(names=block.names, places=block.places)
        if listed_rows:
            block = block._replace(competes=[mine and i not in listed_rows for i, mine in enumerate(block.competes)])
        self.compared += sum(block.competes)
        self.names.write_rows(block.names)
        if self._edits:
            self._edits.write_rows(
                [_ENCODER.encode(cast("EditedDocument", document).edits) for document in block.documents]
            )
        self.signer.add(block)


def names_of(folder: str, shard: str) -> Iterator[bytes]:
    """Yield ``{"source":…,"id":…}`` of each document of a signed shard."""
    from toolkit.data.alignment import MAX_ROW

    with Lines(join(folder, shard, signature_records.NAMES), MAX_ROW) as lines:
        yield from chain.from_iterable(lines.blocks())


def names_at(folder: str, shard: str, rows: Array) -> Iterator[bytes]:
    """Yield the names of some rows, in ascending order, as `names_of`."""
    from toolkit.data.alignment import MAX_ROW

    if not len(rows):
        return
    first = count = 0
    with Lines(join(folder, shard, signature_records.NAMES), MAX_ROW) as lines:
        for block in lines.blocks():
            behind = int(rows.searchsorted(first + len(block)))
            for row in rows[count:behind].tolist():
                yield block[row - first]
            first, count = first + len(block), behind


def names_of_rows(signed: signature_records.SignedShard, rows: Array) -> Iterator[list[str]]:
    """Yield source, id and perhaps place of rows, in ascending order."""
    for line, row in zip(names_at(signed.folder, signed.shard, rows), rows.tolist(), strict=True):
        name = _NAME.decode(line)
        yield [name["source"], name["id"], *filter(None, [signed.dataset.place_of(signed.shard, row + 1)])]


_NAME = msgspec.json.Decoder(dict[str, str])


def documents_of(signed: signature_records.SignedShard, is_wanted: Array) -> Iterator[DocumentRow]:
    """Yield the documents of a signed shard at chosen rows: bool, of each row.

    Raises:
        DataError: at the end, if the documents are others than those that were signed.
    """
    path = signed.dataset.shard_path(signed.shard)
    first = 0
    chosen = next(
        (setting[chosen_text.OPTION] for setting in signed.record.settings.values() if chosen_text.OPTION in setting),
        None,
    )
    with signed.dataset.lines(signed.shard, sys.maxsize, digest=True) as lines, _texts(signed, chosen) as texts:
        for block in lines.blocks():
            beside = list(islice(texts, len(block))) if texts else []
            for i in is_wanted[first : first + len(block)].nonzero()[0].tolist():
                row = next(Rows(iter([block[i]]), DOCUMENT_DECODER, path, first + i))[0]
                if texts:
                    other = beside[i]
                    row.text = other if isinstance(other, str) else text_after(row.text, other)
                yield row
            first += len(block)
    if lines.content != signed.record.input.content:
        raise DataError(
            "expected the documents that this run has read before, got a file that has changed; "
            "run again when no program writes to it",
            path=path,
        )


@contextmanager
def _texts(
    signed: signature_records.SignedShard, chosen: str | list[Any] | None
) -> Iterator[Iterator[str | list[Edit]] | None]:
    """Give the chosen texts of a shard's documents, empty for null; None without a choice.

    Where the text is an edited one, give the edits.

    Raises:
        DataError: at the end, if the set has other rows than those that were signed.
    """
    if chosen is None:
        yield None
        return
    if isinstance(chosen, list):
        yield edits_of(signed)
        return
    reference = chosen_text.parse_reference(chosen)
    path = signed.dataset.attribute_file(reference.set, signed.shard)
    with attribute_lines(path, digest=True) as lines:
        yield (reference.of(_ATTRIBUTES.decode(line).attributes) or "" for line in lines)
        for _ in lines:
            pass
    if lines.content != signed.record.reads[reference.set]:
        raise DataError("expected the texts that this run has read before, got a file that has changed", path=path)


EDITS = "edits.jsonl.gz"
"""File of a shard's signatures: the edits of each document's text, where an entry has an edited one."""

_EDITS = msgspec.json.Decoder(list[Edit])


def edits_of(signed: signature_records.SignedShard) -> Iterator[list[Edit]]:
    """Yield the edits of each document of a signed shard."""
    with Lines(signed.path(EDITS), sys.maxsize) as lines:
        yield from map(_EDITS.decode, chain.from_iterable(lines.blocks()))


class _Attributes(msgspec.Struct):
    attributes: dict[str, Any]


_ATTRIBUTES = msgspec.json.Decoder(_Attributes)
