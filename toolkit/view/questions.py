"""Questions over a dataset: expressions as rules have them, and conditions on keys, checked and asked of attributes."""

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import msgspec

from toolkit.config.settings import ConfigNode
from toolkit.data.document_fields import METADATA, OwnTypes
from toolkit.errors import ConfigError, DataError, did_you_mean, errors_from
from toolkit.mix.join import JoinedDataset, JoinedSet, inputs_of
from toolkit.mix.rule_effects.preview import blocks
from toolkit.rules import checker, compiling, expression_tree, expressions, rules_yaml, ruleset
from toolkit.rules.rule import LABEL, Compiler, Rule
from toolkit.source import Resolved
from toolkit.view.corpus import Scanned, Stop
from toolkit.whole_corpus.expressions import names_of, reference

FILTER = "filter"

Parameters = dict[str, dict[str, Any]]
"""Values by name and label, as rules have them."""


class MixNames(msgspec.Struct, frozen=True):
    """Additional names of a mix for conditions.

    Attributes:
        sets: Sets that it joins: they are meant where others have the same keys.
        label: the expression of its label; empty without.
        rules: Rules whose parameters conditions may use.
        names: Other names of keys in the mix, by their own names.
    """

    sets: Sequence[str] = ()
    label: str = ""
    rules: Sequence[Rule] = ()
    names: Mapping[str, str] = {}

    def parameters_of(self, text: str) -> Parameters:
        """Return the parameters of a condition: those of the rule that it is, or of the first that has them."""
        mine = sorted(self.rules, key=lambda rule: text.strip() not in map(str.strip, rule.expressions))
        values_by_name = {name: values for rule in reversed(mine) for name, values in rule.parameters.items()}
        return {name: values_by_name[name] for name in sorted(expressions.keys_in(text)) if name in values_by_name}

    def names_in(self, text: str) -> set[str]:
        """Return the names of a condition beside keys: parameters, and that of the label."""
        return {*self.parameters_of(text), *([LABEL] if self.label else [])}

    def asks_label(self, text: str) -> bool:
        """Return True if a condition depends on the label."""
        try:
            keys, parameters = expressions.keys_in(text), self.parameters_of(text)
        except expression_tree.ExpressionError:  # which is told by who reads it
            return False
        return bool(self.label) and (LABEL in keys or any(len(values) > 1 for values in parameters.values()))

    def renamed(self, key: str) -> str:
        """Return the advice for a renamed key; empty for others."""
        return f"; the mix calls it {self.names[key]!r}" if key in self.names else ""


def condition_of(
    text: str,
    names: Mapping[str, checker.Name],
    arguments: tuple[str, ...] = (),
    label: str | None = None,
    parameters: Parameters | None = None,
) -> str:
    """Return a condition, checked; false where a value is null that it would compare.

    A rule counts on the rules before it, which drop documents without such values; here they are not found.

    Args:
        text: the condition.
        names: Available names.
        arguments: Arguments that their code refers to.
        label: the expression of the label, if it may use that.
        parameters: Parameters that it may use.

    Raises:
        ConfigError: if it is none.
    """
    if label or parameters:
        compiler = Compiler(names, arguments, translates=False)
        if label:
            compiler.label(label)
        (rule,) = rules_yaml.read_rules(ConfigNode([{"keep": "True", "name": FILTER}], FILTER))
        names = compiler.names_for(msgspec.structs.replace(rule, parameters=parameters or {}))
    with errors_from(FILTER, of=expression_tree.ExpressionError):
        parts = _nullable_paths(text, names)
        expressions.check_condition(text, names, frozenset(parts))
    with suppress(expression_tree.ExpressionError):
        expressions.check_condition(text, names)
        return text
    return " and ".join([*(f"{part} is not None" for part in parts), f"({text})"])


def _nullable_paths(text: str, names: Mapping[str, checker.Name]) -> list[str]:
    """Return the attributes of a condition, with parts, without null tests."""
    tested = {
        ast.unparse(node.left)
        for node in ast.walk(expression_tree.parse(text))
        if isinstance(node, ast.Compare) and any(isinstance(op, ast.Is | ast.IsNot) for op in node.ops)
    }
    parts: dict[str, None] = {}
    for path in expressions.paths_in(text, names):
        split = path.split(".")
        parts |= dict.fromkeys(".".join(split[: i + 1]) for i in range(len(split)))
    return [part for part in parts if part not in tested]


SORT = "sort"

_TOLD = {"document.id", "document.source", "document.chars"}
"""Fields of documents that attributes and row indexes have."""


class DatasetQuery(NamedTuple):
    """Query: the condition, the expression for scores, and the sets that are on."""

    where: str
    sort: str
    first: Sequence[str]


class DatasetQuestion:
    """A question over a dataset.

    Args:
        resolved: the shards, and the sets that there are.
        own: types of the documents' own fields.
        max_bytes: a longer row is an error.
        wanted: Query to answer.
        mix: Mix whose rules may be asked as they are written.
    """

    def __init__(
        self, resolved: Resolved, own: OwnTypes | None, max_bytes: int, *, query: DatasetQuery, mix: MixNames
    ) -> None:
        where, sort, first = query
        joined = {result.set: result for result in resolved.sets}
        self._label = mix.label if where and mix.asks_label(where) else None
        named: dict[str, bool] = {}  # whether by a key
        for label, text in ((FILTER, where), (FILTER, self._label or ""), (SORT, sort)):
            for name, by_key in _sets_read(label, text, joined, first, mix).items():
                named[name] = named.get(name, False) or by_key
        if not named:  # which tells ids, so that no text is read
            named = dict.fromkeys(list(first or joined)[:1], False)
        self._sets = _rename_clashes([joined[name] for name in named], named)
        self._names = names_of(self._sets, own)
        self._arguments = (*(f"r{i}" for i in range(len(self._sets))), "document")
        condition = self._resolved(FILTER, where)
        self._filter: list[Rule] = []
        if condition:
            parameters = mix.parameters_of(condition)
            condition = condition_of(condition, self._names, self._arguments, self._label, parameters)
            (rule,) = rules_yaml.read_rules(ConfigNode([{"keep": condition, "name": FILTER}], FILTER))
            self._filter = [msgspec.structs.replace(rule, parameters=parameters)]
        stream = msgspec.structs.replace(JoinedDataset.over(resolved.stream.dataset), own=own)
        self._rows, self._max = Resolved(stream, resolved.shards, self._sets), max_bytes
        self._sort_text, self._sort, self._score = sort, None, None
        if sort:
            self._sort = score_of(self._resolved(SORT, sort), sort, self._names)
            self._score = compiling.compile_function(self._sort.code, self._arguments)
        self.reads_documents = self._rules().needs.documents or not self._sets

    def _resolved(self, label: str, text: str) -> str:
        """Return an expression, resolved from ``SET.KEY[.field]``."""
        with errors_from(label, of=expression_tree.ExpressionError):
            return (reference(text, self._sets, self._names) or text) if text else ""

    def _rules(self) -> ruleset.RuleSet:
        rules = ruleset.RuleSet(self._filter, self._names, self._arguments, self._label)
        needs = rules.needs
        needs.source = True  # or a document of another file might be taken for one of this
        if self._sort:
            for name in self._sort.names:
                needs.fields.pop(name, None)  # all of it
            needs.keys.update(self._sort.names)
            paths = {
                path
                for path in expressions.paths_in(self._sort.text, self._names)
                if path.partition(".")[0] == "document"
            }
            needs.documents |= METADATA in self._sort.names or not paths <= _TOLD
        return rules

    def scan(self, shard: int, stop: Stop) -> Iterator[Scanned]:
        work = self._rows.joined_to(self._rows.shards[shard], self._max)
        inputs_of(work)
        first = 0
        for block in blocks(work, self._rules(), stop.computing):
            fitting = [i for i, outcome in enumerate(block.outcomes) if not isinstance(outcome, int)]
            with stop.computing():
                scores = self._scores(block.columns, fitting) if self._score else []
            yield Scanned(len(block.outcomes), [first + i for i in fitting], scores)
            first += len(block.outcomes)

    def _scores(self, columns: list[list[Any]], fitting: Sequence[int]) -> list[float | None]:
        assert self._score is not None
        return [score(self._score, [column[i] for column in columns], self._sort_text) for i in fitting]


def score(function: Callable[..., Any], values: Sequence[Any], text: str) -> float | None:
    """Return the score of a document by a compiled expression; None where it is null, or divides by zero.

    Raises:
        DataError: if it cannot be computed of these values, or is no number.
    """
    try:
        result = expressions.ask(function, values, f"{SORT}: `{text}`")
    except DataError as error:
        if isinstance(error.__context__, ZeroDivisionError):  # a share of nothing is no number
            return None
        raise
    if result is None or isinstance(result, float):
        return result
    if isinstance(result, int) and not isinstance(result, bool):
        with suppress(OverflowError):
            return float(result)
        raise ConfigError(f"{SORT}: `{text}`: expected a number below 1e308, got a larger one")
    raise ConfigError(f"{SORT}: `{text}`: expected a number, or null, got {result!r}")


def score_of(expression: str, text: str, names: Mapping[str, checker.Name]) -> expressions.Expression:
    """Return a checked expression for scores.

    Args:
        expression: Expression of them.
        text: Text of the user.
        names: Available names.

    Raises:
        ConfigError: if it gives something else.
    """
    with errors_from(SORT, of=expression_tree.ExpressionError):
        result = expressions.check(expression, names)
    inner = result.type.not_null
    if inner.kind not in ("int", "float", "any", "null"):
        raise ConfigError(f"{SORT}: expected a number, or null, got a value of type {result.type}: {text}")
    return result


def _sets_read(
    label: str, text: str, joined: Mapping[str, JoinedSet], first: Sequence[str], mix: MixNames
) -> dict[str, bool]:
    """Return the sets of an expression, with True if by a key; else it is ``SET.KEY`` as a whole.

    Raises:
        ConfigError: if it is none, or has a name that is in no set.
    """
    if not text:
        return {}
    keys_by_set = {name: [key.name for key in item.keys] for name, item in joined.items()}
    here = {name: keys for name, keys in keys_by_set.items() if name in first}
    other_sets = {name: keys for name, keys in keys_by_set.items() if name not in first}
    try:
        mix_sets = {name: here[name] for name in mix.sets if name in here}
        from_mix = {} if expressions.is_reference(text, keys_by_set) else _of_mix(text, mix_sets)
        results = expressions.sets_read(text, from_mix, here, lambda: other_sets)
        if None in results.values():
            return dict.fromkeys(results, False)
        keys = {key for item in keys_by_set.values() for key in item}
        unknown = sorted(expressions.keys_in(text) - keys - {METADATA} - mix.names_in(text))
        if unknown:
            hint = did_you_mean(unknown[0], sorted(keys)) or f"; there are: {', '.join(sorted(keys)) or 'none'}"
            raise ConfigError(f"{label}: expected a key of a set, got {unknown[0]!r}{mix.renamed(unknown[0]) or hint}")
        return dict.fromkeys([*from_mix, *results], True)
    except expression_tree.ExpressionError as error:
        message = str(error).replace("say which: `attributes: [SET]`", "switch on the one that is meant, and no other")
        named = next((f"{name}." for name in joined if "-" in name and f"{name}." in text), None)
        if named:
            message += f"; `{named}KEY.field` must stand alone: in an expression write the key without the set"
        raise ConfigError(f"{label}: {message}") from None


def _of_mix(text: str, sets: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """Return the keys of an expression by set, if unambiguous."""
    results: dict[str, list[str]] = {}
    with suppress(expression_tree.ExpressionError):  # which is told by who reads it
        for key in sorted(expressions.keys_in(text)):
            owners = [name for name, keys in sets.items() if key in keys]
            if len(owners) == 1:
                results.setdefault(owners[0], []).append(key)
    return results


def _rename_clashes(sets: Sequence[JoinedSet], by_key: Mapping[str, bool]) -> list[JoinedSet]:
    """Return sets without keys of one name: those of sets that no key stands for, but ``SET.KEY``, get others."""
    names = {key.name for item in sets if by_key[item.set] for key in item.keys}
    results = []
    for i, item in enumerate(sets):
        keys = item.keys
        if not by_key[item.set]:
            keys = [
                msgspec.structs.replace(key, name=f"{key.name}_of_{i}") if key.name in names else key for key in keys
            ]
            names |= {key.name for key in keys}
        results.append(msgspec.structs.replace(item, keys=keys))
    return results
