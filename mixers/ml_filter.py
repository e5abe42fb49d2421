"""The raw form of ml_filter and EuroLingua: plain JSON Lines in a folder a dump and a language.

Source: ml_filter (Modalities, formerly EuroLingua-GPT), ``documentation/data_format.md``, "Raw Common Crawl data
format": keys and their order, folders, names of files.

    2014-41/de/00000.jsonl
    {"text": …, "id": …, "metadata": {"url": …, "date": "2014-09-22T22:15:10Z", "language": "de",
        "language_score": 0.98, "corpus": "2014-41", "file_path": …, "num_lines": 1, "num_words": 184, …}}
"""

import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Self

import msgspec

from toolkit import DataError, Document, Labelled, Mixed, Wanted, Writer
from toolkit.text import url_of

_KEYS = (
    "url", "date", "language", "language_score", "corpus", "file_path", "num_bad_words_in_url", "bad_word_rate",
    "num_lines", "num_nonempty_lines", "num_paras", "avg_line_len", "avg_para_len", "avg_words_per_line",
    "num_short_lines", "has_short_header", "has_short_footer", "num_itemize_lines", "num_enumerate_lines",
    "pct_itemize_lines", "pct_enumerate_lines", "num_repeated_chars3", "num_repeated_words3", "num_urls", "num_emails",
    "num_words", "avg_word_len", "ttr_words_lower", "pct_space", "pct_lower", "pct_upper", "pct_title", "pct_mixed",
    "pct_puncts", "pct_words", "pct_numbers", "pct_others", "pct_short_lines", "pct_stopwords", "line_punct_ratio",
    "short_line_ratio", "char_duplicates_ratio", "list_ratio", "unigram_entropy", "dup_para_frac",
    "dup_para_char_frac", "dup_line_frac", "dup_line_char_frac ", "symbol_to_word_ratio_hash",
    "symbol_to_word_ratio_ellipsis", "non_alpha_words_ratio", "token_count",
)  # fmt: skip
"""Keys of the metadata in ml_filter's order; the blank at the end of one is its own."""

_NAMED = ("corpus", "dump", "crawl")
"""Fields of the metadata that may name the dump."""

_CRAWL = re.compile(r"(?<![A-Za-z0-9])CC-MAIN-(\d{4}-\d{2,4})(?![0-9-]*[0-9])")


class _Metadata(msgspec.Struct):
    url: str | None
    date: str | None
    language: str
    language_score: float | None
    corpus: str
    file_path: str


class _Line(msgspec.Struct, forbid_unknown_fields=True):
    text: str
    id: str
    metadata: _Metadata


class _Raw(msgspec.Struct):
    text: str
    id: str
    metadata: msgspec.Raw


class _Dates(msgspec.Struct):
    added: str | None = None


_ENCODER = msgspec.json.Encoder()
_LINE = msgspec.json.Decoder(_Line)
_DATES = msgspec.json.Decoder(_Dates)


class MlFilter(Writer):
    """``DUMP/LANGUAGE/00000.jsonl`` and on, not compressed: ml_filter reads plain files alone.

    The metadata is ``url``, ``date``, ``language``, ``language_score``, ``corpus`` (the dump), ``file_path``, the
    values of `statistics`, and what `set` rules add: ml_filter's keys in its order, then the others. ``url``, ``date``
    and ``file_path`` are those of the metadata, or else the WARC-Target-URI, ``added``, and the path of the document's
    shard. An unknown URL or date is null, and is counted. With `others` the other metadata of the documents follow,
    without the WARC headers. There is no place for the source of the documents.

    `dump` sets the dump. Without it, the dump is the ``corpus``, ``dump`` or ``crawl`` of the metadata, or the name of
    a crawl (``CC-MAIN-2014-41``) in the path of the shard or in the source, or else the source itself.

    Attributes:
        language: the attribute with label and prob, or the field (`metadata.language`)
        statistics: the attribute whose fields go into the metadata; null: none
        dump: the dump of all documents: `2014-41`
        others: keep the other fields of the documents' metadata, too
    """

    VERSION = "2"

    FIELDS = True

    COMPRESSION = "none"

    ABOUT = {
        "text": "the document",
        "id": "of the document: its WARC record's",
        "url": "of the page; null if it is not known",
        "date": "when the page was crawled; null if it is not known",
        "language": "of the document",
        "language_score": "how sure that is; null if it is not known",
        "corpus": "the dump of Common Crawl: year and number",
        "file_path": "where the document comes from",
    }

    language: str = "language"
    statistics: str | None = "statistics"
    dump: str | None = None
    others: bool = False

    def __post_init__(self) -> None:
        if self.dump is not None:
            try:
                Writer.check_label(self.dump)
            except DataError:
                raise ValueError(f"expected a dump such as 2014-41, the name of a folder, got {self.dump!r}") from None

    def wants(self) -> dict[str, Wanted]:
        attributes = {"language": Wanted(self.language, Labelled, not_null=("label",))}
        return attributes | ({"statistics": Wanted(self.statistics, dict[str, Any])} if self.statistics else {})

    def carries(self, fields: Collection[str]) -> Collection[str]:
        results = ["text", "id", "metadata.date" if "metadata.date" in fields else "added", "metadata.file_path"]
        results += [] if "metadata.warc_headers" in fields else ["metadata.url"]
        results += [] if self.dump else ["metadata.corpus"]
        reserved = {*_Metadata.__struct_fields__, "warc_headers"}
        own = (path for path in fields if path.startswith("metadata.") and path.split(".")[1] not in reserved)
        return [*results, *Writer.own_fields([self.language]), *(own if self.others else ())]

    def encode(self, document: Document, mixed: Mixed) -> Iterable[tuple[str, bytes]]:
        own = document.metadata
        language: Labelled = mixed.values["language"]
        score = language.prob if language.prob is not None else own.get("language_score")
        date, path = _text(own, "date") or _added(document), _text(own, "file_path") or mixed.shard
        dump = self.dump or _dump(document, mixed.shard)
        is_number = isinstance(score, int | float) and not isinstance(score, bool)
        label = f"{_checked(dump)}/{Writer.check_label(language.label)}"
        result = _Metadata(url_of({"metadata": own}), date, language.label, score if is_number else None, dump, path)
        for name in ("url", "date"):
            mixed.counts[f"documents without {name}"] += getattr(result, name) is None
        metadata = msgspec.to_builtins(result) | self._statistics(mixed)
        if self.others:
            metadata |= {key: value for key, value in own.items() if key not in {*metadata, "warc_headers"}}
        if mixed.fields:
            raw = Writer.merge_fields(msgspec.Raw(_ENCODER.encode(metadata)), mixed.fields)
            metadata = msgspec.json.decode(raw, type=dict[str, msgspec.Raw])
        ordered = {key: metadata[key] for key in _KEYS if key in metadata}
        raw = msgspec.Raw(_ENCODER.encode(ordered | metadata))
        line = _ENCODER.encode(_Raw(document.text, document.id, raw))
        return [(label, line + b"\n")]

    def _statistics(self, mixed: Mixed) -> dict[str, Any]:
        """Return the fields of the attribute; none may have a name of the format's."""
        if self.statistics is None:
            return {}
        result = mixed.values["statistics"]
        if not isinstance(result, dict):
            raise DataError(f"expected an object at {self.statistics}, got {result!r}")
        if reserved := [name for name in _Metadata.__struct_fields__ if name in result]:
            raise DataError(f"expected fields beside those of the format, got {reserved[0]!r} in {self.statistics}")
        return result

    def part(self, label: str, number: int, parts: int, compression: str) -> str:
        return f"{label}/{number - 1:05d}{self.SUFFIX}{compression}"

    def line(self) -> type[_Line]:
        return _Line

    @classmethod
    def of_file(cls, path: str, line: bytes) -> Self | None:
        try:
            _LINE.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return None
        return cls()


def _text(metadata: Mapping[str, Any], name: str) -> str | None:
    value = metadata.get(name)
    return value if isinstance(value, str) else None


def _added(document: Document) -> str | None:
    try:
        return _DATES.decode(document.row).added if document.row else None
    except msgspec.DecodeError as error:
        raise DataError(f"expected a date at added, got: {error}") from None


def _checked(dump: str) -> str:
    try:
        return Writer.check_label(dump)
    except DataError as error:
        raise DataError(f"{error.message}; say which dump it is: `dump: 2014-41` in `output:`") from None


def _dump(document: Document, shard: str) -> str:
    """Return the dump of a document. The metadata names it, or else the shard's path or the source; or else it is the
    source.
    """
    for text in (_text(document.metadata, name) for name in _NAMED):
        if text:
            return text.removeprefix("CC-MAIN-")
    for text in (shard, document.source):
        if match := _CRAWL.search(text):
            return match[1]
    return document.source
