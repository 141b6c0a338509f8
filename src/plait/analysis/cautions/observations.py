"""Data-quality warnings for one trial: fallbacks, unfinished flows, idle paths.

Each trial gives observations; a study turns those that recur into one caution per case.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from plait.analysis.by_flow import divided, sender_subflows
from plait.analysis.cautions.join_time import had_time_to_join
from plait.analysis.cautions.mptcp import Observation, findings
from plait.analysis.gaps import part
from plait.analysis.metrics.trial import SYN_AND_FIN
from plait.cautions import TRIALS_DISTURBED, Caution
from plait.dataset.model import Tables
from plait.plan.model.plan import Flow, Plan
from plait.traffic.kinds import GREEDY

REMEDIES = {
    "FLOW_FAILED": "its figures are missing, not zero; look at the trial's events and logs",
    "FELL_BACK": "its figures are those of TCP on one path; look for what strips or changes MPTCP's options on the way",
    "JOIN_REFUSED": "look for the cause between these addresses: a middlebox, no listener, no route, a limit",
    "JOIN_UNANSWERED": "look for what drops packets between these addresses: a cut link, a firewall, no way back",
    "SUBFLOW_CLOSED": "see reset_reason and error in the trial's events",
    "ADD_ADDR_UNUSED": "raise the client's add_addr_accepted and subflows (see `plait lint`)",
    "IDLE_PATH": "check endpoints, limits and routes with `plait plan`, and the events for refused subflows",
    "CHECKSUM": "what arrived is not what was sent: report this as a bug, with the trial's folder",
    "DATA_CHANGED": "the tables are not those that were made: delete the trial's folder and run the study again",
    "INTERVAL_WIDE": "allow more trials: `repeat: until 2%, at most 1000`",
    TRIALS_DISTURBED: "end other programs and run the study again; each trial's provenance.json has the measurements",
    "TRIALS_MISSING": "run the same command again: finished trials are kept and the rest is run",
}


def observe(plan: Plan, tables: Tables) -> list[Observation]:
    """Return what one trial's tables say against its figures."""
    tables = divided(tables)
    observations = part("checks of the flows", lambda: _of_flows(plan, tables), [])
    return observations + part("findings of MPTCP", lambda: findings(plan, tables), [])


def _of_flows(plan: Plan, tables: Tables) -> list[Observation]:
    """Return what the flows' records and subflows show."""
    rows = {row["flow"]: row for row in tables["flows"].iter_rows(named=True)}
    observations = []
    for flow in plan.flows:
        row = rows.get(flow.id)
        if row is None or not row["completed"]:
            reason = "it left no record" if row is None else row["error"] or "no reason is given"
            if row is not None and row["error"] is None and (row["end_us"] or 0) >= plan.end_us:
                reason = "it still ran when the trial ended"
            observations.append(Observation("FLOW_FAILED", f"flow {flow.name} did not complete ({reason})"))
            continue
        if flow.multipath and not row["fallback"] and flow.measured_as in GREEDY and flow.connection is None:
            observations += _idle_paths(flow, row, tables)
        if row["sent_sha256"] is not None and row["sent_sha256"] != row["received_sha256"]:
            observations.append(
                Observation("CHECKSUM", f"flow {flow.name} received other bytes than were sent")
            )
    return observations


def cautions(
    case: str, trials: int, occurrences: Mapping[Observation, Sequence[tuple[int, int | None]]]
) -> list[Caution]:
    """Return one caution for each observation of a case, which people call `case`.

    `occurrences` has the trials that show it: their numbers, and times in us. A trial may show it several times.
    """
    recurring = []
    for observation, occasions in occurrences.items():
        count = len({trial for trial, _ in occasions})
        message = f"{case}: {observation.text}{_time_text(occasions)} in {count} of {trials} trials"
        remedy = REMEDIES.get(observation.code)
        figures = {"trials": count, **_times(occasions)}
        recurring.append(Caution(code=observation.code, message=message, remedy=remedy, figures=figures))
    return recurring


def _times(occasions: Sequence[tuple[int, int | None]]) -> dict[str, float]:
    times = [t_us for _, t_us in occasions if t_us is not None]
    return {"first_us": min(times), "last_us": max(times)} if times else {}


def _time_text(occasions: Sequence[tuple[int, int | None]]) -> str:
    times = _times(occasions)
    if not times:
        return ""
    first, last = (f"{times[name] / 1e6:.3g}" for name in ("first_us", "last_us"))
    return f" at {first} s" if first == last else f" at {first} to {last} s"


def _idle_paths(flow: Flow, row: Mapping[str, Any], tables: Tables) -> list[Observation]:
    """Return an observation when fewer subflows carried data than the flow has paths that it had time to join."""
    rows = sender_subflows(tables, flow, row["end_us"])
    acked = [subflow.acked_bytes for subflow in rows if subflow.acked_bytes is not None]
    if not acked:
        return []
    used = max(
        sum(count > SYN_AND_FIN for count in acked), 1
    )  # the last sample of a very short flow can precede its data
    regular = [path for path in flow.paths if not path.backup]
    joinable = [
        path for path in regular[1:] if had_time_to_join(flow, path, row["connected_us"], row["end_us"])
    ]
    if used >= len(regular[:1]) + len(joinable):
        return []
    text = f"flow {flow.name} has {len(flow.paths)} paths but data on {used} subflow{'s' * (used != 1)} only"
    return [Observation("IDLE_PATH", text)]
