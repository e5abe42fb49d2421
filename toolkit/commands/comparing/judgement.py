"""An evaluation, for people: tables of metrics with intervals, of differences, and of groups."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from toolkit.commands.comparing.confusion import confusion
from toolkit.commands.steps.outcome import table
from toolkit.data import excerpts
from toolkit.errors import amount
from toolkit.evaluating.judged import MAJORITY, SOURCE, Details, Estimate, Group, Judged, Paired
from toolkit.evaluating.metrics import HEADLINES
from toolkit.inspect.stats.tables import shown

LABELS = 20
"""Labels that are shown, the most frequent."""

_TASKS = {
    "numbers": "numbers that predict numbers",
    "score": "numbers that predict true or false",
    "classes": "labels that predict labels",
    "lists": "sets of labels that predict sets of labels",
}


def task(found: Judged) -> str:
    """Return what is predicted, and how."""
    text = _TASKS[found.task]
    if found.level == "ordinal":
        text += (
            "; the labels are a scale: predictions are rounded and clipped to it for accuracy, F1, kappa (quadratic), "
            "alpha (ordinal)"
        )
    elif found.level == "interval":
        text += "; alpha is that of intervals"
    elif found.level:
        text += "; kappa and alpha are those of names"
    return text


def whole(found: Judged) -> str:
    """Return the tables of all documents: metrics, differences, labels, confusion, calibration."""
    group, heads = found.all, _heads(found)
    metrics = list(dict.fromkeys(metric for scores in group.scores.values() for metric in scores))
    rows = [["", *(heads[name] for name in group.scores)]]
    rows += [[metric, *(_cell(scores.get(metric)) for scores in group.scores.values())] for metric in metrics]
    parts = [table(rows), _differences(group, heads)]
    for name, details in found.details.items():
        of = "" if len(found.details) == 1 else f"{heads[name]}:\n"
        parts += [f"{of}{text}" for text in _details(details) if text]
    return "\n\n".join(part for part in parts if part)


def _differences(group: Group, heads: Mapping[str, str]) -> str:
    listed = [each for each in group.differences if each.metrics]
    if not listed:
        return ""
    metrics = list(dict.fromkeys(metric for each in listed for metric in each.metrics))
    rows = [["difference", *(f"{heads[each.one]} to {heads[each.other]}" for each in listed)]]
    rows += [[metric, *(_verdict(each.metrics.get(metric)) for each in listed)] for metric in metrics]
    return table(rows)


def _details(found: Details) -> Iterable[str]:
    if found.labels:
        rows = [["label", "documents", "precision", "recall", "F1"]]
        for each in found.labels[:LABELS]:
            cells = [_number(each.precision), _number(each.recall), _cell(each.f1)]
            rows.append([excerpts.head(shown(each.label), 40), f"{each.documents:,}", *cells])
        more = len(found.labels) - LABELS
        yield table(rows, right=[1, 2, 3]) + (f"\nand {more:,} other labels" if more > 0 else "")
    if found.confusion:
        pairs = {(each.label, each.prediction): each.documents for each in found.confusion}
        yield confusion(pairs, ("label", "predicted"), whole=not found.confusion_left_out)
    if found.calibration:
        rows = [["predicted", "documents", "mean", "mean label"]]
        for one in found.calibration:
            where = f"{one.low:.3g} to {one.high:.3g}"
            rows.append([where, f"{one.documents:,}", _number(one.prediction), _cell(one.label)])
        yield table(rows, right=[1, 2])


def groups(by: str, found: Judged) -> str:
    """Return the table of the groups of one kind."""
    listed, (more, documents) = found.groups[by], found.left_out[by]
    columns = [
        (metric, name)
        for metric in HEADLINES[found.task]
        for name in found.all.scores
        if any(_is_there(group.scores.get(name, {}).get(metric)) for group in listed)
    ]
    pairs = [(each.one, each.other) for each in found.all.differences]
    verdicts = [(pair, metric) for pair in pairs if (metric := _first(pair, listed, found))]
    heads = _heads(found)
    only = next(iter(found.details)) if len(found.details) == 1 else ""
    rows = [[f"by {by}", "documents", "not judged"]]
    rows[0] += [metric if name == only else f"{metric}, {heads[name]}" for metric, name in columns]
    rows[0] += [f"{'' if only else f'{heads[one]} '}to {heads[other]} ({metric})" for (one, other), metric in verdicts]
    for group in listed:
        row = [excerpts.head(shown(group.group), 40), f"{group.documents:,}", f"{sum(group.nulls.values()):,}"]
        row += [_cell(group.scores.get(name, {}).get(metric)) for metric, name in columns]
        for pair, metric in verdicts:
            paired = _of(group, pair).get(metric)
            row.append(paired.verdict if paired else "-")
        rows.append(row)
    text = table(rows, right=[1, 2])
    return text + (f"\nand {more:,} smaller groups, {amount(documents, 'document')}" if more else "")


def _first(pair: tuple[str, str], listed: Sequence[Group], found: Judged) -> str:
    """Return the first headline metric in which a pair can be compared in some group."""
    return next((m for m in HEADLINES[found.task] if any(m in _of(group, pair) for group in listed)), "")


def _of(group: Group, pair: tuple[str, str]) -> dict[str, Paired]:
    return next((each.metrics for each in group.differences if (each.one, each.other) == pair), {})


def _is_there(estimate: Estimate | None) -> bool:
    return estimate is not None and estimate.value is not None


def warnings(found: Judged) -> list[str]:
    """Return what one should not overlook."""
    told = []
    for group in [found.all, *(each for listed in found.groups.values() for each in listed)]:
        where = f"{group.by} {shown(group.group)}" if group.by else "all documents"
        told += [
            f"{where}: {name} is the same for all {group.documents:,} documents: it says nothing within them"
            for name in group.constant
        ]
    return told


def data(found: Judged) -> dict[str, Any]:
    """Return the judgement for programs."""
    return {
        "task": found.task,
        "level": found.level or None,
        "all": found.all,
        "details": found.details,
        "groups": found.groups,
        "left_out": {
            by: {"groups": count, "documents": documents} for by, (count, documents) in found.left_out.items()
        },
    }


def _heads(found: Judged) -> dict[str, str]:
    """Return what predictions and baselines are called in tables: of two predictions, A and B."""
    names = dict(zip(found.details, "AB", strict=False))
    if len(names) == 1:
        names = {name: excerpts.head(name, 40) for name in names}
    return {MAJORITY: "majority", SOURCE: "source only", **names}


def _number(value: float | None) -> str:
    if value is None:
        return "-"
    text = f"{value:.3f}" if abs(value) < 1000 else f"{value:.6g}"
    return "0.000" if text == "-0.000" else text


def _cell(found: Estimate | None) -> str:
    if found is None or found.value is None:
        return "-"
    if found.low is None:
        return _number(found.value)
    return f"{_number(found.value)} [{_number(found.low)}, {_number(found.high)}]"


def _verdict(found: Paired | None) -> str:
    return "-" if found is None else f"{found.value:+.3f} [{found.low:+.3f}, {found.high:+.3f}] {found.verdict}"
