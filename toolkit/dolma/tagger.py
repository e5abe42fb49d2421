"""A configuration of Dolma's tagger becomes a ``tag:`` section of ours, for taggers that we have."""

from typing import Any

import msgspec

from toolkit import config
from toolkit.config import ConfigStruct, Source
from toolkit.dolma.interpolation import resolve
from toolkit.dolma.places import roots_of
from toolkit.errors import ConfigError, did_you_mean

MEANINGS: dict[str, dict[str, dict[str, Any]]] = {
    "bytes_length_v1": {"bytes": {"tagger": "length_spans", "unit": "bytes"}},
    "char_length_v1": {"length": {"tagger": "length_spans"}},
    "char_length_strip_ws_v1": {"length_no_ws": {"tagger": "length_spans", "unit": "stripped"}},
    "char_length_with_paragraphs_v1": {
        "paragraph": {"tagger": "length_spans", "per": "line"},
        "document": {"tagger": "length_spans"},
    },
    "doc_count_v1": {"docs": {"tagger": "length_spans", "unit": "documents"}},
}
"""Dolma's taggers, with the types of spans that each writes, and what writes the same here."""


class TaggerOptions(ConfigStruct):
    """A configuration of the tagger; of `profile`, `debug` and `work_dir` nothing is needed here."""

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


class Tags(msgspec.Struct, frozen=True):
    """What a configuration of the tagger comes to.

    Attributes:
        configs: configurations of ours, one for each root of documents.
        dry_run: whether it asks for no more than that.
        overwrite: whether what is there is to be made again.
    """

    configs: list[dict[str, Any]]
    dry_run: bool
    overwrite: bool


def read_tagger(source: Source) -> Tags:
    """Reads a configuration of Dolma's tagger.

    Keys are ``{experiment}__{tagger}__{type}``, and without an experiment each tagger has a set of its own.

    Raises:
        ConfigError: naming file and line of what cannot be used.
    """
    resolve(source)
    found = config.convert(source, TaggerOptions, "a configuration of Dolma's tagger")
    for key, why in (
        ("destination", "attributes go beside the documents; name another root in a configuration of ours"),
        ("tagger_modules", "Dolma's own tagger classes cannot run here; see the page on writing a tagger"),
    ):
        if getattr(found, key):
            raise source.error((key,), f"expected none: {why}")
    tag: dict[str, list[dict[str, Any]]] = {}
    for i, name in enumerate(found.taggers):
        if name not in MEANINGS:
            hint = did_you_mean(name, MEANINGS) or f"; there are: {', '.join(MEANINGS)}"
            raise source.error(
                ("taggers", i), f"expected a tagger of Dolma's that has its like here, got {name!r}{hint}"
            )
        experiment = found.experiment or name
        for type_, tagger in MEANINGS[name].items():
            tag.setdefault(experiment, []).append({**tagger, "as": f"{experiment}__{name}__{type_}"})
    try:
        roots = roots_of(found.documents, list(tag), "")
    except ConfigError as error:
        raise source.error(("documents",), str(error)) from None
    for root in roots:
        if "bookkeeping" in root:
            raise source.error(("documents",), f"expected a folder that may be written in beside {root['documents']}")
    configs = [{"processes": max(1, found.processes), **root, "tag": tag} for root in roots]
    return Tags(configs, found.dryrun, found.ignore_existing)
