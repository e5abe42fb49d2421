"""Configurations of the Dolma toolkit 1.2, its mixer's, tagger's and deduper's, as configurations of ours.

Source: the options and their meaning are those of Dolma 1.2.1. What differs, and why, is in ``docs/dolma.md``.
"""

from toolkit.config.settings import ConfigNode
from toolkit.interop.dolma.pointers import OURS


def is_dolma(source: ConfigNode) -> bool:
    """Tell whether a configuration is one of Dolma's: with `streams`, `taggers` or `dedupe` and no key of ours."""
    value = source.value
    if not isinstance(value, dict) or value.keys() & OURS:
        return False
    return bool(value.keys() & {"streams", "taggers", "dedupe"})
