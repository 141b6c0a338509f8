"""The report's figures in windows of several widths: no key is wider than its figure."""

from __future__ import annotations

import json
from itertools import product
from typing import TYPE_CHECKING

import pytest

from fake_plans import FakeFlow, fake_plan
from pages.browser import browser, view
from plait.report import build
from result_folders import FakeCase, fresh_cache, write_study

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from selenium.webdriver import Chrome

SCHEDULERS = ("default", "minrtt", "roundrobin", "redundant", "an-own-scheduler")
OUTSIDE = """
const outside = [], seen = [];
for (const chart of document.querySelectorAll('.chart')) {
  const box = chart.querySelector('svg').getBoundingClientRect();
  for (const text of chart.querySelectorAll('.role-legend-label text')) {
    seen.push(text.textContent);
    if (text.getBoundingClientRect().right > box.right + 1) outside.push(text.textContent);
  }
}
return [outside, seen];
"""


@pytest.fixture(scope="module")
def chromium() -> Iterator[Chrome]:
    with browser() as driver:
        yield driver


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("results") / "study"
    cases = tuple(
        FakeCase(
            f"scheduler={scheduler},congestion_control={control}",
            {"scheduler": scheduler, "congestion_control": control},
            lambda seed: fake_plan(FakeFlow(transport="mptcp"), seed=seed),
        )
        for scheduler, control in product(SCHEDULERS, ("cubic", "reno"))
    )
    with pytest.MonkeyPatch.context() as patch:
        fresh_cache(patch, tmp_path_factory.mktemp("cache"))
        write_study(folder, cases, repeat=2)
        about = json.loads((folder / "study.json").read_text(encoding="utf-8"))
        figure = {"name": "grouped", "kind": "intervals", "x": "congestion_control", "color": "scheduler"}
        about["scenario"] = {**about["scenario"], "figures": [figure]}
        (folder / "study.json").write_text(json.dumps(about), encoding="utf-8")
        build(folder)
    return folder / "report.html"


@pytest.mark.parametrize("width", [360, 768])
def test_every_entry_of_a_key_lies_in_its_figure(page: Path, chromium: Chrome, width: int) -> None:
    assert view(chromium, page, width).too_wide_px == 0
    outside, seen = chromium.execute_script(OUTSIDE)
    assert set(SCHEDULERS) <= set(seen)
    assert outside == []
