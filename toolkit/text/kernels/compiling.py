"""Compilation of functions by numba, and storage of their machine code.

They are compiled once on a machine; later processes load the machine code alone.

A compiled function takes numbers and pointers to arrays and gives nothing back; what it finds it writes into arrays.
It allocates nothing and raises nothing, so its machine code needs nothing but itself. numba takes half a second and
100 MB in each process that imports it; the stored code takes llvmlite and milliseconds (see `machine_code`, and
`code_folder` for who may have written it).

The folder of compiled code: one is used only if nobody but this user can have written to it.

Code in it runs with the user's rights. Where somebody else may write, no code is kept or taken, and a note says so.
"""

import functools
import importlib
import importlib.util
import os
import re
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from types import FunctionType
from typing import Any

import xxhash

from toolkit.lazy_numpy import np
from toolkit.session import current
from toolkit.storage import models
from toolkit.storage.stores.local.scratch import PrivateFolder, UnsafeFolder, private_name
from toolkit.text.kernels import machine_code, signatures
from toolkit.text.kernels.signatures import Type


@contextmanager
def code_folder() -> Iterator[PrivateFolder | None]:
    """Open the folder of compiled code: with the models, else one of the user's own among what is temporary.

    None if neither can be used; one that is not safe is told, once a process.
    """
    with ExitStack() as stack:
        yield _first(stack)


def _first(stack: ExitStack) -> PrivateFolder | None:
    for path in _paths():
        try:
            return stack.enter_context(PrivateFolder(path))
        except UnsafeFolder as unsafe:
            current().warn(
                f"{path}: compiled code is neither kept nor taken there: {unsafe}; forbid others to write "
                "(`chmod go-w`), or set TOOLKIT_CACHE to a folder of your own"
            )
        except OSError:
            continue
    return None


def _paths() -> Iterator[str]:
    with suppress(RuntimeError):  # nobody knows the home of a user without a name
        yield os.path.join(models.cache_folder(), "compiled")
    yield os.path.join(tempfile.gettempdir(), private_name())


PACKAGES = ("toolkit.text", "toolkit.whole_corpus", "toolkit.learn", "taggers")
"""Packages with compiled functions; what these import from elsewhere is no part of machine code."""

_IMPORT = re.compile(
    rf"^from ((?:{'|'.join(map(re.escape, PACKAGES))})(?:\.\w+)*) import (\([^)]*\)|.*)$".encode(), re.MULTILINE
)
SLOW = 0.5  # seconds after which the log says what compiling took

_lock = threading.Lock()


class Compiled:
    """Function compiled when first called.

    It is made of what numba takes: numbers, loops, ``pointer[index]``; no negative index. What it calls is in its own
    module or in those that this imports, directly or not, from `PACKAGES`. Called with arrays of the declared types,
    contiguous, and numbers.

    Args:
        reference: ``module:function``; the module is imported only to compile it.
        signature: types of the arguments, such as ``int64 float32*``, and records (see `signatures`).
        uses: Modules from elsewhere whose code goes into it.
        plain: the function for Python itself, where nothing can be compiled; without one that is an error.
    """

    def __init__(
        self, reference: str, *signature: Type, uses: Sequence[str] = (), plain: Callable[..., None] | None = None
    ) -> None:
        self.reference = reference
        self._plain = plain
        self._types = signatures.types_of(signature)
        records = [record.__module__ for record in signatures.records_in(self._types)]
        own = [module.__name__ for module in (machine_code, signatures)]
        self._modules = [reference.partition(":")[0], *uses, *records, __name__, *own]
        self._call: Callable[..., None] | None = None

    def __call__(self, *arguments: Any) -> None:
        if self._call is None:
            self._call = self._compile()
        self._call(*arguments)

    def _compile(self) -> Callable[..., None]:
        try:
            called, types = self._load_or_compile(), signatures.flat_types(self._types)
        except (ImportError, OSError, RuntimeError) as error:  # numba is missing, or has no code for this machine
            if self._plain is None:
                raise
            why = f"{type(error).__name__}: {error}"
            print(f"{self.reference} is not compiled, and many times slower: {why}", file=sys.stderr)
            return self._plain
        flat = signatures.flat_values
        passed = [(type_, np.dtype(type_[:-1]) if type_.endswith("*") else None) for type_ in types]
        return lambda *arguments: called(
            *[_passed(item, *to) for item, to in zip(flat(arguments), passed, strict=True)]
        )

    def _load_or_compile(self) -> Callable[..., None]:
        """Return the compiled function: kept code, or code that is made now, and kept for the next time."""
        is_tested, key = machine_code.numba_is_tested(), self._key()
        name = f"{self.reference.replace(':', '.')}-{key}.o"
        with code_folder() as folder:
            if is_tested and (code := _load_code(folder, name)):
                return machine_code.loaded(code, self._types)
            with _lock, folder.locked() if folder else nullcontext():
                if is_tested and (code := _load_code(folder, name)):  # another process has made it meanwhile
                    return machine_code.loaded(code, self._types)
                start = time.perf_counter()
                module, _, function = self.reference.partition(":")
                result = getattr(importlib.import_module(module), function)
                plain = getattr(result, "__wrapped__", result)
                if is_tested:
                    code = machine_code.compiled(plain, self._types)
                    storage, called = _store_code(folder, name, code), machine_code.loaded(code, self._types)
                else:
                    place = os.path.join(folder.path, f"numba-{key}") if folder else None
                    storage, called = "by numba's own cache", machine_code.by_numba(plain, self._types, place)
                seconds = time.perf_counter() - start
        if seconds > SLOW:
            print(f"compiled {self.reference}: {seconds:.0f} s, {storage}", file=sys.stderr)
        return called

    def _key(self) -> str:
        """Return a digest of all sources of the machine code."""
        digest = xxhash.xxh3_64()
        for name in with_imports(self._modules):
            digest.update(_source_of(name))
        overrides = [os.environ.get(f"NUMBA_CPU_{name}", "") for name in ("NAME", "FEATURES")]
        digest.update("\0".join([*signatures.flat_types(self._types), *_machine(), *overrides, sys.version]).encode())
        return digest.hexdigest()


@functools.cache
def _machine() -> tuple[str, ...]:
    """Return the versions of the compilers, and the processor."""
    import llvmlite.binding as llvm

    versions = (machine_code.version_of(package) for package in ("numba", "llvmlite"))
    return (*versions, llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten())


@functools.cache
def _source_of(module: str) -> bytes:
    """Return the source of a module; of one that is imported, as it was when this was first asked: that is compiled."""
    with open(_file_of(module), "rb") as stream:
        return stream.read()


def with_imports(modules: Sequence[str]) -> list[str]:
    """Return modules and their imports from `PACKAGES`, direct or not, sorted."""
    results, left = set[str](), [*modules]
    while left:
        if (module := left.pop()) not in results:
            results.add(module)
            left += _imports_of(module)
    return sorted(results)


@functools.cache
def _imports_of(module: str) -> list[str]:
    """Return the imports of a module from `PACKAGES`; packages have no code themselves."""
    results = []
    for match in _IMPORT.finditer(_source_of(module)):
        name = match[1].decode()
        if os.path.basename(_file_of(name)) != "__init__.py":
            results.append(name)
            continue
        inside = (f"{name}.{part.decode()}" for part in re.findall(rb"\w+", match[2]))
        results += filter(_is_module, inside)
    return results


def _is_module(name: str) -> bool:
    return name in sys.modules or importlib.util.find_spec(name) is not None


def _file_of(module: str) -> str:
    """Return the path of a module's source, without importing the module."""
    if module in sys.modules:
        return str(sys.modules[module].__file__)
    spec = importlib.util.find_spec(module)
    return str(spec.origin if spec else None)


def compiled(*signature: Type) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Compile a function of a module when it is first called; see `Compiled`.

    ``@compiled("int64* int64 float32*")`` over ``def add_up(values, n, out): …``; a NamedTuple may be one of the types,
    as in ``@compiled(LineTable, "int64 int64*")`` (see `signatures`).
    """

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        with suppress(AttributeError, OSError):  # of a module that is no file
            _source_of(function.__module__)
        called = (function.__globals__.get(name) for name in function.__code__.co_names)
        uses = [item.__module__ for item in called if isinstance(item, FunctionType)]
        result = Compiled(f"{function.__module__}:{function.__qualname__}", *signature, uses=uses, plain=function)

        @functools.wraps(function)
        def call(*arguments: Any) -> None:
            result(*arguments)

        return call

    return decorate


# --- arguments --------------------------------------------------------------------------------------------------------


def _passed(argument: Any, type_: str, dtype: Any) -> Any:
    if dtype is None:
        return argument if type_.startswith("float") else int(argument)
    if argument.dtype != dtype or not argument.flags.c_contiguous:
        raise TypeError(f"expected a contiguous array of {type_[:-1]}, got {argument.dtype}")
    return argument.__array_interface__["data"][0]


# --- kept code --------------------------------------------------------------------------------------------------------


def _store_code(folder: PrivateFolder | None, name: str, code: bytes) -> str:
    """Write machine code to the folder; return the outcome for the log."""
    if folder is None:
        return "not kept: no folder for it"
    try:
        folder.write(name, xxhash.xxh3_128_digest(code) + code)
    except OSError as error:
        return f"not kept: {error}"
    return "kept for the next time"


def _load_code(folder: PrivateFolder | None, name: str) -> bytes | None:
    """Return stored machine code; None if it is missing or damaged."""
    stored = folder.read(name) if folder else None
    if not stored or xxhash.xxh3_128_digest(stored[16:]) != stored[:16]:
        return None
    return stored[16:]
