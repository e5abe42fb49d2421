"""Rows of a dataset, joined: ``joined.py HOW CONFIGURATION`` with HOW ``dry-run``, ``text``, ``no-text`` or ``arrow``.

Prints what reading took without start-up, and how many documents there were.
"""

import json
import sys
import time

import toolkit

SETS = ("language-0", "shape-0")


def main(how: str, path: str) -> None:
    documents = 0
    toolkit.mix(path, limit=1, dry_run=True)  # imports what both need
    start = time.process_time()
    if how == "dry-run":
        documents = toolkit.mix(path, dry_run=True).totals.rows
    elif how == "arrow":
        documents = sum(batch.num_rows for batch in toolkit.Dataset(path).joined(*SETS).to_arrow())
    else:
        for row in toolkit.Dataset(path).joined(*SETS, text=how == "text"):
            documents += bool(row["language"] and row["line_shape"] and (how == "no-text" or row.document.text))
    print(json.dumps({"seconds": time.process_time() - start, "documents": documents}))


main(*sys.argv[1:])
