"""Tokens by any ``tokenizer.json``, in the files of training programs.

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
from toolkit.text import IDS, TRACE, Array, Origin, Tokenizer, TraceFile, TraceWriter

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
    pieces of documents and padding begin, and where the file ends. ``FILE.trace`` says which document each token is of,
    and which stretch of its text it stands for; ``FILE.ids`` has the ids for it (see `toolkit trace`). Needs the
    package tokenizers: `tagmix[tokens]`.

    Attributes:
        tokenizer: a file `tokenizer.json`: path, URL, or a known name
        eod: the token at the end of each document, as the tokenizer calls it; null for none
        files: the form of the files
        bos: a token at the beginning of each document; null for none
        literal: text that looks like a special token (`<|endoftext|>`) is text; the library's own default takes it for
            the token
        strip: texts are tokenized without white space around them; those of white space alone then have no tokens;
            null: only with `files: dolma`, as Dolma does
        sequence_length: tokens of a sequence; null: documents
        packing: the way from documents to sequences: `cut` where one is full, and the last of a file is padded; `fit`
            keeps documents whole and pads each
        pad: the token that fills sequences; null: `eod`
        ids: also write ``FILE.ids``; without it, `toolkit trace` reads the documents
        layout: `one` output, divided into parts; `inputs`: a file for each shard, with its name
    """

    VERSION = "2"
    CONCATENATES = False
    HAS_TEXT = False

    tokenizer: Model
    eod: str | None
    files: Literal["pbin", "dolma", "megatron", "numpy"]
    bos: str | None = None
    literal: bool = False
    strip: bool | None = None
    sequence_length: Annotated[int, msgspec.Meta(ge=2)] | None = None
    packing: Literal["cut", "fit"] = "cut"
    pad: str | None = None
    ids: bool = True
    by: By = None
    name: Name = "tokens"
    layout: Literal["one", "inputs"] = "one"

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
        in_words = ["id"] if self.files == "dolma" and not self.sequence_length else []
        return ["text", *(("id", "source") if self.ids else in_words)]

    def encode(self, document: Document, mixed: Mixed) -> Iterable[tuple[str, bytes]]:
        return self.encode_batch(MixedBatch([document], [mixed]))[0]

    def encode_batch(self, batch: MixedBatch) -> list[list[tuple[str, bytes]]]:
        texts: list[str] = []
        odds: dict[int, list[tuple[int, int]]] = {}
        numbers: list[int] = []  # of the text of each document: copies of one, which follow one another, share it
        before = None
        for document in batch.documents:
            if document is not before:
                texts.append(document.text.strip() if self._strips else document.text)
            numbers.append(len(texts) - 1)
            before = document
        tokens, bounds = self._loaded.encode(texts)
        encoded = tokens.astype(f"<u{self._width}")
        results: list[list[tuple[str, bytes]]] = []
        for number, (document, mixed) in zip(numbers, batch, strict=True):
            own = encoded[bounds[number] : bounds[number + 1]]
            results.append([])
            if len(own):
                if number not in odds:
                    odds[number] = self._odds(texts[number], tokens[bounds[number] : bounds[number + 1]])
                line = self._line(document, mixed, own, odds[number])
                batch.counts["tokens"] += _HEAD.unpack_from(line)[0] // self._width
                results[-1].append((self.label_in(mixed), line))
        return results

    def _odds(self, text: str, tokens: Array) -> list[tuple[int, int]]:
        """Return `Tokenizer.odds` of tokens with the one before them. That one stands for nothing."""
        odds = self._loaded.odds(text, tokens)
        bos = self._number_of("bos")
        if bos is None:
            return odds
        own = -int(self._loaded.widths[0][bos]) + sum(by for at, by in odds if at == 0)
        return [(1, own), *((at + 1, by) for at, by in odds if at)]

    def _line(self, document: Document, mixed: Mixed, tokens: Array, odds: list[tuple[int, int]]) -> bytes:
        first, last = self._around
        ends = tokens[len(tokens) - 1 :].tobytes() == last
        data = first + tokens.tobytes() + (b"" if ends else last)
        id, source = (document.id, document.source) if self.ids else ("", "")
        shard, copy = mixed.origin or mixed.shard, max(1, mixed.copy)
        text = document.text
        start, chars = (len(text) - len(text.lstrip()), len(text.rstrip())) if self._strips else (0, len(text))
        origin = Origin(id, source, shard, mixed.row, copy, chars, list(mixed.edits), odds, start)
        name = f"{document.id}#{mixed.copy}" if mixed.copy > 1 else document.id
        names = (name, mixed.path) if self.files == "dolma" else ("", "")  # of others the bytes depend on no folder
        words = msgspec.json.encode((*names, origin))
        return b"".join([_HEAD.pack(len(data), len(words), mixed.row), words, data, b"\n"])

    def assemble_files(self, pieces: Iterator[bytes], files: Sequence[IO[bytes]]) -> None:
        files, ids = (files[:-1], files[-1]) if self.ids else (files, None)
        *files, out = files
        head = {"width": self._width, "offset": self._kind.OFFSET, "sequence": self.sequence_length}
        trace = TraceWriter(out, ids, head, self._loaded)
        read = (entry for piece in pieces for entry in _entries(piece))
        bounds = array("q", [0])
        if self.sequence_length is None:
            self._kind.write(self._traced(read, trace, bounds), self._width, *files)
        else:
            size, starts = self.sequence_length * self._width, array("q")
            if self.packing == "cut":
                packed = cut(self._traced(read, trace, bounds), size, self._padding, starts)
            else:
                packed = fit(read, size, self._padding, starts, trace)
            self._kind.write(packed, self._width, *files[:-1])
            write_offsets(starts, files[-1])
            bounds = starts
        trace.close(bounds[-1])

    def _traced(self, entries: Iterable[Entry], trace: TraceWriter, bounds: "array[int]") -> Iterator[Entry]:
        """Yield consecutive documents of a file, the pieces of its trace."""
        for entry in entries:
            count = len(entry.tokens) // self._width
            assert entry.origin is not None
            trace.add(bounds[0], count, entry.origin, entry.origin.start)
            bounds[0] += count
            yield entry

    def beside(self, path: str) -> Sequence[str]:
        stem = path.removesuffix(self._kind.SUFFIX)
        beside = [stem + suffix for suffix in (*self._kind.BESIDE, *([_BOUNDS] if self.sequence_length else []))]
        return [*beside, path + TRACE, *([path + IDS] if self.ids else [])]

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
            trace = TraceFile(path)
            for number in range(len(trace)):
                trace.block(number)
            if self.sequence_length is None and documents is not None and entries != documents:
                yield None, f"expected {documents:,} documents by the manifest, got {entries:,}"
            bounds = path.removesuffix(self._kind.SUFFIX) + _BOUNDS
            if self.sequence_length and read_offsets(bounds)[-1] != entries * self.sequence_length:
                yield None, f"expected {entries:,} sequences of {self.sequence_length} tokens, got others"
        except DataError as error:
            yield error.line, f"{error.message} ({error.path})" if error.path != path else error.message

    @property
    def _strips(self) -> bool:
        return self.files == "dolma" if self.strip is None else self.strip

    @property
    def _kind(self) -> type[TokenFiles]:
        return KINDS[self.files]

    @functools.cached_property
    def _loaded(self) -> Tokenizer:
        return Tokenizer(self.tokenizer, literal=self.literal)

    @functools.cached_property
    def _width(self) -> int:
        return self._kind.width(self._loaded.size)

    @functools.cached_property
    def _around(self) -> tuple[bytes, bytes]:
        """Return the bytes before and behind the tokens of a document."""
        first, last = (self._bytes_of(option) for option in ("bos", "eod"))
        return first, last

    @property
    def _padding(self) -> bytes:
        return self._bytes_of("pad") or self._bytes_of("eod")

    def _bytes_of(self, option: str) -> bytes:
        number = self._number_of(option)
        return b"" if number is None else number.to_bytes(self._width, "little")

    def _number_of(self, option: str) -> int | None:
        token, tokenizer = getattr(self, option), self._loaded  # a missing file is an error whatever the option is
        if token is None:
            return None
        number = tokenizer.number_of(token)
        if number is None or (tokenizer.added_tokens and token not in tokenizer.added_tokens):
            names = ", ".join(tokenizer.added_tokens[:8]) or "none"
            raise ConfigError(f"{option}: expected an added token of {self.tokenizer}, such as {names}; got {token!r}")
        return number


def _entries(piece: bytes) -> Iterator[Entry]:
    at = 0
    while at < len(piece):
        size, words, row = _HEAD.unpack_from(piece, at)
        begin = at + _HEAD.size + words
        id, source, origin = msgspec.json.decode(piece[at + _HEAD.size : begin], type=tuple[str, str, Origin])
        yield Entry(piece[begin : begin + size], id, source, row, origin)
        at = begin + size + 1
