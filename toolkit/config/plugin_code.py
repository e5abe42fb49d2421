"""Digests of plugins' code, to notice an edit without a new version.

A plugin of the toolkit itself is known by its ``VERSION``. A plugin of a user's is edited far more often than its
version, and values of two kinds in one set cannot be told apart afterwards.
"""

import ast
import itertools
import os
import sys
from collections.abc import Iterator, Mapping

import xxhash

from toolkit.config.syntax_trees import parse_module
from toolkit.errors import ConfigError
from toolkit.session import cached

OURS = ("toolkit", "taggers", "mixers")
"""Packages whose plugins are known by their version alone."""

INSTALLED = ("site-packages", "dist-packages")
"""Folders of modules that do not belong to each other."""

_NO_CODE = ("kind", "type_comment", "type_ignores")
"""Fields of a syntax tree that no value depends on."""


def code_of(class_: type) -> dict[str, str]:
    """Return the digests of a plugin's files, by relative path.

    These are the file that defines the class, and the modules of its own folder and package that it imports, and those
    that these import. Imports are found in the text: a module whose name is made at run time is not seen, nor are
    modules of other packages.

    Returns:
        xxh3-128 (hex) of each file's syntax tree, in which comments, docstrings, descriptions of
        ``msgspec.Meta`` and layout do not count; empty for a plugin of the toolkit, and for a class that no file
        defines.

    Raises:
        ConfigError: if a file cannot be read, or is no Python.
    """
    return code_of_module(class_.__module__)


@cached(256)
def code_of_module(name: str) -> dict[str, str]:
    """Return `code_of` for an imported module."""
    module = sys.modules.get(name)
    path = getattr(module, "__file__", None)
    if module is None or path is None or module.__name__.partition(".")[0] in OURS:
        return {}
    folder = os.path.dirname(os.path.abspath(path))
    package = module.__name__ if hasattr(module, "__path__") else module.__name__.rpartition(".")[0]
    results: dict[str, str] = {}
    todo = [os.path.abspath(path)]
    while todo:
        path = todo.pop()
        name = os.path.relpath(path, folder)
        if name in results:
            continue
        tree = _parsed(path)
        results[name] = digest_of_tree(tree)
        todo += _imported(tree, path, package, folder)
    return dict(sorted(results.items()))


def recorded_code(class_: type) -> dict[str, dict[str, str]]:
    """Return ``{"code": …}`` for settings that hold the code of a plugin; empty where `code_of` is."""
    code = code_of(class_)
    return {"code": code} if code else {}


def changes(before: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """Return the changed, new and removed files; none if a side is unknown."""
    if not before or not now:
        return []
    return [name for name in sorted({*before, *now}) if before.get(name) != now.get(name)]


def _parsed(path: str) -> ast.Module:
    try:
        with open(path, "rb") as stream:
            return parse_module(stream.read(), path)
    except (OSError, SyntaxError, ValueError, RecursionError) as error:
        raise ConfigError(f"{path}: expected the code of a plugin, got: {error}") from None


def digest_of_tree(tree: ast.AST) -> str:
    """Return the xxh3-128 (hex) of a syntax tree, independent of Python's version.

    ``ast.dump`` is not used: what it prints of empty fields differs between versions.
    """
    digest = xxhash.xxh3_128()
    todo: list[object] = [tree]
    while todo:
        item = todo.pop()
        if isinstance(item, ast.AST):
            digest.update(f"({type(item).__name__}".encode())
            inner: list[object] = []
            for field, value in ast.iter_fields(item):
                if field == "keywords" and _is_meta(item):
                    value = [item for item in value if item.arg != "description"]
                if field in _NO_CODE or value is None or value == []:
                    continue
                inner += [_Mark(f" {field}="), _joined(value) if isinstance(item, ast.JoinedStr) else value]
            todo += reversed([*inner, _Mark(")")])
        elif isinstance(item, list):
            statements = [item for item in item if not _is_docstring(item)]
            todo += reversed([_Mark("["), *statements, _Mark("]")])
        elif isinstance(item, _Mark):
            digest.update(item.encode())
        else:
            digest.update(f"{type(item).__name__} {item!r};".encode(errors="surrogatepass"))
    return digest.hexdigest()


class _Mark(str):
    """Punctuation in the digest, as opposed to a value of the tree."""

    __slots__ = ()


def _is_docstring(node: object) -> bool:
    """Return True for a string as a statement."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _is_meta(node: ast.AST) -> bool:
    """Return True for a call of ``msgspec.Meta``; its description changes no value."""
    called = node.func if isinstance(node, ast.Call) else None
    return getattr(called, "attr", getattr(called, "id", "")) == "Meta"


def _joined(nodes: list[ast.AST]) -> list[object]:
    """Return the parts of an f-string with adjacent texts joined. Empty texts are left out.

    Versions of Python differ in both (3.12.1 leaves an empty text behind a nested format).
    """
    joined: list[object] = []
    for is_text, parts in itertools.groupby(nodes, _is_plain_text):
        if not is_text:
            joined += parts
        elif text := "".join(str(part.value) for part in parts if isinstance(part, ast.Constant)):
            joined += [_Mark("text "), text]
    return joined


def _is_plain_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _imported(tree: ast.AST, path: str, package: str, folder: str) -> Iterator[str]:
    """Yield the imported files of a module. They are in its folder, the plugin's folder, or the plugin's package.

    Args:
        tree: Tree of the module.
        path: Path of its file.
        package: dotted name of the package that the plugin's module is in; empty for a file.
        folder: Folder of the plugin's own file.
    """
    here = os.path.dirname(path)
    top = package.partition(".")[0]
    above = folder
    for _ in package.split(".") if package else ():
        above = os.path.dirname(above)
    siblings = [] if os.path.basename(folder) in INSTALLED else list(dict.fromkeys((here, folder)))
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names, level = [alias.name for alias in node.names], 0
        elif isinstance(node, ast.ImportFrom):
            module = node.module or ""
            names = [module, *(f"{module}.{alias.name}".lstrip(".") for alias in node.names)]
            level = node.level
        else:
            continue
        for name in names:
            if level:
                roots = [os.path.normpath(os.path.join(here, *[os.pardir] * (level - 1)))]
            else:
                roots = [*siblings, *([above] if top and name.partition(".")[0] == top else [])]
            for root in roots:
                yield from _files(root, name)


def _files(root: str, name: str) -> Iterator[str]:
    """Yield the files of a dotted module below a folder: its own, and those of the packages that it is in."""
    place = root
    for part in name.split(".") if name else ():
        place = os.path.join(place, part)
        for path in (os.path.join(place, "__init__.py"), place + ".py"):
            if os.path.isfile(path):
                yield path
                break
