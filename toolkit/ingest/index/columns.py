"""The columns of Common Crawl's index, and conditions over them as SQL.

Source: https://github.com/commoncrawl/cc-index-table, ``cc-index-schema-flat.json``.
"""

import ast
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from toolkit.data.schema import BOOL, FLOAT, INT, STR, Type, list_of, nullable
from toolkit.errors import ConfigError
from toolkit.rules.checker import Name
from toolkit.rules.expression_tree import ExpressionError, parse
from toolkit.rules.expressions import check_condition

LANGUAGES = "content_languages"

_OPTIONAL = nullable(STR)
COLUMNS: dict[str, Type] = {
    **dict.fromkeys(("url_surtkey", "url", "url_host_name"), STR),
    **dict.fromkeys(("url_host_tld", "url_host_2nd_last_part", "url_host_3rd_last_part"), _OPTIONAL),
    **dict.fromkeys(("url_host_4th_last_part", "url_host_5th_last_part", "url_host_registry_suffix"), _OPTIONAL),
    **dict.fromkeys(("url_host_registered_domain", "url_host_private_suffix", "url_host_private_domain"), _OPTIONAL),
    "url_host_name_reversed": _OPTIONAL,
    "url_protocol": STR,
    "url_port": nullable(INT),
    "url_path": STR,
    "url_query": _OPTIONAL,
    "fetch_time": STR,
    "fetch_status": INT,
    **dict.fromkeys(("fetch_redirect", "content_digest", "content_mime_type", "content_mime_detected"), _OPTIONAL),
    "content_charset": _OPTIONAL,
    LANGUAGES: list_of(STR),
    "content_truncated": _OPTIONAL,
    "warc_record_id": STR,
    "warc_filename": STR,
    "warc_record_offset": INT,
    "warc_record_length": INT,
    "warc_segment": STR,
    "crawl": STR,
    "subset": STR,
}
"""Types of the documented columns, as expressions see them; times are texts, ``2025-07-01T12:00:00Z``."""

SINCE = {
    "fetch_redirect": "CC-MAIN-2019-47",
    "content_charset": "CC-MAIN-2018-39",
    LANGUAGES: "CC-MAIN-2018-39",
    "content_truncated": "CC-MAIN-2019-47",
    "warc_record_id": "CC-MAIN-2026-30",
}
"""First crawls whose index has a column, where not all have it."""

PARTITIONS = ("crawl", "subset")
"""Columns whose values stand in the path of an index file: ``crawl=CC-MAIN-2025-30/subset=warc/``."""


class Where:
    """A checked condition over rows of an index.

    Args:
        text: Expression, as in rules.
        found: Columns of the index with their types in SQL; those of `PARTITIONS` may be absent.
        crawl: Name of the crawl, for messages.

    Attributes:
        columns: Columns that it reads, sorted.
        sql: Condition, with parameters ``$p0``, ``$p1`` …
        parameters: Values of the parameters.

    Raises:
        ConfigError: if it is no such condition, or the index lacks a column.
    """

    def __init__(self, text: str, columns: Mapping[str, str], crawl: str) -> None:
        tree = _parse(text)
        used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        for name in sorted(used & COLUMNS.keys() - {*columns, *PARTITIONS}):
            since = f", which begins with {SINCE[name]}" if name in SINCE else ""
            raise ConfigError(f"expected an index with the column {name}{since}; that of {crawl} has none")
        types = {name: COLUMNS.get(name) or _type_of(sql) for name, sql in columns.items()}
        types |= dict.fromkeys(PARTITIONS, STR)
        try:
            checked = check_condition(text, {name: Name(type_, name) for name, type_ in types.items()})
        except ExpressionError as error:
            raise ConfigError(str(error)) from None
        self._columns, self._types = columns, types
        self.parameters: dict[str, Any] = {}
        self.columns = sorted(checked.names)
        self.sql = self._sql(tree)
        self._bounds = [bound for conjunct in _conjuncts(tree) if (bound := self._bound(conjunct))]

    def may_hold(self, least: Mapping[str, tuple[Any, Any]]) -> bool:
        """Return False if no row between these extremes can fulfil the condition."""
        try:
            return all(name not in least or test(*least[name]) for name, test in self._bounds)
        except TypeError:  # a column that is stored as another type
            return True

    # --- translation: the checker has seen each node ------------------------------------------------------------------

    def _parameter(self, value: Any) -> str:
        name = f"p{len(self.parameters)}"
        self.parameters[name] = value
        return f"${name}"

    def _sql(self, node: ast.expr) -> str:
        method = getattr(self, f"_{type(node).__name__.lower()}", None)
        if method is None:
            raise _unsupported(node)
        return str(method(node))

    def _constant(self, node: ast.Constant) -> str:
        return "NULL" if node.value is None else self._parameter(node.value)

    def _name(self, node: ast.Name) -> str:
        return column_sql(node.id, self._columns.get(node.id, "")) if node.id in self._types else f'"v_{node.id}"'

    def _list(self, node: ast.List | ast.Tuple) -> str:
        return "[" + ", ".join(map(self._sql, node.elts)) + "]"

    _tuple = _list

    def _unaryop(self, node: ast.UnaryOp) -> str:
        sign = "NOT" if isinstance(node.op, ast.Not) else "-" if isinstance(node.op, ast.USub) else "+"
        return f"({sign} {self._sql(node.operand)})"

    def _boolop(self, node: ast.BoolOp) -> str:
        return "(" + (" AND " if isinstance(node.op, ast.And) else " OR ").join(map(self._sql, node.values)) + ")"

    def _ifexp(self, node: ast.IfExp) -> str:
        test, body, other = map(self._sql, (node.test, node.body, node.orelse))
        return f"(CASE WHEN {test} THEN {body} ELSE {other} END)"

    def _compare(self, node: ast.Compare) -> str:
        pairs = zip([node.left, *node.comparators], node.ops, node.comparators, strict=False)
        return "(" + " AND ".join(self._comparison(left, op, right) for left, op, right in pairs) + ")"

    def _subscript(self, node: ast.Subscript) -> str:
        place = self._sql(node.slice)
        return f"{self._sql(node.value)}[CASE WHEN {place} < 0 THEN {place} ELSE {place} + 1 END]"

    def _call(self, node: ast.Call) -> str:
        name, arguments = ast.unparse(node.func), list(map(self._sql, node.args))
        if name not in _FUNCTIONS or (name in ("min", "max") and len(arguments) == 1):
            raise _unsupported(node)
        return _FUNCTIONS[name].format(*arguments, all=", ".join(arguments))

    def _binop(self, node: ast.BinOp) -> str:
        left, right = self._sql(node.left), self._sql(node.right)
        match node.op:
            case ast.FloorDiv():
                return f"CAST(floor({left} / {right}) AS BIGINT)"
            case ast.Mod():  # with the sign of the divisor, as in Python
                return f"({left} - {right} * floor({left} / {right}))"
        text = "||" if self._is_text(node) else "+"
        return f"({left} { {ast.Add: text, ast.Sub: '-', ast.Mult: '*', ast.Div: '/'}[type(node.op)] } {right})"

    def _is_text(self, node: ast.expr) -> bool:
        match node:
            case ast.Constant(value=value):
                return isinstance(value, str)
            case ast.Name(id=name):
                return self._types.get(name, STR).not_null == STR
            case ast.BinOp(left=inner) | ast.IfExp(body=inner):
                return self._is_text(inner)
        return isinstance(node, ast.Subscript) or (isinstance(node, ast.Call) and ast.unparse(node.func) == "lower")

    def _comparison(self, left: ast.expr, op: ast.cmpop, right: ast.expr) -> str:
        a, b = self._sql(left), self._sql(right)
        if isinstance(op, ast.In | ast.NotIn):
            result = f"contains({b}, {a})" if self._is_text(right) else f"coalesce(list_contains({b}, {a}), false)"
            return f"(NOT {result})" if isinstance(op, ast.NotIn) else result
        same, other = "IS NOT DISTINCT FROM", "IS DISTINCT FROM"
        signs = {ast.Eq: same, ast.NotEq: other, ast.Is: same, ast.IsNot: other}
        sizes = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="}
        return f"{a} {(signs | sizes)[type(op)]} {b}"

    def _listcomp(self, node: ast.ListComp | ast.GeneratorExp) -> str:
        (loop, *other_loops) = node.generators
        if other_loops or not isinstance(loop.target, ast.Name):
            raise _unsupported(node)
        result, variable = self._sql(loop.iter), f'"v_{loop.target.id}"'
        for test in loop.ifs:
            result = f"list_filter({result}, lambda {variable}: {self._sql(test)})"
        return f"list_transform({result}, lambda {variable}: {self._sql(node.elt)})"

    _generatorexp = _listcomp

    # --- row groups ---------------------------------------------------------------------------------------------------

    def _bound(self, node: ast.expr) -> tuple[str, Callable[[Any, Any], bool]] | None:
        """Return a column and a test of its extremes for a conjunct."""
        match node:
            case ast.Call(func=ast.Name(id="startswith"), args=[ast.Name(id=name), ast.Constant(value=str(start))]):
                return name, lambda least, most: least[: len(start)] <= start <= most[: len(start)]
            case ast.Compare(
                left=ast.Name(id=name), ops=[op], comparators=[ast.Constant(value=str() | int()) as right]
            ):
                values: Sequence[Any] = [right.value]
            case ast.Compare(
                left=ast.Name(id=name), ops=[ast.In() as op], comparators=[ast.List() | ast.Tuple() as right]
            ):
                values = [elt.value for elt in right.elts if isinstance(elt, ast.Constant)]
                if len(values) < len(right.elts):
                    return None
            case _:
                return None
        if name in ("fetch_time", "warc_record_id", LANGUAGES):
            return None
        tests: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
            ast.In: lambda least, most: any(least <= value <= most for value in values),
            ast.Eq: lambda least, most: any(least <= value <= most for value in values),
            ast.Lt: lambda least, _: bool(least < values[0]),
            ast.LtE: lambda least, _: bool(least <= values[0]),
            ast.Gt: lambda _, most: bool(most > values[0]),
            ast.GtE: lambda _, most: bool(most >= values[0]),
        }
        test = tests.get(type(op))
        return (name, test) if test else None


_FUNCTIONS = {
    "len": "len({0})",
    "lower": "lower({0})",
    "startswith": "starts_with({0}, {1})",
    "endswith": "ends_with({0}, {1})",
    "matches": "regexp_matches({0}, {1})",
    "abs": "abs({0})",
    "min": "least({all})",
    "max": "greatest({all})",
    "any": "coalesce(list_bool_or({0}), false)",
    "all": "coalesce(list_bool_and({0}), true)",
}


def column_sql(name: str, sql_type: str) -> str:
    """Return a column as expressions see it: languages as a list, times and ids as texts.

    Args:
        name: Name of the column.
        sql_type: Type that it has in SQL; empty for a partition.
    """
    quoted = '"' + name.replace('"', '""') + '"'
    if name == LANGUAGES and not sql_type.endswith("[]"):
        return f"coalesce(string_split(nullif({quoted}, ''), ','), [])"
    if name == LANGUAGES:
        return f"coalesce({quoted}, [])"
    if sql_type.startswith("TIMESTAMP"):
        return f"strftime(CAST({quoted} AS TIMESTAMP), '%Y-%m-%dT%H:%M:%SZ')"
    if sql_type == "BLOB" and name == "warc_record_id":
        return rf"regexp_replace(lower(hex({quoted})), '(.{{8}})(.{{4}})(.{{4}})(.{{4}})(.{{12}})', '\1-\2-\3-\4-\5')"
    if sql_type == "BLOB":
        return f"decode({quoted})"
    type_ = COLUMNS.get(name)
    return f"CAST({quoted} AS BIGINT)" if type_ and type_.not_null == INT else quoted


def _type_of(sql: str) -> Type:
    """Return the type of an undocumented column."""
    if sql in ("FLOAT", "DOUBLE"):
        return nullable(FLOAT)
    return nullable(BOOL if sql == "BOOLEAN" else INT if "INT" in sql else STR)


def _unsupported(node: ast.expr) -> ConfigError:
    return ConfigError(f"expected an expression that an index can answer, got `{ast.unparse(node)}`")


def _parse(text: str) -> ast.expr:
    try:
        return parse(text)
    except ExpressionError as error:
        raise ConfigError(str(error)) from None


def check_form(text: str) -> None:
    """Raise ConfigError for an invalid expression before any index is read."""
    used = {node.id for node in ast.walk(_parse(text)) if isinstance(node, ast.Name)}
    if used <= COLUMNS.keys():
        Where(text, dict.fromkeys(COLUMNS, "VARCHAR"), "")


def _conjuncts(node: ast.expr) -> Sequence[ast.expr]:
    if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.And):
        return [inner for value in node.values for inner in _conjuncts(value)]
    return [node]
