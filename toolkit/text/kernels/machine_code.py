"""Machine code by numba and llvmlite: all that is private in numba is here.

numba's public interface has no way to get the machine code of a function, or to call it without importing numba, which
costs a process half a second and 100 MB. So `compiled` and `loaded` use what numba may change at any time, with the
versions that they were tested with (`TESTED`; see docs/benchmarks.md). With any other
version `by_numba` serves: `numba.cfunc` with numba's own cache, public, with the same values, slower to start.
"""

import ctypes
import functools
import importlib.util
import os
from collections.abc import Callable, Sequence
from typing import Any

from toolkit.storage.stores.local.scratch import make_folder
from toolkit.text.kernels.signatures import CALLED, Type, fields_of, flat_types

TESTED = ((0, 62), (0, 68))
"""The first and the last version of numba that the private part was tested with."""

_NAME = b"\0entry="
_NUMBERS = {"int64": ctypes.c_int64, "uint64": ctypes.c_uint64, "float32": ctypes.c_float, "float64": ctypes.c_double}
_ENGINES: list[Any] = []  # what machine code that is still called belongs to


@functools.cache  # each function asks, and a look into the package takes half a millisecond
def numba_is_tested() -> bool:
    """Return True if the installed numba is one of `TESTED`.

    Raises:
        ImportError: if none is installed.
    """
    major, minor, *_ = version_of("numba").split(".")
    return minor.isdecimal() and TESTED[0] <= (int(major), int(minor)) <= TESTED[1]


def version_of(package: str) -> str:
    """Return the version of an installed package.

    The name of the folder beside it has the version; `importlib.metadata`, asked where there is none, takes 20 ms.

    Raises:
        ImportError: if it is not installed.
    """
    spec = importlib.util.find_spec(package)
    if spec is not None and spec.origin is not None:
        beside = os.listdir(os.path.dirname(os.path.dirname(spec.origin)))
        results = [name for name in beside if name.startswith(f"{package}-") and name.endswith(".dist-info")]
        if len(results) == 1:
            return results[0].removeprefix(f"{package}-").removesuffix(".dist-info")
    from importlib.metadata import version

    return version(package)


def compiled(function: Callable[..., None], types: Sequence[Type]) -> bytes:
    """Return the machine code of a function, with its name; to be kept, and given to `loaded`.

    Raises:
        TypeError: if it needs more than itself.
    """
    import numba

    _register_called()
    signature = _signature(types)
    options = {"error_model": "numpy", "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    result = numba.njit(signature, **options)(function).overloads[signature.args]
    module = result.library._final_module  # noqa: SLF001  # nothing public has it
    if needs := [
        function.name
        for function in module.functions
        if function.is_declaration and not function.name.startswith("llvm.")
    ]:
        raise TypeError(f"{function.__qualname__}: expected code that needs nothing else, got one with {needs}")
    code: bytes = result.library._codegen._tm.emit_object(module)  # noqa: SLF001
    name: str = result.fndesc.llvm_func_name
    return code + _NAME + name.encode()


def loaded(stored: bytes, types: Sequence[Type]) -> Callable[..., None]:
    """Load a function from machine code of `compiled`."""
    import llvmlite.binding as llvm

    code, _, name = stored.rpartition(_NAME)
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    engine = llvm.create_mcjit_compiler(
        llvm.parse_assembly(""), llvm.Target.from_default_triple().create_target_machine(jit=True)
    )
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    _ENGINES.append(engine)
    arguments = [ctypes.c_void_p, ctypes.c_void_p, *_arguments(types)]
    called = ctypes.CFUNCTYPE(ctypes.c_int32, *arguments)(engine.get_function_address(name.decode()))
    # numba's functions have room for a result and for an error first; neither is used
    return functools.partial(called, ctypes.create_string_buffer(8), ctypes.create_string_buffer(8))


def by_numba(function: Callable[..., None], types: Sequence[Type], folder: str | None) -> Callable[..., None]:
    """Return the function, compiled by numba's public interface.

    Args:
        function: Function to compile.
        types: Types of its arguments.
        folder: Folder for numba's own cache, which only checks the function's file: one folder for each state of all
            sources. None: no cache.
    """
    import numba

    _register_called()
    before = numba.config.CACHE_DIR
    if folder:
        make_folder(folder)
        numba.config.CACHE_DIR = folder
    try:
        result = numba.cfunc(_signature(types), cache=folder is not None, error_model="numpy")(function)
    finally:
        numba.config.CACHE_DIR = before
    _ENGINES.append(result)
    return ctypes.CFUNCTYPE(None, *_arguments(types))(result.address)


def _register_called() -> None:
    """Register Python functions with numba for calls by compiled ones."""
    import numba.extending

    while CALLED:
        numba.extending.register_jitable(CALLED.pop())


def _signature(types: Sequence[Type]) -> Any:
    import numba

    def type_of(type_: Type) -> Any:
        if not isinstance(type_, str):
            return numba.types.NamedTuple(tuple(map(type_of, fields_of(type_))), type_)
        number = getattr(numba.types, type_.removesuffix("*"))
        return numba.types.CPointer(number) if type_.endswith("*") else number

    return numba.types.void(*map(type_of, types))


def _arguments(types: Sequence[Type]) -> list[Any]:
    """Return the C types of the arguments.

    Fields of a record are separate arguments, in order.
    """
    return [ctypes.c_void_p if type_.endswith("*") else _NUMBERS[type_] for type_ in flat_types(types)]
