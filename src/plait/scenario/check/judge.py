"""Check `judge`: metrics that exist, have a better direction, and occur once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plait.metric_names import FIGURE_METRICS, JUDGED_METRICS, is_judged, judged_metric
from plait.scenario.read.wording import closest

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from plait.scenario.mistakes import FieldMistake


def check_judge(metrics: Sequence[str]) -> Iterator[FieldMistake]:
    """Yield every mistake."""
    seen: set[str] = set()
    for i, text in enumerate(metrics):
        name = judged_metric(text)
        last = name.rpartition(".")[2]
        if name in seen:
            yield ("judge", i), f"'{text[:60]}' occurs twice; remove one"
        elif last in FIGURE_METRICS and not is_judged(name):
            better = "neither more nor less of it is better"
            yield (
                ("judge", i),
                f"plait cannot judge by '{text[:60]}', because {better}; use figures to show it",
            )
        elif not is_judged(name):
            near = closest(last, JUDGED_METRICS)
            right = f"did you mean '{near}'?" if near else "docs/reference/compare.md lists those to judge by"
            yield ("judge", i), f"there is no metric '{text[:60]}'; {right}"
        seen.add(name)
