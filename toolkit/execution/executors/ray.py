"""An executor on a Ray cluster (extra ``ray``).

Ray.run ──a few tasks for each CPU──> Ray ──> `work` on a node ──result, and what was reported──> Ray.run

Ray is told to retry nothing: the driver counts how often a task's process or node died. What tasks need of the
driver's environment travels with them and not as Ray's own ``runtime_env``, which is written to logs that all can read.
"""

import contextlib
import os
import pickle
import signal
import socket
import sys
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from typing import Annotated, Any, Self

import msgspec

from toolkit.config.settings import ConfigStruct
from toolkit.distribution import NAME, require_extra
from toolkit.errors import ConfigError, ToolkitError, amount, duration
from toolkit.execution.executors import Executor, Failure, P, R, Report, Result, Task, largest_first
from toolkit.execution.node import TOKEN_BYTES, DriverServer, TaskReply, UnfitNode, driver_state, run_remote, version
from toolkit.execution.processes import ONE_THREAD
from toolkit.interrupts import check
from toolkit.storage_options import Size

CONNECT_SECONDS = 5.0
WAIT_SECONDS = 1.0
LOOK_SECONDS = 5.0
"""After which the nodes are counted again."""

TELL_SECONDS = 60.0
"""After which it is told again what is waited for."""

HEAD_SECONDS = 40.0
"""How long the head may be silent. After 60 seconds Ray itself would end the process."""

STOP_SECONDS = 3.0


Count = Annotated[int, msgspec.Meta(ge=1)]
Amount = Annotated[float, msgspec.Meta(gt=0)]

GPU = "GPU"
_OWN = ("CPU", "memory")
"""Resources that tasks request by options of their own."""


class RaySettings(ConfigStruct):
    """Options of a Ray cluster.

    Attributes:
        address: `host:port` of the head; `auto`: $RAY_ADDRESS, or the cluster of this machine
        cpus: the number of CPUs that a task asks for
        memory: the memory that a task asks for
        resources: other resources of a task, by the names of Ray, such as {GPU: 1}
        retries: number of times that Ray repeats a task whose process or node died
        in_flight: number of tasks in the cluster at a time; default: twice its CPUs, divided by `cpus`
        give_up: seconds for which tasks wait while no node has what one asks for; 0: not at all
        recycle: a worker process is replaced after this number of tasks, against memory leaks
    """

    address: str = "auto"
    cpus: Count = 1
    memory: Size | None = None
    resources: dict[str, Amount] = {}
    retries: Annotated[int, msgspec.Meta(ge=0)] = 3
    in_flight: Count | None = None
    give_up: Annotated[float, msgspec.Meta(ge=0)] = 600.0
    recycle: Count | None = None

    def __post_init__(self) -> None:
        for name, count in self.resources.items():
            if name in _OWN:
                option = name.lower().replace("cpu", "cpus")
                raise ValueError(f"resources: expected no {name}; write `{option}:` beside `resources:`")
            if count > 1 and count != int(count):
                raise ValueError(f"resources: expected whole numbers, or a part of 1, got {count:g} of {name}")


class Ray(Executor):
    """Runs tasks in worker processes on the nodes of a Ray cluster.

    A worker keeps the models that it has loaded. A worker or a node that dies costs its tasks one of their retries. A
    node that cannot do tasks at all (another version of the toolkit, no such working directory) ends the run. A context
    manager that connects and disconnects.
    """

    Settings = RaySettings
    settings: RaySettings

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._connected = False
        self._ray: Any = None

    def check(self) -> None:
        _import()

    def __enter__(self) -> Self:
        self._ray = _import()
        if not self._ray.is_initialized():
            _connect(self._ray, self.settings.address)
            self._connected = True
        return self

    def __exit__(self, *_: object) -> None:
        if self._connected:
            self._ray.shutdown()
            self._connected = False

    @property
    def cores(self) -> tuple[int, int]:
        """The CPUs of all nodes together, and of the largest one; 1 of an empty cluster."""
        cpus = [1, *(int(node.get("CPU", 0)) for node in self._nodes())]
        return max(sum(cpus) - 1, 1), max(cpus)

    def run(
        self, function: Callable[[P, Report], R], tasks: Iterable[Task[P]], *, at_once: int | None = None
    ) -> Iterator[Result[R]]:
        waiting: deque[Task[Any]] = deque(largest_first(tasks))
        largest = max((self._cpus_of(task) for task in waiting), default=0)
        growth = _Growth(self, largest)
        if waiting:
            growth.look()
        begin = self._ray.remote(max_retries=0, max_calls=self.settings.recycle or 0, scheduling_strategy="SPREAD")(
            run_remote
        )
        flying, head = dict[Any, _Flight](), _ClusterHead(self._ray.get_runtime_context().gcs_address)
        deaths: Counter[str] = Counter()
        room, looked = at_once or self._limit(), time.monotonic()
        with DriverServer(self._ray.util.get_node_ip_address()) as server, self._stopping(flying, server):
            driver = driver_state(server.address)
            while waiting or flying:
                while waiting and len(flying) < room and self.can_start(waiting[0], bool(flying)):
                    task = waiting.popleft()
                    flight = _Flight(task, os.urandom(TOKEN_BYTES))
                    reference = begin.options(
                        num_cpus=self._cpus_of(task),
                        memory=self.settings.memory,
                        num_gpus=self.settings.resources.get(GPU),
                        resources={k: v for k, v in self.settings.resources.items() if k != GPU},
                        name=task.name,
                        runtime_env=_runtime(),
                    ).remote(driver._replace(token=flight.token), pickle.dumps((function, task)))
                    flying[reference] = flight
                    self.begun(task.name)
                for reference in self._ready(list(flying)):
                    flight = flying.pop(reference)
                    growth.goes_on()
                    task = flight.task
                    result = self._received(reference)
                    if isinstance(result, TaskReply):
                        self._tell(flight, result.documents, result.bytes)
                        yield pickle.loads(result.result)  # noqa: S301  # from a process of ours
                        continue
                    self._tell(flight, 0, 0)
                    deaths[task.name] += 1
                    if deaths[task.name] > self.settings.retries:
                        often = "once" if self.settings.retries == 0 else f"{deaths[task.name]} times"
                        yield Result(task.name, failure=Failure(f"{task.name}: {result}, {often}"))
                    else:
                        waiting.append(task)
                by_token = {flight.token: flight for flight in flying.values()}
                for news in server.news():
                    if sender := by_token.get(news.token):
                        self._tell(sender, sender.documents + news.documents, sender.bytes + news.bytes)
                if time.monotonic() - looked > LOOK_SECONDS:
                    looked = time.monotonic()
                    if head.answers():
                        room = at_once or self._limit()
                        growth.look()

    # --- the cluster --------------------------------------------------------------------------------------------------

    def _nodes(self) -> list[dict[str, float]]:
        return [node["Resources"] for node in self._ray.nodes() if node["Alive"]]

    def _cpus_of(self, task: Task[Any]) -> int:
        return max(self.settings.cpus, task.processes)

    def _limit(self) -> int:
        return self.settings.in_flight or max(1, 2 * self.cores[0] // self.settings.cpus)

    def has_room(self, cpus: int) -> bool:
        """Return True if some node has so many CPUs."""
        required = {"CPU": cpus, "memory": self.settings.memory or 0, **self.settings.resources}
        return any(all(node.get(name, 0) >= count for name, count in required.items()) for node in self._nodes())

    def request_text(self, cpus: int) -> str:
        """Return the resources of a task, in words."""
        memory = [f"{self.settings.memory / 1e6:,.0f} MB of memory"] if self.settings.memory else []
        extras = [f"{count:g} {name}" for name, count in self.settings.resources.items()]
        return " and ".join([amount(cpus, "CPU"), *memory, *extras])

    def listed(self) -> str:
        """Return the resources of the nodes, in words."""
        nodes = [
            f"{node.get('CPU', 0):.0f} CPUs with {node.get('memory', 0) / 1e6:,.0f} MB"
            + "".join(f" and {node.get(name, 0):g} {name}" for name in self.settings.resources)
            for node in self._nodes()
        ]
        return f"{amount(len(nodes), 'node')}: {', '.join(nodes[:4])}{', …' if len(nodes) > 4 else ''}"

    # --- tasks --------------------------------------------------------------------------------------------------------

    def _tell(self, flight: "_Flight", documents: int, size: int) -> None:
        """Report the progress of a task, by its totals."""
        self.report(documents - flight.documents, size - flight.bytes)
        flight.documents, flight.bytes = documents, size

    def _ready(self, references: list[Any]) -> list[Any]:
        check()
        ready, running = self._ray.wait(references, num_returns=1, timeout=WAIT_SECONDS)
        if ready and running:
            ready += self._ray.wait(running, num_returns=len(running), timeout=0)[0]
        return list(ready)

    def _received(self, reference: Any) -> TaskReply | str:
        """Return the reply of a task, or its process's cause of death."""
        errors = self._ray.exceptions
        try:
            result = pickle.loads(self._ray.get(reference))  # noqa: S301  # from a process of ours
        except errors.RayTaskError as error:  # `work` itself raises nothing
            cause = str(error.cause or error).strip().rpartition("\n")[2]
            raise ConfigError(
                f"executor: expected {NAME} {version()} on every node, got one where no task begins: {cause}"
            ) from None
        except errors.OutOfMemoryError:
            return "Ray ended its process, because the memory of the node was exhausted; set executor.memory"
        except errors.RayError as error:
            return _obituary(type(error).__name__)
        if isinstance(result, UnfitNode):
            raise ConfigError(f"executor: {result.reason}")
        assert isinstance(result, TaskReply)
        return result

    @contextlib.contextmanager
    def _stopping(self, flying: dict[Any, "_Flight"], server: DriverServer) -> Iterator[None]:
        """Interrupt the running tasks at the end.

        Temporary files are deleted then. Ray kills a task that does not react, as soon as the driver is disconnected.
        """
        try:
            yield
        finally:
            if flying:
                server.cut()
                self._ray.wait(list(flying), num_returns=len(flying), timeout=STOP_SECONDS)


class _Growth:
    """Waits for the cluster to grow.

    Args:
        cluster: Executor.
        cpus: CPUs of the largest task.
    """

    def __init__(self, cluster: Ray, cpus: int) -> None:
        self._cluster, self._cpus = cluster, cpus
        self._had_room = False
        self._since = self._notified = 0.0

    def goes_on(self) -> None:
        """Note the end of a task: the cluster works, even without room for the largest one."""
        self._since = time.monotonic() if self._since else 0.0

    def look(self) -> None:
        """Check for room, and print a notice while waiting.

        Raises:
            ConfigError: if there has been none since the beginning, for longer than the settings allow.
            ToolkitError: if there has been none for so long since a node was lost.
        """
        now, required = time.monotonic(), self._cluster.request_text(self._cpus)
        if self._cluster.has_room(self._cpus):
            if self._since:
                _say(f"a node that has {required} is there")
            self._had_room, self._since, self._notified = True, 0.0, 0.0
            return
        self._since = self._since or now
        limit, got = self._cluster.settings.give_up, self._cluster.listed()
        if now - self._since >= limit:
            kind = ToolkitError if self._had_room else ConfigError
            waited = f" for {duration(limit)}" if limit else ""
            raise kind(
                f"executor: expected a node that has {required}, got{waited} {got}; add one and run again, ask for "
                "less, or raise `executor.give_up`"
            )
        if not self._notified or now - self._notified >= TELL_SECONDS:
            self._notified = now
            remaining = duration(limit - (now - self._since))
            _say(
                f"waiting for a node that has {required}: there are {got}; at most {remaining} more "
                "(`executor.give_up`)"
            )


class _ClusterHead:
    """The head of a cluster; Ray itself ends the process without it.

    Args:
        address: Address of the head.
    """

    def __init__(self, address: str) -> None:
        self._address = address
        self._silent = 0.0

    def answers(self) -> bool:
        """Return True if the head answers; raise ToolkitError after a long silence."""
        host, _, port = self._address.rpartition(":")
        now = time.monotonic()
        try:
            socket.create_connection((host.strip("[]"), int(port)), WAIT_SECONDS).close()
        except OSError as error:
            why = error.strerror or str(error)
            if not self._silent:
                self._silent = now
                _say(f"waiting for the head of the cluster at {self._address}, which does not answer: {why}")
            if now - self._silent > HEAD_SECONDS:
                raise ToolkitError(
                    f"executor: expected the head of the cluster at {self._address} to answer, got for "
                    f"{duration(now - self._silent)}: {why}; begin a cluster, and run again"
                ) from None
            return False
        self._silent = 0.0
        return True


def _say(message: str) -> None:
    print(f"executor: {message}", file=sys.stderr, flush=True)


class _Flight(msgspec.Struct):
    """A task on the cluster, and its reports."""

    task: Task[Any]
    token: bytes
    documents: int = 0
    bytes: int = 0


def _runtime() -> dict[str, Any]:
    """Return the environment of a worker process: nothing secret."""
    variables = {name: os.environ.get(name, value) for name, value in ONE_THREAD.items()}
    if path := os.environ.get("PYTHONPATH"):
        variables["PYTHONPATH"] = path
    return {"env_vars": variables}


def _obituary(error: str) -> str:
    if error == "WorkerCrashedError":
        return "the worker process died (of a signal, of its memory, or in native code)"
    return f"the node or the process that did it was lost ({error})"


def _import() -> Any:
    require_extra("ray", "executor ray", "ray")
    import ray

    return ray


def _connect(ray: Any, address: str) -> None:
    """Connect to an existing cluster."""
    target = os.environ.get("RAY_ADDRESS", address) if address == "auto" else address
    expected = f"executor: expected a Ray cluster at {target}"
    hint = "`ray start --head` on one machine and `ray start --address=…` on the others begin one"
    if target != "auto":
        host, colon, port = target.rpartition(":")
        if not (host and colon and port.isdecimal()) or "/" in host:
            raise ConfigError(f"executor.address: expected host:port or auto, got {target!r}")
        try:
            socket.create_connection((host, int(port)), CONNECT_SECONDS).close()  # Ray itself would try for a minute
        except OSError as error:
            raise ConfigError(f"{expected}, got: {error.strerror or error}; {hint}") from None
    terminated = signal.getsignal(signal.SIGTERM)
    try:
        ray.init(address=target, log_to_driver=False, logging_level="ERROR")
    except (Exception, SystemExit) as error:
        cause = next(iter(str(error).strip().splitlines()), type(error).__name__)
        raise ConfigError(f"{expected}, that this machine is a node of, got: {cause}; {hint}") from None
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, terminated or signal.SIG_DFL)  # Ray has set one of its own
    ray._private.worker._worker_logs_enabled = False  # noqa: SLF001  # or it prints deaths of workers among results
