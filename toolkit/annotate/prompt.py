r"""Prompts: what a model is asked about a text, and how its answer is read; YAML files.

    prompt_name: educational_value
    language: en
    prompt: |
      … {{ text }} …                                              Jinja, in a sandbox
    score: {regex: 'Educational score:\s*(\d)', min: 0, max: 5}      or `label:`, or either with `field:` of JSON

Files of ml_filter (`prompt_name`, and `prompt` with one ``{placeholder}``) are read, too.
"""

import re
import string
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Annotated, Any

import msgspec

from toolkit.config import settings as config
from toolkit.config.settings import ConfigStruct, Description, Source
from toolkit.errors import ConfigError

ANY_SCORE = r"(?i)\bscore[^\w:]*:[^\w-]*(-?\d+(?:\.\d+)?)"
"""The number behind the last "score:" of an answer, for prompts that do not say where it stands."""

_JINJA = re.compile(r"\{\{|\{%|\{#")


class ScoreForm(ConfigStruct, omit_defaults=True):
    """Where the score stands in an answer, and what is in range."""

    regex: Annotated[str | None, Description(description="its first group is the score; the last match counts")] = None
    field: Annotated[str | None, Description(description="the field of an answer in JSON: FIELD[.FIELD]")] = None
    min: Annotated[float | None, Description(description="a lower score is an error")] = None
    max: Annotated[float | None, Description(description="a higher score is an error")] = None


class LabelForm(ConfigStruct, omit_defaults=True):
    """Where the label stands in an answer, and which there are."""

    labels: Annotated[
        Annotated[list[str], msgspec.Meta(min_length=1)],
        Description(description="the labels that an answer may have, in any case of letters; another one is an error"),
    ]
    regex: Annotated[str | None, Description(description="its first group is the label; the last match counts")] = None
    field: Annotated[str | None, Description(description="the field of an answer in JSON: FIELD[.FIELD]")] = None


class Prompt(ConfigStruct, omit_defaults=True):
    """What a model is asked, and how its answer is read."""

    prompt_name: Annotated[str, Description(description="the name of the prompt in records, and the key of the set")]
    prompt: Annotated[
        str, Description(description="Jinja template over `text`, `id`, `source`, `metadata`; or one `{placeholder}`")
    ]
    language: Annotated[str, Description(description="the language in which the prompt is written")] = ""
    system: Annotated[str | None, Description(description="the system message, also a template")] = None
    score: Annotated[ScoreForm | None, Description(description="where the score is in the answer")] = None
    label: Annotated[
        LabelForm | None, Description(description="where the label is in the answer, in place of a score")
    ] = None
    schema: Annotated[
        dict[str, Any] | None, Description(description="JSON Schema of the answer, which the request gives the server")
    ] = None

    @property
    def form(self) -> ScoreForm | LabelForm:
        """Return where score or label stands; by default a score behind "score:"."""
        return self.label or self.score or ScoreForm(regex=ANY_SCORE)

    @property
    def key(self) -> str:
        """Return the name as rules can use it."""
        return re.sub(r"\W", "_", self.prompt_name, flags=re.ASCII)

    def check(self) -> None:
        """Raise ConfigError for what can be no prompt."""
        if not self.prompt_name.strip():
            raise ConfigError("prompt_name: expected a name, got none")
        if self.score and self.label:
            raise ConfigError("expected `score` or `label`, got both")
        form = self.form
        if (form.regex is None) == (form.field is None):
            raise ConfigError(f"{'label' if self.label else 'score'}: expected `regex` or `field`, one of them")
        if form.regex is not None:
            try:
                groups = re.compile(form.regex).groups
            except re.error as error:
                raise ConfigError(f"regex: expected a regular expression, got {form.regex!r}: {error}") from None
            if groups < 1:
                raise ConfigError(
                    f"regex: expected a group in parentheses, whose text is the score or label, got {form.regex!r}"
                )
        templates = [template(each) for each in (self.prompt, self.system) if each is not None]
        if not any(_MARK in fill({**_TRIAL, "text": _MARK}) for fill in templates):
            raise ConfigError("prompt: expected a template that shows the text, `{{ text }}`, got one without it")

    def messages(self, values: Mapping[str, Any]) -> list[dict[str, str]]:
        """Return the messages of a chat about a text; `values` has what templates name.

        Raises:
            ConfigError: if a template cannot be filled with them.
        """
        system = [{"role": "system", "content": template(self.system)(values)}] if self.system is not None else []
        return [*system, {"role": "user", "content": template(self.prompt)(values)}]


_MARK = "\N{SNOWMAN} the text \N{SNOWMAN}"
_TRIAL: dict[str, Any] = {"id": "", "source": "", "metadata": {}}

Fill = Callable[[Mapping[str, Any]], str]


@lru_cache(maxsize=16)
def template(text: str) -> Fill:
    """Return what fills a template: Jinja, or a text with one ``{name}``, which stands for the text of the document.

    Raises:
        ConfigError: if it is neither.
    """
    return _jinja(text) if _JINJA.search(text) else _simple(text)


def _simple(text: str) -> Fill:
    try:
        parts = list(string.Formatter().parse(text))
    except ValueError as error:
        raise ConfigError(
            f"prompt: expected a template with `{{{{ text }}}}`, got braces that are no placeholder: {error}"
        ) from None
    names = {name for _, name, _, _ in parts if name is not None}
    if not names:
        return lambda _: text
    plain = all(not spec and not conversion for _, name, spec, conversion in parts if name is not None)
    if len(names) > 1 or not plain or not names.pop().isidentifier():
        raise ConfigError(
            "prompt: expected one `{placeholder}` for the text, or a template with `{{ text }}`, got others"
        )
    return lambda values: "".join(
        literal + (values["text"] if name is not None else "") for literal, name, _, _ in parts
    )


def _jinja(text: str) -> Fill:
    from jinja2 import StrictUndefined, TemplateError
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    environment = ImmutableSandboxedEnvironment(undefined=StrictUndefined, keep_trailing_newline=False)  # no HTML
    try:
        made = environment.from_string(text)
    except TemplateError as error:
        raise ConfigError(f"prompt: expected a Jinja template, got: {error}") from None

    def fill(values: Mapping[str, Any]) -> str:
        try:
            return made.render(values)
        except Exception as error:  # whatever a template's expressions raise
            known = ", ".join(sorted({*values}))
            raise ConfigError(f"prompt: the template failed ({error}); it may use {known}") from None

    return fill


def load(source: Source, base: Source | None = None) -> Prompt:
    """Return a prompt as a file, or a mapping in the configuration, has it; checked.

    Args:
        source: what was read of it.
        base: where the configuration names it, for messages; by default there, too.

    Raises:
        ConfigError: with the place in the file.
    """
    found = config.convert(source, Prompt, "a prompt")
    try:
        found.check()
    except ConfigError as error:
        raise type(error)(str((base or source).error((), str(error)))) from None
    return found
