"""Open a report in a real browser: headless Chromium, controlled by its WebDriver.

The Debian packages are chromium and chromium-driver.
"""

from __future__ import annotations

import os
import shutil
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from selenium.webdriver import Chrome, ChromeOptions, ChromeService
from selenium.webdriver.support.wait import WebDriverWait

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
MISSING = [name for name, program in (("chromium", CHROMIUM), ("chromium-driver", DRIVER)) if program is None]
HEIGHT = 900

LOADED = "return performance.getEntriesByType('navigation')[0].loadEventEnd > 0"
IN_VIEW_DRAWN = """
const near = [...document.querySelectorAll('.chart')].filter(
  (chart) => chart.offsetParent && chart.getBoundingClientRect().top < innerHeight);
return near.every((chart) => chart.querySelector('svg')) ? Math.max(1, performance.now()) : 0;
"""
DRAW_ALL = """
for (const panel of document.querySelectorAll('[hidden]')) if (panel.querySelector('.chart')) panel.hidden = false;
window.dispatchEvent(new Event('beforeprint'));
"""
FIGURES = """
const charts = [...document.querySelectorAll('.chart')];
return [charts.length, charts.filter((chart) => chart.querySelector('svg .mark-line, svg .mark-symbol, '
  + 'svg .mark-rect, svg .mark-area, svg .mark-rule, svg .mark-text')).length];
"""
TOO_WIDE = "return Math.max(0, document.documentElement.scrollWidth - document.documentElement.clientWidth)"


@dataclass(frozen=True)
class _BrowserView:
    """The state of a page at one width of the window."""

    usable_ms: float
    """From the start of loading until every figure in view is drawn, by the page's own clock."""
    charts: int
    drawn: int
    """Charts with marks, after a request for all of them."""
    too_wide_px: int
    """How far the page is wider than its window, so that a reader has to scroll sideways."""
    errors: tuple[str, ...]
    """The messages of the console, including warnings."""


@contextmanager
def browser() -> Iterator[Chrome]:
    """Start a browser that loads only files, and end it.

    Raises:
        selenium.common.WebDriverException: The browser cannot start.
    """
    options = ChromeOptions()
    options.binary_location = CHROMIUM or "chromium"
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-background-networking"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    # Chromium ends if its sockets would have a longer path than a socket may have.
    env = {name: value for name, value in os.environ.items() if name != "TMPDIR"}
    service = ChromeService(DRIVER or "chromedriver", env=env)
    driver = Chrome(options=options, service=service)
    try:
        yield driver
    finally:
        driver.quit()


def view(driver: Chrome, page: Path, width: int, longest_s: float = 60) -> _BrowserView:
    """Open `page` in a window of `width` pixels and draw all of its figures.

    Raises:
        selenium.common.TimeoutException: The page or its figures took longer than `longest_s` seconds.
    """
    wait = WebDriverWait(driver, longest_s, poll_frequency=0.02)
    metrics = {"width": width, "height": HEIGHT, "deviceScaleFactor": 1, "mobile": False}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    _console(driver)
    driver.get(page.resolve().as_uri())
    wait.until(lambda page_driver: page_driver.execute_script(LOADED))
    usable_ms = wait.until(lambda page_driver: page_driver.execute_script(IN_VIEW_DRAWN))
    driver.execute_script(DRAW_ALL)
    wait.until(lambda page_driver: len(set(page_driver.execute_script(FIGURES))) == 1)
    charts, drawn = driver.execute_script(FIGURES)
    return _BrowserView(usable_ms, charts, drawn, driver.execute_script(TOO_WIDE), _console(driver))


def _console(driver: Chrome) -> tuple[str, ...]:
    """Return the console's messages since the last call."""
    return tuple(entry["message"] for entry in driver.execute("getLog", {"type": "browser"})["value"])
