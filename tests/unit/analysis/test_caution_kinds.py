"""Cautions are grouped by kind and ranked by what they do to the conclusion."""

from __future__ import annotations

import errno

from fake_plans import FakeFlow, FakePath, fake_plan
from fake_tables import make_tables
from plait.analysis.cautions.mptcp import findings
from plait.cautions import Caution, by_kind, ranked

ROUND_TRIP_US = 20_000
PATIENCE_US = 2 * ROUND_TRIP_US + 3 * 200_000 + 20_000
"""Two round trips of the initial path, three of the joined one, and 20 ms for timers."""


def caution(code: str, message: str, trials: float = 0) -> Caution:
    return Caution(code=code, message=message, figures={"trials": trials} if trials else {})


def test_the_kind_that_harms_the_conclusion_most_is_first_and_its_widest_example_stands_for_it() -> None:
    mixed = [
        caution("INTERVAL_WIDE", "wide"),
        caution("queue", "short queue"),
        caution("IDLE_PATH", "a", 1),
        caution("IDLE_PATH", "b", 4),
        caution("IDLE_PATH", "b", 4),
        caution("NEW_CODE", "of a later version"),
        caution("FELL_BACK", "tcp"),
        caution("FIGURE_EMPTY", "no figure"),
    ]
    kinds = by_kind(mixed)
    assert [kind[0].code for kind in kinds] == [
        "FIGURE_EMPTY",
        "FELL_BACK",
        "IDLE_PATH",
        "queue",
        "INTERVAL_WIDE",
        "NEW_CODE",
    ]
    assert [kind[0].is_loud for kind in kinds] == [True, True, False, False, False, False]
    assert kinds[2][0].message == "b"
    assert [other.message for other in kinds[2][1:]] == ["a"]
    assert [listed.message for listed in ranked(mixed)][2:4] == ["b", "a"]
    assert by_kind([]) == ()


def test_an_announcement_is_unused_only_if_the_connection_lasted_long_enough_to_join() -> None:
    plan = fake_plan(FakeFlow(), paths=(FakePath(), FakePath(delay_ns=50_000_000)))
    announced = {"flow": 0, "node": "h1", "event": "announced", "remote_address": "10.0.1.2", "t_us": 40_000}

    def codes(lasted_us: int) -> list[str]:
        flow = {
            "flow": 0,
            "completed": True,
            "fallback": False,
            "connected_us": 20_000,
            "end_us": 20_000 + lasted_us,
        }
        return [seen.code for seen in findings(plan, make_tables({"flows": [flow], "events": [announced]}))]

    assert codes(PATIENCE_US - 1) == []
    assert codes(PATIENCE_US) == ["ADD_ADDR_UNUSED"]


def test_an_announcement_of_an_address_without_a_route_is_no_caution() -> None:
    plan = fake_plan(FakeFlow(), paths=(FakePath(), FakePath()))
    flow = {"flow": 0, "completed": True, "fallback": False, "connected_us": 0, "end_us": 60_000_000}

    def codes(address: str) -> list[str]:
        announced = {"flow": 0, "node": "h1", "event": "announced", "remote_address": address, "t_us": 40_000}
        return [seen.code for seen in findings(plan, make_tables({"flows": [flow], "events": [announced]}))]

    assert codes("10.0.1.2") == ["ADD_ADDR_UNUSED"]
    assert codes("10.7.0.2") == []


def test_a_join_without_an_answer_is_not_refused() -> None:
    plan = fake_plan(FakeFlow(), paths=(FakePath(), FakePath()))
    flow = {"flow": 0, "completed": True, "fallback": False, "connected_us": 0, "end_us": 60_000_000}

    def codes(error: int | None) -> list[str]:
        closed = {
            "flow": 0,
            "node": "h1",
            "event": "sub_closed",
            "remote_address": "10.0.1.2",
            "error": error,
        }
        closed |= {"local_address": "10.0.1.1", "t_us": 3_000_000}
        return [seen.code for seen in findings(plan, make_tables({"flows": [flow], "events": [closed]}))]

    assert codes(errno.EHOSTUNREACH) == codes(errno.ETIMEDOUT) == ["JOIN_UNANSWERED"]
    assert codes(errno.ECONNREFUSED) == codes(None) == ["JOIN_REFUSED"]
