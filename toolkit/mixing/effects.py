"""What rules do to documents, counted: the same numbers at the end of a mix and in a dry run."""

import msgspec

from toolkit.rules import Decision


class RuleCount(msgspec.Struct):
    """Effect of a rule: documents that it dropped (or annotated), their code points, and documents that reached it."""

    documents: int = 0
    chars: int = 0
    reached: int = 0


class RuleEffect(RuleCount, kw_only=True):
    """Effect of a rule on a whole mix.

    Attributes:
        name, kind: of the rule.
        only: documents that no other rule would drop; None where that was not looked at.
    """

    name: str
    kind: str
    only: int | None = None


class Totals(msgspec.Struct):
    """Documents and code points that were read, and those that no rule dropped."""

    rows: int = 0
    chars: int = 0
    kept: int = 0
    kept_chars: int = 0


def count(effects: list[RuleCount], decision: Decision, chars: int) -> None:
    """Adds one document's decision to the effects of the rules."""
    last = len(effects) - 1 if decision.dropped is None else decision.dropped
    for i in range(last + 1):
        effects[i].reached += 1
    for i in decision.annotated if decision.dropped is None else (decision.dropped,):
        effects[i].documents += 1
        effects[i].chars += chars


def report(totals: Totals, effects: list[RuleEffect]) -> list[list[str]]:
    """The rows of the table of rules, a head and the kept documents included."""
    with_only = any(effect.only is not None for effect in effects)
    rows = [["rule", "", "documents", "of all", "of reached", "characters", "of all"]]
    for effect in effects:
        rows.append(
            [
                effect.name,
                "annotates" if effect.kind == "annotate" else "drops",
                f"{effect.documents:,}",
                share(effect.documents, totals.rows),
                share(effect.documents, effect.reached),
                f"{effect.chars:,}",
                share(effect.chars, totals.chars),
            ]
        )
    kept, chars = share(totals.kept, totals.rows), share(totals.kept_chars, totals.chars)
    rows.append(["kept", "", f"{totals.kept:,}", kept, "", f"{totals.kept_chars:,}", chars])
    if with_only:
        only = ["" if effect.only is None else f"{effect.only:,}" for effect in effects]
        rows = [[*row, last] for row, last in zip(rows, ["only this", *only, ""], strict=True)]
    return rows


def share(part: int, whole: int) -> str:
    """As a percentage."""
    return f"{100 * part / whole:.1f} %" if whole else "-"
