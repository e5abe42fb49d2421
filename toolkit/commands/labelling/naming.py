"""Whose the values of a set are, as files of annotations name it: the model, the prompt, and its language."""

from collections.abc import Mapping
from typing import Any

from toolkit.data.dataset import Dataset
from toolkit.errors import ConfigError
from toolkit.evaluating.rows import Question
from toolkit.labelling.ml_filter import Names
from toolkit.plugins import default_name
from toolkit.records import sets

UNKNOWN = "und"
"""The language of no prompt, as ISO 639-2 calls what is not determined."""


def names_of(dataset: Dataset, question: Question, given: Mapping[str, str | None]) -> Names:
    """Return the names for the values of a question.

    Args:
        dataset: that has the sets.
        question: an expression over one set, or several.
        given: on the command line, by the names of ml_filter.

    Raises:
        ConfigError: if nothing tells them, and they are not given.
    """
    said = {key: value for key, value in given.items() if value}
    if len(question.sets) != 1:
        for option in ("model_name", "prompt_name"):
            if option not in said:
                flag = f"--{option.replace('_', '-')}"
                raise ConfigError(
                    f"expected {flag} NAME, got none: `--from {question.text}` does not name one set, whose "
                    f"settings would say it"
                )
        return Names(given=said, model="", prompt="", language=UNKNOWN)
    (name,) = question.sets
    settings = _settings(dataset, name, question.text)
    options = settings.get("options", {})
    model, prompt = options.get("model"), options.get("prompt")
    if isinstance(model, dict):  # a file, by its digest
        model = sets.load_models(dataset, name).get(str(model.get("sha256")), "").rstrip("/").rpartition("/")[2]
    if not model and "tagger" in settings:
        model = default_name(settings["tagger"])
    named = prompt if isinstance(prompt, dict) else {}
    return Names(
        given=said,
        model=model if isinstance(model, str) and model else name,
        prompt=named.get("prompt_name") or name,
        language=named.get("language") or UNKNOWN,
    )


def key_of(dataset: Dataset, question: Question) -> str:
    """Return the key that an expression begins with, or the only one of its set; empty if there is none such."""
    if len(question.sets) != 1:
        return ""
    (name,) = question.sets
    schema = sets.load_schema(dataset, name)
    keys = list(schema.keys) if schema else []
    parts = question.text.strip().split(".")
    return next((part for part in parts[:2] if part in keys), keys[0] if len(keys) == 1 else "")


def _settings(dataset: Dataset, name: str, text: str) -> dict[str, Any]:
    schema = sets.load_schema(dataset, name)
    if schema is None:
        return {}
    parts = text.strip().split(".")
    key = next((part for part in parts[:2] if part in schema.keys), next(iter(schema.keys), ""))
    return schema.keys[key].settings if key in schema.keys else {}
