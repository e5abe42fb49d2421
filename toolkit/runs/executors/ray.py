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
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Annotated, Any, Self

import msgspec

from toolkit.config.settings import ConfigStruct, Description
from toolkit.config.sizes import Size
from toolkit.distribution import NAME, missing_extra
from toolkit.errors import ConfigError, ToolkitError
from toolkit.runs.executors import Executor, Failure, P, R, Report, Result, Task, largest_first
from toolkit.runs.lifeline import TOKEN_BYTES, Lifeline
from toolkit.runs.node import Returned, Unfit, caller, version, work
from toolkit.runs.processes import ONE_THREAD

CONNECT_SECONDS = 5.0
WAIT_SECONDS = 1.0
LOOK_SECONDS = 5.0
"""After which the nodes are counted again."""

ALONE_SECONDS = 60.0
"""How long tasks wait when no node is left that has room for one."""

STOP_SECONDS = 3.0


Count = Annotated[int, msgspec.Meta(ge=1)]
Amount = Annotated[float, msgspec.Meta(gt=0)]

GPU = "GPU"
_OWN = ("CPU", "memory")
"""What tasks ask for by options of their own."""


class RaySettings(ConfigStruct):
    """Options of a Ray cluster."""

    address: Annotated[
        str, Description(description="`host:port` of the head; `auto`: $RAY_ADDRESS, or the cluster of this machine")
    ] = "auto"
    cpus: Annotated[Count, Description(description="that a task asks for")] = 1
    memory: Annotated[Size | None, Description(description="that a task asks for")] = None
    resources: Annotated[
        dict[str, Amount],
        Description(description="what else a task asks for, by the names that nodes give it, say {GPU: 1}"),
    ] = {}
    retries: Annotated[
        Annotated[int, msgspec.Meta(ge=0)],
        Description(description="of a task whose process or node died"),
    ] = 3
    in_flight: Annotated[
        Count | None,
        Description(description="tasks that the cluster has at a time; default: 2 × its CPUs, divided by `cpus`"),
    ] = None
    recycle: Annotated[
        Count | None, Description(description="tasks after which a worker process is replaced, against leaks")
    ] = None

    def __post_init__(self) -> None:
        for name, amount in self.resources.items():
            if name in _OWN:
                option = name.lower().replace("cpu", "cpus")
                raise ValueError(f"resources: expected no {name}; write `{option}:` beside `resources:`")
            if amount > 1 and amount != int(amount):
                raise ValueError(f"resources: expected whole numbers, or a part of 1, got {amount:g} of {name}")


class Ray(Executor):
    """Tasks on the nodes of a Ray cluster, each in a worker process that keeps the models it has loaded.

    A worker or a node that dies costs its tasks one of their retries. A node that cannot do tasks at all (another
    version of the toolkit, no such working directory) ends the run. A context manager that connects and disconnects.
    """

    Settings = RaySettings
    settings: RaySettings

    def __init__(self, *given: Any, **options: Any) -> None:
        super().__init__(*given, **options)
        self._connected = False
        self._ray: Any = None

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
        """The CPUs of all nodes together, and of the largest one."""
        cpus = [int(node.get("CPU", 0)) for node in self._nodes()]
        return sum(cpus), max(cpus, default=0)

    def run(
        self, function: Callable[[P, Report], R], tasks: Iterable[Task[P]], *, at_once: int | None = None
    ) -> Iterator[Result[R]]:
        waiting: deque[Task[Any]] = deque(largest_first(tasks))
        largest = max((self._cpus_of(task) for task in waiting), default=0)
        if waiting and not self._room(largest):
            raise ConfigError(f"executor: expected a node that has {self._wanted(largest)}, got {self._listed()}")
        begin = self._ray.remote(max_retries=0, max_calls=self.settings.recycle or 0, scheduling_strategy="SPREAD")(
            work
        )
        flying: dict[Any, _Flight] = {}
        deaths: Counter[str] = Counter()
        room, looked, alone = at_once or self._limit(), time.monotonic(), 0.0
        with Lifeline(self._ray.util.get_node_ip_address()) as lifeline, self._stopping(flying, lifeline):
            given = caller(lifeline.address)
            while waiting or flying:
                while waiting and len(flying) < room and self.admits(waiting[0], bool(flying)):
                    task = waiting.popleft()
                    flight = _Flight(task, os.urandom(TOKEN_BYTES))
                    reference = begin.options(
                        num_cpus=self._cpus_of(task),
                        memory=self.settings.memory,
                        num_gpus=self.settings.resources.get(GPU),
                        resources={k: v for k, v in self.settings.resources.items() if k != GPU},
                        name=task.name,
                        runtime_env=_runtime(),
                    ).remote(given._replace(token=flight.token), pickle.dumps((function, task)))
                    flying[reference] = flight
                    self.begun(task.name)
                for reference in self._ready(list(flying)):
                    flight, alone = flying.pop(reference), 0.0
                    task = flight.task
                    found = self._received(reference)
                    if isinstance(found, Returned):
                        self._tell(flight, found.documents, found.bytes)
                        yield pickle.loads(found.result)  # noqa: S301  # from a process of ours
                        continue
                    self._tell(flight, 0, 0)
                    deaths[task.name] += 1
                    if deaths[task.name] > self.settings.retries:
                        often = "once" if self.settings.retries == 0 else f"{deaths[task.name]} times"
                        yield _failed(task, f"{found}, {often}")
                    else:
                        waiting.append(task)
                by_token = {flight.token: flight for flight in flying.values()}
                for news in lifeline.news():
                    if known := by_token.get(news.token):
                        self._tell(known, known.documents + news.documents, known.bytes + news.bytes)
                if time.monotonic() - looked > LOOK_SECONDS:
                    now = time.monotonic()
                    room = at_once or self._limit()
                    alone = 0.0 if self._room(largest) else alone + now - looked
                    looked = now
                    if alone > ALONE_SECONDS:
                        raise ToolkitError(f"the cluster has no node left that has {self._wanted(largest)}; run again")

    # --- the cluster --------------------------------------------------------------------------------------------------

    def _nodes(self) -> list[dict[str, float]]:
        return [node["Resources"] for node in self._ray.nodes() if node["Alive"]]

    def _cpus_of(self, task: Task[Any]) -> int:
        return max(self.settings.cpus, task.processes)

    def _limit(self) -> int:
        return self.settings.in_flight or max(1, 2 * self.cores[0] // self.settings.cpus)

    def _room(self, cpus: int) -> bool:
        """Return whether some node could do a task that asks for so many CPUs."""
        wanted = {"CPU": cpus, "memory": self.settings.memory or 0, **self.settings.resources}
        return any(all(node.get(name, 0) >= amount for name, amount in wanted.items()) for node in self._nodes())

    def _wanted(self, cpus: int) -> str:
        memory = [f"{self.settings.memory / 1e6:,.0f} MB of memory"] if self.settings.memory else []
        others = [f"{amount:g} {name}" for name, amount in self.settings.resources.items()]
        return " and ".join([f"{cpus} CPUs", *memory, *others])

    def _listed(self) -> str:
        nodes = [
            f"{node.get('CPU', 0):.0f} CPUs with {node.get('memory', 0) / 1e6:,.0f} MB"
            + "".join(f" and {node.get(name, 0):g} {name}" for name in self.settings.resources)
            for node in self._nodes()
        ]
        return f"{len(nodes)} nodes: {', '.join(nodes[:4])}{', …' if len(nodes) > 4 else ''}"

    # --- tasks --------------------------------------------------------------------------------------------------------

    def _tell(self, flight: "_Flight", documents: int, size: int) -> None:
        """Report that so much has been done of a task in all."""
        self.report(documents - flight.documents, size - flight.bytes)
        flight.documents, flight.bytes = documents, size

    def _ready(self, references: list[Any]) -> list[Any]:
        ready, others = self._ray.wait(references, num_returns=1, timeout=WAIT_SECONDS)
        if ready and others:
            ready += self._ray.wait(others, num_returns=len(others), timeout=0)[0]
        return list(ready)

    def _received(self, reference: Any) -> Returned | str:
        """Return what a task gave, or a text that says how its process ended."""
        errors = self._ray.exceptions
        try:
            found = pickle.loads(self._ray.get(reference))  # noqa: S301  # from a process of ours
        except errors.RayTaskError as error:  # `work` itself raises nothing
            cause = str(error.cause or error).strip().rpartition("\n")[2]
            raise ConfigError(
                f"executor: expected {NAME} {version()} on every node, got one where no task begins: {cause}"
            ) from None
        except errors.OutOfMemoryError:
            return "Ray ended its process, because the memory of the node was exhausted; set executor.memory"
        except errors.RayError as error:
            return _obituary(type(error).__name__)
        if isinstance(found, Unfit):
            raise ConfigError(f"executor: {found.reason}")
        assert isinstance(found, Returned)
        return found

    @contextlib.contextmanager
    def _stopping(self, flying: dict[Any, "_Flight"], lifeline: Lifeline) -> Iterator[None]:
        """Interrupt, at the end, what still runs, so that temporary files are deleted.

        Ray ends what does not listen, as soon as the driver is disconnected.
        """
        try:
            yield
        finally:
            if flying:
                lifeline.cut()
                self._ray.wait(list(flying), num_returns=len(flying), timeout=STOP_SECONDS)


@dataclass
class _Flight:
    """A task that the cluster has, and what of it has been reported."""

    task: Task[Any]
    token: bytes
    documents: int = 0
    bytes: int = 0


def _runtime() -> dict[str, Any]:
    """Return what a worker process must have when it begins: nothing secret."""
    variables = {name: os.environ.get(name, value) for name, value in ONE_THREAD.items()}
    if path := os.environ.get("PYTHONPATH"):
        variables["PYTHONPATH"] = path
    return {"env_vars": variables}


def _failed(task: Task[Any], why: str) -> Result[Any]:
    return Result(task.name, failure=Failure(f"{task.name}: {why}"))


def _obituary(error: str) -> str:
    if error == "WorkerCrashedError":
        return "the worker process died (of a signal, of its memory, or in native code)"
    return f"the node or the process that did it was lost ({error})"


def _import() -> Any:
    try:
        import ray
    except ImportError:
        raise missing_extra("ray", "executor ray", "ray") from None
    return ray


def _connect(ray: Any, address: str) -> None:
    """Connect to a cluster that is there already."""
    known = os.environ.get("RAY_ADDRESS", address) if address == "auto" else address
    wanted = f"executor: expected a Ray cluster at {known}"
    hint = "`ray start --head` on one machine and `ray start --address=…` on the others begin one"
    if known != "auto":
        host, colon, port = known.rpartition(":")
        if not (host and colon and port.isdecimal()) or "/" in host:
            raise ConfigError(f"executor.address: expected host:port or auto, got {known!r}")
        try:
            socket.create_connection((host, int(port)), CONNECT_SECONDS).close()  # Ray itself would try for a minute
        except OSError as error:
            raise ConfigError(f"{wanted}, got: {error.strerror or error}; {hint}") from None
    terminated = signal.getsignal(signal.SIGTERM)
    try:
        ray.init(address=known, log_to_driver=False, logging_level="ERROR")
    except (Exception, SystemExit) as error:
        cause = next(iter(str(error).strip().splitlines()), type(error).__name__)
        raise ConfigError(f"{wanted}, that this machine is a node of, got: {cause}; {hint}") from None
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, terminated or signal.SIG_DFL)  # Ray has set one of its own
    ray._private.worker._worker_logs_enabled = False  # noqa: SLF001  # or it prints deaths of workers among results
