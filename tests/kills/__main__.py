"""Signals at random moments: ``python -m tests.kills --signals 500 [--seed N] [--place folder] [--column mix]``."""

import argparse
import contextlib
import random
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from signal import Signals

from tests.faults.__main__ import bench
from tests.faults.columns import COLUMNS
from tests.kills.rounds import Campaign, Round, rounds
from tests.storage.servers import Seaweed


def table(played: list[Round]) -> str:
    """How often which command was struck by which signal, in Markdown."""
    names = ("SIGKILL", "SIGTERM", "SIGINT")
    also = "of these with 2 processes | in a bucket | with uploads unfinished"
    lines = [f"| command | {' | '.join(names)} | {also} |", "|---" * 7 + "|"]
    for column in [*(column.name for column in COLUMNS), "all"]:
        mine = [one for one in played if column in (one.column.name.partition("*")[0], "all")]
        if not mine:
            continue
        sent = Counter(Signals(one.sent.number).name for one in mine)
        several = sum(one.processes > 1 for one in mine)
        away = sum(one.where == "bucket" for one in mine)
        counts = (*(sent[name] for name in names), several, away, sum(one.uploading for one in mine))
        lines.append(f"| {column} | {' | '.join(map(str, counts))} |")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.kills", description=__doc__)
    parser.add_argument("--signals", type=int, default=200, help="that must meet a running command")
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    parser.add_argument("--place", action="append", choices=["folder", "bucket"])
    parser.add_argument("--column", action="append", choices=[column.name for column in COLUMNS])
    given = parser.parse_args()
    places = given.place or ["folder", "bucket"]
    played: list[Round] = []
    begin = time.monotonic()
    print(f"seed {given.seed}", flush=True)
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        server = None
        if "bucket" in places:
            server = Seaweed(folder / "server")
            server.start()
            stack.callback(server.kill)
        campaign = Campaign(stack.enter_context(bench(folder, server)))
        stack.enter_context(contextlib.suppress(KeyboardInterrupt))
        stack.callback(lambda: print(table(played)))
        for one in rounds(campaign, given.signals, given.seed, places, given.column or []):
            played.append(one)
            for each in one.wrong:
                print(f"{one}: {each}", flush=True)
            if len(played) % 25 == 0:
                print(f"{len(played)} signals", flush=True)
    wrong = sum(bool(one.wrong) for one in played)
    missed = sum(one.missed for one in played)
    print(f"\n{len(played)} signals met a running command, {missed} came too late", end="")
    print(f", {wrong} rounds judged wrong, {time.monotonic() - begin:.0f} s")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
