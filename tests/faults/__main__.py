"""The matrix by hand; see the package."""

import argparse
import contextlib
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from tests.annotate.server import serving
from tests.faults.cells import Bench, Played, cells, covering
from tests.faults.columns import COLUMNS
from tests.faults.kinds import KINDS
from tests.faults.places import Bucket
from tests.faults.rows import ROWS
from tests.faults.warm import Warm
from tests.storage.servers import Seaweed


@contextlib.contextmanager
def bench(folder: Path, server: Seaweed | None) -> Iterator[Bench]:
    """What cells are played on, in a folder, with a server of language models, and one of S3 if there is one."""
    with Warm() as warm, serving() as models:
        bucket = Bucket(server, folder) if server else None
        try:
            yield Bench(warm, folder, bucket, models.url)
        finally:
            if bucket:
                bucket.close()


def table(played: list[Played]) -> str:
    """Rows by columns in Markdown: passed of judged, and how many do not apply."""
    rows = [row.name for row in ROWS if any(one.cell.row is row for one in played)]
    columns = [column.name for column in COLUMNS if any(one.cell.column is column for one in played)]
    lines = ["| fault | " + " | ".join(columns) + " | all |", "|---" * (len(columns) + 2) + "|"]
    for row in [*rows, "all"]:
        found = []
        for column in [*columns, "all"]:
            mine = [
                one for one in played if row in (one.cell.row.name, "all") and column in (one.cell.column.name, "all")
            ]
            judged = [wrong for one in mine for wrong in one.wrong.values()]
            passed, out = sum(not wrong for wrong in judged), sum(bool(one.not_applicable) for one in mine)
            found.append(f"{passed}" if passed == len(judged) else f"**{passed} of {len(judged)}**")
            found[-1] = "–" if not judged else found[-1]
            if out and column == "all":
                found[-1] += f" ({out} n/a)"
        lines.append(f"| {row} | " + " | ".join(found) + " |")
    reasons = Counter(one.not_applicable for one in played if one.not_applicable)
    return "\n".join(lines) + "".join(f"\n\nNot applicable: {why}: {count} cells." for why, count in reasons.items())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--row", action="append", choices=[row.name for row in ROWS])
    parser.add_argument("--column", action="append", choices=[column.name for column in COLUMNS])
    parser.add_argument("--kind", action="append", choices=list(KINDS))
    parser.add_argument("--covering", type=int, metavar="N", help="only so many of each row, column and kind")
    given = parser.parse_args()
    wanted = [
        cell
        for cell in (covering(given.covering) if given.covering else cells())
        if (not given.row or cell.row.name in given.row)
        and (not given.column or cell.column.name in given.column)
        and (not given.kind or cell.kind in given.kind)
    ]
    played: list[Played] = []
    begin = time.monotonic()
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        server = None
        if any(cell.row.where == "bucket" for cell in wanted):
            server = Seaweed(folder / "server")
            server.start()
            stack.callback(server.kill)
        on = stack.enter_context(bench(folder, server))
        stack.enter_context(contextlib.suppress(KeyboardInterrupt))  # what was played until then is shown
        for cell in wanted:
            played.append(on.play(cell))
            for request, wrong in played[-1].wrong.items():
                for each in wrong:
                    print(f"{cell.id} {request}: {each}", flush=True)
    judged = [wrong for one in played for wrong in one.wrong.values()]
    print(f"\n{table(played)}\n")
    print(f"{len(wanted)} cells, {len(judged)} requests struck, {sum(map(bool, judged))} with faults", end="")
    print(f", {time.monotonic() - begin:.0f} s")
    return int(any(judged))


if __name__ == "__main__":
    sys.exit(main())
