"""A hunt draws valid cases, judges reports of guests with bounds, makes failing cases smaller, and writes them."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from plait.errors import DataError, TrialError
from plait.testing.hunt.case import HuntCase, HuntConnection, HuntEvent, HuntLink, as_text, load_case
from plait.testing.hunt.draw import draw
from plait.testing.hunt.kinds import KINDS
from plait.testing.hunt.run import Violation, judge

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SCHEDULERS, CONTROLS = ("default", "minrtt"), ("cubic", "reno")
SMALL = HuntCase(links=(HuntLink(rate_mbit=10, delay_ms=5),), connections=(HuntConnection(up_bytes=1),))


def drawn(seed: int) -> HuntCase:
    return draw(seed, SCHEDULERS, CONTROLS)


def report(**changes: Any) -> bytes:
    values = {
        "violations": [], "left": {"client": 0, "server": 0}, "counters": {"client": {}, "server": {}},
        "log": "", "received": 5, "virtual_s": 1,
    }  # fmt: skip
    return json.dumps({**values, **changes}).encode()


def kinds(output: bytes, case: HuntCase = SMALL, version: str = "6.12.117") -> list[str]:
    return [violation.kind for violation in judge(output, case, version).violations]


def test_a_seed_always_draws_the_same_case_and_seeds_differ() -> None:
    cases = [drawn(seed) for seed in range(100)]
    assert cases == [drawn(seed) for seed in range(100)]
    assert len({case.model_dump_json() for case in cases}) == 100
    assert {event.do for case in cases for event in case.events} == set(KINDS)
    assert {(case.ipv6, case.checksums, case.user_paths) for case in map(drawn, range(2000))} == set(
        itertools.product((False, True), repeat=3)
    )


def test_a_written_case_is_read_back(tmp_path: Path) -> None:
    for seed in range(60):
        (tmp_path / "case.yaml").write_text(as_text(drawn(seed), "sockets: left\nplait hunt case.yaml"))
        assert load_case(tmp_path / "case.yaml") == drawn(seed)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("hunt: 1\nlinks: []\n", "links: .*correct the file"),
        ("hunt: 2\n", "hunt: "),
        ("title: a scenario\n", "links: .*correct the file"),
        (as_text(SMALL) + "events: [{at_ms: 5, do: close, connection: 3}]\n", "not there; correct the file"),
        (as_text(SMALL) + "scheduler: a b\n", "scheduler: "),
        ("[", "name a file that `plait hunt` wrote"),
    ],
)
def test_a_damaged_file_is_refused_with_the_place(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "case.yaml").write_text(text)
    with pytest.raises(DataError, match=message):
        load_case(tmp_path / "case.yaml")


def test_a_clean_report_is_no_fault() -> None:
    assert kinds(report()) == []


@pytest.mark.parametrize(
    ("changes", "kind"),
    [
        ({"left": {"client": 2, "server": 0}}, "sockets"),
        ({"counters": {"client": {}, "server": {"MPTcpExtMPCurrEstab": 1}}}, "counters"),
        ({"counters": {"client": {}, "server": {"MPTcpExtMPJoinAckRx": 1}}}, "counters"),
        ({"log": "[1.0] WARNING: CPU: 0 PID: 1 at net/ipv4/af_inet.c:156 inet_sock_destruct"}, "kernel"),
        ({"log": "[1.0] BUG: KASAN: slab-use-after-free in mptcp_close"}, "kernel"),
        ({"violations": [{"kind": "bytes", "text": "wrong content"}]}, "bytes"),
        ({"violations": [{"kind": "paths", "text": "no subflow of 10.0.1.1"}]}, "paths"),
        ({"violations": [{"kind": "closing", "text": "the server saw no reset"}]}, "closing"),
    ],
)
def test_each_invariant_is_judged(changes: dict[str, Any], kind: str) -> None:
    assert kinds(report(**changes)) == [kind]


def test_segments_beyond_the_window_count_only_for_schedulers_that_keep_within_it() -> None:
    blest = SMALL.model_copy(update={"scheduler": "blest"})
    in_pieces = (SMALL.connections[0].model_copy(update={"write_bytes": 400}),)
    pieces = blest.model_copy(update={"connections": in_pieces})
    for beyond, expected in ((3, []), (5, ["counters"]), (300, ["counters"])):
        counters = {"counters": {"client": {}, "server": {"MPTcpExtNoDSSInWindow": beyond}}}
        assert kinds(report(**counters)) == []
        assert kinds(report(**counters), blest) == expected
        assert kinds(report(**counters), pieces) == [], "the receiver forgets the window of the handshake"
        opens_fast = blest.model_copy(update={"connections": (HuntConnection(up_bytes=1, fast_open=True),)})
        assert kinds(report(**counters), opens_fast) == [], "the server scales the window of a SYN"
        stripped = blest.model_copy(update={"events": (HuntEvent(at_ms=5, do="strip"),)})
        fell_back = {**counters["counters"], "client": {"MPTcpExtDssFallback": 1}}
        assert kinds(report(counters=fell_back), stripped) == [], "its mapping is wrong then"
        assert kinds(report(**counters), stripped) == expected


def test_over_a_single_link_that_loses_nothing_mptcp_hardly_repeats() -> None:
    counters = {"counters": {"client": {}, "server": {"MPTcpExtMPTCPRetrans": 4}}}
    assert kinds(report(**counters)) == ["counters"]
    (link,) = SMALL.links
    for links in ((link, link), (link.model_copy(update={"loss_percent": 1}),),
                  (link.model_copy(update={"queue_packets": 20}),)):  # fmt: skip
        assert kinds(report(**counters), SMALL.model_copy(update={"links": links})) == []
    (connection,) = SMALL.connections
    for pause_ms, expected in ((150, ["counters"]), (200, [])):
        slow = connection.model_copy(update={"read_every_ms": pause_ms})
        assert kinds(report(**counters), SMALL.model_copy(update={"connections": (slow,)})) == expected, (
            pause_ms
        )


def test_what_a_subflow_held_that_ended_is_not_left_to_a_timer() -> None:
    (link,) = SMALL.links
    case = HuntCase(
        links=(link, link),
        connections=(HuntConnection(up_bytes=1_000_000, hold=True),),
        events=(HuntEvent(at_ms=300, do="destroy"),),
    )
    counters = {"counters": {"client": {"MPTcpExtMPTCPRetrans": 4}, "server": {}}}
    stripped = case.model_copy(update={"events": (HuntEvent(at_ms=300, do="strip", link=1),)})
    assert kinds(report(**counters), case) == kinds(report(**counters), stripped) == ["counters"]
    of_the_first = case.model_copy(update={"events": (HuntEvent(at_ms=300, do="strip"),)})
    lossy = case.model_copy(update={"links": (link, link.model_copy(update={"loss_percent": 1}))})
    down = case.model_copy(update={"events": (*case.events, HuntEvent(at_ms=400, do="link_down"))})
    for other in (of_the_first, lossy, down, case.model_copy(update={"checksums": True})):
        assert kinds(report(**counters), other) == []


def test_a_standstill_with_full_memory_is_a_fault_only_of_a_linux_that_has_none() -> None:
    stands_still = {"kind": "progress", "text": "nothing for 30 s"}
    assert kinds(report(violations=[stands_still])) == ["progress"]
    full = report(violations=[{**stands_still, "memory_full": True}])
    assert kinds(full) == kinds(full, version="6.18") == []
    assert judge(full, SMALL, "6.12.117").standstills == 1, "the totals name it"
    assert kinds(full, version="7.3.0-rc7") == ["progress"]


def test_a_standstill_is_no_fault_of_the_kernel_under_test_after_a_lost_ack_of_the_handshake() -> None:
    """Linux then falls back at one end, and the other repeats a DATA_FIN for ever."""
    stands_still = {"violations": [{"kind": "progress", "text": "nothing for 30 s"}]}
    fell_back = {"client": {}, "server": {"MPTcpExtMPCapableFallbackACK": 1}}
    assert kinds(report(**stands_still)) == ["progress"]
    assert kinds(report(**stands_still, counters=fell_back)) == []


@pytest.mark.parametrize("fallback", ["MPTcpExtDssFallback", "MPTcpExtDSSCorruptionFallback"])
@pytest.mark.parametrize("gap", ["MPTcpExtOFOQueue", "MPTcpExtNoDSSInWindow"])
def test_a_standstill_is_no_fault_of_the_kernel_under_test_beyond_a_gap_that_a_fallback_made(
    fallback: str, gap: str
) -> None:
    """Linux then takes the place in the subflow for that in the stream, though bytes were sent twice."""

    def judged(server: dict[str, int], *, fell_back: bool) -> list[str]:
        stands_still = {"kind": "progress", "text": "nothing for 30 s", "fell_back": fell_back}
        return kinds(report(violations=[stands_still], counters={"client": {}, "server": server}))

    assert judged({fallback: 1, gap: 7}, fell_back=True) == []
    assert judged({fallback: 1, gap: 7}, fell_back=False) == ["progress"]
    assert judged({fallback: 1}, fell_back=True) == judged({gap: 7}, fell_back=True) == ["progress"]


def test_a_rewritten_byte_may_arrive_only_after_mptcp_has_noticed_it() -> None:
    """Then the only subflow falls back to TCP, which has no checksum of its own for a middlebox to break."""
    wrong = {"violations": [{"kind": "bytes", "text": "wrong content"}]}
    rewritten = SMALL.model_copy(update={"checksums": True, "events": (HuntEvent(at_ms=5, do="rewrite"),)})
    noticed = {"counters": {"client": {}, "server": {"MPTcpExtDataCsumErr": 1}}}
    assert kinds(report(**wrong), rewritten) == kinds(report(**wrong, **noticed)) == ["bytes"]
    assert kinds(report(**wrong, **noticed), rewritten) == []
    in_a_syn = (HuntConnection(up_bytes=500, fast_open=True),)
    assert kinds(report(**wrong), rewritten.model_copy(update={"connections": in_a_syn})) == []
    stripped = SMALL.model_copy(update={"events": (HuntEvent(at_ms=5, do="strip"),)})
    fell_back = {"counters": {"client": {"MPTcpExtDataFallback": 1}, "server": {}}}
    assert kinds(report(**wrong), stripped) == kinds(report(**wrong, **fell_back)) == ["bytes"]
    assert kinds(report(**wrong, **fell_back), stripped) == []
    reset_instead = {"counters": {"client": {"MPTcpExtFallbackFailed": 1}, "server": {}}}
    assert kinds(report(**wrong, **reset_instead), stripped) == ["bytes"]
    delivered_unmapped = {"counters": {"client": {}, "server": {"MPTcpExtDSSCorruptionReset": 1}}}
    assert kinds(report(**wrong, **delivered_unmapped), stripped) == []
    assert kinds(report(**wrong, **delivered_unmapped)) == ["bytes"]


def test_some_cases_have_a_slow_reader_and_a_long_transfer() -> None:
    slow = [
        case for case in map(drawn, range(200)) if case.connections[0].read_every_ms and not case.events
    ]  # nothing but the window disturbs them
    long = [
        case for case in slow if case.connections[0].up_bytes + case.connections[0].down_bytes >= 3_000_000
    ]
    assert len(long) >= 10


def test_some_slow_readers_with_small_buffers_get_copies_over_links_of_unequal_mtu() -> None:
    cases = [draw(seed, (*SCHEDULERS, "redundant"), CONTROLS) for seed in range(400)]
    assert any(
        case.scheduler == "redundant"
        and case.connections[0].read_every_ms >= 100
        and case.receive_buffer < 131_072
        and len({link.mtu for link in case.links}) > 1
        for case in cases
    )


def test_endpoints_come_and_go_around_connections_that_nothing_else_disturbs() -> None:
    """Otherwise no case would show that a subflow is missing."""
    calm = [
        case
        for case in map(drawn, range(400))
        if len(case.events) >= 2 and all(KINDS[event.do].calm for event in case.events)
        if case.connections[0].hold
    ]
    assert len(calm) >= 40


def _events_of(case: HuntCase, *kinds: str) -> list[HuntEvent]:
    return [event for event in case.events if event.do in kinds and event.link]


def _is_calm(case: HuntCase) -> bool:
    clean = not any(link.loss_percent for link in case.links)
    return clean and len(case.events) <= 4 and all(KINDS[event.do].calm for event in case.events)


def _announced(case: HuntCase) -> set[int]:
    """Return the links of which the server announces its address at some time."""
    at_first = {i for i, link in enumerate(case.links) if i and link.signal}
    return at_first | {event.link for event in _events_of(case, "announce")}


HISTORIES: dict[str, Callable[[HuntCase], bool]] = {
    "an announced address is replaced, and nothing else follows soon": lambda case: _is_calm(case) and any(
        event.side == "server" and case.links[event.link].signal for event in _events_of(case, "replace_endpoint")
    ),
    "a connection starts after a flush, and an address is announced": lambda case: _is_calm(case) and any(
        flush.at_ms < case.connections[0].start_ms < event.at_ms and not case.links[event.link].signal
        for flush in case.events if (flush.do, flush.side) == ("flush", "client")
        for event in _events_of(case, "announce")
    ),
    "IPv6 has no space for the port of an address, and another one is announced": lambda case: (
        case.ipv6 and _is_calm(case) and len({case.links[link].own_port for link in _announced(case)}) == 2
    ),
    "an address is withdrawn whose link is gone": lambda case: (
        [event.do for event in case.events] == ["unplug", "withdraw"] and case.links[case.events[0].link].signal
    ),
    "a small window opens again and again over one link": lambda case: (
        not case.events and len(case.links) == 1 and not case.links[0].loss_percent
        and case.connections[0].read_every_ms >= 100 and case.receive_buffer < 65_536
    ),
    "an announcement is lost": lambda case: _is_calm(case) and any(
        (event.do, event.link) == ("lose_announcements", 0)
        and event.at_ms <= announced.at_ms <= event.at_ms + event.for_ms
        for event in case.events for announced in _events_of(case, "announce")
    ),
    "an endpoint goes where no subflow is allowed": lambda case: (
        case.most_subflows == 0 and any(
            case.links[event.link].endpoint == "subflow signal" for event in _events_of(case, "remove_endpoint")
        )
    ),
    "a large upload has a faster backup path, and nothing happens": lambda case: (
        case.scheduler == "default"
        and not case.events
        and not any(link.loss_percent for link in case.links)
        and any(link.endpoint == "subflow backup" for link in case.links[1:])
        and case.links[0].delay_ms > case.links[1].delay_ms
        and case.connections[0].up_bytes >= 1_000_000
    ),
    "options vanish from a path that brings a long transfer": lambda case: (
        bool(_events_of(case, "strip")) and max(end.down_bytes for end in case.connections) >= 300_000
    ),
    "a subflow is destroyed in a transfer that nothing else disturbs": lambda case: (
        [event.do for event in case.events] == ["destroy"] and not any(link.loss_percent for link in case.links)
    ),
    "a link fails in the first round trips of a transfer": lambda case: any(
        event.do == "link_down" and event.at_ms <= 20 * case.links[0].delay_ms
        for event in case.events if case.connections[0].up_bytes >= 30_000
    ),
}  # fmt: skip


@pytest.mark.parametrize("history", HISTORIES)
def test_histories_that_show_unmade_fixes_are_drawn(history: str) -> None:
    """At least six times in 3000 cases."""
    assert sum(map(HISTORIES[history], map(drawn, range(3000)))) >= 6


def test_a_rewritten_byte_needs_a_checksum_and_ipv6_an_mtu() -> None:
    for case in map(drawn, range(2000)):
        assert case.checksums or all(event.do != "rewrite" for event in case.events)
        assert not case.ipv6 or min(link.mtu for link in case.links) >= 1280
    with pytest.raises(ValueError, match="1280"):
        HuntCase(
            ipv6=True,
            links=(HuntLink(rate_mbit=10, delay_ms=5, mtu=576),),
            connections=SMALL.connections,
        )


def test_each_order_of_destroying_closing_and_flushing_is_drawn_often() -> None:
    """After one of these orders Linux left a socket for ever."""
    kinds = {"destroy", "close", "shutdown", "flush"}
    orders: Counter[tuple[str, ...]] = Counter()
    for seed in range(6000):
        case = drawn(seed)
        pieces = [
            "close" if event.do == "shutdown" else event.do
            for event in case.events
            if event.do in kinds and event.side == "client" and event.connection == 0
        ]
        if case.connections[0].hold and pieces.count("close") == pieces.count("flush") == 1:
            orders.update(set(itertools.combinations(pieces, 3)))
    for order in itertools.permutations(("destroy", "close", "flush")):
        assert orders[order] >= 30, order


def test_receive_buffers_are_no_smaller_than_those_with_which_linux_stands_still() -> None:
    buffers = {True: set[int](), False: set[int]()}
    for case in map(drawn, range(2000)):
        buffers[any(played.write_bytes for played in case.connections)].add(case.receive_buffer)
    assert min(buffers[False]) == 32_768
    assert min(buffers[True]) == 524_288, "with 400 bytes, 32 and 128 KiB stood still"


@pytest.mark.parametrize(
    "output",
    [
        b"", b"[]", b"{", report(left={"elsewhere": 1}), report(received="x"), report(more=1),
        report(violations=[{"kind": "bytes", "text": "x" * 3000}]),
        report(violations=[{"kind": "bytes", "text": "x"}] * 9),
    ],
)  # fmt: skip
def test_a_damaged_report_is_refused(output: bytes) -> None:
    with pytest.raises(TrialError, match="the report is damaged"):
        judge(output, SMALL, "6.12.117")


def test_what_a_guest_reports_has_no_control_characters() -> None:
    text = judge(
        report(violations=[{"kind": "bytes", "text": "\x1b[31m"}], log="WARNING: \x07"), SMALL, "6.12"
    )
    assert all(violation.text.isprintable() for violation in text.violations)


def test_warnings_at_one_place_are_one_fault() -> None:
    first = Violation(
        "kernel", "[    5.1] WARNING: CPU: 0 PID: 91 at net/ipv4/af_inet.c:156 destruct+0x42e/0x500"
    )
    again = Violation(
        "kernel", "[   77.2] WARNING: CPU: 0 PID: 17 at net/ipv4/af_inet.c:156 destruct+0x42e/0x500"
    )
    other = Violation(
        "kernel", "[    5.1] WARNING: CPU: 0 PID: 91 at net/mptcp/protocol.c:9 mptcp_close+0x4/0x5"
    )
    assert first.is_like(again)
    assert not first.is_like(other)


def test_an_event_of_something_that_is_not_there_is_refused() -> None:
    with pytest.raises(ValueError, match="not there"):
        HuntCase(
            links=SMALL.links, connections=SMALL.connections, events=(HuntEvent(at_ms=1, do="close", link=1),)
        )
