"""The test beds of Khalili et al. ("MPTCP is not Pareto-optimal", CoNEXT 2012; draft-khalili-mptcp-performance-issues).

Users download; `multi*` (or `blue*`) are those with two paths. Capacities are written as in the paper: n users times c
for each of them. The bottlenecks' round-trip time without queues is twice `delay` (80 ms); with the random early
detection of the test bed, which holds a queue of 50 to 60 packets at 10 Mbit/s, it is the paper's 150 ms.

Random early detection as the draft describes it (draft-khalili-mptcp-performance-issues-06): at 10 Mbit/s nothing is
dropped up to 25 packets, then linearly up to 10 % at 50 packets, and linearly up to everything at 100; thresholds are
proportional to the rate. It acts on the queue as it is: the draft has no average, and with the usual one (512 packets)
shares were measured that are not the published ones.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import Field

from plait.scenario.fields.parts import Delay, Whole
from plait.scenario.generators.base import MAX_PATHS, Description, Generator, Options
from plait.units import Queue, Rate

if TYPE_CHECKING:
    from plait.scenario.mistakes import FieldMistake

Users = Annotated[Whole, Field(ge=1)]
_DOWNLOAD: dict[str, Any] = {"duration": "120s", "reverse": True}
_RED = ((25, "0%"), (50, "10%"), (100, "100%"))
"""Packets at 10 Mbit/s, and the probability with which one that arrives then is dropped."""


def _flows(group: str, sender: str, receivers: str, **options: Any) -> Options:
    """Downloads of a group of users from one server."""
    return {
        "pairs": {"from": sender, "to": receivers, "each": {"bulk": {**_DOWNLOAD, **options, "group": group}}}
    }


class _Khalili(Generator):
    """What the three test beds have in common."""

    SIZE: ClassVar[str] = "n1"

    n1: Users = 10
    """Users of type 1."""
    n2: Users = 10
    """Users of type 2."""
    c1: Rate = Rate.parse("1mbit")
    """Capacity of the first bottleneck for each user of type 1."""
    c2: Rate = Rate.parse("1mbit")
    """Capacity of the second bottleneck for each user of type 2."""
    delay: Delay = Delay.parse("40ms")
    """One way, of every path."""
    aqm: Literal["red", "droptail"] = "red"
    """Of both bottlenecks: random early detection as in the test bed, or none."""
    queue: Queue | None = None
    """Of both bottlenecks, with `droptail`; without, 100 packets for every 10 Mbit/s."""

    def mistakes(self) -> list[FieldMistake]:
        """A capacity is a rate that a link can have."""
        if self.queue is not None and self.aqm == "red":
            return [(("queue",), "red has thresholds of its own; leave queue out, or write aqm: droptail")]
        for count, rate in (("n1", "c1"), ("n2", "c2")):
            try:
                self._capacity(getattr(self, count), getattr(self, rate))
            except ValueError as error:
                return [((rate,), f"{count} users of {getattr(self, rate)} each: {error}")]
        return []

    def _capacity(self, users: int, each: Rate) -> Rate:
        return Rate.parse(f"{users * int(each)}bit")

    def _bottleneck(self, users: int, each: Rate) -> Options:
        """Rate and queue of a bottleneck, the same in both directions."""
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

    Both paths of `multi*` cross their server's link (`server1-core`, n1 * c1), so that the access point brings them
    nothing; what they send through it takes from `single*` (`core-ap`, n2 * c2).
    """

    TRAFFIC: ClassVar[list[Options]] = [
        _flows("type1", "server1", "multi*"),
        _flows("type2", "server2", "single*", transport="tcp"),
    ]

    generator: Literal["khalili-a"] = "khalili-a"

    def count_links(self) -> int:
        """Two servers, the access point, and the users' paths."""
        return 3 + 2 * self.n1 + self.n2

    def describe(self) -> Description:
        """The users' private links come first: their initial path."""
        out = self._common()
        out.add_switches("ap")
        for user in _numbered("multi", self.n1):
            out.join("core", user)
        self._shared(out)
        return out

    def _common(self) -> Description:
        """Servers, users and what is between the servers and the access points."""
        out = Description()
        out.add_hosts("server1", "server2", *_numbered("multi", self.n1), *_numbered("single", self.n2))
        out.add_routers("core")
        out.join("server1", "core", delay=self.delay, **self._bottleneck(self.n1, self.c1))
        out.join("server2", "core", delay=self.delay)
        out.join("core", "ap", **self._bottleneck(self.n2, self.c2))
        return out

    def _shared(self, out: Description) -> None:
        """Everybody's links to the shared access point."""
        for user in (*_numbered("multi", self.n1), *_numbered("single", self.n2)):
            out.join("ap", user)


class TopologyA(KhaliliA):
    """Khalili's scenario A with more private paths: `multi*` have n subflows, one of them through the shared `ap`.

    The access points are OpenFlow switches: `ap`, and `own1`, `own2`, .. of the MPTCP users alone.
    """

    generator: Literal["topology-a"] = "topology-a"  # type: ignore[assignment]  # the same network, extended
    aqm: Literal["red", "droptail"] = "droptail"
    subflows: Annotated[Whole, Field(ge=2, le=MAX_PATHS)] = 3
    """Of each user of type 1: all but one are private."""
    openflow: Literal["multipath", "learning"] = "multipath"
    """How the access points forward: by flows of the plan, or by what they learn."""

    def count_links(self) -> int:
        """Two servers, the access points, and the users' paths."""
        return 3 + (self.subflows - 1) + self.n1 * self.subflows + self.n2

    def describe(self) -> Description:
        """The private access points come first: the initial path of `multi*` is through `own1`."""
        out = self._common()
        private = _numbered("own", self.subflows - 1)
        out.add_switches(*private, "ap", openflow=self.openflow)
        for access in private:
            out.join("core", access)
        for user in _numbered("multi", self.n1):
            for access in private:
                out.join(access, user)
        self._shared(out)
        return out


class KhaliliB(_Khalili):
    """Scenario B: `blue*` and `red*` behind the providers X and T; `blue*` have two paths, `red*` may upgrade to two.

    X carries n1 * c1, T n2 * c2. `blue*` cross X on one path and T on the other; `red*` cross T on their path, and T
    *and* X on the one that MPTCP adds: it can bring nobody anything, and costs both. Which path crosses what is as the
    paper's rates demand it (27 and 36 Mbit/s, 15 users of each kind).
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

    def count_links(self) -> int:
        """The providers' network, and two links for each user."""
        return 8 + 2 * (self.n1 + self.n2)

    def describe(self) -> Description:
        """What may be crossed in which direction is told by small delays, as routers take the shortest way.

        Without them `blue*` would reach Y past T, and `red*` would reach X past T.
        """
        out = Description()
        out.add_hosts("server1", "server2", *_numbered("blue", self.n1), *_numbered("red", self.n2))
        out.add_routers("z", "xin", "xout", "tin", "tout", "y")
        out.join("server1", "z", delay=self.delay)
        out.join("server2", "tin", delay=self.delay)
        out.join("xin", "xout", **self._bottleneck(self.n1, self.c1))
        out.join("tin", "tout", **self._bottleneck(self.n2, self.c2))
        out.join("z", "xin", backward={"delay": "150us"})
        out.join("z", "tin", backward={"delay": "100us"})
        out.join("tout", "xin", backward={"delay": "100us"})
        out.join("tout", "y")
        for user in _numbered("blue", self.n1):
            out.join("xout", user)
            out.join("y", user)
        for user in _numbered("red", self.n2):
            out.join("y", user)
            out.join("xout", user)
        return out


class KhaliliC(_Khalili):
    """Scenario C: `multi*` have access points `ap1` (n1 * c1, their own) and `ap2` (n2 * c2), `single*` only `ap2`."""

    TRAFFIC: ClassVar[list[Options]] = [
        _flows("multipath", "server", "multi*"),
        _flows("tcp", "server", "single*", transport="tcp"),
    ]

    generator: Literal["khalili-c"] = "khalili-c"

    def count_links(self) -> int:
        """The server, two access points, and the users' links."""
        return 3 + 2 * self.n1 + self.n2

    def describe(self) -> Description:
        """`ap1` comes first: the initial path of `multi*`."""
        out = Description()
        out.add_hosts("server", *_numbered("multi", self.n1), *_numbered("single", self.n2))
        out.add_switches("ap1", "ap2")
        out.add_routers("core")
        out.join("server", "core", delay=self.delay)
        out.join("core", "ap1", **self._bottleneck(self.n1, self.c1))
        out.join("core", "ap2", **self._bottleneck(self.n2, self.c2))
        for user in _numbered("multi", self.n1):
            out.join("ap1", user)
        for user in (*_numbered("multi", self.n1), *_numbered("single", self.n2)):
            out.join("ap2", user)
        return out


def _numbered(name: str, count: int) -> list[str]:
    return [f"{name}{i + 1}" for i in range(count)]
