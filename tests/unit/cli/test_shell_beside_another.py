"""A `plait shell` that begins while another one boots the same network joins that one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernel_fakes import while_waiting
from plait.cli.laboratory import shell

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


BOOTS, JOINS = 1, 0
"""What stands for the exit codes of a shell that boots a network, and of one that joins it."""


def test_a_shell_waits_for_the_one_that_boots_and_joins_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """It would otherwise boot a network that it cannot serve ("Address already in use")."""
    served: list[bool] = []
    monkeypatch.setenv("PLAIT_CACHE", str(tmp_path))
    monkeypatch.setattr(shell, "_has_server", lambda _: bool(served))
    monkeypatch.setattr(shell, "_serve", lambda *_, **__: BOOTS)
    monkeypatch.setattr(shell, "_use", lambda *_: JOINS)
    while_waiting(monkeypatch, lambda: served.append(True))
    assert shell.command("two-paths") == JOINS
