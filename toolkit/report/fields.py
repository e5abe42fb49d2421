"""Attributes in a report: scores with thresholds and marks, spans, tokens, duplicates."""

import ast
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Literal

import msgspec

from toolkit.aggregate.distributions import Leaf, leaves
from toolkit.aggregate.thresholds import HOLDS, ThresholdPair, comparisons, numbers, path_of, thresholds
from toolkit.config.settings import ConfigStruct
from toolkit.data import schema
from toolkit.data.schema import SPANS, Type
from toolkit.mix.join import JoinedKey, JoinedSet
from toolkit.rules.rule import Role, Rule
from toolkit.tag.tagger import says

How = Literal["", "times", "over", "floor"]
"""How a rule compares two numbers: ``A / B < v``, ``A < v * B``, ``A < B / v``, ``A < B // v``."""


class MarkAt(ConfigStruct):
    """A threshold of a rule; what it says is that of `toolkit.report.facts.Mark`.

    Attributes:
        rule: number of the rule in its stream.
        excluded: labels that have a value of their own, so that this one is not theirs.
        how: the rule compares, if the score is a ratio.
        factor: the number that is written in such a comparison.
    """

    rule: int
    label: str
    value: float
    sign: str
    drops: str
    text: str
    excluded: list[str] = msgspec.field(default_factory=list, name="others")
    how: How = ""
    factor: float = 0.0


def marks_of(number: int, rule: Rule, path: str) -> Iterator[MarkAt]:
    """Yield the thresholds of a rule for a number of documents."""
    sides: dict[str, set[str]] = {}
    for comparison in comparisons(rule):
        if path_of(comparison.left, comparison.paths) == path:
            sides.setdefault(comparison.sign, set()).add(_side(rule, comparison))
    results = thresholds([rule], path)
    for mark in results:
        (drops, *more) = sides[mark.sign]
        side = "" if more else drops
        yield MarkAt(number, mark.label, mark.number, mark.sign, side, mark.text, mark.excluded_labels(results))


def holds(mark: MarkAt, values: Any, lower: Any = None) -> Any:
    """Return for each number True if a comparison holds. It is computed as the rule does; never True for NaN.

    Args:
        mark: the threshold.
        values: Values of the score; of a mark that says how two numbers are compared, the first of them.
        lower: the second, for such a mark.
    """
    match mark.how:
        case "times":
            bound = mark.factor * lower
        case "over":
            bound = lower / mark.factor
        case "floor":
            bound = lower // mark.factor
        case _:
            bound = mark.value
    if mark.sign == "!=":
        return (values != bound) & (values == values)  # noqa: PLR0124  (NaN stands for null)
    return HOLDS[mark.sign](values, bound)


def computed_of(rule: Rule, paths: Collection[str]) -> Iterator[str]:
    """Yield the other numbers in a rule's comparisons. The rule computes them, or takes them from the metadata.

    Args:
        rule: Rule of a stream.
        paths: numbers that there are beside that, by their paths, and ratios of two.
    """
    for comparison in comparisons(rule):
        names = {node.id for node in ast.walk(comparison.left) if isinstance(node, ast.Name)}
        is_of_document = names and not names & {*rule.parameters, *comparison.paths}
        path = path_of(comparison.left, comparison.paths)
        if (
            is_of_document
            and comparison.is_by_size
            and path not in paths
            and numbers(comparison.right, rule.parameters)
        ):
            yield path


# --- ratios -----------------------------------------------------------------------------------------------------------


def ratio_marks(number: int, rule: Rule, paths: Collection[str]) -> Iterator[tuple[str, str, MarkAt]]:
    """Yield a rule's thresholds for ratios of two numbers, with their paths.

    Args:
        number: Number of the rule.
        rule: Rule of a stream.
        paths: the paths of numbers that there are.
    """
    for comparison in comparisons(rule):
        if not comparison.is_by_size:
            continue
        for upper, lower, value, how in _ratios(comparison):
            values = numbers(value, rule.parameters)
            if upper not in paths or lower not in paths or min(values.values(), default=0) <= 0:
                continue
            for label, factor in values.items():
                at = 1 / factor if how in ("over", "floor") else factor
                excluded = [one for one in values if one] if not label else []
                text = f"{upper} / {lower} {comparison.sign} {at:g}"
                mark = MarkAt(number, label, at, comparison.sign, _side(rule, comparison), text, excluded, how, factor)
                yield upper, lower, mark


def _ratios(comparison: ThresholdPair) -> Iterator[tuple[str, str, ast.expr, How]]:
    """Yield upper, lower and value of ratios in a comparison.

    ``A / B < v``, ``A < v * B``, ``A < B / v`` and ``A < B // v``.
    """

    def path(node: ast.expr) -> str:
        return path_of(node, comparison.paths)

    match comparison.left, comparison.right:
        case ast.BinOp(left=upper, op=ast.Div(), right=lower), value:
            yield path(upper), path(lower), value, ""
        case ast.BinOp(), _:
            return
        case upper, ast.BinOp(left=left, op=ast.Mult(), right=right):
            yield path(upper), path(right), left, "times"
            yield path(upper), path(left), right, "times"
        case upper, ast.BinOp(left=lower, op=ast.Div(), right=value):
            yield path(upper), path(lower), value, "over"
        case upper, ast.BinOp(left=lower, op=ast.FloorDiv(), right=value):
            yield path(upper), path(lower), value, "floor"


def _side(rule: Rule, comparison: ThresholdPair) -> str:
    """Return the side of the dropped numbers, ``below`` or ``above``; empty if it cannot be told."""
    if rule.ROLE is not Role.DROPS or comparison.turned is None or not comparison.is_by_size:
        return ""
    return "below" if (comparison.sign in ("<", "<=")) != comparison.turned else "above"


MOST_SCORES = 80
"""Scores that are counted; those with thresholds come first."""

CHARS = "document.chars"
"""The path of the length of a document; no set has it."""


class Place(ConfigStruct):
    """An attribute among the columns of documents.

    Attributes:
        set: place of the set among those that are joined.
        key: name of the field of the set's values.
        name: Name of the attribute in the mix.
    """

    set: int
    key: str
    name: str


class ScoreAt(ConfigStruct):
    """A number of each document, or the ratio of two.

    Attributes:
        place: Place of the attribute; none of the length of documents, and of numbers that a rule computes.
        over: path of the number that it is divided by, if it is a ratio.
        path: Path in expressions.
        rule: number of the rule that computes it, or takes it from the metadata; none of what sets have.
        set: name of the set.
        whole: True if it is always an integer.
        marks: thresholds.
        description: Description of the number.
    """

    place: Place | None
    path: str
    set: str
    whole: bool
    marks: list[MarkAt] = []
    description: str = ""
    over: str = ""
    rule: int | None = None

    @property
    def title(self) -> str:
        """Return the title: its path, or ``noise.noise / noise.chars``."""
        return f"{self.path} / {self.over}" if self.over else self.path


class SpansAt(ConfigStruct):
    """Spans of each document.

    Attributes:
        path: Path in expressions: the attribute, or a field of it.
        fields: Fields of the value, in which they are.
        personal: True if they are personal data.
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
    """The duplicates of documents.

    Attributes:
        near: True if the set says how similar they are.
        sized: True if the set says how many documents a cluster has.
    """

    place: Place
    set: str
    kind: str
    near: bool
    sized: str


class StreamFields(ConfigStruct):
    """The counts of the attributes of a stream.

    Attributes:
        tokens: Place of the number of tokens, if a joined set has it.
        lines: Place of labels of lines, if a joined set has them.
        edges: Place of the numbers of lines of header and footer, if a joined set has them.
    """

    scores: list[ScoreAt]
    spans: list[SpansAt]
    duplicates: list[DuplicatesAt]
    tokens: Place | None = None
    lines: Place | None = None
    edges: Place | None = None

    @property
    def keys(self) -> set[str]:
        """Return the attributes to count."""
        places = [self.tokens, *(score.place for score in self.scores)]
        places += [*(span.place for span in self.spans), *(duplicate.place for duplicate in self.duplicates)]
        return {place.name for place in places if place}

    @property
    def sample_keys(self) -> set[str]:
        """Return the attributes of samples."""
        places = [*(span.place for span in self.spans), *filter(None, [self.lines, self.edges])]
        return {place.name for place in places}


def fields_of(sets: Sequence[JoinedSet], rules: Sequence[Rule]) -> StreamFields:
    """Return the fields of some sets to count."""
    scores: list[ScoreAt] = []
    spans: list[SpansAt] = []
    duplicates: list[DuplicatesAt] = []
    tokens = lines = edges = None
    for place, joined, key in _keys(sets):
        type_ = key.declared
        inner = type_.not_null
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
            marks = [mark for i, rule in enumerate(rules) for mark in marks_of(i, rule, leaf.path)]
            if marks or not leaf.path.startswith("len("):
                of = _type_at(type_, leaf.path.removeprefix(key.name))
                description = of.description if of else ""
                whole = leaf.path.startswith("len(") or (of is not None and of.kind == "int")
                scores.append(ScoreAt(place, leaf.path, joined.set, whole, marks, description))
    by_path = {score.path: score for score in scores}
    by_path |= {leaf.path: _plain(place, joined, leaf) for place, joined, key in _keys(sets) for leaf in _scores(key)}
    if marks := [mark for i, rule in enumerate(rules) for mark in marks_of(i, rule, CHARS)]:
        scores.append(ScoreAt(None, CHARS, "", whole=True, marks=marks, description="Code points of the text."))
    by_path[CHARS] = ScoreAt(None, CHARS, "", whole=True)
    scores += ratios_of(rules, by_path)
    scores += _computed(rules, {*by_path, *(score.title for score in scores)})
    chosen = sorted(range(len(scores)), key=lambda i: (not scores[i].marks, i))[:MOST_SCORES]
    return StreamFields([scores[i] for i in sorted(chosen)], spans, duplicates, tokens, lines, edges)


def _spans(type_: Type) -> Iterator[list[str]]:
    """Yield the paths of spans in a value of a type: the names of fields, none if it is spans itself."""
    inner = type_.not_null
    if inner == SPANS:
        yield []
    for name, field in inner.fields:
        yield from ([name, *more] for more in _spans(field))


def _plain(place: Place, joined: JoinedSet, leaf: Leaf) -> ScoreAt:
    return ScoreAt(place, leaf.path, joined.set, whole=False)


def at_path(sets: Sequence[JoinedSet], path: str) -> tuple[Place, Leaf]:
    """Return place and getter of a number, by its path."""
    return next((place, leaf) for place, _, key in _keys(sets) for leaf in _scores(key) if leaf.path == path)


def _keys(sets: Sequence[JoinedSet]) -> Iterator[tuple[Place, JoinedSet, JoinedKey]]:
    for i, joined in enumerate(sets):
        for key in joined.keys:
            if not key.hidden:
                yield Place(i, schema.field_name(key.key), key.name), joined, key


def _scores(key: JoinedKey) -> list[Leaf]:
    """Return the numbers with one value for each document."""
    return [leaf for leaf in leaves(key.name, key.declared) if leaf.kind == "number" and "[]" not in leaf.path]


def _has(type_: Type | None, *fields: str) -> bool:
    return type_ is not None and all(type_.not_null.get(name) for name in fields)


def _type_at(type_: Type, path: str) -> Type | None:
    """Return the type of a part of a value, by its path. The path is the dotted one after the attribute's name."""
    description = type_.description
    for name in filter(None, path.split(".")):
        inner = type_.not_null
        result = inner.get(name)
        if result is None:
            return None
        type_, description = result, result.description
    inner = type_.not_null
    return schema.about(inner, description or inner.description)


def ratios_of(rules: Sequence[Rule], scores: Mapping[str, ScoreAt]) -> list[ScoreAt]:
    """Return the ratios in rules' thresholds: ``A < 0.6 * B``, ``A < B // 2``, ``A / B < 1``.

    Args:
        rules: Rules of a stream.
        scores: numbers that there are, by their paths.
    """
    results: dict[tuple[str, str], ScoreAt] = {}
    for i, rule in enumerate(rules):
        for upper, lower, mark in ratio_marks(i, rule, scores):
            first = scores[upper]
            about = f"{upper} by {lower}; null where that is 0."
            empty = ScoreAt(first.place, upper, first.set, whole=False, description=about, over=lower)
            before = results.get((upper, lower), empty)
            if mark not in before.marks:
                results[upper, lower] = msgspec.structs.replace(before, marks=[*before.marks, mark])
    return list(results.values())


def _computed(rules: Sequence[Rule], paths: set[str]) -> Iterator[ScoreAt]:
    """Yield the numbers of rules alone, with their thresholds."""
    first: dict[str, int] = {}
    for i, rule in enumerate(rules):
        for path in computed_of(rule, paths):
            first.setdefault(path, i)
    for path, number in first.items():
        marks = [mark for i, rule in enumerate(rules) for mark in marks_of(i, rule, path)]
        about = "As the rule computes it for each document."
        yield ScoreAt(None, path, "", whole=False, marks=marks, description=about, rule=number)
