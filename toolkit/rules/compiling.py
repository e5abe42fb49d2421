"""Rules are checked against the types of attributes and compiled; what they need of documents is noted on the way."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

from toolkit.data import schema
from toolkit.data.schema import ANY, BOOL, INT, SPANS, STR, Type
from toolkit.errors import ConfigError
from toolkit.rules import filters
from toolkit.rules.blocklist import Watch
from toolkit.rules.compiled import (
    Blocks,
    Changes,
    Compiled,
    CutsLines,
    EditsSpans,
    Function,
    Routes,
    Sets,
    falls_out,
    label_function,
)
from toolkit.rules.expression_tree import ExpressionError
from toolkit.rules.expressions import Expression, Facts, Name, check, check_condition, compile_function, paths_in
from toolkit.rules.rule import Rule, parameter_type

WHOLE = ""

LABEL = "label"
"""What the document's label is called in expressions."""

_LINE = Type("object", fields=(("number", INT), ("chars", INT)))

_Names = Mapping[str, Name]
_Check = Callable[[str, _Names, Facts], Expression]


@dataclass
class Needs:
    """What must be read for rules and labels.

    Attributes:
        keys: of attributes.
        fields: of their values; `WHOLE` where the value itself is used.
        to_set: the keys that the expressions of `set` rules use.
        source: whether that of documents is asked for.
        documents: whether more of documents than attributes and row indexes tell.
        joined: whether whole documents with their attributes.
        by_library: the patterns and selectors that are run by the library of their language.
    """

    keys: set[str] = field(default_factory=set)
    fields: dict[str, set[str]] = field(default_factory=dict)
    to_set: set[str] = field(default_factory=set)
    source: bool = False
    documents: bool = False
    joined: bool = False
    by_library: list[str] = field(default_factory=list)


class Compiler:
    """Compiles labels, then rules; arguments as of `RuleSet`.

    Attributes:
        needs: of what has been compiled.
        known: what is known not to be null of a document that stays.
        constants: the variables in code that are no arguments.
    """

    def __init__(self, names: _Names, arguments: tuple[str, ...], *, translates: bool) -> None:
        self.needs = Needs()
        self.known: Facts = frozenset()
        self._attributes, self._names = names, dict(names)
        self._arguments, self._translates = arguments, translates
        self.constants: dict[str, Any] = {}
        self._label: Expression | None = None
        self._label_names: set[str] = set()

    # --- labels -------------------------------------------------------------------------------------------------------

    def label(self, text: str) -> Callable[..., str | None]:
        """The function of the label, which rules may use."""
        self._label = self._checked_label(text)
        self._names.setdefault(LABEL, Name(self._label.type, self._label.code))  # an attribute may be called so
        return label_function(text, self.function(self._label.code))

    def folder(self, text: str) -> Callable[..., str | None]:
        """The function of another label, that of the format."""
        return label_function(text, self.function(self._checked_label(text).code))

    def _checked_label(self, text: str) -> Expression:
        try:
            found = check(text, self._names)
        except ExpressionError as error:
            raise ConfigError(f"label: {error}") from None
        if found.type not in (STR, schema.nullable(STR), ANY):
            raise ConfigError(f"label: expected an expression that gives a text, got a value of type {found.type}")
        self._label_names.update(found.names)
        self._note(found)
        return found

    def _code_of_label(self, rule: Rule, what: str = "") -> str:
        """For what depends on labels, which must be able to differ."""
        if not (self._label and self._label.names):
            expected = "expected labels that documents have by an attribute, this output has none"
            raise _refused(rule, f"{what}{expected}; give `label: EXPRESSION` in `mix:`")
        return self._label.code

    # --- rules --------------------------------------------------------------------------------------------------------

    def rules(self, rules: Sequence[Rule]) -> list[Compiled]:
        """The rules, compiled; those that change documents know what all decisions leave."""
        found: dict[int, Compiled] = {i: self._decides(rule) for i, rule in enumerate(rules) if rule.decides}
        found |= {i: self._changes(rule) for i, rule in enumerate(rules) if not rule.decides}
        _check_fields([rule for rule in rules if rule.kind == "set"])
        return [found[i] for i in range(len(rules))]

    def function(self, code: str, *more: str) -> Function:
        """Code as a function of the arguments, and of more."""
        return compile_function(code, (*self._arguments, *more), self.constants)

    def _decides(self, rule: Rule) -> Compiled:
        names = self._names_for(rule)
        watch = Watch(rule) if rule.kind == "blocklist" else None
        if watch:
            code = self._called(watch)
            self.needs.source = True
            self.needs.documents |= watch.list.needs_url
        elif rule.kind == "sample":
            code = self._sampled(rule)
        elif rule.syntax:
            code = " or ".join(self._matched(rule, names, pattern) for pattern in rule.patterns)
            code = f"{'not ' if rule.kind == 'keep' else ''}({code})"
        else:
            text = f"not ({rule.expression})" if rule.kind == "keep" else rule.expression
            found = self._checked(rule, names, f"({rule.when}) and ({text})" if rule.when else text)
            if rule.drops:
                self._learn(found.if_false)
            return Compiled(rule, names, self.function, _truth(found))
        if rule.when:
            code = f"{_truth(self._checked(rule, names, rule.when))} and {code}"
        return Blocks(rule, names, self.function, code, watch) if watch else Compiled(rule, names, self.function, code)

    def _learn(self, known: Facts) -> None:
        if self._label and LABEL not in self._attributes and known & {LABEL, self._label.text}:
            known = known | {LABEL, self._label.text}
        self.known = known

    def _sampled(self, rule: Rule) -> str:
        label = self._code_of_label(rule) if rule.shares else "None"
        self.needs.source = True
        limits = {label: share * 2**64 for label, share in rule.shares.items()}
        return self._called(partial(falls_out, rule.seed, limits, (rule.share or 0.0) * 2**64), label)

    def _matched(self, rule: Rule, names: _Names, pattern: str) -> str:
        """The code of whether a document matches a pattern: as an expression of ours if that is the same."""
        assert rule.syntax
        try:
            own = self._translates and not rule.strict
            text = filters.translate(pattern, rule.syntax, self._known_keys) if own else None
            if text is not None:
                return f"({self._checked(rule, names, text).code})"
            found = filters.matcher(pattern, rule.syntax, strict=rule.strict, exclude=rule.kind == "drop")
        except ConfigError as error:
            raise _refused(rule, error) from None
        self._by_library(pattern)
        return self._called(_of_joined(found))

    @cached_property
    def _known_keys(self) -> dict[str, filters.KeyInfo]:
        """The attributes, as patterns of other languages know them."""
        return {
            name: filters.KeyInfo(each.present or each.type, each.present is not None)
            for name, each in self._attributes.items()
        }

    def doubts(self, rules: Sequence[Rule]) -> str:
        """Return the code of whether Dolma might decide otherwise of a document, as 1 and 1.0 are two numbers there.

        Empty if it never does; whether it does is told by the document with its attributes.
        """
        codes: list[str] = []
        for rule in (rule for rule in rules if rule.may_differ):
            for pattern in rule.patterns:
                for found in filters.doubts(pattern, self._known_keys if self._translates else {}):
                    self.needs.joined = True
                    if isinstance(found, str):
                        codes.append(f"({self._checked(rule, self._names, found).code})")
                    else:
                        codes.append(self._called(_of_joined(found)))
        return " or ".join(dict.fromkeys(codes))

    def _changes(self, rule: Rule) -> Changes:
        names = self._names_for(rule)
        condition = _truth(self._checked(rule, names, rule.when)) if rule.when else ""
        common = (rule, names, self.function, condition)
        if rule.kind == "cut lines":
            return CutsLines(*common, *self._lines(rule, names))
        if rule.syntax:
            return EditsSpans(*common, *self._selected(rule))
        if rule.kind == "route":  # the label that the format gives, which may be another for each piece of a document
            given = names if LABEL in self._attributes else {**names, LABEL: Name(STR, "given_label")}
            found = self._checked(rule, given, rule.expression, check)
            _expect(rule, found, STR, "a text, the folder")
            return Routes(*common, self.function(found.code, "given_label"))
        found = self._checked(rule, names, rule.expression, check)
        if rule.kind == "set":
            self.needs.to_set |= {*found.names, *(self._label_names if LABEL in found.names else ())}
            return Sets(*common, self.function(found.code))
        _expect(rule, found, SPANS, "spans, a list of [start, end, score]")
        return EditsSpans(*common, self.function(found.code))

    def _lines(self, rule: Rule, names: _Names) -> tuple[Function, Function]:
        """Whether a line goes; and the lists, of which expressions see the line's element."""
        lists = {name: found for name, found in self._names.items() if schema.is_per_line(found.type)}
        elements = {name: Name(found.type.item or ANY, f"{found.code}[i]") for name, found in lists.items()}
        found = self._checked(rule, {**names, **elements, "line": Name(_LINE, "line")}, rule.expression)
        used = "".join(f"{lists[name].code}, " for name in found.names if name in lists)
        return self.function(found.code, "i", "line"), self.function(f"({used})")

    def _selected(self, rule: Rule) -> tuple[Function, Function | None]:
        """Spans; and their replacement, where the document tells it."""
        assert rule.syntax
        by = None
        try:
            if rule.by.startswith("$"):
                by = _of_joined(filters.selection(rule.by[1:], "jq"))
                self.needs.joined = True
            key = filters.selected_key(rule.expression, rule.syntax)
            known = self._attributes.get(key) if key and self._translates else None
            if key and known and known.type == SPANS:
                self.needs.keys.add(key)
                self.needs.fields.setdefault(key, set()).add(WHOLE)
                return self.function(known.code), by
            spans = _of_joined(filters.selection(rule.expression, rule.syntax))
        except ConfigError as error:
            raise _refused(rule, error) from None
        self._by_library(rule.expression)
        return spans, by

    # --- checking and noting ------------------------------------------------------------------------------------------

    def _names_for(self, rule: Rule) -> dict[str, Name]:
        """What its expressions may use, with its parameters."""
        return self._names | {name: self._parameter(rule, name, values) for name, values in rule.parameters.items()}

    def _parameter(self, rule: Rule, name: str, values: Mapping[str, Any]) -> Name:
        if name in self._names:
            raise _refused(rule, f"the parameter {name!r} is called as an attribute is")
        if "" not in values:
            raise _refused(rule, f"expected a value of {name!r} for all other labels: `parameters: {{{name}: …}}`")
        type_ = parameter_type(*values.values())
        if type_ == ANY:
            shown = {label or "all others": value for label, value in values.items()}
            raise ConfigError(f"{rule.place}: parameter {name!r}: expected values of one type, got {shown}")
        code = repr(values[""])
        if len(values) > 1:
            label = self._code_of_label(rule, f"parameter {name!r}: ")
            code = f"get({self._constant({k: v for k, v in values.items() if k})}, {label}, {code})"
        return Name(type_, code)

    def _checked(self, rule: Rule, names: _Names, text: str, how: _Check = check_condition) -> Expression:
        try:
            found = how(text, names, self.known)
        except ExpressionError as error:
            raise _refused(rule, error) from None
        self._note(found)
        return found

    def _note(self, found: Expression) -> None:
        self.needs.keys.update(found.names)
        for path in paths_in(found.text, self._attributes):
            name, _, fields = path.partition(".")
            self.needs.fields.setdefault(name, set()).add(fields.partition(".")[0] or WHOLE)
        if "document" in found.names:
            paths = paths_in(found.text, self._names)
            self.needs.source |= "document.source" in paths
            self.needs.documents |= any(path == "document" or path.startswith("document.metadata") for path in paths)

    def _by_library(self, pattern: str) -> None:
        self.needs.joined = self.needs.documents = True
        self.needs.by_library.append(pattern)

    def _called(self, function: Function, *more: str) -> str:
        """The code that calls a function with the document."""
        return f"{self._constant(function)}({', '.join((self._arguments[-1], *more))})"

    def _constant(self, value: Any) -> str:
        name = f"constant_{len(self.constants)}"
        self.constants[name] = value
        return name


def _refused(rule: Rule, why: object) -> ConfigError:
    return ConfigError(f"{rule.place}: rule {rule.name!r}: {why}")


def _check_fields(sets: Sequence[Rule]) -> None:
    """Raises ConfigError if a `set` rule gives a field that another one gives a field inside of."""
    for rule in sets:
        for outer in sorted({each.field for each in sets}):
            if rule.field.startswith(f"{outer}."):
                got = f"{rule.field} inside {outer}, which a rule sets too"
                raise _refused(rule, f"expected fields beside each other, got {got}")


def _expect(rule: Rule, found: Expression, type_: Type, what: str) -> None:
    if found.type not in (type_, ANY):
        null = found.type == schema.nullable(type_)
        got = "a value that may be null; test it first" if null else f"a value of type {found.type}"
        raise _refused(rule, f"expected {what}, got {got}")


def _truth(found: Expression) -> str:
    """The code of a condition."""
    return found.code if found.type == BOOL else f"truth({found.code})"


def _of_joined(function: Callable[[dict[str, Any]], Any]) -> Function:
    """A function of the whole document with its attributes, as one of the values of a document."""
    return lambda *values: function(values[-1].joined)
