"""Resolve a case of a study once; every trial's plan follows from the result and the trial's seed."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass

from plait.plan.finding import LintFinding
from plait.plan.identity import plan_bytes
from plait.plan.model.plan import Module, Plan
from plait.plan.modules import with_modules
from plait.plan.resolve import seeded, without_seed
from plait.scenario.vary.cases import Case

_FAST = 1
"""The zlib level. A plan as Python objects takes about 120 kB for two paths and 1.4 MB for 20 users."""


@dataclass(frozen=True, kw_only=True)
class CasePlan(Case):
    """A case, and the part of its trials' plans that does not depend on the seed."""

    missing: tuple[tuple[LintFinding, ...], ...]
    """The missing subflows of each entry of the traffic."""
    packed: bytes
    """The compressed plan without a seed."""

    @property
    def engine(self) -> str:
        """The engine that runs its trials: `virtual`, or `virtual@KERNEL` if the scenario names a kernel."""
        engine, kernel = self.scenario.engine, self.scenario.kernel
        return engine if kernel is None else f"{engine}@{kernel}"

    @property
    def content(self) -> tuple[str, bytes]:
        """The engine and the plan of the case's trials, without their seeds; equal for cases that do the same."""
        return self.engine, self.packed

    def plan(self, seed: int) -> Plan:
        """Return the plan of the trial with this seed. Raise RequestError for a seed out of range."""
        shared = Plan.model_validate_json(zlib.decompress(self.packed))
        return seeded(shared, self.scenario, seed)


def resolve_case(case: Case, additions: Mapping[str, Module] | None = None) -> CasePlan:
    """Return the plans of a case, with the modules of `additions` (by what they provide) that it needs.

    Raises ScenarioError if the case is impossible.
    """
    shared, missing = without_seed(case.scenario)
    packed = zlib.compress(plan_bytes(with_modules(shared, additions or {})), _FAST)
    return CasePlan(**vars(case), missing=tuple(map(tuple, missing)), packed=packed)
