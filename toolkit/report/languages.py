"""Labels, written out."""

from collections.abc import Iterable

from toolkit.report.facts import Language
from toolkit.text.languages import names


def languages_of(labels: Iterable[str]) -> dict[str, Language]:
    """Return the names of labels that are languages, with their scripts; a label that is none is its own name."""
    found = {}
    for label in sorted(set(labels)):
        said = names.language(label)
        found[label] = Language(name=said.title or label, script=said.script, rtl=said.rtl, tag=said.tag or "")
    return found
