"""The shares of an explanation, compared with captures at the sender."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from captured import Connection, connections, share_of_gaps, share_of_time

from plait.dataset.convert import convert
from plait.engine.engine import Job
from plait.explain import explain_trial
from plait.explain.causes import Cause
from plait.plan.resolve import resolve
from plait.scenario import parse
from plait.scenario.vary.cases import expand
from plait.testing.planted import planted

if TYPE_CHECKING:
    from pathlib import Path

    import polars as pl

    from plait.engine.uml.trial import VirtualEngine
    from plait.explain.model import FlowExplanation

SET = planted()
MSS = 1448
Seen = tuple["FlowExplanation", dict[tuple[str, int, str, int], Connection], dict[str, "pl.DataFrame"]]
Watch = Callable[..., Seen]


@pytest.fixture
def watch(engine: VirtualEngine, tmp_path: Path) -> Watch:
    """Return a function that runs a planted scenario with a capture at its sender, and explains it."""

    def run(number: int, **changes: Any) -> Seen:
        one = SET[number]
        one.scenario.update({"monitors": {"capture": {"on": ["a"], "bytes": 128}}, **changes})
        plan = resolve(expand(parse(one.text, "captured.yaml", ()))[0].scenario, 1)
        engine.execute(Job(plan, {}, tmp_path))
        tables = convert(tmp_path / "data", tmp_path / "tables")
        found = explain_trial(plan, tables)[0]
        seen = connections(tmp_path / "pcap", {path.client_address for path in plan.flows[0].paths})
        # Captures have the time of day of the guest; connect() sends the first SYN at once, except for an ARP.
        zero = min(one.syn_us for one in seen.values() if one.syn_us is not None) - found.start_us
        for one in seen.values():
            one.moved(zero)
        return found, seen, tables

    return run


def share(found: FlowExplanation, cause: Cause) -> float:
    return sum(one.time for one in found.shares if one.cause is cause)


def test_idle_time_is_the_time_with_nothing_in_flight(watch: Watch) -> None:
    """An application sends for 300 ms of each second: compare the kernel's idle time and the share of sender-idle."""
    found, seen, _ = watch(1)
    length = found.end_us - found.start_us
    idle = [share_of_time(one.in_flight, found.start_us, found.end_us, 0, 0) for one in seen.values()]
    assert len(idle) == 2
    assert found.kernel is not None
    by_kernel = (found.kernel.lifetime_us - found.kernel.busy_us) / length / len(idle)
    assert by_kernel == pytest.approx(sum(idle) / len(idle), abs=0.03)
    # sender-idle is a little longer than the time with nothing in flight: the last bytes of a burst are in flight.
    pauses = [share_of_gaps(one.new, found.start_us, found.end_us, 100_000) for one in seen.values()]
    assert share(found, Cause.SENDER_IDLE) == pytest.approx(sum(pauses) / len(pauses), abs=0.06)


def test_window_limited_time_is_the_time_with_no_room_for_a_segment(watch: Watch) -> None:
    found, seen, _ = watch(2, transport="tcp")
    (one,) = seen.values()
    # Linux sends nothing while a burst of a few segments does not fit, and calls that limited by the window.
    limited = share_of_time(one.room, found.start_us, found.end_us, -(2**40), 3 * MSS - 1)
    assert found.first is Cause.RECEIVE_WINDOW
    assert share(found, Cause.RECEIVE_WINDOW) == pytest.approx(limited, abs=0.02)


def test_retransmissions_are_those_on_the_wire_and_loss_is_named_where_they_are(watch: Watch) -> None:
    found, seen, tables = watch(6)
    own = tables["subflows"].filter(tables["subflows"]["side"] == "client")
    for (address, port, _, _), one in seen.items():
        rows = own.filter((own["local_address"] == address) & (own["local_port"] == port))
        assert one.retransmitted == rows["retransmitted_segments"].max()
    lossy = [path for path in found.paths if share_in(path.shares, Cause.LOSS_RECOVERY) > 0.2]
    assert len(lossy) == 1
    assert max(seen.values(), key=lambda one: one.retransmitted).retransmitted > 0


def test_a_late_subflow_is_as_late_as_its_handshake_on_the_wire(watch: Watch) -> None:
    found, seen, _ = watch(12)
    first, second = sorted(one.established_us for one in seen.values() if one.established_us is not None)
    length = found.end_us - found.start_us
    late = share(found, Cause.SUBFLOW_LATE) * 2 * length
    # A join may take 90 ms here (patience_us); only the time beyond that is late.
    assert late == pytest.approx(second - first, abs=150_000)
    assert late > 1_000_000


def share_in(shares: Any, cause: Cause) -> float:
    return sum(one.time for one in shares if one.cause is cause)
