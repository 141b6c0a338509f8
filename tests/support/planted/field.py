"""Planted causes from the field: mechanisms that issue trackers and papers report, each planted once.

Those of KNOWN were once named wrongly. Those of FRESH (`held_out`) were written down before any of them was run, when
the rules for KNOWN were finished; docs/reference/explain.md has the result of their first run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from planted.site import LASTS_S, Planted, Site, bulk, scenario_of, transfer

if TYPE_CHECKING:
    from collections.abc import Callable

    Make = Callable[[Site], dict[str, Any]]


def two_paths(
    site: Site, first: dict[str, Any] | None = None, second: dict[str, Any] | None = None
) -> dict[str, Any]:
    """Return a network of two equal paths, with further conditions for each."""
    return site.network(site.path(**(first or {})), site.path(**(second or {})))


def one_path(site: Site, slower: float = 1, **more: Any) -> dict[str, Any]:
    """Return a network of one path."""
    return site.network(site.path(slower=slower, **more))


def tcp_scenario(
    network: dict[str, Any], traffic: list[dict[str, Any]] | None = None, **more: Any
) -> dict[str, Any]:
    """Return a scenario over TCP."""
    return scenario_of(network, traffic, transport="tcp", **more)


def _backup(site: Site, host: str, flag: str) -> dict[str, Any]:
    """Return two paths, the second of which one host declares a backup."""
    endpoint = {"link": site.link(1) if host == "b" else site.first_link(1), "flags": [flag, "backup"]}
    return scenario_of(two_paths(site), mptcp={"endpoints": {host: [endpoint]}})


def _becomes_backup(site: Site) -> dict[str, Any]:
    change = {"change": {"link": site.first_link(1), "backup": True}}
    return scenario_of(two_paths(site), events=[{"at": "1s", "endpoints": {"a": change}}])


def _back(name: str, conditions: dict[str, Any]) -> dict[str, Any]:
    """Return conditions of the direction from b of a link."""
    return {"backward" if name.split("-")[1].startswith("b") else "forward": conditions}


def _slow_return(site: Site, rate: str) -> dict[str, Any]:
    return scenario_of(two_paths(site, second=_back(site.link(1), {"rate": rate})))


def _upload_beside(site: Site) -> dict[str, Any]:
    """Return a download beside an upload that fills the narrow way back."""
    upload = {"bulk": {"from": "b", "to": "a", "duration": f"{LASTS_S + 1}s", "background": True}}
    network = one_path(site, **_back(site.link(0), {"rate": f"{site.rate * 15}kbit", "queue": "100pkt"}))
    return tcp_scenario(network, [bulk(start="500ms"), upload])


def _shared(site: Site, access: str) -> dict[str, Any]:
    """Return two paths that share a link behind access links of this rate."""
    links = {
        "a-r1": {"rate": access, "delay": "1ms"},
        "a-r2": {"rate": access, "delay": "4ms"},
        "r1-r3": {"delay": "1ms"},
        "r2-r3": {"delay": "1ms"},
        "r3-b": site.path(slower=3),
    }
    return scenario_of({"hosts": ["a", "b"], "routers": ["r1", "r2", "r3"], "links": links})


def _one_access(site: Site) -> dict[str, Any]:
    """Return two fast paths behind one access link."""
    links = {"a-r1": site.path(), "r1-b": site.path(share=2), "r1-b#2": site.path(share=2)}
    return scenario_of({"hosts": ["a", "b"], "routers": ["r1"], "links": links})


def _cut(
    site: Site, begin: str, end: str | None, link: str, kind: str = "cut", **more: Any
) -> dict[str, Any]:
    events = [{"at": begin, kind: link}, *([{"at": end, "up": link}] if end else [])]
    return scenario_of(two_paths(site), events=events, **more)


def _lost_announcement(site: Site, seconds: int) -> dict[str, Any]:
    """Return a flow whose initial path loses what the server sends just after the handshake."""
    network = site.network({"delay": "20ms", "rate": "4mbit"}, {"delay": "20ms", "rate": "4mbit"})
    link = site.link(0)
    back = f"b->{link.split('-')[0]}"
    shift = {"parallel": 100, "switches": 100, "routers": 100}[site.topology]
    events = [{"at": f"{shift - 20}ms", "cut": back}, {"at": f"{shift + 60}ms", "up": back}]
    flow = bulk(duration=f"{seconds}s", start="0s", start_jitter="0ms")
    return scenario_of(network, [flow], events=events, sample="250ms")


def _flaps(site: Site) -> dict[str, Any]:
    link = site.link(1)
    events = [
        {"at": f"{at}ms", "down" if k % 2 == 0 else "up": link} for k, at in enumerate(range(1000, 5500, 750))
    ]
    return scenario_of(two_paths(site), events=events)


def _third_path(site: Site) -> dict[str, Any]:
    """Return three paths and a limit that allows two of them."""
    network = site.network(site.path(), site.path(), site.path())
    return scenario_of(network, mptcp={"limits": {"a": {"subflows": 1}}})


def _late_signal(site: Site) -> dict[str, Any]:
    """Return a server that announces its second address only at 2.5 s."""
    add = {"add": {"link": site.link(1), "flags": ["signal"]}}
    endpoints: dict[str, Any] = {"b": []}
    return scenario_of(
        two_paths(site), mptcp={"endpoints": endpoints}, events=[{"at": "2500ms", "endpoints": {"b": add}}]
    )


def _removed(site: Site) -> dict[str, Any]:
    """Return a server that withdraws its second address at 1.5 s."""
    return scenario_of(
        two_paths(site), events=[{"at": "1500ms", "endpoints": {"b": {"remove": site.link(1)}}}]
    )


def _box(site: Site, path: int, box: dict[str, Any], **more: Any) -> dict[str, Any]:
    conditions: list[dict[str, Any]] = [{}, {}]
    conditions[path] = {"middlebox": box}
    return scenario_of(two_paths(site, *conditions), **more)


def _cross_traffic(site: Site) -> dict[str, Any]:
    """Return TCP over a link that two connections of other hosts cross as well."""
    links = {"a-r1": {"delay": "1ms"}, "c-r1": {"delay": "1ms"}, "r1-r2": site.path(), "r2-b": {}, "r2-d": {}}
    network = {"hosts": ["a", "b", "c", "d"], "routers": ["r1", "r2"], "links": links}
    others = {"bulk": {"from": "c", "to": "d", "duration": f"{LASTS_S}s", "count": 2, "background": True}}
    return tcp_scenario(network, [bulk(), others])


def _udp(
    site: Site, network: dict[str, Any], percent: int, *more: dict[str, Any], **rest: Any
) -> dict[str, Any]:
    rate = f"{site.rate * 10 * percent}kbit"
    flow = {"from": "a", "to": "b", "packet": "1200B", "duration": f"{LASTS_S}s", "rate": rate}
    return scenario_of(network, [{"udp": flow}, *more], **rest)


def _messages(kind: str, network: dict[str, Any], **flow: Any) -> dict[str, Any]:
    return scenario_of(network, [{kind: {"from": "a", "to": "b", **flow}}])


def _paced_program(site: Site) -> dict[str, Any]:
    """Return iperf3 at a third of the rate of its path."""
    programs = [
        {"name": "server", "node": "b", "run": "iperf3 -s -1", "ready": {"tcp": 5201}},
        {
            "name": "client",
            "node": "a",
            "run": f"iperf3 -c b -t 4 -b {site.rate * 333}K",
            "after": "server",
            "wait": True,
        },
    ]
    scenario = tcp_scenario(one_path(site), programs=programs)
    return {name: value for name, value in scenario.items() if name != "traffic"}


def _small_frames(network: dict[str, Any]) -> dict[str, Any]:
    links = {name: {**conditions, "mtu": 1300} for name, conditions in network["links"].items()}
    return {**network, "links": links}


def _step(site: Site, conditions: dict[str, Any], link: int = 1, at: str = "1500ms") -> list[dict[str, Any]]:
    return [{"at": at, "set": {site.link(link): conditions}}]


KNOWN: tuple[tuple[str, str | None, str, Make], ...] = (
    ("backup", None, "flag at the client", lambda site: _backup(site, "a", "subflow")),
    ("ack-path", None, "100 kbit/s back on the second path", lambda site: _slow_return(site, "100kbit")),
    (
        "shared-bottleneck",
        None,
        "behind access links as fast",
        lambda site: _shared(site, f"{site.rate}mbit"),
    ),
    ("subflow-never", "no-answer", "second path cut", lambda site: _cut(site, "0s", None, site.link(1))),
    (
        "subflow-never",
        "no-answer",
        "all lost",
        lambda site: scenario_of(two_paths(site, second={"loss": "100%"})),
    ),
    ("subflow-late", "add-addr-lost", "at the handshake", lambda site: _lost_announcement(site, 150)),
    ("queue-full", None, "TCP, three packets", lambda site: tcp_scenario(one_path(site, 4, queue="3pkt"))),
    ("subflow-never", "join-refused", "all options stripped", lambda site: _box(site, 1, {"strip": "all"})),
)
"""Cause, reason, where, and the function that makes the scenario."""
FRESH: tuple[tuple[str, str | None, str, Make], ...] = (
    (
        "receive-window",
        None,
        "no window scaling",
        lambda site: tcp_scenario(one_path(site, 8), sysctls={"net.ipv4.tcp_window_scaling": 0}),
    ),
    (
        "receive-window",
        None,
        "no autotuning",
        lambda site: tcp_scenario(one_path(site, 10), sysctls={"net.ipv4.tcp_moderate_rcvbuf": 0}),
    ),
    (
        "send-buffer",
        None,
        "of a download",
        lambda site: tcp_scenario(
            one_path(site, 6), [bulk(reverse=True, send_buffer=f"{site.bdp_bytes(1, 6) // 4}B")]
        ),
    ),
    (
        "loss-recovery",
        None,
        "Gilbert-Elliott",
        lambda site: tcp_scenario(one_path(site, 2, loss={"gemodel": {"p": "0.5%", "r": "25%"}})),
    ),
    ("loss-recovery", None, "flipped bits", lambda site: tcp_scenario(one_path(site, 2, corrupt="2%"))),
    (
        "loss-recovery",
        None,
        "from an event on",
        lambda site: scenario_of(two_paths(site), events=_step(site, {"loss": "4%"}, at="1s")),
    ),
    (
        "loss-recovery",
        None,
        "without SACK",
        lambda site: tcp_scenario(one_path(site, 2, loss="1%"), sysctls={"net.ipv4.tcp_sack": 0}),
    ),
    (
        "head-of-line",
        None,
        "a bloated cellular queue",
        lambda site: scenario_of(
            site.network(site.path(), site.path(share=0.2, slower=3, queue="1000pkt")),
            tcp={"receive_buffer_max": "512KiB"},
        ),
    ),
    (
        "head-of-line",
        None,
        "a delay that jumps",
        lambda site: scenario_of(
            two_paths(site),
            tcp={"receive_buffer_max": f"{site.bdp_bytes(2, 8)}B"},
            events=_step(site, {"delay": "300ms"}),
        ),
    ),
    (
        "queue-full",
        None,
        "in bytes, on both paths",
        lambda site: scenario_of(site.network(*[site.path(slower=4, queue="6000B")] * 2)),
    ),
    ("competing-traffic", None, "two alike", lambda site: scenario_of(two_paths(site), [bulk(count=2)])),
    ("competing-traffic", None, "of other hosts", _cross_traffic),
    ("subflow-closed", None, "stripped from data", lambda site: _box(site, 1, {"strip": "data"})),
    ("subflow-closed", None, "an address is withdrawn", _removed),
    (
        "subflow-closed",
        None,
        "changed payload",
        lambda site: _box(site, 1, {"rewrite": True}, sysctls={"net.mptcp.checksum_enabled": 1}),
    ),
    ("subflow-never", "fallback", "stripped from SYN/ACKs", lambda site: _box(site, 0, {"strip": "synack"})),
    (
        "subflow-never",
        "limit",
        "of the server",
        lambda site: scenario_of(two_paths(site), mptcp={"limits": {"b": {"subflows": 0}}}),
    ),
    (
        "subflow-never",
        "limit",
        "of accepted addresses",
        lambda site: scenario_of(
            two_paths(site), mptcp={"limits": {"a": {"add_addr_accepted": 0}}, "endpoints": {"a": []}}
        ),
    ),
    ("subflow-never", "limit", "two of three paths", _third_path),
    ("subflow-never", "no-add-addr", "ADD_ADDR lost, short flow", lambda site: _lost_announcement(site, 20)),
    ("subflow-late", "link-down", "cut at the start", lambda site: _cut(site, "0s", "1700ms", site.link(1))),
    ("subflow-late", "setting-changed", "announced by an event", _late_signal),
    ("backup", None, "flag at the server", lambda site: _backup(site, "b", "signal")),
    ("backup", None, "from an event on", _becomes_backup),
    (
        "ack-path",
        None,
        "64 kbit/s back, TCP",
        lambda site: tcp_scenario(one_path(site, **_back(site.link(0), {"rate": "64kbit"}))),
    ),
    ("ack-path", None, "an upload fills it", _upload_beside),
    (
        "duplicates",
        None,
        "three paths",
        lambda site: scenario_of(site.network(*[site.path()] * 3), mptcp={"scheduler": "redundant"}),
    ),
    ("shared-bottleneck", None, "one access link", _one_access),
    (
        "bucket-empty",
        None,
        "on the initial path",
        lambda site: scenario_of(
            two_paths(
                site, {"bucket": {"baseline": f"{site.rate * 200}kbit", "burst": f"{site.rate * 150}KB"}}
            )
        ),
    ),
    ("too-short", None, "a small file", lambda site: tcp_scenario(one_path(site, 10), [transfer(60_000)])),
    ("path-down", None, "it flaps", _flaps),
    (
        "path-down",
        None,
        "the initial one, for a while",
        lambda site: _cut(site, "1s", "4s", site.link(0), "down"),
    ),
    (
        "rate-changed",
        None,
        "TCP",
        lambda site: tcp_scenario(one_path(site), events=_step(site, {"rate": f"{site.rate * 300}kbit"}, 0)),
    ),
    (
        "rate-changed",
        None,
        "UDP",
        lambda site: _udp(
            site, one_path(site), 70, events=_step(site, {"rate": f"{site.rate * 400}kbit"}, 0)
        ),
    ),
    (
        "loss-recovery",
        None,
        "responses over MPTCP",
        lambda site: _messages(
            "request",
            two_paths(site, {"loss": "2%"}, {"loss": "2%"}),
            response="20KB",
            gap="30ms",
            duration="6s",
        ),
    ),
    (
        "loss-recovery",
        None,
        "a page",
        lambda site: _messages("page", one_path(site, 2, loss="3%"), objects=["40KB", "30x 20KB"]),
    ),
    (
        "competing-traffic",
        None,
        "UDP beside bulk",
        lambda site: _udp(site, one_path(site), 30, bulk(background=True, transport="tcp")),
    ),
    ("sender-idle", None, "a paced program", _paced_program),
)
"""As KNOWN."""
CONTROLS: tuple[tuple[str, Make], ...] = (
    ("fq_codel", lambda site: scenario_of(site.network(*[site.path(aqm="fq_codel")] * 2))),
    (
        "three unequal paths",
        lambda site: scenario_of(site.network(site.path(), site.path(share=0.5), site.path(share=0.25))),
    ),
    ("IPv6", lambda site: scenario_of({**two_paths(site), "addresses": "ipv6"})),
    ("small frames", lambda site: scenario_of(_small_frames(two_paths(site)))),
    ("BBR", lambda site: scenario_of(two_paths(site), [bulk(congestion_control="bbr")])),
    ("a page", lambda site: _messages("page", two_paths(site), objects=["40KB", "10x 20KB"])),
    (
        "slow requests",
        lambda site: _messages("request", two_paths(site), response="20KB", gap="100ms", duration="6s"),
    ),
)


def field_kinds(first: int) -> tuple[Planted, ...]:
    """Return the scenarios and their controls, numbered from `first`."""
    rows = [
        *((cause, cause, reason, where, make, False) for cause, reason, where, make in KNOWN),
        *((cause, cause, reason, where, make, True) for cause, reason, where, make in FRESH),
        *(("control", None, None, where, make, True) for where, make in CONTROLS),
    ]
    scenarios = []
    for number, (kind, cause, reason, where, make, held_out) in enumerate(rows, start=first):
        site = Site(number)
        scenario = make(site) | {"title": f"{cause or 'Nothing planted'}, {where}, {site.rate} Mbit/s"}
        scenarios.append(Planted(number, kind, cause, reason, scenario, held_out))
    return tuple(scenarios)
