"""The sentinel: a short trial that every worker runs first. A worker whose data differ runs no trial of a study.

Two processors that differ in an instruction, a damaged kernel, or a worker with other libraries show here. The trial
exercises what studies use: two paths, random loss, jitter, and a transfer over MPTCP and one over TCP.
"""

from __future__ import annotations

import shutil

from plait.dataset.convert import convert
from plait.dataset.digest import trial_digest
from plait.engine.engine import Engine, Job
from plait.engine.workspace import Workspace
from plait.plan.model.plan import Plan
from plait.plan.resolve import resolve
from plait.scenario import parse
from plait.scenario.vary.cases import expand

_SCENARIO = """
title: The trial that every worker runs first
network:
  hosts: [h1, h2]
  routers: [r1, r2]
  links:
    h1-r1: {rate: 10mbit, delay: 5ms, jitter: 1ms, loss: 1%}
    r1-h2:
    h1-r2: {rate: 5mbit, delay: 20ms}
    r2-h2:
traffic:
  - {bulk: {from: h1, to: h2, duration: 1s}}
  - {transfer: {from: h2, to: h1, bytes: 100KB, transport: tcp}}
until: 10s
"""
_SEED = 2147483647


def sentinel_plan() -> Plan:
    """Return the plan of the sentinel."""
    return resolve(expand(parse(_SCENARIO, "the sentinel"))[0].scenario, _SEED)


def sentinel_digest(engine: Engine, plan: Plan, work: Workspace) -> str:
    """Run the sentinel and return the digest of its data. Raise TrialError, DataError or OSError."""
    folder, tables = work.job(), work.job()
    try:
        engine.execute(Job(plan, {}, folder))
        return trial_digest(convert(folder / "data", tables))
    finally:
        for path in (folder, tables):
            shutil.rmtree(path, ignore_errors=True)  # the workspace removes what remains
