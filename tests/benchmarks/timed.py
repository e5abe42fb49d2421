"""Runs one command and writes down what it took: ``python -I -S timed.py RESULT COMMAND …``.

A process of its own, because Linux counts the memory of whoever starts a program towards the program's peak: this one
is small, and so is the floor of all peaks.
"""

import json
import os
import sys
import time


def main() -> None:
    result, *command = sys.argv[1:]
    start = time.perf_counter()
    process = os.posix_spawnp(command[0], command, os.environ)
    _, status, usage = os.wait4(process, 0)
    wall = time.perf_counter() - start
    with open(result, "w") as stream:
        json.dump(
            {
                "code": os.waitstatus_to_exitcode(status),
                "wall": wall,
                "user": usage.ru_utime,
                "system": usage.ru_stime,
                "peak": usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024),
            },
            stream,
        )


main()
