"""Power cuts before each sync of commands: ``python -m tests.power [--column tag] [--seeds 3]``."""

import argparse
import contextlib
import random
import sys
import tempfile
import time
from pathlib import Path

from tests.faults.__main__ import bench
from tests.faults.columns import COLUMNS
from tests.power.losses import Losses

USUAL = ("ingest", "tag", "mix", "remix", "run", "run-grouped", "per-shard", "again", "dedup", "tokenize")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.power", description=__doc__)
    parser.add_argument("--column", action="append", choices=[column.name for column in COLUMNS])
    parser.add_argument("--seeds", type=int, default=2, help="of what is left of what was not synced, for each call")
    parser.add_argument("--calls", type=int, default=10**6, help="of each command, drawn, that are cut")
    given = parser.parse_args()
    begin, cuts, wrong = time.monotonic(), 0, 0
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        losses = Losses(stack.enter_context(bench(folder, None)), folder)
        stack.enter_context(contextlib.suppress(KeyboardInterrupt))
        print("| command | syncs | cuts | judged wrong |\n|---|---|---|---|", flush=True)
        for name in given.column or USUAL:
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
    print(f"\n{cuts} cuts, {wrong} judged wrong, {time.monotonic() - begin:.0f} s")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
