"""Preparing text corpora for language models: documents, attributes beside them, rules that join both.

Authors of taggers and formats import from here and, for the fast path over whole batches, from `toolkit.text`; the
command line is `toolkit.cli`.
"""

from toolkit.config.sizes import Size
from toolkit.data import documents as _documents
from toolkit.data.addresses import host_of, split_url, url_of
from toolkit.data.documents import Document, Labelled, Prediction, Span, explain_bad_row, value_at
from toolkit.data.lines import split_lines
from toolkit.data.metadata_fields import label_of
from toolkit.distribution import missing_extra
from toolkit.errors import ConfigError, DataError, MissingExtra
from toolkit.ingest.reader import Draft, DraftColumns, Input, Reader
from toolkit.mix.writer import Mixed, MixedBatch, Pieces, Reading, Wanted, Writer, check_label, merge_fields
from toolkit.storage.models import Files, Model, entries, for_language, read_list, resolve
from toolkit.tag.tagger import Attribute, Example, Neutral, Tagger
from toolkit.text.batch import Batch, Column
from toolkit.text.words import words_of as _words_of

__version__ = "0.1.0"

_documents.split_words = _words_of  # `toolkit.data` knows nothing of compiled code

__all__ = [
    "Attribute",
    "Batch",
    "Column",
    "ConfigError",
    "DataError",
    "Document",
    "Draft",
    "DraftColumns",
    "Example",
    "Files",
    "Input",
    "Labelled",
    "MissingExtra",
    "Mixed",
    "MixedBatch",
    "Model",
    "Neutral",
    "Pieces",
    "Prediction",
    "Reader",
    "Reading",
    "Size",
    "Span",
    "Tagger",
    "Wanted",
    "Writer",
    "check_label",
    "entries",
    "explain_bad_row",
    "for_language",
    "host_of",
    "label_of",
    "merge_fields",
    "missing_extra",
    "read_list",
    "resolve",
    "split_lines",
    "split_url",
    "url_of",
    "value_at",
]
