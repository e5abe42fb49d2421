"""Results as Markdown for people and as JSON for machines."""

import importlib.metadata
import os
import platform
import shutil
import statistics
import subprocess
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tests.benchmarks.measure import cores
from tests.benchmarks.peers import Peers
from tests.benchmarks.race import Contender, Figure, Raced, Run
from tests.conftest import ROOT
from toolkit import __version__

MB = 1e6
NOTHING = "–"
WIDTH = 120
"""Of lines, so that results can stand in a page."""


def markdown(machine: Mapping[str, str], raced: Iterable[Raced]) -> str:
    """All tables; each benchmark is a section."""
    return "\n\n".join([head(machine), *(section(each) for each in raced)]) + "\n"


def head(machine: Mapping[str, str]) -> str:
    """What it was measured on, and with."""
    return "\n".join(_item(f"{name}: {value}") for name, value in machine.items())


def section(raced: Raced) -> str:
    """The tables of a benchmark."""
    benchmark = raced.benchmark
    there = [each for each in benchmark.contenders if each.name in raced.runs]
    rounds = max((len(runs) for runs in raced.runs.values()), default=0)
    pieces = [f"### {benchmark.title}", _wrapped(f"{benchmark.about} Rounds: {rounds}.")]
    if there:
        pieces.append(_contenders(there, raced))
        if benchmark.paper:
            pieces.append(_paper(there, raced))
    pieces.append(_notes(there, raced))
    if benchmark.figures:
        pieces.append(_figures(benchmark.figures, raced))
    pieces += [_wrapped(f"Left out: {name}: {why}") for name, why in raced.left_out.items()]
    return "\n\n".join(piece for piece in pieces if piece)


def _contenders(contenders: Sequence[Contender], raced: Raced) -> str:
    rows = [["", "text MB", "CPU s", "wall s", "MB/s a core", "inner MB/s", "core-h/TB", "peak MB", "output MB"]]
    for each in contenders:
        runs = raced.runs[each.name]
        cpu = _median(runs, lambda run: run.cpu)
        inner = [run.inner for run in runs if run.inner is not None]
        rows.append(
            [
                each.name,
                _number(each.text / MB) if each.text else NOTHING,
                _spread([run.cpu for run in runs]),
                _spread([run.wall for run in runs]),
                _number(each.text / MB / cpu) if each.text else NOTHING,
                _number(each.text / MB / statistics.median(inner)) if inner else NOTHING,
                _number(core_hours(each, runs)) if each.text else NOTHING,
                _number(_median(runs, lambda run: run.peak) / MB),
                _number(_median(runs, lambda run: run.output) / MB) if any(run.output for run in runs) else NOTHING,
            ]
        )
    return _table(rows)


def _paper(contenders: Sequence[Contender], raced: Raced) -> str:
    """Seconds as goclassy's paper prints them."""
    rows = [["", "", "minimum", "maximum", "mean"]]
    times: dict[str, Callable[[Run], float]] = {
        "real": lambda run: run.wall,
        "user": lambda run: run.user,
        "sys": lambda run: run.system,
    }
    for what, value in times.items():
        for each in contenders:
            values = [value(run) for run in raced.runs[each.name]]
            found = (min(values), max(values), statistics.mean(values))
            rows.append([what, each.name, *(f"{_number(seconds)} s" for seconds in found)])
    return _table(rows, left=2)


def _figures(figures: Sequence[Figure], raced: Raced) -> str:
    rows = [["", "median", "lowest", "highest", "target", ""]]
    for figure in figures:
        values = raced.values(figure)
        target = next(
            (
                f"{sign} {limit:.3g}{figure.unit}"
                for sign, limit in (("≥", figure.at_least), ("≤", figure.at_most))
                if limit is not None
            ),
            "",
        )
        if values is None:
            rows.append([figure.what, NOTHING, NOTHING, NOTHING, target, "not measured"])
            continue
        shown = [f"{_number(number)}{figure.unit}" for number in (statistics.median(values), min(values), max(values))]
        met = {True: "met", False: "**missed**", None: ""}[figure.holds(values)]
        rows.append([figure.what, *shown, target, met])
    return _table(rows)


def _notes(contenders: Sequence[Contender], raced: Raced) -> str:
    """What each did, what is to be said of it, and whether they agree."""
    lines = []
    for each in contenders:
        counts = raced.runs[each.name][-1].counts
        did = ", ".join(f"{_count(value)} {name}" for name, value in counts.items())
        if said := "; ".join(filter(None, (did, each.note))):
            lines.append(_item(f"{each.name}: {said}"))
    return "\n".join([*lines, *map(_item, agreements(raced))])


def agreements(raced: Raced) -> list[str]:
    """Whether the contenders of the same text did the same work."""
    lines = []
    for count in raced.benchmark.same:
        by_text: dict[int, dict[str, int | str]] = {}
        for each in raced.benchmark.contenders:
            for run in raced.runs.get(each.name, []):
                if count in run.counts:
                    found = by_text.setdefault(each.text, {})
                    if found.setdefault(each.name, run.counts[count]) != run.counts[count]:
                        found[f"{each.name}, another round"] = run.counts[count]
        for values in by_text.values():
            if len(values) < 2:
                continue
            if len(set(values.values())) == 1:
                lines.append(f"{count}: {_count(next(iter(values.values())))} in all {len(values)}")
            else:
                shown = "; ".join(f"{name} {_count(value)}" for name, value in values.items())
                lines.append(f"{count} **differ**: {shown}")
    return lines


def _table(rows: Sequence[Sequence[str]], left: int = 1) -> str:
    line = ["---" if i < left or not name else "---:" for i, name in enumerate(rows[0])]
    return "\n".join("| " + " | ".join(row) + " |" for row in (rows[0], line, *rows[1:]))


def _spread(values: Sequence[float]) -> str:
    return f"{_number(statistics.median(values))} ({_number(min(values))}–{_number(max(values))})"


def _median(runs: Sequence[Run], value: Callable[[Run], float]) -> float:
    return statistics.median(value(run) for run in runs)


def _number(value: float) -> str:
    """Three digits that say something, and all before the point."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def _wrapped(text: str) -> str:
    return textwrap.fill(text, WIDTH, break_long_words=False, break_on_hyphens=False)


def _item(text: str) -> str:
    return textwrap.fill(
        text, WIDTH, initial_indent="- ", subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
    )


def _count(value: int | str) -> str:
    return f"{value:,}" if isinstance(value, int) else value


def core_hours(contender: Contender, runs: Sequence[Run]) -> float:
    """That a terabyte of text would take."""
    return core_hours_of(_median(runs, lambda run: run.cpu), contender.text)


def core_hours_of(cpu: float, text: int) -> float:
    """For a terabyte of text, from CPU seconds for so many bytes of it."""
    return cpu / text * 1e12 / 3600


def as_json(machine: Mapping[str, str], raced: Iterable[Raced]) -> dict[str, Any]:
    """Everything, each round included."""
    return {"machine": dict(machine), "benchmarks": [_benchmark_json(each) for each in raced]}


def _benchmark_json(raced: Raced) -> dict[str, Any]:
    benchmark = raced.benchmark
    contenders = {
        each.name: {
            "text": each.text,
            "note": each.note,
            "core_hours_a_tb": core_hours(each, raced.runs[each.name]) if each.text else None,
            "runs": [asdict(run) for run in raced.runs[each.name]],
        }
        for each in benchmark.contenders
        if each.name in raced.runs
    }
    figures = []
    for figure in benchmark.figures:
        values = raced.values(figure)
        found = {
            "what": figure.what,
            "unit": figure.unit.strip(),
            "at_least": figure.at_least,
            "at_most": figure.at_most,
            "values": values,
            "median": statistics.median(values) if values else None,
            "met": figure.holds(values) if values else None,
        }
        figures.append(found)
    return {
        "title": benchmark.title,
        "about": benchmark.about,
        "contenders": contenders,
        "figures": figures,
        "agreements": agreements(raced),
        "left_out": raced.left_out,
    }


# What the figures were measured on, and with.

PACKAGES = ("numba", "numpy", "msgspec", "isal", "zlib-ng", "FastWARC")
OF_PEERS = {
    "fasttext": ("fasttext-numpy2", "numpy"),
    "dolma": ("dolma", "fasttext-wheel"),
    "datatrove": ("datatrove", "fasttext-numpy2-wheel", "orjson", "spacy"),
}


def describe(peers: Peers) -> dict[str, str]:
    """The machine and the versions, a line each."""
    ours = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in PACKAGES)
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "processor": f"{_processor()}, {cores()} cores",
        "memory": f"{memory / 2**30:.0f} GiB",
        "system": f"{platform.system()} {platform.release()}, {platform.machine()}",
        "load before": f"{os.getloadavg()[0]:.2f}",
        "python": platform.python_version(),
        "toolkit": f"{__version__}{_commit()}; {ours}",
        **{
            name: ", ".join(f"{each} {versions.get(each, 'none')}" for each in OF_PEERS[name])
            for name, versions in peers.versions.items()
        },
        "fastText command line": peers.compiled or "none",
        "awk": Path(shutil.which("awk") or "none").resolve().name,
    }


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.is_file() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def _commit() -> str:
    """Of the working tree; a star if it has changes."""
    git = ["git", "-C", str(ROOT)]
    found = subprocess.run([*git, "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    if found.returncode:
        return ""
    changed = subprocess.run([*git, "status", "--porcelain"], capture_output=True, text=True, check=False).stdout
    return f" ({found.stdout.strip()}{'*' if changed.strip() else ''})"
