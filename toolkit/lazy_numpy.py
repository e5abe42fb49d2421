"""The module `numpy` as ``np``, imported at its first use."""

import importlib
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
else:

    class _Numpy(ModuleType):  # numba takes it for the module
        def __getattr__(self, name: str) -> Any:
            value = self.__dict__[name] = getattr(importlib.import_module("numpy"), name)
            return value

    np = _Numpy("numpy")

__all__ = ["np"]
