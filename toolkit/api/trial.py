"""Tries a new tagger on a list of texts."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from toolkit.data.documents import Document
from toolkit.errors import ConfigError, DataError
from toolkit.tag import tagger as taggers
from toolkit.tag.tagger import TAGGERS, Tagger

if TYPE_CHECKING:
    from toolkit.tag.plan import Step

PLACE = "texts"
"""Name of the list in errors."""


def try_tagger(tagger: Tagger | type[Tagger] | str, texts: Iterable[str | Document], **options: Any) -> list[Any]:
    """Return a tagger's values for texts, as plain data. Nothing is written; the values are as if read from its file.

    ``toolkit.try_tagger(MyTagger(), ["a text", "another"])``

    Args:
        tagger: Configured tagger, its class, or its name as in a configuration.
        texts: Texts, or documents with the tagger's inputs beside the text: ``Document("a text", metadata={…},
            attributes={"lines-0": […]})``, by the names in its options.
        **options: Options of the tagger, if it is not configured.

    Raises:
        ConfigError: if the tagger cannot be configured so, or a document lacks what it reads.
        DataError: if it fails, or gives a value that is not of its declared type; its line is the number of the text.
    """
    from toolkit.tag.run import encodable, run_steps
    from toolkit.text.batch import Batch

    step = _step(tagger, options)
    documents = _documents(texts, step)
    if not documents:
        return []
    numbered = [(document, number) for number, document in enumerate(documents, 1)]
    (ran,) = run_steps(Batch(documents), numbered, [step], PLACE)
    return [msgspec.json.decode(msgspec.json.encode(value)) for value in encodable(ran.values)]


def _step(tagger: Tagger | type[Tagger] | str, options: dict[str, Any]) -> "Step":
    """Return the tagger, ready to run."""
    from toolkit.config.settings import ConfigNode, convert
    from toolkit.tag.plan import Entry, Step

    if isinstance(tagger, Tagger):
        if options:
            raise ConfigError(f"expected a tagger's class with options, got a configured one and {min(options)!r}")
        built, name = tagger, type(tagger).__name__
    else:
        class_ = TAGGERS.find(tagger) if isinstance(tagger, str) else tagger
        if not (isinstance(class_, type) and issubclass(class_, Tagger)):
            raise ConfigError(f"expected a tagger, its class or its name, got {tagger!r}")
        name = tagger if isinstance(tagger, str) else class_.__name__
        built = convert(ConfigNode(msgspec.to_builtins(options), "try_tagger"), class_, f"tagger {name}")
    taggers.check_models(built)
    return Step(
        set=PLACE,
        key=name,
        entry=Entry(key=name, reference=name, options={}),
        tagger=built,
        references=tuple(taggers.references(built)),
        fields=tuple(taggers.metadata_fields(built)),
        text=None,
        when=None,
        type=taggers.value_type(type(built)),
        annotation=taggers.value_annotation(type(built)),
    )


def _documents(texts: Iterable[Any], step: "Step") -> Sequence[Document]:
    """Return the texts as documents with the tagger's inputs."""
    if isinstance(texts, str | Document):
        raise ConfigError("expected a list of texts, got one by itself: write [text]")
    results = []
    for number, text in enumerate(texts, 1):
        if not isinstance(text, str | Document):
            got = type(text).__name__
            raise DataError(f"expected a text or a Document, got a value of type {got}", path=PLACE, line=number)
        document = text if isinstance(text, Document) else Document(text, id=str(number), source="try")
        for reference in step.references:
            try:
                value = document.attribute(reference.text)
            except KeyError:
                raise ConfigError(
                    f"{PLACE}:{number}: the tagger {step.key} reads {reference.text!r}: expected a Document that has "
                    f"it, got none: Document(text, attributes={{{reference.text!r}: …}})"
                ) from None
            document.give(reference.text, msgspec.convert(msgspec.to_builtins(value), reference.type))
        results.append(document)
    return results
