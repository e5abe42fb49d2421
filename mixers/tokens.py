"""Tokens by any ``tokenizer.json``, in the files that training programs read.

Source: Hugging Face ``tokenizers``; for the files see `mixers._token_files`, for sequences `mixers._packing`.
"""

import functools
import struct
from array import array
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import IO, Annotated, Literal

import msgspec

from mixers._options import By, Labelling, Name
from mixers._packing import cut, fit
from mixers._token_files import HELD, KINDS, Entry, TokenFiles, read_offsets, write_offsets
from toolkit import ConfigError, DataError, Document, Mixed, MixedBatch, Model, Writer
from toolkit.text import Array, Tokenizer

_HEAD = struct.Struct("<QIQ")  # bytes of the tokens, of the words, and the row
_BOUNDS = ".documents.npy"


class Tokens(Labelling, Writer):
    """The tokens of each document, then `eod`: the tokenizer's own, one document after the other.

    - ``files: pbin``: ``.pbin`` of Modalities
    - ``files: dolma``: ``.npy`` (bare tokens) and ``.csv.gz`` (start, end, id, src, loc) of Dolma; src is the path of
      the documents file
    - ``files: megatron``: ``.bin`` and ``.idx`` of Megatron
    - ``files: numpy``: ``.npy`` for ``numpy.load(…, mmap_mode="r")`` and ``.index.npy``, where each document begins

    Tokens are uint16, or uint32 if the tokenizer has more than 65,536 (in Megatron's files int32; in Modalities' files
    uint8 if there are at most 256). A document without tokens is counted, and not written. With `sequence_length`, each
    entry is a sequence of this many tokens. ``.documents.npy`` (int64) beside each file then says where documents,
    pieces of documents and padding begin, and where the file ends. Needs the package tokenizers: `tagmix[tokens]`.
    """

    CONCATENATES = False
    HAS_TEXT = False

    tokenizer: Annotated[Model, msgspec.Meta(description="a file `tokenizer.json`: path, URL, or a known name")]
    eod: Annotated[
        str | None,
        msgspec.Meta(description="the token at the end of each document, as the tokenizer calls it; null for none"),
    ]
    files: Annotated[Literal["pbin", "dolma", "megatron", "numpy"], msgspec.Meta(description="what is written")]
    bos: Annotated[str | None, msgspec.Meta(description="a token at the beginning of each document; null for none")] = (
        None
    )
    literal: Annotated[
        bool,
        msgspec.Meta(
            description="whether text that looks like a special token (`<|endoftext|>`) is text; the library's own "
            "default takes it for the token"
        ),
    ] = False
    strip: Annotated[
        bool | None,
        msgspec.Meta(
            description="whether texts are tokenized without white space around them; those of white space alone "
            "then have no tokens; null: only with `files: dolma`, as Dolma does"
        ),
    ] = None
    sequence_length: Annotated[
        Annotated[int, msgspec.Meta(ge=2)] | None, msgspec.Meta(description="tokens of a sequence; null: documents")
    ] = None
    packing: Annotated[
        Literal["cut", "fit"],
        msgspec.Meta(
            description="how documents become sequences: `cut` where one is full, and the last of a file is padded; "
            "`fit` keeps documents whole and pads each"
        ),
    ] = "cut"
    pad: Annotated[str | None, msgspec.Meta(description="the token that fills sequences; null: `eod`")] = None
    by: By = None
    name: Name = "tokens"
    layout: Annotated[
        Literal["one", "inputs"],
        msgspec.Meta(description="`one` output, divided into parts; `inputs`: a file for each shard, with its name"),
    ] = "one"

    def check_installed(self) -> None:
        for option in ("eod", "bos", "pad"):
            self._number_of(option)
        if self.sequence_length and self._number_of("pad") is None and self._number_of("eod") is None:
            raise ConfigError("sequence_length: expected a token to fill sequences with, got none; give `pad` or `eod`")
        if self.layout == "inputs" and self.by:
            raise ConfigError("by: expected none with `layout: inputs`: files are named after shards")

    def on_disk(self, stored: int, content: int) -> tuple[int, int]:
        return content, content if KINDS[self.files].HOLDS and content > HELD else 0

    def carries(self, fields: Collection[str]) -> Collection[str]:
        return ["text", *(["id"] if self.files == "dolma" and not self.sequence_length else [])]

    def encode(self, document: Document, mixed: Mixed) -> Iterable[tuple[str, bytes]]:
        return self.encode_batch(MixedBatch([document], [mixed]))[0]

    def encode_batch(self, batch: MixedBatch) -> list[list[tuple[str, bytes]]]:
        strip = self.files == "dolma" if self.strip is None else self.strip
        texts: list[str] = []
        numbers: list[int] = []  # of the text of each document: copies of one, which follow one another, share it
        before = None
        for document in batch.documents:
            if document is not before:
                texts.append(document.text.strip() if strip else document.text)
            numbers.append(len(texts) - 1)
            before = document
        tokens, bounds = self._loaded.encode(texts)
        encoded = tokens.astype(self._dtype)
        found: list[list[tuple[str, bytes]]] = []
        for number, (document, mixed) in zip(numbers, batch, strict=True):
            own = encoded[bounds[number] : bounds[number + 1]]
            if len(own):
                line = self._line(document, mixed, own)
                batch.counts["tokens"] += _HEAD.unpack_from(line)[0] // self._width
                found.append([(self.label_in(mixed), line)])
            else:
                found.append([])
        return found

    def _line(self, document: Document, mixed: Mixed, tokens: Array) -> bytes:
        first, last = self._around
        ends = tokens[len(tokens) - 1 :].tobytes() == last
        data = first + tokens.tobytes() + (b"" if ends else last)
        words = b""
        if self.files == "dolma":
            id = f"{document.id}#{mixed.copy}" if mixed.copy > 1 else document.id
            words = msgspec.json.encode((id, mixed.path))
        return b"".join([_HEAD.pack(len(data), len(words), mixed.row), words, data, b"\n"])

    def assemble_files(self, pieces: Iterator[bytes], files: Sequence[IO[bytes]]) -> None:
        entries = (entry for piece in pieces for entry in _entries(piece))
        if self.sequence_length is None:
            self._kind.write(entries, self._width, *files)
            return
        bounds = array("q")
        size = self.sequence_length * self._width
        pack = cut if self.packing == "cut" else fit
        self._kind.write(pack(entries, size, self._padding, bounds), self._width, *files[:-1])
        write_offsets(bounds, files[-1])

    def beside(self, path: str) -> Sequence[str]:
        stem = path.removesuffix(self._kind.SUFFIX)
        return [stem + suffix for suffix in (*self._kind.BESIDE, *([_BOUNDS] if self.sequence_length else []))]

    def is_divided(self) -> bool:
        return self.layout == "one"

    def is_per_shard(self) -> bool:
        return self.layout == "inputs"

    def part(self, label: str, number: int, parts: int, compression: str) -> str:
        return super().part(label, number, parts, compression).removesuffix(self.SUFFIX) + self._kind.SUFFIX

    def stem(self, label: str) -> str:
        return super().stem(label) if self.by else label

    def checksums(self, label: str) -> str:
        return f"{label if self.layout == 'one' else self.name}_sha256.txt"

    def check_file(
        self, path: str, documents: int | None = None, first: int | None = None
    ) -> Iterator[tuple[int | None, str]]:
        beside = self.beside(path)
        try:
            entries = self._kind.check(path, beside)
            if self.sequence_length is None and documents is not None and entries != documents:
                yield None, f"expected {documents:,} documents by the manifest, got {entries:,}"
            if self.sequence_length is not None and read_offsets(beside[-1])[-1] != entries * self.sequence_length:
                yield None, f"expected {entries:,} sequences of {self.sequence_length} tokens, got others"
        except DataError as error:
            yield error.line, f"{error.message} ({error.path})" if error.path != path else error.message

    @property
    def _kind(self) -> type[TokenFiles]:
        return KINDS[self.files]

    @functools.cached_property
    def _loaded(self) -> Tokenizer:
        return Tokenizer(self.tokenizer, literal=self.literal)

    @functools.cached_property
    def _width(self) -> int:
        return self._kind.width(self._loaded.size)

    @property
    def _dtype(self) -> str:
        return f"<u{self._width}"

    @functools.cached_property
    def _around(self) -> tuple[bytes, bytes]:
        """Return the bytes before and behind the tokens of a document."""
        numbers = (self._number_of(option) for option in ("bos", "eod"))
        first, last = (b"" if n is None else n.to_bytes(self._width, "little") for n in numbers)
        return first, last

    @property
    def _padding(self) -> bytes:
        pad = self._number_of("pad")
        number = self._number_of("eod") if pad is None else pad
        assert number is not None  # see check_installed
        return number.to_bytes(self._width, "little")

    def _number_of(self, option: str) -> int | None:
        token = getattr(self, option)
        if token is None:
            return None
        found = self._loaded.number_of(token)
        if found is None or (self._loaded.added_tokens and token not in self._loaded.added_tokens):
            known = ", ".join(self._loaded.added_tokens[:8]) or "none"
            raise ConfigError(f"{option}: expected an added token of {self.tokenizer}, such as {known}; got {token!r}")
        return found


def _entries(piece: bytes) -> Iterator[Entry]:
    at = 0
    while at < len(piece):
        size, words, row = _HEAD.unpack_from(piece, at)
        begin = at + _HEAD.size + words
        id, source = msgspec.json.decode(piece[at + _HEAD.size : begin]) if words else ("", "")
        yield Entry(piece[begin : begin + size], id, source, row)
        at = begin + size + 1
