"""fastText's ``predict`` on lists of lines, run in the peer's environment: ``fasttext_batch.py MODEL LINES [LABELS]``.

Prints what the predictions alone took. With a third argument the label of each line is written there.
"""

import itertools
import json
import sys
import time
from pathlib import Path

from fasttext.FastText import _FastText

BATCH = 10_000


def main(model_path: str, lines_path: str, labels_path: str = "") -> None:
    model = _FastText(model_path)
    labels: list[str] = []
    seconds = 0.0
    with open(lines_path, encoding="utf-8", newline="\n") as stream:
        lines = (line[:-1] for line in stream)
        while batch := list(itertools.islice(lines, BATCH)):
            start = time.process_time()
            found, _ = model.predict(batch, k=1)
            seconds += time.process_time() - start
            labels += [best[0].removeprefix("__label__") if best else "" for best in found]
    if labels_path:
        Path(labels_path).write_text("".join(f"{label}\n" for label in labels), encoding="utf-8")
    print(json.dumps({"seconds": seconds, "lines": len(labels)}))


main(*sys.argv[1:])
