"""Static embeddings: each token has a vector, and that of a text is their mean.

Source: model2vec (https://github.com/MinishLab/model2vec), whose folders have a table, weights of tokens and a map of
tokens to rows of the table; ``StaticEmbedding`` of sentence-transformers, which has a table alone.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from toolkit.errors import ConfigError
from toolkit.text.kernels.signatures import Array

TABLES = ("embeddings", "embedding.weight")
LEAST_LENGTH = 1e-32


class Static:
    """A loaded table.

    Args:
        arrays: of the file, by name.
        tokenizer: of the library ``tokenizers``.
        path: of the file, for messages.
        skips_unknown: whether tokens that the tokenizer does not know are left out, as model2vec does.

    Raises:
        ConfigError: if the arrays are not those of a table.
    """

    def __init__(self, arrays: Mapping[str, Array], tokenizer: Any, path: str, *, skips_unknown: bool) -> None:
        import numpy as np

        table = next((arrays[name] for name in TABLES if name in arrays), None)
        if table is None or len(table.shape) != 2 or not table.size:
            raise ConfigError(f"{path}: expected a table called {' or '.join(TABLES)}, got {', '.join(arrays)}")
        self._table = table.astype(np.float32)
        tokens = tokenizer.get_vocab_size()
        self._rows = arrays.get("mapping", np.arange(tokens)).astype(np.int64)
        self._weights = arrays.get("weights", np.ones(tokens)).astype(np.float32)
        if len(self._rows) < tokens or len(self._weights) < tokens or self._rows[:tokens].max() >= len(table):
            raise ConfigError(f"{path}: expected vectors for {tokens:,} tokens of tokenizer.json, got {len(table):,}")
        self._tokenizer = tokenizer
        self._unknown = _unknown(tokenizer) if skips_unknown else None
        self._usual = int(np.median([len(token) for token in tokenizer.get_vocab()]))

    @property
    def dimension(self) -> int:
        return int(self._table.shape[1])

    def vectors(self, texts: Sequence[str], max_tokens: int | None) -> Array:
        """Return a vector for each text; float32 (texts, dimension). That of a text without tokens is 0.

        Args:
            texts: whole.
            max_tokens: so many tokens count; the text is cut before, to as many of the usual length.
        """
        import numpy as np

        found = np.zeros((len(texts), self.dimension), np.float32)
        cut = [text[: max_tokens * self._usual] if max_tokens else text for text in texts]
        for i, each in enumerate(self._tokenizer.encode_batch_fast(cut, add_special_tokens=False)):
            tokens = np.array(each.ids, np.int64)
            if self._unknown is not None:
                tokens = tokens[tokens != self._unknown]
            tokens = tokens[:max_tokens]
            if len(tokens):
                found[i] = (self._table[self._rows[tokens]] * self._weights[tokens][:, None]).mean(axis=0)
        return found


def _unknown(tokenizer: Any) -> int | None:
    """Return the token that stands for what a tokenizer does not know."""
    unknown = getattr(tokenizer.model, "unk_token", None)
    return None if unknown is None else tokenizer.token_to_id(unknown)
