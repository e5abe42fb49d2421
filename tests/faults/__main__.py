"""The matrix by hand; see the package."""

import sys
from collections import Counter
from dataclasses import replace

from tests.faults.cells import Played, cells, covering
from tests.faults.columns import COLUMNS
from tests.faults.driver import Driver, parser
from tests.faults.kinds import KINDS
from tests.faults.known import OPEN
from tests.faults.rows import ROWS


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


def _judged(played: Played, cloud: str) -> Played:
    """Return what was played without what is known, and without segments in clouds, whose names are random.

    Files that are put back there have new versions, which looks note.
    """
    known = OPEN.get(played.cell.id, {})
    played = replace(played, wrong={what: wrong for what, wrong in played.wrong.items() if what not in known})
    if cloud == "s3":
        return played
    kept = {
        what: [each for each in wrong if "/record-log/segments/" not in each] for what, wrong in played.wrong.items()
    }
    return replace(played, wrong=kept)


def main() -> int:
    line = parser("tests.faults", __doc__)
    line.add_argument("--row", action="append", choices=[row.name for row in ROWS])
    line.add_argument("--kind", action="append", choices=list(KINDS))
    line.add_argument("--covering", type=int, metavar="N", help="only so many of each row, column and kind")
    line.add_argument("--cloud", choices=("s3", "gs", "az"), default="s3", help="whose bucket it is (s3)")
    given = line.parse_args()
    wanted = [
        cell
        for cell in (covering(given.covering) if given.covering else cells())
        if (not given.row or cell.row.name in given.row)
        and (not given.column or cell.column.name in given.column)
        and (not given.kind or cell.kind in given.kind)
    ]
    played: list[Played] = []
    driver = Driver()
    with driver.playing(on_bucket=any(cell.row.where == "bucket" for cell in wanted), cloud=given.cloud) as bench:
        for cell in wanted:
            try:
                played.append(_judged(bench.play(cell), given.cloud))
            except RuntimeError:
                if given.cloud == "s3":
                    raise
                played.append(Played(cell, {}, "files that are put back there have other versions than records say"))
            for request, wrong in played[-1].wrong.items():
                for each in wrong:
                    print(f"{cell.id} {request}: {each}", flush=True)
    judged = [wrong for one in played for wrong in one.wrong.values()]
    print(f"\n{table(played)}\n")
    return driver.ended(f"{len(wanted)} cells, {len(judged)} requests struck", sum(map(bool, judged)))


if __name__ == "__main__":
    sys.exit(main())
