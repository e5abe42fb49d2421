"""Text without end: WET files that a web server makes when they are asked for, and shards of documents."""

import contextlib
import http.server
import itertools
import json
import re
import threading
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path

from isal import igzip

from tests.benchmarks.inputs import Record, records
from tests.serving import Server, serving

POOL = 16 << 20
"""Bytes of pages that are repeated, each time under another id and with a line of its own."""
BLOCK = 250
"""Documents of a gzip member of a shard."""
_ID = re.compile(rb"(?<=WARC-Record-ID: )<urn:uuid:[^>]+>")
_DIGEST = re.compile(rb"WARC-(?:Block|Payload)-Digest: [^\r\n]*\r\n")
"""The digests of a page do not fit its copies."""
_LENGTH = re.compile(rb"(?<=Content-Length: )\d+")


def pool(paths: Sequence[Path]) -> list[Record]:
    """Return the first pages of WET files."""
    taken, size = [], 0
    for record in records(paths):
        taken.append(record)
        size += len(record.block)
        if size >= POOL:
            break
    return taken


def wet(pages: Sequence[Record], number: int, size: int) -> bytes:
    """Return a WET file of about ``size`` bytes of text, one gzip member a record; a function of its arguments."""
    members, written = [], 0
    for n in itertools.count():
        head, block = pages[(number * 7919 + n) % len(pages)]
        first, _, rest = block.partition(b"\n")
        block = first + b"\nThis line is in page %d of file %d only.\n" % (n, number) + rest
        name = uuid.uuid5(uuid.NAMESPACE_URL, f"{number}:{n}")
        head = _DIGEST.sub(b"", _LENGTH.sub(b"%d" % len(block), _ID.sub(f"<urn:uuid:{name}>".encode(), head)))
        members.append(igzip.compress(head + b"\r\n" + block + b"\r\n\r\n", 1, mtime=0))
        written += len(block)
        if written >= size:
            return b"".join(members)
    raise AssertionError


@contextmanager
def served(pages: Sequence[Record], files: int, size: int) -> Iterator[str]:
    """Yield the address of a folder of such files, ``00000.warc.wet.gz`` and so on, each made when it is asked for."""
    made = lru_cache(4)(lambda number: wet(pages, number, size))
    making = threading.Lock()

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_HEAD(self) -> None:
            """Say that a file is there, and no length: to know it, the file would have to be made."""
            if (number := self._number()) is not None:
                self._begin(200, number)

        def do_GET(self) -> None:
            if (number := self._number()) is None:
                return
            with making:
                data = made(number)
            asked = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", ""))
            first = int(asked[1]) if asked else 0
            more = {"Content-Range": f"bytes {first}-{len(data) - 1}/{len(data)}"} if asked else {}
            self._begin(206 if asked else 200, number, {"Content-Length": str(len(data) - first), **more})
            with contextlib.suppress(ConnectionError):  # somebody who has read enough
                self.wfile.write(memoryview(data)[first:])

        def _number(self) -> int | None:
            found = re.fullmatch(r"/(\d{5})\.warc\.wet\.gz", self.path)
            if found and int(found[1]) < files:
                return int(found[1])
            self.send_response(404)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return None

        def _begin(self, status: int, number: int, headers: Mapping[str, str] | None = None) -> None:
            self.send_response(status)
            for name, value in {"ETag": f'"{number}"', "Accept-Ranges": "bytes", **(headers or {})}.items():
                self.send_header(name, value)
            self.end_headers()

        def log_message(self, *_: object) -> None: ...

    with serving(Server(Handler)) as server:
        yield server.url


def documents(folder: Path, shard: int, size: int) -> None:
    """Write a shard of about ``size`` bytes of text, in documents of 1 to 8 kB that compress to next to nothing."""
    written = 0
    with (folder / f"{shard:05d}.jsonl.gz").open("wb") as out:
        for block in itertools.count():
            rows = []
            for n in range(block * BLOCK, (block + 1) * BLOCK):
                text = f"Document {n} of shard {shard}.\n" + "The same line stands here again.\n" * (30 + n * 37 % 220)
                rows.append(json.dumps({"id": f"{shard}:{n}", "text": text, "source": "generated"}).encode() + b"\n")
                written += len(text)
            out.write(igzip.compress(b"".join(rows), 1, mtime=0))
            if written >= size:
                return
