"""Filters: rules of the mix as they are written, with its names, parameters and label; and filters that are ended."""

import gzip
import json
import random
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import toolkit
from tests.pipeline.conftest import attributes, document, write_rows
from tests.view.sites import Site, serving
from tests.waiting import PATIENCE, wait_until
from toolkit.errors import DataError
from toolkit.storage.compression import compress_fast, compress_small, compress_zstd
from toolkit.storage.paths import stat
from toolkit.storage.reading import Lines
from toolkit.view import corpus as browsed, random_access
from toolkit.view.corpus import Query, QueryEnded, Stop
from toolkit.view.random_access import MemberFile, Pieces

LANGUAGES: list[dict[str, Any] | None] = [
    {"label": "fi", "prob": 0.95}, {"label": "fi", "prob": 0.7}, {"label": "en", "prob": 0.7},
    {"label": "en", "prob": 0.5}, None, {"label": "de", "prob": 0.99},
]  # fmt: skip
RULES = [
    {"drop": "language is None", "name": "unknown"},
    {"drop": "language.prob < least", "name": "unsure"},
    {"drop": "new_noise.noise > 3 and noise.noise >= 0", "name": "noisy"},
    {"drop": "label == 'de'", "name": "german"},
    {"group": "size", "parameters": {"most": 10}, "rules": [{"drop": "document.chars > most", "name": "long"}]},
]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    root = tmp_path_factory.mktemp("conditions")
    rows = [document(str(i), "!?" * i + "word") for i in range(len(LANGUAGES))]
    write_rows(root / "data/documents/a.jsonl.gz", rows)
    values = [attributes(str(i), {"language": each}) for i, each in enumerate(LANGUAGES)]
    write_rows(root / "data/attributes/language-0/a.jsonl.gz", values)
    config: dict[str, Any] = {
        "dataset": str(root / "data"),
        "executor": {"type": "in_process"},
        "tag": {f"{name}-{i}": [name] for name in ("noise", "length") for i in (0, 1)} | {"noise-2": ["noise"]},
        "mix": {
            "attributes": ["language-0", "noise-0", {"set": "noise-1", "as": {"noise": "new_noise"}}],
            "label": "language.label if language is not None else None",
            "parameters": {"least": 0.6},
            "languages": {"fi": {"least": 0.9}},
            "rules": RULES,
            "output": {"format": "dolma", "path": str(root / "out")},
        },
    }
    toolkit.tag(config)
    with serving(config, root / "l.jsonl") as found:
        yield found


@pytest.mark.parametrize(
    ("rule", "ids"), [("unknown", "4"), ("unsure", "13"), ("noisy", "2345"), ("german", "5"), ("size: long", "45")]
)
def test_a_rule_finds_as_a_filter_what_it_holds_for(site: Site, rule: str, ids: str) -> None:
    rules = site.ok("view")["mix"]["rules"]
    number = next(i for i, each in enumerate(rules) if each["name"] == rule)
    assert site.ids(where=rules[number]["expression"]) == list(ids)
    assert {*site.ids(rule=number)} <= {*ids}


def test_names_are_those_of_the_mix(site: Site) -> None:
    sets = {each["name"]: [key for key, _ in each["keys"]] for each in site.ok("view")["sets"]}
    assert (sets["noise-0"], sets["noise-1"], sets["noise-2"]) == (["noise"], ["new_noise"], ["noise"])
    values = {each["set"]: each["rows"] for each in site.ok("document", shard=0, row=2)["values"]}
    assert [path for path, *_ in values["noise-1"]] == ["new_noise.chars", "new_noise.noise"]
    assert site.ids(where="noise.noise > 5", sets="noise-2") == ["3", "4", "5"]  # of the set that is on
    assert site.ids(where="noise.noise > 5", sort="noise-2.noise.noise", order="descending") == ["5", "4", "3"]


@pytest.mark.parametrize(
    ("where", "error"),
    [
        ("length > 3", "filter: expected 'length' in one set, got it in length-0, length-1; switch on the one"),
        ("noise.noise > leas", "filter: expected a key of a set, got 'leas'"),
        ("labels == 'de'", "filter: expected a key of a set, got 'labels'"),
        ("language.prob", "filter: expected a condition"),
        ("language.probe < 1", "filter: "),
    ],
)
def test_what_is_no_condition_is_told(site: Site, where: str, error: str) -> None:
    answer = site.ask("rows", where=where)
    assert answer.status == 400
    assert answer.json["error"].startswith(error)


# --- ends -------------------------------------------------------------------------------------------------------------

ENDLESS = "len([1 for a in metadata.n for b in metadata.n for c in metadata.n]) > 0"


@pytest.fixture
def endless(tmp_path: Path) -> Iterator[Site]:
    """A document over which some expressions are computed for hours."""
    write_rows(tmp_path / "data/documents/a.jsonl.gz", [document("0", "x", metadata={"n": list(range(20_000))})])
    config = {"dataset": str(tmp_path / "data"), "executor": {"type": "in_process"}}
    with serving(config, tmp_path / "l.jsonl") as found:
        yield found


def _at_work() -> int:
    return sum(thread.name == "query" for thread in threading.enumerate())


@pytest.mark.slow
def test_a_filter_that_nobody_asks_for_ends_inside_of_a_document(
    endless: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = _at_work()
    monkeypatch.setattr(browsed, "ABANDONED", PATIENCE)
    assert not endless.ask("rows", where=ENDLESS).json["done"]
    assert _at_work() == before + 2
    monkeypatch.setattr(browsed, "ABANDONED", 0.0)  # the browser has gone
    assert wait_until(lambda: _at_work() == before)


@pytest.mark.slow
def test_a_filter_ends_with_the_server_and_when_the_page_is_loaded_anew(endless: Site) -> None:
    before = _at_work()
    assert not endless.ask("rows", where=ENDLESS).json["done"]
    endless.ok("view")
    assert wait_until(lambda: _at_work() == before)
    assert not endless.ask("rows", where=ENDLESS).json["done"]  # and begins again
    endless.server.answers.close()
    assert wait_until(lambda: _at_work() == before)


def test_only_what_computes_is_interrupted() -> None:
    stop, seen, reading = Stop(), list[str](), threading.Event()

    def work() -> None:
        try:
            with stop.computing():
                pass
            reading.set()
            while not stop.ended:
                time.sleep(0.001)
            seen.append("read on")
            with stop.computing():
                seen.append("never")
        except QueryEnded:
            seen.append("ended")

    thread = threading.Thread(target=work)
    thread.start()
    assert reading.wait(PATIENCE)
    stop.end()
    thread.join(PATIENCE)
    assert seen == ["read on", "ended"]


def test_the_end_of_a_query_is_told_to_who_waits(endless: Site) -> None:
    corpus = endless.server.answers._corpus
    query = Query(corpus, corpus.question(ENDLESS, "", ()), browsed.QuerySpec(ENDLESS, "", False, ()))
    threading.Timer(0.01, query.end).start()
    query.wait_for(1, PATIENCE)
    assert (query.ended, query.is_complete) == (True, False)


# Rows from the middle of files: the right ones, whatever the file is made of, and not all of it read.

ROWS = 3000
MEMBER = 40
"""Rows of a member."""


def _rows(seed: int = 1) -> list[bytes]:
    lot = random.Random(seed)
    return [
        json.dumps({"id": str(i), "text": lot.randbytes(lot.randrange(10, 400)).hex()}).encode() for i in range(ROWS)
    ]


def _members(rows: list[bytes], compress: Callable[[bytes], bytes]) -> bytes:
    parts = [rows[i : i + MEMBER] for i in range(0, len(rows), MEMBER)]
    return b"".join(compress(b"".join(row + b"\n" for row in part)) for part in parts)


def _cut_anywhere(rows: list[bytes]) -> bytes:
    data = b"".join(row + b"\n" for row in rows)
    return b"".join(gzip.compress(data[i : i + 9999]) for i in range(0, len(data), 9999))


def _one(rows: list[bytes]) -> bytes:
    return gzip.compress(b"".join(row + b"\n" for row in rows))


FILES: dict[str, tuple[str, Callable[[list[bytes]], bytes], bool]] = {
    "ours": (".jsonl.gz", lambda rows: _members(rows, compress_fast), True),
    "small": (".jsonl.gz", lambda rows: _members(rows, compress_small), True),
    "zstd": (".jsonl.zst", lambda rows: _members(rows, compress_zstd), True),
    "plain": (".jsonl", lambda rows: b"\n".join(rows), True),
    "one member": (".jsonl.gz", _one, False),
    "cut anywhere": (".jsonl.gz", _cut_anywhere, False),
}


@pytest.fixture(autouse=True)
def _small_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes files of some hundred kB large."""
    monkeypatch.setattr(random_access, "WINDOW", 1 << 13)
    monkeypatch.setattr(random_access, "WIDEST", 1 << 17)
    monkeypatch.setattr(random_access, "PIECE", 1 << 12)
    monkeypatch.setattr(random_access, "Lines", _LinesOfLittle)


class _LinesOfLittle(Lines):
    """Lines of which little is read ahead."""

    def _read(self) -> bytes:
        return self._stream.read(1 << 12)


def _number_of(line: bytes) -> int | None:
    try:
        return int(json.loads(line)["id"])
    except ValueError:
        return None


@pytest.mark.parametrize("kind", FILES)
def test_any_rows_of_any_file(kind: str, tmp_path: Path) -> None:
    suffix, made, jumps = FILES[kind]
    rows, path = _rows(), tmp_path / f"x{suffix}"
    path.write_bytes(made(rows))
    version = stat(str(path))
    assert version
    lot, read = random.Random(2), Pieces()
    file = MemberFile(str(path), version, read, ROWS, _number_of, 1 << 20)
    for _ in range(60):
        first, count = lot.randrange(ROWS), lot.randrange(1, 50)
        assert file.rows(first, count) == rows[first : first + count]
    assert file.rows(ROWS - 2, 10) == rows[-2:]
    assert file.rows(ROWS, 1) == file.rows(ROWS + 5000, 1) == []
    if jumps:
        for first in (ROWS // 2, ROWS - 60):
            alone = Pieces()
            MemberFile(str(path), version, alone, ROWS, _number_of, 1 << 20).rows(first, 20)
            assert alone.bytes < version.size // 5


def test_rows_that_nobody_can_number_are_read_from_the_start(tmp_path: Path) -> None:
    rows, path = _rows(), tmp_path / "x.jsonl.gz"
    path.write_bytes(_members(rows, compress_fast))
    version = stat(str(path))
    assert version
    for count, number_of in ((ROWS, lambda line: None), (None, _number_of)):
        file = MemberFile(str(path), version, Pieces(), count, number_of, 1 << 20)
        assert file.rows(2000, 3) == rows[2000:2003]
        assert file.rows(2003, 3) == rows[2003:2006]
        assert file.rows(7, 1) == rows[7:8]


def test_a_file_that_is_damaged_or_gone_is_told(tmp_path: Path) -> None:
    rows, path = _rows(), tmp_path / "x.jsonl.gz"
    data = _members(rows, compress_fast)
    path.write_bytes(data[: len(data) // 2])
    version = stat(str(path))
    assert version
    file = MemberFile(str(path), version, Pieces(), ROWS, _number_of, 1 << 20)
    assert file.rows(10, 2) == rows[10:12]
    with pytest.raises(DataError, match=r"x\.jsonl\.gz: expected whole compressed data"):
        file.rows(ROWS - 5, 2)
    path.write_bytes(data[:10])
    with pytest.raises(DataError, match="got one that has changed; load the page again"):
        MemberFile(str(path), version, Pieces(), ROWS, _number_of, 1 << 20).rows(0, 1)
    path.unlink()
    with pytest.raises(DataError, match="it was deleted; load the page again"):
        MemberFile(str(path), version, Pieces(), ROWS, _number_of, 1 << 20).rows(0, 1)
