"""Lint gives each legal but wrong scenario its caution and no other, and good scenarios none."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from plait.cautions import Code
from plait.plan.case_plan import resolve_case
from plait.plan.lint.lint import lint_cases
from plait.scenario import parse
from plait.scenario.vary.cases import expand
from scenario_samples import ISLANDS, TWO, TWO_ACCESS_LINES, direct

if TYPE_CHECKING:
    from plait.cautions import Caution

ROOT = Path(__file__).parents[4]
TRANSFER = TWO.replace("bulk: {from: h1, to: h2, duration: 10s}", "transfer: {from: h1, to: h2, bytes: 10KB}")
FUNNEL = """\
title: Two interfaces before one line
network:
  hosts: [h1, h2]
  switches: [s1]
  links:
    h1-s1: {%s}
    h1-s1#2: {%s}
    s1-h2: {rate: 5mbit, delay: 5ms}
traffic:
  - bulk: {from: h1, to: h2, duration: 10s}
"""
ACCESS = TWO_ACCESS_LINES % ("a fast core", "r-s: {rate: 20mbit, delay: 3ms}")
DEAD_END = TWO.replace("[s1, s2]", "[s1, s2, s3]").replace("traffic:", "    h1-s3: {}\ntraffic:")
UDP = direct("a-b: {rate: 20mbit, delay: 5ms}").replace(
    "bulk: {from: a, to: b", "udp: {from: a, to: b, packet: 1000B, rate: 1mbit"
)
TCP_TWO = FUNNEL % ("", "") + "transport: tcp\n"
ONE = direct("a-b: {rate: 20mbit, delay: 5ms}")


def cautions(text: str, *overrides: str) -> list[Caution]:
    scenario = parse(text, "t.yaml", overrides)
    return lint_cases([resolve_case(case) for case in expand(scenario)], scenario.seed)


WRONG = [
    # subflows that cannot come up
    ("no further subflow is allowed", TWO, ("mptcp.limits.h1={subflows: 0}",), Code.SUBFLOW_LIMIT),
    ("the server allows none", TWO, ("mptcp.limits.h2={subflows: 0}",), Code.SUBFLOW_LIMIT),
    ("three paths and one further subflow", ISLANDS, ("mptcp.limits.n1={subflows: 1}",), Code.SUBFLOW_LIMIT),
    ("no announcement is accepted", TWO, ("mptcp.limits.h1={add_addr_accepted: 0}",), Code.ADD_ADDR_LIMIT),
    ("one of two is accepted", ISLANDS, ("mptcp.limits.n1={add_addr_accepted: 1}",), Code.ADD_ADDR_LIMIT),
    ("nothing is announced", TWO, ("mptcp.endpoints.h2=[]",), Code.NO_SIGNAL),
    (
        "the server's endpoint is a subflow",
        TWO,
        ("mptcp.endpoints.h2=[{link: s2-h2, flags: [subflow]}]",),
        Code.WRONG_SIDE,
    ),
    (
        "the client announces and opens nothing",
        ACCESS,
        ("mptcp.endpoints.c=[{link: 'c-r#2', flags: [signal]}]",),
        Code.WRONG_SIDE,
    ),
    ("no endpoint", ACCESS, ("mptcp.endpoints.c=[]",), Code.NO_ENDPOINT),
    (
        "an endpoint from which nothing arrives",
        DEAD_END,
        ("mptcp.endpoints.h1=[{link: h1-s2, flags: [subflow]}, {link: h1-s3, flags: [subflow]}]",),
        Code.NO_ROUTE,
    ),
    (
        "MPTCP is switched off",
        TWO,
        ("network.hosts={h1: {sysctls: {net.mptcp.enabled: 0}}, h2: {}}",),
        Code.MPTCP_OFF,
    ),
    # paths that add nothing
    ("one link", ONE, (), Code.SINGLE_PATH),
    ("two interfaces before one line", FUNNEL % ("", ""), (), Code.SAME_PATH),
    ("a narrow line behind two", FUNNEL % ("rate: 4mbit", "rate: 3mbit"), (), Code.SHARED_BOTTLENECK),
    # buffers
    ("not every flow is sampled", TWO, ("sample={flows: 0}",), Code.UNSAMPLED),
    ("a small receive buffer for all", TWO, ("tcp.receive_buffer_max=32KB",), Code.RECEIVE_BUFFER),
    ("a small receive buffer of the flow", TWO, ("traffic.0.bulk.receive_buffer=8KiB",), Code.RECEIVE_BUFFER),
    ("a small send buffer for all", TWO, ("tcp.send_buffer_max=32KB",), Code.SEND_BUFFER),
    ("a small send buffer of the flow", TWO, ("traffic.0.bulk.send_buffer=8KiB",), Code.SEND_BUFFER),
    (
        "default buffers on long fat paths",
        TWO,
        (
            "network.links.*.rate=500mbit",
            "network.links.*.delay=100ms",
            "traffic.0.bulk.duration=60s",
            "tcp.send_buffer_max=256MiB",
        ),
        Code.RECEIVE_BUFFER,
    ),
    (
        "a receive buffer for one burst of the scheduler",
        TWO,
        ("tcp.receive_buffer_max=100KB",),
        Code.RECEIVE_BUFFER,
    ),
    # times
    ("over before it is steady", TWO, ("traffic.0.bulk.duration=100ms",), Code.DURATION),
    ("cut off by until", TWO, ("until=3s",), Code.UNTIL),
    ("a transfer that cannot be over", TRANSFER, ("traffic.0.transfer.bytes=10MB", "until=5s"), Code.UNTIL),
    ("measured hardly ever", TWO, ("sample=2s",), Code.SAMPLE),
    ("less than a window", TRANSFER, (), Code.SHORT_TRANSFER),
    (
        "a limit when nobody looks any more",
        TWO,
        ("events=[{at: 2s, limits: {h1: {subflows: 0}}}]",),
        Code.TOO_LATE,
    ),
    (
        "a scheduler when all connections have theirs",
        TWO,
        ("events=[{at: 2s, sysctls: {h1: {net.mptcp.scheduler: redundant}}}]",),
        Code.TOO_LATE,
    ),
    (
        "an endpoint that comes after what it would connect to was announced",
        TWO,
        (
            "mptcp.endpoints.h1=[]",
            "events=[{at: 2s, endpoints: {h1: {add: {link: h1-s2, flags: [subflow]}}}}]",
        ),
        Code.NO_ROUTE,
    ),
    # links
    ("a short queue", TWO, ("network.links.h1-s1.queue=3pkt",), Code.QUEUE),
    ("a short queue in bytes", TWO, ("network.links.h1-s2.queue=4KB",), Code.QUEUE),
    ("a person may change it", TWO, ("pause=before",), Code.PAUSE),
    (
        "jitter with a heavy tail that keeps order",
        TWO,
        ("network.links.h1-s1.forward={delay: 5ms, jitter: {deviation: 2ms, distribution: pareto}}",),
        Code.STALL,
    ),
    ("a link that loses everything", TWO, ("network.links.h1-s2.loss=100%",), Code.DEAD_LINK),
    (
        "a bucket that outlasts the flow",
        TWO,
        ("network.links.h1-s1.forward={rate: 5mbit, delay: 5ms, bucket: {baseline: 1mbit, burst: 1GB}}",),
        Code.BUCKET,
    ),
    (
        "ECN that no host negotiates",
        TWO,
        ("network.links.h1-s1.forward={rate: 5mbit, delay: 5ms, aqm: {codel: {ecn: true}}}",),
        Code.ECN,
    ),
    # settings without an effect
    ("an event after the end", TWO, ("events=[{at: 11s, cut: h1-s1}]",), Code.TOO_LATE),
    ("an event that sets what is set", TWO, ("events=[{at: 2s, set: {h1-s1: {rate: 5mbit}}}]",), Code.NO_CHANGE),
    ("limits of MPTCP for TCP", TCP_TWO, ("mptcp.limits.h1={subflows: 0}",), Code.UNREAD),
    ("a scheduler for TCP", TCP_TWO, ("mptcp.scheduler=redundant",), Code.UNREAD),
    ("a sysctl of MPTCP for TCP", TCP_TWO, ("sysctls={net.mptcp.checksum_enabled: 1}",), Code.UNREAD),
    ("a middlebox against MPTCP for TCP", TCP_TWO, ("network.links.h1-s1.middlebox={strip: syn}",), Code.UNREAD),
    ("a congestion control for UDP", UDP, ("tcp.congestion_control=bbr",), Code.UNREAD),
    (
        "a congestion control that every flow overrides",
        TWO,
        ("tcp.congestion_control=bbr", "traffic.0.bulk.congestion_control=reno"),
        Code.UNREAD,
    ),
    ("a code point that nothing reads", TWO, ("traffic.0.bulk.dscp=10",), Code.UNREAD),
    (
        "no Nagle where no segment is partial",
        direct("a-b: {rate: 5mbit}", more="transport: tcp"),
        ("traffic.0.bulk.nodelay=true",),
        Code.UNREAD,
    ),
    ("a queue behind a link as fast", TWO, ("network.links.s2-h2.queue=4KB",), Code.UNREAD),
    ("a second link for TCP", TCP_TWO, ("network.links.h1-s1#2.delay=3ms",), Code.UNCROSSED),
    ("a transport that no flow has", UDP, ("vary={transport: [tcp, mptcp]}",), Code.SAME_CASES),
    (
        "a scheduler that varies for TCP, too",
        TWO,
        ("vary={mptcp.scheduler: [default, redundant], transport: [tcp, mptcp]}",),
        Code.SAME_CASES,
    ),
    (
        "a listed case with a scheduler for TCP",
        TWO,
        ("vary={cases: [{transport: mptcp}, {transport: tcp}, {transport: tcp, mptcp.scheduler: redundant}]}",),
        Code.SAME_CASES,
    ),
    (
        "a second link that varies for TCP, too",
        direct("a-b: {rate: 5mbit}, a-b#2: {rate: 4mbit}"),
        ("vary={transport: [tcp, mptcp], network.links.a-b#2.rate: [3mbit, 5mbit]}",),
        Code.SAME_CASES,
    ),
    ("options stripped on the second path", TWO, ("network.links.h1-s2.middlebox={strip: all}",), Code.STRIPPED),
    (
        "a backup that nothing needs",
        TWO,
        ("mptcp.endpoints.h2=[{link: s2-h2, flags: [signal, backup]}]",),
        Code.BACKUP,
    ),
]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "overrides", "code"), [case[1:] for case in WRONG], ids=[case[0] for case in WRONG]
)
def test_a_wrong_but_legal_scenario_gets_its_caution_and_only_that(
    text: str, overrides: tuple[str, ...], code: Code
) -> None:
    findings = cautions(text, *overrides)
    assert [caution.code for caution in findings] == [code]
    assert findings[0].remedy
    assert findings[0].field


@pytest.mark.parametrize(
    ("jitter", "stalls"),
    [
        ("{deviation: 2ms, distribution: pareto}", True),
        ("{deviation: 2ms, distribution: paretonormal}", True),
        ("{deviation: 2ms, distribution: pareto, reorder: true}", False),
        ("{deviation: 1ms}", False),
        ("2ms", False),
    ],
)
def test_only_a_heavy_tail_in_order_gets_the_caution_about_stalls(jitter: str, stalls: bool) -> None:
    findings = cautions(TWO, f"network.links.h1-s1.jitter={jitter}", "network.links.h1-s1.delay=5ms")
    assert [caution.code for caution in findings] == [Code.STALL] * 2 * stalls
    for caution in findings:
        assert caution.figures["deviation_ms"] == pytest.approx(2, rel=1e-3)
        assert 10 < caution.figures["longest_ms"] / 2 < 25, "the kernel's tables end there"


def test_there_is_a_scenario_for_every_code_and_every_code_is_documented() -> None:
    assert {case[3] for case in WRONG} == set(Code)
    reference = (ROOT / "docs/reference/lint.md").read_text(encoding="utf-8")
    tables = reference.partition("## Subflows")[2]
    assert set(re.findall(r"^\| `([a-z-]+)` \|", tables, flags=re.MULTILINE)) == {str(code) for code in Code}


@pytest.mark.parametrize(
    ("text", "overrides"),
    [
        (TWO, ()),
        (TWO, ("vary={transport: [tcp, mptcp]}",)),
        (ONE, ("mptcp.subflows_per_path=2",)),
        (ISLANDS, ()),
        (ACCESS, ()),
        (DEAD_END, ()),
        (FUNNEL % ("rate: 2mbit", "rate: 3mbit"), ()),
        (
            TWO,
            (
                "mptcp.endpoints.h2=[{link: s2-h2, flags: [signal, backup]}]",
                "events=[{at: 5s, cut: h1-s1}]",
            ),
        ),
        (TWO, ("mptcp.limits.h1={subflows: 8, add_addr_accepted: 8}",)),
        (
            TWO,
            (
                "mptcp.endpoints.h2=[]",
                "events=[{at: 2s, endpoints: {h2: {add: {link: s2-h2, flags: [signal]}}}}]",
            ),
        ),
        (
            ACCESS,
            (
                "mptcp.endpoints.c=[]",
                "events=[{at: 2s, endpoints: {c: {add: {link: 'c-r#2', flags: [subflow]}}}}]",
            ),
        ),
        (TWO, ("events=[{at: 2s, sysctls: {h1: {net.ipv4.tcp_sack: 0}}}]",)),
        (TWO, ("traffic.0.bulk.start=3s", "events=[{at: 2s, limits: {h1: {subflows: 2}}}]")),
    ],
)
def test_a_sound_scenario_gets_no_caution(text: str, overrides: tuple[str, ...]) -> None:
    assert cautions(text, *overrides) == []


def test_a_caution_names_its_place_its_figures_and_its_cases() -> None:
    text = TWO + "mptcp:\n  limits:\n    h1: {subflows: 0}\nvary:\n  transport: [tcp, mptcp]\n"
    (limit,) = cautions(text)
    assert (limit.line, limit.column, limit.field) == (14, 10, "mptcp.limits.h1.subflows")
    assert limit.figures == {"limit": 0, "needed": 1}
    assert limit.cases == ("transport=mptcp",)
    (buffer,) = cautions(TWO + "vary: {traffic.*.bulk.receive_buffer: [4KiB, 1MiB]}\n")
    assert (buffer.line, buffer.field) == (12, "vary.traffic.*.bulk.receive_buffer.0")
    assert buffer.figures == {"usable_bytes": 4096, "needed_bytes": 156_072}


def test_all_paths_that_act_as_one_are_named() -> None:
    (caution,) = cautions((FUNNEL % ("", "")).replace("    s1-h2:", "    h1-s1#3: {}\n    s1-h2:"))
    assert "h1-s1-h2, h1-s1-h2#2 and h1-s1-h2#3 cross the same limited links (s1->h2)" in str(caution)


def test_cautions_start_at_the_documented_thresholds() -> None:
    def codes(*overrides: str) -> list[str]:
        return [caution.code for caution in cautions(TWO, *overrides)]

    # 10 Mbit/s in all, 20 ms: 25 000 bytes, and 64 KiB for each of two paths
    assert codes("traffic.0.bulk.receive_buffer=156071B") == [Code.RECEIVE_BUFFER]
    assert codes("traffic.0.bulk.receive_buffer=156072B") == []
    assert codes("tcp.receive_buffer_max=312144B") == []
    assert codes("traffic.0.bulk.send_buffer=24999B") == [Code.SEND_BUFFER]
    assert codes("traffic.0.bulk.send_buffer=25KB") == []
    # one path: 5 Mbit/s, 20 ms: 12 500 bytes
    assert codes("network.links.h1-s1.queue=12499B") == [Code.QUEUE]
    assert codes("network.links.h1-s1.queue=12500B") == []

    # 12 500 bytes are less than ten segments: two round trips of 20 ms, times five
    assert codes("traffic.0.bulk.duration=199ms", "sample=10ms") == [Code.DURATION]
    assert codes("traffic.0.bulk.duration=200ms", "sample=10ms") == []
    assert codes("sample=1000ms") == []
    assert codes("sample=1001ms") == [Code.SAMPLE]


def test_a_queue_in_packets_holds_frames_of_its_links_mtu() -> None:
    """100 packets of MTU 9000 hold 901 400 bytes; a bandwidth-delay product is 200 Mbit/s times 20 ms, 500 000."""
    links = ("h1-s1", "s1-h2", "h1-s2", "s2-h2")
    asked = [f"network.links.{link}.{given}" for link in links for given in ("rate=200mbit", "queue=100pkt")]
    jumbo = [f"network.links.{link}.mtu=9000" for link in links]
    short = [caution for caution in cautions(TWO, *asked) if caution.code == Code.QUEUE]
    assert short[0].figures == {"queue_bytes": 151_400, "bdp_bytes": 500_000}
    assert Code.QUEUE not in [caution.code for caution in cautions(TWO, *asked, *jumbo)]


def test_cautions_are_data_that_can_be_read_back() -> None:
    (caution,) = cautions(ONE)
    assert type(caution).model_validate(json.loads(caution.model_dump_json())) == caution
    assert str(caution) == (
        "bulk1: MPTCP has only one path (a-b) and cannot gain anything over TCP; "
        "give a and b a second link each, or set subflows_per_path [single-path]"
    )
