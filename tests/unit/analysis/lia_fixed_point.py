"""LIA's fixed point in Khalili's scenario A, from theory.

Khalili, Gast, Popovic, Le Boudec, "MPTCP is not Pareto-optimal" (CoNEXT 2012), and
draft-khalili-mptcp-performance-issues-06. Users of type 1 (n1) share a server's link of n1 * c1, users of type 2 (n2)
an access point of n2 * c2. LIA also sends over the access point, although type 1 gains nothing by it.
"""

from __future__ import annotations

from dataclasses import dataclass

from scipy.optimize import brentq


@dataclass(frozen=True)
class Shares:
    """Throughput of each user in the unit of the capacities, headers included."""

    type1: float
    type2: float


def lia_scenario_a(n1: int, n2: int, c1: float, c2: float) -> Shares:
    """Return LIA's fixed point, by z, the root of the ratio of the two links' loss rates.

        n1 c1 z^2 / (1 + 2 z^2) + n2 c1 z = n2 c2

    Type 1 fills the server's link (c1), and type 2 gets z c1. Raises ValueError for sizes that are not positive.
    """
    if min(n1, n2, c1, c2) <= 0:
        raise ValueError("numbers of users and capacities are positive")

    def excess(z: float) -> float:
        return float(n1 * c1 * z * z / (1 + 2 * z * z) + n2 * c1 * z - n2 * c2)

    z = float(brentq(excess, 0.0, c2 / c1, xtol=1e-12))
    return Shares(type1=c1, type2=z * c1)
