"""Tokens of texts by the tokenizers of Hugging Face (extra ``tokens``), as the library ``tokenizers`` gives them."""

from toolkit.text.tokens.tokenizer import Tokenizer, load_tokenizer

__all__ = ["Tokenizer", "load_tokenizer"]
