"""The ready configurations that ship with the toolkit, by name: ``recipe:fineweb``, wherever the toolkit is installed.

A recipe may bring files of its own. It names them in the same way, ``recipe:sample/*.warc.wet.gz``, so that a copy of
the recipe finds them, too. All other paths of a recipe are those of whoever uses it: relative to the working directory.
"""

import re
from pathlib import Path

from toolkit.errors import ConfigError, did_you_mean
from toolkit.storage.paths import is_glob

PREFIX = "recipe:"
FOLDER = Path(__file__).parents[2] / "configs"
"""Beside the package, in a checkout as in what a wheel installs."""

_SUFFIX = ".yaml"
_REFERENCE = re.compile(rf"{PREFIX}[^\s:]+")


def names() -> list[str]:
    """Return the names of the recipes, sorted."""
    return sorted(path.stem for path in FOLDER.glob(f"*{_SUFFIX}"))


def about(name: str) -> str:
    """Return what a recipe says of itself in its first sentence."""
    comment = text_of(name).partition("\n#\n")[0].partition("\ndataset:")[0]
    words = " ".join(line.removeprefix("#").strip() for line in comment.splitlines() if line.startswith("#"))
    return re.split(r"(?<=\w)[.:](?=\s|$)", words, maxsplit=1)[0]


def text_of(name: str) -> str:
    """Return a recipe as it is written."""
    return _named(name).read_text(encoding="utf-8")


def is_reference(text: str) -> bool:
    """Return whether a text names a recipe, or a file that one brings."""
    return _REFERENCE.fullmatch(text) is not None


def resolved(path: str) -> str:
    """Return the path of what ``recipe:…`` names, a glob as a glob; any other path as it is.

    Raises:
        ConfigError: if there is no such recipe, or file of one.
    """
    if not path.startswith(PREFIX):
        return path
    inside = path.removeprefix(PREFIX)
    if "/" not in inside and not is_glob(inside):
        return str(_named(inside.removesuffix(_SUFFIX)))
    result = FOLDER / inside
    if ".." in result.parts or inside.startswith("/"):
        raise ConfigError(f"{path}: expected a file that a recipe brings, got a path that leads elsewhere")
    if not is_glob(inside) and not result.exists():
        brought = sorted(str(file.relative_to(FOLDER)) for file in FOLDER.glob("*/*") if file.suffix != ".py")
        listed = ", ".join(PREFIX + name for name in brought)
        raise ConfigError(f"{path}: expected a file that a recipe brings, got nothing there; there are: {listed}")
    return str(result)


def _named(name: str) -> Path:
    known = names()
    if name not in known:
        meant = did_you_mean(name, known)
        listed = f"{' There' if meant else '; there'} are: {', '.join(known) or 'none'}"
        raise ConfigError(f"no recipe is called {name!r}{meant}{listed}")
    return FOLDER / f"{name}{_SUFFIX}"
