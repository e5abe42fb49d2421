"""Preparing text corpora for language models: documents, attributes beside them, rules that join both.

What plugins import is here; the command line is `toolkit.cli`.
"""

from toolkit.batch import Batch, Column, LineTable
from toolkit.compiling import compiled
from toolkit.documents import Document, Prediction, Span, explain_bad_row, split_lines
from toolkit.errors import AlignmentError, ConfigError, DataError, MissingExtra, ToolkitError
from toolkit.fasttext_model import load_fasttext
from toolkit.models import Model
from toolkit.numbers import shortest_float32
from toolkit.predictions import LinePredictions
from toolkit.streams import Size
from toolkit.tagger import Attribute, Example, Tagger
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
    "Size",
    "Span",
    "Tagger",
    "ToolkitError",
    "Wanted",
    "Writer",
    "check_label",
    "compiled",
    "explain_bad_row",
    "load_fasttext",
    "merge_fields",
    "shortest_float32",
    "split_lines",
]
