"""Power cuts before each sync of commands: ``python -m tests.power [--column tag] [--seeds 3]``."""

import random
import sys
from pathlib import Path

from tests.faults.driver import Driver, parser
from tests.power.losses import Losses

USUAL = (
    "ingest",
    "tag",
    "mix",
    "remix",
    "run",
    "run-grouped",
    "per-shard",
    "again",
    "dedup",
    "tokenize",
    "report",
    "publish",
    "fetch",
)
"""Commands of the slow suite."""

EVERY = (*USUAL, "align", "train", "train-head", "annotate", "embed", "calibrate", "sample", "export")
"""Commands that write."""


def main() -> int:
    line = parser("tests.power", __doc__)
    line.add_argument("--seeds", type=int, default=2, help="of what is left of what was not synced, for each call")
    line.add_argument("--calls", type=int, default=10**6, help="of each command, drawn, that are cut")
    given = line.parse_args()
    cuts = wrong = 0
    driver = Driver()
    with driver.playing(on_bucket=False) as bench:
        losses = Losses(bench, Path(bench.folder.root).parent)
        print("| command | syncs | cuts | judged wrong |\n|---|---|---|---|", flush=True)
        for name in given.column or EVERY:
            played = [losses.after_the_end(name)]
            calls = losses.calls(name)
            for call in sorted(random.Random(name).sample(range(1, calls + 1), min(calls, given.calls))):
                played += [losses.cut(name, call, seed) for seed in (None, *range(given.seeds))]
            bad = [loss for loss in played if loss.wrong]
            print(f"| {name} | {calls} | {len(played)} | {len(bad)} |", flush=True)
            for loss in bad:
                for each in loss.wrong:
                    print(f"  {loss}: {each}", file=sys.stderr, flush=True)
            cuts, wrong = cuts + len(played), wrong + len(bad)
    return driver.ended(f"\n{cuts} cuts", wrong)


if __name__ == "__main__":
    sys.exit(main())
