"""Tokens of texts by the tokenizers of Hugging Face (extra ``tokens``), as the library ``tokenizers`` gives them."""

from toolkit.text.tokens.tokenizer import Tokenizer, load_tokenizer
from toolkit.text.tokens.trace import IDS, TRACE, Origin, TraceFile, TraceWriter

__all__ = ["IDS", "TRACE", "Origin", "Tokenizer", "TraceFile", "TraceWriter", "load_tokenizer"]
