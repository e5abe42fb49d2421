"""A loader of YAML: version 1.2 where 1.1 surprises, and bounds on what a small text can ask for."""

import re
from typing import Any

import yaml

MAX_DEPTH = 100
"""Levels of lists and mappings in each other."""

MAX_VALUES = 200_000
"""Values of a configuration, each alias counted with all that it stands for."""


class Loader(yaml.SafeLoader):
    """Refuses what would take much more time and memory than there is text, before it is expanded."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._depth = 0
        self._count = 0
        self._sizes: dict[int, int] = {}  # values below each node, by its identity

    def compose_node(self, parent: Any, index: Any) -> Any:
        mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]
        is_alias = self.check_event(yaml.AliasEvent)
        if self._depth >= MAX_DEPTH:
            raise yaml.MarkedYAMLError(
                problem=f"more than {MAX_DEPTH} lists and mappings in each other", problem_mark=mark
            )
        before = self._count
        self._depth += 1
        node: Any = super().compose_node(parent, index)
        self._depth -= 1
        self._count += self._sizes.get(id(node), 0) if is_alias else 1
        if self._count > MAX_VALUES:
            raise yaml.MarkedYAMLError(
                problem=f"more than {MAX_VALUES:,} values, where an alias counts as all values that it names",
                problem_mark=mark,
            )
        if not is_alias:
            self._sizes[id(node)] = self._count - before
        return node


# PyYAML reads version 1.1. These lines are fewer than what another library would need: ruamel.yaml makes dates of
# `2024-01-01` and numbers of `0b11`, and yamlcore a text of `1_000_000`, which configurations have for a size.
_CHANGED = {f"tag:yaml.org,2002:{name}" for name in ("bool", "int", "float", "timestamp")}
Loader.yaml_implicit_resolvers = {
    first: [(tag, regexp) for tag, regexp in resolvers if tag not in _CHANGED]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
Loader.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile(r"^(?:true|True|TRUE|false|False|FALSE)$"), "tTfF")
Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(
        r"^[-+]?(?:\d[\d_]*\.[\d_]*(?:[eE][-+]?\d+)?|\.\d[\d_]*(?:[eE][-+]?\d+)?|\d[\d_]*[eE][-+]?\d+|\.inf|\.nan)$"
    ),
    "-+0123456789.",
)


Loader.add_implicit_resolver(
    "tag:yaml.org,2002:int", re.compile(r"^(?:[-+]?\d[\d_]*|0o[0-7]+|0x[0-9a-fA-F]+)$"), list("-+0123456789")
)


def _construct_int(loader: yaml.SafeLoader, node: yaml.ScalarNode) -> int:
    text = str(loader.construct_scalar(node)).replace("_", "")
    if len(text) <= 30:
        value = int(text, 0) if text.startswith(("0o", "0x")) else int(text)
        if -(1 << 63) <= value < 1 << 64:
            return value
    raise ValueError(f"a number of more than 64 bits, {text[:20]}…")


Loader.add_constructor("tag:yaml.org,2002:int", _construct_int)
