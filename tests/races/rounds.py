"""A round: processes that work at once at one dataset and one output, as users have them; what is there is judged.

What they do is drawn from a seed: shares of a command, or the same command several times; a share that comes late, or
is killed and begun again; others who look meanwhile; a second act, when a rule, an input or a tagger has changed. One
command finishes each act. Then the bytes must be those of one process alone, and nothing may be left.
"""

import contextlib
import random
import re
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from signal import SIGKILL
from typing import NamedTuple, Self

from tests.conftest import Ran
from tests.faults.warm import Signal, Warm
from tests.races.worlds import CHANGES, FINDS, OUTPUTS, SHAPES, World
from tests.recipes import tree
from tests.sessions import forget_stores
from tests.storage.faults import environment
from tests.storage.servers import Faults, Seaweed, proxy
from toolkit.storage import store_of
from toolkit.storage.paths import join, list_files, remove_tree

MOST = 4
"""Processes that work at once."""

LOOKERS = 2
"""Others who look at the same time."""

LOOKS = (
    "status -c {config}",
    "status -c {config} --json",
    "validate -c {config}",
    "head {root}/data/documents/s/a/00.jsonl.gz -n 2",
    "head {root}/out/documents/documents_part_1.jsonl.gz -n 2",
    "stats {root}/data/documents --json",
    "stats {root}/out",
    "clean {root}/data --dry-run",
    "mix -c {config} --dry-run",
    "tag -c {config} --dry-run",
    "mix -c {config} --explain 2",
)
"""What others ask for meanwhile."""

SECONDS = 6.0
"""That a command is thought to take before one was seen: the latest moment of a kill."""

TOLD = re.compile(r"expected no other run")
"""What a command says that gives way."""

WHOLE = ("dedup", "sample", "calibrate")
"""Commands whose sets are there when all shares have ended, and one command of all behind them."""

ASKED = 3
"""Times that one asks again, at most."""

FAULTS = ("503", "500", "reset", "cut", "lost")
"""Of the server, in some rounds."""


class Step(NamedTuple):
    """A command of one of those who work.

    Attributes:
        arguments: of the command line.
        kill: as a share of the time that it takes, when it is killed; None if it is not.
    """

    arguments: tuple[str, ...]
    kill: float | None = None


@dataclass
class Plan:
    """What happens in an act: in each phase the workers begin at once, each does its steps in order.

    Attributes:
        phases: of the act, one after the other, each with its workers.
        late: the number of a worker, by phase, who begins when the first of the others has ended.
        looks: what is asked for meanwhile, each by one who asks again until all have ended.
    """

    phases: list[list[list[Step]]]
    late: list[int | None]
    looks: list[str]


@dataclass
class Told:
    """What was said, with the status, by whom; whether they were killed, or only looked."""

    name: str
    ran: Ran
    killed: bool = False
    looks: bool = False


@dataclass
class Round:
    """What happened.

    Attributes:
        name: the place and all that was drawn, for people.
        wrong: what was not as it must be.
        said: messages of commands with a status that is not 0, without what is different each time; how often.
        commands: how many ran.
        faults: of the server.
    """

    name: str
    wrong: list[str] = field(default_factory=list)
    said: Counter[str] = field(default_factory=Counter)
    commands: int = 0
    faults: int = 0


class Track:
    """Where rounds are played: processes that run commands, a folder and, if there is a server, a bucket.

    A context manager.

    Attributes:
        folder: for what is on disk.
        server: of S3.
        env: of commands that speak with it.
        warm: processes that run commands.
    """

    def __init__(self, folder: Path, server: Seaweed | None = None) -> None:
        self.folder, self.server = folder, server
        self._alone: dict[World, dict[str, str]] = {}
        self._seconds: dict[str, float] = {}
        self._stack = contextlib.ExitStack()
        self.warm: list[Warm] = []
        self.env = environment(server.url) if server else {}
        if server:
            store = store_of("s3://x")
            store.client.create_bucket(Bucket="races")  # type: ignore[attr-defined]

    def __enter__(self) -> Self:
        self.warm = [self._stack.enter_context(Warm()) for _ in range(MOST + LOOKERS)]
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def play(self, seed: int, place: str) -> Round:
        """Play a round in an empty place, `folder` or `bucket`."""
        chance = random.Random(f"{place} {seed}")
        root = join("s3://races" if place == "bucket" else str(self.folder), f"round-{seed}")
        world = World(chance.choice(SHAPES), chance.choice(FINDS), output=chance.choice(OUTPUTS))
        processes = 1 if chance.random() < 0.8 else 2
        change = chance.choice(CHANGES) if chance.random() < 0.6 else ""
        chances = {chance.choice(FAULTS): 0.01, "503": 0.01} if place == "bucket" and chance.random() < 0.25 else {}
        faults = Faults(chances, seed=seed)
        drawn_ = (world.shape, world.finds, world.output or "-", change or "no change", *sorted(chances))
        round_ = Round(f"{place} {seed}: {', '.join(drawn_)}")
        with contextlib.ExitStack() as stack:
            env = self.env
            if chances and (server := self.server):
                env = environment(stack.enter_context(proxy(lambda: server.port, faults)))
            for number, each in enumerate([world, replace(world, change=change)][: 2 if change else 1]):
                config = each.lay_out(root, processes)
                again = change if number else ""
                self._act(round_, each, drawn(chance, each, root, config, again), root, config, env, again)
                if round_.wrong:
                    break
        if place == "bucket":  # a kill, or an answer that is lost, may leave an upload behind
            self.warm[0].run(["clean", root], {})
        round_.wrong += [f"left: {name}" for name in left(root) if not (world.is_per_shard and "/stage/" in name)]
        round_.faults = sum(faults.seen.values()) - faults.seen["none"]
        if not round_.wrong:
            remove_tree(root)
        return round_

    def _act(
        self, round_: Round, world: World, plan: Plan, root: str, config: str, env: dict[str, str], change: str
    ) -> None:
        for workers, late in zip(plan.phases, plan.late, strict=True):
            for told in self._phase(workers, late, plan.looks, env):
                self._judge(round_, told)
        for command in ("run",) if world.is_per_shard else ("run", "validate"):
            more = options(world, change) if command == "run" else ()
            ran = self.warm[0].run([command, "-c", config, *more], env)
            round_.commands += 1
            if ran.code:
                round_.wrong.append(f"the last {command}: status {ran.code}\n{ran.out}{ran.err}")
                return
        self._judge_bytes(round_, world, root)

    def _phase(self, workers: list[list[Step]], late: int | None, looks: list[str], env: dict[str, str]) -> list[Told]:
        first, done = threading.Event(), threading.Event()

        def work(number: int) -> list[Told]:
            if number == late:
                first.wait()
            found = []
            try:
                for step in workers[number]:
                    warm, what = self.warm[number], step.arguments[0]
                    if step.kill is not None:
                        warm.signal = Signal(SIGKILL, step.kill * self._seconds.get(what, SECONDS))
                    ran = warm.run(step.arguments, env)
                    killed = step.kill is not None and warm.struck
                    if not killed:
                        self._seconds[what] = warm.seconds
                    found.append(Told(" ".join(step.arguments), ran, killed))
                return found
            finally:
                first.set()

        def look(number: int) -> list[Told]:
            found = []
            while True:
                ended = done.is_set()
                ran = self.warm[MOST + number].run(looks[number].split(), env)
                found.append(Told(looks[number], ran, looks=True))
                if ended or len(found) == ASKED:
                    return found

        with ThreadPoolExecutor() as pool:
            looking = [pool.submit(look, number) for number in range(len(looks))]
            working = [pool.submit(work, number) for number in range(len(workers))]
            try:
                told = [each for one in working for each in one.result()]
            finally:
                done.set()
            return [*told, *(each for one in looking for each in one.result())]

    def _judge(self, round_: Round, told: Told) -> None:
        round_.commands += 1
        ran, what = told.ran, told.name.split()[0]
        if ran.code:
            name = "look" if told.looks else "work"
            round_.said[f"{name} {what} {ran.code}: {plain(ran.err or ran.out)}"] += 1
        if "Traceback" in ran.err:
            round_.wrong.append(f"{told.name}: a traceback\n{ran.err}")
        elif told.killed:
            return
        elif told.looks:
            if ran.code not in (0, 1, 2):
                round_.wrong.append(f"{told.name}: status {ran.code}\n{ran.out}{ran.err}")
        elif ran.code and not (ran.code == 2 and TOLD.search(ran.err)):
            round_.wrong.append(f"{told.name}: status {ran.code}\n{ran.out}{ran.err}")

    def _judge_bytes(self, round_: Round, world: World, root: str) -> None:
        expected, found = self.alone(world), made(root)
        for name in sorted(expected.keys() | found.keys()):
            if expected.get(name) != found.get(name):
                how = "lost" if name not in found else "too much" if name not in expected else "other bytes"
                round_.wrong.append(f"{name}: {how}")

    def alone(self, world: World) -> dict[str, str]:
        """What one process makes."""
        if world not in self._alone:
            root = str(self.folder / f"alone-{len(self._alone)}")
            self.warm[0].run(["run", "-c", world.lay_out(root, 1), *options(world, "")], {}).succeeds()
            self._alone[world] = made(root)
            remove_tree(root)
        return self._alone[world]


def made(root: str) -> dict[str, str]:
    """The sha256 of documents, attributes and output below a root."""
    return {name: digest for name, digest in tree(root).items() if name.startswith(("data/", "out"))}


LEFT = re.compile(r"/(leases|segments|stage|parts|failed)/|publishing\.json$|\.tmp$")


def left(root: str) -> list[str]:
    """What work has left behind."""
    found = [name for name in list_files(root, hidden=True) if LEFT.search(name)]
    return found + list(map(str, store_of(root).leftovers(root, any_owner=True)))


def plain(text: str) -> str:
    """What is said without what is different each time."""
    text = re.sub(r"(s3:/)?/\S*/round-\d+", "ROOT", text.strip())
    text = re.sub(r"\b[0-9a-f]{16,}\b", "HASH", text)
    text = re.sub(r"[\w-]+\.\d+\.\d+[\w.]*", "OWNER", text)
    return re.sub(r"\d+", "N", text)[-600:]


def options(world: World, change: str) -> tuple[str, ...]:
    """Options of `run`, when this was changed before."""
    return (("--overwrite",) if change == "tagger" else ()) + (("--per-shard",) if world.is_per_shard else ())


def drawn(chance: random.Random, world: World, root: str, config: str, change: str) -> Plan:
    """What happens in an act: `change` is what was changed before it."""
    more = options(world, change)
    how = chance.choice(("shares", "shares", "steps", "same", "same steps", "mixed"))
    if world.is_per_shard:
        how = chance.choice(("shares", "same", "mixed"))
    count = chance.randrange(2, MOST + 1)

    def share(command: str, number: int) -> tuple[str, ...]:
        return (command, "-c", config, *more, "--shard", f"{number}/{count}")

    def whole(command: str) -> tuple[str, ...]:
        return (command, "-c", config, *more)

    def killed(arguments: tuple[str, ...]) -> list[Step]:
        again = chance.random() < 0.4
        return [*([Step(arguments, chance.random())] if again else []), Step(arguments)]

    commands = ["run"] if how in ("shares", "same", "mixed") else world.sections
    phases = []
    for command in commands:
        if how in ("shares", "steps"):
            phases.append([killed(share(command, number)) for number in range(count)])
        elif how == "mixed":
            phases.append([killed(share(command, 0)), *([killed(whole(command))] * (count - 1))])
        else:
            phases.append([killed(whole(command)) for _ in range(count)])
        if how == "same steps" or (how == "steps" and command in WHOLE):  # what the next one needs
            phases.append([[Step(whole(command))]])
    late = [chance.randrange(count) if len(each) > 1 and chance.random() < 0.3 else None for each in phases]
    looks = chance.sample(LOOKS, chance.choice((0, 1, LOOKERS)))
    return Plan(phases, late, [each.format(root=root, config=config) for each in looks])


def rounds(track: Track, seeds: Iterator[int], places: list[str]) -> Iterator[Round]:
    """Yield a round for each seed, in each place."""
    for seed in seeds:
        for place in places:
            yield track.play(seed, place)


@contextlib.contextmanager
def track(folder: Path, *, on_bucket: bool) -> Iterator[Track]:
    """A track in a folder, with a server of S3 if that is wanted."""
    import os

    with contextlib.ExitStack() as stack:
        server = None
        if on_bucket:
            server = Seaweed(folder / "server")
            server.start()
            stack.callback(server.kill)
            os.environ |= environment(server.url)
            forget_stores()
        yield stack.enter_context(Track(folder, server))
