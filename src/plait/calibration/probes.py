"""The plan that measures link settings with UDP packets, over two links between two pairs of hosts for each setting.

    warm-up: a few packets, so that both hosts learn each other's addresses
    probe: full-size packets at half the rate, which meet no queue; they measure delay and loss of the setting itself
    saturate: full-size packets at five quarters of the rate, which keep the queue non-empty; they measure the rate of
        the setting without its random parts

Jitter that preserves the packet order delays the packets behind a late one; if the queue runs empty meanwhile, the link
passes less than its rate. Reordering and loss have the same effect, less often. Such a link behaves as configured, so
the rate limiter and its queue are measured behind a constant delay.

A host looks up its neighbour's address only once. Otherwise, every minute or so, that small packet would take the place
of a full one in a short queue.

All settings of a plan are measured at once, each in its own namespaces; their links are separate.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

from plait.calibration.settings import LOCATION, Setting
from plait.plan.model.plan import Plan
from plait.plan.model.qdiscs import Netem
from plait.plan.resolve import distributions, resolve
from plait.scenario import Scenario
from plait.traffic.udp import Udp

SETTINGS_IN_PLAN = 24
"""The number of settings in one plan."""
PACKETS = 50
JITTERED_PACKETS = 1000
LOSSY_PACKETS = 2000
SATURATING_PACKETS = 300
MOST_SATURATING = 3000
LONG_ENOUGH_NS = 4_000_000
"""Saturation lasts at least this long, if that takes at most `MOST_SATURATING` packets."""
WARM_UP_PACKETS = 8
_UDP_IPV4_BYTES = 28
_KEEP_ADDRESSES = ("net/ipv4/neigh/default/base_reachable_time_ms", "1000000000")
_LEAST_GAP_NS = 20_000


@dataclass(frozen=True)
class SettingProbe:
    """The measurement of one setting: the indices of its flows in the plan."""

    setting: Setting
    probe: int
    saturate: int | None
    """None: the setting has no rate, or is not steady."""


def measurement_plan(settings: Sequence[Setting]) -> tuple[Plan, list[SettingProbe]]:
    """Return a plan that measures at most `SETTINGS_IN_PLAN` settings in one guest, and the probe of each."""
    flows: list[_Packets] = []
    probes = [_add_probe(flows, i, setting) for i, setting in enumerate(settings)]
    chains = [chain for setting in settings for chain in (setting, setting.without_randomness())]
    links = {f"a{i}-b{i}": {"mtu": chain.mtu} for i, chain in enumerate(chains)}
    paced = {"packet": "8B", "every": "1ms", "duration": "1s", "start_jitter": "0s"}
    scenario = Scenario.model_validate(
        {
            "title": "Calibration",
            "network": {"hosts": [host for link in links for host in link.split("-")], "links": links},
            "traffic": [
                {"udp": {"from": f"a{packets.pair}", "to": f"b{packets.pair}", **paced}} for packets in flows
            ],
            "sample": "60s",
        }
    )
    plan = resolve(scenario, int(settings[0].identity[:12], 16))
    exact = tuple(
        flow.model_copy(update={"start_us": packets.start_us, "application": packets.application})
        for flow, packets in zip(plan.flows, flows, strict=True)
    )
    ends = max(packets.end_us for packets in flows)
    sysctls = (*plan.machine.sysctls, _KEEP_ADDRESSES)
    machine = plan.machine.model_copy(update={"sysctls": sysctls})
    exact_plan = plan.model_copy(update={"machine": machine, "flows": exact, "end_us": ends + 1_000_000})
    return _shaped(exact_plan, chains), probes


@dataclass(frozen=True)
class _Packets:
    """Full-size packets from one host of a pair to the other."""

    pair: int
    start_us: int
    application: Udp

    @property
    def end_us(self) -> int:
        """The time by which the last packet has arrived."""
        udp = self.application
        return self.start_us + ceil(udp.interval_ns * udp.count / 1000) + udp.drain_us


def _add_probe(flows: list[_Packets], i: int, setting: Setting) -> SettingProbe:
    """Add the flows for setting `i`, over the pairs of hosts 2i and 2i + 1."""
    netem, tbf = setting.netem, setting.tbf
    delay_ns, spread_ns = (netem.delay_ns, _spread_ns(netem)) if netem is not None else (0, 0)
    count = LOSSY_PACKETS if loss_ratio(setting) else JITTERED_PACKETS if spread_ns else PACKETS
    frame_ns = ceil(setting.frame_bytes * 8 * 10**9 / tbf.rate_bps) if tbf is not None else 0
    drain_us = 1_000_000 + (2 * delay_ns + 4 * spread_ns + 4 * frame_ns) // 1000

    def add_flow(pair: int, interval_ns: int, packets: int) -> int:
        size = setting.mtu - _UDP_IPV4_BYTES
        warm_up = Udp(
            packet_bytes=size,
            interval_ns=max(10**9, 4 * frame_ns),
            count=WARM_UP_PACKETS,
            drain_us=drain_us,
        )
        warm_up_packets = _Packets(pair, 0, warm_up)
        udp = Udp(packet_bytes=size, interval_ns=interval_ns, count=packets, drain_us=drain_us)
        flows.extend((warm_up_packets, _Packets(pair, warm_up_packets.end_us + drain_us, udp)))
        return len(flows) - 1

    probe = add_flow(2 * i, max(2 * frame_ns, spread_ns, _LEAST_GAP_NS), count)
    if not frame_ns or not setting.steady:
        return SettingProbe(setting, probe, None)
    pace_ns = max(1, int(frame_ns * 0.8))
    lasting = min(MOST_SATURATING, ceil(LONG_ENOUGH_NS / pace_ns))
    return SettingProbe(
        setting,
        probe,
        add_flow(2 * i + 1, pace_ns, max(SATURATING_PACKETS, lasting) + setting.settling_frames),
    )


def _spread_ns(netem: Netem) -> int:
    """Return the gap at which packets neither overtake each other nor wait for each other."""
    return netem.jitter_ns * (2 if netem.distribution is None else 8)


def loss_ratio(setting: Setting) -> float:
    """Return the configured share of lost packets."""
    netem = setting.netem
    if netem is None:
        return 0.0
    model = netem.gemodel
    if model is None:
        drawn = netem.loss_ratio
    else:
        bad = model.p / (model.p + model.r) if model.p + model.r else 0.0
        drawn = bad * model.loss_bad + (1 - bad) * model.loss_good
    return float(drawn * lost_share(setting))


def lost_share(setting: Setting) -> float:
    """Return the share of losses after which no copy arrives: a loss takes one of two copies of a duplicated packet."""
    netem = setting.netem
    return 1.0 if netem is None else 1 - netem.duplicate_ratio


def _shaped(plan: Plan, chains: Sequence[Setting]) -> Plan:
    """Return the plan with these settings on the forward directions of its links."""
    links = []
    for link, setting in zip(plan.links, chains, strict=True):
        forward, backward = link.directions
        location = {name: getattr(forward, name) for name in (*LOCATION, "seed")}
        manager = setting.conditions.manager
        if manager is not None and hasattr(manager, "seed"):
            manager = manager.model_copy(update={"seed": forward.seed})
        forward = setting.conditions.model_copy(update={**location, "manager": manager})
        links.append(link.model_copy(update={"directions": (forward, backward)}))
    network = plan.network.model_copy(update={"distributions": distributions(links, ())})
    return plan.model_copy(update={"links": tuple(links), "network": network})
