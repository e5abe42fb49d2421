"""Names of languages and scripts in English, and which scripts run from right to left, for what people read.

Source: Unicode CLDR 47, and the IANA registry of language subtags where CLDR has no name; both as tables in
`toolkit/text/tables`, made by tests/oracles/tables/names.py (see NOTICE). The usual script of a language is that of
CLDR's most likely locale; of Chinese it is Han, because a label without a script does not say whether simplified.
"""

import functools
from dataclasses import dataclass

from toolkit.text.languages.labels import NO_LANGUAGE, tag_of
from toolkit.text.languages.tables import named_rows

_ITS_OWN = {
    "als": ("Alemannic", "Latn"),  # lid.176's, which Wikipedia calls so; `gsw` is Swiss German
    "eml": ("Emilian-Romagnol", "Latn"),
    "x-eml": ("Emilian-Romagnol", "Latn"),
}
"""Labels whose tag says less than they do."""

_NONE = {"multi": "mul", "unk": "und", "none": "zxx"}

_PARTS = {"Kore": ("Hang",)}
"""Scripts that a label names, where the usual one is a mixture that they are most of."""


@dataclass(frozen=True)
class Language:
    """What people call the language of a label.

    Attributes:
        label: as it is on disk.
        tag: its BCP 47 tag, as ``lang=`` of HTML has it; None if the label names no language, or no known form of one.
        name: in English (``Finnish``), without script; of an unknown label, the label.
        script: in English (``Cyrillic``), that of the label, otherwise the usual one; empty if neither is known.
        script_code: of ISO 15924 (``Cyrl``); empty if it is not known.
        rtl: whether the script runs from right to left.
        detail: what the tag says beyond the language (``Latin`` for ``sr-Latn``, ``BR`` for ``pt-BR``); mostly empty.
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
        """Return the name with what sets the label apart from others of the language: ``Serbian (Latin)``."""
        return f"{self.name} ({self.detail})" if self.detail else self.name


@functools.lru_cache(1 << 12)
def language(label: str) -> Language:
    """Return the names of a label of lid.176, GlotLID or NLLB (``deu_Latn``), or of a tag of BCP 47.

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
    said = more[0] if more and len(more[0]) == 4 and more[0].isalpha() else ""
    script, script_code, rtl = _script(said or usual)
    other = "-".join(more[1:] if said else more)
    shown = script if said not in ("", usual, *_PARTS.get(usual, ())) else ""
    return Language(label, tag, name, script, script_code, rtl, ", ".join(part for part in (shown, other) if part))


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
