"""What made a set is compared before the set is used: its settings, its code, and the documents' own settings."""

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.marks import slow
from tests.pipeline.conftest import Project, document, inputs_of, tree, write_rows
from tests.recipes import mix_of
from toolkit.data.dataset import open_dataset
from toolkit.execution.leases import Lease
from toolkit.records.ingested import save
from toolkit.storage.stores.local.scratch import owner

TAGGER = '''"""A tagger for tests."""

from typing import Annotated

from toolkit import Document, Neutral, Tagger


class Good(Tagger):
    """Length, times something."""

    factor: int = 2
    device: Annotated[str, Neutral] = "cpu"

    def tag(self, document: Document) -> int:
        return self.factor * len(document.text)  # comment
'''
FORMAT = '''"""A format for tests."""

from toolkit import Document, Mixed, Writer


class Plain(Writer):
    """The text, one document a line."""

    def encode(self, document: Document, mixed: Mixed) -> list[tuple[str, bytes]]:
        return [("all", document.text.replace("\\n", " ").encode() + b"\\n")]
'''


@pytest.fixture
def own(small: Project) -> Project:
    """The small data set with a set by a tagger from a file, tagged and mixed."""
    (small.root / "good.py").write_text(TAGGER)
    small.config["tag"]["own-0"] = f"{small.root}/good.py:Good"
    small.config["mix"]["attributes"].append("own-0")
    small.config["mix"]["rules"].append({"drop": "good > 500", "name": "large"})
    small.ok("tag")
    small.ok("mix")
    return small


def edit(project: Project, old: str, new: str, name: str = "good.py") -> None:
    path = project.root / name
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def written(project: Project, *arguments: str) -> dict[str, int]:
    found: dict[str, int] = project.ok("tag", "--json", *arguments).json["written"]
    return found


# --- settings ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("arguments", [[], *slow(["--dry-run"], ["--explain", "a-1"], ["--overwrite"])])
def test_a_mix_refuses_a_set_that_the_section_tag_would_make_otherwise(small: Project, arguments: list[str]) -> None:
    small.ok("mix")
    before = tree(small.root, bookkeeping=True)
    small.config["tag"]["shape-0"] = [{"tagger": "line_shape", "short_chars": 80}, "noise"]
    small("mix", *arguments).fails(
        2,
        "expected the set 'shape-0' as the section `tag:` says",
        "line_shape.settings.options.short_chars: 100 -> 80",
        "run `toolkit tag`",
    )
    assert {k: v for k, v in tree(small.root, bookkeeping=True).items() if k != "config.yaml"} == {
        k: v for k, v in before.items() if k != "config.yaml"
    }


@pytest.mark.slow
def test_a_mix_compares_what_a_joined_set_was_made_from_too(pipeline: Project) -> None:
    pipeline.ok("run")
    pipeline.config["mix"]["attributes"] = ["language-0", "shape-0"]
    pipeline.config["mix"]["output"] = {"format": "dolma", "path": str(pipeline.out)}
    pipeline.config["tag"]["lines-0"] = {"tagger": "line_language", "min_prob": 0.9}
    pipeline("mix").fails(2, "'language-0'", "made from.lines-0")


def test_sets_that_a_mix_does_not_join_are_not_compared(small: Project) -> None:
    small.config["tag"]["later-0"] = {"tagger": "fasttext_label", "model": "/nowhere/model.bin"}
    small.ok("mix")


def test_a_set_of_a_tagger_that_is_not_here_is_used_with_a_warning(own: Project) -> None:
    (own.root / "good.py").unlink()
    ran = own.ok("mix")
    assert "the set 'own-0' cannot be compared with the section `tag:` here" in ran.err
    own.config["tag"]["own-0"] = f"{own.root}/another.py:Good"
    own("mix").fails(2, "another.py")


def test_a_model_need_not_be_here_to_be_compared_by_its_name(small: Project) -> None:
    (small.root / "words.txt").write_text("one\n")
    small.config["tag"]["words-0"] = {"tagger": "word_list", "lists": str(small.root / "words.txt")}
    small.config["mix"]["attributes"].append("words-0")
    small.ok("tag")
    (small.root / "words.txt").unlink()
    small.ok("mix")
    small.config["tag"]["words-0"]["lists"] = str(small.root / "others.txt")
    small("mix").fails(2, "others.txt")


def test_options_that_cannot_change_values_are_not_compared(own: Project) -> None:
    own.config["tag"]["own-0"] = {"tagger": f"{own.root}/good.py:Good", "device": "cuda"}
    assert written(own) == {"shape-0": 0, "own-0": 0}
    own.ok("mix")
    own.config["tag"]["own-0"]["factor"] = 3
    assert own("mix").code == 2


# --- code -------------------------------------------------------------------------------------------------------------


def test_edited_code_is_refused_by_all_that_use_the_set_until_it_is_accepted_or_made_again(own: Project) -> None:
    values = own.values("own-0", "a.jsonl.gz")
    edit(own, "self.factor *", "1 + self.factor *")
    for command in ("tag", "mix", "run", "validate"):
        ran = own(command)
        assert ran.code == (1 if command == "validate" else 2), command
        assert "the code of good has changed: good.py" in ran.out + ran.err
        if command != "validate":
            assert "toolkit tag --accept-code own-0" in ran.err
    assert own("status").code == 1
    assert own.values("own-0", "a.jsonl.gz") == values
    assert written(own, "--accept-code", "own-0") == {"shape-0": 0, "own-0": 0}
    own.ok("mix")
    own.ok("validate")
    edit(own, "1 + self.factor *", "2 + self.factor *")
    assert written(own, "--overwrite") == {"shape-0": 0, "own-0": 3}
    assert own.values("own-0", "a.jsonl.gz") == [{"good": v["good"] + 2} for v in values]
    own.ok("mix")


def test_comments_and_docstrings_are_no_edit(own: Project) -> None:
    edit(own, "# comment", "# another")
    edit(own, '"""Length, times something."""', '"""Length."""')
    assert written(own) == {"shape-0": 0, "own-0": 0}
    own.ok("mix")


@pytest.mark.slow
def test_a_description_that_is_worded_otherwise_is_no_edit_and_reaches_the_records(own: Project) -> None:
    """In the docstring, where most are, and in ``msgspec.Meta``."""
    path = own.data / ".toolkit" / "sets" / "own-0" / "schema.json"

    def described() -> dict[str, str]:
        found: dict[str, str] = json.loads(path.read_text())["keys"]["good"]["descriptions"]
        return found

    assert described() == {"": "Length, times something."}
    (own.root / "reads.py").write_text(
        TAGGER.replace("from toolkit import", "import msgspec\n\nfrom toolkit import Attribute,")
        .replace("class Good", "class Reads")
        .replace("factor: int = 2", 'of: Annotated[str, Attribute("good", int)]')
        .replace("-> int", '-> Annotated[int, msgspec.Meta(description="What it reads.")]')
        .replace("self.factor * len(document.text)", "document.attribute(self.of)")
    )
    own.config["tag"]["reads-0"] = {"tagger": f"{own.root}/reads.py:Reads", "of": "own-0"}
    own.ok("tag")
    edit(own, '"""Length, times something."""', '"""How long it is."""')
    edit(own, '"What it reads."', '"What another has found."', "reads.py")
    command = [sys.executable, "-m", "toolkit", "tag", "--json", "-c", str(own.yaml)]
    ran = subprocess.run(command, capture_output=True, check=True)  # this process knows the old words
    assert json.loads(ran.stdout)["written"] == {"shape-0": 0, "own-0": 0, "reads-0": 0}
    assert described() == {"": "How long it is."}
    own.ok("mix")
    own.ok("validate")


def test_what_accepts_code_accepts_no_other_settings_and_only_sets_of_the_section(own: Project) -> None:
    edit(own, "self.factor *", "1 + self.factor *")
    edit(own, "factor: int = 2", "factor: int = 3")
    own("tag", "--accept-code", "own-0").fails(2, "good.settings.options.factor: 2 -> 3")
    own("tag", "--accept-code", "owm-0").fails(2, "did you mean 'own-0'?")


def test_a_set_made_from_one_whose_code_was_accepted_stays(own: Project) -> None:
    (own.root / "reads.py").write_text(
        TAGGER.replace("from toolkit import", "from toolkit import Attribute,")
        .replace("class Good", "class Reads")
        .replace("factor: int = 2", 'of: Annotated[str, Attribute("good", int)]')
        .replace("self.factor * len(document.text)", "document.attribute(self.of)")
    )
    own.config["tag"]["reads-0"] = {"tagger": f"{own.root}/reads.py:Reads", "of": "own-0"}
    own.ok("tag")
    edit(own, "len(document.text)", "len(document.text) * 1")
    assert written(own, "--accept-code", "own-0") == {"shape-0": 0, "own-0": 0, "reads-0": 0}


def test_a_set_that_does_not_know_its_code_learns_it(own: Project) -> None:
    path = own.data / ".toolkit" / "sets" / "own-0" / "schema.json"
    found = json.loads(path.read_text())
    code = found["keys"]["good"].pop("code")
    path.write_text(json.dumps(found))
    own.ok("mix")
    assert written(own) == {"shape-0": 0, "own-0": 0}
    assert json.loads(path.read_text())["keys"]["good"]["code"] == code
    edit(own, "self.factor *", "1 + self.factor *")
    assert own("tag").code == 2


def test_a_mix_that_computes_values_anew_after_edits_does_so_with_the_code_that_made_them(own: Project) -> None:
    own.config["tag"]["mail-0"] = "emails"
    own.ok("tag")
    own.config["mix"]["attributes"].append("mail-0")
    own.config["mix"]["rules"] += [{"replace": "emails", "by": "-"}, {"set": "length", "to": "good"}]
    del own.config["tag"]
    own.ok("mix")
    edit(own, "self.factor *", "1 + self.factor *")
    own("mix").fails(2, "the code of the tagger", "has changed since: good.py")


def test_code_that_changes_during_a_run_fails_it(own: Project) -> None:
    """A worker process loads the file when it begins to work, which may be long after the run began."""
    script = (
        "import sys, msgspec\n"
        "from toolkit.tag import plan as tag_plan\n"
        "from toolkit.config.settings import ConfigNode\n"
        "plan = tag_plan.read_section(ConfigNode({'own-0': sys.argv[1]}))\n"
        "sys.stdout.write(msgspec.json.encode(plan).decode())\n"
    )
    reference = f"{own.root}/good.py:Good"
    made = subprocess.run([sys.executable, "-c", script, reference], capture_output=True, check=True).stdout
    edit(own, "self.factor *", "1 + self.factor *")
    script = (
        "import sys, msgspec\n"
        "from toolkit.tag import plan as tag_plan\n"
        "tag_plan.build(msgspec.json.decode(sys.stdin.read(), type=tag_plan.Plan))\n"
    )
    ran = subprocess.run([sys.executable, "-c", script], input=made, capture_output=True, check=False)
    assert b"expected the same code for the whole run, got other code in good.py" in ran.stderr


def test_an_edited_output_format_makes_the_output_again(small: Project) -> None:
    (small.root / "plain.py").write_text(FORMAT)
    small.config["mix"]["output"]["format"] = f"{small.root}/plain.py:Plain"
    small.config["mix"]["output"]["compression"] = "none"
    small.ok("mix")
    before = tree(small.out)
    edit(small, '" "', '"_"', "plain.py")
    small.ok("mix")
    assert tree(small.out) != before


# --- documents --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["mix", *slow("tag")])
def test_documents_that_the_section_ingest_would_make_otherwise_are_refused(pipeline: Project, command: str) -> None:
    pipeline.ok("run")
    pipeline.config["ingest"][0]["trim"] = {"min_chars": 50}
    pipeline(command).fails(
        2,
        "expected documents as the section `ingest:` says",
        "trim.min_chars: 101 -> 50\n  run `toolkit ingest --overwrite`",
    )
    pipeline.config["ingest"][0] |= {"source": "another", "trim": {"min_chars": 101}}
    pipeline.ok(command)  # other sources are not this section's


def test_entries_of_one_source_may_differ(project: Project) -> None:
    rows: list[dict[str, Any]] = [{"text": "one"}]
    for name in ("a", "b"):
        write_rows(project.root / "in" / f"{name}.jsonl", rows)
    project.config["ingest"] = [
        {"format": "jsonl", "from": [f"{project.root}/in/a.jsonl"], "source": "s"},
        {"format": "jsonl", "from": [f"{project.root}/in/b.jsonl"], "source": "s", "ids": "content"},
    ]
    project.config["tag"] = {"shape-0": "line_shape"}
    project.ok("run")
    project.ok("tag")


# --- versions of formats ----------------------------------------------------------------------------------------------


def test_documents_of_an_earlier_version_of_a_format_are_told_and_stay(project: Project) -> None:
    path = project.root / "in" / "w.warc.wet"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b"WARC/1.0\r\nWARC-Type: conversion\r\nContent-Length: 1\r\n\r\na\r\n\r\n")
    project.config["ingest"] = [{"format": "wet", "from": [str(path)], "source": "cc"}]
    project.config["tag"] = {"shape-0": "line_shape"}
    project.ok("ingest")
    ((key, record),) = inputs_of(project).items()
    assert record.settings.pop("reader_version") == "2"
    save(open_dataset(str(project.data), None, None), key, record)  # as before the format had a second version
    before = tree(project.documents)
    said = "by version 1 of the format wet, which has version 2 now"
    for command in ("ingest", "tag"):
        ran = project(command).fails(2)
        assert f"w.warc.wet was ingested {said}" in ran.err or f"w.warc.wet, ingested {said}" in ran.err
    assert said in project("status").out
    assert tree(project.documents) == before
    project.ok("ingest", "--overwrite")
    project.ok("tag")
    project.config["ingest"][0]["trim"] = {"min_chars": 2}
    ran = project("ingest").fails(2, "with other settings:\n  trim: None ->")
    assert "version" not in ran.err


def test_records_of_formats_that_have_had_one_version_only_stay_as_they_are(project: Project) -> None:
    write_rows(project.root / "raw" / "a.jsonl", [{"id": "1", "text": "a"}])
    project.config["ingest"] = [{"format": "jsonl", "from": [f"{project.root}/raw/*.jsonl"], "source": "s"}]
    project.ok("ingest")
    (record,) = inputs_of(project).values()
    assert "reader_version" not in record.settings


# `toolkit run` tells all conflicts of all sections before it reads or writes anything.


@pytest.fixture
def whole(project: Project) -> Project:
    """A configuration of all sections over one small input; nothing has run."""
    write_rows(project.root / "raw" / "a.jsonl", [document("1", "one two three"), document("2", "four")])
    project.config |= {
        "ingest": [{"format": "jsonl", "from": f"{project.root}/raw/*.jsonl", "source": "s"}],
        "tag": {"shape-0": [{"tagger": "line_shape", "short_chars": 50}]},
        "mix": mix_of(project.out, {"drop": "line_shape.lines > 2", "name": "long"}, attributes=["shape-0"]),
    }
    return project


def refused(project: Project, *arguments: str) -> str:
    """What `run` says of a configuration that it refuses; nothing is written."""
    before = tree(project.root, bookkeeping=True)
    before["config.yaml"] = tree(project.yaml.parent)["config.yaml"]
    ran = project("run", *arguments).fails(2)
    assert tree(project.root, bookkeeping=True) == before
    return ran.err


def test_a_set_that_was_made_with_other_settings_is_told_before_the_ingest(whole: Project) -> None:
    whole.ok("run")
    write_rows(whole.root / "raw" / "b.jsonl", [document("3", "new")])
    whole.config["tag"]["shape-0"][0]["short_chars"] = 60
    assert (
        "expected the set 'shape-0' as the section `tag:` says, got one that was made with other settings"
        in refused(whole)
    )
    assert "short_chars" in refused(whole, "--per-shard")


def test_all_sections_are_told_at_once(whole: Project) -> None:
    whole.ok("run")
    whole.config["ingest"][0]["ids"] = "content"
    whole.config["tag"]["shape-0"][0]["short_chars"] = 60
    whole.config["mix"]["output"]["path"] = str(whole.documents)
    said = refused(whole)
    assert "was ingested with other settings" in said
    assert "expected the set 'shape-0' as the section" in said
    assert "expected a path separate from" in said


def test_slips_in_three_sections_are_told_at_once(whole: Project) -> None:
    whole.config["ingest"][0]["form"] = 1
    whole.config["tag"]["shape-0"] = "line_shap"
    whole.config["mix"]["rules"] = [{"dropp": "True"}]
    said = refused(whole)
    for place in ("ingest[0].form: ", "tag.shape-0: ", "mix.rules[0]: "):
        assert said.count(f"config.yaml:1: {place}") == 1
    assert "expected an attribute set" not in said, "of which nothing can be known yet"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"mix": {"rules": [{"drop": "line_shape.line > 2"}]}}, "expected a field, got 'line'"),
        ({"mix": {"attributes": ["shape-1"]}}, "expected an attribute set"),
        ({"mix": {"rejected": "OUT"}}, "expected a path separate from"),
        ({"ingest": [{"format": "jsonl", "from": "nowhere/*.jsonl"}]}, "expected at least one file"),
        ({"tag": {"x-0": {"tagger": "language", "lines": "lines-0"}}}, "expected an attribute set"),
        ({"tag": {"x-0": {"tagger": "fasttext_label", "model": "no/such.bin"}}}, "no/such.bin"),
        ({"tag": {"shape-0": {"tagger": "line_language", "model": "no/such.bin"}}}, "no/such.bin"),
    ],
)
def test_what_can_be_known_is_known_before_the_ingest(whole: Project, change: dict[str, object], message: str) -> None:
    for section, value in change.items():
        known = whole.config[section]
        whole.config[section] = {**known, **value} if isinstance(value, dict) else value
    if whole.config["mix"].get("rejected"):
        whole.config["mix"]["rejected"] = str(whole.out)
    assert message in refused(whole)


def test_foreign_files_where_the_mix_writes_are_told_before_the_ingest(whole: Project) -> None:
    write_rows(whole.root / "rejected" / "mine.jsonl", [document("1", "x")])
    whole.config["mix"]["rejected"] = str(whole.root / "rejected")
    assert "expected an empty folder for dropped documents" in refused(whole)
    write_rows(whole.out / "mine.jsonl", [document("1", "x")])
    assert "choose another `output.path`" in refused(whole)


def test_a_limit_that_would_replace_more_is_told_before_the_ingest(whole: Project) -> None:
    write_rows(whole.root / "raw" / "b.jsonl", [document("3", "more")])
    whole.ok("run")
    write_rows(whole.root / "raw" / "0.jsonl", [document("4", "new")])
    assert "--limit 1 would replace it by less" in refused(whole, "--limit", "1")


@pytest.mark.parametrize(("folder", "holds"), [("data", "the set shape-0"), ("out", "the output")])
def test_another_run_is_told_before_the_ingest(whole: Project, folder: str, holds: str) -> None:
    """Its lease says what it works on, though the ingest has nothing to do with it."""
    lease = Lease(holds={holds: "other"}, since=time.time(), owner=owner(), run="toolkit tag")
    path = Path(whole.root, folder, ".toolkit", "leases", f"{owner()}.abc.json")
    path.parent.mkdir(parents=True)
    path.write_bytes(msgspec.json.encode(lease))
    said = refused(whole)
    assert "expected no other run" in said
    assert holds in said
    path.unlink()
    assert json.loads(whole.ok("run", "--json").out)["mix"]["published"]
