"""What `toolkit annotate` itself takes for a request, of a server that answers at once."""

import atexit
import json
import random
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.benchmarks import datasets
from tests.benchmarks.commands import toolkit
from tests.benchmarks.inputs import Inputs
from tests.benchmarks.measure import Usage
from tests.benchmarks.peers import HERE
from tests.benchmarks.race import Benchmark, Command, Contender, Counts, Figure, Run

SCRIPT = HERE.parent / "answering.py"
DOCUMENTS = 5_000
WORDS = 500
TARGET = 200
"""Requests a second."""


def _server() -> int:
    """Start a server that ends with this process; return its port."""
    process = subprocess.Popen([sys.executable, SCRIPT], stdout=subprocess.PIPE, text=True)
    atexit.register(process.kill)
    assert process.stdout
    return int(process.stdout.readline())


def _documents(folder: Path) -> None:
    chance = random.Random(1)
    words = ["".join(chance.choices("etaoinshrdlu", k=chance.randint(2, 9))) for _ in range(2_000)]
    path = folder / "data/documents/a.jsonl"
    path.parent.mkdir(parents=True)
    rows = ({"id": str(i), "text": " ".join(chance.choices(words, k=WORDS)), "source": "s"} for i in range(DOCUMENTS))
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def _counts(folder: Path, usage: Usage) -> Counts:
    (path,) = (folder / "data/.toolkit/answers").rglob("*.jsonl")
    return {"requests": path.read_bytes().count(b"\n")}


def benchmarks(inputs: Inputs) -> Sequence[Benchmark]:
    port = _server()

    def command(folder: Path) -> Command:
        _documents(folder)
        prompt = {"prompt_name": "p", "prompt": "Judge this text.\n{{ text }}"}
        entry = {"endpoint": f"http://127.0.0.1:{port}/v1", "model": "m", "prompt": prompt}
        config = {"dataset": str(folder / "data"), "annotate": {"edu-0": entry}}
        return toolkit("annotate", "-c", datasets.write_config(folder / "a.yaml", config), "--quiet")

    ours = Contender("toolkit annotate", command, 0, _counts)

    def rate(runs: Mapping[str, Run]) -> float:
        run = runs[ours.name]
        return float(run.counts["requests"]) / run.wall

    def each(runs: Mapping[str, Run]) -> float:
        run = runs[ours.name]
        return 1000 * run.cpu / float(run.counts["requests"])

    return [
        Benchmark(
            "Annotating",
            f"{DOCUMENTS:,} documents of about 3 kB, 32 requests at a time, answers durable, start-up and "
            "attributes counted; the server, on loopback, answers at once, and shares the cores.",
            (ours,),
            (
                Figure("requests a second, wall", (ours.name,), rate, at_least=TARGET, unit=""),
                Figure("CPU a request", (ours.name,), each, unit=" ms"),
            ),
        )
    ]
