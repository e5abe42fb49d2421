"""Whatever is wrong on disk is found, with its path and line; what is sound has no finding."""

import gzip
import hashlib
import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Ran, Run
from tests.marks import slow
from tests.pipeline.conftest import Project, attributes, document, read_rows, tree, write_rows

SHARD = "a.jsonl.gz"


def finds(ran: Ran, *expected: str) -> None:
    """Exit status 1, and each of these texts in one of the findings."""
    assert ran.code == 1, ran.out + ran.err
    assert "Traceback" not in ran.err
    for text in expected:
        assert text in ran.out, ran.out


def edit(path: Path, change: Callable[[list[Any]], Iterable[Any]]) -> None:
    write_rows(path, change(read_rows(path)))


# --- documents --------------------------------------------------------------------------------------------------------


def test_sound_data_has_no_finding(small: Project) -> None:
    small.ok("mix")
    before = tree(small.root)
    small.ok("validate").shows("0 findings", "3 shards", "shape-0")
    assert small.ok("validate", "--json").json["findings"] == []
    for target in (small.data, small.out, small.documents, small.documents / SHARD):
        assert "0 findings" in small.run("validate", target).out
    assert tree(small.root) == before


def test_sound_data_of_other_programs_has_no_finding(by_hand: Project) -> None:
    assert "0 findings" in by_hand.ok("validate").out


DOCUMENT_FAULTS: dict[str, tuple[Any, str]] = {
    "no source": ({"id": "x", "text": "t"}, "expected field source"),
    "no id": ({"text": "t", "source": "s"}, "expected field id"),
    "no text": ({"id": "x", "source": "s"}, "expected field text"),
    "id a number": ({"id": 1, "text": "t", "source": "s"}, "expected a text, got a whole number - at $.id"),
    "text null": ({"id": "x", "text": None, "source": "s"}, "expected a text, got null - at $.text"),
    "added a number": ({"id": "x", "text": "t", "source": "s", "added": 2020}, "$.added"),
    "metadata a list": ({"id": "x", "text": "t", "source": "s", "metadata": []}, "$.metadata"),
    "a list": ([1], "expected an object, got a list"),
    "malformed": (b'{"id":"x"', "expected a JSON object"),
    "blank": (b"", "blank line"),
    "not utf-8": (b'{"id":"x","text":"\xff","source":"s"}', "UTF-8"),
}


@pytest.mark.parametrize("fault", DOCUMENT_FAULTS)
def test_a_row_that_is_not_a_document_is_found_and_the_rest_is_read(project: Project, fault: str) -> None:
    row, expected = DOCUMENT_FAULTS[fault]
    path = project.documents / SHARD
    bad = row if isinstance(row, bytes) else json.dumps(row).encode()
    write_rows(path, [document("1", "t"), bad, document("3", "t"), bad])
    for ran in (project("validate"), project.run("validate", path), project.run("validate", project.data)):
        finds(ran, f"{path}:2: ", f"{path}:4: ", expected, "2 findings")


def test_the_first_rows_are_all_that_a_quick_look_reads(project: Project) -> None:
    path = project.documents / SHARD
    write_rows(path, [document("1", "t"), document("2", "t"), {"id": "3"}])
    assert "0 findings" in project.ok("validate", "--first", 2).out
    finds(project("validate", "--first", 3), f"{path}:3: ")


def test_duplicates_are_found_within_and_across_shards(project: Project) -> None:
    first = project.documents / SHARD
    second = project.documents / "deep" / "b.jsonl.gz"
    write_rows(first, [document("1", "t"), document("2", "t"), document("1", "other"), document("1", "t", "other")])
    write_rows(second, [document("3", "t"), document("2", "t"), document("1\0", "t")])
    ran = project("validate")
    finds(ran, f"{first}:3: ", f"{first}:1 ", f"{second}:2: ", f"{first}:2 ", "2 findings")


def test_a_source_with_a_nul_is_found_and_so_is_what_follows(project: Project) -> None:
    path = project.documents / SHARD
    write_rows(path, [document("1", "t"), document("1", "t", "s\0"), {"id": "3"}])
    finds(project("validate"), f"{path}:2: expected a source without NUL bytes", f"{path}:3: ", "2 findings")


def test_many_findings_are_counted_and_the_first_shown(project: Project) -> None:
    path = project.documents / SHARD
    write_rows(path, [{"id": "x"}] * 100)
    ran = project("validate")
    finds(ran, f"{path}:1: ", "80 more findings")
    assert f"{path}:100: " not in ran.out


@pytest.mark.parametrize("cut", [1, 8, 40])
def test_a_truncated_shard_is_found(small: Project, cut: int) -> None:
    path = small.documents / SHARD
    path.write_bytes(path.read_bytes()[:-cut])
    finds(small("validate"), str(path), "truncated")


def test_a_file_that_is_no_shard_is_named(small: Project) -> None:
    (small.documents / "notes.md").write_text("x")
    ran = small("validate").fails(1)
    assert str(small.documents / "notes.md") in ran.out + ran.err


def test_documents_that_ingest_did_not_make_so_are_found(project: Project) -> None:
    path = write_rows(project.root / "r.jsonl", ({"id": str(i), "text": "t"} for i in range(9)))
    project.ingest({"format": "jsonl", "from": [str(path)], "source": "j"})
    shard = project.documents / "j" / "r.jsonl.gz"
    project.ok("validate")
    data = shard.read_bytes()
    edit(shard, lambda rows: rows[:-1])
    finds(project("validate"), str(shard))
    shard.unlink()
    write_rows(project.documents / "other.jsonl.gz", [document("1", "t")])
    finds(project("validate"), str(shard))
    shard.write_bytes(data)
    project.ok("validate")


# --- attributes -------------------------------------------------------------------------------------------------------

ATTRIBUTE_FAULTS: dict[str, tuple[int, Callable[[list[Any]], Iterable[Any]]]] = {
    "short": (5, lambda rows: rows[:-1]),
    "empty": (1, lambda rows: []),
    "long": (6, lambda rows: [*rows, rows[0]]),
    "swapped": (2, lambda rows: [rows[0], rows[2], rows[1], *rows[3:]]),
    "wrong id": (3, lambda rows: [*rows[:2], rows[2] | {"id": "x"}, *rows[3:]]),
    "wrong source": (3, lambda rows: [*rows[:2], rows[2] | {"source": "x"}, *rows[3:]]),
    "malformed": (3, lambda rows: [*rows[:2], b"{", *rows[3:]]),
    "no attributes": (3, lambda rows: [*rows[:2], {"id": "a-3", "source": "s"}, *rows[3:]]),
}


@pytest.mark.parametrize("fault", ATTRIBUTE_FAULTS)
@pytest.mark.parametrize("kind", ["small", *slow("by_hand")])
def test_an_attribute_file_that_is_not_of_its_documents_is_found(
    request: pytest.FixtureRequest, kind: str, fault: str
) -> None:
    project: Project = request.getfixturevalue(kind)
    line, change = ATTRIBUTE_FAULTS[fault]
    path = project.attributes / {"small": "shape-0", "by_hand": "exp"}[kind] / SHARD
    edit(path, change)
    finds(project("validate"), f"{path}:{line}: expected")


@pytest.mark.parametrize("kind", ["small", "by_hand"])
def test_missing_and_extra_attribute_files_are_found(request: pytest.FixtureRequest, kind: str) -> None:
    project: Project = request.getfixturevalue(kind)
    folder = project.attributes / {"small": "shape-0", "by_hand": "exp"}[kind]
    (folder / SHARD).rename(folder / "extra.jsonl.gz")
    finds(project("validate"), f"{folder / SHARD}", f"{folder / 'extra.jsonl.gz'}", "2 findings")


@pytest.mark.parametrize(
    "values", [{}, {"line_shape": None}, {"line_shape": {"lines": "3"}}, {"line_shape": {"lines": 3}}], ids=str
)
def test_a_value_that_is_not_of_the_declared_type_is_found(small: Project, values: dict[str, Any]) -> None:
    path = small.attributes / "shape-0" / SHARD
    edit(path, lambda rows: [*rows[:2], attributes("a-3", values), *rows[3:]])
    finds(small("validate"), f"{path}:3: ")


def test_a_changed_value_of_the_right_type_is_found(small: Project) -> None:
    path = small.attributes / "shape-0" / SHARD
    rows = read_rows(path)
    rows[2]["attributes"]["line_shape"]["lines"] = 1
    write_rows(path, rows)
    finds(small("validate"), str(path))


def test_a_stale_set_is_found(small: Project) -> None:
    edit(small.documents / SHARD, lambda rows: [rows[0] | {"text": "other"}, *rows[1:]])
    finds(small("validate"), str(small.attributes / "shape-0" / SHARD), "earlier version")


def test_an_output_of_other_settings_or_documents_is_found(small: Project) -> None:
    small.ok("mix")
    rules = small.config["mix"]["rules"]
    small.config["mix"]["rules"] = []
    finds(small("validate"), "other settings")
    small.config["mix"]["rules"] = rules
    write_rows(small.documents / "d.jsonl.gz", [document("new", "t")])
    small.ok("tag")
    finds(small("validate"), "shards")
    (small.documents / "d.jsonl.gz").unlink()
    small.ok("clean", "--forget", "d.jsonl.gz")
    small.ok("validate")
    edit(small.documents / SHARD, lambda rows: [rows[0] | {"text": "other"}, *rows[1:]])
    small.ok("tag")
    finds(small("validate"), "earlier version")


# --- outputs ----------------------------------------------------------------------------------------------------------

EN: dict[str, Any] = {"label": "en", "prob": 0.9}


def line(content: str = "one\ntwo", label: str = "en", sentences: list[Any] | None = None, **more: Any) -> bytes:
    row = {
        "content": content,
        "warc_headers": {"warc-record-id": "1"},
        "metadata": {
            "identification": EN | {"label": label},
            "annotation": None,
            "sentence_identifications": [EN, None] if sentences is None else sentences,
        }
        | more,
    }
    return json.dumps(row, separators=(",", ":")).encode()


def release(root: Path, spelling: str = "{hex}  {name}", checksums: str = "en_sha256.txt", parts: int = 2) -> Path:
    """An OSCAR folder as it was released, without any record of ours."""
    names = [f"en_part_{n}.jsonl.gz" for n in range(1, parts + 1)] if parts > 1 else ["en.jsonl.gz"]
    folder = root / "release" / "en"
    lines = []
    for number, name in enumerate(names):
        path = write_rows(folder / name, [line(f"{number}\ntwo"), line()])
        algorithm = "sha384" if "384" in checksums else "sha256"
        digest = hashlib.new(algorithm, path.read_bytes()).hexdigest()
        lines.append(spelling.format(hex=digest, HEX=digest.upper(), name=name))
    (folder / checksums).write_text("".join(each + "\n" for each in lines))
    return root / "release"


SPELLINGS = [
    ("{hex}  {name}", "en_sha256.txt"),
    ("{hex} {name}", "en_sha256.txt"),
    ("{hex} *{name}", "en_sha256.txt"),
    ("{HEX}  {name}", "en_sha256.txt"),
    ("{hex}  ./{name}", "en_sha256.txt"),
    ("{hex}  {name}\r", "en_sha256.txt"),
    ("{name}\t{hex}", "en_sha256.txt"),
    ("{hex}  {name}", "checksum.sha256"),
    ("{hex} {name}", "checksum.sha256"),
    ("{hex}  {name}", "checksum.sha384"),
    ("{hex} {name}", "checksum.sha384"),
]


@pytest.mark.parametrize(("spelling", "checksums"), SPELLINGS)
def test_checksum_files_in_all_spellings_are_understood(
    tmp_path: Path, run: Run, spelling: str, checksums: str
) -> None:
    root = release(tmp_path, spelling, checksums)
    run("validate", root).succeeds().shows("2 files")
    part = root / "en" / "en_part_2.jsonl.gz"
    write_rows(part, [line("other\ntwo")])
    finds(run("validate", root), f"{part}: expected the checksum", f"{checksums}:2", "1 finding")
    part.unlink()
    finds(run("validate", root), f"{root / 'en' / checksums}:2: expected the file")


def test_a_checksum_file_that_lists_too_little_or_nonsense_is_found(tmp_path: Path, run: Run) -> None:
    root = release(tmp_path)
    path = root / "en" / "en_sha256.txt"
    sound = path.read_text().splitlines(keepends=True)
    path.write_text(sound[0])
    finds(run("validate", root), "en_part_2.jsonl.gz: expected a checksum file that lists it")
    for wrong in ("nonsense\n", "0" * 63 + "  x\n", "\n"):
        path.write_text(sound[0] + wrong + sound[1])
        finds(run("validate", root), f"{path}:2: expected a checksum")
    path.write_text("")
    finds(run("validate", root), "en_part_1.jsonl.gz", "en_part_2.jsonl.gz")


def test_missing_part_numbers_are_found(tmp_path: Path, run: Run) -> None:
    root = release(tmp_path, parts=4)
    (root / "en" / "en_part_2.jsonl.gz").unlink()
    finds(run("validate", root), "en_part_2.jsonl.gz: expected the parts 1 to 4")


def test_a_single_file_beside_parts_is_found(tmp_path: Path, run: Run) -> None:
    root = release(tmp_path)
    write_rows(root / "en" / "en.jsonl.gz", [line()])
    finds(run("validate", root), "en.jsonl.gz: expected one file or numbered parts")


BAD_LINES = {
    "upper-case label": (line(label="EN"), "lower-case"),
    "upper-case sentence label": (line(sentences=[EN | {"label": "EN"}, None]), "lower-case"),
    "too few identifications": (line(sentences=[EN]), "expected one sentence identification"),
    "too many identifications": (line(sentences=[EN, EN, EN]), "expected one sentence identification"),
    "no identifications": (line(sentences=[]), "expected one sentence identification"),
    "line feed at the end": (line("one\ntwo\n"), "expected one sentence identification"),
    "probability a text": (line(sentences=[EN | {"prob": "0.9"}, None]), "expected a number, got a text"),
    "unknown field": (line(tlsh="x"), "tlsh"),
    "annotation a text": (line(annotation="tiny"), "annotation"),
    "empty label": (line(label=""), "label"),
    "no content": (b'{"warc_headers":{}}', "content"),
    "malformed": (b"{", ""),
    "blank": (b"", ""),
}


@pytest.mark.parametrize("fault", BAD_LINES)
def test_a_line_that_is_not_of_the_schema_is_found(tmp_path: Path, run: Run, fault: str) -> None:
    bad, expected = BAD_LINES[fault]
    root = release(tmp_path, parts=1)
    path = write_rows(root / "en" / "en.jsonl.gz", [line(), bad, line()])
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    (root / "en" / "en_sha256.txt").write_text(f"{digest}  en.jsonl.gz\n")
    finds(run("validate", root), f"{path}:2: ", expected, "1 finding")


def test_the_first_rows_are_those_that_are_looked_at(tmp_path: Path, run: Run) -> None:
    path = write_rows(tmp_path / "en" / "en.jsonl.gz", [line(), b"{", line()])
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    (path.parent / "en_sha256.txt").write_text(f"{digest}  en.jsonl.gz\n")
    for place in (path, tmp_path):
        run("validate", place, "--first", 1).succeeds()
        finds(run("validate", place, "--first", 2), f"{path}:2: ")
        finds(run("validate", place), f"{path}:2: ")


def test_the_last_line_must_end(tmp_path: Path, run: Run) -> None:
    root = release(tmp_path, parts=1)
    path = root / "en" / "en.jsonl.gz"
    path.write_bytes(gzip.compress(line() + b"\n" + line()))
    finds(run("validate", root), f"{path}:2: expected a line feed")


@pytest.fixture
def mixed(pipeline: Project) -> Project:
    """A published OSCAR output with parts."""
    pipeline.config["mix"]["output"]["part_size"] = 3000
    pipeline.ok("run")
    return pipeline


@pytest.mark.slow
def test_any_damage_to_an_output_is_found(mixed: Project) -> None:
    part = sorted(mixed.out.rglob("*_part_1.jsonl.gz"))[0]
    checksums = part.parent / f"{part.parent.name}_sha256.txt"
    for path in (part, checksums):
        data = path.read_bytes()
        for damaged in (None, b"", data[:-1], data[:-9], data + b"x", data[:12] + bytes([data[12] ^ 1]) + data[13:]):
            path.unlink() if damaged is None else path.write_bytes(damaged)
            finds(mixed.run("validate", mixed.out), str(path))
            path.write_bytes(data)
    mixed.ok("validate")


@pytest.mark.slow
def test_a_part_that_replaces_another_with_its_checksum_is_found_by_the_manifest(mixed: Project) -> None:
    first, second = sorted(mixed.out.rglob("*_part_[12].jsonl.gz"))[:2]
    checksums = first.parent / f"{first.parent.name}_sha256.txt"
    lines = checksums.read_text().splitlines()
    first.write_bytes(second.read_bytes())
    digest = hashlib.sha256(first.read_bytes()).hexdigest()
    checksums.write_text("".join(f"{digest}  {n[66:]}\n" if n.endswith(first.name) else f"{n}\n" for n in lines))
    finds(mixed("validate"), f"{first}: expected", "manifest")


@pytest.mark.slow
def test_a_part_that_no_manifest_lists_is_found(mixed: Project) -> None:
    (mixed.out / "xx").mkdir()
    extra = write_rows(mixed.out / "xx" / "xx.jsonl.gz", [line()])
    finds(mixed("validate"), f"{extra}: expected only")


def test_head_refuses_to_show_documents_with_attributes_of_others(small: Project) -> None:
    shown = small.ok("head", SHARD, "--id", "a-2", "--json").json["documents"]
    assert [(each["id"], each["attributes"]["shape-0"]["noise"]["chars"]) for each in shown] == [("a-2", 8)]
    assert small("head", "--id", "nobody").code == 2
    edit(small.attributes / "shape-0" / SHARD, lambda rows: rows[::-1])
    small("head", SHARD).fails(1, f"{small.attributes / 'shape-0' / SHARD}:1: ")


def test_a_joined_set_that_has_gone_is_named(project: Project) -> None:
    write_rows(project.documents / "a.jsonl.gz", [document("x", "one")])
    write_rows(project.attributes / "theirs" / "a.jsonl.gz", [attributes("x", {"n": 1})])
    output = {"format": "dolma", "path": str(project.out)}
    project.config["mix"] = {"attributes": ["theirs"], "rules": [{"drop": "n > 2", "name": "n"}], "output": output}
    project.ok("mix")
    (project.attributes / "theirs" / "a.jsonl.gz").unlink()
    (project.attributes / "theirs").rmdir()
    ran = project("validate")
    assert (ran.code, f"{project.attributes}/theirs: expected the attributes that the mix joins" in ran.out) == (
        1,
        True,
    )
