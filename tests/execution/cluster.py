"""A real Ray cluster whose nodes are groups of processes on this machine; any of them can be killed.

It has a network of its own, which nothing else reaches, where that is permitted (Linux, root). Elsewhere its ports are
open to this machine's network, guarded by a token that only the cluster and its drivers know.
"""

import contextlib
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

import pytest

from tests.waiting import PATIENCE

ROOT = Path(__file__).parent.parent.parent
PORT = 6399
"""Of the head, in a network of its own. Those that Ray gives to workers begin at 10002."""

SHARED_PORTS = range(5000, 9000)
"""From which the head's is drawn in a network that others use."""

MARK = "TEST_RAY_NODE"
IMPATIENT = {"RAY_health_check_period_ms": "500", "RAY_health_check_timeout_ms": "60000"}
"""Ray misses a dead node, which refuses connections, after 2 or 3 seconds instead of 15, and waits for a busy one."""


class CannotStart(Exception):
    """There is no cluster on this machine, and why."""


class Cluster:
    """Nodes, and commands that run beside them.

    Args:
        nodes: to begin with; the first one is the head, which the others and drivers need.
        head_cpus: of the head.
        own_network: False to share this process's network, e.g. with other servers that tests have started.
    """

    def __init__(self, nodes: int = 2, *, head_cpus: int = 1, own_network: bool = True) -> None:
        self._begin_with = nodes
        self._head_cpus = head_cpus
        self._folder = Path(tempfile.mkdtemp(prefix="ray-", dir="/tmp"))  # paths of sockets are short
        self._name = secrets.token_hex(8)
        self._token = secrets.token_hex(32)
        self._network: subprocess.Popen[bytes] | None = None
        self._own_network = own_network
        self._port = PORT if own_network else secrets.choice(SHARED_PORTS)
        self.nodes = 0

    def __enter__(self) -> Self:
        try:
            if self._own_network:
                self._isolate()
            self._add_nodes()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for number in reversed(range(self.nodes)):
            self.kill_node(number)
        if self._network:
            self._network.kill()
            self._network.wait()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _add_nodes(self) -> None:
        for number in range(self._begin_with):
            self.add_node(self._head_cpus if number == 0 else 1)

    def begin_anew(self) -> None:
        """Ends all nodes, and begins another cluster with as many as at first."""
        for number in reversed(range(self.nodes)):
            self.kill_node(number)
        self.nodes = 0
        self._add_nodes()

    def _isolate(self) -> None:
        command = ["unshare", "--net", "sh", "-c", "ip link set lo up && echo up && exec sleep 100000"]
        with contextlib.suppress(FileNotFoundError):
            process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
            assert process.stdout
            with process.stdout:
                if process.stdout.readline() == b"up\n":
                    self._network = process
                    return
            process.kill()
            process.wait()

    @property
    def logs(self) -> Path:
        """Where Ray logs."""
        return self._folder / "session_latest" / "logs"

    @property
    def address(self) -> str:
        """Of the head."""
        return f"127.0.0.1:{self._port}"

    @property
    def env(self) -> dict[str, str]:
        """The environment of a driver."""
        return {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "RAY_ADDRESS": self.address,
            "RAY_AUTH_MODE": "token",
            "RAY_AUTH_TOKEN": self._token,
            "RAY_USAGE_STATS_ENABLED": "0",
        }

    def command(self, *arguments: object) -> list[str]:
        """A command line that runs in the cluster's network."""
        enter = ["nsenter", f"--net=/proc/{self._network.pid}/ns/net"] if self._network else []
        return [*enter, *map(str, arguments)]

    def begin(self, *arguments: object, **options: Any) -> subprocess.Popen[bytes]:
        """Starts a driver in a process group of its own: ``begin(sys.executable, "-m", "toolkit.cli", …)``."""
        return subprocess.Popen(self.command(*arguments), env=self.env, start_new_session=True, **options)

    def run(self, *arguments: object) -> subprocess.CompletedProcess[str]:
        """Runs a driver to its end."""
        return subprocess.run(
            self.command(*arguments), env=self.env, capture_output=True, text=True, timeout=PATIENCE, check=False
        )

    def add_node(self, cpus: int = 1, gpus: int = 0) -> int:
        """Adds a node; its number. GPUs are what it says that it has.

        Raises:
            CannotStart: with what Ray says.
        """
        number = self.nodes
        self.nodes += 1
        if number:
            role = [f"--address={self.address}"]
        else:
            role = ["--head", f"--port={self._port}", "--include-dashboard=false", f"--temp-dir={self._folder}"]
        ray = [sys.executable, "-c", "from ray.scripts.scripts import main; main()"]
        log = self._folder / f"start-{number}.log"
        with log.open("wb") as output:  # a pipe would stay open as long as the node
            started = subprocess.run(
                self.command(
                    *ray, "start", *role, f"--node-ip-address=127.0.0.{number + 1}", f"--num-cpus={cpus}",
                    f"--num-gpus={gpus}", "--disable-usage-stats", "--object-store-memory=80000000",
                ),
                env=self.env | IMPATIENT | {MARK: f"{self._name}-{number}"},
                stdin=subprocess.DEVNULL, stdout=output, stderr=output, timeout=PATIENCE, check=False,
            )  # fmt: skip
        if started.returncode:
            raise CannotStart(log.read_text(errors="replace")[-2000:])
        return number

    def kill_node(self, number: int) -> None:
        """What a power cut does: every process of a node is gone at once, its workers among them."""
        deadline = time.monotonic() + PATIENCE
        while pids := self.processes(number):
            for pid in pids:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            assert time.monotonic() < deadline, f"processes of node {number} do not end"
            time.sleep(0.02)

    def processes(self, number: int) -> list[int]:
        """The processes of a node."""
        mark = f"{MARK}={self._name}-{number}".encode()
        found = []
        for folder in Path("/proc").iterdir():
            if folder.name.isdecimal():
                with contextlib.suppress(OSError):
                    if mark in (folder / "environ").read_bytes().split(b"\0"):
                        found.append(int(folder.name))
        return found

    def workers(self, number: int) -> list[int]:
        """The processes of a node that do a task now."""
        found = []
        for pid in self.processes(number):
            with contextlib.suppress(OSError):
                title = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[0]
                if title.startswith(b"ray::") and b"IDLE" not in title and not title.endswith((b"Agent",)):
                    found.append(pid)
        return found


def started(nodes: int) -> Iterator[Cluster]:
    """Yield a cluster for a fixture; skip its tests where Ray cannot start."""
    pytest.importorskip("ray", reason="the extra ray is not installed")
    if not Path("/proc/self/environ").exists():
        pytest.skip("nodes are found by /proc, which is not here")
    try:
        with Cluster(nodes) as found:
            yield found
    except CannotStart as error:
        pytest.skip(f"Ray cannot start: {error}")
