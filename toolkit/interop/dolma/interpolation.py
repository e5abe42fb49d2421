"""``${…}`` in Dolma's configurations, as OmegaConf and Dolma's own resolvers replace it."""

import os
import re
from typing import Any

import msgspec

from toolkit.config.explaining import Path
from toolkit.config.settings import Source, without_secret

_REFERENCE = re.compile(r"\$\{([^${}]*)\}")


def resolve(source: Source) -> None:
    """Replace ``${oc.env:NAME,DEFAULT}``, ``${d.processes:N}`` and references such as ``${streams[0].name}``.

    Raises:
        ConfigError: if one leads nowhere, or is of another kind.
    """
    source.value = _resolved(source.value, (), source, ())


def _resolved(value: Any, path: Path, source: Source, around: tuple[str, ...]) -> Any:
    if isinstance(value, dict):
        return {key: _resolved(each, (*path, key), source, around) for key, each in value.items()}
    if isinstance(value, list):
        return [_resolved(each, (*path, i), source, around) for i, each in enumerate(value)]
    if not isinstance(value, str):
        return value
    if whole := _REFERENCE.fullmatch(value):
        found = _looked_up(whole[1], path, source, around)
    else:
        found = _REFERENCE.sub(lambda match: str(_looked_up(match[1], path, source, around)), value)
    return without_secret(found, path, source) if isinstance(found, str) else found


def _looked_up(text: str, path: Path, source: Source, around: tuple[str, ...]) -> Any:
    resolver, colon, argument = text.partition(":")
    if not colon:
        return _referred(text, path, source, around)
    if resolver == "oc.env":
        name, comma, default = argument.partition(",")
        if name not in os.environ and not comma:
            raise source.error(path, f"expected the environment variable {name} to be set")
        return _scalar(os.environ.get(name, default.strip()))
    if resolver == "d.processes":
        if not argument.strip("-").isdecimal():
            raise source.error(path, f"expected a number of processes to leave, got {argument!r}")
        return max(1, (os.cpu_count() or 1) - int(argument))
    if resolver == "d.glob":
        return [argument]
    raise source.error(
        path, f"expected oc.env, d.processes or d.glob in ${{…}}, got {resolver!r}; write the value itself"
    )


def _scalar(text: str) -> Any:
    """Return the number or the truth value that a text is, or else the text."""
    try:
        return msgspec.json.decode(text, type=bool | int | float)
    except msgspec.DecodeError:
        return text


def _referred(text: str, path: Path, source: Source, around: tuple[str, ...]) -> Any:
    if text in around:
        raise source.error(path, f"expected a reference that ends, got ${{{text}}} leading to itself")
    value: Any = source.value
    for key in re.findall(r"[^.\[\]]+", text):
        try:
            value = value[int(key)] if isinstance(value, list) else value[key]
        except (KeyError, IndexError, TypeError, ValueError):
            raise source.error(path, f"expected a key of this configuration in ${{…}}, got {text!r}") from None
    return _resolved(value, path, source, (*around, text))
