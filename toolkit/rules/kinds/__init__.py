"""The kinds of rules (see `toolkit.rules.rule`): the classes in the files of this folder; there is no list."""

import functools
import importlib
import pkgutil

from toolkit.rules.rule import Form, Rule


@functools.cache
def all_kinds() -> tuple[type[Rule], ...]:
    """Return all kinds, sorted by name. Some stand in no list of rules."""
    modules = [importlib.import_module(f"{__name__}.{info.name}") for info in pkgutil.iter_modules(__path__)]
    classes = {var for module in modules for var in vars(module).values() if isinstance(var, type)}
    kinds = [class_ for class_ in classes - {Rule} if issubclass(class_, Rule)]
    return tuple(sorted(kinds, key=lambda kind: str(kind.__struct_config__.tag)))


def all_forms() -> list[type[Form]]:
    """Return the forms of rules, in the order of their kinds."""
    return [kind.FORM for kind in all_kinds() if kind.FORM is not None]


def kind_called(name: str) -> type[Rule]:
    """Return the kind of a record. An unknown one, of another version, counts as an edit."""
    return next((kind for kind in all_kinds() if kind.__struct_config__.tag == name), Rule)
