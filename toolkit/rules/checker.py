"""The check of an expression: the type and the code of each part, and what is known not to be null behind it."""

import ast
import json
import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NoReturn

import msgspec

from toolkit.config.syntax_trees import parse_expression
from toolkit.data.schema import (
    ANY,
    BOOL,
    FLOAT,
    FLOAT32,
    INT,
    NEVER,
    NULL,
    STR,
    Type,
    field_name,
    list_of,
    nullable,
    union,
)
from toolkit.errors import did_you_mean
from toolkit.rules.compiling import compiled_pattern, single
from toolkit.rules.expression_tree import ExpressionError, Place, UnknownName, without_sets

Facts = frozenset[str]
"""Expressions (by their text) that are known not to be null."""

_NUMBERS = ("int", "float")
_SIZES = ("<", "<=", ">", ">=")
_EQUALS = {"==": "==", "!=": "==", "in": "in", "not in": "in"}
_OF_TEXTS = {"lower": 1, "startswith": 2, "endswith": 2, "matches": 2}
"""Functions of texts, with the number of their arguments."""
FUNCTIONS = ("len", "any", "all", "min", "max", "sum", "abs", "get", *_OF_TEXTS)
_OF_NUMBERS = {"*": "times", "%": "modulo"}
MAYBE = Type("nullable", ANY)
"""Of a field of which no type is declared, and which may be absent."""

_OF_DOCUMENTS = ("text", "added", "created", "attributes")
"""Fields that any document may have, whatever is known of its own."""

_CONSTANTS = {"null": "None", "none": "None", "true": "True", "false": "False"}
"""Constants as other languages spell them, with their names here."""

_SPAN_FIELDS = {"start": 0, "end": 1, "score": 2}


class Name(msgspec.Struct, frozen=True):
    """A name for expressions.

    Attributes:
        type: Type of its value.
        code: Python that yields it.
        present: Type of the value where rows have it, if they may lack it; where they do it is [] or null here.
        literal: True if its value is one of the rule itself, a parameter.
        open: True if it has fields of which no type is declared, written as others are, and null where they are absent.
        own: Types of the own top-level fields of the document, as far as they are known.
        closed: Dotted paths of objects in it that have no other fields than these types have.
    """

    type: Type
    code: str
    present: Type | None = None
    literal: bool = False
    open: bool = False
    own: tuple[tuple[str, Type], ...] = ()
    closed: tuple[str, ...] = ()


class Checker:
    """Gives the type and the code of each part of an expression.

    Args:
        names: Names that it may use.
        text: Text of the expression.
        noting: True if the code notes nulls that are compared.

    Attributes:
        used: Names that it uses.
        compares_nulls: True if values are compared that may be null.
        places: Parts whose values may occur in no document.
    """

    def __init__(self, names: Mapping[str, Name], text: str, *, noting: bool = False) -> None:
        self.names = names
        self.text = text
        self.noting = noting
        self.used: set[str] = set()
        self.compares_nulls = False
        self.places: list[Place] = []
        self._loops = ""  # the code of the comprehensions around a node

    # Each method returns the type and the code of a node. `known` holds what is not null, `local` the variables of
    # comprehensions.

    def check(self, node: ast.expr, facts: Facts, local: Mapping[str, Type]) -> tuple[Type, str]:
        method = getattr(self, f"_{type(node).__name__.lower()}", None)
        if method is None:
            self._fail(node, f"a {type(node).__name__} is not allowed in expressions")
        type_, code = method(node, facts, local)
        if type_.kind == "nullable" and ast.unparse(node) in facts:
            type_ = type_.item or ANY
        return type_, code

    def value(self, node: ast.expr, facts: Facts, local: Mapping[str, Type]) -> tuple[Type, str]:
        """Return the type and the code of a non-null value."""
        type_, code = self.check(node, facts, local)
        if type_.kind in ("nullable", "null"):
            name = ast.unparse(node)
            self._fail(node, f"{name} may be null here: test it first (`{name} is not None and …`), or give a default")
        return type_, code

    def facts(self, node: ast.expr, facts: Facts) -> tuple[Facts, Facts]:
        """Return the facts after the node was true, and after false."""
        match node:
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                true, false = self.facts(operand, facts)
                return false, true
            case ast.BoolOp(op=op, values=values):
                all_of = isinstance(op, ast.And)
                certain, possible = facts, []
                for value in values:
                    true, false = self.facts(value, certain)
                    possible.append(false if all_of else true)
                    certain = true if all_of else false
                shared = frozenset.intersection(*possible)
                return (certain, shared) if all_of else (shared, certain)
            case ast.Compare(left=left, ops=[op], comparators=[right]) if (
                answer := _not_null_if(op, right)
            ) is not None:
                more = facts | {ast.unparse(left)}
                return (more, facts) if answer else (facts, more)
        return facts, facts

    def _fail(self, node: ast.expr, message: str) -> NoReturn:
        raise ExpressionError(f"{message}, in `{ast.unparse(node)}`")

    def _unknown(self, name: str) -> UnknownName:
        """Return the error of an unknown name."""
        if name in _CONSTANTS:
            return UnknownName(name, f"expected an attribute, got {name!r}", f"; write {_CONSTANTS[name]}")
        hint = without_sets(self.text) if f"{name}-" in self.text else ""
        hint = hint or did_you_mean(name, self.names) or f"; there are: {', '.join(sorted(self.names))}"
        return UnknownName(name, f"expected an attribute, got {name!r}", hint)

    def _refuse_bare_words(self, operands: Sequence[ast.expr], local: Mapping[str, Type]) -> None:
        """Raise UnknownName for a compared word without quotes."""
        for node in operands:
            words = node.elts if isinstance(node, ast.List | ast.Tuple | ast.Set) else [node]
            for word in words:
                if isinstance(word, ast.Name) and word.id not in {*self.names, *local, *_CONSTANTS}:
                    close = did_you_mean(word.id, self.names)
                    hint = f'; write quotes around a text: "{word.id}"{close and f" ({close[2:]})"}'
                    raise UnknownName(word.id, f"expected an attribute, got {word.id!r}", hint)

    def _name(self, node: ast.Name, facts: Facts, local: Mapping[str, Type]) -> tuple[Type, str]:
        if node.id in local:
            return local[node.id], f"v_{node.id}"
        if node.id not in self.names:
            raise self._unknown(node.id)
        self.used.add(node.id)
        name = self.names[node.id]
        if name.present is not None or name.type in (ANY, MAYBE):
            self._may_lack(node.id, name.code)
        return name.type, name.code

    def _constant(self, node: ast.Constant, facts: Facts, local: Mapping[str, Type]) -> tuple[Type, str]:
        kinds = {bool: BOOL, int: INT, float: FLOAT, str: STR, type(None): NULL}
        if type(node.value) not in kinds:
            self._fail(node, "expected a number, a text, True, False or None")
        if isinstance(node.value, float) and not math.isfinite(node.value):
            self._fail(node, "expected a finite number")
        return kinds[type(node.value)], repr(node.value)

    def _is_open(self, node: ast.expr, local: Mapping[str, Type]) -> bool:
        """Return True if a value has fields without declared types."""
        while isinstance(node, ast.Attribute):
            node = node.value
        return (
            isinstance(node, ast.Name) and node.id not in local and node.id in self.names and self.names[node.id].open
        )

    def _open_field(self, node: ast.Attribute, facts: Facts, local: Mapping[str, Type]) -> tuple[Type, str]:
        """Return a field of such a value: null where it is absent, or null, or the value is."""
        type_, code = self.check(node.value, facts, local)
        if type_.kind == "object" and (declared := type_.get(node.attr)):  # of the document itself
            return declared, f"{code}.{field_name(node.attr)}"
        if type_.kind == "object" and node.attr == "text":
            self._fail(
                node,
                "expected an attribute, got the text, which expressions of rules do not read; let a tagger compute an "
                "attribute of it, or decide by a function: `keep: python`",
            )
        inner = type_.not_null
        if type_.kind != "object" and inner != ANY and inner.kind != "map":
            self._fail(node, f"expected an object with the field {node.attr}, got a value of type {type_}")
        result = self._own_type(node, inner)
        if type_.kind == "object":
            code = f"{code}.field({node.attr!r})"
        else:
            result = nullable(result) if type_.kind == "nullable" else result
            code = f"at({code}, {node.attr!r})"
        if result.kind in ("nullable", "any"):
            self._may_lack(ast.unparse(node), code)
        return result, code

    def _may_lack(self, text: str, code: str) -> None:
        """Note a value missing in some documents."""
        if not self._loops:
            self.places.append(Place(text, code))

    def _may_differ(self, op: str, operands: Sequence[ast.expr], codes: Sequence[str]) -> None:
        """Note a comparison with a text, perhaps misspelt."""
        (left, right), (left_code, right_code) = operands, codes
        texts = [right] if op == "==" else [left]
        if op == "==" and isinstance(left, ast.Constant):
            left, texts, left_code, right_code = right, [left], right_code, left_code
        if op == "in" and isinstance(right, ast.List | ast.Tuple):
            op, texts = "==", right.elts
        for text in texts:
            if isinstance(text, ast.Constant) and isinstance(text.value, str):
                display = json.dumps(text.value, ensure_ascii=False)
                if op == "==":
                    display, code = f"{ast.unparse(left)} == {display}", f"{left_code} == {text.value!r}"
                else:
                    display, code = f"{display} in {ast.unparse(right)}", f"{text.value!r} in {right_code}"
                code = f"any([hit(lambda: {code}){self._loops}])" if self._loops else code
                self.places.append(Place(display, code, compares=True))

    def _own_type(self, node: ast.Attribute, inside: Type) -> Type:
        """Return the type of an own field of documents; of one of which nothing is known, that it may be null."""
        path = ast.unparse(node.value)
        name = self.names[path.partition(".")[0]]
        fields = dict(inside.fields if inside.kind == "map" else name.own)
        if type_ := fields.get(node.attr):
            return MAYBE if type_ == ANY else type_
        if path.removeprefix("document.") in name.closed and node.attr not in _OF_DOCUMENTS:
            hint = did_you_mean(node.attr, fields) or f"; there are: {', '.join(fields) or 'none'}"
            self._fail(node, f"expected a field that documents have, got {node.attr!r}{hint}")
        return MAYBE

    def _attribute(self, node: ast.Attribute, facts: Facts, local: Mapping[str, Type]) -> tuple[Type, str]:
        if node.attr.startswith("__"):
            self._fail(node, "expected a field")
        if self._is_open(node.value, local):
            return self._open_field(node, facts, local)
        type_, code = self.value(node.value, facts, local)
        if type_ == ANY:
            return ANY, f"field({code}, {node.attr!r})"
        if type_.kind == "span" and node.attr in _SPAN_FIELDS:
            return (FLOAT if node.attr == "score" else INT), f"{code}.{node.attr}"
        if type_.kind == "object":
            return self._field(node, type_, code, node.attr)
        hint = f': write get({ast.unparse(node.value)}, "{node.attr}", …)' if type_.kind == "map" else ""
        self._fail(node, f"expected an object with the field {node.attr}, got a value of type {type_}{hint}")

    def _field(self, node: ast.expr, type_: Type, code: str, name: str) -> tuple[Type, str]:
        result = type_.get(name)
        if result is None:
            fields = [field for field, _ in type_.fields]
            hint = did_you_mean(name, fields) or f"; there are: {', '.join(fields)}"
            self._fail(node, f"expected a field, got {name!r}{hint}")
        return result, f"{code}.{field_name(name)}"

    def _subscript(self, node: ast.Subscript, facts: Facts, local: Mapping[str, Type]) -> tuple[Type, str]:
        type_, code = self.value(node.value, facts, local)
        if type_.kind == "object" and isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, str):
            return self._field(node, type_, code, node.slice.value)
        index, index_code = self.value(node.slice, facts, local)
        if type_.kind == "span" and isinstance(node.slice, ast.Constant) and node.slice.value in (0, 1, 2):
            return (FLOAT if node.slice.value == 2 else INT), f"{code}[{index_code}]"
        if type_.kind == "map" and index == STR:
            return type_.item or ANY, f"{code}[{index_code}]"
        if type_.kind in ("list", "str") and index == INT:
            return (type_.item or ANY) if type_.kind == "list" else STR, f"{code}[{index_code}]"
        if type_ == ANY:
            return ANY, f"{code}[{index_code}]"
        self._fail(node, f"expected a list, a map or an object, got {type_} at {index}")

    def _unaryop(self, node: ast.UnaryOp, facts: Facts, local: Mapping[str, Type]) -> tuple[Type, str]:
        type_, code = self.value(node.operand, facts, local)
        if isinstance(node.op, ast.Not):
            self._expect(node.operand, type_, ("bool",))
            return BOOL, f"(not {code})"
        if isinstance(node.op, ast.USub | ast.UAdd):
            self._expect(node.operand, type_, _NUMBERS)
            return type_, f"({'-' if isinstance(node.op, ast.USub) else '+'}{code})"
        self._fail(node, "expected not, + or -")

    def _boolop(self, node: ast.BoolOp, facts: Facts, local: Mapping[str, Type]) -> tuple[Type, str]:
        codes = []
        for value in node.values:
            type_, code = self.value(value, facts, local)
            self._expect(value, type_, ("bool",))
            codes.append(code)
            true, false = self.facts(value, facts)
            facts = true if isinstance(node.op, ast.And) else false
        return BOOL, "(" + (" and " if isinstance(node.op, ast.And) else " or ").join(codes) + ")"

    def _binop(self, node: ast.BinOp, facts: Facts, local: Mapping[str, Type]) -> tuple[Type, str]:
        signs = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%"}
        sign = signs.get(type(node.op))
        if sign is None:
            self._fail(node, "expected + - * / // or %")
        left, left_code = self.value(node.left, facts, local)
        right, right_code = self.value(node.right, facts, local)
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

    def _compare(self, node: ast.Compare, facts: Facts, local: Mapping[str, Type]) -> tuple[Type, str]:
        signs = {
            ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=",
            ast.In: "in", ast.NotIn: "not in", ast.Is: "is", ast.IsNot: "is not",
        }  # fmt: skip
        operands = [node.left, *node.comparators]
        ops = [signs[type(op)] for op in node.ops]
        if isinstance(node.ops[0], ast.Eq | ast.NotEq | ast.In | ast.NotIn):
            self._refuse_bare_words(node.comparators, local)
        if "is" in ops or "is not" in ops:
            if len(ops) > 1 or not (isinstance(operands[1], ast.Constant) and operands[1].value is None):
                self._fail(node, "expected `is` only in `… is None` and `… is not None`; write == between two values")
            _, code = self.check(node.left, facts, local)
            return BOOL, f"({code} {ops[0]} None)"
        results = [self.check(operand, facts, local) for operand in operands]
        needed = _never_null(ops, [type_ for type_, _ in results])
        types, codes = [], []
        notes = not any(
            isinstance(operand, ast.Constant) and operand.value is None for operand in operands
        )  # that is a test
        for operand, (type_, code), must in zip(operands, results, needed, strict=True):
            if type_.kind in ("nullable", "null") and must:
                self.value(operand, facts, local)
            if type_.kind == "nullable":
                self.compares_nulls |= notes
                code = f"note({code}, seen)" if self.noting and notes else code
                type_ = type_.item or ANY
            types.append(type_)
            codes.append(code)
        for i, (op, left, right) in enumerate(zip(ops, types, types[1:], strict=False)):
            self._check_comparable(node, op, left, right)
            if op in _EQUALS:
                self._may_differ(_EQUALS[op], operands[i : i + 2], [code for _, code in results[i : i + 2]])
        if any(map(_is_single, types)):  # each pair by itself: one between two others may be compared in two widths
            pairs = list(pairwise(zip(operands, types, codes, strict=True)))
            sides = [[code for _, code in self._in_one_width(pair)] for pair in pairs]
            return BOOL, "(" + " and ".join(f" {op} ".join(pair) for op, pair in zip(ops, sides, strict=True)) + ")"
        return BOOL, "(" + " ".join(x for pair in zip(codes, [*ops, ""], strict=True) for x in pair).strip() + ")"

    def _in_one_width(self, operands: Sequence[tuple[ast.expr, Type, str]]) -> list[tuple[Type, str]]:
        """Return values of one width: constants have that of a float32. Other floats widen it.

        So do DuckDB, polars and pandas. A float of 32 bits is here the number of its shortest text. These have the
        order of the floats, so that only the constant is changed.
        """
        if not any(_is_single(type_) for _, type_, _ in operands):
            return [(type_, code) for _, type_, code in operands]
        constants = [self._as_single(node, code) for node, _, code in operands]
        types = [type_ for single, (_, type_, _) in zip(constants, operands, strict=True) if single is None]
        if any(_number_in(type_) == FLOAT for type_ in types):
            return [(type_, f"double({code})" if _is_single(type_) else code) for _, type_, code in operands]
        return [
            (type_ if single is None or type_.kind not in _NUMBERS else FLOAT32, single or code)
            for single, (_, type_, code) in zip(constants, operands, strict=True)
        ]

    def _as_single(self, node: ast.expr, code: str) -> str | None:
        """Return the code of constants as floats of 32 bits. It is None for anything else."""
        if isinstance(node, ast.Name) and node.id in self.names and self.names[node.id].literal:
            return f"single({code})"
        try:
            return repr(single(ast.literal_eval(node)))
        except ValueError:
            return None

    def _check_comparable(self, node: ast.Compare, op: str, left: Type, right: Type) -> None:
        """Check two types for a comparison. Values are not null."""
        if ANY in (left, right) or (op not in _SIZES and "null" in (left.kind, right.kind)):
            return
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

    def _ifexp(self, node: ast.IfExp, facts: Facts, local: Mapping[str, Type]) -> tuple[Type, str]:
        test, test_code = self.value(node.test, facts, local)
        self._expect(node.test, test, ("bool",))
        true, false = self.facts(node.test, facts)
        body, body_code = self.check(node.body, true, local)
        other, other_code = self.check(node.orelse, false, local)
        both = self._in_one_width([(node.body, body, body_code), (node.orelse, other, other_code)])
        (body, body_code), (other, other_code) = both
        return union(body, other), f"({body_code} if {test_code} else {other_code})"

    def _list(self, node: ast.List | ast.Tuple, facts: Facts, local: Mapping[str, Type]) -> tuple[Type, str]:
        item, codes = NEVER, []
        for element in node.elts:
            type_, code = self.value(element, facts, local)
            item = union(item, type_)
            codes.append(code)
        return list_of(item), "[" + ", ".join(codes) + "]"

    _tuple = _list

    def _listcomp(
        self, node: ast.ListComp | ast.GeneratorExp, facts: Facts, local: Mapping[str, Type]
    ) -> tuple[Type, str]:
        around = self._loops
        for generator in node.generators:
            source, source_code = self.value(generator.iter, facts, local)
            if source.kind not in ("list", "map", "any") or generator.is_async:
                self._fail(generator.iter, f"expected a list to go over, got {source}")
            if not isinstance(generator.target, ast.Name):
                self._fail(node, "expected one variable after `for`")
            name = generator.target.id
            local = {**local, name: STR if source.kind == "map" else source.item or ANY}
            facts = frozenset(fact for fact in facts if name not in _names_in(fact))
            self._loops += f" for v_{name} in {source_code}"
            for test in generator.ifs:
                type_, test_code = self.value(test, facts, local)
                self._expect(test, type_, ("bool",))
                facts = self.facts(test, facts)[0]
                self._loops += f" if {test_code}"
        item, item_code = self.check(node.elt, facts, local)
        loops, self._loops = self._loops.removeprefix(around), around
        return list_of(item), f"[{item_code}{loops}]"

    _generatorexp = _listcomp

    def _call(self, node: ast.Call, facts: Facts, local: Mapping[str, Type]) -> tuple[Type, str]:
        name = node.func.id if isinstance(node.func, ast.Name) else None
        if name not in FUNCTIONS or node.keywords or not node.args:
            self._fail(node, f"expected one of the functions {', '.join(FUNCTIONS)}{_meant_function(node.func)}")
        if name == "get" or name in _OF_TEXTS:
            return (self._get if name == "get" else self._of_texts)(node, facts, local)
        types, codes = zip(*(self.value(argument, facts, local) for argument in node.args), strict=True)
        code = f"{name}({', '.join(codes)})"
        first, item = types[0], types[0].item or ANY
        if first == ANY:
            return (INT if name == "len" else BOOL if name in ("any", "all") else ANY), code
        if name in ("min", "max") and len(types) > 1:
            for argument, type_ in zip(node.args, types, strict=True):
                self._expect(argument, type_, _NUMBERS)
            both = self._in_one_width([*zip(node.args, types, codes, strict=True)])
            kinds = {type_ for type_, _ in both}
            return (
                FLOAT32 if kinds == {FLOAT32} else FLOAT if kinds & {FLOAT, FLOAT32} else INT,
                f"{name}({', '.join(code for _, code in both)})",
            )
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
        allowed = ("bool",) if name in ("any", "all") else (*_NUMBERS, "bool") if name == "sum" else (*_NUMBERS, "str")
        if item not in (NEVER, ANY) and item.kind not in allowed:
            self._fail(node, f"expected a list of {' or '.join(allowed)}, got {first}")
        if name in ("any", "all"):
            return BOOL, code
        return (INT if item.kind in ("bool", "never") else FLOAT if (name, item) == ("sum", FLOAT32) else item), code

    def _of_texts(self, node: ast.Call, facts: Facts, local: Mapping[str, Type]) -> tuple[Type, str]:
        """Return a function of texts: ``lower``, or one that tests a text."""
        name = ast.unparse(node.func)
        if len(node.args) != _OF_TEXTS[name]:
            self._fail(node, f"expected {_form(name)}")
        codes = []
        for argument in node.args:
            type_, code = self.value(argument, facts, local)
            self._expect(argument, type_, ("str",))
            codes.append(code)
        if name == "matches":
            pattern = node.args[1]
            if not (isinstance(pattern, ast.Constant) and isinstance(pattern.value, str)):
                self._fail(node, "expected a pattern in quotes as the second argument of matches")
            try:
                compiled_pattern(pattern.value)
            except ValueError as error:
                self._fail(node, f"expected a regular expression of RE2, got {pattern.value!r}: {error}")
        return (STR if name == "lower" else BOOL), f"{name}({', '.join(codes)})"

    def _get(self, node: ast.Call, facts: Facts, local: Mapping[str, Type]) -> tuple[Type, str]:
        if len(node.args) != 3:
            self._fail(node, "expected get(map, key, default)")
        type_, code = self.value(node.args[0], facts, local)
        key, key_code = self.value(node.args[1], facts, local)
        default, default_code = self.check(node.args[2], facts, local)
        self._expect(node.args[1], key, ("str",))
        if isinstance(node.args[1], ast.Constant) and type_.kind != "object":
            self._may_lack(f"{ast.unparse(node.args[0])}[{key_code}]", f"get({code}, {key_code}, None)")
        if type_ == ANY:
            return ANY, f"get({code}, {key_code}, {default_code})"
        if type_.kind == "object" and isinstance(node.args[1], ast.Constant):
            result, _ = self._field(node, type_, "", str(node.args[1].value))
        else:
            self._expect(node.args[0], type_, ("map",))
            name = node.args[1].value if isinstance(node.args[1], ast.Constant) else None
            own = type_.get(str(name)) or ANY
            result = own if _is_single(own) else type_.item or ANY
        inside = result.not_null
        (inside, _), (default, default_code) = self._in_one_width(
            [(node.args[0], inside, code), (node.args[2], default, default_code)]
        )
        code = f"get({code}, {key_code}, {default_code})"
        together = union(inside, default)
        if together == ANY and ANY not in (inside, default):
            self._fail(node, f"expected a default of type {inside}, got {default}")
        return together, code

    def _expect(self, node: ast.expr, type_: Type, kinds: tuple[str, ...]) -> None:
        if type_ != ANY and type_.kind not in kinds:
            hint = " (write `len(…) > 0`)" if kinds == ("bool",) and type_.kind in ("list", "map", "str") else ""
            self._fail(node, f"expected {' or '.join(kinds)}, got {type_}{hint}")


def _number_in(type_: Type) -> Type:
    """Return the non-null type of a value, or of a list's elements."""
    inner = type_.not_null
    return (inner.item or ANY).not_null if inner.kind == "list" else inner


def _is_single(type_: Type) -> bool:
    return _number_in(type_) == FLOAT32


def _form(name: str) -> str:
    """Return how a function of texts is called."""
    return f"{name}(text)" if _OF_TEXTS[name] == 1 else f'{name}(text, "…")'


def _meant_function(function: ast.expr) -> str:
    """Return the remedy for a function with another name here."""
    called = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    name = {"regex": "matches", "match": "matches", "search": "matches", "fullmatch": "matches"}.get(called, called)
    if name in _OF_TEXTS:
        return f"; write {_form(name)}"
    return did_you_mean(called, FUNCTIONS)


def _not_null_if(op: ast.cmpop, right: ast.expr) -> bool | None:
    """Return the answer with a null-free left side, if any."""
    if isinstance(right, ast.Constant) and right.value is None:
        return {ast.Is: False, ast.Eq: False, ast.IsNot: True, ast.NotEq: True}.get(type(op))
    if isinstance(right, ast.Constant):
        return {ast.Eq: True, ast.NotEq: False}.get(type(op))
    if isinstance(right, ast.List | ast.Tuple):  # in which no null can stand
        return {ast.In: True, ast.NotIn: False}.get(type(op))
    return None


def _never_null(ops: Sequence[str], types: Sequence[Type]) -> list[bool]:
    """Return True for each operand of a comparison with null refused. As in Python, null has no size, and holds
    nothing.
    """
    results = [False] * len(types)
    for i, op in enumerate(ops):
        container = types[i + 1]
        results[i] |= op in _SIZES or (op in ("in", "not in") and container.kind == "str")
        results[i + 1] |= op in (*_SIZES, "in", "not in")
    return results


def _names_in(text: str) -> set[str]:
    return {node.id for node in ast.walk(parse_expression(text)) if isinstance(node, ast.Name)}
