"""The scheduler leaves a path idle, sends copies, or puts the last bytes on a slow path."""

from __future__ import annotations

import numpy as np

from plait.analysis.wording import size
from plait.explain.cause import Cause, Places
from plait.explain.causes.kind import Kind
from plait.explain.changes import Remedy, Suspect
from plait.explain.facts import FlowFacts
from plait.traffic.prototype import Prototype


def _reinjected(facts: FlowFacts, _: Places) -> list[str]:
    return [f"MPTCP sent {size(float(facts.reinjected[-1]))} again over another path."]


def _unsent_data(facts: FlowFacts, _: Places) -> list[str]:
    waits = np.nan_to_num(facts.unsent)
    return [f"Up to {size(float(waits.max()))} waited in the connection, although its window was not full."]


def _scheduler(suspect: Suspect) -> Remedy | None:
    if suspect.planned.transport == "tcp":
        return None  # it has last bytes, but no scheduler
    if suspect.prototype is None:
        sibling = "minrtt" if suspect.scenario.mptcp.scheduler == "default" else "default"
        return Remedy(f"the scheduler `{sibling}`", (("mptcp.scheduler", sibling),))
    application = suspect.planned.application
    chosen = application.scheduler if isinstance(application, Prototype) else None
    sibling = "roundrobin" if chosen == "minrtt" else "minrtt"
    return Remedy(f"the scheduler `{sibling}`", ((f"{suspect.prototype}.scheduler", sibling),))


KINDS = (
    Kind(
        Cause.LAST_BYTES,
        title="last bytes",
        clause="all data was sent, and the last bytes were still in flight",
        next_step="transfer more data; over several paths, use a scheduler that considers delays (ecf, blest)",
        change=_scheduler,
    ),
    Kind(
        Cause.SCHEDULER_IDLE_PATH,
        title="scheduler",
        clause="the scheduler left a path idle although data was waiting",
        next_step="choose another mptcp.scheduler",
        prototype_step="choose another scheduler of the prototype",
        evidence=_unsent_data,
        change=_scheduler,
        keeps_messages="partial segments",
    ),
    Kind(
        Cause.DUPLICATES,
        title="duplicates",
        clause="a path carried copies of data that another path carried as well",
        next_step="choose a scheduler that sends no copies",
        evidence=_reinjected,
        change=_scheduler,
    ),
)
