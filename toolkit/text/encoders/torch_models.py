"""Classifiers of `transformers`, computed by PyTorch (extra ``torch``)."""

import atexit
import functools
import gc
import logging
import os
from typing import Any

from toolkit.distribution import missing_extra
from toolkit.errors import ConfigError, ToolkitError
from toolkit.text.encoders.config import ModelConfig
from toolkit.text.kernels.signatures import Array

WEIGHTS = "model.safetensors"

_ANNOTATOR = "_base_model."
"""Before the names of weights that ml_filter's class has saved."""


def imported() -> tuple[Any, Any]:
    """Return the modules `torch` and `transformers`; from now on the process computes with one thread.

    Raises:
        MissingExtra: if they are not installed.
    """
    torch, transformers = _imported()
    torch.set_num_threads(1)  # processes are what is parallel, and the order of sums is that of one thread
    return torch, transformers


@functools.cache
def _imported() -> tuple[Any, Any]:
    try:
        import torch
        import transformers
    except ImportError:
        raise missing_extra("torch", "models of transformers", "transformers") from None
    transformers.utils.logging.set_verbosity(logging.CRITICAL)
    transformers.utils.logging.disable_progress_bar()
    atexit.register(gc.unfreeze)  # or what executors have frozen is told as leaked when the process ends
    return torch, transformers


def device_of(requested: str) -> str:
    """Return the device for a request.

    Raises:
        ConfigError: if it is not here.
    """
    torch, _ = imported()
    available = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    if requested == "auto":
        return next((name for name, is_there in available.items() if is_there), "cpu")
    if not available.get(requested.partition(":")[0], True):
        raise ConfigError(
            f"device: expected one that PyTorch can use here, got {requested}; `auto` takes one that is available"
        )
    return requested


class TorchClassifier:
    """A classifier on a device.

    Args:
        folder: Folder of the model.
        config: Content of its ``config.json``.
        base: the ``config.json`` of the encoder of a model of ml_filter.
        width: numbers that are computed of a text.
        device: Device from `device_of`.

    Raises:
        ConfigError: if the folder has not all weights of such a model, or others.
    """

    def __init__(self, folder: str, config: ModelConfig, base: str | None, width: int, device: str) -> None:
        self._torch, _ = imported()
        self._device = device
        try:
            model = _annotator(folder, base, width) if config.is_annotator else _usual(folder)
            self._model = model.to(device).eval()
        except ToolkitError:
            raise
        except Exception as error:  # whatever its libraries raise
            raise ConfigError(
                f"{folder}: expected a model that transformers can load, got: {cause_of(error)}"
            ) from error

    def __call__(self, ids: Array, mask: Array) -> Array:
        """Return the numbers of texts: float32 (texts, width)."""
        torch = self._torch
        try:
            with torch.inference_mode():
                tensors = [torch.from_numpy(item).to(self._device) for item in (ids, mask)]
                result = self._model(input_ids=tensors[0], attention_mask=tensors[1]).logits
        except torch.cuda.OutOfMemoryError as error:
            raise ToolkitError(f"{self._device}: expected memory for {ids.size:,} tokens; lower `batch`") from error
        numbers: Array = result.float().cpu().numpy()
        return numbers


def cause_of(error: Exception) -> str:
    """Return the first line of a library's error."""
    return next(iter(str(error).strip().splitlines()), type(error).__name__)


def _usual(folder: str) -> Any:
    torch, transformers = imported()
    model, result = transformers.AutoModelForSequenceClassification.from_pretrained(
        folder, local_files_only=True, use_safetensors=True, dtype=torch.float32, output_loading_info=True
    )
    _check_keys(folder, sorted(result["missing_keys"]), sorted(str(item) for item in result["mismatched_keys"]))
    return model


def _annotator(folder: str, base: str | None, width: int) -> Any:
    """Load a folder of ml_filter's class: encoder and head in one file, without a config.

    What its head does behind the last layer is in `toolkit.text.encoders.config`.
    """
    torch, transformers = imported()
    from safetensors.torch import load_file

    if base is None:
        raise ConfigError(
            "base: expected the config.json of the encoder that base_model_name_or_path names, which folders of "
            "ml_filter do not have"
        )
    config = transformers.AutoConfig.from_pretrained(base, local_files_only=True, num_labels=width)
    model = transformers.AutoModelForSequenceClassification.from_config(config, dtype=torch.float32)
    weights = {
        name.removeprefix(_ANNOTATOR).replace(".linear.", "."): value
        for name, value in load_file(os.path.join(folder, WEIGHTS)).items()
        if not name.endswith((".scaling.scaling_constants", ".logit_mask.raw_logit_mask"))
    }
    expected = model.state_dict()
    mismatched = [name for name in expected.keys() & weights.keys() if expected[name].shape != weights[name].shape]
    _check_keys(folder, sorted(expected.keys() - weights.keys()), sorted(mismatched))
    model.load_state_dict(weights, strict=False)
    return model


def _check_keys(folder: str, missing: list[str], mismatched: list[str]) -> None:
    """Check for missing weights: transformers would draw them at random."""
    if missing or mismatched:
        got = f"none for {', '.join(missing[:4])}" if missing else f"others in {', '.join(mismatched[:4])}"
        more = ", …" if len(missing or mismatched) > 4 else ""
        raise ConfigError(
            f"{folder}: expected all weights of a classifier, got {got}{more}; an encoder without a head is trained "
            "by `toolkit train` (kind: encoder)"
        )
