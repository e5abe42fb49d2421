"""Labels, written out."""

from collections.abc import Iterable

from toolkit.report.facts import Language


def languages_of(labels: Iterable[str]) -> dict[str, Language]:
    """Return the names of labels that are languages, with their scripts; a label that is none is its own name."""
    return {label: Language(name=label) for label in sorted(set(labels))}
