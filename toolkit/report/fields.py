"""What a report says of the attributes that a stream joins: scores with their thresholds, spans, tokens, duplicates."""

import ast
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from toolkit.config.settings import ConfigStruct
from toolkit.data import schema
from toolkit.data.schema import SPANS, Type
from toolkit.inspect.stats.distributions import Leaf, leaves
from toolkit.inspect.stats.thresholds import HOLDS, numbers, path_of, thresholds
from toolkit.mix.joined_sets import JoinedSet, Key
from toolkit.rules import Role, Rule
from toolkit.rules.expression_tree import ExpressionError, parse
from toolkit.tag.tagger import says

MOST_SCORES = 80
"""Scores that are counted; those with thresholds come first."""


class Place(ConfigStruct):
    """An attribute among the columns of documents.

    Attributes:
        set: place of the set among those that are joined.
        key: name of the field of the set's values.
        name: of the attribute in the mix.
    """

    set: int
    key: str
    name: str


class MarkAt(ConfigStruct):
    """A threshold of a rule; what it says is that of `toolkit.report.facts.Mark`.

    Attributes:
        rule: number of the rule in its stream.
        others: labels that have a value of their own, so that this one is not theirs.
        product: whether the rule compares a number with the value times another, and the score is their ratio.
    """

    rule: int
    label: str
    value: float
    sign: str
    drops: str
    text: str
    others: list[str] = []
    product: bool = False


class ScoreAt(ConfigStruct):
    """A number of each document, or the ratio of two.

    Attributes:
        place: of the attribute.
        over: path of the number that it is divided by, if it is a ratio.
        path: as expressions name it.
        set: name of the set.
        whole: whether it is always an integer.
        marks: thresholds.
        description: what it is.
    """

    place: Place
    path: str
    set: str
    whole: bool
    marks: list[MarkAt] = []
    description: str = ""
    over: str = ""

    @property
    def title(self) -> str:
        """Return what it is called: its path, or ``noise.noise / noise.chars``."""
        return f"{self.path} / {self.over}" if self.over else self.path


class SpansAt(ConfigStruct):
    """Spans of each document.

    Attributes:
        path: as expressions name them: the attribute, or a field of it.
        fields: of the value, in which they are.
        personal: whether they are personal data.
    """

    place: Place
    path: str
    fields: list[str]
    set: str
    personal: bool

    def get(self, row: Any) -> Any:
        """Return the spans of a row of the set; null where there are none."""
        value = getattr(row, self.place.key)
        for name in self.fields:
            value = None if value is None else getattr(value, name)
        return value


class DuplicatesAt(ConfigStruct):
    """What each document is a duplicate of.

    Attributes:
        near: whether the set says how similar they are.
        sized: whether the set says how many documents a cluster has.
    """

    place: Place
    set: str
    kind: str
    near: bool
    sized: str


class Fields(ConfigStruct):
    """What is counted of the attributes of a stream.

    Attributes:
        tokens: where the number of tokens is, if a joined set says it.
        lines: where labels of lines are, likewise.
        edges: where the numbers of lines of header and footer are, likewise.
    """

    scores: list[ScoreAt]
    spans: list[SpansAt]
    duplicates: list[DuplicatesAt]
    tokens: Place | None = None
    lines: Place | None = None
    edges: Place | None = None

    @property
    def keys(self) -> set[str]:
        """Return the attributes that are counted."""
        places = [each.place for each in self.scores] + [each.place for each in self.spans]
        places += [each.place for each in self.duplicates]
        return {place.name for place in (*places, *filter(None, [self.tokens]))}

    @property
    def shown(self) -> set[str]:
        """Return the attributes that samples show."""
        places = [*(each.place for each in self.spans), *filter(None, [self.lines, self.edges])]
        return {place.name for place in places}


def fields_of(sets: Sequence[JoinedSet], rules: Sequence[Rule]) -> Fields:
    """Return what is counted of some sets, beside what rules do."""
    scores: list[ScoreAt] = []
    spans: list[SpansAt] = []
    duplicates: list[DuplicatesAt] = []
    tokens = lines = edges = None
    for place, joined, key in _keys(sets):
        type_ = key.declared
        inner = type_.item if type_.kind == "nullable" and type_.item else type_
        settings = key.settings or {}
        tagger = str(settings.get("tagger", ""))
        personal = says(tagger, "PERSONAL")
        for names in _spans(inner):
            fields = [schema.field_name(name) for name in names]
            spans.append(SpansAt(place, ".".join([key.name, *names]), fields, joined.set, personal))
        if tokens is None and says(tagger, "TOKENS") and inner.kind == "int":
            tokens = place
        if lines is None and schema.is_per_line(type_) and _has(inner.item, "label", "prob"):
            lines = place
        if edges is None and _has(inner, "header_lines", "footer_lines"):
            edges = place
        if _has(inner, "duplicate_of"):
            sized = next((name for name in ("size", "copies") if inner.get(name)), "")
            kind = str(settings.get("kind", "")) or key.key
            duplicates.append(DuplicatesAt(place, joined.set, kind, inner.get("jaccard") is not None, sized))
        for leaf in _scores(key):
            marks = [mark for i, rule in enumerate(rules) for mark in _marks(i, rule, leaf.path)]
            if marks or not leaf.path.startswith("len("):
                of = _type_at(type_, leaf.path.removeprefix(key.name))
                said = of.description if of else ""
                whole = leaf.path.startswith("len(") or (of is not None and of.kind == "int")
                scores.append(ScoreAt(place, leaf.path, joined.set, whole, marks, said))
    by_path = {score.path: score for score in scores}
    by_path |= {leaf.path: _plain(place, joined, leaf) for place, joined, key in _keys(sets) for leaf in _scores(key)}
    scores += ratios_of(rules, by_path)
    chosen = sorted(range(len(scores)), key=lambda i: (not scores[i].marks, i))[:MOST_SCORES]
    return Fields([scores[i] for i in sorted(chosen)], spans, duplicates, tokens, lines, edges)


def _spans(type_: Type) -> Iterator[list[str]]:
    """Yield where spans are in a value of a type: the names of fields, none if it is spans itself."""
    inner = type_.item if type_.kind == "nullable" and type_.item else type_
    if inner == SPANS:
        yield []
    for name, field in inner.fields:
        yield from ([name, *more] for more in _spans(field))


def _plain(place: Place, joined: JoinedSet, leaf: Leaf) -> ScoreAt:
    return ScoreAt(place, leaf.path, joined.set, whole=False)


def at_path(sets: Sequence[JoinedSet], path: str) -> tuple[Place, Leaf]:
    """Return where a number is, by its path in expressions, and what gives its values."""
    return next((place, leaf) for place, _, key in _keys(sets) for leaf in _scores(key) if leaf.path == path)


def _keys(sets: Sequence[JoinedSet]) -> Iterator[tuple[Place, JoinedSet, Key]]:
    for i, joined in enumerate(sets):
        for key in joined.keys:
            if not key.hidden:
                yield Place(i, schema.field_name(key.key), key.name), joined, key


def _scores(key: Key) -> list[Leaf]:
    """Return the numbers that each document has one of."""
    return [leaf for leaf in leaves(key.name, key.declared) if leaf.kind == "number" and "[]" not in leaf.path]


def _has(type_: Type | None, *fields: str) -> bool:
    inner = type_.item if type_ and type_.kind == "nullable" else type_
    return inner is not None and all(inner.get(name) for name in fields)


def _type_at(type_: Type, path: str) -> Type | None:
    """Return the type of a part of a value, by the dotted path behind the attribute's name."""
    said = type_.description
    for name in filter(None, path.split(".")):
        inner = type_.item if type_.kind == "nullable" and type_.item else type_
        found = inner.get(name)
        if found is None:
            return None
        type_, said = found, found.description
    inner = type_.item if type_.kind == "nullable" and type_.item else type_
    return schema.about(inner, said or inner.description)


# --- thresholds -------------------------------------------------------------------------------------------------------


def _marks(number: int, rule: Rule, path: str) -> Iterator[MarkAt]:
    found = thresholds([rule], path)
    for each in found:
        drops = _drops(rule, path, each.sign)
        yield MarkAt(number, each.label, each.number, each.sign, drops, each.text, each.others(found))


def ratios_of(rules: Sequence[Rule], known: Mapping[str, ScoreAt]) -> list[ScoreAt]:
    """Return the ratios of two numbers that rules have thresholds for: ``A < 0.6 * B``, ``A / B < 0.6``.

    Args:
        rules: of a stream.
        known: numbers that there are, by their paths.
    """
    found: dict[tuple[str, str], ScoreAt] = {}
    for i, rule in enumerate(rules):
        for text in rule.expressions:
            try:
                tree = parse(text)
            except ExpressionError:
                continue
            for node, negated in _compared(tree, negated=False):
                for one, other, mark in _ratio_marks(node, i, rule, known, negated=negated):
                    first = known[one]
                    about = f"{one} by {other}; null where that is 0."
                    empty = ScoreAt(first.place, one, first.set, whole=False, description=about, over=other)
                    before = found.get((one, other), empty)
                    if mark not in before.marks:
                        found[one, other] = msgspec.structs.replace(before, marks=[*before.marks, mark])
    return list(found.values())


_SIGNS: dict[type[ast.cmpop], tuple[str, str]] = {
    ast.Lt: ("<", ">"), ast.LtE: ("<=", ">="), ast.Gt: (">", "<"), ast.GtE: (">=", "<="),
}  # fmt: skip
"""Of a comparison, as it is written, and with its sides exchanged."""


def _compared(node: ast.AST, *, negated: bool) -> Iterator[tuple[ast.Compare, bool]]:
    """Yield comparisons outside of comprehensions, each with whether it is negated."""
    if isinstance(node, ast.GeneratorExp | ast.ListComp | ast.SetComp | ast.DictComp):
        return
    if isinstance(node, ast.Compare):
        yield node, negated
        return
    inside = negated != (isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not))
    for child in ast.iter_child_nodes(node):
        yield from _compared(child, negated=inside)


def _ratio_marks(
    node: ast.Compare, number: int, rule: Rule, known: Mapping[str, ScoreAt], *, negated: bool
) -> Iterator[tuple[str, str, MarkAt]]:
    operands = [node.left, *node.comparators]
    for left, op, right in zip(operands, node.ops, operands[1:], strict=False):
        if type(op) not in _SIGNS:
            continue
        for one, other, sign in ((left, right, _SIGNS[type(op)][0]), (right, left, _SIGNS[type(op)][1])):
            product = not isinstance(one, ast.BinOp)
            for upper, lower, value in _of_product(one, other) if product else _of_quotient(one, other):
                values = numbers(value, rule.parameters)
                if upper not in known or lower not in known or min(values.values(), default=0) <= 0:
                    continue
                for label, at in values.items():
                    drops = _side(rule, sign, negated=negated)
                    others = [each for each in values if each] if not label else []
                    text = f"{upper} / {lower} {sign} {at:g}"
                    yield upper, lower, MarkAt(number, label, at, sign, drops, text, others, product)


def _of_product(one: ast.expr, other: ast.expr) -> Iterator[tuple[str, str, ast.expr]]:
    """Yield upper, lower and value of ``A < value * B``, whichever side of the product is the value."""
    if isinstance(other, ast.BinOp) and isinstance(other.op, ast.Mult):
        for value, lower in ((other.left, other.right), (other.right, other.left)):
            yield path_of(one, {}), path_of(lower, {}), value


def _of_quotient(one: ast.expr, other: ast.expr) -> Iterator[tuple[str, str, ast.expr]]:
    """Yield upper, lower and value of ``A / B < value``."""
    if isinstance(one, ast.BinOp) and isinstance(one.op, ast.Div):
        yield path_of(one.left, {}), path_of(one.right, {}), other


def _drops(rule: Rule, path: str, sign: str) -> str:
    """Return which numbers a rule drops by a comparison, ``below`` or ``above``; empty if it cannot be told."""
    turned = {_is_negated(text, path) for text in rule.expressions} - {None}
    return _side(rule, sign, negated=bool(turned.pop())) if len(turned) == 1 else ""


def _side(rule: Rule, sign: str, *, negated: bool) -> str:
    if rule.ROLE is not Role.DROPS or sign not in ("<", "<=", ">", ">="):
        return ""
    below = sign in ("<", "<=")
    return "below" if below != (negated != bool(getattr(rule, "KEEPS", False))) else "above"


def _is_negated(text: str, path: str) -> bool | None:
    """Return whether comparisons of a path stand behind a `not`; None if there is none, or some do."""
    try:
        tree = parse(text)
    except ExpressionError:
        return None
    found = set(_negations(tree, path, negated=False))
    return found.pop() if len(found) == 1 else None


def _negations(node: ast.AST, path: str, *, negated: bool) -> Iterator[bool]:
    if isinstance(node, ast.Compare):
        if any(ast.unparse(each) == path for each in (node.left, *node.comparators)):
            yield negated
        return
    inside = negated != (isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not))
    for child in ast.iter_child_nodes(node):
        yield from _negations(child, path, negated=inside)


def holds(mark: MarkAt, values: Any, lower: Any = None) -> Any:
    """Return for each number whether a comparison holds, reckoned as the rule does; never for what is not a number.

    Args:
        mark: the threshold.
        values: of the score; of a mark of a product what is compared with it.
        lower: what the value is multiplied by, for such a mark.
    """
    bound = mark.value if lower is None else mark.value * lower
    if mark.sign == "!=":
        return (values != bound) & (values == values)  # noqa: PLR0124  (NaN stands for null)
    return HOLDS[mark.sign](values, bound)
