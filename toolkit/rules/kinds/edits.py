"""Rules for edits: ``replace``, ``cut``, and ``cut: lines``."""

from collections.abc import Iterable, Sequence
from typing import ClassVar, Literal

import msgspec

from toolkit.config.settings import ConfigNode
from toolkit.data import schema
from toolkit.data.documents import Document, Span
from toolkit.data.schema import ANY, INT, SPANS, Type
from toolkit.errors import ConfigError, DataError
from toolkit.rules import checker, expressions, filters
from toolkit.rules.filters import Syntax
from toolkit.rules.rule import CompiledRule, Compiler, Foreign, Form, Function, Rule, Values, of_joined, refused
from toolkit.rules.text_edits import TextEdit, edited
from toolkit.text import editing
from toolkit.text.editing import Edit


class SpansForm(Form, kw_only=True):
    """The common options of `replace` and `cut` in YAML.

    Attributes:
        min_score: spans with a lower score stay
        max_score: spans with this score, or a higher one, stay
        syntax: the language of the selector
    """

    min_score: int | float | None = None
    max_score: int | float | None = None
    syntax: Syntax | None = None

    def rule(self, kind: type["Replace"], spans: str, by: str) -> "Replace":
        """Return the rule of an expression of spans, or a selector."""
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
    """``{replace: emails, by: "|||EMAIL|||"}`` replaces spans by a text, in which {} stands for the original text.

    Attributes:
        replace: an expression that gives spans; with `syntax`, a selector
        by: the text that replaces them: `{}` is the original text, `{tag}` the name of the rule; with `syntax`, `$` and
            a jq filter give a text of the document
    """

    replace: str
    by: str

    KEY = "replace"

    def rules(self, place: ConfigNode, base: str) -> Sequence[Rule]:
        by = self.by
        if not self.syntax:
            with place.errors_at("by", of=ValueError):
                by = editing.check_replacement(by).replace(editing.TAG, self.name or self.replace)
        return [self.rule(Replace, self.replace, by)]


class Replace(Rule):
    """The rule.

    Attributes:
        syntax: Syntax of the expression, if it selects the spans in another language.
        by: Text in the place of spans.
        min_score, max_score: Bounds of the scores of edited spans, the first included, the second not.
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
            expression = compiler.value(self, names, self.expression, SPANS, "spans, a list of [start, end, score]")
            spans, by = compiler.function(expression.code), None
        return EditsSpans(self, names, compiler.function, condition, self, spans, by)

    def _selected(self, compiler: Compiler, syntax: Syntax) -> tuple[Function, Function | None]:
        """Return functions of spans and replacements. The second is None unless documents have the replacement."""
        by = None
        try:
            if self.by.startswith("$"):
                by = of_joined(filters.selection(self.by[1:], "jq"))
                compiler.needs.joined = True
            key = filters.selected_key(self.expression, syntax)
            attribute = compiler.attributes.get(key) if key and compiler.translates else None
            if key and attribute and attribute.type == SPANS:
                compiler.needs.keys.add(key)
                compiler.needs.fields.setdefault(key, set()).add(expressions.WHOLE)
                return compiler.function(attribute.code), by
            spans = of_joined(filters.selection(self.expression, syntax))
        except ConfigError as error:
            raise refused(self, error) from None
        compiler.needs.run_by_library(self.expression)
        return spans, by


class EditsSpans(CompiledRule, frozen=True):
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
        result = self.run(self.spans, values)
        try:
            spans = [span if isinstance(span, Span) else _span(span) for span in result or ()]
        except (TypeError, ValueError):
            raise self.fault(f"expected spans, a list of [start, end, score], got {result!r}") from None
        low, high = self.edit.min_score, self.edit.max_score
        return [s for s in spans if (low is None or s.score >= low) and (high is None or s.score < high)]

    def _replacement(self, values: Values) -> str:
        result = self.replaced_by(*values) if self.replaced_by else self.edit.by
        if not isinstance(result, str):
            raise DataError(f"expected a text at {self.edit.by!r}, to replace spans by, got {result!r}")
        return result


def _span(value: object) -> Span:
    start, end, score = value[:3]  # type: ignore[index]  # of another program's making: what it is shows here
    if not (type(start) is int and type(end) is int and type(score) in (int, float)):
        raise TypeError
    return Span(start, end, score)


class EditText(Rule):
    """The rule of ``text: EDIT`` in a mix. Its edits are in order; their spans are expressions."""

    edited: list[TextEdit]

    FORM = None
    SIZE_NEEDS_TEXT = True

    @property
    def spans_named(self) -> list[str]:
        return [edit.spans for edit in self.edited if edit.spans]

    def compile(self, compiler: Compiler) -> CompiledRule:
        names = compiler.names_for(self)
        texts = [edit.spans for edit in self.edited if edit.spans]
        title = "spans, a list of [start, end, score]"
        results = [compiler.function(compiler.value(self, names, text, SPANS, title).code) for text in texts]
        return EditsText(self, names, compiler.function, compiler.condition(self, names), results)


class EditsText(CompiledRule, frozen=True):
    """Edits a text; `spans` gives those of each edit that names some."""

    spans: Sequence[Function]

    def edits(self, document: Document, values: Values, past_end: editing.PastEnd) -> list[Edit]:
        assert isinstance(self.rule, EditText)
        try:
            return edited(document, self.rule.edited, [self.run(span, values) for span in self.spans], past_end).edits
        except DataError as error:
            raise self.fault(error.message) from None

    def preview(self, values: Values) -> tuple[int, int | None]:
        return sum(len(self.run(span, values)) for span in self.spans), None

    def verdict(self, values: Values) -> str:
        return "edits the text"


class CutForm(SpansForm):
    """``cut: repeated`` removes the text of spans.

    Attributes:
        cut: an expression that gives spans; with `syntax`, a selector
    """

    cut: str

    KEY = "cut"

    def rules(self, place: ConfigNode, base: str) -> Sequence[Rule]:
        return [self.rule(Cut, self.cut, "")]


class Cut(Replace):
    """The rule: as `Replace`, by nothing."""

    FORM: ClassVar[type[Form]] = CutForm


_LINE = Type("object", fields=(("number", INT), ("chars", INT)))


class CutLinesForm(Form):
    """``{cut: lines, when: E}`` removes the lines for which E is true; a list by line stands for the line's element.

    Attributes:
        cut: the word `lines`
        when: an expression: which lines to remove
    """

    cut: str
    when: str

    KEY = "cut"
    WORD = "lines"

    def rules(self, place: ConfigNode, base: str) -> Sequence[Rule]:
        return [CutLines(name=self.name or f"cut lines: {self.when}", expression=self.when)]


class CutLines(Rule):
    """The rule: `expression` is true for the lines that go, `when` for the documents that it looks at."""

    FORM = CutLinesForm
    SIZE_NEEDS_TEXT = True

    def compile(self, compiler: Compiler) -> CompiledRule:
        names = compiler.names_for(self)
        condition = compiler.condition(self, names)
        lists = {name: result for name, result in compiler.names.items() if schema.is_per_line(result.type)}
        elements = {name: checker.Name(result.type.item or ANY, f"{result.code}[i]") for name, result in lists.items()}
        expression = compiler.checked(self, {**names, **elements, "line": checker.Name(_LINE, "line")}, self.expression)
        used = "".join(f"{lists[name].code}, " for name in expression.names if name in lists)
        goes, of_lines = compiler.function(expression.code, "i", "line"), compiler.function(f"({used})")
        return CutsLines(self, names, compiler.function, condition, goes, of_lines)


class CutsLines(CompiledRule, frozen=True):
    """Cuts lines by a condition. `goes` is the condition; `lists` gives the lists with an element for each line."""

    goes: Function
    lists: Function

    def edits(self, document: Document, values: Values, past_end: editing.PastEnd) -> list[Edit]:
        if not self.holds(values):
            return []
        lines = document.lines
        for result in self.lists(*values):
            if len(result) != len(lines):
                raise self.fault(f"expected a value for each of {len(lines)} lines, got {len(result)}")
        numbered = (_EditLine(number, len(line)) for number, line in enumerate(lines, 1))
        return editing.edits_of_lines(self._cut(numbered, values), document.text)

    def preview(self, values: Values) -> tuple[int, int | None]:
        lists = self.lists(*values)
        lines = [_UnknownLine()] * len(lists[0]) if lists and self.holds(values) else []
        return len(self._cut(lines, values)), None

    def verdict(self, values: Values) -> str:
        return "edits lines, where it holds" if self.holds(values) else "edits nothing"

    def _cut(self, lines: "Iterable[_EditLine | _UnknownLine]", values: Values) -> list[int]:
        """Return the indexes of the lines to cut."""
        results = []
        for i, line in enumerate(lines):
            holds = self.run(self.goes, (*values, i, line))
            if holds is not True and holds is not False:
                raise self.fault(f"expected true or false, got {holds!r}")
            if holds:
                results.append(i)
        return results


class _EditLine(msgspec.Struct, frozen=True):
    """The attributes of ``line`` in expressions; lines are numbered from 1."""

    number: int
    chars: int


class _UnknownLine:
    def __getattr__(self, name: str) -> int:
        raise ValueError(f"line.{name} needs the text, which a dry run does not read")
