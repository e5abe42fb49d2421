"""The rules of a stream, in order: what they decide of a document, and how they change those that stay."""

import contextlib
import functools
import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from toolkit.data.documents import Document
from toolkit.errors import DataError
from toolkit.rules import checker, compiling, expression_tree
from toolkit.rules.kinds.repeat import Repeats, Takes, combined
from toolkit.rules.rule import CompiledRule, Compiler, Function, Role, Rule, Values, refused
from toolkit.text import editing
from toolkit.text.editing import Edit, Edited

T = TypeVar("T")

Outcome = int | tuple[int, ...]
"""The decision on a document: index of the rule that drops it, or indexes of those that annotate it; it stays."""


class RuleSet:
    """Rules, checked and compiled.

    Args:
        rules: Rules, in order.
        names: Names for expressions.
        arguments: Arguments of the functions: the variables that the names' code refers to, the document last.
        label: Expression of a document's label, if that is known before it is encoded.
        folder: Folder that of the label which the format gives, if that is known beforehand and is another.
        translates: True if patterns of other languages may be run as expressions of ours where they mean the same.

    Attributes:
        rules: Rules as written.
        compiled: Compiled rules.
        label: Function of the label of a document, None if that is not known beforehand.
        folder: Function of the label of the format, None if that is not known beforehand.
        needs: Values to read for all these.
        facts: Expressions that are not null in a document that stays.
        blocklists: Watches by index of their rules; they note the entries that documents matched.
        edits: True if a rule changes text.
        fields: Fields of the metadata that `set` rules give.
        applies: True if there is a rule for `applied`.
        budget: Rule that takes some of the documents and their copies, if there is one.
        repeats: True if documents are written more or less often than once (see `copies`).
        compares_nulls: True if there is a rule for `nulls`.
        own_fields: Own fields of documents that decide; None if more is read of them than id, source and chars.
        occurrence: Recorder of the fields and texts that documents have.
        may_differ: True if there are documents of which Dolma may decide otherwise (see `differs`).

    Raises:
        ConfigError: naming file and line of a rule that cannot be used.
    """

    def __init__(
        self,
        rules: Iterable[Rule],
        names: Mapping[str, checker.Name],
        arguments: tuple[str, ...],
        label: str | None = None,
        folder: str | None = None,
        *,
        translates: bool = True,
    ) -> None:
        compiler = Compiler(names, arguments, translates=translates)
        self.rules = list(rules)
        self.label = compiler.label(label) if label else None
        self.folder = compiler.folder(folder) if folder and folder != label else self.label
        self.compiled, copies, blamed = combined(_compiled(self.rules, compiler), compiler)
        self.repeats = bool(copies)
        self._copies = compiler.function(copies or "1")
        self._blamed = {i: compiler.function(code) for i, code in blamed.items()}
        self.needs, self.facts = compiler.needs, compiler.facts
        self._sets = {i: item for i, item in enumerate(self.compiled) if item.rule.ROLE is Role.SETS}
        self._routes = {i: item for i, item in enumerate(self.compiled) if item.rule.ROLE is Role.ROUTES}
        self._deciding = {i: item for i, item in enumerate(self.compiled) if item.rule.decides}
        self.blocklists = {i: watch for i, item in self._deciding.items() if (watch := item.watches())}
        self.edits = any(rule.edits for rule in self.rules)
        self.fields = {item.rule.field for item in self._sets.values()}
        self._repeating = {i: item for i, item in enumerate(self.compiled) if isinstance(item, Repeats)}
        self.budget = next((item for item in self.compiled if isinstance(item, Takes)), None)
        self.applies = bool(self._sets or self._routes)
        chain = [(item.condition, blamed.get(i, str(i)), item.rule.drops) for i, item in self._deciding.items()]
        self._chain = compiling.compile_chain(chain, arguments, compiler.constants)
        noting = {i: compiler.noting(rule) for i, rule in enumerate(self.rules)}
        self._noting = {i: function for i, function in noting.items() if function}
        self.compares_nulls = bool(self._noting)
        places = {i: compiler.places.get(id(rule), ()) for i, rule in enumerate(self.rules)}
        self.occurrence = expression_tree.Occurrence(places, compiler.function)
        codes = [compiler.labelled.code] if compiler.labelled else []
        codes += [code for condition, number, _ in chain for code in (condition, number)]
        codes += [place.code for of_rule in places.values() for place in of_rule if not place.compares]
        self.own_fields = compiling.fields_asked([*codes, *compiler.noting_codes], arguments[-1])
        self._function, self._other_conditions = compiler.function, functools.cache(self._compile_others)
        doubts = " or ".join(dict.fromkeys(code for rule in self.rules for code in rule.doubts(compiler)))
        self.may_differ = bool(doubts)
        self._doubtful = compiler.function(doubts) if doubts else None
        self._arguments = (names, arguments, label, folder, translates)

    def start_over(self) -> None:
        """Forget the matched entries of blocklists."""
        for watch in self.blocklists.values():
            watch.start_over()

    # --- deciding -----------------------------------------------------------------------------------------------------

    def decide(self, *values: Any) -> Outcome:
        """Return the decision on a document.

        Args:
            *values: Values of the document, one for each argument.

        Raises:
            DataError: if a rule meets a value that it cannot use (a division by zero, a missing element).
        """
        for watch in self.blocklists.values():  # an entry has been seen also where an earlier rule drops the document
            watch.look(values[-1])
        try:
            return self._chain(*values)
        except Exception:
            return self._decide_slowly(values)

    def _decide_slowly(self, values: Values) -> Outcome:
        """Decide rule by rule; name a failing one."""
        annotated: list[int] = []
        for i, compiled_rule in self._deciding.items():
            if compiled_rule.holds(values):
                if compiled_rule.rule.drops:
                    return int(self._blamed[i](*values)) if i in self._blamed else i
                annotated.append(i)
        return tuple(annotated)

    def differs(self, outcome: Outcome, *values: Any) -> bool:
        """Return True if Dolma decides otherwise about a document. To it 1 and 1.0 are two numbers.

        Args:
            outcome: Decision on the document.
            *values: Values as of `decide`; of the document, fields in JSONPath are enough.
        """
        if self._doubtful is None:
            return False
        with contextlib.suppress(Exception):  # what is wrong with the document is told elsewhere
            if self._doubtful(*values):
                return isinstance(self._strict.decide(*values), int) != isinstance(outcome, int)
        return False

    @functools.cached_property
    def _strict(self) -> "RuleSet":
        names, arguments, label, folder, translates = self._arguments
        rules = [rule.strictly() for rule in self.rules]
        return RuleSet(rules, names, arguments, label, folder, translates=translates)

    def nulls(self, outcome: Outcome, *values: Any) -> list[int]:
        """Return the indexes of rules with compared nulls. The document has come to them.

        Args:
            outcome: Decision on the document.
            *values: Values as of `decide`.
        """
        results = []
        for i, noting in self._noting.items():
            if isinstance(outcome, int) and (i > outcome or not self.rules[i].decides):
                continue
            nulls: list[bool] = []
            self.compiled[i].run(noting, (*values, nulls))
            if nulls:
                results.append(i)
        return results

    def outcomes(self, columns: Sequence[Sequence[Any]]) -> list[Outcome]:
        """Return the decisions on many documents.

        Args:
            columns: Values of each argument.

        Raises:
            DataError: its line is that of the document among these, from 1.
        """
        if not self.blocklists:
            with contextlib.suppress(Exception):
                return list(map(self._chain, *columns))
        return _of_each(self.decide, columns)

    def labels(self, columns: Sequence[Sequence[Any]]) -> Sequence[str | None]:
        """Return the labels of documents, null for none. Arguments are those of `outcomes`."""
        return _of_each(self.label, columns) if self.label else [None] * len(columns[-1])

    def only_drop(self, dropped: int, *values: Any) -> bool:
        """Return True if no later rule would drop the document too.

        A rule behind it that cannot be evaluated, because it counts on what the rule has ruled out, would not.
        """
        try:
            return not self._other_conditions(dropped)(*values)
        except Exception:
            return not any(self._drops(rule, values) for rule in self._dropping_after(dropped))

    @staticmethod
    def _drops(rule: CompiledRule, values: Values) -> bool:
        with contextlib.suppress(DataError):
            return rule.holds(values)
        return False

    def _compile_others(self, dropped: int) -> Function:
        conditions = [f"({rule.condition})" for rule in self._dropping_after(dropped)]
        return self._function(" or ".join(conditions) or "False")

    def _dropping_after(self, dropped: int) -> list[CompiledRule]:
        repeats = dropped in self._repeating  # one draw is made for all that is about copies
        rules = [rule for rule in self.compiled[dropped + 1 :] if rule.rule.drops]
        return [rule for rule in rules if not (repeats and isinstance(rule, Repeats | Takes))]

    def annotations(self, outcome: Outcome) -> list[str]:
        """Return the annotations of a document, each once, in order."""
        return list(dict.fromkeys(self.rules[i].annotation for i in rules_in(outcome)))

    # --- repeating ----------------------------------------------------------------------------------------------------

    def copies(self, *values: Any) -> int:
        """Return the number of copies of a kept document."""
        return int(self._copies(*values)) if self.repeats else 1

    def repeated(self, *values: Any) -> list[int]:
        """Return the indexes of rules with other amounts than one."""
        return [i for i, repeats in self._repeating.items() if repeats.times(values) != 1]

    # --- changing -----------------------------------------------------------------------------------------------------

    def applied(self, *values: Any) -> list[int]:
        """Return the indexes of `set` rules, and of the first route."""
        results = [i for i, compiled_rule in self._sets.items() if compiled_rule.holds(values)]
        routes = (i for i, route in self._routes.items() if route.holds(values))
        return [*results, *itertools.islice(routes, 1)]

    def route(self, applied: Iterable[int], label: str, *values: Any) -> str:
        """Return the output folder of a document with this label. It may be a piece of a document."""
        for i in applied:
            if i in self._routes:
                return self._routes[i].folder(label, values)
        return label

    def set_fields(self, applied: Iterable[int], *values: Any) -> dict[str, Any]:
        """Return the fields of the metadata from rules. They are JSON texts, nested where names are dotted."""
        fields: dict[str, Any] = {}
        for i in applied:
            if i in self._sets:
                self._sets[i].set(fields, values)
        return fields

    def edit(
        self,
        document: Document,
        *values: Any,
        overlaps: editing.Overlaps = "union",
        past_end: editing.PastEnd = "refuse",
    ) -> tuple[Edited | None, list[list[Edit]], int]:
        """Return the edited text, the edits of each rule, and clamped ones. The text is None if there are no edits.

        Raises:
            DataError: if a span is out of range, or a list has not one element for each line.
        """
        by_rule = [compiled_rule.edits(document, values, past_end) for compiled_rule in self.compiled]
        if clamped := sum(edit.clamped for edits in by_rule for edit in edits):
            by_rule = [[edit for edit in edits if edit.start < edit.end] for edits in by_rule]
        everything = [edit for edits in by_rule for edit in edits]
        return (editing.apply(document.text, everything, overlaps) if everything else None), by_rule, clamped


def rules_in(outcome: Outcome) -> tuple[int, ...]:
    """Return the indexes of the rules of an outcome."""
    return (outcome,) if isinstance(outcome, int) else outcome


def _of_each(function: Callable[..., T], columns: Sequence[Sequence[Any]]) -> list[T]:
    """Return the results of a function for each document. The line of its error is that of the document, from 1."""
    with contextlib.suppress(DataError):
        return list(map(function, *columns))
    result: list[T] = []
    for number, values in enumerate(zip(*columns, strict=True), 1):
        try:
            result.append(function(*values))
        except DataError as error:
            raise DataError(error.message, line=number, id=values[-1].id).about(error.keys) from None
    return result


def _compiled(rules: Sequence[Rule], compiler: Compiler) -> list[CompiledRule]:
    """Return the rules, compiled; those that change documents know what all decisions leave."""
    results = {i: rule.compile(compiler) for i, rule in enumerate(rules) if rule.decides}
    results |= {i: rule.compile(compiler) for i, rule in enumerate(rules) if not rule.decides}
    fields = sorted({rule.field for rule in rules if rule.field})
    for rule in rules:
        for outer in fields:
            if rule.field.startswith(f"{outer}."):
                got = f"{rule.field} inside {outer}, which a rule sets too"
                raise refused(rule, f"expected fields that do not contain each other, got {got}")
    return [results[i] for i in range(len(rules))]
