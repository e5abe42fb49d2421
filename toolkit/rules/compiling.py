"""Checks rules against the types of attributes and compiles them; notes on the way what they need of documents.

`toolkit.rules.running` makes the code of an expression a function.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from toolkit.data import schema
from toolkit.data.schema import ANY, BOOL, NEVER, STR, Type, infer, list_of, union
from toolkit.errors import ConfigError, quoted
from toolkit.rules import filters
from toolkit.rules.checker import MAYBE, Facts, Name
from toolkit.rules.compiled_rule import CompiledRule, Function, label_function
from toolkit.rules.expression_tree import ExpressionError, UnknownName
from toolkit.rules.expressions import Expression, check, check_condition, paths_in
from toolkit.rules.occurrence import Place
from toolkit.rules.running import compile_function
from toolkit.rules.written import Written

WHOLE = ""
"""Stands among the fields of a value for the value itself."""

LABEL = "label"
"""The name of a document's label in expressions."""

_WITHOUT_DOCUMENTS = ("id", "source", "chars")
"""Fields of documents that attributes and row indexes tell."""

Names = Mapping[str, Name]
_Check = Callable[[str, Names, Facts], Expression]


@dataclass
class Needs:
    """The values that must be read for rules and labels.

    Attributes:
        keys: of attributes.
        fields: of their values; `WHOLE` where the value itself is used.
        to_set: the keys that give fields of the metadata their values.
        source: rules ask for the source of documents.
        documents: rules ask for more of documents than attributes and row indexes tell.
        joined: rules ask for whole documents with their attributes.
        by_library: the patterns and selectors that the library of their language runs.
    """

    keys: set[str] = field(default_factory=set)
    fields: dict[str, set[str]] = field(default_factory=dict)
    to_set: set[str] = field(default_factory=set)
    source: bool = False
    documents: bool = False
    joined: bool = False
    by_library: list[str] = field(default_factory=list)

    def run_by_library(self, text: str) -> None:
        """Note a pattern or selector that the library of its language runs on whole documents."""
        self.joined = self.documents = True
        self.by_library.append(text)


class UnknownAttribute(ConfigError):
    """A rule, or a label, uses a name that nothing has.

    Attributes:
        name: the name.
        message: the error without its hint.
    """

    def __init__(self, name: str, message: str, whole: str) -> None:
        self.name, self.message = name, message
        super().__init__(whole)


class Compiler:
    """Compiles labels, then rules; arguments as of `RuleSet`.

    Attributes:
        needs: of what has been compiled.
        known: what is known not to be null of a document that stays.
        attributes: the names that expressions may use, but that of the label.
        names: these, and that of the label.
        translates: patterns of other languages may run as expressions of ours where they mean the same.
        constants: the variables in code that are no arguments.
        places: of rules, by their identities: what may occur in no document.
    """

    def __init__(self, names: Names, arguments: tuple[str, ...], *, translates: bool) -> None:
        self.needs = Needs()
        self.known: Facts = frozenset()
        self.attributes, self.names = names, dict(names)
        self.translates = translates
        self._arguments = arguments
        self.constants: dict[str, Any] = {}
        self.places: dict[int, list[Place]] = {}
        self._noting: dict[int, str] = {}
        self._if_applied: dict[int, Facts] = {}
        self._label: Expression | None = None
        self._label_names: set[str] = set()

    # --- labels -------------------------------------------------------------------------------------------------------

    def label(self, text: str) -> Callable[..., str | None]:
        """Return the function of the label, which rules may use."""
        self._label = self._checked_label(text)
        self.names.setdefault(LABEL, Name(self._label.type, self._label.code))  # an attribute may be called so
        return label_function(text, self.function(self._label.code))

    def folder(self, text: str) -> Callable[..., str | None]:
        """Return the function of another label, that of the format."""
        return label_function(text, self.function(self._checked_label(text).code))

    def _checked_label(self, text: str) -> Expression:
        try:
            found = check(text, self.names)
        except ExpressionError as error:
            raise _config_error("label", error) from None
        if found.type not in (STR, schema.nullable(STR), ANY, MAYBE):
            raise ConfigError(f"label: expected an expression that gives a text, got a value of type {found.type}")
        self._label_names.update(found.names)
        self._note(found)
        return found

    # --- what kinds of rules use --------------------------------------------------------------------------------------

    def decision(self, rule: Written, text: str) -> CompiledRule:
        """Return a rule that drops or annotates a document where an expression is true.

        Rules behind one that drops know what is not null in the documents that it leaves.
        """
        names = self.names_for(rule)
        found = self.checked(rule, names, f"({rule.when}) and ({text})" if rule.when else text)
        self._note_nulls(rule, found)
        if rule.drops:
            self._learn(found.if_false)
        return CompiledRule(rule, names, self.function, _truth(found))

    def decision_by_code(self, rule: Written, names: Names, code: str) -> CompiledRule:
        """Return a rule that drops or annotates a document where code is true that comes from no expression."""
        if condition := self.condition(rule, names):
            code = f"{condition} and {code}"
        return CompiledRule(rule, names, self.function, code)

    def condition(self, rule: Written, names: Names) -> str:
        """Return the code of a rule's `when`; empty if there is none.

        What it tests is known not to be null in the values of the rule that are asked for behind it.
        """
        if not rule.when:
            return ""
        found = self.checked(rule, names, rule.when)
        self._note_nulls(rule, found)
        self._if_applied[id(rule)] = found.if_true
        return _truth(found)

    def value(self, rule: Written, names: Names, text: str, type_: Type = ANY, wanted: str = "") -> Expression:
        """Return a checked expression that gives a value.

        Args:
            rule: that has it.
            names: that it may use.
            text: the expression.
            type_: of the value.
            wanted: what that is, in words.
        """
        found = self.checked(rule, names, text, check)
        if type_ != ANY and found.type not in (type_, ANY):
            null = found.type == schema.nullable(type_)
            got = "a value that may be null; test it first" if null else f"a value of type {found.type}"
            raise refused(rule, f"expected {wanted}, got {got}")
        return found

    def checked(self, rule: Written, names: Names, text: str, how: _Check = check_condition) -> Expression:
        """Return a checked expression, by default a condition; what it reads is noted."""
        try:
            found = how(text, names, self.known | self._if_applied.get(id(rule), frozenset()))
        except ExpressionError as error:
            raise refused(rule, error) from None
        self._note(found)
        if all(name in rule.parameters or names[name] == self.names.get(name) for name in found.names):
            self.places.setdefault(id(rule), []).extend(found.places)  # not those of a line of a document, or a piece
        return found

    def noting(self, rule: Written) -> Function | None:
        """Return what adds to a list, behind the values of a document, when a rule's condition compares a null."""
        code = self._noting.get(id(rule))
        return self.function(code, "seen") if code else None

    def function(self, code: str, *more: str) -> Function:
        """Return code as a function of the values of a document, and of more."""
        return compile_function(code, (*self._arguments, *more), self.constants)

    def called(self, function: Function, *more: str) -> str:
        """Return the code that calls a function with the document."""
        return f"{self._constant(function)}({', '.join((self._arguments[-1], *more))})"

    def label_code(self, rule: Written, what: str = "") -> str:
        """Return the code of the label, for what depends on labels, which must be able to differ."""
        if not (self._label and self._label.names):
            expected = "expected a label for each document, got an output format without labels"
            raise refused(rule, f"{what}{expected}; give `label: EXPRESSION` in `mix:`")
        return self._label.code

    def note_for_fields(self, found: Expression) -> None:
        """Note that an expression gives a field of the metadata: what it reads must be right after edits, too."""
        self.needs.to_set |= {*found.names, *(self._label_names if LABEL in found.names else ())}

    def names_for(self, rule: Written) -> dict[str, Name]:
        """Return what the expressions of a rule may use, with its parameters."""
        return self.names | {name: self._parameter(rule, name, values) for name, values in rule.parameters.items()}

    @cached_property
    def known_keys(self) -> dict[str, filters.KeyInfo]:
        """Return the attributes as patterns of other languages know them."""
        return {
            name: filters.KeyInfo(each.present or each.type, each.present is not None)
            for name, each in self.attributes.items()
        }

    # --- checking and noting ------------------------------------------------------------------------------------------

    def _learn(self, known: Facts) -> None:
        if self._label and LABEL not in self.attributes and known & {LABEL, self._label.text}:
            known = known | {LABEL, self._label.text}
        self.known = known

    def _parameter(self, rule: Written, name: str, values: Mapping[str, Any]) -> Name:
        if name in self.names:
            raise refused(rule, f"expected another name for the parameter {name!r}, because an attribute has this name")
        if "" not in values:
            raise refused(rule, f"expected a value of {name!r} for all other labels: `parameters: {{{name}: …}}`")
        type_ = parameter_type(*values.values())
        if type_ == ANY:
            shown = {label or "all others": value for label, value in values.items()}
            raise ConfigError(f"{rule.place}: parameter {name!r}: expected values of one type, got {shown}")
        code = repr(values[""])
        if len(values) > 1:
            label = self.label_code(rule, f"parameter {name!r}: ")
            code = f"get({self._constant({k: v for k, v in values.items() if k})}, {label}, {code})"
        return Name(type_, code, literal=True)

    def _note_nulls(self, rule: Written, found: Expression) -> None:
        if found.noting:
            self._noting[id(rule)] = found.noting

    def _note(self, found: Expression) -> None:
        self.needs.keys.update(found.names)
        for path in paths_in(found.text, self.attributes):
            name, _, fields = path.partition(".")
            self.needs.fields.setdefault(name, set()).add(fields.partition(".")[0] or WHOLE)
        if "document" in found.names:
            paths = paths_in(found.text, self.names)
            self.needs.source |= "document.source" in paths
            own = [path.partition(".")[2] for path in paths if path.partition(".")[0] == "document"]
            self.needs.documents |= any(field not in _WITHOUT_DOCUMENTS for field in own)
        self.needs.documents |= any(
            name in self.names and self.names[name].open for name in {*found.names} - {"document"}
        )

    def _constant(self, value: Any) -> str:
        name = f"constant_{len(self.constants)}"
        self.constants[name] = value
        return name


def refused(rule: Written, why: object) -> ConfigError:
    """Return the error of a rule that cannot be used."""
    return _config_error(f"{rule.place}: rule {quoted(rule.name)}", why)


def _config_error(place: str, why: object) -> ConfigError:
    if isinstance(why, UnknownName):
        return UnknownAttribute(why.name, f"{place}: {why.message}", f"{place}: {why}")
    return ConfigError(f"{place}: {why}")


def _truth(found: Expression) -> str:
    """Return the code of a condition."""
    return found.code if found.type == BOOL else f"truth({found.code})"


def parameter_type(*values: Any) -> Type:
    """Return the type of a parameter with these values: of numbers, texts, booleans, or lists of such; else any."""
    found = NEVER
    for value in values:
        if isinstance(value, list):  # three integers are no span here
            item = parameter_type(*value)
            type_ = ANY if item == ANY or item.kind == "list" else list_of(item)
        elif isinstance(value, bool | int | str) or (isinstance(value, float) and math.isfinite(value)):
            type_ = infer(value)
        else:
            return ANY
        found = union(found, type_)
        if ANY in (found, found.item):
            return ANY
    return found
