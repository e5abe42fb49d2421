"""Dolma's tagger configurations as ``tag:`` sections of ours, for our taggers."""

import functools
import re
from collections.abc import Iterable
from typing import Any

from toolkit.config import settings
from toolkit.config.settings import ConfigNode, ConfigStruct
from toolkit.errors import ConfigError, amount, did_you_mean
from toolkit.interop.dolma.places import Translation, fixed, resolve, roots_of, split
from toolkit.storage.paths import is_folder, join
from toolkit.tag.tagger import TAGGERS
from toolkit.tag.tagger_docs import choices

BAD_WORDS = (
    "https://raw.githubusercontent.com/LDNOOBW/List-of-Dirty-Naughty-Obscene-and-Otherwise-Bad-Words/"
    "25e679f03d96baa721cde20db9944649e8d0a844/en"
)
"""The list that comes with Dolma (Shutterstock, CC BY 4.0), word for word."""

PII_TYPES = ["EMAIL_ADDRESS", "PHONE_NUMBER", "IP_ADDRESS"]
LICENCES = ["by", "by-sa", "by-nd", "by-nc", "by-nc-sa", "by-nc-nd", "publicdomain"]

Meaning = dict[str, dict[str, Any]]


def _lengths(**types: dict[str, Any]) -> Meaning:
    return {type_: {"tagger": "length_spans", **options} for type_, options in types.items()}


def _variants(tagger: str, types: Iterable[str] = (), **options: Any) -> Meaning:
    """Return a tagger of ours by types, all of them or some. They are names of its option `type`."""
    names = types or choices(TAGGERS.find(tagger), "type")
    return {type_: {"tagger": tagger, "type": type_, **options} for type_ in names}


def _word_lengths(**options: Any) -> Meaning:
    """Return taggers for the words of each line, and of all lines; each once more with a minus."""
    per_line = {"unit": "words", "per": "line", **options}
    return _lengths(paragraph=per_line, negative_paragraph={**per_line, "negative": True})


@functools.cache
def meanings() -> dict[str, Meaning]:
    """Return Dolma's taggers with their types of spans, and our equivalents.

    The types of one, called ``""``, depend on the data: they are the keys of one object.
    """
    return {
        "bytes_length_v1": _lengths(bytes={"unit": "bytes"}),
        "c4_v1": _variants("dolma_c4"),
        "c4_v2": _variants("dolma_c4", version=2),
        "cc_re": {"": {"tagger": "dolma_licenses"}},
        "cc_re_fast": {f"cc_{name}": {"tagger": "dolma_license_links", "license": name} for name in LICENCES},
        "char_length_v1": _lengths(length={}),
        "char_length_strip_ws_v1": _lengths(length_no_ws={"unit": "stripped"}),
        "char_length_with_paragraphs_v1": _lengths(paragraph={"per": "line"}, document={}),
        "doc_count_v1": _lengths(docs={"unit": "documents"}),
        "gopher_v1": _variants("dolma_gopher"),
        "gopher_v2": _variants("dolma_gopher", version=2),
        "not_alphanum_paragraph_v1": {"all_punct": {"tagger": "punctuation_lines"}},
        "olmo_pretokenizer_v1": _lengths(length={"unit": "pretokens"}),
        "olmo_pretokenizer_with_paragraphs_v1": _lengths(
            paragraph={"unit": "pretokens", "per": "line"}, document={"unit": "pretokens", "per": "sum"}
        ),
        "paragraph_repetitions_v1": _variants("dolma_repetitions", per="line"),
        "pii_regex_v1": _variants("dolma_pii", [*PII_TYPES, "doc"]),
        "pii_regex_v2": _variants("dolma_pii", [*PII_TYPES, "doc"]),
        "pii_regex_with_counts_v2": _variants("dolma_pii", [*PII_TYPES, "doc", "doc_count"]),
        "pii_regex_with_counts_fast_v2": _variants("dolma_pii", [*PII_TYPES, "doc_count", "doc_frac"], per="line"),
        "random_number_v1": {"random": {"tagger": "dolma_random"}},
        "repetitions_v1": _variants("dolma_repetitions"),
        "uniseg_length_v1": _lengths(length={"unit": "segments"}),
        "uniseg_length_paragraphs_v1": _word_lengths(),
        "uniseg_length_paragraphs_with_empty_v1": _word_lengths(blank=True),
        "uniseg_length_paragraphs_with_doc_length_v1": _word_lengths()
        | _lengths(
            document={"unit": "words", "per": "sum"},
            negative_document={"unit": "words", "per": "sum", "negative": True},
        ),
        "whitespace_tokenizer_v1": _lengths(length={"unit": "tokens"}),
        "whitespace_tokenizer_with_paragraphs_v1": _lengths(
            paragraph={"unit": "tokens", "per": "line"}, document={"unit": "tokens", "per": "sum"}
        ),
    }


class TaggerOptions(ConfigStruct):
    """A configuration of the tagger; of `profile`, `debug` and `work_dir` nothing is needed here.

    Attributes:
        destination: folders of attributes, one for each of the documents; the last part of each is the set's name.
        bad_words: a key of ours: the list for `c4_v1` and `c4_v2`, for machines that cannot fetch Dolma's.
    """

    documents: list[str]
    taggers: list[str]
    experiment: str | None = None
    destination: list[str] | None = None
    tagger_modules: list[str] = []
    processes: int = 1
    ignore_existing: bool = False
    dryrun: bool = False
    debug: bool = False
    profile: dict[str, Any] | None = None
    work_dir: dict[str, Any] | None = None
    bad_words: str = BAD_WORDS


def read_tagger(source: ConfigNode) -> Translation:
    """Read a configuration of Dolma's tagger.

    Keys are ``{experiment}__{tagger}__{type}``, and without an experiment each tagger has a set of its own.

    Raises:
        ConfigError: naming file and line of what cannot be used.
    """
    resolve(source)
    options = settings.convert(source, TaggerOptions, "a configuration of Dolma's tagger")
    if options.tagger_modules:
        why = "Dolma's own tagger classes cannot run here; see the page on writing a tagger"
        raise source.error(("tagger_modules",), f"expected none: {why}")
    if options.experiment and options.experiment[0].isdigit():
        raise source.error(
            ("experiment",), f"expected a name that does not begin with a digit, got {options.experiment!r}"
        )
    tag: dict[str, list[dict[str, Any]]] = {}
    for i, name in enumerate(options.taggers):
        if name not in meanings():
            raise source.error(
                ("taggers", i), f"expected a tagger of Dolma's that has its like here, got {_other(name)}"
            )
        if name in options.taggers[:i]:
            continue
        experiment = options.experiment or name
        for type_, tagger in meanings()[name].items():
            key = "__".join(re.sub("[^a-zA-Z0-9_]", "_", part) for part in (experiment, name, type_) if part)
            entry = {**tagger, "as": key}
            if type_ == "has_naughty_word":
                entry["bad_words"] = options.bad_words
            tag.setdefault(experiment, []).append(entry)
    with source.errors_at("destination" if options.destination else "documents"):
        datasets = _redirected(options, tag) if options.destination else _beside(options, tag)
    configs = [{"processes": max(1, options.processes), **dataset} for dataset in datasets]
    return Translation(configs, options.dryrun, options.ignore_existing)


def _beside(options: TaggerOptions, tag: dict[str, list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """Return a dataset for each folder of documents, with its `tag:` section; attributes go beside the documents."""
    datasets = []
    for root in roots_of(options.documents, list(tag)):
        dataset = root.dataset("")
        if "bookkeeping" in dataset:
            raise ConfigError(f"expected a folder that may be written in beside {root.path}; or give a `destination:`")
        datasets.append(dataset | {"tag": tag})
    return datasets


def _redirected(options: TaggerOptions, tag: dict[str, list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """Return datasets with attributes in destinations, all taggers in one set.

    There is one for each entry of `documents`.

    As in Dolma paths below it are those below the fixed part of the glob. Where both end in the same folders these are
    part of the paths, so that a mix finds the attributes.
    """
    destinations = options.destination or []
    if len(destinations) != len(options.documents):
        raise ConfigError(
            f"expected one for each of {amount(len(options.documents), 'document')}, got {len(destinations)}"
        )
    entries = [entry for listed in tag.values() for entry in listed]
    results: dict[tuple[str, str], dict[str, Any]] = {}
    for pattern, destination in zip(options.documents, destinations, strict=True):
        above, below = fixed(join(pattern.rstrip("/"), "**") if is_folder(pattern) else pattern)
        target = destination.rstrip("/")
        documents, _ = split(above)
        if documents and above != documents and target.endswith(inner := above[len(documents) :]):
            above, below, target = documents, join(inner[1:], below), target[: -len(inner)]
        attributes, _, name = target.rpartition("/")
        if not name or not attributes or attributes.endswith(":/"):
            raise ConfigError(f"expected a folder such as data/attributes/NAME, got {destination!r}")
        dataset = results.setdefault(
            (above, target),
            {"documents": {"path": above, "include": []}, "attributes": attributes, "tag": {name: entries}},
        )
        dataset["documents"]["include"].append(below)
    return list(results.values())


_LANGUAGE = (
    "the language of a text is `text_language` here, of its lines `line_language`, of a page by these `language`"
)
_LIKE = {
    r"(cld[23]|ft_lang|langdetect|lingua)_": _LANGUAGE,
    r"pii_presidio": "`pii_presidio` is a tagger of our own form",
    r"(jigsaw|dclm|dolma17)": "a fastText model of your own runs in `fasttext_label` or `fasttext_spans`",
    r"tokenizers_|dolma_v\d_tokenizer": "`tokens` counts with a tokenizer file",
    r"code_secrets": "`secrets` is a tagger of our own form",
    r"(domain|link|oisd|brave|blocklist|allowlist)_": "`url_list` takes lists of domains and URLs",
}
"""Hints for taggers that have no equal here, by what their names begin with."""


def _other(name: str) -> str:
    """Return the name of an unavailable tagger, with a hint."""
    like = next((hint_text for names, hint_text in _LIKE.items() if re.match(names, name)), None)
    hint = f"; {like}: `toolkit taggers`" if like else did_you_mean(name, meanings())
    return repr(name) + (hint or f"; there are: {', '.join(meanings())}")
