"""The plan: everything that one trial will do, as kernel objects and flows, with nothing left to decide.

The plan is the only thing that crosses into an engine. It names the kernel's own objects (namespaces, veth
pairs, bridges, qdiscs, routes, endpoints), so that the agent and the shell export apply it without knowing
what a scenario is. `agent/src/plan` reads the same shape; both refuse fields that they do not know.

All times are virtual. A time called `*_us` counts microseconds from the trial's zero, the moment at which the
network is complete; delays of links are nanoseconds, because they are handed to netem as such.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from plait.frames import DEFAULT_MTU
from plait.plan.model.applications import Application, SocketOptions
from plait.plan.model.forwarding import Datapath, Nat, Nexthop  # pydantic needs them at run time
from plait.plan.model.monitors import Monitors
from plait.plan.model.mptcp import (
    AddEndpoint,
    ChangeEndpoint,
    Join,
    Middlebox,
    Mptcp,
    RemoveEndpoint,
    SetLimits,
    SetSysctl,
)
from plait.plan.model.programs import Program
from plait.plan.model.qdiscs import Distribution, Qdisc
from plait.plan.model.record import IfName, Micros, Record

PLAN_SCHEMA = 1


class Module(Record):
    """A kernel module with schedulers or congestion controls that somebody added (`plait kernel add`).

    The engine builds it for its kernel, of the source with this content, as `modules/NAME.ko` in the trial's folder.
    """

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9_]{1,50}$")]
    sha256: str


class Machine(Record):
    """The guest itself. These decide outcomes, so they are part of the plan."""

    memory_mib: int = 256
    syscall_ns: int = 0
    """Virtual time charged for each system call, in ns."""
    sysctls: tuple[tuple[str, str], ...] = ()
    """(path below /proc/sys, value) of those that the kernel keeps once for all namespaces (tcp_mem, rmem_max),
    written in the first namespace, in this order, before any other is made. An engine that shares its kernel
    with others compares instead of writing."""
    modules: tuple[Module, ...] = ()
    """Loaded in this order, before anything else is done."""


class Namespace(Record):
    """A network namespace: a node of the scenario, or the hidden `wire` that carries all links."""

    name: str
    role: Literal["host", "switch", "router", "wire"]
    sysctls: tuple[tuple[str, str], ...] = ()
    """(path below /proc/sys, value), written in this order before any device exists."""


class VethEnd(Record):
    """One end of a veth pair, and the IP addresses on it (`10.0.0.1/24`, `fd00::1/64`)."""

    netns: str
    ifname: IfName
    mac: str
    addresses: tuple[str, ...] = ()


class Veth(Record):
    """A veth pair. Both ends are brought up with segmentation offload off, so one skb is one frame."""

    a: VethEnd
    b: VethEnd
    mtu: int = DEFAULT_MTU


class Bridge(Record):
    """A Linux bridge (no STP, no multicast snooping) and the interfaces enslaved to it."""

    netns: str
    ifname: IfName
    mac: str
    ports: tuple[IfName, ...]


class Ifb(Record):
    """An intermediate functional block: a device that gives each packet back to where it was redirected from."""

    netns: str
    ifname: IfName
    mac: str


class Redirect(Record):
    """Everything that arrives on `source` leaves through `target` (clsact, matchall, mirred).

    With the hook `egress` it is what is about to leave through `source`, before its qdiscs; the target is an ifb,
    which gives it back to them.
    """

    netns: str
    source: IfName
    target: IfName
    hook: Literal["ingress", "egress"] = "ingress"


class Rule(Record):
    """Policy routing: packets from `source` (and to `destination`, if given) look up `table`; with prefixes."""

    netns: str
    source: str
    table: int
    priority: int
    destination: str | None = None


class Route(Record):
    """A route. `destination` is a prefix or `default`; `table` 254 is main; a direct route has no `via`.

    The kernel itself adds the connected route of each address to main; those are not listed. An `unreachable`
    route has no device: it ends the lookup, so that a packet whose source belongs to one interface never
    falls through to the main table and leaves by another. A route with `nexthops` (two or more) has neither
    device nor `via`: the kernel chooses one of them for each packet by a hash, as the namespace's sysctls say.
    """

    netns: str
    destination: str
    kind: Literal["unicast", "unreachable"] = "unicast"
    device: IfName | None = None
    via: str | None = None
    source: str | None = None
    table: int = 254
    metric: int | None = None
    nexthops: tuple[Nexthop, ...] = ()


class Network(Record):
    """All kernel objects, in the order in which they are made."""

    namespaces: tuple[Namespace, ...]
    veths: tuple[Veth, ...]
    bridges: tuple[Bridge, ...] = ()
    datapaths: tuple[Datapath, ...] = ()
    ifbs: tuple[Ifb, ...] = ()
    distributions: tuple[Distribution, ...] = ()
    qdiscs: tuple[Qdisc, ...] = ()
    redirects: tuple[Redirect, ...] = ()
    routes: tuple[Route, ...] = ()
    rules: tuple[Rule, ...] = ()
    nats: tuple[Nat, ...] = ()
    middleboxes: tuple[Middlebox, ...] = ()
    mptcp: tuple[Mptcp, ...] = ()


class ChangeQdisc(Record):
    """The qdisc of that handle gets these options, all of them; it keeps its packets, and netem its random numbers."""

    kind: Literal["change_qdisc"] = "change_qdisc"
    qdisc: Qdisc


class SetDevice(Record):
    """An interface goes down or up.

    With an interface that goes down, the kernel drops its routes and its IPv6 addresses. What goes up names those
    that it needs again; connected routes and IPv4 addresses come back by themselves.
    """

    kind: Literal["set_device"] = "set_device"
    netns: str
    ifname: IfName
    up: bool
    addresses: tuple[str, ...] = ()
    routes: tuple[Route, ...] = ()


Action = Annotated[
    ChangeQdisc | SetDevice | AddEndpoint | ChangeEndpoint | RemoveEndpoint | SetLimits | SetSysctl,
    Field(discriminator="kind"),
]


class Event(Record):
    """Something that is done to the network while the trial runs. All its actions happen at one virtual moment."""

    t_us: Micros
    """Events stand in the order of their times; those of one time happen in the order in which they stand."""
    name: str
    """What is recorded in the table `events`: `link_down`, `endpoint_add`, .."""
    subject: str
    """To what it happens, for the column `node` of that table: a link (`h1-s1`), a direction (`h1->s1`), a node."""
    text: str
    """In words, for marks in figures: `h1-s1: 2 Mbit/s`. Empty: nothing to mark (a step of a trace)."""
    actions: tuple[Action, ...]


class LinkDirection(Record):
    """One direction of a link: what it is meant to do, and the interface in `wire` whose qdiscs do it.

    A `rate_bps` of None is an unlimited rate; such a link has no queue. At most one of `queue_packets` and
    `queue_bytes` is given.
    """

    name: str
    """`h1->s1`; unique within the plan."""
    source: str
    target: str
    ifname: IfName
    """The interface in namespace `wire` through which this direction leaves."""
    interface: IfName | None = None
    """The interface of `source` from which it comes; see `plan.ifnames`."""
    rate_bps: int | None
    delay_ns: int
    jitter_ns: int = 0
    """Half the width of a uniform distribution, the standard deviation of another."""
    jitter_distribution: str | None = None
    """None: uniform."""
    loss_ratio: float = 0.0
    """Of random loss in the long run, bursts or not."""
    loss_burst_packets: float | None = None
    """Mean length of a burst; None when each packet is lost or not on its own."""
    reorder_ratio: float = 0.0
    duplicate_ratio: float = 0.0
    corrupt_ratio: float = 0.0
    queue_packets: int | None = None
    queue_bytes: int | None = None
    aqm: str | None = None
    """`red`, `plait_red`, `codel` or `fq_codel`; None: drop-tail."""
    baseline_bps: int | None = None
    """Of a token bucket: what flows in; `rate_bps` is then the peak rate."""
    burst_bytes: int | None = None
    """Of a token bucket: what it holds."""


class Link(Record):
    """A link of the scenario, for monitors and analysis."""

    name: str
    directions: tuple[LinkDirection, LinkDirection]


class SharedBucket(Record):
    """A token bucket that link directions take from, before they enter their links: an ifb in `wire`."""

    name: str
    """`h1 out`; unique within the plan, and no name of a link direction."""
    ifname: IfName
    peak_bps: int
    baseline_bps: int
    burst_bytes: int
    queue_packets: int | None = None
    queue_bytes: int | None = None
    directions: tuple[str, ...]
    """Names of the link directions."""


class Path(Record):
    """A path that a flow can use: the link directions from the sender to the receiver, and back."""

    name: str
    client_address: str
    server_address: str
    forward: tuple[str, ...]
    """Names of link directions from the *sending* side to the receiving side."""
    backward: tuple[str, ...]
    spread: tuple[str, ...] = ()
    """Where routers choose among equally good ways (ECMP), `forward` and `backward` are one of the ways, and these are
    the further link directions, either way, that a subflow's packets may take instead. The base RTT is that of
    the one way."""
    backup: bool = False
    """Used only while no other path works."""
    rate_bps: int | None
    """The least rate along `forward`; None when no link of it is limited."""
    base_rtt_us: float


class HostName(Record):
    """A line of /etc/hosts."""

    address: str
    name: str


class Peers(Record):
    """Two hosts in which programs run, and the paths for data from one to the other."""

    source: str
    target: str
    transport: Literal["tcp", "mptcp"]
    """What a connection between them is, where both ends can; `tcp` where one cannot."""
    paths: tuple[Path, ...]
    """With `client_address` at the source; those between all pairs of addresses that reach each other."""
    ideal_rate_bps: int | None
    """What the links allow one MPTCP connection on all of these paths together; None: no limit, or not known."""


class Side(Record):
    """One side of a flow."""

    netns: str
    address: str
    """The client binds to it and connects to the server's. The server listens on this port at *all* its addresses:
    the kernel answers an MP_JOIN to another address only where a listener covers it."""
    port: int = Field(ge=0, le=65535)
    """0 at a client: the kernel chooses."""


class Flow(Record):
    """One transport connection and the application data on it, from one side to the other.

    Two flows may use one connection, one in each direction.
    """

    id: int = Field(ge=0)
    name: str
    application: Application
    transport: Literal["tcp", "mptcp", "udp"]
    client: Side
    server: Side
    sender: Literal["client", "server"]
    """The side that sends the data of interest; of requests and pages the one that answers."""
    start_us: Micros
    """From the trial's zero, or from the last of what is in `after` and `after_programs`."""
    after: tuple[int, ...] = ()
    """The flows that have to end before this one starts, completed or not."""
    after_programs: tuple[str, ...] = ()
    """The programs that have to be ready, or to have ended, before this one starts."""
    connection: int | None = None
    """The flow whose connection this one uses, in the other direction; it starts when that is established."""
    user: str | None = None
    """Whose flow it is; fairness is told between users."""
    background: bool = False
    """Present, but not part of the figures of the trial as a whole."""
    group: str | None = None
    """The mean of each group is told."""
    socket: SocketOptions = SocketOptions()
    joins: tuple[Join, ...] = ()
    """What the agent adds to the initial subflow, in this order; empty where the kernel's path manager acts."""
    paths: tuple[Path, ...]
    """The paths that this flow may use, the initial one first (only that one for TCP and UDP)."""
    ideal_rate_bps: int | None
    """The rate that the links allow this flow alone on all its paths together (maximum flow), without backups where
    there are others; None: no limit."""

    @property
    def kind(self) -> str:
        """What the application is, as the tables call it."""
        return self.application.kind

    @property
    def carrier(self) -> int:
        """The flow under whose number its connection is sampled."""
        return self.id if self.connection is None else self.connection


class Measure(Record):
    """The part of each flow over which its steady goodput is measured.

    Counted from the flow's start where it is not negative, and from the flow's end where it is, or is None (the end).
    """

    from_us: int
    to_us: int | None


PauseAt = Literal["before", "after"]


class Plan(Record):
    """One trial."""

    schema_version: Literal[1] = Field(default=1, alias="schema")
    seed: int = Field(ge=0, lt=2**53)
    machine: Machine
    sample_interval_us: int = Field(ge=1000)
    end_us: Micros
    """The trial ends when every flow has ended, or at this time at the latest."""
    network: Network
    links: tuple[Link, ...]
    buckets: tuple[SharedBucket, ...] = ()
    flows: tuple[Flow, ...]
    events: tuple[Event, ...] = ()
    measure: Measure | None = None
    """For the analysis; no engine has a use for it."""
    monitors: Monitors = Monitors()
    programs: tuple[Program, ...] = ()
    names: tuple[HostName, ...] = ()
    """What programs find in /etc/hosts."""
    peers: tuple[Peers, ...] = ()
    """For the analysis: the paths between hosts in which programs run, each direction of data on its own."""
    pause: tuple[PauseAt, ...] = ()
    """When the trial is halted for a prompt in its network, in this order. What is done there is in no plan."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, populate_by_name=True)
