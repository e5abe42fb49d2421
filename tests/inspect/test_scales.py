"""Declared scales in Croissant files: an enumeration of the values, which the fields of the labels name."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.inspect.conftest import ABOUT
from tests.pipeline.conftest import Project, document, write_rows


@pytest.fixture
def described(project: Project, tmp_path: Path) -> dict[str, Any]:
    write_rows(project.documents / "a.jsonl.gz", [document(f"d{i}", "text") for i in range(3)])
    rows = [{"id": f"d{i}", "grade": i, "verdict": ("good", "bad", None)[i]} for i in range(3)]
    (tmp_path / "labels.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    common = {"from": str(tmp_path / "labels.jsonl"), "id": "id"}
    project.config["align"] = {
        "n-0": {**common, "values": ["grade"], "scale": {"range": [0, 3], "step": 1}},
        "t-0": {**common, "values": ["verdict"], "scale": {"values": ["bad", "fair", "good"]}},
    }
    project.config["about"] = ABOUT
    project.ok("align")
    project.ok("croissant")
    assert project("validate", project.data / "croissant.json").code == 0
    found: dict[str, Any] = json.loads((project.data / "croissant.json").read_text())
    return found


@pytest.mark.filterwarnings("ignore")  # other people's
def test_a_scale_is_an_enumeration_that_fields_name(described: dict[str, Any], project: Project) -> None:
    sets = {each["@id"]: each for each in described["recordSet"]}
    values = {name: [row[f"{name}/value"] for row in sets[name]["data"]] for name in sets if name.startswith("scale-")}
    assert values == {"scale-n-0-grade": [0, 1, 2, 3], "scale-t-0-verdict": ["bad", "fair", "good"]}
    assert sets["scale-t-0-verdict"]["dataType"] == "sc:Enumeration"
    fields = {field["@id"]: field for each in sets.values() for field in each["field"]}
    assert fields["attributes-n-0/grade"]["dataType"] == ["sc:Integer", "cr:Label"]
    assert fields["attributes-t-0/verdict"]["description"].endswith(
        "On the scale bad, fair, good (`scale-t-0-verdict`)."
    )
    mlcroissant = pytest.importorskip("mlcroissant", reason="the extra `croissant` is not installed")
    records = mlcroissant.Dataset(str(project.data / "croissant.json")).records("attributes-n-0")
    assert [record["attributes-n-0/grade"] for record in records] == [0, 1, 2]


def test_an_output_with_its_attributes_lists_their_scales(described: dict[str, Any], project: Project) -> None:
    output = {"format": "dolma", "path": str(project.out), "attributes": True}
    project.config["mix"] = {"attributes": ["n-0", "t-0"], "rules": [], "output": output}
    project.ok("mix")
    project.ok("croissant")
    found = json.loads((project.out / "croissant.json").read_text())
    sets = {each["@id"]: each for each in found["recordSet"]}
    assert [row["scale-verdict/value"] for row in sets["scale-verdict"]["data"]] == ["bad", "fair", "good"]
    told = json.dumps(sets["documents"])
    assert "`scale-grade`" in told, told
    assert "0 findings" in project.ok("validate", project.out).out


def test_a_map_of_calibrate_is_on_the_scale_of_its_labels(described: dict[str, Any], project: Project) -> None:
    kind = {"kind": "map", "score": "r-0.random", "labels": "n-0.grade", "method": "isotonic", "minimum": 1}
    project.config |= {"tag": {"r-0": "random"}, "calibrate": {"m-0": {**kind, "as": "mapped"}}}
    project.ok("tag")
    project.ok("calibrate")
    project.ok("croissant", "about.version=1.1.0")
    sets = {each["@id"]: each for each in json.loads((project.data / "croissant.json").read_text())["recordSet"]}
    assert [row["scale-m-0-mapped/value"] for row in sets["scale-m-0-mapped"]["data"]] == [0, 1, 2, 3]
    (field,) = (each for each in sets["attributes-m-0"]["field"] if each["name"] == "mapped")
    assert "`scale-m-0-mapped`" in field["description"]
    assert [part["dataType"] for part in field["subField"]] == [["sc:Float", "cr:Label"]]


def test_a_tagger_declares_the_scale_of_its_values(project: Project) -> None:
    write_rows(project.documents / "a.jsonl.gz", [document(f"d{i}", "text") for i in range(9)])
    entry = {"tagger": "random", "as": "luck", "scale": {"range": [1, 0]}}
    project.config |= {"tag": {"r-0": entry}, "about": ABOUT}
    project("tag").fails(
        2, f"{project.yaml}:", ": tag.r-0.scale: range: expected a least and a greater number, got [1.0, 0.0]"
    )
    entry["scale"] = {"range": [0, 1], "step": 0.5}
    project.ok("tag")
    project.ok("croissant")
    found = json.loads((project.data / "croissant.json").read_text())
    (scale,) = (each for each in found["recordSet"] if each["@id"] == "scale-r-0-luck")
    assert [row["scale-r-0-luck/value"] for row in scale["data"]] == [0, 0.5, 1]
    told = project.ok("evaluate", "r-0.luck", "--against", "r-0.luck", "--json").json
    assert (told["scale"], told["level"]) == ({"range": [0.0, 1.0], "step": 0.5}, "ordinal")
    entry["scale"] = "none"
    assert "scale" in project("tag").err  # another setting of the set
