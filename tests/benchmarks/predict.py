"""The compiled predictions on the lines that fastText gets: ``predict.py texts|lines MODEL LINES [LABELS]``.

Prints what the predictions alone took, and how many labels are not those of the file LABELS. ``texts``: a list in, a
list of lists of predictions out, as fastText has it; ``lines``: what taggers call.
"""

import itertools
import json
import sys
import time
from pathlib import Path

from toolkit.text import LineTable, load_fasttext

BATCH = 10_000


def main(how: str, model_path: str, lines_path: str, labels_path: str = "") -> None:
    model = load_fasttext(model_path)
    model.predict_lines(LineTable.of(["one line\nanother"]))  # compiles what it needs
    labels: list[str] = []
    seconds = 0.0
    with open(lines_path, encoding="utf-8", newline="\n") as stream:
        while rows := list(itertools.islice(stream, BATCH)):
            batch, text = [row[:-1] for row in rows], "".join(rows)
            start = time.process_time()
            if how == "texts":
                found = model.predict(batch, k=1)
                seconds += time.process_time() - start
                labels += [best[0].label if best else "" for best in found]
            else:
                column = model.predict_lines(LineTable.of([text]))
                seconds += time.process_time() - start
                labels += [line.label if line else "" for line in column[0]]
    told = {"seconds": seconds, "lines": len(labels)}
    if labels_path:
        reference = Path(labels_path).read_text(encoding="utf-8").split("\n")[:-1]
        told["different"] = sum(a != b for a, b in zip(labels, reference, strict=True))
    print(json.dumps(told))


main(*sys.argv[1:])
