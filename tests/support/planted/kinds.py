"""Ten planted causes: behind address translation, in UDP, in streams, in requests and in tunnels; and their controls.

A seed chose the five that are held out, before any of them was run.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

from planted.site import LASTS_S, Planted, Site, bulk, scenario_of

if TYPE_CHECKING:
    from collections.abc import Callable

    Make = Callable[[Site], dict[str, Any]]

DRAW = "which five of ten are held out"
LOSS = "3%"
TUNNEL = (
    "ip link add tun type gre local {here} remote {there} && ip address add {own}/24 dev tun && ip link set tun up && "
    "exec iperf3 {options} -J"
)


def _translated(site: Site, events: list[dict[str, Any]] | None = None, **second: Any) -> dict[str, Any]:
    """Return a download over two paths, each behind a router that translates addresses."""
    network = {
        "hosts": ["a", "b"],
        "routers": {"n1": {"nat": ["n1-a"]}, "n2": {"nat": ["n2-a"]}},
        "links": {
            "b-n1": site.path(),
            "n1-a": {"delay": "1ms"},
            "b-n2": site.path(**second),
            "n2-a": {"delay": "1ms"},
        },
    }
    return scenario_of(network, [bulk(reverse=True)], events=events or [])


def translated_cut(site: Site) -> dict[str, Any]:
    """The second path is cut for some seconds, between the client and its router."""
    return _translated(site, [{"at": "2s", "cut": "b-n2"}, {"at": "5s", "up": "b-n2"}])


def translated_loss(site: Site) -> dict[str, Any]:
    """The second path loses packets at random, between the client and its router."""
    return _translated(site, slower=2, loss="2%")


def _udp(site: Site, percent: int, **conditions: Any) -> dict[str, Any]:
    """Return UDP packets at `percent` of the rate of one path."""
    flow = {"from": "a", "to": "b", "packet": "1200B", "duration": f"{LASTS_S}s"}
    return scenario_of(
        site.network(site.path(**conditions)), [{"udp": {**flow, "rate": f"{site.rate * 10 * percent}kbit"}}]
    )


def udp_jitter(site: Site) -> dict[str, Any]:
    """The jitter of the path is three quarters of its delay."""
    return _udp(site, 40, slower=4, jitter=f"{site.delay * 3}ms")


def udp_too_fast(site: Site) -> dict[str, Any]:
    """The packets exceed the rate of the path."""
    return _udp(site, 125)


def _stream(
    site: Site, *paths: dict[str, Any], percent: int = 40, more: list[Any], **rest: Any
) -> dict[str, Any]:
    """Return messages at `percent` of the rate of one path, with other traffic."""
    flow: dict[str, Any] = {"from": "a", "to": "b", "message": "4KB", "duration": f"{LASTS_S}s"}
    flow |= {"rate": f"{site.rate * 10 * percent}kbit", "nodelay": True}
    return scenario_of(site.network(*paths), [{"stream": flow}, *more], **rest)


def stream_beside_others(site: Site) -> dict[str, Any]:
    """Other connections fill the queue of the only path."""
    others = bulk(count=2, background=True)
    return _stream(site, site.path(), percent=10, more=[others], transport="tcp")


def stream_cut(site: Site) -> dict[str, Any]:
    """The first path is cut for some seconds."""
    events = [{"at": "2s", "cut": site.link(0)}, {"at": "5s", "up": site.link(0)}]
    return _stream(site, site.path(), site.path(), more=[], events=events)


def _requests(site: Site, more: list[Any], **conditions: Any) -> dict[str, Any]:
    """Return requests for responses of 10 kB, one after the other."""
    flow = {"from": "a", "to": "b", "response": "10KB", "gap": "20ms", "duration": f"{LASTS_S}s"}
    return scenario_of(site.network(site.path(**conditions)), [{"request": flow}, *more], transport="tcp")


def requests_loss(site: Site) -> dict[str, Any]:
    """The path loses packets at random."""
    return _requests(site, [], loss=LOSS)


def requests_beside_others(site: Site) -> dict[str, Any]:
    """Other connections fill the queue of the responses."""
    return _requests(site, [{"bulk": {**bulk(count=2, background=True)["bulk"], "from": "b", "to": "a"}}])


def _tunnel(site: Site, options: str, **conditions: Any) -> dict[str, Any]:
    """Return iperf3 in a GRE tunnel over one link."""
    ends = {"here": "10.0.0.2", "there": "10.0.0.1", "own": "10.9.0.2", "options": "-s -1"}
    far = TUNNEL.format(**ends)
    ends = {"here": "10.0.0.1", "there": "10.0.0.2", "own": "10.9.0.1"}
    near = TUNNEL.format(**ends, options=f"-c 10.9.0.2 -t 4 {options}")
    programs = [
        {"name": "server", "node": "b", "run": far, "ready": {"tcp": 5201}},
        {"name": "client", "node": "a", "run": near, "after": "server", "wait": True, "result": "iperf3"},
    ]
    network = {"hosts": ["a", "b"], "links": {"a-b": site.path(**conditions)}}
    scenario = scenario_of(network, transport="tcp", programs=programs)
    return {name: value for name, value in scenario.items() if name != "traffic"}


def tunnel_loss(site: Site) -> dict[str, Any]:
    """The link below the tunnel loses packets at random; TCP runs inside."""
    return _tunnel(site, "", slower=2, loss=LOSS)


def tunnel_too_fast(site: Site) -> dict[str, Any]:
    """UDP inside the tunnel exceeds the rate of the link below."""
    return _tunnel(site, f"-u -b {site.rate * 1250}K")


KINDS: tuple[tuple[str, str, Make], ...] = (
    ("path-down", "behind NAT", translated_cut),
    ("loss-recovery", "behind NAT", translated_loss),
    ("jitter", "UDP", udp_jitter),
    ("rate-too-high", "UDP", udp_too_fast),
    ("competing-traffic", "a stream", stream_beside_others),
    ("path-down", "a stream", stream_cut),
    ("loss-recovery", "requests", requests_loss),
    ("competing-traffic", "requests", requests_beside_others),
    ("loss-recovery", "in a tunnel", tunnel_loss),
    ("rate-too-high", "UDP in a tunnel", tunnel_too_fast),
)
"""The cause, where it is planted, and the function that makes the scenario."""
HELD_OUT = frozenset(random.Random(DRAW).sample(range(len(KINDS)), 5))
CONTROLS: tuple[tuple[str, Make], ...] = (
    ("behind NAT", _translated),
    ("UDP", lambda site: _udp(site, 40)),
    ("a stream", lambda site: _stream(site, site.path(), site.path(), more=[])),
    ("requests", lambda site: _requests(site, [])),
    ("in a tunnel", lambda site: _tunnel(site, "")),
)


def further_kinds(first: int) -> tuple[Planted, ...]:
    """Return the ten scenarios and their controls, numbered from `first`."""
    scenarios = []
    for place, (cause, where, make) in enumerate(KINDS):
        site = Site(first + place)
        scenario = make(site) | {"title": f"{cause}, {where}, {site.rate} Mbit/s"}
        scenarios.append(Planted(site.number, cause, cause, None, scenario, place in HELD_OUT))
    for place, (where, make) in enumerate(CONTROLS, start=len(KINDS)):
        site = Site(first + place)
        scenario = make(site) | {"title": f"Nothing planted, {where}, {site.rate} Mbit/s"}
        scenarios.append(Planted(site.number, "control", None, None, scenario, held_out=False))
    return tuple(scenarios)
