"""Pictures of an evaluation: its groups, calibration curves and confused labels, as SVG and PNG."""

import re
from collections.abc import Callable
from functools import partial
from typing import Any

from toolkit.aggregate.drawing import check_installed, drawn
from toolkit.aggregate.tables import display
from toolkit.data import excerpts
from toolkit.learn.evaluate.metrics import HEADLINES, SOURCE, Details, Estimate, Judged
from toolkit.storage.outputs import NamedOutput
from toolkit.storage.paths import join

__all__ = ["check_installed", "draw"]

_MOST = 30
"""Labels of a picture of confused labels, the most frequent."""


def draw(folder: str, result: Judged) -> list[str]:
    """Write the pictures of an evaluation into a folder; return their paths.

    ``groups-BY`` has the first metric of each group with its interval, ``calibration-N`` the mean label of what the
    prediction N gives, ``confusion-N`` what it predicts of each label.
    """
    written: list[str] = []

    def save(name: str, fill: Callable[[Any], None], size: tuple[float, float] = (8, 4.5)) -> None:
        paths = [join(folder, f"{name}.{suffix}") for suffix in ("svg", "png")]
        with drawn(*(NamedOutput(path, "--plots") for path in paths), size=size) as axes:
            fill(axes)
        written.extend(paths)

    for by, listed in result.groups.items():
        if listed:
            name = re.sub(r"[^A-Za-z0-9]+", "-", by).strip("-")
            save(f"groups-{name}", partial(_groups, result, by))
    for number, (name, details) in enumerate(result.details.items(), 1):
        if details.calibration:
            save(f"calibration-{number}", partial(_calibration, name, details), (5, 4.5))
        if details.confusion:
            save(f"confusion-{number}", partial(_confusion, name, details), (6, 5.5))
    return written


def _short(name: str) -> str:
    """Return a name, cut to the room in a picture."""
    return excerpts.head(name, 40)


def _groups(result: Judged, by: str, axes: Any) -> None:
    metric = HEADLINES[result.task][0]
    listed = result.groups[by]
    names = [*result.details, *([SOURCE] if by != SOURCE and SOURCE in result.all.scores else [])]
    for i, name in enumerate(names):
        estimates = [(place, group.scores.get(name, {}).get(metric)) for place, group in enumerate(listed)]
        defined = [
            (place, estimate) for place, estimate in estimates if estimate is not None and estimate.value is not None
        ]
        places = [place + 0.15 * (i - (len(names) - 1) / 2) for place, _ in defined]
        _bars(axes, places, [estimate for _, estimate in defined], "source only" if name == SOURCE else _short(name), i)
    titles = [f"{_short(display(group.group))} ({group.documents:,})" for group in listed]
    axes.set_xticks(range(len(listed)), titles, rotation=30, ha="right", rotation_mode="anchor")
    axes.set_xlim(-0.5, len(listed) - 0.5)
    axes.set_ylabel(metric)
    axes.set_xlabel(_short(by))
    axes.legend()


def _bars(axes: Any, places: list[float], listed: list[Estimate], name: str, number: int, **more: Any) -> None:
    values = [estimate.value or 0.0 for estimate in listed]
    low = [
        max(0.0, v - (v if estimate.low is None else estimate.low)) for v, estimate in zip(values, listed, strict=True)
    ]
    high = [
        max(0.0, (v if estimate.high is None else estimate.high) - v)
        for v, estimate in zip(values, listed, strict=True)
    ]
    axes.errorbar(places, values, yerr=[low, high], fmt="o", color=f"C{number}", capsize=3, label=name, **more)


def _calibration(name: str, details: Details, axes: Any) -> None:
    means = [bin_.prediction for bin_ in details.calibration]
    _bars(axes, means, [bin_.label for bin_ in details.calibration], _short(name), 0, linestyle="-")
    limits = axes.get_xlim(), axes.get_ylim()
    axes.axline((0, 0), slope=1, color="grey", linestyle="--", linewidth=1)
    axes.set(xlim=limits[0], ylim=limits[1], xlabel=f"predicted by {_short(name)}", ylabel="mean label")


def _confusion(name: str, details: Details, axes: Any) -> None:
    counts: dict[Any, int] = {}
    for confused_pair in details.confusion:
        counts[confused_pair.label] = counts.get(confused_pair.label, 0) + confused_pair.documents
        counts.setdefault(confused_pair.prediction, 0)
    labels = sorted(sorted(counts, key=lambda label: (-counts[label], str(label)))[:_MOST], key=str)
    place = {label: i for i, label in enumerate(labels)}
    shares = [[0.0] * len(labels) for _ in labels]
    for confused_pair in details.confusion:
        if confused_pair.label in place and confused_pair.prediction in place and counts[confused_pair.label]:
            shares[place[confused_pair.label]][place[confused_pair.prediction]] = (
                confused_pair.documents / counts[confused_pair.label]
            )
    axes.imshow(shares, cmap="Blues", vmin=0, vmax=1)
    axes.set_xticks(range(len(labels)), [display(label) for label in labels], rotation=60)
    axes.set_yticks(range(len(labels)), [display(label) for label in labels])
    axes.set_xlabel(f"predicted by {_short(name)}")
    axes.set_ylabel("label")
