"""Rules ready to run, a class for each thing that rules do: what they see in a document, change, and say of it."""

import contextlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import msgspec

from toolkit.data.documents import Document, Span
from toolkit.errors import DataError
from toolkit.rules import filters
from toolkit.rules.blocklist import Watch
from toolkit.rules.expression_tree import ExpressionError
from toolkit.rules.expressions import Name, check, everything_known, paths_in
from toolkit.rules.rule import Rule, sample_hash
from toolkit.text import editing
from toolkit.text.editing import Edit

Function = Callable[..., Any]
Values = Sequence[Any]
"""Of a document: one for each argument of functions, the document last."""


@dataclass(frozen=True, eq=False)
class Compiled:
    """A rule ready to run. Those that drop or annotate are just that, others do more.

    Attributes:
        rule: as written.
        names: that its expressions may use, its parameters among them.
        function: makes code a function of the values of a document.
        condition: the code of when it holds; empty if it always does.
    """

    rule: Rule
    names: Mapping[str, Name]
    function: Callable[[str], Function]
    condition: str

    def holds(self, values: Values) -> bool:
        """Whether it does something to a document."""
        return not self.condition or bool(self.run(self._holds, values))

    def run(self, function: Function, values: Values) -> Any:
        """What one of its functions gives; a value that it cannot use is an error that names the rule."""
        try:
            return function(*values)
        except Exception as error:
            message = f"rule {self.rule.name!r} ({self.rule.place}) failed: {_describe(error)}"
            raise DataError(message).about(self.keys) from None

    def fault(self, message: str) -> DataError:
        """The error of a value that is not what the rule needs."""
        return DataError(f"rule {self.rule.name!r} ({self.rule.place}): {message}").about(self.keys)

    def edits(self, document: Document, values: Values) -> list[Edit]:
        """What it edits in a document's text."""
        return []

    def preview(self, values: Values) -> tuple[int, int | None]:
        """How many stretches it would edit, and their code points (None where only text could tell)."""
        return 0, None

    def verdict(self, values: Values) -> str:
        """What it says of a document that has come to it."""
        verb = "drop" if self.rule.drops else "annotate"
        return f"{verb}s it" if self.holds(values) else f"does not {verb} it"

    def watched(self, values: Values) -> dict[str, Any]:
        """The values that it sees in a document, by the text of the expression that has them."""
        found: dict[str, Any] = {}
        for path, function in self._paths.items():
            with contextlib.suppress(KeyError, IndexError, AttributeError, TypeError, ValueError):
                found[path] = function(*values)
        return found

    @cached_property
    def keys(self) -> frozenset[str]:
        """The names of the attributes that it asks for."""
        syntax, patterns = self.rule.syntax, self.rule.patterns or [self.rule.expression]
        asked = {key for each in patterns for key in filters.all_keys(each, syntax)} if syntax else set()
        texts = [self.rule.when, "" if syntax else self.rule.expression]
        return frozenset(
            asked | {path.partition(".")[0] for text in texts if text for path in paths_in(text, self.names)}
        )

    @cached_property
    def _holds(self) -> Function:
        return self.function(self.condition)

    @cached_property
    def _paths(self) -> dict[str, Function]:
        compiled: dict[str, Function] = {}
        for text in ("" if self.rule.syntax else self.rule.expression, self.rule.when):
            for path in paths_in(text, self.names) if text else ():
                with contextlib.suppress(ExpressionError):
                    compiled[path] = self.function(check(path, self.names, everything_known(path)).code)
        return compiled


@dataclass(frozen=True, eq=False)
class Blocks(Compiled):
    """Drops documents that are on a list, which `watch` looks at."""

    watch: Watch

    def watched(self, values: Values) -> dict[str, Any]:
        return super().watched(values) | {"entries": self.watch.shown(values[-1])}


@dataclass(frozen=True, eq=False)
class Changes(Compiled):
    """Changes documents that stay, by the value of an expression."""

    value: Function


class Sets(Changes):
    """Gives a field of the metadata."""

    def set(self, fields: dict[str, Any], values: Values) -> None:
        """Adds the field as a JSON text, nested where its name is dotted."""
        *path, last = self.rule.field.split(".")
        for key in path:
            fields = fields.setdefault(key, {})
        value = self.run(self.value, values)
        try:
            fields[last] = msgspec.Raw(msgspec.json.encode(value))
        except (TypeError, OverflowError) as error:
            raise self.fault(f"expected a value for JSON, got: {error}") from None

    def verdict(self, values: Values) -> str:
        return f"sets {self.rule.field}" if self.holds(values) else "sets nothing"


class Routes(Changes):
    """Gives the output folder."""

    def folder(self, label: str, values: Values) -> str:
        """The folder of a document, or piece of one, that the format gives this label."""
        found = self.run(self.value, (*values, label))
        if not isinstance(found, str):
            raise self.fault(f"expected a text, the folder, got {found!r}")
        return found

    def verdict(self, values: Values) -> str:
        return "routes it" if self.holds(values) else "routes nothing"


@dataclass(frozen=True, eq=False)
class EditsSpans(Changes):
    """Replaces or cuts spans; `by` gives the replacement where it is not the same for all documents."""

    by: Function | None = None

    def edits(self, document: Document, values: Values) -> list[Edit]:
        spans = self._spans(values)
        try:
            return editing.edits_of_spans(spans, self._replacement(values), document.text) if spans else []
        except DataError as error:
            raise self.fault(error.message) from None

    def preview(self, values: Values) -> tuple[int, int | None]:
        sizes = [span.end - span.start for span in self._spans(values) if span.start < span.end]
        return len(sizes), sum(sizes)

    def verdict(self, values: Values) -> str:
        return f"edits {len(self._spans(values))} spans" if self.holds(values) else "edits nothing"

    def _spans(self, values: Values) -> list[Span]:
        if not self.holds(values):
            return []
        found = self.run(self.value, values)
        try:
            spans = [span if isinstance(span, Span) else _span(span) for span in found or ()]
        except (TypeError, ValueError):
            raise self.fault(f"expected spans, a list of [start, end, score], got {found!r}") from None
        low, high = self.rule.min_score, self.rule.max_score
        return [s for s in spans if (low is None or s.score >= low) and (high is None or s.score < high)]

    def _replacement(self, values: Values) -> str:
        found = self.by(*values) if self.by else self.rule.by
        if not isinstance(found, str):
            raise DataError(f"expected a text at {self.rule.by!r}, to replace spans by, got {found!r}")
        return found


@dataclass(frozen=True, eq=False)
class CutsLines(Changes):
    """Cuts the lines for which its expression is true; `lists` gives the lists that have an element for each line."""

    lists: Function

    def edits(self, document: Document, values: Values) -> list[Edit]:
        if not self.holds(values):
            return []
        lines = document.lines
        for found in self.lists(*values):
            if len(found) != len(lines):
                raise self.fault(f"expected a value for each of {len(lines)} lines, got {len(found)}")
        known = (_Line(number, len(line)) for number, line in enumerate(lines, 1))
        return editing.edits_of_lines(self._cut(known, values), document.text)

    def preview(self, values: Values) -> tuple[int, int | None]:
        lists = self.lists(*values)
        lines = [_UnknownLine()] * len(lists[0]) if lists and self.holds(values) else []
        return len(self._cut(lines, values)), None

    def verdict(self, values: Values) -> str:
        return "edits lines, where it holds" if self.holds(values) else "edits nothing"

    def _cut(self, lines: "Iterable[_Line | _UnknownLine]", values: Values) -> list[int]:
        """The indexes of the lines to cut."""
        found = []
        for i, line in enumerate(lines):
            holds = self.run(self.value, (*values, i, line))
            if holds is not True and holds is not False:
                raise self.fault(f"expected true or false, got {holds!r}")
            if holds:
                found.append(i)
        return found


@dataclass(frozen=True, slots=True)
class _Line:
    """What expressions of `cut: lines` know of a line by itself; numbered from 1."""

    number: int
    chars: int


class _UnknownLine:
    def __getattr__(self, name: str) -> int:
        raise ValueError(f"line.{name} is known from the text only, which a dry run does not read")


def _span(value: Any) -> Span:
    start, end, score = value[:3]
    if not (type(start) is int and type(end) is int and type(score) in (int, float)):
        raise TypeError
    return Span(start, end, score)


def falls_out(seed: str, limits: Mapping[str, float], limit: float, document: Any, label: str | None) -> bool:
    """Whether a document is not in a sample: its hash is not below the limit of its label, or that of all others."""
    if document.source is None:
        raise ValueError("expected rows with a source, which a sample is drawn by")
    if label is not None:
        limit = limits.get(label, limit)
    return sample_hash(seed, document.source, document.id) >= limit


def label_function(text: str, function: Function) -> Callable[..., str | None]:
    """The function of a label, with its errors."""

    def label(*values: Any) -> str | None:
        try:
            value = function(*values)
        except Exception as error:
            raise DataError(f"the label `{text}` failed: {_describe(error)}") from None
        if not isinstance(value, str | None):
            raise DataError(f"expected a text or null as label, got {value!r}")
        return value

    return label


def _describe(error: Exception) -> str:
    if isinstance(error, KeyError):
        return f"expected the key {error}, got a map without it; use get(map, key, default)"
    if isinstance(error, IndexError):
        return "expected an element, got a list that is too short"
    if isinstance(error, DataError):
        return error.message
    if str(error).startswith("expected"):
        return str(error)
    return f"{type(error).__name__}: {error}"
