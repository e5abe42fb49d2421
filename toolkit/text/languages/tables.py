"""Tables by language: those that ship with the toolkit, names of languages and scripts, stop words.

They are in `toolkit/text/tables`, each named by what it was made from, and made by the scripts of tests/oracles/tables:

- ``lid.176-glotlid.tsv``: GlotLID's label (``deu_Latn``) of each label of lid.176 (``de``), with the reason.
- ``tokenizers-datatrove-0.10.1.tsv``: which tokenizer datatrove gives a language.
- ``languages-cldr-47.tsv``, ``scripts-cldr-47.tsv``: English names of languages and scripts.
- ``fineweb-2-baedee4.tsv``, ``fineweb-2-baedee4-stop-words.tsv``: FineWeb-2's, as of its release.

Names of languages and scripts in English, and which scripts run from right to left, for what people read.

Source: Unicode CLDR 47, and the IANA registry of language subtags where CLDR has no name; both as tables in
`toolkit/text/tables`, made by tests/oracles/tables/names.py (see NOTICE). The usual script of a language is that of
CLDR's most likely locale; of Chinese it is Han, because a label without a script does not say whether simplified.
"""

import csv
import functools
import os

import msgspec

from toolkit.errors import ConfigError
from toolkit.session import cached
from toolkit.storage.models import resolve
from toolkit.text.languages.labels import NO_LANGUAGE, tag_of

FOLDER = os.path.join(os.path.dirname(os.path.dirname(__file__)), "tables")


def _rows(path: str) -> list[list[str]]:
    try:
        with open(path, encoding="utf-8", newline="") as file:
            return [line for line in csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE) if line]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise ConfigError(f"{path}: expected a table of tab-separated values in UTF-8, got: {error}") from None


def named_rows(name: str) -> list[list[str]]:
    """Return the rows of a table of the package, without its head."""
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
    """Return kind and code of datatrove's tokenizer for a language.

    None if datatrove has none.

    Args:
        label: Label of lid.176 or GlotLID.
    """
    return _tokenizers().get(glotlid_label(label))


@functools.cache
def _tokenizers() -> dict[str, tuple[str, str]]:
    return {label: (kind, code) for label, kind, code in named_rows("tokenizers-datatrove-0.10.1.tsv")}


@cached(8)
def thresholds(path: str) -> dict[str, dict[str, float]]:
    """Return the numbers of a table by label, then by name; labels of lid.176 have those of GlotLID's.

    Args:
        path: Path of a table whose first row has the names, whose first column labels; or ``fineweb-2-baedee4``.

    Raises:
        ConfigError: if it is no such table.
    """
    names, *rows = _rows(resolve(path)) or [[]]
    results = dict[str, dict[str, float]]()
    for number, row in enumerate(rows, 2):
        if len(row) != len(names) or row[0] in results:
            got = f"{row[0]!r} twice" if row[0] in results else f"{len(row)} values"
            raise ConfigError(f"{path}:{number}: expected a row of {len(names)} values for each label, got {got}")
        try:
            results[row[0]] = {name: _number(text) for name, text in zip(names[1:], row[1:], strict=True)}
        except ValueError as error:
            raise ConfigError(f"{path}:{number}: expected numbers, got: {error}") from None
    return {lid: results[label] for lid, label in _glotlid().items() if label in results} | results


def _number(text: str) -> float:
    return int(text) if text.lstrip("-").isdigit() else float(text)


@cached(8)
def stop_word_lists(path: str) -> dict[str, frozenset[str]]:
    """Return the stop words of a table by label; labels of lid.176 have those of GlotLID's.

    Args:
        path: Path of a table with a label and its words in each row; or ``fineweb-2-baedee4-stop-words``.

    Raises:
        ConfigError: if it cannot be read.
    """
    results = {label: frozenset(words) for label, *words in _rows(resolve(path))}
    return {lid: results[label] for lid, label in _glotlid().items() if label in results} | results


_ITS_OWN = {
    "als": ("Alemannic", "Latn"),  # lid.176's, which Wikipedia calls so; `gsw` is Swiss German
    "eml": ("Emilian-Romagnol", "Latn"),
    "x-eml": ("Emilian-Romagnol", "Latn"),
}
"""Labels whose tag says less than they do."""

_NONE = {"multi": "mul", "unk": "und", "none": "zxx"}

_PARTS = {"Kore": ("Hang",)}
"""Scripts that a label names, where the usual one is a mixture that they are most of."""


class Language(msgspec.Struct, frozen=True):
    """The name of the language of a label.

    Attributes:
        label: Label on disk.
        tag: its BCP 47 tag, as ``lang=`` of HTML has it; None if the label names no language, or no known form of one.
        name: English name (``Finnish``), without script; of an unknown label, the label.
        script: English name of the script (``Cyrillic``), that of the label, otherwise the usual one; empty if neither
            is known.
        script_code: Script code of ISO 15924 (``Cyrl``); empty if it is not known.
        rtl: True if the script runs from right to left.
        detail: Part of the tag beyond the language (``Latin`` for ``sr-Latn``, ``BR`` for ``pt-BR``); mostly empty.
    """

    label: str
    tag: str | None
    name: str
    script: str
    script_code: str
    rtl: bool
    detail: str

    @property
    def title(self) -> str:
        """Return the name with its detail: ``Serbian (Latin)``."""
        return f"{self.name} ({self.detail})" if self.detail else self.name


@functools.lru_cache(1 << 12)
def language(label: str) -> Language:
    """Return the names for a label or a tag of BCP 47.

    The label is one of lid.176, GlotLID or NLLB (``deu_Latn``).

    >>> [language(label).title for label in ("fi", "srp_Latn", "zh", "multi", "no such label")]
    ['Finnish', 'Serbian (Latin)', 'Chinese', 'Multiple languages', 'no such label']
    >>> (language("zh").script, language("yi").script, language("yi").rtl)
    ('Han', 'Hebrew', True)
    """
    lower = label.lower()
    if lower in NO_LANGUAGE:
        return Language(label, None, _languages()[_NONE.get(lower, lower)][0], "", "", False, "")
    tag = tag_of(label)
    if tag is None:
        return Language(label, None, label, "", "", False, "")
    code, *more = tag.split("-")
    name, usual = _ITS_OWN.get(lower) or _languages().get(code, (label, ""))
    if code == "x" or name == label:
        return Language(label, tag, name, *_script(usual), "")
    own_script = more[0] if more and len(more[0]) == 4 and more[0].isalpha() else ""
    script, script_code, rtl = _script(own_script or usual)
    other = "-".join(more[1:] if own_script else more)
    detail_script = script if own_script not in ("", usual, *_PARTS.get(usual, ())) else ""
    return Language(
        label, tag, name, script, script_code, rtl, ", ".join(part for part in (detail_script, other) if part)
    )


def _script(code: str) -> tuple[str, str, bool]:
    name, direction = _scripts().get(code, (code, "ltr"))
    return name, code, direction == "rtl"


@functools.cache
def _languages() -> dict[str, tuple[str, str]]:
    """Return name and usual script by subtag."""
    return {code: (name, script) for code, name, script in named_rows("languages-cldr-47.tsv")}


@functools.cache
def _scripts() -> dict[str, tuple[str, str]]:
    """Return name and direction by code of ISO 15924."""
    return {code: (name, direction) for code, name, direction in named_rows("scripts-cldr-47.tsv")}


@functools.cache
def stop_words(language: str) -> frozenset[str]:
    """Return the stop words of a language, in lower case; none where the package has no list (57 languages have one).

    Case is not folded: `daß` stays, and whoever folds the words of a text folds these, too.

    Source: stopwordsiso (stopwords-iso, MIT).

    Args:
        language: ISO 639-1 code, as identified languages have.
    """
    if not language:
        return frozenset()
    import stopwordsiso

    return (
        frozenset(map(str.lower, stopwordsiso.stopwords(language))) if stopwordsiso.has_lang(language) else frozenset()
    )
