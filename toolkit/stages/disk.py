"""The bound on disk, `max_disk` of a configuration: what counts, what stages are expected to need, what cannot fit.

Expectations are about text: how much of it an input holds, and how many bytes a stage keeps of a byte of it
(docs/scaling.md#disk). What earlier runs made of inputs, by their records, takes the place of the first two.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from toolkit.config.settings import Config, ConfigNode
from toolkit.config.sizes import in_words
from toolkit.data.dataset import Dataset
from toolkit.errors import ConfigError, DataError, Unreadable
from toolkit.execution.executors import P, Task
from toolkit.execution.room import NOTHING, Need, Needs, NoRoom, Room, most_of
from toolkit.ingest import inputs as ingest_records
from toolkit.ingest.plan import InputToIngest
from toolkit.mix.assemble import PartsToWrite, fits
from toolkit.mix.join import ShardToMix
from toolkit.mix.settings import TOKENS as FORMAT
from toolkit.mix.stage import load_stage
from toolkit.records import sets
from toolkit.records.ingested import InputRecord
from toolkit.stages.sections import WHOLE
from toolkit.storage import store_of
from toolkit.storage.compression import compression_of
from toolkit.storage.paths import exists, stat
from toolkit.tag.run import ShardToTag

if TYPE_CHECKING:
    from toolkit.make.shard import ShardToMake
    from toolkit.mix.budget.drawing import ShardToDraw
    from toolkit.whole.sign import ShardToSign

TEXT = {"gzip": 2.9, "zstd": 3.2, "bz2": 3.6, "xz": 4.0}
"""Bytes of text of a stored byte, by compression; 1 without."""

HTML = 0.25
"""Bytes of text of a stored byte of pages as they were crawled."""

DOCUMENTS = 0.48
"""Stored bytes of documents, of a byte of text."""

ATTRIBUTES = 0.025
"""Likewise, of the attributes by one tagger."""

TOKENS = 0.9
"""Likewise, of tokens: four or five characters each, of four bytes."""

VALUES, NAMES = 2.0, 0.06
"""Bytes that `align` keeps of a byte of values, which it writes twice, and of documents, until their set is made."""

DOCUMENT, LINE = 3000, 80
"""Bytes of text of a document, and of a line."""

DRAWN, SORTED = 16, 24
"""Bytes that a budget keeps of each document, and a shuffle of each document or line, until the mix is published."""

MIXED = {"": 0.42, "gzip": 0.42, "gzip-fast": 0.46, "zstd": 0.42, "none": 1.0}
"""Likewise, of what a mix makes of documents that it keeps, by compression."""

CHOSEN = 0.5
"""The part of its documents that a mix with rules is taken to keep: a run is not refused for what rules would drop."""

FILES = 12 << 10
"""Bytes of the records of a shard in a stage, and of files that do not fill their last block."""


@dataclass(frozen=True)
class Expected:
    """What is expected of an input: bytes of documents, of their attributes, and of what a mix makes of them."""

    documents: int = 0
    attributes: int = 0
    mixed: int = 0

    def __add__(self, other: "Expected") -> "Expected":
        return Expected(self.documents + other.documents, self.attributes + other.attributes, self.mixed + other.mixed)


class Disk:
    """What a command expects to need on disk.

    Args:
        config: whose `max_disk` is the bound; without one nothing is bound.
        source: of the configuration, for messages.
        dataset: of the configuration, if it names one.
        command: that runs.
        per_shard: whether documents go once they are mixed.
        shares: runs that share the work.
        written: the configuration with all outputs, if `config` is that of one of them.

    Raises:
        ConfigError: if a folder that counts is not on disk.
    """

    def __init__(
        self,
        config: Config,
        source: ConfigNode,
        dataset: Dataset | None,
        command: str,
        *,
        per_shard: bool,
        shares: int,
        written: Config | None = None,
    ) -> None:
        self._source = source
        self._per_shard = per_shard
        self._shares = shares
        self._command = command
        self._ratio: float | None = None
        self._records: dict[str, InputRecord | None] = {}
        tags, mixes = command in ("run", "tag"), command in ("run", "mix", "tokenize")
        taggers = [each if isinstance(each, list) else [each] for each in config.tag.values()]
        self._attributes = ATTRIBUTES * sum(map(len, taggers)) if tags else 0.0
        output = config.mix.get("output") if mixes else None
        self._mixed = _kept(output) if config.mix and mixes else 0.0
        self._tokens = TOKENS if config.tokenize and command == "run" else 0.0
        whole = [name for name in WHOLE if getattr(config, name)]
        self._whole = 0.0
        if config.max_disk is not None and whole:
            from toolkit.whole.section import kept

            self._whole = sum(kept(source.at(name), name) for name in whole if command in ("run", name))
        others = (whole, config.align, config.annotate, config.tokenize, config.mix.get("editions"))
        self._can_be_per_shard = not any(others)
        self._chosen = CHOSEN if config.mix.get("rules") or config.mix.get("streams") else 1.0
        limit = config.max_disk
        self.room = (
            Room(limit, _folders(written or config, source, dataset), shares, self._chosen)
            if limit is not None
            else None
        )

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
        needed = most_of((self._need(each, per_shard=self._per_shard) for each in todo), self._shares) + again
        if held + needed <= self.room.limit:
            return
        total = sum(todo, Expected())
        made = self._made_by_mix(total)
        output = made + again
        kept = "documents, attributes and signatures" if self._whole else "documents and attributes"
        parts = [
            *([] if self._per_shard else [(total.documents + total.attributes, kept)]),
            *([(made, "intermediates of the mix"), (output, "its output")] if output else []),
        ]
        said = ", ".join(f"{in_words(size)} of {what}" for size, what in parts)
        known = "what records say of inputs that are done" if self._ratio else "what is usual for such inputs"
        less, hint = most_of((self._need(each, per_shard=True) for each in todo), self._shares) + again, ""
        if self._can_be_per_shard and not self._per_shard and made and held + less <= self.room.limit:
            hint = f"`toolkit run --per-shard`, which needs about {in_words(less)}; or "
        raise self._source.error(
            ("max_disk",),
            f"expected room for about {in_words(needed)} ({said}; estimated from listed sizes and {known}), got "
            f"{self.room.left()}; use {hint}a larger `max_disk`",
        )

    def of_input(self, work: InputToIngest) -> Need | None:
        """Return what an input needs; None if nobody tells its size."""
        if self._made(work):
            return NOTHING._replace(later=self._made_by_mix(self._expected(work, work.size or 0)))
        size = work.size
        if size is None:
            try:
                found = stat(work.path)
            except (DataError, Unreadable):
                return NOTHING  # it fails, and says why
            size = found.size if found else 0
            if not size:
                return None if found else NOTHING
        expected = self._expected(work, size)
        need = self._need(expected, per_shard=self._per_shard)
        if work.entry.settings().max_disk and not store_of(work.path).can_list:
            need = need._replace(peak=need.peak + size)  # the download
        return need

    def _need(self, expected: Expected, *, per_shard: bool) -> Need:
        made, others = self._made_by_mix(expected), expected.documents + expected.attributes
        return Need(others + expected.mixed, made + (0 if per_shard else others), made)

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
            round(text * (self._mixed + self._tokens)) + (FILES if self._mixed or self._tokens else 0),
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
        found = [record for work in works if (record := self._made(work))]
        size = sum(record.size for record in found)
        documents = sum(output.size for record in found for output in record.shards.values())
        self._ratio = documents / size if size and documents else None

    # --- shards -------------------------------------------------------------------------------------------------------

    def of_tags(self, tasks: Iterable[Task[ShardToTag]], *, overwrite: bool) -> Needs:
        """Return what tells what tagging a shard needs, once it is clear that all can fit.

        Raises:
            ToolkitError: if they cannot.
        """

        def kept(work: ShardToTag, text: float) -> float:
            done = (sets.is_recorded(work.dataset, name, work.shard) for name in work.plan.sets)
            return 0.0 if all(done) and not overwrite else text * self._attributes + FILES

        return self._kept(tasks, kept)

    def of_made(self, tasks: "Iterable[Task[ShardToMake]]") -> Needs:
        """Return what tells what a stage of the section ``make:`` needs of a shard, as `of_tags`."""
        return self._kept(tasks, lambda work, text: text * (DOCUMENTS if work.entry.root else ATTRIBUTES) + FILES)

    def of_text(self, tasks: "Iterable[Task[Any]]", part: float) -> Needs:
        """Return the needs of tasks of `align` that keep a part of their text: half of it now, and half when joined."""
        return self._kept(tasks, lambda work, text: text * part / (1 + exists(work.stem + ".json")) + FILES)

    def of_signatures(self, tasks: "Iterable[Task[ShardToSign]]") -> Needs:
        """Return what tells what the signatures of a shard need, with what comes of them, as `of_tags`."""
        from toolkit.whole.records import load_signatures

        def kept(work: "ShardToSign", text: float) -> float:
            left = [each for each in work.entries if load_signatures(work.dataset, each.set, work.shard) is None]
            return sum(text * entry.configured().kept + FILES for entry in left)

        return self._kept(tasks, kept)

    def of_draws(self, tasks: "Iterable[Task[ShardToDraw]]") -> Needs:
        """Return what tells what a budget keeps of a shard, as `of_tags`."""
        return self._kept(tasks, lambda work, text: 0.0 if exists(work.path) else text * DRAWN / DOCUMENT + FILES)

    def _kept(self, tasks: Iterable[Task[P]], kept: Callable[[P, float], float]) -> Needs:
        """Return what tells what tasks need that keep so many bytes, by payload and bytes of text."""

        def need(task: Task[P]) -> Need:
            size = 0 if task.known else round(kept(task.payload, _text_of(task)))
            return Need(size, size)

        return self._checked(tasks, need)

    def of_mixes(self, tasks: Iterable[Task[ShardToMix]]) -> Needs:
        """Return what tells what the first stage of a mix needs, as `of_tags`."""

        def need(task: Task[ShardToMix]) -> Need:
            work = task.payload
            shuffle = work.settings.output.shuffle
            sorted_ = SORTED / (LINE if shuffle.unit == "line" else DOCUMENT) if shuffle else 0.0
            size = round(_text_of(task) * (self._mixed + sorted_))
            later = round(size * self._chosen)
            done = load_stage(work.settings.output.path, work.settings.stage_digest(), work.key)
            return NOTHING._replace(later=later) if done else Need(size + FILES, later + FILES, later)

        return self._checked(tasks, need)

    def of_parts(self, tasks: Iterable[Task[PartsToWrite]]) -> Needs:
        """Return what tells what the parts of a mix need, as `of_tags`: about as much as what they are made of."""

        def need(task: Task[PartsToWrite]) -> Need:
            work = task.payload
            writer = work.settings.writer()
            todo = [part for part in work.parts if work.record(part) is None]
            found = [writer.on_disk(part.stored, part.size) for part in todo]
            size = sum(size + FILES for size, _ in found)
            sorted_ = max((part.size for part in todo if part.runs and not fits(part.size)), default=0)
            return Need(size + sorted_ + max((held for _, held in found), default=0), size)

        return self._checked(tasks, need, begins=False)

    def _checked(self, tasks: Iterable[Task[Any]], needs: Needs, *, begins: bool = True) -> Needs:
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


def _text_of(task: Task[Any]) -> float:
    """Return about how many bytes of text a shard has."""
    return (task.size or 0) / DOCUMENTS


def _kept(output: Any) -> float:
    """Return how many bytes an output keeps of a byte of text, by its section."""
    given = output if isinstance(output, dict) else {}
    return TOKENS if given.get("format") == FORMAT else MIXED.get(str(given.get("compression", "")), 0.42)


def _folders(config: Config, source: ConfigNode, dataset: Dataset | None) -> list[str]:
    """Return where a configuration writes.

    Raises:
        ConfigError: if that is not on disk.
    """
    editions = config.mix.get("editions")
    mixes = [config.mix, *(editions.values() if isinstance(editions, dict) else ())]
    outputs = [mix.get("output") for mix in mixes if isinstance(mix, dict)] + [config.tokenize]
    named: list[Any] = [entry.get("dataset") for entry in config.make.values() if isinstance(entry, dict)]
    named += [output.get("path") for output in outputs if isinstance(output, dict)]
    named.append(config.mix.get("rejected"))
    if dataset is not None:
        named += [dataset.attributes, dataset.bookkeeping, *([dataset.documents] if config.ingest else [])]
    found = [path for path in named if isinstance(path, str) and path and "\0" not in path]
    for path in found:
        if not store_of(path).is_local:
            raise source.error(
                ("max_disk",),
                f"expected only places on disk, got {path}, whose size `max_disk` does not limit; leave `max_disk` out",
            )
    return found
