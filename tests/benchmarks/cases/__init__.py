"""The benchmarks by name, functions of inputs, in the order in which they run: the short ones first."""

from collections.abc import Callable, Sequence

from tests.benchmarks.cases import duplicates, parts, runs
from tests.benchmarks.inputs import Inputs
from tests.benchmarks.race import Benchmark

_ORDER: tuple[Callable[[Inputs], Sequence[Benchmark]], ...] = (
    *(parts.startup, parts.predict, parts.tag, parts.signals, duplicates.exact, duplicates.near, parts.mix),
    *(parts.mixture, parts.tokens, runs.stages, runs.one_pass, runs.goclassy, runs.throttled, parts.documents),
    *(parts.own_data, parts.in_python, runs.processes, runs.storage, runs.requests, parts.annotate),
    *(runs.many_inputs, runs.memory, runs.training),
)
BENCHMARKS = {function.__name__: function for function in _ORDER}
