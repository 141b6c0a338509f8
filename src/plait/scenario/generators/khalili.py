"""The test beds of Khalili et al. ("MPTCP is not Pareto-optimal", CoNEXT 2012; draft-khalili-mptcp-performance-issues).

Users download; `multi*` (or `blue*`) have two paths. Capacities are as in the paper: n users times c per user. The
bottlenecks' baseline RTT is twice `delay` (80 ms); with the random early detection of the test bed, which holds a queue
of 50 to 60 packets at 10 Mbit/s, the RTT is the paper's 150 ms.

Random early detection follows draft-khalili-mptcp-performance-issues-06: at 10 Mbit/s the drop probability is 0 up to
25 packets, rises linearly to 10 % at 50 packets, and linearly to 100 % at 100 packets; thresholds are proportional to
the rate. It uses the current queue: the draft has no average, and with the usual average (512 packets) the measured
shares differ from the published ones.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from plait.parts import Delay, Whole
from plait.scenario.generators.base import MAX_PATHS, Description, Generator, Options, numbered
from plait.scenario.mistakes import FieldMistake
from plait.units import Queue, Rate

Users = Annotated[Whole, Field(ge=1)]
_DOWNLOAD: dict[str, Any] = {"duration": "120s", "reverse": True}
_RED = ((25, "0%"), (50, "10%"), (100, "100%"))
"""Queue in packets at 10 Mbit/s, and the drop probability of a packet that arrives at that queue."""


def _flows(group: str, sender: str, receivers: str, **options: Any) -> Options:
    """Return the downloads of a group of users from one server."""
    return {
        "pairs": {"from": sender, "to": receivers, "each": {"bulk": {**_DOWNLOAD, **options, "group": group}}}
    }


class _Khalili(Generator):
    """The parameters of the three test beds."""

    SIZE: ClassVar[str] = "n1"

    n1: Users = 10
    """Number of users of type 1."""
    n2: Users = 10
    """Number of users of type 2."""
    c1: Rate = Rate.parse("1mbit")
    """Capacity of the first bottleneck per user of type 1."""
    c2: Rate = Rate.parse("1mbit")
    """Capacity of the second bottleneck per user of type 2."""
    delay: Delay = Delay.parse("40ms")
    """One-way delay of every path."""
    aqm: Literal["red", "droptail"] = "red"
    """Queue management of both bottlenecks: random early detection as in the test bed, or none."""
    queue: Queue | None = None
    """Queue length of both bottlenecks with `droptail`. Default: 100 packets per 10 Mbit/s."""

    def mistakes(self) -> list[FieldMistake]:
        """Return a mistake for a queue with red, or for a capacity that no link can have."""
        if self.queue is not None and self.aqm == "red":
            return [(("queue",), "red sets the queue length itself; remove queue, or write aqm: droptail")]
        for count, rate in (("n1", "c1"), ("n2", "c2")):
            try:
                self._capacity(getattr(self, count), getattr(self, rate))
            except ValueError as error:
                return [((rate,), f"{count} users of {getattr(self, rate)} each: {error}")]
        return []

    def _capacity(self, users: int, each: Rate) -> Rate:
        return Rate.parse(f"{users * int(each)}bit")

    def _bottleneck(self, users: int, each: Rate) -> Options:
        """Return rate and queue of a bottleneck, which are equal in both directions."""
        rate = self._capacity(users, each)
        scale = int(rate) / 10_000_000
        points: dict[int, str] = {}
        for packets, share in _RED:
            points[max(round(packets * scale), max(points, default=0) + 1)] = share
        whole = Queue.parse(f"{max(10, *points)}pkt")
        if self.aqm == "droptail":
            return {"rate": rate, "queue": self.queue or whole}
        curve = {f"{packets}pkt": share for packets, share in points.items()}
        return {"rate": rate, "queue": whole, "aqm": {"red": {"points": curve, "weight_log": 0}}}


class KhaliliA(_Khalili):
    """Scenario A: `multi*` have a private path and one through the access point `ap`, which `single*` share.

    Both paths of `multi*` cross their server's link (`server1-core`, n1 * c1), so they gain nothing from the access
    point; their traffic through it takes capacity from `single*` (`core-ap`, n2 * c2).
    """

    TRAFFIC: ClassVar[list[Options]] = [
        _flows("type1", "server1", "multi*"),
        _flows("type2", "server2", "single*", transport="tcp"),
    ]

    generator: Literal["khalili-a"] = "khalili-a"

    def describe(self) -> Description:
        """Return the network, with the users' private links first, which makes them the initial path."""
        net = self._common()
        net.add_switches("ap")
        for user in numbered("multi", self.n1):
            net.join("core", user)
        self._shared(net)
        return net

    def _common(self) -> Description:
        """Return the servers, the users, and the links between servers and access points."""
        net = Description()
        net.add_hosts("server1", "server2", *numbered("multi", self.n1), *numbered("single", self.n2))
        net.add_routers("core")
        net.join("server1", "core", delay=self.delay, **self._bottleneck(self.n1, self.c1))
        net.join("server2", "core", delay=self.delay)
        net.join("core", "ap", **self._bottleneck(self.n2, self.c2))
        return net

    def _shared(self, net: Description) -> None:
        """Add the links of all users to the shared access point."""
        for user in (*numbered("multi", self.n1), *numbered("single", self.n2)):
            net.join("ap", user)


class TopologyA(KhaliliA):
    """Khalili's scenario A with more private paths: `multi*` have n subflows, one of them through the shared `ap`.

    The access points are OpenFlow switches: `ap`, and `own1`, `own2`, .., which only the MPTCP users have.
    """

    generator: Literal["topology-a"] = "topology-a"  # type: ignore[assignment]  # the same network, extended
    aqm: Literal["red", "droptail"] = "droptail"
    subflows: Annotated[Whole, Field(ge=2, le=MAX_PATHS)] = 3
    """Number of subflows of each user of type 1; all but one are on private paths."""
    openflow: Literal["multipath", "learning"] = "multipath"
    """How the access points forward: by flow entries of the plan (`multipath`), or by MAC learning."""

    def describe(self) -> Description:
        """Return the network, with the private access points first: the initial path of `multi*` is through `own1`."""
        net = self._common()
        private = numbered("own", self.subflows - 1)
        net.add_switches(*private, "ap", openflow=self.openflow)
        for access in private:
            net.join("core", access)
        for user in numbered("multi", self.n1):
            for access in private:
                net.join(access, user)
        self._shared(net)
        return net


class KhaliliB(_Khalili):
    """Scenario B: `blue*` and `red*` behind the providers X and T; `blue*` have two paths, `red*` may upgrade to two.

    X has a capacity of n1 * c1, T of n2 * c2. `blue*` cross X on one path and T on the other; `red*` cross T on their
    path, and both T and X on the path that MPTCP adds: that path gains nothing for any user, and takes capacity from
    both groups. The paths follow from the paper's rates (27 and 36 Mbit/s, 15 users of each kind).
    """

    TRAFFIC: ClassVar[list[Options]] = [
        _flows("blue", "server1", "blue*"),
        _flows("red", "server2", "red*"),
    ]

    generator: Literal["khalili-b"] = "khalili-b"
    n1: Users = 15
    n2: Users = 15
    c1: Rate = Rate.parse("1800kbit")
    c2: Rate = Rate.parse("2400kbit")

    def describe(self) -> Description:
        """Return the network, in which small delays select the paths, because routers take the shortest one.

        Without them `blue*` would reach Y past T, and `red*` would reach X past T.
        """
        net = Description()
        net.add_hosts("server1", "server2", *numbered("blue", self.n1), *numbered("red", self.n2))
        net.add_routers("z", "xin", "xout", "tin", "tout", "y")
        net.join("server1", "z", delay=self.delay)
        net.join("server2", "tin", delay=self.delay)
        net.join("xin", "xout", **self._bottleneck(self.n1, self.c1))
        net.join("tin", "tout", **self._bottleneck(self.n2, self.c2))
        net.join("z", "xin", backward={"delay": "150us"})
        net.join("z", "tin", backward={"delay": "100us"})
        net.join("tout", "xin", backward={"delay": "100us"})
        net.join("tout", "y")
        for user in numbered("blue", self.n1):
            net.join("xout", user)
            net.join("y", user)
        for user in numbered("red", self.n2):
            net.join("y", user)
            net.join("xout", user)
        return net


class KhaliliC(_Khalili):
    """Scenario C: `multi*` have access points `ap1` (n1 * c1, private) and `ap2` (n2 * c2), `single*` only `ap2`."""

    TRAFFIC: ClassVar[list[Options]] = [
        _flows("multipath", "server", "multi*"),
        _flows("tcp", "server", "single*", transport="tcp"),
    ]

    generator: Literal["khalili-c"] = "khalili-c"

    def describe(self) -> Description:
        """Return the network, with `ap1` first, which makes it the initial path of `multi*`."""
        net = Description()
        net.add_hosts("server", *numbered("multi", self.n1), *numbered("single", self.n2))
        net.add_switches("ap1", "ap2")
        net.add_routers("core")
        net.join("server", "core", delay=self.delay)
        net.join("core", "ap1", **self._bottleneck(self.n1, self.c1))
        net.join("core", "ap2", **self._bottleneck(self.n2, self.c2))
        for user in numbered("multi", self.n1):
            net.join("ap1", user)
        for user in (*numbered("multi", self.n1), *numbered("single", self.n2)):
            net.join("ap2", user)
        return net
