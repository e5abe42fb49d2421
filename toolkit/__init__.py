"""Preparing text corpora for language models: documents, attributes beside them, rules that join both.

People in notebooks call the commands from here as functions, and read a `Dataset`. Authors of taggers and formats
import from here and, for the fast path over whole batches, from `toolkit.text`; the command line is `toolkit.cli`.

Names are imported when they are first used, so that a command imports what it needs. `align`, `ingest`, `mix`,
`publish`, `report`, `tag` and `validate` are functions here, and folders of the engine: within it, write ``from
toolkit.tag import …``, never ``import toolkit.tag.…``.
"""

# ruff: noqa: I001  # the imports below are made when they are needed

from toolkit import bootstrap as _bootstrap  # noqa: F401  # before all that takes time

from typing import TYPE_CHECKING

from toolkit.data import documents as _documents
from toolkit.distribution import VERSION as _VERSION
from toolkit.public_names import import_by_use as _import_by_use

if TYPE_CHECKING:
    from toolkit.api.commands import align as align
    from toolkit.api.commands import annotate as annotate
    from toolkit.api.commands import calibrate as calibrate
    from toolkit.api.commands import compare as compare
    from toolkit.api.commands import dedup as dedup
    from toolkit.api.commands import disclose as disclose
    from toolkit.api.commands import evaluate as evaluate
    from toolkit.api.commands import fetch as fetch
    from toolkit.api.commands import ingest as ingest
    from toolkit.api.commands import mix as mix
    from toolkit.api.commands import publish as publish
    from toolkit.api.commands import report as report
    from toolkit.api.commands import run as run
    from toolkit.api.commands import sample as sample
    from toolkit.api.commands import stats as stats
    from toolkit.api.commands import status as status
    from toolkit.api.commands import tag as tag
    from toolkit.api.commands import takedown as takedown
    from toolkit.api.commands import tokenize as tokenize
    from toolkit.api.commands import trace as trace
    from toolkit.api.commands import train as train
    from toolkit.api.commands import validate as validate
    from toolkit.api.dataset import Dataset as Dataset
    from toolkit.api.trial import try_tagger as try_tagger
    from toolkit.storage_options import Size as Size
    from toolkit.data.documents import Document as Document
    from toolkit.data.documents import Labelled as Labelled
    from toolkit.data.documents import Prediction as Prediction
    from toolkit.data.documents import Span as Span
    from toolkit.distribution import require_extra as require_extra
    from toolkit.errors import ConfigError as ConfigError
    from toolkit.errors import DataError as DataError
    from toolkit.errors import Failed as Failed
    from toolkit.errors import MissingExtra as MissingExtra
    from toolkit.errors import StaleError as StaleError
    from toolkit.errors import ToolkitError as ToolkitError
    from toolkit.ingest.reader import Draft as Draft
    from toolkit.ingest.reader import DraftColumns as DraftColumns
    from toolkit.ingest.reader import Input as Input
    from toolkit.ingest.reader import Reader as Reader
    from toolkit.ingest.web.extractor import Extracted as Extracted
    from toolkit.ingest.web.extractor import Extractor as Extractor
    from toolkit.ingest.web.extractor import Page as Page
    from toolkit.make.stage import Stage as Stage
    from toolkit.mix.writer import Mixed as Mixed
    from toolkit.mix.writer import MixedBatch as MixedBatch
    from toolkit.mix.writer import Pieces as Pieces
    from toolkit.mix.writer import Reading as Reading
    from toolkit.mix.writer import Wanted as Wanted
    from toolkit.mix.writer import Writer as Writer
    from toolkit.session import cached as cached
    from toolkit.storage.models import Files as Files
    from toolkit.storage.models import Model as Model
    from toolkit.storage.reading import open_stored as open_stored
    from toolkit.tag.tagger import Added as Added
    from toolkit.tag.tagger import Attribute as Attribute
    from toolkit.tag.tagger import Example as Example
    from toolkit.tag.tagger import Neutral as Neutral
    from toolkit.tag.tagger import Tagger as Tagger
    from toolkit.text.batch import Batch as Batch

__version__ = _VERSION


_RENAMED = {
    "compare_sets": "toolkit.compare",
    "dry_run": "toolkit.mix(…, dry_run=True)",
    "AlignmentError": "toolkit.DataError",
    "missing_extra": "toolkit.require_extra",
    **{name: f"toolkit.api.dataset.{name}" for name in ("Row", "Rows")},
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
