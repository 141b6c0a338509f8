"""The plan: everything that one trial does, as kernel objects and flows, with nothing left to decide.

The plan is the only input of an engine. It names the kernel's own objects (namespaces, veth pairs, bridges, qdiscs,
routes, endpoints), so that the agent and the shell export can apply it without knowing what a scenario is.
`tools/contract.py` derives the agent's records from these; both sides refuse unknown fields.

All times are virtual. A time called `*_us` counts microseconds from the trial's zero, the moment at which the
network is complete; link delays are in nanoseconds, the unit of netem.
"""

from __future__ import annotations

from functools import cached_property
from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from plait.frames import DEFAULT_MTU
from plait.parts import U16, U32, U64, Address, IfName, Micros, Record
from plait.plan.model.forwarding import Datapath, Nat, Nexthop  # pydantic needs them at run time
from plait.plan.model.links import ChangeLink, Link, LinkDirection, SharedBucket, VethEnd
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
from plait.plan.model.sockets import SocketOptions, StreamTransport, Transport
from plait.traffic.kinds import Application


class Module(Record):
    """A kernel module with schedulers or congestion controls that the user added (`plait kernel add`).

    The engine builds it for its kernel, from the source with this hash, as `modules/NAME.ko` in the trial's
    folder.
    """

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9_]{1,50}$")]
    sha256: str


Role = Literal["host", "switch", "router", "wire"]
Hook = Literal["ingress", "egress"]
RouteKind = Literal["unicast", "unreachable"]
SideName = Literal["client", "server"]
LinksAs = Literal["chain", "device"]
"""The form of a link in an engine: two veth pairs with qdiscs and redirects, or a `plait_link`."""


class Machine(Record):
    """The guest itself. These values affect results, so they are part of the plan."""

    memory_mib: U32 = 256
    syscall_ns: U64 = 0
    """Virtual time that each system call takes, in ns."""
    sysctls: tuple[tuple[str, str], ...] = ()
    """(path below /proc/sys, value) of settings that the kernel has once for all namespaces (tcp_mem, rmem_max).
    The agent writes them in the first namespace, in this order, before it makes any other. An engine that
    shares its kernel with others compares them instead."""
    modules: tuple[Module, ...] = ()
    """The agent loads them in this order, before anything else."""
    processors: int = Field(default=1, ge=1, le=4, exclude_if=lambda value: value == 1)
    instruction_ns: int = Field(default=1, ge=1, lt=2**32, exclude_if=lambda value: value == 1)
    """Virtual time that each instruction of a processor takes, in ns, if processing takes time at all: a power of 2."""
    offloads: bool = Field(default=False, exclude_if=lambda value: not value)
    """The interfaces of hosts keep their segmentation offloads: one skb may be many frames until a link splits it."""


class Namespace(Record):
    """A network namespace: a node of the scenario, or the hidden `wire` that holds all links."""

    name: str
    role: Role
    sysctls: tuple[tuple[str, str], ...] = ()
    """(path below /proc/sys, value), written in this order before any device exists."""


class Veth(Record):
    """A veth pair. Both ends have segmentation offload off, so that one skb is one frame."""

    a: VethEnd
    b: VethEnd
    mtu: U32 = DEFAULT_MTU


class Bridge(Record):
    """A Linux bridge (no STP, no multicast snooping) and the interfaces attached to it."""

    netns: str
    ifname: IfName
    mac: str
    ports: tuple[IfName, ...]


class Ifb(Record):
    """An intermediate functional block: a device that returns each packet to the interface that redirected it."""

    netns: str
    ifname: IfName
    mac: str


class Redirect(Record):
    """Everything that arrives on `source` leaves through `target` (clsact, matchall, mirred).

    The hook `egress` takes packets that are about to leave through `source`, before its qdiscs; the target is
    then an ifb, which returns them to those qdiscs.
    """

    netns: str
    source: IfName
    target: IfName
    hook: Hook = "ingress"


class Rule(Record):
    """Policy routing: packets from `source` (and to `destination`, if given) look up `table`; both are prefixes."""

    netns: str
    source: str
    table: U32
    priority: U32
    destination: str | None = None


class Route(Record):
    """A route. `destination` is a prefix or `default`; `table` 254 is main; a direct route has no `via`.

    The kernel itself adds the connected route of each address to main; the plan does not list those. An
    `unreachable` route has no device: it ends the lookup, so that a packet whose source belongs to one
    interface never falls through to the main table and leaves by another. A route with `nexthops` (two or more)
    has neither device nor `via`: the kernel chooses a next hop for each packet by a hash, which the namespace's
    sysctls configure.
    """

    netns: str
    destination: str
    kind: RouteKind = "unicast"
    device: IfName | None = None
    via: Address | None = None
    source: Address | None = None
    table: U32 = 254
    metric: U32 | None = None
    nexthops: tuple[Nexthop, ...] = ()


class Network(Record):
    """All kernel objects, in the order in which the agent makes them."""

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
    """Replace all options of the qdisc with that handle; it keeps its packets, and netem its random state.

    `plan.links.chain` makes it of a `ChangeLink`; only plans of earlier versions have it from the start.
    """

    kind: Literal["change_qdisc"] = "change_qdisc"
    qdisc: Qdisc


class SetDevice(Record):
    """Set an interface up or down.

    When an interface goes down, the kernel drops its routes and its IPv6 addresses. The action that sets it up
    lists those to restore; the kernel restores connected routes and IPv4 addresses by itself.
    """

    kind: Literal["set_device"] = "set_device"
    netns: str
    ifname: IfName
    up: bool
    addresses: tuple[str, ...] = ()
    routes: tuple[Route, ...] = ()


Action = Annotated[
    ChangeLink
    | ChangeQdisc
    | SetDevice
    | AddEndpoint
    | ChangeEndpoint
    | RemoveEndpoint
    | SetLimits
    | SetSysctl,
    Field(discriminator="kind"),
]


class Event(Record):
    """A change of the network while the trial runs. All its actions happen at the same virtual time."""

    t_us: Micros
    """Events are in the order of their times; events of the same time happen in the order of the list."""
    name: str
    """The name in the table `events`: `link_down`, `endpoint_add`, .."""
    subject: str
    """The changed object, for the column `node` of that table: a link (`h1-s1`), a direction (`h1->s1`), a node."""
    text: str
    """The label of its mark in figures: `h1-s1: 2 Mbit/s`. Empty: no mark (a step of a trace)."""
    actions: tuple[Action, ...]


class Path(Record):
    """A path that a flow can use: the link directions from the sender to the receiver, and back."""

    name: str
    client_address: str
    server_address: str
    forward: tuple[str, ...]
    """Names of link directions from the *sending* side to the receiving side."""
    backward: tuple[str, ...]
    spread: tuple[str, ...] = ()
    """Where routers choose among equal-cost routes (ECMP), `forward` and `backward` are one of the choices, and
    these are the other link directions, of either way, that a subflow's packets may take. The base RTT is that
    of the one choice."""
    backup: bool = False
    """Used only while no other path works."""
    rate_bps: U64 | None
    """The lowest rate along `forward`; None: no link of it has a limit."""
    base_rtt_us: float


class HostName(Record):
    """A line of /etc/hosts."""

    address: str
    name: str


class Peers(Record):
    """Two hosts in which programs run, and the paths for data from one to the other."""

    source: str
    target: str
    transport: StreamTransport
    """The transport of a connection between them: `mptcp` if both ends support it, otherwise `tcp`."""
    paths: tuple[Path, ...]
    """With `client_address` at the source: the paths between all pairs of addresses that reach each other."""
    ideal_rate_bps: U64 | None
    """The rate that the links allow one MPTCP connection on all of these paths together; None: no limit, or unknown."""


class Side(Record):
    """One side of a flow."""

    netns: str
    address: Address
    """The client binds to its address and connects to the server's. The server listens on its port at *all* its
    addresses: the kernel answers an MP_JOIN to another address only if a listener covers it."""
    port: U16
    """0 at a client: the kernel chooses."""


class Flow(Record):
    """One transport connection and the application data on it, from one side to the other.

    Two flows may share one connection, one in each direction.
    """

    id: int = Field(ge=0)
    name: str
    application: Application
    transport: Transport
    client: Side
    server: Side
    sender: SideName
    """The side that sends the measured data; for requests and pages, the side that answers."""
    start_us: Micros
    """From the trial's zero, or from the last end of those in `after` and `after_programs`."""
    after: tuple[int, ...] = ()
    """The flows that must end before this one starts, whether they complete or not."""
    after_programs: tuple[str, ...] = ()
    """The programs that must be ready, or must have ended, before this flow starts."""
    connection: int | None = None
    """The flow whose connection this one shares, in the other direction; this one starts once it is established."""
    user: str | None = None
    """The user that owns the flow; fairness compares users."""
    background: bool = False
    """Part of the trial, but not of its overall metrics."""
    unsampled: bool = Field(default=False, exclude_if=lambda value: not value)
    """Its connection has only its last rows in the tables, and none over time."""
    group: str | None = None
    """The analysis reports the mean of each group."""
    socket: SocketOptions = SocketOptions()
    joins: tuple[Join, ...] = ()
    """The subflows that the agent adds to the initial one, in this order; empty if the kernel's path manager acts."""
    paths: tuple[Path, ...]
    """The paths that this flow may use, the initial one first (for TCP and UDP, only that one)."""
    ideal_rate_bps: U64 | None
    """The rate that the links allow this flow alone on all its paths together (maximum flow), without backup paths
    if there are others; None: no limit."""

    @property
    def kind(self) -> str:
        """Return the kind of the application, as the tables name it."""
        return self.application.kind

    @property
    def measured_as(self) -> str:
        """Return the kind of flow whose metrics it has: its own, or that of what a prototype carries."""
        return self.application.measured_as

    @property
    def multipath(self) -> bool:
        """Return whether its data may take several paths."""
        return self.transport in {"mptcp", "prototype"}

    @property
    def receiver(self) -> SideName:
        """Return the side that receives the measured data."""
        return "server" if self.sender == "client" else "client"

    @property
    def ends(self) -> tuple[Side, Side]:
        """Return the side that sends the measured data, and the one that receives them."""
        return (self.client, self.server) if self.sender == "client" else (self.server, self.client)

    @property
    def carrier(self) -> int:
        """Return the id of the flow under which the agent samples the connection."""
        return self.id if self.connection is None else self.connection


class Measure(Record):
    """The part of each flow over which the analysis measures its steady goodput.

    A time counts from the flow's start if it is not negative, otherwise from the flow's end; None is the end.
    """

    from_us: int
    to_us: int | None


PauseAt = Literal["before", "after"]


class Plan(Record):
    """One trial."""

    schema_version: Literal[1] = Field(default=1, alias="schema")
    seed: U64
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
    """For the analysis; engines ignore it."""
    monitors: Monitors = Monitors()
    programs: tuple[Program, ...] = ()
    names: tuple[HostName, ...] = ()
    """The content of /etc/hosts for programs."""
    peers: tuple[Peers, ...] = ()
    """For the analysis: the paths between hosts in which programs run, one record for each direction of data."""
    pause: tuple[PauseAt, ...] = ()
    """When the trial stops for a prompt in its network, in this order. No plan contains what happens at the prompt."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, populate_by_name=True)

    @cached_property
    def directions(self) -> dict[str, LinkDirection]:
        """The directions of links by name."""
        return {direction.name: direction for link in self.links for direction in link.directions}

    @cached_property
    def crossing(self) -> dict[str, set[int]]:
        """The flows whose data crosses a direction of a link: their IDs by the direction's name."""
        crossing: dict[str, set[int]] = {}
        for flow in self.flows:
            for path in flow.paths:
                for name in path.forward:
                    crossing.setdefault(name, set()).add(flow.id)
        return crossing

    @cached_property
    def sysctls(self) -> dict[str, dict[str, str]]:
        """The settings of each namespace, by its name and by path below /proc/sys."""
        return {space.name: dict(space.sysctls) for space in self.network.namespaces}

    @cached_property
    def lowest_mtu(self) -> int:
        """The lowest MTU of the network's interfaces."""
        return min((veth.mtu for veth in self.network.veths), default=DEFAULT_MTU)

    @property
    def sampled_flows(self) -> tuple[int, int]:
        """How many flows with a connection of the kernel have rows over time, and how many there are."""
        connected = [flow for flow in self.flows if flow.transport in ("tcp", "mptcp")]
        return sum(not flow.unsampled for flow in connected), len(connected)
