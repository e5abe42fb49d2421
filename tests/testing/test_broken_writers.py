"""The contract suite of output formats finds the usual mistakes, and says what to do."""

import re
import uuid
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import IO, Annotated, Any

import msgspec
import pytest

from toolkit import (
    DataError,
    Document,
    Draft,
    Example,
    Input,
    Mixed,
    MixedBatch,
    Pieces,
    Prediction,
    Reader,
    Reading,
    Span,
    Tagger,
    Wanted,
    Writer,
)
from toolkit.tag.tagger import value_annotation
from toolkit.testing import check_reader, check_tagger, check_writer


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


@pytest.mark.slow
@pytest.mark.parametrize("writer", [Sound, InBatches, Framed])
def test_a_sound_writer_is_none_of_these(writer: type[Writer]) -> None:
    check_writer(writer)
    check_writer(writer(), new_process=False)


# The contract suite of input formats finds the usual mistakes, and says what to do.

CONTENT = b"a,one text\nb,another\nc,last\n"
TEXTS = ["one text", "another", "last"]


class BrokenReadersSound(Reader):
    """An id and a text in a line, with a comma between them."""

    def read(self, source: Input) -> Iterator[Draft]:
        with source.lines() as lines:
            yield from source.items(lines, self._draft)

    def _draft(self, line: bytes, number: int) -> Draft:
        id, comma, text = line.decode().partition(",")
        if not comma:
            raise ValueError("expected a comma, got none")
        return Draft(text=text, id=id, number=number)


class LosesLast(BrokenReadersSound):
    """Lines that end in a line feed."""

    def read(self, source: Input) -> Iterator[Draft]:
        drafts = list(super().read(source))
        yield from drafts[:-1]


class NeedsLineFeed(BrokenReadersSound):
    """Lines that end in a line feed; what is behind the last is not read."""

    def read(self, source: Input) -> Iterator[Draft]:
        with source.stream() as stream:
            for number, line in enumerate(stream.read().split(b"\n")[:-1], 1):
                yield self._draft(line, number)


class RandomIds(BrokenReadersSound):
    """Lines with new ids."""

    def read(self, source: Input) -> Iterator[Draft]:
        for draft in super().read(source):
            yield msgspec.structs.replace(draft, id=str(uuid.uuid4()))


class IdsOfHashes(BrokenReadersSound):
    """Lines with ids that other processes do not give."""

    def read(self, source: Input) -> Iterator[Draft]:
        for draft in super().read(source):
            yield msgspec.structs.replace(draft, id=str(hash(draft.text)))


class IdsOfPaths(BrokenReadersSound):
    """Lines with ids of the path."""

    def read(self, source: Input) -> Iterator[Draft]:
        for draft in super().read(source):
            yield msgspec.structs.replace(draft, id=f"{source.path}:{draft.number}")


class SameId(BrokenReadersSound):
    """Lines with one id."""

    def read(self, source: Input) -> Iterator[Draft]:
        for draft in super().read(source):
            yield msgspec.structs.replace(draft, id="a")


class Unnumbered(BrokenReadersSound):
    """Lines without a number."""

    def read(self, source: Input) -> Iterator[Draft]:
        for draft in super().read(source):
            yield msgspec.structs.replace(draft, number=0)


class OpensPath(BrokenReadersSound):
    """Lines of the file at the path."""

    def read(self, source: Input) -> Iterator[Draft]:
        with open(source.path, "rb") as stream:
            for number, line in enumerate(stream, 1):
                yield self._draft(line.rstrip(b"\n"), number)


class Raises(BrokenReadersSound):
    """Lines whose faults are errors of Python."""

    def read(self, source: Input) -> Iterator[Draft]:
        with source.lines() as lines:
            for line in lines:
                yield self._draft(bytes(line), lines.number)


class OtherBatches(BrokenReadersSound):
    """Lines, in batches in which they are the other way round."""

    def read_batches(self, source: Input) -> Iterator[Sequence[Draft]]:
        yield list(self.read(source))[::-1]


class Attributes(BrokenReadersSound):
    """Lines with an attribute that is not of its type."""

    TYPES = {"length": int}

    def attribute_sets(self) -> Sequence[str]:
        return ("carried-0",)

    def read(self, source: Input) -> Iterator[Draft]:
        for draft in super().read(source):
            yield msgspec.structs.replace(draft, attributes={"carried-0": {"length": msgspec.Raw(b'"long"')}})


class Undeclared(BrokenReadersSound):
    """Lines with an attribute that is not declared."""

    def read(self, source: Input) -> Iterator[Draft]:
        for draft in super().read(source):
            yield msgspec.structs.replace(draft, attributes={"carried-0": {"length": msgspec.Raw(b"1")}})


class NoText(BrokenReadersSound):
    """Lines with a number in place of an id."""

    def read(self, source: Input) -> Iterator[Draft]:
        for draft in super().read(source):
            yield Draft(text=draft.text, number=draft.number, id=draft.number)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("reader", "message"),
    [
        (LosesLast, "expected 3 documents with the texts 'one text', 'another', 'last', got 2: 'one text', 'another'"),
        (NeedsLineFeed, "expected the last document without a line feed behind it, too"),
        (RandomIds, "expected the same documents again, by another path, got id '"),
        (IdsOfHashes, "expected the same documents in another process, got others"),
        (IdsOfPaths, "expected the same documents again, by another path, got id 'elsewhere/other.name:1'"),
        (SameId, "expected an id of its own for each document, or None"),
        (Unnumbered, "expected numbers that grow from 1, got [0, 0, 0]"),
        (OpensPath, "expected the bytes of source.stream() or source.lines() to be read"),
        (Raises, "expected a DataError (or source.bad) for"),
        (OtherBatches, "expected of read_batches the documents that read gives, in order"),
        (Attributes, "expected length of its type in TYPES, int"),
        (Undeclared, "expected the attributes none of each document in the sets none, got"),
        (NoText, "expected drafts whose fields are of their types and can be written as JSON"),
    ],
)
def test_a_broken_reader_is_found(reader: type[Reader], message: str) -> None:
    with pytest.raises(AssertionError, match=f"^{reader.__name__}: .*{re.escape(message)}"):
        check_reader(reader, CONTENT, TEXTS)


def test_a_sound_reader_is_none_of_these() -> None:
    check_reader(BrokenReadersSound, CONTENT, TEXTS)
    check_reader(BrokenReadersSound(), CONTENT, TEXTS, new_process=False)


def test_a_file_with_one_document_shows_too_little() -> None:
    with pytest.raises(AssertionError, match="expected a file with at least two documents, got 1"):
        check_reader(BrokenReadersSound, b"a,one\n", ["one"])


# The contract suite of taggers finds the usual mistakes, and says what to do.


class BrokenTaggersSound(Tagger):
    """How many words the text has."""

    EXAMPLES = (Example("", 0), Example("two words", 2))

    def tag(self, document: Document) -> int:
        return len(document.text.split())


class SoundBatch(Tagger):
    """How many words each text has."""

    EXAMPLES = (Example("", 0), Example("two words", 2))

    def tag_batch(self, documents: Sequence[Document]) -> list[int]:
        return [len(document.text.split()) for document in documents]


class WrongType(Tagger):
    """How many words the text has."""

    def tag(self, document: Document) -> int:
        return "many" if len(document.text) > 1000 else 1  # type: ignore[return-value]  # the mistake


class NotATruth(Tagger):
    """How many words the text has."""

    EXAMPLES = (Example("two words", 3),)

    def tag(self, document: Document) -> int:
        return len(document.text.split())


SEEN: list[str] = []


class Remembers(Tagger):
    """Whether the document before was longer."""

    def tag(self, document: Document) -> bool:
        SEEN.append(document.text)
        return len(SEEN) > 1 and len(SEEN[-2]) > len(document.text)


class BrokenTaggersOtherBatch(Tagger):
    """How many characters the text has."""

    def tag(self, document: Document) -> int:
        return len(document.text)

    def tag_batch(self, documents: Sequence[Document]) -> list[int]:
        return [len(document.text.strip()) for document in documents]


class ShortBatch(Tagger):
    """How many characters the text has."""

    def tag(self, document: Document) -> int:
        return len(document.text)

    def tag_batch(self, documents: Sequence[Document]) -> list[int]:
        return [*{document.text: len(document.text) for document in documents}.values()]


class Normalises(Tagger):
    """How many lines the text has."""

    def tag(self, document: Document) -> int:
        document.text = document.text.replace("\r", "")
        return len(document.text)


class SortsLines(Tagger):
    """The line that comes first in the alphabet."""

    def tag(self, document: Document) -> str | None:
        document.lines.sort()
        return next(iter(document.lines), None)


class Model:
    def __reduce__(self) -> Any:
        raise TypeError("cannot pickle a model")


class HoldsModel(Tagger):
    """How many words the text has."""

    @cached_property
    def _model(self) -> Model:
        return Model()

    def __reduce__(self) -> Any:
        return HoldsModel, (), {"model": self._model}

    def tag(self, document: Document) -> int:
        return 1


class BrokenTaggersHashes(Tagger):
    """A bucket of the text."""

    def tag(self, document: Document) -> int:
        return hash(document.text) % 1000


class BeyondTheText(Tagger):
    """Where the first line is."""

    def tag(self, document: Document) -> list[Span]:
        return [Span(0, len(document.text.encode()))]


class LineFeeds(msgspec.Struct):
    """Lines.

    Attributes:
        lengths: The length of each line.
    """

    lengths: list[int]


class OtherLines(Tagger):
    """The lines of the text."""

    PER_LINE = ("lengths",)

    def tag(self, document: Document) -> LineFeeds:
        return LineFeeds([len(line) for line in document.text.splitlines()])


class Breaks(Tagger):
    """The first word."""

    def tag(self, document: Document) -> str:
        return document.text.split()[0]


class SaysNothing(Tagger):
    def tag(self, document: Document) -> int:
        return 1


class Undescribed(Tagger):
    """How many words the text has."""

    min_chars: int = 1

    def tag(self, document: Document) -> int:
        return 1


class NeedsOption(Tagger):
    """How many words the text has."""

    least: Annotated[int, msgspec.Meta(description="a shorter word does not count")]

    def tag(self, document: Document) -> int:
        return sum(len(word) >= self.least for word in document.text.split())


@pytest.mark.parametrize(
    ("tagger", "message"),
    [
        (WrongType, 'expected a value of the type that `tag` declares, int, got "many"'),
        (NotATruth, "expected the value 3 as the example of 'two words' says, got 2; correct the example or"),
        (Remembers, "expected the same values again, in any order; keep nothing of other documents"),
        (BrokenTaggersOtherBatch, "expected the same values of tag_batch as of tag, in order; for the text"),
        (ShortBatch, "values of tag_batch, got"),
        (Normalises, "expected a document that stays as it is, got another text"),
        (SortsLines, "expected a document that stays as it is, got another text, id, source, metadata or lines"),
        (HoldsModel, "expected a plugin that can be pickled, got TypeError: cannot pickle a model"),
        (
            BrokenTaggersHashes,
            "expected the same values in another process; sort what comes out of a set, take no hash()",
        ),
        (BeyondTheText, "expected spans of code points of the text"),
        (OtherLines, "expected an element of lengths for each of"),
        (Breaks, "expected a value for every text, got IndexError: list index out of range for '     "),
        (SaysNothing, "expected a docstring that says what it is, got none"),
        (Undescribed, "expected a description of the option min_chars, got none; write it under"),
        (
            NeedsOption,
            "expected a value of the option least, which has no default: give the check options={'least': …}",
        ),
    ],
)
def test_a_broken_tagger_is_found(tagger: type[Tagger], message: str) -> None:
    with pytest.raises(AssertionError, match=f"^{tagger.__name__}: .*{re.escape(message)}|^{re.escape(message)}"):
        check_tagger(tagger)


@pytest.mark.slow
def test_a_sound_tagger_is_none_of_these() -> None:
    check_tagger(BrokenTaggersSound)
    check_tagger(BrokenTaggersSound())
    check_tagger(NeedsOption, {"least": 2})
    check_tagger(NeedsOption(least=2), new_process=False)


def test_a_tagger_of_batches_needs_no_other_method() -> None:
    check_tagger(SoundBatch)
    assert value_annotation(SoundBatch) is int
    assert SoundBatch().tag(Document("two words")) == 2
    with pytest.raises(NotImplementedError):
        Tagger().tag(Document(""))


def test_a_class_inside_a_function_cannot_be_sent_to_workers() -> None:
    class Inner(BrokenTaggersSound):
        """How many words the text has."""

    with pytest.raises(AssertionError, match=r"can be pickled|expected a class at the top of a module"):
        check_tagger(Inner)
