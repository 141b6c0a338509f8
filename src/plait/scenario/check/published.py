"""Check published values: their settings vary, and their groups exist."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plait.scenario.vary.text import setting_names
from plait.scenario.wording import nearest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from plait.scenario.mistakes import FieldMistake, Where
    from plait.scenario.model import ScenarioModel


def check_published(scenario: ScenarioModel) -> Iterator[FieldMistake]:
    """Yield settings that do not vary, and groups that no flow has."""
    if scenario.published is None:
        return
    varied = setting_names(scenario.vary)
    groups = {entry.flow.group for entry in scenario.traffic if entry.flow.group is not None}
    for i, value in enumerate(scenario.published.values):
        here: Where = ("published", "values", i)
        for name in value.case:
            if name not in varied:
                message = f"'{name[:60]}' does not vary; {nearest(name, varied) or 'remove it'}"
                yield (*here, "case", name), message
        for group in value.each:
            if group not in groups:
                message = f"no flow has the group '{group[:40]}'; {nearest(group, groups) or 'add group to the flows'}"
                yield (*here, "each", group), message
