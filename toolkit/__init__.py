"""Preparing text corpora for language models: documents, attributes beside them, rules that join both.

What plugins import is here; the command line is `toolkit.cli`.
"""

from toolkit import documents as _documents
from toolkit.batch import Batch, Column
from toolkit.code_points import count_code_points
from toolkit.compiling import compiled
from toolkit.distribution import missing_extra
from toolkit.documents import Document, Labelled, Prediction, Span, explain_bad_row, split_lines
from toolkit.errors import AlignmentError, ConfigError, DataError, MissingExtra, ToolkitError
from toolkit.eurolingua import eurolingua_statistics
from toolkit.fasttext_model import FastText, load_fasttext
from toolkit.language_tables import stop_word_lists
from toolkit.language_words import check_word_language, datatrove_words
from toolkit.line_table import LineTable
from toolkit.measures import LineMeasures, WordMeasures
from toolkit.metadata_fields import label_of
from toolkit.models import Files, Model, entries, for_language, read_list, resolve
from toolkit.ngrams import Repeated, Repetition, Sequences, Top
from toolkit.normal_forms import decomposed
from toolkit.numbers import natural_logs, shortest_float32
from toolkit.phrases import occurrences
from toolkit.predictions import LinePredictions, without_capitals
from toolkit.sentences import TERMINALS, characters_in, spacy_sentences
from toolkit.sizes import Size
from toolkit.spacy_kinds import SpacyKind, spacy_kind
from toolkit.spacy_rules import spacy_languages
from toolkit.spacy_tokenizer import spacy_words
from toolkit.stop_lists import stop_words
from toolkit.tagger import Attribute, Example, Neutral, Tagger
from toolkit.tokenizer import load_tokenizer
from toolkit.unicode_table import ALPHA, BREAKS, CLASSES, LOWER, NUMBER, PICTURE, PUNCTUATION, SPACE, UPPER, characters
from toolkit.words import (
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
    words_of,
)
from toolkit.writer import Mixed, Reading, Wanted, Writer, check_label, merge_fields

__version__ = "0.1.0"

_documents.split_words = words_of

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
