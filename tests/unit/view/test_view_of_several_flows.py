"""The pages of a trial with several flows: what has a key, and that small windows break no word."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from fake_plans import FakeFlow, FakePath, fake_plan
from pages.browser import TOO_WIDE
from pages.view_visitor import Visitor, served
from result_folders import FakeCase, write_study

if TYPE_CHECKING:
    from collections.abc import Iterator

    from selenium.webdriver import Chrome

BROKEN_WORDS = """
const broken = [];
for (const cell of document.querySelectorAll('.plain th, .plain td, .grid th')) {
  const walker = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    for (const match of walker.currentNode.data.matchAll(/[A-Za-z0-9_.]+/g)) {
      const range = document.createRange();
      range.setStart(walker.currentNode, match.index);
      range.setEnd(walker.currentNode, match.index + match[0].length);
      if (new Set([...range.getClientRects()].map((box) => Math.round(box.top))).size > 1) broken.push(match[0]);
    }
  }
}
return broken;
"""
QUEUE_KEY = """
const figure = [...document.querySelectorAll('#time figure')].find((one) => one.textContent.startsWith('Queue'));
return figure ? [...figure.querySelectorAll('.key li')].map((entry) =>
  [entry.textContent, getComputedStyle(entry.querySelector('i')).backgroundColor]) : null;
"""


def case(control: str) -> FakeCase:
    paths = (FakePath(), FakePath(rate_bps=2_000_000, delay_ns=30_000_000))
    flows = [FakeFlow(transport="mptcp", start_us=number * 100_000) for number in range(2)]
    settings = {"congestion_control": control}
    return FakeCase(
        f"congestion_control={control}", settings, lambda seed: fake_plan(*flows, paths=paths, seed=seed)
    )


@pytest.fixture(scope="module")
def several(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("several")
    write_study(folder / "flows", (case("cubic"), case("reno")), repeat=2, title="Two flows")
    with served(folder) as server:
        yield server.address


@pytest.fixture
def study(several: str, chromium: Chrome) -> tuple[Visitor, str]:
    visitor = Visitor(chromium, several)
    return visitor, visitor.run("return plait.peek('studies').studies[0].id")


def test_queues_of_several_flows_have_a_key_with_a_colour_for_each(study: tuple[Visitor, str]) -> None:
    visitor, name = study
    visitor.go(f"s/{name}/c/0/t/0")
    key = visitor.until(QUEUE_KEY)
    assert len(key) > 1
    assert len({colour for _, colour in key}) == len(key)
    assert all("->" in queue for queue, _ in key)
    visitor.go(f"compare/{name}.0/{name}.1")
    assert len(visitor.until(QUEUE_KEY)) > 1


@pytest.mark.parametrize("width", [360, 768])
def test_no_table_breaks_a_word(study: tuple[Visitor, str], width: int) -> None:
    visitor, name = study
    visitor.size(width)
    for page in (f"s/{name}", f"s/{name}/c/1", f"s/{name}/c/1/t/0", f"compare/{name}.0/{name}.1"):
        visitor.go(page)
        visitor.settles(BROKEN_WORDS, [])
        visitor.settles(TOO_WIDE, 0)


def test_headings_name_a_field_in_words(study: tuple[Visitor, str]) -> None:
    visitor, name = study
    visitor.go(f"s/{name}")
    assert "Congestion control" in visitor.run("return document.querySelector('.grid thead').innerText")
    visitor.go(f"s/{name}/c/1")
    assert "congestion control reno" in visitor.text(".facts")
