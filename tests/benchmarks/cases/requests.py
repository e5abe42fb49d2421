"""What there is asked of an S3 server where nothing is to be done: requests a shard, counted by a proxy."""

import atexit
import contextlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.benchmarks import datasets
from tests.benchmarks.cases.stages import whole
from tests.benchmarks.commands import toolkit
from tests.benchmarks.inputs import Inputs
from tests.benchmarks.measure import Usage
from tests.benchmarks.race import Benchmark, Command, Contender, Counts, Figure, Run
from tests.storage.faults import environment
from tests.storage.servers import Faults, Seaweed, proxy

BUCKET = "requests"
COMMANDS = ("status", "ingest", "tag", "mix", "run")
TARGETS = {"status": 0.05}


class _Served:
    """A server behind a proxy that counts, with a dataset that has been run; until this process ends.

    Attributes:
        log: of all requests.
    """

    def __init__(self, texts: Path) -> None:
        from toolkit import storage

        folder = Path(tempfile.mkdtemp())
        server, faults, stack = Seaweed(folder / "server"), Faults(), contextlib.ExitStack()
        server.start()
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        atexit.register(server.kill)
        os.environ |= environment(stack.enter_context(proxy(lambda: server.port, faults)))
        atexit.register(stack.close)
        store: Any = storage.store_of("s3://x")
        store.client.create_bucket(Bucket=BUCKET)
        entry = {"format": "text", "from": [f"{texts}/*.txt"], "source": "texts"}
        self.config = datasets.write_config(folder / "run.yaml", whole(f"s3://{BUCKET}", entry))
        self.log = faults.log
        subprocess.run(toolkit("run", "-c", self.config, "--quiet"), check=True)


def _asking(name: str, served: _Served) -> Contender:
    before = 0

    def command(folder: Path) -> Command:
        nonlocal before
        before = len(served.log)
        return toolkit(name, "-c", served.config, "--json", *([] if name == "status" else ["--quiet"]))

    def counts(folder: Path, usage: Usage) -> Counts:
        return {"requests": len(served.log) - before}

    return Contender(f"toolkit {name}", command, 0, counts)


def _benchmark(inputs: Inputs) -> Benchmark:
    shards = inputs.texts.facts["files"]
    served = _Served(inputs.texts.path)
    asking = {name: _asking(name, served) for name in COMMANDS}

    def figure(name: str) -> Figure:
        def value(runs: Mapping[str, Run]) -> float:
            return float(runs[asking[name].name].counts["requests"]) / shards

        return Figure(f"{name}: requests a shard", (asking[name].name,), value, at_most=TARGETS.get(name), unit="")

    return Benchmark(
        "Requests",
        f"A dataset in a bucket, of {shards:,} text files, of which nothing is to be done again.",
        tuple(asking.values()),
        tuple(figure(name) for name in COMMANDS),
    )


def benchmarks(inputs: Inputs) -> Sequence[Benchmark]:
    return [_benchmark(inputs)]
