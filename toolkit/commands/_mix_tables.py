"""Tables of a mix, a dry run and a comparison."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from toolkit import partial_sums
from toolkit.data import excerpts
from toolkit.errors import amount, short
from toolkit.mix.budget.bounds import GroupBudget
from toolkit.mix.publication import BudgetFound, LabelTotals, Manifest, Unseen
from toolkit.mix.rule_effects.counts import NO_LABEL, RuleEffect, Totals
from toolkit.rules.kinds import kind_called
from toolkit.stages.context import table

if TYPE_CHECKING:
    from toolkit.mix.rule_effects.explain import MixChanges
    from toolkit.mix.rule_effects.preview import LabelCount
    from toolkit.mix.rule_effects.summary import MixSummary

T = TypeVar("T")

_NULLS = 8
"""Column of nulls in the table of rules, shown only if there are some."""

LABELS_SHOWN = 20
ENTRIES_SHOWN = 10
CAUSES_SAMPLED = 5


def share(part: int, whole: int) -> str:
    """Return a part of a whole as a percentage."""
    return f"{100 * part / whole:.1f} %" if whole else "-"


def _sections(rows: Sequence[tuple[str, T]]) -> list[tuple[str, list[T]]]:
    """Return the first rows, each by itself, and all others together."""
    rest = [row for _, row in rows[LABELS_SHOWN:]]
    first = [(name, [row]) for name, row in rows[:LABELS_SHOWN]]
    return [*first, (f"{len(rest)} more", rest)] if rest else first


def published(output: str, manifest: Manifest, *, already: bool = False) -> str:
    """Return the tables at the end of a mix."""
    totals = manifest.totals
    lines = [
        f"{amount(totals.rows, 'document')}, {totals.kept:,} kept ({share(totals.kept, totals.rows)}) -> {output}"
        + (" (was there already: nothing has changed)" if already else "")
    ]
    lines += ["", rules_table(totals, manifest.rules)]
    lines += [f"{name}: {count:,}" for name, count in manifest.counts.items()]
    rows = [["label", "documents", "bytes", "stored", "parts"]]
    for label, listed in _sections(sorted(manifest.labels.items(), key=lambda item: (-item[1].content_size, item[0]))):
        total = partial_sums.total(LabelTotals(), listed)
        sizes = (total.documents, total.content_size, total.size, total.parts)
        rows.append([label, *(f"{size:,}" for size in sizes)])
    lines += ["", table(rows, right=range(1, 5))]
    if rejects := manifest.rejected:
        lines.append(
            f"rejected: {amount(rejects.documents, 'document')}, {rejects.content_size:,} bytes, {rejects.parts} parts"
        )
    lines += [f"omitted: {shard}: {why}" for shard, why in manifest.omitted.items()]
    return "\n".join(lines)


def rules_table(totals: Totals, effects: list[RuleEffect], *, preview: bool = False) -> str:
    """Return a table of rules and groups, then of kept documents.

    Args:
        totals: Totals of all streams.
        effects: Effects of all rules.
        preview: True if texts were not read: rules are numbered, for the table of labels, unique effects are shown, and
            the characters of lines that are cut are not known.
    """

    def cells(name: str, verb: str, documents: int, chars: int | None, reached: int | None = None) -> list[str]:
        of_reached = "" if reached is None else share(documents, reached)
        of_chars = ("?", "?") if chars is None else (f"{chars:,}", share(chars, totals.chars))
        return [name, verb, f"{documents:,}", share(documents, totals.rows), of_reached, *of_chars]

    rows = [["#", "rule", "", "documents", "of all", "of reached", "characters", "of all", "nulls", "only this"]]
    groups: set[tuple[str, str]] = set()
    for number, effect in enumerate(effects, 1):
        prefix = f"{effect.stream}: " if effect.stream else ""
        for group in _groups(effect.group):
            if (effect.stream, group) not in groups:
                groups.add((effect.stream, group))
                members = [e for e in effects if e.stream == effect.stream and group in _groups(e.group)]
                dropping = [item for item in members if kind_called(item.kind).ROLE.drops]
                documents, chars = sum(e.documents for e in dropping), sum(e.chars for e in dropping)
                reached = dropping[0].reached if dropping else 0
                rows.append(["", *cells(f"{prefix}{group} (group)", "drops", documents, chars, reached), "", ""])
        kind = kind_called(effect.kind)
        characters = None if preview and kind.SIZE_NEEDS_TEXT else effect.chars
        name, verb = ("  " if effect.group else "") + prefix + effect.name, _verb(kind.ROLE.verb, effect)
        nulls, only = f"{effect.nulls:,}" if effect.nulls else "", "" if effect.only is None else f"{effect.only:,}"
        rows.append([str(number), *cells(name, verb, effect.documents, characters, effect.reached), nulls, only])
    rows.append(["", *cells("kept", "", totals.kept, totals.kept_chars), "", ""])
    if totals.copies:
        written = totals.kept + totals.copies, totals.kept_chars + totals.copy_chars
        rows.append(["", *cells("with copies", "", *written), "", ""])
    has_nulls = any(effect.nulls for effect in effects)
    columns = [i for i in range(10) if (has_nulls or i != _NULLS) and (preview or i not in (0, 9))]
    right = [at for at, i in enumerate(columns) if i not in (1, 2)]
    return table([[row[i] for i in columns] for row in rows], right=right)


def _verb(verb: str, effect: RuleEffect) -> str:
    """Return the verb of a rule, with spans or repeated documents."""
    if effect.repeated:
        return f"{verb} {effect.repeated:,} as {effect.copies:,}"
    return verb + (f" {effect.spans:,} spans" if effect.spans else "")


def _groups(name: str) -> list[str]:
    """Return a group and those around it, outermost first."""
    parts = name.split("/") if name else []
    return ["/".join(parts[: i + 1]) for i in range(len(parts))]


def labels_table(labels: Mapping[str, "LabelCount"], rules: Sequence[tuple[int, str]]) -> str:
    """Return a table of labels: documents read, documents kept, and documents dropped by each rule.

    Args:
        labels: Counts by label.
        rules: Number in the table of rules, and kind, of each rule.
    """
    from toolkit.mix.rule_effects.preview import LabelCount  # which few mixes need

    dropping = [i for i, (_, kind) in enumerate(rules) if kind_called(kind).ROLE.drops]
    rows = [["label", "documents", "kept", "of label", "characters", "kept", *(f"# {rules[i][0]}" for i in dropping)]]
    for label, counts in _sections(sorted(labels.items(), key=lambda item: (-item[1].rows, item[0]))):
        total = partial_sums.total(LabelCount(dropped=[0] * len(rules)), counts)
        cells = [f"{total.rows:,}", f"{total.kept:,}", share(total.kept, total.rows)]
        cells += [f"{total.chars:,}", f"{total.kept_chars:,}", *(f"{total.dropped[i]:,}" for i in dropping)]
        rows.append([label if label != NO_LABEL else "(none)", *cells])
    return table(rows, right=range(1, 6 + len(dropping)))


def remarks(effects: "MixSummary | Manifest", unmatched: Mapping[str, list[str]], path: str = "") -> str:
    """Return remarks about blocklists, missing fields, and Dolma.

    Args:
        effects: Effects of the mix.
        unmatched: Blocklist entries that matched nothing, by rule.
        path: Path of the file that lists them.
    """
    lines = []
    for count in effects.blocklists:
        missing = count.entries - count.matched
        entries = unmatched.get(count.rule, [])[:ENTRIES_SHOWN]
        lines.append(f"\n{count.rule}: {count.matched:,} of {count.entries:,} entries matched")
        if missing and path:
            lines[-1] += f"; {missing:,} did not: see {path}"
        elif missing:
            lines[-1] += f"; {missing:,} did not" + (":" if entries else "")
        lines += [f"  {excerpts.escaped(entry)}" for entry in entries]
    text = "\n".join(["", *lines]) if lines else ""
    return text + _unseen(effects.unseen) + not_carried(effects.not_carried) + _unlike_dolma(effects)


def _unseen(faults: Sequence[Unseen]) -> str:
    """Return lines about fields and texts of rules missing in documents."""
    lines = []
    for fault in faults[:ENTRIES_SHOWN]:
        prefix = f"{fault.stream}: " if fault.stream else ""
        where = f"{fault.missing:,} of {amount(fault.of, 'shard')}"
        if fault.got:
            problem = f"is {fault.got} in {where}, and {fault.usual} in others"
        elif fault.compares:
            problem = "is true of no document"
        else:
            problem = "is absent or null in all documents" + ("" if fault.missing == fault.of else f" of {where}")
        shards = ", ".join(fault.shards) + (", …" if len(fault.shards) < fault.missing else "")
        line = f"  {prefix}{fault.rule}: `{fault.field}` {problem}" + (f": {shards}" if fault.shards else "")
        lines.append(excerpts.escaped(line))
    if len(faults) > len(lines):
        lines.append(f"  {len(faults) - len(lines):,} more, which --json lists")
    return "\n".join(["\n\nwarning: rules ask for what documents do not have:", *lines]) if lines else ""


def not_carried(counts: Mapping[str, int], first: int = 0) -> str:
    """Return lines about fields of documents missing in the output."""
    if not counts:
        return ""
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    lines = [f"{name}: {amount(documents, 'document')}" for name, documents in ranked[:ENTRIES_SHOWN]]
    lines += [f"and {len(ranked) - ENTRIES_SHOWN} more, which --json lists"] if ranked[ENTRIES_SHOWN:] else []
    of = f"first {amount(first, 'document')}" if first else "documents"
    return f"\n\nfields of the {of} that the output does not carry:\n" + "\n".join(f"  {line}" for line in lines)


def _unlike_dolma(effects: "MixSummary | Manifest") -> str:
    """Return a warning about documents Dolma would decide otherwise."""
    documents = effects.unlike_dolma
    if not documents:
        return ""
    rows = amount(effects.totals.rows, "document")
    return (
        f"\n\nwarning: {documents:,} of {rows} {'is' if documents == 1 else 'are'} kept or dropped "
        "otherwise than by Dolma:\n1 and 1.0 are one number here, so that `>= 1.0` matches 1; in Dolma's JSONPath they "
        "are two numbers.\n`compat: strict` (in a rule: `strict: true`) decides as Dolma does."
    )


def budget_table(budget: BudgetFound | None, *, written: bool = False) -> str:
    """Return a table of a budget's groups, and the missing amounts; with the size of what was written, if `written`."""
    if budget is None:
        return ""
    ranked = sorted(budget.groups, key=lambda row: (-row.amount, row.group))
    sections = _sections([(row.group, row) for row in ranked])
    if len(ranked) > 1:
        sections.append(("all", ranked))
    head = ["available", "target", "taken", "of all", "missing", "documents", "copies", "epochs"]
    rows = [["budget, " + budget.unit, *head, *(["written: characters", "bytes"] if written else [])]]
    whole = sum(row.amount for row in ranked) or 1.0
    for name, groups in sections:
        total = partial_sums.total(GroupBudget(group=""), [msgspec.structs.replace(row, group="") for row in groups])
        if budget.redistributed and groups is ranked and total.missing:
            total.missing = max(0.0, total.target - total.amount)
        cells = [f"{total.available:,.0f}", f"{total.target:,.0f}", f"{total.amount:,.0f}"]
        cells += [f"{100 * total.amount / whole:.1f} %", f"{total.missing:,.0f}" if total.missing else ""]
        cells += [f"{total.documents:,}", f"{total.copies:,}", f"{total.epochs:.2f}" if total.distinct else "-"]
        cells += [f"{total.chars:,}", f"{total.bytes:,}"] if written else []
        rows.append([name or "whole", *cells])
    text = "\n\n" + table(rows, right=range(1, len(rows[0])))
    short = sorted((row for row in budget.groups if row.missing), key=lambda row: -row.missing)
    if not short:
        return text
    missing = ", ".join(
        f"{excerpts.escaped(row.group) + ' ' if row.group else ''}{row.missing:,.0f} of {row.target:,.0f}"
        for row in short[:LABELS_SHOWN]
    )
    more = f" and {len(short) - LABELS_SHOWN} more" if short[LABELS_SHOWN:] else ""
    remark = "; other groups give what they have" if budget.redistributed else ""
    return f"{text}\nmissing, as there is no more: {missing}{more} {budget.unit}{remark}"


def budget_data(budget: BudgetFound | None) -> dict[str, Any] | None:
    """Return the groups of a budget, for JSON; None if there is no budget."""
    if budget is None:
        return None
    rows = [{**msgspec.to_builtins(row), "epochs": round(row.epochs, 6)} for row in budget.groups]
    return {"unit": budget.unit, "groups": rows}


BEFORE_EDITS = "edits were not made: documents that they leave without text count as kept here, and a mix drops them"
"""Remark on numbers of rules that edit, where no text was read."""


def comparison(one: str, other: str, comparison: "MixChanges") -> str:
    """Return lines about the changes between two configurations."""
    from toolkit.mix.rule_effects.explain import VALUE_CHARS  # which few mixes need

    gained, lost = sum(comparison.gained.values()), sum(comparison.lost.values())
    relabelled = sum(comparison.relabelled.values())
    number = comparison.kept
    lines = [
        f"{amount(comparison.rows, 'document')}; {one} keeps {number:,}, {other} keeps {number + gained - lost:,}",
        f"gained {gained:,}, lost {lost:,}, relabelled {relabelled:,}",
    ]
    parts = [
        ("gained", "dropped before by", comparison.gained),
        ("lost", "dropped now by", comparison.lost),
        ("relabelled", "from -> to", comparison.relabelled),
    ]
    for change, head, counts in parts:
        if not counts:
            continue
        ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
        rows = [[f"{change}: {head}", "documents"], *([name, f"{sum(n):,}"] for name, n in _sections(ranked))]
        lines += ["", table(rows, right=[1])]
        for cause, _ in ranked[:CAUSES_SAMPLED]:
            lines.append(f"{excerpts.escaped(cause)}, for example")
            for sample in comparison.samples:
                if (sample.what, sample.why) != (change, cause):
                    continue
                values = ", ".join(f"{name} = {short(value, VALUE_CHARS)}" for name, value in sample.values.items())
                lines += [f"  {sample.place}  {excerpts.escaped(sample.id)}", *([f"    {values}"] if values else [])]
                lines += ["    | " + excerpts.head(sample.text, excerpts.width() - 6)] if sample.text else []
    return "\n".join(lines)
