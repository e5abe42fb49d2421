"""Public names of a package, each imported when it is first used."""

import functools
import importlib
import re
import sys
from types import ModuleType
from typing import Any

_IMPORT = re.compile(r"^    from (\S+) import (\([^)]*\)|.+)$", re.MULTILINE)
_NAME = re.compile(r"\b(\w+) as \1\b")


class _Public(ModuleType):
    """Package of lazy names, imported as its imports for type checkers say.

    A public name stays what it is when a folder of the package is imported that is called so, too.
    """

    @functools.cached_property
    def _places(self) -> dict[str, str]:
        assert self.__spec__
        source = self.__spec__.loader.get_source(self.__name__)  # type: ignore[union-attr]
        return {name: module for module, names in _IMPORT.findall(source) for name in _NAME.findall(names)}

    @functools.cached_property
    def __all__(self) -> list[str]:
        return sorted(self._places)

    def __getattr__(self, name: str) -> Any:
        if new := self.__dict__.get("_RENAMED", {}).get(name):
            raise ImportError(f"{self.__name__}.{name} is {new} now; CHANGELOG.md lists all names that have changed")
        if name not in self.__all__:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        value = getattr(importlib.import_module(self._places[name]), name)
        self.__dict__[name] = value
        return value

    def __setattr__(self, name: str, value: object) -> None:
        if not (isinstance(value, ModuleType) and name in self.__all__):
            super().__setattr__(name, value)

    def __dir__(self) -> list[str]:
        return sorted({*self.__dict__, *self.__all__})


def import_by_use(package: str) -> None:
    """Import the public names of a package when they are first used.

    Args:
        package: Name of the package; its block ``if TYPE_CHECKING:`` lists them as ``from module import name as name``.
    """
    sys.modules[package].__class__ = _Public
