"""The contract suite of input formats finds the usual mistakes, and says what to do."""

import re
import uuid
from collections.abc import Iterator, Sequence

import msgspec
import pytest

from toolkit import Draft, Input, Reader
from toolkit.testing import check_reader

CONTENT = b"a,one text\nb,another\nc,last\n"
TEXTS = ["one text", "another", "last"]


class Sound(Reader):
    """An id and a text in a line, with a comma between them."""

    def read(self, source: Input) -> Iterator[Draft]:
        with source.lines() as lines:
            yield from source.items(lines, self._draft)

    def _draft(self, line: bytes, number: int) -> Draft:
        id, comma, text = line.decode().partition(",")
        if not comma:
            raise ValueError("expected a comma, got none")
        return Draft(text=text, id=id, number=number)


class LosesLast(Sound):
    """Lines that end in a line feed."""

    def read(self, source: Input) -> Iterator[Draft]:
        drafts = list(super().read(source))
        yield from drafts[:-1]


class NeedsLineFeed(Sound):
    """Lines that end in a line feed; what is behind the last is not read."""

    def read(self, source: Input) -> Iterator[Draft]:
        with source.stream() as stream:
            for number, line in enumerate(stream.read().split(b"\n")[:-1], 1):
                yield self._draft(line, number)


class RandomIds(Sound):
    """Lines with new ids."""

    def read(self, source: Input) -> Iterator[Draft]:
        for draft in super().read(source):
            yield msgspec.structs.replace(draft, id=str(uuid.uuid4()))


class IdsOfHashes(Sound):
    """Lines with ids that other processes do not give."""

    def read(self, source: Input) -> Iterator[Draft]:
        for draft in super().read(source):
            yield msgspec.structs.replace(draft, id=str(hash(draft.text)))


class IdsOfPaths(Sound):
    """Lines with ids of the path."""

    def read(self, source: Input) -> Iterator[Draft]:
        for draft in super().read(source):
            yield msgspec.structs.replace(draft, id=f"{source.path}:{draft.number}")


class SameId(Sound):
    """Lines with one id."""

    def read(self, source: Input) -> Iterator[Draft]:
        for draft in super().read(source):
            yield msgspec.structs.replace(draft, id="a")


class Unnumbered(Sound):
    """Lines without a number."""

    def read(self, source: Input) -> Iterator[Draft]:
        for draft in super().read(source):
            yield msgspec.structs.replace(draft, number=0)


class OpensPath(Sound):
    """Lines of the file at the path."""

    def read(self, source: Input) -> Iterator[Draft]:
        with open(source.path, "rb") as stream:
            for number, line in enumerate(stream, 1):
                yield self._draft(line.rstrip(b"\n"), number)


class Raises(Sound):
    """Lines whose faults are errors of Python."""

    def read(self, source: Input) -> Iterator[Draft]:
        with source.lines() as lines:
            for line in lines:
                yield self._draft(bytes(line), lines.number)


class OtherBatches(Sound):
    """Lines, in batches in which they are the other way round."""

    def read_batches(self, source: Input) -> Iterator[Sequence[Draft]]:
        yield list(self.read(source))[::-1]


class Attributes(Sound):
    """Lines with an attribute that is not of its type."""

    TYPES = {"length": int}

    def attribute_sets(self) -> Sequence[str]:
        return ("carried-0",)

    def read(self, source: Input) -> Iterator[Draft]:
        for draft in super().read(source):
            yield msgspec.structs.replace(draft, attributes={"carried-0": {"length": msgspec.Raw(b'"long"')}})


class Undeclared(Sound):
    """Lines with an attribute that is not declared."""

    def read(self, source: Input) -> Iterator[Draft]:
        for draft in super().read(source):
            yield msgspec.structs.replace(draft, attributes={"carried-0": {"length": msgspec.Raw(b"1")}})


class NoText(Sound):
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
    check_reader(Sound, CONTENT, TEXTS)
    check_reader(Sound(), CONTENT, TEXTS, new_process=False)


def test_a_file_with_one_document_shows_too_little() -> None:
    with pytest.raises(AssertionError, match="expected a file with at least two documents, got 1"):
        check_reader(Sound, b"a,one\n", ["one"])
