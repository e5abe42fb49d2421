"""Processes at once at one dataset: ``python -m tests.races --rounds 200 [--seed N] [--place bucket]``."""

import argparse
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from tests.races.rounds import rounds, track


def main() -> int:
    line = argparse.ArgumentParser(prog="python -m tests.races", description=__doc__)
    line.add_argument("--rounds", type=int, default=50, help="in each place")
    line.add_argument("--seed", type=int, default=random.randrange(10**6), help="of the first round")
    line.add_argument("--place", action="append", choices=["folder", "bucket"])
    line.add_argument("--said", action="store_true", help="show what commands said whose status was not 0")
    line.add_argument("--keep", action="store_true", help="stop at the first fault, and keep what is there")
    given = line.parse_args()
    places = given.place or ["folder", "bucket"]
    begin, said, commands, wrong, played = time.monotonic(), Counter[str](), 0, 0, 0
    folder = tempfile.mkdtemp()
    try:
        with track(Path(folder), on_bucket="bucket" in places) as here:
            for one in rounds(here, iter(range(given.seed, given.seed + given.rounds)), places):
                print(f"{one.name}: {one.commands} commands, {one.faults} faults, {len(one.wrong)} wrong", flush=True)
                for each in one.wrong:
                    print(f"    {each}", flush=True)
                said += one.said
                commands, wrong, played = commands + one.commands, wrong + bool(one.wrong), played + 1
                if one.wrong and given.keep:
                    break
    finally:
        if wrong and given.keep:
            print(folder)
        else:
            shutil.rmtree(folder)
    for text, count in sorted(said.items()) if given.said else []:
        print(f"{count} x {text}\n")
    print(f"{played} rounds, {commands} commands, {wrong} judged wrong, {time.monotonic() - begin:.0f} s")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
