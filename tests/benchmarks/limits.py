"""What a run cannot do without, each part alone: ``python -m tests.benchmarks.limits FILE.warc.wet.gz [--rounds N]``.

CPU seconds of one core for one WET file, parts taking turns; start-up does not count. What the toolkit takes for the
same file stands in the profile (`tests.benchmarks.profile`).
"""

import argparse
import hashlib
import os
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from tests.benchmarks.inputs import records
from toolkit.storage.compression import compress_fast, compress_small, decompress
from toolkit.storage.models import resolve
from toolkit.text import LineTable, load_fasttext

MB = 1_000_000
BLOCK = 1 << 20
DOCUMENTS = 256
"""A batch of them is predicted at once, as in a run."""


def parts(path: Path) -> dict[str, Callable[[], object]]:
    """Return what is measured, by name; all that it needs is made before."""
    wet = path.read_bytes()
    texts = [record.block.decode(errors="replace") for record in records([path])]
    rows = b"".join(msgspec.json.encode({"id": str(i), "text": text}) + b"\n" for i, text in enumerate(texts))
    blocks = [rows[at : at + BLOCK] for at in range(0, len(rows), BLOCK)]
    model = load_fasttext(resolve("lid.176.ftz"))

    def predict(chars: int) -> None:
        for at in range(0, len(texts), DOCUMENTS):
            model.predict_lines(LineTable.of(texts[at : at + DOCUMENTS]), min_chars=chars)

    def digest() -> None:
        for data in (rows, wet):  # what is stored has about the size of the input
            hashlib.sha256(data).digest()

    predict(100)  # compiles what it needs
    return {
        "inflate the WET file": lambda: decompress(wet, "gzip"),
        "language of lines of 100 code points or more": lambda: predict(100),
        "language of all lines": lambda: predict(0),
        "JSON of the documents": lambda: [msgspec.json.encode(text) for text in texts],
        "deflate the documents, gzip-fast": lambda: [compress_fast(block) for block in blocks],
        "deflate the documents, gzip": lambda: [compress_small(block) for block in blocks],
        "digests of documents, stored and not": digest,
    }


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.limits", description=__doc__)
    parser.add_argument("file", type=Path, metavar="FILE")
    parser.add_argument("--rounds", type=int, default=3, metavar="N")
    given = parser.parse_args()
    measured = parts(given.file)
    took: dict[str, list[float]] = {name: [] for name in measured}
    for _ in range(given.rounds):
        for name, function in measured.items():
            began = time.process_time()
            function()
            took[name].append(time.process_time() - began)
    print("| part alone | CPU s |\n| --- | ---: |")
    for name, seconds in took.items():
        print(f"| {name} | {statistics.median(seconds):.2f} |")
    print(f"\n{given.file.stat().st_size / MB:.0f} MB; load {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
