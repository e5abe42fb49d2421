"""A mix encodes batches: errors name the document as they do one by one, and the first one comes first."""

from collections.abc import Iterable, Sequence

import msgspec
import pytest

from tests.pipeline.conftest import Project, document, read_rows, write_rows
from toolkit import DataError, Document, Mixed, MixedBatch, Pieces, Writer


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


def mixed(project: Project, writer: type[Writer], *texts: str) -> str:
    """Mix some documents, of which those without text are an error of a rule; return what is said."""
    rows = [document(str(i), text, metadata={"n": None if text == "rule" else 1}) for i, text in enumerate(texts)]
    write_rows(project.documents / "a.jsonl.gz", rows)
    project.config["mix"] = {
        "rules": [{"drop": "document.metadata['n'] > 5"}],
        "rejected": str(project.root / "aside"),
        "output": {"format": f"tests.pipeline.test_batches:{writer.__name__}", "path": str(project.out)},
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
