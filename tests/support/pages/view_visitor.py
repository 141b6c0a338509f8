"""A person at the browser for tests of `plait view`, and a server to visit."""

from __future__ import annotations

import json
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
from selenium.common.exceptions import StaleElementReferenceException, TimeoutException
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.wait import WebDriverWait

from plait.view.server import serve

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from selenium.webdriver import Chrome

    from plait.view.server import ViewServer

LONGEST_S = 300


class Visitor:
    """A person at the browser: looks for what is visible by its words, clicks, and presses keys."""

    def __init__(self, driver: Chrome, address: str) -> None:
        self.driver = driver
        self.address = address
        self.clicks = 0
        self.size(1280)
        driver.get("about:blank")
        driver.get(address)
        self.until("return document.documentElement.dataset.shown === 'studies'")
        self.messages()

    def run(self, script: str, *arguments: object) -> Any:
        return self.driver.execute_script(script, *arguments)

    def until(self, script: str) -> Any:
        wait = WebDriverWait(self.driver, LONGEST_S, poll_frequency=0.02)
        return wait.until(lambda driver: driver.execute_script(script))

    def settles(self, script: str, value: object) -> None:
        """Wait until a script returns `value`: what a page that lays itself out becomes."""
        last: list[object] = []

        def settled(driver: Chrome) -> bool:
            last[:] = [driver.execute_script(script)]
            return last == [value]

        try:
            WebDriverWait(self.driver, LONGEST_S, poll_frequency=0.02).until(settled)
        except TimeoutException:
            pytest.fail(f"{self.run('return location.hash')}: {script} is {last[0]!r}, not {value!r}")

    def size(self, width: int, *, dark: bool = False) -> None:
        metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        theme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": theme})

    def go(self, place: str) -> None:
        """Open a page by its address behind `#/`."""
        self.run("location.hash = arguments[0]", f"#/{place}")
        self.until(f"return document.documentElement.dataset.shown === {json.dumps(place or 'studies')}")

    def click(self, selector: str, words: str = "", which: int = 0) -> None:
        """Click the first element, or a later one, that matches and contains the words."""
        find = (
            "return [...document.querySelectorAll(arguments[0])]"
            ".filter((e) => e.offsetParent && (e.textContent + (e.ariaLabel ?? '')).includes(arguments[1]))"
            "[arguments[2]]"
        )

        def clicked(driver: Chrome) -> bool:
            element = driver.execute_script(find, selector, words, which)
            if element is None:
                return False
            driver.execute_script("arguments[0].scrollIntoView({block: 'center'})", element)
            element.click()
            return True

        # A page that still reads its data replaces its rows: a person then clicks at the new one.
        replaced = [StaleElementReferenceException]
        wait = WebDriverWait(self.driver, LONGEST_S, poll_frequency=0.02, ignored_exceptions=replaced)
        wait.until(clicked, f"{selector} {words}")
        self.clicks += 1

    def shown(self, pattern: str) -> None:
        """Wait for the page whose address matches."""
        self.until(f"return new RegExp({json.dumps(pattern)}).test(document.documentElement.dataset.shown)")

    def drawn(self) -> int:
        """Wait until the charts in view are drawn; return how many."""
        self.until(
            "const near = [...document.querySelectorAll('.chart')]"
            ".filter((c) => c.getBoundingClientRect().top < innerHeight);"
            "return near.length > 0 && near.every((c) => c.querySelector('svg .mark-line, svg .mark-area path'))"
        )
        return int(self.run("return document.querySelectorAll('.chart svg').length"))

    def text(self, selector: str = "main") -> str:
        """Return what is visible of an element, as one reading: a page that still reads its data replaces elements."""
        return str(self.run("return document.querySelector(arguments[0]).innerText", selector))

    def press(self, *keys: str) -> None:
        """Press keys as a person does: they go to whatever has the focus."""
        ActionChains(self.driver).send_keys(*keys).perform()

    def tab_to(self, words: str, most: int = 60) -> None:
        """Press Tab until the focus is on an element with these words."""
        for _ in range(most):
            self.press(Keys.TAB)
            focused = self.run(
                "const e = document.activeElement;"
                "return e.matches('body, main') ? '' : `${e.textContent} ${e.ariaLabel ?? ''}`"
            )
            if words in focused:
                return
        pytest.fail(f"Tab does not reach {words!r}")

    def focus_is_visible(self) -> bool:
        """Return whether the focused element lies in the window, uncovered, and has an outline."""
        return bool(
            self.run(
                "const e = document.activeElement, r = e.getBoundingClientRect(), look = getComputedStyle(e);"
                "const top = document.elementFromPoint(r.left + Math.min(r.width / 2, 8), r.top + r.height / 2);"
                "return r.top >= 0 && r.bottom <= innerHeight && look.outlineStyle !== 'none' && "
                "parseFloat(look.outlineWidth) > 0 && (e.contains(top) || top.contains(e))"
            )
        )

    def messages(self) -> list[str]:
        log = self.driver.execute("getLog", {"type": "browser"})["value"]
        return [entry["message"] for entry in log]

    def requests(self) -> list[str]:
        return list(
            self.run("return performance.getEntries().map((e) => e.name).filter((n) => n.includes(':'))")
        )


@contextmanager
def served(folder: Path) -> Iterator[ViewServer]:
    server = serve([folder])
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.stop()
        thread.join(timeout=LONGEST_S)
