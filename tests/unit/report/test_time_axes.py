"""The page draws the trials that it compares on one time axis, but does not squeeze a short one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import plait
from fake_engine import FakeEngine
from result_folders import fresh_cache

if TYPE_CHECKING:
    from pathlib import Path

TEXT = """\
title: Durations
network: {hosts: [a, b], links: {a-b: {rate: 10mbit, delay: 5ms}}}
traffic: [{bulk: {from: a, to: b, duration: 1s}}]
vary: {traffic.0.bulk.duration: [DURATIONS]}
"""


@pytest.mark.parametrize(("durations", "own_axis"), [("1s, 8s", True), ("4s, 8s", False)])
def test_a_trial_that_is_much_shorter_has_its_own_time_axis_and_the_page_says_so(
    durations: str, own_axis: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fresh_cache(monkeypatch, tmp_path / "cache")
    (tmp_path / "durations.yaml").write_text(TEXT.replace("DURATIONS", durations), encoding="utf-8")
    plait.run(tmp_path / "durations.yaml", out=tmp_path / "out", engine=FakeEngine())
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert ("a trial below a third of the longest one&#39;s time has its own time axis" in page) == own_axis
