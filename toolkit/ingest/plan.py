"""The plan of an ``ingest:`` section: which inputs there are, and what becomes a shard, or shards, together.

Which inputs share a shard: a pack is a run of small inputs in the order of their paths.

    a.txt b.txt c.txt | d.txt e.txt | f.txt …      each | behind an input whose path says so, or where it gets too large

Where packs end is told from the inputs themselves, not from their number or place, so that an input which comes, goes
or grows changes its pack, or that and the next one, and none behind them. (Unless packs were cut for their size, which
moves with the inputs before it, up to the next path that says so.) The idea is that of content-defined chunking.
"""

import copy
import heapq
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import groupby, pairwise
from operator import attrgetter
from typing import Any, NamedTuple, TypeVar, overload

import msgspec
import xxhash

from toolkit.config.settings import ConfigStruct
from toolkit.data.dataset import Dataset
from toolkit.data.document_fields import OwnTypes
from toolkit.errors import ConfigError, NothingThere, amount
from toolkit.ingest import folders
from toolkit.ingest.folders import ListedFile
from toolkit.ingest.ingest_config import COMPRESSION, SUBSETS, Common, Entry
from toolkit.ingest.reader import Reader
from toolkit.storage import Stat, compression, store_of
from toolkit.storage.addresses import reveal_url
from toolkit.storage.packed_rows import PackedRows, sort_packed
from toolkit.storage.paths import fault_of_name, fixed_part, is_glob, join, stat_each, strip_suffix
from toolkit.storage.store import note_roots
from toolkit.storage.threads import REQUESTS, for_each

SMALLER = 4
"""How many times smaller than its bound a pack is on average, so that few are cut for their size: one in 55."""

MOST = 4096
"""Inputs in a pack at most, and on average `SMALLER` times fewer: each counts for at least that part of the bound."""


def divide(inputs: Iterable[tuple[str, int]], bound: int) -> Iterator[range]:
    """Yield the places of the inputs of each pack.

    A pack ends behind an input of weight w whose path has an xxh3-64 below 2^64 · `SMALLER` · w / bound, and before
    one with which it would weigh more than the bound. The weight is the bytes and a `MOST`-th of the bound.

    Args:
        inputs: path and bytes of each, in order.
        bound: bytes of a pack at most; no input has as many.
    """
    begin = end = weight = 0
    for end, (path, size) in enumerate(inputs):
        own = size * MOST + bound  # MOST times the weight, in whole numbers
        if weight and weight + own > bound * MOST:
            yield range(begin, end)
            begin, weight = end, 0
        weight += own
        if xxhash.xxh3_64_intdigest(path.encode()) * bound * MOST < (own * SMALLER) << 64:
            yield range(begin, end + 1)
            begin, weight = end + 1, 0
    if weight:
        yield range(begin, end + 1)


T = TypeVar("T")

SUFFIXES = {COMPRESSION: ".jsonl.gz", "zstd": ".jsonl.zst"}
"""Of the shards that are written, by their compression."""

PACK = ".pack"
"""Suffix of a pack's name, after the name of its first input."""

LONGEST_NAME = 230
"""Bytes of an input's name, of the 255 that file systems take: ``.00000.jsonl.gz.json`` comes behind it."""

_SHARD = re.compile(
    rf"(?P<stem>(?P<cut>.+)\.[0-9]{{5,}}|.+)(?:{'|'.join(map(re.escape, SUFFIXES.values()))})", re.DOTALL
)

_COMPRESSIONS = tuple(compression.SUFFIXES)
"""Taken off an input's name before its format's suffix."""


class Selected(ConfigStruct):
    """The location of the records of a pack of selected pages.

    Attributes:
        rows: File of them; empty if only the plan is wanted.
        base: Folder of all crawls.
        whole: Version of the WARC file that is fetched whole, if one is.
        lines: Requests at a time.
    """

    rows: str
    base: str
    whole: Stat | None = None
    lines: int = 1


class InputFile(ConfigStruct):
    """An input file.

    Attributes:
        path: Path of it.
        relative: below the glob's fixed part, or below the folder of all crawls.
        key: its name in records: `relative`, in the folder of its source.
        stat: Version by a listing; None for files that nothing lists: on the web, and in a crawl's list.
        address: Address for the store, if the path hides a secret.
        selected: Location of the records of selected pages; the path is then a name that no file has.
    """

    path: str
    relative: str
    key: str
    stat: Stat | None = None
    address: str = ""
    selected: Selected | None = None

    @property
    def size(self) -> int | None:
        """Return the stored bytes, as listed; None where nothing lists them."""
        return self.stat.size if self.stat else None


class InputToIngest(ConfigStruct):
    """An input to ingest, or a pack: several that share their shards.

    Attributes:
        files: Files in order; a pack has more than one.
        shard: without suffix.
        types: Types of the own fields of its documents, if they are known; the same for all inputs of an entry.
    """

    dataset: Dataset
    entry: Entry
    files: list[InputFile]
    shard: str
    max_document_bytes: int
    overwrite: bool = False
    types: OwnTypes | None = None

    @property
    def is_pack(self) -> bool:
        return len(self.files) > 1

    @property
    def path(self) -> str:
        """Return the path of the input; of a pack, that of the first."""
        return self.files[0].path

    @property
    def name(self) -> str:
        """Return its name in messages."""
        return self.path + (f" … {self.files[-1].path} ({amount(len(self.files), 'input')})" if self.is_pack else "")

    @property
    def size(self) -> int | None:
        """Return the stored bytes, as listed; None where nothing lists them."""
        sizes = [file.size for file in self.files]
        return None if None in sizes else sum(size for size in sizes if size is not None)

    @property
    def is_cut(self) -> bool:
        """Return True if it becomes numbered shards; by `shard_size`, however small it is."""
        return self.entry.settings().shard_size is not None

    def shard_name(self, number: int = 0) -> str:
        """Return the path of one of its shards: its only one, or the one with this number."""
        return (f"{self.shard}.{number:05d}" if self.is_cut else self.shard) + self.suffix

    @property
    def suffix(self) -> str:
        """Return the suffix of its shards."""
        return SUFFIXES[self.entry.compression]

    @property
    def key(self) -> str:
        """Return its name in records: that of the input, or of the pack's shard."""
        return self.shard if self.is_pack else self.files[0].key


class PlannedRow(NamedTuple):
    """An entry by its number, inputs, and their shard without suffix."""

    entry: int
    files: list[InputFile]
    shard: str


_SHARD_OF = attrgetter("shard")


class PlannedInputs(Sequence[InputToIngest]):
    """Inputs to ingest, sorted by shard; each is made when it is asked for, because a million take 700 MB.

    Args:
        works: Inputs, alike but for the shard, its files, and what is of the entry.

    Attributes:
        templates: First input of each entry, by the identity of the entry.
    """

    def __init__(self, works: Iterable[InputToIngest] = ()) -> None:
        self.templates: dict[int, InputToIngest] = {}
        self._rows = PackedRows(PlannedRow)
        for work in works:
            self.append(work)

    def append(self, work: InputToIngest) -> None:
        self.templates.setdefault(id(work.entry), work)
        self._rows.append(PlannedRow(id(work.entry), work.files, work.shard))

    def with_types(self, types: Mapping[int, OwnTypes | None]) -> "PlannedInputs":
        """Return the inputs with types by the identity of the entry."""
        result = copy.copy(self)
        result.templates = {
            number: msgspec.structs.replace(work, types=types.get(number)) for number, work in self.templates.items()
        }
        return result

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[InputToIngest]:
        return map(self._of, self._rows)

    @overload
    def __getitem__(self, place: int) -> InputToIngest: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[InputToIngest]: ...
    def __getitem__(self, place: int | slice) -> InputToIngest | Sequence[InputToIngest]:
        if isinstance(place, int):
            return self._of(self._rows[place])
        places = range(len(self))[place]
        return self if len(places) == len(self) else [self[i] for i in places]

    def _of(self, row: PlannedRow) -> InputToIngest:
        return msgspec.structs.replace(self.templates[row.entry], files=row.files, shard=row.shard)


class Selects(ConfigStruct):
    """How pages are selected by an index.

    Attributes:
        write: True if the selection is kept, for the tasks that fetch it.
        processes: Number of processes at a time.
    """

    write: bool
    processes: int


def listed_stats(files: Sequence[InputFile]) -> list[Stat | None]:
    """Return the listed version of each input; those that none lists are asked for, several at a time."""
    fresh = iter(stat_each([file.path for file in files if file.stat is None]))
    return [file.stat or next(fresh) for file in files]


def makers(works: Sequence[InputToIngest]) -> Callable[[str], InputToIngest | None]:
    """Return a function from a shard's path to its input; None if none of them does.

    No record is read, so the answer is the same before, while and after the input is ingested. A name that other
    settings gave it (with or without a number, of another compression) counts, too, unless it is that of another input.
    """
    places = dict[str, int]()

    def by_stem(stem: str, default: InputToIngest | None = None) -> InputToIngest | None:
        if not places:  # which most commands need for no shard
            places.update((work.shard, place) for place, work in enumerate(works))
        return works[places[stem]] if stem in places else default

    def maker(shard: str) -> InputToIngest | None:
        named = _SHARD.fullmatch(shard)
        if named is None:
            return None
        cut = by_stem(named["cut"])
        return cut if cut and cut.is_cut else by_stem(named["stem"], cut)

    return maker


def plan(
    entries: Iterable[Entry],
    dataset: Dataset,
    max_document_bytes: int,
    *,
    overwrite: bool,
    absent: list[NothingThere] | None = None,
    selects: Selects | None = None,
) -> PlannedInputs:
    """Return the work on each input file, or pack, sorted by shard.

    Args:
        entries: Entries of the section.
        dataset: Dataset that the inputs become.
        max_document_bytes: Limit of the configuration.
        overwrite: True if what was made with other settings is made again.
        absent: takes the errors of what is not there, in place of raising them.
        selects: Options of the selection of pages; None to ask no index, so that only stored selections are known.

    Raises:
        NothingThere: if a glob matches nothing, or a file is not there.
        ConfigError: if two inputs would become the same shard.
    """
    entry_list, small = list(entries), dict[int, list[tuple[str, InputFile]]]()
    files = sort_packed(PlannedRow, _files_of(entry_list, dataset, absent, selects), _SHARD_OF)

    def large() -> Iterator[PlannedRow]:
        """Yield the inputs with shards of their own; set the others aside."""
        for shard, (*rows, row) in groupby(files, _SHARD_OF):  # the last entry that names an input has it
            for first, other in pairwise([*rows, row]):
                if first.files[0].path != other.files[0].path:
                    raise _same_shard_error(first.files[0].path, other.files[0].path, shard)
            if _size_in_pack(row.files[0], entry_list[row.entry].pack) is None:
                yield row
            else:
                small.setdefault(row.entry, []).append((shard, row.files[0]))

    rows: Iterable[PlannedRow] = large()
    if any(entry.pack for entry in entry_list):
        singles = PackedRows(PlannedRow, rows)  # after which all small ones are known
        packs = [PlannedRow(i, *pack) for i, files in small.items() for pack in _packs(entry_list[i], files)]
        rows = heapq.merge(singles, sorted(packs, key=_SHARD_OF), key=_SHARD_OF)
    planned, before = PlannedInputs(), ""
    for number, together, shard in rows:
        if shard == before:
            raise _same_shard_error(planned[-1].path, together[0].path, shard)
        before = shard
        planned.append(
            InputToIngest(
                dataset=dataset,
                entry=entry_list[number],
                files=together,
                shard=shard,
                max_document_bytes=max_document_bytes,
                overwrite=overwrite,
            )
        )
    return planned


def _packs(entry: Entry, files: Iterable[tuple[str, InputFile]]) -> Iterator[tuple[list[InputFile], str]]:
    """Yield inputs and shard of each pack.

    Args:
        entry: Entry of the inputs.
        files: Small inputs, each with the name of the shard that it would be by itself.
    """
    small = sorted(files, key=lambda item: item[1].relative)
    for places in divide(((file.relative, file.size or 0) for _, file in small), entry.pack or 1):
        name = small[places[0]][0]
        yield [small[i][1] for i in places], name + (PACK if len(places) > 1 else "")


def _size_in_pack(file: InputFile, pack: int | None) -> int | None:
    """Return the bytes of an input for a pack; None if it does not: it is large, or nobody tells its size."""
    if pack is None or file.size is None or file.size >= pack or file.selected:
        return None
    return file.size if _longest(file.relative) + len(PACK) <= LONGEST_NAME else None


def _files_of(
    entries: list[Entry], dataset: Dataset, absent: list[NothingThere] | None, selects: Selects | None
) -> Iterator[PlannedRow]:
    """Yield the inputs of all entries with their shards."""
    for number, entry in enumerate(entries):
        common, reader = entry.settings(), entry.reader()
        if common.max_disk and not store_of(dataset.bookkeeping).is_local:
            message = f"expected a dataset on disk for `max_disk`, got {dataset.bookkeeping}"
            raise ConfigError(f"{entry.place}: {message}" if entry.place else message)
        for file in _input_files(entry, common, dataset, absent, selects, entries):
            yield PlannedRow(number, [file], _shard_of(file.path, file.relative, common, reader))


def _same_shard_error(path: str, other: str, shard: str) -> ConfigError:
    return ConfigError(
        f"expected one input for each shard, got {path} and {other} for {shard}; give their entries a `source:` each, "
        "or other globs"
    )


def _shard_of(path: str, relative: str, common: Common, reader: Reader) -> str:
    """Return the name of the shard of a single input, without suffix.

    Raises:
        ConfigError: if there cannot be such a shard.
    """
    stem = strip_suffix(strip_suffix(relative, _COMPRESSIONS), reader.SUFFIXES)
    shard = join(common.source or "", stem) if stem else ""
    if fault := fault_of_name(shard):
        raise ConfigError(f"{path}: {fault}, for its shard; rename the input, or give another glob")
    if len(named := join(shard, relative)) > LONGEST_NAME // 4 and _longest(named) > LONGEST_NAME:
        long = next(part for part in named.split("/") if _longest(part) > LONGEST_NAME)
        raise ConfigError(
            f"{path}: expected names of at most {LONGEST_NAME} bytes, got {long[:40]}…, and names "
            f"of files made from it are longer; rename the file"
        )
    return shard


def _longest(path: str) -> int:
    """Return the bytes of the longest name in a path."""
    return max(map(len, os.fsencode(path).split(b"/")))


def _input_files(
    entry: Entry,
    common: Common,
    dataset: Dataset,
    absent: list[NothingThere] | None,
    selects: Selects | None,
    entries: list[Entry],
) -> Iterator[InputFile]:
    """Yield the input files of an entry, with their listed versions."""
    note_roots(fixed_part(pattern) or "." for pattern in common.patterns if is_glob(pattern))
    listings: Iterable[Sequence[tuple[Any, ...]] | ConfigError]
    if common.selects:
        listings = [_or_error(lambda: _selected_pages(entry, common, dataset, selects, entries))]
    elif common.crawl is not None:
        listings = [_or_error(lambda: _of_crawl(entry, common))]
    else:  # the web is asked for each file that is named, so for several at a time
        reader = entry.reader()
        with suppress(ConfigError):  # each of them tells it by itself
            for pattern in common.patterns:
                store_of(pattern)  # so that `for_each` knows whether answers take their time
        listings = for_each(lambda pattern: _or_error(lambda: _of_pattern(entry, reader, pattern)), common.patterns)
    for listing in listings:
        if not isinstance(listing, ConfigError):
            yield from (_input_file(common, *item) for item in listing)
        elif absent is None or not isinstance(listing, NothingThere):
            raise listing
        else:
            absent.append(listing)


def _input_file(
    common: Common, path: str, relative: str, stat: Stat | None, selected: Selected | None = None
) -> InputFile:
    return InputFile(
        path=path,
        relative=relative,
        key=join(common.source or "", relative),
        stat=stat,
        address="" if selected or store_of(path).can_list else reveal_url(path),
        selected=selected,
    )


def _of_pattern(entry: Entry, reader: Reader, pattern: str) -> Sequence[ListedFile]:
    with _errors_at(entry.place):
        return reader.inputs(pattern)


def _of_crawl(entry: Entry, common: Common) -> Sequence[ListedFile]:
    """Return the selected files of a crawl."""
    with _errors_at(entry.place):
        paths = folders.crawl_files(common.crawl or "", common.format, common.base_url)
    with _errors_at(entry.files_place):
        return [(*folders.place_of(path, common.base_url), None) for path in folders.select_files(paths, common.files)]


def _selected_pages(
    entry: Entry, common: Common, dataset: Dataset, selects: Selects | None, entries: list[Entry]
) -> Sequence[tuple[str, str, Stat, Selected]]:
    """Return the packs of the selected pages of an entry; one that is not begun, if nobody has selected them yet."""
    from toolkit.ingest.index.selecting import folder_of, selection_of

    name, subset = common.crawl or "index", common.subset or SUBSETS[0]
    root = join(common.base_url, "crawl-data", name) if common.crawl else common.crawl_name
    with _errors_at(entry.place, entry.files_place if common.where else entry.place):
        selection = selection_of(
            entry, dataset, asks=selects is not None, write=bool(selects and selects.write), entries=entries
        )
    if selection is None:
        unknown = Selected(rows="", base=common.base_url)
        return [(f"{root}#{subset}", f"{name}/{subset}", Stat(0, "not selected"), unknown)]
    lines = REQUESTS if store_of(common.base_url).can_list else 1
    if selects and lines == 1:
        lines = max(1, common.connections // max(1, selects.processes))
    folder, files = folder_of(entry, dataset), []
    for pack in selection.packs:
        whole = Stat(pack.whole, pack.stamp) if pack.whole else None
        path = f"{root}#{subset}-{pack.name[-5:]}"
        if whole:
            path = folders.place_of(f"crawl-data/{pack.name}", common.base_url)[0] + f"#{subset}"
        rows = join(folder, f"{pack.number}.jsonl.gz")
        selected = Selected(rows=rows, base=common.base_url, whole=whole, lines=lines)
        files.append((path, pack.name, Stat(pack.size, f"rows {pack.digest}"), selected))
    return files


@contextmanager
def _errors_at(place: str, other: str | None = None) -> Iterator[None]:
    """Name a place of the configuration in errors; `other` in those beside `NothingThere`."""
    try:
        yield
    except ConfigError as error:
        at = place if other is None or isinstance(error, NothingThere) else other
        raise type(error)(f"{at}: {error}" if at else str(error)) from None


def _or_error(listing: Callable[[], T]) -> T | ConfigError:
    """Return the result of a function, or its error."""
    try:
        return listing()
    except ConfigError as error:
        return error


def is_on_the_web(entry: Entry) -> bool:
    """Return True if only a server without listings knows the inputs."""
    common = entry.settings()
    patterns = common.patterns
    if common.crawl is not None or common.index is not None:
        patterns = [common.base_url, *([common.index] if common.index else [])]
    return any(not store_of(path).can_list for path in patterns)
