"""Functions that numba compiles: once a machine, kept on disk as machine code, which later processes load alone.

A compiled function takes numbers and pointers to arrays and gives nothing back; what it finds it writes into arrays.
It allocates nothing and raises nothing, so its machine code needs nothing but itself. numba takes half a second and
100 MB in each process that imports it; the stored code takes llvmlite and milliseconds.
"""

import ctypes
import fcntl
import functools
import importlib
import importlib.metadata
import importlib.util
import os
import stat
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

import xxhash

from toolkit import distribution, models
from toolkit.streams import write_file

SLOW = 0.5  # seconds after which the log says what compiling took

_lock = threading.Lock()


class Compiled:
    """A function that is compiled when it is first called.

    It is made of what numba takes: numbers, loops, ``pointer[index]``; no negative index. What it calls is in its own
    module or in those that are named. Called with arrays of the declared types, contiguous, and numbers.

    Args:
        reference: ``module:function``; the module is imported only to compile it.
        signature: types of the arguments, such as ``int64 float32*``.
        uses: other modules whose code goes into it.
        plain: the function for Python itself, where nothing can be compiled; without one that is an error.
    """

    def __init__(
        self, reference: str, signature: str, uses: Sequence[str] = (), plain: Callable[..., None] | None = None
    ) -> None:
        self.reference = reference
        self._plain = plain
        self._types = signature.split()
        self._modules = [reference.partition(":")[0], *uses, __name__]
        self._call: Callable[..., None] | None = None

    def __call__(self, *arguments: Any) -> None:
        if self._call is None:
            self._call = self._made()
        self._call(*arguments)

    def _made(self) -> Callable[..., None]:
        try:
            called, types = _function(self._address(), self._types), self._types
        except (ImportError, OSError, RuntimeError) as error:  # numba is missing, or has no code for this machine
            if self._plain is None:
                raise
            why = f"{type(error).__name__}: {error}"
            print(f"{self.reference} is not compiled, and many times slower: {why}", file=sys.stderr)
            return self._plain
        return lambda *arguments: called(*[_passed(*each) for each in zip(arguments, types, strict=True)])

    def _address(self) -> int:
        name = f"{self.reference.replace(':', '.')}-{self._key()}.o"
        if found := _kept(name):
            return found
        with _once_a_machine():
            if found := _kept(name):  # another process has made it meanwhile
                return found
            start = time.perf_counter()
            module, _, function = self.reference.partition(":")
            found = getattr(importlib.import_module(module), function)
            address, code = _compile(getattr(found, "__wrapped__", found), self._types)
            kept = _keep(name, code)
            seconds = time.perf_counter() - start
        if seconds > SLOW:
            print(f"compiled {self.reference}: {seconds:.0f} s, {kept}", file=sys.stderr)
        return address

    def _key(self) -> str:
        """Of everything that the machine code is made from."""
        import llvmlite.binding as llvm

        digest = xxhash.xxh3_64()
        for name in self._modules:
            digest.update(_source_of(name))
        versions = [importlib.metadata.version(package) for package in ("numba", "llvmlite")]
        cpu = [llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()]
        digest.update("\0".join([*self._types, *versions, *cpu, sys.version]).encode())
        return digest.hexdigest()


@functools.cache
def _source_of(module: str) -> bytes:
    """Of a module that is imported, what it was when this was first asked: what is compiled is that."""
    with open(_file_of(module), "rb") as stream:
        return stream.read()


def _file_of(module: str) -> str:
    """Where its source is, whether it has been imported or not."""
    if module in sys.modules:
        return str(sys.modules[module].__file__)
    spec = importlib.util.find_spec(module)
    return str(spec.origin if spec else None)


def compiled(signature: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Makes a function of a module one that is compiled when it is first called; see `Compiled`.

    ``@compiled("int64* int64 float32*")`` over ``def add_up(values, n, out): …``
    """

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        with suppress(AttributeError, OSError):  # of a module that is no file
            _source_of(function.__module__)
        made = Compiled(f"{function.__module__}:{function.__qualname__}", signature, plain=function)

        @functools.wraps(function)
        def call(*arguments: Any) -> None:
            made(*arguments)

        return call

    return decorate


# --- arguments --------------------------------------------------------------------------------------------------------

_NUMBERS = {"int64": ctypes.c_int64, "uint64": ctypes.c_uint64, "float32": ctypes.c_float, "float64": ctypes.c_double}


def _function(address: int, types: list[str]) -> Callable[..., None]:
    arguments: list[Any] = [ctypes.c_void_p if type_.endswith("*") else _NUMBERS[type_] for type_ in types]
    called = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, *arguments)(address)
    # numba's functions have room for a result and for an error first; neither is used
    return functools.partial(called, ctypes.create_string_buffer(8), ctypes.create_string_buffer(8))


def _passed(argument: Any, type_: str) -> Any:
    if not type_.endswith("*"):
        return argument if type_.startswith("float") else int(argument)
    if argument.dtype != type_[:-1] or not argument.flags.c_contiguous:
        raise TypeError(f"expected a contiguous array of {type_[:-1]}, got {argument.dtype}")
    return argument.__array_interface__["data"][0]


# --- machine code -----------------------------------------------------------------------------------------------------

_NAME = b"\0entry="
_engines: list[Any] = []


def _compile(function: Callable[..., None], types: list[str]) -> tuple[int, bytes]:
    """The address of the compiled function, and its code to be kept."""
    import numba

    def type_of(name: str) -> Any:
        number = getattr(numba.types, name.removesuffix("*"))
        return numba.types.CPointer(number) if name.endswith("*") else number

    signature = numba.types.void(*map(type_of, types))
    options = {"error_model": "numpy", "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    made = numba.njit(signature, **options)(function).overloads[signature.args]
    name = made.fndesc.llvm_func_name
    address = made.library.get_pointer_to_function(name)
    _engines.append(made)
    module = made.library._final_module  # noqa: SLF001  # nothing public has it
    if needs := [each.name for each in module.functions if each.is_declaration and not each.name.startswith("llvm.")]:
        raise TypeError(f"{function.__qualname__}: expected code that needs nothing else, got one with {needs}")
    return address, made.library._codegen._tm.emit_object(module) + _NAME + name.encode()  # noqa: SLF001


def _folders() -> Iterator[str]:
    """Where machine code is kept: with the models, or with what is temporary where that folder cannot be written in."""
    with suppress(RuntimeError):  # nobody knows the home of a user without a name
        yield os.path.join(models.cache_folder(), "compiled")
    folder = os.path.join(tempfile.gettempdir(), f"{distribution.NAME}-{os.getuid()}")
    with suppress(OSError):
        os.makedirs(folder, mode=0o700, exist_ok=True)
        found = os.lstat(folder)
        if stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o022:
            yield folder  # nobody else can have put code there


def _keep(name: str, code: bytes) -> str:
    """Writes machine code to the first folder that can be written in; what became of it."""
    why: object = "no folder for it"
    for folder in _folders():
        try:
            write_file(os.path.join(folder, name), xxhash.xxh3_128_digest(code) + code)
            return "kept for the next time"
        except OSError as error:
            why = error
    return f"not kept: {why}"


def _kept(name: str) -> int:
    """The address of a function whose machine code was kept; 0 if it was not, or is damaged."""
    for folder in _folders():
        with suppress(OSError), open(os.path.join(folder, name), "rb") as stream:
            digest, code = stream.read(16), stream.read()
            if digest == xxhash.xxh3_128_digest(code):
                return _load(code)
    return 0


def _load(stored: bytes) -> int:
    """The address of the function in machine code."""
    import llvmlite.binding as llvm

    code, _, name = stored.rpartition(_NAME)
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    engine = llvm.create_mcjit_compiler(
        llvm.parse_assembly(""), llvm.Target.from_default_triple().create_target_machine(jit=True)
    )
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    _engines.append(engine)
    return int(engine.get_function_address(name.decode()))


@contextmanager
def _once_a_machine() -> Iterator[None]:
    """Lets one process of a machine compile while the others wait for what it keeps on disk."""
    with _lock, ExitStack() as stack:
        for folder in _folders():
            with suppress(OSError):  # without a folder that can be written in, each compiles for itself
                os.makedirs(folder, exist_ok=True)
                stream = stack.enter_context(open(folder + ".lock", "w"))
                fcntl.flock(stream, fcntl.LOCK_EX)
                break
        yield
