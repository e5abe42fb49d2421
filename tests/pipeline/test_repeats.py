"""Documents that a mix writes several times: how often, under which numbers, and who knows of it."""

import contextlib
import gzip
import importlib
import io
import itertools
import json
import math
import os
import random
import shutil
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from hypothesis import HealthCheck, Phase, settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from tests.conftest import ROOT
from tests.pipeline.conftest import Project, attributes, document, read_bytes, read_rows, strays, tree, write_rows
from tests.pipeline.test_kill import DiesAt, Killed
from toolkit import cli

CURVE = [[0.0, 0], [0.5, 0.4], [0.9, 2], [1.0, 7]]
SCORES = [i / 100 for i in range(101)]


def amount(score: float) -> float:
    (x, y), (x2, y2) = next((a, b) for a, b in itertools.pairwise(CURVE) if a[0] <= score <= b[0])
    return y + (y2 - y) * (score - x) / (x2 - x)


@pytest.fixture
def repeated(project: Project) -> Project:
    """Three shards of documents with scores, and a mix that repeats them by a curve."""
    for shard in range(3):
        rows = [document(f"{shard}-{i}", f"text {i}", metadata={"k": i}) for i in range(101)]
        write_rows(project.documents / f"{shard}.jsonl.gz", rows)
        values = [attributes(row["id"], {"q": score, "l": "en"}) for row, score in zip(rows, SCORES, strict=True)]
        write_rows(project.attributes / "q-0" / f"{shard}.jsonl.gz", values)
    project.mixes(
        {"drop": "q < 0.02", "name": "bad"},
        {"repeat": {"score": "q", "curve": CURVE}, "name": "by quality"},
        attributes=["q-0"],
        label="l",
        rejected=str(project.root / "rejected"),
    )
    return project


def written(project: Project) -> dict[str, list[int]]:
    """The numbers of the copies of each document, in the order in which they are written."""
    found: dict[str, list[int]] = {}
    for row in project.output():
        found.setdefault(row["id"], []).append(row["metadata"]["copy"])
    return found


def test_copies_are_numbered_from_1_and_are_as_many_as_the_curve_says(repeated: Project) -> None:
    preview = repeated.ok("mix", "--dry-run", "--json").json
    mixed = repeated.ok("mix", "--json").json
    found = written(repeated)
    assert all(numbers == list(range(1, len(numbers) + 1)) for numbers in found.values())
    for id, numbers in found.items():
        assert 0 <= len(numbers) - int(amount(int(id.split("-")[1]) / 100)) <= 1
    every = [f"{shard}-{i}" for shard in range(3) for i in range(2, 101)]
    rule = {key: mixed["rules"][1][key] for key in ("documents", "repeated", "copies")}
    assert rule == {
        "documents": len(every) - len(found),
        "repeated": sum(id not in ("0-65", "1-65", "2-65") for id in found),  # none of these: 0.4 + 1.6 * 0.375 = 1
        "copies": sum(len(n) for id, n in found.items() if not id.endswith("-65")),
    }
    totals = mixed["totals"]
    assert (totals["kept"], totals["copies"]) == (len(found), sum(map(len, found.values())) - len(found))
    assert preview["totals"] == totals
    assert [{**rule, "only": None} for rule in preview["rules"]] == mixed["rules"]
    gone = [row for path in (repeated.root / "rejected").rglob("*.jsonl.gz") for row in read_rows(path)]
    assert Counter(row["rejected"]["rule"] for row in gone) == {"bad": 6, "by quality": rule["documents"]}
    assert sum(label["documents"] for label in mixed["labels"].values()) == len(repeated.output())
    assert f"with copies {len(repeated.output()):,}" in " ".join(repeated.ok("mix").out.split())
    (label,) = repeated.ok("stats", "--mix", "--json").json["labels"]
    assert label["after"]["documents"] == len(repeated.output())


def test_the_output_is_the_same_with_two_processes_and_in_one_pass(repeated: Project) -> None:
    del repeated.config["mix"]["rejected"]
    repeated.ok("mix")
    once = tree(repeated.out)
    repeated.config["mix"]["output"]["path"] = str(repeated.root / "two")
    repeated.ok("mix", "processes=2")
    assert tree(repeated.root / "two") == once
    del repeated.config["mix"]["attributes"]
    repeated.config["mix"]["rules"] = [{"repeat": "get(document.metadata, 'k', 1) / 40"}]
    repeated.config["mix"].update(label='"en"')
    repeated.config["mix"]["output"]["path"] = str(repeated.root / "three")
    repeated.ok("mix", "--overwrite")
    project = Project(repeated.root, repeated.run, dict(repeated.config))
    inputs = [{"format": "dolma", "from": [str(repeated.documents / "*.jsonl.gz")]}]
    project.config |= {"dataset": str(repeated.root / "other"), "ingest": inputs}
    project.config["mix"]["output"]["path"] = str(repeated.root / "four")
    project.ok("run")
    assert tree(repeated.root / "three") == tree(repeated.root / "four")


def test_explanations_say_how_often_a_document_is_written(repeated: Project) -> None:
    assert "repeats it x 7: it is written 7 times  (q = 1.0)" in repeated.ok("mix", "--explain", "0-100").out
    found = repeated.ok("mix", "--explain", "2", "--rule", "by quality", "--json").json["documents"]
    assert len(found) == 2


def test_validate_tells_copies_from_duplicates(repeated: Project) -> None:
    repeated.ok("mix")
    repeated.ok("validate", repeated.out)
    (part,) = (repeated.out / "documents").glob("*.jsonl.gz")
    rows = read_rows(part)
    as_dataset = Project(repeated.root, repeated.run, {"dataset": str(repeated.root / "again")})
    write_rows(as_dataset.root / "again" / "documents" / "a.jsonl.gz", rows)
    as_dataset.ok("validate")
    assert [row["metadata"]["copy"] for row in rows[-2:]] == [6, 7]
    rows[-1]["metadata"]["copy"] = 6
    rows[0]["metadata"]["copy"] = "x"
    part.write_bytes(gzip.compress(b"".join(json.dumps(row).encode() + b"\n" for row in rows)))
    ran = repeated("validate", repeated.out).fails(1)
    assert f":{len(rows)}: expected each (source, id, copy) once, got that of {part}:{len(rows) - 1} again" in ran.out
    assert ":1: expected the number of the copy, from 1, at $.metadata.copy, got 'x'" in ran.out
    write_rows(as_dataset.root / "again" / "documents" / "a.jsonl.gz", rows)
    assert "expected each (source, id) once" in as_dataset("validate").out


@pytest.mark.slow
def test_croissant_identifies_rows_by_copy_too_and_the_card_says_what_was_repeated(repeated: Project) -> None:
    repeated.config["about"] = {
        "name": "x", "description": "y", "license": "https://spdx.org/licenses/CC0-1.0.html", "url": "https://e.example/",
        "creator": {"type": "Person", "name": "a"}, "date_published": "2024-01-01",
    }  # fmt: skip
    mixed = repeated.ok("mix", "--json").json["totals"]
    repeated.ok("croissant", "--of", "output")
    described = json.loads((repeated.out / "croissant.json").read_text())
    record = next(each for each in described["recordSet"] if each["@id"] == "documents")
    assert record["key"][-1] == {"@id": "documents/metadata/copy"}
    repeated.ok("croissant", "--check", repeated.out)
    repeated.ok("card", repeated.out)
    total = mixed["kept"] + mixed["copies"]
    assert f"and with copies {total:,} written" in (repeated.out / "README.md").read_text()


def test_clusters_of_duplicates_are_written_as_often_as_they_were_there(project: Project) -> None:
    texts = ["one text"] * 3 + ["another"] * 2 + ["alone"]
    write_rows(project.documents / "a.jsonl.gz", [document(str(i), text) for i, text in enumerate(texts)])
    project.config["dedup"] = {"exact-0": {"kind": "exact"}}
    project.mixes(
        {"drop": "exact.duplicate_of is not None"}, {"repeat": "min(exact.copies, 2)"}, attributes=["exact-0"]
    )
    project.ok("dedup")
    project.ok("mix")
    assert Counter(row["text"] for row in project.output()) == {"one text": 2, "another": 2, "alone": 1}


@pytest.mark.parametrize(
    ("output", "rule", "said"),
    [
        ({"format": "dolma"}, {"set": "copy", "to": "1"}, "expected another field than copy, which numbers the copies"),
        ({"format": "dolma"}, {"set": "copy.x", "to": "1"}, "expected another field than copy"),
    ],
)
def test_the_field_of_the_numbers_is_taken(repeated: Project, output: Any, rule: Any, said: str) -> None:
    repeated.config["mix"]["rules"].append(rule)
    repeated("mix").fails(2, said)


# Shuffled outputs: everything is there, in an order that depends on nothing but the seed, in parts of equal size.

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


@pytest.mark.slow
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


@pytest.mark.slow
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
    monkeypatch.setattr(importlib.import_module("toolkit.mix.intermediates"), "HELD", 9000)  # which makes several runs
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


# Random sequences of commands, changes, damage and kills, against a model in memory.
#
# The model knows what was ingested and tagged last, and by which options. From that follows whether a command may
# succeed, and what the output has then. Damage makes commands fail, or is mended; it never makes a wrong output.

TEXTS = st.lists(st.text(alphabet="ab \n", min_size=1, max_size=12), min_size=1, max_size=4)
NAMES = st.sampled_from(["x", "y/z", "w"])
DAMAGES = ("delete", "cut", "empty", "flip")


class Commands(RuleBasedStateMachine):
    """A dataset and its output, and what they should be."""

    def __init__(self) -> None:
        super().__init__()
        self.root = Path(tempfile.mkdtemp(prefix="sequences-"))
        self.inputs: dict[str, list[str]] = {}
        self.ingested: dict[str, list[str]] = {}
        self.tagged: dict[str, list[str]] = {}
        self.letter, self.tagged_letter = "a", "a"
        self.most = 1
        self.is_sound = True  # nothing was damaged, and no command was killed, since all was last made

    def teardown(self) -> None:
        shutil.rmtree(self.root)

    # --- commands -----------------------------------------------------------------------------------------------------

    def call(self, *arguments: str) -> tuple[int, str]:
        """Run a command line; its status, and what it said."""
        config = {
            "dataset": str(self.root / "data"),
            "ingest": [{"format": "jsonl", "from": [f"{self.root}/in/**/*.jsonl.gz"], "source": "s"}],
            "tag": {"counted-0": {"tagger": f"{ROOT}/tests/pipeline/counting.py:Counted", "letter": self.letter}},
            "mix": {
                "attributes": ["counted-0"],
                "rules": [{"drop": f"counted > {self.most}", "name": "many"}],
                "allow_empty": True,
                "output": {"format": "dolma", "path": str(self.root / "out"), "part_size": "300"},
            },
        }
        path = self.root / "c.yaml"
        path.write_text(json.dumps(config))
        said = io.StringIO()
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            code = cli.main([*arguments, "-c", str(path)])
        assert code in (0, 1, 2), said.getvalue()
        return code, said.getvalue()

    def expected(self) -> list[tuple[str, str]]:
        """Ids and texts of the output: of what was ingested, by the letter that was counted."""
        return [
            (f"{name}-{i}", text)
            for name in sorted(self.ingested)
            for i, text in enumerate(self.ingested[name])
            if text.count(self.tagged_letter) <= self.most
        ]

    def found(self) -> list[tuple[str, str]]:
        parts = [path for path in (self.root / "out").rglob("*.jsonl.gz") if ".toolkit" not in path.parts]
        return sorted((row["id"], row["text"]) for path in parts for row in read_rows(path))

    @initialize(texts=TEXTS)
    def begin(self, texts: list[str]) -> None:
        self.change_input("x", texts)

    @rule(name=NAMES, texts=TEXTS)
    def change_input(self, name: str, texts: list[str]) -> None:
        rows = [{"id": f"{name}-{i}", "text": text} for i, text in enumerate(texts)]
        write_rows(self.root / "in" / f"{name}.jsonl.gz", rows)
        self.inputs[name] = texts

    @rule(letter=st.sampled_from("ab"))
    def change_tagger(self, letter: str) -> None:
        self.letter = letter

    @rule(most=st.integers(0, 3))
    def change_rule(self, most: int) -> None:
        self.most = most

    @rule()
    def ingest(self) -> None:
        code, said = self.call("ingest")
        assert code == 0 or not self.is_sound, said
        if code == 0:
            self.ingested = dict(self.inputs)

    @precondition(lambda self: self.ingested)
    @rule(overwrite=st.booleans())
    def tag(self, overwrite: bool) -> None:
        """Another option under the same name of a set is refused, but for `--overwrite`."""
        code, said = self.call("tag", *(["--overwrite"] if overwrite else []))
        if self.is_sound:
            refused = bool(self.tagged) and self.letter != self.tagged_letter and not overwrite
            assert code == (2 if refused else 0), said
        if code == 0:
            self.tagged, self.tagged_letter = dict(self.ingested), self.letter

    @precondition(lambda self: self.ingested)
    @rule()
    def mix(self) -> None:
        """What is not tagged, or was tagged otherwise, is refused; and the output that is there stays."""
        before = self.found()
        code, said = self.call("mix")
        may = self.tagged == self.ingested and self.letter == self.tagged_letter
        if code == 0:
            assert may, said
            assert self.found() == sorted(self.expected())
        else:
            assert not self.is_sound or not may, said
            assert not self.is_sound or self.found() == before

    @rule()
    def run(self) -> None:
        refused = bool(self.tagged) and self.letter != self.tagged_letter
        code, said = self.call("run")
        if self.is_sound:
            assert code == (2 if refused else 0), said
        if code == 0:
            self.made()

    def made(self) -> None:
        """All was made of what there is."""
        self.ingested = self.tagged = dict(self.inputs)
        self.tagged_letter = self.letter
        assert self.found() == sorted(self.expected())

    @rule()
    def look(self) -> None:
        for command in ("status", "validate"):
            self.call(command)

    # --- what goes wrong ----------------------------------------------------------------------------------------------

    @rule(command=st.sampled_from(["ingest", "tag", "mix", "run"]), calls=st.integers(0, 12), after=st.booleans())
    def kill(self, command: str, calls: int, after: bool) -> None:
        """At a step by which something becomes visible; what was made until then may be there or not."""
        self.is_sound = False
        with mock.patch.object(os, "replace", DiesAt(os.replace, calls, after=after)), contextlib.suppress(Killed):
            self.call(command)
        self.mend()

    @rule(data=st.data(), how=st.sampled_from(DAMAGES))
    def damage(self, data: st.DataObject, how: str) -> None:
        """A file of ours; a command that succeeds nevertheless has made what it should.

        Not the manifest, without which the output passes for that of others; nor flipped bytes of the output, which
        only `validate` reads again.
        """
        roots = [self.root / name for name in (("data",) if how == "flip" else ("data", "out"))]
        files = sorted(path for root in roots for path in root.rglob("*") if path.is_file())
        files = [path for path in files if path.name != "manifest.json"]
        if not files:
            return
        path = data.draw(st.sampled_from(range(len(files))).map(files.__getitem__))
        content = path.read_bytes()
        if how == "delete":
            path.unlink()
        else:
            path.write_bytes({
                "cut": content[: len(content) // 2],
                "empty": b"",
                "flip": content[:-9] + bytes([*content[-9:-8]]).translate(bytes(range(255, -1, -1))) + content[-8:],
            }[how])  # fmt: skip
        self.is_sound = False
        before = self.ingested, self.tagged
        if self.ingested and self.call("mix")[0] == 0 and self.tagged == self.ingested:
            assert self.letter == self.tagged_letter
            assert self.found() == sorted(self.expected())
        assert (self.ingested, self.tagged) == before
        path.unlink(missing_ok=True)
        self.mend()

    def mend(self) -> None:
        """One more run makes all that is missing; what was tagged otherwise is made anew."""
        code, said = self.call("run", "--overwrite")
        assert code == 0, said
        self.made()
        assert strays(self.root / "data") == []
        assert strays(self.root / "out") == []
        self.is_sound = True


def search(examples: int, steps: int) -> type:
    """Return the test of so many sequences."""
    found: Any = Commands.TestCase
    found = type("TestSequences", (found,), {})
    found.settings = settings(
        max_examples=examples,
        stateful_step_count=steps,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.explicit, Phase.generate, Phase.shrink],
    )
    return found  # type: ignore[no-any-return]


TestFew = search(5, 8)
TestMany = pytest.mark.long(pytest.mark.timeout(4 * 3600)(search(400, 30)))
