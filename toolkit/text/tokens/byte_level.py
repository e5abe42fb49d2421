"""Byte-level BPE as the ``tokenizers`` library does it, many times as fast.

The library's own speed is 2 MB/s a core: a regular expression divides the text, then each piece is merged. Here both
are compiled, for the expressions of GPT-2, Llama 3 and Qwen. What a character is (a letter, a number, white space) is
asked of the library itself when it is first met, so that no other version of Unicode gives other tokens. Whatever else
a tokenizer may do, it does itself (`Tokens` in ``__init__``).

Source: Sennrich et al. 2016, arXiv:1508.07909; Radford et al. 2019 (GPT-2) for bytes and the expression.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from toolkit.lazy_numpy import np
from toolkit.text.kernels.compiling import Compiled
from toolkit.text.kernels.signatures import Array, Bytes, Int32s, Int64s, UInt8s, UInt32s, UInt64s

UNKNOWN, LETTER, NUMBER, SPACE, OTHER = range(5)
"""Classes of characters."""

ONE_SPACE, SPACED = range(2)
"""Kinds of division: GPT-2's, where a blank alone goes to what follows; Llama 3's, where another sign does, too."""

LONG = 256
"""Bytes of a piece; a longer one is left to the library."""

_GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
_SPACED = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|%s| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
EXPRESSIONS = {
    _GPT2: (ONE_SPACE, -1),
    _SPACED % r"\p{N}{1,3}": (SPACED, 3),
    _SPACED % r"\p{N}": (SPACED, 1),
    _SPACED % r"\p{N}+": (SPACED, -1),
}
"""The kind of division of each expression that is known, and how many digits are together at most (-1: all)."""

LIKE_S = "\u017f"
"""A letter that ``(?i:'s)`` takes for an s; texts with it are left to the library."""

_ENTRIES, _SLOTS = 1 << 18, 1 << 20
_POOL, _TOKENS = 4 << 20, 1 << 21
_POINTS = 0x110000
_EMPTY = (1 << 64) - 1
_PRIME = 0x9E3779B97F4A7C15


class Division(NamedTuple):
    """How a text is divided into pieces: the class of each code point, the kind, and how many digits are together."""

    classes: UInt8s
    kind: int
    digits: int


class Merges(NamedTuple):
    """Hash table of pairs of tokens and their merges.

    The lower rank merges first; `bytes` are the tokens of bytes.
    """

    keys: UInt64s
    ranks: Int32s
    products: Int32s
    bytes: Int32s
    mask: int
    shift: int


class PieceTable(NamedTuple):
    """Hash table of pieces and their tokens, until it is full."""

    slots: Int32s
    places: Int64s
    lengths: Int32s
    firsts: Int64s
    counts: Int32s
    pool: Bytes
    tokens: UInt32s
    used: Int64s
    mask: int
    entries: int
    room: int
    tokens_room: int


class MergeScratch(NamedTuple):
    """Scratch arrays for merging."""

    tokens: Int32s
    ranks: Int32s
    slots: Int32s


class Texts(NamedTuple):
    """Some texts: bytes one behind the other, and int64 (texts + 1) where each begins, and the end."""

    utf8: Bytes
    bounds: Int64s
    texts: int


class TokenBuffer(NamedTuple):
    """Tokens of texts, bounds (texts + 1), and the state of work.

    Attributes:
        state: int64 (5): text, byte, tokens; then where a piece ends that is left to the caller, or -1 - the code point
            that is not known; whether there is such.
    """

    tokens: UInt32s
    bounds: Int64s
    state: Int64s


_KERNEL = "toolkit.text.tokens.bpe_kernel"
_encode = Compiled(f"{_KERNEL}:encode", Texts, Division, Merges, PieceTable, MergeScratch, TokenBuffer)
_remember = Compiled(f"{_KERNEL}:remember", Texts, "int32*", PieceTable)


class ByteLevel:
    """Encodes like a tokenizer with byte-level BPE.

    Args:
        tokenizer: Tokenizer of the library.
        file: its ``tokenizer.json``, decoded.
        kind, digits: of the division.
    """

    def __init__(self, tokenizer: Any, file: Mapping[str, Any], kind: int, digits: int) -> None:
        self._tokenizer = tokenizer
        self._division = Division(np.zeros(_POINTS, np.uint8), kind, digits)
        vocabulary: Mapping[str, int] = file["model"]["vocab"]
        self._merges = _merges_of(vocabulary, file["model"]["merges"])
        self._room = MergeScratch(*(np.empty(LONG + 1, np.int32) for _ in MergeScratch._fields))
        whole = vocabulary if file["model"].get("ignore_merges") else {}
        self._pieces = _nothing_known(len(whole), sum(map(len, whole)))
        self._remember(whole)

    def encode(self, texts: Sequence[str]) -> tuple[Array, Array]:
        """Return the tokens of texts, uint32, and their bounds.

        These are int64 (texts + 1).
        """
        encoded = [text.encode() for text in texts]
        bounds = np.zeros(len(texts) + 1, np.int64)
        np.cumsum([len(item) for item in encoded], out=bounds[1:])
        utf8 = np.frombuffer(b"".join([*encoded, b"\0\0\0\0"]), np.int8)
        request = Texts(utf8, bounds, len(texts))
        answer = TokenBuffer(
            np.empty(int(bounds[-1]) + 1, np.uint32), np.zeros(len(texts) + 1, np.int64), np.zeros(5, np.int64)
        )
        while True:
            _encode(request, self._division, self._merges, self._pieces, self._room, answer)
            if not answer.state[4]:
                return answer.tokens[: answer.state[2]], answer.bounds
            self._go_on(utf8, answer)

    def _go_on(self, utf8: Array, answer: TokenBuffer) -> None:
        """Do the rest of compiled code: classify a character, or divide a long piece."""
        at, n, behind = (int(item) for item in answer.state[1:4])
        if behind < 0:
            point = -1 - behind
            self._division.classes[point] = self._class_of(chr(point))
            return
        pieces = self._tokenizer.model.tokenize(_as_letters(utf8[at:behind].tobytes()))
        answer.tokens[n : n + len(pieces)] = [piece.id for piece in pieces]
        answer.state[1], answer.state[2] = behind, n + len(pieces)

    def _class_of(self, character: str) -> int:
        """Return the class of a character, as the library divides texts."""
        if character in "\r\n":
            return SPACE
        if self._is_one(f"a{character}a"):
            return LETTER
        if self._division.kind == ONE_SPACE:
            if self._is_one(f"1{character}1"):
                return NUMBER
        elif not self._is_one(f"{character}a"):
            return NUMBER
        return OTHER if self._is_one(f"!{character}!") else SPACE

    def _is_one(self, text: str) -> bool:
        return len(self._tokenizer.pre_tokenizer.pre_tokenize_str(text)) == 1

    def _remember(self, vocabulary: Mapping[str, int]) -> None:
        """Remember all tokens: pieces that are a token are that one, whatever their merges say."""
        byte_of = {letter: byte for byte, letter in enumerate(_letters())}
        results = [
            token for token in vocabulary if 0 < len(token) <= LONG and all(letter in byte_of for letter in token)
        ]
        utf8 = bytes([byte_of[letter] for token in results for letter in token])
        bounds = np.cumsum([0, *map(len, results)], dtype=np.int64)
        numbers = np.array([vocabulary[token] for token in results], np.int32)
        _remember(Texts(np.frombuffer(utf8, np.int8), bounds, len(results)), numbers, self._pieces)


def byte_level(tokenizer: Any, file: Mapping[str, Any]) -> ByteLevel | None:
    """Return an encoder equal to a tokenizer; None if it has no byte-level BPE.

    Normalizer and added tokens are not part of it.

    Args:
        tokenizer: Tokenizer of the library.
        file: its ``tokenizer.json``, decoded.
    """
    model = file.get("model") or {}
    result = EXPRESSIONS.get(_expression_of(file.get("pre_tokenizer")) or "")
    is_plain = not any(model.get(key) for key in ("dropout", "continuing_subword_prefix", "end_of_word_suffix"))
    if result is None or model.get("type") != "BPE" or not is_plain:
        return None
    if not all(letter in model["vocab"] for letter in _letters()) or max(model["vocab"].values()) >= 1 << 31:
        return None
    return ByteLevel(tokenizer, file, *result)


def _expression_of(pre_tokenizer: Any) -> str | None:
    """Return the expression for dividing texts.

    It is None if something else does, or bytes do not become letters.
    """
    if not isinstance(pre_tokenizer, dict):
        return None
    if pre_tokenizer.get("type") == "ByteLevel":
        return _GPT2 if not pre_tokenizer.get("add_prefix_space") and pre_tokenizer.get("use_regex", True) else None
    if pre_tokenizer.get("type") != "Sequence" or len(pre_tokenizer.get("pretokenizers", ())) != 2:
        return None
    split, last = pre_tokenizer["pretokenizers"]
    if split.get("type") != "Split" or split.get("behavior") != "Isolated" or split.get("invert"):
        return None
    if last.get("type") != "ByteLevel" or last.get("add_prefix_space") or last.get("use_regex", True):
        return None
    return (split.get("pattern") or {}).get("Regex")


def _letters() -> str:
    """Return the letters for bytes 0 to 255 (GPT-2)."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    substitutes = iter(range(0x100, 0x200))
    return "".join(chr(byte) if byte in printable else chr(next(substitutes)) for byte in range(256))


def bytes_in(vocabulary: Mapping[str, int]) -> Callable[[str], bytes]:
    """Return a function from a model's token to its bytes.

    Tokens have letters for bytes, ``<0xE4>``, ``▁`` or ``##``.

    Args:
        vocabulary: Tokens of the model.
    """
    byte_of = {letter: byte for byte, letter in enumerate(_letters())}
    if all(letter in vocabulary for letter in byte_of):
        return lambda token: bytes([byte_of[letter] for letter in token if letter in byte_of])

    def spelled(token: str) -> bytes:
        if len(token) == 6 and token.startswith("<0x") and token.endswith(">"):
            return bytes([int(token[3:5], 16)])
        return token.removeprefix("##").encode()

    return spelled


def _as_letters(utf8: bytes) -> str:
    letters = _letters()
    return "".join([letters[byte] for byte in utf8])


def _merges_of(vocabulary: Mapping[str, int], listed: Sequence[Any]) -> Merges:
    """Return the table of merges, in order.

    Files have them as ``"a b"`` or ``["a", "b"]``.
    """
    bits = max(4, (2 * len(listed) + 1).bit_length())
    size = 1 << bits
    keys = np.full(size, _EMPTY, np.uint64)
    ranks, result = np.zeros(size, np.int32), np.zeros(size, np.int32)
    for rank, entry in enumerate(listed):
        left, right = entry.split(" ") if isinstance(entry, str) else entry
        key = vocabulary[left] << 32 | vocabulary[right]
        slot = (key * _PRIME & _EMPTY) >> (64 - bits)
        while int(keys[slot]) not in (_EMPTY, key):
            slot = (slot + 1) & (size - 1)
        keys[slot], ranks[slot], result[slot] = key, rank, vocabulary[left + right]  # the last of two alike, as there
    of_bytes = np.array([vocabulary[letter] for letter in _letters()], np.int32)
    return Merges(keys, ranks, result, of_bytes, size - 1, 64 - bits)


def _nothing_known(tokens: int, size: int) -> PieceTable:
    """Return an empty table for tokens and other pieces.

    It has room for so many tokens of that many bytes.
    """
    entries, pool, stored_tokens = _ENTRIES + tokens, _POOL + size, _TOKENS + tokens
    slots = max(_SLOTS, 1 << (2 * entries - 1).bit_length())
    return PieceTable(
        np.full(slots, -1, np.int32),
        np.zeros(entries, np.int64),
        np.zeros(entries, np.int32),
        np.zeros(entries, np.int64),
        np.zeros(entries, np.int32),
        np.zeros(pool, np.int8),
        np.zeros(stored_tokens, np.uint32),
        np.zeros(3, np.int64),
        slots - 1,
        entries,
        pool,
        stored_tokens,
    )
