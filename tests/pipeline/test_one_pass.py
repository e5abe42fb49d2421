"""``toolkit run`` does what is per shard in one pass, with the bytes of single commands, whatever fails on the way."""

import json
import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Run
from tests.marks import slow
from tests.pipeline.conftest import Project, document, oscar_tags, record_log, strays, tree, write_rows
from toolkit import one_pass
from toolkit.config.settings import stages
from toolkit.mix import intermediates, join
from toolkit.tag import run as tagging
from toolkit.whole_corpus import sign

pytestmark = pytest.mark.slow

LINES = [
    "The library opens at nine and closes late in the evening, every day but Sunday.",
    "Η βιβλιοθήκη ανοίγει στις εννέα και κλείνει αργά το βράδυ, εκτός από την Κυριακή.",
    "Die Bibliothek öffnet um neun und schließt spät am Abend, außer am Sonntag.",
    "La biblioteca abre a las nueve y cierra tarde por la noche, excepto los domingos.",
    "menu",
    "",
    "\t \u2028 x\0y",
]

TAGGER = '''
from toolkit import Document, Example, Tagger

class Picky(Tagger):
    """Code points; nothing for a text with a certain word."""
    EXAMPLES = (Example("", 0),)
    hates: str = ""

    def tag(self, document: Document) -> int:
        if self.hates and self.hates in document.text:
            raise ValueError(f"no {self.hates}, please")
        return len(document.text)
'''

COVERED = """
from typing import Annotated
from toolkit import Attribute, Document, Example, Span, Tagger

class Covered(Tagger):
    \"\"\"Number of spans of another set.\"\"\"
    EXAMPLES = (Example("a", 1, attributes={"of": [[0, 1, 1.0]]}),)
    of: Annotated[str, Attribute("y", list[Span])]

    def tag(self, document: Document) -> int:
        return len(document.attribute(self.of))
"""

OSCAR: dict[str, Any] = {
    "tag": oscar_tags(),
    "mix": {
        "attributes": list(oscar_tags()),
        "rules": [
            {"drop": "language.label is None", "name": "unidentified"},
            {"annotate": "short", "when": "line_shape.short > line_shape.lines // 2"},
        ],
        "output": {"format": "oscar", "part_size": "6 kB"},
    },
}
TEXT: dict[str, Any] = {
    "tag": {"lines-0": {"tagger": "line_language", "min_chars": 20}},
    "mix": {"attributes": ["lines-0"], "output": {"format": "text", "unit": "block", "compression": "none"}},
}
EDITS: dict[str, Any] = {
    "tag": {"spans-0": ["emails", "line_shape"], "lines-0": "line_language"},
    "mix": {
        "attributes": ["spans-0", "lines-0"],
        "rules": [
            {"drop": "document.chars % 7 == 0", "name": "sevenths"},
            {"drop": 'document.metadata["n"] % 5 == 0', "name": "fifths"},
            {"replace": "emails", "by": "|||"},
            {"set": "metadata.shape", "to": "line_shape.lines"},
        ],
        "output": {"format": "dolma", "provenance": "line"},
        "rejected": "REJECTED",
    },
}
PROVENANCE: dict[str, Any] = {
    "tag": {"shape-0": "line_shape"},
    "mix": {"attributes": ["shape-0"], "output": {"format": "dolma", "provenance": True}},
}
PATTERNS: dict[str, Any] = {
    "tag": {"shape-0": "line_shape"},
    "mix": {
        "attributes": ["shape-0"],
        "rules": [
            {"keep": "$.attributes[?(@.line_shape.lines > 0)]", "syntax": "jsonpath", "name": "lines"},
            {"drop": ".attributes.line_shape.short > 3", "syntax": "jq", "name": "short"},
        ],
        "output": {"format": "dolma", "provenance": True},
    },
}
CASCADE: dict[str, Any] = {
    "tag": {
        "rest-0": {"taggers": ["noise", "emails"], "when": "line_shape is not None and line_shape.lines > 1"},
        "shape-0": {"tagger": "line_shape", "when": 'language.label == "en" or metadata.n == 3'},
        "lines-0": "line_language",
        "language-0": {"tagger": "language", "lines": "lines-0"},
    },
    "mix": {
        "attributes": ["language-0", "shape-0", "rest-0"],
        "rules": [{"drop": "noise is not None and noise.chars > 200", "name": "long"}],
        "output": {"format": "dolma"},
    },
}
SIGNED: dict[str, Any] = {
    "tag": {"shape-0": "line_shape"},
    "dedup": {
        "exact-0": {"kind": "exact"},
        "lines-0": {"kind": "exact", "unit": "line", "scope": "line_shape.lines", "as": "seen"},
        "near-0": {"kind": "near", "when": "line_shape.lines > 1", "ngram": 3},
    },
    "sample": {"pick-0": {"documents": 7, "by": ["line_shape.lines", "metadata.n"]}},
}
WHOLE: dict[str, Any] = SIGNED | {
    "dedup": SIGNED["dedup"] | {"rest-0": {"kind": "exact", "when": "exact.duplicate_of is None", "as": "rest"}},
    "mix": {
        "attributes": ["exact-0", "lines-0", "pick-0"],
        "rules": [{"drop": "exact.duplicate_of is not None or sample.chosen", "name": "copies"}],
        "output": {"format": "dolma"},
    },
}
ONLY_TAGS: dict[str, Any] = {"tag": {"shape-0": ["line_shape", "noise"]}}
ONLY_MIX: dict[str, Any] = {"mix": {"rules": [{"drop": "document.chars < 9"}], "output": {"format": "dolma"}}}
RECIPES = {
    "oscar": OSCAR,
    "cascade": CASCADE,
    "text": TEXT,
    "edits": EDITS,
    "provenance": PROVENANCE,
    "patterns": PATTERNS,
    "signed": SIGNED,
    "whole": WHOLE,
    "only tags": ONLY_TAGS,
    "only mix": ONLY_MIX,
}


def inputs(root: Path, *, documents: int = 30, count: int = 3) -> None:
    chance = random.Random(5)
    for i in range(count):
        rows = [
            document(
                f"{i}-{j}",
                "\n".join(chance.choices(LINES, k=chance.randrange(9))) + f" someone{j}@example.org",
                metadata={"n": j, "deep": {"ü": [None, 1.5]}},
                other=j,
            )
            for j in range(documents)
        ]
        write_rows(root / "in" / f"{i}.jsonl", rows)


def made(root: Path, run: Run, recipe: dict[str, Any], **ingest: Any) -> Project:
    """A project with inputs."""
    root.mkdir(exist_ok=True)
    inputs(root)
    config: dict[str, Any] = json.loads(json.dumps(recipe).replace("REJECTED", str(root / "rejected")))
    config["dataset"] = str(root / "data")
    config["executor"] = {"type": "in_process"}
    config["ingest"] = [{"format": "jsonl", "from": f"{root}/in/*.jsonl", "source": "s", **ingest}]
    if "mix" in config:
        config["mix"]["output"]["path"] = str(root / "out")
    return Project(root, run, config)


def singly(project: Project) -> None:
    for command in stages():
        if command in project.config:
            project.ok(command)


def all_of(project: Project) -> dict[str, str]:
    """All data, and what records say but for times, with the project's own folder left out of it."""
    found = tree(project.data) | {f"out/{k}": v for k, v in tree(project.out).items()}
    for path in sorted([*project.root.rglob("*.json"), *project.root.rglob("record-log/*.gz")]):
        if ".toolkit" in path.parts and "leases" not in path.parts:
            told = _timeless(record_log(path) if path.suffix == ".gz" else json.loads(path.read_text()))
            found[str(path.relative_to(project.root))] = json.dumps(told).replace(str(project.root), "ROOT")
    return found | {f"rejected/{k}": v for k, v in tree(project.root / "rejected").items()}


def _timeless(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _timeless(v) for k, v in value.items() if k not in ("seconds", "stamp", "started", "ended")}
    return [_timeless(each) for each in value] if isinstance(value, list) else value


@pytest.fixture
def unread(monkeypatch: pytest.MonkeyPatch) -> None:
    """What single commands read of a shard cannot be read."""

    def refused(*_: object, **__: object) -> Any:
        raise AssertionError("read back")

    monkeypatch.setattr(tagging, "_parts", refused)
    monkeypatch.setattr(intermediates, "joint_blocks", refused)
    monkeypatch.setattr(sign, "joint_blocks", refused)


def shapes() -> Iterator[Any]:
    """All recipes for inputs that become a shard each, and one of two other shapes; by hand, both."""
    for number, recipe in enumerate(RECIPES):
        for name, ingest in {"whole": {}, "cut": {"shard_size": "2 kB"}, "packed": {"pack": "1 MB"}}.items():
            other = name == ("cut" if number % 2 else "packed") and recipe != "oscar"
            yield pytest.param(ingest, recipe, id=f"{recipe}-{name}", marks=pytest.mark.long if other else ())


@pytest.mark.parametrize(("ingest", "recipe"), [*shapes()])
def test_a_run_leaves_what_single_commands_leave(tmp_path: Path, run: Run, recipe: str, ingest: dict[str, Any]) -> None:
    one, other = (made(tmp_path / name, run, RECIPES[recipe], **ingest) for name in ("one", "other"))
    singly(one)
    other.ok("run")
    assert all_of(one) == all_of(other)
    assert strays(other.root) == strays(one.root)
    before = tree(other.root, bookkeeping=True)
    other.ok("run")
    assert tree(other.root, bookkeeping=True) == before


@pytest.mark.usefixtures("unread")
@pytest.mark.parametrize(
    "recipe", ["oscar", "text", "edits", "provenance", "patterns", "signed", "only tags", "only mix"]
)
def test_nothing_is_read_back(tmp_path: Path, run: Run, recipe: str) -> None:
    project = made(tmp_path, run, RECIPES[recipe])
    told = project.ok("run", "--json").json
    assert set(told.get("tag", {}).get("written", {}).values()) <= {3}


def test_a_large_input_is_passed_by_several_processes(
    tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Blocks are tagged and encoded in helpers, and written and signed in their order."""
    one, other = (made(tmp_path / name, run, SIGNED | PATTERNS) for name in ("one", "other"))
    for project in (one, other):
        inputs(project.root, documents=700, count=1)
    singly(one)
    monkeypatch.setattr("toolkit.execution.workers.LARGE", 1)
    other.config |= {"executor": {"type": "local"}, "processes": 2}
    other.ok("run")
    del other.config["executor"], other.config["processes"]
    assert all_of(one) == all_of(other)


def reading(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """What stages read of files from now on: their names, shards, and the sets that they make."""
    read: list[tuple[str, ...]] = []
    write, joint = tagging._write, join.joint_blocks

    def tags(work: tagging.ShardToTag, todo: list[str], *rest: Any) -> Any:
        read.append(("tag", work.shard, *todo))
        return write(work, todo, *rest)

    def mixes(work: join.JoinedShard, *rest: Any) -> Any:
        read.append(("mix", work.key))
        return joint(work, *rest)

    monkeypatch.setattr(tagging, "_write", tags)
    monkeypatch.setattr(intermediates, "joint_blocks", mixes)
    return read


@pytest.mark.parametrize("limit", [2, 3])
def test_a_run_of_some_inputs_passes_the_shards_that_single_commands_would_take(
    tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch, limit: int
) -> None:
    """A shard of earlier documents comes before those of the last input, which then is only ingested."""
    read = reading(monkeypatch)
    one, other = (made(tmp_path / name, run, PROVENANCE) for name in ("one", "other"))
    before = write_rows(tmp_path / "1-before.jsonl.gz", [document("before", "a text")])
    for project in (one, other):
        (project.documents / "s").mkdir(parents=True)
        shutil.copy2(before, project.documents / "s")
    for command in ("ingest", "tag", "mix"):
        one.ok(command, "--limit", str(limit))
    read.clear()
    other.ok("run", "--limit", str(limit))
    assert read == [("tag", "s/1-before.jsonl.gz", "shape-0"), ("mix", "s/1-before.jsonl.gz")]
    assert all_of(one) == all_of(other)


def test_taggers_and_streams_that_read_other_documents_do_not_keep_others_from_the_pass(
    tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = reading(monkeypatch)
    write_rows(tmp_path / "more" / "documents" / "m" / "0.jsonl.gz", [document("more", "a text")])
    for i in range(3):
        values = {"source": "s", "attributes": {"y": [[0, 1, 1.0]]}}
        write_rows(tmp_path / "ext-0" / "s" / f"{i}.jsonl.gz", [{"id": f"{i}-{j}", **values} for j in range(30)])
    projects = []
    for name in ("one", "other"):
        project = made(tmp_path / name, run, EDITS)
        shutil.copytree(tmp_path / "more", project.root / "more")
        shutil.copytree(tmp_path / "ext-0", project.attributes / "ext-0")
        (project.root / "covered.py").write_text(COVERED)
        project.config["tag"]["covered-0"] = {"tagger": f"{project.root}/covered.py:Covered", "of": "ext-0.y"}
        mine = {"dataset": f"{project.root}/data", "attributes": ["lines-0"]}
        project.config["mix"] = {
            "streams": {"mine": mine, "more": {"dataset": f"{project.root}/more"}},
            "rules": [{"drop": "document.chars % 7 == 0", "name": "sevenths"}],
            "output": {"format": "dolma", "path": str(project.out), "provenance": True},
        }
        projects.append(project)
    one, other = projects
    singly(one)
    read.clear()
    other.ok("run")
    assert read == [*(("tag", f"s/{i}.jsonl.gz", "covered-0") for i in range(3)), ("mix", "more/m/0.jsonl.gz")]
    assert all_of(one) == all_of(other)


def test_attributes_that_an_input_carries_are_mixed_on_the_way(tmp_path: Path, run: Run, unread: None) -> None:
    first = made(tmp_path / "first", run, {})
    oscar = [
        {
            "content": "\n".join(LINES[:3]),
            "warc_headers": {"warc-record-id": f"<urn:uuid:{i}>"},
            "metadata": {
                "identification": {"label": "en", "prob": 0.9},
                "annotation": None,
                "sentence_identifications": [None, {"label": "el", "prob": 1.0}, None],
            },
        }
        for i in range(5)
    ]
    write_rows(tmp_path / "oscar" / "en.jsonl.gz", oscar)
    first.config["ingest"] = [
        {"format": "oscar", "from": f"{tmp_path}/oscar/*.jsonl.gz", "source": "o", "set": "oscar-0"}
    ]
    first.config["tag"] = {"shape-0": "line_shape"}
    first.mixes(
        {"drop": "oscar.identification.prob < 0.5"},
        attributes=["oscar-0", "shape-0"],
        format="oscar",
        output={"identification": "oscar.identification", "sentence_identifications": "line_language"},
    )
    first.ok("run")
    assert [row["metadata"] for row in first.output()] == [row["metadata"] for row in oscar]


def picky(tmp_path: Path, run: Run, hates: str) -> Project:
    recipe = json.loads(json.dumps(EDITS))
    project = made(tmp_path, run, recipe)
    (project.root / "picky.py").write_text(TAGGER)
    project.config["tag"]["picky-0"] = {"tagger": f"{project.root}/picky.py:Picky", "hates": hates}
    project.config["mix"]["attributes"].append("picky-0")
    return project


def test_a_document_that_cannot_be_tagged_costs_its_shard_and_is_told_once(
    tmp_path: Path, run: Run, unread: None
) -> None:
    project = picky(tmp_path, run, "someone29@example.org")
    inputs(project.root, documents=29)
    rows = [document("bad", "someone29@example.org")]
    write_rows(project.root / "in" / "1.jsonl", rows)
    ran = project("run").fails(1)
    assert ran.err.count("no someone29@example.org, please") == 2  # when it is met, and in the list at the end
    assert "s/1.jsonl.gz:1" in ran.err
    assert "nothing was published in" in ran.out
    assert len(tree(project.documents)) == 3
    assert sorted(path.name for path in (project.attributes / "picky-0" / "s").iterdir()) == [
        "0.jsonl.gz",
        "2.jsonl.gz",
    ]
    assert tree(project.out) == {}
    assert project("status").out.count("no someone29@example.org, please") >= 1
    write_rows(project.root / "in" / "1.jsonl", [document("good", "fine", metadata={"n": 1})])
    told = project.ok("run", "--json").json
    assert told["ingest"]["skipped"] == 2
    assert set(told["tag"]["written"].values()) == {1}
    assert strays(project.root) == []


@pytest.mark.parametrize("mix", ["no copies", *slow("copies", "budget")])
@pytest.mark.parametrize("fails", ["ingest", "tag", *slow("dedup")])
def test_when_a_shard_fails_the_per_shard_work_of_the_others_is_finished_and_nothing_whole_begins(
    tmp_path: Path, run: Run, fails: str, mix: str
) -> None:
    """Of documents that are there already, too, which no pass takes with it."""
    project = picky(tmp_path, run, "never")
    project.config["dedup"] = {"exact-0": {"kind": "exact", "when": "line_shape.lines > 0"}}
    if mix == "copies":
        project.config["mix"]["attributes"].append("exact-0")
    elif mix == "budget":
        project.config["mix"]["budget"] = {"documents": 20}
    project.ok("ingest")
    shards = ["0.jsonl.gz", "1.jsonl.gz", "2.jsonl.gz"]
    broken = project.root / "in" / "9.jsonl"
    if fails == "ingest":
        broken.write_text("{")
    elif fails == "tag":
        project.config["tag"]["picky-0"]["hates"] = "1-7"
        lines = (project.root / "in" / "1.jsonl").read_text()
        (project.root / "in" / "1.jsonl").write_text(lines.replace("someone7@", "1-7@"))
        shards.remove("1.jsonl.gz")
    else:
        project.ok("tag")
        path = project.attributes / "spans-0" / "s" / "1.jsonl.gz"
        path.write_bytes(path.read_bytes()[:-9])
        project.config["tag"] = {}
        shards.remove("1.jsonl.gz")
    ran = project("run").fails(1)
    assert ran.out.count("correct what has failed, then run the same command again") >= 1
    if fails != "dedup":
        assert sorted(path.name for path in (project.attributes / "picky-0" / "s").iterdir()) == shards
    signed = project.data / ".toolkit" / "dedup" / "exact-0" / "signatures" / "s"
    assert sorted({path.parent.name for path in signed.rglob("*") if path.is_file()}) == shards
    assert not list((project.data / ".toolkit" / "dedup" / "exact-0").glob("fates*"))
    assert not (project.attributes / "exact-0" / "s").exists()
    encoded = sorted(path.name for path in project.out.rglob("*=2Egz"))
    assert len(encoded) == (len(shards) if mix == "no copies" else 0)
    assert tree(project.out) == {}
    broken.unlink(missing_ok=True)
    if fails == "tag":
        lines = (project.root / "in" / "1.jsonl").read_text()
        (project.root / "in" / "1.jsonl").write_text(lines.replace("1-7@", "someone7@"))
    elif fails == "dedup":
        project.config["tag"] = made(tmp_path / "again", run, EDITS).config["tag"]
    project.ok("run", *(["--overwrite"] if fails == "dedup" else []))
    other = picky(tmp_path / "other", run, project.config["tag"].get("picky-0", {}).get("hates", "never"))
    other.config["dedup"] = project.config["dedup"]
    other.config["mix"] |= {key: each for key, each in project.config["mix"].items() if key in ("attributes", "budget")}
    singly(other)
    assert tree(other.out) == tree(project.out)


def test_a_document_that_cannot_be_mixed_leaves_the_attributes_of_its_shard(
    tmp_path: Path, run: Run, unread: None
) -> None:
    recipe = json.loads(json.dumps(ONLY_TAGS))
    recipe["mix"] = {
        "attributes": ["shape-0"],
        "rules": [{"drop": 'document.metadata["n"] > 5'}],
        "output": {"format": "dolma"},
    }
    project = made(tmp_path, run, recipe)
    write_rows(project.root / "in" / "1.jsonl", [document("bad", "a", metadata={"n": "seven"})])
    ran = project("run").fails(1)
    assert ran.err.count("id=bad") == 2 or ran.err.count("bad") >= 1
    assert len(tree(project.attributes)) == 3
    assert tree(project.out) == {}
    write_rows(project.root / "in" / "1.jsonl", [document("good", "a", metadata={"n": 7})])
    project.ok("run")
    assert len(project.output()) == 12


@pytest.mark.parametrize("bad", [b"{", b'{"id": "x"}'])
def test_a_damaged_input_leaves_nothing_of_its_shard(tmp_path: Path, run: Run, bad: bytes) -> None:
    project = made(tmp_path, run, OSCAR)
    rows: list[Any] = [document(str(i), "a text\n" * 20) for i in range(600)]
    write_rows(project.root / "in" / "1.jsonl", [*rows, bad])
    project("run").fails(1, "1.jsonl:601")
    for root in (project.documents, *(project.attributes / name for name in OSCAR["tag"])):
        assert sorted(path.name for path in root.rglob("*.gz")) == ["0.jsonl.gz", "2.jsonl.gz"]
    assert not list(project.out.rglob("*1.jsonl*"))


@pytest.mark.parametrize(
    "where",
    [
        "AttributesOutput.write",
        "StageOutput.write",
        "Signing.finish",
        *slow("AttributesOutput.record", "Signing.add", "Signing.record"),
    ],
)
def test_what_fails_on_the_way_is_told_by_its_stage_and_done_by_the_next_run(
    tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    """A full disk, say, which is mended later; whatever else was made of the shards stays."""
    recipe = SIGNED if where.startswith("Signing") else OSCAR
    one, other = (made(tmp_path / name, run, recipe) for name in ("one", "other"))
    singly(one)
    left = 2
    name, method = where.split(".")
    owner = getattr(sign if name == "Signing" else one_pass, name)
    original: Callable[..., Any] = getattr(owner, method)

    def fails(*arguments: Any) -> Any:
        nonlocal left
        left -= 1
        if left >= 0:
            raise OSError(28, "No space left on device")
        return original(*arguments)

    monkeypatch.setattr(owner, method, fails)
    ran = other("run", "--json")
    assert (ran.code, left < 0) == (1, True)
    stage_ = {"AttributesOutput": "tag", "StageOutput": "mix", "Signing": "dedup"}[name]
    assert ran.json["ingest"]["failed"] == []
    assert ran.json[stage_]["failed"][0] == f"{other.documents}/s/0.jsonl.gz: [Errno 28] No space left on device"
    assert name == "AttributesOutput" or set(ran.json["tag"]["written"].values()) == {3}
    assert tree(other.out) == {}
    told = other.ok("run", "--json").json
    assert told["ingest"]["skipped"] == 3
    assert all_of(one) == all_of(other)


def test_bad_rows_do_not_stop_the_pass(tmp_path: Path, run: Run, unread: None) -> None:
    project = made(tmp_path, run, OSCAR, on_error="skip", max_rejected=1.0)
    rows: list[Any] = [document("1", "a text"), b"{", document("2", "b text"), b"\xff"]
    write_rows(project.root / "in" / "1.jsonl", rows)
    told = project.ok("run", "--json").json
    assert told["ingest"]["counts"]["documents"] == 62
    assert sum(n for name, n in told["ingest"]["counts"].items() if name.startswith("rejected")) == 2


def test_a_process_that_dies_twice_leaves_no_signatures_of_a_part(
    tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = made(tmp_path, run, {"dedup": {"exact-0": {"kind": "exact"}}, "mix": {"output": {}}})
    bad = tmp_path / "bad"
    (project.root / "die.py").write_text(
        "import os\nfrom toolkit import Writer\nclass Die(Writer):\n    def carries(self, fields): return ('id',)\n"
        f"    def encode(self, document, mixed):\n        if document.id == '0-600' and os.path.exists({str(bad)!r}):\n"
        "            os._exit(9)\n        return [('all', document.id.encode() + b'\\n')]\n"
    )
    inputs(project.root, documents=700, count=1)
    for path in (project.root / "in").glob("[12].jsonl"):
        path.unlink()
    project.config["mix"]["output"] = {"format": f"{project.root}/die.py:Die", "path": str(project.out)}
    monkeypatch.setattr("toolkit.execution.workers.LARGE", 1)
    project.config |= {"executor": {"type": "local"}, "processes": 2}
    bad.touch()
    assert project("run").code == 1
    bad.unlink()
    project.ok("run")
