"""Commands as functions: what they return, what they raise, and that they leave nothing behind."""

import gc
import json
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from typing import Annotated, Any, cast

import msgspec
import pytest

import toolkit
from tests.conftest import ROOT
from tests.pipeline.conftest import Project, document, read_rows, tree, write_rows
from tests.pipeline.test_publish import ABOUT
from tests.waiting import PATIENCE
from toolkit import Attribute, Document, Tagger
from toolkit.execution.progress import Reached


@pytest.mark.slow
def test_they_do_what_the_commands_do(small: Project) -> None:
    """The configuration as a path, a mapping, YAML: the same output, whose numbers are those of ``--json``."""
    found = [
        toolkit.mix(given, overwrite=True) for given in (small.yaml, small.config, json.dumps(small.config) + "\n")
    ]
    shown = small("mix", "--json").json
    assert found[0].published
    assert {each.digest for each in found} == {shown["digest"]}
    assert found[0].totals.rows == shown["totals"]["rows"] == 12
    assert found[0].rules[0].name == "long"
    assert (list(found[0].failed), dict(found[0].editions), found[0].lock, found[0].shards) == ([], {}, "", 0)
    assert {key: value for key, value in found[2].data.items() if key != "already"} == {
        key: value for key, value in shown.items() if key != "already"
    }
    assert str(found[2]).startswith("12 documents, 9 kept")
    assert toolkit.status(small.config).done
    assert toolkit.validate(small.config)
    assert toolkit.validate([small.data, small.out]).findings == []
    assert toolkit.stats(small.data).tables[0]["total"]["documents"] == 12


def test_run_has_a_result_for_each_stage(small: Project) -> None:
    seen: list[Reached] = []
    done = toolkit.run(small.config, progress=seen.append)
    assert done.ingest is None
    assert done.tag
    assert done.tag.documents == 12
    assert done.mix
    assert done.mix.totals.kept == 9
    assert {each.stage for each in seen} >= {"1 of 2: tag", "2 of 2: mix"}
    assert all(0 <= each.tasks <= each.of for each in seen)
    last = [each for each in seen if each.stage == "1 of 2: tag"][-1]
    assert (last.tasks, last.of, last.documents) == (3, 3, 12)


@pytest.mark.slow
def test_a_run_per_shard_has_the_result_of_its_mix(small: Project) -> None:
    shutil.copytree(small.documents, small.root / "in")
    entry = {"format": "jsonl", "from": [str(small.root / "in" / "**" / "*.gz")], "source": "s"}
    config = {"dataset": str(small.root / "new"), "ingest": [entry], "tag": small.config["tag"]}
    config["mix"] = {
        **small.config["mix"],
        "output": {**small.config["mix"]["output"], "path": str(small.root / "new-out")},
    }
    done = toolkit.run(config, per_shard=True)
    assert done.mix
    assert (done.mix.totals.kept, done.mix.published, done.mix.failed, done.ingest) == (9, True, [], None)
    assert done.data == {"mix": done.mix.data}
    assert "failed" not in done.mix.data


def test_sets_of_the_whole_dataset_have_results_in_a_run(small: Project) -> None:
    names = [{"id": row["id"], "grade": 1} for shard in small.documents.rglob("*.gz") for row in read_rows(shard)]
    values = write_rows(small.root / "grades.jsonl", names)
    path = str(small.root / "drawn.jsonl")
    more = {
        "align": {"grades-0": {"from": str(values), "id": "id"}},
        "dedup": {"exact-0": {"kind": "exact"}},
        "sample": {"some-0": {"documents": 5, "copy": {"path": path}}},
    }
    done = toolkit.run({**small.config, **more})
    assert done.align
    assert done.align.sets["grades-0"]["documents"] == 12
    assert done.dedup
    assert done.dedup.sets["exact-0"].documents == 12
    assert done.sample
    assert done.sample.sets["some-0"].counts["chosen"] == 5
    assert done.sample.sets["some-0"].copies["documents"].rows == len(read_rows(small.root / "drawn.jsonl")) == 5


def test_values_of_others_are_aligned(small: Project) -> None:
    names = [row["id"] for shard in small.documents.rglob("*.gz") for row in read_rows(shard)]
    values = write_rows(small.root / "grades.jsonl", [{"id": name, "grade": len(name)} for name in reversed(names)])
    config = {**small.config, "align": {"grades-0": {"from": str(values), "id": "id"}}}
    made = toolkit.align(config)
    assert (made.sets["grades-0"]["documents"], made.sets["grades-0"]["written"]) == (12, 3)
    assert [row["grade"] for row in toolkit.Dataset(config).joined("grades-0", ids=names[:1])] == [len(names[0])]
    assert toolkit.align(config).sets["grades-0"]["written"] == 0
    write_rows(values, [{"id": "nobody", "grade": 1}])
    with pytest.raises(toolkit.Failed, match="12 documents have no values") as caught:
        toolkit.align(config)
    assert caught.value.result.sets["grades-0"]["missing"] == 12
    with pytest.raises(toolkit.ConfigError, match="expected a section `align:`"):
        toolkit.align(small.config)


@pytest.mark.slow
def test_two_sets_are_compared(small: Project) -> None:
    """Of a dataset by its path, and of a configuration; keys by name."""
    for shard in small.documents.rglob("*.gz"):
        for name, more in (("one-0", 0), ("two-0", 1)):
            rows = [
                {"id": row["id"], "source": row["source"], "attributes": {"n": i + (more if i else 0)}}
                for i, row in enumerate(read_rows(shard))
            ]
            write_rows(small.attributes / name / shard.relative_to(small.documents), rows)
    for what in (small.data, str(small.data), small.config):
        found = toolkit.compare(what, "one-0", "two-0.n", samples=1)
        (part,) = found.parts
        assert (part.kind, part.both, part.same, len(part.examples)) == ("number", 12, 3, 1)
        assert part.mean_difference == 9 / 12
        assert "one-0 and two-0.n: 12 documents" in str(found)
    with pytest.raises(toolkit.ConfigError, match="three-0"):
        toolkit.compare(small.data, "one-0", "three-0")
    with pytest.raises(toolkit.ConfigError, match="with a configuration"):
        toolkit.compare(small.data, "one-0", "two-0", processes=2)


def test_dry_run_and_compare_write_nothing(small: Project) -> None:
    before = tree(small.root)
    preview = toolkit.mix(small.config, dry_run=True)
    assert (preview.totals.rows, preview.totals.kept, preview.rules[0].only) == (12, 9, 3)
    other = {**small.config, "mix": {**small.config["mix"], "rules": []}}
    changed = toolkit.mix(small.config, compare=other, samples=1)
    assert (changed.rows, changed.kept, changed.gained, len(changed.samples)) == (12, 9, {"long": 3}, 1)
    assert tree(small.root) == before


@pytest.mark.slow
def test_overrides_are_a_list_a_mapping_or_settings_at_the_top(small: Project) -> None:
    rules: Any = [{"drop": "line_shape.lines > 1"}]
    for found in (
        toolkit.mix(small.config, dry_run=True, overrides=['mix.rules=[{"drop": "line_shape.lines > 1"}]']),
        toolkit.mix(small.config, dry_run=True, overrides={"mix.rules.0": rules[0]}),
        toolkit.mix(small.config, dry_run=True, mix={**small.config["mix"], "rules": rules}),
    ):
        assert found.totals.kept == 7
    assert small.config["mix"]["rules"] == [{"drop": "line_shape.lines > 2", "name": "long"}]


def test_a_recipe_is_a_configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = toolkit.ingest("recipe:quickstart", processes=1)
    assert result.counts["documents"] == 43


def test_a_failed_shard_is_an_error_that_has_the_failures_and_the_result(small: Project) -> None:
    (small.documents / "b.jsonl.gz").write_bytes(b"no gzip")
    with pytest.raises(toolkit.Failed) as caught:
        toolkit.tag(small.config)
    assert len(caught.value.failures) == 1
    assert "b.jsonl.gz" in caught.value.failures[0]
    assert caught.value.result.documents == 9
    assert "b.jsonl.gz" in str(caught.value)
    found = toolkit.validate(small.config)
    assert not found
    assert any("b.jsonl.gz" in each.message for each in found.findings)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda project: toolkit.tag({}), "expected settings"),
        (lambda project: toolkit.tag(cast("Any", None)), "expected a configuration: a path, YAML or a mapping"),
        (lambda project: toolkit.tag("missing.yaml"), "missing.yaml: expected a readable YAML file"),
        (lambda project: toolkit.tag("dataset: x\ntgg: {}\n"), "configuration:2: unknown option 'tgg'"),
        (lambda project: toolkit.tag(project.config, proceses=2), "did you mean 'processes'"),
        (lambda project: toolkit.tag(project.config, overrides="processes=2"), "expected overrides in a list"),
        (lambda project: toolkit.tag(project.config, shard=(2, 2)), r"expected \(i, n\) with i from 0 to n - 1"),
        (
            lambda project: toolkit.tag(project.config, progress=cast("Any", "yes")),
            "progress: expected True, False or a function",
        ),
        (lambda project: toolkit.tag(project.config, limit=0), "limit: expected a number above 0"),
        (lambda project: toolkit.mix({"dataset": "x"}), "expected a section `mix:`"),
        (lambda project: toolkit.tag({"dataset": object()}), "expected what YAML can hold"),
        (lambda project: toolkit.stats(project.config, by="label"), r"by: expected a list of texts, got 'label'"),
        (lambda project: toolkit.validate(project.data, processes=2), "overrides and settings with a configuration"),
    ],
)
def test_mistakes_are_errors_as_on_the_command_line(call: Any, words: str, small: Project) -> None:
    with pytest.raises(toolkit.ConfigError, match=words):
        call(small)


def test_an_error_of_the_callback_ends_the_call(small: Project) -> None:
    def fail(reached: Reached) -> None:
        raise LookupError("enough")

    with pytest.raises(LookupError, match="enough"):
        toolkit.mix(small.config, progress=fail)
    assert toolkit.mix(small.config).published


def test_nothing_is_left_behind(small: Project, capfd: pytest.CaptureFixture[str]) -> None:
    gc.unfreeze()
    before = dict(os.environ), gc.get_freeze_count(), threading.active_count()
    toolkit.mix(small.config, storage={"region": "eu-central-1"})
    assert (dict(os.environ), gc.get_freeze_count(), threading.active_count()) == before
    assert capfd.readouterr() == ("", "")


@pytest.mark.slow
def test_it_works_in_a_thread(small: Project) -> None:
    found: list[Any] = []
    small.config["executor"], small.config["processes"] = {"type": "local"}, 2
    thread = threading.Thread(target=lambda: found.append(toolkit.tag(small.config, overwrite=True)))
    thread.start()
    thread.join()
    assert found[0].documents == 12


def test_a_result_can_be_read_and_the_error_pickled(small: Project) -> None:
    import pickle

    failed = toolkit.Failed(["a", "b"], toolkit.tag(small.config))
    again = pickle.loads(pickle.dumps(failed))
    assert (again.failures, again.result, str(again)) == (["a", "b"], failed.result, "2 failed:\n  a\n  b")


def test_paths_may_be_of_pathlib(small: Project) -> None:
    assert toolkit.tag({**small.config, "dataset": Path(small.data)}).documents == 12


# A program that forgets what it has begun ends after its last line, and leaves nothing: no process, no file, no word.
#
# What only the collector would end is found so: it collects nothing here.

BEGUN = {
    "documents": "iter(data.documents())",
    "joined": "iter(data.joined('shape-0'))",
    "arrow": "data.joined('shape-0').to_arrow()",
    "sql": "data.sql('SELECT * FROM joined')",
}
"""Iterators."""

PROGRAM = """
import gc, json, sys, threading
gc.disable()
import toolkit
given = json.loads(sys.argv[1])
kept = []
def work():
    data = toolkit.Dataset(given)
    for is_begun in (False, True):
        left = {begun}
        kept.append(left)
        if is_begun:
            next(iter(left))
    try:
        toolkit.tag({{**given, "tag": {{"other-0": "nobody"}}}})
    except toolkit.ToolkitError as error:
        kept.append(error)
    print("worked")
if {threaded}:
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
else:
    work()
"""


@pytest.mark.slow
@pytest.mark.parametrize("threaded", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["main", "thread"])
@pytest.mark.parametrize(
    "what", ["sql", *(pytest.param(each, marks=pytest.mark.slow) for each in BEGUN if each != "sql")]
)
def test_a_program_ends_that_leaves_an_iterator_unfinished(
    what: str, threaded: bool, small: Project, tmp_path: Path
) -> None:
    given = {"processes": 2, "dataset": str(small.data)}
    (temporary := tmp_path / "temporary").mkdir()
    program = PROGRAM.format(begun=BEGUN[what], threaded=threaded)
    ran = subprocess.run(
        [sys.executable, "-c", program, json.dumps(given)],
        env={**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(temporary)},
        capture_output=True, text=True, timeout=PATIENCE, check=False,
    )  # fmt: skip
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "worked\n", "")
    assert not [*temporary.iterdir()]


# A tagger that is being written, tried on texts.


class Shouting(Tagger):
    """The share of letters that are capitals."""

    at_least: int = 1

    def tag(self, document: Document) -> float:
        letters = [each for each in document.text if each.isalpha()]
        return sum(map(str.isupper, letters)) / len(letters) if len(letters) >= self.at_least else 0.0


class Lines(Tagger):
    """The lines whose value is above nothing."""

    lines: Annotated[str, Attribute("n", list[float])]

    def tag(self, document: Document) -> int:
        return sum(value > 0 for value in document.attribute(self.lines))


class Wrong(Tagger):
    """A number, it says."""

    def tag(self, document: Document) -> int:
        return document.text  # type: ignore[return-value]


class Broken(Tagger):
    """Fails on some texts."""

    def tag(self, document: Document) -> int:
        return 1 // len(document.text)


def test_a_tagger_is_tried_in_one_line() -> None:
    assert toolkit.try_tagger(Shouting(), ["ABcd", "", "a"]) == [0.5, 0.0, 0.0]
    assert toolkit.try_tagger(Shouting, ["ABcd"], at_least=5) == [0.0]
    assert toolkit.try_tagger("noise", ["abc!"]) == [{"chars": 4, "noise": 1}]
    assert toolkit.try_tagger(Shouting(), []) == []


def test_it_is_given_what_it_reads() -> None:
    given: list[Any] = [Document("a\nb", attributes={"lines-0": [0, 1.5]})]
    assert toolkit.try_tagger(Lines(lines="lines-0"), given) == [1]
    with pytest.raises(toolkit.ConfigError, match=r"texts:1: the tagger Lines reads 'lines-0\.n'"):
        toolkit.try_tagger(Lines(lines="lines-0.n"), ["a\nb"])


@pytest.mark.parametrize(
    ("tagger", "texts", "options", "words"),
    [
        (Wrong(), ["a"], {}, "texts:1: tagger Wrong: expected a value of its declared type int, got 'a'"),
        (Broken(), ["a", ""], {}, "texts:2: tagger Broken failed: ZeroDivisionError"),
        (Shouting(), "one text", {}, r"expected a list of texts, got one by itself: write \[text\]"),
        (Shouting(), [1], {}, "texts:1: expected a text or a Document"),
        (Shouting, ["a"], {"at_lest": 1}, "unknown option 'at_lest' of tagger Shouting; did you mean 'at_least'"),
        (Shouting(), ["a"], {"at_least": 1}, "expected a tagger's class with options"),
        ("noice", ["a"], {}, "noise"),
        (msgspec.Struct, ["a"], {}, "expected a tagger, its class or its name"),
    ],
)
def test_mistakes_are_errors(tagger: Any, texts: Any, options: Any, words: str) -> None:
    with pytest.raises(toolkit.ToolkitError, match=words):
        toolkit.try_tagger(tagger, texts, **options)


# `toolkit.publish` and `toolkit.fetch`: what the commands do, from Python.


@pytest.fixture
def mixed(project: Project) -> Project:
    """An output with its descriptions."""
    write_rows(project.documents / "a.jsonl.gz", [document(f"a{i}", "some text " * 20) for i in range(9)])
    output = {"format": "dolma", "path": str(project.out), "part_size": "300 B"}
    project.config |= {"about": ABOUT, "mix": {"rules": [], "output": output}}
    for command in ("mix", "card", "croissant"):
        project.ok(command)
    return project


@pytest.mark.slow
def test_an_output_is_published_and_fetched(mixed: Project) -> None:
    to, got = mixed.root / "published", mixed.root / "got"
    preview = toolkit.publish(mixed.config, to, dry_run=True)
    assert not preview.became
    assert not to.exists()
    published = toolkit.publish(mixed.out, to)
    assert set(published.files) == set(tree(to))
    assert set(published.became.values()) == {"fetched"}
    assert set(toolkit.publish(mixed.config, str(to)).became.values()) == {"there"}
    (path, *_) = parts = sorted(path for path in published.files if path.endswith(".gz"))
    assert len(parts) > 1
    fetched = toolkit.fetch(to, "documents", to=got, max=(to / path).stat().st_size, storage={"give_up": "10s"})
    assert (fetched.labels, fetched.files) == ({"documents": [path]}, {path: "fetched"})
    assert fetched.bytes == (got / path).stat().st_size
    assert str(fetched).endswith("all 1 match their checksums")
    assert toolkit.fetch(to, ["documents"], to=got, dry_run=True).labels == {"documents": parts}


@pytest.mark.slow
def test_what_is_wrong_is_raised(mixed: Project) -> None:
    to = mixed.root / "published"
    with pytest.raises(toolkit.ConfigError, match="max: expected"):
        toolkit.fetch(to, "documents", max="much")
    with pytest.raises(toolkit.ConfigError, match="--public: expected --to hf://"):
        toolkit.publish(mixed.out, to, public=True)
    part = next(mixed.out.rglob("*.gz"))
    part.write_bytes(part.read_bytes() + b"x")
    with pytest.raises(toolkit.Failed) as failed:
        toolkit.publish(mixed.out, to)
    assert any(str(part) in finding for finding in failed.value.failures)
    assert (failed.value.result.findings, to.exists()) == (failed.value.failures, False)


@pytest.mark.slow
def test_shares_of_align_are_joined_by_the_call_without_one(small: Project) -> None:
    external = small.root / "scores.jsonl"
    rows = [row for path in sorted(small.documents.rglob("*.gz")) for row in read_rows(path)]
    external.write_text("".join(json.dumps({"id": row["id"], "score": 1.0}) + "\n" for row in rows))
    config = {"dataset": str(small.data), "align": {"score-0": {"from": str(external), "values": ["score"]}}}
    for share in range(2):
        toolkit.align(config, shard=(share, 2))
    assert not (small.data / "attributes/score-0").exists()
    toolkit.align(config)
    paths = sorted((small.data / "attributes/score-0").rglob("*.gz"))
    assert sum(len(read_rows(path)) for path in paths) == len(rows) == 12
