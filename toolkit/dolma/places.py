"""Where Dolma has documents and their attributes: ``…/documents/X`` and ``…/attributes/SET/X``."""

import glob
import os
from typing import Any

from toolkit.errors import ConfigError
from toolkit.paths import is_glob, join

DOCUMENTS = "documents"


def roots_of(patterns: list[str], attributes: list[str], notes: str) -> list[dict[str, Any]]:
    """The datasets that globs over documents reach into.

    Args:
        patterns: of documents; a folder stands for all below it.
        attributes: the sets that are wanted beside them.
        notes: folder for our records where there is no place for them beside the documents.

    Returns:
        What `dataset:` of a stream takes, for each root.

    Raises:
        ConfigError: if nothing matches, or attributes are wanted and no part of the path is called ``documents``.
    """
    found: dict[str, list[str]] = {}
    for pattern in patterns:
        parts = pattern.rstrip("/").split("/")
        if DOCUMENTS in parts:
            at = parts.index(DOCUMENTS)
            above, below = "/".join(parts[: at + 1]), "/".join(parts[at + 1 :])
        elif attributes:
            raise ConfigError(
                f"{pattern}: expected a folder `documents` in the path, beside which `attributes` is; got none"
            )
        else:
            above, below = _split(parts)
        roots = sorted(glob.glob(above)) if is_glob(above) else [above or "."]
        if not roots:
            raise ConfigError(f"{pattern}: expected at least one folder {above}, got no match")
        for root in roots:
            inside = f"{below}/**" if below and os.path.isdir(join(root, below)) else below
            found.setdefault(root, []).append(inside or "**")
    return [_dataset(root, include, notes) for root, include in found.items()]


def _split(parts: list[str]) -> tuple[str, str]:
    fixed = next((i for i, part in enumerate(parts) if is_glob(part)), len(parts) - 1)
    return "/".join(parts[:fixed]) or ("/" if parts[0] == "" else "."), "/".join(parts[fixed:])


def _dataset(root: str, include: list[str], notes: str) -> dict[str, Any]:
    parent, name = os.path.split(root)
    beside = parent or "."
    dataset: dict[str, Any] = {
        "documents": {"path": root, "include": include},
        "attributes": join(beside, "attributes") if name == DOCUMENTS else join(root, "attributes"),
    }
    if name != DOCUMENTS or not os.access(beside, os.W_OK):
        dataset["bookkeeping"] = join(notes, ".toolkit", "inputs", root.strip("/").replace("/", "_") or "root")
    return dataset
