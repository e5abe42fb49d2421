"""Options of several taggers."""

from typing import Annotated, Literal

import msgspec

from toolkit import Added, Attribute, Batch, ConfigError
from toolkit.text import Splitter, Words, check_word_language

Variant = Annotated[
    Literal["paper", "datatrove", "dolma", "dolma_v2", "redpajama"],
    msgspec.Meta(description="the project whose way of counting is used"),
]
PaperSplitter = Annotated[Splitter, msgspec.Meta(description="how the variant `paper` finds words")]
Label = Annotated[str | None, Attribute("language.label", str | None, or_value=True)]
"""The language of a document: the attribute that has it, or the same for all."""

Language = Annotated[
    Label,
    msgspec.Meta(
        description="with the variant `datatrove`, or `splitter: dictionary`: the language of the words, as a label of "
        "lid.176 (`de`) or GlotLID (`deu_Latn`), or the attribute with the language of each document; default with "
        "`datatrove`: English"
    ),
]
WordLanguage = Annotated[
    Label,
    Added,
    msgspec.Meta(description="with `splitter: dictionary`: the language of the document, a label or an attribute"),
]
OwnSplitter = Annotated[
    Splitter,
    msgspec.Meta(
        description="the definition of a word: unicode, segments, white_space, word_punct, icu, or dictionary: as "
        "unicode, but by a dictionary in languages without blanks"
    ),
]


def words_in(batch: Batch, splitter: Splitter, language: str | None) -> Words:
    """Return the words of all texts.

    Only dictionaries split by language.
    """
    return batch.words(splitter, language if splitter == "dictionary" else "")


def check_language(variant: str, language: str | None, splitter: str = "") -> None:
    """Check the language for the variant and the splitter.

    With `datatrove` or `dictionary` there must be a way to split its words; others take no language.

    Raises:
        ConfigError: if not.
    """
    if splitter == "dictionary" and language is None:
        raise ConfigError("splitter: expected the option `language` with `dictionary`")
    if variant == "datatrove" or splitter == "dictionary":
        check_word_language(language)
    elif language is not None:
        raise ConfigError(
            f"language: expected the variant datatrove, or `splitter: dictionary`, with it, got {variant!r}"
        )
