"""Headless Chromium, of the system: how it starts, and what it tells of a page."""

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.waiting import LOOK, PATIENCE

PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
AXE = Path(__file__).parent / "vendor" / "axe-core-4.14.1.min.js"


class Browser:
    """A browser with one page at a time.

    Attributes:
        driver: Selenium's.
    """

    def __init__(self, driver: Any) -> None:
        self.driver = driver

    def open(self, address: str, width: int = 1400, *, dark: bool = False, height: int = 900) -> None:
        """Open a page in a window of this width, in light or dark; what was told before is forgotten."""
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})
        self.driver.get("about:blank")
        self.told()
        self.driver.get_log("browser")
        self.driver.get(address)

    def run(self, script: str, *arguments: Any) -> Any:
        """Return what a script returns, as the tools of developers run it: the page's policy does not hold for it."""
        return self.driver.execute_script(script, *arguments)

    def wait(self, script: str) -> Any:
        """Return what an expression is, as soon as it is true."""
        from selenium.webdriver.support.wait import WebDriverWait

        return WebDriverWait(self.driver, PATIENCE, poll_frequency=LOOK).until(lambda _: self.run(f"return {script}"))

    def told(self) -> list[dict[str, Any]]:
        """Return the events of network and page since the last call."""
        return [json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")]

    def requests(self) -> list[str]:
        """Return the addresses that were asked for since the page was opened."""
        return [
            event["params"]["request"]["url"] for event in self.told() if event["method"] == "Network.requestWillBeSent"
        ]

    def console(self) -> list[str]:
        """Return what the console has: errors and warnings of scripts, and of the policy."""
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def axe(self) -> list[str]:
        """Return what axe-core finds that is serious or critical, each with a place."""
        self.driver.execute_script(AXE.read_text(encoding="utf-8"))
        found = self.driver.execute_async_script("axe.run(document, {resultTypes: ['violations']}).then(arguments[0])")
        return [
            f"{each['id']}: {each['help']}: {node['html'][:200]}: {node['failureSummary'][:300]}"
            for each in found["violations"]
            if each["impact"] in ("serious", "critical")
            for node in each["nodes"][:3]
        ]

    def press(self, selector: str, *keys: str) -> None:
        """Press keys on an element."""
        element = self.driver.find_element("css selector", selector)
        for key in keys:
            element.send_keys(key)


@contextmanager
def browser(folder: Path) -> Iterator[Browser]:
    """Start a browser; skip where there is none, no driver, or where the two do not start with each other.

    Only the start may be missing: whatever fails later fails the test.
    """
    program = next(filter(None, map(shutil.which, PROGRAMS)), None)
    driver = shutil.which("chromedriver")
    if program is None or driver is None:
        pytest.skip("needs Chromium and chromedriver: apt-get install chromium chromium-driver")
    from selenium.common.exceptions import WebDriverException
    from selenium.webdriver import Chrome, ChromeOptions, ChromeService
    from urllib3.exceptions import HTTPError

    options = ChromeOptions()
    options.binary_location = program
    for argument in (
        "headless=new",
        "no-sandbox",
        "disable-gpu",
        "disable-dev-shm-usage",
        "hide-scrollbars",
        f"user-data-dir={folder}",
    ):
        options.add_argument(f"--{argument}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    started: Chrome | None = None
    missing = ""
    try:
        started = Chrome(options=options, service=ChromeService(driver))
        started.get("data:text/html,<span>text</span>")
        if not started.execute_script("return document.querySelector('span').getBoundingClientRect().width"):
            missing = "needs fonts: apt-get install fonts-dejavu-core"  # without any, tabs crash
    except (WebDriverException, HTTPError) as error:  # of other versions, or not allowed to start processes
        missing = f"needs a {program} that {driver} can start: {str(error).strip().splitlines()[0]}"
    if missing:
        if started is not None:
            started.quit()
        pytest.skip(missing)
    assert started is not None
    try:
        started.set_script_timeout(PATIENCE)
        started.set_page_load_timeout(PATIENCE)
        yield Browser(started)
    finally:
        started.quit()
