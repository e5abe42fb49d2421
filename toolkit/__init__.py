"""Preparing text corpora for language models: documents, attributes beside them, rules that join both.

What plugins import is here; the command line is `toolkit.cli`.
"""

from toolkit.config.sizes import Size
from toolkit.data import documents as _documents
from toolkit.data.documents import Document, Labelled, Prediction, Span, explain_bad_row, split_lines
from toolkit.data.metadata_fields import label_of
from toolkit.distribution import missing_extra
from toolkit.errors import AlignmentError, ConfigError, DataError, MissingExtra, ToolkitError
from toolkit.mix.writer import Mixed, Reading, Wanted, Writer, check_label, merge_fields
from toolkit.storage.models import Files, Model, entries, for_language, read_list, resolve
from toolkit.tag.eurolingua import eurolingua_statistics
from toolkit.tag.tagger import Attribute, Example, Neutral, Tagger
from toolkit.text import words as _words
from toolkit.text.batch import Batch, Column
from toolkit.text.code_points import count_code_points
from toolkit.text.fasttext.model import FastText, load_fasttext
from toolkit.text.fasttext.predictions import LinePredictions, without_capitals
from toolkit.text.kernels.compiling import compiled
from toolkit.text.languages.spacy_kinds import SpacyKind, spacy_kind
from toolkit.text.languages.spacy_rules import spacy_languages
from toolkit.text.languages.spacy_tokenizer import spacy_words
from toolkit.text.languages.stop_lists import stop_words
from toolkit.text.languages.tables import stop_word_lists
from toolkit.text.languages.words import check_word_language, datatrove_words
from toolkit.text.line_table import LineTable
from toolkit.text.measures import LineMeasures, WordMeasures
from toolkit.text.ngrams import Repeated, Repetition, Sequences, Top
from toolkit.text.normal_forms import decomposed
from toolkit.text.numbers import natural_logs, shortest_float32
from toolkit.text.phrases import occurrences
from toolkit.text.sentences import TERMINALS, characters_in, spacy_sentences
from toolkit.text.tokenizer import load_tokenizer
from toolkit.text.unicode_table import (
    ALPHA,
    BREAKS,
    CLASSES,
    LOWER,
    NUMBER,
    PICTURE,
    PUNCTUATION,
    SPACE,
    UPPER,
    characters,
)
from toolkit.text.words import (
    ALL_PUNCTUATION,
    HAS_ALNUM,
    HAS_ALPHA,
    HAS_ASCII_LETTER,
    IS_LOWER,
    IS_TITLE,
    IS_UPPER,
    Splitter,
    Words,
    hashes_of,
    is_among,
    places_among,
    sums,
)

__version__ = "0.1.0"

_documents.split_words = _words.words_of

__all__ = [
    "ALL_PUNCTUATION",
    "ALPHA",
    "BREAKS",
    "CLASSES",
    "HAS_ALNUM",
    "HAS_ALPHA",
    "HAS_ASCII_LETTER",
    "IS_LOWER",
    "IS_TITLE",
    "IS_UPPER",
    "LOWER",
    "NUMBER",
    "PICTURE",
    "PUNCTUATION",
    "SPACE",
    "TERMINALS",
    "UPPER",
    "AlignmentError",
    "Attribute",
    "Batch",
    "Column",
    "ConfigError",
    "DataError",
    "Document",
    "Example",
    "FastText",
    "Files",
    "Labelled",
    "LineMeasures",
    "LinePredictions",
    "LineTable",
    "MissingExtra",
    "Mixed",
    "Model",
    "Neutral",
    "Prediction",
    "Reading",
    "Repeated",
    "Repetition",
    "Sequences",
    "Size",
    "SpacyKind",
    "Span",
    "Splitter",
    "Tagger",
    "ToolkitError",
    "Top",
    "Wanted",
    "WordMeasures",
    "Words",
    "Writer",
    "characters",
    "characters_in",
    "check_label",
    "check_word_language",
    "compiled",
    "count_code_points",
    "datatrove_words",
    "decomposed",
    "entries",
    "eurolingua_statistics",
    "explain_bad_row",
    "for_language",
    "hashes_of",
    "is_among",
    "label_of",
    "load_fasttext",
    "load_tokenizer",
    "merge_fields",
    "missing_extra",
    "natural_logs",
    "occurrences",
    "places_among",
    "read_list",
    "resolve",
    "shortest_float32",
    "spacy_kind",
    "spacy_languages",
    "spacy_sentences",
    "spacy_words",
    "split_lines",
    "stop_word_lists",
    "stop_words",
    "sums",
    "without_capitals",
]
