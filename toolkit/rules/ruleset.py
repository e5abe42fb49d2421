"""Rules, checked against the types of attributes and compiled: what they decide, edit, set, and say about it."""

import contextlib
import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import msgspec

from toolkit import editing, schema, selectors
from toolkit.documents import Document, Span
from toolkit.editing import Edit, Edited
from toolkit.errors import ConfigError, DataError
from toolkit.expressions import (
    Expression,
    ExpressionError,
    Facts,
    Name,
    check,
    check_condition,
    compile_chain,
    compile_function,
    everything_known,
    paths_in,
)
from toolkit.rules.blocklist import Blocklist, Watch
from toolkit.rules.rule import Rule, is_per_line, parameter_type, sample_hash
from toolkit.schema import ANY, BOOL, INT, SPANS, STR, Type

T = TypeVar("T")

WHOLE = ""

LABEL = "label"
"""What the document's label is called in expressions."""

_LINE = Type("object", fields=(("number", INT), ("chars", INT)))


Outcome = int | tuple[int, ...]
"""A `Decision` in short: index of the rule that drops a document, or indexes of those that annotate it."""


@dataclass(frozen=True)
class Decision:
    """What the rules say of a document.

    Attributes:
        dropped: index of the rule that drops it, None if it stays.
        annotated: indexes of the rules that annotate it, if it stays.
    """

    dropped: int | None
    annotated: tuple[int, ...] = ()


class RuleSet:
    """Rules, checked and compiled.

    Args:
        rules: in order.
        names: what expressions may use.
        arguments: of the functions: the variables that the names' code refers to, the document last.
        label: the expression of a document's label, if that is known before it is encoded.
        folder: that of the label which the format gives, if that is known beforehand and is another.
        translates: whether patterns of other languages may be run as expressions of ours where they mean the same.

    Attributes:
        used: the attribute keys that the rules use.
        used_fields: the fields of their values that rules and label use; `WHOLE` where the value itself is used.
        label: gives the label of a document, None if that is not known beforehand.
        folder: gives the label of the format, likewise.
        label_names: the attribute keys that both use.
        known: what is known not to be null of a document that stays.
        edits: whether a rule changes text.
        fields: of the metadata that `set` rules give.
        used_by_fields: the attribute keys that their expressions use.
        applies: whether there is a rule for `applied`.
        reads_documents: whether a rule asks for more of the documents than attributes and row indexes tell.
        asks_source: whether a rule asks for the source of documents.
        joins: whether a rule asks for the whole document with its attributes.
        by_library: the patterns and selectors that are run by the library of their language.
        matched: for each blocklist, by index of its rule, the entries that documents matched.

    Raises:
        ConfigError: naming file and line of a rule that cannot be used.
    """

    def __init__(
        self,
        rules: Iterable[Rule],
        names: Mapping[str, Name],
        arguments: tuple[str, ...],
        label: str | None = None,
        folder: str | None = None,
        *,
        translates: bool = True,
    ) -> None:
        self.rules = list(rules)
        self.used: set[str] = set()
        self.used_fields: dict[str, set[str]] = {}
        self.used_by_fields: set[str] = set()
        self.known: Facts = frozenset()
        self.edits = any(rule.edits for rule in self.rules)
        self.joins = self.reads_documents = self.asks_source = False
        self.by_library: list[str] = []
        self._translates = translates
        self._by: dict[int, Callable[..., Any]] = {}
        self.matched: dict[int, set[int]] = {}
        self._attributes = dict(names)
        self._names = dict(names)
        self._arguments = arguments
        self._constants: dict[str, Any] = {}
        self._conditions: dict[int, str] = {}
        self._values: dict[int, Callable[..., Any]] = {}
        self._lists: dict[int, Callable[..., Any]] = {}
        self._holders: dict[int, Callable[..., Any]] = {}
        self._others: dict[int, Callable[..., Any]] = {}
        self._paths: dict[int, dict[str, Callable[..., Any]]] = {}
        self._blocklists: list[Watch] = []
        self._label_text = label or ""
        self.label_names: set[str] = set()
        self._tells_labels = False
        self.label = self._compiled_label(label) if label else None
        self.folder = self._label_function(self._checked_label(folder)) if folder and folder != label else self.label
        for i, rule in enumerate(self.rules):
            if not (rule.edits or rule.kind in ("set", "route")):
                self._decides(i, rule)
        # What is known when the others are applied is what all decisions leave.
        for i, rule in enumerate(self.rules):
            if rule.edits or rule.kind in ("set", "route"):
                self._applies(i, rule)
        kinds = [(i, rule.kind) for i, rule in enumerate(self.rules)]
        self._sets = [i for i, kind in kinds if kind == "set"]
        self._routes = [i for i, kind in kinds if kind == "route"]
        self.fields = {self.rules[i].field for i in self._sets}
        self._check_fields()
        self.applies = bool(self._sets or self._routes)
        chain = [
            (self._conditions[i], i, rule.drops)
            for i, rule in enumerate(self.rules)
            if i in self._conditions and (rule.drops or rule.kind == "annotate")
        ]
        self._chain = compile_chain(chain, arguments, self._constants)
        self._dropping = [Decision(i) for i in range(len(self.rules))]

    def start_over(self) -> None:
        """Forgets the documents that blocklists have matched."""
        for blocked in self._blocklists:
            blocked.start_over()

    # --- compiling ----------------------------------------------------------------------------------------------------

    def _compiled_label(self, text: str) -> Callable[..., str | None]:
        found = self._checked_label(text)
        self._label_code = found.code
        self._tells_labels = bool(found.names)
        self._names.setdefault(LABEL, Name(found.type, found.code))  # an attribute may be called so
        return self._label_function(found)

    def _checked_label(self, text: str) -> Expression:
        try:
            found = check(text, self._names)
        except ExpressionError as error:
            raise ConfigError(f"label: {error}") from None
        if found.type not in (STR, schema.nullable(STR), ANY):
            raise ConfigError(f"label: expected an expression that gives a text, got a value of type {found.type}")
        self.label_names.update(found.names)
        self._note_fields(text)
        self._note_documents(found, text)
        return found

    def _label_function(self, found: Expression) -> Callable[..., str | None]:
        function = compile_function(found.code, self._arguments)

        def label(*values: Any) -> str | None:
            try:
                value = function(*values)
            except Exception as error:
                raise DataError(f"the label `{found.text}` failed: {_describe(error)}") from None
            if not isinstance(value, str | None):
                raise DataError(f"expected a text or null as label, got {value!r}")
            return value

        return label

    def _check_fields(self) -> None:
        """Raises ConfigError if a `set` rule gives a field that another one gives a field inside of."""
        for i in self._sets:
            for outer in sorted(self.fields):
                if self.rules[i].field.startswith(f"{outer}."):
                    raise ConfigError(
                        f"{self.rules[i].place}: rule {self.rules[i].name!r}: expected fields beside each other, got "
                        f"{self.rules[i].field} inside {outer}, which a rule sets too"
                    )

    def _decides(self, i: int, rule: Rule) -> None:
        if rule.kind == "blocklist":
            self._constants[f"blocked_{i}"] = blocked = Watch(rule)
            self._blocklists.append(blocked)
            self.matched[i] = blocked.matched
            self.asks_source = True
            self.reads_documents = self.reads_documents or blocked.list.needs_url
            code = f"blocked_{i}({self._arguments[-1]})"
        elif rule.kind == "sample":
            code = self._sampled(i, rule)
        elif rule.syntax:
            code = " or ".join(self._matched(i, rule, n) for n in range(len(rule.patterns)))
            code = f"{'not ' if rule.kind == 'keep' else ''}({code})"
        else:
            condition = f"not ({rule.expression})" if rule.kind == "keep" else rule.expression
            found = self._condition(i, rule, f"({rule.when}) and ({condition})" if rule.when else condition)
            if rule.drops:
                self._learn(found.if_false)
            return
        if rule.when:
            self._condition(i, rule, rule.when)
            code = f"{self._conditions[i]} and {code}"
        self._conditions[i] = code

    def _matched(self, i: int, rule: Rule, n: int) -> str:
        """The code of whether a document matches a pattern: as an expression of ours if that is the same."""
        assert rule.syntax
        keys = {
            name: selectors.KeyInfo(each.present or each.type, each.present is not None)
            for name, each in self._attributes.items()
        }
        try:
            text = None
            if self._translates and not rule.strict:
                text = selectors.translate(rule.patterns[n], rule.syntax, keys)
            if text is not None:
                return f"({self._checked(i, rule, check_condition, text).code})"
            found = selectors.matcher(rule.patterns[n], rule.syntax, strict=rule.strict, exclude=rule.kind == "drop")
        except ConfigError as error:
            raise ConfigError(f"{rule.place}: rule {rule.name!r}: {error}") from None
        self._constants[f"matches_{i}_{n}"] = _OfJoined(found)
        self._needs_joined(rule.patterns[n])
        return f"matches_{i}_{n}({self._arguments[-1]})"

    def _needs_joined(self, pattern: str) -> None:
        self.joins = self.reads_documents = True
        self.by_library.append(pattern)

    def _sampled(self, i: int, rule: Rule) -> str:
        if rule.shares and not self._tells_labels:
            raise ConfigError(f"{rule.place}: rule {rule.name!r}: {_NO_LABEL}")
        self.asks_source = True
        limits = {label: share * 2**64 for label, share in rule.shares.items()}
        self._constants[f"falls_out_{i}"] = partial(_falls_out, rule.seed, limits, (rule.share or 0.0) * 2**64)
        label = self._label_code if rule.shares else "None"
        self.used |= self.label_names if rule.shares else set()
        return f"falls_out_{i}({self._arguments[-1]}, {label})"

    def _condition(self, i: int, rule: Rule, text: str) -> Expression:
        found = self._checked(i, rule, check_condition, text)
        self._conditions[i] = found.code if found.type == BOOL else f"truth({found.code})"
        return found

    def _learn(self, known: Facts) -> None:
        if self.label and LABEL not in self._attributes and known & {LABEL, self._label_text}:
            known = known | {LABEL, self._label_text}
        self.known = known

    def _applies(self, i: int, rule: Rule) -> None:
        if rule.when:
            self._condition(i, rule, rule.when)
        if rule.kind == "cut lines":
            self._cuts_lines(i, rule)
        elif rule.syntax:
            self._selects(i, rule)
        else:
            self._computes(i, rule)

    def _selects(self, i: int, rule: Rule) -> None:
        assert rule.syntax
        try:
            if rule.by.startswith("$"):
                self._by[i] = _OfJoined(selectors.selection(rule.by[1:], "jq"))
                self.joins = True
            key = selectors.selected_key(rule.expression, rule.syntax)
            if self._translates and key in self._attributes and self._attributes[key].type == SPANS:
                self._values[i] = compile_function(self._attributes[key].code, self._arguments)
                self.used.add(key)
                self.used_fields.setdefault(key, set()).add(WHOLE)
                return
            self._values[i] = _OfJoined(selectors.selection(rule.expression, rule.syntax))
        except ConfigError as error:
            raise ConfigError(f"{rule.place}: rule {rule.name!r}: {error}") from None
        self._needs_joined(rule.expression)

    def _computes(self, i: int, rule: Rule) -> None:
        names, arguments = self._names, self._arguments
        if rule.kind == "route":  # the label that the format gives, which may be another for each piece of a document
            names, arguments = {LABEL: Name(STR, "given_label"), **self._attributes}, (*arguments, "given_label")
        found = self._checked(i, rule, check, rule.expression, names)
        wanted = {"set": None, "route": (STR, "a text, the folder")}.get(
            rule.kind, (SPANS, "spans, a list of [start, end, score]")
        )
        if wanted and found.type not in (wanted[0], ANY):
            null = found.type == schema.nullable(wanted[0])
            raise ConfigError(
                f"{rule.place}: rule {rule.name!r}: expected {wanted[1]}, got "
                + ("a value that may be null; test it first" if null else f"a value of type {found.type}")
            )
        self._values[i] = compile_function(found.code, arguments, self._constants)
        if rule.kind == "set":
            self.used_by_fields |= {*found.names, *(self.label_names if LABEL in found.names else ())}

    def _cuts_lines(self, i: int, rule: Rule) -> None:
        per_line = {
            name: Name(found.type.item or ANY, f"{found.code}[i]") if is_per_line(found.type) else found
            for name, found in self._names.items()
        }
        per_line["line"] = Name(_LINE, "line")
        found = self._checked(i, rule, check_condition, rule.expression, per_line)
        self._values[i] = compile_function(found.code, (*self._arguments, "i", "line"), self._constants)
        lists = "".join(
            f"{self._names[name].code}, "
            for name in found.names
            if name in self._names and is_per_line(self._names[name].type)
        )
        self._lists[i] = compile_function(f"({lists})", self._arguments)

    def _checked(
        self,
        i: int,
        rule: Rule,
        how: Callable[[str, Mapping[str, Name], Facts], Expression],
        text: str,
        names: Mapping[str, Name] | None = None,
    ) -> Expression:
        names = self._names if names is None else names
        try:
            found = how(text, {**names, **self._parameters(i, rule)}, self.known)
        except ExpressionError as error:
            raise ConfigError(f"{rule.place}: rule {rule.name!r}: {error}") from None
        self._note(found, text)
        return found

    def _note(self, found: Expression, text: str) -> None:
        self.used.update(found.names)
        self._note_fields(text)
        if LABEL in found.names:
            self.used |= self.label_names
        self._note_documents(found, text)

    def _note_fields(self, text: str) -> None:
        for path in paths_in(text, self._attributes):
            name, _, fields = path.partition(".")
            self.used_fields.setdefault(name, set()).add(fields.partition(".")[0] or WHOLE)

    def _note_documents(self, found: Expression, text: str) -> None:
        if "document" in found.names:
            needed = paths_in(text, self._names)
            self.asks_source = self.asks_source or "document.source" in needed
            self.reads_documents = self.reads_documents or any(
                path == "document" or path.startswith("document.metadata") for path in needed
            )

    def _parameters(self, i: int, rule: Rule) -> dict[str, Name]:
        found = {}
        for name, values in rule.parameters.items():
            if name in self._names:
                raise ConfigError(
                    f"{rule.place}: rule {rule.name!r}: the parameter {name!r} is called as an attribute is"
                )
            if "" not in values:
                raise ConfigError(
                    f"{rule.place}: rule {rule.name!r}: expected a value of {name!r} for all other labels: "
                    f"`parameters: {{{name}: …}}`"
                )
            type_ = parameter_type(*values.values())
            if type_ == ANY:
                shown = {label or "all others": value for label, value in values.items()}
                raise ConfigError(f"{rule.place}: parameter {name!r}: expected values of one type, got {shown}")
            code = repr(values[""])
            if len(values) > 1:
                if not self._tells_labels:
                    raise ConfigError(f"{rule.place}: rule {rule.name!r}: parameter {name!r}: {_NO_LABEL}")
                self._constants[f"values_{i}_{name}"] = {k: v for k, v in values.items() if k}
                code = f"get(values_{i}_{name}, {self._label_code}, {code})"
                self.used |= self.label_names
            found[name] = Name(type_, code)
        return found

    # --- deciding -----------------------------------------------------------------------------------------------------

    def decide(self, *values: Any) -> Decision:
        """Applies the rules to the values of a document.

        Raises:
            DataError: if a rule meets a value that it cannot use (a division by zero, a missing element).
        """
        for blocked in self._blocklists:  # an entry has been seen also where an earlier rule drops the document
            blocked.look(values[-1])
        try:
            found = self._chain(*values)
        except Exception:
            return self._decide_slowly(values)
        if isinstance(found, int):
            return self._dropping[found]
        return Decision(None, found) if found else _STAYS

    def _decide_slowly(self, values: Sequence[Any]) -> Decision:
        """Rule by rule, so that the one that fails is named."""
        annotated: list[int] = []
        for i, rule in enumerate(self.rules):
            if (rule.drops or rule.kind == "annotate") and self._holds(i, values):
                if rule.drops:
                    return self._dropping[i]
                annotated.append(i)
        return Decision(None, tuple(annotated))

    def outcomes(self, columns: Sequence[Sequence[Any]]) -> list[Outcome]:
        """As `decide`, for many documents at once.

        Args:
            columns: for each argument its values.

        Raises:
            DataError: its line is that of the document among these, from 1.
        """
        if not self._blocklists:
            with contextlib.suppress(Exception):
                return list(map(self._chain, *columns))
        decisions = _of_each(self.decide, columns)
        return [each.annotated if each.dropped is None else each.dropped for each in decisions]

    def labels(self, columns: Sequence[Sequence[Any]]) -> Sequence[str | None]:
        """The labels of many documents, null where there is none; arguments as of `outcomes`."""
        return _of_each(self.label, columns) if self.label else [None] * len(columns[-1])

    def only_drop(self, dropped: int, *values: Any) -> bool:
        """Whether no other rule would drop a document that this rule drops, as the first.

        A rule behind it that cannot be evaluated, because it counts on what the rule has ruled out, would not.
        """
        if dropped not in self._others:
            others = [f"({self._conditions[i]})" for i in range(dropped + 1, len(self.rules)) if self.rules[i].drops]
            code = " or ".join(others) or "False"
            self._others[dropped] = compile_function(code, self._arguments, self._constants)
        try:
            return not self._others[dropped](*values)
        except Exception:
            return self._only_drops(dropped, values)

    def _only_drops(self, dropped: int, values: Sequence[Any]) -> bool:
        for i in range(dropped + 1, len(self.rules)):
            if self.rules[i].drops:
                with contextlib.suppress(Exception):
                    if self._holder(i)(*values):
                        return False
        return True

    def annotations(self, decision: Decision) -> list[str]:
        """What the `annotate` rules add, each once, in their order."""
        return list(dict.fromkeys(self.rules[i].annotation for i in decision.annotated))

    def applied(self, *values: Any) -> list[int]:
        """Indexes of the `set` rules that give a document that stays a field, and of the `route` rule that holds."""
        found = [i for i in self._sets if self._applies_to(i, values)]
        routes = (i for i in self._routes if self._applies_to(i, values))
        return [*found, *itertools.islice(routes, 1)]

    def route(self, applied: Iterable[int], label: str, *values: Any) -> str:
        """The output folder of a document, or piece of one, that the format gives this label."""
        for i in applied:
            if self.rules[i].kind == "route":
                found = self._value(i, (*values, label))
                if not isinstance(found, str):
                    rule = self.rules[i]
                    raise DataError(f"rule {rule.name!r} ({rule.place}): expected a text, the folder, got {found!r}")
                return found
        return label

    def set_fields(self, applied: Iterable[int], *values: Any) -> dict[str, Any]:
        """The fields of the metadata that `set` rules give, as JSON texts, nested where their names are dotted."""
        fields: dict[str, Any] = {}
        for i in applied:
            if self.rules[i].kind == "set":
                *path, last = self.rules[i].field.split(".")
                inside = fields
                for key in path:
                    inside = inside.setdefault(key, {})
                inside[last] = self._encoded(i, self._value(i, values))
        return fields

    def _encoded(self, i: int, value: Any) -> msgspec.Raw:
        try:
            return msgspec.Raw(msgspec.json.encode(value))
        except (TypeError, OverflowError) as error:
            rule = self.rules[i]
            raise DataError(f"rule {rule.name!r} ({rule.place}): expected a value for JSON, got: {error}") from None

    def _value(self, i: int, values: Sequence[Any]) -> Any:
        try:
            return self._values[i](*values)
        except Exception as error:
            raise self._failure(i, error) from None

    def _holder(self, i: int) -> Callable[..., Any]:
        if i not in self._holders:
            self._holders[i] = compile_function(self._conditions[i], self._arguments, self._constants)
        return self._holders[i]

    def _holds(self, i: int, values: Sequence[Any]) -> bool:
        try:
            return bool(self._holder(i)(*values))
        except Exception as error:
            raise self._failure(i, error) from None

    def _failure(self, i: int, error: Exception) -> DataError:
        rule = self.rules[i]
        return DataError(f"rule {rule.name!r} ({rule.place}) failed: {_describe(error)}")

    # --- showing ------------------------------------------------------------------------------------------------------

    def watched(self, i: int, *values: Any) -> dict[str, Any]:
        """The values that a rule sees in a document, by the text of the expression that has them."""
        if i not in self._paths:
            self._paths[i] = self._compiled_paths(i)
        found: dict[str, Any] = {}
        for path, function in self._paths[i].items():
            with contextlib.suppress(KeyError, IndexError, AttributeError, TypeError, ValueError):
                found[path] = function(*values)
        if self.rules[i].kind == "blocklist":
            found["entries"] = self._constants[f"blocked_{i}"].shown(values[-1])
        return found

    def _compiled_paths(self, i: int) -> dict[str, Callable[..., Any]]:
        rule = self.rules[i]
        names = {**self._names, **self._parameters(i, rule)}
        compiled: dict[str, Callable[..., Any]] = {}
        for text in ("" if rule.syntax else rule.expression, rule.when):
            for path in paths_in(text, names) if text else ():
                with contextlib.suppress(ExpressionError):
                    code = check(path, names, everything_known(path)).code
                    compiled[path] = compile_function(code, self._arguments, self._constants)
        return compiled

    def verdict(self, i: int, *values: Any) -> str:
        """What a rule says of a document that has come to it."""
        rule = self.rules[i]
        if rule.kind in ("set", "route"):
            if not self._applies_to(i, values):
                return f"{rule.kind}s nothing"
            return f"sets {rule.field}" if rule.kind == "set" else "routes it"
        if rule.edits and not self._applies_to(i, values):
            return "edits nothing"
        if rule.kind == "cut lines":
            return "edits lines, where it holds"
        if rule.edits:
            return f"edits {len(self.spans(i, *values))} spans"
        verb = "annotate" if rule.kind == "annotate" else "drop"
        return f"{verb}s it" if self._holds(i, values) else f"does not {verb} it"

    # --- editing ------------------------------------------------------------------------------------------------------

    def spans(self, i: int, *values: Any) -> list[Span]:
        """The spans of a document that a rule edits."""
        rule = self.rules[i]
        if not self._applies_to(i, values):
            return []
        found = self._value(i, values)
        try:
            spans = [span if isinstance(span, Span) else _span(span) for span in found or ()]
        except (TypeError, ValueError):
            raise DataError(
                f"rule {rule.name!r} ({rule.place}): expected spans, a list of [start, end, score], got {found!r}"
            ) from None
        low, high = rule.min_score, rule.max_score
        return [s for s in spans if (low is None or s.score >= low) and (high is None or s.score < high)]

    def edit(
        self, document: Document, *values: Any, overlaps: editing.Overlaps = "union"
    ) -> tuple[Edited | None, list[list[Edit]]]:
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
                spans = self.spans(i, *values)
                try:
                    by_rule[i] = editing.edits_of_spans(spans, self._replacement(i, values) if spans else "", text)
                except DataError as error:
                    raise DataError(f"rule {rule.name!r} ({rule.place}): {error.message}") from None
        everything = [edit for edits in by_rule for edit in edits]
        return (editing.apply(text, everything, overlaps) if everything else None), by_rule

    def _replacement(self, i: int, values: Sequence[Any]) -> str:
        if i not in self._by:
            return self.rules[i].by
        found = self._by[i](*values)
        if not isinstance(found, str):
            raise DataError(f"expected a text at {self.rules[i].by!r}, to replace spans by, got {found!r}")
        return found

    def preview_edits(self, *values: Any) -> list[tuple[int, int | None]]:
        """For each rule how many stretches it would edit, and their code points (None where only text could tell).

        Raises:
            DataError: if a rule for lines asks for more than attributes tell.
        """
        found: list[tuple[int, int | None]] = []
        for i, rule in enumerate(self.rules):
            if rule.kind == "cut lines":
                lists = self._lists[i](*values)
                lines = range(len(lists[0])) if lists and self._applies_to(i, values) else range(0)
                found.append((sum(self._line_holds(i, values, n, _UNKNOWN_LINE) for n in lines), None))
            elif rule.edits:
                spans = [span for span in self.spans(i, *values) if span.start < span.end]
                found.append((len(spans), sum(span.end - span.start for span in spans)))
            else:
                found.append((0, None))
        return found

    def _applies_to(self, i: int, values: Sequence[Any]) -> bool:
        return not self.rules[i].when or self._holds(i, values)

    def _lines_to_cut(self, i: int, document: Document, values: Sequence[Any]) -> list[int]:
        if not self._applies_to(i, values):
            return []
        for found in self._lists[i](*values):
            if len(found) != len(document.lines):
                rule, lines = self.rules[i], len(document.lines)
                raise DataError(
                    f"rule {rule.name!r} ({rule.place}): expected a value for each of {lines} lines, got {len(found)}"
                )
        return [
            number
            for number, line in enumerate(document.lines)
            if self._line_holds(i, values, number, _Line(number + 1, len(line)))
        ]

    def _line_holds(self, i: int, values: Sequence[Any], number: int, line: Any) -> bool:
        holds = self._value(i, (*values, number, line))
        if holds is not True and holds is not False:
            rule = self.rules[i]
            raise DataError(f"rule {rule.name!r} ({rule.place}): expected true or false, got {holds!r}")
        return holds

    # --- blocklists ---------------------------------------------------------------------------------------------------

    def blocklist(self, i: int) -> Blocklist:
        """The entries of a blocklist rule."""
        found: Watch = self._constants[f"blocked_{i}"]
        return found.list


_STAYS = Decision(None)
_NO_LABEL = (
    "expected labels that documents have by an attribute, this output has none; give `label: EXPRESSION` in `mix:`"
)


def _of_each(function: Callable[..., T], columns: Sequence[Sequence[Any]]) -> list[T]:
    """What a function gives for each document; the line of its error is that of the document, from 1."""
    found: list[T] = []
    for number, values in enumerate(zip(*columns, strict=True), 1):
        try:
            found.append(function(*values))
        except DataError as error:
            raise DataError(error.message, line=number, id=values[-1].id) from None
    return found


def _falls_out(seed: str, limits: Mapping[str, float], limit: float, document: Any, label: str | None) -> bool:
    if document.source is None:
        raise ValueError("expected rows with a source, which a sample is drawn by")
    if label is not None:
        limit = limits.get(label, limit)
    return sample_hash(seed, document.source, document.id) >= limit


def _span(value: Any) -> Span:
    start, end, score = value[:3]
    if not (type(start) is int and type(end) is int and type(score) in (int, float)):
        raise TypeError
    return Span(start, end, score)


class _OfJoined:
    """A function of the whole document with its attributes, as one of the document."""

    def __init__(self, function: Callable[[dict[str, Any]], Any]) -> None:
        self._function = function

    def __call__(self, *values: Any) -> Any:
        return self._function(values[-1].joined)


@dataclass(frozen=True, slots=True)
class _Line:
    """What expressions of `cut: lines` know of a line by itself; numbered from 1."""

    number: int
    chars: int


class _UnknownLine:
    def __getattr__(self, name: str) -> int:
        raise ValueError(f"line.{name} is known from the text only, which a dry run does not read")


_UNKNOWN_LINE = _UnknownLine()


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
