"""A rule that asks for what no document has is named, though it is no error: it would do nothing, and nobody knew."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.pipeline.conftest import Project, attributes, document, inputs_of, read_rows, tree, write_rows
from toolkit.mix.rule_effects import summary
from toolkit.records.left_out import Items, Tally

pytestmark = pytest.mark.slow

RULES = [
    {"drop": "metadata.adlut is not None and metadata.adlut > 0.5", "name": "misspelt"},
    {"drop": "metadata.adult is not None and metadata.adult > 0.9", "name": "spelt"},
    {"drop": 'metadata.grade == "5"', "name": "grade"},
    {"drop": 'document.url == "x"', "name": "url"},
    {"drop": "exp__spam__spam is not None and exp__spam__spam > 0.9", "name": "key"},
    {"drop": 'get(exp__shares__shares, "nois", 0.0) > 0.9', "name": "share"},
    {"drop": 'exp__lang__lang == "german"', "name": "german"},
    {"drop": '"german" in exp__labels__labels', "name": "labels"},
    {"annotate": "other", "when": 'exp__lang__lang in ["de", "fr"]'},
    {"annotate": "deep", "when": 'any(x == "latin" for x in exp__labels__labels)'},
]


def begin(project: Project) -> None:
    """Three shards: in `b`, the grade is a text, and there are neither `adult` nor the key `spam`."""
    for name in "abc":
        rows, values = [], []
        for i in range(70):
            odd = name == "b"
            metadata: dict[str, Any] = {} if odd else {"adult": 0.1}
            metadata["grade"] = "5th" if odd else 3
            rows.append(document(f"{name}{i}", "A text.", metadata=metadata))
            value: dict[str, Any] = {} if odd else {"exp__spam__spam": 0.1}
            value |= {"exp__lang__lang": "de", "exp__labels__labels": ["a", "b"]}
            value |= {"exp__shares__shares": {f"noise{i}": 0.5}}
            values.append(attributes(f"{name}{i}", value))
        write_rows(project.documents / f"{name}.jsonl.gz", rows)
        write_rows(project.attributes / "exp" / f"{name}.jsonl.gz", values)
    project.mixes(*RULES, attributes=["exp"])


FIELDS = [
    ("misspelt", "metadata.adlut", [], 3, ""),
    ("spelt", "metadata.adult", ["b.jsonl.gz"], 1, ""),
    ("grade", "metadata.grade", ["b.jsonl.gz"], 1, "a text"),
    ("url", "document.url", [], 3, ""),
    ("key", "exp__spam__spam", ["b.jsonl.gz"], 1, ""),
    ("share", "exp__shares__shares['nois']", [], 3, ""),
]
TEXTS = [
    ("grade", 'metadata.grade == "5"'),
    ("url", 'document.url == "x"'),
    ("german", 'exp__lang__lang == "german"'),
    ("labels", '"german" in exp__labels__labels'),
    ("other", 'exp__lang__lang == "fr"'),
    ("deep", 'x == "latin"'),
]


def told(data: dict[str, Any], *, compares: bool) -> list[tuple[Any, ...]]:
    keys = ("rule", "field") if compares else ("rule", "field", "shards", "lacking", "got")
    return [tuple(each[key] for key in keys) for each in data["unseen"] if each["compares"] is compares]


@pytest.mark.parametrize("processes", [1, 3])
def test_what_no_document_of_a_shard_has_is_named_with_its_rule(processes: int, project: Project) -> None:
    begin(project)
    project.config |= {"processes": processes, "executor": {"type": "local"}}
    dry = project.ok("mix", "--dry-run", "--json").json
    assert told(dry, compares=False) == FIELDS
    assert told(dry, compares=True) == TEXTS
    shown = project.ok("mix", "--dry-run").out
    assert "  misspelt: `metadata.adlut` is absent or null in all documents\n" in shown
    assert "  spelt: `metadata.adult` is absent or null in all documents of 1 of 3 shards: b.jsonl.gz\n" in shown
    assert "  grade: `metadata.grade` is a text in 1 of 3 shards, and a number in others: b.jsonl.gz\n" in shown
    assert '  german: `exp__lang__lang == "german"` is true of no document\n' in shown
    for already in (False, True):
        mixed = project.ok("mix", "--json").json
        assert mixed["already"] is already
        assert (told(mixed, compares=False), told(mixed, compares=True)) == (FIELDS, [])
    assert "`metadata.adlut` is absent or null in all documents" in project.ok("mix").out


def test_what_documents_have_is_not_named(project: Project) -> None:
    begin(project)
    project.config["mix"]["rules"] = [
        {"drop": 'metadata.grade == "5th" and exp__lang__lang == "de"'},
        {"keep": 'any(x == "b" for x in exp__labels__labels)'},
        {"drop": '"a" not in exp__labels__labels or document.id == document.source'},
    ]
    fields = [each["field"] for each in project.ok("mix", "--dry-run", "--json").json["unseen"]]
    assert fields == ["metadata.grade"]  # which is a text in one shard only


def test_the_names_of_shards_are_bounded(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(summary, "SHARDS_LISTED", 2)
    begin(project)
    project.config["mix"]["rules"] = [{"drop": "metadata.rare is not None and metadata.rare > 1", "name": "rare"}]
    write_rows(project.documents / "d.jsonl.gz", [document("d", "A text.", metadata={"rare": 0})])
    write_rows(project.attributes / "exp" / "d.jsonl.gz", [attributes("d", {"exp__lang__lang": "de"})])
    (found,) = project.ok("mix", "--dry-run", "--json").json["unseen"]
    assert (found["shards"], found["lacking"], found["of"]) == (["a.jsonl.gz", "b.jsonl.gz"], 3, 4)
    assert "3 of 4 shards: a.jsonl.gz, b.jsonl.gz, …" in project.ok("mix", "--dry-run").out


@pytest.mark.parametrize("place", ["in place", "ingested", "run"])
def test_documents_of_every_way_are_looked_at(place: str, project: Project) -> None:
    for name in "ab":
        path = project.root / "in" / f"{name}.jsonl"
        path.parent.mkdir(exist_ok=True)
        metadata = {"adult": 0.1} if name == "a" else {}
        rows = [{"id": f"{name}{i}", "text": "A text.", "metadata": metadata} for i in range(5)]
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    if place == "in place":
        del project.config["dataset"]
        project.config["documents"] = {"format": "jsonl", "path": f"{project.root}/in", "source": "s"}
        project.config["attributes"] = f"{project.data}/attributes"
        project.config["tag"] = {"length-0": "length"}
        project.ok("tag")
    else:
        project.config["ingest"] = [{"format": "jsonl", "from": [f"{project.root}/in/*"], "source": "s"}]
    project.mixes({"drop": "metadata.adult is not None and metadata.adult > 0.5", "name": "adult"})
    if place == "ingested":
        project.ok("ingest")
    data = project.ok("run" if place == "run" else "mix", "--json").json
    (found,) = (data["mix"] if place == "run" else data)["unseen"]
    assert (found["rule"], found["field"], found["lacking"], found["of"]) == ("adult", "metadata.adult", 1, 2)
    assert len(found["shards"]) == 1
    assert "b.jsonl" in found["shards"][0]


# A shard, or a key of an external set, that was there before and has gone is named, and nothing is made without it.

NAMES = ("a", "b", "c")


def _documents(folder: Path, *, suffix: str = ".jsonl.gz") -> None:
    for name in NAMES:
        write_rows(folder / f"{name}{suffix}", [document(f"{name}{i}", f"text {i} of {name}") for i in range(3)])


def _ours(project: Project) -> tuple[Path, str]:
    """Documents that ingest has made, of an input that has gone, too."""
    _documents(project.root / "in", suffix=".jsonl")
    project.config["ingest"] = [{"format": "jsonl", "from": f"{project.root}/in/*.jsonl", "source": "s"}]
    project.ok("ingest")
    (project.root / "in" / "b.jsonl").unlink()
    return project.documents / "s" / "b.jsonl.gz", "s/b.jsonl"


def _others(project: Project) -> tuple[Path, str]:
    """Documents of another program."""
    _documents(project.documents)
    return project.documents / "b.jsonl.gz", "b.jsonl.gz"


def _in_place(project: Project) -> tuple[Path, str]:
    """External files."""
    _documents(project.root / "in", suffix=".jsonl")
    del project.config["dataset"]
    place = {"format": "jsonl", "path": f"{project.root}/in/*.jsonl", "source": "s"}
    project.config |= {"documents": place, "attributes": str(project.attributes)}
    return project.root / "in" / "b.jsonl", "b.jsonl.jsonl.gz"


@pytest.mark.parametrize("made", [_ours, _others, _in_place])
def test_a_lost_shard_is_named_until_it_is_forgotten(
    project: Project, made: Callable[[Project], tuple[Path, str]]
) -> None:
    path, name = made(project)
    project.config["tag"] = {"shape-0": ["line_shape"]}
    project.config["mix"] = {"attributes": ["shape-0"], "output": {"format": "dolma", "path": str(project.out)}}
    for command in ("tag", "mix"):
        project.ok(command)
    before = tree(project.out)
    path.unlink()
    for command in ("run", "mix", "tag", "validate", "status"):
        ran = project(command).fails(1)
        assert f"{path}: expected the documents" in ran.out + ran.err, command
        assert f"`toolkit clean --forget {name}`" in ran.out + ran.err, command
    assert tree(project.out) == before
    project.ok("clean", "--forget", name, "--dry-run").shows("1 shard would be deleted")
    project.ok("clean", "--forget", name)
    for command in ("run", "status", "validate"):
        project.ok(command)
    assert len(project.output()) == 6


def test_a_shard_that_a_glob_leaves_out_is_not_lost(project: Project) -> None:
    path, _ = _in_place(project)
    project.config["tag"] = {"shape-0": ["line_shape"]}
    project.ok("tag")
    path.unlink()
    project.config["documents"]["path"] = f"{project.root}/in/[ac].jsonl"
    project.ok("tag")
    project.ok("status")
    project.config["documents"]["path"] = f"{project.root}/in/a.jsonl"
    project.ok("tag")
    project.ok("status")


def test_a_key_that_an_external_file_had_is_missed(project: Project) -> None:
    _documents(project.documents)
    ids = {name: [f"{name}{i}" for i in range(3)] for name in NAMES}

    def write(name: str, *keys: str, rare: bool = False) -> None:
        rows = [
            {"source": "s", "id": id_, "attributes": {key: [[0, 3, 1.0]] for key in (*keys, *["rare"] * first)}}
            for id_, first in zip(ids[name], (rare, False, False), strict=True)
        ]
        write_rows(project.attributes / "spans" / f"{name}.jsonl.gz", rows)

    for name in NAMES:
        write(name, "x", "y", rare=True)
    cut = {"cut": "y", "name": "y"}
    output = {"format": "dolma", "path": str(project.out)}
    project.config["mix"] = {"attributes": ["spans"], "rules": [cut], "output": output}
    project.ok("mix")
    write("b", "x", "y")
    project.ok("mix")  # no document of this shard has such a span any more
    write("b", "x")  # an absent key means no spans: the rule would not fire there
    for command in ("mix", "validate"):
        ran = project(command).fails(1)
        assert "expected the keys that the file had before, got none of y" in ran.out + ran.err
    assert project("status").code == 1
    project.ok("clean", "--forget", "spans")
    project.ok("mix")


# Datasets of which too much was rejected, and mixes that keep nothing: told, and not gone on with.


def entry(project: Project, name: str = "raw", **more: Any) -> dict[str, Any]:
    """An entry of ``ingest:`` over a folder of inputs."""
    found = {"format": "jsonl", "from": f"{project.root}/{name}/*.jsonl", "source": name, "on_error": "skip"}
    return found | more


def inputs(project: Project, *files: tuple[int, int], name: str = "raw") -> None:
    """Inputs of so many good and bad lines each."""
    for number, (good, bad) in enumerate(files):
        rows: list[Any] = [{"id": f"{number}-{i}", "text": "some text"} for i in range(good)]
        write_rows(project.root / name / f"{number}.jsonl", [*rows, *([b"{"] * bad)])


def configured(project: Project, *entries: dict[str, Any]) -> Project:
    project.config |= {
        "ingest": list(entries),
        "tag": {"shape-0": "line_shape"},
        "mix": {"attributes": ["shape-0"], "output": {"format": "dolma", "path": str(project.out)}},
    }
    return project


@pytest.mark.parametrize(
    ("files", "refused"),
    [
        ([(90, 10)], False),
        ([(89, 11)], True),
        ([(45, 5), (44, 6)], True),  # over all inputs
        ([(0, 50), (500, 0)], False),
        ([(49, 50)], False),  # too few to judge
        ([(0, 7)], True),  # unless all of them are bad
        ([(1, 98)], False),
        ([(0, 300)], True),
    ],
)
def test_an_entry_is_judged_by_all_its_inputs(project: Project, files: list[tuple[int, int]], refused: bool) -> None:
    inputs(project, *files)
    configured(project, entry(project))
    for _ in range(2):  # with nothing to do, too
        ran = project("ingest", "--json")
        assert ran.code == int(refused), ran.err
        assert bool(ran.json["rejected"]) == refused
    for command in ("tag", "mix", "run"):
        ran = project(command)
        assert ran.code == int(refused) or command == "mix", ran.err
        assert project.attributes.exists() == (not refused)
        if refused:
            bad, read = sum(bad for _, bad in files), sum(map(sum, files))
            assert f"got {bad:,} of {read:,}" in ran.err
            assert f"{bad:,} invalid JSON" in ran.err
            assert f"{project.data}/.toolkit/rejects/raw/" in ran.err
            assert "raise its `max_rejected`" in ran.err
    assert bool(tree(project.out)) == (not refused)


def test_the_limit_may_be_raised_without_reading_the_inputs_again(project: Project) -> None:
    inputs(project, (50, 50), (50, 50))
    configured(project, entry(project))
    assert project("run").code == 1
    project.config["ingest"][0]["max_rejected"] = 0.5
    project.ok("run").shows("2 inputs: 2 done (2 before)")
    assert len(project.output()) == 100
    project.config["ingest"][0]["max_rejected"] = 0.49
    assert project("ingest").code == 1
    assert project("mix").code == 1


def test_what_has_too_much_rejected_is_a_finding(project: Project) -> None:
    inputs(project, (50, 50), (50, 50))
    configured(project, entry(project))
    project("ingest")
    ran = project("validate", "--json").fails(1)
    assert [each for each in ran.json["findings"] if "got 100 of 200 (50.0 %): 100 invalid JSON" in each["message"]]
    shared = project("validate", "--shard", "0/2", "--json").json["findings"]
    assert not any("rejected" in finding["message"] for finding in shared)


def test_each_entry_is_judged_by_itself(project: Project) -> None:
    inputs(project, (1000, 0), name="good")
    inputs(project, (10, 100), name="bad")
    configured(project, entry(project, "good"), entry(project, "bad"))
    ran = project("ingest", "--json")
    assert [each["entry"] for each in ran.json["rejected"]] == [f"jsonl {project.root}/bad/*.jsonl (source bad)"]
    assert ran.json["rejected"][0]["reasons"] == {"invalid JSON": 100}
    rejects = read_rows(
        next(path for path in project.data.rglob("*.gz") if str(path) == ran.json["rejected"][0]["file"])
    )
    assert len(rejects) == 100


def test_what_is_trimmed_and_records_that_are_no_documents_are_no_damage(project: Project) -> None:
    inputs(project, (300, 0))
    configured(project, entry(project, trim={"min_chars": 100}))
    assert project.ok("ingest", "--json").json["counts"] == {"trim": 300}
    counts = {
        "record.request": 800,
        "record.warcinfo": 1,
        "documents": 99,
        "rejected.record": 100,
        "charset.guessed": 9,
    }
    record = Tally(counts=counts)
    assert not Items([record]).too_many(".toolkit"), "100 of 1,000 items"
    counts["rejected.record"] = 101
    assert Items([record]).too_many(".toolkit")


def test_a_mapping_that_matches_nothing_is_no_success(project: Project) -> None:
    write_rows(project.root / "raw" / "a.jsonl", [{"id": str(i), "content": "x"} for i in range(300)])
    configured(project, entry(project, fields={"text": "body"}))
    ran = project("run").fails(1, "got 300 of 300 (100.0 %): 300 missing field")
    status = project("status")
    assert (status.code, "ingest: failed: jsonl " in status.out) == (1, True)
    assert "not run: tag, mix" in ran.out
    project.config["ingest"][0]["fields"] = {"text": "content"}
    project.ok("run", "--overwrite")


@pytest.mark.parametrize("part", [["--limit", "1"], ["--shard", "0/1"]])
def test_a_part_of_the_inputs_only_warns(project: Project, part: list[str]) -> None:
    inputs(project, (10, 100))
    configured(project, entry(project))
    for command in ("ingest", "tag", "mix"):
        ran = project.ok(command, *part)
        assert "warning: " in ran.err
        assert "got 100 of 110" in ran.err
    assert project("run").code == 1


def test_per_shard_publishes_nothing_of_it(project: Project) -> None:
    inputs(project, (10, 100), (10, 0))
    configured(project, entry(project))
    for _ in range(2):
        project("run", "--per-shard").fails(1, "got 100 of 120")
        assert not project.output()
    project.config["ingest"][0]["max_rejected"] = 0.9
    project.ok("run", "--per-shard")
    assert len(project.output()) == 20


# --- mixes that keep nothing ------------------------------------------------------------------------------------------


@pytest.fixture
def empty(small: Project) -> Project:
    """A mix whose rules drop all documents."""
    small.config["mix"]["rules"] = [
        {"drop": "line_shape.lines > 1", "name": "long"},
        {"drop": "line_shape.lines < 2", "name": "short"},
    ]
    return small


def test_a_mix_that_keeps_nothing_publishes_nothing(empty: Project) -> None:
    for _ in range(2):
        empty("mix").fails(1, "got 0 of 12 (dropped: 5 by long, 7 by short)")
        assert not (empty.out / ".toolkit" / "manifest.json").exists()
    status = empty("status")
    assert (status.code, "publish: failed" in status.out) == (1, True)
    empty.config["mix"]["allow_empty"] = True
    empty.ok("mix")
    manifest = json.loads((empty.out / ".toolkit" / "manifest.json").read_text())
    assert (manifest["totals"]["rows"], manifest["parts"]) == (12, [])
    empty.config["mix"]["allow_empty"] = False
    assert empty("mix").code == 1, "of what is published already, too"


def test_what_was_published_before_stays(empty: Project) -> None:
    rules = empty.config["mix"].pop("rules")
    empty.ok("mix")
    empty.config["mix"] |= {"rules": rules, "rejected": str(empty.root / "rejected")}
    assert empty("mix").code == 1
    assert len(empty.output()) == 12
    assert not (empty.root / "rejected").exists()


def test_documents_of_which_a_format_makes_nothing_are_none(small: Project) -> None:
    small.config["mix"] |= {"rules": [], "output": {"format": "dolma", "path": str(small.out), "min_text_length": 999}}
    small("mix").fails(1, "12 by documents below min_text_length")


@pytest.mark.parametrize("option", [["--limit", "1"], ["--dry-run"]])
def test_a_part_and_a_dry_run_only_warn(empty: Project, option: list[str]) -> None:
    ran = empty.ok("mix", *option)
    assert "warning: " in ran.err
    assert "expected a mix that keeps documents" in ran.err


def test_a_dataset_without_documents_is_an_empty_mix(project: Project) -> None:
    write_rows(project.documents / "a.jsonl", [])
    project.config["mix"] = {"output": {"format": "dolma", "path": str(project.out)}}
    project("mix").fails(1, "got 0 of 0")


def test_records_name_a_few_of_many_places_and_tell_lists_apart(project: Project) -> None:
    """Each input's record names its entry, so the records of very many listed inputs stay small."""
    here = [str(project.root / f"{number:02d}.jsonl") for number in range(40)]
    for number, path in enumerate(here):
        write_rows(Path(path), [{"id": str(number), "text": "A text."}])
    lists = [here[:20], [*here[:3], *here[23:]]]
    entries = [{"format": "jsonl", "from": listed, "source": "s"} for listed in lists]
    assert project.ingest(*entries).code == 0
    names = {record.entry for record in inputs_of(project).values()}
    assert len(names) == 2
    for name in names:
        assert name.startswith(f"jsonl {', '.join(here[:3])} and 17 more (")
        assert len(name) < sum(map(len, here[:3])) + 60
