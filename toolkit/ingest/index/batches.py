"""Rows of index files, with columns read on request: Parquet by row groups, CDXJ by lines.

Sources: https://github.com/commoncrawl/cc-index-table (Parquet); https://pywb.readthedocs.io, "CDXJ Format".
"""

import bisect
import re
import urllib.parse
from collections.abc import Callable, Generator, Mapping, Sequence
from datetime import datetime
from itertools import islice
from typing import Any, NamedTuple, Self

import msgspec

from toolkit.data.tables.from_arrow import check_installed
from toolkit.data.tables.parquet import open_parquet
from toolkit.errors import ConfigError, DataError
from toolkit.ingest.index.columns import LANGUAGES
from toolkit.storage.paths import exists, missing_reason
from toolkit.storage.reading import Lines

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
