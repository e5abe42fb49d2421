"""Mixes with a budget: they come to it, whatever it counts, however they are run; what lacks is told."""

import importlib
import math
import random
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest

from tests.pipeline.conftest import Project, attributes, document, tree, write_rows
from toolkit.storage import Stat
from toolkit.storage.outputs import write_file

pytestmark = pytest.mark.slow

SHARDS, DOCUMENTS = 5, 400
LABELS = ("en", "en", "en", "en", "de", "de", "fr")


@pytest.fixture
def budgeted(project: Project) -> Project:
    """Shards of documents in three languages with tokens and words by a set, and a mix that repeats some."""
    chance = random.Random(3)
    for shard in range(SHARDS):
        rows, values = [], []
        for i in range(DOCUMENTS):
            words = chance.randint(1, 60)
            id, label = f"{shard}-{i}", chance.choice(LABELS)
            rows.append(document(id, "wört " * words, metadata={"label": label, "tokens": 2 * words + 1}))
            counts = {"tokens": 2 * words + 1, "counts": {"words": words}, "lang": label, "q": chance.random()}
            values.append(attributes(id, counts))
        write_rows(project.documents / f"{shard}.jsonl.gz", rows)
        write_rows(project.attributes / "set-0" / f"{shard}.jsonl.gz", values)
    project.config["mix"] = {
        "attributes": ["set-0"],
        "label": "lang",
        "rules": [{"drop": "q < 0.1"}, {"repeat": "1.5", "when": "q > 0.5"}],
        "budget": {"tokens": 20_000},
        "output": {"format": "dolma", "path": str(project.out)},
    }
    return project


OF: dict[str, Any] = {
    "documents": lambda row: 1,
    "bytes": lambda row: len(row["text"].encode()),
    "characters": lambda row: len(row["text"]),
    "words": lambda row: len(row["text"].split()),
    "tokens": lambda row: row["metadata"]["tokens"],
}


@pytest.mark.parametrize(
    ("unit", "amount", "more"),
    [
        ("documents", 700, {}),
        ("bytes", "100 kB", {}),
        ("characters", "90 k", {}),
        ("words", 20_000, {"of": "counts.words"}),
        ("tokens", 40_000, {}),
    ],
)
def test_what_is_written_comes_to_the_target(budgeted: Project, unit: str, amount: Any, more: Any) -> None:
    budgeted.config["mix"]["budget"] = {unit: amount, **more}
    preview = budgeted.ok("mix", "--dry-run", "--json").json
    mixed = budgeted.ok("mix", "--json").json
    sizes = [OF[unit](row) for row in budgeted.output()]
    (group,) = mixed["budget"]["groups"]
    target = {"100 kB": 100_000, "90 k": 90_000}.get(amount, amount)
    assert abs(sum(sizes) - target) <= max(target / 1000, max(sizes))
    assert (group["taken"], group["target"], group["missing"]) == (sum(sizes), target, 0)
    assert (group["copies"], group["documents"]) == (len(sizes), len({row["id"] for row in budgeted.output()}))
    once = {row["id"]: OF[unit](row) for row in budgeted.output()}
    assert group["epochs"] == pytest.approx(sum(sizes) / sum(once.values()), abs=1e-5)
    assert group["bytes"] == sum(map(OF["bytes"], budgeted.output()))
    assert preview["budget"]["groups"] == [{**group, "chars": 0, "bytes": 0}]
    assert preview["totals"] == mixed["totals"]
    copies = defaultdict(list)
    for row in budgeted.output():
        copies[row["id"]].append(row["metadata"]["copy"])
    assert all(numbers == list(range(1, len(numbers) + 1)) for numbers in copies.values())


def test_languages_get_shares_by_temperature(budgeted: Project) -> None:
    budgeted.config["mix"]["budget"] = {"tokens": 20_000, "by": "label", "temperature": 0.3}
    groups = {each["group"]: each for each in budgeted.ok("mix", "--json").json["budget"]["groups"]}
    whole = sum(each["available"] for each in groups.values())
    powers = {name: (each["available"] / whole) ** 0.3 for name, each in groups.items()}
    for name, each in groups.items():
        assert each["target"] == pytest.approx(20_000 * powers[name] / sum(powers.values()))
        mine = [OF["tokens"](row) for row in budgeted.output() if row["metadata"]["label"] == name]
        assert each["taken"] == sum(mine)
        assert abs(sum(mine) - each["target"]) <= 121


def test_the_taken_documents_do_not_depend_on_shard_or_order(budgeted: Project) -> None:
    budgeted.config["mix"].update(rules=[], budget={"documents": 1000, "by": "label", "seed": 7})
    budgeted.ok("mix")
    taken = {row["id"] for row in budgeted.output()}
    assert len(taken) == 1000  # each language comes to its share within a document, and all together to the whole
    share = len(taken) / (SHARDS * DOCUMENTS)
    for part in [
        *({f"{shard}-{i}" for i in range(DOCUMENTS)} for shard in range(SHARDS)),
        *({f"{shard}-{i}" for shard in range(SHARDS) for i in range(begin, begin + 80)} for begin in range(0, 400, 80)),
        {f"{shard}-{i}" for shard in range(SHARDS) for i in range(0, 400, 2)},
    ]:
        assert abs(len(taken & part) - share * len(part)) < 4 * math.sqrt(len(part) * share * (1 - share))
    budgeted.config["mix"]["budget"]["seed"] = 8
    budgeted.ok("mix")
    other = {row["id"] for row in budgeted.output()}
    assert abs(len(taken & other) - 500) < 4 * math.sqrt(500 * 0.5)


def test_what_cannot_be_met_is_told_and_given_by_others_only_on_request(budgeted: Project) -> None:
    budgeted.config["mix"]["rules"] = []
    shares = {"by": "label", "shares": {"en": 1, "fr": 1, "xx": 1, "default": 0}}
    budgeted.config["mix"]["budget"] = {"documents": 1500, **shares}
    budgeted.ok("mix", "--dry-run").shows("missing, as there is no more: xx 500 of 500, fr ")
    groups = {each["group"]: each for each in budgeted.ok("mix", "--json").json["budget"]["groups"]}
    assert (groups["en"]["taken"], groups["xx"]["missing"], groups["de"]["taken"]) == (500, 500, 0)
    assert groups["fr"]["missing"] == 500 - groups["fr"]["available"]
    budgeted.config["mix"]["budget"] = {"documents": 1000, **shares, "short": "redistribute"}
    assert "other groups give what they have" in budgeted.ok("mix").out
    assert Counter(row["metadata"]["label"] for row in budgeted.output()).total() == 1000


def test_amounts_are_of_the_text_before_edits_and_what_was_written_stands_beside_them(project: Project) -> None:
    write_rows(project.documents / "a.jsonl.gz", [document(str(i), "secret text") for i in range(20)])
    spans = [attributes(str(i), {"exp__s__x": [[0, 7, 1.0]]}) for i in range(20)]
    write_rows(project.attributes / "s-0" / "a.jsonl.gz", spans)
    project.mixes({"cut": "x"}, attributes=[{"set": "s-0", "as": {"exp__s__x": "x"}}], budget={"characters": 110})
    (group,) = project.ok("mix", "--json").json["budget"]["groups"]
    assert (group["taken"], group["chars"], group["bytes"]) == (110, 40, 40)
    assert {row["text"] for row in project.output()} == {"text"}


def test_the_same_bytes_with_two_processes_and_nothing_is_drawn_again(
    budgeted: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    budgeted.config["mix"]["budget"] = {"tokens": 20_000, "by": "label", "temperature": 0.3}
    budgeted.ok("mix")
    once = tree(budgeted.out)
    assert "nothing has changed" in budgeted.ok("mix").out
    budgeted.config["mix"]["output"]["path"] = str(budgeted.root / "two")
    budgeted.ok("mix", "processes=2")
    assert tree(budgeted.root / "two") == once
    assert not (budgeted.root / "two" / ".toolkit" / "budget").exists()
    budgeted.ok("validate")

    def not_again(*_: object) -> None:
        raise AssertionError("the budget was looked for again")

    monkeypatch.setattr(importlib.import_module("toolkit.mix.budget.drawing"), "draw_shard", not_again)
    assert "nothing has changed" in budgeted.ok("mix").out


def test_a_run_that_fails_behind_the_drawing_goes_on_with_it(
    budgeted: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    budgeted.ok("mix")
    once = tree(budgeted.out)
    budgeted.config["mix"]["output"]["path"] = str(budgeted.root / "again")
    written: list[str] = []

    def noted(path: str, data: bytes) -> Stat:
        written.append(Path(path).name)
        return write_file(path, data)

    monkeypatch.setattr(importlib.import_module("toolkit.mix.budget.drawing"), "write_file", noted)
    budgeted.config["mix"]["rules"].append({"set": "x.y", "to": "1"})
    rows = [document("0-0", "x", metadata={"x": 1})]
    shard = (budgeted.documents / "4.jsonl.gz").read_bytes()
    write_rows(budgeted.documents / "4.jsonl.gz", rows * DOCUMENTS)
    assert budgeted("mix").code == 1  # the rows of the set are of others
    assert sorted(written) == ["0=2Ejsonl=2Egz", "1=2Ejsonl=2Egz", "2=2Ejsonl=2Egz", "3=2Ejsonl=2Egz"]
    (budgeted.documents / "4.jsonl.gz").write_bytes(shard)
    written.clear()
    budgeted.ok("mix")
    assert written == ["4=2Ejsonl=2Egz"]
    del budgeted.config["mix"]["rules"][-1]
    budgeted.ok("mix")
    assert tree(budgeted.root / "again") == once


def test_a_share_leaves_the_mix_to_the_run_of_all(budgeted: Project) -> None:
    budgeted.ok("mix")
    assert "all is done" in budgeted.ok("status").out
    once = tree(budgeted.out)
    budgeted.config["mix"]["output"]["path"] = str(budgeted.root / "shared")
    budgeted("status").fails(1, "")
    assert "mix: a budget depends on all shards" in budgeted("status").out
    for i in (0, 1):
        budgeted.ok("mix", "--shard", f"{i}/2").shows("is not begun: the budget of tokens depends on all shards")
    budgeted.ok("mix")
    assert tree(budgeted.root / "shared") == once


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"tokens": 5, "by": "lable"}, "rule 'budget': expected an attribute, got 'lable'; did you mean 'label'?"),
        ({"words": 5, "of": "lang"}, "of: expected a number, the words of a document, got a value of type str"),
        ({"words": 5, "of": "counts"}, "of: expected a number"),
        ({"words": 5, "of": "metadata.n"}, "a value that may be null; write `0 if metadata.n is None else metadata.n`"),
        ({"tokens": {"en": 5}, "by": "label"}, "expected a target for each group, got none for de ("),
    ],
)
def test_mistakes_are_told_with_their_place_and_nothing_is_written(budgeted: Project, given: Any, said: str) -> None:
    budgeted.config["mix"]["budget"] = given
    budgeted("mix").fails(2, said)
    assert not list(budgeted.out.rglob("*.gz"))


def test_streams_share_a_budget(budgeted: Project) -> None:
    mix = budgeted.config["mix"]
    streams = [{"name": name, "dataset": str(budgeted.data), "rules": [{"sample": 0.5, "seed": name}]} for name in "ab"]
    budgeted.config["mix"] = {**mix, "streams": streams, "rules": [], "budget": {"documents": 800, "by": "label"}}
    budgeted.config["duplicate_ids"] = "allow"  # the streams have documents in common
    budgeted.ok("mix")
    assert len(budgeted.output()) == 800
    budgeted.config["mix"]["streams"] = [{**stream, "weight": 1} for stream in streams]
    assert "expected a budget or weights of streams, got both" in budgeted("mix").err


def test_draws_make_no_orphans(project: Project) -> None:
    rows = [document(f"{i}-{n}", f"text {i}") for i in range(40) for n in range(2)]
    write_rows(project.documents / "a.jsonl.gz", rows)
    project.config["dedup"] = {"exact-0": {"kind": "exact"}}
    project.config["mix"] = {
        "attributes": ["exact-0"],
        "rules": [{"drop": "exact.duplicate_of is not None"}, {"repeat": 0.7}],
        "budget": {"documents": 10},
        "output": {"format": "dolma", "path": str(project.out)},
    }
    project.ok("dedup")
    project.ok("mix")
    assert len(project.output()) == 10


@pytest.mark.parametrize("processes", [1, 2])
def test_documents_are_drawn_with_all_their_copies(budgeted: Project, processes: int) -> None:
    """The best half twice, up to an amount: what is chosen is written exactly twice, in any number of processes."""
    budgeted.config |= {"processes": processes, "executor": {"type": "local"}}
    budgeted.config["mix"] |= {"rules": [{"keep": "q > 0.5"}, {"repeat": 2}], "budget": {"tokens": 20_000}}
    budgeted.ok("mix")
    assert 1 in Counter(row["id"] for row in budgeted.output()).values()
    budgeted.config["mix"]["budget"]["draw"] = "documents"
    preview = budgeted.ok("mix", "--dry-run", "--json").json
    mixed = budgeted.ok("mix", "--json").json
    rows = budgeted.output()
    assert set(Counter(row["id"] for row in rows).values()) == {2}
    assert abs(sum(map(OF["tokens"], rows)) - 20_000) <= 2 * 121 / 2
    assert preview["totals"]["kept"] == mixed["totals"]["kept"] == len(rows) / 2
    (group,) = mixed["budget"]["groups"]
    assert (group["copies"], group["documents"]) == (len(rows), len(rows) / 2)
    budgeted.config["mix"]["rules"] = [{"keep": "q > 0.5"}, {"repeat": 2.5}]
    budgeted.ok("mix")
    assert set(Counter(row["id"] for row in budgeted.output()).values()) == {2, 3}
