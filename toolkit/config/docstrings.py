"""Texts of docstrings about classes and their attributes."""

import inspect
import re
import sys
from typing import Any

_ENTRY = re.compile(r"([A-Za-z_]\w*(?:, [A-Za-z_]\w*)*):\s+(\S.*)")
_SECTION = re.compile(r"\n*^Attributes:\n((?:[ ]+.*\n?|\n)*)", re.MULTILINE)


def documentation(class_: type[Any]) -> str:
    """Return a class's docstring without its section ``Attributes:``; not that of the class that it extends."""
    return _SECTION.sub("\n\n", _docstring(class_)).strip()


def _docstring(class_: type[Any]) -> str:
    return inspect.cleandoc(class_.__dict__.get("__doc__") or "")


def first_line(class_: type[Any]) -> str:
    """Return the first paragraph of a class's docstring in one line."""
    return _first(documentation(class_))


def purpose(class_: type[Any], name: str) -> str:
    """Return the first paragraph about a plugin in one line: of its module, if that has its name; else of its class."""
    module = sys.modules[class_.__module__]
    has_its_name = module.__name__.rpartition(".")[2] == name
    return _first(inspect.cleandoc(module.__doc__ or "") if has_its_name else "") or first_line(class_)


def _first(text: str) -> str:
    return text.partition("\n\n")[0].replace("\n", " ")


def attributes_of(class_: type[Any]) -> dict[str, str]:
    """Return the ``Attributes:`` texts of a class and its bases, by name."""
    results: dict[str, str] = {}
    for item in reversed(getattr(class_, "__origin__", class_).__mro__):  # of a generic class with its arguments
        results |= _attributes(_docstring(item))
    return results


def _attributes(text: str) -> dict[str, str]:
    section = _SECTION.search(text)
    results: dict[str, str] = {}
    names: list[str] = []
    for line in inspect.cleandoc("\n" + section[1]).splitlines() if section else ():
        if entry := _ENTRY.fullmatch(line):
            names = entry[1].split(", ")
            results |= dict.fromkeys(names, entry[2].rstrip())
        elif line.strip():  # it goes on
            results |= {name: f"{results[name]} {line.strip()}" for name in names}
    return results
