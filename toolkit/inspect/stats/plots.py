"""Pictures of histograms, sizes and lengths, with the package matplotlib (extra ``plots``): the same bytes each time.

Texts of data stand in a picture as they are: no ``$`` begins mathematics, and control characters are shown by number.
"""

import io
import math
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

from toolkit.data.excerpts import head
from toolkit.distribution import missing_extra
from toolkit.inspect.stats.histograms import Histogram
from toolkit.inspect.stats.lengths import Lengths, binned
from toolkit.inspect.stats.tables import size
from toolkit.storage.outputs import NamedOutput

PICTURES = (".png", ".svg", ".pdf")

MOST = 24
"""Bars of a picture; all others are one more."""

_TITLE = 32
"""Columns of the title of a bar, at most."""

INK, BAR, MARK, GRID = "#1b2733", "#3b6ea5", "#b3541e", "#d5dbe1"
"""Colours of texts and lines, bars, marks, and lines behind these."""


def check_installed() -> None:
    """Raise MissingExtra without matplotlib."""
    if find_spec("matplotlib") is None:
        raise missing_extra("plots", "pictures", "matplotlib")


def is_installed() -> bool:
    """Return whether matplotlib is there."""
    return find_spec("matplotlib") is not None


@contextmanager
def drawn(*outputs: NamedOutput, size: tuple[float, float] = (8, 4.5)) -> Iterator[Any]:
    """Give axes, and write what is drawn in them: PNG, SVG or PDF by the suffix; the same bytes each time.

    Raises:
        MissingExtra: without matplotlib.
    """
    with figure(size) as found:
        yield found.subplots()
        for output in outputs:
            output.save(rendered(found, output.path.rpartition(".")[2]))


@contextmanager
def figure(size: tuple[float, float]) -> Iterator[Any]:
    """Give a figure, within whose context it is drawn and `rendered`.

    Raises:
        MissingExtra: without matplotlib.
    """
    check_installed()
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib.figure import Figure

    inked = ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color")
    settings: dict[Any, Any] = dict.fromkeys(inked, INK)
    settings |= {"svg.hashsalt": "toolkit", "svg.fonttype": "none", "font.size": 9}
    settings |= {"grid.color": GRID, "text.parse_math": False}
    with mpl.rc_context(settings), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from font")  # its number stands in a box
        yield Figure(figsize=size, layout="constrained")


_UNDATED: dict[str, dict[str, Any]] = {
    "svg": {"Date": None, "Creator": None},
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
    "png": {"Software": None},
}


def rendered(found: Any, suffix: str, note: str = "") -> bytes:
    """Return a figure as ``png``, ``svg`` or ``pdf``, without date and version; note: that a PNG has in it."""
    for axes in found.axes:
        axes.spines[["top", "right"]].set_visible(False)
    data = io.BytesIO()
    about = _UNDATED.get(suffix, {}) | ({"Description": note} if note else {})
    found.savefig(data, format=suffix, dpi=150, metadata=about)
    return data.getvalue()


def draw(found: Histogram, output: NamedOutput) -> None:
    """Write a picture of a histogram.

    Raises:
        MissingExtra: without matplotlib.
    """
    with drawn(output) as axes:
        counts = [each.count for each in found.bins]
        if found.numbers:
            edges = [each.low for each in found.bins] + [found.bins[-1].high]
            logarithmic = len(edges) > 3 and not math.isclose(edges[-1] - edges[-2], edges[2] - edges[1])
            axes.stairs(counts, edges, fill=True, color=BAR)
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
            axes.bar([each.title for each in found.bins], counts, color=BAR)
            axes.tick_params(axis="x", rotation=60)
        axes.set_xlabel(found.attribute)
        axes.set_ylabel("values")


# --- by label ---------------------------------------------------------------------------------------------------------


def sizes_and_lengths(
    sizes: Sequence[tuple[str, int]],
    lengths: Sequence[Lengths],
    suffix: str,
    note: str = "",
) -> bytes:
    """Return a picture: a bar for the size of each label and, if lengths are given, how long its documents are.

    Args:
        sizes: titles and bytes, the largest first; all behind the first `MOST` are one bar.
        lengths: of the same labels; none for a picture of sizes alone.
        suffix: ``png``, ``svg`` or ``pdf``.
        note: text that a PNG has in it, and nobody sees.

    Raises:
        MissingExtra: without matplotlib.
    """
    rows, of_rows = _first(sizes, lengths)
    with figure((9 if lengths else 7, 1.3 + 0.24 * max(len(rows), 3))) as found:
        axes = found.subplots(1, 2, sharey=True, squeeze=False)[0] if lengths else [found.subplots()]
        places = list(range(len(rows)))
        axes[0].barh(places, [number for _, number in rows], color=BAR, height=0.7)
        axes[0].set_yticks(places, [head(title, _TITLE) for title, _ in rows])
        axes[0].set_ylim(len(rows) - 0.4, -0.6)
        axes[0].set_xlabel("size of the text")
        axes[0].xaxis.set_major_locator(_few())
        axes[0].xaxis.set_major_formatter(lambda number, _: size(number))
        if lengths:
            _draw_ranges(axes[1], of_rows)
        for each in axes:
            each.grid(axis="x", linewidth=0.6)
            each.set_axisbelow(True)
        return rendered(found, suffix, note)


def _few() -> Any:
    from matplotlib.ticker import MaxNLocator

    return MaxNLocator(4)


def _first(sizes: Sequence[tuple[str, int]], lengths: Sequence[Lengths]) -> tuple[list[tuple[str, int]], list[Lengths]]:
    """Return the first labels, and all others as one."""
    rows, of_rows = list(sizes[:MOST]), list(lengths[:MOST])
    if others := sizes[MOST:]:
        rows.append((f"{len(others):,} more", sum(number for _, number in others)))
        together = Lengths()
        for each in lengths[MOST:]:
            together.merge(each)
        of_rows += [together] if lengths else []
    return rows, of_rows


def _draw_ranges(axes: Any, lengths: Sequence[Lengths]) -> None:
    """Draw for each label a thin line that nine of ten documents lie on, a thick one for half of them, the median."""
    for place, each in enumerate(lengths):
        if each.counts:
            low, lower, middle, upper, high = (
                each.quantile(share) for share in ("0.05", "0.25", "0.5", "0.75", "0.95")
            )
            axes.plot([low, high], [place, place], color=BAR, linewidth=1)
            axes.plot([lower, upper], [place, place], color=BAR, linewidth=5, solid_capstyle="butt")
            axes.plot([middle], [place], color=MARK, marker="o", markersize=4, linestyle="none")
    axes.set_xscale("symlog", base=10, linthresh=1)
    axes.xaxis.set_major_formatter(lambda number, _: f"{number:,.0f}")
    axes.set_xlabel("characters of a document: half of all, nine of ten")


def lengths_of_all(found: Lengths, suffix: str, note: str = "") -> bytes:
    """Return a picture of how long documents are; arguments as of `sizes_and_lengths`.

    Raises:
        MissingExtra: without matplotlib.
    """
    edges, counts = binned(found)
    with figure((8, 4)) as picture:
        axes = picture.subplots()
        axes.stairs(counts, edges, fill=True, color=BAR)
        axes.set_xscale("symlog", base=10, linthresh=1)
        axes.xaxis.set_major_formatter(lambda number, _: f"{number:,.0f}")
        axes.set_xlabel("characters of a document")
        axes.set_ylabel("documents")
        axes.grid(axis="y", linewidth=0.6)
        axes.set_axisbelow(True)
        return rendered(picture, suffix, note)
