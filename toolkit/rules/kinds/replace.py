"""``{replace: emails, by: "|||EMAIL|||"}`` replaces spans by a text, in which {} stands for the original text."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from toolkit.config.settings import ConfigNode, Description
from toolkit.data.documents import Document, Span
from toolkit.data.schema import SPANS
from toolkit.errors import ConfigError, DataError
from toolkit.rules import filters
from toolkit.rules.filters import Syntax
from toolkit.rules.rule import WHOLE, CompiledRule, Compiler, Foreign, Form, Function, Rule, Values, of_joined, refused
from toolkit.text import editing
from toolkit.text.editing import Edit


class SpansForm(Form, kw_only=True):
    """The options in YAML that `replace` and `cut` share."""

    min_score: Annotated[int | float | None, Description(description="spans with a lower score stay")] = None
    max_score: Annotated[
        int | float | None, Description(description="spans with this score, or a higher one, stay")
    ] = None
    syntax: Annotated[Syntax | None, Description(description="the language of the selector")] = None

    def rule(self, kind: type["Replace"], spans: str, by: str) -> "Replace":
        """Return the rule of the expression of spans, or with `syntax` of a selector."""
        return kind(
            name=self.name or spans,
            expression=spans,
            syntax=self.syntax or "",
            by=by,
            when=self.when,
            min_score=self.min_score,
            max_score=self.max_score,
        )


class ReplaceForm(SpansForm):
    """The entry in YAML."""

    replace: Annotated[str, Description(description="an expression that gives spans; with `syntax`, a selector")]
    by: Annotated[
        str,
        Description(
            description="the text that replaces them: `{}` is the original text, `{tag}` the name of the rule; with "
            "`syntax`, `$` and a jq filter give a text of the document"
        ),
    ]

    KEY = "replace"

    def rules(self, place: ConfigNode, base: str) -> Sequence[Rule]:
        by = self.by
        if not self.syntax:
            try:
                by = editing.check_replacement(by).replace(editing.TAG, self.name or self.replace)
            except ValueError as error:
                raise place.error(("by",), str(error)) from None
        return [self.rule(Replace, self.replace, by)]


class Replace(Rule):
    """The rule.

    Attributes:
        syntax: of the expression, if it selects the spans in another language.
        by: what stands in the place of spans.
        min_score, max_score: of spans that are edited, the first included, the second not.
    """

    syntax: Literal["", "jsonpath", "jq"] = ""
    by: str = ""
    min_score: int | float | None = None
    max_score: int | float | None = None

    FORM: ClassVar[type[Form]] = ReplaceForm

    @property
    def foreign(self) -> Foreign | None:
        return Foreign(self.syntax, [self.expression]) if self.syntax else None

    def compile(self, compiler: Compiler) -> CompiledRule:
        names = compiler.names_for(self)
        condition = compiler.condition(self, names)
        if self.syntax:
            spans, by = self._selected(compiler, self.syntax)
        else:
            found = compiler.value(self, names, self.expression, SPANS, "spans, a list of [start, end, score]")
            spans, by = compiler.function(found.code), None
        return EditsSpans(self, names, compiler.function, condition, self, spans, by)

    def _selected(self, compiler: Compiler, syntax: Syntax) -> tuple[Function, Function | None]:
        """Return what gives the spans, and what gives their replacement where the document tells it."""
        by = None
        try:
            if self.by.startswith("$"):
                by = of_joined(filters.selection(self.by[1:], "jq"))
                compiler.needs.joined = True
            key = filters.selected_key(self.expression, syntax)
            known = compiler.attributes.get(key) if key and compiler.translates else None
            if key and known and known.type == SPANS:
                compiler.needs.keys.add(key)
                compiler.needs.fields.setdefault(key, set()).add(WHOLE)
                return compiler.function(known.code), by
            spans = of_joined(filters.selection(self.expression, syntax))
        except ConfigError as error:
            raise refused(self, error) from None
        compiler.needs.run_by_library(self.expression)
        return spans, by


@dataclass(frozen=True, eq=False)
class EditsSpans(CompiledRule):
    """Replaces spans; `replaced_by` gives the replacement where it is not the same for all documents."""

    edit: Replace
    spans: Function
    replaced_by: Function | None = None

    def edits(self, document: Document, values: Values, past_end: editing.PastEnd) -> list[Edit]:
        spans = self._spans(values)
        try:
            return editing.edits_of_spans(spans, self._replacement(values), document.text, past_end) if spans else []
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
        found = self.run(self.spans, values)
        try:
            spans = [span if isinstance(span, Span) else _span(span) for span in found or ()]
        except (TypeError, ValueError):
            raise self.fault(f"expected spans, a list of [start, end, score], got {found!r}") from None
        low, high = self.edit.min_score, self.edit.max_score
        return [s for s in spans if (low is None or s.score >= low) and (high is None or s.score < high)]

    def _replacement(self, values: Values) -> str:
        found = self.replaced_by(*values) if self.replaced_by else self.edit.by
        if not isinstance(found, str):
            raise DataError(f"expected a text at {self.edit.by!r}, to replace spans by, got {found!r}")
        return found


def _span(value: object) -> Span:
    start, end, score = value[:3]  # type: ignore[index]  # of another program's making: what it is shows here
    if not (type(start) is int and type(end) is int and type(score) in (int, float)):
        raise TypeError
    return Span(start, end, score)
