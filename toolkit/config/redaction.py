"""Configurations as they are shown to others: without the values of keys such as ``password``."""

import re
from typing import Any

import yaml

from toolkit.config.yaml_loader import Loader

SHOWN = "…"
"""Stands for a value."""

_WORDS = r"(?:secrets?|passwords?|passwd|passphrase|token|credentials?|(?:api|access|secret|private)[-_]?key)"
_KEY = re.compile(rf"(?i)(?:.*[^a-z])?{_WORDS}(?:[^a-z].*)?")
_COMMENT = re.compile(rf"(?im)((?:^|\s)#.*?(?<![a-z]){_WORDS}(?![a-z])[\w-]*[\"']?\s*[:=]\s*)\S.*$")
_SETS = re.compile(r"secrets?-\d+")
"""Sets of the tagger ``secrets``, whose settings are none."""


def is_secret(key: str) -> bool:
    """Return True for a key with a secret: ``hf_token``, ``api-key``. But ``tokens`` are counts."""
    return _KEY.fullmatch(key) is not None and _SETS.fullmatch(key) is None


def conceal(text: str) -> str:
    """Return a YAML text without the values of secret keys."""
    try:
        root = yaml.compose(text, Loader)
    except yaml.YAMLError:  # no key can be told from a value
        return f"# {SHOWN}\n"
    results = {(node.start_mark.index, node.end_mark.index) for node in _values(root)}
    for start, end in sorted(results, reverse=True):
        while end > start and text[end - 1] in "\r\n\t ":  # of a block, whose end is where the next line begins
            end -= 1
        text = text[:start] + SHOWN + text[end:]
    return _COMMENT.sub(rf"\1{SHOWN}", text)


def conceal_override(text: str) -> str:
    """Return ``KEY.KEY=VALUE`` without secret values."""
    path, sign, value = text.partition("=")
    return f"{path}{sign}{SHOWN if any(map(is_secret, path.split('.'))) else conceal(value).strip()}"


def _values(root: Any) -> list[Any]:
    """Return the scalar nodes under secret keys, also through aliases."""
    results, visited = [], set()
    waiting = [(root, False)]
    while waiting:
        node, secret = waiting.pop()
        if (id(node), secret) in visited:
            continue
        visited.add((id(node), secret))
        if isinstance(node, yaml.MappingNode):
            waiting += [
                (value, secret or (isinstance(key, yaml.ScalarNode) and is_secret(key.value)))
                for key, value in node.value
            ]
        elif isinstance(node, yaml.SequenceNode):
            waiting += [(item, secret) for item in node.value]
        elif secret and node is not None and node.value:
            results.append(node)
    return results
