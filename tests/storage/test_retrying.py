"""When requests are made again, how long a host is waited for, and what is said meanwhile."""

import pickle
import random

import pytest

from tests.sessions import forget_hosts
from toolkit.errors import Unreadable, duration
from toolkit.session import Session, current
from toolkit.storage import retrying
from toolkit.storage.retrying import RetryableError, retry
from toolkit.storage_options import Duration, Size, StorageOptions


class Server:
    """Gives, in turn, what it is told to."""

    def __init__(self, *answers: RetryableError | str, forever: RetryableError | None = None) -> None:
        self.answers, self.forever = list(answers), forever
        self.asked = 0

    def __call__(self) -> str:
        self.asked += 1
        answer = self.answers.pop(0) if self.answers else self.forever
        if isinstance(answer, RetryableError):
            raise ConnectionError(answer)
        return answer or "good"

    def ask(self) -> str:
        return retry("host", "s3://b/x", self, lambda error: error.args[0])


BUSY, AWAY = RetryableError("503 SlowDown", answered=True), RetryableError("Connection refused")


def test_a_host_that_has_answered_is_waited_for_and_then_given_up(
    naps: list[float], capfd: pytest.CaptureFixture[str]
) -> None:
    assert Server("good").ask() == "good"
    server = Server(forever=AWAY)
    message = r"s3://b/x: expected an answer, got Connection refused for 5 min \(\d+ attempts\); run again when host"
    with pytest.raises(Unreadable, match=message):
        server.ask()
    assert sum(naps) == pytest.approx(300)
    said = capfd.readouterr().err.splitlines()
    assert said[0].startswith("waiting for host: Connection refused; ")
    assert said[0].endswith("more (`storage.give_up`)")
    assert 9 <= len(said) <= 11
    asked = server.asked
    with pytest.raises(Unreadable):
        server.ask()
    assert server.asked == asked + 1, "until it answers again, it is asked once"
    server.forever = None
    assert server.ask() == "good"
    assert Server(AWAY, AWAY).ask() == "good"


def test_an_end_that_rounding_keeps_away_is_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []
    now = 0.0

    def pause(seconds: float) -> None:
        nonlocal now
        pauses.append(seconds)
        assert len(pauses) < 99, "what is left moves the clock no more"
        now += seconds

    monkeypatch.setattr(retrying, "pause", pause)
    monkeypatch.setattr(retrying, "clock", lambda: now)
    for seed in range(2000):
        random.seed(seed)
        now = random.uniform(2, 4)
        forget_hosts()
        pauses.clear()
        with pytest.raises(Unreadable):
            Server(forever=AWAY).ask()


def test_a_host_that_never_answered_is_given_up_soon(naps: list[float]) -> None:
    with pytest.raises(Unreadable, match="host has never answered: is the address right"):
        Server(forever=AWAY).ask()
    assert sum(naps) == pytest.approx(6)


def test_half_of_all_requests_may_be_refused(naps: list[float], capfd: pytest.CaptureFixture[str]) -> None:
    for _ in range(100):
        assert Server(BUSY, BUSY, BUSY).ask() == "good"
    assert capfd.readouterr().err == "", "nothing is said of what passes at once"


def test_one_that_waits_says_it_for_all(naps: list[float], capfd: pytest.CaptureFixture[str]) -> None:
    naps.append(100.0)
    for _ in range(16):
        Server(*[BUSY] * 7).ask()
    said = capfd.readouterr().err.splitlines()
    assert 1 < len(said) <= 2 + sum(naps) / 30


def test_what_has_answered_is_known_to_processes_that_are_begun(naps: list[float]) -> None:
    Server("good").ask()
    with Session.of(pickle.loads(pickle.dumps(current().part()))).bound():
        assert (retrying.has_answered("host"), retrying.has_answered("other")) == (True, False)
        assert retrying.timeouts("host") > retrying.timeouts("other")


def test_nothing_is_waited_for_when_the_process_ends(naps: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    Server("good").ask()
    monkeypatch.setattr(retrying, "is_ending", lambda: True)
    with pytest.raises(Unreadable, match="the run was ended meanwhile"):
        Server(forever=AWAY).ask()
    assert naps == []


@pytest.mark.parametrize(
    ("written", "seconds"),
    [(90, 90), (0.5, 0.5), ("90", 90), ("90 s", 90), ("5 min", 300), ("1.5 h", 5400), ("2 minutes", 120)],
)
def test_times_are_written_with_units(written: object, seconds: float) -> None:
    assert Duration.parse(written) == seconds


@pytest.mark.parametrize("wrong", ["", "min", "5 days", "-1", 0, -3, True, None, float("inf"), "0 s", "1e3"])
def test_what_is_no_time_is_refused(wrong: object) -> None:
    with pytest.raises(ValueError, match="expected a time such as 90 s, 5 min or 1 h"):
        Duration.parse(wrong)


def test_options_travel_to_other_processes() -> None:
    current().options = StorageOptions(give_up=Duration(2.5), max_window=Size.parse("1 MB"))
    part = pickle.loads(pickle.dumps(current())).part()
    assert part == current().part()
    assert part.options == StorageOptions(give_up=Duration(2.5), max_window=Size(10**6))


def test_seconds_for_people() -> None:
    assert [duration(seconds) for seconds in (0.2, 8, 300, 272.4, 3600, 3661)] == [
        "0 s", "8 s", "5 min", "4 min 32 s", "1 h", "1 h 1 min 1 s",
    ]  # fmt: skip
