"""Tables by language that ship with the toolkit: labels, names, tokenizers, FineWeb-2's thresholds and stop words.

They are in `toolkit/text/tables`, each named by what it was made from, and made by the scripts of tests/oracles/tables:

- ``lid.176-glotlid.tsv``: GlotLID's label (``deu_Latn``) of each label of lid.176 (``de``), with the reason.
- ``tokenizers-datatrove-0.10.1.tsv``: which tokenizer datatrove gives a language.
- ``languages-cldr-47.tsv``, ``scripts-cldr-47.tsv``: English names of languages and scripts.
- ``fineweb-2-baedee4.tsv``, ``fineweb-2-baedee4-stop-words.tsv``: FineWeb-2's, as of its release.
"""

import csv
import functools
import os

from toolkit.errors import ConfigError
from toolkit.storage.models import resolve

FOLDER = os.path.join(os.path.dirname(os.path.dirname(__file__)), "tables")


def _rows(path: str) -> list[list[str]]:
    try:
        with open(path, encoding="utf-8", newline="") as file:
            return [line for line in csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE) if line]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise ConfigError(f"{path}: expected a table of tab-separated values in UTF-8, got: {error}") from None


def named_rows(name: str) -> list[list[str]]:
    """Return the rows of a table that ships with the toolkit, without its head."""
    return _rows(os.path.join(FOLDER, name))[1:]


@functools.cache
def _glotlid() -> dict[str, str]:
    return {row[0]: row[1] for row in named_rows("lid.176-glotlid.tsv")}


def glotlid_label(label: str) -> str:
    """Return GlotLID's label of a language.

    Args:
        label: one of lid.176 (``de``), or of GlotLID's (``deu_Latn``) or anything else, which stays what it is.
    """
    return _glotlid().get(label, label)


def tokenizer_of(label: str) -> tuple[str, str] | None:
    """Return the kind of tokenizer that datatrove gives a language, and its code; None if it gives none.

    Args:
        label: of lid.176 or GlotLID.
    """
    return _tokenizers().get(glotlid_label(label))


@functools.cache
def _tokenizers() -> dict[str, tuple[str, str]]:
    return {label: (kind, code) for label, kind, code in named_rows("tokenizers-datatrove-0.10.1.tsv")}


@functools.lru_cache(maxsize=8)
def thresholds(path: str) -> dict[str, dict[str, float]]:
    """Return the numbers of a table by label, then by name; labels of lid.176 have those of GlotLID's.

    Args:
        path: of a table whose first row has the names, whose first column labels; or ``fineweb-2-baedee4``.

    Raises:
        ConfigError: if it is no such table.
    """
    names, *rows = _rows(resolve(path)) or [[]]
    found = dict[str, dict[str, float]]()
    for number, row in enumerate(rows, 2):
        if len(row) != len(names) or row[0] in found:
            got = f"{row[0]!r} twice" if row[0] in found else f"{len(row)} values"
            raise ConfigError(f"{path}:{number}: expected a row of {len(names)} values for each label, got {got}")
        try:
            found[row[0]] = {name: _number(text) for name, text in zip(names[1:], row[1:], strict=True)}
        except ValueError as error:
            raise ConfigError(f"{path}:{number}: expected numbers, got: {error}") from None
    return {lid: found[label] for lid, label in _glotlid().items() if label in found} | found


def _number(text: str) -> float:
    return int(text) if text.lstrip("-").isdigit() else float(text)


@functools.lru_cache(maxsize=8)
def stop_word_lists(path: str) -> dict[str, frozenset[str]]:
    """Return the stop words of a table by label; labels of lid.176 have those of GlotLID's.

    Args:
        path: of a table with a label and its words in each row; or ``fineweb-2-baedee4-stop-words``.

    Raises:
        ConfigError: if it cannot be read.
    """
    found = {label: frozenset(words) for label, *words in _rows(resolve(path))}
    return {lid: found[label] for lid, label in _glotlid().items() if label in found} | found
