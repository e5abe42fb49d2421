"""Configurations of the Dolma toolkit 1.2, its mixer's and its tagger's, as configurations of ours.

Source: the options and their meaning are those of Dolma 1.2.1. What differs, and why, is in ``docs/dolma.md``.
"""

from toolkit.config.settings import Source
from toolkit.interop.dolma.mixer import read_mixer
from toolkit.interop.dolma.tagger import read_tagger

__all__ = ["is_dolma", "read_mixer", "read_tagger"]


def is_dolma(source: Source) -> bool:
    """Tell whether a configuration is one of Dolma's: with `streams`, or `documents` and `taggers`, at its top."""
    value = source.value
    return isinstance(value, dict) and ("streams" in value or "taggers" in value) and not value.keys() & {"mix", "tag"}
