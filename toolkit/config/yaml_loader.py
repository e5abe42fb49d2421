"""A loader of YAML: version 1.2 where 1.1 surprises, bounds on what a small text can ask for; errors in our form."""

import math
import os
import re
from typing import Any

import yaml

from toolkit.config import recipes
from toolkit.config.settings import TEXTS, ConfigNode, without_secret
from toolkit.config.yaml_nodes import Path
from toolkit.errors import ConfigError

MAX_DEPTH = 100
"""Levels of lists and mappings in each other."""

MAX_VALUES = 200_000
"""Values of a configuration, each alias counted with all that it stands for."""


class Loader(yaml.SafeLoader):
    """Refuses YAML of excessive size after expansion, before it is expanded."""

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


def read(text: str, name: str, inside: Path) -> ConfigNode:
    """Read a text; see `toolkit.config.settings.parse`."""
    try:
        loader = Loader(text)
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise ConfigError(f"{name}:{line}: expected YAML, got the character U+{int(error.character):04X}") from None
    try:
        node = loader.get_single_node()
        source = ConfigNode(None, name, inside=inside)
        source.value = _build(loader, node, (), source, ()) if node is not None else None
        return source
    except (yaml.YAMLError, ValueError) as error:
        mark = getattr(error, "problem_mark", None)
        place = f"{name}:{mark.line + 1}" if mark else name
        problem = getattr(error, "problem", None) or str(error)
        hint = next((advice for sign, advice in _ADVICE.items() if sign in problem), "")
        raise ConfigError(f"{place}: expected YAML, got: {problem}{hint}") from None
    finally:
        loader.dispose()


_ADVICE = {
    "',' or '}'": "; inside of braces, write quotes around an expression that has commas, brackets or braces",
    "found '<scalar>'": "; write single quotes around the whole of an expression that begins with a quote",
    "constructor for the tag '!": "; write `not` for !, or quotes around a text that begins with !",
    "mapping values are not allowed": "; write quotes around a text that has `: ` in it",
    "found character '\\t'": "; indent with spaces, not with tabs",
}
"""The way out by words of the messages of PyYAML."""
_COLLECTIONS = ("tag:yaml.org,2002:seq", "tag:yaml.org,2002:map")


def _build(loader: Any, node: yaml.Node, path: Path, source: ConfigNode, around: tuple[yaml.Node, ...]) -> Any:
    source.lines[path] = node.start_mark.line + 1
    if node in around:
        raise source.error(path, "expected a value that does not contain itself")
    around = (*around, node)
    if isinstance(node, yaml.CollectionNode) and node.tag not in _COLLECTIONS:
        raise source.error(path, f"expected no tag, got {node.tag.removeprefix('tag:yaml.org,2002:')}")
    if isinstance(node, yaml.MappingNode):
        return _build_mapping(loader, node, path, source, around)
    if isinstance(node, yaml.SequenceNode):
        return [_build(loader, child, (*path, i), source, around) for i, child in enumerate(node.value)]
    try:
        value = loader.construct_object(node)
    except ValueError as error:
        raise source.error(path, f"expected a value, got {error}") from None
    except (KeyError, AttributeError):  # PyYAML's, of values that are not what their tags say
        tag = node.tag.rpartition(":")[2]
        raise source.error(path, f"expected a value of the tag !!{tag}, got {node.value[:50]!r}") from None
    if not isinstance(value, str | int | float | None):
        raise source.error(path, f"expected a text, a number, true or false; got {node.tag.rpartition(':')[2]}")
    if isinstance(value, float) and math.isnan(value):
        raise source.error(path, f"expected a number, got {value}, which cannot be compared with a number")
    if isinstance(value, str):
        value = _substitute(loader, value, path, source)
    return _text(value, path, source) if isinstance(value, str) else value


def _characters(text: str, path: Path, source: ConfigNode) -> str:
    r"""Return a text with surrogate pairs joined, as JSON may have them: `"\ud83d\ude00"`."""
    try:
        return text.encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError:
        raise source.error(path, "expected characters, got half of a surrogate pair") from None


def _text(text: str, path: Path, source: ConfigNode) -> str:
    """Return a text as settings have it: of ``recipe:…`` the path, and no secrets of addresses."""
    text = _characters(text, path, source)
    keys = (*source.inside, *path)
    if recipes.is_reference(text) and keys[:1] != ("about",) and keys[-1:] not in {(key,) for key in TEXTS}:
        with source.errors_at(*path):
            return recipes.resolved(text)
    return without_secret(text, path, source)


def _build_mapping(
    loader: Any, node: yaml.MappingNode, path: Path, source: ConfigNode, around: tuple[yaml.Node, ...]
) -> dict[str, Any]:
    keys: set[str] = set()
    for key_node, _ in node.value:
        if not isinstance(key_node, yaml.ScalarNode):
            place = f"{source.name}:{key_node.start_mark.line + 1}"
            raise ConfigError(f"{place}: expected a word for a key, got a list or a mapping")
        key = _characters(str(key_node.value), path, source)
        if key in keys:
            source.lines[(*path, key)] = key_node.start_mark.line + 1
            raise source.error((*path, key), "expected each key once, got it twice")
        keys.add(key)
    loader.flatten_mapping(node)  # merged keys (<<) come first, so that those written here override them
    result: dict[str, Any] = {}
    for key_node, value_node in node.value:
        key = _characters(str(key_node.value), path, source)
        result[key] = _build(loader, value_node, (*path, key), source, around)
        source.lines[(*path, key)] = key_node.start_mark.line + 1
    return result


_VARIABLE = r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}"


def _substitute(loader: Any, text: str, path: Path, source: ConfigNode) -> Any:
    """Return a text with ``${NAME}`` replaced; of a text that is nothing else, return the value as YAML."""

    def value(match: re.Match[str]) -> str:
        if match[1] not in os.environ:
            raise source.error(path, f"expected the environment variable {match[1]} to be set")
        return os.environ[match[1]]

    result = re.sub(_VARIABLE, value, text)
    if re.fullmatch(_VARIABLE, text):
        return loader.construct_object(yaml.ScalarNode(loader.resolve(yaml.ScalarNode, result, (True, False)), result))
    return result
