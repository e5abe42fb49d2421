"""Histograms as text, and pictures of histograms, sizes and lengths.

Pictures need matplotlib (extra ``plots``); they are the same bytes each time.

Texts of data stand in a picture as they are: no ``$`` begins mathematics, and control characters are shown by number.
"""

import io
import itertools
import math
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal
from importlib.util import find_spec
from typing import Any

import msgspec

from toolkit.aggregate.distributions import Distribution, finite, numbers
from toolkit.aggregate.histogram import Histogram, binned, merged, quantile
from toolkit.aggregate.tables import LENGTHS, display, percent, size
from toolkit.aggregate.thresholds import Threshold
from toolkit.data.excerpts import head
from toolkit.distribution import require_extra
from toolkit.errors import ConfigError, amount
from toolkit.storage.outputs import NamedOutput

BINS = 24
BAR_CHARS = 50
"""Letters of the longest bar in the terminal."""


class HistogramBar(msgspec.Struct, frozen=True):
    """A bar: of numbers from `low` to below `high` (the last with it), or of one value."""

    title: str
    count: int
    low: float = 0.0
    high: float = 0.0


class Bars(msgspec.Struct, kw_only=True):
    """A histogram as it is drawn.

    Attributes:
        attribute: path.
        bins: Bins, in order.
        nulls: values that are not there.
        no_lists: lists that are not there, of elements.
        thresholds: Thresholds of rules; empty where values are no numbers.
        numbers: True if bins are ranges of numbers.
    """

    attribute: str
    bins: list[HistogramBar]
    nulls: int
    no_lists: int
    thresholds: list[Threshold]
    numbers: bool

    @classmethod
    def of(cls, distribution: Distribution, thresholds: Sequence[Threshold]) -> "Bars":
        """Return the histogram of a distribution.

        Raises:
            ConfigError: if there is nothing to draw, or too many different texts.
        """
        if not distribution.count:
            got = amount(distribution.nulls, "null") if distribution.nulls else "none"
            raise ConfigError(f"--histogram {distribution.attribute}: expected values, got {got}")
        are_numbers = distribution.buckets is not None
        if are_numbers:
            bins = _ranges(distribution)
        elif distribution.values is None:
            raise ConfigError(
                f"--histogram {distribution.attribute}: expected numbers or few different values, got many texts"
            )
        else:
            ranked = sorted(distribution.values, key=lambda value: (-value[1], value[0]))
            bins = [HistogramBar(display(value), count) for value, count in ranked[:BINS]]
            if rest := ranked[BINS:]:
                bins.append(HistogramBar(f"{len(rest)} more", sum(count for _, count in rest)))
        return cls(
            attribute=distribution.attribute,
            bins=bins,
            nulls=distribution.nulls,
            no_lists=distribution.no_lists,
            thresholds=list(thresholds) if are_numbers else [],
            numbers=are_numbers,
        )

    def data(self) -> dict[str, Any]:
        """Return the histogram for programs."""
        bins: list[dict[str, Any]] = [
            {"low": bin_.low, "high": bin_.high, "count": bin_.count}
            if self.numbers
            else {"value": bin_.title, "count": bin_.count}
            for bin_ in self.bins
        ]
        marked = [threshold._asdict() for threshold in self.thresholds]
        missing = {"nulls": self.nulls, "null_lists": self.no_lists}
        return {"attribute": self.attribute, "bins": bins, **missing, "thresholds": marked}


def _ranges(distribution: Distribution) -> list[HistogramBar]:
    """Return bins of one width with round edges; of a long tail bins that end at powers of two."""
    assert distribution.buckets
    low, high = finite(distribution.buckets.low), finite(distribution.buckets.high)
    listed = numbers(distribution)
    upper = quantile(listed, distribution.count, "0.75")
    edges = _powers(low, high) if low >= 0 and high > 64 and high > 32 * max(upper, 1) else _edges(low, high)
    counts = binned(listed, edges)
    return [HistogramBar(f"{a:.15g}", count, a, b) for a, b, count in zip(edges, edges[1:], counts, strict=False)]


def _powers(low: float, high: float) -> list[float]:
    """Return edges at powers of two, at most `BINS` + 3."""
    first, last = math.frexp(max(low, 1.0))[1] - 1, math.frexp(high)[1]
    step = -(-(last - first) // BINS)
    powers = [finite(Decimal(2) ** n) for n in range(first, last + step, step)]
    return ([0.0] if low < powers[0] else []) + powers


def _edges(low: float, high: float) -> list[float]:
    """Return edges at round multiples of a power of ten.

    They are multiples of 1, 2, 2.5 or 5, computed in decimals to be exact.

    The step is the least by which there are about `BINS` bins at most, from half of that on. Where numbers hardly
    differ it is larger: edges must.
    """
    least, greatest = Decimal(repr(low)), Decimal(repr(high))
    width = (greatest - least) / BINS or Decimal(1)
    for step in _steps(width):
        first, last = math.floor(least / step), math.floor(greatest / step)
        edges = [finite((first + i) * step) for i in range(last - first + 2)]
        if edges[0] <= low and high <= edges[-1] and all(a < b for a, b in itertools.pairwise(edges)):
            return edges
    raise AssertionError((low, high))


def _steps(width: Decimal) -> Iterator[Decimal]:
    """Yield round numbers, from the width on (less a thousandth)."""
    for exponent in itertools.count(width.adjusted()):
        for factor in ("1", "2", "2.5", "5"):
            if (step := Decimal(factor).scaleb(exponent)) >= width * Decimal("0.999"):
                yield step


# --- the terminal -----------------------------------------------------------------------------------------------------


def text(bars: Bars) -> str:
    """Return bars of letters, a line for each bin; where a threshold lies, a line says whose."""
    whole = sum(bin_.count for bin_ in bars.bins)
    most = max(bin_.count for bin_ in bars.bins)
    width = max(len(bin_.title) for bin_ in bars.bins)
    numbers = max(len(f"{bin_.count:,}") for bin_ in bars.bins)
    share = percent(bars.nulls / (whole + bars.nulls))
    head = f"{bars.attribute}: {amount(whole, 'value')}, {amount(bars.nulls, 'null')} ({share})"
    lines = [head + (f", {amount(bars.no_lists, 'null list')}" if bars.no_lists else ""), ""]
    left = list(bars.thresholds)
    for bin_ in bars.bins:
        while left and bars.numbers and left[0].number <= bin_.low:
            lines.append(_mark(left.pop(0), width))
        title = bin_.title.rjust(width) if bars.numbers else bin_.title.ljust(width)
        bar = "█" * round(BAR_CHARS * bin_.count / most) or ("▏" if bin_.count else "")
        lines.append(f"{title} │ {bin_.count:>{numbers},} {percent(bin_.count / whole):>7} {bar}".rstrip())
        while left and bars.numbers and left[0].number < bin_.high:
            lines.append(_mark(left.pop(0), width))
    lines += [_mark(item, width) for item in left]
    return "\n".join(lines)


def _mark(threshold: Threshold, width: int) -> str:
    of = f" ({threshold.label})" if threshold.label else ""
    return f"{'─' * width}─┼─ {threshold.text}{of}: {threshold.rule}"


PICTURES = (".png", ".svg", ".pdf")

MOST = 24
"""Bars of a picture; all others are one more."""

_TITLE = 32
"""Columns of the title of a bar, at most."""

INK, BAR, MARK, GRID = "#1b2733", "#3b6ea5", "#b3541e", "#d5dbe1"
"""Colours of texts and lines, bars, marks, and lines behind these."""


def check_installed() -> None:
    """Raise MissingExtra without matplotlib."""
    require_extra("plots", "pictures", "matplotlib")


def is_installed() -> bool:
    """Return True if matplotlib is installed."""
    return find_spec("matplotlib") is not None


@contextmanager
def drawn(*outputs: NamedOutput, size: tuple[float, float] = (8, 4.5)) -> Iterator[Any]:
    """Give axes, and write the drawing: PNG, SVG or PDF by the suffix; the same bytes each time.

    Raises:
        MissingExtra: without matplotlib.
    """
    with figure(size) as result:
        yield result.subplots()
        for output in outputs:
            output.save(rendered(result, output.path.rpartition(".")[2]))


@contextmanager
def figure(size: tuple[float, float]) -> Iterator[Any]:
    """Give a figure for drawing and `rendered`.

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


def rendered(picture: Any, suffix: str, note: str = "") -> bytes:
    """Return a figure as ``png``, ``svg`` or ``pdf``, without date and version; note: that a PNG has in it."""
    for axes in picture.axes:
        axes.spines[["top", "right"]].set_visible(False)
    data = io.BytesIO()
    about = _UNDATED.get(suffix, {}) | ({"Description": note} if note else {})
    picture.savefig(data, format=suffix, dpi=150, metadata=about)
    return data.getvalue()


def draw(bars: Bars, output: NamedOutput) -> None:
    """Write a picture of a histogram.

    Raises:
        MissingExtra: without matplotlib.
    """
    with drawn(output) as axes:
        counts = [bin_.count for bin_ in bars.bins]
        if bars.numbers:
            edges = [bin_.low for bin_ in bars.bins] + [bars.bins[-1].high]
            logarithmic = len(edges) > 3 and not math.isclose(edges[-1] - edges[-2], edges[2] - edges[1])
            axes.stairs(counts, edges, fill=True, color=BAR)
            if logarithmic:
                axes.set_xscale("symlog", base=2, linthresh=1)
            for i, threshold in enumerate(bars.thresholds):
                of = f" ({threshold.label})" if threshold.label else ""
                axes.axvline(
                    threshold.number,
                    color=f"C{1 + i % 9}",
                    linestyle="--",
                    linewidth=1.2,
                    label=f"{threshold.text}{of}",
                )
            if bars.thresholds:
                axes.legend()
        else:
            axes.bar([bin_.title for bin_ in bars.bins], counts, color=BAR)
            axes.tick_params(axis="x", rotation=60)
        axes.set_xlabel(bars.attribute)
        axes.set_ylabel("values")


# --- by label ---------------------------------------------------------------------------------------------------------


def sizes_and_lengths(
    sizes: Sequence[tuple[str, int]], lengths: Sequence[Histogram], suffix: str, note: str = ""
) -> bytes:
    """Return a picture: a bar for the size of each label and, if lengths are given, how long its documents are.

    Args:
        sizes: titles and bytes, the largest first; all behind the first `MOST` are one bar.
        lengths: Lengths of the same labels; none for a picture of sizes alone.
        suffix: ``png``, ``svg`` or ``pdf``.
        note: text that a PNG has in it, and nobody sees.

    Raises:
        MissingExtra: without matplotlib.
    """
    check_installed()
    from matplotlib.ticker import MaxNLocator

    rows, of_rows = _first(sizes, lengths)
    with figure((9 if lengths else 7, 1.3 + 0.24 * max(len(rows), 3))) as result:
        axes = result.subplots(1, 2, sharey=True, squeeze=False)[0] if lengths else [result.subplots()]
        places = list(range(len(rows)))
        axes[0].barh(places, [number for _, number in rows], color=BAR, height=0.7)
        axes[0].set_yticks(places, [head(title, _TITLE) for title, _ in rows])
        axes[0].set_ylim(len(rows) - 0.4, -0.6)
        axes[0].set_xlabel("size of the text")
        axes[0].xaxis.set_major_locator(MaxNLocator(4))
        axes[0].xaxis.set_major_formatter(lambda number, _: size(number))
        if lengths:
            _draw_ranges(axes[1], of_rows)
        for axis in axes:
            axis.grid(axis="x", linewidth=0.6)
            axis.set_axisbelow(True)
        return rendered(result, suffix, note)


def _first(
    sizes: Sequence[tuple[str, int]], lengths: Sequence[Histogram]
) -> tuple[list[tuple[str, int]], list[Histogram]]:
    """Return the first labels, and all others as one."""
    rows, of_rows = list(sizes[:MOST]), list(lengths[:MOST])
    if rest := sizes[MOST:]:
        rows.append((f"{len(rest):,} more", sum(number for _, number in rest)))
        of_rows += [merged(lengths[MOST:])] if lengths else []
    return rows, of_rows


def _draw_ranges(axes: Any, lengths: Sequence[Histogram]) -> None:
    """Draw the range of lengths of each label.

    A thin line has nine of ten documents, a thick one half of them, a mark the median.
    """
    for place, length in enumerate(lengths):
        if length.count:
            low, lower, middle, upper, high = map(length.quantile, LENGTHS)
            axes.plot([low, high], [place, place], color=BAR, linewidth=1)
            axes.plot([lower, upper], [place, place], color=BAR, linewidth=5, solid_capstyle="butt")
            axes.plot([middle], [place], color=MARK, marker="o", markersize=4, linestyle="none")
    axes.set_xscale("symlog", base=10, linthresh=1)
    axes.xaxis.set_major_formatter(lambda number, _: f"{number:,.0f}")
    axes.set_xlabel("characters of a document: half of all, nine of ten")


def lengths_of_all(histogram: Histogram, suffix: str, note: str = "") -> bytes:
    """Return a picture of how long documents are; arguments as of `sizes_and_lengths`.

    Raises:
        MissingExtra: without matplotlib.
    """
    edges = [
        0,
        *(digit * 10**power for power in range(len(str(histogram.high))) for digit in (1, 2, 5)),
        10 ** len(str(histogram.high)),
    ]
    counts = binned(histogram.numbers(), edges)
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
