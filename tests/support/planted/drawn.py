"""Planted causes that a person drew who had not read `plait.explain`: a part of thirty, in the form of the set.

docs/reference/explain.md has the result of the first run of all thirty, and of ten controls.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from planted.field import one_path, tcp_scenario, two_paths
from planted.site import LASTS_S, Planted, Site, scenario_of, transfer

if TYPE_CHECKING:
    from collections.abc import Callable

    Make = Callable[[Site], dict[str, Any]]


def _aggregate(site: Site) -> dict[str, Any]:
    """Return a path on which packets overtake others by up to its whole delay."""
    jitter = {"within": f"{3 * site.delay - 2}ms", "reorder": True}
    return tcp_scenario(one_path(site, slower=3, jitter=jitter))


def _comes_up_later(site: Site) -> dict[str, Any]:
    """Return a second link that is down as the connection begins, and comes up two seconds later."""
    link = site.first_link(1)
    return scenario_of(two_paths(site), events=[{"at": "0s", "down": link}, {"at": "2s", "up": link}])


def _unscaled_sender(site: Site) -> dict[str, Any]:
    network = one_path(site, slower=12)
    network["hosts"]["a"] = {"sysctls": {"net.ipv4.tcp_window_scaling": 0}}
    return tcp_scenario(network)


def _small_writes(site: Site) -> dict[str, Any]:
    """Return a stream of messages far below a segment, more of them than round trips."""
    flow = {"from": "a", "to": "b", "message": "80B", "every": "12ms", "duration": f"{LASTS_S}s"}
    return tcp_scenario(site.network({"rate": "10mbit", "delay": "40ms"}), [{"stream": flow}])


def _tail(site: Site) -> dict[str, Any]:
    """Return a file whose last bytes are in flight on a path with a far lower rate."""
    network = site.network(site.path(), site.path(share=0.02, slower=8))
    return scenario_of(network, [transfer(site.rate * 120_000)])


def _static_route(site: Site) -> dict[str, Any]:
    """Return two lines of which one provider hands everything to the other."""
    narrow = {"rate": f"{site.rate}mbit"}
    links = {
        "a-p": {"rate": "200mbit", "delay": "2ms"},
        "a-q": {"rate": "200mbit", "delay": "3ms"},
        "p-q": {"rate": "200mbit", "delay": "1ms"},
        "p-x": {**narrow, "delay": f"{site.delay}ms"},
        "q-x": {**narrow, "delay": f"{site.delay}ms"},
        "x-b": {"rate": "1gbit"},
    }
    routers = {"p": {}, "q": {"routes": [{"to": "b", "via": "p"}]}, "x": {}}
    return scenario_of({"hosts": ["a", "b"], "routers": routers, "links": links})


def _neighbours(site: Site, entry: dict[str, Any]) -> dict[str, Any]:
    """Return a download beside other traffic of a neighbour on the same line."""
    links = {
        "a-r": {"rate": "1gbit"},
        "n-r": {"rate": "1gbit"},
        "r-b": site.path(slower=2, forward={"rate": f"{max(site.rate // 10, 1)}mbit", "queue": "200pkt"}),
    }
    network = {"hosts": ["a", "b", "n"], "routers": ["r"], "links": links}
    download = {"bulk": {"from": "b", "to": "a", "reverse": True, "start": "1s", "duration": f"{LASTS_S}s"}}
    return tcp_scenario(network, [download, entry])


def _uploads(site: Site) -> dict[str, Any]:
    flow = {"from": "n", "to": "b", "duration": f"{LASTS_S + 2}s", "background": True}
    return _neighbours(site, {"bulk": flow})


def _downloads(site: Site) -> dict[str, Any]:
    flow = {"from": "b", "to": "n", "reverse": True, "duration": f"{LASTS_S + 2}s", "count": 5}
    return _neighbours(site, {"bulk": {**flow, "background": True}})


def _plugged_in(site: Site) -> dict[str, Any]:
    """Return a second line whose endpoint a person adds during the flow."""
    links = {"a-m": site.path(), "a-n": site.path(slower=2), "m-c": {}, "n-c": {}, "c-b": {}}
    network = {"hosts": ["a", "b"], "routers": ["m", "n", "c"], "links": links}
    add = {"add": {"link": "a-n", "flags": ["subflow"]}}
    return scenario_of(
        network, mptcp={"endpoints": {"a": []}}, events=[{"at": "3s", "endpoints": {"a": add}}]
    )


def _requests(site: Site) -> dict[str, Any]:
    """Return a client that asks for one small row after the other."""
    flow = {"from": "a", "to": "b", "request": "200B", "response": "4KB", "duration": f"{LASTS_S}s"}
    return tcp_scenario(one_path(site, slower=2), [{"request": flow}])


def _router_chain(site: Site) -> dict[str, Any]:
    names = ["a", *(f"r{k}" for k in range(1, 6)), "b"]
    links = {
        f"{left}-{right}": {"rate": f"{site.rate * factor}mbit", "delay": "2ms"}
        for left, right, factor in zip(names, names[1:], (9, 7, 1, 5, 8, 4), strict=False)
    }
    network = {"hosts": ["a", "b"], "routers": names[1:-1], "links": links}
    return tcp_scenario(network, tcp={"congestion_control": "reno"})


DRAWN: tuple[tuple[str, str | None, str, Make], ...] = (
    ("reordering", None, "a link aggregate", _aggregate),
    (
        "reordering",
        None,
        "some packets skip the delay",
        lambda site: tcp_scenario(one_path(site, 3, reorder="20%")),
    ),
    ("subflow-never", "link-down-at-start", "a modem that dials", _comes_up_later),
    ("receive-window", "window-scaling", "off at the sender", _unscaled_sender),
    ("nagle", None, "small writes", _small_writes),
    ("last-bytes", None, "a tail on the slow path", _tail),
    ("shared-bottleneck", None, "a static route", _static_route),
    ("ack-path", None, "an upload of a neighbour", _uploads),
    ("competing-traffic", None, "five neighbours", _downloads),
    ("subflow-late", "setting-changed", "plugged in", _plugged_in),
)
"""Cause, reason, what is planted, and the function that makes the scenario."""
CONTROLS: tuple[tuple[str, Make], ...] = (
    ("one request after the other", _requests),
    ("six links in a row", _router_chain),
)


def drawn_kinds(first: int) -> tuple[Planted, ...]:
    """Return the scenarios and their controls, numbered from `first`."""
    rows = [*DRAWN, *((None, None, words, make) for words, make in CONTROLS)]
    scenarios = []
    for number, (cause, reason, words, make) in enumerate(rows, start=first):
        site = Site(number)
        scenario = make(site) | {"title": f"{cause or 'Nothing planted'}, {words}, {site.rate} Mbit/s"}
        scenarios.append(Planted(number, cause or "control", cause, reason, scenario, held_out=False))
    return tuple(scenarios)
