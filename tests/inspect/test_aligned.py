"""What is described as aligned is aligned: damage of attribute files is named, as `toolkit validate` names it."""

from collections.abc import Callable

import pytest

from tests.conftest import ROOT
from tests.inspect.conftest import ABOUT
from tests.inspect.reading import record_sets
from tests.marks import slow
from tests.pipeline.conftest import JsonRows, Project, read_rows, write_rows
from toolkit.data.dataset import open_dataset
from toolkit.records import sets

Damage = Callable[[JsonRows], JsonRows]

DAMAGES: dict[str, tuple[Damage, str]] = {
    "cut": (lambda rows: rows[:1], "2: expected the attributes of {documents}:2, got the end of the file"),
    "swapped": (lambda rows: rows[::-1], "1: expected the attributes of {documents}:1, got those of 'b-2' from 't'"),
    "longer": (lambda rows: [*rows, rows[0]], "3: expected the end of the file after 2 rows"),
}


@pytest.mark.parametrize("set_name", ["own-0", *slow("exp")])
@pytest.mark.parametrize("name", DAMAGES)
def test_damaged_attributes_are_not_described(described: Project, set_name: str, name: str) -> None:
    damage, message = DAMAGES[name]
    path = described.attributes / set_name / "b.jsonl.gz"
    write_rows(path, damage(read_rows(path)))
    wanted = f"{path}:{message.format(documents=described.documents / 'b.jsonl.gz')}"
    for command in ("croissant", "card"):
        described(command, "--of", "dataset").fails(1, wanted)
    assert wanted in described("validate").out
    assert not (described.data / "croissant.json").exists()


@pytest.mark.parametrize("set_name", ["own-0", *slow("exp")])
def test_what_is_recorded_counts_where_rows_are_not_read(described: Project, set_name: str) -> None:
    described.ok("croissant", "--first", "1")
    path = described.attributes / set_name / "b.jsonl.gz"
    write_rows(path, read_rows(path)[:1])
    described("validate")  # which indexes the rows of the documents
    described("croissant", "--first", "1").fails(1, str(path))


@pytest.fixture
def carried(project: Project) -> Project:
    """Two inputs of one dataset, one of a format that carries attributes."""
    line = {"content": "eins\nzwei", "warc_headers": {"warc-record-id": "<urn:uuid:1>"}}
    line["metadata"] = {
        "identification": {"label": "de", "prob": 0.9},
        "annotation": None,
        "sentence_identifications": [{"label": "de", "prob": 0.9}, None],
    }
    write_rows(project.root / "in" / "o.jsonl", [line])
    project.config["ingest"] = [
        {"format": "wet", "from": [str(ROOT / "configs" / "sample" / "*.warc.wet.gz")], "source": "cc"},
        {"format": "oscar", "from": [str(project.root / "in" / "o.jsonl")], "source": "oscar"},
    ]
    project.config["about"] = dict(ABOUT)
    project.ok("ingest")
    return project


@pytest.mark.slow
def test_what_ingest_carries_covers_its_own_shards(carried: Project) -> None:
    carried.ok("croissant")
    carried.ok("card")
    found = record_sets(carried.data / "croissant.json")["attributes-oscar-0"]
    assert found["examples"][0]["attributes-oscar-0/file"] == "oscar/o"
    assert "0 findings" in carried.ok("validate").out
    assert "oscar-0: left out, because it has attributes of some shards only" in carried.ok("stats").out


@pytest.mark.parametrize("record", [True, False])
def test_what_ingest_carries_is_made_by_ingest(carried: Project, record: bool) -> None:
    path = carried.attributes / "oscar-0" / "oscar" / "o.jsonl.gz"
    path.unlink()
    if not record:
        sets.forget(open_dataset(str(carried.data), None, None), "oscar-0", "oscar/o.jsonl.gz")
    for command in ("croissant", "card", "validate"):
        ran = carried(command).fails(1)
        assert f"{path}:1: expected the attributes of " in ran.out + ran.err
        assert "run `toolkit ingest`" in ran.out + ran.err
        assert "toolkit tag" not in ran.out + ran.err
    carried.ok("ingest")
    carried.ok("croissant")
    carried.ok("validate")
