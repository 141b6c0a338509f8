"""The check of a kernel's algorithms does not apply to the schedulers of prototypes."""

from __future__ import annotations

import pytest

from plait.engine.inventory import Inventory
from plait.errors import ScenarioError
from plait.scenario import parse
from plait.scenario.vary.cases import expand
from plait.study.preflight.kernel import refuse_what_is_missing

KERNEL = Inventory(congestion_controls=("cubic",), schedulers=("default",), sysctls={}, shared_sysctls={})
SCENARIO = """\
title: A prototype
network: {hosts: [h1, h2], links: {h1-h2: {rate: 10mbit}}}
mptcp: {scheduler: %s}
traffic:
  - prototype: {from: h1, to: h2, bytes: 1KB, scheduler: bandit}
"""


def test_a_kernel_needs_no_scheduler_of_a_prototype_but_that_of_mptcp() -> None:
    refuse_what_is_missing(expand(parse(SCENARIO % "default", "t.yaml")), lambda _: KERNEL)
    with pytest.raises(ScenarioError, match="no MPTCP scheduler 'bandit'"):
        refuse_what_is_missing(expand(parse(SCENARIO % "bandit", "t.yaml")), lambda _: KERNEL)
