"""Rules: what a mix does with each document.

    rules:
      - {drop: language.label is None, name: unidentified}    # the first rule that drops a document gets the count
      - keep: language.label in ["en", "fr"]                  # drop: not (…)
      - {annotate: short_sentences, when: line_shape.short > line_shape.lines // 2}
      - {replace: emails, by: "|||EMAIL|||", min_score: 0.5}  # spans; {} is the original text, {tag} the rule's name
      - {cut: repeated}                                       # spans go
      - {cut: lines, when: line_language is None}             # lines go; here a list stands for its line's element
      - {sample: 0.1, when: language.label == "en"}           # a tenth stays, the same on every machine
      - include: shared.yaml                                  # a list of rules, or a configuration with mix.rules

Rules are evaluated in order, on the document's original values. Edits are applied together, after all decisions.
"""

import contextlib
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import msgspec
import xxhash

from toolkit import config, editing
from toolkit.config import ConfigStruct, Source
from toolkit.documents import Document, Span
from toolkit.editing import Edit, Edited
from toolkit.errors import ConfigError, DataError, did_you_mean
from toolkit.expressions import (
    Expression,
    ExpressionError,
    Facts,
    Name,
    check,
    check_condition,
    compile_function,
    everything_known,
    paths_in,
)
from toolkit.schema import ANY, INT, SPANS, Type

Kind = Literal["drop", "keep", "sample", "annotate", "replace", "cut", "cut lines"]

_OPTIONS: dict[str, tuple[str, ...]] = {
    "drop": ("name",),
    "keep": ("name",),
    "sample": ("when", "seed", "name"),
    "annotate": ("name", "when"),
    "replace": ("by", "min_score", "max_score", "when", "name"),
    "cut": ("min_score", "max_score", "when", "name"),
    "include": (),
}
"""The keys of a rule, by the one that says what it does."""

_LINE = Type("object", fields=(("number", INT), ("chars", INT)))


class Rule(ConfigStruct):
    """A rule as written.

    Attributes:
        kind: what it does.
        name: under which it is counted and shown.
        expression: when it does it; of an edit the spans, or the condition for lines.
        annotation: what an `annotate` rule adds to the document's annotations.
        by: what `replace` puts in the place of spans.
        when: condition on documents, of edits of spans and of samples.
        share: of the documents that a sample leaves.
        seed: of a sample.
        min_score, max_score: of spans that are edited, the first included, the second not.
        place: file and line, for messages.
    """

    kind: Kind
    name: str
    expression: str
    annotation: str = ""
    by: str = ""
    when: str = ""
    share: float | None = None
    seed: str = ""
    min_score: float | None = None
    max_score: float | None = None
    place: str = ""

    @property
    def edits(self) -> bool:
        """Whether it changes text."""
        return self.kind in ("replace", "cut", "cut lines")


def read_rules(source: Source, base: str = "") -> list[Rule]:
    """The rules of a list in a configuration, with those that it includes.

    Args:
        source: the list.
        base: folder that included paths are relative to.

    Raises:
        ConfigError: if a rule is not of a known form, or a name is used twice.
    """
    rules = _read(source, base, ())
    seen: dict[str, str] = {}
    for rule in rules:
        if rule.name in seen:
            raise ConfigError(
                f"{rule.place}: expected each rule under a name of its own, got {rule.name!r} also at "
                f"{seen[rule.name]}; give it a `name:`"
            )
        seen[rule.name] = rule.place
    return rules


def _read(source: Source, base: str, included: tuple[str, ...]) -> list[Rule]:
    if not isinstance(source.value, list):
        raise source.error((), "expected a list of rules")
    rules: list[Rule] = []
    for i in range(len(source.value)):
        place = source.at(i)
        value: dict[str, Any] = place.value
        if not isinstance(place.value, dict):
            raise place.error((), f"expected a rule such as `drop: EXPRESSION`, got {value!r}")
        kinds = [key for key in value if key in _OPTIONS]
        if len(kinds) != 1:
            known = {option for options in _OPTIONS.values() for option in options}
            unknown = [key for key in value if key not in _OPTIONS and key not in known]
            hint = did_you_mean(unknown[0], _OPTIONS) if unknown else ""
            raise place.error((), f"expected one of {', '.join(_OPTIONS)} in a rule, got {list(value)}{hint}")
        kind = kinds[0]
        for key, option in value.items():
            if key not in (kind, *_OPTIONS[kind]):
                hint = did_you_mean(key, _OPTIONS[kind]) or f"; known: {', '.join(_OPTIONS[kind]) or 'none'}"
                raise place.error((key,), f"unknown option {key!r} of the rule {kind!r}{hint}")
            number = key in ("min_score", "max_score", "sample")
            option = str(option) if key == "seed" and isinstance(option, int) else option
            if not isinstance(option, int | float if number else str) or isinstance(option, bool):
                wanted = "a number" if number else "a text; put an expression that YAML reads otherwise between quotes"
                raise place.error((key,), f"expected {wanted}, got {option!r}")
        rules += _include(place, value[kind], base, included) if kind == "include" else [_rule(kind, value, place)]
    return rules


def _rule(kind: str, value: dict[str, Any], place: Source) -> Rule:
    where = place.place(())
    if kind == "annotate":
        if "when" not in value:
            raise place.error((), "expected `when: EXPRESSION` beside annotate")
        name = value.get("name", value[kind])
        return Rule(kind="annotate", name=name, expression=value["when"], annotation=value[kind], place=where)
    if kind == "cut" and value[kind] == "lines":
        if "when" not in value or "min_score" in value or "max_score" in value:
            raise place.error((), "expected `cut: lines` with `when: EXPRESSION` and no scores")
        name = value.get("name", f"cut lines: {value['when']}")
        return Rule(kind="cut lines", name=name, expression=value["when"], place=where)
    if kind in ("replace", "cut"):
        return _span_rule("replace" if kind == "replace" else "cut", value, place)
    if kind == "sample":
        return _sample(value, place)
    negated = f"not ({value[kind]})" if kind == "keep" else value[kind]
    return Rule(
        kind="keep" if kind == "keep" else "drop", name=value.get("name", negated), expression=value[kind], place=where
    )


def _sample(value: dict[str, Any], place: Source) -> Rule:
    share = value["sample"]
    if not 0 <= share <= 1:
        raise place.error(("sample",), f"expected a share between 0 and 1, got {share!r}")
    when = value.get("when", "")
    name = value.get("name", f"sample {share}" + (f" of {when}" if when else ""))
    seed = str(value.get("seed", ""))
    return Rule(
        kind="sample", name=name, expression="", when=when, share=float(share), seed=seed, place=place.place(())
    )


def _span_rule(kind: Literal["replace", "cut"], value: dict[str, Any], place: Source) -> Rule:
    if kind == "replace" and "by" not in value:
        raise place.error((), "expected `by: TEXT` beside replace (or `cut:`)")
    name = value.get("name", value[kind])
    try:
        by = editing.check_replacement(value.get("by", "")).replace(editing.TAG, name)
    except ValueError as error:
        raise place.error(("by",), str(error)) from None
    return Rule(
        kind=kind,
        name=name,
        expression=value[kind],
        by=by,
        when=value.get("when", ""),
        min_score=value.get("min_score"),
        max_score=value.get("max_score"),
        place=place.place(()),
    )


def _include(place: Source, path: str, base: str, included: tuple[str, ...]) -> list[Rule]:
    found = next((p for p in (os.path.join(base, path), path) if os.path.isfile(p)), None)
    if found is None:
        raise place.error((), f"expected a file of rules, got nothing at {os.path.join(base, path)}")
    if os.path.abspath(found) in included:
        raise place.error((), f"expected includes that end, got {path} including itself")
    source = config.load(found)
    if isinstance(source.value, dict) and "mix" in source.value:
        source = source.at("mix")
    if isinstance(source.value, dict):
        if "rules" not in source.value:
            raise place.error((), f"expected rules in {found}, got none")
        source = source.at("rules")
    return _read(source, os.path.dirname(found), (*included, os.path.abspath(found)))


# --- checked and compiled ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Decision:
    """What the rules say of a document.

    Attributes:
        dropped: index of the rule that drops it, None if it stays.
        annotated: indexes of the rules that annotate it, if it stays.
    """

    dropped: int | None
    annotated: list[int]


class RuleSet:
    """Rules, checked and compiled.

    Args:
        rules: in order.
        names: what expressions may use.
        arguments: of the functions: the variables that the names' code refers to.

    Attributes:
        used: the attribute keys that the expressions use.
        known: what is known not to be null of a document that stays.
        edits: whether a rule changes text.

    Raises:
        ConfigError: naming file and line of a rule that cannot be used.
    """

    def __init__(self, rules: Iterable[Rule], names: Mapping[str, Name], arguments: tuple[str, ...]) -> None:
        self.rules = list(rules)
        self.used: set[str] = set()
        self.known: Facts = frozenset()
        self.edits = any(rule.edits for rule in self.rules)
        self._names = names
        self._arguments = arguments
        self._functions: dict[int, Callable[..., Any]] = {}
        self._spans: dict[int, Callable[..., Any]] = {}
        self._lists: dict[int, Callable[..., Any]] = {}
        self._paths: dict[int, dict[str, Callable[..., Any]]] = {}
        for i, rule in enumerate(self.rules):
            if not rule.edits:
                self._decides(i, rule)
        for i, rule in enumerate(self.rules):  # what is known when they are applied is what all decisions leave
            if rule.kind == "cut lines":
                self._cuts_lines(i, rule)
            elif rule.edits:
                self._edits_spans(i, rule)

    def _decides(self, i: int, rule: Rule) -> None:
        if rule.kind == "sample":
            self._samples(i, rule)
            return
        found = self._checked(rule, check_condition, rule.expression)
        if rule.kind == "drop":
            self.known = found.if_false
        elif rule.kind == "keep":
            self.known = found.if_true
        code = f"not {found.code}" if rule.kind == "keep" else found.code
        self._functions[i] = compile_function(code, self._arguments)

    def _samples(self, i: int, rule: Rule) -> None:
        code = self._checked(rule, check_condition, rule.when).code if rule.when else "True"
        condition = compile_function(code, self._arguments)
        limit = (rule.share or 0.0) * 2**64

        def falls_out(*values: Any) -> bool:
            document = values[-1]
            if document.source is None:
                raise ValueError("expected rows with a source, which a sample is drawn by")
            return bool(condition(*values)) and sample_hash(rule.seed, document.source, document.id) >= limit

        self._functions[i] = falls_out

    def _edits_spans(self, i: int, rule: Rule) -> None:
        if rule.when:
            found = self._checked(rule, check_condition, rule.when)
            self._functions[i] = compile_function(found.code, self._arguments)
        found = self._checked(rule, check, rule.expression)
        if found.type not in (SPANS, ANY):
            raise ConfigError(
                f"{rule.place}: rule {rule.name!r}: expected spans, a list of [start, end, score], "
                f"got a value of type {found.type}"
            )
        self._spans[i] = compile_function(found.code, self._arguments)

    def _cuts_lines(self, i: int, rule: Rule) -> None:
        per_line = {
            name: Name(found.type.item or ANY, f"{found.code}[i]") if is_per_line(found.type) else found
            for name, found in self._names.items()
        }
        per_line["line"] = Name(_LINE, "line")
        found = self._checked(rule, check_condition, rule.expression, per_line)
        self._functions[i] = compile_function(found.code, (*self._arguments, "i", "line"))
        lists = "".join(
            f"{self._names[name].code}, "
            for name in found.names
            if name != "line" and is_per_line(self._names[name].type)
        )
        self._lists[i] = compile_function(f"({lists})", self._arguments)

    def _checked(
        self,
        rule: Rule,
        how: Callable[[str, Mapping[str, Name], Facts], Expression],
        text: str,
        names: Mapping[str, Name] | None = None,
    ) -> Expression:
        try:
            found = how(text, names or self._names, self.known)
        except ExpressionError as error:
            raise ConfigError(f"{rule.place}: rule {rule.name!r}: {error}") from None
        self.used.update(found.names)
        return found

    def decide(self, *values: Any) -> Decision:
        """Applies the rules to the values of a document.

        Raises:
            DataError: if a rule meets a value that it cannot use (a division by zero, a missing element).
        """
        annotated: list[int] = []
        for i, rule in enumerate(self.rules):
            if not rule.edits and self._holds(i, values):
                if rule.kind != "annotate":
                    return Decision(i, [])
                annotated.append(i)
        return Decision(None, annotated)

    def only_drop(self, decision: Decision, *values: Any) -> bool:
        """Whether no other rule would drop a document that this decision drops.

        A rule behind it that cannot be evaluated, because it counts on what the decision's rule has ruled out, would
        not.
        """
        for i in range((decision.dropped or 0) + 1, len(self.rules)):
            if self.rules[i].kind in ("drop", "keep", "sample"):
                try:
                    if self._holds(i, values):
                        return False
                except DataError:
                    continue
        return True

    def annotations(self, decision: Decision) -> list[str]:
        """What the `annotate` rules add, each once, in their order."""
        return list(dict.fromkeys(self.rules[i].annotation for i in decision.annotated))

    def watched(self, i: int, *values: Any) -> dict[str, Any]:
        """The values that a rule sees in a document, by the text of the expression that has them."""
        if i not in self._paths:
            self._paths[i] = self._compiled_paths(self.rules[i])
        found: dict[str, Any] = {}
        for path, function in self._paths[i].items():
            with contextlib.suppress(KeyError, IndexError, AttributeError, TypeError):
                found[path] = function(*values)
        return found

    def _compiled_paths(self, rule: Rule) -> dict[str, Callable[..., Any]]:
        compiled: dict[str, Callable[..., Any]] = {}
        for text in (rule.expression, rule.when):
            for path in paths_in(text, self._names) if text else ():
                with contextlib.suppress(ExpressionError):
                    code = check(path, self._names, everything_known(path)).code
                    compiled[path] = compile_function(code, self._arguments)
        return compiled

    def verdict(self, i: int, *values: Any) -> str:
        """What a rule says of a document that has come to it."""
        rule = self.rules[i]
        if rule.kind == "cut lines" or (rule.edits and rule.when and not self._holds(i, values)):
            return "edits lines, where it holds" if rule.kind == "cut lines" else "edits nothing"
        if rule.edits:
            return f"edits {len(self.spans(i, *values))} spans"
        verb = "annotate" if rule.kind == "annotate" else "drop"
        return f"{verb}s it" if self._holds(i, values) else f"does not {verb} it"

    def spans(self, i: int, *values: Any) -> list[Span]:
        """The spans of a document that a rule edits."""
        rule = self.rules[i]
        if rule.when and not self._holds(i, values):
            return []
        try:
            found = self._spans[i](*values)
            spans = [span if isinstance(span, Span) else Span(*span) for span in found]
        except Exception as error:
            raise DataError(f"rule {rule.name!r} ({rule.place}) failed: {_describe(error)}") from None
        low, high = rule.min_score, rule.max_score
        return [s for s in spans if (low is None or s.score >= low) and (high is None or s.score < high)]

    def edit(self, document: Document, *values: Any) -> tuple[Edited | None, list[list[Edit]]]:
        """The document's text after all edits (None if there are none), and the edits of each rule.

        Raises:
            DataError: if a span is out of range, or a list has not one element for each line.
        """
        by_rule: list[list[Edit]] = [[] for _ in self.rules]
        text = document.text
        for i, rule in enumerate(self.rules):
            if rule.kind == "cut lines":
                by_rule[i] = editing.edits_of_lines(self._lines_to_cut(i, document, values), text)
            elif rule.edits:
                try:
                    by_rule[i] = editing.edits_of_spans(self.spans(i, *values), rule.by, text)
                except DataError as error:
                    raise DataError(f"rule {rule.name!r} ({rule.place}): {error.message}") from None
        everything = [edit for edits in by_rule for edit in edits]
        return (editing.apply(text, everything) if everything else None), by_rule

    def preview_edits(self, *values: Any) -> list[tuple[int, int | None]]:
        """For each rule how many stretches it would edit, and their code points (None where only text could tell).

        Raises:
            DataError: if a rule for lines asks for more than attributes tell.
        """
        found: list[tuple[int, int | None]] = []
        for i, rule in enumerate(self.rules):
            if rule.kind == "cut lines":
                lists = self._lists[i](*values)
                lines = range(len(lists[0])) if lists else range(0)
                found.append((sum(self._holds(i, (*values, n, _UNKNOWN_LINE)) for n in lines), None))
            elif rule.edits:
                spans = [span for span in self.spans(i, *values) if span.start < span.end]
                found.append((len(spans), sum(span.end - span.start for span in spans)))
            else:
                found.append((0, None))
        return found

    def _lines_to_cut(self, i: int, document: Document, values: Sequence[Any]) -> list[int]:
        for found in self._lists[i](*values):
            if len(found) != len(document.lines):
                rule, lines = self.rules[i], len(document.lines)
                raise DataError(
                    f"rule {rule.name!r} ({rule.place}): expected a value for each of {lines} lines, got {len(found)}"
                )
        return [
            number
            for number, line in enumerate(document.lines)
            if self._holds(i, (*values, number, _Line(number + 1, len(line))))
        ]

    def _holds(self, i: int, values: Sequence[Any]) -> bool:
        rule = self.rules[i]
        try:
            holds = self._functions[i](*values)
        except Exception as error:
            raise DataError(f"rule {rule.name!r} ({rule.place}) failed: {_describe(error)}") from None
        if holds is not True and holds is not False:
            raise DataError(f"rule {rule.name!r} ({rule.place}): expected true or false, got {holds!r}")
        return holds


@dataclass(frozen=True, slots=True)
class _Line:
    """What expressions of `cut: lines` know of a line by itself; numbered from 1."""

    number: int
    chars: int


class _UnknownLine:
    def __getattr__(self, name: str) -> int:
        raise ValueError(f"line.{name} is known from the text only, which a dry run does not read")


_UNKNOWN_LINE = _UnknownLine()


def sample_hash(seed: str, source: str, id: str) -> int:
    """xxh3-64 of seed, source and id, joined by NUL bytes; a document stays in a sample of p below p x 2^64."""
    return xxhash.xxh3_64_intdigest(f"{seed}\0{source}\0{id}".encode())


def is_per_line(type_: Type) -> bool:
    """Whether an attribute of this type has a value for each line: any list but spans."""
    return type_.kind == "list" and type_ != SPANS


def _describe(error: Exception) -> str:
    if isinstance(error, KeyError):
        return f"expected the key {error}, got a map without it; use get(map, key, default)"
    if isinstance(error, IndexError):
        return "expected an element, got a list that is too short"
    return f"{type(error).__name__}: {error}"


def settings(rules: Iterable[Rule]) -> list[dict[str, Any]]:
    """The rules as they are recorded: without the places where they were written."""
    return [
        {key: value for key, value in msgspec.to_builtins(rule).items() if key != "place" and value} for rule in rules
    ]
