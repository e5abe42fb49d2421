"""Language identification of lines alone: our compiled predictions beside fastText's own."""

import sys
from collections.abc import Sequence
from pathlib import Path

from tests.benchmarks.inputs import Inputs
from tests.benchmarks.measure import Usage
from tests.benchmarks.peers import HERE
from tests.benchmarks.race import Benchmark, Command, Contender, Counts, both, faster

OURS = HERE.parent / "predict.py"
SHELL = 'exec "$0" predict-prob "$1" "$2" > "$3"'
TARGET = 6.0


def told(folder: Path, usage: Usage) -> Counts:
    return {name: usage.told[name] for name in ("lines", "different") if name in usage.told}


def tags(folder: Path, usage: Usage) -> Counts:
    return {"lines": (folder / "out" / "tags").read_bytes().count(b"\n")}


def batch(inputs: Inputs, lines: Path, text: int) -> Contender:
    """fastText's ``predict`` on lists of lines."""

    def command(folder: Path) -> Command:
        return [inputs.peers.python("fasttext"), "-I", HERE / "fasttext_batch.py", inputs.model, lines]

    return Contender("fastText predict, batches", command, text, told)


def benchmarks(inputs: Inputs) -> Sequence[Benchmark]:
    found = inputs.lines(inputs.scale.lines)

    def binary(folder: Path) -> Command:
        return ["sh", "-c", SHELL, inputs.peers.fasttext_binary(), inputs.model, found.path, folder / "out" / "tags"]

    def ours(how: str) -> Contender:
        def command(folder: Path) -> Command:
            labels = inputs.labels(found.path)
            return [sys.executable, "-I", OURS, how, inputs.model, found.path, *([labels] if labels else [])]

        return Contender(f"toolkit, {how}", command, found.text, told)

    peer, texts, lines = batch(inputs, found.path, found.text), ours("texts"), ours("lines")
    native = Contender("fastText command line", binary, found.text, tags, note="compiled for this machine")
    return [
        Benchmark(
            "Predictions",
            f"The best label of each of {found.facts['lines']:,} lines with {Path(inputs.model).name}. `texts` gives "
            "what fastText gives, a list for each line; `lines` is what taggers call. `different` counts labels that "
            "are not fastText's.",
            (peer, native, texts, lines),
            (
                faster("lines: fastText predict / toolkit", lines, peer, metrics=both("inner"), at_least=TARGET),
                faster("texts: fastText predict / toolkit", texts, peer, metrics=both("inner")),
                faster("lines: fastText command line / toolkit", lines, native, metrics=both("inner")),
            ),
            same=("lines",),
        )
    ]
