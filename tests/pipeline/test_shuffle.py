"""Shuffled outputs: everything is there, in an order that depends on nothing but the seed, in parts of equal size."""

import importlib
import math
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.pipeline.conftest import Project, attributes, document, read_bytes, read_rows, tree, write_rows

SHARDS, DOCUMENTS = 6, 300


@pytest.fixture
def shuffled(project: Project) -> Project:
    """Shards of documents in two languages, and a mix that shuffles them."""
    chance = random.Random(3)
    for shard in range(SHARDS):
        rows = [
            document(f"{shard}-{i}", "\n".join("wört " * chance.randint(1, 20) for _ in range(chance.randint(1, 5))))
            for i in range(DOCUMENTS)
        ]
        write_rows(project.documents / f"{shard}.jsonl.gz", rows)
        values = [attributes(row["id"], {"lang": {"label": "en" if i % 3 else "de"}}) for i, row in enumerate(rows)]
        write_rows(project.attributes / "set-0" / f"{shard}.jsonl.gz", values)
    project.mixes({"repeat": 1.5}, attributes=["set-0"], output={"part_size": "60 kB", "shuffle": {"seed": 1}})
    return project


def parts(folder: Path) -> list[Path]:
    """The parts of an output with one label, in the order of their numbers."""
    found = [path for path in folder.rglob("*_part_*") if ".toolkit" not in path.parts]
    return sorted(found, key=lambda path: int(path.name.split("_part_")[1].split(".")[0]))


def order(folder: Path) -> list[tuple[str, int]]:
    """The documents in the order of an output."""
    return [(row["id"], row["metadata"]["copy"]) for path in parts(folder) for row in read_rows(path)]


def correlation(xs: list[float], ys: list[float]) -> float:
    n, x, y = len(xs), sum(xs) / len(xs), sum(ys) / len(ys)
    both = sum((a - x) * (b - y) for a, b in zip(xs, ys, strict=True)) / n
    return both / math.sqrt(sum((a - x) ** 2 for a in xs) / n * sum((b - y) ** 2 for b in ys) / n)


def test_the_order_depends_on_neither_shard_nor_row(shuffled: Project) -> None:
    shuffled.ok("mix")
    found = order(shuffled.out)
    places = [float(i) for i in range(len(found))]
    shards = [float(id.split("-")[0]) for id, _ in found]
    rows = [float(id.split("-")[1]) for id, _ in found]
    bound = 4 / math.sqrt(len(found))
    assert abs(correlation(places, shards)) < bound
    assert abs(correlation(places, rows)) < bound
    assert abs(correlation(shards[:-1], shards[1:])) < bound, "neighbours are of any shards"
    assert abs(correlation(places, [float(copy) for _, copy in found])) < bound
    each = Counter((int(place * 8 / len(found)), shard) for place, shard in zip(places, shards, strict=True))
    expected = len(found) / 8 / SHARDS
    chi2 = sum((each[i, float(s)] - expected) ** 2 / expected for i in range(8) for s in range(SHARDS))
    assert chi2 < 35 + 4 * math.sqrt(70), "each eighth has of each shard what it should (35 degrees of freedom)"


def test_all_is_there_once_and_parts_are_of_equal_size(shuffled: Project) -> None:
    shuffled.ok("mix")
    mixed = shuffled.output()
    sizes = [len(read_bytes(path)) for path in parts(shuffled.out)]
    longest = max(len(line) + 1 for path in parts(shuffled.out) for line in read_bytes(path).split(b"\n"))
    assert len(sizes) == -(-sum(sizes) // 60_000)
    assert max(sizes) - min(sizes) <= 2 * longest
    shuffled.ok("validate", shuffled.out)
    shuffled.config["mix"]["output"]["shuffle"]["equal"] = "documents"
    shuffled.ok("mix")
    numbers = [len(read_rows(path)) for path in parts(shuffled.out)]
    assert max(numbers) - min(numbers) <= 1
    assert len(numbers) == len(sizes)
    del shuffled.config["mix"]["output"]["shuffle"]
    shuffled.ok("mix")
    assert sorted(map(str, shuffled.output())) == sorted(map(str, mixed))
    assert shuffled.output() != mixed


@pytest.mark.slow
def test_the_bytes_are_the_same_whatever_is_held_at_a_time(shuffled: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    shuffled.ok("mix")
    once, found = tree(shuffled.out), order(shuffled.out)
    shuffled.config["mix"]["output"]["path"] = str(shuffled.root / "two")
    shuffled.ok("mix", "processes=2")
    assert tree(shuffled.root / "two") == once
    monkeypatch.setattr(importlib.import_module("toolkit.mix.stage"), "HELD", 9000)  # which makes several runs
    monkeypatch.setattr(importlib.import_module("toolkit.mix.settings"), "SHUFFLED", 500)
    monkeypatch.setattr(importlib.import_module("toolkit.mix.assemble"), "RANGE", 7000)
    shuffled.config["mix"]["output"]["path"] = str(shuffled.root / "three")
    shuffled.ok("mix")
    assert tree(shuffled.root / "three") == once
    shuffled.config["mix"]["output"]["shuffle"]["seed"] = 2
    shuffled.ok("mix")
    other = order(shuffled.root / "three")
    assert sorted(other) == sorted(found)
    assert other != found


def test_lines_are_shuffled_over_all_documents_of_a_language(shuffled: Project) -> None:
    output: dict[str, Any] = {"format": "text", "path": str(shuffled.out), "borders": False, "identification": "lang"}
    shuffled.config["mix"].update(rules=[], output=output)
    shuffled.ok("mix")
    before = {path.name: read_bytes(path).split(b"\n") for path in shuffled.out.glob("*.txt.gz")}
    output["shuffle"] = {"seed": 1, "unit": "line"}
    shuffled.ok("mix")
    after = {path.name: read_bytes(path).split(b"\n") for path in shuffled.out.glob("*.txt.gz")}
    assert before.keys() == after.keys() == {"de.txt.gz", "en.txt.gz"}
    for name, lines in after.items():
        assert sorted(lines) == sorted(before[name])
        assert lines != before[name]
    shuffled.ok("validate", shuffled.out)


@pytest.mark.parametrize("output", [{"format": "parquet"}, {"format": "text", "identification": "lang"}])
def test_other_formats_are_shuffled_as_well(shuffled: Project, output: dict[str, Any]) -> None:
    if output["format"] == "parquet":
        pytest.importorskip("pyarrow", reason="Parquet needs pyarrow, an extra")
    shuffled.config["mix"].update(rules=[], output={**output, "path": str(shuffled.out), "shuffle": {}})
    mixed = shuffled.ok("mix", "--json").json
    assert sum(label["documents"] for label in mixed["labels"].values()) == SHARDS * DOCUMENTS
    shuffled.ok("validate", shuffled.out)
