"""Preparing text corpora for language models: documents, attributes beside them, rules that join both.

What plugins import is here; the command line is `toolkit.cli`.
"""

from toolkit.batch import Batch, Column
from toolkit.compiling import compiled
from toolkit.documents import Document, Prediction, Span, explain_bad_row, split_lines
from toolkit.errors import AlignmentError, ConfigError, DataError, MissingExtra, ToolkitError
from toolkit.fasttext_model import load_fasttext
from toolkit.line_table import LineTable
from toolkit.models import Model
from toolkit.ngrams import Repeated, Sequences, Top
from toolkit.numbers import shortest_float32
from toolkit.predictions import LinePredictions
from toolkit.stop_words import stop_words
from toolkit.streams import Size
from toolkit.tagger import Attribute, Example, Tagger
from toolkit.words import Splitter, Words, hashes_of, is_among, sums
from toolkit.writer import Mixed, Wanted, Writer, check_label, merge_fields

__version__ = "0.1.0"

__all__ = [
    "AlignmentError",
    "Attribute",
    "Batch",
    "Column",
    "ConfigError",
    "DataError",
    "Document",
    "Example",
    "LinePredictions",
    "LineTable",
    "MissingExtra",
    "Mixed",
    "Model",
    "Prediction",
    "Repeated",
    "Sequences",
    "Size",
    "Span",
    "Splitter",
    "Tagger",
    "ToolkitError",
    "Top",
    "Wanted",
    "Words",
    "Writer",
    "check_label",
    "compiled",
    "explain_bad_row",
    "hashes_of",
    "is_among",
    "load_fasttext",
    "merge_fields",
    "shortest_float32",
    "split_lines",
    "stop_words",
    "sums",
]
