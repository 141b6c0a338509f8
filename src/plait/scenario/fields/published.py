"""What others have published of the same experiment, to be shown beside what is measured; it changes no trial."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field, model_validator

from plait.scenario.fields.parts import Part
from plait.scenario.read.wording import nearest
from plait.scenario.vary.text import tried
from plait.units import Rate

if TYPE_CHECKING:
    from collections.abc import Iterator

    from plait.scenario.scenario import Scenario

Where = tuple[str | int, ...]
GROUP = r"^[A-Za-z0-9][A-Za-z0-9_-]*$"
"""What a group of flows may be called."""


class PublishedValue(Part):
    """A figure, and the cases that it is about."""

    case: dict[str, Any] = {}
    """Settings by their names under `vary`; every case that has all of them is meant."""
    goodput: Rate | None = None
    """Of all flows together."""
    each: dict[Annotated[str, Field(pattern=GROUP)], Rate] = {}
    """By group, the goodput of each of its flows in the mean."""

    @model_validator(mode="after")
    def _something(self) -> PublishedValue:
        if self.goodput is None and not self.each:
            raise ValueError("this has no figure; give goodput, or each: {GROUP: ..}")
        return self


class Published(Part):
    """Figures and where they come from."""

    source: Annotated[str, Field(min_length=1, max_length=300)]
    values: Annotated[list[PublishedValue], Field(min_length=1, max_length=1000)]


def without_unvaried(raw: dict[str, Any]) -> None:
    """Leaves out, in place, published values of what no longer varies: for a `vary` that replaces the file's own."""
    published, vary = raw.get("published"), raw.get("vary")
    if not isinstance(published, dict) or not isinstance(values := published.get("values"), list):
        return
    varied = varied_by(vary)
    kept = [
        value for value in values if not isinstance(value, dict) or set(value.get("case") or ()) <= varied
    ]
    raw["published"] = {**published, "values": kept} if kept else None


def varied_by(vary: object) -> set[str]:
    """Returns the names of what varies, as they stand in a `vary` that nobody has looked at yet."""
    parts = vary if isinstance(vary, dict) else {}
    cases, design = parts.get("cases"), parts.get("latin_hypercube")
    nested = [parts.get("zip"), design.get("fields") if isinstance(design, dict) else None]
    nested += cases if isinstance(cases, list) else ()
    return {name for part in (parts, *nested) if isinstance(part, dict) for name in part}


def check_published(scenario: Scenario) -> Iterator[tuple[Where, str]]:
    """Settings vary, and groups are there."""
    if scenario.published is None:
        return
    varied = {name for _, name, _ in tried(scenario.vary)}
    groups = {entry.flow.group for entry in scenario.traffic if entry.flow.group is not None}
    for i, value in enumerate(scenario.published.values):
        here: Where = ("published", "values", i)
        for name in value.case:
            if name not in varied:
                what = f"'{name[:60]}' does not vary; {nearest(name, varied) or 'leave it out'}"
                yield (*here, "case", name), what
        for group in value.each:
            if group not in groups:
                what = f"no flow has the group '{group[:40]}'; {nearest(group, groups) or 'give flows one'}"
                yield (*here, "each", group), what
