"""Preparing text corpora for language models: documents, attributes beside them, rules that join both.

People in notebooks call the commands from here as functions, and read a `Dataset`. Authors of taggers and formats
import from here and, for the fast path over whole batches, from `toolkit.text`; the command line is `toolkit.cli`.

Names are imported when they are first used, so that a command imports what it needs. `align`, `ingest`, `mix`,
`publish`, `report`, `tag` and `validate` are functions here, and folders of the engine: within it, write ``from
toolkit.tag import …``, never ``import toolkit.tag.…``.
"""

# ruff: noqa: I001, TC004  # the imports below are made when they are needed

from toolkit import beginning as _beginning  # noqa: F401  # before all that takes time

from typing import TYPE_CHECKING

from toolkit.data import documents as _documents
from toolkit.distribution import VERSION as _VERSION
from toolkit.public_names import import_by_use as _import_by_use

if TYPE_CHECKING:
    from toolkit.api.commands import (
        align, annotate, calibrate, compare, dedup, disclose, evaluate, fetch, ingest, mix, publish, report, run,
        sample, stats, status, tag, takedown, tokenize, trace, train, validate,
    )  # fmt: skip
    from toolkit.api.dataset import Dataset
    from toolkit.api.trial import try_tagger
    from toolkit.storage_options import Size
    from toolkit.data.documents import Document, Labelled, Prediction, Span
    from toolkit.distribution import require_extra
    from toolkit.errors import ConfigError, DataError, Failed, MissingExtra, StaleError, ToolkitError
    from toolkit.ingest.reader import Draft, DraftColumns, Input, Reader
    from toolkit.ingest.web.extractor import Extracted, Extractor, Page
    from toolkit.make.stage import Stage
    from toolkit.mix.writer import Mixed, MixedBatch, Pieces, Reading, Wanted, Writer
    from toolkit.session import cached
    from toolkit.storage.models import Files, Model
    from toolkit.storage.reading import open_stored
    from toolkit.tag.tagger import Added, Attribute, Example, Neutral, Tagger
    from toolkit.text.batch import Batch

__version__ = _VERSION

__all__ = [
    "Added",
    "Attribute",
    "Batch",
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
    "Size",
    "Span",
    "Stage",
    "StaleError",
    "Tagger",
    "ToolkitError",
    "Wanted",
    "Writer",
    "align",
    "annotate",
    "cached",
    "calibrate",
    "compare",
    "dedup",
    "disclose",
    "evaluate",
    "fetch",
    "ingest",
    "mix",
    "open_stored",
    "publish",
    "report",
    "require_extra",
    "run",
    "sample",
    "stats",
    "status",
    "tag",
    "takedown",
    "tokenize",
    "trace",
    "train",
    "try_tagger",
    "validate",
]

_RENAMED = {
    "compare_sets": "toolkit.compare",
    "dry_run": "toolkit.mix(…, dry_run=True)",
    "AlignmentError": "toolkit.DataError",
    "missing_extra": "toolkit.require_extra",
    **{name: f"toolkit.api.rows.{name}" for name in ("Row", "Rows")},
    **{name: f"toolkit.Writer.{name}" for name in ("check_label", "label_of", "merge_fields")},
    **{name: f"toolkit.text.{name}" for name in (
        "Column", "arrow_array", "arrow_rows", "arrow_schema", "entries", "explain_bad_row", "for_language", "host_of",
        "joined_lines", "open_parquet", "pairs_in", "pickled_pairs", "read_list", "resolve", "split_lines", "split_url",
        "url_of", "value_at",
    )},
}  # fmt: skip
"""Earlier public names, and what to write instead."""


def _words_of(text: str) -> list[str]:
    from toolkit.text.words import words_of

    return words_of(text)


_documents.split_words = _words_of  # `toolkit.data` knows nothing of compiled code
_import_by_use(__name__)
