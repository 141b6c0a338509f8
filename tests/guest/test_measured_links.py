"""Links are measured to be what they are meant to be, by the kernel that will run the study; others are refused."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from plait.calibration.calibrate import calibrate, keep
from plait.errors import MachineError
from plait.plan.expand import expand
from plait.plan.qdiscs import Netem
from plait.plan.resolve import resolve
from plait.scenario import parse

if TYPE_CHECKING:
    from pathlib import Path

    from plait.plan.model import Plan
    from plait.run.engine import Job
    from plait.run.virtual import VirtualEngine

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


def plans(text: str) -> list[Plan]:
    return [resolve(case.scenario, 1) for case in expand(parse(text, "t.yaml"))]


def test_links_of_many_kinds_are_what_they_are_meant_to_be(engine: VirtualEngine, tmp_path: Path) -> None:
    identity = engine.identity()
    first = calibrate(plans(LINKS), engine, identity, tmp_path, jobs=2, fresh=False)
    assert first.measured == len(first.settings) == 7
    assert all(figure.good for found in first.figures.values() for figure in found)
    rates = [f for found in first.figures.values() for f in found if f.name == "rate_bps" and f.measured]
    assert len(rates) == 6
    # a token bucket in virtual time is exact to the resolution of the receiver's stamps
    assert all(f.measured == pytest.approx(f.meant, rel=0.001) for f in rates)
    assert "7 link settings calibrated" in first.sentence
    again = calibrate(plans(LINKS), engine, identity, tmp_path, jobs=2, fresh=False)
    assert again.measured == 0
    assert again.as_json() == first.as_json()
    keep(first, tmp_path)
    assert len(json.loads((tmp_path / "calibration.json").read_text())["settings"]) == 7


class Tampered:
    """The engine, with a kernel whose delays are 40 us too long."""

    emulates_links = True

    def __init__(self, engine: VirtualEngine) -> None:
        self.engine = engine

    def execute(self, job: Job) -> None:
        slower = tuple(
            q.model_copy(
                update={"options": q.options.model_copy(update={"delay_ns": q.options.delay_ns + 40_000})}
            )
            if isinstance(q.options, Netem)
            else q
            for q in job.plan.network.qdiscs
        )
        network = job.plan.network.model_copy(update={"qdiscs": slower})
        self.engine.execute(
            type(job)(job.plan.model_copy(update={"network": network}), job.inputs, job.folder)
        )


def test_a_kernel_that_does_something_else_is_refused_with_the_figures(
    engine: VirtualEngine, tmp_path: Path
) -> None:
    text = LINKS.split("    a-b#2", maxsplit=1)[0] + "traffic: [bulk: {from: a, to: b, duration: 1s}]\n"
    with pytest.raises(MachineError) as refused:
        calibrate(plans(text), Tampered(engine), engine.identity(), tmp_path, jobs=1, fresh=False)  # type: ignore[arg-type]
    said = str(refused.value)
    assert refused.value.exit_code == 3
    assert "a->b: delay_us is meant to be 5000 and was measured as 5040 (allowed: 4990 to 5010)" in said
    assert "b->a: delay_us is meant to be 20000" in said
    assert "--no-calibration" in said
    assert not list(tmp_path.rglob("*.json")), "what was refused is not remembered"
