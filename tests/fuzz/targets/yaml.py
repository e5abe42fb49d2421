"""Configurations: YAML, the top level, and the sections that are read without looking at any file."""

import re
from functools import partial
from pathlib import Path

from tests.fuzz.targets._files import refuses
from toolkit.config import settings as config
from toolkit.config.settings import Config, ConfigNode
from toolkit.errors import ConfigError
from toolkit.ingest import ingest_config
from toolkit.rules.rules_yaml import read_rules
from toolkit.storage.globs import glob_regex

_CONFIGS = Path(__file__).parents[3] / "configs"
SEEDS = [
    b"dataset: d\nprocesses: 2\ningest:\n  - {format: wet, from: ['*.gz'], source: cc, trim: {min_chars: 101}}\n",
    b"mix:\n  rules:\n    - {drop: a > 1, name: x}\n    - group: g\n      when: b\n      rules: [{keep: c}]\n",
    b"mix:\n  parameters: {p: 6}\n  rules:\n    - {annotate: x, when: n > p}\n    - {replace: emails, by: '|||'}\n",
    b"a: &a {x: 1, y: [1, 2]}\nb: {<<: *a, x: 2}\nc: [*a, *a]\n",
    b"max_document_bytes: 1 GB\nstorage: {connect_timeout: 3 s}\nexecutor: {type: local}\n",
    b"ingest:\n  - {format: csv, from: x, delimiter: ';', typed: {n: int}}\n  - {format: wet, crawl: CC-/2024/02}\n",
    *(path.read_bytes() for path in sorted(_CONFIGS.glob("goclassy.yaml"))),
]


def check(data: bytes) -> None:
    text = data.decode("utf-8", errors="replace")
    try:
        source = config.parse(text, "c.yaml")
    except ConfigError as error:
        assert re.match(r"c\.yaml(:\d+)?: ", str(error))  # noqa: PT017
        return
    config.plain(source.value)
    again = config.parse(config.dump(source.value), "c.yaml")
    assert again.value == source.value, "expected the same from what is printed"
    refuses(lambda: config.convert(source, Config))
    if not isinstance(source.value, dict):
        return
    if source.value.get("ingest"):
        refuses(lambda: ingest_config.read_section(source.at("ingest")))
    mix = source.value.get("mix")
    if isinstance(mix, dict) and mix.get("rules") and "include" not in text:
        refuses(lambda: read_rules(source.at("mix", "rules")))
    for each in _texts(source):
        refuses(partial(glob_regex, each))


def _texts(source: ConfigNode) -> list[str]:
    top = source.value if isinstance(source.value, dict) else {}
    return [each for each in top.values() if isinstance(each, str)]
