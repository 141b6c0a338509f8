"""Explanations of message traffic agree with lateness and loss computed by hand."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import polars as pl
import pytest

from fake_tables import fake_tables, make_tables
from plait.analysis.metrics.catalogue import speaks_for
from plait.dataset.model import ALL_TABLES
from plait.explain import explain_trial
from plait.explain.capacity import LinkSamples, NetworkTimeline
from plait.explain.cause import Cause
from plait.explain.causes import ANY_SEGMENTS, CAUSES, WHOLE_SEGMENTS
from plait.explain.effect import effect
from plait.explain.messages.late import Carrier, LateMessages, PathUse
from plait.explain.messages.timing import Messages
from plait.metrics import COMPARED
from plait.traffic.kinds import Application
from plait.traffic.program import Connection
from scenario_samples import plan_of

if TYPE_CHECKING:
    from plait.explain.facts import FlowFacts
    from plait.explain.model import FlowExplanation
    from plait.explain.time.path_time import PathTime

ONE = """\
title: One path
network: {hosts: [a, b], links: {a-b: {rate: 10mbit, delay: 10ms, jitter: JITTER}}}
traffic:
  - udp: {from: a, to: b, rate: 960kbit, packet: 1200B, duration: 2s}
sample: 100ms
"""
PACKETS, GAP_US, BASE_US = 200, 10_000, 10_000 + 960
"""1200 bytes take 960 us at 10 Mbit/s."""
Tables = dict[str, pl.DataFrame]


def udp(delays: list[int | None], links: list[dict[str, Any]], jitter: str = "0ms") -> FlowExplanation:
    plan = plan_of(ONE.replace("JITTER", jitter))
    messages = [
        {
            "flow": 0,
            "index": n,
            "sent_us": n * GAP_US,
            "received_us": None if d is None else n * GAP_US + d,
            "bytes": 1200,
        }
        for n, d in enumerate(delays)
    ]
    flow = {"flow": 0, "name": "udp1", "kind": "udp", "start_us": 0, "end_us": 2_000_000, "completed": True}
    (explanation,) = explain_trial(plan, make_tables({"messages": messages, "flows": [flow], "links": links}))
    return explanation


def link(**counters: tuple[int, int]) -> list[dict[str, Any]]:
    """Return samples of a->b every 100 ms; a counter (first, step) grows by `step` in each sample after `first`."""
    rows = []
    for n in range(22):
        grown = {name: max(0, n - first) * step for name, (first, step) in counters.items()}
        rows.append({"t_us": n * 100_000, "link": "a->b", "sent_bytes": n * 12_000, "queue_bytes": 0} | grown)
    return rows


def shares(explanation: FlowExplanation) -> dict[Cause, float]:
    return {share.cause: share.time for share in explanation.shares}


def test_messages_without_a_known_cause_are_counted_beside_the_cause_of_others() -> None:
    late = BASE_US + 50_000  # no queue, no jitter and no loss explains it
    rows = [row | {"dropped_packets": min(10 * n, 60)} for n, row in enumerate(link(overflow_packets=(0, 0)))]
    explanation = udp([None] * 60 + [BASE_US] * 100 + [late] * 40, rows)
    assert shares(explanation) == {Cause.LOSS_RECOVERY: 0.3, Cause.NOT_KNOWN: 0.2, Cause.ON_TIME: 0.5}
    assert explanation.named == (Cause.LOSS_RECOVERY,)
    assert "For 20 % of the packets, no cause is known." in explanation.sentences


def test_udp_that_all_arrives_in_time_is_on_time() -> None:
    explanation = udp([BASE_US] * PACKETS, link(dropped_packets=(0, 0), overflow_packets=(0, 0)))
    assert (explanation.basis, explanation.first, shares(explanation)) == (
        "messages",
        None,
        {Cause.ON_TIME: 1.0},
    )
    assert explanation.delivery is not None
    account = explanation.delivery
    assert (account.messages, account.lost, account.late) == (PACKETS, 0, 0)
    assert (account.p50_us, account.p95_us, account.max_us, account.jitter_us) == (
        BASE_US,
        BASE_US,
        BASE_US,
        0,
    )
    assert account.base_us == pytest.approx(BASE_US)
    assert account.asked_bps == pytest.approx(960_000)
    assert explanation.sentences == (
        "udp1 lost none of its 200 packets (960 kbit/s of payload).",
        (
            "Packet delay: median 11.0 ms, 95th percentile 11.0 ms, maximum 11.0 ms, jitter 0 ms; "
            "an idle network takes at most 11.0 ms."
        ),
        "All packets were on time.",
    )


def test_lost_packets_are_attributed_to_the_link_that_dropped_them_and_to_its_queue_only_if_that_was_full() -> (
    None
):
    lost = [None if n % 10 == 5 else BASE_US for n in range(PACKETS)]
    at_random = udp(lost, link(dropped_packets=(0, 1), overflow_packets=(0, 0)))
    assert at_random.named == (Cause.LOSS_RECOVERY,)
    assert shares(at_random)[Cause.LOSS_RECOVERY] == pytest.approx(0.1)
    assert at_random.shares[0].where == ("a->b",)
    assert at_random.shares[0].evidence == (
        "a->b dropped 20 packets, 0 of them because its queue (100 packets) was full.",
    )
    # 10 Mbit/s are 125 000 bytes in 100 ms; the packets of the flow are 12 420 of them.
    short = udp(lost, link(dropped_packets=(0, 1), overflow_packets=(0, 1), sent_bytes=(0, 12_420)))
    assert short.named == (Cause.QUEUE_FULL,)
    others = udp(lost, link(dropped_packets=(0, 1), overflow_packets=(0, 1), sent_bytes=(0, 125_000)))
    assert others.named == (Cause.COMPETING_TRAFFIC,)


def test_a_delay_is_attributed_to_jitter_if_no_queue_explains_it() -> None:
    late = [BASE_US + (15_000 if n % 4 == 0 else 0) for n in range(PACKETS)]
    assert udp(late, link(), jitter="9ms").named == (Cause.JITTER,)
    assert udp(late, link()).named == (Cause.NOT_KNOWN,), "a link without jitter"
    queue = [row | {"queue_bytes": 20_000} for row in link(sent_bytes=(0, 125_000))]
    assert udp(late, queue, jitter="9ms").named == (Cause.COMPETING_TRAFFIC,), "16 ms of queue"


def test_every_kind_of_flow_has_a_primary_metric() -> None:
    kinds = {kind.model_fields["kind"].default for kind in Application.__origin__.__args__}
    spoken = {kind: speaks_for(kind) for kind in kinds}
    assert set(spoken.values()) <= set(COMPARED)
    assert {kind for kind, metric in spoken.items() if metric == "goodput_bps"} == {
        "bulk",
        "page_connection",
        "prototype",
        Connection.model_fields["kind"].default,
    }


STREAM = """\
title: A stream
network: {hosts: [h1, h2], links: {h1-h2: {rate: 100mbit, delay: 10ms}}}
traffic:
  - stream: {from: h1, to: h2, rate: 4mbit, message: 5KB, duration: 4s, nodelay: true}
transport: tcp
"""


def stream(delays: list[int]) -> FlowExplanation:
    plan = plan_of(STREAM)
    bulk = plan_of(STREAM.replace("stream:", "bulk:").replace("rate: 4mbit, message: 5KB, ", ""))
    tables = fake_tables(bulk)
    messages = [
        {"flow": 0, "index": n, "sent_us": n * 10_000, "received_us": n * 10_000 + delay, "bytes": 5000}
        for n, delay in enumerate(delays)
    ]
    tables["messages"] = pl.DataFrame(messages, schema_overrides=dict(ALL_TABLES["messages"]))
    (explanation,) = explain_trial(plan, tables)
    return explanation


def test_a_stream_that_kept_its_pace_is_judged_by_its_delays() -> None:
    explanation = stream([12_000] * 400)
    assert (explanation.first, explanation.basis) == (None, "messages")
    assert (
        explanation.sentences[0]
        == "stream1 kept its pace of 4 Mbit/s; the capacity of its path is 95.6 Mbit/s."
    )
    assert "95th percentile 12.0 ms" in " ".join(explanation.sentences)
    assert explanation.primary_metric == ("message_delay_p95_us", 12_000)


def test_a_stream_whose_messages_wait_longer_and_longer_is_explained_like_a_bulk_flow() -> None:
    explanation = stream([12_000 + 5_000 * n for n in range(400)])
    assert explanation.basis == "time"
    assert explanation.delivery is not None
    assert not explanation.delivery.kept_pace
    assert "of the 4 Mbit/s that it offers" in explanation.sentences[0]


REQUESTS = """\
title: Requests
network: {hosts: [a, b], links: {a-b: {rate: 100mbit, delay: 1ms}}}
traffic:
  - request: {from: a, to: b, request: 66000B, response: 200B, duration: 4s}
transport: tcp
"""
HELD_US, HELD, ASKED = 50_000, 30, 40
"""How long a request takes that waits for a delayed ACK, the number of these requests, and that of all."""


def requests(delayed_acks: dict[str, int], held_us: int = HELD_US, text: str = REQUESTS) -> FlowExplanation:
    plan = plan_of(text)
    tables = fake_tables(
        plan_of(text.replace("request:", "bulk:", 1).replace("request: 66000B, response: 200B, ", ""))
    )
    messages = [
        {
            "flow": 0,
            "index": n,
            "sent_us": n * 100_000,
            "received_us": n * 100_000 + (held_us if n >= ASKED - HELD else 3_000),
            "bytes": 200,
        }
        for n in range(ASKED)
    ]
    counters = [
        {"node": node, "counter": "TcpExtDelayedACKs", "before": 5, "after": 5 + count}
        for node, count in delayed_acks.items()
    ]
    made = make_tables({"messages": messages, "counters": counters})
    # The fake sender fills the link; a link without samples holds nothing back.
    tables |= {name: made[name] for name in ("messages", "counters", "links")}
    (explanation,) = explain_trial(plan, tables)
    return explanation


def test_a_late_response_is_attributed_to_the_acks_that_the_server_delayed() -> None:
    explanation = requests({"b": HELD})
    assert (explanation.named, explanation.shares[0].where) == (("delayed-ack",), ("b",))
    assert shares(explanation)["delayed-ack"] == pytest.approx(HELD / ASKED)
    assert explanation.shares[0].evidence == (
        "b sent 30 ACKs only when its timer for delayed ACKs expired (DelayedACKs).",
    )


@pytest.mark.parametrize(
    ("delayed_acks", "held_us", "text"),
    [
        ({}, HELD_US, REQUESTS),
        ({"a": HELD}, HELD_US, REQUESTS),
        ({"b": HELD // 3}, HELD_US, REQUESTS),
        ({"b": HELD}, 35_000, REQUESTS),
        ({"b": HELD}, 250_000, REQUESTS),
        ({"b": HELD}, HELD_US, REQUESTS.replace("duration: 4s", "duration: 4s, nodelay: true")),
    ],
    ids=["none", "of-the-client", "too-few", "too-early", "too-late", "nodelay"],
)
def test_no_delayed_ack_is_blamed_that_cannot_have_held_a_request_back(
    delayed_acks: dict[str, int], held_us: int, text: str
) -> None:
    explanation = requests(delayed_acks, held_us, text)
    assert explanation.delivery is not None
    assert explanation.delivery.late == HELD
    assert explanation.first == Cause.NOT_KNOWN


@pytest.mark.parametrize(("waited_us", "is_explained"), [(1.0, False), (390.0, False), (400.5, True)])
def test_a_wait_explains_a_delay_only_if_it_is_a_large_part_of_it(
    waited_us: float, is_explained: bool
) -> None:
    """Two fifths of a delay of 1000 us."""
    cause = next(iter(ANY_SEGMENTS - WHOLE_SEGMENTS))
    expected = (cause, ("a",)) if is_explained else None
    assert page_over(carrier(cause, waited_us)).sender_waited(ANY_SEGMENTS, slice(0, 2), 1000.0) == expected


def carrier(cause: str, waited_us: float, *, sent_bytes: int = 1, begin_us: int = 0) -> Carrier:
    """Return a connection whose sender waited in the first of its two slices, and sent in both."""
    path = SimpleNamespace(planned="a", subflows=(0,), growth=lambda _: np.array([sent_bytes, sent_bytes]))
    full = np.array([bool(waited_us), False])
    facts = SimpleNamespace(
        edges=np.arange(3) * 500 + begin_us, paths=(path,), receiver="b", memory_full=full
    )
    time = SimpleNamespace(facts=path, time={(cause, ("a",)): np.array([waited_us, 0.0])})
    return Carrier(cast("FlowFacts", facts), [cast("PathTime", time)])


def page_over(*carriers: Carrier) -> LateMessages:
    """Return the messages of a flow that these connections carried; its slices last 500 us."""
    flow = SimpleNamespace(transport="tcp", application=SimpleNamespace(ANSWERS=False))
    network = cast("NetworkTimeline", SimpleNamespace(edges=np.arange(3) * 500))
    return LateMessages(network, cast("Messages", SimpleNamespace(flow=flow)), (), carriers)


@pytest.mark.parametrize(
    ("other", "is_explained"),
    [
        (carrier(Cause.RECEIVE_WINDOW, 450), True),
        (carrier(Cause.RECEIVE_WINDOW, 0), False),
        (carrier(Cause.RECEIVE_WINDOW, 0, sent_bytes=0), True),
        (carrier(Cause.RECEIVE_WINDOW, 450, begin_us=400), False),
    ],
    ids=["it-waited-too", "it-did-not-wait", "it-sent-nothing", "it-waited-later"],
)
def test_an_object_waited_only_if_each_connection_that_may_have_carried_it_did(
    other: Carrier, is_explained: bool
) -> None:
    """The first connection waited for 450 us of the 500 us by which the object is late."""
    page = page_over(carrier(Cause.RECEIVE_WINDOW, 450), other)
    waited = page.sender_waited(WHOLE_SEGMENTS, slice(0, 1), 500.0)
    assert waited == ((Cause.RECEIVE_WINDOW, ("a",)) if is_explained else None)
    assert page._memory(slice(0, 1), 500.0) == ((Cause.RECEIVE_MEMORY, ("b",)) if is_explained else None)


SECOND = "{rate: 10mbit, delay: 50ms, jitter:"


@pytest.mark.parametrize(
    ("jitter_ms", "carried", "cause"),
    [
        (20, (0, 1), Cause.HEAD_OF_LINE),
        (45, (0, 1), Cause.JITTER),
        (45, (1, 0), Cause.NOT_KNOWN),
    ],
    ids=["its-delay-explains-more", "its-jitter-explains-more", "it-carried-nothing"],
)
def test_jitter_is_blamed_if_it_explains_more_than_the_higher_delay_of_its_path(
    jitter_ms: int, carried: tuple[int, int], cause: Cause
) -> None:
    """The second path has 40 ms more delay than the first one, and the message is late by 40 ms."""
    plan = plan_of(
        ONE.replace("JITTER", "0ms").replace("}}}", f"}}, a-b#2: {SECOND} {jitter_ms}ms}}}}}}"),
        "traffic=[{stream: {from: a, to: b, rate: 400kbit, message: 1KB, duration: 2s, nodelay: true}}]",
        "transport=mptcp",
    )  # fmt: skip
    network = NetworkTimeline(LinkSamples(plan, make_tables({})["links"]), np.array([0.0, 100_000.0]))
    uses = [
        PathUse(path, np.array([sent]), np.array([0]))
        for path, sent in zip(plan.flows[0].paths, carried, strict=True)
    ]
    message = Messages(plan.flows[0], *(np.array([number]) for number in (0.0, 50_000.0, 1000.0, 10_000.0)))
    assert LateMessages(network, message, uses)._attribute(0)[0] == cause


def test_an_effect_is_judged_by_the_primary_metric_of_the_flow() -> None:
    before, after = {1: 24_000.0, 2: 24_100.0, 3: 23_900.0}, {1: 9_000.0, 2: 9_100.0, 3: 8_900.0}
    change = effect("it", (), None, before, after, metric="message_delay_p95_us")
    assert (change.verdict, change.before, change.after, change.before_bps) == ("faster", 24_000, 9_000, None)
    assert change.sentence.startswith("With it: 95th percentile of message delay 9.00 ms instead of 24.0 ms")
    assert effect("it", (), None, after, before, metric="message_delay_p95_us").verdict == "slower"


def test_every_cause_of_messages_has_a_text() -> None:
    for cause in (Cause.ON_TIME, Cause.JITTER, "nagle", Cause.RATE_TOO_HIGH):
        assert CAUSES[cause].clause
