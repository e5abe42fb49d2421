"""RecordLogs against a dict: whatever is written, merged, lost or killed, by however many, in whatever order."""

import gzip
import json
import re
import subprocess
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import example, given, settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from toolkit import storage
from toolkit.errors import Unreadable
from toolkit.session import Session
from toolkit.storage import Stat
from toolkit.storage.paths import join, list_files, listing_cache
from toolkit.storage.record_log import LogEntry, LogFile, NewestEntries, RecordKey, RecordLog, entry_of, header, line_of
from toolkit.testing import MemoryStore

KINDS = ("set a", "rows")
KEYS = [f"{number}/x.jsonl.gz" for number in range(6)]
PLACES = [(kind, key) for kind in KINDS for key in KEYS]

values = st.integers(0, 9).map(lambda n: b'{"value":%d}' % n)
groups = st.dictionaries(st.sampled_from(PLACES), values, min_size=1, max_size=4)
places = st.lists(st.sampled_from(PLACES), min_size=1, max_size=4)


class Killed(BaseException):
    """The process is gone."""


class Hooked(MemoryStore):
    """A store in memory that tells of each request before it is made."""

    def __init__(self) -> None:
        super().__init__()
        self.before: Callable[[str], None] = lambda request: None

    def files(self, root: str) -> Iterator[str]:
        self.before("list")
        return super().files(root)

    def read(self, path: str, offset: int = 0, length: int | None = None) -> bytes:
        self.before("read")
        return super().read(path, offset, length)

    def put(self, path: str, data: bytes) -> Stat:
        self.before("put")
        return super().put(path, data)

    def remove(self, path: str) -> None:
        self.before("remove")
        super().remove(path)


class _Once:
    """Does something before the nth request, and nothing at those of what it does."""

    def __init__(self, store: Hooked, number: int, function: Callable[[], object]) -> None:
        self._store, self._left, self._function = store, number, function
        store.before = self._count

    def _count(self, _: str) -> None:
        self._left -= 1
        if self._left < 0:
            self._store.before = lambda request: None
            self._function()


def _kill() -> None:
    raise Killed


@pytest.fixture(autouse=True)
def _memory(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Gives ``memory://`` the store that `_fresh` has made last."""
    original = storage.store_of
    made: list[Hooked] = []
    _made[:] = [made]

    def store_of(path: str) -> storage.Store:
        return made[-1] if path.startswith("memory://") else original(path)

    for module in ("toolkit.storage.paths", "toolkit.storage.outputs", "toolkit.storage.record_log"):
        monkeypatch.setattr(f"{module}.store_of", store_of)
    yield
    _made.clear()


_made: list[list[Hooked]] = []


def _fresh() -> Hooked:
    store = Hooked()
    _made[-1].append(store)
    return store


FOLDER = "memory://x/record-log"


def _read(folder: str = FOLDER) -> dict[RecordKey, bytes]:
    record_log = RecordLog(folder)
    found = {
        (kind, key): record for kind in KINDS for key in record_log.keys(kind) if (record := record_log.get(kind, key))
    }
    assert _of(record_log, PLACES) == found
    return found


@contextmanager
def _elsewhere() -> Iterator[None]:
    """Do what another process does, which has no listings of this one."""
    with Session().bound():
        yield


def _of(record_log: RecordLog, listed: Iterable[RecordKey]) -> dict[RecordKey, bytes]:
    return {place: record for place in listed if (record := record_log.get(*place))}


def _files(folder: str = FOLDER) -> list[str]:
    return list(list_files(folder))


class RecordLogs(RuleBasedStateMachine):
    """Two commands at a record log, each with shards of its own; what one knows of its own is never old.

    A killed one begins anew. Each step is done whole or not at all.
    """

    def __init__(self) -> None:
        super().__init__()
        self.store = _fresh()
        self.model: dict[RecordKey, bytes] = {}
        self.writers = [RecordLog(FOLDER), RecordLog(FOLDER)]

    def _do(
        self, who: int, action: Callable[[RecordLog], object], after: dict[RecordKey, bytes], killed_at: int | None
    ) -> None:
        if killed_at is not None:
            _Once(self.store, killed_at, _kill)
        try:
            action(self.writers[who])
        except Killed:
            self.writers[who] = RecordLog(FOLDER)
            found = _read()
            assert found in (self.model, after)
            self.model = found
        else:
            self.model = after
        self.store.before = lambda request: None

    kills = st.none() | st.integers(0, 8)

    @rule(group=groups, killed_at=kills)
    def save(self, group: dict[RecordKey, bytes], killed_at: int | None) -> None:
        for who in (0, 1):
            mine = {place: record for place, record in group.items() if PLACES.index(place) % 2 == who}
            if mine:
                self._do(who, lambda one, mine=mine: one.save(mine), self.model | mine, killed_at)  # type: ignore[misc]

    @rule(listed=places, killed_at=kills)
    def forget(self, listed: list[RecordKey], killed_at: int | None) -> None:
        for who in (0, 1):
            mine = [place for place in listed if PLACES.index(place) % 2 == who]
            after = {place: record for place, record in self.model.items() if place not in mine}
            self._do(who, lambda one, mine=mine: one.forget(mine), after, killed_at)  # type: ignore[misc]

    @rule(who=st.integers(0, 1), killed_at=kills)
    def merge(self, who: int, killed_at: int | None) -> None:
        self._do(who, lambda one: one.merge(), self.model, killed_at)

    @rule(who=st.integers(0, 1))
    def begin(self, who: int) -> None:
        self.writers[who] = RecordLog(FOLDER)

    @invariant()
    def all_is_known(self) -> None:
        assert _read() == self.model

    @precondition(lambda self: self.model)
    @rule(who=st.integers(0, 1))
    def merged_it_is_one_file(self, who: int) -> None:
        self.writers[who].merge()
        assert _files() == ["records.jsonl.gz"]
        assert not self.writers[who].is_apart()


TestRecordLogs = RecordLogs.TestCase
TestRecordLogs.settings = settings(max_examples=60, stateful_step_count=20, deadline=None)


@given(st.lists(groups, min_size=1, max_size=4), groups, st.integers(0, 12), st.booleans(), st.booleans())
@example(written=[{PLACES[0]: b"1"}], new={PLACES[1]: b"2"}, number=1, merges=False, listed=True)
def test_who_reads_while_others_merge_or_write_finds_the_state_before_or_after(
    written: list[dict[RecordKey, bytes]], new: dict[RecordKey, bytes], number: int, merges: bool, listed: bool
) -> None:
    """And who writes while others merge loses nothing; who reads what was listed for others before finds no less."""
    store = _fresh()
    writer = RecordLog(FOLDER)
    before: dict[RecordKey, bytes] = {}
    for group in written:
        writer.save(group)
        before |= group
    seen: list[dict[RecordKey, bytes]] = []
    if merges:  # a merge is interrupted by a reader and a writer

        def meanwhile() -> None:
            seen.append(_read())
            writer.save(new)
            seen.append(_read())

        _Once(store, number, meanwhile)
        RecordLog(FOLDER).merge()
    else:  # a reader is interrupted by a writer and a merge

        def merged() -> None:
            with _elsewhere():
                writer.save(new)
                RecordLog(FOLDER).merge()

        _Once(store, number, merged)
        with listing_cache("memory://x") if listed else nullcontext():
            seen.append(_read())
    after = before | new
    assert all(each in (before, after) for each in seen)
    store.before = lambda request: None
    writer.save(new)
    assert _read() == after
    RecordLog(FOLDER).merge()
    assert _read() == after
    assert _files() == ["records.jsonl.gz"]


@settings(max_examples=60)
@given(st.permutations([0, 0, 1, 1]), st.integers(0, 3))
def test_of_two_attempts_at_a_task_one_holds_in_whatever_order_they_go_on(order: list[int], merged_after: int) -> None:
    """Both know the same: a record is believed when one of them has ended, and no earlier one after the first step."""
    _fresh()
    place = PLACES[0]
    RecordLog(FOLDER).save({place: b'"old"'})
    attempts = [RecordLog(FOLDER) for _ in range(2)]
    begun: set[int] = set()
    ended: set[bytes] = set()
    for at, who in enumerate(order):
        if who in begun:
            attempts[who].save({place: b'"by %d"' % who})
            ended.add(b'"by %d"' % who)
        else:
            attempts[who].forget([place])
            begun.add(who)
        if at == merged_after:
            RecordLog(FOLDER).merge()
        assert _read().get(place) in (ended or (None,))


def test_of_a_record_and_a_tombstone_with_one_number_the_tombstone_holds() -> None:
    """One attempt notes another stamp of the data while another one begins to replace it."""
    for merges in (False, True):
        _fresh()
        place = PLACES[0]
        RecordLog(FOLDER).save({place: b'"old"'})
        noting, replacing = RecordLog(FOLDER), RecordLog(FOLDER)
        noting.save({place: b'"touched"'})
        replacing.forget([place])
        if merges:
            RecordLog(FOLDER).merge()
        assert RecordLog(FOLDER).get(*place) is None


# --- damage -----------------------------------------------------------------------------------------------------------


def _group(number: int) -> dict[RecordKey, bytes]:
    return {("set a", f"{number}/{i}.jsonl.gz"): b'{"value":%d}' % number for i in range(5)}


@pytest.mark.parametrize("lost", [0, 1, 2])
def test_a_lost_segment_costs_its_group(lost: int) -> None:
    store = _fresh()
    record_log = RecordLog(FOLDER)
    for number in range(3):
        record_log.save(_group(number))
    path = next(p for p in store.files(FOLDER) if (("set a", f"{lost}/0.jsonl.gz") in _places(store, join(FOLDER, p))))
    store.remove(join(FOLDER, path))
    expected = {place: each for number in range(3) if number != lost for place, each in _group(number).items()}
    assert _of(RecordLog(FOLDER), (place for number in range(3) for place in _group(number))) == expected


def _places(store: Hooked, path: str) -> set[RecordKey]:
    return {entry.place for entry in LogFile(path, store.read(path))}


def test_a_file_that_is_cut_between_two_members_is_damaged(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no decompressor notices."""
    store = _fresh()
    monkeypatch.setattr("toolkit.storage.outputs.BLOCK", 500)
    record_log = RecordLog(FOLDER)
    record_log.save(_group(0) | _group(1))
    record_log.merge()
    path = f"{FOLDER}/records.jsonl.gz"
    stored = store.read(path)
    store.put(path, stored[: stored.rindex(b"\x1f\x8b\x08")])
    (fault,) = RecordLog(FOLDER).damaged.values()
    assert re.fullmatch(r".*: expected 10 entries, got [1-9]", fault)


@given(st.data())
def test_damage_costs_what_is_damaged_and_is_told_by_each_command_until_it_is_forgiven(data: st.DataObject) -> None:
    store = _fresh()
    record_log = RecordLog(FOLDER)
    record_log.save(_group(0))
    record_log.merge()
    merged = record_log.folder + "/records.jsonl.gz"
    record_log.save(_group(1))
    (segment,) = (join(FOLDER, name) for name in store.files(FOLDER) if name.startswith("segments/"))
    path = data.draw(st.sampled_from([merged, segment]))
    stored = store.read(path)
    at = data.draw(st.integers(0, len(stored) - 1))
    if data.draw(st.booleans()):
        store.put(path, stored[:at])
    else:
        store.put(path, stored[:at] + bytes([stored[at] ^ (1 << data.draw(st.integers(0, 7)))]) + stored[at + 1 :])
    whole, damaged = _group(0) | _group(1), store.read(path)
    found = RecordLog(FOLDER)
    kept = _of(found, whole)
    assert kept.items() <= whole.items()
    assert kept.items() >= _group(1 if path == merged else 0).items()
    if kept != whole:  # a header of gzip has bits that mean nothing
        assert [*found.damaged] == [path]
        assert path in found.damaged[path]
    found.merge()
    again = RecordLog(FOLDER)
    assert _of(again, whole) == kept
    assert again.damaged == found.damaged
    assert not again.is_apart()
    if again.damaged:
        assert store.read(path) == damaged
    found.merge(forgive=True)
    again = RecordLog(FOLDER)
    assert _of(again, whole) == kept
    assert again.damaged == {}
    assert _files() == ["records.jsonl.gz"]


def test_damage_is_told_once_in_a_process(capsys: pytest.CaptureFixture[str]) -> None:
    store = _fresh()
    store.put("memory://told/records.jsonl.gz", b"no gzip")
    for _ in range(2):
        assert RecordLog("memory://told").keys("set a") == []
    assert capsys.readouterr().err == (
        "warning: memory://told/records.jsonl.gz: expected gzip data by the suffix, got data that begins with "
        "b'no g'; the toolkit ignores the damaged entries, and does the work that they record again\n"
    )


def test_records_of_another_version_are_an_error_and_no_damage() -> None:
    """Or else a newer version's would be taken for nothing, and replaced."""
    store = _fresh()
    store.put(f"{FOLDER}/segments/x.jsonl.gz", gzip.compress(b'{"version":2,"entries":0}\n'))
    with pytest.raises(
        Unreadable, match=r"x\.jsonl\.gz: expected records of version 1, got version 2; use the version"
    ):
        RecordLog(FOLDER)


def test_what_a_store_does_not_say_is_no_nothing() -> None:
    store = _fresh()
    RecordLog(FOLDER).save(_group(0))

    def refuse() -> None:
        raise Unreadable("expected an answer, got none", path=FOLDER)

    for number in range(3):
        _Once(store, number, refuse)
        with pytest.raises(Unreadable, match="got none"):
            RecordLog(FOLDER)


# --- in memory and as text --------------------------------------------------------------------------------------------


@settings(max_examples=40)
@given(st.lists(st.tuples(st.sampled_from(PLACES), st.integers(0, 3), st.none() | values), max_size=40), st.data())
def test_a_state_holds_the_highest_number_wherever_an_entry_is_kept(
    found: list[tuple[RecordKey, int, bytes | None]], data: st.DataObject
) -> None:
    """Packed or loose, in order or not."""
    entries = [LogEntry(*place, n, record) for place, n, record in found]
    packed = data.draw(st.lists(st.sampled_from(entries), max_size=40)) if entries else []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("toolkit.storage.record_log.BLOCK", data.draw(st.sampled_from([1, 300, 1 << 18])))
        patch.setattr("toolkit.storage.record_log.LOOSE", data.draw(st.sampled_from([1, 3, 1000])))
        state = NewestEntries(packed)
        state.add(entries)
    best: dict[RecordKey, LogEntry] = {}
    for entry in entries:
        if entry.place not in best or best[entry.place].rank < entry.rank:
            best[entry.place] = entry
    assert [*state] == [best[place] for place in sorted(best)]
    assert {place: state.get(place) for place in PLACES} == {place: best.get(place) for place in PLACES}
    for kind in KINDS:
        assert [*state.of(kind)] == [entry for entry in state if entry.kind == kind]


@given(st.text(st.characters(exclude_categories=["Cs"])), st.text(st.characters(exclude_categories=["Cs"])))
def test_an_entry_is_read_as_it_was_written(kind: str, key: str) -> None:
    for record in (None, b'{"a":"\\n\xc3\xa9"}'):
        entry = LogEntry(kind, key, 3, record)
        line = line_of(entry)
        assert b"\n" not in line
        assert entry_of(line) == entry
        for changed in (line.replace(b'"n":3', b'"n":4'), line.replace(b"\\n", b"\\t") if record else line[:-1]):
            with pytest.raises(msgspec.DecodeError):
                entry_of(changed)


_DAMAGE: list[Callable[[bytes], list[bytes]]] = [
    lambda line: [line],
    lambda line: [line[:-1]],
    lambda line: [b""],
    lambda line: [line + b"," + line],
    lambda line: [line[:7], line[7:]],
    lambda line: [line.replace(b'"n":0', b'"n":1')],
    lambda line: [line.replace(b"set", b"s\xff")],
]


@given(st.lists(st.sampled_from(_DAMAGE), max_size=4))
def test_entries_that_are_decoded_together_are_those_that_each_line_has(damage: list[Any]) -> None:
    expected = [LogEntry("set", f"{number}", 0, b"[1]") for number, _ in enumerate(damage)]
    lines = [line for entry, change in zip(expected, damage, strict=True) for line in change(line_of(entry))]
    sound, bad = list[LogEntry](), list[int]()
    for number, line in enumerate(lines, 2):
        try:
            sound.append(entry_of(line))
        except (msgspec.DecodeError, UnicodeDecodeError):
            bad.append(number)
    file = LogFile("log", b"".join(line + b"\n" for line in [header(len(damage)), *lines]))
    assert [*file] == sound
    assert file.fault.startswith(f"log:{bad[0]}: expected an entry as it was written" if bad else "")
    assert bool(file.fault) == bool(bad)


def test_people_read_a_record_log_by_zcat_and_jq(tmp_path: Path) -> None:
    record_log = RecordLog(str(tmp_path))
    record_log.save({("set a", "x.jsonl.gz"): b'{\n "rows": 3}', ("rows", "x.jsonl.gz"): b'{"rows":3}'})
    record_log.forget([("rows", "x.jsonl.gz")])
    record_log.merge()
    shown = subprocess.run(["zcat", "records.jsonl.gz"], cwd=tmp_path, capture_output=True, check=True).stdout
    lines: list[dict[str, Any]] = [json.loads(line) for line in shown.splitlines()]
    assert lines[0] == {"version": 1, "entries": 2}
    assert [(each["kind"], each["key"], each["n"], each["record"]) for each in lines[1:]] == [
        ("rows", "x.jsonl.gz", 2, None),
        ("set a", "x.jsonl.gz", 1, {"rows": 3}),
    ]


class Record(msgspec.Struct):
    rows: int


def test_a_record_that_is_not_of_this_version_is_told_and_counts_as_none(capsys: pytest.CaptureFixture[str]) -> None:
    _fresh()
    record_log = RecordLog(FOLDER)
    record_log.save({("rows", "x"): b'{"rows":3}', ("rows", "y"): b"{}"})
    assert record_log.load("rows", "x", Record) == Record(3)
    assert record_log.load("rows", "z", Record) is None
    assert [record_log.load("rows", "y", Record) for _ in range(2)] == [None, None]
    assert capsys.readouterr().err.count("expected a record of this version of the toolkit for rows y, got: ") == 1
