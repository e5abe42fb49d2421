"""Tokens by Hugging Face's library ``tokenizers`` (extra ``tokens``)."""

from toolkit.text.tokens.tokenizer import Tokenizer, load_tokenizer
from toolkit.text.tokens.trace import IDS, TRACE, Origin, TraceFile, TraceWriter

__all__ = ["IDS", "TRACE", "Origin", "Tokenizer", "TraceFile", "TraceWriter", "load_tokenizer"]
