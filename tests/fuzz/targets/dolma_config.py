"""Configurations of Dolma's mixer, tagger and deduper, read into ours."""

import json
from collections.abc import Callable
from functools import partial
from typing import Any

from tests.fuzz.targets._files import refuses
from toolkit.config import settings as config
from toolkit.config.settings import Config, ConfigNode
from toolkit.errors import ConfigError
from toolkit.interop import dolma
from toolkit.interop.dolma.dedupe import read_deduper
from toolkit.interop.dolma.mixer import read_mixer
from toolkit.interop.dolma.tagger import read_tagger

_MIXER = {
    "processes": 2,
    "streams": [{
        "name": "s",
        "documents": ["d/documents/**/*.gz"],
        "attributes": ["exp"],
        "output": {"path": "out", "max_size_in_bytes": 1000},
        "filter": {"include": ["$.attributes[?(@.a)]"], "exclude": [], "syntax": "jsonpath"},
        "span_replacement": [{"span": "$.attributes.e", "min_score": 0.5, "replacement": "x"}],
    }],
}  # fmt: skip
_TAGGER = {"taggers": ["random_number_v1", "gopher_v1"], "documents": ["d/documents/*"], "experiment": "e"}
_DEDUPER = {
    "documents": ["d/documents/*"],
    "dedupe": {"name": "n", "documents": {"key": "$.text", "attribute_name": "dup"}, "skip_empty": True},
    "bloom_filter": {"file": "b", "read_only": False, "estimated_doc_count": 10, "desired_false_positive_rate": 0.01},
}
SEEDS = [json.dumps(each).encode() for each in (_MIXER, _TAGGER, _DEDUPER)] + [
    b"streams:\n  - name: ${oc.env:X}\n    documents: [${d.lookup:a}]\n    output: {path: ${work_dir.output}}\n"
]


def check(data: bytes) -> None:
    text = data.decode("utf-8", errors="replace")
    for read in (read_mixer, read_tagger, read_deduper):
        try:
            source = config.parse(text, "c.yaml")
        except ConfigError:
            return
        dolma.is_dolma(source)
        if not isinstance(source.value, dict) or not source.value:
            return
        for command in ("mix", "tag", "dedup"):
            refuses(partial(dolma.check, source, command))
        refuses(partial(_whole, read, source))


def _whole(read: Callable[[ConfigNode], Any], source: ConfigNode) -> None:
    """Read a configuration, and what it comes to."""
    for each in read(source).configs:
        config.convert(ConfigNode(each, "c.yaml"), Config)
