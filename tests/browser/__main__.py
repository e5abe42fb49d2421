"""How long a report takes to open: ``python -m tests.browser``, on a machine that does nothing else.

Without a page, one of 10^6 documents, 100 languages and 20 rules is made first. The table has medians, and the lowest
and highest of the rounds, in seconds since the navigation began; a browser is started once, and no round is left out.
"""

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from tests.browser import chromium, large

READY = "document.documentElement.dataset.ready"
TIMES = """
const [navigation] = performance.getEntriesByType("navigation"), ready = performance.getEntriesByName("ready")[0];
const paints = Object.fromEntries(performance.getEntriesByType("paint").map((each) => [each.name, each.startTime]));
return {"first paint": paints["first-paint"], "first content": paints["first-contentful-paint"],
        "loaded (loadEventEnd)": navigation.loadEventEnd, "all parts made": ready && ready.startTime};
"""


def main() -> int:
    """Open each page some times; 1 if one takes a second or more until it is loaded."""
    given = _parser().parse_args()
    pages = given.pages or [_made(given.work, given.documents)]
    load = os.getloadavg()
    print(f"{os.cpu_count()} cores, load {load[0]:.1f} (1 min), {load[1]:.1f} (5 min)\n")
    slow = False
    try:
        with tempfile.TemporaryDirectory() as folder, chromium.browser(Path(folder)) as browser:
            browser.driver.execute_cdp_cmd("Performance.enable", {"timeDomain": "threadTicks"})
            for page in pages:
                rounds = [_opened(browser, page) for _ in range(given.rounds)]
                print(_table(page, rounds), flush=True)
                slow |= statistics.median(each["loaded (loadEventEnd)"] for each in rounds) >= 1
    except pytest.skip.Exception as missing:
        print(missing, file=sys.stderr)
        return 2
    return int(slow)


def _made(work: Path, documents: int) -> Path:
    config, page = large.lay_out(work / str(documents), documents), work / str(documents) / "report.html"
    begin, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-m", "toolkit", "report", "-c", config, "-o", page], check=True)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = used.ru_utime + used.ru_stime - before.ru_utime - before.ru_stime
    print(f"{documents:,} documents: report in {time.monotonic() - begin:.1f} s, {cpu:.1f} CPU s\n", flush=True)
    return page


def _opened(browser: chromium.Browser, page: Path) -> dict[str, float]:
    """Return the times of opening a page, in seconds."""
    browser.open(page.resolve().as_uri())
    browser.wait(READY)
    found = {name: float(value) / 1000 for name, value in browser.run(TIMES).items() if value is not None}
    metrics = browser.driver.execute_cdp_cmd("Performance.getMetrics", {})["metrics"]
    cpu = {each["name"]: float(each["value"]) for each in metrics}  # of the thread of this page, since it was opened
    return {**found, "CPU of the page": cpu["TaskDuration"], "of that, scripts": cpu["ScriptDuration"]}


def _table(page: Path, rounds: list[dict[str, float]]) -> str:
    lines = [f"{page}: {page.stat().st_size / 1e6:.2f} MB, opened {len(rounds)} times", ""]
    lines += ["| | median, s | lowest | highest |", "| --- | ---: | ---: | ---: |"]
    for name in rounds[0]:
        values = [each[name] for each in rounds if name in each]
        lines.append(f"| {name} | {statistics.median(values):.2f} | {min(values):.2f} | {max(values):.2f} |")
    return "\n".join([*lines, ""])


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.browser", description=__doc__)
    parser.add_argument("pages", nargs="*", type=Path, metavar="PAGE", help="reports that are there (one is made)")
    parser.add_argument("--documents", type=int, default=1_000_000, help="of the report that is made (1000000)")
    parser.add_argument("--rounds", type=int, default=5, help="times that each page is opened (5)")
    work = Path(tempfile.gettempdir()) / "tagmix-browser"
    parser.add_argument("--work", type=Path, default=work, help="for what is made, which is kept")
    return parser


if __name__ == "__main__":
    sys.exit(main())
