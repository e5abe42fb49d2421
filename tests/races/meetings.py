"""Two commands that meet: just before one of a command's requests, another command does all of its work.

    python -m tests.races.meetings --points 40 --place bucket      each pair, at so many requests

Each request of the first command is numbered; the other one begins before it, and ends, or waits for the first. Then
the first goes on. What both say and leave is judged as in `tests.races.rounds`.
"""

import argparse
import contextlib
import itertools
import os
import random
import shutil
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.conftest import Ran
from tests.faults.warm import Warm
from tests.races.rounds import TOLD, Track, left, made, track
from tests.races.worlds import World
from tests.waiting import wait_until
from toolkit.storage import store_of
from toolkit.storage.outputs import write_file
from toolkit.storage.paths import join, list_files, remove_tree

MEETING = "TOOLKIT_TESTS_MEETING"
"""Variable that names the folder in which two processes meet."""

AT = "TOOLKIT_TESTS_MEETING_AT"
"""Variable: the number of the request."""


@dataclass(frozen=True)
class Pair:
    """Two commands, and what is there before.

    Attributes:
        name: of the pair.
        first, other: arguments of the command lines; ``{config}`` is that of the world, ``{before}`` that of the world
            before its change.
        world: that they work in, which `change` has changed since.
        before: commands that have been done, before the change.
        between: commands that have been done since.
        looks: whether the first only looks: it may find what is there not yet, or no more.
        reads: whether one of them reads what the other one replaces: it may be told so.
    """

    name: str
    first: str
    other: str
    world: World
    before: tuple[str, ...] = ()
    between: tuple[str, ...] = ()
    looks: bool = False
    reads: bool = False


_PLAIN = World("plain", "copies")
_CUT = World("cut", "nothing")
_PACKED = World("packed", "nothing", "input")
_RULE = World("plain", "nothing", "rule")
_INPUT = World("plain", "copies", "input")
_TAGGER = World("plain", "nothing", "tagger")

_LOOKS = (
    "status -c {config} --json",
    "validate -c {config}",
    "stats {root}/data/documents",
    "stats {root}/out",
    "head {root}/out/documents/documents_part_1.jsonl.gz",
    "head {root}/data/documents/s/b/01.jsonl.gz",
    "mix -c {config} --dry-run",
    "tag -c {config} --dry-run",
    "mix -c {config} --explain 1",
)

PAIRS = (
    Pair("shares of run", "run -c {config} --shard 0/2", "run -c {config} --shard 1/2", _CUT),
    Pair("shares of ingest", "ingest -c {config} --shard 0/2", "ingest -c {config} --shard 1/2", _PACKED),
    Pair("shares of tag", "tag -c {config} --shard 0/2", "tag -c {config} --shard 1/2", _PLAIN, between=("ingest",)),
    Pair("shares of dedup", "dedup -c {config} --shard 0/2", "dedup -c {config} --shard 1/2", _PLAIN,
         between=("ingest", "tag")),
    Pair("shares of mix", "mix -c {config} --shard 0/2", "mix -c {config} --shard 1/2", _CUT,
         between=("ingest", "tag")),
    Pair("the same share", "run -c {config} --shard 0/2", "run -c {config} --shard 0/2", _CUT),
    Pair("the same run", "run -c {config}", "run -c {config}", _PLAIN),
    Pair("the same ingest", "ingest -c {config}", "ingest -c {config}", _PACKED, before=("ingest",)),
    Pair("the same tag", "tag -c {config}", "tag -c {config}", _PLAIN, between=("ingest",)),
    Pair("the same dedup", "dedup -c {config}", "dedup -c {config}", _PLAIN, between=("ingest", "tag")),
    Pair("the same mix", "mix -c {config}", "mix -c {config}", _RULE, before=("run",)),
    Pair("a share and the whole", "run -c {config} --shard 0/2", "run -c {config}", _PLAIN),
    Pair("the whole and a share", "run -c {config}", "run -c {config} --shard 0/2", _INPUT, before=("run",)),
    Pair("ingest while it is tagged", "tag -c {config}", "ingest -c {config}", _INPUT, before=("ingest",)),
    Pair("tag while it is ingested", "ingest -c {config}", "tag -c {config}", _INPUT, before=("ingest",)),
    Pair("tag while it is mixed", "mix -c {config}", "tag -c {config} --overwrite", _TAGGER, before=("run",),
         reads=True),
    Pair("mix while it is tagged", "tag -c {config} --overwrite", "mix -c {config}", _TAGGER, before=("run",),
         reads=True),
    *(Pair(f"{look.split()[0]} {number} while it is made", look, "run -c {config}", _PLAIN, between=("ingest",),
           looks=True) for number, look in enumerate(_LOOKS)),
    *(Pair(f"{look.split()[0]} {number} while it is made anew", look, "run -c {config} --overwrite", _TAGGER,
           before=("run",), looks=True) for number, look in enumerate(_LOOKS)),
    *(Pair(f"{look.split()[0]} {number} while shares end", look, "mix -c {config}", _CUT,
           between=("ingest", "tag", "mix --shard 0/2", "mix --shard 1/2"), looks=True)
      for number, look in enumerate(_LOOKS)),
)  # fmt: skip


# --- in the processes that meet ---------------------------------------------------------------------------------------


def meet() -> None:
    """Let this process wait before its request by the number of `AT`, until the other one is done."""
    folder, at = Path(os.environ[MEETING]), int(os.environ[AT])
    numbers, lock = itertools.count(), threading.Lock()

    def before(*_: object) -> None:
        with lock:
            number = next(numbers)
            if number == at:
                (folder / "met").touch()
                assert wait_until((folder / "go").exists)
        if at < 0:
            (folder / "count").write_text(str(number + 1))

    _hook(before)


def tell() -> None:
    """Let this process tell when it waits for another one."""
    from toolkit import interrupts
    from toolkit.execution import leases
    from toolkit.stages import tasks

    folder, pause = Path(os.environ[MEETING]), interrupts.pause

    def told(seconds: float) -> None:
        (folder / "waits").touch()
        pause(seconds)

    leases.pause = tasks.pause = told  # type: ignore[attr-defined]


def _hook(before: Callable[..., None]) -> None:
    """Call a function before each request to a store."""
    from toolkit.storage.stores.local import Local, LocalWriting

    def wrap(owner: Any, name: str) -> None:
        original = getattr(owner, name)

        def wrapped(*arguments: Any, **named: Any) -> Any:
            before(name, *arguments)
            return original(*arguments, **named)

        setattr(owner, name, wrapped)

    if os.environ.get("AWS_ENDPOINT_URL"):
        from toolkit.storage.objects import Objects

        wrap(Objects, "ask")
        return
    for name in ("stat", "files", "folders", "open", "read", "remove", "remove_tree", "move", "commit_all", "create"):
        wrap(Local, name)
    wrap(LocalWriting, "commit")


# --- judging ----------------------------------------------------------------------------------------------------------


@dataclass
class Met:
    """What came of a meeting."""

    pair: Pair
    at: int
    waited: bool = False
    wrong: list[str] = field(default_factory=list)
    said: list[str] = field(default_factory=list)


class Meetings:
    """Plays meetings of a pair in a place."""

    def __init__(self, here: Track, pair: Pair, root: str) -> None:
        self._here, self._pair, self._root = here, pair, root
        self._first, self._other = here.warm[:2]
        self._env = here.env
        self._folder = here.folder / "meeting"
        before = World(pair.world.shape, pair.world.finds)
        remove_tree(root)
        self._config = before.lay_out(root, 1)
        for command in pair.before:
            self._ok(command)
        self._config = pair.world.lay_out(root, 1)
        for command in pair.between:
            self._ok(command)
        self._state = _Saved(root, here.folder / "saved")

    def _ok(self, command: str) -> None:
        name, *more = command.split()
        self._first.run([name, "-c", self._config, *more, "executor={type: in_process}"], self._env).succeeds()

    def _arguments(self, line: str) -> list[str]:
        in_process = ["executor={type: in_process}"] if "{config}" in line else []
        return [*line.format(config=self._config, root=self._root).split(), *in_process]

    def count(self) -> int:
        """How many requests the first command makes alone."""
        self._fresh()
        self._run(self._first, self._pair.first, "meet", -1)
        return int((self._folder / "count").read_text())

    def _fresh(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)
        self._folder.mkdir()
        self._state.restore()

    def _run(self, warm: Warm, line: str, change: str, at: int) -> Ran:
        env = {**self._env, MEETING: str(self._folder), AT: str(at)}
        return warm.run(self._arguments(line), env, changes=[f"tests.races.meetings:{change}"])

    def play(self, at: int) -> Met:
        """Let the other come before a request of the first."""
        self._fresh()
        met, found = Met(self._pair, at), dict[str, Ran]()

        def work(name: str, warm: Warm, line: str, change: str) -> threading.Thread:
            def run() -> None:
                found[name] = self._run(warm, line, change, at)

            thread = threading.Thread(target=run)
            thread.start()
            return thread

        first = work("first", self._first, self._pair.first, "meet")
        wait_until(lambda: (self._folder / "met").exists() or not first.is_alive())
        if not (self._folder / "met").exists():
            first.join()
            return met
        other = work("other", self._other, self._pair.other, "tell")
        wait_until(lambda: (self._folder / "waits").exists() or not other.is_alive())
        met.waited = other.is_alive()
        (self._folder / "go").touch()
        first.join()
        other.join()
        for name, ran in found.items():
            self._judge(met, name, ran)
        if met.wrong:
            return met
        more = ["--overwrite"] if self._pair.world.change == "tagger" else []
        ran = self._first.run(["run", "-c", self._config, *more], self._env)
        if ran.code:
            met.wrong.append(f"the last run: status {ran.code}\n{ran.out}{ran.err}")
            return met
        expected, there = self._here.alone(self._pair.world), made(self._root)
        for name in sorted(expected.keys() | there.keys()):
            if expected.get(name) != there.get(name):
                how = "lost" if name not in there else "too much" if name not in expected else "other bytes"
                met.wrong.append(f"{name}: {how}")
        met.wrong += [f"left: {name}" for name in left(self._root)]
        return met

    def _judge(self, met: Met, name: str, ran: Ran) -> None:
        looks = name == "first" and self._pair.looks
        if ran.code:
            met.said.append(f"{name} {ran.code}: {ran.out}{ran.err}")
        if "Traceback" in ran.err:
            met.wrong.append(f"{name}: a traceback\n{ran.err}")
        elif self._pair.reads and ran.code in (1, 2):
            pass
        elif ran.code and not looks and not (ran.code == 2 and TOLD.search(ran.err)):
            met.wrong.append(f"{name}: status {ran.code}\n{ran.out}{ran.err}")


class _Saved:
    """What is there, to be there again."""

    def __init__(self, root: str, folder: Path) -> None:
        self._root, self._folder = root, folder
        self._is_local = store_of(root).is_local
        if self._is_local:
            shutil.rmtree(folder, ignore_errors=True)
            shutil.copytree(root, folder)
            return
        self._objects = {name: store_of(root).read(join(root, name)) for name in list_files(root, hidden=True)}

    def restore(self) -> None:
        if self._is_local:
            shutil.rmtree(self._root)
            shutil.copytree(self._folder, self._root)
            return
        there = {*list_files(self._root, hidden=True)}
        for name in there - self._objects.keys():
            store_of(self._root).remove(join(self._root, name))
        for name, data in self._objects.items():
            path = join(self._root, name)
            if name not in there or store_of(path).read(path) != data:
                write_file(path, data)


def points(count: int, most: int, chance: random.Random) -> list[int]:
    """Return numbers of requests, at most so many of them, drawn."""
    return sorted(chance.sample(range(count), min(count, most)))


def meetings(here: Track, pair: Pair, root: str, most: int, seed: int) -> Iterator[Met]:
    """Yield meetings of a pair before so many requests."""
    played = Meetings(here, pair, root)
    for at in points(played.count(), most, random.Random(f"{pair.name} {seed}")):
        yield played.play(at)


def main() -> int:
    line = argparse.ArgumentParser(prog="python -m tests.races.meetings", description=__doc__)
    line.add_argument("--points", type=int, default=20)
    line.add_argument("--seed", type=int, default=0)
    line.add_argument("--place", choices=["folder", "bucket"], default="folder")
    line.add_argument("--pair", action="append", help="a part of the name of a pair")
    line.add_argument("--said", action="store_true", help="show what commands said whose status was not 0")
    given = line.parse_args()
    wrong = count = 0
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        here = stack.enter_context(track(folder, on_bucket=given.place == "bucket"))
        root = "s3://races/meeting" if given.place == "bucket" else str(folder / "root")
        for pair in PAIRS:
            if given.pair and not any(each in pair.name for each in given.pair):
                continue
            played = list(meetings(here, pair, root, given.points, given.seed))
            bad = [one for one in played if one.wrong]
            waited = sum(one.waited for one in played)
            print(f"{pair.name}: {len(played)} meetings, {waited} waited, {len(bad)} wrong", flush=True)
            for one in bad:
                print(f"  at {one.at}:", *(f"    {each}" for each in one.wrong), sep="\n", flush=True)
            if given.said:
                for said in sorted({text for one in played for text in one.said}):
                    print(f"    said {said}", flush=True)
            wrong, count = wrong + len(bad), count + len(played)
    print(f"{count} meetings, {wrong} judged wrong")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
