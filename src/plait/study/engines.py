"""The engines of a study, by the names that its cases give, and what they mean for the study as a whole."""

from __future__ import annotations

import contextlib
import os
import platform
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

from plait.dataset.study_file import EngineFacts, KernelFacts
from plait.engine.engine import Engine, EngineIdentity, Fact
from plait.errors import Mistake, RequestError
from plait.plan.case_plan import CasePlan
from plait.study.preflight.kernel import add, refuse


@dataclass(frozen=True)
class StudyEngines:
    """The engines of a study, and their identities."""

    by_name: Mapping[str, Engine]
    identities: Mapping[str, EngineIdentity]

    @classmethod
    def named(cls, engines: Mapping[str, Engine]) -> StudyEngines:
        """Return these engines with their identities (MachineError if one cannot run here)."""
        return cls(engines, {name: engine.identity() for name, engine in engines.items()})

    @property
    def repeatable(self) -> bool:
        """Whether every engine gives the same bytes for the same plan."""
        return all(engine.repeatable for engine in self.by_name.values())

    def jobs(self, case: CasePlan, jobs: int) -> int:
        """Return how many trials may run at once beside one of `case`, itself included; at most `jobs`."""
        limit = self.by_name[case.engine].max_jobs
        return jobs if limit is None else min(jobs, limit)

    def title(self) -> str:
        """Return the names of the engines for study.json."""
        return ", ".join(dict.fromkeys(identity.engine for identity in self.identities.values()))

    def kernel(self) -> KernelFacts:
        """Return the kernel of the study; with several, their versions."""
        kernels = {identity.kernel: identity.kernel_version for identity in self.identities.values()}
        if len(kernels) == 1:
            identity, version = next(iter(kernels.items()))
            return KernelFacts(identity=identity, version=version)
        return KernelFacts(version=" and ".join(sorted(set(kernels.values()))))

    def facts(self) -> Iterator[EngineFacts]:
        """Yield what study.json records of each engine, if there are several."""
        if len(self.identities) > 1:
            for name, identity in self.identities.items():
                yield EngineFacts(
                    name=name,
                    kernel=KernelFacts(identity=identity.kernel, version=identity.kernel_version),
                    agent_sha256=identity.agent_sha256,
                )


def make_engines(cases: Iterable[CasePlan], make_engine: Callable[[str], Engine]) -> Mapping[str, Engine]:
    """Return the engines that the cases name, in the order of the cases.

    Raises ScenarioError, with the place, for a kernel in the scenario that is none; RequestError; MachineError.
    """
    engines: dict[str, Engine] = {}
    mistakes: dict[str, Mistake] = {}
    refused: set[str] = set()
    for case in cases:
        if case.engine in engines or case.engine in refused:
            continue
        try:
            engines[case.engine] = make_engine(case.engine)
        except RequestError as error:
            if case.scenario.kernel is None:
                raise
            add(mistakes, case, ("kernel",), str(error))
            refused.add(case.engine)
    refuse(mistakes)
    return engines


def host_facts() -> dict[str, Fact]:
    """Return what may matter for a trial in real time: the date (UTC), this machine, and its load."""
    return {
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "host": platform.node(),
        "host_kernel": platform.release(),
        **machine_facts(),
        "load_1min": round(os.getloadavg()[0], 2),
    }


@cache
def machine_facts() -> dict[str, Fact]:
    """Return what the wall time of a trial depends on: the model of the processor, and how many there are."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines():
            name, _, model = line.partition(":")
            if name.strip() == "model name":
                return {"processor": model.strip()[:100], "processors": os.cpu_count()}
    return {"processors": os.cpu_count()}
