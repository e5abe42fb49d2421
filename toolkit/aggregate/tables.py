"""Statistics as tables: Markdown as the papers print them, CSV and JSON with every number as it is."""

import csv
import heapq
import io
import re
from collections.abc import Iterable, Sequence
from typing import Any, Literal

import msgspec

from toolkit.aggregate.distributions import Distribution, merge_labels, summary
from toolkit.aggregate.groups import Group, counts_of
from toolkit.aggregate.histogram import Histogram, merged
from toolkit.data.excerpts import harmless, unlike_formula
from toolkit.mix.rule_effects.counts import SizesByLabel
from toolkit.text.counting import COLUMNS, Counts

NONE = "(none)"
"""Stands for the group of documents without a value."""

_NAMES = {
    "documents": "documents",
    "lines": "lines",
    "chars": "characters",
    "bytes": "size",
    "words": "words",
    "unicode_words": "words (Unicode)",
}
"""Names of the fields of `Counts` in Markdown."""


class Table(msgspec.Struct, kw_only=True):
    """The counts of groups.

    Attributes:
        by: Kind of the groups.
        groups: Counts by value, those with most bytes first.
        rest: Number and counts of the other groups.
        total: Total of all.
    """

    by: str
    groups: list[tuple[Any, Counts]]
    rest: tuple[int, Counts]
    total: Counts

    @classmethod
    def of(
        cls, by: str, groups: Iterable[Group], top: int, *, unicode: bool, rank: Literal["bytes", "words"] = "bytes"
    ) -> "Table":
        """Return the table of the largest groups, so many at most; rank: what they are the largest by."""
        number, total = 0, Counts(unicode_words=0 if unicode else None)

        def passing() -> Iterable[Group]:
            nonlocal number
            for key, row in groups:
                number += 1
                total.add(counts_of(row, unicode=unicode))
                yield key, row

        column = 1 + COLUMNS.index(rank)
        largest = heapq.nsmallest(top, passing(), key=lambda group: (-group[1][column], -group[1][0], group[0]))
        top_groups = [(msgspec.json.decode(key), counts_of(row, unicode=unicode)) for key, row in largest]
        return cls(by=by, groups=top_groups, rest=(number - len(top_groups), _rest(total, top_groups)), total=total)

    def data(self) -> dict[str, Any]:
        """Return the table for programs."""
        number, rest = self.rest
        return {
            "by": self.by,
            "groups": [{"group": group, **_plain(counts)} for group, counts in self.groups],
            "others": {"groups": number, **_plain(rest)},
            "total": _plain(self.total),
        }


def _rest(total: Counts, groups: Sequence[tuple[Any, Counts]]) -> Counts:
    rest = msgspec.structs.replace(total)
    for _, counts in groups:
        for name in counts.__struct_fields__:
            if (value := getattr(rest, name)) is not None:
                setattr(rest, name, value - (getattr(counts, name) or 0))
    return rest


def _plain(counts: Counts) -> dict[str, Any]:
    builtins: dict[str, Any] = msgspec.to_builtins(counts)
    return {name: value for name, value in builtins.items() if value is not None}


def size(count: float) -> str:
    """Return bytes for people: ``12.6 MB``; units of 1,000."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 999.5:
            return (
                f"{count:.0f} B" if unit == "B" else f"{count:.1f} {unit}" if count < 99.95 else f"{count:.0f} {unit}"
            )
        count /= 1000
    return f"{count:.1f} TB" if count < 99.95 else f"{count:,.0f} TB"


def display(group: Any) -> str:
    """Return a group's value for people."""
    if group is None:
        return NONE
    if not isinstance(group, str):
        return msgspec.json.encode(group).decode()
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in group) or '""'


# --- Markdown ---------------------------------------------------------------------------------------------------------


_CODE_OR_TAG = re.compile(r"(`+)(?!`).*?(?<!`)\1(?!`)|<(?=[A-Za-z/!?])", re.DOTALL)


def without_html(text: str) -> str:
    """Return Markdown without tags of HTML; code stays, which has none."""
    return _CODE_OR_TAG.sub(lambda match: "&lt;" if match[0] == "<" else match[0], text)


def markdown(rows: Sequence[Sequence[str]], left: int = 1) -> str:
    """Return a table in columns, the first row its head; the first columns aligned left, the others right."""
    escaped = [[without_html(cell).replace("|", "\\|").replace("\n", " ") for cell in row] for row in rows]
    widths = [max(3, *(len(row[i]) for row in escaped)) for i in range(len(escaped[0]))]
    rule = ["-" * w if i < left else "-" * (w - 1) + ":" for i, w in enumerate(widths)]
    lines = []
    for row in [escaped[0], rule, *escaped[1:]]:
        cells = [
            cell.ljust(w) if i < left else cell.rjust(w) for i, (cell, w) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def table_markdown(table: Table) -> str:
    """Return a table like OSCAR's: a line for each group, then all together."""
    names = list(_plain(table.total))
    rows = [[table.by, *(_NAMES[name] for name in names)]]
    number, rest = table.rest
    listed = [(display(group), counts) for group, counts in table.groups]
    listed += [(f"{number:,} more", rest)] if number else []
    for title, counts in [*listed, ("all", table.total)]:
        rows.append([title, *(_cell(name, getattr(counts, name)) for name in names)])
    return markdown(rows)


def _cell(name: str, value: int) -> str:
    return size(value) if name == "bytes" else f"{value:,}"


_COMPARED = ("documents", "bytes", "words", "unicode_words")


def mix_markdown(sizes: SizesByLabel, both: tuple[str, str] = ("original", "kept")) -> str:
    """Return a table like table 2 of goclassy's paper: of each label what there was, and what a mix kept."""
    rows, names = mix_rows(sizes)
    head = [f"{_NAMES[name]}, {when}" for name in names for when in both]
    cells = [
        [label, *(_cell(name, getattr(counts, name) or 0) for name in names for counts in (before, after))]
        for label, before, after in rows
    ]
    return markdown([["label", *head], *cells])


def mix_rows(sizes: SizesByLabel) -> tuple[list[tuple[str, Counts, Counts]], list[str]]:
    """Return rows of label, sizes before and after, the largest first.

    All together last; and the names of the compared sizes.
    """
    before, after = Counts(), Counts()
    for before_after in sizes.values():
        before.add(before_after.before)
        after.add(before_after.after)
    ranked = sorted(sizes.items(), key=lambda item: (-item[1].before.bytes, -item[1].after.bytes, item[0]))
    rows = [(label or NONE, before_after.before, before_after.after) for label, before_after in ranked]
    both = {**_plain(before), **_plain(after)}
    return [*rows, ("all", before, after)], [name for name in _COMPARED if name in both]


# --- CSV --------------------------------------------------------------------------------------------------------------


def _csv(rows: Iterable[Sequence[Any]]) -> str:
    out = io.StringIO()
    cells = ([harmless(unlike_formula(item)) if isinstance(item, str) else item for item in row] for row in rows)
    csv.writer(out, lineterminator="\n").writerows(cells)
    return out.getvalue()


def _raw(group: Any) -> str:
    """Return a group's value for programs; nothing if there is none."""
    return "" if group is None else group if isinstance(group, str) and group else display(group)


def table_csv(table: Table) -> str:
    """Return every number as it is; a last column tells groups from the sum of others and of all."""
    names = list(_plain(table.total))
    number, rest = table.rest
    rows: list[list[Any]] = [[table.by, *names, "groups"]]
    for title, counts, count in [
        *((_raw(group), counts, 1) for group, counts in table.groups),
        *([("others", rest, number)] if number else []),
        ("all", table.total, number + len(table.groups)),
    ]:
        rows.append([title, *(getattr(counts, name) for name in names), count])
    return _csv(rows)


def mix_csv(sizes: SizesByLabel, both: tuple[str, str] = ("before", "after")) -> str:
    """Return all numbers of `Counts`, before and after."""
    rows, _ = mix_rows(sizes)
    names = list(_plain(rows[-1][1]))
    head = ["label", *(f"{name}_{when}" for name in names for when in both)]
    cells = [
        ["" if label == NONE else label, *(getattr(c, name) or 0 for name in names for c in (before, after))]
        for label, before, after in rows
    ]
    return _csv([head, *cells])


# --- lengths ----------------------------------------------------------------------------------------------------------

LENGTHS = {"0.05": "5 %", "0.25": "25 %", "0.5": "median", "0.75": "75 %", "0.95": "95 %"}
"""Quantiles that are shown of lengths."""

LengthsByLabel = dict[str, Histogram]
"""How long documents are, in code points, by label, as JSON text."""


def _summary(histogram: Histogram) -> dict[str, Any]:
    """Return lengths in numbers, for programs."""
    return {
        "documents": histogram.count,
        "chars": histogram.total,
        "min": histogram.low,
        "max": histogram.high,
        "mean": histogram.total / histogram.count if histogram.count else None,
        "quantiles": {share: histogram.quantile(share) for share in LENGTHS},
    }


def ranked_lengths(lengths: LengthsByLabel) -> list[tuple[str, dict[str, Any]]]:
    """Return labels and their lengths, those with most characters first. Labels are JSON texts."""
    listed = [(label, _summary(histogram)) for label, histogram in lengths.items()]
    return sorted(listed, key=lambda item: (-item[1]["chars"], item[0]))


def lengths_data(lengths: LengthsByLabel) -> dict[str, Any]:
    """Return lengths for programs: of all documents, and by label."""
    labels = [{"label": msgspec.json.decode(label), **numbers} for label, numbers in ranked_lengths(lengths)]
    return {"all": _summary(merged(lengths.values())), "labels": labels}


def lengths_markdown(lengths: LengthsByLabel) -> str:
    """Return a line for each label, then all together; lengths are in code points."""
    rows = [["label", "documents", "least", *LENGTHS.values(), "greatest", "mean"]]
    listed = [(display(msgspec.json.decode(label)), numbers) for label, numbers in ranked_lengths(lengths)]
    for title, item in [*listed, ("all", _summary(merged(lengths.values())))]:
        numbers = [item["documents"], item["min"], *item["quantiles"].values(), item["max"], round(item["mean"] or 0)]
        rows.append([title, *(f"{number:,}" for number in numbers)])
    return markdown(rows)


def lengths_csv(lengths: LengthsByLabel) -> str:
    """Return a line for each label; that with an empty label is of all together."""
    rows: list[list[Any]] = [["label", "documents", "chars", "min", *LENGTHS, "max", "mean"]]
    listed = [(msgspec.json.decode(label), numbers) for label, numbers in ranked_lengths(lengths)]
    named = [(NONE if label is None else _raw(label), numbers) for label, numbers in listed]
    for title, item in [*named, ("", _summary(merged(lengths.values())))]:
        numbers = [
            item["documents"],
            item["chars"],
            item["min"],
            *item["quantiles"].values(),
            item["max"],
            item["mean"],
        ]
        rows.append([title, *numbers])
    return _csv(rows)


# --- distributions ----------------------------------------------------------------------------------------------------

_SHOWN_VALUES = 5
_TELLING = 20
"""Different numbers up to which it says something which are the most frequent."""


def by_attribute(distributions: Iterable[Distribution]) -> dict[str, list[Distribution]]:
    """Return the distributions of each attribute."""
    result: dict[str, list[Distribution]] = {}
    for distribution in distributions:
        result.setdefault(distribution.attribute, []).append(distribution)
    return result


def distributions_data(distributions: Iterable[Distribution]) -> list[dict[str, Any]]:
    """Return distributions for programs: of all documents, and by label."""
    return [
        {
            "attribute": attribute,
            "kind": listed[0].kind,
            "all": summary(merge_labels(listed)),
            "labels": [
                {"label": msgspec.json.decode(distribution.label), **summary(distribution)} for distribution in listed
            ],
        }
        for attribute, listed in by_attribute(distributions).items()
    ]


def distributions_markdown(distributions: Iterable[Distribution], *, labels: bool) -> str:
    """Return a line for each attribute; or a table for each, with a line for each label."""
    grouped = by_attribute(distributions)
    if not labels:
        return _distributions_table("attribute", [(name, merge_labels(listed)) for name, listed in grouped.items()])
    tables = []
    for attribute, listed in grouped.items():
        ranked = sorted(listed, key=lambda item: (-item.count - item.nulls, item.label))
        lines = [(display(msgspec.json.decode(distribution.label)), distribution) for distribution in ranked]
        tables.append(_distributions_table(attribute, [*lines, ("all", merge_labels(listed))]))
    return "\n\n".join(tables)


def _distributions_table(title: str, listed: Sequence[tuple[str, Distribution]]) -> str:
    head = ["values", "nulls", "null lists", "least", "5 %", "median", "95 %", "greatest", "mean", "most frequent"]
    rows = [[title, *head], *([name, *_row(summary(distribution))] for name, distribution in listed)]
    if not any(distribution.no_lists for _, distribution in listed):
        place = rows[0].index("null lists")
        rows = [row[:place] + row[place + 1 :] for row in rows]
    return markdown(rows)


def _row(values: dict[str, Any]) -> list[str]:
    quantiles = values.get("quantiles", {})
    numbers = [values.get("min"), *(quantiles.get(share) for share in ("0.05", "0.5", "0.95")), values.get("max")]
    cells = [
        "" if number is None else f"{number}" if isinstance(number, int) else f"{number:.6g}"
        for number in [*numbers, values.get("mean")]
    ]
    return [
        f"{values['values']:,}",
        percent(values["null_share"]),
        f"{values['null_lists']:,}",
        *cells,
        _frequent(values),
    ]


def percent(share: float | None) -> str:
    """Return a share for people."""
    return "-" if share is None else f"{100 * share:.1f} %"


def _frequent(numbers: dict[str, Any]) -> str:
    counts = numbers["counts"]
    if counts is None:
        return "many values"
    if "min" in numbers and len(counts) > _TELLING:
        return f"{len(counts)} values"
    ranked = sorted(counts, key=lambda count: -count["count"])[:_SHOWN_VALUES]
    more = len(counts) - len(ranked)
    listed = ", ".join(f"{display(item['value'])}: {item['count']:,}" for item in ranked)
    return listed + (f", {more} more" if more else "")


def _label(distribution: Distribution) -> str:
    """Return a label for programs; ``(none)`` tells documents without one from all."""
    label = msgspec.json.decode(distribution.label)
    return display(label) if label is None else _raw(label)


def distributions_csv(distributions: Iterable[Distribution]) -> str:
    """Return a line for each attribute and label; that with an empty label is of all together."""
    names = ("values", "nulls", "null_share", "null_lists", "min", "max", "mean")
    rows: list[list[Any]] = []
    shares: list[str] = []
    for attribute, listed in by_attribute(distributions).items():
        for label, distribution in [("", merge_labels(listed)), *((_label(e), e) for e in listed)]:
            numbers = summary(distribution)
            quantiles = numbers.get("quantiles", {})
            shares = shares or list(quantiles)
            rows.append([attribute, label, *(numbers.get(name) for name in names), *quantiles.values()])
    return _csv([["attribute", "label", *names, *shares], *rows])
