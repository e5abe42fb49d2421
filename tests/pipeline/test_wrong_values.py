"""A tagger's value that is not of its declared type fails its shard, in any row and whatever form the values have."""

import pytest

from tests.pipeline.conftest import Project, document, write_rows

OWN = '''
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np

from toolkit import Batch, Document, Prediction, Tagger
from toolkit.text import Column
from toolkit.text import LinePredictions

WRONG = {"nan": float("nan"), "inf": float("-inf"), "text": "many", "null": None}


class Score(msgspec.Struct):
    best: float | None


class One(Tagger):
    """A number for a document."""

    def tag(self, document: Document) -> float:
        return WRONG.get(document.text, 0.5)


class Object(Tagger):
    """A number that may be null, in an object."""

    def tag(self, document: Document) -> Score:
        return Score(WRONG.get(document.text, None))


class Open(Tagger):
    """Anything in a map."""

    def tag_batch(self, documents: Sequence[Document]) -> Sequence[dict[str, Any]]:
        return [{"a": [{"b": WRONG.get(document.text)}]} for document in documents]


class Texts(Column[float]):
    def __init__(self, values: list[Any]) -> None:
        self.values = values

    def __len__(self) -> int:
        return len(self.values)

    def value(self, index: int) -> float:
        return self.values[index]

    def raw(self) -> list[msgspec.Raw]:
        return [msgspec.Raw(msgspec.json.encode(value)) for value in self.values]


class Own(Tagger):
    """A column of its own."""

    def tag_batch(self, documents: Sequence[Document]) -> Sequence[float]:
        return Texts([WRONG.get(document.text, 0.5) for document in documents])


class Nullable(Tagger):
    """The same, which may be null."""

    def tag_batch(self, documents: Sequence[Document]) -> Sequence[float | None]:
        return Texts([WRONG.get(document.text, 0.5) for document in documents])


class Lines(Tagger):
    """A column of compiled code."""

    def tag_batch(self, documents: Sequence[Document]) -> Sequence[list[Prediction | None]]:
        probs = np.array([WRONG.get(document.text, 0.5) for document in documents], dtype=np.float32)
        return LinePredictions(["en"], np.zeros(len(probs), np.int32), probs, np.arange(len(probs) + 1))
'''
ROW = 300  # in the second block of documents


WRONG = [
    ("One", "nan", "float, got nan"),
    ("One", "text", "float, got 'many'"),
    ("One", "null", "float, got None"),
    ("Object", "nan", "{best: float | null}, got Score(best=nan)"),
    ("Object", "inf", "{best: float | null}, got Score(best=-inf)"),
    ("Open", "nan", "map[any], got {'a': [{'b': nan}]}"),
    ("Own", "nan", "float, got null"),
    ("Own", "text", 'float, got "many"'),
    ("Nullable", "inf", "float | null, got null: NaN and infinity are no numbers of JSON"),
    ("Lines", "nan", 'list[{label: str, prob: float} | null], got [{"label":"en","prob":null}]'),
]
CASES = [
    (way, *case)
    for way in ("tag", "run", "when", "without")
    for case in WRONG
    if way != "without" or case[0] not in ("Open", "Lines")  # which are refused beside it
]


@pytest.mark.parametrize(("way", "tagger", "text", "expected"), CASES)
def test_a_wrong_value_fails_its_shard_in_any_row(
    way: str, tagger: str, text: str, expected: str, project: Project
) -> None:
    """Its error names file, row, document and tagger; the shards beside it are done."""
    (project.root / "own.py").write_text(OWN)
    rows = [document(f"d{i}", text if i == ROW else "good") for i in range(1, ROW + 50)]
    project.config["tag"] = {"own-0": {"tagger": f"{project.root}/own.py:{tagger}", "as": "own"}}
    entry = project.config["tag"]["own-0"]
    if way == "when":
        entry["when"] = 'document.id != "d1"'
    if way == "without":
        project.config["tag"]["mails-0"] = "emails"
        entry["without"] = "mails-0.emails"
    if way == "run":
        write_rows(project.root / "in" / "a.jsonl.gz", rows)
        write_rows(project.root / "in" / "b.jsonl.gz", [document("e", "good")])
        project.config["ingest"] = [{"format": "dolma", "from": [f"{project.root}/in/*"]}]
        project.config["mix"] = {"attributes": ["own-0"], "output": {"format": "dolma", "path": str(project.out)}}
    else:
        write_rows(project.documents / "a.jsonl.gz", rows)
        write_rows(project.documents / "b.jsonl.gz", [document("e", "good")])
    ran = project("run" if way == "run" else "tag")
    assert ran.code == 1
    message = f"a.jsonl.gz:{ROW}: tagger own: expected a value of its declared type {expected}"
    assert message in ran.err
    assert f"(document 'd{ROW}')" in ran.err
    made = [path.name for path in (project.attributes / "own-0").rglob("*.jsonl.gz")]
    assert made == ["b.jsonl.gz"]
    assert not project.output()


def test_a_long_wrong_value_is_cut_in_the_message(project: Project) -> None:
    (project.root / "own.py").write_text(OWN.replace('"many"', '"many" * 1000'))
    write_rows(project.documents / "a.jsonl.gz", [document("d", "text")])
    project.config["tag"] = {"own-0": {"tagger": f"{project.root}/own.py:One"}}
    ran = project("tag").fails(1, "got 'manymany")
    assert "many" * 100 not in ran.err
