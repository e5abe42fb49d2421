"""Attribute files that are not those of their documents: an error names file, line and id, nothing is published."""

import gzip
import json
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Ran
from tests.marks import slow
from tests.pipeline.conftest import (
    TEXTS,
    Project,
    attributes,
    id_of,
    read_rows,
    strays,
    tree,
    write_attributes,
    write_documents,
    write_rows,
)

SHARD = "a.jsonl.gz"

Rows = list[Any]


@pytest.fixture(params=["ours", "by hand"])
def project_with_set(request: pytest.FixtureRequest) -> tuple[Project, str]:
    """A project that is ready to mix, and the name of its set: made by the toolkit, or written in the Dolma form."""
    if request.param == "by hand":
        return request.getfixturevalue("by_hand"), "exp"
    return request.getfixturevalue("small"), "shape-0"


def with_shards(given: tuple[Project, str], names: Iterable[str]) -> dict[str, str]:
    """Adds a shard with the texts of `SHARD` for each name, with its attributes; returns shards by name."""
    project, set_name = given
    shards = {name: f"f{number:02}.jsonl.gz" for number, name in enumerate(names)}
    texts = dict.fromkeys(shards.values(), TEXTS[SHARD])
    write_documents(project, texts)
    if set_name == "exp":
        write_attributes(project, texts)
    else:
        project.ok("tag")
    return shards


def swapped(rows: Rows) -> Rows:
    return [rows[0], rows[2], rows[1], *rows[3:]]


def edited(number: int, **changes: Any) -> Callable[[Rows], Rows]:
    def edit(rows: Rows) -> Rows:
        return [row | changes if i == number else row for i, row in enumerate(rows, 1)]

    return edit


def without(number: int, key: str) -> Callable[[Rows], Rows]:
    def edit(rows: Rows) -> Rows:
        return [{k: v for k, v in row.items() if i != number or k != key} for i, row in enumerate(rows, 1)]

    return edit


def replaced(number: int, line: bytes) -> Callable[[Rows], Rows]:
    return lambda rows: [line if i == number else row for i, row in enumerate(rows, 1)]


FAULTS: dict[str, tuple[int, Callable[[Rows], Rows]]] = {
    "short by one": (5, lambda rows: rows[:-1]),
    "short by two": (4, lambda rows: rows[:-2]),
    "no rows": (1, lambda rows: []),
    "long": (6, lambda rows: [*rows, attributes("more", rows[-1]["attributes"])]),
    "last row twice": (6, lambda rows: [*rows, rows[-1]]),
    "a row twice in the middle": (3, lambda rows: [*rows[:2], *rows[1:]]),
    "a row missing in the middle": (2, lambda rows: [rows[0], *rows[2:]]),
    "rows swapped": (2, swapped),
    "reversed": (1, lambda rows: rows[::-1]),
    "wrong id": (3, edited(3, id="wrong")),
    "id of other case": (3, lambda rows: [*rows[:2], rows[2] | {"id": rows[2]["id"].upper()}, *rows[3:]]),
    "wrong source": (3, edited(3, source="other")),
    "empty source": (3, edited(3, source="")),
    "no id": (3, without(3, "id")),
    "null id": (3, edited(3, id=None)),
    "id a number": (3, edited(3, id=3)),
    "no attributes": (3, without(3, "attributes")),
    "attributes null": (3, edited(3, attributes=None)),
    "attributes a text": (3, edited(3, attributes="x")),
    "malformed": (3, replaced(3, b'{"id":"a-3","attributes":{')),
    "blank line": (3, replaced(3, b"")),
    "blank line at the end": (6, lambda rows: [*rows, b""]),
    "not utf-8": (3, replaced(3, b'{"id":"a-3","attributes":{},"source":"\xff"}')),
    "two objects in a line": (1, lambda rows: [json.dumps(rows[0]).encode() + json.dumps(rows[1]).encode(), *rows[2:]]),
}

UNREADABLE = ("malformed", "not utf-8", "blank line", "two objects in a line", "id a number")
"""Rows from which no id can be read."""


def damage(project: Project, set_name: str, edit: Callable[[Rows], Rows], shard: str = SHARD) -> Path:
    path = project.attributes / set_name / shard
    return write_rows(path, edit(read_rows(path)))


def mix_fails(project: Project, path: Path, line: int | None = None, id: str | None = None) -> Ran:
    """Mixes; the message must name the file, the line and the id; nothing may be published."""
    before = tree(project.out)
    ran = project("mix").fails(1)
    assert "Traceback" not in ran.err
    place = str(path) if line is None else f"{path}:{line}: expected"
    assert place in ran.err, ran.err
    if id is not None:
        assert repr(id) in ran.err, ran.err
    assert tree(project.out) == before
    assert begun(project) == []
    return ran


def begun(project: Project) -> list[str]:
    """What only a command that ends in the middle leaves."""
    return [path for path in strays(project.root) if path.endswith((".tmp", "publishing.json"))]


def mix_tells(project: Project, set_name: str, shards: dict[str, str], *arguments: str) -> dict[str, str]:
    """A mix fails, and says of the shard of each fault where it is; nothing is published. Returns what is said."""
    before, told = tree(project.out), dict[str, str]()
    lines = project("mix", *arguments).fails(1, f"{len(shards)} failed").err.splitlines()
    for fault, shard in shards.items():
        place = f"{project.attributes / set_name / shard}:{FAULTS[fault][0]}: expected"
        told[fault] = next(line for line in lines if place in line)
    assert "Traceback" not in str(lines)
    assert tree(project.out) == before
    assert begun(project) == []
    return told


NO_ROWS = list(FAULTS)[15:]
"""Those of a line alone; a mix finds them in sets of other programs before it begins."""


@pytest.mark.parametrize("faults", [list(FAULTS)[:15], NO_ROWS], ids=["misaligned", "no rows"])
def test_misaligned_attribute_files_are_errors_and_nothing_is_published(
    project_with_set: tuple[Project, str], faults: list[str]
) -> None:
    project, set_name = project_with_set
    shards = with_shards(project_with_set, faults)
    for fault, shard in shards.items():
        damage(project, set_name, FAULTS[fault][1], shard)
    for fault, told in mix_tells(project, set_name, shards).items():
        number = FAULTS[fault][0]
        if fault == "long" or (number <= 5 and fault not in UNREADABLE):
            assert repr("more" if fault == "long" else id_of(shards[fault], number)) in told
    assert tree(project.out) == {}
    assert not (project.out / ".toolkit" / "manifest.json").exists()


some = pytest.mark.parametrize(
    "faults", [["short by one", "long", "rows swapped", "wrong source"], ["malformed"]], ids=["misaligned", "no rows"]
)


@some
def test_a_published_mix_does_not_hide_a_fault_and_stays_as_it_is(
    project_with_set: tuple[Project, str], faults: list[str]
) -> None:
    """With the rules that it was made with, with others, and in a dry run."""
    project, set_name = project_with_set
    shards = with_shards(project_with_set, faults)
    project.ok("mix")
    manifest = (project.out / ".toolkit" / "manifest.json").read_bytes()
    assert len(tree(project.out)) == 2
    for fault, shard in shards.items():
        damage(project, set_name, FAULTS[fault][1], shard)
    mix_tells(project, set_name, shards, "--dry-run")
    mix_tells(project, set_name, shards)
    project.config["mix"]["rules"] = []
    mix_tells(project, set_name, shards)
    assert (project.out / ".toolkit" / "manifest.json").read_bytes() == manifest


def test_a_missing_attribute_file_is_an_error(project_with_set: tuple[Project, str]) -> None:
    project, set_name = project_with_set
    for shard in (SHARD, "deep/er/c.jsonl.gz"):
        path = project.attributes / set_name / shard
        data = path.read_bytes()
        path.unlink()
        assert f"{shard}:1" in mix_fails(project, path, id=id_of(shard, 1)).err
        assert tree(project.out) == {}
        path.write_bytes(data)
    project.ok("mix")


def test_a_missing_set_is_a_bad_configuration(project_with_set: tuple[Project, str]) -> None:
    project, set_name = project_with_set
    project.config["mix"]["attributes"] = [set_name[:-1] + "1"]
    project("mix").fails(2, f"did you mean {set_name!r}", "config.yaml:1")
    assert not project.out.exists()


@pytest.mark.parametrize("what", ["attributes", "documents"])
def test_truncated_files_are_errors(project_with_set: tuple[Project, str], what: str) -> None:
    project, set_name = project_with_set
    folder = project.attributes / set_name if what == "attributes" else project.documents
    shards = with_shards(
        project_with_set, ["empty", "header", "a third", "most", "all but some", "trailer", "last byte"]
    )
    paths = [folder / shard for shard in shards.values()]
    data = paths[0].read_bytes()
    sizes = [*(int(share * len(data)) for share in (0, 0.02, 0.3, 0.7, 0.95)), len(data) - 8, len(data) - 1]
    for path, size in zip(paths, sizes, strict=True):
        path.write_bytes(path.read_bytes()[:size])
    ran = mix_fails(project, paths[0]).fails(1, f"{len(paths)} failed")
    assert [path for path in paths if f"{path}" not in ran.err] == []
    assert tree(project.out) == {}


@pytest.mark.parametrize("rows", [1, *slow(0, 4)])
def test_a_gzip_file_cut_between_its_members_is_an_error(project_with_set: tuple[Project, str], rows: int) -> None:
    project, set_name = project_with_set
    path = project.attributes / set_name / SHARD
    members = [gzip.compress(line + b"\n") for line in gzip.decompress(path.read_bytes()).splitlines()]
    path.write_bytes(b"".join(members))
    if set_name == "exp":
        project.ok("mix")
    path.write_bytes(b"".join(members[:rows]) or gzip.compress(b""))
    mix_fails(project, path, rows + 1, id_of(SHARD, rows + 1))


def test_garbage_behind_an_attribute_file_is_an_error(project_with_set: tuple[Project, str]) -> None:
    project, set_name = project_with_set
    path = project.attributes / set_name / SHARD
    path.write_bytes(path.read_bytes() + b"garbage")
    mix_fails(project, path)


def test_a_flipped_bit_in_an_attribute_file_is_an_error(project_with_set: tuple[Project, str]) -> None:
    project, set_name = project_with_set
    path = project.attributes / set_name / SHARD
    data = path.read_bytes()
    for place in range(len(data) - 30, len(data), 7):
        damaged = bytearray(data)
        damaged[place] ^= 4
        path.write_bytes(damaged)
        mix_fails(project, path)


def test_attribute_files_of_two_shards_that_are_swapped_are_an_error(project_with_set: tuple[Project, str]) -> None:
    project, set_name = project_with_set
    first, second = (project.attributes / set_name / name for name in (SHARD, "b.jsonl.gz"))
    one, two = first.read_bytes(), second.read_bytes()
    first.write_bytes(two)
    second.write_bytes(one)
    ran = mix_fails(project, first, 1, "a-1")
    assert f"{second}:1" in ran.err


def test_every_failed_shard_is_listed(project_with_set: tuple[Project, str]) -> None:
    project, set_name = project_with_set
    paths = [damage(project, set_name, swapped, shard) for shard in (SHARD, "b.jsonl.gz", "deep/er/c.jsonl.gz")]
    ran = mix_fails(project, paths[0], 2)
    assert all(f"{path}:2: expected" in ran.err for path in paths)
    assert "3 failed" in ran.err


@some
def test_a_set_of_ours_that_came_without_its_records_is_checked_all_the_same(small: Project, faults: list[str]) -> None:
    shards = with_shards((small, "shape-0"), faults)
    shutil.rmtree(small.data / ".toolkit")
    small("mix").fails(2, "leave it out of the section")
    del small.config["tag"]
    small.ok("mix")
    for fault, shard in shards.items():
        damage(small, "shape-0", FAULTS[fault][1], shard)
    mix_tells(small, "shape-0", shards)


# --- documents --------------------------------------------------------------------------------------------------------


DOCUMENT_FAULTS: dict[str, Callable[[Rows], Rows]] = {
    "no text": without(2, "text"),
    "no id": without(2, "id"),
    "no source": without(2, "source"),
    "text null": edited(2, text=None),
    "text a number": edited(2, text=1),
    "id a number": edited(2, id=1),
    "metadata a list": edited(2, metadata=[]),
    "blank line": replaced(2, b""),
    "malformed": replaced(2, b'{"id":"a-2"'),
    "lone surrogate": replaced(2, b'{"id":"x-2","text":"\\ud800","source":"s"}'),
}


@pytest.mark.parametrize("command", ["mix", "tag"])
def test_rows_that_are_no_documents_are_errors(project_with_set: tuple[Project, str], command: str) -> None:
    project, _ = project_with_set
    shards = with_shards(project_with_set, DOCUMENT_FAULTS)
    for fault, shard in shards.items():
        path = project.documents / shard
        write_rows(path, DOCUMENT_FAULTS[fault](read_rows(path)))
    project.config["tag"] = {"new-0": "noise"}
    ran = project(command).fails(1, *(f"{project.documents / shard}:2: expected" for shard in shards.values()))
    assert "Traceback" not in ran.err
    assert sorted(tree(project.attributes / "new-0")) == (sorted(TEXTS) if command == "tag" else [])
    assert tree(project.out) == {}
    assert begun(project) == []


def test_documents_with_a_row_more_or_fewer_are_an_error(project_with_set: tuple[Project, str]) -> None:
    project, _ = project_with_set
    path = project.documents / SHARD
    rows = read_rows(path)
    for edited_rows in (rows[:-1], [*rows, rows[0] | {"id": "new"}], rows[1:], rows[::-1]):
        write_rows(path, edited_rows)
        ran = mix_fails(project, Path(SHARD))
        assert tree(project.out) == {}
        assert "expected" in ran.err


# --- values -----------------------------------------------------------------------------------------------------------


def test_a_value_that_a_rule_cannot_use_names_the_row_where_the_set_is_of_another_program(by_hand: Project) -> None:
    absent: list[dict[str, Any]] = [{"exp__lines__count": []}, {}]
    for values in absent:
        path = damage(by_hand, "exp", edited(3, attributes=values))
        by_hand("mix").fails(1, f"{path}:3: ", "'a-3'", "'long'")
        assert path.exists()
        assert tree(by_hand.out) == {}


@pytest.mark.parametrize(
    "value",
    [[[0, 3, None]], None, [[]], *slow("x", 3, [[0, 3, "1.0"]], [[0, 3]], [None], {"a": 1}, [[0, 3, {"a": 1}]])],
    ids=repr,
)
def test_a_value_of_another_kind_is_never_taken_for_a_number(by_hand: Project, value: Any) -> None:
    damage(by_hand, "exp", edited(3, attributes={"exp__lines__count": value}))
    ran = by_hand("mix")
    assert ran.code in (1, 2), ran.out
    assert "Traceback" not in ran.err
    assert "long" in ran.err
    assert tree(by_hand.out) == {}


def test_values_that_are_not_of_the_declared_type_are_errors(small: Project) -> None:
    lines: list[Any] = [None, {"lines": None}, {"lines": "3"}, {"lines": 3.5}, {"lines": True}, [], {}]
    wrong = [{"noise": {"chars": 1, "noise": 1}}, *({"line_shape": each} for each in lines)]
    shards = with_shards((small, "shape-0"), map(str, wrong)).values()
    paths = [
        damage(small, "shape-0", edited(3, attributes=each), shard) for each, shard in zip(wrong, shards, strict=True)
    ]
    told = mix_fails(small, paths[0]).err.splitlines()
    for path, shard in zip(paths, shards, strict=True):
        assert [line for line in told if f"{path}:3" in line and repr(id_of(shard, 3)) in line]
    assert tree(small.out) == {}


@pytest.mark.parametrize("value", [b"1e999", b"-1e999", b"NaN", b"Infinity"])
def test_a_number_that_is_none_names_its_row(by_hand: Project, value: bytes) -> None:
    line = b'{"id":"a-3","attributes":{"exp__lines__count":[[0,3,' + value + b']]},"source":"s"}'
    path = damage(by_hand, "exp", replaced(3, line))
    mix_fails(by_hand, path, 3)


def test_an_unknown_attribute_of_another_program_is_a_bad_configuration(by_hand: Project) -> None:
    for rule in ("exp__lines__counts[0][2] >= 2", "exp__lines__count[0].scores >= 2", "exp__line__count is None"):
        by_hand.config["mix"]["rules"] = [{"drop": rule}]
        ran = by_hand("mix")
        assert ran.code in (1, 2)
        assert tree(by_hand.out) == {}
        assert "exp__line" in ran.err or "score" in ran.err


def test_the_same_key_in_two_sets_is_a_bad_configuration(small: Project) -> None:
    small.config["tag"] = {"shape-1": "line_shape"}
    small.ok("tag")
    small.config["mix"]["attributes"] = ["shape-0", "shape-1"]
    small("mix").fails(2, "'line_shape'")
    small.config["mix"]["attributes"][1] = {"set": "shape-1", "as": {"line_shape": "other"}}
    small.config["mix"]["rules"] = [{"drop": "other.lines > 2 or line_shape.lines > 2", "name": "long"}]
    small.ok("mix")


@pytest.mark.slow
def test_attributes_that_a_tagger_reads_are_checked_like_those_of_a_mix(small: Project) -> None:
    small.config["tag"] = {"lines-0": "line_language"}
    small.ok("tag")
    path = small.attributes / "lines-0" / SHARD
    data = path.read_bytes()
    small.config["tag"] = {"language-0": {"tagger": "language", "lines": "lines-0"}}
    for _, edit in FAULTS.values():
        damage(small, "lines-0", edit)
        small("tag").fails(1, str(path))
        assert not (small.attributes / "language-0" / SHARD).exists()
        path.write_bytes(data)
    small.ok("tag")
    assert strays(small.root) == []
