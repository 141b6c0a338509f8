"""plait measures each chain of qdiscs on the kernel that will run the study, and refuses a link out of tolerance."""

from __future__ import annotations

import json
from contextlib import suppress
from random import Random
from typing import TYPE_CHECKING

import pytest

from plait import kernel as kernels
from plait.binaries import AGENT
from plait.calibration.calibrate import calibrate, keep
from plait.engine.virtual.trial import VirtualEngine
from plait.errors import MachineError, ScenarioError
from plait.plan.resolve import resolve
from plait.scenario import parse
from plait.scenario.vary.cases import expand

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from plait.engine.engine import Job
    from plait.plan.model.links import LinkDirection
    from plait.plan.model.plan import Plan

pytestmark = pytest.mark.guest

LINKS = """
title: Links of many kinds
network:
  hosts: [a, b]
  links:
    a-b: {rate: 5mbit, delay: 5ms, backward: {rate: 1gbit, delay: 20ms, loss: 1%}}
    a-b#2: {delay: 3ms}
    a-b#3: {rate: 10gbit}
    a-b#4: {rate: 100kbit, delay: 100ms, loss: 30%, mtu: 9000}
    a-b#5: {rate: 50mbit, delay: 10ms, jitter: 3ms}
    a-b#6: {rate: 20mbit, delay: 40ms, jitter: {deviation: 5ms}, loss: {ratio: 2%, burst: 3pkt}, aqm: codel}
traffic: [bulk: {from: a, to: b, duration: 1s}]
"""


@pytest.fixture(scope="module")
def engine() -> VirtualEngine:
    """Return an engine whose links are chains of qdiscs: devices have nothing to measure."""
    return VirtualEngine(kernels.ensure(), AGENT, links="chain")


def plans(text: str) -> list[tuple[str, Plan]]:
    return [("", resolve(case.scenario, 1)) for case in expand(parse(text, "t.yaml"))]


def test_links_of_many_kinds_measure_as_configured(engine: VirtualEngine, tmp_path: Path) -> None:
    identity = engine.identity()
    first = calibrate(plans(LINKS), engine, identity, tmp_path, jobs=2, fresh=False)
    assert first.measured == len(first.settings) == 7
    assert all(figure.good for link_figures in first.figures.values() for figure in link_figures)
    rates = [
        f
        for link_figures in first.figures.values()
        for f in link_figures
        if f.name == "rate_bps" and f.measured
    ]
    assert len(rates) == 6
    # a token bucket in virtual time is exact to the resolution of the receiver's stamps
    assert all(f.measured == pytest.approx(f.configured, rel=0.001) for f in rates)
    assert "7 link settings calibrated" in first.sentence
    again = calibrate(plans(LINKS), engine, identity, tmp_path, jobs=2, fresh=False)
    assert again.measured == 0
    assert again.as_json() == first.as_json()
    keep([first], tmp_path)
    assert len(json.loads((tmp_path / "calibration.json").read_text())["settings"]) == 7


REPORTED = (
    "rate: 50mbit, delay: 30ms, jitter: 5ms",
    "rate: 100mbit, delay: 30ms, jitter: {deviation: 4ms, distribution: pareto}",
    "rate: 200mbit, delay: 30ms, jitter: 5ms",
)


def drawn_conditions(draw: Random) -> str:
    """Return any conditions of one direction, valid or not."""
    fields = [f"rate: {int(10 ** draw.uniform(4, 10.5)) // 8 * 8}bit"] if draw.random() < 0.9 else []
    delay_ms = 10 ** draw.uniform(-1, 2.5)
    fields.append(f"delay: {delay_ms:.3f}ms")
    named = draw.choice(("normal", "pareto", "paretonormal", "uniform"))
    reorder = draw.choice(("", ", reorder: true"))
    deviation = f"{{deviation: {delay_ms * draw.uniform(0, 1.6):.4f}ms, distribution: {named}{reorder}}}"
    fields += draw.choice(([], [f"jitter: {delay_ms * draw.random():.3f}ms"], [f"jitter: {deviation}"]))
    bursts = f"{{ratio: {10 ** draw.uniform(-1, 1.3):.3f}%, burst: {draw.randint(2, 20)}pkt}}"
    states = f"p: {draw.uniform(0, 9):.2f}%, r: {draw.uniform(1, 70):.2f}%"
    model = f"{{gemodel: {{{states}, 1-h: {draw.randint(20, 99)}%}}}}"
    single = f"{10 ** draw.uniform(-2, 1.97):.4f}%"
    fields += draw.choice(([], [f"loss: {single}"], [f"loss: {bursts}"], [f"loss: {model}"]))
    for odd in ("duplicate", "reorder", "corrupt"):
        fields += [f"{odd}: {draw.uniform(0, 10):.1f}%"] * (draw.random() < 0.1)
    queue = draw.choice(("1bdp", "20pkt", "5pkt", "1pkt", "2bdp"))
    fields += draw.choice(([], [f"queue: {queue}"], ["aqm: codel"], ["aqm: fq_codel"]))
    return ", ".join(fields)


def drawn_links(seed: int, count: int) -> list[Plan]:
    """Return plans of valid links with random conditions, one in each."""
    draw = Random(seed)
    made: list[Plan] = []
    while len(made) < count:
        mtu = draw.choice((576, 1280, 1500, 1500, 9000, 65535))
        links = f"{{a-b: {{mtu: {mtu}, forward: {{{drawn_conditions(draw)}}}}}}}"
        with suppress(ScenarioError):
            made += [plan for _, plan in plans(ONE_LINK.format(links=links))]
    return made


ONE_LINK = """
title: A link
network: {{hosts: [a, b], links: {links}}}
traffic: [bulk: {{from: a, to: b, duration: 1s}}]
"""


def test_no_valid_link_is_refused(engine: VirtualEngine, tmp_path: Path) -> None:
    links = ", ".join(f"a-b#{i}: {{{conditions}}}" for i, conditions in enumerate(REPORTED, 2))
    reported = [plan for _, plan in plans(ONE_LINK.format(links=f"{{{links}}}"))]
    studied = [(f"case {i}", plan) for i, plan in enumerate([*reported, *drawn_links(23, 60)])]
    done = calibrate(studied, engine, engine.identity(), tmp_path, jobs=2, fresh=False)
    assert done.measured >= 63
    figures = [figure for link_figures in done.figures.values() for figure in link_figures]
    assert all(figure.good for figure in figures)
    for name, share in (("rate_bps", 0.35), ("delay_us", 0.8), ("loss_ratio", 0.8)):
        measured = [
            f for f in figures if f.name == name and f.measured is not None and f.configured is not None
        ]
        assert len(measured) > share * len(done.settings), name


class Tampered:
    """The engine, with a kernel that does something else than it is asked to."""

    def __init__(self, engine: VirtualEngine, change: Callable[[LinkDirection], dict[str, object]]) -> None:
        self.engine = engine
        self.emulated_links = engine.emulated_links
        self.change = change

    def execute(self, job: Job) -> None:
        links = tuple(
            link.model_copy(
                update={
                    "directions": tuple(side.model_copy(update=self.change(side)) for side in link.directions)
                }
            )
            for link in job.plan.links
        )
        self.engine.execute(type(job)(job.plan.model_copy(update={"links": links}), job.inputs, job.folder))


def slower(side: LinkDirection) -> dict[str, object]:
    return {"delay_ns": side.delay_ns + 40_000}


def slower_by_much(side: LinkDirection) -> dict[str, object]:
    return {"delay_ns": side.delay_ns + 2_000_000}


def narrower(side: LinkDirection) -> dict[str, object]:
    return {} if side.rate_bps is None else {"rate_bps": side.rate_bps * 97 // 100 // 8 * 8}


def lossless(side: LinkDirection) -> dict[str, object]:
    return {"loss_ratio": 0.0}


def lossier(side: LinkDirection) -> dict[str, object]:
    return {"loss_ratio": 3 * side.loss_ratio}


@pytest.mark.parametrize(
    ("conditions", "change", "expected"),
    [
        (
            "delay: 5ms",
            slower,
            "its delay is 5.04 ms instead of 5 ms, 40 us too long, where 10 us is allowed",
        ),
        ("rate: 50mbit, delay: 30ms, jitter: 5ms", slower_by_much, "its delay is 3"),
        ("rate: 50mbit", narrower, "its rate is 48.5 Mbit/s instead of 50 Mbit/s, 3 % too low, where 0.5"),
        (REPORTED[1], narrower, "its rate is 97 Mbit/s instead of 100 Mbit/s, 3 % too low, where 0.5"),
        (REPORTED[2], narrower, "its rate is 194 Mbit/s instead of 200 Mbit/s, 3 % too low, where 0.5"),
        ("loss: 2%", lossless, "its loss is 0 % of 2000 packets instead of 2 %; by chance it is"),
        ("rate: 9mbit, loss: 2%", lossier, "of 2000 packets instead of 2 %; by chance it is"),
    ],
)
def test_a_kernel_that_does_something_else_is_refused_with_the_figures(
    engine: VirtualEngine,
    tmp_path: Path,
    conditions: str,
    change: Callable[[LinkDirection], dict[str, object]],
    expected: str,
) -> None:
    links = f"{{a-b: {{forward: {{{conditions}}}}}}}"
    studied = [("rate=fast", plan) for _, plan in plans(ONE_LINK.format(links=links))]
    with pytest.raises(MachineError) as refused:
        calibrate(studied, Tampered(engine, change), engine.identity(), tmp_path, jobs=1, fresh=False)  # type: ignore[arg-type]
    message = str(refused.value)
    assert refused.value.exit_code == 3
    assert "a->b in case rate=fast (" in message
    assert expected in message
    assert "--no-calibration" in message
    assert not [line for line in message.splitlines() if "a->b" in line and expected not in line]
