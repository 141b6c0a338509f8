"""What the scheduler `capped` can reach: the best goodput that its cap allows on the paths of a flow. Pure.

With a cap c on every path's share, a total rate T is possible when each path i carries at most min(R_i, c T), and all
together T. The best is the greatest T with sum(min(R_i, c T)) >= T; for two paths R1 >= R2 min(R1 + R2, R2 / (1 - c)).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from plait.analysis.metrics.ideal import payload_ratio

if TYPE_CHECKING:
    from collections.abc import Sequence

    from plait.plan.model.plan import Flow, Plan

SCHEDULER, EXTRA = "net/mptcp/scheduler", "net/mptcp_capped/e_permille"


def capped_goodput_bps(plan: Plan, flow: Flow) -> float | None:
    """Return the best goodput of a flow under the cap of its sender, in bit/s.

    None where the sender's scheduler is not `capped` with an `extra` of its own, a path has no limit, or paths share
    links.
    """
    extra = _extra(plan, flow)
    rates = [path.rate_bps for path in flow.paths if not path.backup]
    crossed = [name for path in flow.paths for name in path.forward]
    if not flow.multipath or extra is None or len(rates) < 2 or None in rates:
        return None
    if len(set(crossed)) < len(crossed):
        return None
    share = min(1.0, 1 / len(rates) + extra)
    ratio = payload_ratio(plan, flow, transport="mptcp")
    return best_rate([float(rate) for rate in rates if rate is not None], share) * ratio


def best_rate(rates: Sequence[float], share: float) -> float:
    """Return the largest total rate T at which each path carries at most `share` of T and at most its own rate.

    T has the unit of `rates`. The cap limits the k fastest paths to c T each (c is `share`), and the other paths carry
    their rates R_i: T = k c T + sum of R_i. The function returns the smallest T over all k: with a larger k the formula
    would assign a path more than its rate.
    """
    ordered = sorted(rates, reverse=True)
    totals = [
        sum(ordered[k:]) / (1 - k * share)
        for k in range(len(ordered))
        if 1 - k * share > 1e-9 and ordered[k:]
    ]
    return min(totals)


def _extra(plan: Plan, flow: Flow) -> float | None:
    sender = flow.client if flow.sender == "client" else flow.server
    settings = next(
        (
            {name.replace(".", "/"): value for name, value in namespace.sysctls}
            for namespace in plan.network.namespaces
            if namespace.name == sender.netns
        ),
        {},
    )
    chosen = flow.socket.scheduler or settings.get(SCHEDULER)
    if chosen != "capped" or EXTRA not in settings:
        return None
    return int(settings[EXTRA]) / 1000
