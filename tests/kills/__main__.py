"""Signals at random moments: ``python -m tests.kills --signals 500 [--seed N] [--place folder] [--column mix]``."""

import random
import sys
from collections import Counter
from signal import Signals

from tests.faults.columns import COLUMNS
from tests.faults.driver import Driver, parser
from tests.kills import uploads
from tests.kills.rounds import Campaign, Round, rounds


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
    line = parser("tests.kills", __doc__)
    line.add_argument("--signals", type=int, default=200, help="that must meet a running command")
    line.add_argument("--seed", type=int, default=random.randrange(10**6))
    line.add_argument("--place", action="append", choices=["folder", "bucket"])
    line.add_argument("--uploads", action="store_true", help="only signals that meet a multipart upload in a bucket")
    given = line.parse_args()
    places = ["bucket"] if given.uploads else given.place or ["folder", "bucket"]
    played: list[Round] = []
    driver = Driver()
    print(f"seed {given.seed}", flush=True)
    with driver.playing(on_bucket="bucket" in places) as bench:
        campaign, names = Campaign(bench), given.column or []
        whole = rounds(campaign, given.signals, given.seed, places, names)
        for one in uploads.rounds(campaign, given.signals, given.seed, names) if given.uploads else whole:
            played.append(one)
            for each in one.wrong:
                print(f"{one}: {each}", flush=True)
            if len(played) % 25 == 0:
                print(f"{len(played)} signals", flush=True)
    missed = sum(one.missed for one in played)
    print(f"\n{table(played)}\n")
    told = f"{len(played)} signals met a running command, {missed} came too late"
    return driver.ended(told, sum(bool(one.wrong) for one in played))


if __name__ == "__main__":
    sys.exit(main())
