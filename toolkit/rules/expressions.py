"""The expressions of rules: a small part of Python, checked against declared types before anything runs.

Allowed are comparisons, ``is None``, ``and or not``, arithmetic with ``//``, ``in``, access to fields and elements,
``x if c else y``, ``len any all min max sum abs get``, and comprehensions over lists. An expression is parsed once,
checked, and compiled to Python code that touches nothing but the values given to it.

A value that may be null must be tested (``x is None``) or defaulted (``get(map, key, default)``) before it is used; the
checker knows where a test has been made, also by the rules before.
"""

import ast
import functools
import keyword
import math
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

import msgspec

from toolkit.data.schema import ANY, BOOL, FLOAT, INT, NEVER, NULL, STR, Type, field_name, list_of, union
from toolkit.errors import did_you_mean
from toolkit.rules.expression_tree import ExpressionError, parse

Facts = frozenset[str]
"""Expressions (by their text) that are known not to be null."""

_NOTHING: Facts = frozenset()
_NUMBERS = ("int", "float")
_FUNCTIONS = ("len", "any", "all", "min", "max", "sum", "abs", "get")
_OF_NUMBERS = {"*": "times", "%": "modulo"}
_SPAN_FIELDS = {"start": 0, "end": 1, "score": 2}


def is_name(text: str) -> bool:
    """Return True if a text can name an attribute in expressions: an identifier that means nothing else there."""
    reserved = (*_FUNCTIONS, "document", "line")
    return text.isidentifier() and not keyword.iskeyword(text) and text not in reserved


@dataclass(frozen=True)
class Expression:
    """A checked expression.

    Attributes:
        text: as written.
        type: of its value.
        code: Python, with the names of the arguments given to `compile_expressions`.
        names: the attribute keys that it uses, sorted.
        if_true, if_false: what is known not to be null after it was true, or false.
    """

    text: str
    type: Type
    code: str
    names: tuple[str, ...]
    if_true: Facts
    if_false: Facts


@dataclass(frozen=True)
class Name:
    """A name that expressions can use.

    Attributes:
        type: of its value.
        code: Python that yields it.
        present: the type of the value where rows have it, if they may lack it; where they do it is [] or null here.
    """

    type: Type
    code: str
    present: Type | None = None


def check(text: str, names: Mapping[str, Name], known: Facts = _NOTHING) -> Expression:
    """Parse and check an expression.

    Args:
        text: the expression.
        names: what it may use.
        known: what is known not to be null.

    Raises:
        ExpressionError: saying what was expected and what was found.
    """
    tree = parse(text)
    checker = _Checker(names, text)
    type_, code = checker.check(tree, known, {})
    true, false = checker.facts(tree, known)
    return Expression(text, type_, code, tuple(sorted(checker.used)), true, false)


def check_condition(text: str, names: Mapping[str, Name], known: Facts = _NOTHING) -> Expression:
    """Parse and check an expression that must be true or false; arguments and errors as of `check`."""
    found = check(text, names, known)
    if found.type not in (BOOL, ANY):
        hint = " (write `len(…) > 0`)" if found.type.kind in ("list", "map", "str") else ""
        raise ExpressionError(f"expected a condition, true or false, got a value of type {found.type}{hint}")
    return found


def compile_function(
    code: str, arguments: tuple[str, ...], constants: Mapping[str, Any] | None = None
) -> Callable[..., Any]:
    """Return the function of these arguments that a checked expression's code is the body of.

    Args:
        code: of a checked expression.
        arguments: the variables that it refers to.
        constants: other names that it refers to; they are looked up when it runs.
    """
    compiled = _compiled(f"lambda {', '.join(arguments)}: ({code})", "eval")
    return eval(compiled, _globals(constants))  # type: ignore[no-any-return]  # noqa: S307


def compile_chain(
    conditions: Iterable[tuple[str, int, bool]], arguments: tuple[str, ...], constants: Mapping[str, Any]
) -> Callable[..., int | tuple[int, ...]]:
    """Return a function that runs conditions in order: it gives the number of the first that holds and ends it.

    If none ends it, it gives the numbers of those that hold.

    Args:
        conditions: code of a checked expression that is true or false, a number, and whether it ends the chain.
        arguments: as of `compile_function`.
        constants: likewise.
    """
    lines = [f"def chain({', '.join(arguments)}):", "    found = ()"]
    for code, number, ends in conditions:
        lines.append(f"    if {code}: {f'return {number}' if ends else f'found += ({number},)'}")
    names = _globals(constants)
    exec(_compiled("\n".join([*lines, "    return found"]), "exec"), names)  # noqa: S102
    return names["chain"]  # type: ignore[no-any-return]


@functools.lru_cache(maxsize=4096)
def _compiled(code: str, mode: str) -> Any:
    """Return compiled code, once: the rules are the same for every shard that a process works on."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)  # `label is None` is fine where all documents have one label
        return compile(code, "<rules>", mode)


def _globals(constants: Mapping[str, Any] | None) -> dict[str, Any]:
    return {**(constants or {}), "__builtins__": _BUILTINS}


def paths_in(text: str, names: Mapping[str, Name]) -> list[str]:
    """Return the attributes, with their fields, that an expression mentions: ``language.prob``; each once, in order."""
    found: dict[str, None] = {}

    class Visitor(ast.NodeVisitor):
        def visit_Attribute(self, node: ast.Attribute) -> None:
            base = node.value
            while isinstance(base, ast.Attribute):
                base = base.value
            if isinstance(base, ast.Name) and base.id in names:
                found[ast.unparse(node)] = None
            else:
                self.generic_visit(node)

        def visit_Name(self, node: ast.Name) -> None:
            if node.id in names:
                found[node.id] = None

    Visitor().visit(parse(text))
    return list(found)


def everything_known(path: str) -> Facts:
    """Return all parts of a path, as known not to be null: for looking at values whatever they are."""
    parts = path.split(".")
    return frozenset(".".join(parts[:i]) for i in range(1, len(parts)))


def _get(values: Any, key: str, default: Any) -> Any:
    found = values.get(key) if isinstance(values, dict) else None
    if isinstance(values, msgspec.Struct):
        found = getattr(values, field_name(key), None)
    return default if found is None else found


def _field(values: Any, key: str) -> Any:
    """Return a field of a value whose type is not known; a KeyError if it has none."""
    if not isinstance(values, dict):
        raise TypeError(f"expected an object with the field {key}, got {values!r}")
    return values[key]


def _truth(value: Any) -> bool:
    """Return a condition whose type could not be checked; a TypeError if it is none."""
    if value is not True and value is not False:
        raise TypeError(f"expected true or false, got {value!r}")
    return value


def _times(left: Any, right: Any) -> Any:
    """Return a product of numbers whose types could not be checked; one of texts would be as long as one likes."""
    if not isinstance(left, int | float) or not isinstance(right, int | float):
        raise TypeError(f"expected numbers around *, got {type(left).__name__} and {type(right).__name__}")
    return left * right


def _modulo(left: Any, right: Any) -> Any:
    """Return a remainder of numbers whose types could not be checked; that of a text would be one that it formats."""
    if not isinstance(left, int | float) or not isinstance(right, int | float):
        raise TypeError(f"expected numbers around %, got {type(left).__name__} and {type(right).__name__}")
    return left % right


_BUILTINS = {f.__name__: f for f in (len, any, all, min, max, sum, abs)} | {
    "get": _get,
    "field": _field,
    "truth": _truth,
    "times": _times,
    "modulo": _modulo,
}


class _Checker:
    def __init__(self, names: Mapping[str, Name], text: str) -> None:
        self.names = names
        self.text = text
        self.used: set[str] = set()

    # Each method returns the type and the code of a node. `known` holds what is not null, `local` the variables of
    # comprehensions.

    def check(self, node: ast.expr, known: Facts, local: Mapping[str, Type]) -> tuple[Type, str]:
        method = getattr(self, f"_{type(node).__name__.lower()}", None)
        if method is None:
            self._fail(node, f"a {type(node).__name__} is not allowed in expressions")
        type_, code = method(node, known, local)
        if type_.kind == "nullable" and ast.unparse(node) in known:
            type_ = type_.item or ANY
        return type_, code

    def value(self, node: ast.expr, known: Facts, local: Mapping[str, Type]) -> tuple[Type, str]:
        """Return the type and the code of a value that must not be null."""
        type_, code = self.check(node, known, local)
        if type_.kind in ("nullable", "null"):
            name = ast.unparse(node)
            self._fail(node, f"{name} may be null here: test it first (`{name} is not None and …`), or give a default")
        return type_, code

    def facts(self, node: ast.expr, known: Facts) -> tuple[Facts, Facts]:
        """Return what is not null after the node was true, and after it was false."""
        match node:
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                true, false = self.facts(operand, known)
                return false, true
            case ast.BoolOp(op=op, values=values):
                all_of = isinstance(op, ast.And)
                certain, possible = known, []
                for value in values:
                    true, false = self.facts(value, certain)
                    possible.append(false if all_of else true)
                    certain = true if all_of else false
                shared = frozenset.intersection(*possible)
                return (certain, shared) if all_of else (shared, certain)
            case ast.Compare(left=left, ops=[ast.Is()], comparators=[ast.Constant(value=None)]):
                return known, known | {ast.unparse(left)}
            case ast.Compare(left=left, ops=[ast.IsNot()], comparators=[ast.Constant(value=None)]):
                return known | {ast.unparse(left)}, known
        return known, known

    def _fail(self, node: ast.expr, message: str) -> NoReturn:
        raise ExpressionError(f"{message}, in `{ast.unparse(node)}`")

    def _name(self, node: ast.Name, known: Facts, local: Mapping[str, Type]) -> tuple[Type, str]:
        if node.id in local:
            return local[node.id], f"v_{node.id}"
        if node.id not in self.names:
            if node.id == "metadata" and "document" in self.names:
                hint = '; a field of the metadata is written get(document.metadata, "NAME", None)'
                raise ExpressionError(f"expected an attribute, got {node.id!r}{hint}")
            hint = did_you_mean(node.id, self.names) or f"; there are: {', '.join(sorted(self.names))}"
            raise ExpressionError(f"expected an attribute, got {node.id!r}{hint}")
        self.used.add(node.id)
        return self.names[node.id].type, self.names[node.id].code

    def _constant(self, node: ast.Constant, known: Facts, local: Mapping[str, Type]) -> tuple[Type, str]:
        kinds = {bool: BOOL, int: INT, float: FLOAT, str: STR, type(None): NULL}
        if type(node.value) not in kinds:
            self._fail(node, "expected a number, a text, True, False or None")
        if isinstance(node.value, float) and not math.isfinite(node.value):
            self._fail(node, "expected a finite number")
        return kinds[type(node.value)], repr(node.value)

    def _attribute(self, node: ast.Attribute, known: Facts, local: Mapping[str, Type]) -> tuple[Type, str]:
        type_, code = self.value(node.value, known, local)
        if node.attr.startswith("__"):
            self._fail(node, "expected a field")
        if type_ == ANY:
            return ANY, f"field({code}, {node.attr!r})"
        if type_.kind == "span" and node.attr in _SPAN_FIELDS:
            return (FLOAT if node.attr == "score" else INT), f"{code}.{node.attr}"
        if type_.kind == "object":
            return self._field(node, type_, code, node.attr)
        hint = f': write get({ast.unparse(node.value)}, "{node.attr}", …)' if type_.kind == "map" else ""
        self._fail(node, f"expected an object with the field {node.attr}, got a value of type {type_}{hint}")

    def _field(self, node: ast.expr, type_: Type, code: str, name: str) -> tuple[Type, str]:
        found = type_.get(name)
        if found is None:
            fields = [field for field, _ in type_.fields]
            hint = did_you_mean(name, fields) or f"; there are: {', '.join(fields)}"
            self._fail(node, f"expected a field, got {name!r}{hint}")
        return found, f"{code}.{field_name(name)}"

    def _subscript(self, node: ast.Subscript, known: Facts, local: Mapping[str, Type]) -> tuple[Type, str]:
        type_, code = self.value(node.value, known, local)
        if type_.kind == "object" and isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, str):
            return self._field(node, type_, code, node.slice.value)
        index, index_code = self.value(node.slice, known, local)
        if type_.kind == "span" and isinstance(node.slice, ast.Constant) and node.slice.value in (0, 1, 2):
            return (FLOAT if node.slice.value == 2 else INT), f"{code}[{index_code}]"
        if type_.kind == "map" and index == STR:
            return type_.item or ANY, f"{code}[{index_code}]"
        if type_.kind in ("list", "str") and index == INT:
            return (type_.item or ANY) if type_.kind == "list" else STR, f"{code}[{index_code}]"
        if type_ == ANY:
            return ANY, f"{code}[{index_code}]"
        self._fail(node, f"expected a list, a map or an object, got {type_} at {index}")

    def _unaryop(self, node: ast.UnaryOp, known: Facts, local: Mapping[str, Type]) -> tuple[Type, str]:
        type_, code = self.value(node.operand, known, local)
        if isinstance(node.op, ast.Not):
            self._expect(node.operand, type_, ("bool",))
            return BOOL, f"(not {code})"
        if isinstance(node.op, ast.USub | ast.UAdd):
            self._expect(node.operand, type_, _NUMBERS)
            return type_, f"({'-' if isinstance(node.op, ast.USub) else '+'}{code})"
        self._fail(node, "expected not, + or -")

    def _boolop(self, node: ast.BoolOp, known: Facts, local: Mapping[str, Type]) -> tuple[Type, str]:
        codes = []
        for value in node.values:
            type_, code = self.value(value, known, local)
            self._expect(value, type_, ("bool",))
            codes.append(code)
            true, false = self.facts(value, known)
            known = true if isinstance(node.op, ast.And) else false
        return BOOL, "(" + (" and " if isinstance(node.op, ast.And) else " or ").join(codes) + ")"

    def _binop(self, node: ast.BinOp, known: Facts, local: Mapping[str, Type]) -> tuple[Type, str]:
        signs = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%"}
        sign = signs.get(type(node.op))
        if sign is None:
            self._fail(node, "expected + - * / // or %")
        left, left_code = self.value(node.left, known, local)
        right, right_code = self.value(node.right, known, local)
        if sign == "+" and STR in (left, right):
            self._expect(node.left, left, ("str",))
            self._expect(node.right, right, ("str",))
            return STR, f"({left_code} + {right_code})"
        self._expect(node.left, left, _NUMBERS)
        self._expect(node.right, right, _NUMBERS)
        type_ = ANY if ANY in (left, right) else INT if left == right == INT and sign != "/" else FLOAT
        if type_ == ANY and sign in _OF_NUMBERS:
            return type_, f"{_OF_NUMBERS[sign]}({left_code}, {right_code})"
        return type_, f"({left_code} {sign} {right_code})"

    def _compare(self, node: ast.Compare, known: Facts, local: Mapping[str, Type]) -> tuple[Type, str]:
        signs = {
            ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=",
            ast.In: "in", ast.NotIn: "not in", ast.Is: "is", ast.IsNot: "is not",
        }  # fmt: skip
        operands = [node.left, *node.comparators]
        ops = [signs[type(op)] for op in node.ops]
        if "is" in ops or "is not" in ops:
            if len(ops) > 1 or not (isinstance(operands[1], ast.Constant) and operands[1].value is None):
                self._fail(node, "expected `is` only in `… is None` and `… is not None`")
            _, code = self.check(node.left, known, local)
            return BOOL, f"({code} {ops[0]} None)"
        types, codes = zip(*(self.value(operand, known, local) for operand in operands), strict=True)
        for op, left, right, _a, _b in zip(ops, types, types[1:], operands, operands[1:], strict=False):
            if ANY in (left, right):
                continue
            numbers = left.kind in _NUMBERS and right.kind in _NUMBERS
            if op in ("in", "not in"):
                inside = {"list": right.item, "map": STR, "str": STR}.get(right.kind)
                if inside is None:
                    self._fail(node, f"expected a list, a map or a text after `{op}`, got {right}")
                together = union(left, inside)
                if together == ANY and inside != ANY:
                    self._fail(node, f"expected a value of type {inside} before `{op}`, got {left}")
            elif not numbers and not (left == right and (op in ("==", "!=") or left == STR)):
                self._fail(node, f"expected values that compare, got {left} {op} {right}")
        return BOOL, "(" + " ".join(x for pair in zip(codes, [*ops, ""], strict=True) for x in pair).strip() + ")"

    def _ifexp(self, node: ast.IfExp, known: Facts, local: Mapping[str, Type]) -> tuple[Type, str]:
        test, test_code = self.value(node.test, known, local)
        self._expect(node.test, test, ("bool",))
        true, false = self.facts(node.test, known)
        body, body_code = self.check(node.body, true, local)
        other, other_code = self.check(node.orelse, false, local)
        return union(body, other), f"({body_code} if {test_code} else {other_code})"

    def _list(self, node: ast.List | ast.Tuple, known: Facts, local: Mapping[str, Type]) -> tuple[Type, str]:
        item, codes = NEVER, []
        for element in node.elts:
            type_, code = self.value(element, known, local)
            item = union(item, type_)
            codes.append(code)
        return list_of(item), "[" + ", ".join(codes) + "]"

    _tuple = _list

    def _listcomp(
        self, node: ast.ListComp | ast.GeneratorExp, known: Facts, local: Mapping[str, Type]
    ) -> tuple[Type, str]:
        code = ""
        for generator in node.generators:
            source, source_code = self.value(generator.iter, known, local)
            if source.kind not in ("list", "map", "any") or generator.is_async:
                self._fail(generator.iter, f"expected a list to go over, got {source}")
            if not isinstance(generator.target, ast.Name):
                self._fail(node, "expected one variable after `for`")
            name = generator.target.id
            local = {**local, name: STR if source.kind == "map" else source.item or ANY}
            known = frozenset(fact for fact in known if name not in _names_in(fact))
            code += f" for v_{name} in {source_code}"
            for test in generator.ifs:
                type_, test_code = self.value(test, known, local)
                self._expect(test, type_, ("bool",))
                known = self.facts(test, known)[0]
                code += f" if {test_code}"
        item, item_code = self.check(node.elt, known, local)
        return list_of(item), f"[{item_code}{code}]"

    _generatorexp = _listcomp

    def _call(self, node: ast.Call, known: Facts, local: Mapping[str, Type]) -> tuple[Type, str]:
        name = node.func.id if isinstance(node.func, ast.Name) else None
        if name not in _FUNCTIONS or node.keywords or not node.args:
            self._fail(node, f"expected one of the functions {', '.join(_FUNCTIONS)}")
        if name == "get":
            return self._get(node, known, local)
        types, codes = zip(*(self.value(argument, known, local) for argument in node.args), strict=True)
        code = f"{name}({', '.join(codes)})"
        first, item = types[0], types[0].item or ANY
        if first == ANY:
            return (INT if name == "len" else BOOL if name in ("any", "all") else ANY), code
        if name in ("min", "max") and len(types) > 1:
            for argument, type_ in zip(node.args, types, strict=True):
                self._expect(argument, type_, _NUMBERS)
            return FLOAT if FLOAT in types else INT, code
        if len(types) > 1:
            self._fail(node, f"expected one argument of {name}")
        if name == "abs":
            self._expect(node.args[0], first, _NUMBERS)
            return first, code
        if name == "len":
            self._expect(node.args[0], first, ("list", "map", "str"))
            return INT, code
        self._expect(node.args[0], first, ("list",))
        if item.kind in ("nullable", "null"):
            self._fail(node, "expected a list without nulls; leave them out with `… for x in … if x is not None`")
        wanted = ("bool",) if name in ("any", "all") else (*_NUMBERS, "bool") if name == "sum" else (*_NUMBERS, "str")
        if item not in (NEVER, ANY) and item.kind not in wanted:
            self._fail(node, f"expected a list of {' or '.join(wanted)}, got {first}")
        if name in ("any", "all"):
            return BOOL, code
        return (INT if item.kind in ("bool", "never") else item), code

    def _get(self, node: ast.Call, known: Facts, local: Mapping[str, Type]) -> tuple[Type, str]:
        if len(node.args) != 3:
            self._fail(node, "expected get(map, key, default)")
        type_, code = self.value(node.args[0], known, local)
        key, key_code = self.value(node.args[1], known, local)
        default, default_code = self.check(node.args[2], known, local)
        self._expect(node.args[1], key, ("str",))
        code = f"get({code}, {key_code}, {default_code})"
        if type_ == ANY:
            return ANY, code
        if type_.kind == "object" and isinstance(node.args[1], ast.Constant):
            found, _ = self._field(node, type_, "", str(node.args[1].value))
        else:
            self._expect(node.args[0], type_, ("map",))
            found = type_.item or ANY
        inside = found.item or ANY if found.kind == "nullable" else found
        together = union(inside, default)
        if together == ANY and ANY not in (inside, default):
            self._fail(node, f"expected a default of type {inside}, got {default}")
        return together, code

    def _expect(self, node: ast.expr, type_: Type, kinds: tuple[str, ...]) -> None:
        if type_ != ANY and type_.kind not in kinds:
            hint = " (write `len(…) > 0`)" if kinds == ("bool",) and type_.kind in ("list", "map", "str") else ""
            self._fail(node, f"expected {' or '.join(kinds)}, got {type_}{hint}")


def _names_in(text: str) -> set[str]:
    return {node.id for node in ast.walk(ast.parse(text, mode="eval")) if isinstance(node, ast.Name)}
