"""Running again does what is missing or changed, and nothing else; what is stale is refused."""

import json
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.conftest import Run
from tests.pipeline.conftest import (
    Project,
    attributes,
    document,
    read_rows,
    sha256sum_accepts,
    strays,
    tree,
    write_rows,
)
from tests.recipes import mix_of
from toolkit.data import record_logs
from toolkit.data.dataset import Dataset, open_dataset
from toolkit.data.row_index import ShardState
from toolkit.mix import assemble
from toolkit.mix.plan import PartPlan, Piece
from toolkit.records import sets
from toolkit.session import Session
from toolkit.storage.paths import listed_stat

SHARD = "a.jsonl.gz"

ECHO = '''"""A tagger for tests."""

from typing import Annotated

import msgspec

from toolkit import Attribute, Document, Tagger


class Value(msgspec.Struct, frozen=True):
    """The label again."""

    label: str | None


class Echo(Tagger):
    """What another set says."""

    of: Annotated[str, Attribute("language", Value)]

    def tag(self, document: Document) -> str | None:
        return document.attribute(self.of).label
'''


def written(project: Project) -> dict[str, int]:
    """How many shards of each set a tag writes."""
    found: dict[str, int] = project.ok("tag", "--json").json["written"]
    return found


def times(root: Path) -> dict[str, int]:
    return {
        str(path.relative_to(root)): path.stat().st_mtime_ns
        for path in root.rglob("*.gz")
        if ".toolkit" not in path.relative_to(root).parts
    }


def replace_text(path: Path, number: int, text: str) -> None:
    """Another text under the same id."""
    write_rows(path, (row | ({"text": text} if i == number else {}) for i, row in enumerate(read_rows(path), 1)))


# --- settings ---------------------------------------------------------------------------------------------------------


def test_other_settings_under_an_old_set_are_refused_with_the_difference(small: Project) -> None:
    before = tree(small.data, bookkeeping=True)
    small.config["tag"]["shape-0"] = [{"tagger": "line_shape", "short_chars": 80}, "noise"]
    for _ in range(2):
        small("tag").fails(2, "'shape-0'", "short_chars", "100 -> 80", "--overwrite")
        assert tree(small.data, bookkeeping=True) == before
    ran = small("tag", "--overwrite", "--json")
    assert ran.json["written"] == {"shape-0": 3}
    assert written(small) == {"shape-0": 0}
    small.ok("validate")


def test_the_default_written_out_is_no_other_setting(small: Project) -> None:
    small.config["tag"]["shape-0"] = [{"tagger": "line_shape", "short_chars": 100, "as": "line_shape"}, "noise"]
    assert written(small) == {"shape-0": 0}


def test_an_overwrite_that_fails_leaves_no_set_that_could_be_mixed(small: Project) -> None:
    small.ok("mix")
    before = tree(small.out)
    (small.documents / SHARD).write_bytes((small.documents / SHARD).read_bytes()[:-9])
    small.config["tag"]["shape-0"] = [{"tagger": "line_shape", "short_chars": 80}, "noise"]
    assert small("tag", "--overwrite").code == 1
    assert small("mix").code == 1
    assert tree(small.out) == before


# --- shards that are up to date, found in one pass --------------------------------------------------------------------


def touch(path: Path) -> None:
    os.utime(path, ns=(1, 1))


@pytest.fixture
def several(project: Project) -> Project:
    """A dataset with a set, one that reads it, and one of another program."""
    write_rows(project.documents / SHARD, [document("1", "one"), document("2", "two\nlines")])
    write_rows(project.documents / "b.jsonl.gz", [document("3", "three")])
    write_rows(project.attributes / "other-0" / SHARD, [attributes(i, {"n": 1}) for i in ("1", "2")])
    write_rows(project.attributes / "other-0" / "b.jsonl.gz", [attributes("3", {"n": 2})])
    project.config |= {
        "tag": {"shape-0": "line_shape", "noise-0": {"tagger": "noise", "when": "line_shape.lines > 0"}},
        "mix": mix_of(project.out, attributes=["shape-0", "noise-0", "other-0"]),
    }
    project.config["tag"]["noise-0"]["attributes"] = ["shape-0"]
    project.ok("run")
    return project


@pytest.mark.parametrize(
    ("changed", "change", "lost"),
    [
        ("", touch, []),
        (f"documents/{SHARD}", touch, ["", "noise-0", "shape-0"]),
        (f"documents/{SHARD}", Path.unlink, ["", "noise-0", "shape-0"]),
        (f".toolkit/rows/{SHARD}.bin", lambda path: os.truncate(path, 24), ["", "noise-0", "shape-0"]),
        (f"attributes/shape-0/{SHARD}", touch, ["noise-0", "shape-0"]),
        (f"attributes/noise-0/{SHARD}", Path.unlink, ["noise-0"]),
        (f"attributes/other-0/{SHARD}", touch, ["other-0"]),
        (".toolkit/record-log/records.jsonl.gz", Path.unlink, ["", "noise-0", "other-0", "shape-0"]),
    ],
)
def test_one_pass_finds_only_what_is_as_it_was_recorded(
    several: Project, changed: str, change: Callable[[Path], object], lost: list[str]
) -> None:
    change(several.data / changed)
    dataset = open_dataset(str(several.data), None, None)
    finished = sets.FinishedShards(dataset)
    names = ["", "noise-0", "other-0", "shape-0"]
    assert [name for name in names if not finished.content(name, SHARD)] == lost
    assert bool(finished.all_of(names[1:])(SHARD)) == (not lost)
    assert lost[3:] or all(finished.content(name, "b.jsonl.gz") for name in names)
    assert not any(finished.content(name, "c.jsonl.gz") for name in names)


@pytest.mark.parametrize("command", ["status", "mix"])
def test_a_mix_inspects_one_by_one_only_shards_that_listings_do_not_tell(
    several: Project, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    inspected, inspect = list[str](), sets.ShardSets.now

    def now(dataset: Dataset, shard: str) -> sets.ShardSets:
        inspected.append(shard)
        return inspect(dataset, shard)

    monkeypatch.setattr(sets.ShardSets, "now", now)
    several.ok(command)
    assert not inspected
    touch(several.attributes / "noise-0" / SHARD)
    several.ok(command)
    assert {*inspected} == {SHARD}
    assert several.ok("mix", "--json").json["already"]
    write_rows(several.attributes / "other-0" / SHARD, [attributes(i, {"n": 5}) for i in ("1", "2")])
    several("status").fails(1)
    assert not several.ok("mix", "--json").json["already"]


def test_one_pass_compares_settings_and_what_was_read(several: Project) -> None:
    dataset = open_dataset(str(several.data), None, None)
    finished, record = sets.FinishedShards(dataset), sets.load_record(dataset, "noise-0", SHARD)
    assert record
    assert finished.content("noise-0", SHARD, record.settings, ["shape-0"]) == record.output.content
    assert finished.content("noise-0", SHARD, {}, ["shape-0"]) is None
    assert finished.content("noise-0", SHARD, record.settings, []) is None
    assert [bool(finished.numbers(*args)) for args in ((record.settings, ["shape-0"]), ({}, ["shape-0"]))] == [
        True,
        False,
    ]
    assert not finished.numbers(record.settings, [])
    several.config["tag"]["noise-0"]["when"] = "line_shape.lines > 1"
    several("status").fails(1)
    several("tag").fails(2, "when:")


@pytest.mark.parametrize(("kind", "type_"), [("rows", ShardState), ("set shape-0", sets.ShardRecord)])
def test_a_record_without_a_field_is_no_finished_shard(several: Project, kind: str, type_: type[Any]) -> None:
    dataset = open_dataset(str(several.data), None, None)
    log = record_logs.open_log(dataset)
    raw = log.get(kind, SHARD)
    assert raw
    needed = [field.encode_name for field in msgspec.structs.fields(type_) if field.required]
    assert len(needed) >= 6
    for name in needed:
        fields = msgspec.json.decode(raw)
        del fields[name]
        log.save({(kind, SHARD): msgspec.json.encode(fields)})
        finished = sets.FinishedShards(dataset)
        assert not finished.content("shape-0", SHARD), name
        assert finished.content("shape-0", "b.jsonl.gz"), name
    several("status").fails(1)
    several("run").succeeds()
    several("status").succeeds()


@pytest.mark.parametrize("settings", [None, [], "line_shape"])
def test_a_record_whose_settings_are_none_is_no_finished_shard(several: Project, settings: Any) -> None:
    dataset = open_dataset(str(several.data), None, None)
    log = record_logs.open_log(dataset)
    raw = log.get("set shape-0", SHARD)
    assert raw
    log.save({("set shape-0", SHARD): msgspec.json.encode(msgspec.json.decode(raw) | {"settings": settings})})
    finished = sets.FinishedShards(dataset)
    assert not finished.content("shape-0", SHARD)
    assert finished.content("shape-0", "b.jsonl.gz")
    several("status").fails(1)


def test_nothing_is_read_for_a_set_without_a_listing(several: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset, read, load = open_dataset(str(several.data), None, None), list[str](), sets.load_schema

    def load_schema(dataset: Dataset, name: str) -> sets.SetSchema | None:
        read.append(name)
        return load(dataset, name)

    monkeypatch.setattr(sets, "load_schema", load_schema)
    monkeypatch.setattr(sets, "listed_stat", lambda folder: None)
    finished, names = sets.FinishedShards(dataset), ["noise-0", "other-0", ""]
    assert not any(finished.content(name, shard) for name in names for shard in (SHARD, "b.jsonl.gz"))
    assert read == []
    monkeypatch.setattr(sets, "listed_stat", listed_stat)
    assert all(finished.content(name, shard) for name in names for shard in (SHARD, "b.jsonl.gz"))
    assert read == ["noise-0", "shape-0", "other-0"], "once a set, if its files are listed later"


def test_a_set_of_another_program_is_made_anew_with_overwrite(several: Project) -> None:
    several.config["tag"]["other-0"] = "line_shape"
    ran = several.ok("tag", "--overwrite", "--dry-run", "--json")
    assert ran.json["plan"]["tag"].keys() == {SHARD, "b.jsonl.gz"}


def test_two_datasets_with_one_folder_of_records_do_not_share_what_is_up_to_date(several: Project) -> None:
    shutil.copytree(several.documents, several.root / "elsewhere")
    mine = open_dataset(str(several.data), None, None)
    with Session().bound() as session:
        session.begin()
        other = open_dataset(None, str(several.root / "elsewhere"), str(several.attributes))
        assert other.bookkeeping == mine.bookkeeping
        touch(several.root / "elsewhere" / SHARD)
        assert sets.ShardSets.now(mine, SHARD).version
        assert sets.ShardSets.now(other, SHARD).version is None


# --- inputs that change -----------------------------------------------------------------------------------------------


def test_only_the_shard_whose_documents_changed_is_tagged_again(small: Project) -> None:
    before = times(small.attributes)
    replace_text(small.documents / SHARD, 2, "other\ntext")
    small("mix").fails(1, f"{small.attributes / 'shape-0' / SHARD}: expected attributes of")
    assert small("validate").code == 1
    assert written(small) == {"shape-0": 1}
    changed = [path for path, time_ in times(small.attributes).items() if before[path] != time_]
    assert changed == [f"shape-0/{SHARD}"]
    assert small.values("shape-0", SHARD)[1]["line_shape"]["lines"] == 2
    small.ok("mix")
    small.ok("validate")


def test_a_replaced_input_goes_through_the_whole_pipeline(project: Project) -> None:
    for name in ("a", "b"):
        write_rows(project.root / "in" / f"{name}.jsonl", [{"id": name, "text": f"{name}\nx"}])
    project.config |= {
        "ingest": [{"format": "jsonl", "from": [f"{project.root}/in/*"], "source": "s"}],
        "tag": {"shape-0": "line_shape"},
        "mix": mix_of(project.out, {"drop": "line_shape.lines > 3"}, attributes=["shape-0"]),
    }
    project.ok("run")
    write_rows(project.root / "in" / "b.jsonl", [{"id": "b", "text": "b\n" * 4}])
    found = project.ok("run", "--json").json
    assert (found["ingest"]["skipped"], found["tag"]["written"]) == (1, {"shape-0": 1})
    assert [row["id"] for row in project.output()] == ["a"]


def test_documents_of_the_same_size_are_noticed_by_their_time(small: Project) -> None:
    path = small.documents / "plain.jsonl"
    write_rows(path, [document("p", "ab")])
    small.ok("tag")
    size = path.stat().st_size
    write_rows(path, [document("p", "\n\n")])
    assert path.stat().st_size != size or small("mix").code == 1
    path.write_bytes(path.read_bytes().replace(b"\\n\\n", b"ab"))
    write_rows(path, [document("p", "xy")])
    assert path.stat().st_size == size
    assert small("mix").code == 1
    assert written(small) == {"shape-0": 1}


def test_a_touched_file_is_not_done_again(small: Project) -> None:
    small.ok("mix")
    for path in [*small.documents.rglob("*.gz"), *small.attributes.rglob("*.gz"), *small.out.rglob("*.gz")]:
        os.utime(path, (1, 1))
    before = times(small.root)
    assert written(small) == {"shape-0": 0}
    assert small.ok("mix", "--json").json["already"]
    assert times(small.root) == before


def test_nothing_is_done_again_in_a_copy(pipeline: Project, tmp_path: Path, run: Run) -> None:
    pipeline.ok("run")
    root = tmp_path / "copy"
    shutil.copytree(pipeline.data, root / "data", copy_function=shutil.copyfile)
    shutil.copytree(pipeline.out, root / "out", copy_function=shutil.copyfile)
    config = pipeline.config | {"dataset": str(root / "data")}
    config["mix"] = config["mix"] | {"output": config["mix"]["output"] | {"path": str(root / "out")}}
    copy = Project(root, run, config)
    before = times(root)
    found = copy.ok("run", "--json").json
    assert found["ingest"]["skipped"] == 2
    assert set(found["tag"]["written"].values()) == {0}
    assert found["mix"]["already"]
    assert times(root) == before
    assert tree(root / "out") == tree(pipeline.out)
    copy.ok("validate")


def test_a_run_with_nothing_to_do_writes_no_file(project: Project) -> None:
    project.ingest({"format": "jsonl", "from": [str(write_rows(project.root / "a.jsonl", [document("1", "a")]))]})
    project.config["tag"] = {"shape-0": "line_shape"}
    project.mixes({"drop": "line_shape.lines > 2"}, attributes=["shape-0"])
    project.ok("run")
    before = {path: path.stat() for root in (project.data, project.out) for path in root.rglob("*") if path.is_file()}
    project.ok("run")
    assert {path: path.stat().st_mtime_ns for path in before} == {path: s.st_mtime_ns for path, s in before.items()}


def test_an_added_shard_is_the_only_one_tagged_and_is_in_the_next_mix(small: Project) -> None:
    small.ok("mix")
    ids = [row["id"] for row in small.output()]
    write_rows(small.documents / "deep" / "b.jsonl.gz", [document("new", "n")])
    small("mix").fails(1, "deep/b.jsonl.gz")
    assert [row["id"] for row in small.output()] == ids
    assert written(small) == {"shape-0": 1}
    small.ok("mix")
    place = next(i for i, id in enumerate(ids) if id.startswith("deep/er"))
    assert [row["id"] for row in small.output()] == [*ids[:place], "new", *ids[place:]]


def test_a_forgotten_shard_is_not_in_the_next_mix_and_a_lost_one_has_its_attributes(small: Project) -> None:
    small.ok("mix")
    (small.documents / "b.jsonl.gz").unlink()
    small("validate").fails(1).shows("shape-0/b.jsonl.gz")
    small.ok("clean", "--forget", "b.jsonl.gz")
    small.ok("mix")
    assert not any(row["id"].startswith("b-") for row in small.output())
    small.ok("validate")


@pytest.mark.slow
def test_lost_records_cost_a_new_start_but_never_data(small: Project) -> None:
    small.ok("mix")
    before, output = tree(small.attributes), tree(small.out)
    for damaged in (b"", b"{", b"null", b"{}"):
        for pattern in ("*.json", "record-log/*.gz"):
            for path in (small.data / ".toolkit").rglob(pattern):
                if path.name != "schema.json":
                    path.write_bytes(damaged)
        ran = small("mix").fails(1)
        assert "Traceback" not in ran.err
        assert written(small) == {"shape-0": 3}
        assert tree(small.attributes) == before
        small.ok("mix")
        assert tree(small.out) == output


# --- sets made from sets ----------------------------------------------------------------------------------------------


@pytest.fixture
def chain(small: Project) -> Project:
    """`language-0` is made from `lines-0`, and the mix takes it alone."""
    small.config["tag"] = {
        "lines-0": {"tagger": "line_language", "min_prob": 0.0},
        "language-0": {"tagger": "language", "lines": "lines-0"},
    }
    small.config["mix"] |= {"attributes": ["language-0"], "rules": [{"drop": "language.label is None", "name": "no"}]}
    small.ok("tag")
    return small


@pytest.mark.slow
def test_a_set_made_again_under_another_that_read_it_is_refused_as_stale(chain: Project) -> None:
    chain.ok("mix")
    before = tree(chain.out)
    both = chain.config["tag"]
    chain.config["tag"] = {"lines-0": {"tagger": "line_language", "min_prob": 0.5}}
    assert chain("tag").code == 2
    chain.ok("tag", "--overwrite")
    chain("mix").fails(1, str(chain.attributes / "language-0"), "earlier version")
    assert tree(chain.out) == before
    chain("validate").fails(1).shows("earlier version")
    chain.config["tag"] = both | {"lines-0": chain.config["tag"]["lines-0"]}
    assert chain("tag").code == 2  # made from other settings
    chain.ok("tag", "--overwrite")
    chain.ok("mix")
    chain.ok("validate")


@pytest.mark.slow
def test_a_set_that_reads_another_can_be_written_before_or_after_it(chain: Project, tmp_path: Path, run: Run) -> None:
    both = chain.config["tag"]
    expected = tree(chain.attributes)
    for order in ([["language-0", "lines-0"]], [["lines-0"], ["language-0"]], [["lines-0"], ["language-0", "lines-0"]]):
        shutil.rmtree(chain.attributes)
        shutil.rmtree(chain.data / ".toolkit")
        for names in order:
            chain.config["tag"] = {name: both[name] for name in names}
            chain.ok("tag")
        assert tree(chain.attributes) == {k: v for k, v in expected.items() if not k.startswith("shape-0")}
        expected = tree(chain.attributes)
    shutil.rmtree(chain.attributes)
    shutil.rmtree(chain.data / ".toolkit")
    chain.config["tag"] = {"language-0": both["language-0"]}
    chain("tag").fails(2, "'lines-0'")


def test_a_changed_documents_shard_redoes_the_whole_chain(chain: Project) -> None:
    replace_text(chain.documents / SHARD, 1, "quite another text\nof the same number of lines")
    assert written(chain) == {"lines-0": 1, "language-0": 1}
    chain.ok("mix")


def test_no_tagger_reads_a_set_that_is_stale(chain: Project) -> None:
    replace_text(chain.documents / SHARD, 1, "quite another text\nof the same number of lines")
    chain.config["tag"] = {"language-0": chain.config["tag"]["language-0"]}
    chain("tag").fails(1, str(chain.attributes / "lines-0" / SHARD))
    assert chain("mix").code == 1


def test_a_mix_refuses_what_is_stale_two_sets_away(chain: Project) -> None:
    plugin = chain.root / "echo.py"
    plugin.write_text(ECHO)
    echo = {"echo-0": {"tagger": f"{plugin}:Echo", "as": "echo", "of": "language-0"}}
    chain.config["tag"] |= echo
    chain.ok("tag")
    chain.config["mix"] |= {"attributes": ["echo-0"], "rules": [{"drop": "echo is None", "name": "no"}]}
    chain.ok("mix")
    chain.config["tag"] = {"lines-0": {"tagger": "line_language", "min_prob": 0.9}}
    chain.ok("tag", "--overwrite")
    chain("mix").fails(1, "earlier version")


# --- the mix ----------------------------------------------------------------------------------------------------------


def test_other_rules_over_an_old_output_replace_it(small: Project) -> None:
    small.ok("mix")
    first = tree(small.out)
    assert len(small.output()) == 9
    small.config["mix"]["rules"] = []
    assert "was there already" not in small.ok("mix").out
    assert len(small.output()) == 12
    assert strays(small.root) == []
    small.ok("validate")
    small.config["mix"]["rules"] = [{"drop": "line_shape.lines > 2", "name": "long"}]
    small.ok("mix")
    assert tree(small.out) == first
    small.config["mix"]["rules"] = [{"drop": "line_shape.lines > 2", "name": "another name"}]
    assert "another name" in small.ok("mix").out
    small.config["mix"]["rules"] = [{"drop": "line_shape.lines > 2.0", "name": "another name"}]
    small.ok("mix")
    assert tree(small.out) == first


@pytest.mark.slow
def test_parts_that_the_plan_has_no_more_are_deleted(pipeline: Project) -> None:
    pipeline.config["mix"]["output"]["part_size"] = 3000
    pipeline.ok("run")
    many = set(tree(pipeline.out))
    assert any("_part_2" in name for name in many)
    pipeline.config["mix"]["output"]["part_size"] = "1 GB"
    pipeline.ok("mix")
    few = set(tree(pipeline.out))
    assert not any("_part_" in name for name in few)
    pipeline.config["mix"]["rules"].append({"keep": "language.label == 'en'"})
    pipeline.ok("mix")
    assert set(tree(pipeline.out)) == {"en/en.jsonl.gz", "en/en_sha256.txt"}
    assert [p.name for p in pipeline.out.iterdir() if p.name != ".toolkit"] == ["en"]
    assert strays(pipeline.root) == []
    pipeline.ok("validate")


def test_files_that_someone_else_put_into_the_output_are_not_touched(small: Project) -> None:
    (small.out / "documents").mkdir(parents=True)
    mine = small.out / "documents" / "notes.md"
    mine.write_text("mine")
    small("mix").fails(2, str(mine))
    mine.unlink()
    small.ok("mix")
    mine.write_text("mine")
    small.config["mix"]["rules"] = []
    small.ok("mix")
    assert mine.read_text() == "mine"


def test_a_part_that_was_changed_or_deleted_is_written_again(small: Project) -> None:
    small.ok("mix")
    before = tree(small.out)
    part = next(small.out.rglob("*.jsonl.gz"))
    for damaged in (None, b"", part.read_bytes()[:-1]):
        part.unlink() if damaged is None else part.write_bytes(damaged)
        small.ok("mix")
        assert tree(small.out) == before
    next(small.out.rglob("*_sha256.txt")).unlink()
    small.ok("mix")
    assert tree(small.out) == before


# --- failed shards ----------------------------------------------------------------------------------------------------


def test_one_failed_shard_stops_no_other_and_a_rerun_does_only_what_is_missing(small: Project) -> None:
    small.config["tag"]["more-0"] = {"tagger": "noise", "as": "more"}
    path = small.documents / "b.jsonl.gz"
    sound = path.read_bytes()
    times_ = path.stat()
    path.write_bytes(sound[:-9])
    ran = small("tag", "--json").fails(1)
    assert ran.json["written"] == {"shape-0": 0, "more-0": 2}
    assert len(ran.json["failed"]) == 1
    assert f"{path}:" in ran.json["failed"][0]
    assert sorted(tree(small.attributes / "more-0")) == ["a.jsonl.gz", "deep/er/c.jsonl.gz"]
    small.config["mix"]["attributes"] = ["shape-0", "more-0"]
    assert small("mix").code == 1
    assert tree(small.out) == {}
    path.write_bytes(sound)
    os.utime(path, ns=(times_.st_atime_ns, times_.st_mtime_ns))
    assert written(small) == {"shape-0": 0, "more-0": 1}
    small.ok("mix")
    assert len(small.output()) == 9
    assert strays(small.root) == []


def test_a_mix_after_the_repair_encodes_only_the_shards_that_failed(small: Project) -> None:
    path = small.attributes / "shape-0" / "b.jsonl.gz"
    sound = path.read_bytes()
    path.write_bytes(sound[:-9])
    assert small("mix").code == 1
    done = {p: p.stat().st_mtime_ns for p in (small.out / ".toolkit" / "stage").rglob("*=2Egz")}
    assert sorted(p.name for p in done) == ["a=2Ejsonl=2Egz", "c=2Ejsonl=2Egz"]
    path.write_bytes(sound)
    small.config["mix"]["on_failed_shard"] = "omit"
    small.ok("mix")
    assert len(small.output()) == 9
    assert strays(small.root) == []


def test_omit_publishes_without_the_failed_shards_and_lists_them(small: Project) -> None:
    small.config["mix"]["on_failed_shard"] = "omit"
    path = small.attributes / "shape-0" / "b.jsonl.gz"
    sound = path.read_bytes()
    path.write_bytes(sound[:-9])
    for _ in range(2):
        ran = small("mix").fails(1).shows("omitted: b.jsonl.gz")
        assert str(path) in ran.err
        assert not any(row["id"].startswith("b-") for row in small.output())
        assert len(small.output()) == 7
        manifest = json.loads((small.out / ".toolkit" / "manifest.json").read_bytes())
        assert list(manifest["omitted"]) == ["b.jsonl.gz"]
    path.write_bytes(sound)
    small.ok("mix")
    assert len(small.output()) == 9
    assert json.loads((small.out / ".toolkit" / "manifest.json").read_bytes())["omitted"] == {}


def test_omit_also_omits_a_shard_whose_attributes_another_program_left_damaged(by_hand: Project) -> None:
    by_hand.config["mix"]["on_failed_shard"] = "omit"
    (by_hand.attributes / "exp" / "b.jsonl.gz").unlink()
    by_hand("mix").fails(1).shows("omitted: b.jsonl.gz")
    assert len(by_hand.output()) == 7


def test_omitting_every_shard_does_not_empty_an_old_output(small: Project) -> None:
    small.ok("mix")
    before = tree(small.out)
    small.config["mix"]["on_failed_shard"] = "omit"
    for path in (small.attributes / "shape-0").rglob("*.gz"):
        path.write_bytes(path.read_bytes()[:-9])
    assert small("mix").code == 1
    assert tree(small.out) == before


def test_run_publishes_nothing_after_a_failed_stage(small: Project) -> None:
    path = small.documents / "b.jsonl.gz"
    path.write_bytes(path.read_bytes()[:-9])
    small.config["tag"]["more-0"] = {"tagger": "noise", "as": "more"}
    small("run").fails(1).shows("nothing was published in")
    assert tree(small.out) == {}


def test_documents_that_were_damaged_after_the_ingest_are_not_tagged_as_if_they_were_whole(project: Project) -> None:
    path = write_rows(project.root / "r.jsonl", ({"id": str(i), "text": "t" * 5000} for i in range(500)))
    project.ingest({"format": "jsonl", "from": [str(path)], "source": "j"})
    shard = project.documents / "j" / "r.jsonl.gz"
    data = shard.read_bytes()
    second = data.index(b"\x1f\x8b\x08", 10)  # the second member
    shard.write_bytes(data[:second])
    assert 0 < len(read_rows(shard)) < 500
    project.config["tag"] = {"shape-0": "line_shape"}
    project("tag").fails(1, str(shard))
    assert project("validate").code == 1
    project.ok("ingest")
    assert shard.read_bytes() == data
    project.ok("tag")


def test_the_limit_takes_the_first_shards_and_the_rest_comes_later(small: Project) -> None:
    small.config["tag"] = {"more-0": {"tagger": "noise", "as": "more"}}
    assert small.ok("tag", "--limit", 1, "--json").json["written"] == {"more-0": 1}
    assert list(tree(small.attributes / "more-0")) == [SHARD]
    assert written(small) == {"more-0": 2}
    assert small.values("more-0", SHARD)[0] == {"more": {"chars": 7, "noise": 1}}


@pytest.mark.slow
def test_results_do_not_depend_on_the_time_of_the_run(small: Project, tmp_path: Path, run: Run) -> None:
    small.ok("mix")
    time.sleep(1.1)  # gzip and others stamp seconds
    other = Project(small.root, run, small.config | {"attributes": str(tmp_path / "other" / "attributes")})
    other.config["documents"] = str(small.documents)
    other.config["mix"] = other.config["mix"] | {"output": {"format": "dolma", "path": str(tmp_path / "other-out")}}
    other.ok("tag")
    other.ok("mix")
    assert tree(tmp_path / "other" / "attributes") == tree(small.attributes)
    assert tree(tmp_path / "other-out", bookkeeping=True) == tree(small.out, bookkeeping=True)


# How many syncs a command costs, and in which order: what lies together becomes durable together.

LABELS = 40


class Calls:
    """The calls that make files durable, and give them their names, in their order, with paths."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.synced: list[str] = []
        self.all: list[tuple[str, str]] = []
        sync, replace = os.fsync, os.replace

        def synced(descriptor: int) -> None:
            path = os.readlink(f"/proc/self/fd/{descriptor}")
            self.synced.append(path)
            self.all.append(("sync", path))
            sync(descriptor)

        def replaced(source: str, target: str) -> None:
            self.all.append(("rename", os.path.abspath(target)))
            replace(source, target)

        monkeypatch.setattr(os, "fsync", synced)
        monkeypatch.setattr(os, "replace", replaced)


@pytest.fixture
def routed(project: Project) -> Project:
    """A mix with a part for each of many labels, which is not run yet; its first stage is done."""
    rows = [document(f"{i}", f"The text number {i} is here.\n") for i in range(LABELS)]
    write_rows(project.documents / "a.jsonl.gz", rows)
    project.mixes({"route": "'label-' + document.id"})
    return project


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="no /proc, which says what a descriptor is")
def test_parts_of_many_labels_are_published_by_a_few_syncs_each(
    routed: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A part, a checksum file and their folders: each is synced once, records of all parts are one file."""
    calls = Calls(monkeypatch)
    routed.ok("mix")
    work, documents = str(routed.out / ".toolkit"), str(routed.out / "documents")
    parts = [path for path in calls.synced if path.startswith(work + "/parts/")]
    published = [path for path in calls.synced if path.startswith(str(routed.out)) and not path.startswith(work)]
    assert LABELS < len(parts) < LABELS + 10  # the part; for all of them their folder, and records
    assert sum(path.endswith(".tmp") for path in published) == LABELS  # a checksum file
    assert published.count(documents) == 1
    assert len(calls.synced) - len(published) - len(parts) < 40
    appeared = [
        path for call, path in calls.all if call == "rename" and path.startswith((documents, f"{routed.out}/l"))
    ]
    assert all(path.endswith(".jsonl.gz") for path in appeared[:LABELS])
    assert all(path.endswith("_sha256.txt") for path in appeared[LABELS:])
    assert len(appeared) == 2 * LABELS
    assert all(sha256sum_accepts(path) for path in routed.out.rglob("*_sha256.txt"))
    assert strays(routed.root) == []


def test_parts_lie_where_they_belong_however_they_are_grouped(routed: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    routed.ok("mix")
    expected = tree(routed.out)
    monkeypatch.setattr(assemble, "LEAST", 1)
    monkeypatch.setattr(assemble, "GROUP", 100)
    routed.config["mix"]["output"]["path"] = str(routed.root / "other")
    routed.ok("mix")
    assert tree(routed.root / "other") == expected


def test_a_part_that_fails_takes_none_of_its_group_along(routed: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """And what is there of a group is not made again."""
    made: list[str] = []
    assembled, broken = assemble._assemble, ["documents/label-7.", "documents/label-8."]

    def watched(work: assemble.PartsToWrite, part: PartPlan, *rest: object) -> assemble.PartRecord:
        if work.record(part) is None:
            made.append(part.path)
        if part.path.startswith(tuple(broken)):
            part = PartPlan(part.label, part.path, part.pieces, part.size + 1, part.documents)
        return assembled(work, part, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(assemble, "_assemble", watched)
    ran = routed("mix").fails(1)
    told = [line for line in ran.err.splitlines() if "as planned, got" in line]
    assert all(any(f"{routed.out}/{label}" in line for line in told) for label in broken)
    assert tree(routed.out) == {}
    assert len(made) == LABELS
    made.clear()
    broken.clear()
    routed.ok("mix")
    assert len(made) == 2
    assert len(tree(routed.out)) == 2 * LABELS


def test_groups_are_of_parts_that_follow_one_another() -> None:
    def part(size: int) -> PartPlan:
        return PartPlan("x", str(size), [Piece([("a", 0, size)])], size, 1)

    def sizes(stored: list[int], processes: int) -> list[list[int]]:
        return [
            [each.stored for each in group] for group in assemble.in_groups(map(part, stored), sum(stored), processes)
        ]

    least, most = assemble.LEAST, assemble.GROUP
    assert sizes([], 2) == []
    assert sizes([1] * 1000, 2) == [[1] * 1000]
    assert sizes([least, 1, least], 2) == [[least], [1], [least]]
    assert sizes([10 * most, 1, most - 1, 1], 2) == [[10 * most], [1, most - 1], [1]]
    assert len(sizes([least // 2] * 64, 4)) == 8
