"""The bound on disk, `max_disk` of a configuration: what counts, what stages are expected to need, what cannot fit.

Expectations are about text: how much of it an input holds, and how many bytes a stage keeps of a byte of it
(docs/scaling.md#disk). What earlier runs made of inputs, by their records, takes the place of the first two.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from toolkit.errors import ConfigError, DataError, Unreadable
from toolkit.execution.executors import P, Task
from toolkit.execution.room import NOTHING, Need, Needs, NoRoom, Room, most_of
from toolkit.ingest import inputs as ingest_records
from toolkit.ingest.plan import InputToIngest
from toolkit.records.ingested import InputRecord
from toolkit.storage import store_of
from toolkit.storage.compression import compression_of
from toolkit.storage.paths import stat
from toolkit.storage_options import size_in_words

TEXT = {"gzip": 2.9, "zstd": 3.2, "bz2": 3.6, "xz": 4.0}
"""Bytes of text of a stored byte, by compression; 1 without."""

HTML = 0.25
"""Bytes of text of a stored byte of pages as they were crawled."""

DOCUMENTS = 0.48
"""Stored bytes of documents, of a byte of text."""

ATTRIBUTES = 0.025
"""Stored bytes of one tagger's attributes, of a byte of text."""

DOCUMENT = 3000
"""Bytes of text of a document."""

FILES = 12 << 10
"""Bytes of the records of a shard in a stage, and of files that do not fill their last block."""


@dataclass(frozen=True)
class Expected:
    """The estimate for an input: bytes of documents, of their attributes, and of what a mix makes of them."""

    documents: int = 0
    attributes: int = 0
    mixed: int = 0

    def __add__(self, other: "Expected") -> "Expected":
        return Expected(self.documents + other.documents, self.attributes + other.attributes, self.mixed + other.mixed)


class Kept(NamedTuple):
    """Bytes that a stage keeps on disk, by its section.

    Attributes:
        attributes, signatures: Bytes of a byte of text, that go with the documents.
        mixed: Bytes of a byte of text of chosen documents, as intermediates and once more as output.
        chosen: Part of the documents that it is taken to choose.
        needs_documents: True if documents cannot go when each is mixed.
        reads_documents: True if it reads documents; False if attributes are enough.
        folders: Folders that it writes in, beside those of the dataset.
    """

    attributes: float = 0.0
    signatures: float = 0.0
    mixed: float = 0.0
    chosen: float = 1.0
    needs_documents: bool = False
    reads_documents: bool = True
    folders: Sequence[Any] = ()


class Disk:
    """The estimate of a command's need on disk.

    Args:
        context: Context of the configuration, whose `max_disk` is the bound; without one nothing is bound.

    Raises:
        ConfigError: if a folder that counts is not on disk.
    """

    def __init__(self, context: Any) -> None:
        options, limit = context.options, context.config.max_disk
        self._source, self._command = context.source, options.command
        self._per_shard = getattr(options, "per_shard", False)
        self._shares = options.shard[1] if options.shard else 1
        self._ratio: float | None = None
        self._records: dict[str, InputRecord | None] = {}
        by_stage = {name: stage.kept(context) for name, stage in context.stages.items()} if limit is not None else {}
        kept, results = by_stage.values(), [item for name, item in by_stage.items() if options.command in ("run", name)]
        self._attributes = sum(item.attributes for item in results)
        self._whole = sum(item.signatures for item in results)
        self._mixed = sum(item.mixed for item in results)
        self._chosen = min((item.chosen for item in kept), default=1.0)
        self._can_be_per_shard = not any(item.needs_documents for item in kept)
        self.room = None
        if limit is not None:
            folders = [folder for item in kept for folder in item.folders]
            if context.has_dataset:
                folders += [context.dataset.attributes, context.dataset.bookkeeping]
            self.room = Room(limit, self._on_disk(folders), self._shares, self._chosen)

    def _on_disk(self, folders: Iterable[Any]) -> list[str]:
        """Return the folders that are paths.

        Raises:
            ConfigError: if one is not on disk.
        """
        results = [path for path in folders if isinstance(path, str) and path and "\0" not in path]
        for path in results:
            if not store_of(path).is_local:
                raise self._source.error(
                    ("max_disk",),
                    f"expected only places on disk, got {path}, whose size `max_disk` does not limit; leave `max_disk` "
                    "out",
                )
        return results

    # --- inputs -------------------------------------------------------------------------------------------------------

    def check(self, works: Sequence[InputToIngest]) -> None:
        """Check that what is made of inputs can fit.

        Inputs of which nobody tells the size are left out, and so are those that were ingested before.

        Raises:
            ConfigError: with figures, if it cannot.
        """
        if self.room is None:
            return
        held = self.room.look()
        self._measure(works)
        sized = [(work, self._expected(work, work.size)) for work in works if work.size is not None]
        todo = [expected for work, expected in sized if not self._made(work)]
        if not todo:
            return
        again = sum(self._made_by_mix(expected) for work, expected in sized if self._made(work))
        needed = most_of((self._need(item, per_shard=self._per_shard) for item in todo), self._shares) + again
        if held + needed <= self.room.limit:
            return
        total = sum(todo, Expected())
        result = self._made_by_mix(total)
        output = result + again
        kept = "documents, attributes and signatures" if self._whole else "documents and attributes"
        parts = [
            *([] if self._per_shard else [(total.documents + total.attributes, kept)]),
            *([(result, "intermediates of the mix"), (output, "its output")] if output else []),
        ]
        said = ", ".join(f"{size_in_words(size)} of {what}" for size, what in parts)
        known = "what records say of inputs that are done" if self._ratio else "what is usual for such inputs"
        less, hint = most_of((self._need(item, per_shard=True) for item in todo), self._shares) + again, ""
        if self._can_be_per_shard and not self._per_shard and result and held + less <= self.room.limit:
            hint = f"`toolkit run --per-shard`, which needs about {size_in_words(less)}; or "
        raise self._source.error(
            ("max_disk",),
            f"expected room for about {size_in_words(needed)} ({said}; estimated from listed sizes and {known}), got "
            f"{self.room.left()}; use {hint}a larger `max_disk`",
        )

    def of_input(self, work: InputToIngest) -> Need | None:
        """Return what an input needs; None if nobody tells its size."""
        if self._made(work):
            return NOTHING._replace(later=self._made_by_mix(self._expected(work, work.size or 0)))
        size = work.size
        if size is None:
            try:
                result = stat(work.path)
            except (DataError, Unreadable):
                return NOTHING  # it fails, and says why
            size = result.size if result else 0
            if not size:
                return None if result else NOTHING
        expected = self._expected(work, size)
        need = self._need(expected, per_shard=self._per_shard)
        if work.entry.settings().max_disk and not store_of(work.path).can_list:
            need = need._replace(peak=need.peak + size)  # the download
        return need

    def documents_of(self, works: Sequence[InputToIngest]) -> dict[str, int]:
        """Return how many bytes of documents inputs have become, or are expected to become, by shard."""
        self._measure(works)
        results = {work.shard: record for work in works if (record := self._made(work))}
        return {
            work.shard: sum(output.size for output in results[work.shard].shards.values())
            if work.shard in results
            else self._expected(work, work.size or 0).documents
            for work in works
        }

    def _need(self, expected: Expected, *, per_shard: bool) -> Need:
        result, others = self._made_by_mix(expected), expected.documents + expected.attributes
        return Need(others + expected.mixed, result + (0 if per_shard else others), result)

    def _made_by_mix(self, expected: Expected) -> int:
        """Return what the mix keeps: as an intermediate, and once more in its output."""
        return round(expected.mixed * self._chosen)

    def _expected(self, work: InputToIngest, size: int) -> Expected:
        text = size * (HTML if work.entry.settings().format == "warc" else _inflated(work))
        documents = text * DOCUMENTS if self._ratio is None else size * self._ratio
        text = documents / DOCUMENTS
        return Expected(
            round(documents) + FILES,
            round(text * (self._attributes + self._whole)) + (FILES if self._attributes or self._whole else 0),
            round(text * self._mixed) + (FILES if self._mixed else 0),
        )

    def _made(self, work: InputToIngest) -> InputRecord | None:
        """Return the record of an input, if it need not be ingested again, as far as that is known without a look."""
        if work.overwrite:
            return None
        if work.key not in self._records:
            self._records[work.key] = ingest_records.noted(work)
        return self._records[work.key]

    def _measure(self, works: Iterable[InputToIngest]) -> None:
        """Learn from the records of inputs that are done how many bytes of documents a stored byte becomes."""
        input_records = [record for work in works if (record := self._made(work))]
        size = sum(record.size for record in input_records)
        documents = sum(output.size for record in input_records for output in record.shards.values())
        self._ratio = documents / size if size and documents else None

    def kept(self, tasks: Iterable[Task[P]], kept: Callable[[P, float], float]) -> Needs:
        """Return what tells what tasks need that keep so many bytes, by payload and bytes of text; as `checked`."""

        def need(task: Task[P]) -> Need:
            size = 0 if task.known else round(kept(task.payload, text_of(task)))
            return Need(size, size)

        return self.checked(tasks, need)

    def checked(self, tasks: Iterable[Task[Any]], needs: Needs, *, begins: bool = True) -> Needs:
        """Return what tells what tasks need, once it is clear that all can fit.

        Raises:
            ToolkitError: if they cannot.
        """
        if self.room is not None:
            try:
                self.room.check(map(needs, tasks))
            except NoRoom as error:
                if begins and self._command != "run":
                    raise ConfigError(str(error)) from None
                raise
        return needs


def _inflated(work: InputToIngest) -> float:
    """Return about how many bytes a stored byte of an input, or of the inputs of a pack, becomes."""
    by_file = [((file.size or 0) + 1, TEXT.get(compression_of(file.path) or "", 1)) for file in work.files]
    return sum(size * ratio for size, ratio in by_file) / sum(size for size, _ in by_file)


def text_of(task: Task[Any]) -> float:
    """Return about how many bytes of text a shard has."""
    return (task.size or 0) / DOCUMENTS
