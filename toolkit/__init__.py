"""Preparing text corpora for language models: documents, attributes beside them, rules that join both.

People in notebooks call the commands from here as functions, and read a `Dataset`. Authors of taggers and formats
import from here and, for the fast path over whole batches, from `toolkit.text`; the command line is `toolkit.cli`.

`align`, `annotate`, `ingest`, `report`, `tag`, `train` and `mix` are functions here, and folders of the engine.
Importing a folder for the first time sets the name here to it; so all of them are imported below before the functions
get the names, and no later import, in whatever order, takes them away. Within the engine it is always ``from
toolkit.tag import …``, never ``import toolkit.tag.…``.
"""

from toolkit import beginning as _beginning  # noqa: F401, I001  # before all that takes time

import toolkit.align
import toolkit.annotate
import toolkit.ingest
import toolkit.mix
import toolkit.report
import toolkit.tag
import toolkit.train  # noqa: F401
from toolkit.api.commands import (
    align, annotate, calibrate, compare, dedup, evaluate, fetch, ingest, mix, publish, report, run, sample, stats,
    status, tag, tokenize, train, validate,
)  # fmt: skip
from toolkit.api.dataset import Dataset
from toolkit.api.rows import Row, Rows
from toolkit.api.trial import try_tagger
from toolkit.config.sizes import Size
from toolkit.data import documents as _documents
from toolkit.data.addresses import host_of, split_url, url_of
from toolkit.data.documents import Document, Labelled, Prediction, Span, explain_bad_row, value_at
from toolkit.data.line_index import pairs_in, pickled_pairs
from toolkit.data.lines import joined_lines, split_lines
from toolkit.data.metadata_fields import label_of
from toolkit.data.tables.footers import open_parquet
from toolkit.data.tables.restored import arrow_array, arrow_schema
from toolkit.data.tables.values import arrow_rows
from toolkit.distribution import VERSION as _VERSION
from toolkit.distribution import missing_extra, require_extra
from toolkit.errors import AlignmentError, ConfigError, DataError, Failed, MissingExtra, StaleError, ToolkitError
from toolkit.ingest.reader import Draft, DraftColumns, Input, Reader
from toolkit.ingest.web.extractor import Extracted, Extractor, Page
from toolkit.mix.writer import Mixed, MixedBatch, Pieces, Reading, Wanted, Writer, check_label, merge_fields
from toolkit.session import cached
from toolkit.storage.models import Files, Model, entries, for_language, read_list, resolve
from toolkit.storage.reading import open_stored
from toolkit.tag.tagger import Added, Attribute, Example, Neutral, Tagger
from toolkit.text.batch import Batch, Column
from toolkit.text.words import words_of as _words_of

__version__ = _VERSION

_documents.split_words = _words_of  # `toolkit.data` knows nothing of compiled code

__all__ = [
    "Added",
    "AlignmentError",
    "Attribute",
    "Batch",
    "Column",
    "ConfigError",
    "DataError",
    "Dataset",
    "Document",
    "Draft",
    "DraftColumns",
    "Example",
    "Extracted",
    "Extractor",
    "Failed",
    "Files",
    "Input",
    "Labelled",
    "MissingExtra",
    "Mixed",
    "MixedBatch",
    "Model",
    "Neutral",
    "Page",
    "Pieces",
    "Prediction",
    "Reader",
    "Reading",
    "Row",
    "Rows",
    "Size",
    "Span",
    "StaleError",
    "Tagger",
    "ToolkitError",
    "Wanted",
    "Writer",
    "align",
    "annotate",
    "arrow_array",
    "arrow_rows",
    "arrow_schema",
    "cached",
    "calibrate",
    "check_label",
    "compare",
    "dedup",
    "entries",
    "evaluate",
    "explain_bad_row",
    "fetch",
    "for_language",
    "host_of",
    "ingest",
    "joined_lines",
    "label_of",
    "merge_fields",
    "missing_extra",
    "mix",
    "open_parquet",
    "open_stored",
    "pairs_in",
    "pickled_pairs",
    "publish",
    "read_list",
    "report",
    "require_extra",
    "resolve",
    "run",
    "sample",
    "split_lines",
    "split_url",
    "stats",
    "status",
    "tag",
    "tokenize",
    "train",
    "try_tagger",
    "url_of",
    "validate",
    "value_at",
]
