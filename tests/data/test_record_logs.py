"""The record log of a dataset: when it is read, and what a store is asked for."""

import gzip
import io
import os
import pickle
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, strategies as st

from tests.conftest import Run
from tests.pipeline.conftest import Project, tree
from toolkit.data import line_index, record_logs
from toolkit.data.dataset import ConfiguredPath, check_apart, is_within, normal_path, open_dataset
from toolkit.data.record_logs import ROWS, open_log
from toolkit.data.row_index import ShardState
from toolkit.errors import ConfigError, DataError
from toolkit.execution import leases
from toolkit.records.ingested import load_all
from toolkit.session import current
from toolkit.stages.tasks import merge
from toolkit.storage import store_of
from toolkit.storage.paths import fault_of_name, join
from toolkit.storage.stores.s3 import S3
from toolkit.validate.output import check

SHARDS = 300


def test_a_command_sees_what_others_have_written_since(tmp_path: Path) -> None:
    dataset = open_dataset(str(tmp_path), None, None)
    session = current()
    session.begin()
    try:
        first = record_logs.of(dataset)
        open_log(dataset).save({(ROWS, "x"): b"{}"})
        assert record_logs.of(dataset) is first
        assert first.get(ROWS, "x") is None
        stage = session.begin() and session.stage
        assert record_logs.of(dataset).get(ROWS, "x") == b"{}"
        session.begin(stage)
        open_log(dataset).forget([(ROWS, "x")])
        assert record_logs.of(dataset).get(ROWS, "x") == b"{}"
    finally:
        session.begin("")
    assert record_logs.of(dataset).get(ROWS, "x") is None


@pytest.mark.slow
@pytest.mark.s3
def test_records_cost_a_listing_and_one_request(bucket: str) -> None:
    """However many shards there are."""
    dataset = open_dataset(join(bucket, "data"), None, None)
    state = ShardState(size=1, stamp="etag x", content="0" * 32, rows=1, chars=1, bytes=1, head="0" * 16)
    record_log = open_log(dataset)
    record_log.save({(ROWS, f"{number}.jsonl.gz"): msgspec.json.encode(state) for number in range(SHARDS)})
    merge(record_log, leases.folder_in(dataset.bookkeeping))
    store = store_of(bucket)
    assert isinstance(store, S3)
    asked: Counter[str] = Counter()
    store.client.meta.events.register("before-call.s3", lambda model, **_: asked.update([model.name]))
    found = open_log(dataset)
    assert len(found.keys(ROWS)) == SHARDS
    assert found.load(ROWS, "7.jsonl.gz", ShardState) == state
    assert dict(asked) == {"ListObjectsV2": 1, "GetObject": 1}
    merge(found, leases.folder_in(dataset.bookkeeping))
    assert dict(asked) == {"ListObjectsV2": 2, "GetObject": 1}


@pytest.fixture
def three(tmp_path: Path, run: Run) -> Project:
    """Three inputs, ingested and tagged."""
    (tmp_path / "in").mkdir()
    for name in ("a", "b", "c"):
        (tmp_path / "in" / f"{name}.txt").write_text(f"The text of {name} is short.\n")
    config = {
        "dataset": str(tmp_path / "data"),
        "ingest": [{"format": "text", "from": [f"{tmp_path}/in/*.txt"], "source": "x", "pack": None}],
        "tag": {"shape-0": "line_shape"},
    }
    project = Project(tmp_path, run, config)
    project.ok("run")
    return project


def test_lost_records_of_inputs_are_made_again_by_an_ingest_of_all_of_them(three: Project) -> None:
    before, inputs = tree(three.data), three.data / ".toolkit" / "inputs"
    file = inputs / "records.jsonl.gz"
    file.write_bytes(file.read_bytes()[:-30])
    for part in ((), ("--limit", "1"), ("--shard", "0/2")):
        if part:
            assert three("ingest", *part).code == 0
        three("tag").fails(1, "run `toolkit ingest`, which makes again what is lost")
    three.ok("ingest")
    three.ok("tag")
    assert tree(three.data) == before
    assert [path.name for path in inputs.rglob("*") if path.is_file()] == ["records.jsonl.gz"]
    assert sorted(dict(load_all(open_dataset(str(three.data), None, None)))) == ["x/a.txt", "x/b.txt", "x/c.txt"]


def test_what_is_forgotten_is_made_again_if_it_is_still_there(three: Project) -> None:
    before = tree(three.data)
    three.ok("clean", "--forget", "x/b.txt", "--dry-run").shows("1 input: 1 shard would be deleted")
    assert tree(three.data) == before
    three.ok("clean", "--forget", "x/b.txt")
    gone = {"documents/x/b.jsonl.gz", "attributes/shape-0/x/b.jsonl.gz"}
    assert before.keys() - tree(three.data).keys() == gone
    three("clean", "--forget", "x/b.txt").fails(2, "expected an input that was ingested")
    assert three.ok("run", "--json").json["ingest"]["skipped"] == 2
    assert tree(three.data) == before


# Indices of lines: those of others are read without unpickling, and held against their file.

LINES = [b'{"a": 1}', '{"a": "é"}'.encode(), b"{}\r"]


def _file(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


@given(st.lists(st.tuples(*[st.integers(0, 1 << 70)] * 2)), st.sampled_from([2, 3, 4, 5]))
def test_what_pickle_writes_is_read(pairs: list[tuple[int, int]], protocol: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(line_index, "open_stored", lambda _: io.BytesIO(pickle.dumps(pairs, protocol)))
        assert list(line_index.read("x.idx")) == pairs


@given(
    st.integers(0, 3) | st.sampled_from([999, 1000, 1001, 2000, 9001, 30_000]),
    st.sampled_from([1, 200, 256, 65_535, 1 << 31, 1 << 33, 1 << 70]),
    st.integers(0, 1 << 40),
)
def test_pickles_written_in_pieces_are_those_of_pickle(pairs: int, step: int, first: int) -> None:
    listed = [(first + i * step, i % (step + 1)) for i in range(pairs)]
    assert b"".join(line_index.pickled_pairs(iter(listed))) == pickle.dumps(listed, protocol=4)


class _Runs:
    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, ("touch ran",)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (pickle.dumps([_Runs()]), "got SHORT_BINUNICODE at byte 13; it was not executed"),
        (pickle.dumps([(1, -2)]), "got BININT"),
        (pickle.dumps([(1, 2, 3)]), "got TUPLE3"),
        (pickle.dumps([(1, 2.5)]), "got BINFLOAT"),
        (pickle.dumps({1: 2}), "got EMPTY_DICT"),
        (pickle.dumps([[1, 2]]), "got EMPTY_LIST"),
        (pickle.dumps([(1, 2), (3, 4)])[:-1], "got damaged data"),
        (b"", "got damaged data"),
        (b"\xff\xff", "got damaged data"),
    ],
)
def test_anything_else_is_refused_and_not_run(
    data: bytes, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DataError, match=said):
        list(line_index.read(str(_file(tmp_path / "x.idx", data))))
    assert os.listdir() == ["x.idx"]


@given(st.binary(max_size=60))
def test_no_bytes_raise_another_error(data: bytes) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(line_index, "open_stored", lambda _: io.BytesIO(b"\x80\x04]" + data))
        with suppress(DataError):
            list(line_index.read("x.idx"))


@pytest.mark.parametrize("ends", [b"\n", b""])
def test_an_index_is_held_against_its_file(ends: bytes, tmp_path: Path) -> None:
    _file(tmp_path / "x.jsonl", b"\n".join(LINES) + ends)
    index = str(tmp_path / "x.idx")
    line_index.write(str(tmp_path / "x.jsonl"), map(len, LINES), between=1)
    assert pickle.loads(Path(index).read_bytes()) == [(0, 8), (9, 11), (21, 3)]
    assert check(index, None, 100) == []
    Path(index).write_bytes(pickle.dumps([(0, 8), (9, 10)]))
    first, second = check(index, None, 100)
    assert first.endswith("line 2 of " + index[:-3] + "jsonl: expected (9, 11), got (9, 10); it counts characters, as "
                          "Modalities did up to 0.3.2; make it again")  # fmt: skip
    assert second.endswith("expected (21, 3), got no entry")
    assert len(check(index, 2, 100)) == 1
    Path(index).write_bytes(pickle.dumps([(0, 8), (9, 11), (21, 3), (24, 0)]))
    assert "because there is no such line, got (24, 0)" in check(index, None, 100)[0]
    assert "expected lines of at most 9 bytes" in check(index, None, 9)[0]
    os.remove(tmp_path / "x.jsonl")
    assert "expected the file that it is of beside it" in check(index, None, 100)[0]


def test_members_are_read_one_by_one(tmp_path: Path) -> None:
    members = [gzip.compress(line + b"\n") for line in LINES]
    path = _file(tmp_path / "x.jsonl.gz", b"".join(members))
    index = line_index.path_of(str(path))
    assert index == str(tmp_path / "x.jsonl.idx")
    line_index.write(str(path), map(len, members), between=0)
    assert check(index, None, 100) == []
    path.write_bytes(b"".join((*members, members[0])))
    assert f"expected an entry for what is at {sum(map(len, members))}, got none" in check(index, None, 100)[0]
    for pairs, said in (
        ([(0, len(members[0])), (len(members[0]) + 1, 5)], "expected the offset"),
        ([(0, 1 << 60)], "to be a gzip member with one line"),
        ([(0, len(members[0]) + len(members[1]))], "to be a gzip member with one line"),
        ([(0, len(members[0]) - 1)], "to be a gzip member with one line"),
    ):
        Path(index).write_bytes(pickle.dumps(pairs))
        assert said in check(index, None, 100)[0]


# The check of places: what is apart, by any spelling of the paths.

PARTS = st.lists(st.sampled_from(["a", "b", "documents", "a b", "é"]), min_size=1, max_size=4)
NOISE = st.lists(st.sampled_from(["", ".", "x/.."]), max_size=2)


def spelled(root: str, parts: list[str], noise: list[list[str]]) -> str:
    """The path of these parts, with parts between them that change nothing."""
    found = [each for part, more in zip(parts, [*noise, *([[]] * len(parts))], strict=False) for each in (part, *more)]
    return "/".join([root, *found])


@given(PARTS, PARTS, st.lists(NOISE, max_size=4), st.sampled_from(["/nowhere", "s3://bucket/k", "s3://bucket"]))
def test_places_are_apart_if_neither_is_the_beginning_of_the_other(
    one: list[str], other: list[str], noise: list[list[str]], root: str
) -> None:
    shortest = min(len(one), len(other))
    places = [
        ConfiguredPath(spelled(root, one, noise), "one"),
        ConfiguredPath(spelled(root, other, noise[::-1]), "other"),
    ]
    if one[:shortest] == other[:shortest]:
        with pytest.raises(ConfigError, match="expected a path separate from"):
            check_apart(places)
    else:
        check_apart(places)
        check_apart(places[:1], places[1:])


@pytest.mark.parametrize(
    ("path", "wanted"),
    [
        ("s3://b//k", "s3://b/k"),
        ("s3://b/a/../k/", "s3://b/k"),
        ("s3://b", "s3://b"),
        ("s3://b/", "s3://b"),
        ("s3://b/../../k", "s3://b/k"),
        ("/nowhere//a/./b/", "/nowhere/a/b"),
        ("/", "/"),
        (".", os.path.realpath(".")),
    ],
)
def test_a_path_has_one_normal_spelling(path: str, wanted: str) -> None:
    assert normal_path(path) == wanted
    assert normal_path(wanted) == wanted


def test_a_root_holds_everything_and_a_beginning_of_a_name_nothing() -> None:
    assert is_within("/a", "/")
    assert is_within("/a/b", "/a")
    assert not is_within("/ab", "/a")
    assert not is_within("s3://bucket2/a", "s3://bucket")


@given(st.text(alphabet="a./\0-é", max_size=8))
def test_a_name_that_has_no_fault_stays_below_its_folder(name: str) -> None:
    if fault_of_name(name) is None:
        assert os.path.normpath(f"/root/{name}") == f"/root/{name}"
        assert "\0" not in name


@pytest.mark.parametrize("path", ["", " ", "a\0b"])
def test_no_place_is_empty(path: str) -> None:
    with pytest.raises(ConfigError, match="file: expected a folder for the output"):
        check_apart([ConfiguredPath(path, "the output", "file")])
