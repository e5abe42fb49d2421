"""The kinds of rules, a file each (see `toolkit.rules.rule`); they are found in this folder, there is no list."""

import functools
import importlib
import pkgutil

from toolkit.plugins import camel_case
from toolkit.rules.rule import Form, Rule


@functools.cache
def all_kinds() -> tuple[type[Rule], ...]:
    """Return the kinds, sorted by the names of their files, with those that stand in no list of rules."""
    names = sorted(info.name for info in pkgutil.iter_modules(__path__))
    return tuple(getattr(importlib.import_module(f"{__name__}.{name}"), camel_case(name)) for name in names)


def all_forms() -> list[type[Form]]:
    """Return the forms in which rules are written, in the order of their kinds."""
    return [kind.FORM for kind in all_kinds() if kind.FORM is not None]


def kind_called(name: str) -> type[Rule]:
    """Return the kind that a record names. One that is not known here, of another version, counts as some edit."""
    return next((kind for kind in all_kinds() if kind.__struct_config__.tag == name), Rule)
