"""Tokens of texts as numbers, and batches for a model.

Batches of what a large model computes at once: texts, or pieces of texts, of about the same length.

A tagger of a model is asked of a *group* of rows at a time: the rows of a shard from its first one, 256 of them, or
fewer where their documents have 512 KiB as JSON (`toolkit.execution.blocks`); with ``when`` of those of the group that
are asked. Groups are a function of the rows of the shard, whatever the number of processes, the executor and the
command (``tag``, or ``run`` in one pass), and a shard that is done again is done whole. `Batches.of` divides a group by
the lengths of its texts alone. So the same batches are computed again, each with one thread: the same bytes on one
machine with the same versions.
"""

import os
from collections.abc import Sequence
from typing import Annotated, Any

import msgspec

from toolkit.config.settings import ConfigStruct, Description
from toolkit.errors import ConfigError
from toolkit.lazy_numpy import np
from toolkit.text.encoders.config import TOKENIZER, ModelConfig
from toolkit.text.kernels.signatures import Array
from toolkit.text.tokens import load_tokenizer

_TOGETHER = 64
"""Texts that are cut at once: the library keeps more of a token than its number."""

_CHARACTERS = 8
"""Code points that are read at first, for each token that is wanted."""
_MARGIN = 128
"""Tokens that must follow those that are wanted: then the end of the beginning changes none of these."""


class TokenCutter:
    """Cuts texts into tokens and adds the model's special tokens.

    Args:
        folder: Folder with ``tokenizer.json``.
        most: Most tokens of a text, special ones included.
        config: Configuration of the model, for the token that fills up.

    Raises:
        ConfigError: if `most` leaves no room for a text.
    """

    def __init__(self, folder: str, most: int, config: ModelConfig) -> None:
        self._tokenizer = load_tokenizer(os.path.join(folder, TOKENIZER))
        self._most = most
        first_tokens(self._tokenizer, (), most)
        self.pad = config.pad_token_id if isinstance(config.pad_token_id, int) else self._fills_up()

    def _fills_up(self) -> int:
        result = map(self._tokenizer.token_to_id, ("[PAD]", "<pad>", "<|pad|>", "<|endoftext|>"))
        return next((number for number in result if number is not None), 0)

    def of(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the tokens of each text, at most so many; at least one."""
        results: list[list[int]] = []
        for first in range(0, len(texts), _TOGETHER):
            results += first_tokens(self._tokenizer, texts[first : first + _TOGETHER], self._most)
        return [ids or [self.pad] for ids in results]


def first_tokens(tokenizer: Any, texts: Sequence[str], most: int) -> list[list[int]]:
    """Return the tokens of each text, at most so many; of a long text, only a beginning is read.

    The beginning grows until enough tokens follow those that are returned, so its end changes none of them.

    Args:
        tokenizer: Tokenizer of the library; it is told to truncate.
        texts: Texts to cut.
        most: Most tokens of a text, special ones included.

    Raises:
        ConfigError: if `most` leaves no room for a text.
    """
    around = tokenizer.num_special_tokens_to_add(False)
    if most <= around:
        raise ConfigError(f"max_tokens: expected more than the {around} around a text, got {most}")
    tokenizer.enable_truncation(most)
    results: list[list[int]] = [[]] * len(texts)
    pending, size = list(range(len(texts))), (most + _MARGIN) * _CHARACTERS
    while pending:
        cut = tokenizer.encode_batch([texts[i][:size] for i in pending])
        again = []
        for i, item in zip(pending, cut, strict=True):
            results[i] = item.ids
            behind = sum(len(other.ids) - around for other in item.overflowing)
            if behind < _MARGIN and len(texts[i]) > size:
                again.append(i)
        pending, size = again, size * 4
    return results


def filled_up(tokens: Sequence[Sequence[int] | Array], pad: int) -> tuple[Array, Array]:
    """Return texts of a batch as numbers, padded to the longest.

    A second array has 1 for tokens and 0 for padding.

    Returns:
        int64 (texts, longest), twice.
    """
    shape = len(tokens), max(map(len, tokens))
    ids, mask = np.full(shape, pad, np.int64), np.zeros(shape, np.int64)
    for i, token in enumerate(tokens):
        ids[i, : len(token)] = token
        mask[i, : len(token)] = 1
    return ids, mask


class Batches(ConfigStruct):
    """How many texts a model gets at once.

    Attributes:
        documents: texts, or pieces of texts, at most.
        tokens: Tokens of all of them together, padded to the longest, at most; a longer text is a batch of its own.
    """

    documents: Annotated[int, msgspec.Meta(ge=1)] = 64
    tokens: Annotated[int, msgspec.Meta(ge=1)] = 16384

    def of(self, lengths: Sequence[int]) -> list[list[int]]:
        """Return the batches of some texts, as their indexes: the longest texts first, equal ones in their order.

        Args:
            lengths: tokens of each text, as the model gets it.
        """
        results: list[list[int]] = []
        room = 0
        for i in sorted(range(len(lengths)), key=lambda i: -lengths[i]):
            if not room:
                results.append([])
                room = max(1, min(self.documents, self.tokens // max(1, lengths[i])))
            results[-1].append(i)
            room -= 1
        return results


BatchOption = Annotated[
    Batches,
    Description(
        description="{documents: N, tokens: M}: so many texts are computed at once, at most, and so many tokens with "
        "those that fill them up to the longest"
    ),
]

Device = Annotated[
    str,
    msgspec.Meta(
        pattern=r"^(auto|cpu|mps|cuda(:[0-9]+)?)$",
        title="auto, cpu, cuda, cuda:N or mps",
        description="where the model runs: cpu, cuda, cuda:1, mps; auto: an accelerator if there is one, else the cpu",
    ),
]
"""Type of an option that names a device; a tagger marks it `Neutral`: what a set has may be computed on several, which
agree but for rounding, and a corpus that was begun on one machine is finished on another."""
