"""The joint ideal of several flows: the greatest sum of their goodputs, from the plan alone.

A multicommodity flow (Ahuja, Magnanti, Orlin, Network Flows, ch. 17), solved exactly as a linear programme:

    maximise   sum over flows f of payload_f * v_f
    so that   at every node, what comes in of f goes out again, but for v_f at its sender and its receiver
               over every link direction the sum over flows is at most its rate
               v_f is at most what the links allow f alone

Every flow may be split over all links that its paths may take. It is the greatest *sum*, not a fair division: one flow
over two links that two others have to themselves gets nothing in it. A max-min fair division is at most as much.
"""

from __future__ import annotations

from typing import Any

from plait.analysis.metrics.ideal import payload_ratio
from plait.plan.model.links import LinkDirection
from plait.plan.model.plan import Flow, Plan

LARGEST = 100_000
"""The largest number of variables: solving for more would take longer than a trial."""
SIMULTANEOUS = 0.01
"""Flows begin together when they begin within this share of their duration."""
_UNIT = 1e6
"""bit/s; the solver wants numbers near one."""


def joint_goodput_bps(plan: Plan) -> float | None:
    """Return the largest possible sum of the flows' goodputs in bit/s; None if it does not bound what plait measures.

    It bounds the measured sum if all flows are bulk flows in the foreground that run at the same time, no link
    changes, and the rates of links limit each flow. It is also None if the linear programme would be too large.
    """
    flows = plan.flows
    if plan.events or not _run_together(flows) or any(flow.ideal_rate_bps is None for flow in flows):
        return None
    usable = [_usable(flow, plan.directions) for flow in flows]
    if sum(map(len, usable)) > LARGEST:
        return None
    return _solved(plan, usable)


def _run_together(flows: tuple[Flow, ...]) -> bool:
    """Return whether these are bulk flows of one length that begin together, and nothing runs beside them."""
    lengths = {getattr(flow.application, "duration_us", None) for flow in flows}
    if any(flow.kind != "bulk" or flow.background or flow.after for flow in flows) or len(lengths) != 1:
        return False
    (length,) = lengths
    starts = [flow.start_us for flow in flows]
    return length is not None and max(starts) - min(starts) <= SIMULTANEOUS * length


def _usable(flow: Flow, by_name: dict[str, LinkDirection]) -> list[LinkDirection]:
    """Return the link directions that a flow's data may cross."""
    names = [name for path in flow.paths for name in (*path.forward, *path.spread)]
    return [by_name[name] for name in dict.fromkeys(names)]


def _solved(plan: Plan, usable: list[list[LinkDirection]]) -> float | None:
    """Return the optimum in bit/s; None if the solver finds none."""
    from scipy.optimize import linprog  # type: ignore[import-untyped]  # scipy ships no types

    programme = _Programme()
    for flow, links in zip(plan.flows, usable, strict=True):
        programme.add(flow, links, payload_ratio(plan, flow, transport=flow.transport))
    solution = linprog(
        programme.costs,
        A_ub=programme.matrix(programme.shared, len(programme.limits)),
        b_ub=programme.limits,
        A_eq=programme.matrix(programme.balance, len(programme.nodes)),
        b_eq=[0.0] * len(programme.nodes),
        bounds=programme.bounds,
        method="highs",
    )
    return float(round(-solution.fun * _UNIT)) if solution.success else None


class _Programme:
    """The linear programme: a variable for each flow and link direction, and one for what each flow gets."""

    def __init__(self) -> None:
        self.costs: list[float] = []
        self.bounds: list[tuple[float, float | None]] = []
        self.balance: list[tuple[int, int, float]] = []
        """(row, column, factor) of what comes in and goes out."""
        self.shared: list[tuple[int, int, float]] = []
        """(row, column, factor) of what crosses a limited link."""
        self.limits: list[float] = []
        self.nodes: dict[tuple[int, str], int] = {}
        """The row of a flow's node."""
        self._links: dict[str, int] = {}

    def add(self, flow: Flow, links: list[LinkDirection], payload: float) -> None:
        """Add a flow, the link directions that it may cross, and its payload's share of a frame."""
        sender, receiver = (end.netns for end in flow.ends)
        for link in links:
            column = self._add_variable(flow, link.source, link.target, cost=0.0, upper_bound=None)
            if link.rate_bps is not None:
                if link.name not in self._links:
                    self._links[link.name] = len(self.limits)
                    self.limits.append(link.rate_bps / _UNIT)
                self.shared.append((self._links[link.name], column, 1.0))
        # what arrives goes back to the sender, so that every node is in balance
        self._add_variable(
            flow, receiver, sender, cost=-payload, upper_bound=(flow.ideal_rate_bps or 0) / _UNIT
        )

    def _add_variable(
        self, flow: Flow, source: str, target: str, *, cost: float, upper_bound: float | None
    ) -> int:
        """Add a variable: the Mbit/s that a flow sends from one node to another. Return its column."""
        column = len(self.costs)
        self.costs.append(cost)
        self.bounds.append((0.0, upper_bound))
        for node, factor in ((source, 1.0), (target, -1.0)):
            self.balance.append((self.nodes.setdefault((flow.id, node), len(self.nodes)), column, factor))
        return column

    def matrix(self, entries: list[tuple[int, int, float]], height: int) -> Any:
        """Return the sparse matrix of `entries` (row, column, factor) with `height` rows."""
        from scipy.sparse import coo_array  # type: ignore[import-untyped]  # scipy ships no types

        rows, columns, factors = zip(*entries, strict=True) if entries else ((), (), ())
        return coo_array((factors, (rows, columns)), shape=(height, len(self.costs)))
