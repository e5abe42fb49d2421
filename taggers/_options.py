"""Options that several taggers have."""

from typing import Annotated, Literal

import msgspec

from toolkit import Attribute, ConfigError
from toolkit.text import Splitter, check_word_language

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
        description="with the variant `datatrove`: the language of the words, as a label of lid.176 (`de`) or GlotLID "
        "(`deu_Latn`), or the attribute with the language of each document; default: English"
    ),
]


def check_language(variant: str, language: str | None) -> None:
    """Check that words of the language can be split, and that the variant is one that splits them by language.

    Raises:
        ConfigError: if not.
    """
    if variant == "datatrove":
        check_word_language(language)
    elif language is not None:
        raise ConfigError(f"language: expected the variant datatrove with it, got {variant!r}")
