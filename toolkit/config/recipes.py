"""The ready configurations of the toolkit, by name: ``recipe:fineweb``.

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
    """Return the first sentence of a recipe's comment."""
    comment = text_of(name).partition("\n#\n")[0].partition("\ndataset:")[0]
    words = " ".join(line.removeprefix("#").strip() for line in comment.splitlines() if line.startswith("#"))
    return re.split(r"(?<=\w)[.:](?=\s|$)", words, maxsplit=1)[0]


def text_of(name: str) -> str:
    """Return a recipe as it is written."""
    return _named(name).read_text(encoding="utf-8")


def is_reference(text: str) -> bool:
    """Return True if a text names a recipe or a recipe's file."""
    return _REFERENCE.fullmatch(text) is not None


def resolved(path: str) -> str:
    """Return the path of ``recipe:…``, a glob as a glob; any other path as it is.

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
    recipes = names()
    if name not in recipes:
        hint = did_you_mean(name, recipes)
        listed = f"{' There' if hint else '; there'} are: {', '.join(recipes) or 'none'}"
        raise ConfigError(f"no recipe is called {name!r}{hint}{listed}")
    return FOLDER / f"{name}{_SUFFIX}"
