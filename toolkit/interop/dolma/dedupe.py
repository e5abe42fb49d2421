"""A configuration of Dolma's deduper becomes a ``dedup:`` section of ours."""

import re
from typing import Annotated, Any, Literal

import msgspec

from toolkit.config import settings
from toolkit.config.settings import ConfigNode, ConfigStruct
from toolkit.interop.dolma.places import DOCUMENTS, Translation, resolve, roots_of
from toolkit.rules.expressions import is_name
from toolkit.storage.globs import glob_regex
from toolkit.storage.paths import glob_folders, is_glob


class DocumentsOptions(ConfigStruct):
    """``dedupe.documents``."""

    attribute_name: str
    key: str


class NgramOptions(ConfigStruct):
    """``dedupe.paragraphs.by_ngram``; its page calls the threshold otherwise than its code does."""

    ngram_length: Annotated[int, msgspec.Meta(ge=0)] = 0
    stride: Annotated[int, msgspec.Meta(ge=0)] = 0
    overlap_threshold: float = 1.0
    skip_short_paragraphs: bool = False


class ParagraphsOptions(ConfigStruct):
    """``dedupe.paragraphs``."""

    attribute_name: str
    by_ngram: NgramOptions | None = None
    paragraph_separator: str | None = "\n"


class DedupeOptions(ConfigStruct):
    """``dedupe``."""

    name: str | None = None
    documents: DocumentsOptions | None = None
    paragraphs: ParagraphsOptions | None = None
    skip_empty: bool | None = False
    min_length: int | None = 0
    min_words: int | None = 0
    num_partitions: int | None = 1
    partition_index: int | None = 0
    file_partition: bool | None = False
    document_dir: str | None = "documents"


class BloomOptions(ConfigStruct):
    """``bloom_filter``: hints of its size, of which nothing is needed here, and whether it is only read."""

    file: str | None = None
    read_only: bool = False
    size_in_bytes: int = 0
    estimated_doc_count: int = 0
    desired_false_positive_rate: float = 0.0


class DeduperOptions(ConfigStruct):
    """A configuration of the deduper; of `work_dir` and `is_s3_volume` nothing is needed here.

    Attributes:
        form: a key of ours: ``dolma`` for values as Dolma writes them, spans alone.
        against: A key of ours, with `bloom_filter.read_only`: globs or folders of the documents in the filter.
    """

    documents: list[str]
    dedupe: DedupeOptions
    bloom_filter: BloomOptions | None = None
    processes: int = 1
    compression: dict[str, Any] | None = None
    work_dir: dict[str, Any] | None = None
    is_s3_volume: bool | None = False
    dryrun: bool = False
    form: Literal["own", "dolma"] = "own"
    against: str | list[str] | None = None


def read_deduper(source: ConfigNode) -> Translation:
    """Read a configuration of Dolma's deduper.

    Raises:
        ConfigError: naming file and line of what cannot be used.
    """
    resolve(source)
    options = settings.convert(source, DeduperOptions, "a configuration of Dolma's deduper")
    dedupe, place = options.dedupe, source.at("dedupe")
    _check(source, options)
    if (dedupe.documents is None) == (dedupe.paragraphs is None):
        raise place.error((), "expected one of `documents` and `paragraphs`")
    entry = _documents(dedupe.documents, dedupe, place) if dedupe.documents else _paragraphs(dedupe, place)
    entry["kind"] = "dolma" if options.form == "dolma" or "by_ngram" in entry else "exact"
    if not is_name(entry["as"]):
        of = "documents" if dedupe.documents else "paragraphs"
        raise place.error((of, "attribute_name"), f"expected a name of letters, digits and _, got {entry['as']!r}")
    with source.errors_at("documents"):
        roots = roots_of([_named(document) for document in options.documents], [dedupe.name or entry["as"]])
    if len(roots) > 1 and not options.against:
        raise source.error(
            ("documents",),
            f"expected documents below one folder `documents`, got {', '.join(root.path for root in roots)}: copies in "
            "one of another would not be found; put them below one",
        )
    if options.against:
        patterns = [options.against] if isinstance(options.against, str) else options.against
        with source.errors_at("against"):
            filters = roots_of([_named(item) for item in patterns], [])
        entry |= {"within": False, "against": [{"documents": root.dataset("")["documents"]} for root in filters]}
    configs = []
    for root in roots:
        dataset = root.dataset("")
        if "bookkeeping" in dataset:
            raise source.error(("documents",), f"expected a folder that may be written in beside {root.path}")
        configs.append(
            {"processes": max(1, options.processes), **dataset, "dedup": {dedupe.name or entry["as"]: entry}}
        )
    return Translation(configs, options.dryrun)


def _named(pattern: str) -> str:
    """Return a pattern with the name `documents` in place of a glob."""
    parts = pattern.split("/")
    for i, part in enumerate(parts[:-1]):
        if DOCUMENTS in parts or not is_glob(part) or not glob_regex(part).match(DOCUMENTS):
            continue
        named = "/".join([*parts[:i], DOCUMENTS])
        if glob_folders(named):
            return "/".join([named, *parts[i + 1 :]])
    return pattern


def _check(source: ConfigNode, options: DeduperOptions) -> None:
    """Raise ConfigError for options without an equivalent here."""
    dedupe, place = options.dedupe, source.at("dedupe")
    read_only = bool(options.bloom_filter and options.bloom_filter.read_only)
    if read_only and not options.against:
        raise source.error(
            ("bloom_filter", "read_only"),
            "expected the documents of which the filter was made, as `against=GLOB`: the toolkit does not read "
            "filters of Dolma; `kind: contamination` of our own form finds n-grams of evaluation data, also across "
            "lines",
        )
    if options.against and not read_only:
        raise source.error(("against",), "expected it only with `bloom_filter.read_only: true`")
    if (dedupe.num_partitions or 1) > 1 or dedupe.file_partition:
        key = "file_partition" if dedupe.file_partition else "num_partitions"
        raise place.error(
            (key,), "expected none: the toolkit divides by itself what does not fit into memory; leave it out"
        )
    if dedupe.min_words:
        raise place.error(
            ("min_words",),
            "expected 0: with another number Dolma finds no duplicates at all, and there is no equal here",
        )
    if dedupe.document_dir not in (None, "documents"):
        raise place.error(("document_dir",), f"expected a folder called `documents`, got {dedupe.document_dir!r}")
    compression = options.compression or {}
    if compression.get("input") not in (None, "infer") or compression.get("output") not in (
        None,
        "infer",
        compression.get("input"),
    ):
        raise source.error(("compression",), "expected none: attributes are compressed as their documents")


def _documents(options: DocumentsOptions, dedupe: DedupeOptions, place: ConfigNode) -> dict[str, Any]:
    of = _expression(options.key)
    if of is None:
        raise place.error(
            ("documents", "key"),
            f"expected a path such as $.text, $.id or $.metadata.url, got {options.key!r}; in our own form `of:` takes "
            "any expression",
        )
    if (dedupe.min_length or 0) > 0 and of != "document.text":
        raise place.error(("min_length",), f"expected none for the key {options.key!r}, only for $.text")
    entry = {"unit": "document", "of": of, "as": options.attribute_name, "normalize": _normalisation(dedupe)}
    return entry | ({"when": f"len(document.text) >= {dedupe.min_length}"} if dedupe.min_length else {})


def _paragraphs(dedupe: DedupeOptions, place: ConfigNode) -> dict[str, Any]:
    options = dedupe.paragraphs
    assert options
    if options.paragraph_separator not in (None, "\n"):
        raise place.error(
            ("paragraphs", "paragraph_separator"),
            "expected a line feed, got another separator, whose spans are wrong in Dolma; `unit: paragraph` of our own "
            "form parts texts at blank lines",
        )
    if (dedupe.min_length or 0) > 1:
        raise place.error(
            ("min_length",), "expected at most 1 for paragraphs: lines are compared whatever their length"
        )
    entry: dict[str, Any] = {"unit": "line", "as": options.attribute_name, "normalize": _normalisation(dedupe)}
    if options.by_ngram and options.by_ngram.ngram_length:
        entry["by_ngram"] = msgspec.to_builtins(options.by_ngram)
    return entry


def _normalisation(dedupe: DedupeOptions) -> str:
    return "dolma" if dedupe.skip_empty else "none"


_PATH = re.compile(r"""\$(?:\.[A-Za-z_]\w*|\[(?:'[^'\\]+'|"[^"\\]+")\])+""")
_STEP = re.compile(r"""\.(\w+)|\[['"]([^'"]+)['"]\]""")


def _expression(path: str) -> str | None:
    """Return the expression of a JSONPath to one field; None if it is not one that expressions know."""
    if not _PATH.fullmatch(path):
        return None
    first, *keys = [a or b for a, b in _STEP.findall(path)]
    if first in ("text", "id", "source") and not keys:
        return f"document.{first}"
    if first != "metadata" or not keys:
        return None
    code = "document.metadata"
    for item in keys:
        code = f"get({code}, {item!r}, None)"
    return code
