"""plait reports every mistake of a scenario at once, in any combination, and nothing else."""

from __future__ import annotations

import pytest

from plait.scenario.read.parse import valid_flow
from plait.traffic.kinds import KEYS, Traffic
from scenario_samples import mistakes, mistakes_as_text

RICH = """\
title: Everything that refers to something else
network:
  hosts:
    phone: {}
    server: {}
  routers: [ap, core]
  links:
    phone-ap: {rate: 10mbit, delay: 5ms}
    phone-core: {rate: 20mbit, delay: 15ms}
    ap-server: {rate: 10mbit}
    core-server: {rate: 10mbit}
mptcp: {endpoints: {phone: [{link: phone-core, flags: [subflow]}]}}
traffic:
  - stream: {from: phone, to: server, message: 1KB, rate: 1mbit, duration: 5s, name: first}
  - bulk: {from: phone, to: server, duration: 5s, scheduler: default, via: phone-core}
  - transfer: {from: phone, to: server, bytes: 1MB, after: first}
  - request: {from: server, to: phone, response: 1KB, requests: 10}
  - page: {from: phone, to: server, objects: [50KB, 2x 10KB]}
  - udp: {from: phone, to: server, packet: 200B, every: 20ms, duration: 5s}
  - on-off: {from: phone, to: server, on: 1s, off: 1s, duration: 5s}
events:
  - {at: 1s, down: phone-ap}
  - {at: 2s, up: phone-ap}
  - {at: 2s, set: {phone-core: {rate: 5mbit}}}
  - {at: 3s, sysctls: {phone: {net.ipv4.tcp_sack: 0}}}
monitors: {capture: {on: [phone]}}
vary:
  scheduler: [default, blest]
  network.links.phone-core.delay: [15ms, 25ms]
"""

PLANTED = [
    ("server: {}\n", "server: {sysctl: {}}\n", "network.hosts.server.sysctl"),
    ("ap-server: {rate: 10mbit}", "ap-server: {rate: 10}", "network.links.ap-server.rate"),
    ("ap-server: {rate: 10mbit}", "ap-server: 5", "network.links.ap-server"),
    ("[{link: phone-core", "[{link: phone-cor", "mptcp.endpoints.phone.0.link"),
    ("message: 1KB, ", "", "traffic.0.stream.message"),
    ("stream: {from: phone, to: server", "stream: {from: phone, to: phonee", "traffic.0.stream.to"),
    ("rate: 1mbit, duration: 5s, name", "duration: 5s, name", "traffic.0.stream"),
    ("scheduler: default, via", "sheduler: default, via", "traffic.1.bulk.sheduler"),
    ("via: phone-core", "via: phone-cor", "traffic.1.bulk.via"),
    ("bulk: {from: phone", "bulk: {from: fone", "traffic.1.bulk.from"),
    ("bytes: 1MB, ", "", "traffic.2.transfer"),
    ("request: {from: server", "request: {from: ap", "traffic.3.request.from"),
    ("response: 1KB", "response: 1", "traffic.3.request.response"),
    ("objects: [50KB, 2x 10KB]", "objects: []", "traffic.4.page.objects"),
    ("udp: {from: phone, to: server", "udp: {from: phone, to: phone", "traffic.5.udp.to"),
    ("every: 20ms", "every: 20ms, rate: 1mbit", "traffic.5.udp"),
    ("on: 1s, off: 1s", "on: 1s", "traffic.6.on-off.off"),
    ("{at: 1s, down: phone-ap}", "{at: 1s, downn: phone-ap}", "events.0.downn"),
    ("{at: 1s, down: phone-ap}", "{at: 1s, down: phone-app}", "events.0.down"),
    ("set: {phone-core: {rate", "set: {phone-cor: {rate", "events.2.set.phone-cor"),
    ("sysctls: {phone:", "sysctls: {fone:", "events.3.sysctls.fone"),
    ("capture: {on: [phone]}", "capture: {on: [fone]}", "monitors.capture.on.0"),
    ("  scheduler: [default, blest]", "  sheduler: [default, blest]", "vary.sheduler.0"),
    ("phone-core.delay: [15ms, 25ms]", "phone-core.dealy: [15ms]", "vary.network.links.phone-core.dealy.0"),
]


def planted(*chosen: tuple[str, str, str]) -> str:
    text = RICH
    for old, new, _ in chosen:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text


def independent(first: tuple[str, str, str], second: tuple[str, str, str]) -> bool:
    """Return whether both can be planted at once, and neither hides whether the other is one."""
    a, b = first[2].split("."), second[2].split(".")
    shared = min(len(a), len(b))
    return (
        first[0] != second[0]
        and first[0] not in second[0]
        and second[0] not in first[0]
        and a[:shared] != b[:shared]
    )


@pytest.mark.parametrize("mistake", PLANTED, ids=lambda mistake: mistake[2])
def test_a_mistake_is_reported_beside_every_other_one_and_nothing_else_is(
    mistake: tuple[str, str, str],
) -> None:
    for other in PLANTED:
        if independent(mistake, other):
            paths = {reported.path for reported in mistakes(planted(mistake, other))}
            expected = {mistake[2], other[2]}
            assert {path.removesuffix(".1").removesuffix(".0") for path in paths} == {
                path.removesuffix(".0") for path in expected
            }, (mistake, other)


def test_a_whole_file_of_mistakes_is_reported_at_once() -> None:
    chosen: list[tuple[str, str, str]] = []
    for entry in PLANTED:
        if all(independent(entry, other) for other in chosen):
            chosen.append(entry)
    assert len(chosen) > 18
    paths = {reported.path for reported in mistakes(planted(*chosen))}
    assert {path for _, _, path in chosen} <= paths


def test_shorthands_are_considered_as_what_was_meant() -> None:
    assert "sheduler: there is no such field here; did you mean 'mptcp.scheduler'?" in mistakes_as_text(
        RICH + "sheduler: blest\n"
    )
    assert "scheduler: there is no such field here; did you mean 'mptcp.scheduler'?" in mistakes_as_text(
        RICH, "scheduler=blest"
    )
    assert (
        "congestion_contrl: there is no such field here; did you mean 'tcp.congestion_control'?"
        in mistakes_as_text(RICH + "congestion_contrl: lia\n")
    )
    assert (
        "vary.transprt.0: transprt: there is no such field here; did you mean 'transport'?"
        in mistakes_as_text(RICH + "  transprt: [tcp]\n")
    )


def test_the_mistakes_of_a_link_do_not_depend_on_a_readable_name() -> None:
    text = RICH.replace("phone-ap: {rate: 10mbit, delay: 5ms}", "wifi: {rate: 10mbit, delay: 5ms}")
    text = text.replace("down: phone-ap", "down: wifi").replace("up: phone-ap", "up: wifi")
    assert [reported.path for reported in mistakes(text)] == ["network.links.wifi"]


def test_no_message_ends_in_the_middle() -> None:
    links = ", ".join(f"phone-ap#{i}: {{}}" for i in range(2, 20))
    text = RICH.replace("    ap-server:", f"    {links.replace(', ', chr(10) + '    ')}\n    ap-server:")
    message = mistakes_as_text(text.replace("down: phone-ap", "down: zzz"))
    assert "there is no link 'zzz'" in message
    assert not message.endswith((";", "; "))


@pytest.mark.parametrize("kind", KEYS.values())
def test_what_stands_for_a_wrong_flow_is_right_itself(kind: str) -> None:
    entry = valid_flow({kind: {"from": "h1", "to": "h3", "name": "x", "via": "h1-s1"}}, (), ["h1", "h3"])
    flow = Traffic.model_validate(entry).flow
    assert (flow.from_, flow.to, flow.name, flow.via) == ("h1", "h3", "x", "h1-s1")
    alone = valid_flow({kind: {"from": "h9"}}, ("traffic", 0, kind, "from"), ["h1", "h3"])
    assert Traffic.model_validate(alone).flow.from_ != Traffic.model_validate(alone).flow.to
