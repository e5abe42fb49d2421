"""Arrays between memory that may not be touched, for compiled code that looks at no bounds.

Around each array lies a terabyte without access: a 32-bit index of rows of up to a hundred numbers cannot reach across
it, so each read or write outside ends the process. The code is the very machine code that users run.
"""

import ctypes
import mmap
import resource
import threading
from typing import Any

import numpy as np

from toolkit.text.kernels.compiling import Compiled
from toolkit.text.kernels.signatures import flat_values

Array = np.ndarray[Any, np.dtype[Any]]

SLOT, GUARD = 64 << 20, 1 << 40
SLOTS = 48
_NORESERVE = 0x4000


class Guards:
    """Room for the arrays of a call of compiled code; one object a process.

    Attributes:
        at_end: whether arrays end where their room does, or begin where it begins.
        calls: of compiled code.
        elements: of the arrays that it was given.
        large: arrays that had no room, and were given as they are.
    """

    def __init__(self) -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        libc.mmap.restype = ctypes.c_void_p
        libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
        libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # it would be as large as the guards
        whole = SLOTS * (GUARD + SLOT) + GUARD
        begin = libc.mmap(None, whole, 0, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _NORESERVE, -1, 0)
        if begin == ctypes.c_void_p(-1).value:
            raise OSError(ctypes.get_errno(), "expected address space for guards")
        self._slots: list[Any] = []
        for i in range(SLOTS):
            at = begin + GUARD + i * (GUARD + SLOT)
            assert libc.mprotect(at, SLOT, mmap.PROT_READ | mmap.PROT_WRITE) == 0
            self._slots.append((ctypes.c_char * SLOT).from_address(at))
        self.at_end, self.calls, self.elements, self.large = True, 0, 0, 0
        self._one = threading.Lock()
        """Threads share the room."""

    def copy(self, slot: int, array: Array) -> Array:
        """Return a copy of an array in a room of its own."""
        if array.nbytes > SLOT:
            self.large += 1
            return array
        offset = SLOT - array.nbytes if self.at_end else 0
        made: Array = np.ndarray(array.shape, array.dtype, self._slots[slot], offset)
        made[...] = array
        return made

    def install(self) -> None:
        """Give all compiled functions of this process copies of their arrays; what they write is copied back."""
        plain = Compiled.__call__

        def call(function: Compiled, *arguments: Any) -> None:
            with self._one:
                guard(function, *arguments)

        def guard(function: Compiled, *arguments: Any) -> None:
            slots = iter(range(SLOTS))

            def guarded(argument: Any) -> Any:
                if isinstance(argument, tuple):  # a record
                    return type(argument)(*map(guarded, argument))
                return self.copy(next(slots), argument) if isinstance(argument, np.ndarray) else argument

            given = list(map(guarded, arguments))
            self.calls += 1
            self.elements += sum(each.size for each in flat_values(arguments) if isinstance(each, np.ndarray))
            plain(function, *given)
            for old, new in zip(flat_values(arguments), flat_values(given), strict=True):
                if isinstance(old, np.ndarray) and old.flags.writeable and old is not new:
                    old[...] = new

        Compiled.__call__ = call  # type: ignore[method-assign, assignment]
