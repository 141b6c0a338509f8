"""Which of the settings that vary is the one that cases are compared by."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence


class HasSettings(Protocol):
    """A case, in any form."""

    @property
    def settings(self) -> dict[str, Any]:
        """What varies, by its name under `vary`."""


def main_factor(cases: Sequence[HasSettings]) -> str | None:
    """Return the setting that cases are compared by: the transport when it varies, else the one listed first."""
    names = list(dict.fromkeys(name for case in cases for name in case.settings))
    return "transport" if "transport" in names else next(iter(names), None)


def other_settings(case: HasSettings, factor: str | None) -> dict[str, Any]:
    """Return a case's settings but for the main factor: cases that agree in these are compared with each other."""
    return {name: value for name, value in case.settings.items() if name != factor}
