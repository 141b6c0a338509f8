"""Published values for each case, as the scenario in study.json has them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from plait.analysis.model import PublishedGoodput
from plait.units import Rate

REPORTED = ".iperf3_received_bps"
"""The end of the name of the metric that is the goodput which a program reports."""


STEADY = "steady_goodput_bps"
"""The goodput over a part of each flow, which a scenario with a `measure` has."""


def goodput_beside(measured: Collection[str]) -> str:
    """Return the metric that published figures of all flows are about, of those measured: the steady goodput if any."""
    return STEADY if STEADY in measured else "goodput_bps"


def is_beside_published(metric: str, measured: Collection[str]) -> bool:
    """Return whether `metric` is what published figures are about: the goodput, by plait or by a program."""
    return metric == goodput_beside(measured) or metric.endswith(REPORTED)


@dataclass(frozen=True)
class Published:
    """Figures by case and group, and where they come from; without any, nothing was published."""

    source: str = ""
    values: tuple[tuple[dict[str, str], dict[str | None, float]], ...] = ()
    """Settings, and bit/s by group (None: all flows together)."""

    def goodput_bps(self, settings: Mapping[str, Any], group: str | None = None) -> float | None:
        """Return the goodput that was published for a case, in bit/s; the last of several; None without any."""
        latest = None
        for meant, goodput in self.values:
            if all(str(settings.get(name)) == value for name, value in meant.items()) and group in goodput:
                latest = goodput[group]
        return latest

    def of_case(self, settings: Mapping[str, Any]) -> PublishedGoodput | None:
        """Return everything that was published of a case; None when nothing was."""
        groups = dict.fromkeys(group for _, goodput in self.values for group in goodput)
        goodputs = {
            group: value for group in groups if (value := self.goodput_bps(settings, group)) is not None
        }
        if not goodputs:
            return None
        return PublishedGoodput(
            goodput_bps=goodputs.pop(None, None), each_bps={str(g): v for g, v in goodputs.items()}
        )


def published_in(scenario: Any) -> Published:
    """Return what the scenario of a study says; it was checked when the study was run."""
    section = scenario.get("published") if isinstance(scenario, dict) else None
    if not isinstance(section, dict):
        return Published()
    values = []
    for entry in section["values"]:
        goodput = {**entry.get("each", {}), None: entry.get("goodput")}
        settings = {str(name): str(value) for name, value in entry.get("case", {}).items()}
        values.append(
            (settings, {group: float(int(Rate.parse(rate))) for group, rate in goodput.items() if rate})
        )
    return Published(str(section["source"]), tuple(values))
