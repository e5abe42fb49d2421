"""Crawls as Common Crawl publishes them: WARC files, the columnar index, CDXJ, and captures of robots.txt."""

import base64
import gzip
import hashlib
import json
import random
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

CRAWL = "CC-MAIN-2025-30"
LANGUAGES = ("eng", "deu", "fra", "eng,fra", "rus")
WORDS = [f"word{i}" for i in range(400)]
BRETON = [
    "ur",
    "gêr",
    "eo",
    "e",
    "Breizh",
    "ha",
    "tud",
    "a",
    "gomz",
    "brezhoneg",
    "eno",
    "bemdez",
    "gant",
    "plijadur",
    "bras",
    "evel",
    "just",
]

Text = Callable[[random.Random, str], str]


def made_text(chosen: random.Random, language: str) -> str:
    words = BRETON if "bre" in language else WORDS
    return "\n".join(" ".join(chosen.choices(words, k=18)) for _ in range(chosen.randrange(8, 20)))


@dataclass
class Page:
    """A capture: a row of the index, and the record that it points to."""

    row: dict[str, Any]
    record: bytes = b""


@dataclass
class Crawl:
    """A crawl on disk.

    Attributes:
        root: What ``base_url`` is.
        rows: Of the index, in its order, by subset.
    """

    root: Path
    rows: dict[str, list[dict[str, Any]]] = field(default_factory=dict)

    def index(self, subset: str = "warc") -> list[Path]:
        return sorted((self.root / "cc-index" / "table").rglob(f"subset={subset}/*.parquet"))

    def warcs(self, subset: str = "warc") -> list[Path]:
        return sorted((self.root / "crawl-data").rglob(f"{subset}/*.warc.gz"))

    def wanted(self, language: str = "bre") -> list[dict[str, Any]]:
        return [row for row in self.rows["warc"] if language in (row["content_languages"] or "").split(",")]


def surt(host: str, path: str) -> str:
    return ",".join(reversed(host.removeprefix("www.").split("."))) + ")" + path


def member(headers: dict[str, str], block: bytes) -> bytes:
    head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return gzip.compress(
        f"WARC/1.0\r\n{head}Content-Length: {len(block)}\r\n\r\n".encode() + block + b"\r\n\r\n", 6, mtime=0
    )


def capture(
    chosen: random.Random, url: str, body: bytes, kind: str, status: int = 200
) -> tuple[bytes, bytes, bytes, str]:
    """The records of a capture, as Common Crawl writes them: request, response, metadata; and the digest."""
    date, ids = "2025-07-14T01:02:03Z", [f"<urn:uuid:{uuid.UUID(int=chosen.getrandbits(128))}>" for _ in range(3)]
    digest = base64.b32encode(hashlib.sha1(body).digest()).decode()
    said = f"HTTP/1.1 {status} OK\r\nContent-Type: {kind}\r\nDate: Mon, 14 Jul 2025 01:02:03 GMT\r\n\r\n".encode()
    shared = {"WARC-Date": date, "WARC-Target-URI": url}
    request = member({"WARC-Type": "request", "WARC-Record-ID": ids[0], **shared}, b"GET / HTTP/1.1\r\n\r\n")
    headers = {"WARC-Type": "response", "WARC-Record-ID": ids[1], **shared, "WARC-Payload-Digest": f"sha1:{digest}"}
    response = member({**headers, "Content-Type": "application/http; msgtype=response"}, said + body)
    metadata = member({"WARC-Type": "metadata", "WARC-Record-ID": ids[2], **shared}, b"fetchTimeMs: 99\r\n\r\n")
    return request, response, metadata, digest


def make_crawl(
    root: Path,
    *,
    files: int = 4,
    pages: int = 60,
    share: float = 0.1,
    dense: int | None = None,
    text: Text = made_text,
    parts: int = 2,
    groups: int = 50,
    hosts: int = 40,
    leave_out: tuple[str, ...] = (),
    seed: int = 1,
) -> Crawl:
    """A crawl in a folder.

    Args:
        files: WARC files.
        pages: Pages of each.
        share: Part of them in Breton.
        dense: Number of a WARC file all of whose pages are Breton.
        text: Makes the text of a page in a language.
        parts: Files of the index.
        groups: Rows of a row group.
        hosts: Number of hosts.
        leave_out: Columns that the index does not have.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    chosen = random.Random(seed)
    crawl = Crawl(root, {"warc": [], "robotstxt": []})
    paths: dict[str, list[str]] = {"warc": [], "robotstxt": []}
    for subset in paths:
        for number in range(files if subset == "warc" else 1):
            name = f"crawl-data/{CRAWL}/segments/1752{number % 3}.9/{subset}/CC-MAIN-20250714-{number:05}.warc.gz"
            paths[subset].append(name)
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("wb") as out:
                out.write(
                    member(
                        {"WARC-Type": "warcinfo", "WARC-Record-ID": f"<urn:uuid:{uuid.UUID(int=number)}>"}, b"x: y\r\n"
                    )
                )
                for at, (host, page, language) in enumerate(
                    _captures(chosen, subset, pages, hosts, share, dense=number == dense)
                ):
                    url = f"https://{host}{page}"
                    if subset == "warc":
                        said = text(chosen, language)
                        html = f"<html><head><title>{page}</title></head><body><p>{said}</p></body></html>"
                        kind, body = "text/html; charset=utf-8", html.replace("\n", "</p>\n<p>").encode()
                    else:
                        kind, body = "text/plain", f"User-agent: *\nDisallow: /{host}\n".encode()
                    status = 404 if subset == "warc" and at % 17 == 16 else 200
                    request, response, metadata, digest = capture(chosen, url, body, kind, status)
                    out.write(request)
                    crawl.rows[subset].append({
                        "url_surtkey": surt(host, page), "url": url, "url_host_name": host,
                        "url_host_tld": host.rpartition(".")[2],
                        "url_host_registered_domain": ".".join(host.split(".")[-2:]),
                        "url_protocol": "https", "url_port": None, "url_path": page, "url_query": None,
                        "fetch_time": 1752454923000, "fetch_status": status, "content_digest": digest,
                        "content_mime_type": kind.partition(";")[0], "content_mime_detected": kind.partition(";")[0],
                        "content_charset": "UTF-8", "content_languages": language or None, "content_truncated": None,
                        "warc_filename": name, "warc_record_offset": out.tell(), "warc_record_length": len(response),
                        "warc_segment": f"1752{number % 3}.9",
                    })  # fmt: skip
                    out.write(response)
                    out.write(metadata)
    indexes = []
    for subset, rows in crawl.rows.items():
        rows.sort(key=lambda row: (row["url_surtkey"], row["warc_filename"], row["warc_record_offset"]))
        for number in range(parts):
            some = rows[number * len(rows) // parts : (number + 1) * len(rows) // parts]
            name = f"cc-index/table/cc-main/warc/crawl={CRAWL}/subset={subset}/part-{number:05}.gz.parquet"
            indexes.append(name)
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            numbers = {
                "fetch_status": pa.int16(),
                "warc_record_offset": pa.int32(),
                "warc_record_length": pa.int32(),
                "url_port": pa.int32(),
            }
            types = {"fetch_time": pa.timestamp("ms"), **numbers}
            columns = {
                key: pa.array([row[key] for row in some], types.get(key, pa.string()))
                for key in rows[0]
                if key not in leave_out
            }
            pq.write_table(pa.table(columns), root / name, compression="gzip", row_group_size=groups)
    lists = {"warc": paths["warc"], "robotstxt": paths["robotstxt"], "cc-index-table": indexes}
    for name, listed in lists.items():
        data = "".join(f"{path}\n" for path in listed).encode()
        (root / "crawl-data" / CRAWL / f"{name}.paths.gz").write_bytes(gzip.compress(data, mtime=0))
    return crawl


def _captures(
    chosen: random.Random, subset: str, pages: int, hosts: int, share: float, *, dense: bool
) -> Iterator[tuple[str, str, str]]:
    """Hosts, paths and languages."""
    for number in range(pages if subset == "warc" else hosts):
        if subset == "robotstxt":
            yield f"www.site{number}.{('com', 'bzh', 'org')[number % 3]}", "/robots.txt", ""
            continue
        language = chosen.choice(("bre", "bre,fra")) if dense or chosen.random() < share else chosen.choice(LANGUAGES)
        host = chosen.randrange(hosts)
        yield f"www.site{host}.{('com', 'bzh', 'org')[host % 3]}", f"/{chosen.getrandbits(40):x}", language


def write_cdxj(crawl: Crawl, path: Path) -> Path:
    """The same index as CDXJ, with all subsets in it."""
    names = {
        "url": "url", "content_mime_type": "mime", "content_mime_detected": "mime-detected", "fetch_status": "status",
        "content_digest": "digest", "warc_record_length": "length", "warc_record_offset": "offset",
        "warc_filename": "filename", "content_charset": "charset", "content_languages": "languages",
    }  # fmt: skip
    rows = sorted((row for some in crawl.rows.values() for row in some), key=lambda row: str(row["url_surtkey"]))
    lines = [
        f"{row['url_surtkey']} 20250714010203 "
        + json.dumps({name: str(row[column]) for column, name in names.items() if row[column] is not None})
        for row in rows
    ]
    path.write_bytes(gzip.compress("".join(f"{line}\n" for line in lines).encode()))
    return path
