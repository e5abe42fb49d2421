"""How many tokens a text has.

Source: none; the tokenizer is a file of Hugging Face's ``tokenizers``, as ``tokenizer.json`` of a model is
(``pip install 'tagmix[tokens]'``).
"""

import functools
from collections.abc import Sequence
from typing import Annotated, Any

import msgspec

from toolkit import Document, Example, Model, Tagger
from toolkit.text import load_tokenizer

BATCH = 1_000_000  # code points that are encoded in one go: some 100 bytes a token


class Tokens(Tagger):
    """Tokens of the text by a tokenizer, which is told neither to truncate nor to pad.

    Text that looks like a special token is one token, as the library has it. Without `add_special_tokens` those that
    the tokenizer puts around a text do not count, so that an empty text has none. One thread; the processes of a run
    are what is parallel.
    """

    EXAMPLES = (
        Example("", 0, options={"tokenizer": "tests/taggers/files/tokenizer.json"}),
        Example("the cat, the hat", 6, options={"tokenizer": "tests/taggers/files/tokenizer.json"}),
        Example("das große", 7, options={"tokenizer": "tests/taggers/files/tokenizer.json"}),
        Example("", 2, options={"tokenizer": "tests/taggers/files/tokenizer.json", "add_special_tokens": True}),
    )

    tokenizer: Annotated[Model, msgspec.Meta(description="a file `tokenizer.json`: path or URL")]
    add_special_tokens: Annotated[bool, msgspec.Meta(description="whether what is put around a text counts")] = False

    def tag_batch(self, documents: Sequence[Document]) -> list[int]:
        found: list[int] = []
        texts: list[str] = []
        chars = 0
        for document in documents:
            texts.append(document.text)
            chars += len(document.text)
            if chars >= BATCH:
                found += self._counts(texts)
                texts, chars = [], 0
        return found + self._counts(texts)

    def _counts(self, texts: list[str]) -> list[int]:
        encoded = self._loaded.encode_batch_fast(texts, add_special_tokens=self.add_special_tokens)
        return list(map(len, encoded))

    @functools.cached_property
    def _loaded(self) -> Any:
        return load_tokenizer(self.tokenizer)
