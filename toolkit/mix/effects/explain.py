"""Explains why a mix keeps or drops a document: its values, and each rule in turn."""

from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any

import msgspec

from toolkit.config.settings import ConfigStruct
from toolkit.data.documents import Document
from toolkit.errors import DataError, short
from toolkit.mix.join import ShardToMix, at_document, inputs_of, joint_rows
from toolkit.rules import RuleSet
from toolkit.runs.executors import Report

VALUE_CHARS = 200


class Target(ConfigStruct):
    """The documents of a shard to explain: those with an id, or so many that each rule does something to."""

    work: ShardToMix
    id: str | None = None
    samples: int = 0


class RuleStep(ConfigStruct):
    """A rule as it meets a document.

    Attributes:
        rule: its name.
        verdict: in words.
        values: what it sees, as plain data.
    """

    rule: str
    verdict: str
    values: dict[str, Any]


class Explanation(ConfigStruct):
    """One document.

    Attributes:
        place: ``shard:row``.
        dropped: name of the rule that drops it, None if it stays.
        deciding: index of the rule that it is a sample for.
    """

    place: str
    id: str
    source: str
    chars: int
    dropped: str | None
    deciding: int
    steps: list[RuleStep]


def explain_shard(target: Target, report: Report) -> list[Explanation]:
    """Return the explanations that a shard has to give.

    Raises:
        DataError: as a mix of it would.
    """
    work = target.work
    inputs_of(work)
    rules = work.compile_rules()
    needs = rules.needs
    found: list[Explanation] = []
    left = [target.samples] * len(rules.rules)
    with ExitStack() as stack:
        for document, number, _, values in joint_rows(work, stack, needs.keys, needs.fields, joined=needs.joined):
            report(1, 0)
            try:
                if target.id is None:
                    deciding = [i for i in _concerned(rules, document, [*values, document]) if left[i]]
                else:
                    deciding = [-1] if document.id == target.id else []
                found += [_explain(work, rules, document, number, [*values, document], i) for i in deciding]
            except DataError as error:
                raise at_document(error, work, number, document.id) from None
            for i in deciding if target.id is None else ():
                left[i] -= 1
            if target.id is None and not any(left):
                break
    return found


def _concerned(rules: RuleSet, document: Document, values: list[Any]) -> list[int]:
    """Return the indexes of the rules that do something to a document."""
    outcome = rules.decide(*values)
    if isinstance(outcome, int):
        return [outcome]
    edits = rules.edit(document, *values)[1] if rules.edits else []
    applied = rules.applied(*values) if rules.applies else []
    return sorted({*outcome, *applied, *(i for i, found in enumerate(edits) if found)})


def _explain(
    work: ShardToMix, rules: RuleSet, document: Document, number: int, values: list[Any], deciding: int
) -> Explanation:
    outcome = rules.decide(*values)
    last = outcome if isinstance(outcome, int) else len(rules.rules)
    steps = []
    for i, each in enumerate(rules.compiled):
        verdict = each.verdict(values) if i <= last else "is not reached"
        steps.append(RuleStep(each.rule.name, verdict, plain(each.watched(values))))
    dropped = rules.rules[outcome].name if isinstance(outcome, int) else None
    place = f"{work.name}:{number}"
    return Explanation(place, document.id, document.source, len(document.text), dropped, deciding, steps)


def plain(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values that a rule sees as data for JSON; a whole document is only hinted at."""
    return {
        name: "…" if isinstance(value, Document) else msgspec.json.decode(msgspec.json.encode(value))
        for name, value in values.items()
    }


def show(explanation: Explanation) -> str:
    """Return an explanation for people."""
    fate = "stays" if explanation.dropped is None else f"dropped by {explanation.dropped!r}"
    lines = [
        explanation.place,
        f"  id {explanation.id}, source {explanation.source}, {explanation.chars:,} characters: {fate}",
    ]
    width = max((len(step.rule) for step in explanation.steps), default=0)
    for step in explanation.steps:
        values = ", ".join(f"{name} = {short(value, VALUE_CHARS)}" for name, value in step.values.items())
        lines.append(f"    {step.rule.ljust(width)}  {step.verdict}" + (f"  ({values})" if values else ""))
    return "\n".join(lines)
