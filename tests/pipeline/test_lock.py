"""Locks: an output is checked by one, a mix is repeated by one elsewhere, and what differs is named."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Run
from tests.marks import slow
from tests.pipeline.conftest import Project, document, tree, write_rows
from tests.storage.conftest import bucket, seaweed  # noqa: F401  # fixtures
from toolkit.mix import assemble
from toolkit.mix.publication import manifest_path
from toolkit.storage.outputs import write_file
from toolkit.storage.paths import join
from toolkit.storage.reading import open_stored

TOKENIZER = Path(__file__).parents[1] / "taggers" / "files" / "tokenizer.json"
TAGGER = """
from toolkit import Document, Model, Tagger

class Size(Tagger):
    '''Return the number of characters.'''
    VERSION = "1"
    model: Model
    def tag(self, document: Document) -> int:
        return len(document.text)
"""


@pytest.fixture
def elsewhere(tmp_path: Path, run: Run) -> Callable[[str], Project]:
    """Make the same documents, tagger, model and configuration in another folder."""

    def lay_out(name: str) -> Project:
        root = tmp_path / name
        found = Project(root, run, {"dataset": str(root / "data"), "executor": {"type": "in_process"}})
        for shard in ("a", "b"):
            rows = [document(f"{shard}-{i}", "x" * (i + 1)) for i in range(20)]
            write_rows(found.documents / f"{shard}.jsonl.gz", rows)
        (root / "size.py").write_text(TAGGER)
        (root / "sizes.model").write_text("1")
        found.config["tag"] = {"size-0": {"tagger": f"{root}/size.py:Size", "model": f"{root}/sizes.model"}}
        found.config["mix"] = {
            "attributes": ["size-0"],
            "rules": [{"drop": "size < 3", "name": "short"}, {"repeat": "1.5", "when": "size > 10"}],
            "budget": {"characters": 250},
            "rejected": str(root / "dropped"),
            "output": {"format": "dolma", "path": str(found.out)},
        }
        found.ok("tag")
        return found

    return lay_out


@pytest.fixture
def lock(elsewhere: Callable[[str], Project]) -> Path:
    """The lock of a mix."""
    here = elsewhere("here")
    here.ok("mix", "--lock")
    return here.root / "out.lock.json"


def refused(project: Project, lock: Path, *expected: str) -> None:
    """Check that a mix by a lock names each difference, and nothing else, and writes nothing."""
    ran = project("mix", "--locked", lock).fails(2)
    *lines, advice = ran.err.split("nothing was written:\n")[1].splitlines()
    assert advice == "  make it as it was, or choose another lock"
    assert len(lines) == len(expected), lines
    for line, start in zip(lines, expected, strict=True):
        assert line.startswith(f"  {start}"), lines
    assert not project.out.exists()


def test_the_lock_is_the_same_elsewhere_and_the_mix_is_repeated_by_it(
    elsewhere: Callable[[str], Project], lock: Path
) -> None:
    here, there = lock.parent, elsewhere("there")
    there.ok("mix", "--locked", lock, "--dry-run")
    assert not there.out.exists()
    said = there.ok("mix", "--locked", lock, "--lock", there.root / "mine.json").out
    assert f"{there.out} is what {lock} describes" in said
    assert tree(there.out) == tree(here / "out")
    text = (there.root / "mine.json").read_bytes()
    assert text == lock.read_bytes()
    assert str(here.parent).encode() not in text
    found = json.loads(text)
    assert list(found) == sorted(found)
    assert list(found["models"].values()) == ["sizes.model"]
    assert found["sets"]["size-0"]["keys"]["size"]["settings"]["version"] == "1"
    assert {name: shard["documents"] for name, shard in found["documents"].items()} == {
        "a.jsonl.gz": 20, "b.jsonl.gz": 20,
    }  # fmt: skip
    assert found["parts"].keys() == {"documents/documents.jsonl.gz", "../dropped/documents/rejected.jsonl.gz"}
    said = there.ok("validate", there.out, "--lock", lock).out
    assert said.endswith(f"by the lock {lock}: 0 findings\n")
    assert there.ok("mix", "--lock", "--json").json["lock"] == f"{there.out}.lock.json"  # of what is there already


def test_a_mix_that_was_broken_off_is_gone_on_with_by_the_lock(
    elsewhere: Callable[[str], Project], lock: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Shards that are mixed already are compared as the others are; one that cannot be read is no difference."""
    there = elsewhere("there")
    with monkeypatch.context() as broken:
        broken.setattr(assemble, "sorted_chunks", None)
        broken.setattr(assemble, "_Content", None)
        assert there("mix", "--locked", lock).code == 1
    there.ok("mix", "--locked", lock).shows(f"{there.out} is what {lock} describes")
    assert tree(there.out) == tree(lock.parent / "out")
    (there.attributes / "size-0" / "a.jsonl.gz").write_bytes(b"")
    there("mix", "--locked", lock).fails(
        1, f"{lock}: the shards could not be compared with it; nothing was written:\n", "size-0/a.jsonl.gz"
    )


def test_a_changed_document_is_named(elsewhere: Callable[[str], Project], lock: Path) -> None:
    there = elsewhere("there")
    rows = there.shard("b.jsonl.gz")
    rows[0]["text"] = "y"  # of the same size
    write_rows(there.documents / "b.jsonl.gz", rows)
    write_rows(there.documents / "c.jsonl.gz", rows[:0])
    there.ok("tag")
    refused(
        there, lock,
        "shard b.jsonl.gz: expected 20 documents with the digest ", "shard c.jsonl.gz: it is not in",
    )  # fmt: skip


def test_a_changed_rule_and_option_are_named(elsewhere: Callable[[str], Project], lock: Path) -> None:
    there = elsewhere("there")
    mix = there.config["mix"]
    mix["rules"][0]["drop"] = "size < 4"
    mix["rules"].append({"drop": "size > 1000", "name": "long"})
    mix["output"]["part_size"] = "1 MB"
    refused(
        there, lock,
        "configuration: member_size: expected 1048576, got 125000",
        "configuration: part_size: expected 1000000000, got 1000000",
        'configuration: rules: short: expression: expected "size < 3", got "size < 4"',
        'configuration: rules: long: expected none, got {"',
    )  # fmt: skip
    there.config["mix"] |= {"rules": mix["rules"][1::-1], "output": {"format": "dolma", "path": str(there.out)}}
    mix["rules"][1]["drop"] = "size < 3"
    refused(there, lock, 'configuration: rules: order: expected ["short"')


def test_a_changed_model_and_version_of_a_set_are_named(elsewhere: Callable[[str], Project], lock: Path) -> None:
    there = elsewhere("there")
    (there.root / "sizes.model").write_text("2")
    (there.root / "size.py").write_text(TAGGER.replace('"1"', '"2"'))
    there.ok("tag", "--overwrite")
    refused(
        there, lock,
        "set size-0: size: settings: options: model: sha256: expected ",
        'set size-0: size: settings: version: expected "1", got "2"',
        "model sizes.model: expected sha256 6b86b273",
    )  # fmt: skip


def test_another_version_of_the_toolkit_and_files_that_are_no_lock_are_refused(
    elsewhere: Callable[[str], Project], lock: Path
) -> None:
    there = elsewhere("there")
    found = json.loads(lock.read_text())
    lock.write_text(json.dumps(found | {"toolkit": "0.0.1"}))
    refused(there, lock, 'toolkit: expected "0.0.1", got ')
    for text, said in (("{}", "expected a lock of this version"), (None, "expected the lock of an output, there is")):
        lock.unlink()
        if text:
            lock.write_text(text)
        for ran in (there("mix", "--locked", lock), there.run("validate", there.data, "--lock", lock)):
            assert (ran.code, said in ran.err) == (2, True), ran.err
    assert not there.out.exists()


def test_an_output_that_is_not_what_the_lock_describes_is_told(elsewhere: Callable[[str], Project], lock: Path) -> None:
    there = elsewhere("there")
    there.config["mix"]["rules"][0]["drop"] = "size < 4"
    there.ok("mix")
    ran = there.run("validate", there.out, "--lock", lock).fails(1)
    assert f'{there.out}: configuration: rules: short: expression: expected "size < 3", got "size < 4" (by' in ran.out
    assert f"{there.out}: part documents/documents.jsonl.gz: expected " in ran.out


def test_parts_are_read_also_where_there_is_no_manifest(lock: Path, run: Run) -> None:
    out = lock.parent / "out"
    Path(manifest_path(str(out))).unlink()
    part = out / "documents/documents.jsonl.gz"
    whole = gzip.decompress(part.read_bytes())
    assert "part " not in run("validate", out, "--lock", lock).out
    part.write_bytes(gzip.compress(whole, 1))  # in another way
    assert "part " not in run("validate", out, "--lock", lock).out
    part.write_bytes(gzip.compress(whole.replace(b"x", b"y", 1)))
    (out / "documents/more.jsonl.gz").write_bytes(part.read_bytes())
    ran = run("validate", out, "--lock", lock).fails(1)
    assert f"part documents/documents.jsonl.gz: expected {part} with the sha256 " in ran.out
    assert "part documents/more.jsonl.gz: expected none, it is not in the lock" in ran.out
    part.unlink()
    assert f"part documents/documents.jsonl.gz: expected {part}, got no" in run("validate", out, "--lock", lock).out


def test_parts_that_come_out_otherwise_are_a_failure(elsewhere: Callable[[str], Project], lock: Path) -> None:
    there = elsewhere("there")
    found = json.loads(lock.read_text())
    found["parts"]["documents/documents.jsonl.gz"]["sha256"] = "0" * 64
    lock.write_text(json.dumps(found))
    there("mix", "--locked", lock).fails(1, f"{there.out}: part documents/documents.jsonl.gz: expected ")
    assert there.out.exists()


@pytest.mark.parametrize("place", ["parts.documents/documents.jsonl.gz", *slow("configuration", "sets.size-0")])
def test_a_lock_that_was_changed_is_told(elsewhere: Callable[[str], Project], lock: Path, place: str) -> None:
    there = elsewhere("there")
    there.ok("mix")
    sound: dict[str, Any] = json.loads(lock.read_text())
    found: dict[str, Any] = sound
    said = f"{lock}: {place}.digest: expected "
    for name in place.split(".", 1):
        found = found[name]
    key, value = ("digest", "0" * 32) if "digest" in found else ("documents", int(found["documents"]) + 1)
    if key == "documents":
        said = f"part documents/documents.jsonl.gz: documents: expected {value}, got {found[key]}"
    found[key] = value
    lock.write_text(json.dumps(sound))
    ran = there.run("validate", there.out, "--lock", lock)
    assert ran.code in (1, 2)
    assert said in ran.out + ran.err


@pytest.mark.slow
def test_editions_have_locks_of_their_own(elsewhere: Callable[[str], Project]) -> None:
    def with_edition(project: Project, rule: str) -> Project:
        output = {"path": str(project.root / "second")}
        project.config["mix"]["editions"] = {"second": {"rules": [{"drop": rule}], "output": output}}
        return project

    here = with_edition(elsewhere("here"), "size > 9")
    here.ok("mix", "--lock", here.root / "l.json")
    assert here.run("validate", here.root / "second", "--lock", here.root / "l.second.json").code == 0
    there = with_edition(elsewhere("there"), "size > 9")
    there.ok("mix", "--locked", here.root / "l.json")
    other = with_edition(elsewhere("other"), "size > 8")
    ran = other("mix", "--locked", here.root / "l.json")
    assert (ran.code, other.out.exists()) == (2, False)
    assert "  edition second: configuration: rules: size > 9: expected {" in ran.err


@pytest.mark.slow
def test_the_lock_of_tokens_has_the_tokenizer_and_the_files_beside_parts(elsewhere: Callable[[str], Project]) -> None:
    pytest.importorskip("tokenizers")

    def with_tokens(project: Project) -> Project:
        (project.root / "t.json").write_bytes(TOKENIZER.read_bytes())
        how = {"tokenizer": str(project.root / "t.json"), "eod": "</s>", "files": "numpy"}
        project.config["tokenize"] = how | {"path": str(project.root / "tokens")}
        return project

    here, there = with_tokens(elsewhere("here")), with_tokens(elsewhere("there"))
    here.ok("tokenize", "--lock")
    lock = here.root / "tokens.lock.json"
    found: dict[str, Any] = json.loads(lock.read_text())
    assert sorted(found["models"].values()) == ["sizes.model", "t.json"]
    files = ["tokens.index.npy", "tokens.npy", "tokens.npy.ids", "tokens.npy.trace"]
    assert [sorted(part["files"]) for part in found["parts"].values()] == [files]
    there.ok("tokenize", "--locked", lock)
    found["parts"]["tokens.npy"]["files"]["tokens.index.npy"] = "0" * 64  # by another compressor
    (there.root / "other.json").write_text(json.dumps(found))
    there.ok("tokenize", "--locked", there.root / "other.json")
    tokens = there.root / "tokens"
    assert there.run("validate", tokens, "--lock", lock).code == 0
    Path(manifest_path(str(tokens))).unlink()
    (tokens / "tokens.index.npy").write_bytes(b"\0")
    there.run("validate", tokens, "--lock", lock).shows(f"part tokens.npy: expected {tokens}/tokens.index.npy with the")
    changed = json.loads(TOKENIZER.read_text(encoding="utf-8"))
    changed["model"]["merges"] = changed["model"]["merges"][:1]
    (there.root / "t.json").write_text(json.dumps(changed), encoding="utf-8")
    there("tokenize", "--locked", lock).fails(2, "  model t.json: expected sha256 ")


@pytest.mark.s3
@pytest.mark.slow
def test_a_lock_on_s3_is_that_on_disk(elsewhere: Callable[[str], Project], lock: Path, bucket: str) -> None:  # noqa: F811
    there = elsewhere("there")
    root = join(bucket, "corpus")
    for shard in ("a.jsonl.gz", "b.jsonl.gz"):
        write_file(join(root, "documents", shard), (there.documents / shard).read_bytes())
    there.config["dataset"] = root
    there.config["mix"]["output"]["path"] = join(root, "out")
    there.config["mix"]["rejected"] = join(root, "dropped")
    there.ok("tag")
    there.ok("mix", "--locked", lock, "--lock")
    there.ok("validate", join(root, "out"), "--lock", join(root, "out.lock.json"))
    with open_stored(join(root, "out.lock.json")) as stream:
        assert stream.read() == lock.read_bytes()
