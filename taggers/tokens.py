"""How many tokens a text has.

Source: none; the tokenizer is a file of Hugging Face's ``tokenizers``, as ``tokenizer.json`` of a model is
(``pip install 'tagmix[tokens]'``).
"""

import functools
from collections.abc import Sequence

from toolkit import Document, Example, Model, Tagger
from toolkit.text import Tokenizer


class Tokens(Tagger):
    """The number of the text's tokens by a tokenizer; without truncation and padding.

    Text that looks like a special token is one token, as in the library. The special tokens that the tokenizer puts
    around a text count only with `add_special_tokens`; so by default an empty text has no tokens. The tagger uses one
    thread; a run uses several processes.

    Attributes:
        tokenizer: a file `tokenizer.json`: path, URL, or `gpt2-tokenizer.json`
        add_special_tokens: true counts the special tokens around the text
    """

    TOKENS = True

    EXAMPLES = (
        Example("", 0, options={"tokenizer": "tests/taggers/files/tokenizer.json"}),
        Example("the cat, the hat", 6, options={"tokenizer": "tests/taggers/files/tokenizer.json"}),
        Example("das große", 7, options={"tokenizer": "tests/taggers/files/tokenizer.json"}),
        Example("", 2, options={"tokenizer": "tests/taggers/files/tokenizer.json", "add_special_tokens": True}),
    )

    tokenizer: Model
    add_special_tokens: bool = False

    def check(self) -> None:
        Tokenizer(self.tokenizer, special=self.add_special_tokens)

    def tag_batch(self, documents: Sequence[Document]) -> list[int]:
        return self._loaded.counts([document.text for document in documents])

    @functools.cached_property
    def _loaded(self) -> Tokenizer:
        return Tokenizer(self.tokenizer, special=self.add_special_tokens)
