"""Commands in processes of their own that need not import anything: they are forked from one that has done so.

What a fault does to a process (open files, threads, patched functions, what it remembers of a server) ends with it,
as it would on a command line.
"""

import contextlib
import gc
import importlib
import json
import os
import pkgutil
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Self

from tests.conftest import Ran, wait_for_no_disk
from tests.waiting import PATIENCE, wait_until
from toolkit.storage_options import Duration, StorageOptions

LIMIT = int(PATIENCE)
"""Seconds after which a command is taken for one that does not end."""


class Signal(NamedTuple):
    """What a command is sent: a signal, the seconds before it, and whether its workers are, too.

    Without seconds, somebody else sends it (`Warm.send`).
    """

    number: int
    seconds: float | None
    group: bool = True


class Warm:
    """A process that runs commands; a context manager.

    Attributes:
        signal: for the next command, and for that alone.
        struck: whether the last command was still there to be sent one.
        seconds: that the last command took.
        env: variables of all commands.
    """

    def __init__(self) -> None:
        self.signal: Signal | None = None
        self.struck = False
        self.seconds = 0.0
        self.env: dict[str, str] = {}

    def __enter__(self) -> Self:
        self._folder = tempfile.TemporaryDirectory()
        self._process = subprocess.Popen(
            [sys.executable, "-m", __name__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin
        self._process.stdin.close()
        self._process.wait()
        assert self._process.stdout
        self._process.stdout.close()
        self._folder.cleanup()

    def run(
        self,
        arguments: Sequence[str],
        env: Mapping[str, str],
        *,
        disk: Mapping[str, Any] | None = None,
        settings: Mapping[str, Any] | None = None,
        changes: Sequence[str] = (),
    ) -> Ran:
        """What a command line gives; its status is negative if a signal has ended it.

        Args:
            arguments: of the command line.
            env: variables beside those of this process.
            disk: what becomes of files (see `tests.faults.disk.Disk`).
            settings: constants of modules, by their dotted names.
            changes: functions ``module:name`` that change the toolkit first.
        """
        out, err = Path(self._folder.name, "out"), Path(self._folder.name, "err")
        given = {"arguments": list(arguments), "env": {**self.env, **env}, "disk": disk, "signal": self.signal}
        given, self.signal = given | {"settings": dict(settings or {})}, None
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(
            json.dumps(given | {"changes": list(changes), "out": str(out), "err": str(err)}) + "\n"
        )
        self._process.stdin.flush()
        code, self.struck, self.seconds = json.loads(self._process.stdout.readline())
        return Ran(code, out.read_text(), err.read_text())

    def send(self, signal: Signal) -> None:
        """Send a signal to the command that is running, which was to be sent one without seconds."""
        running = int(Path(self._folder.name, "out.pid").read_text())
        with contextlib.suppress(ProcessLookupError):
            (os.killpg if signal.group else os.kill)(running, signal.number)


def _import_all() -> None:
    import toolkit.commands

    for module in pkgutil.walk_packages(toolkit.commands.__path__, "toolkit.commands."):
        importlib.import_module(module.name)
    for name in (
        "toolkit.cli",
        "toolkit.execution.executors.local",
        "mixers.dolma",
        "toolkit.ingest.formats.jsonl",
        "toolkit.whole_corpus.kinds.exact",
        "toolkit.whole_corpus.kinds.near",
        "toolkit.whole_corpus.kinds.contamination",
        "tests.faults.disk",
    ):
        importlib.import_module(name)
    for name in (
        "boto3",
        "botocore.config",
        "smart_open.s3",
        "toolkit.storage.stores.s3",
        "toolkit.storage.objects",
        "s3transfer.manager",
    ):
        with contextlib.suppress(ImportError):
            importlib.import_module(name)


def _work(given: dict[str, Any]) -> None:
    """Runs a command line in this process and ends it."""
    from toolkit.cli import entry

    if given["signal"]:
        os.setsid()
    signal.alarm(LIMIT)
    for number, path in ((1, given["out"]), (2, given["err"])):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
    os.environ.update(given["env"])
    for dotted, value in given["settings"].items():
        module, _, name = dotted.rpartition(".")
        if name == "DEFAULTS":
            value = StorageOptions(give_up=Duration(value))
        setattr(importlib.import_module(module), name, value)
    for change in given["changes"]:
        module, _, name = change.partition(":")
        getattr(importlib.import_module(module), name)()
    if given["disk"] is not None:
        from tests.faults.disk import Disk

        Disk(**given["disk"]).install()
    sys.argv = ["toolkit", *given["arguments"]]
    entry()


def _send(child: int, number: int, seconds: float, group: bool) -> bool:
    """Sends a signal to a command that has not ended by then; waits for all of its processes, and tells if it had."""
    with open(os.pidfd_open(child), "rb") as ended:
        if select.select([ended], [], [], seconds)[0]:
            return False
        with contextlib.suppress(ProcessLookupError):  # it has no group yet
            (os.killpg if group else os.kill)(child, number)
            return True
    os.kill(child, number)
    return True


def _is_gone(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return True
    return False


def main() -> None:
    """Runs the commands that standard input has, a line each.

    Prints of each its status, whether a signal met it, and its seconds.
    """
    _import_all()
    wait_for_no_disk()
    gc.freeze()
    for line in sys.stdin:
        given = json.loads(line)
        begin = time.monotonic()
        child = os.fork()
        if child == 0:
            try:
                _work(given)
            except SystemExit as ended:
                code = ended.code if isinstance(ended.code, int) else 1
            except KeyboardInterrupt:  # before the command has begun
                code = 130
            except BaseException:
                import traceback

                traceback.print_exc()
                code = 1
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
            os._exit(code)
        Path(f"{given['out']}.pid").write_text(str(child))
        struck = bool(given["signal"]) and given["signal"][1] is not None and _send(child, *given["signal"])
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        seconds = time.monotonic() - begin
        if given["signal"] and not wait_until(lambda child=child: _is_gone(child)):  # type: ignore[misc]
            raise RuntimeError("expected the workers to end with the command")
        print(json.dumps([code, struck, seconds]), flush=True)


if __name__ == "__main__":
    main()
