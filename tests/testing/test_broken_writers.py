"""The contract suite of output formats finds the usual mistakes, and says what to do."""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import IO

import msgspec
import pytest

from toolkit import DataError, Document, Mixed, MixedBatch, Pieces, Prediction, Reading, Wanted, Writer
from toolkit.testing import check_writer


class Sound(Writer):
    """The id and the text of a document, all in one output."""

    def encode(self, document: Document, mixed: Mixed) -> Iterable[tuple[str, bytes]]:
        mixed.counts["documents"] += 1
        return [("all", msgspec.json.encode({"id": document.id, "text": document.text}) + b"\n")]


class InBatches(Sound):
    """As `Sound`, all at once."""

    def encode_batch(self, batch: MixedBatch) -> Sequence[Pieces]:
        batch.counts["documents"] += len(batch)
        rows = ({"id": document.id, "text": document.text} for document in batch.documents)
        return [[("all", line + b"\n")] for line in map(msgspec.json.encode, rows)]


class OtherKey(Sound):
    """The text of a document under another key than `READING` says."""

    READING = Reading(text="content")


class NoJson(Sound):
    """The text of a document in a line that is not JSON, and no way to read it."""

    def encode(self, document: Document, mixed: Mixed) -> Iterable[tuple[str, bytes]]:
        return [("all", " ".join(document.lines).encode() + b"\n")]


class Loses(NoJson):
    """The text of a document in a line; the last one is not read back."""

    def read(self, lines: Iterator[bytes], max_bytes: int) -> Iterator[tuple[Document, str | None]]:
        return ((Document(line.decode()), None) for line in list(lines)[:-1])


class Unescaped(NoJson):
    """The text of a document, whose line feeds end rows."""

    def encode(self, document: Document, mixed: Mixed) -> Iterable[tuple[str, bytes]]:
        return [("all", document.text.encode() + b"\n")]

    def read(self, lines: Iterator[bytes], max_bytes: int) -> Iterator[tuple[Document, str | None]]:
        return ((Document(line.decode()), None) for line in lines)


CALLS: list[str] = []


class Counts(Sound):
    """A document with the number of those before it."""

    def encode(self, document: Document, mixed: Mixed) -> Iterable[tuple[str, bytes]]:
        CALLS.append(document.id)
        row = {"id": document.id, "text": document.text, "n": len(CALLS)}
        return [("all", msgspec.json.encode(row) + b"\n")]


class Hashes(Sound):
    """A document with the hash of its text."""

    def encode(self, document: Document, mixed: Mixed) -> Iterable[tuple[str, bytes]]:
        row = {"id": document.id, "text": document.text, "hash": hash(document.text)}
        return [("all", msgspec.json.encode(row) + b"\n")]


class NoLineFeed(Sound):
    """A document without a line feed behind it."""

    def encode(self, document: Document, mixed: Mixed) -> Iterable[tuple[str, bytes]]:
        return [("all", msgspec.json.encode({"text": document.text}))]


class AnyLabel(Sound):
    """A document in the folder of its language, whatever that is called."""

    def wants(self) -> dict[str, Wanted]:
        return {"language": Wanted("language", Prediction)}

    def encode(self, document: Document, mixed: Mixed) -> Iterable[tuple[str, bytes]]:
        return [(mixed.values["language"].label, msgspec.json.encode({"text": document.text}) + b"\n")]


class OnePlace(Sound):
    """A document in the only file, whatever its label."""

    def stem(self, label: str) -> str:
        return "all"


class Outside(Sound):
    """A document in a folder beside the output's."""

    def stem(self, label: str) -> str:
        return f"../{label}"


class OtherBatch(Sound):
    """A document; one without text is left out of a batch."""

    def encode_batch(self, batch: MixedBatch) -> Sequence[Pieces]:
        return [list(self.encode(document, mixed)) for document, mixed in batch if document.text]


class Forgets(Sound):
    """A document; those of a batch are not counted."""

    def encode_batch(self, batch: MixedBatch) -> Sequence[Pieces]:
        return [list(self.encode(document, Mixed({}, []))) for document, _ in batch]


class Edits(Sound):
    """A document without white space around its text."""

    def encode(self, document: Document, mixed: Mixed) -> Iterable[tuple[str, bytes]]:
        document.text = document.text.strip()
        return [("all", msgspec.json.encode({"text": document.text}) + b"\n")]


class Typed(msgspec.Struct, forbid_unknown_fields=True):
    text: str


class Refuses(Sound):
    """A document that the format's own check does not take."""

    def line(self) -> type[Typed]:
        return Typed


class Framed(NoJson):
    """The texts of documents between two lines."""

    CONCATENATES = False
    SUFFIX = ".framed"

    def assemble(self, pieces: Iterator[bytes], out: IO[bytes]) -> None:
        out.write(b"BEGIN\n" + b"".join(pieces) + b"END\n")

    def check_file(
        self, path: str, documents: int | None = None, first: int | None = None
    ) -> Iterator[tuple[int | None, str]]:
        with open(path, "rb") as stream:
            if not stream.read().endswith(b"\nEND\n"):
                yield None, "expected END as the last line, got another"

    def read_file(self, path: str) -> Iterator[tuple[Document, str | None]]:
        with open(path, "rb") as stream:
            for line in stream.read().split(b"\n")[1:-2]:
                yield Document(line.decode()), None


class Closes(Framed):
    """The texts of documents between two lines, in a file that is closed."""

    def assemble(self, pieces: Iterator[bytes], out: IO[bytes]) -> None:
        super().assemble(pieces, out)
        out.close()


class Leaves(Framed):
    """The text of the first document between two lines."""

    def assemble(self, pieces: Iterator[bytes], out: IO[bytes]) -> None:
        super().assemble(iter([next(pieces)]), out)


class Blind(Framed):
    """The texts of documents between two lines, which nothing checks."""

    def check_file(
        self, path: str, documents: int | None = None, first: int | None = None
    ) -> Iterator[tuple[int | None, str]]:
        return iter(())


class Unreadable(Framed):
    """The texts of documents between two lines, which are not read back."""

    def read_file(self, path: str) -> Iterator[tuple[Document, str | None]]:
        raise DataError("expected something else", path=path)


@pytest.mark.parametrize(
    ("writer", "message"),
    [
        (OtherKey, "expected a file that can be read back (as `READING` and `ID` say), got DataError"),
        (NoJson, "expected a file that can be read back (as `READING` and `ID` say), got DataError"),
        (Loses, "expected 9 documents when the file is read back (by `read`), got 8"),
        (Unescaped, "expected 9 documents when the file is read back (by `read`), got"),
        (Counts, "expected the same bytes again of"),
        (Hashes, "expected the same files in another process, got others"),
        (NoLineFeed, "expected bytes that end in a line feed, got"),
        (AnyLabel, "expected a DataError for the label '', got the label ''; pass labels through check_label"),
        (OnePlace, "expected a file of its own for each part of each label"),
        (Outside, "expected paths below the output's folder, got '../en"),
        (OtherBatch, "expected of encode_batch the pieces of each document that encode gives, in order"),
        (Forgets, "and the same counts; got"),
        (Edits, "expected a document and values that stay as they are, got others"),
        (Refuses, "expected lines that its own `check` takes, got object contains unknown field id"),
        (Closes, "expected `assemble` to leave its files open, got one closed"),
        (Leaves, "expected `assemble` to take all pieces, got some left"),
        (Blind, "expected `check_file` to notice that the last byte of all.framed is missing, it did not"),
        (Unreadable, "expected a file that can be read back (by `read_file`), got DataError"),
    ],
)
def test_a_broken_writer_is_found(writer: type[Writer], message: str) -> None:
    with pytest.raises(AssertionError, match=f"^{writer.__name__}: .*{re.escape(message)}|^{re.escape(message)}"):
        check_writer(writer)


@pytest.mark.parametrize("writer", [Sound, InBatches, Framed])
def test_a_sound_writer_is_none_of_these(writer: type[Writer]) -> None:
    check_writer(writer)
    check_writer(writer(), new_process=False)
