"""Places of documents and attributes in Dolma, and ``${…}`` in its configurations."""

import os
import re
from typing import Any, NamedTuple

import msgspec

from toolkit.config.settings import ConfigNode, without_secret
from toolkit.config.yaml_nodes import Path
from toolkit.errors import ConfigError
from toolkit.storage import store_of
from toolkit.storage.paths import BOOKKEEPING, glob_folders, is_folder, is_glob, join

_REFERENCE = re.compile(r"\$\{([^${}]*)\}")


class Translation(NamedTuple):
    """Our configurations for one of Dolma's.

    Attributes:
        configs: Configurations of ours, one for each output folder or root of documents.
        dry_run: True for a dry run.
        overwrite: True to make existing attributes again.
    """

    configs: list[dict[str, Any]]
    dry_run: bool
    overwrite: bool = False


def resolve(source: ConfigNode) -> None:
    """Replace ``${oc.env:NAME,DEFAULT}``, ``${d.processes:N}`` and references such as ``${streams[0].name}``.

    Raises:
        ConfigError: if one leads nowhere, or is of another kind.
    """
    source.value = _resolved(source.value, (), source, ())


def _resolved(value: Any, path: Path, source: ConfigNode, around: tuple[str, ...]) -> Any:
    if isinstance(value, dict):
        return {key: _resolved(item, (*path, key), source, around) for key, item in value.items()}
    if isinstance(value, list):
        return [_resolved(item, (*path, i), source, around) for i, item in enumerate(value)]
    if not isinstance(value, str):
        return value
    if whole := _REFERENCE.fullmatch(value):
        result = _looked_up(whole[1], path, source, around)
    else:
        result = _REFERENCE.sub(lambda match: str(_looked_up(match[1], path, source, around)), value)
    return without_secret(result, path, source) if isinstance(result, str) else result


def _looked_up(text: str, path: Path, source: ConfigNode, around: tuple[str, ...]) -> Any:
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
    """Return a text as number or truth value, if possible."""
    try:
        return msgspec.json.decode(text, type=bool | int | float)
    except msgspec.DecodeError:
        return text


def _referred(text: str, path: Path, source: ConfigNode, around: tuple[str, ...]) -> Any:
    if text in around:
        raise source.error(path, f"expected a reference that ends, got ${{{text}}} leading to itself")
    value: Any = source.value
    for key in re.findall(r"[^.\[\]]+", text):
        try:
            value = value[int(key)] if isinstance(value, list) else value[key]
        except (KeyError, IndexError, TypeError, ValueError):
            raise source.error(path, f"expected a key of this configuration in ${{…}}, got {text!r}") from None
    return _resolved(value, path, source, (*around, text))


DOCUMENTS = "documents"


class Root(msgspec.Struct):
    """Documents below one folder.

    Attributes:
        path: the folder.
        order: the globs over its shards, with numbers that say in which order Dolma reads what they match; those of all
            roots together are one count.
    """

    path: str
    order: dict[str, int] = {}

    def dataset(self, notes: str) -> dict[str, Any]:
        """Return the value of `dataset:` in a stream.

        Args:
            notes: folder for our records where there is no place for them beside the documents; empty if there must be.
        """
        parent, name = os.path.split(self.path)
        beside = parent or "."
        results: dict[str, Any] = {
            "documents": {"path": self.path, "include": list(self.order)},
            "attributes": join(beside, "attributes") if name == DOCUMENTS else join(self.path, "attributes"),
        }
        if name != DOCUMENTS or not _may_write(beside, notes):
            folder = self.path.strip("/").replace("/", "_") or "root"
            results["bookkeeping"] = join(notes, BOOKKEEPING, "inputs", folder)
        return results


def _may_write(folder: str, notes: str) -> bool:
    """Return True if our records go beside documents. In a bucket, for a mix, they must be there, as of `tag`.

    So they do where there is no such folder: that there are no documents is said by who looks for them.
    """
    if not store_of(folder).is_local:
        return not notes or is_folder(join(folder, BOOKKEEPING))
    return os.access(folder, os.W_OK) or not os.path.lexists(folder)


def roots_of(patterns: list[str], attributes: list[str]) -> list[Root]:
    """Return the documents folders of globs, in the order of the globs.

    Args:
        patterns: Patterns of documents; a folder stands for all below it.
        attributes: the sets that are wanted beside them.

    Raises:
        ConfigError: if nothing matches, or attributes are wanted and no part of the path is called ``documents``.
    """
    results: dict[str, Root] = {}
    number = 0
    for pattern in patterns:
        above, below = split(pattern)
        if above is None:
            if attributes:
                raise ConfigError(
                    f"{pattern}: expected a folder `documents` in the path, beside which `attributes` is; got none"
                )
            above, below = fixed(pattern)
        roots = glob_folders(above) if is_glob(above) else [above or "."]
        if not roots:
            raise ConfigError(f"{pattern}: expected at least one folder {above}, got no match")
        for path in roots:
            inside = f"{below}/**" if below and is_folder(join(path, below)) else below
            results.setdefault(path, Root(path)).order.setdefault(inside or "**", number)
            number += 1
    return list(results.values())


def split(pattern: str) -> tuple[str | None, str]:
    """Return the folder ``documents`` of a path, and the rest; None without one."""
    parts = pattern.rstrip("/").split("/")
    if DOCUMENTS not in parts:
        return None, pattern
    at = parts.index(DOCUMENTS)
    return "/".join(parts[: at + 1]), "/".join(parts[at + 1 :])


def fixed(pattern: str) -> tuple[str, str]:
    """Return the common folder of a glob's matches, and the rest."""
    parts = pattern.rstrip("/").split("/")
    n = next((i for i, part in enumerate(parts) if is_glob(part)), len(parts) - 1)
    return "/".join(parts[:n]) or ("/" if parts[0] == "" else "."), "/".join(parts[n:])
