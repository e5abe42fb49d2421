"""Pictures of histograms, with the package matplotlib (extra ``plots``)."""

import io
import math
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

from toolkit.distribution import missing_extra
from toolkit.inspect.stats.histograms import Histogram
from toolkit.storage.outputs import write_file

PICTURES = (".png", ".svg", ".pdf")


def check_installed() -> None:
    """Raise MissingExtra without matplotlib."""
    if find_spec("matplotlib") is None:
        raise missing_extra("plots", "pictures", "matplotlib")


@contextmanager
def drawn(*paths: str, size: tuple[float, float] = (8, 4.5)) -> Iterator[Any]:
    """Give axes, and write what is drawn in them: PNG, SVG or PDF by the suffix; the same bytes each time.

    Raises:
        MissingExtra: without matplotlib.
    """
    check_installed()
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib.figure import Figure

    with mpl.rc_context({"svg.hashsalt": "toolkit", "svg.fonttype": "none", "font.size": 9}):
        figure = Figure(figsize=size, layout="constrained")
        axes = figure.subplots()
        yield axes
        axes.spines[["top", "right"]].set_visible(False)
        for path in paths:
            suffix = path.rpartition(".")[2]
            when: dict[str, Any] = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(suffix, {})
            data = io.BytesIO()
            figure.savefig(data, format=suffix, dpi=150, metadata=when)
            write_file(path, data.getvalue())


def draw(found: Histogram, path: str) -> None:
    """Write a picture of a histogram.

    Raises:
        MissingExtra: without matplotlib.
    """
    with drawn(path) as axes:
        counts = [each.count for each in found.bins]
        if found.numbers:
            edges = [each.low for each in found.bins] + [found.bins[-1].high]
            logarithmic = len(edges) > 3 and not math.isclose(edges[-1] - edges[-2], edges[2] - edges[1])
            axes.stairs(counts, edges, fill=True, color="#4878a8")
            if logarithmic:
                axes.set_xscale("symlog", base=2, linthresh=1)
            for i, each in enumerate(found.thresholds):
                of = f" ({each.label})" if each.label else ""
                axes.axvline(
                    each.number, color=f"C{1 + i % 9}", linestyle="--", linewidth=1.2, label=f"{each.text}{of}"
                )
            if found.thresholds:
                axes.legend()
        else:
            axes.bar([each.title for each in found.bins], counts, color="#4878a8")
            axes.tick_params(axis="x", rotation=60)
        axes.set_xlabel(found.attribute)
        axes.set_ylabel("values")
