"""What is not there is said: shards that are gone, inputs that failed; and what is there stays usable."""

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.conftest import Run
from tests.marks import slow
from tests.pipeline.conftest import Project, document, read_rows, tree, write_rows
from toolkit import DataError, Document, Mixed, MixedBatch, Pieces, Writer


@pytest.fixture
def two(project: Project) -> Project:
    """Two inputs, ingested and tagged, and a mix of them."""
    for name in ("a", "b"):
        write_rows(project.root / "in" / f"{name}.jsonl", [{"id": name, "text": "some text"}])
    project.config |= {
        "ingest": [{"format": "jsonl", "from": [f"{project.root}/in/*"], "source": "j"}],
        "tag": {"shape-0": "line_shape"},
        "mix": {"attributes": ["shape-0"], "output": {"format": "dolma", "path": str(project.out)}},
    }
    project.ok("run")
    return project


def test_a_shard_that_was_ingested_and_is_gone_stops_tag_and_mix(two: Project) -> None:
    before = two.output()
    shard = two.documents / "j" / "b.jsonl.gz"
    shard.unlink()
    for command in ("tag", "mix"):
        two(command).fails(1, f"{shard}: expected the documents of {two.root}/in/b.jsonl")
    assert two.output() == before
    assert two("validate").code == 1
    two.ok("run")
    assert two.output() == before


def test_inputs_that_failed_are_named_by_all_that_goes_on_without_them(two: Project) -> None:
    path = two.root / "in" / "c.jsonl"
    path.write_text("{\n")
    assert two("ingest").code == 1
    for command in ("tag", "mix"):
        assert f"1 input is not in this: its ingest failed or was interrupted ({path})" in two.ok(command).out
    two("validate").fails(1).shows(f"{path}: expected to be ingested")
    path.unlink()
    write_rows(path, [{"id": "c", "text": "t"}])
    two.ok("run")
    assert "are not in this" not in two.ok("mix").out


def test_what_was_ingested_without_fault_need_not_be_again_to_skip_the_faults_of_others(two: Project) -> None:
    path = two.root / "in" / "c.jsonl"
    path.write_text('{"id": "c", "text": "t"}\n{\n')
    two.config["ingest"][0]["on_error"] = "skip"
    result = two.ok("ingest", "--json").json
    assert (result["inputs"], result["skipped"]) == (3, 2)
    assert [row["id"] for row in read_rows(two.documents / "j" / "c.jsonl.gz")] == ["c"]
    two.config["ingest"][0]["on_error"] = "error"
    two("ingest").fails(1, f"{path}:2")


def test_an_input_that_is_gone_is_mentioned_and_its_documents_stay(two: Project) -> None:
    (two.root / "in" / "b.jsonl").unlink()
    ran = two.ok("ingest")
    assert "inputs of earlier runs that are not among these: 1 (" in ran.out
    assert "`toolkit clean --forget j/b.jsonl` deletes those of" in ran.out
    assert sorted(row["id"] for row in two.output()) == ["a", "b"]


def test_settings_may_stand_behind_options(two: Project) -> None:
    two.run(
        "mix", "-c", two.yaml, "--limit", "1", f"mix.output.path={two.root}/other", "--quiet", "processes=1"
    ).succeeds()
    assert Path(two.root, "other", "documents", "documents.jsonl.gz").exists()
    assert two.run("mix", "-c", two.yaml, "--nonsense").code == 2


@pytest.mark.parametrize("place", ["documents/x", *slow("", "attributes", ".toolkit/x", "..")])
def test_an_output_among_what_is_read_is_refused_before_anything_is_done(two: Project, place: str) -> None:
    two.config["mix"]["output"]["path"] = str((two.data / place).resolve())
    two.config["ingest"][0]["source"] = "new"
    two("run").fails(2, "expected a path separate from")
    assert not (two.documents / "new").exists()


def test_a_shard_that_is_replaced_by_its_beginning_is_redone_where_it_is_no_damage(two: Project) -> None:
    rows = [{"id": str(i), "text": "x", "source": "s"} for i in range(4)]
    write_rows(two.documents / "plain.jsonl", rows)
    two.ok("tag")
    write_rows(two.documents / "plain.jsonl", rows[:2])
    two.ok("tag")
    assert len(two.values("shape-0", "plain.jsonl")) == 2


def test_what_a_failed_mix_left_goes_when_the_old_output_is_right_again(two: Project) -> None:
    path = two.attributes / "shape-0" / "j" / "b.jsonl.gz"
    data = path.read_bytes()
    path.unlink()
    assert two("mix").code == 1
    path.write_bytes(data)
    assert "was there already" in two.ok("mix").out
    assert not list((two.out / ".toolkit").glob("stage/*"))


def test_bad_lines_are_counted_by_what_is_wrong(two: Project) -> None:
    path = two.root / "in" / "c.jsonl"
    path.write_bytes(b'{\n\n{"id": "1"}\n{"text": 3}\n{"text": "\xff"}\n{"text": "good"}\n')
    two.config["ingest"][0]["on_error"] = "skip"
    counts = two.ok("ingest", "--json").json["counts"]
    faults = ("blank line", "invalid JSON", "invalid UTF-8", "missing field", "wrong type")
    assert {name: n for name, n in counts.items() if name.startswith("rejected")} == {
        f"rejected.{fault}": 1 for fault in faults
    }


def test_an_output_that_cannot_be_written_is_refused_before_anything_is_done(two: Project) -> None:
    (two.root / "file").write_text("")
    two.config["mix"]["output"]["path"] = str(two.root / "file" / "x")
    two.config["ingest"][0]["source"] = "new"
    two("run").fails(2, "expected a folder, got the file")
    assert not (two.documents / "new").exists()


def test_a_dataset_that_was_moved_goes_on_with_what_was_resolved(two: Project, tmp_path: Path) -> None:
    """Sets over the whole dataset, of which a shard's attributes are gone: nothing names the old place any more."""
    two.config |= {
        "dedup": {"exact-0": {"kind": "exact"}, "again-0": {"kind": "exact", "unit": "line", "as": "again"}},
        "sample": {"pick-0": {"documents": 1}},
        "calibrate": {"rank-0": {"kind": "rank", "score": "line_shape.chars"}},
    }
    two.ok("run")
    made = tree(two.attributes)
    two.data.rename(tmp_path / "moved")
    two.config["dataset"] = str(tmp_path / "moved")
    for name in ("exact-0", "again-0", "pick-0", "rank-0"):
        (tmp_path / "moved" / "attributes" / name / "j" / "b.jsonl.gz").unlink()
    two.ok("run")
    assert tree(tmp_path / "moved" / "attributes") == made


# What a tagger is asked of at once is a matter of the rows of a shard, so that a model computes the same batches.

TAGGER = '''
import zlib
from collections.abc import Sequence
from typing import Annotated
from toolkit import Document, Example, Tagger
from toolkit.text import Batches, BatchOption

class OutputBatch(Tagger):
    """Of each text how many there are in its batch, and which: what a model's rounding may depend on."""
    EXAMPLES = (Example("", [1, zlib.crc32(b"id")]),)
    batch: BatchOption = Batches(documents=7, tokens=2100)

    def tag_batch(self, documents: Sequence[Document]) -> list[list[int]]:
        found: dict[int, list[int]] = {}
        for batch in self.batch.of([len(document.text) for document in documents]):
            ids = ",".join(documents[i].id for i in batch)
            found |= {i: [len(batch), zlib.crc32(ids.encode())] for i in batch}
        return [found[i] for i in range(len(documents))]
'''


def made(root: Path, run: Run, **config: Any) -> Project:
    root.mkdir()
    (root / "together.py").write_text(TAGGER)
    for i in range(2):
        rows = [document(f"{i}-{j}", "word " * (j * 37 % 61), n=j, metadata={"n": j}) for j in range(700)]
        write_rows(root / "in" / f"{i}.jsonl", rows)
    tagger = f"{root}/together.py:OutputBatch"
    return Project(
        root,
        run,
        {
            "dataset": str(root / "data"),
            "ingest": [{"format": "jsonl", "from": f"{root}/in/*.jsonl", "source": "s"}],
            "tag": {
                "all-0": {"tagger": tagger, "as": "every"},
                "some-0": {"tagger": tagger, "as": "some", "when": "document.metadata['n'] % 3 == 0"},
            },
            **config,
        },
    )


@pytest.mark.slow
def test_batches_are_the_same_for_any_number_of_processes_in_one_pass_and_in_two_commands(
    tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = {"executor": {"type": "in_process"}}
    one, two, passed = (made(tmp_path / name, run, **here) for name in ("one", "two", "passed"))
    one.ok("ingest")
    one.ok("tag")
    passed.ok("run")
    monkeypatch.setattr("toolkit.execution.workers.LARGE", 1)  # so that both processes work on one shard
    two.config |= {"executor": {"type": "local"}, "processes": 2}
    two.ok("ingest")
    two.ok("tag", "--limit", "1")
    two.ok("tag")
    assert tree(one.attributes) == tree(two.attributes) == tree(passed.attributes)

    (shard, *_) = sorted(path.relative_to(one.documents) for path in one.documents.rglob("*.jsonl.gz"))
    rows = one.values("some-0", str(shard))
    assert [i for i, row in enumerate(rows) if row["some"] is None] == [i for i in range(700) if i % 3]
    assert json.dumps([row["some"][0] for row in rows if row["some"]]).count("7") > 100, "only asked rows count"


# A mix encodes batches: errors name the document as they do one by one, and the first one comes first.


class Batched(Writer):
    """Id and text of a document; there is no place for a text that begins with ``bad``, and ``out`` is left out."""

    def encode(self, document: Document, mixed: Mixed) -> Iterable[tuple[str, bytes]]:
        if document.text.startswith("bad"):
            raise DataError(f"expected a good text, got {document.text!r}")
        if document.text.startswith("out"):
            return []
        return [("all", msgspec.json.encode({"id": document.id, "text": document.text}) + b"\n")]

    def encode_batch(self, batch: MixedBatch) -> Sequence[Pieces]:
        if any(document.text.startswith("bad") for document in batch.documents):
            raise DataError("expected good texts, got others")
        return [list(self.encode(document, mixed)) for document, mixed in batch]


class Short(Batched):
    """One document too few."""

    def encode_batch(self, batch: MixedBatch) -> Sequence[Pieces]:
        return super().encode_batch(batch)[1:]


class Disagrees(Batched):
    """A batch that fails, where each document does not."""

    def encode_batch(self, batch: MixedBatch) -> Sequence[Pieces]:
        raise DataError("expected fewer documents, got many")


class Careless(Writer):
    """Errors of its own, too little memory, and a label that is none."""

    def encode(self, document: Document, mixed: Mixed) -> Iterable[tuple[str, bytes]]:
        if document.text == "large":
            raise MemoryError
        number = {"one": 1, "none": None}[document.text]
        return [("all" if number else None, b"{}\n")]  # type: ignore[list-item]


class Shapeless(Writer):
    """Something else than pairs."""

    def encode(self, document: Document, mixed: Mixed) -> Any:
        return {"row": b"{}\n", "rows": [b"{}\n"], "none": None, "one": [("all", b"{}\n")]}[document.text]

    def encode_batch(self, batch: MixedBatch) -> Any:
        if batch.documents[0].text == "nothing":
            return None
        return [
            self._late(document) if document.text == "late" else self.encode(document, mixed)
            for document, mixed in batch
        ]

    def _late(self, document: Document) -> Iterator[tuple[str, bytes]]:
        yield "all", b"{}\n"
        raise KeyError(document.text)


def mixed(project: Project, writer: type[Writer], *texts: str) -> str:
    """Mix some documents, of which those without text are an error of a rule; return what is said."""
    rows = [document(str(i), text, metadata={"n": None if text == "rule" else 1}) for i, text in enumerate(texts)]
    write_rows(project.documents / "a.jsonl.gz", rows)
    project.config["mix"] = {
        "rules": [{"drop": "document.metadata['n'] > 5"}],
        "rejected": str(project.root / "aside"),
        "output": {"format": f"tests.pipeline.test_whole:{writer.__name__}", "path": str(project.out)},
    }
    ran = project("mix")
    return ran.err + ran.out


@pytest.mark.parametrize(
    ("writer", "texts", "message"),
    [
        (Batched, ["a", "bad one", "bad two"], "a.jsonl.gz:2: expected a good text, got 'bad one' (document '1')"),
        (Batched, ["a", "bad one", "rule"], "a.jsonl.gz:2: expected a good text, got 'bad one' (document '1')"),
        (Batched, ["a", "rule", "bad one"], "a.jsonl.gz:2: rule "),
        (Short, ["a", "b"], "a.jsonl.gz: expected 2 results of encode_batch, got 1"),
        (Disagrees, ["a", "b"], "a.jsonl.gz: expected fewer documents, got many"),
        (Careless, ["one", "two", "none"], "a.jsonl.gz:2: format Careless failed: KeyError: 'two' (document '1')"),
        (Careless, ["one", "large"], "a.jsonl.gz: expected enough memory, got none; use fewer processes"),
        (Careless, ["one", "none"], "a.jsonl.gz:2: expected a text of the writer as the label, got None"),
        (
            Shapeless,
            ["one", "row"],
            "a.jsonl.gz:2: expected pairs of a label and bytes of the format Shapeless, got bytes",
        ),
        (
            Shapeless,
            ["rows", "one"],
            "a.jsonl.gz:1: expected pairs of a label and bytes of the format Shapeless, got list",
        ),
        (
            Shapeless,
            ["one", "none"],
            "a.jsonl.gz:2: expected pairs of a label and bytes of the format Shapeless, got None",
        ),
        (
            Shapeless,
            ["late"],
            "a.jsonl.gz:1: expected pairs of a label and bytes of the format Shapeless, got generator (Key",
        ),
        (Shapeless, ["nothing"], "a.jsonl.gz: expected 1 results of encode_batch, got NoneType"),
    ],
)
def test_the_first_document_that_is_wrong_is_named(
    project: Project, writer: type[Writer], texts: list[str], message: str
) -> None:
    assert message in mixed(project, writer, *texts)


def test_documents_stay_in_order_and_those_that_a_writer_leaves_out_are_kept_aside(project: Project) -> None:
    mixed(project, Batched, "a", "out 1", "b", "out 2", "c")
    assert [row["text"] for row in project.output()] == ["a", "b", "c"]
    (aside,) = (project.root / "aside").rglob("*.jsonl.gz")
    assert [row["text"] for row in read_rows(aside)] == ["out 1", "out 2"]
