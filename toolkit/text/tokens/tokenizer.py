"""A tokenizer of a file ``tokenizer.json``: compiled code for what is byte-level BPE, the library for all else."""

import functools
import os
import re
import unicodedata
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from toolkit.distribution import missing_extra
from toolkit.errors import ConfigError, DataError
from toolkit.lazy_numpy import np
from toolkit.storage.models import resolve
from toolkit.text.kernels.signatures import Array
from toolkit.text.tokens import byte_level

BATCH = 1 << 20
"""Code points that are encoded in one go: the library needs some 100 bytes a token."""


_FLAGS = ("single_word", "lstrip", "rstrip")
"""Of added tokens: where they are found, and what goes with them."""


class Tokenizer:
    """Encodes texts as the library does, without truncation and padding.

    Text that looks like an added token (``<|endoftext|>``) is that token, as the library has it, unless `literal` is
    true.

    Args:
        model: a file ``tokenizer.json``, as `toolkit.storage.models.resolve` takes it.
        special: True if the tokens are given that the tokenizer puts around a text.
        literal: True if text that looks like an added special token is taken for text.

    Attributes:
        library: the tokenizer of the library.
        size: tokens that it has, added ones among them.
    """

    def __init__(self, model: str, *, special: bool = False, literal: bool = False) -> None:
        self.library = load_tokenizer(model)
        self.library.encode_special_tokens = literal
        self.size: int = max(self.library.get_vocab(with_added_tokens=True).values(), default=-1) + 1
        self._special, self._model = special, model
        file = _read(resolve(model))
        of_file = [item for item in file.get("added_tokens") or () if item.get("content")]
        added = [item for item in of_file if not (literal and item.get("special"))]
        self._added = _by_beginning([item["content"] for item in added])
        normalizer = (file.get("normalizer") or {}).get("type")
        self._composed = normalizer == "NFC"
        is_plain = len(added) == len(of_file) and not any(item.get(flag) for item in added for flag in _FLAGS)
        self._dividing = _dividing(added) if is_plain else None
        is_supported = normalizer in (None, "NFC") and not special
        self._fast = byte_level.byte_level(self.library, file) if is_supported else None

    @property
    def is_compiled(self) -> bool:
        """Return True if compiled code does most of the work."""
        return self._fast is not None

    def number_of(self, token: str) -> int | None:
        """Return the number of a token; None if there is no such one."""
        result: int | None = self.library.token_to_id(token)
        return result

    @functools.cached_property
    def added_tokens(self) -> list[str]:
        """Return the added tokens of the file, by number.

        As a rule they are special ones.
        """
        added = self.library.get_added_tokens_decoder()
        return [added[number].content for number in sorted(added)]

    @functools.cached_property
    def widths(self) -> tuple[Array, Array]:
        """Return the width of each token in code points, int32.

        Return also a mask of the tokens that begin inside a code point, bool.
        """
        counts, inner = np.zeros(self.size, np.int32), np.zeros(self.size, bool)
        vocabulary = self.library.get_vocab(with_added_tokens=False)
        bytes_of = byte_level.bytes_in(vocabulary)
        added = {number: token.content for number, token in self.library.get_added_tokens_decoder().items()}
        for token, number in {**vocabulary, **{content: number for number, content in added.items()}}.items():
            text = token.encode() if number in added else bytes_of(token)
            counts[number] = sum(byte & 0xC0 != 0x80 for byte in text)
            inner[number] = text[:1] != b"" and text[0] & 0xC0 == 0x80
        return counts, inner

    def odds(self, text: str, tokens: Array) -> list[tuple[int, int]]:
        """Return the tokens with an unusual width, and the difference.

        Before them the text moves by other than their `widths`.

        Args:
            text: Text that was encoded.
            tokens: Its tokens.
        """
        counts, inner = self.widths
        result = counts[tokens]
        if self._fast is not None and int(result.sum()) == len(text):
            return []
        encoded = self._with_places.encode(text, add_special_tokens=self._special)
        starts = np.array([start for start, _ in encoded.offsets], np.int64)
        if encoded.ids != tokens.tolist():
            raise DataError("expected the same tokens of a text again, got others")
        moved = starts + inner[tokens] - np.concatenate([[0], np.cumsum(result)[:-1]])
        by = np.diff(moved, prepend=0)
        return [(int(at), int(by[at])) for at in np.flatnonzero(by)]

    @functools.cached_property
    def _with_places(self) -> Any:
        """Return the library's tokenizer with white space in its offsets."""
        from tokenizers import processors

        library = load_tokenizer(self._model)
        library.encode_special_tokens = self.library.encode_special_tokens
        if not self._special:
            library.post_processor = processors.Sequence([])
        return library

    def encode(self, texts: Sequence[str]) -> tuple[Array, Array]:
        """Return the tokens of texts, uint32, and their bounds.

        These are int64 (texts + 1).
        """
        if self._fast is None:
            return _joined(self._by_library(texts))
        with_added = {i for i, text in enumerate(texts) if self._has_added(text)}
        unusual = {i for i, text in enumerate(texts) if i not in with_added and self._is_left(text)}
        divided = {i for i in with_added if self._is_divided(texts[i])}
        if not with_added and not unusual:
            return self._fast.encode(texts)
        remaining = sorted(unusual | with_added - divided)
        tokens, bounds = self._fast.encode(["" if i in with_added or i in unusual else t for i, t in enumerate(texts)])
        results = np.split(tokens, bounds[1:-1])
        for i, of_text in zip(remaining, self._by_library([texts[i] for i in remaining]), strict=True):
            results[i] = of_text
        for i in divided:
            results[i] = self._in_pieces(texts[i])
        return _joined(results)

    def counts(self, texts: Sequence[str]) -> list[int]:
        """Return how many tokens each text has."""
        results: list[int] = np.diff(self.encode(texts)[1]).tolist()
        return results

    def decode(self, tokens: Sequence[int]) -> str:
        """Return the text of tokens, special ones among them."""
        text: str = self.library.decode(list(tokens), skip_special_tokens=False)
        return text

    def _by_library(self, texts: Sequence[str]) -> list[Array]:
        results: list[Array] = []
        pending: list[str] = []
        chars = 0
        for i, text in enumerate(texts):
            pending.append(text)
            chars += len(text)
            if chars >= BATCH or i == len(texts) - 1:
                encoded = self.library.encode_batch_fast(pending, add_special_tokens=self._special)
                results += [np.array(item.ids, np.uint32) for item in encoded]
                pending, chars = [], 0
        return results

    def _has_added(self, text: str) -> bool:
        """Return True if a text has an added token."""
        return any(begin in text and any(token in text for token in tokens) for begin, tokens in self._added.items())

    def _is_divided(self, text: str) -> bool:
        """Return True if a text is divided here at added tokens.

        Otherwise the library does it.

        Tokens that the library looks for in the normal form of a text are those of the text only if it is in it.
        """
        if self._dividing is None:
            return False
        return not (self._composed and self._dividing[1] and not unicodedata.is_normalized("NFC", text))

    def _in_pieces(self, text: str) -> Array:
        """Return the tokens of a text with added tokens: those of what is between them, which the library divides, too.

        It needs 100 times the memory for a text that is not divided before.
        """
        assert self._dividing
        pieces, numbers = [text], list[int]()
        for expression in filter(None, self._dividing):
            pieces, numbers = _cut(pieces, numbers, expression, self.library.token_to_id)
        tokens, bounds = self.encode(pieces)
        return np.insert(tokens, bounds[1:-1], np.array(numbers, np.uint32))

    def _is_left(self, text: str) -> bool:
        """Return True if the library encodes a text without added tokens."""
        if text.isascii():
            return False
        return byte_level.LIKE_S in text or (self._composed and not unicodedata.is_normalized("NFC", text))


def load_tokenizer(model: str) -> Any:
    """Return a tokenizer of the library without truncation and padding.

    Args:
        model: its file, as `resolve` takes it.
    """
    try:
        from tokenizers import Tokenizer as OfLibrary
    except ImportError:
        raise missing_extra("tokens", "tokens", "tokenizers") from None
    os.environ["TOKENIZERS_PARALLELISM"] = "false"  # processes are what is parallel
    path = resolve(model)
    try:
        tokenizer = OfLibrary.from_file(path)
    except (KeyboardInterrupt, SystemExit, MemoryError):
        raise
    except BaseException as error:  # the library raises nothing narrower, and panics with what is no Exception
        raise ConfigError(f"{path}: expected a file of a tokenizer, got: {error}") from None
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def _read(path: str) -> dict[str, Any]:
    """Return the content of a tokenizer's file.

    The library has read it, and more than JSON allows.
    """
    with open(path, "rb") as stream:
        try:
            return msgspec.json.decode(stream.read(), type=dict[str, Any])
        except msgspec.DecodeError as error:
            raise ConfigError(f"{path}: expected a file of a tokenizer, got: {error}") from None


def _by_beginning(tokens: Sequence[str]) -> dict[str, list[str]]:
    """Return tokens by their first two characters."""
    results: dict[str, list[str]] = {}
    for token in tokens:
        results.setdefault(token[:2], []).append(token)
    return results


def _dividing(added: Sequence[dict[str, Any]]) -> tuple[re.Pattern[str] | None, re.Pattern[str] | None]:
    """Return patterns of added tokens, in the text and its normal form.

    The library looks for the first ones first.

    Of several that begin at the same place the longest one is found.
    """

    def of(tokens: list[str]) -> re.Pattern[str] | None:
        return re.compile("|".join(map(re.escape, sorted(tokens, key=len, reverse=True)))) if tokens else None

    return (
        of([item["content"] for item in added if not item.get("normalized")]),
        of([item["content"] for item in added if item.get("normalized")]),
    )


def _cut(
    pieces: Sequence[str], numbers: Sequence[int], expression: re.Pattern[str], number_of: Callable[[str], int]
) -> tuple[list[str], list[int]]:
    """Divide pieces at tokens; return also the numbers between pieces.

    Args:
        pieces: Pieces of a text.
        numbers: between them.
        expression: finds tokens.
        number_of: gives the number of one.
    """
    results, between = list[str](), list[int]()
    for i, piece in enumerate(pieces):
        between += numbers[i - 1 : i] if i else ()
        at = 0
        for match in expression.finditer(piece):
            results.append(piece[at : match.start()])
            between.append(number_of(match[0]))
            at = match.end()
        results.append(piece[at:])
    return results, between


def _joined(parts: Sequence[Array]) -> tuple[Array, Array]:
    bounds = np.cumsum([0, *map(len, parts)], dtype=np.int64)
    return np.concatenate([np.empty(0, np.uint32), *parts]), bounds
