"""What all tests share: the command line in this process, the sample, and the larger data that may not be there."""

import gc
import itertools
import json
import os
import signal
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers

from tests.sessions import forget_hosts
from toolkit import cli
from toolkit.execution import workers
from toolkit.execution.processes import import_no_scripts
from toolkit.session import Session
from toolkit.storage import retrying

import_no_scripts()  # the script `pytest` is one, too

if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:  # as a script's `pytest &` has it: the tests send it to runs
    signal.signal(signal.SIGINT, signal.default_int_handler)

# No example fails for the time that it took: the machine may have others to serve. Each run has the same examples, so
# that no change is refused for what it has not touched; `--hypothesis-profile search` looks for others, and for more.
settings.register_profile("search", deadline=None, max_examples=300, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("same", settings.get_profile("search"), derandomize=True, max_examples=25)
settings.load_profile("same")


def pytest_configure(config: pytest.Config) -> None:
    """Keeps constants of our code out of examples: they depend on which modules a process has imported by then."""
    if not config.getoption("hypothesis_profile", None) and hasattr(providers, "_get_local_constants"):
        none = providers._local_constants
        vars(providers)["_get_local_constants"] = lambda: none


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--part", metavar="I/N", help="run the I-th of N parts of the tests alone")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave a part of the tests: which one a test is in depends on its name alone."""
    if part := config.getoption("--part"):
        number, count = map(int, part.split("/"))
        parts = [zlib.crc32(item.nodeid.encode()) % count == number - 1 for item in items]
        config.hook.pytest_deselected(items=[item for item, mine in zip(items, parts, strict=True) if not mine])
        items[:] = itertools.compress(items, parts)


def pytest_collection_finish() -> None:
    """Leaves what was imported out of every later search for garbage."""
    gc.freeze()


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Names bytes and long texts after their argument: workers must agree on names, and a value may hold a time."""
    return argname if isinstance(val, bytes) or (isinstance(val, str) and len(val) > 100) else None


ROOT = Path(__file__).parent.parent
SHARED = ROOT.parent / "shared" / "data"


@dataclass(frozen=True)
class Ran:
    """What a command line gave."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    def succeeds(self) -> Self:
        """Check that it ended well; return itself."""
        assert self.code == 0, self.out + self.err
        return self

    def fails(self, code: int, *words: str) -> Self:
        """Check that it ended with this status, and said all these words on standard error; return itself."""
        missing = [each for each in words if each not in self.err]
        assert (self.code, missing) == (code, []), self.out + self.err
        return self

    def shows(self, *words: str) -> Self:
        """Check that it said all these words on standard output; return itself."""
        assert [each for each in words if each not in self.out] == [], self.out + self.err
        return self


Run = Callable[..., Ran]


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str]) -> Run:
    """``run("tag", "-c", path)``: exit status, standard output, standard error; usage errors are status 2."""

    def call(*arguments: object) -> Ran:
        capfd.readouterr()
        try:
            code = cli.main([str(argument) for argument in arguments])
        except SystemExit as exit_:
            code = int(exit_.code or 0)
        out, err = capfd.readouterr()
        return Ran(code, out, err)

    return call


@pytest.fixture(autouse=True)
def _no_run_before() -> Iterator[None]:
    """Gives a test a session of its own."""
    with Session().bound():
        yield


@pytest.fixture(autouse=True, scope="session")
def _every_line_of_oscar_is_valid() -> Iterator[None]:
    """Holds each line that the format writes, here and in processes forked from here, against its JSON Schema."""
    from mixers.oscar import Oscar
    from tests.schemas import checked

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Oscar, "encode", checked(Oscar.encode))
        yield


def wait_for_no_disk() -> None:
    """Let what this process writes be durable when the system likes: no test cuts the power, and a disk is slow."""
    os.fsync = lambda fd: None


@pytest.fixture(autouse=True, scope="session")
def _one_core() -> Iterator[None]:
    """Let commands that say no number of processes have one, as on a machine with one core: to start others takes long.

    What several processes do is tested by those who say ``processes``, the same on every machine.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(workers, "available_cores", lambda: 1)
        yield


@pytest.fixture(autouse=True, scope="session")
def _no_waiting_for_disks() -> Iterator[None]:
    """End no file with a wait for the disk, here and in processes forked from here."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", os.fsync)
        wait_for_no_disk()
        yield


@pytest.fixture
def naps(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """How long was waited, which takes no time but by the clock that counts.

    Threads may share it: what one waits for is over for all, and the clock never goes back.
    """
    found: list[float] = []
    monkeypatch.setattr(retrying, "pause", found.append)
    monkeypatch.setattr(retrying, "clock", lambda: sum(found))
    forget_hosts()
    return found


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for what is made once, and copied by the tests that begin with it."""
    return tmp_path_factory.mktemp("made")


@pytest.fixture(scope="session")
def sample() -> list[Path]:
    """The WET files that ship with the project."""
    return sorted((ROOT / "configs" / "sample").glob("*.warc.wet.gz"))


@pytest.fixture(scope="session")
def shared() -> Path:
    """Real data beside the project; tests that need it are skipped where it is not."""
    if not SHARED.is_dir():
        pytest.skip(f"no real data at {SHARED}")
    return SHARED
