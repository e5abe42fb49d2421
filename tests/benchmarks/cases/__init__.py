"""The benchmarks, a module for each kind of work; each has ``benchmarks(inputs)``."""

import importlib
from collections.abc import Sequence

from tests.benchmarks.inputs import Inputs
from tests.benchmarks.race import Benchmark

NAMES = (
    "startup",
    "predict",
    "tag",
    "signals",
    "near",
    "mix",
    "mixture",
    "tokens",
    "stages",
    "one_pass",
    "goclassy",
    "throttled",
    "documents",
    "own_data",
    "in_python",
    "processes",
    "storage",
    "requests",
    "annotate",
    "many_inputs",
    "memory",
    "training",
)
"""In the order in which they run: the short ones first."""


def load(name: str, inputs: Inputs) -> Sequence[Benchmark]:
    """The benchmarks of a module; what they need of inputs is made now."""
    found: Sequence[Benchmark] = importlib.import_module(f"{__name__}.{name}").benchmarks(inputs)
    return found
