"""Functions for authors of plugins: lines, words, n-grams and measures of many texts at once; URLs, lists, tables.

`toolkit.Batch` has the tables of lines and words; what is done with them, the models and the compiled code are here.
"""

# ruff: noqa: TC004  # the imports below are made when they are needed

from typing import TYPE_CHECKING

from toolkit.public_names import import_by_use

if TYPE_CHECKING:
    from toolkit.data.documents import explain_bad_row, joined_lines, split_lines, value_at
    from toolkit.data.line_index import pairs_in, pickled_pairs
    from toolkit.data.tables.from_arrow import arrow_rows
    from toolkit.data.tables.parquet import open_parquet
    from toolkit.data.tables.to_arrow import arrow_array, arrow_schema
    from toolkit.data.urls import host_of, split_url, url_of
    from toolkit.storage.models import entries, for_language, read_list, resolve
    from toolkit.text.batch import Column
    from toolkit.text.counting import count_code_points, count_marked
    from toolkit.text.encoders.classifier import ClassifierAsked, ModelFolder, check_classifier, load_classifier
    from toolkit.text.encoders.encoder import Encoder, EncoderOption, load_encoder, most_tokens, unit
    from toolkit.text.encoders.halves import Halves
    from toolkit.text.encoders.heads import HeadOption, load_head
    from toolkit.text.encoders.tokens import Batches, BatchOption, Device
    from toolkit.text.fasttext.model import FastText, load_fasttext
    from toolkit.text.fasttext.predictions import LinePredictions, without_capitals
    from toolkit.text.kernels.compiling import compiled
    from toolkit.text.kernels.signatures import (
        Array,
        Bytes,
        Float32s,
        Float64s,
        Int32s,
        Int64s,
        UInt8s,
        UInt32s,
        UInt64s,
        inlined,
    )
    from toolkit.text.languages.labels import LabelForm, in_form
    from toolkit.text.languages.spacy_words import (
        TERMINALS,
        SpacyKind,
        characters_in,
        spacy_kind,
        spacy_languages,
        spacy_sentence_ends,
        spacy_sentences,
        spacy_words,
    )
    from toolkit.text.languages.tables import stop_word_lists, stop_words
    from toolkit.text.languages.words import check_word_language, datatrove_words, has_no_blanks
    from toolkit.text.line_table import LineTable, sums
    from toolkit.text.linear.model import Linear, Said, load_linear
    from toolkit.text.linear.ngrams import Window, WindowOption
    from toolkit.text.listed_phrases import occurrences
    from toolkit.text.measures import LineMeasures, WordMeasures
    from toolkit.text.ngrams import Repeated, Repetition, Sequences, Top
    from toolkit.text.normal_forms import decomposed
    from toolkit.text.portable_floats import natural_logs, shortest_float32
    from toolkit.text.tokens import IDS, TRACE, Origin, Tokenizer, TraceFile, TraceWriter
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
        Characters,
        characters,
        decoded,
        number_of,
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
    )

__all__ = [
    "ALL_PUNCTUATION",
    "ALPHA",
    "BREAKS",
    "CLASSES",
    "HAS_ALNUM",
    "HAS_ALPHA",
    "HAS_ASCII_LETTER",
    "IDS",
    "IS_LOWER",
    "IS_TITLE",
    "IS_UPPER",
    "LOWER",
    "NUMBER",
    "PICTURE",
    "PUNCTUATION",
    "SPACE",
    "TERMINALS",
    "TRACE",
    "UPPER",
    "Array",
    "BatchOption",
    "Batches",
    "Bytes",
    "Characters",
    "ClassifierAsked",
    "Column",
    "Device",
    "Encoder",
    "EncoderOption",
    "FastText",
    "Float32s",
    "Float64s",
    "Halves",
    "HeadOption",
    "Int32s",
    "Int64s",
    "LabelForm",
    "LineMeasures",
    "LinePredictions",
    "LineTable",
    "Linear",
    "ModelFolder",
    "Origin",
    "Repeated",
    "Repetition",
    "Said",
    "Sequences",
    "SpacyKind",
    "Splitter",
    "Tokenizer",
    "Top",
    "TraceFile",
    "TraceWriter",
    "UInt8s",
    "UInt32s",
    "UInt64s",
    "Window",
    "WindowOption",
    "WordMeasures",
    "Words",
    "arrow_array",
    "arrow_rows",
    "arrow_schema",
    "characters",
    "characters_in",
    "check_classifier",
    "check_word_language",
    "compiled",
    "count_code_points",
    "count_marked",
    "datatrove_words",
    "decoded",
    "decomposed",
    "entries",
    "explain_bad_row",
    "for_language",
    "has_no_blanks",
    "hashes_of",
    "host_of",
    "in_form",
    "inlined",
    "is_among",
    "joined_lines",
    "load_classifier",
    "load_encoder",
    "load_fasttext",
    "load_head",
    "load_linear",
    "most_tokens",
    "natural_logs",
    "number_of",
    "occurrences",
    "open_parquet",
    "pairs_in",
    "pickled_pairs",
    "places_among",
    "read_list",
    "resolve",
    "shortest_float32",
    "spacy_kind",
    "spacy_languages",
    "spacy_sentence_ends",
    "spacy_sentences",
    "spacy_words",
    "split_lines",
    "split_url",
    "stop_word_lists",
    "stop_words",
    "sums",
    "unit",
    "url_of",
    "value_at",
    "without_capitals",
]

import_by_use(__name__)
