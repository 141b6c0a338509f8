"""A real browser draws the report's figures, logs no error, and fits the page into every window width."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from selenium.common.exceptions import TimeoutException

import plait
from fake_engine import FakeEngine
from pages.browser import MISSING, browser, view

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from selenium.webdriver import Chrome

pytestmark = [
    pytest.mark.guest,
    pytest.mark.skipif(
        bool(MISSING), reason=f"needs {', '.join(MISSING)}: `tools/system-packages test` installs them"
    ),
]
PHONE, DESK = 360, 1280
"""Widths of a window, in pixels."""

STUDIES = {
    "pair": ("two-paths", 1, {"traffic.0.bulk.duration": "2s", "monitors": {"interfaces": "200ms"}}),
    "repeats": ("two-paths", 6, {"traffic.0.bulk.duration": "1s"}),
    "heat map": ("path-delays", 1, {"traffic.0.bulk.duration": "1s"}),
    "messages": ("request-response", 1, {}),
}


@pytest.fixture(scope="module")
def chromium() -> Iterator[Chrome]:
    with browser() as driver:
        yield driver


@pytest.mark.parametrize("name", STUDIES)
def test_a_report_is_drawn_whole_in_narrow_and_wide_windows(
    name: str, chromium: Chrome, tmp_path: Path
) -> None:
    scenario, repeat, settings = STUDIES[name]
    study = plait.run(scenario, out=tmp_path / "study", repeat=repeat, set=settings, progress=False)
    for width in (PHONE, DESK):
        seen = view(chromium, study.folder / "report.html", width)
        assert seen.errors == ()
        assert seen.too_wide_px == 0
        assert seen.drawn == seen.charts > 1


def test_a_figure_that_cannot_be_drawn_would_be_seen(chromium: Chrome, tmp_path: Path) -> None:
    study = plait.run("two-paths", out=tmp_path / "study", repeat=4, engine=FakeEngine(), progress=False)
    page = study.folder / "report.html"
    assert view(chromium, page, DESK).drawn > 1
    page.write_text(page.read_text(encoding="utf-8").replace('"mark":', '"mork":', 1), encoding="utf-8")
    with pytest.raises(TimeoutException):
        view(chromium, page, DESK, longest_s=4)
    assert chromium.get_log("browser")
