"""Check `judge`: metrics that exist, have a better direction, and occur once; and the factors in `across`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plait.metrics import FIGURE_METRICS, JUDGED_METRICS, is_judged, judged_metric
from plait.scenario.wording import closest, nearest

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from plait.scenario.mistakes import FieldMistake
    from plait.units import Ratio


MOST = 0.5
"""Greatest difference that can be the smallest one of interest."""


def check_judge(metrics: Mapping[str, Ratio | None]) -> Iterator[FieldMistake]:
    """Yield every mistake."""
    seen: set[str] = set()
    for text, margin in metrics.items():
        if margin is not None and margin > MOST:
            yield ("judge", text), f"{margin} is no small difference; write 0% to 50%, for example 1%"
        name = judged_metric(text)
        last = name.rpartition(".")[2]
        if name in seen:
            yield ("judge", text), f"'{text[:60]}' occurs twice; remove one"
        elif last in FIGURE_METRICS and not is_judged(name):
            better = "neither more nor less of it is better"
            yield (
                ("judge", text),
                f"plait cannot judge by '{text[:60]}', because {better}; use figures to show it",
            )
        elif not is_judged(name):
            near = closest(last, JUDGED_METRICS)
            right = f"did you mean '{near}'?" if near else "docs/reference/compare.md lists those to judge by"
            yield ("judge", text), f"there is no metric '{text[:60]}'; {right}"
        seen.add(name)


def check_across(names: Sequence[str], strata: Sequence[str]) -> Iterator[FieldMistake]:
    """Yield the names in `across` of what is no named factor of the network."""
    for i, name in enumerate(names):
        if name not in strata:
            there = nearest(name, strata) or "no named factor under vary changes the network; remove it"
            yield (
                ("across", i),
                f"'{name[:60]}' is no named factor whose levels set fields of the network; {there}",
            )
