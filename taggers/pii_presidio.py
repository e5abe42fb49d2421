"""Personal data in a text, as Microsoft Presidio finds it.

Source: presidio-analyzer 2.2 (Microsoft, MIT); Dolma's ``pii_presidio_v1`` asks it for the three entities that are the
default here.
"""

import functools
import re
from collections.abc import Iterator
from typing import Annotated, Any

import msgspec

from toolkit import ConfigError, Document, Example, Files, Span, Tagger, require_extra

MAX_CHARS = 5_000
"""A longer text is looked at in pieces, cut at line feeds or blanks: some recognisers look at all of it many times."""

NAMED = {"LOCATION", "NRP", "ORGANIZATION", "PERSON"}
"""Entities that only a model finds."""

_NOTHING = re.compile(r"[^\w\s]{65,}|::[0-9A-Fa-f:]{65,}")
"""Runs without personal data, for which recognisers and tokenizers take the square of their length."""


class PersonalSpans(msgspec.Struct, frozen=True):
    """Spans of personal data in order, with Presidio's scores and entities.

    Attributes:
        spans: Spans of personal data, in order, each with Presidio's score.
        types: The entity of each span, such as `PERSON`.
    """

    spans: list[Span]
    types: list[str]


class PiiPresidio(Tagger):
    """Spans of personal data in order, each with its entity; they may overlap, and a score of 1 means certain.

    Without `model`, what Presidio finds by pattern and check digit (e-mail, phone, IP and MAC addresses, cards, IBAN,
    national numbers). ``PERSON``, ``LOCATION``, ``ORGANIZATION`` and ``NRP`` need a spaCy model that names entities.

    Attributes:
        entities: the entities to look for, as Presidio names them
        language: the language whose recognisers are used, beside those for all languages
        model: the folder of a spaCy pipeline that names entities (its place is shown by `python -m spacy info NAME`);
            without one, patterns only
    """

    PERSONAL = True

    EXAMPLES = (
        Example("", PersonalSpans([], [])),
        Example(
            "joe.doe@example.com, 212-555-0123, 8.8.8.8",
            PersonalSpans(
                [Span(0, 19), Span(21, 33, 0.4), Span(35, 42, 0.6)], ["EMAIL_ADDRESS", "PHONE_NUMBER", "IP_ADDRESS"]
            ),
        ),
        Example(
            "Größe: 4111 1111 1111 1111",
            PersonalSpans([Span(7, 26)], ["CREDIT_CARD"]),
            options={"entities": ["CREDIT_CARD", "IBAN_CODE"]},
        ),
    )

    entities: Annotated[tuple[str, ...], msgspec.Meta(min_length=1)] = ("EMAIL_ADDRESS", "PHONE_NUMBER", "IP_ADDRESS")
    language: Annotated[str, msgspec.Meta(pattern="^[a-z]{2}$")] = "en"
    model: Files | None = None

    def check(self) -> None:
        _require()

    def tag(self, document: Document) -> PersonalSpans:
        results = set()
        for start, piece in _pieces(document.text):
            analyzer = _analyzer(self.language, self.model, self.entities)
            piece = _NOTHING.sub(lambda run: " " * len(run[0]), piece)
            for item in analyzer.analyze(piece, self.language, entities=list(self.entities)):
                results.add((start + item.start, start + item.end, float(item.score), item.entity_type))
        ordered = sorted(results)
        return PersonalSpans([Span(*span) for *span, _ in ordered], [type_ for *_, type_ in ordered])


def _pieces(text: str) -> Iterator[tuple[int, str]]:
    start = 0
    while start < len(text):
        end = start + MAX_CHARS
        if end < len(text):
            end = max(text.rfind("\n", start, end), text.rfind(" ", start + MAX_CHARS // 2, end)) + 1 or end
        yield start, text[start:end]
        start = end


def _require() -> None:
    require_extra("presidio", "pii_presidio", "presidio-analyzer", "presidio_analyzer")


@functools.lru_cache(maxsize=8)
def _analyzer(language: str, model: str | None, entities: tuple[str, ...]) -> Any:
    _require()
    import spacy
    import tldextract.tldextract
    from presidio_analyzer import AnalyzerEngine, RecognizerRegistry
    from presidio_analyzer.nlp_engine import SpacyNlpEngine

    # else the list of domain suffixes is fetched, and what is found depends on the day
    tldextract.tldextract.TLD_EXTRACTOR = tldextract.TLDExtract(cache_dir=None, suffix_list_urls=())
    engine = SpacyNlpEngine(models=[{"lang_code": language, "model_name": model or "blank"}])
    engine.nlp = {language: spacy.load(model) if model else spacy.blank(language)}
    registry = RecognizerRegistry(supported_languages=[language])
    registry.load_predefined_recognizers(languages=[language])
    analyzer = AnalyzerEngine(registry=registry, nlp_engine=engine, supported_languages=[language])
    supported = set(analyzer.get_supported_entities(language)) - (set() if model else NAMED)
    if unknown := [entity for entity in entities if entity not in supported]:
        needs = "; it needs `model`" if unknown[0] in NAMED else ""
        raise ConfigError(f"expected entities of {', '.join(sorted(supported))}, got {unknown[0]!r}{needs}")
    return analyzer
