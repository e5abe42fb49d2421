"""Keeps a run within `max_disk`: counts bytes on disk, estimates stages, and decides when tasks may start.

folders ──measured, now and then──┐
tasks that run ──reserved─────────┴──> does the next one fit? ──no──> it waits until another has ended

Estimates are about text: how much of it an input holds, and how many bytes a stage keeps of a byte of it
(docs/scaling.md#disk). Records of inputs that were ingested before, and what is measured as tasks end, correct them.
"""

import os
import stat
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import msgspec

from toolkit.errors import ConfigError, DataError, ToolkitError, Unreadable
from toolkit.execution.executors import P, Task
from toolkit.ingest import inputs as ingest_records
from toolkit.ingest.plan import InputToIngest
from toolkit.records.ingested import InputRecord
from toolkit.storage import paths, store_of
from toolkit.storage.compression import compression_of
from toolkit.storage_options import size_in_words

BLOCK = 4096
"""Allocation unit of file systems; a folder takes one, too."""

MARGIN = 1.1
"""Factor by which tasks may exceed their estimates."""

SIGNIFICANT = 1 << 20
"""Bytes that are expected, or written, before estimates are corrected."""

LEAST = 0.25
"""Lower bound of the correction factor."""

PAUSE = 20
"""Measuring takes at most one part in this many of the time."""

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


class DiskEstimate(NamedTuple):
    """The estimated need of a task on disk, in bytes.

    Attributes:
        peak: Most bytes at a time, while it runs.
        final: Bytes after its end.
        later: Bytes that later stages make of its output.
    """

    peak: int
    final: int
    later: int = 0


NO_DISK = DiskEstimate(0, 0)

EstimateOf = Callable[[Task[Any]], DiskEstimate | None]
"""Returns the estimate for a task; None if its need is unknown. Such a task runs alone, and is taken to need as much as
earlier ones have kept."""


class QuotaExceeded(ToolkitError):
    """The output does not fit below the bound."""


class DiskQuota:
    """Decides about the start of tasks.

    Args:
        limit: Bytes that the folders may hold together.
        folders: Folders on disk, counted whoever writes in them; they need not exist.
        shares: Number of runs that work on the same; each takes the others to need as much as it does.
        certain: Part of the output of tasks that they keep in any case.

    Attributes:
        used: Bytes in the folders when they were last measured.
    """

    def __init__(
        self,
        limit: int,
        folders: Iterable[str],
        shares: int = 1,
        certain: float = 1.0,
    ) -> None:
        self.limit, self.used = limit, 0
        self._folders, self._shares, self._certain = list(folders), shares, certain
        self._measured = self._cost = 0.0
        self._factor = 1.0
        self._running: dict[str, DiskEstimate | None] = {}
        self._estimate: EstimateOf = lambda task: NO_DISK
        self._before = self._ended = self._unmeasured = self._later = 0
        self._alone: int | None = None
        """Bytes in use when a task without an estimate started; it is the only one since."""
        self._most = 0
        """Most bytes that such a task has kept."""

    def measure(self) -> int:
        """Return the bytes in the folders now, in whole blocks."""
        start = time.monotonic()
        self._unmeasured = 0
        self.used = bytes_in(self._folders)
        self._measured = time.monotonic()
        self._cost = self._measured - start
        self._correct()
        return self.used

    def begin(self, estimate: EstimateOf) -> None:
        """Start a stage with these estimates of its tasks."""
        self._estimate, self._factor, self._running = estimate, 1.0, {}
        self._ended = self._unmeasured = self._later = self._most = 0
        self._alone = None
        self._before = self.measure()

    def check(self, estimates: Iterable[DiskEstimate | None]) -> None:
        """Compare the need of all tasks, one by one, with the bound.

        Raises:
            QuotaExceeded: if they do not.
        """
        total = peak_of(estimates, self._shares)
        if total and self.measure() + total > self.limit:
            raise QuotaExceeded(
                f"max_disk: expected room for about {size_in_words(total)} more, got {self.space_left()}; raise "
                f"`max_disk`, or delete files that you do not need any more"
            )

    def can_start(self, task: Task[Any], running: bool) -> bool:
        """Return True if a task may start now, and reserve its bytes.

        Args:
            task: Task to start.
            running: True if others run, for whose end it may wait.

        Raises:
            QuotaExceeded: if it would wait for ever.
        """
        estimate = self._estimate(task)
        if estimate is not None and not estimate.peak:
            self._later += estimate.later
            return True
        if not running or time.monotonic() - self._measured >= PAUSE * self._cost:
            self.measure()
        self._running.pop(task.name, None)  # of an attempt with which its process died
        if self._alone is not None and not running:
            self._most, self._alone = max(self._most, self.used - self._alone), None
        if self._fits(estimate):
            self._running[task.name] = estimate
            if estimate is None:
                self._alone = self.used
            return True
        if running:
            return False
        expected = self._unknown if estimate is None else self._expected_use(estimate)
        need = f" for about {size_in_words(expected)}" if expected else ""
        if self._later or (estimate and estimate.later):
            need += " (with what the last steps of finished tasks will write)"
        raise QuotaExceeded(
            f"max_disk: expected room{need} to begin {task.name}, got {self.space_left()}; raise "
            f"`max_disk`, or delete files that you do not need any more, and run again; "
            f"finished work stays"
        )

    def end(self, name: str) -> None:
        """Release the temporary bytes of a task."""
        if estimate := self._running.pop(name, None):
            self._ended += estimate.final
            self._unmeasured += estimate.final
            self._later += estimate.later

    def space_left(self) -> str:
        """Return the unused part of the bound, in words."""
        free, limit, used = map(size_in_words, (max(self.limit - self.used, 0), self.limit, self.used))
        return f"{free} of {limit} ({used} in use)"

    def _fits(self, estimate: DiskEstimate | None) -> bool:
        if estimate is None or None in self._running.values():
            return not self._running and self.used < self.limit and self.used + self._unknown <= self.limit
        return self.used + self._expected_use(estimate) <= self.limit

    @property
    def _unknown(self) -> int:
        """Return the bytes to reserve for a task without an estimate."""
        return round(MARGIN * self._shares * self._most)

    def _expected_use(self, estimate: DiskEstimate) -> int:
        """Return the additional bytes with a new task: while it runs, or in the end.

        A correction is about kept bytes. Deleted bytes may be more than expected, but never less.
        """
        running = [item for item in (*self._running.values(), estimate) if item]
        final = self._factor * sum(item.final for item in running)
        temporary = max(self._factor * self._certain, 1) * sum(item.peak - item.final for item in running)
        later = self._factor * (self._later + sum(item.later for item in running))
        most = max(MARGIN * (final + temporary), final + later)
        return round(self._factor * self._unmeasured + self._shares * most)

    def _correct(self) -> None:
        """Correct estimates, if no output of running tasks explains the measurement."""
        grown = self.used - self._before
        if not self._ended or max(grown, self._ended) < SIGNIFICANT:
            return
        running = self._factor * self._shares * sum(item.peak for item in self._running.values() if item)
        least, most = max(grown - running, 0) / self._ended, grown / self._ended
        self._factor = min(max(self._factor, least, LEAST), max(most, LEAST))


def peak_of(estimates: Iterable[DiskEstimate | None], shares: int = 1) -> int:
    """Return the peak bytes of sequential tasks, in each share.

    The peak is while the task runs that deletes most, or in the end, after the later stages.
    """
    ordered = sorted((item for item in estimates if item and item.peak), key=lambda item: item.peak - item.final)
    if not ordered:
        return 0
    final, last = sum(item.final for item in ordered), ordered[-1]
    return round(max(final + sum(item.later for item in ordered), final - last.final + MARGIN * shares * last.peak))


def bytes_in(folders: Iterable[str]) -> int:
    """Return the bytes in folders; nested ones count once, and deleted files are ignored."""
    return sum(map(_bytes_of, _topmost(folders)))


def _topmost(folders: Iterable[str]) -> Iterator[str]:
    results: list[str] = []
    for folder in sorted(map(os.path.realpath, folders)):
        if not any(folder == above or folder.startswith(above.rstrip("/") + "/") for above in results):
            results.append(folder)
            yield folder


def _bytes_of(root: str) -> int:
    total, linked, waiting = 0, set[tuple[int, int]](), [root]
    while waiting:
        with suppress(FileNotFoundError, NotADirectoryError), os.scandir(waiting.pop()) as entries:
            total += BLOCK
            for entry in entries:
                with suppress(FileNotFoundError):
                    result = entry.stat(follow_symlinks=False)
                    if stat.S_ISDIR(result.st_mode):
                        waiting.append(entry.path)
                    elif result.st_nlink == 1 or (result.st_dev, result.st_ino) not in linked:
                        total += -(-result.st_size // BLOCK) * BLOCK
                        if result.st_nlink > 1:
                            linked.add((result.st_dev, result.st_ino))
    return total


# --- estimates --------------------------------------------------------------------------------------------------------


class InputEstimate(msgspec.Struct, frozen=True):
    """The estimate for an input: bytes of documents, of their attributes, and of the mix."""

    documents: int = 0
    attributes: int = 0
    mixed: int = 0

    def __add__(self, other: "InputEstimate") -> "InputEstimate":
        parts = (self.documents + other.documents, self.attributes + other.attributes, self.mixed + other.mixed)
        return InputEstimate(*parts)


class DiskUse(NamedTuple):
    """The bytes of a stage on disk, by its section.

    Attributes:
        attributes, signatures: Bytes of a byte of text, beside the documents.
        mixed: Bytes of a byte of text of chosen documents, as intermediates and once more as output.
        chosen: Estimated part of the documents that it chooses.
        needs_documents: True if documents must stay after each is mixed.
        reads_documents: True if it reads documents; False if attributes are enough.
        folders: Further folders that it writes in.
    """

    attributes: float = 0.0
    signatures: float = 0.0
    mixed: float = 0.0
    chosen: float = 1.0
    needs_documents: bool = False
    reads_documents: bool = True
    folders: Sequence[Any] = ()


class DiskPlan:
    """The estimate of a command's need on disk.

    Args:
        context: Context of the configuration, whose `max_disk` is the bound.

    Attributes:
        quota: Bound; None without one.

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
        stages = {} if limit is None else context.stages
        by_stage = {name: stage.disk_use(context) for name, stage in stages.items()}
        uses, own = by_stage.values(), [use for name, use in by_stage.items() if options.command in ("run", name)]
        self._attributes = sum(use.attributes for use in own)
        self._signatures = sum(use.signatures for use in own)
        self._mixed = sum(use.mixed for use in own)
        self._chosen = min((use.chosen for use in uses), default=1.0)
        self._can_be_per_shard = not any(use.needs_documents for use in uses)
        self.quota = None
        if limit is not None:
            folders = [folder for use in uses for folder in use.folders]
            if context.has_dataset:
                folders += [context.dataset.attributes, context.dataset.bookkeeping]
            self.quota = DiskQuota(limit, self._on_disk(folders), self._shares, self._chosen)

    def _on_disk(self, folders: Iterable[Any]) -> list[str]:
        results = [path for path in folders if isinstance(path, str) and path and "\0" not in path]
        for path in results:
            if not store_of(path).is_local:
                raise self._source.error(
                    ("max_disk",),
                    f"expected only places on disk, got {path}, whose size `max_disk` does not limit; leave `max_disk` "
                    "out",
                )
        return results

    def check(self, tasks: Sequence[InputToIngest]) -> None:
        """Compare the need of all inputs with the bound.

        Inputs of unknown size, and those that were ingested before, do not count.

        Raises:
            ConfigError: with figures, if it cannot.
        """
        if self.quota is None:
            return
        used = self.quota.measure()
        self._measure(tasks)
        sized = [(task, self._expected(task, task.size)) for task in tasks if task.size is not None]
        todo = [expected for task, expected in sized if not self._valid_record(task)]
        if not todo:
            return
        again = sum(self._mix_of(expected) for task, expected in sized if self._valid_record(task))
        needed = peak_of((self._need(item, per_shard=self._per_shard) for item in todo), self._shares) + again
        if used + needed <= self.quota.limit:
            return
        total = sum(todo, InputEstimate())
        mixed = self._mix_of(total)
        contents = "documents, attributes and signatures" if self._signatures else "documents and attributes"
        parts = [
            *([] if self._per_shard else [(total.documents + total.attributes, contents)]),
            *([(mixed, "intermediates of the mix"), (mixed + again, "its output")] if mixed + again else []),
        ]
        breakdown = ", ".join(f"{size_in_words(size)} of {label}" for size, label in parts)
        basis = "what records say of inputs that are done" if self._ratio else "what is usual for such inputs"
        less, hint = peak_of((self._need(item, per_shard=True) for item in todo), self._shares) + again, ""
        if self._can_be_per_shard and not self._per_shard and mixed and used + less <= self.quota.limit:
            hint = f"`toolkit run --per-shard`, which needs about {size_in_words(less)}; or "
        raise self._source.error(
            ("max_disk",),
            f"expected room for about {size_in_words(needed)} ({breakdown}; estimated from listed sizes and {basis}), "
            f"got {self.quota.space_left()}; use {hint}a larger `max_disk`",
        )

    def of_input(self, task: InputToIngest) -> DiskEstimate | None:
        """Return the estimate for an input; None if its size is unknown."""
        if self._valid_record(task):
            return NO_DISK._replace(later=self._mix_of(self._expected(task, task.size or 0)))
        size = task.size
        if size is None:
            try:
                result = paths.stat(task.path)
            except (DataError, Unreadable):
                return NO_DISK  # it fails, and says why
            size = result.size if result else 0
            if not size:
                return None if result else NO_DISK
        need = self._need(self._expected(task, size), per_shard=self._per_shard)
        if task.entry.settings().max_disk and not store_of(task.path).can_list:
            need = need._replace(peak=need.peak + size)  # the download
        return need

    def documents_of(self, tasks: Sequence[InputToIngest]) -> dict[str, int]:
        """Return the recorded or expected bytes of documents of inputs, by shard."""
        self._measure(tasks)
        results = {}
        for task in tasks:
            if record := self._valid_record(task):
                results[task.shard] = sum(output.size for output in record.shards.values())
            else:
                results[task.shard] = self._expected(task, task.size or 0).documents
        return results

    def _need(self, expected: InputEstimate, *, per_shard: bool) -> DiskEstimate:
        mixed, dataset_bytes = self._mix_of(expected), expected.documents + expected.attributes
        return DiskEstimate(dataset_bytes + expected.mixed, mixed + (0 if per_shard else dataset_bytes), mixed)

    def _mix_of(self, expected: InputEstimate) -> int:
        """Return the bytes of a mix: as an intermediate, and once more in its output."""
        return round(expected.mixed * self._chosen)

    def _expected(self, task: InputToIngest, size: int) -> InputEstimate:
        text = size * (HTML if task.entry.settings().format == "warc" else _inflation(task))
        documents = text * DOCUMENTS if self._ratio is None else size * self._ratio
        text, beside = documents / DOCUMENTS, self._attributes + self._signatures
        return InputEstimate(
            round(documents) + FILES,
            round(text * beside) + (FILES if beside else 0),
            round(text * self._mixed) + (FILES if self._mixed else 0),
        )

    def _valid_record(self, task: InputToIngest) -> InputRecord | None:
        """Return the record of an up to date input. Only records are read."""
        if task.overwrite:
            return None
        if task.key not in self._records:
            self._records[task.key] = ingest_records.record_with_settings(task)
        return self._records[task.key]

    def _measure(self, tasks: Iterable[InputToIngest]) -> None:
        """Learn from records how many bytes of documents a stored byte becomes."""
        records = [record for task in tasks if (record := self._valid_record(task))]
        size = sum(record.size for record in records)
        documents = sum(output.size for record in records for output in record.shards.values())
        self._ratio = documents / size if size and documents else None

    def estimates(self, tasks: Iterable[Task[P]], stored_bytes: Callable[[P, float], float]) -> EstimateOf:
        """Return checked estimates of tasks by their stored bytes; errors as of `checked`.

        Args:
            tasks: Tasks to run.
            stored_bytes: Function that returns the bytes stored for a payload and its bytes of text.
        """

        def estimate(task: Task[P]) -> DiskEstimate:
            size = 0 if task.outcome else round(stored_bytes(task.payload, text_of(task)))
            return DiskEstimate(size, size)

        return self.checked(tasks, estimate)

    def checked(self, tasks: Iterable[Task[Any]], estimate: EstimateOf, *, begins: bool = True) -> EstimateOf:
        """Return the estimates, compared with the bound.

        Raises:
            ToolkitError: if they do not.
        """
        if self.quota is not None:
            try:
                self.quota.check(map(estimate, tasks))
            except QuotaExceeded as error:
                if begins and self._command != "run":
                    raise ConfigError(str(error)) from None
                raise
        return estimate


def _inflation(task: InputToIngest) -> float:
    """Return the estimated bytes of text of a stored byte. It is that of an input, or pack."""
    by_file = [((file.size or 0) + 1, TEXT.get(compression_of(file.path) or "", 1)) for file in task.files]
    return sum(size * ratio for size, ratio in by_file) / sum(size for size, _ in by_file)


def text_of(task: Task[Any]) -> float:
    """Return the estimated bytes of text of a shard."""
    return (task.size or 0) / DOCUMENTS
