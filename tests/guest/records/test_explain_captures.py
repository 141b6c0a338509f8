"""The shares of an explanation agree with captures at the sender."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from captured import Connection, connections, share_of_gaps, share_of_time
from plait.dataset.convert import convert
from plait.engine.engine import Job
from plait.explain import explain_trial
from plait.explain.cause import Cause
from plait.plan.resolve import resolve
from plait.scenario import parse
from plait.scenario.vary.cases import expand
from planted.causes import planted

if TYPE_CHECKING:
    from pathlib import Path

    import polars as pl

    from plait.engine.virtual.trial import VirtualEngine
    from plait.explain.model import FlowExplanation

SET = planted()
MSS = 1448
Seen = tuple["FlowExplanation", dict[tuple[str, int, str, int], Connection], dict[str, "pl.DataFrame"]]
Watch = Callable[..., Seen]


@pytest.fixture
def explain_with_capture(engine: VirtualEngine, tmp_path: Path) -> Watch:
    """Return a function that runs a planted scenario with a capture at its sender, and explains it."""

    def run(number: int, **changes: Any) -> Seen:
        planted_scenario = SET[number]
        planted_scenario.scenario.update({"monitors": {"capture": {"on": ["a"], "bytes": 128}}, **changes})
        plan = resolve(expand(parse(planted_scenario.text, "captured.yaml", ()))[0].scenario, 1)
        engine.execute(Job(plan, {}, tmp_path))
        tables = convert(tmp_path / "data", tmp_path / "tables")
        explanation = explain_trial(plan, tables)[0]
        captured = connections(tmp_path / "pcap", {path.client_address for path in plan.flows[0].paths})
        # Captures have the time of day of the guest; connect() sends the first SYN at once, except for an ARP.
        first_syn_us = min(subflow.syn_us for subflow in captured.values() if subflow.syn_us is not None)
        for subflow in captured.values():
            subflow.moved(first_syn_us - explanation.start_us)
        return explanation, captured, tables

    return run


def share(explanation: FlowExplanation, cause: Cause) -> float:
    return sum(item.time for item in explanation.shares if item.cause == cause)


def test_idle_time_is_the_time_with_nothing_in_flight(explain_with_capture: Watch) -> None:
    """An application sends for 300 ms of each second: compare the kernel's idle time and the share of sender-idle."""
    explanation, captured, _ = explain_with_capture(1)
    length = explanation.end_us - explanation.start_us
    idle = [
        share_of_time(subflow.in_flight, explanation.start_us, explanation.end_us, 0, 0)
        for subflow in captured.values()
    ]
    assert len(idle) == 2
    assert explanation.kernel is not None
    by_kernel = (explanation.kernel.lifetime_us - explanation.kernel.busy_us) / length / len(idle)
    assert by_kernel == pytest.approx(sum(idle) / len(idle), abs=0.03)
    # sender-idle is a little longer than the time with nothing in flight: the last bytes of a burst are in flight.
    pauses = [
        share_of_gaps(subflow.new, explanation.start_us, explanation.end_us, 100_000)
        for subflow in captured.values()
    ]
    assert share(explanation, Cause.SENDER_IDLE) == pytest.approx(sum(pauses) / len(pauses), abs=0.06)


def test_window_limited_time_is_the_time_with_no_room_for_a_segment(explain_with_capture: Watch) -> None:
    """The link is at capacity meanwhile for as long as the payload takes; the window gets the rest of that time."""
    explanation, captured, _ = explain_with_capture(2, transport="tcp")
    (subflow,) = captured.values()
    # Linux sends nothing while a burst of a few segments does not fit, and calls that limited by the window.
    limited = share_of_time(subflow.room, explanation.start_us, explanation.end_us, -(2**40), 3 * MSS - 1)
    assert explanation.first == Cause.RECEIVE_WINDOW
    shares = share(explanation, Cause.RECEIVE_WINDOW) + share(explanation, Cause.AT_CAPACITY)
    assert shares == pytest.approx(limited, abs=0.02)


def test_retransmissions_are_those_on_the_wire_and_loss_is_named_where_they_are(
    explain_with_capture: Watch,
) -> None:
    explanation, captured, tables = explain_with_capture(6)
    sent = tables["subflows"].filter(tables["subflows"]["side"] == "client")
    for (address, port, _, _), subflow in captured.items():
        rows = sent.filter((sent["local_address"] == address) & (sent["local_port"] == port))
        assert subflow.retransmitted == rows["retransmitted_segments"].max()
    lossy = [path for path in explanation.paths if share_in(path.shares, Cause.LOSS_RECOVERY) > 0.2]
    assert len(lossy) == 1
    assert max(captured.values(), key=lambda subflow: subflow.retransmitted).retransmitted > 0


def test_a_late_subflow_is_as_late_as_its_handshake_on_the_wire(explain_with_capture: Watch) -> None:
    explanation, captured, _ = explain_with_capture(12)
    first, second = sorted(
        subflow.established_us for subflow in captured.values() if subflow.established_us is not None
    )
    length = explanation.end_us - explanation.start_us
    late = share(explanation, Cause.SUBFLOW_LATE) * 2 * length
    # A join may take 90 ms here (patience_us); only the time beyond that is late.
    assert late == pytest.approx(second - first, abs=150_000)
    assert late > 1_000_000


def share_in(shares: Any, cause: Cause) -> float:
    return sum(item.time for item in shares if item.cause == cause)
