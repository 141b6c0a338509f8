"""Flags that stand for a field of the scenario, in the messages about its mistakes."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


@contextmanager
def naming_flags(flags: Mapping[str, str]) -> Iterator[None]:
    """Let mistakes of the overrides in `flags` begin with the flag that the user wrote, and not with `--set`.

    `flags` has the text of the flag (`--trace x:y`) by override (`monitors.tracepoints=["x:y"]`).
    """
    from plait.errors import ScenarioError

    shown = {f"--set {override}": flag for override, flag in flags.items()}
    try:
        yield
    except ScenarioError as error:
        raise ScenarioError(
            [
                replace(mistake, source=shown[mistake.source], path="")
                if mistake.source in shown
                else mistake
                for mistake in error.mistakes
            ]
        ) from error
