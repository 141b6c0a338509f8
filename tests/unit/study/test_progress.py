"""Progress of a study: what a line, a JSON object and the bar say when a trial ends."""

from __future__ import annotations

import io
import json
import re
from typing import TYPE_CHECKING

from rich.console import Console

from plait.study.progress import on_standard_error, progress_bar
from plait.study.study import TrialKey, TrialOutcome

if TYPE_CHECKING:
    import pytest


def outcome(number: int, error: str | None = None, *, reused: bool = False) -> TrialOutcome:
    return TrialOutcome(TrialKey("transport=tcp", number), error, reused, 0.25)


def lines(capsys: pytest.CaptureFixture[str], workers: int | None, *, as_json: bool = False) -> list[str]:
    """Return what three trials write to standard error without a terminal; one of them fails."""
    count = None if workers is None else lambda: workers
    with on_standard_error(3, as_json=as_json, workers=count) as observer:
        observer(outcome(0))
        observer(outcome(1, "the guest's kernel panicked"))
        observer(outcome(2, reused=True))
    return capsys.readouterr().err.splitlines()


def test_a_line_without_a_terminal_says_how_many_workers_a_cluster_has(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert lines(capsys, 8) == [
        "[1/3] transport=tcp #0 done (0.25 s, 8 workers)",
        "[2/3] transport=tcp #1 failed (0.25 s, 8 workers)",
        "[3/3] transport=tcp #2 from the store (0.25 s, 8 workers)",
    ]
    assert lines(capsys, None)[0] == "[1/3] transport=tcp #0 done (0.25 s)"


def test_a_json_line_has_every_documented_field(capsys: pytest.CaptureFixture[str]) -> None:
    records = [json.loads(line) for line in lines(capsys, 8, as_json=True)]
    assert [record["done"] for record in records] == [1, 2, 3]
    assert [record["failed"] for record in records] == [0, 1, 1]
    assert [record["error"] for record in records] == [None, "the guest's kernel panicked", None]
    assert [record["from_store"] for record in records] == [False, False, True]
    assert {record["workers"] for record in records} == {8}
    assert set(records[0]) == {
        "case", "trial", "error", "from_store", "wall_s", "done", "total", "failed", "rate_per_s", "left_s",
        "left_range_s", "workers",
    }  # fmt: skip
    assert json.loads(lines(capsys, None, as_json=True)[0])["workers"] is None


def test_the_bar_has_rate_time_left_failures_and_workers() -> None:
    console = Console(file=io.StringIO(), force_terminal=True, color_system=None, width=100)
    with progress_bar(400, console, lambda: 1) as observer:
        for number in range(100):
            observer(outcome(number, "the guest's kernel panicked" if number == 7 else None))
    assert isinstance(console.file, io.StringIO)
    shown = console.file.getvalue()
    assert re.search(r"[0-9.]+/s, .* left, 1 failed, 1 worker", shown)
    assert "transport=tcp #7 failed: the guest's kernel panicked" in shown
