"""A process that runs command lines of one checkout, which ``PYTHONPATH`` names: each in a fork of it.

It is a script, and knows of the toolkit only its entry point, so that it runs checkouts of any time. Standard input has
a request a line, as JSON: ``arguments``, ``folder``, ``output`` and ``error`` (files). The answer is the exit status.
"""

import contextlib
import gc
import importlib
import json
import os
import pkgutil
import signal
import sys
import traceback
from typing import Any

PACKAGES = ("toolkit", "taggers", "mixers")
LIBRARIES = ("boto3", "smart_open.s3", "s3transfer.manager", "pyarrow.parquet", "msgspec", "yaml")
LIMIT = 100
"""Seconds after which a command is ended: it would not end by itself."""


def preload() -> None:
    """Import all modules of the checkout, and libraries that most commands need."""
    names = [*LIBRARIES, *PACKAGES]
    for package in PACKAGES:
        path = importlib.import_module(package).__path__
        names += [module.name for module in pkgutil.walk_packages(path, f"{package}.", onerror=lambda _: None)]
    for name in names:
        if not name.endswith("__main__"):
            with contextlib.suppress(ImportError):
                importlib.import_module(name)


def work(request: dict[str, Any]) -> int:
    """Run a command line in this process; return its exit status."""
    signal.alarm(LIMIT)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    for number, path in ((1, request["output"]), (2, request["error"])):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
    os.chdir(request["folder"])
    os.fsync = lambda fd: None  # nobody cuts the power
    sys.argv = ["toolkit", *request["arguments"]]
    try:
        importlib.import_module("toolkit.cli").entry()
    except SystemExit as ending:
        return ending.code if isinstance(ending.code, int) else int(ending.code is not None)
    except BaseException:
        traceback.print_exc()
        return 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
    return 0


def main() -> None:
    """Answer requests until the end of standard input."""
    answers = os.fdopen(os.dup(1), "w")
    preload()
    gc.freeze()
    for line in sys.stdin:
        request = json.loads(line)
        child = os.fork()
        if child == 0:
            os._exit(work(request) & 0xFF)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        print(json.dumps(status), file=answers, flush=True)


if __name__ == "__main__":
    main()
