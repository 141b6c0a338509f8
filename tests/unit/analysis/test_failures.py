"""plait reports trials that fail in the same way once: with the reason, the place, and the log."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from plait.analysis.failures import failed_alike, in_one_line
from plait.cli.run import _report_outcome
from plait.study.study import StudyOutcome, TrialKey, TrialOutcome

if TYPE_CHECKING:
    from pathlib import Path

PANIC = "the guest's kernel panicked: not syncing: Segfault with no mm\n  at mine_pick+0xb0/0x340 (mine.c:10)\n  ? {}"


def test_only_reason_and_place_distinguish_failures() -> None:
    errors = [(0, PANIC.format("a")), (1, "other"), (2, PANIC.format("b")), (3, PANIC.replace(":10", ":11"))]
    assert failed_alike(errors) == [
        ([0, 2], PANIC.format("a")),
        ([1], "other"),
        ([3], PANIC.replace(":10", ":11")),
    ]


@pytest.mark.parametrize(("alike", "words"), [(1, ""), (2, " and 1 more trial"), (3, " and 2 more trials")])
def test_a_trace_is_printed_once_with_the_path_of_the_console(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], alike: int, words: str
) -> None:
    ended = []
    for index in range(alike):
        key = TrialKey("case", index)
        console = key.folder(tmp_path) / "logs" / "console.log"
        console.parent.mkdir(parents=True)
        console.touch()
        ended.append(TrialOutcome(key, PANIC.format(index), reused=False, wall_s=0))
    _report_outcome(StudyOutcome(alike, ended, interrupted=False), tmp_path, halted=False)
    text = capsys.readouterr().err
    first = tmp_path / "trials" / "case" / "000"
    assert text == (
        f"plait: {first}{words} failed: {PANIC.format(0)}\n"
        f"  the log of the trial: {first / 'logs' / 'console.log'}\n"
    )


def test_one_line_of_an_error_has_the_last_line_of_the_log_that_it_announces() -> None:
    log = "program p (python3 x): it ended with 1; the last lines of its log:\nTraceback ..\n  File x\nKeyError: 1\n"
    assert in_one_line(log).endswith("the last lines of its log: .. KeyError: 1")
    assert in_one_line("a reason\nlast lines of a.log:\n  b") == "a reason"
    assert in_one_line("a reason:") == "a reason:"
