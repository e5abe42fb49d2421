"""The tables that a mix, a dry run and a comparison show."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import repeat

import msgspec

from toolkit import partials
from toolkit.data import excerpts
from toolkit.errors import amount, short
from toolkit.mix.effects.counts import NO_LABEL, RuleCount, RuleEffect, Totals
from toolkit.mix.effects.explain import VALUE_CHARS, Comparison
from toolkit.mix.effects.preview import LabelCount
from toolkit.mix.publish import BlocklistCount, LabelTotals, Manifest, Unseen
from toolkit.mix.settings import MixSettings, Stream
from toolkit.rules.kinds import kind_called
from toolkit.stages.context import table

_NULLS = 8
"""The column of nulls in the table of rules; it is shown where there are some."""

LABELS_SHOWN = 20
ENTRIES_SHOWN = 10
CAUSES_SAMPLED = 5


def share(part: int, whole: int) -> str:
    """Return a part of a whole as a percentage."""
    return f"{100 * part / whole:.1f} %" if whole else "-"


def not_carried(counts: Mapping[str, int], first: int = 0) -> str:
    """Return lines that name the fields of documents, or of the first ones, which the output does not carry."""
    if not counts:
        return ""
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    shown = [f"{name}: {amount(documents, 'document')}" for name, documents in ranked[:ENTRIES_SHOWN]]
    more = [f"and {len(ranked) - ENTRIES_SHOWN} more, which --json lists"] if ranked[ENTRIES_SHOWN:] else []
    of = f"first {amount(first, 'document')}" if first else "documents"
    return f"\n\nfields of the {of} that the output does not carry:\n" + "\n".join(f"  {x}" for x in [*shown, *more])


def unlike_dolma(documents: int, rows: int) -> str:
    """Return lines that say of how many documents Dolma decides otherwise, as 1 and 1.0 are two numbers to it."""
    if not documents:
        return ""
    return (
        f"\n\nwarning: {documents:,} of {amount(rows, 'document')} {'is' if documents == 1 else 'are'} kept or dropped "
        "otherwise than by Dolma:\n1 and 1.0 are one number here, so that `>= 1.0` matches 1; in Dolma's JSONPath they "
        "are two numbers.\n`compat: strict` (in a rule: `strict: true`) decides as Dolma does."
    )


def effects_of(
    settings: MixSettings, found: Iterable[tuple[Stream, list[RuleCount]]], only: Iterable[list[int]] | None = None
) -> list[RuleEffect]:
    """Return the effect of each rule of each stream on all its shards.

    Args:
        settings: Settings of the mix.
        found: for each shard its stream and the effects on it.
        only: for each shard and rule, the documents that no other rule would drop.
    """
    counts: dict[str, list[RuleCount]] = {}
    unique: dict[str, list[int]] = {}
    for (stream, of_rules), alone in zip(found, repeat(None) if only is None else only, strict=False):
        partials.add(counts, {stream.name: of_rules})
        partials.add(unique, {} if alone is None else {stream.name: alone})
    return [
        RuleEffect(
            name=rule.name,
            kind=rule.kind,
            stream=stream.name,
            group=rule.group,
            only=unique[stream.name][i] if rule.drops and stream.name in unique else None,
            **msgspec.structs.asdict(counts[stream.name][i] if stream.name in counts else RuleCount()),
        )
        for stream in settings.streams
        for i, rule in enumerate(stream.all_rules)
    ]


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
    ranked = sorted(manifest.labels.items(), key=lambda item: (-item[1].content_size, item[0]))
    rows += [_label_row(label, [label_totals]) for label, label_totals in ranked[:LABELS_SHOWN]]
    if len(ranked) > LABELS_SHOWN:
        rows.append(_label_row(f"{len(ranked) - LABELS_SHOWN} more", [t for _, t in ranked[LABELS_SHOWN:]]))
    lines += ["", table(rows, right=range(1, 5))]
    if manifest.rejected:
        rejects = manifest.rejected
        lines.append(
            f"rejected: {amount(rejects.documents, 'document')}, {rejects.content_size:,} bytes, {rejects.parts} parts"
        )
    lines += [f"omitted: {shard}: {why}" for shard, why in manifest.omitted.items()]
    return "\n".join(lines)


def _label_row(label: str, totals: list[LabelTotals]) -> list[str]:
    return [
        label,
        f"{sum(t.documents for t in totals):,}",
        f"{sum(t.content_size for t in totals):,}",
        f"{sum(t.size for t in totals):,}",
        f"{sum(t.parts for t in totals):,}",
    ]


def rules_table(totals: Totals, effects: list[RuleEffect], *, preview: bool = False) -> str:
    """Return a table with a line for each rule, and for each group; then what is kept.

    Args:
        totals: Totals of all streams.
        effects: Effects of all rules.
        preview: True if it was told without texts: rules are numbered, for the table of labels, unique effects are
            shown, and the characters of lines that are cut are not known.
    """
    nulls = any(effect.nulls for effect in effects)
    rows = [["#", "rule", "", "documents", "of all", "of reached", "characters", "of all", "nulls", "only this"]]
    shown: set[tuple[str, str]] = set()
    for number, effect in enumerate(effects, 1):
        prefix = f"{effect.stream}: " if effect.stream else ""
        for group in _groups(effect.group):
            if (effect.stream, group) not in shown:
                shown.add((effect.stream, group))
                members = [e for e in effects if e.stream == effect.stream and group in _groups(e.group)]
                rows.append(_group_row(prefix + group, members, totals))
        kind = kind_called(effect.kind)
        known = not (preview and kind.SIZE_NEEDS_TEXT)
        rows.append(
            [
                str(number),
                ("  " if effect.group else "") + prefix + effect.name,
                _done(kind.ROLE.verb, effect),
                f"{effect.documents:,}",
                share(effect.documents, totals.rows),
                share(effect.documents, effect.reached),
                f"{effect.chars:,}" if known else "?",
                share(effect.chars, totals.chars) if known else "?",
                f"{effect.nulls:,}" if effect.nulls else "",
                "" if effect.only is None else f"{effect.only:,}",
            ]
        )
    kept, of_chars = share(totals.kept, totals.rows), share(totals.kept_chars, totals.chars)
    rows.append(["", "kept", "", f"{totals.kept:,}", kept, "", f"{totals.kept_chars:,}", of_chars, "", ""])
    if totals.copies:
        written, chars = totals.kept + totals.copies, totals.kept_chars + totals.copy_chars
        of_all = share(written, totals.rows), share(chars, totals.chars)
        rows.append(["", "with copies", "", f"{written:,}", of_all[0], "", f"{chars:,}", of_all[1], "", ""])
    columns = [i for i in range(10) if (nulls or i != _NULLS) and (preview or i not in (0, 9))]
    right = [at for at, i in enumerate(columns) if i not in (1, 2)]
    return table([[row[i] for i in columns] for row in rows], right=right)


def _done(verb: str, effect: RuleEffect) -> str:
    """Return what a rule does: with the stretches that it edits, and the documents that it repeats."""
    if effect.repeated:
        return f"{verb} {effect.repeated:,} as {effect.copies:,}"
    return verb + (f" {effect.spans:,} spans" if effect.spans else "")


def _groups(name: str) -> list[str]:
    """Return a group and those around it, outermost first."""
    parts = name.split("/") if name else []
    return ["/".join(parts[: i + 1]) for i in range(len(parts))]


def _group_row(name: str, members: list[RuleEffect], totals: Totals) -> list[str]:
    dropping = [effect for effect in members if kind_called(effect.kind).ROLE.drops]
    documents, chars = sum(e.documents for e in dropping), sum(e.chars for e in dropping)
    reached = dropping[0].reached if dropping else 0
    row = ["", f"{name} (group)", "drops", f"{documents:,}", share(documents, totals.rows), share(documents, reached)]
    return [*row, f"{chars:,}", share(chars, totals.chars), "", ""]


def labels_table(labels: Mapping[str, LabelCount], rules: Sequence[tuple[int, str]]) -> str:
    """Return a table with a line for each label: its documents, those that stay, and how many each rule drops.

    Args:
        labels: by label.
        rules: number in the table of rules, and kind, of each rule.
    """
    dropping = [i for i, (_, kind) in enumerate(rules) if kind_called(kind).ROLE.drops]
    ranked = sorted(labels.items(), key=lambda item: (-item[1].rows, item[0]))
    rows = [["label", "documents", "kept", "of label", "characters", "kept", *(f"# {rules[i][0]}" for i in dropping)]]
    shown = ranked[:LABELS_SHOWN]
    groups = [(label if label != NO_LABEL else "(none)", [label_count]) for label, label_count in shown]
    if len(ranked) > len(shown):
        groups.append((f"{len(ranked) - len(shown)} more", [label_count for _, label_count in ranked[len(shown) :]]))
    for label, label_counts in groups:
        total = partials.total(Totals(), label_counts)
        cells = [f"{total.rows:,}", f"{total.kept:,}", share(total.kept, total.rows)]
        cells += [f"{total.chars:,}", f"{total.kept_chars:,}"]
        rows.append(
            [label, *cells, *(f"{sum(label_count.dropped[i] for label_count in label_counts):,}" for i in dropping)]
        )
    return table(rows, right=range(1, 6 + len(dropping)))


def blocklists(counts: Iterable[BlocklistCount], left: Mapping[str, list[str]], where: str = "") -> str:
    """Return lines that say how many entries matched, and show the first of those that did not."""
    lines = []
    for count in counts:
        unmatched = count.entries - count.matched
        lines.append(f"\n{count.rule}: {count.matched:,} of {count.entries:,} entries matched")
        shown = left.get(count.rule, [])[:ENTRIES_SHOWN]
        if unmatched and where:
            lines[-1] += f"; the {unmatched:,} others are listed in {where}"
        elif unmatched:
            lines[-1] += f"; {unmatched:,} did not" + (":" if shown else "")
        lines += [f"  {excerpts.escaped(entry)}" for entry in shown]
    return "\n".join(["", *lines]) if lines else ""


def unseen(faults: Sequence[Unseen]) -> str:
    """Return lines that name the fields and texts of rules which documents do not have."""
    lines = []
    for fault in faults[:ENTRIES_SHOWN]:
        prefix = f"{fault.stream}: " if fault.stream else ""
        everywhere = fault.lacking == fault.of
        where = f"{fault.lacking:,} of {amount(fault.of, 'shard')}"
        if fault.got:
            what = f"is {fault.got} in {where}, and {fault.usual} in others"
        elif fault.compares:
            what = "is true of no document"
        else:
            what = "is absent or null in " + ("all documents" if everywhere else f"all documents of {where}")
        shards = ", ".join(fault.shards) + (", …" if len(fault.shards) < fault.lacking else "")
        line = f"  {prefix}{fault.rule}: `{fault.field}` {what}" + (f": {shards}" if fault.shards else "")
        lines.append(excerpts.escaped(line))
    if len(faults) > len(lines):
        lines.append(f"  {len(faults) - len(lines):,} more, which --json lists")
    return "\n".join(["\n\nwarning: rules ask for what documents do not have:", *lines]) if lines else ""


def comparison(one: str, other: str, comparison: Comparison) -> str:
    """Return lines that say what changes from one configuration to the other."""
    gained, lost = sum(comparison.gained.values()), sum(comparison.lost.values())
    relabelled = sum(comparison.relabelled.values())
    kept = comparison.kept
    lines = [
        f"{amount(comparison.rows, 'document')}; {one} keeps {kept:,}, {other} keeps {kept + gained - lost:,}",
        f"gained {gained:,}, lost {lost:,}, relabelled {relabelled:,}",
    ]
    parts = [
        ("gained", "dropped before by", comparison.gained),
        ("lost", "dropped now by", comparison.lost),
        ("relabelled", "from -> to", comparison.relabelled),
    ]
    for what, head, counts in parts:
        if not counts:
            continue
        ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
        rows = [[f"{what}: {head}", "documents"], *([name, f"{n:,}"] for name, n in ranked[:LABELS_SHOWN])]
        if len(ranked) > LABELS_SHOWN:
            rows.append([f"{len(ranked) - LABELS_SHOWN} more", f"{sum(n for _, n in ranked[LABELS_SHOWN:]):,}"])
        lines += ["", table(rows, right=[1])]
        for cause, _ in ranked[:CAUSES_SAMPLED]:
            lines.append(f"{excerpts.escaped(cause)}, for example")
            for sample in [sample for sample in comparison.samples if (sample.what, sample.why) == (what, cause)]:
                values = ", ".join(f"{name} = {short(value, VALUE_CHARS)}" for name, value in sample.values.items())
                lines += [f"  {sample.place}  {excerpts.escaped(sample.id)}", *([f"    {values}"] if values else [])]
                lines += ["    | " + excerpts.head(sample.text, excerpts.width() - 6)] if sample.text else []
    return "\n".join(lines)
