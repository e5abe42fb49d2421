"""Which part of a version is due."""

import copy
import json
from typing import Any

import pytest

from tests.pipeline.conftest import Project
from toolkit.describing import versions


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
    ran = described("croissant", "--check")
    assert ran.code == 1
    assert "MINOR is due" in ran.out
    assert "expected about.version 1.1.0 or more, after 1.0.0" in ran.out
    found = described.ok("croissant", "about.version=1.1.0", "--json").json
    assert (found["due"], found["raised"]) == ("MINOR", True)
    described.ok("croissant", "about.version=1.1.0", "--check")


def test_a_file_that_is_not_ours_is_not_replaced(described: Project) -> None:
    path = described.data / "croissant.json"
    path.write_text(json.dumps({"recordSet": [1]}))
    ran = described("croissant")
    assert ran.code == 2
    assert str(path) in ran.err
