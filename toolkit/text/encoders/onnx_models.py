"""Classifiers in ONNX files, computed by ONNX Runtime (extra ``onnx``)."""

import os
from typing import Any

from toolkit.distribution import missing_extra
from toolkit.errors import ConfigError
from toolkit.text.kernels.signatures import Array

LOGITS = "logits"

_TYPES = {"tensor(int64)": "int64", "tensor(int32)": "int32"}


def imported() -> Any:
    """Return the module `onnxruntime`.

    Raises:
        MissingExtra: if it is not installed.
    """
    try:
        import onnxruntime
    except ImportError:
        raise missing_extra("onnx", "ONNX models", "onnxruntime") from None
    return onnxruntime


def device_of(requested: str) -> str:
    """Return the device for a request: cpu, cuda or cuda:N.

    Raises:
        ConfigError: if it is not here.
    """
    has_cuda = "CUDAExecutionProvider" in imported().get_available_providers()
    if requested == "auto":
        return "cuda" if has_cuda else "cpu"
    if requested == "mps" or (requested != "cpu" and not has_cuda):
        raise ConfigError(
            f"device: expected one that ONNX Runtime can use here, got {requested}; `auto` takes one that is available"
        )
    return requested


class OnnxClassifier:
    """A classifier of an ONNX file: one thread, one operation after the other.

    Args:
        folder: Folder of the model.
        file: File in the folder.
        width: numbers that are computed of a text.
        device: Device from `device_of`.

    Raises:
        ConfigError: if it cannot be loaded, or computes something else.
    """

    def __init__(self, folder: str, file: str, width: int, device: str) -> None:
        runtime = imported()
        self._path, self._width = os.path.join(folder, file), width
        options = runtime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.execution_mode = runtime.ExecutionMode.ORT_SEQUENTIAL
        options.use_deterministic_compute = True
        options.log_severity_level = 4
        provider: Any = "CPUExecutionProvider"
        if device != "cpu":
            provider = ("CUDAExecutionProvider", {"device_id": int(device.partition(":")[2] or 0)})
        try:
            self._session = runtime.InferenceSession(self._path, options, [provider])
        except Exception as error:  # the library raises nothing narrower
            raise ConfigError(f"{self._path}: expected an ONNX model, got: {str(error).strip()}") from error
        self._inputs = {input_.name: _TYPES.get(input_.type, "") for input_ in self._session.get_inputs()}
        expected = {"input_ids", "attention_mask", "token_type_ids"}
        if "input_ids" not in self._inputs or self._inputs.keys() - expected or not all(self._inputs.values()):
            raise ConfigError(
                f"{self._path}: expected the inputs input_ids, attention_mask and token_type_ids of whole numbers, or "
                f"some of them, got {', '.join(input_.name for input_ in self._session.get_inputs())}"
            )
        names = [output.name for output in self._session.get_outputs()]
        if LOGITS not in names and len(names) != 1:
            raise ConfigError(f"{self._path}: expected an output `{LOGITS}`, or one output, got {', '.join(names)}")
        self._output = LOGITS if LOGITS in names else names[0]

    def __call__(self, ids: Array, mask: Array) -> Array:
        """Return the numbers of texts: float (texts, width)."""
        arrays = {"input_ids": ids, "attention_mask": mask, "token_type_ids": ids * 0}
        feed = {name: arrays[name].astype(kind) for name, kind in self._inputs.items()}
        try:
            (result,) = self._session.run([self._output], feed)
        except Exception as error:  # the library raises nothing narrower
            raise ConfigError(f"{self._path}: expected a model of any number of tokens, got: {error}") from error
        numbers: Array = result.reshape(len(ids), -1)
        if result.ndim > 2 or numbers.shape[1] != self._width:
            raise ConfigError(
                f"{self._path}: expected {self._width} numbers of a text, as config.json says, got an output of the "
                f"shape {result.shape} for {len(ids)}"
            )
        return numbers
