"""A kind of rule: how one is written and recorded, checked and compiled, and what it then does to a document.

A kind is one file of `toolkit.rules.kinds`; nothing else names it. The file has three classes:

- a `Form`, which is what stands in YAML, with its options and their types, and makes rules of it
- a `Rule`, whose name is that of the file: what is sent to a worker, recorded, and compiled there
- if the kind does more than drop or annotate documents, a `CompiledRule`: what the rule does to a document, and
  how that is explained

A `Compiler` checks rules against the types of attributes, and notes on the way what they need of documents;
`toolkit.rules.compiling` makes the code of an expression a function.
"""

import ast
import contextlib
import enum
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import msgspec
import xxhash

from toolkit.config.settings import ConfigNode, ConfigStruct
from toolkit.data import schema
from toolkit.data.documents import Document
from toolkit.data.schema import ANY, BOOL, NEVER, STR, Type, infer, list_of, union
from toolkit.errors import ConfigError, DataError, quoted
from toolkit.plugins import snake_case
from toolkit.rules import filters
from toolkit.rules.blocklist import Watch
from toolkit.rules.checker import MAYBE, Facts, Name
from toolkit.rules.compiling import compile_function
from toolkit.rules.expression_tree import ExpressionError, Place, UnknownName, parse
from toolkit.rules.expressions import WHOLE, Expression, check, check_condition, everything_known, paths_in
from toolkit.rules.filters import Syntax
from toolkit.storage.json_files import json_digest
from toolkit.text.editing import Edit, PastEnd

if TYPE_CHECKING:
    from toolkit.rules.filters.translation import KeyInfo

MANY_LABELS = 200
"""Labels of a parameter above which its values are recorded by their digest."""

_FIRST = ("kind", "name", "group", "expression", "patterns", "syntax", "strict", "when")
"""The order in which the keys of a record begin. Digests of mixes depend on it."""


class Role(enum.Enum):
    """The effects of rules on a document, with verb and participle."""

    DROPS = ("drops", "dropped")
    REPEATS = ("repeats", "dropped")
    ANNOTATES = ("annotates", "annotated")
    EDITS = ("edits", "changed")
    SETS = ("sets", "gave a field to")
    ROUTES = ("routes", "routed")

    @property
    def verb(self) -> str:
        """Return the word for one rule: ``drops``."""
        return str(self.value[0])

    @property
    def participle(self) -> str:
        """Return the participle before a number of documents: ``dropped``."""
        return str(self.value[1])

    @property
    def drops(self) -> bool:
        """Return True if a rule can drop a document."""
        return self in (Role.DROPS, Role.REPEATS)


class Foreign(NamedTuple):
    """The texts of a rule in another language.

    Attributes:
        syntax: Language.
        texts: Patterns, or selectors of spans.
        match: True for patterns, which match documents.
        keeps: True if the rule drops the documents that no pattern matches.
        strict: True if numbers are compared as Dolma does, 1 unequal to 1.0.
    """

    syntax: Syntax
    texts: Sequence[str]
    match: bool = False
    keeps: bool = False
    strict: bool = False


class Rule(ConfigStruct, kw_only=True, tag_field="kind", tag=lambda name: snake_case(name).replace("_", " ")):
    """A rule as written, with the additions of its groups. Extend it with the other options of the kind in YAML.

    Attributes:
        name: Name in reports, after that of its group and ``: ``.
        group: Innermost group that it is in.
        expression: Expression of the condition or the value that the kind is about, if it has one.
        when: Further condition on documents.
        parameters: Names that the expressions use: value by label, and for all other labels under "".
        place: File and line, for messages.
    """

    name: str
    group: str = ""
    expression: str = ""
    when: str = ""
    parameters: dict[str, dict[str, Any]] = {}
    place: str = ""

    FORM: ClassVar[type["Form"] | None]
    """The form in which the kind is written; None if it stands in no list of rules."""

    ROLE: ClassVar[Role] = Role.EDITS
    """The thing that rules of the kind do. Those that drop or annotate come first, others for documents that stay."""

    DRAWS: ClassVar[bool] = False
    """It drops documents by a draw, whatever they are copies of."""

    KEEPS: ClassVar[bool] = False
    """It drops the documents for which its expression, or patterns, are not true."""

    READS_ALL: ClassVar[bool] = False
    """It may read all attributes and the text."""

    SIZE_NEEDS_TEXT: ClassVar[bool] = False
    """Only the text tells how many characters an edit changes, so a dry run does not know."""

    @property
    def expressions(self) -> list[str]:
        """Return the texts of expressions. The condition `when` is the last."""
        return [text for text in ("" if self.foreign else self.expression, self.when) if text]

    @property
    def spans_named(self) -> list[str]:
        """Return the expressions of edited spans or lines."""
        return [self.expression] if self.expression else []

    @property
    def foreign(self) -> Foreign | None:
        """Return the texts in another language, if there are any."""
        return None

    @property
    def annotation(self) -> str:
        """Return the annotation of an annotating rule."""
        return ""

    @property
    def field(self) -> str:
        """Return the dotted field of a `set` rule."""
        return ""

    def recorded(self) -> dict[str, Any]:
        """Return the rule as it is recorded: without the places where it, and the files that it names, are."""
        fields = {
            key: value
            for key, value in msgspec.to_builtins(self).items()
            if value is not False and value not in (None, "", {}, [])  # zero is something
        }
        fields.pop("place", None)
        parameters = {name: _recorded(values) for name, values in fields.pop("parameters", {}).items()}
        first = {key: fields.pop(key) for key in _FIRST if key in fields}
        return first | fields | ({"parameters": parameters} if parameters else {})

    @property
    def kind(self) -> str:
        """Return the name of the kind in records and tables."""
        return str(self.__struct_config__.tag)

    @property
    def drops(self) -> bool:
        """Return True if it can drop a document."""
        return self.ROLE.drops

    @property
    def edits(self) -> bool:
        """Return True if it changes text."""
        return self.ROLE is Role.EDITS

    @property
    def decides(self) -> bool:
        """Return True if it drops or annotates documents. All others are applied to those that stay."""
        return self.drops or self.ROLE is Role.ANNOTATES

    def compile(self, compiler: "Compiler") -> "CompiledRule":
        """Check the rule against the types of attributes, and compile it.

        Args:
            compiler: Compiler with the attributes; it notes what the rule reads.

        Raises:
            ConfigError: naming the place of a rule that cannot be used.
        """
        raise NotImplementedError(type(self).__name__)

    def strictly(self) -> Self:
        """Return the rule as Dolma understands it: 1 and 1.0 are two numbers to its JSONPath."""
        return self

    def doubts(self, compiler: "Compiler") -> list[str]:
        """Return conditions for a possible difference of `strictly`. One of them holds for each document that it
        decides otherwise.
        """
        return []


def _recorded(values: dict[str, Any]) -> dict[str, Any]:
    """Return the values of a parameter as they are recorded: a table of many languages by its digest."""
    if len(values) <= MANY_LABELS:
        return values
    digest = json_digest(values)
    return {label: values[label] for label in ("",) if label in values} | {"labels": len(values), "xxh3_128": digest}


Function = Callable[..., Any]
Values = Sequence[Any]
"""The values of a document, one for each argument of functions, the document last."""


class CompiledRule(msgspec.Struct, frozen=True, eq=False, dict=True):
    """A rule ready to run. One that drops or annotates is just that; kinds that do more extend it.

    Attributes:
        rule: Rule as written.
        names: Names that its expressions may use, its parameters among them.
        function: Function that compiles code to a function of the values of a document.
        condition: Code of its condition; empty if it always holds.
    """

    rule: Rule
    names: Mapping[str, Name]
    function: Callable[[str], Function]
    condition: str

    # --- what a kind does: `edits` and `preview` if it edits, `set` if it sets fields, `folder` if it routes ----------

    def edits(self, document: Document, values: Values, past_end: PastEnd) -> list[Edit]:
        """Return its edits of a document's text."""
        return []

    def preview(self, values: Values) -> tuple[int, int | None]:
        """Return the number and size of its edits, without the text. The size, in code points, is None if it needs the
        text.
        """
        return 0, None

    def set(self, fields: dict[str, Any], values: Values) -> None:
        """Add its field as a JSON text, nested by the dots."""

    def folder(self, label: str, values: Values) -> str:
        """Return the output folder of a document with this label. It may be a piece of a document."""
        return label

    def takes_label(self) -> bool:
        """Return True if ``label`` is the format's label, not the rules'."""
        return False

    def watches(self) -> Watch | None:
        """Return the watch of a blocklist, if the kind has one."""
        return None

    def verdict(self, values: Values) -> str:
        """Return its verdict about a document, for people."""
        verb = self.rule.ROLE.verb
        if self.holds(values):
            return f"{verb} it"
        return f"does not {verb.removesuffix('s')} it" if self.rule.decides else f"{verb} nothing"

    def watched(self, values: Values) -> dict[str, Any]:
        """Return its values for a document, by text of the expression."""
        results: dict[str, Any] = {}
        for path, function in self._paths.items():
            with contextlib.suppress(KeyError, IndexError, AttributeError, TypeError, ValueError):
                results[path] = function(*values)
        return results

    def part(self, text: str) -> Function | None:
        """Return a part of its expressions as a function. It is None if the part cannot stand alone.

        Whatever the rule tests before it comes to this part is not tested: nulls are errors of the function.
        """
        tested = frozenset(ast.unparse(node) for node in ast.walk(parse(text)) if isinstance(node, ast.expr))
        try:
            return self.function(check(text, self.names, tested).code)
        except ExpressionError:
            return None

    # --- what kinds use -----------------------------------------------------------------------------------------------

    def holds(self, values: Values) -> bool:
        """Return True if the rule does something to a document."""
        return not self.condition or bool(self.run(self._holds, values))

    def rules_out(self, values: Values) -> bool:
        """Return True if the rule drops a document without a draw."""
        return self.rule.drops and not self.rule.DRAWS and self.holds(values)

    def run(self, function: Function, values: Values) -> Any:
        """Return the value of a function. The error of an unusable value names the rule."""
        try:
            return function(*values)
        except Exception as error:
            message = f"rule {quoted(self.rule.name)} ({self.rule.place}) failed: {_describe(error)}"
            raise DataError(message).about(self.keys) from None

    def fault(self, message: str) -> DataError:
        """Return the error of an unusable value."""
        return DataError(f"rule {quoted(self.rule.name)} ({self.rule.place}): {message}").about(self.keys)

    @cached_property
    def keys(self) -> frozenset[str]:
        """Return the names of its attributes."""
        foreign = self.rule.foreign
        keys = {key for text in foreign.texts for key in filters.all_keys(text, foreign.syntax)} if foreign else set()
        paths = (path for text in self.rule.expressions for path in paths_in(text, self.names))
        return frozenset(keys | {path.partition(".")[0] for path in paths})

    @cached_property
    def _holds(self) -> Function:
        return self.function(self.condition)

    @cached_property
    def _paths(self) -> dict[str, Function]:
        compiled: dict[str, Function] = {}
        for path in (path for text in self.rule.expressions for path in paths_in(text, self.names)):
            with contextlib.suppress(ExpressionError):
                compiled[path] = self.function(check(path, self.names, everything_known(path)).code)
        return compiled


def of_joined(function: Callable[[dict[str, Any]], Any]) -> Function:
    """Return a function of the last value's joined attributes."""
    return lambda *values: function(values[-1].joined)


def label_function(text: str, function: Function) -> Callable[..., str | None]:
    """Return the function of a label; its errors tell the label's expression."""

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


LABEL = "label"
"""The name of a document's label in expressions."""

_WITHOUT_DOCUMENTS = ("id", "source", "chars")
"""Fields of documents that attributes and row indexes tell."""

Names = Mapping[str, Name]
_Check = Callable[[str, Names, Facts], Expression]


class Needs(msgspec.Struct):
    """The values to read for rules and labels.

    Attributes:
        keys: Keys of attributes.
        fields: Fields of their values; `WHOLE` where the value itself is used.
        to_set: Keys that give fields of the metadata their values.
        source: True if rules read the source of documents.
        documents: True if rules read more of documents than attributes and row indexes have.
        joined: True if rules read whole documents with their attributes.
        by_library: Patterns and selectors that the library of their language runs.
    """

    keys: set[str] = set()
    fields: dict[str, set[str]] = {}
    to_set: set[str] = set()
    source: bool = False
    documents: bool = False
    joined: bool = False
    by_library: list[str] = []

    def run_by_library(self, text: str) -> None:
        """Note a pattern or selector for the library of its language."""
        self.joined = self.documents = True
        self.by_library.append(text)


class UnknownAttribute(ConfigError):
    """A rule, or a label, with an unknown name.

    Attributes:
        name: Name.
        message: Error without its hint.
    """

    def __init__(self, name: str, message: str, whole: str) -> None:
        self.name, self.message = name, message
        super().__init__(whole)


class Compiler:
    """Compiles labels, then rules; arguments as of `RuleSet`.

    Attributes:
        needs: Needs of the rules compiled so far.
        facts: Expressions that are not null in a document that stays.
        attributes: Names that expressions may use, but that of the label.
        names: Attributes, and the name of the label.
        translates: True if patterns of other languages may run as our expressions where they mean the same.
        constants: Variables in code that are no arguments.
        labelled: Expression of the label, if there is one.
        places: Places of rules, by their identities: what may occur in no document.
    """

    def __init__(self, names: Names, arguments: tuple[str, ...], *, translates: bool) -> None:
        self.needs = Needs()
        self.facts: Facts = frozenset()
        self.attributes, self.names = names, dict(names)
        self.translates = translates
        self._arguments = arguments
        self.constants: dict[str, Any] = {}
        self.places: dict[int, list[Place]] = {}
        self._noting: dict[int, str] = {}
        self._if_applied: dict[int, Facts] = {}
        self.labelled: Expression | None = None
        self._label_names: set[str] = set()

    # --- labels -------------------------------------------------------------------------------------------------------

    def label(self, text: str) -> Callable[..., str | None]:
        """Return the function of the label; rules may use the label."""
        self.labelled = self._checked_label(text)
        self.names.setdefault(LABEL, Name(self.labelled.type, self.labelled.code))  # an attribute may be called so
        return label_function(text, self.function(self.labelled.code))

    def folder(self, text: str) -> Callable[..., str | None]:
        """Return the function of the format's own label."""
        return label_function(text, self.function(self._checked_label(text).code))

    def _checked_label(self, text: str) -> Expression:
        try:
            expression = check(text, self.names)
        except ExpressionError as error:
            raise _config_error("label", error) from None
        if expression.type not in (STR, schema.nullable(STR), ANY, MAYBE):
            raise ConfigError(f"label: expected an expression that gives a text, got a value of type {expression.type}")
        self._label_names.update(expression.names)
        self._note(expression)
        return expression

    # --- what kinds of rules use --------------------------------------------------------------------------------------

    def decision(self, rule: Rule, text: str) -> CompiledRule:
        """Return a deciding rule with a true expression as condition. It drops or annotates a document.

        Rules behind one that drops know what is not null in the documents that it leaves.
        """
        names = self.names_for(rule)
        expression = self.checked(rule, names, f"({rule.when}) and ({text})" if rule.when else text)
        self._note_nulls(rule, expression)
        if rule.drops:
            self._learn(expression.if_false)
        return CompiledRule(rule, names, self.function, _truth(expression))

    def decision_by_code(self, rule: Rule, names: Names, code: str) -> CompiledRule:
        """Return a deciding rule with code as condition. The code comes from no expression."""
        if condition := self.condition(rule, names):
            code = f"{condition} and {code}"
        return CompiledRule(rule, names, self.function, code)

    def condition(self, rule: Rule, names: Names) -> str:
        """Return the code of a rule's `when`; empty if there is none.

        What it tests is known not to be null in the values of the rule that are asked for behind it.
        """
        if not rule.when:
            return ""
        expression = self.checked(rule, names, rule.when)
        self._note_nulls(rule, expression)
        self._if_applied[id(rule)] = expression.if_true
        return _truth(expression)

    def value(self, rule: Rule, names: Names, text: str, type_: Type = ANY, title: str = "") -> Expression:
        """Return a checked expression with a value.

        Args:
            rule: Rule that has it.
            names: Names that it may use.
            text: Expression.
            type_: Type of the value.
            title: Description of that type.
        """
        expression = self.checked(rule, names, text, check)
        if type_ != ANY and expression.type not in (type_, ANY):
            null = expression.type == schema.nullable(type_)
            got = "a value that may be null; test it first" if null else f"a value of type {expression.type}"
            raise refused(rule, f"expected {title}, got {got}")
        return expression

    def checked(self, rule: Rule, names: Names, text: str, how: _Check = check_condition) -> Expression:
        """Return a checked expression, by default a condition; what it reads is noted."""
        try:
            expression = how(text, names, self.facts | self._if_applied.get(id(rule), frozenset()))
        except ExpressionError as error:
            raise refused(rule, error) from None
        self._note(expression)
        if all(name in rule.parameters or names[name] == self.names.get(name) for name in expression.names):
            self.places.setdefault(id(rule), []).extend(
                expression.places
            )  # not those of a line of a document, or a piece
        return expression

    def noting(self, rule: Rule) -> Function | None:
        """Return a function for adding compared nulls to a list. The list follows the values of a document."""
        code = self._noting.get(id(rule))
        return self.function(code, "seen") if code else None

    @property
    def noting_codes(self) -> Collection[str]:
        """Return the code of all functions of `noting`."""
        return self._noting.values()

    def function(self, code: str, *more: str) -> Function:
        """Return code as a function of a document's values, and more."""
        return compile_function(code, (*self._arguments, *more), self.constants)

    def called(self, function: Function, *more: str) -> str:
        """Return the code of a call with the document."""
        return f"{self._constant(function)}({', '.join((self._arguments[-1], *more))})"

    def label_code(self, rule: Rule, prefix: str = "") -> str:
        """Return the code of the label, for dependent values. The label must be able to differ."""
        if not (self.labelled and self.labelled.names):
            expected = "expected a label for each document, got an output format without labels"
            raise refused(rule, f"{prefix}{expected}; give `label: EXPRESSION` in `mix:`")
        return self.labelled.code

    def note_for_fields(self, expression: Expression) -> None:
        """Note the names behind a field of the metadata. Their values must be right after edits, too."""
        self.needs.to_set |= {*expression.names, *(self._label_names if LABEL in expression.names else ())}

    def names_for(self, rule: Rule) -> dict[str, Name]:
        """Return the names for a rule's expressions, with its parameters."""
        return self.names | {name: self._parameter(rule, name, values) for name, values in rule.parameters.items()}

    @cached_property
    def known_keys(self) -> "dict[str, KeyInfo]":
        """Return the attributes as patterns of other languages know them."""
        from toolkit.rules.filters.translation import KeyInfo

        return {
            name: KeyInfo(attribute.present or attribute.type, attribute.present is not None)
            for name, attribute in self.attributes.items()
        }

    # --- checking and noting ------------------------------------------------------------------------------------------

    def _learn(self, facts: Facts) -> None:
        if self.labelled and LABEL not in self.attributes and facts & {LABEL, self.labelled.text}:
            facts = facts | {LABEL, self.labelled.text}
        self.facts = facts

    def _parameter(self, rule: Rule, name: str, values: Mapping[str, Any]) -> Name:
        if name in self.names:
            raise refused(rule, f"expected another name for the parameter {name!r}, because an attribute has this name")
        if "" not in values:
            raise refused(rule, f"expected a value of {name!r} for all other labels: `parameters: {{{name}: …}}`")
        type_ = parameter_type(*values.values())
        if type_ == ANY:
            listed = {label or "all others": value for label, value in values.items()}
            raise ConfigError(f"{rule.place}: parameter {name!r}: expected values of one type, got {listed}")
        code = repr(values[""])
        if len(values) > 1:
            label = self.label_code(rule, f"parameter {name!r}: ")
            code = f"get({self._constant({k: v for k, v in values.items() if k})}, {label}, {code})"
        return Name(type_, code, literal=True)

    def _note_nulls(self, rule: Rule, expression: Expression) -> None:
        if expression.noting:
            self._noting[id(rule)] = expression.noting

    def _note(self, expression: Expression) -> None:
        self.needs.keys.update(expression.names)
        for path in paths_in(expression.text, self.attributes):
            name, _, fields = path.partition(".")
            self.needs.fields.setdefault(name, set()).add(fields.partition(".")[0] or WHOLE)
        if "document" in expression.names:
            paths = paths_in(expression.text, self.names)
            self.needs.source |= "document.source" in paths
            own = [path.partition(".")[2] for path in paths if path.partition(".")[0] == "document"]
            self.needs.documents |= any(field not in _WITHOUT_DOCUMENTS for field in own)
        self.needs.documents |= any(
            name in self.names and self.names[name].open for name in {*expression.names} - {"document"}
        )

    def _constant(self, value: Any) -> str:
        name = f"constant_{len(self.constants)}"
        self.constants[name] = value
        return name


def refused(rule: Rule, why: object) -> ConfigError:
    """Return the error of an unusable rule."""
    return _config_error(f"{rule.place}: rule {quoted(rule.name)}", why)


def _config_error(place: str, why: object) -> ConfigError:
    if isinstance(why, UnknownName):
        return UnknownAttribute(why.name, f"{place}: {why.message}", f"{place}: {why}")
    return ConfigError(f"{place}: {why}")


def _truth(expression: Expression) -> str:
    """Return the code of a condition."""
    return expression.code if expression.type == BOOL else f"truth({expression.code})"


def parameter_type(*values: Any) -> Type:
    """Return the type of a parameter with these values: of numbers, texts, booleans, or lists of such; else any."""
    result = NEVER
    for value in values:
        if isinstance(value, list):  # three integers are no span here
            item = parameter_type(*value)
            type_ = ANY if item == ANY or item.kind == "list" else list_of(item)
        elif isinstance(value, bool | int | str) or (isinstance(value, float) and math.isfinite(value)):
            type_ = infer(value)
        else:
            return ANY
        result = union(result, type_)
        if ANY in (result, result.item):
            return ANY
    return result


class Form(ConfigStruct, kw_only=True):
    """An entry of the list ``rules:`` as it stands in YAML: extend it with the options of a kind.

    Attributes:
        name: the name of the rule in reports
        when: a further condition on documents
    """

    name: str = ""
    when: str = ""

    KEY: ClassVar[str]
    """The option by which an entry of the kind is known: ``drop``."""

    WORD: ClassVar[str] = ""
    """The word at this key where kinds share it: ``blocklist``; empty for the kind that takes everything else."""

    def named(self, title: str) -> str:
        """Return the name of a rule: the one that is given, or what it does, and when."""
        return self.name or title + (f", when {self.when}" if self.when else "")

    def rules(self, place: ConfigNode, base: str) -> Sequence[Rule]:
        """Return the rules of the entry, without surroundings.

        Args:
            place: Place of the entry, for errors.
            base: Folder that the paths of files are relative to.

        Raises:
            ConfigError: for what the types of the options do not tell.
        """
        raise NotImplementedError(type(self).__name__)


def sample_hash(seed: str, source: str, id: str, place: str = "") -> int:
    """Return xxh3-64 of seed, source and id, joined by NUL bytes; a document stays in a sample of p below p x 2^64.

    Where ids are not unique, the place of the document (`Document.place`) is hashed, too.
    """
    return xxhash.xxh3_64_intdigest(f"{seed}\0{source}\0{id}{place and chr(0) + place}".encode())


def document_hash(seed: str, document: Any) -> int:
    """Return the `sample_hash` of a document or row."""
    return sample_hash(seed, document.source, document.id, getattr(document, "place", ""))
