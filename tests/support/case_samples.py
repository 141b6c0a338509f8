"""Cases of crossed factors: what tables, judgements and tests of effects are tried on, and every kind of figure."""

from __future__ import annotations

import random
from dataclasses import replace
from functools import cache
from itertools import product
from typing import TYPE_CHECKING

from fake_plans import FakePath, fake_plan
from fake_tables import fake_tables
from plait.analysis.compare.summary import summarise
from plait.analysis.labels.cases import labels
from plait.analysis.published import Published
from plait.analysis.rows import CaseRows, TrialRow
from plait.analysis.series import trial_series
from plait.report.figures.kind import Content
from plait.report.representatives import Representative

if TYPE_CHECKING:
    from plait.plan.model.plan import Plan

SCHEDULERS = ("default", "roundrobin", "redundant", "blest", "ecf")
CONTROLS = ("cubic", "reno", "lia", "olia", "balia", "wvegas")


def chosen(count: int) -> list[dict[str, object]]:
    """Return the settings of 1, 6 or 30 cases in which names vary."""
    if count == 1:
        return [{}]
    schedulers, controls = (SCHEDULERS, CONTROLS) if count == 30 else (SCHEDULERS[:2], CONTROLS[:3])
    return [{"scheduler": s, "congestion_control": c} for s, c in product(schedulers, controls)]


def stepped(count: int) -> list[dict[str, object]]:
    """Return the settings of 1, 6 or 30 cases in which numbers vary."""
    if count == 1:
        return [{}]
    delays, rates = ((5, 10, 20, 50, 100), (10, 50, 100)) if count == 30 else ((5, 20, 50), (10,))
    return [
        {"transport": transport, "network.links.h1-s1.delay": f"{delay}ms", "network.links.h1-s1.rate": f"{rate}mbit"}
        for transport, delay, rate in product(("tcp", "mptcp"), delays, rates)
    ]  # fmt: skip


def content(settings: list[dict[str, object]]) -> Content:
    """Return the content of figures of a study with these cases, of eight trials each."""
    cases = []
    for number, case in enumerate(settings):
        chance = random.Random(number)
        rows = tuple(
            TrialRow(i, i, f"sha256:{i}", {
                "page_load_s": 0.45 + 0.013 * (number % 7) + 0.05 * chance.random() + 0.1 * (i == 7),
                "goodput_bps": 4e6 + 1e6 * (number % 5) + 3e5 * chance.random(),
                "ideal_goodput_bps": 9.4e6,
            })
            for i in range(8)
        )  # fmt: skip
        name = ",".join(f"{key}={value}" for key, value in case.items()) or "all"
        cases.append(CaseRows(name, dict(case), rows))
    summary = summarise(tuple(cases), scenario="x", digest="", baseline=None)
    names = labels(summary.cases)
    plan, series = _trial()
    delays = {"message_delay": tuple((6500.0 * (i + 1), (i + 1) / 40) for i in range(40))}
    shown = tuple(
        Representative(case.name, names[case.name], "g", 0, 8, plan, series, (), delays)
        for case in cases[:12]
    )
    return Content(tuple(cases), summary, shown, Published())


@cache
def _trial() -> tuple[Plan, object]:
    plan = fake_plan(paths=(FakePath(), FakePath(20_000_000, 15_000_000)))
    return plan, replace(trial_series(plan, fake_tables(plan)), ideal_bps=23_500_000.0)


def crossed(
    factors: dict[str, tuple[str, ...]], trials: int = 4, slower: float = 1.0
) -> tuple[CaseRows, ...]:
    """Return a case of page loads for every combination of the factors' levels."""
    cases = []
    for values in product(*factors.values()):
        settings = dict(zip(factors, values, strict=True))
        name = ",".join(f"{key}={value}" for key, value in settings.items())
        chance = random.Random(name)
        rows = []
        for index in range(trials):
            load_s = slower * (1.2 + 0.1 * len(values[0]) + chance.gauss(0, 0.05))
            metrics = {
                "page_load_s": load_s,
                "goodput_bps": 4e6 / load_s,
                "retransmits": float(chance.randrange(40)),
                "lte.path_share": 0.4,
                "wifi.path_share": 0.6,
            }
            rows.append(TrialRow(index, 1000 + index, str(index), metrics))
        cases.append(CaseRows(name, settings, tuple(rows)))
    return tuple(cases)
