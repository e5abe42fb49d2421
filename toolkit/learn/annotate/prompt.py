r"""Prompts: what a model is asked about which parts of a text, and how its answer is read; YAML files.

    prompt_name: educational_value
    language: en
    prompt: |
      … {{ text }} …                                              Jinja, in a sandbox
    score: {regex: 'Educational score:\s*(\d)', min: 0, max: 5}      or `label:`, or either with `field:` of JSON

Files of ml_filter (`prompt_name`, and `prompt` with one ``{placeholder}``) are read, too.
"""

import json
import math
import re
import string
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Annotated, Any, Literal, NamedTuple

import msgspec

from toolkit.config import settings as config
from toolkit.config.settings import ConfigNode, ConfigStruct
from toolkit.errors import ConfigError, errors_from, short
from toolkit.label_files.reader import Aggregate, aggregated

ANY_SCORE = r"(?i)\bscore[^\w:]*:[^\w-]*(-?\d+(?:\.\d+)?)"
"""The number behind the last "score:" of an answer, for prompts that do not say where it stands."""

_JINJA = re.compile(r"\{\{|\{%|\{#")


class ScoreForm(ConfigStruct, omit_defaults=True):
    """Place of the score in an answer, and its range.

    Attributes:
        regex: its first group is the score; the last match counts
        field: the field of an answer in JSON: FIELD[.FIELD]
        min: a lower score is an error
        max: a higher score is an error
    """

    regex: str | None = None
    field: str | None = None
    min: float | None = None
    max: float | None = None


class LabelForm(ConfigStruct, omit_defaults=True):
    """Place of the label in an answer, and all labels.

    Attributes:
        labels: the labels that an answer may have, in any case of letters; another one is an error
        regex: its first group is the label; the last match counts
        field: the field of an answer in JSON: FIELD[.FIELD]
    """

    labels: Annotated[list[str], msgspec.Meta(min_length=1)]
    regex: str | None = None
    field: str | None = None


class Prompt(ConfigStruct, omit_defaults=True):
    """A prompt, and how its answer is read.

    Attributes:
        prompt_name: the name of the prompt in records, and the key of the set
        prompt: Jinja template over `text`, `id`, `source`, `metadata`; or one `{placeholder}`
        language: the language in which the prompt is written
        system: the system message, also a template
        score: the place of the score in the answer
        label: the place of the label in the answer, instead of a score
        schema: JSON Schema of the answer, which the request gives the server
    """

    prompt_name: str
    prompt: str
    language: str = ""
    system: str | None = None
    score: ScoreForm | None = None
    label: LabelForm | None = None
    schema: dict[str, Any] | None = None

    @property
    def form(self) -> ScoreForm | LabelForm:
        """Return the place of the score or label; by default a score behind "score:"."""
        return self.label or self.score or ScoreForm(regex=ANY_SCORE)

    @property
    def key(self) -> str:
        """Return the name as rules can use it."""
        return re.sub(r"\W", "_", self.prompt_name, flags=re.ASCII)

    def check(self) -> None:
        """Raise ConfigError for an invalid prompt."""
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
        templates = [template(item) for item in (self.prompt, self.system) if item is not None]
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
    """Return the filling function of a template.

    Jinja, or a text with one ``{name}``, which stands for the text of the document.

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
    with errors_from("prompt: expected a Jinja template, got", of=TemplateError):
        template = environment.from_string(text)

    def fill(values: Mapping[str, Any]) -> str:
        try:
            return template.render(values)
        except Exception as error:  # whatever a template's expressions raise
            names = ", ".join(sorted({*values}))
            raise ConfigError(f"prompt: the template failed ({error}); it may use {names}") from None

    return fill


def load(source: ConfigNode, base: ConfigNode | None = None) -> Prompt:
    """Return a prompt from a file or a mapping of the configuration; checked.

    Args:
        source: Content of the file or mapping.
        base: Place of its name in the configuration, for messages; by default that of `source`.

    Raises:
        ConfigError: with the place in the file.
    """
    prompt = config.convert(source, Prompt, "a prompt")
    try:
        prompt.check()
    except ConfigError as error:
        raise type(error)(str((base or source).error((), str(error)))) from None
    return prompt


EXCERPT = 500
"""Characters that are kept of an answer that cannot be read: its beginning and its end."""


class ParsedAnswer(NamedTuple):
    """A parsed answer: a score or a label, or the fault in it."""

    score: float | None = None
    label: str | None = None
    error: str = ""


def read(text: str, prompt: Prompt) -> ParsedAnswer:
    """Return the score or label of an answer."""
    form = prompt.form
    if form.regex is not None:
        matches = re.findall(form.regex, text)
        if not matches:
            return ParsedAnswer(error=f"expected {'a label' if prompt.label else 'a score'} as {form.regex}, got none")
        result: Any = matches[-1] if isinstance(matches[-1], str) else matches[-1][0]
    else:
        result, error = _field(text, form.field or "")
        if error:
            return ParsedAnswer(error=error)
    return _label(result, form) if isinstance(form, LabelForm) else _score(result, form)


def _field(text: str, path: str) -> tuple[Any, str]:
    """Return the value of a field of a text's JSON object; and the fault."""
    begin, end = text.find("{"), text.rfind("}")
    try:
        result = json.loads(text[begin : end + 1] if 0 <= begin < end else text)
    except (ValueError, RecursionError) as error:
        return None, f"expected a JSON object, got: {error}"
    for name in path.split("."):
        if not isinstance(result, dict) or name not in result:
            return None, f"expected an object with {path}, got none"
        result = result[name]
    return result, ""


def _score(value: Any, form: ScoreForm) -> ParsedAnswer:
    try:
        score = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        score = math.nan
    if not math.isfinite(score):
        return ParsedAnswer(error=f"expected a number as score, got {short(value)}")
    low, high = form.min, form.max
    if (low is not None and score < low) or (high is not None and score > high):
        bounds = " and ".join(
            f"{word} {bound:g}" for word, bound in (("at least", low), ("at most", high)) if bound is not None
        )
        return ParsedAnswer(error=f"expected a score of {bounds}, got {score:g}")
    return ParsedAnswer(score=score)


def _label(value: Any, form: LabelForm) -> ParsedAnswer:
    labels = {label.casefold(): label for label in form.labels}
    label = labels.get(value.strip().casefold()) if isinstance(value, str) else None
    if label is None:
        return ParsedAnswer(error=f"expected one of {', '.join(form.labels)}, got {short(value)}")
    return ParsedAnswer(label=label)


def excerpt(text: str) -> str:
    """Return the beginning and the end of a long text."""
    half = EXCERPT // 2
    return text if len(text) <= EXCERPT else f"{text[:half]} … {text[-half:]}"


def aggregate(scores: Sequence[float], how: Aggregate) -> float | None:
    """Return the aggregate of the scores of all samples, to six places; None without one."""
    score = aggregated(scores, how)
    return None if score is None else round(score, 6)


def most_frequent(labels: Sequence[str]) -> str | None:
    """Return the most frequent label, the first of several; None without one."""
    return max(labels, key=lambda label: (labels.count(label), -labels.index(label))) if labels else None


Piece = Literal["begin", "middle", "end"]

_CHARS = 16
"""Characters a token of the lead of a text, at most: so much of it is looked at, and not a whole book."""


class Windows(ConfigStruct, omit_defaults=True):
    """The parts of a text for the model, each by itself.

    Attributes:
        characters: code points of a part.
        tokens: Tokens of a part, as the tokenizer counts them.
        pieces: Places of the parts; a text that is not longer than one is one part.
    """

    characters: Annotated[int, msgspec.Meta(ge=1)] | None = None
    tokens: Annotated[int, msgspec.Meta(ge=1)] | None = None
    pieces: Annotated[list[Piece], msgspec.Meta(min_length=1)] = msgspec.field(default_factory=lambda: ["begin"])

    def check(self, tokenizer: str | None) -> None:
        """Raise ConfigError for conflicting options; `tokenizer` is the file that is given."""
        if (self.characters is None) == (self.tokens is None):
            raise ConfigError("window: expected `characters` or `tokens`, one of them")
        if self.tokens is not None and tokenizer is None:
            raise ConfigError("window: expected `tokenizer: tokenizer.json` beside `window: {tokens: …}`, got none")
        if len({*self.pieces}) != len(self.pieces):
            raise ConfigError("window: expected each piece once")

    def of(self, text: str, tokenizer: Any) -> list[tuple[int, int]]:
        """Return starts and ends of the parts, in code points.

        Args:
            text: Text of the document.
            tokenizer: Tokenizer of `toolkit.text.tokens.load_tokenizer`; None with `characters`.
        """
        if self.tokens is None:
            return _pieces(len(text), self.characters or 0, self.pieces)
        head = text if self.pieces != ["begin"] else text[: self.tokens * _CHARS]
        offsets = tokenizer.encode(head, add_special_tokens=False).offsets
        if len(offsets) <= self.tokens and len(head) == len(text):
            return [(0, len(text))]
        parts = _pieces(len(offsets), self.tokens, self.pieces)
        return [(_begin(offsets, first), _end(offsets, behind, len(head))) for first, behind in parts]


def _pieces(length: int, size: int, pieces: list[Piece]) -> list[tuple[int, int]]:
    if length <= size:
        return [(0, length)]
    starts = {"begin": 0, "middle": (length - size) // 2, "end": length - size}
    return [(starts[piece], starts[piece] + size) for piece in pieces]


def _begin(offsets: list[tuple[int, int]], first: int) -> int:
    return offsets[first][0] if first else 0


def _end(offsets: list[tuple[int, int]], behind: int, length: int) -> int:
    """Return the end of a part; of a character that is several tokens all or nothing is in it."""
    return min(offsets[behind - 1][1], offsets[behind][0]) if behind < len(offsets) else length
