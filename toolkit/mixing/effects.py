"""What rules do to documents, counted: the same numbers at the end of a mix and in a dry run."""

import msgspec

from toolkit.editing import Edit
from toolkit.rules import Decision


class RuleCount(msgspec.Struct):
    """Effect of a rule.

    Attributes:
        documents: that it dropped, annotated or edited.
        chars: their code points; of an edit those that it replaced or cut.
        reached: documents that came to it.
        spans: stretches that an edit replaced or cut.
    """

    documents: int = 0
    chars: int = 0
    reached: int = 0
    spans: int = 0


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
    for effect in effects if decision.dropped is None else effects[: decision.dropped + 1]:
        effect.reached += 1
    for i in decision.annotated if decision.dropped is None else (decision.dropped,):
        effects[i].documents += 1
        effects[i].chars += chars


def count_edits(effects: list[RuleCount], edits: list[list[Edit]]) -> None:
    """Adds the edits of one document, a list for each rule; rules that are no edits have none."""
    for effect, found in zip(effects, edits, strict=True):
        if found:
            effect.documents += 1
            effect.spans += len(found)
            effect.chars += sum(edit.end - edit.start for edit in found)


def report(totals: Totals, effects: list[RuleEffect]) -> list[list[str]]:
    """The rows of the table of rules, a head and the kept documents included."""
    with_only = any(effect.only is not None for effect in effects)
    rows = [["rule", "", "documents", "of all", "of reached", "characters", "of all"]]
    for effect in effects:
        known = not (with_only and effect.kind == "cut lines")  # a dry run reads no text
        rows.append(
            [
                effect.name,
                VERBS.get(effect.kind, "edits") + (f" {effect.spans:,} spans" if effect.spans else ""),
                f"{effect.documents:,}",
                share(effect.documents, totals.rows),
                share(effect.documents, effect.reached),
                f"{effect.chars:,}" if known else "?",
                share(effect.chars, totals.chars) if known else "?",
            ]
        )
    kept, chars = share(totals.kept, totals.rows), share(totals.kept_chars, totals.chars)
    rows.append(["kept", "", f"{totals.kept:,}", kept, "", f"{totals.kept_chars:,}", chars])
    if with_only:
        only = ["" if effect.only is None else f"{effect.only:,}" for effect in effects]
        rows = [[*row, last] for row, last in zip(rows, ["only this", *only, ""], strict=True)]
    return rows


VERBS = {"drop": "drops", "keep": "drops", "sample": "drops", "annotate": "annotates"}


def share(part: int, whole: int) -> str:
    """As a percentage."""
    return f"{100 * part / whole:.1f} %" if whole else "-"
