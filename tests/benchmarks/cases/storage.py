"""The whole path on disk, and with everything on an S3 server on this machine, which takes part of its cores."""

import atexit
import os
import shutil
import tempfile
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.benchmarks import datasets
from tests.benchmarks.cases.stages import whole
from tests.benchmarks.commands import toolkit
from tests.benchmarks.inputs import Inputs
from tests.benchmarks.measure import Usage
from tests.benchmarks.race import Benchmark, Command, Contender, Counts, Figure, Run, both, faster
from tests.storage.faults import environment
from tests.storage.servers import Seaweed

BUCKET = "benchmark"


def serve(wet: Path) -> str:
    """An S3 server until this process ends, with the input; the folder that it is in."""
    from toolkit import storage

    folder = Path(tempfile.mkdtemp())
    server = Seaweed(folder)
    server.start()
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    atexit.register(server.kill)
    os.environ |= environment(server.url)
    store: Any = storage.store_of("s3://x")
    store.client.create_bucket(Bucket=BUCKET)
    for path in sorted(wet.glob("*.warc.wet.gz")):
        store.client.upload_file(str(path), BUCKET, f"wet/{path.name}")
    return f"s3://{BUCKET}/wet"


def running(name: str, wet: str, remote: bool, text: int) -> Contender:
    """Ingest, tag and mix, in a new place each time."""

    def command(folder: Path) -> Command:
        root = f"s3://{BUCKET}/{uuid.uuid4().hex}" if remote else str(folder)
        entry = {"format": "wet", "from": [f"{wet}/*.warc.wet.gz"], "source": "cc"}
        config = whole(root, entry, compression="gzip-fast")
        return toolkit("run", "-c", datasets.write_config(folder / "run.yaml", config), "--quiet", "--json")

    def counts(folder: Path, usage: Usage) -> Counts:
        return {"kept": sum(each["documents"] for each in usage.told["mix"]["labels"].values())}

    return Contender(name, command, text, counts)


def benchmarks(inputs: Inputs) -> Sequence[Benchmark]:
    crawl = inputs.crawl
    text = inputs.dataset.text
    local = running("toolkit run, on disk", str(crawl.path), False, text)
    s3 = running("toolkit run, on S3", serve(crawl.path), True, text)

    def throughput(name: str) -> Figure:
        def value(runs: Mapping[str, Run]) -> float:
            return text / runs[name].wall / 1e6

        return Figure(f"{name}, text by wall time", (name,), value, unit=" MB/s")

    return [
        Benchmark(
            "Storage",
            f"{crawl.facts['files']} WET files to an OSCAR corpus with one process, on disk and with input, documents, "
            f"attributes and output in a bucket of a server (SeaweedFS) on the same machine. {crawl.repeats}",
            (local, s3),
            (
                throughput(local.name),
                throughput(s3.name),
                faster("CPU of the toolkit: on disk / on S3", s3, local, metrics=both("cpu")),
                faster("wall: on disk / on S3", s3, local, metrics=both("wall")),
            ),
            same=("kept",),
        )
    ]
