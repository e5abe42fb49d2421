"""Selection of a crawl's records by its index, and their packs.

index files ──filter columns of each row group──> hits ──their other columns──> a table (spills to disk)
the table ──each record once, `distinct`, a draw, limits──> packs in index order, WARC files that are fetched whole

``.toolkit/selected/<settings>/plan.json``  a `Selection`; beside it ``<pack>.jsonl.gz``, a `Row` for each record

Rows of index files, with columns read on request: Parquet by row groups, CDXJ by lines.

Sources: https://github.com/commoncrawl/cc-index-table (Parquet); https://pywb.readthedocs.io, "CDXJ Format".
"""

import bisect
import itertools
import re
import urllib.parse
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from datetime import datetime
from itertools import islice
from typing import Any, NamedTuple, Self

import msgspec
import xxhash

from toolkit.config.settings import ConfigStruct, plain
from toolkit.data.dataset import Dataset
from toolkit.data.tables.from_arrow import check_installed
from toolkit.data.tables.parquet import open_parquet
from toolkit.errors import ConfigError, DataError, NothingThere, amount
from toolkit.exchange.tables import MEMORY, Tables
from toolkit.ingest import folders
from toolkit.ingest.index.columns import LANGUAGES, Where, column_sql
from toolkit.ingest.ingest_config import OF_INDEXES, SUBSETS, Common, Entry
from toolkit.lazy_numpy import np
from toolkit.records import ingested
from toolkit.records.left_out import identity
from toolkit.session import current
from toolkit.storage import json_files, store_of
from toolkit.storage.freshness import Artifact, state
from toolkit.storage.json_files import json_digest
from toolkit.storage.outputs import RowOutput
from toolkit.storage.paths import exists, expand_listed, join, list_files, missing_reason, remove, stat_each
from toolkit.storage.reading import Lines
from toolkit.storage.threads import pool

_URL = re.compile(r"\w+:/{2}")

LINES = 50_000
"""Lines of a batch of CDXJ."""

LONGEST = 1 << 30
"""Bytes of a line, at most."""

_CDXJ = re.compile(r"(\.cdxj?|cdx-\d+)(\.gz)?$")

Extremes = Mapping[str, tuple[Any, Any]]
"""The least and the greatest value of columns, as far as they are known."""


class IndexBatch(NamedTuple):
    """Some rows of an index.

    Attributes:
        rows: Number of them.
        extremes: Extremes of the columns.
        read: Function that returns a table of pyarrow with the named columns.
    """

    rows: int
    extremes: Extremes
    read: Callable[[Sequence[str]], Any]


def host_of(url: str) -> str:
    """Return the host of a URL, as the index has it; empty if it has none."""
    try:
        return urllib.parse.urlsplit(url).hostname or ""
    except ValueError:
        return ""


def is_index(path: str) -> bool:
    """Return True if a file has the name of an index file."""
    return path.endswith(".parquet") or _CDXJ.search(path) is not None


def batches(path: str) -> Generator[IndexBatch, None, None]:
    """Yield the rows of an index file; the first batch has none, and tells the columns.

    Raises:
        DataError: if it is damaged.
    """
    check_installed("the index of a crawl")
    import pyarrow as pa

    if not path.endswith(".parquet"):
        yield from _of_lines(path)
        return
    try:
        with open_parquet(path) as file:
            empty = file.schema_arrow.empty_table()
            yield IndexBatch(0, {}, lambda names: empty.select(names) if names else empty)
            for number in range(file.num_row_groups):
                group = file.metadata.row_group(number)

                def read(names: Sequence[str], number: int = number) -> Any:
                    return file.read_row_group(number, columns=list(names))

                yield IndexBatch(group.num_rows, extremes_of(group), read)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise DataError(f"expected an index file of Parquet, got: {error}", path=path) from None


def extremes_of(group: Any) -> Extremes:
    """Return the extremes in the metadata of a row group of Parquet."""
    results = {}
    for number in range(group.num_columns):
        column = group.column(number)
        statistics = column.statistics
        if statistics is not None and statistics.has_min_max and isinstance(statistics.min, str | int):
            results[column.path_in_schema] = statistics.min, statistics.max
    return results


# --- CDXJ -------------------------------------------------------------------------------------------------------------

_FIELDS = {
    "url": "url",
    "status": "fetch_status",
    "redirect": "fetch_redirect",
    "digest": "content_digest",
    "mime": "content_mime_type",
    "mime-detected": "content_mime_detected",
    "charset": "content_charset",
    "languages": LANGUAGES,
    "truncated": "content_truncated",
    "recordid": "warc_record_id",
    "filename": "warc_filename",
    "offset": "warc_record_offset",
    "length": "warc_record_length",
}
"""Names in CDXJ of columns of the table; the others of `_CDXJ_COLUMNS` are made of them."""

_NUMBERS = ("fetch_status", "warc_record_offset", "warc_record_length", "url_port")
_OF_URL = ("url_host_name", "url_protocol", "url_port", "url_path", "url_query")
_CDXJ_COLUMNS = ("url_surtkey", "fetch_time", *_FIELDS.values(), *_OF_URL)
_SEGMENT = re.compile(r"/segments/([^/]+)/")


def _of_lines(path: str) -> Generator[IndexBatch, None, None]:
    import pyarrow as pa

    types = [pa.field(name, pa.int64() if name in _NUMBERS else pa.string()) for name in _CDXJ_COLUMNS]
    schema = pa.schema([*types, pa.field("warc_segment", pa.string())])
    empty = schema.empty_table()
    yield IndexBatch(0, {}, lambda names: empty.select(names) if names else empty)
    with Lines(path, LONGEST, fixed=True) as lines:
        while rows := [_row(line, path, lines.number) for line in islice(lines, LINES)]:
            table = pa.Table.from_pylist(rows, schema=schema)
            yield IndexBatch(len(rows), {}, table.select)


def _row(line: bytes, path: str, number: int) -> dict[str, Any]:
    """Return the columns of a line: key, time (14 digits), and a JSON object."""
    try:
        key, time, encoded = line.decode().split(" ", 2)
        fields = msgspec.json.decode(encoded, type=dict[str, Any])
        row: dict[str, Any] = {column: fields.get(name) for name, column in _FIELDS.items()}
        for name in _NUMBERS[:3]:
            row[name] = int(row[name]) if row[name] not in (None, "-") else None
        parts = urllib.parse.urlsplit(row["url"])
        row |= dict(
            zip(_OF_URL, (parts.hostname, parts.scheme, parts.port, parts.path, parts.query or None), strict=True)
        )
        moment = datetime.strptime(time, "%Y%m%d%H%M%S").strftime("%Y-%m-%dT%H:%M:%SZ")  # noqa: DTZ007  # it is UTC
        if None in (row["warc_filename"], row["warc_record_offset"], row["warc_record_length"]):
            raise ValueError("no filename, offset or length")
        segment = _SEGMENT.search(row["warc_filename"])
    except (ValueError, TypeError, AttributeError, msgspec.DecodeError) as error:
        raise DataError(f"expected a line of CDXJ (key, time, JSON), got: {error}", path=path, line=number) from None
    return row | {"url_surtkey": key, "fetch_time": moment, "warc_segment": segment and segment[1]}


# --- lists of URLs and hosts ------------------------------------------------------------------------------------------


class UrlList:
    """URLs, hosts and domains of a list.

    Args:
        names: The lines: a URL, or a host or domain, which stands for all hosts below it, too.
        exact: True if a host stands for itself alone.

    Attributes:
        names: The same, sorted.
    """

    COLUMNS = ("url", "url_host_name")

    def __init__(self, names: Sequence[str], *, exact: bool = False) -> None:
        self._exact = exact
        self.names = sorted(set(names))
        self._urls = {name for name in self.names if _URL.match(name)}
        self._hosts = {name.lower().strip(".") for name in self.names if not _URL.match(name)}
        hosts = self._hosts | {host_of(url) for url in self._urls}
        self._keys = sorted(",".join(reversed(host.removeprefix("www.").split("."))) for host in hosts)
        self._all_keys = set(self._keys)

    @classmethod
    def read(cls, path: str) -> Self:
        """Return those of a file, a line each.

        Raises:
            ConfigError: if there is no such file or no line, or a line is neither.
        """
        if not exists(path):
            raise ConfigError(f"expected a file of URLs, hosts or domains, got {missing_reason(path)} at {path}")
        names = []
        with Lines(path, LONGEST, fixed=True) as lines:
            for line in lines:
                name = line.decode(errors="replace").strip()
                if name and not _URL.match(name) and not re.fullmatch(r"[\w.-]+(:\d+)?", name):
                    raise ConfigError(f"{path}:{lines.number}: expected a URL, a host or a domain, got {name[:200]!r}")
                names += [name] * bool(name)
        if not names:
            raise ConfigError(f"{path}: expected URLs, hosts or domains, got none")
        return cls(names)

    def may_be_in(self, extremes: Extremes) -> bool:
        """Return True if rows with keys (SURT) between these may match."""
        if "url_surtkey" not in extremes:
            return True
        least, most = extremes["url_surtkey"]
        at = bisect.bisect_left(self._keys, least)
        if at < len(self._keys) and self._keys[at] <= most:
            return True
        parts = re.split(r"[):]", least)[0].split(",")
        return any(",".join(parts[:i]) in self._all_keys for i in range(1, len(parts) + 1))

    def has(self, table: Any) -> Any:
        """Return the mask of matching rows, as an array of pyarrow."""
        import pyarrow as pa
        import pyarrow.compute as pc

        hosts = [host for host in pc.unique(table["url_host_name"]).to_pylist() if host and self._has_host(host)]
        by_host = pc.is_in(table["url_host_name"], value_set=pa.array(hosts, pa.string()))
        return pc.or_(by_host, pc.is_in(table["url"], value_set=pa.array(sorted(self._urls), pa.string())))

    def _has_host(self, host: str) -> bool:
        if self._exact:
            return host in self._hosts
        parts = host.lower().split(".")
        return any(".".join(parts[i:]) in self._hosts for i in range(len(parts)))


GAP = 32_768
"""Bytes between two records that are fetched with them, in place of another request."""

ROBOTS = SUBSETS[2]

SHARE = 3
"""A WARC file of which one part in so many is wanted is fetched whole."""

GET, OUT = 0.0004 / 1000, 0.09 / 1e9
"""US dollars of a request to S3, and of a byte that leaves the region; Source: https://aws.amazon.com/s3/pricing/."""

SHOWN = 20
"""Hosts that an estimate names."""

FETCHED = 4096

NEEDED = ("url", "warc_filename", "warc_record_offset", "warc_record_length")

Row = tuple[str, int, int, str, str | None]
"""Path of a WARC file, offset and length of a record in it, its URL, and its digest by the index."""


class Part(ConfigStruct):
    """The estimate for all pages, a language or a host.

    Attributes:
        name: Language or host; empty of all.
        pages: Records.
        bytes: Bytes of their records; of all, those that are fetched, with what lies between.
        requests: Requests that fetch some of them.
        cost: US dollars at the list prices `GET` and `OUT`, whoever pays them.
    """

    name: str
    pages: int
    bytes: int
    requests: int
    cost: float


class FetchEstimate(ConfigStruct):
    """The estimate of a fetch.

    Attributes:
        all: All pages.
        index_files: Files of the index.
        equal: Pages that are not fetched because others have their digest.
        hosts: Number of hosts.
        by_language: Estimates by first language of the pages, the most pages first.
        by_host: Estimates by host, the most pages first; at most `SHOWN`.
    """

    all: Part
    index_files: int
    equal: int
    hosts: int
    by_language: list[Part]
    by_host: list[Part]


class Pack(ConfigStruct):
    """Records of one shard.

    Attributes:
        number: Name of the file of its rows.
        name: Path that names its shard: of a WARC file that is fetched whole, its own.
        size: Bytes that are fetched.
        digest: xxh3-128 (hex) of its rows.
        whole: Size of the WARC file that is fetched whole; 0 if none is.
        stamp: Version of that file.
    """

    number: int
    name: str
    size: int
    digest: str
    whole: int = 0
    stamp: str = ""


class Selection(Artifact, frozen=True, kw_only=True):
    """The selected records of an entry; the stamp is a digest of the stamps of the index files."""

    version: int = 1
    stamp: str
    packs: list[Pack]
    estimate: FetchEstimate

    @property
    def lineage(self) -> dict[str, str]:
        return {"": self.stamp}


def folder_of(entry: Entry, dataset: Dataset) -> str:
    """Return the folder of an entry's selection."""
    common = plain(entry.settings())
    key = [common[name] for name in ("crawl", "base_url", *OF_INDEXES)]
    return join(dataset.bookkeeping, "selected", json_digest([key, int(entry.pack or 0)])[:16])


def selection_of(
    entry: Entry, dataset: Dataset, *, asks: bool, write: bool = False, entries: Sequence[Entry] = ()
) -> Selection | None:
    """Return the selected pages of an entry, once in a command; None if no run has kept them, and no index is asked.

    Args:
        entry: Entry of the section ``ingest:``.
        dataset: Dataset that keeps them.
        asks: True if the index is asked where they are not kept, or it is another now.
        write: True if they are kept.
        entries: Entries whose hosts those of robots.txt are.

    Raises:
        ConfigError: if there is no index, or it lacks a column, or no page is wanted.
        DataError: if it is damaged.
    """
    folder = folder_of(entry, dataset)
    if asks:
        return current().get_or_make((selection_of, folder), lambda: _select(entry, dataset, entries, write=write))
    return json_files.load(join(folder, "plan.json"), Selection)


def _hosts(entries: Sequence[Entry], dataset: Dataset, *, write: bool) -> list[str]:
    """Return the hosts of a dataset: of the pages that its entries select, and of its other documents."""
    results = set[str]()
    for entry in entries:
        if entry.settings().selects and entry.settings().subset != ROBOTS:
            folder = folder_of(entry, dataset)
            selection = selection_of(entry, dataset, asks=True, write=write, entries=entries)
            hosts = current().get_or_make((_hosts, folder), set[str])  # of a selection that is not kept
            results |= hosts
            for pack in selection.packs if selection and not hosts else ():
                with Lines(join(folder, f"{pack.number}.jsonl.gz"), LONGEST, fixed=True) as lines:
                    results |= {host_of(msgspec.json.decode(line, type=Row)[3]) for line in lines}
    for record in ingested.load_undamaged(dataset):
        for shard in record.shards if "#" not in record.input else ():
            with dataset.lines(shard, LONGEST) as rows:
                results |= {host_of(identity(row)[1] or "") for row in rows}
    if not results - {""}:
        raise NothingThere("expected hosts of documents for the captures of robots.txt, got none; ingest pages first")
    return sorted(results - {""})


def estimates(entries: Iterable[Entry], dataset: Dataset) -> dict[str, FetchEstimate]:
    """Return the estimates of the selections of this command, by entry."""
    results = {entry.name: selection_of(entry, dataset, asks=True) for entry in entries if entry.settings().selects}
    return {name: selection.estimate for name, selection in results.items() if selection}


def sweep(entries: Iterable[Entry], inputs: Iterable[str], dataset: Dataset) -> None:
    """Delete selections of former entries; where no entry selects, and none did, nothing is looked at.

    Args:
        entries: Entries of the section ``ingest:``.
        inputs: Keys of all inputs.
        dataset: Dataset that keeps the selections.
    """
    names = {folder_of(entry, dataset).rpartition("/")[2] for entry in entries if entry.settings().selects}
    removed = (ingested.load(dataset, name) for name in {*ingested.keys(dataset)}.difference(inputs))
    if not names and not any(record and "#" in record.input for record in removed):
        return
    root = join(dataset.bookkeeping, "selected")
    for name in list(list_files(root, hidden=True)):
        if name.partition("/")[0] not in names:
            remove(join(root, name))


def _select(entry: Entry, dataset: Dataset, entries: Sequence[Entry], *, write: bool) -> Selection:
    common, folder = entry.settings(), folder_of(entry, dataset)
    files = index_files(common)
    urls = UrlList.read(common.urls) if common.urls else None
    if common.subset == ROBOTS and not (common.urls or common.where):
        urls = UrlList(_hosts(entries, dataset, write=write), exact=True)
    digest = xxhash.xxh3_128(msgspec.json.encode(urls and urls.names))
    for path, stat in zip(files, stat_each(files), strict=True):
        if stat is None:
            raise NothingThere(f"expected a file of the index of {common.crawl_name}, got nothing at {path}")
        digest.update(f"{path}\0{stat}\n".encode())
    stored = json_files.load(join(folder, "plan.json"), Selection)
    if stored is not None and state(stored, [("", digest.hexdigest())]).is_done:
        return stored
    with Tables(4 * MEMORY) as tables:
        chosen = _Selecting(common, int(entry.pack or 0), urls, tables)
        chosen.read(files)
        estimate = chosen.estimate(len(files), chosen.choose())
        if not estimate.all.pages:
            pages = f"pages for which `{common.where}`" if common.where else "pages"
            where = f"{amount(len(files), 'file')} of the index of {common.crawl_name}"
            raise NothingThere(f"expected {pages}, got none in {where}")
        packs = list(chosen.packs(folder if write else ""))
        if not write and any(other.settings().subset == ROBOTS for other in entries):
            current().get_or_make((_hosts, folder), chosen.hosts)
    selection = Selection(stamp=digest.hexdigest(), packs=packs, estimate=estimate)
    if write:
        json_files.save(join(folder, "plan.json"), selection)
    return selection


def index_files(common: Common) -> list[str]:
    """Return the paths of the files of an index, in its order.

    Raises:
        NothingThere: if there is none.
    """
    index, subset = common.index, common.subset or SUBSETS[0]
    if index is None:
        listed = _of_crawl(common.crawl or "", common.base_url)
    elif re.search(r"\.paths(\.gz)?$", index):
        listed = [folders.place_of(path, common.base_url)[0] for path in folders.read_list(index)]
    else:
        path = join(index, "**") if folders.is_listable(index) else index
        listed = [path for path, _, _ in expand_listed(path)]
    if any("/subset=" in path for path in listed):
        listed = [path for path in listed if f"/subset={subset}/" in path]
    listed = [path for path in listed if is_index(path)]
    if not listed:
        files = f"files of the subset {subset} (.parquet, cdx-*.gz)"
        raise NothingThere(f"expected an index of {common.crawl_name} with {files}, got none")
    return listed


def _of_crawl(crawl: str, base: str) -> list[str]:
    try:
        paths = folders.crawl_files(crawl, "cc-index-table", base)
    except NothingThere:
        paths = folders.crawl_files(crawl, "cc-index", base)
    return [folders.place_of(path, base)[0] for path in paths]


class _Selecting:
    """The selection of records, in a database.

    Args:
        wish: Options of the entry.
        pack: Bytes of the records of a pack.
        wanted: URLs and hosts of its list, if it has one.
        tables: Database.
    """

    def __init__(self, wish: Common, pack: int, urls: UrlList | None, tables: Tables) -> None:
        self._wish, self._pack, self._urls, self._tables = wish, pack, urls, tables
        self._subset = wish.subset or SUBSETS[0]
        self._limited = wish.seed is None and not wish.distinct and (wish.max_documents or wish.max_bytes)
        tables.run(
            "CREATE TABLE selected (number BIGINT, file VARCHAR, first BIGINT, length BIGINT, url VARCHAR, "
            "digest VARCHAR, language VARCHAR, host VARCHAR, draw BIGINT)"
        )

    def read(self, files: Sequence[str]) -> None:
        """Read the index, `connections` files at a time, as far as necessary."""
        if current().has_remote_stores:
            current().warn(f"reading the index of {self._wish.crawl_name}: {amount(len(files), 'file')}")
        numbered = enumerate(files)
        with pool(self._wish.connections) as threads:
            while some := list(itertools.islice(numbered, self._wish.connections)):
                for future in [threads.submit(self._file, number, path) for number, path in some]:
                    future.result()
                if self._is_enough(self._tables, 0, 1 << 62):
                    break

    def _is_enough(self, tables: Tables, least: int, end: int) -> bool:
        """Return True if the rows with these numbers exceed a limit."""
        if not self._limited:
            return False
        once = "SELECT DISTINCT file, first, length, url FROM selected WHERE number BETWEEN $least AND $end"
        sums = f"SELECT count(*), coalesce(sum(length), 0) FROM ({once})"
        count, size = tables.run(sums, {"least": least, "end": end}).fetchall()[0]
        limits = self._wish.max_documents, self._wish.max_bytes
        return (limits[0] is not None and count >= limits[0]) or (limits[1] is not None and size > limits[1])

    def _file(self, number: int, path: str) -> None:
        """Add the wanted rows of an index file."""
        first = row = number << 40
        in_path: dict[str, str] = dict(re.findall(r"/(crawl|subset)=([^/]+)(?=/)", path))
        values = {"crawl": self._wish.crawl or "", "subset": self._subset} | in_path
        with self._tables.beside() as tables, closing(batches(path)) as result:
            types = tables.types(next(result).read(()))
            taking = _IndexSelection(tables, self._wish, self._urls, types, values, in_path)
            for batch in result:
                taking.take(batch, row)
                row += batch.rows
                if self._is_enough(tables, first, row):
                    break

    def choose(self) -> int:
        """Create the table ``placed`` of the selection, with packs; return how many pages are left out as equal."""
        wish, tables = self._wish, self._tables
        same = "PARTITION BY file, first, length, url"
        once = f"SELECT * FROM selected QUALIFY row_number() OVER ({same} ORDER BY number) = 1"
        equal = "coalesce(digest, CAST(number AS VARCHAR))" if wish.distinct else "number"
        tables.run(
            f"CREATE TABLE single AS SELECT * FROM ({once}) "
            f"QUALIFY row_number() OVER (PARTITION BY {equal} ORDER BY draw, number) = 1"
        )
        limits = {"documents": wish.max_documents, "bytes": wish.max_bytes and int(wish.max_bytes)}
        tables.run(
            "CREATE TABLE chosen AS SELECT * EXCLUDE (nth, total) FROM (SELECT *, row_number() OVER w AS nth, "
            "sum(length) OVER w AS total FROM single WINDOW w AS (ORDER BY draw, number ROWS UNBOUNDED PRECEDING)) "
            "WHERE nth <= coalesce($documents, nth) AND total <= coalesce($bytes, total)",
            limits,
        )
        tables.run("CREATE TABLE whole (name VARCHAR, size BIGINT, stamp VARCHAR)")
        dense = tables.run(
            f"SELECT file, sum(length) FROM chosen GROUP BY file HAVING sum(length) * {SHARE} >= max(first + length) "
            "ORDER BY file"
        ).fetchall()
        places = [folders.place_of(file, wish.base_url)[0] for file, _ in dense]
        for (file, size), stat in zip(dense, stat_each(places), strict=True):
            if stat is not None and size * SHARE >= stat.size > 0:
                tables.run(
                    "INSERT INTO whole VALUES ($name, $size, $stamp)",
                    {"name": file, "size": stat.size, "stamp": stat.stamp},
                )
        before = "ROWS UNBOUNDED PRECEDING"
        total = f"CAST(sum(length) OVER (PARTITION BY size IS NULL ORDER BY number {before}) - length AS BIGINT)"
        end = f"max(first + length) OVER (PARTITION BY pack, file ORDER BY first, number {before} EXCLUDE CURRENT ROW)"
        tables.run(
            "CREATE TABLE placed AS SELECT *, CASE WHEN size IS NOT NULL THEN CASE WHEN begins THEN size ELSE 0 END "
            "WHEN begins THEN length ELSE greatest(0, gap + length) END AS fetched, "
            f"sum(CAST(begins AS BIGINT)) OVER (PARTITION BY pack, file ORDER BY first, number {before}) AS range "
            f"FROM (SELECT *, gap IS NULL OR (size IS NULL AND gap > {GAP}) AS begins "
            f"FROM (SELECT *, first - {end} AS gap "
            f"FROM (SELECT chosen.*, size, stamp, CASE WHEN size IS NULL THEN {total} // {self._pack} END AS pack "
            "FROM chosen LEFT JOIN whole ON file = name)))"
        )
        every = "SELECT count(*) FROM (SELECT DISTINCT file, first, length, url FROM selected)"
        return int(tables.run(f"SELECT ({every}) - (SELECT count(*) FROM single)").fetchall()[0][0])

    def estimate(self, files: int, equal: int) -> FetchEstimate:
        """Return the estimate of the fetch."""
        store = store_of(self._wish.base_url)
        get, out = (0.0 if store.is_local else GET), (0.0 if store.can_list else OUT)

        def parts(name: str, size: str, most: int) -> list[Part]:
            sums = f"SELECT {name} AS name, count(*), sum({size}), count(DISTINCT (pack, file, range)) FROM placed"
            rows = self._tables.run(f"{sums} GROUP BY ALL ORDER BY 2 DESC, 1 LIMIT {most}").fetchall()
            return [
                Part(name=name or "", pages=pages, bytes=int(size), requests=count, cost=count * get + int(size) * out)
                for name, pages, size, count in rows
                if pages
            ]

        whole = parts("''", "fetched", 1) or [Part(name="", pages=0, bytes=0, requests=0, cost=0.0)]
        return FetchEstimate(
            all=whole[0],
            index_files=files,
            equal=equal,
            hosts=self._tables.run("SELECT count(DISTINCT host) FROM placed").fetchall()[0][0],
            by_language=parts("split_part(language, ',', 1)", "length", 1000),
            by_host=parts("host", "length", SHOWN),
        )

    def hosts(self) -> set[str]:
        """Return the hosts of the pages."""
        return {host_of(url) for (url,) in self._tables.run("SELECT DISTINCT url FROM placed").fetchall()}

    def packs(self, folder: str) -> Iterator[Pack]:
        """Yield the packs, then the WARC files to fetch whole; write their rows, if there is a folder."""
        result = self._tables.run(
            "SELECT pack, size, stamp, file, first, length, url, digest, fetched FROM placed "
            "ORDER BY pack NULLS LAST, CASE WHEN pack IS NULL THEN file END, CASE WHEN pack IS NULL THEN first END, "
            "number"
        )

        def rows() -> Iterator[tuple[Any, ...]]:
            while some := result.fetchmany(FETCHED):
                yield from some

        name = self._wish.crawl or "index"
        grouped = itertools.groupby(rows(), lambda row: (row[0], row[3] if row[0] is None else ""))
        for number, ((pack, file), group) in enumerate(grouped):
            digest, size = xxhash.xxh3_128(), 0
            with ExitStack() as stack:
                output = stack.enter_context(RowOutput(join(folder, f"{number}.jsonl.gz"))) if folder else None
                for row in group:
                    *fields, fetched = row[3:]
                    line = msgspec.json.encode(fields)
                    digest.update(line + b"\n")
                    size += fetched
                    if output:
                        output.write_rows([line])
            named = folders.place_of(file, "")[1] if pack is None else f"{name}/{self._subset}-{pack:05d}"
            yield Pack(
                number=number,
                name=named,
                size=int(size),
                digest=digest.hexdigest(),
                whole=row[1] or 0,
                stamp=row[2] or "",
            )


class _IndexSelection:
    """The selection of an index file.

    Args:
        tables: Database, for this thread.
        wish: Options of the entry.
        wanted: URLs and hosts of its list, if it has one.
        types: Columns of the file, with their types in SQL.
        values: Values of the columns `PARTITIONS` that the file lacks.
        known: Those of them that its path tells.
    """

    def __init__(
        self,
        tables: Tables,
        wish: Common,
        urls: UrlList | None,
        types: Mapping[str, str],
        values: Mapping[str, str],
        in_path: Mapping[str, str],
    ) -> None:
        self._tables, self._wish, self._urls, self._types = tables, wish, urls, types
        self._where = Where(wish.where, types, wish.crawl_name) if wish.where else None
        self._values = {name: value for name, value in values.items() if name not in types}
        conditions = [f"({self._where.sql})"] if self._where else []
        used = {*self._where.columns} if self._where else set()
        self._parameters = dict(self._where.parameters) if self._where else {}
        if urls:
            conditions.append('"wanted!"')
            used |= {*urls.COLUMNS}
        if "subset" in types:
            conditions.append("subset = $subset")
            self._parameters["subset"] = values["subset"]
            used.add("subset")
        elif "subset" not in in_path:
            used.add("warc_filename")
            named = {name: f"contains(warc_filename, '/{name}/')" for name in SUBSETS[1:]}
            conditions.append(named.get(values["subset"], f"NOT ({' OR '.join(named.values())})"))
        needed = (*NEEDED, *([wish.distinct] if wish.distinct else []), *sorted(used))
        if missing := [name for name in needed if name not in types and name not in self._values]:
            raise ConfigError(f"expected an index with the column {missing[0]}; that of {wish.crawl_name} has none")
        self._columns = sorted(used & types.keys()) or [NEEDED[0]]
        self._condition = " AND ".join(conditions) or "true"
        language = column_sql(LANGUAGES, types[LANGUAGES]) if LANGUAGES in types else "[]"
        host = "url_host_name" if "url_host_name" in types else r"regexp_extract(url, '^\w+://([^/:?#]+)', 1)"
        digest = "content_digest" if "content_digest" in types else "NULL"
        self._insert = (
            'INSERT INTO selected SELECT "row!", warc_filename, warc_record_offset, warc_record_length, url, '
            f"{digest}, array_to_string({language}, ','), {host}, \"draw!\" FROM taken"
        )
        self._output = [name for name in (*NEEDED, "content_digest", LANGUAGES, "url_host_name") if name in types]

    def take(self, batch: IndexBatch, first: int) -> None:
        """Add the wanted rows of a batch; `first` is the number of its first row."""
        import duckdb
        import pyarrow as pa

        if (self._where and not self._where.may_hold(batch.extremes)) or (
            self._urls and not self._urls.may_be_in(batch.extremes)
        ):
            return
        result = batch.read(self._columns)
        with_all = result.append_column("row!", pa.array(np.arange(batch.rows)))
        for name, value in self._values.items():
            with_all = with_all.append_column(name, pa.repeat(value, batch.rows))
        if self._urls:
            with_all = with_all.append_column("wanted!", self._urls.has(result))
        sql = f'SELECT "row!" FROM batch WHERE coalesce({self._condition}, false) ORDER BY 1'
        try:
            hits = self._tables.run(sql, self._parameters, batch=with_all).fetchnumpy()["row!"]
        except duckdb.Error as error:
            raise ConfigError(f"expected a condition that holds or not, got: {str(error).splitlines()[0]}") from None
        if not len(hits):
            return
        more = [name for name in self._output if name not in self._columns]
        columns = dict.fromkeys(self._output, result) | dict.fromkeys(more, batch.read(more) if more else result)
        rows = pa.table({name: table[name].take(hits) for name, table in columns.items()})
        rows = rows.append_column("row!", pa.array(hits + first)).append_column("draw!", pa.array(self._draws(rows)))
        self._tables.run(self._insert, taken=rows)

    def _draws(self, rows: Any) -> list[int]:
        """Return the places of records in the draw: hashes of the seed and where they are."""
        if self._wish.seed is None:
            return [0] * rows.num_rows
        places = zip(rows["warc_filename"].to_pylist(), rows["warc_record_offset"].to_pylist(), strict=True)
        return [xxhash.xxh3_64_intdigest(f"{self._wish.seed}\0{file}\0{at}".encode()) >> 1 for file, at in places]
