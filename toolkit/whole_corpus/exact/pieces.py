"""The lines, paragraphs and sentences of documents as they are compared: made equal, hashed, with their places."""

import itertools
import re
import string
import sys
import unicodedata
from collections.abc import Callable, Sequence
from functools import cache
from itertools import pairwise
from typing import Any, Literal, NamedTuple, Self
from urllib.parse import urlsplit, urlunsplit

import numpy as np
import xxhash

from toolkit.errors import DataError
from toolkit.exchange.checksummed import bounds_of
from toolkit.text.batch import Batch
from toolkit.text.kernels.compiling import Compiled
from toolkit.text.kernels.signatures import Array, Bytes, Int64s
from toolkit.text.line_table import PADDING, LineTable


class Texts(NamedTuple):
    """Texts in one buffer.

    Attributes:
        utf8: int8, the buffer; 8 bytes at least are behind each text.
        starts: int64, where each begins.
        ends: int64, exclusive.
        items: Number of items.
    """

    utf8: Bytes
    starts: Int64s
    ends: Int64s
    items: int

    @classmethod
    def of(cls, texts: Sequence[bytes]) -> Self:
        """Return texts in one buffer."""
        bounds = bounds_of(np.array(list(map(len, texts)), dtype=np.int64))
        utf8 = np.frombuffer(b"".join([*texts, bytes(PADDING)]), dtype=np.int8)
        return cls(utf8, bounds[:-1], bounds[1:], len(texts))


_hashes = Compiled("toolkit.whole_corpus.exact.xxh3:hashes", Texts, "int8* uint64*")

_SECRET = bytes.fromhex(
    "b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671fcb79e64eccc0e578825ad07dccff7221"
    "b8084674f743248ee03590e6813a264c3c2852bb91c300cb88d0658b1b532ea371644897a20df94e3819ef46a9deacd8"
    "a8fa763fe39c343ff9dcbbc7c70b4f1d8a51e04bcdb45931c89f7ec9d9787364eac5ac8334d3ebc3c581a0fffa1363eb"
    "170ddd51b7f0da49d316552629d4689e2b16be587d47a1fc8ff8b8d17ad031ce45cb3a8f95160428afd7fbcabb4b407e"
)
"""The default secret of xxh3; a test holds the hashes against the library."""


@cache
def _secret() -> Array:
    return np.frombuffer(_SECRET, dtype=np.int8)


def hashes_128(texts: Texts) -> Array:
    """Return the xxh3 hashes of non-empty texts; uint64 (texts, 2), the upper half first."""
    result = np.empty((texts.items, 2), dtype=np.uint64)
    _hashes(texts, _secret(), result.reshape(-1))
    return result


def numbers_of(digests: bytes | bytearray, bits: int) -> Array:
    """Return digests of the library as numbers; uint64 (hashes, bits / 64)."""
    return np.frombuffer(digests, dtype=">u8").reshape(-1, bits // 64).astype(np.uint64)


Normalisation = Literal["none", "dolma", "ccnet", "datatrove", "unicode", "url"]


def ccnet(text: str) -> str:
    """Return a text in CCNet's normal form. Lower case, digits as 0, without punctuation, accents and controls.

    As Wenzek et al. 2020 (CCNet), section 3.1, describe it: "lower-case all characters, replace numbers by a
    placeholder (i.e. 0) and remove all Unicode punctuation and accent marks". Punctuation are the categories P, accents
    the category Mn of the decomposed text. Their code (``normalize_for_dedup``) removes controls and 33 signs beyond
    ASCII; it leaves ASCII punctuation and accents. Five of these signs are symbols, which are removed here, too, so
    that what counts as equal there does here.
    """
    text = text.lower()
    if text.isascii():
        return text.translate(_ascii())
    decomposed = unicodedata.normalize("NFD", text)
    codes = _table()[np.frombuffer(decomposed.encode("utf-32-le", "surrogatepass"), dtype="<u4")]
    remaining: bytes = codes[codes != GONE].tobytes()
    return remaining.decode("utf-32-le", "surrogatepass")


_SYMBOLS = "´∶～━►"

GONE = 0
"""Table entry of removed code points; U+0000 itself is removed."""


@cache
def _ascii() -> dict[int, str | None]:
    return {code: chr(to) if to else None for code, to in enumerate(_table()[:128].tolist())}


@cache
def _table() -> "np.ndarray[Any, np.dtype[np.uint32]]":
    """Return the replacement of each code point."""
    result = np.arange(sys.maxunicode + 1, dtype="<u4")
    for code in itertools.chain(range(0x20000), range(0xE0000, 0xE0200)):  # in between are ideographs and nothing
        category = unicodedata.category(chr(code))
        if category == "Nd":
            result[code] = ord("0")
        elif (category[0] == "P" or category in ("Mn", "Cc") or chr(code) in _SYMBOLS) and code != ord("\n"):
            result[code] = GONE
    return result


def unicode(text: str) -> str:
    """Return a text in Unicode's form for caseless matching: NFKC, case folded, white space as one space each."""
    text = text.casefold() if text.isascii() else _folded(text)
    return _SPACES.sub(" ", text)


def _folded(text: str) -> str:
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())


_SPACES = re.compile(r"[^\S\n]+")


def datatrove(text: str) -> str:
    """Return a text in datatrove's normal form. Lower case, numbers as 0, punctuation as spaces, no accents, single
    spaces.

    As datatrove 0.10 compares sentences and n-grams (``utils/text.py``, ``simplify_text`` with its defaults).
    """
    text = _NUMBERS.sub("0", text.lower()).translate(_signs())
    marked = unicodedata.normalize("NFD", " ".join(text.split()))
    return "".join(c for c in marked if unicodedata.category(c) != "Mn").strip()


_NUMBERS = re.compile(r"\d+(?:[.,،٫⎖⎗⎘]\d+)?")


@cache
def _signs() -> dict[int, str]:
    """Return the punctuation signs of CCNet and datatrove, and controls."""
    signs = string.punctuation + "—”％１〈（、━【「」，】；～“《„’∶´．–？！：«〉》）。…►»"
    return dict.fromkeys([*map(ord, signs), *range(9), *range(11, 32), *range(127, 160)], " ")


_PORTS = {"http": 80, "https": 443}


def url(text: str) -> str:
    """Return an address without scheme, ``www.``, usual port, fragment and last slash.

    Scheme and host in lower case, the rest as it is.

    Raises:
        DataError: if it is no address.
    """
    try:
        parts = urlsplit(text.strip())
        port = parts.port
    except ValueError as error:
        raise DataError(f"expected an address, got {text!r}: {error}") from None
    host = (parts.hostname or "").removeprefix("www.")
    if port is not None and port != _PORTS.get(parts.scheme):
        host += f":{port}"
    return urlunsplit(("", "", f"{host}{parts.path}".rstrip("/"), parts.query, ""))


def as_it_is(text: str) -> str:
    """Return the text."""
    return text


FUNCTIONS: dict[Normalisation, Callable[[str], str]] = {
    "none": as_it_is,
    "dolma": as_it_is,
    "ccnet": ccnet,
    "datatrove": datatrove,
    "unicode": unicode,
    "url": url,
}


def whole(name: Normalisation, text: str) -> str:
    """Return a whole text as it is compared; nothing is left of one that is not."""
    result = FUNCTIONS[name](text)
    if name == "unicode":
        return " ".join(result.split())
    if name == "dolma":  # its `skip_empty`
        return result if result.strip() else ""
    return result.strip() if name == "ccnet" else result


Unit = Literal["document", "line", "paragraph", "sentence"]

_strip = Compiled("toolkit.whole_corpus.exact.exact_kernel:strip", "int8* int64 int64* int64*")


class Pieces(NamedTuple):
    """The pieces of some documents, in order.

    Attributes:
        content: Text of the compared pieces, in UTF-8.
        compared: bool, whether a piece is.
        sizes: int64, code points from the start of each to that of the next; the last ends with the text.
        counts: int64, the pieces of each document.
        before: int64, code points before the first, of each document.
    """

    content: Texts
    compared: Array
    sizes: Array
    counts: Array
    before: Array

    def among(self, chosen: Array) -> "Pieces":
        """Return the pieces with only the chosen ones compared; bool, of all."""
        among_compared = chosen[self.compared]
        starts, ends = self.content.starts[among_compared], self.content.ends[among_compared]
        return self._replace(
            content=Texts(self.content.utf8, starts, ends, len(starts)), compared=self.compared & chosen
        )

    def texts(self) -> list[memoryview]:
        """Return the texts of the compared pieces."""
        utf8 = memoryview(self.content.utf8)  # type: ignore[arg-type]  # numpy's types do not say so
        bounds = zip(self.content.starts.tolist(), self.content.ends.tolist(), strict=True)
        return [utf8[begin:end] for begin, end in bounds]


class _Lines(NamedTuple):
    """Lines of documents: those of the text, and what is compared of them.

    Attributes:
        read: those of the text.
        sizes: int64, code points with the line's end.
        utf8: int8, in which `starts` and `ends` are, and `PADDING` behind.
        starts: int64, where what is compared begins.
        ends: int64, where it ends; nothing is between them of a line that is not compared.
    """

    read: LineTable
    sizes: Array
    utf8: Array
    starts: Array
    ends: Array


def _lines(documents: Batch, name: Normalisation) -> _Lines:
    read, open_ended = documents.lines, documents.open_ended
    sizes = read.chars + np.append(read.starts[1:], len(read.utf8) - PADDING) - read.ends
    sizes[read.bounds[1:][open_ended] - 1] -= 1
    if name == "none":
        return _Lines(read, sizes, read.utf8, read.starts, read.ends)
    if name == "dolma":  # its `skip_empty`
        starts, ends = _stripped(read)
        return _Lines(read, sizes, read.utf8, read.starts, np.where(starts == ends, read.starts, read.ends))
    function = FUNCTIONS[name]
    same = [
        function(document.text) + "\n" * is_open
        for document, is_open in zip(documents, open_ended.tolist(), strict=True)
    ]
    table = LineTable.of(same)
    return _Lines(read, sizes, table.utf8, *_stripped(table))


def _stripped(table: LineTable) -> tuple[Array, Array]:
    starts, ends = table.starts.copy(), table.ends.copy()
    _strip(table.utf8, len(starts), starts, ends)
    return starts, ends


def lines_of(documents: Batch, name: Normalisation) -> Pieces:
    """Return the lines of documents."""
    lines = _lines(documents, name)
    compared = lines.ends > lines.starts
    starts, ends = lines.starts[compared], lines.ends[compared]
    counts = np.diff(lines.read.bounds)
    result = Texts(lines.utf8, starts, ends, len(starts))
    return Pieces(result, compared, lines.sizes, counts, np.zeros(len(counts), dtype=np.int64))


def paragraphs_of(documents: Batch, name: Normalisation) -> Pieces:
    """Return the paragraphs of documents: lines between those that are blank, which have white space at most.

    Blank lines belong to the paragraph before them; those before the first to none.
    """
    lines = _lines(documents, name)
    bounds, blank = lines.read.bounds, np.equal(*_stripped(lines.read))
    begins_document = np.zeros(len(blank) + 1, dtype=bool)
    begins_document[bounds] = True
    after_blank = np.append(True, blank)[:-1] | begins_document[:-1]
    firsts = np.flatnonzero(~blank & after_blank)
    before_blank = np.append(blank[1:], True) | begins_document[1:]
    behind = np.flatnonzero(~blank & before_blank) + 1
    paragraphs = np.searchsorted(firsts, bounds)
    counts = np.diff(paragraphs)
    chars = bounds_of(lines.sizes)
    begins, ends = chars[firsts], chars[bounds[1:]]
    sizes = np.append(begins[1:], 0) - begins
    some = counts > 0
    last = paragraphs[1:][some] - 1
    sizes[last] = ends[some] - begins[last]
    before = ends - chars[bounds[:-1]]
    before[some] = begins[paragraphs[:-1][some]] - chars[bounds[:-1]][some]
    has_text = bounds_of(lines.ends > lines.starts)
    compared = has_text[behind] > has_text[firsts]
    apart = bounds_of(lines.starts[1:] != lines.ends[:-1] + 1)
    firsts, behind = firsts[compared], behind[compared]
    result = _joined(lines, firsts, behind, apart[behind - 1] > apart[firsts])
    return Pieces(result, compared, sizes, counts, before)


def _joined(lines: _Lines, firsts: Array, behind: Array, cut: Array) -> Texts:
    """Return lines together; those that do not stand one behind the other are put so, behind the buffer."""
    starts, ends = lines.starts[firsts], lines.ends[behind - 1]
    if not cut.any():
        return Texts(lines.utf8, starts, ends, len(starts))
    utf8 = lines.utf8.tobytes()
    texts = []
    for first, end in zip(firsts[cut].tolist(), behind[cut].tolist(), strict=True):
        bounds = zip(lines.starts[first:end].tolist(), lines.ends[first:end].tolist(), strict=True)
        texts.append(b"\n".join([utf8[begin:end_] for begin, end_ in bounds]))
    places = bounds_of(np.array(list(map(len, texts)), dtype=np.int64)) + len(utf8)
    starts[cut], ends[cut] = places[:-1], places[1:]
    whole = b"".join([utf8, *texts, bytes(PADDING)])
    return Texts(np.frombuffer(whole, dtype=np.int8), starts, ends, len(starts))


def sentences_of(documents: Batch, name: Normalisation, length: int) -> Pieces:
    """Return the sentences of documents; of each, what is compared is it with those after it, so many in all.

    Sentences are those of spaCy's English pipeline, white space before them included. The last ones of a document begin
    nothing that is compared.
    """
    from toolkit.text.languages.spacy_words import spacy_sentence_ends  # which few sets need

    function = FUNCTIONS[name]
    texts, compared, sizes, counts = list[bytes](), list[bool](), list[int](), list[int]()
    for document in documents:
        text = document.text
        ends = spacy_sentence_ends(text, "en")
        ends[-1:] = [len(text)] if ends else []
        sentences = [text[begin:end].strip() for begin, end in pairwise([0, *ends])]
        normal = [function(sentence) for sentence in sentences if sentence]
        for i in range(len(sentences)):
            span = " ".join(normal[i : i + length]) if i + length <= len(normal) else ""
            compared.append(bool(span.strip()))
            if compared[-1]:
                texts.append(span.encode())
        sizes += map(int, np.diff([0, *ends]))
        counts.append(len(ends))
    columns = np.array(compared, dtype=bool), np.array(sizes, dtype=np.int64), np.array(counts, dtype=np.int64)
    return Pieces(Texts.of(texts), *columns, np.zeros(len(counts), dtype=np.int64))


def documents_of(documents: Batch, texts: Sequence[bytes] | None) -> Pieces:
    """Return whole documents as pieces; `texts` replace those of the documents."""
    decoded, counts = documents.decoded, np.ones(len(documents), dtype=np.int64)
    if texts is None and decoded is not None:
        starts, ends = decoded.places.T.copy()
        content = Texts(decoded.lines.utf8, starts, ends, len(counts))
    else:
        content = Texts.of(documents.utf8 if texts is None else texts)
    whole = Pieces(content, counts > 0, counts, counts, counts)
    return whole.among(content.ends > content.starts)


def pieces_of(documents: Batch, unit: Unit, name: Normalisation, length: int = 1) -> Pieces:
    """Return the lines, paragraphs or sentences of documents; of sentences, so many are compared together."""
    if unit == "sentence":
        return sentences_of(documents, name, length)
    return (lines_of if unit == "line" else paragraphs_of)(documents, name)


def hasher(bits: int) -> Callable[..., bytes]:
    """Return a function to hash a text: of so many bits, with a seed, if one is given."""
    return xxhash.xxh3_128_digest if bits == 128 else xxhash.xxh3_64_digest
