"""``{cut: lines, when: E}`` removes the lines for which E is true; a list by line stands for the line's element."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated

from toolkit.config.settings import ConfigNode, Description
from toolkit.data import schema
from toolkit.data.documents import Document
from toolkit.data.schema import ANY, INT, Type
from toolkit.rules.checker import Name
from toolkit.rules.rule import CompiledRule, Compiler, Form, Function, Rule, Values
from toolkit.text import editing
from toolkit.text.editing import Edit

_LINE = Type("object", fields=(("number", INT), ("chars", INT)))


class CutLinesForm(Form):
    """The entry in YAML."""

    cut: Annotated[str, Description(description="the word `lines`")]
    when: Annotated[str, Description(description="an expression: which lines to remove")]

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
        lists = {name: found for name, found in compiler.names.items() if schema.is_per_line(found.type)}
        elements = {name: Name(found.type.item or ANY, f"{found.code}[i]") for name, found in lists.items()}
        found = compiler.checked(self, {**names, **elements, "line": Name(_LINE, "line")}, self.expression)
        used = "".join(f"{lists[name].code}, " for name in found.names if name in lists)
        goes, of_lines = compiler.function(found.code, "i", "line"), compiler.function(f"({used})")
        return CutsLines(self, names, compiler.function, condition, goes, of_lines)


@dataclass(frozen=True, eq=False)
class CutsLines(CompiledRule):
    """Cuts the lines for which `goes` is true; `lists` gives the lists that have an element for each line."""

    goes: Function
    lists: Function

    def edits(self, document: Document, values: Values, past_end: editing.PastEnd) -> list[Edit]:
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
        """Return the indexes of the lines to cut."""
        found = []
        for i, line in enumerate(lines):
            holds = self.run(self.goes, (*values, i, line))
            if holds is not True and holds is not False:
                raise self.fault(f"expected true or false, got {holds!r}")
            if holds:
                found.append(i)
        return found


@dataclass(frozen=True, slots=True)
class _Line:
    """The attributes of ``line`` in expressions; lines are numbered from 1."""

    number: int
    chars: int


class _UnknownLine:
    def __getattr__(self, name: str) -> int:
        raise ValueError(f"line.{name} needs the text, which a dry run does not read")
