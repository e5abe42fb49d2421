"""Which part of a version is due."""

import copy
import json
import shutil
from typing import Any

import pytest

from tests.inspect.conftest import ABOUT
from tests.marks import slow
from tests.pipeline.conftest import Project, read_rows, write_rows
from toolkit.describe import versions


def file(path: str, digest: str) -> dict[str, Any]:
    return {"@type": "cr:FileObject", "@id": path, "contentUrl": path, "sha256": digest}


def field(name: str, type_: str = "sc:Text") -> dict[str, Any]:
    return {"@id": f"r/{name}", "dataType": type_}


OLD: dict[str, Any] = {
    "description": "old",
    "version": "1.2.3",
    "distribution": [file("a", "1"), file("b", "2"), file("b_sha256.txt", "9")],
    "recordSet": [{"@id": "r", "field": [field("x"), {"@id": "r/y", "subField": [field("y/z")]}]}],
}


def changed(**parts: Any) -> dict[str, Any]:
    return copy.deepcopy(OLD) | parts


@pytest.mark.parametrize(
    ("new", "level", "reason"),
    [
        (changed(), "none", None),
        (changed(version="1.2.4", datePublished="2026-01-01"), "none", None),
        (changed(description="new"), "PATCH", "the description has changed"),
        (changed(distribution=[file("a", "1"), file("c", "2")]), "PATCH", "b has another name"),
        (changed(distribution=[file("a", "1"), file("b", "2"), file("c", "3")]), "MINOR", "c is new"),
        (changed(distribution=[file("a", "1")]), "MAJOR", "b is gone"),
        (changed(distribution=[file("a", "1"), file("b", "3"), file("c", "4")]), "MAJOR", "b has changed"),
        (changed(recordSet=[]), "MAJOR", "r/x is not described any more"),
        (changed(recordSet=[*OLD["recordSet"], {"field": [field("n")]}]), "MINOR", "r/n is newly described"),
        (
            changed(recordSet=[{"field": [field("x", "sc:Float")]}, *OLD["recordSet"][1:]]),
            "MAJOR",
            "r/x has another type",
        ),
    ],
)
def test_the_gravest_change_counts(new: dict[str, Any], level: str, reason: str | None) -> None:
    found, reasons = versions.due(OLD, new)
    assert found == level
    assert reason is None or reasons[0].startswith(reason)


LANGUAGE: dict[str, Any] = {
    "name": "language",
    "source": {"extract": {"fileProperty": "fullpath"}, "transform": {"regex": "^([^/]+)/.+$"}},
}


@pytest.mark.parametrize(
    ("old", "new", "level", "reason"),
    [
        (["de/a", "en/a"], ["de/a"], "MAJOR", "en/a is gone"),
        (["de/a", "en/a"], ["de/a", "de/b"], "MAJOR", "en/a is gone"),
        (["de/a", "de/b"], ["de/a", "de/c", "de/d"], "MAJOR", "de/b is gone"),
        (["de/a", "en/a"], ["de/b", "en/b"], "PATCH", "de/a has another name"),
    ],
)
def test_the_same_bytes_elsewhere_replace_no_file(old: list[str], new: list[str], level: str, reason: str) -> None:
    before, after = (
        {"distribution": [file(path, "1") for path in paths], "recordSet": [{"field": [LANGUAGE]}]}
        for paths in (old, new)
    )
    found, reasons = versions.due(before, after)
    assert (found, reasons[0]) == (level, reason)


def cut(contents: dict[str, str], **files: str) -> dict[str, Any]:
    """A description of files by language, with the digests of what each language has."""
    named = [{"name": name, "value": value} for name, value in contents.items()]
    group = {"@type": "cr:FileSet", "@id": "documents-files", "includes": ["*/*"], "identifier": named}
    listed = [file(path.replace("_", "/"), digest) for path, digest in files.items()]
    return {"distribution": [*listed, group], "recordSet": [{"field": [LANGUAGE]}]}


DE = {"de": "1", "en": "2"}


@pytest.mark.parametrize(
    ("new", "level", "reason"),
    [
        (cut(DE, de_a="10", en_a="2"), "PATCH", "de/a has the same content in other parts, or compressed otherwise"),
        (cut(DE, de_b="1", de_c="3", en_a="2"), "PATCH", "de/a has the same content"),
        (cut({**DE, "de": "5"}, de_a="10", en_a="2"), "MAJOR", "de/a has changed"),
        (cut({"de": "1"}, de_a="1"), "MAJOR", "en/a is gone"),
        (cut({**DE, "zh": "3"}, de_a="10", en_a="2", zh_a="4"), "MINOR", "zh/a is new"),
        (cut({}, de_a="10", en_a="2"), "MAJOR", "de/a has changed"),  # which rows it has was not looked at
    ],
)
def test_the_same_content_cut_or_compressed_otherwise_is_the_same_data(
    new: dict[str, Any], level: str, reason: str
) -> None:
    found, reasons = versions.due(cut(DE, de_a="1", en_a="2"), new)
    assert found == level
    assert reasons[0].startswith(reason)


@pytest.mark.parametrize(
    "output", [{"compression": "gzip-fast"}, *slow({"part_size": 2_000}, {"compression": "zstd", "part_size": 1_000})]
)
def test_an_output_in_other_parts_or_compressed_otherwise_is_a_patch(released: Project, output: dict[str, Any]) -> None:
    released.ok("croissant")
    released.config["mix"]["output"] |= output
    released.ok("mix")
    ran = released.ok("croissant", "--dry-run", "--json", "about.version=1.0.1")
    assert ran.json["due"] == "PATCH", ran.json["reasons"]


MORE = changed(distribution=[file("a", "1"), file("b", "2"), file("c", "3")])


@pytest.mark.parametrize(
    ("new", "fault"),
    [
        (OLD | {"version": "1.2.2"}, "expected about.version 1.2.3 or more, as it was before, got 1.2.2"),
        (OLD | {"version": "1.2.10"}, ""),
        (OLD | {"description": "new"}, ""),
        (changed(distribution=[file("a", "1"), file("c", "2")]), ""),
        (MORE, "expected about.version 1.3.0 or more after 1.2.3, got 1.2.3: c is new"),
        (MORE | {"version": None}, "expected about.version above 1.2.3, got none, though c is new"),
        (MORE | {"version": "1.2.4"}, ""),
        (MORE | {"isLiveDataset": True}, ""),
    ],
)
def test_a_version_does_not_go_down_or_stay(new: dict[str, Any], fault: str) -> None:
    assert versions.fault(OLD, new) == fault
    assert versions.fault({**OLD, "version": None}, new) == ""


@pytest.mark.parametrize(
    ("new", "enough"),
    [("1.2.3", "none"), ("1.2.4", "PATCH"), ("1.3.0", "MINOR"), ("2.0.0", "MAJOR"), ("1.2.2", "none"), (None, "none")],
)
def test_a_version_is_enough_for_what_is_due(new: str | None, enough: str) -> None:
    levels: tuple[versions.Level, ...] = ("none", "PATCH", "MINOR", "MAJOR")
    for level in levels:
        assert versions.is_enough("1.2.3", new, level) == (levels.index(level) <= levels.index(enough))


def test_the_command_says_what_is_due(described: Project) -> None:
    assert described("croissant", "--check").code == 1
    described.ok("croissant")
    described.ok("croissant", "--check")
    described.config["tag"]["more-0"] = "line_shape"
    described.ok("tag")
    ran = described("croissant", "--check").fails(1)
    assert "MINOR is due" in ran.out
    assert "expected about.version 1.1.0 or more, after 1.0.0" in ran.out
    found = described.ok("croissant", "about.version=1.1.0", "--json").json
    assert (found["due"], found["raised"]) == ("MINOR", True)
    described.ok("croissant", "about.version=1.1.0", "--check")


def test_a_version_that_stays_while_data_change_is_an_error(described: Project) -> None:
    described.config["about"]["splits"] = {"a": 0.5, "b": 0.5}
    described.ok("croissant")
    before = {path: path.read_bytes() for path in described.data.rglob("*") if path.is_file()}
    rows = read_rows(described.documents / "b.jsonl.gz")
    described("croissant", "about.version=0.9.0").fails(
        2, "expected about.version 1.0.0 or more, as it was before, got 0.9.0"
    )
    write_rows(described.documents / "c.jsonl.gz", [row | {"id": f"{row['id']}c"} for row in rows])
    shutil.rmtree(described.attributes / "exp")
    described.ok("tag")
    for arguments in ((), ("--dry-run",)):
        described("croissant", *arguments).fails(2, "expected about.version 2.0.0 or more after 1.0.0, got 1.0.0: ")
    for path in (described.data / "croissant.json", *(described.data / "splits").rglob("*.gz")):
        assert path.read_bytes() == before[path]
    assert described("croissant", "--check").code == 1
    described.ok("croissant", "about.version=2.0.0")
    assert (described.data / "splits" / "c.split.gz").exists()


@pytest.mark.slow
def test_documents_of_each_language_are_counted_without_a_manifest(released: Project) -> None:
    released.ok("croissant")
    (released.out / ".toolkit" / "manifest.json").unlink()
    settings = [f"about.{key}={json.dumps(value)}" for key, value in ABOUT.items()]
    assert (
        released.run("croissant", released.out, "--json", *settings).json["due"] == "PATCH"
    )  # of the mix it knows less


@pytest.mark.parametrize(
    "text", ['{"distribution": 1}', *slow('{"recordSet": [{"field": 1}]}', '{"distribution": {"a": 1}}')]
)
def test_what_has_another_shape_is_told(described: Project, text: str) -> None:
    path = described.data / "croissant.json"
    path.write_text(text)
    described("croissant").fails(
        2, f"{path}: expected a Croissant file that the toolkit wrote, got JSON of another shape; move it away"
    )


def test_a_file_that_is_not_ours_is_not_replaced(described: Project) -> None:
    path = described.data / "croissant.json"
    path.write_text(json.dumps({"recordSet": [1]}))
    described("croissant").fails(2, str(path))
