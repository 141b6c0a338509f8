"""A report in a real browser: Chromium without a window, driven by its WebDriver.

Debian has them as chromium and chromium-driver.
"""

from __future__ import annotations

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
class BrowserView:
    """What a reader of a page meets at one width of the window."""

    usable_ms: float
    """From the start of loading until every figure that is in view is drawn, as the page's own clock tells."""
    charts: int
    drawn: int
    """Charts with marks, after all were asked for."""
    too_wide_px: int
    """By how much the page is wider than its window, and would have to be moved sideways."""
    errors: tuple[str, ...]
    """What the console says, warnings included."""


@contextmanager
def browser() -> Iterator[Chrome]:
    """Starts a browser that loads nothing but files, and ends it.

    Raises:
        selenium.common.WebDriverException: The browser cannot be started.
    """
    options = ChromeOptions()
    options.binary_location = CHROMIUM or "chromium"
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-background-networking"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = Chrome(options=options, service=ChromeService(DRIVER or "chromedriver"))
    try:
        yield driver
    finally:
        driver.quit()


def view(driver: Chrome, page: Path, width: int, longest_s: float = 60) -> BrowserView:
    """Opens `page` in a window of `width` pixels and draws all of its figures.

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
    return BrowserView(usable_ms, charts, drawn, driver.execute_script(TOO_WIDE), _console(driver))


def _console(driver: Chrome) -> tuple[str, ...]:
    """What the console said since it was last asked."""
    return tuple(entry["message"] for entry in driver.execute("getLog", {"type": "browser"})["value"])
