"""What a report says of the attributes that a stream joins: scores with their thresholds, spans, tokens, duplicates."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from toolkit.config.settings import ConfigStruct
from toolkit.data import schema
from toolkit.data.schema import SPANS, Type
from toolkit.inspect.stats.distributions import Leaf, leaves
from toolkit.mix.joined_sets import JoinedSet, Key
from toolkit.report.marks import MarkAt, computed_of, marks_of, ratio_marks
from toolkit.rules import Rule
from toolkit.tag.tagger import says

MOST_SCORES = 80
"""Scores that are counted; those with thresholds come first."""

CHARS = "document.chars"
"""The path of the length of a document; no set has it."""


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


class ScoreAt(ConfigStruct):
    """A number of each document, or the ratio of two.

    Attributes:
        place: of the attribute; none of the length of documents, and of what a rule computes.
        over: path of the number that it is divided by, if it is a ratio.
        path: as expressions name it.
        rule: number of the rule that computes it, or takes it from the metadata; none of what sets have.
        set: name of the set.
        whole: whether it is always an integer.
        marks: thresholds.
        description: what it is.
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
        places = [self.tokens, *(each.place for each in self.scores)]
        places += [*(each.place for each in self.spans), *(each.place for each in self.duplicates)]
        return {place.name for place in places if place}

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
                said = of.description if of else ""
                whole = leaf.path.startswith("len(") or (of is not None and of.kind == "int")
                scores.append(ScoreAt(place, leaf.path, joined.set, whole, marks, said))
    by_path = {score.path: score for score in scores}
    by_path |= {leaf.path: _plain(place, joined, leaf) for place, joined, key in _keys(sets) for leaf in _scores(key)}
    if marks := [mark for i, rule in enumerate(rules) for mark in marks_of(i, rule, CHARS)]:
        scores.append(ScoreAt(None, CHARS, "", whole=True, marks=marks, description="Code points of the text."))
    by_path[CHARS] = ScoreAt(None, CHARS, "", whole=True)
    scores += ratios_of(rules, by_path)
    scores += _computed(rules, {*by_path, *(score.title for score in scores)})
    chosen = sorted(range(len(scores)), key=lambda i: (not scores[i].marks, i))[:MOST_SCORES]
    return Fields([scores[i] for i in sorted(chosen)], spans, duplicates, tokens, lines, edges)


def _spans(type_: Type) -> Iterator[list[str]]:
    """Yield where spans are in a value of a type: the names of fields, none if it is spans itself."""
    inner = type_.not_null
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
    return type_ is not None and all(type_.not_null.get(name) for name in fields)


def _type_at(type_: Type, path: str) -> Type | None:
    """Return the type of a part of a value, by the dotted path behind the attribute's name."""
    said = type_.description
    for name in filter(None, path.split(".")):
        inner = type_.not_null
        found = inner.get(name)
        if found is None:
            return None
        type_, said = found, found.description
    inner = type_.not_null
    return schema.about(inner, said or inner.description)


def ratios_of(rules: Sequence[Rule], known: Mapping[str, ScoreAt]) -> list[ScoreAt]:
    """Return the ratios of two numbers that rules have thresholds for: ``A < 0.6 * B``, ``A < B // 2``, ``A / B < 1``.

    Args:
        rules: of a stream.
        known: numbers that there are, by their paths.
    """
    found: dict[tuple[str, str], ScoreAt] = {}
    for i, rule in enumerate(rules):
        for upper, lower, mark in ratio_marks(i, rule, known):
            first = known[upper]
            about = f"{upper} by {lower}; null where that is 0."
            empty = ScoreAt(first.place, upper, first.set, whole=False, description=about, over=lower)
            before = found.get((upper, lower), empty)
            if mark not in before.marks:
                found[upper, lower] = msgspec.structs.replace(before, marks=[*before.marks, mark])
    return list(found.values())


def _computed(rules: Sequence[Rule], known: set[str]) -> Iterator[ScoreAt]:
    """Yield the numbers that rules compute, or take from the metadata, and have thresholds for."""
    first: dict[str, int] = {}
    for i, rule in enumerate(rules):
        for path in computed_of(rule, known):
            first.setdefault(path, i)
    for path, number in first.items():
        marks = [mark for i, rule in enumerate(rules) for mark in marks_of(i, rule, path)]
        about = "As the rule computes it for each document."
        yield ScoreAt(None, path, "", whole=False, marks=marks, description=about, rule=number)
