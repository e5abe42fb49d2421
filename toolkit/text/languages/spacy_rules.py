"""The rules by which spaCy's blank pipelines split words, of all languages that have rules (no dictionary, no model).

They come from spaCy 3.8 (MIT, see NOTICE) as a table, made by tests/oracles/tables/spacy_rules.py; spaCy itself is not
needed. A table keeps up with spaCy by being made anew, where 57 rewritten languages would not.
"""

import functools
import gzip
import os
import re
from typing import Any, NamedTuple

import msgspec

FILE = os.path.join(os.path.dirname(os.path.dirname(__file__)), "tables", "spacy-3.8.json.gz")


class Rules(NamedTuple):
    """The rules by which words of a language are split.

    Attributes:
        prefix: what is split off where it matches.
        loose: what is taken for a prefix wherever it is in a word, as long as it is; None if there is no such.
        suffix: what is split off at an end, as ``search`` finds it.
        window: code points before an end in which ``suffix`` is looked for; 0 for all of them.
        infix: what splits the rest, and is a word itself unless it is empty.
        whole: what is not split further; None if that is nothing.
        exceptions: words that are not split by the rules, with the words that they give.
    """

    prefix: re.Pattern[str]
    loose: re.Pattern[str] | None
    suffix: re.Pattern[str]
    window: int
    infix: re.Pattern[str]
    whole: re.Pattern[str] | None
    exceptions: dict[str, tuple[str, ...]]


@functools.cache
def _table() -> dict[str, Any]:
    with open(FILE, "rb") as file:
        table: dict[str, Any] = msgspec.json.decode(gzip.decompress(file.read()))
    return table


@functools.cache
def spacy_languages() -> frozenset[str]:
    """Return the codes of the languages that have rules; ``xx`` is spaCy's for all languages."""
    return frozenset(_table()["languages"])


def lower_case() -> str:
    """Return spaCy's lower-case letters, as they stand in the brackets of a regular expression."""
    return str(_table()["lower"])


@functools.cache
def rules_of(language: str) -> Rules:
    """Return the rules of a language.

    Args:
        language: one of `spacy_languages`.
    """
    table = _table()
    own = table["languages"][language]
    pattern = {key: own[key] if own[key] is None else _compiled(table["patterns"][own[key]]) for key in _PATTERNS}
    words = [tuple(each) for each in (*table["exceptions"], *own["added"])]
    exceptions = {"".join(each): each for each in words}
    for dropped in set(own["dropped"]) - set(map("".join, own["added"])):
        del exceptions[dropped]
    return Rules(window=own["window"], exceptions=exceptions, **pattern)


_PATTERNS = ("prefix", "loose", "suffix", "infix", "whole")


@functools.cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)
