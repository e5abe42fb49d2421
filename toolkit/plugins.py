"""Plugins by name: taggers, input formats, output formats and stores. There is no list to edit.

A reference is, in the order in which it is tried:

- ``path/file.py:Class``        a file
- ``package.module:Class``      an importable module
- ``name``                      ``taggers/name.py`` (or its counterpart) with the class ``Name`` in CamelCase,
                                or an entry point of that name
"""

import functools
import hashlib
import importlib
import importlib.machinery
import importlib.util
import os
import pkgutil
import re
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import CodeType, ModuleType
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

import msgspec

from toolkit.errors import ConfigError, ToolkitError, UnknownPlugin, choices, did_you_mean, where_looked

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

T = TypeVar("T")


class Kind(msgspec.Struct, Generic[T], frozen=True):
    """A kind of plugin.

    Attributes:
        word: Noun in messages.
        package: Package whose modules are the built-in plugins.
        group: Group of the entry points.
        base: Base class of the plugins.
        home: Module from which authors import it.
    """

    word: str
    package: str
    group: str
    base: type[T]
    home: str = "toolkit"

    def is_built_in(self, name: str) -> bool:
        """Return True for a name of our own. No installed package takes it."""
        return name in _modules_of(self.package)

    def names(self) -> list[str]:
        """Return all usable names: modules of the package and entry points, sorted."""
        return sorted(_modules_of(self.package) | {entry.name for entry in _entry_points(self.group)})

    def find(self, reference: str) -> type[T]:
        """Return the class of a reference.

        Raises:
            UnknownPlugin: if there is none.
            ConfigError: if what is there is not a plugin of this kind, or cannot be imported.
        """
        module_name, colon, class_name = reference.rpartition(":")
        if colon:
            module = _module_called(module_name)
            result = getattr(module, class_name, None)
            if result is None:
                classes = [name for name, value in vars(module).items() if isinstance(value, type)]
                hint = did_you_mean(class_name, classes)
                raise UnknownPlugin(f"{reference}: expected a class {class_name} in {module_name}, got none{hint}")
            return self._checked(result, reference)
        if self.is_built_in(reference):
            module = _module_called(f"{self.package}.{reference}")
            class_name = camel_case(reference)
            return self._checked(getattr(module, class_name, None), f"{self.package}/{reference}.py: {class_name}")
        if reference.endswith(".py"):
            raise UnknownPlugin(f"{reference}: expected a class of the file too: {reference}:CLASS")
        for entry in _entry_points(self.group):
            if entry.name == reference:
                return self._checked(self._load(entry), reference)
        names = self.names()
        raise UnknownPlugin(f"no {self.word} is called {reference!r}{choices(reference, names)}")

    def in_file(self, path: str) -> list[str]:
        """Return references to the plugins of a file, in order.

        Raises:
            ConfigError: if it cannot be imported.
        """
        module = _module_of_file(path)
        classes = [value for value in vars(module).values() if isinstance(value, type) and issubclass(value, self.base)]
        return [f"{path}:{class_.__name__}" for class_ in classes if class_.__module__ == module.__name__]

    def _load(self, entry: "EntryPoint") -> Any:
        try:
            return entry.load()
        except (Exception, SystemExit) as error:
            problem = f"{type(error).__name__}: {error}"
            raise ConfigError(f"{entry.name}: expected {entry.value} to be importable, got {problem}") from None

    def _checked(self, value: Any, reference: str) -> type[T]:
        if not (isinstance(value, type) and issubclass(value, self.base)):
            raise ConfigError(
                f"{reference}: expected a class that extends {self.home}.{self.base.__name__}, got {value!r}"
            )
        return value


@contextmanager
def errors_of(plugin: object) -> Iterator[None]:
    """Raise ConfigError for an error in a plugin's code."""
    try:
        yield
    except (ToolkitError, MemoryError):
        raise
    except Exception as error:
        if isinstance(error, OSError) and not isinstance(error, FileNotFoundError):  # a full disk, say
            raise
        name = getattr(plugin, "__qualname__", type(plugin).__name__)
        raise ConfigError(f"{name} failed: {type(error).__name__}: {error}") from error


class PythonFunction(NamedTuple):
    """A function of a configuration, and the name of its module."""

    function: Callable[..., Any]
    module: str


def find_function(reference: str) -> PythonFunction:
    """Return the function of ``path/file.py:function`` or ``package.module:function``.

    Raises:
        UnknownPlugin: if there is none.
        ConfigError: if the module cannot be imported.
    """
    module_name, _, name = reference.rpartition(":")
    if not module_name or not name:
        raise UnknownPlugin(f"{reference}: expected the file and its function, such as my.py:function")
    module = _module_called(module_name)
    result = getattr(module, name, None)
    if not callable(result):
        functions = [key for key, value in vars(module).items() if callable(value)]
        raise UnknownPlugin(
            f"{reference}: expected a function {name} in {module_name}, got none{did_you_mean(name, functions)}"
        )
    return PythonFunction(result, module.__name__)


def _module_called(name: str) -> ModuleType:
    """Return the module of a dotted name, or a path."""
    if name.endswith(".py"):
        return _module_of_file(name)
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise UnknownPlugin(f"{name}: expected an importable module, got: {error}") from None
    except (Exception, SystemExit) as error:
        problem = f"{type(error).__name__}: {error}"
        raise ConfigError(f"{name}: expected a module that can be imported, got {problem}") from None


@functools.cache
def _modules_of(package: str) -> frozenset[str]:
    path = importlib.import_module(package).__path__
    for folder in filter(os.path.isdir, path):
        os.listdir(folder)  # `pkgutil` takes a folder for empty that cannot be listed, as for want of descriptors
    return frozenset(info.name for info in pkgutil.iter_modules(path) if not info.name.startswith("_"))


@functools.cache
def _entry_points(group: str) -> "tuple[EntryPoint, ...]":
    """Return the entry points of a group; writers are made often."""
    return tuple(_all_entry_points().select(group=group))


@functools.cache
def _all_entry_points() -> Any:  # Python 3.11 and 3.12 have types of their own, each with `select`
    """Return those of all installed packages, read once for all kinds: that takes tens of milliseconds."""
    import importlib.metadata

    return importlib.metadata.entry_points()


class _FromSource(importlib.machinery.SourceFileLoader):
    """Loads the current content of a file. Kept bytecode may be that of the file before an edit in the same second."""

    def __init__(self, name: str, path: str, content: bytes) -> None:
        super().__init__(name, path)
        self._content = content

    def get_code(self, fullname: str) -> CodeType:
        code: CodeType = self.source_to_code(self._content, self.path)
        return code


def _module_of_file(path: str) -> ModuleType:
    absolute = os.path.abspath(path)
    try:
        with open(absolute, "rb") as stream:
            content = stream.read()
    except OSError as error:
        got = "none there" if isinstance(error, FileNotFoundError) else error.strerror
        raise UnknownPlugin(f"{path}: expected a Python file, got {got}{where_looked(path)}") from None
    digest = hashlib.sha256(os.fsencode(absolute) + b"\0" + content)  # an edited file is another module
    name = f"toolkit_plugin_{digest.hexdigest()[:16]}"
    if name in sys.modules:
        return sys.modules[name]
    loader = _FromSource(name, absolute, content)
    spec = importlib.util.spec_from_file_location(name, absolute, loader=loader)
    assert spec
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        loader.exec_module(module)
    except BaseException as error:
        del sys.modules[name]
        if not isinstance(error, Exception | SystemExit):
            raise
        lines = [line for frame, line in traceback.walk_tb(error.__traceback__) if frame.f_code.co_filename == absolute]
        place = f"{path}:{lines[-1]}" if lines else path
        raise ConfigError(
            f"{place}: expected a module that can be imported, got {type(error).__name__}: {error}"
        ) from None
    return module


def camel_case(name: str) -> str:
    """Return a name in CamelCase: ``line_shape`` → ``LineShape``."""
    return "".join(part[:1].upper() + part[1:] for part in name.split("_"))


def snake_case(name: str) -> str:
    """Return a name in snake case: ``LineShape`` → ``line_shape``."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


def default_name(reference: str) -> str:
    """Return the default name of a plugin: that of the reference, or of its class."""
    return snake_case(reference.rpartition(":")[2]) if ":" in reference else reference
