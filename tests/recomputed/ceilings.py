"""These functions recompute what the links allow and the ratios to it, as docs/reference/results.md defines them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from goodputs import completion, goodput, nearest_rank
from scipy.optimize import linprog

if TYPE_CHECKING:
    from collections.abc import Callable

    from recorded import Flow, Trial

FRAME, TCP_HEADERS, DSS = 1514, 14 + 20 + 20 + 12, 24


def payload_share(mptcp: bool) -> float:
    """Return payload / frame: at an MTU of 1500, 1448 of 1514 bytes for TCP and 1424 of 1514 for MPTCP."""
    return (FRAME - TCP_HEADERS - (DSS if mptcp else 0)) / FRAME


def rates(trial: Trial) -> dict[str, float | None]:
    return {
        direction["name"]: direction["rate_bps"]
        for link in trial.plan["links"]
        for direction in link["directions"]
    }


def greatest(trial: Trial, ways: list[tuple[list[str], float]]) -> float:
    """Return the greatest sum of what the ways carry, each with its weight, within the rates of their links."""
    limits = {name: rate for name, rate in rates(trial).items() if rate is not None}
    used = sorted({name for way, _ in ways for name in way} & set(limits))
    matrix = np.array([[1.0 if name in way else 0.0 for way, _ in ways] for name in used])
    optimum = linprog([-weight for _, weight in ways], A_ub=matrix, b_ub=[limits[name] for name in used])
    return -float(optimum.fun)


def limited(trial: Trial, flow: Flow) -> bool:
    limits = rates(trial)
    return all(any(limits[name] is not None for name in way(path, flow)) for path in flow.plan["paths"])


def way(path: dict[str, Any], _: Flow) -> list[str]:
    """Return the directions of links that data take: paths are from the sender on."""
    forward: list[str] = path["forward"]
    return forward


def greedy(trial: Trial) -> bool:
    """Return whether all flows take what they can get; several must be `bulk` of one length and start within 1 %."""
    flows = trial.flows
    if not flows or any(flow.kind not in {"bulk", "transfer"} or not limited(trial, flow) for flow in flows):
        return False
    if len(flows) == 1:
        return True
    lengths = {flow.plan["application"].get("duration_us") for flow in flows}
    starts = [flow.row["start_us"] for flow in flows]
    alike = {flow.kind for flow in flows} == {"bulk"} and len(lengths) == 1 and None not in lengths
    together = alike and max(starts) - min(starts) <= 0.01 * max(lengths)
    return together and not trial.plan["events"] and len(trial.foreground) == len(flows)


def ideal_goodput(trial: Trial) -> float | None:
    """Return the greatest sum of their goodputs over links that they share, of several flows to the whole bit/s."""
    if not greedy(trial):
        return None
    ways = [
        (way(path, flow), payload_share(flow.mptcp)) for flow in trial.flows for path in flow.plan["paths"]
    ]
    ideal = greatest(trial, ways)
    return ideal if len(trial.flows) == 1 else round(ideal)


def efficiency(trial: Trial) -> float | None:
    reached, ideal = goodput(trial), ideal_goodput(trial)
    return None if reached is None or ideal is None else reached / ideal


def alone(trial: Trial) -> list[float] | None:
    """C_i: what path i alone allows TCP. Null for TCP and several flows."""
    if not greedy(trial) or len(trial.flows) > 1 or not trial.flows[0].mptcp:
        return None
    [flow] = trial.flows
    return [greatest(trial, [(way(path, flow), payload_share(False))]) for path in flow.plan["paths"]]


def aggregation_benefit(trial: Trial) -> float | None:
    """(g - Cmax) / (C - Cmax) when g >= Cmax, (g - Cmax) / Cmax otherwise."""
    each, reached = alone(trial), goodput(trial)
    if each is None or reached is None:
        return None
    ways = [(way(path, trial.flows[0]), payload_share(False)) for path in trial.flows[0].plan["paths"]]
    best, joint = max(each), greatest(trial, ways)
    if joint <= best * (1 + 1e-12):
        return None
    return (reached - best) / (joint - best if reached >= best else best)


def best_path_ratio(trial: Trial) -> float | None:
    """`goodput_bps` / what the best path alone allows TCP."""
    each, reached = alone(trial), goodput(trial)
    return None if each is None or reached is None else reached / max(each)


def of_cap(trial: Trial) -> float | None:
    """`goodput_bps` / the greatest T with sum(min(R_i, c T)) >= T over the paths' rates R_i, less headers."""
    settings = {
        key: value for space in trial.plan["network"]["namespaces"] for key, value in space["sysctls"]
    }
    reached = goodput(trial)
    if len(trial.flows) != 1 or settings.get("net/mptcp/scheduler") != "capped" or reached is None:
        return None
    [flow] = trial.flows
    carried = [greatest(trial, [(way(path, flow), 1.0)]) for path in flow.plan["paths"]]
    share = 1 / len(carried) + int(settings["net/mptcp_capped/e_permille"]) / 1000
    # The sum less T is concave in T and breaks where c T meets a rate: the greatest T is where it falls to zero.
    low, high = 0.0, sum(carried)
    for _ in range(200):
        middle = (low + high) / 2
        if sum(min(rate, share * middle) for rate in carried) >= middle * (1 - 1e-15):
            low = middle
        else:
            high = middle
    return reached / (low * payload_share(True))


def flow_slowdown(trial: Trial, flow: Flow) -> float | None:
    """Return the completion time over 1.5 round trips of the first path and the bytes at the ideal goodput."""
    time_s, job = completion([flow]), flow.plan["application"]
    if time_s is None or job["kind"] != "transfer" or job.get("first") or not limited(trial, flow):
        return None
    if trial.plan["events"]:
        return None  # those of the studies change the links
    mptcp = flow.plan["transport"] == "mptcp"
    bps = greatest(trial, [(way(path, flow), 1.0) for path in flow.plan["paths"]]) * payload_share(mptcp)
    round_trips = 1.5 if flow.plan["connection"] is None else 0.5
    return time_s / (round_trips * flow.plan["paths"][0]["base_rtt_us"] / 1e6 + job["bytes"] * 8 / bps)


def slowdowns(trial: Trial, flows: list[Flow]) -> list[float] | None:
    """Return the slowdowns of the transfers among flows, ascending; null when one has none."""
    values = [flow_slowdown(trial, flow) for flow in flows if flow.kind == "transfer"]
    known = sorted(value for value in values if value is not None)
    return known if len(known) == len(values) else None


def slowdown(share: float) -> Callable[[Trial], float | None]:
    return lambda trial: nearest_rank(slowdowns(trial, trial.foreground), share)


def group_slowdown(share: float) -> Callable[[Trial, str], float | None]:
    return lambda trial, group: nearest_rank(
        slowdowns(trial, [flow for flow in trial.flows if flow.plan["group"] == group]), share
    )
