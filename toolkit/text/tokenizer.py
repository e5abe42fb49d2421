"""Tokenizers of Hugging Face's ``tokenizers`` (extra ``tokens``), from a file ``tokenizer.json``."""

import os
from typing import Any

from toolkit.distribution import missing_extra
from toolkit.errors import ConfigError
from toolkit.storage.models import resolve


def load_tokenizer(model: str) -> Any:
    """Return a tokenizer of that library, told neither to truncate nor to pad.

    Args:
        model: its file, as `resolve` takes it.
    """
    try:
        from tokenizers import Tokenizer
    except ImportError:
        raise missing_extra("tokens", "counting tokens", "tokenizers") from None
    os.environ["TOKENIZERS_PARALLELISM"] = "false"  # processes are what is parallel
    path = resolve(model)
    try:
        tokenizer = Tokenizer.from_file(path)
    except Exception as error:  # the library raises nothing narrower
        raise ConfigError(f"{path}: expected a file of a tokenizer, got: {error}") from None
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer
