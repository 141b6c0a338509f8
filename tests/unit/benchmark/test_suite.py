"""The suite: it is frozen, its drawn networks fill the ranges that it states, and an entry changes nothing else."""

from __future__ import annotations

import hashlib
import runpy
from pathlib import Path

import pytest

from plait.benchmark.suite import (
    GROUPS,
    SHA256,
    TRAFFIC,
    CellClass,
    Settings,
    cells,
    classes,
    group_of,
    scenario_of,
    suite_file,
)
from plait.scenario import load
from plait.scenario.vary.cases import expand
from plait.units import Duration, Rate, Ratio, Size

ROOT = Path(__file__).parents[3]
DRAWN = [group for group in GROUPS if "bdp" in group]
LARGEST = {"low": (25_000, 100_000), "high": (200_000, 2_000_000)}
"""The largest one-way delay and queueing delay in us."""
ROUNDING = 0.0021
"""The suite has losses in steps of 0.01 %, of 2.5 %."""


def _drawn(group: str) -> list[dict[str, dict[str, str]]]:
    networks = load(str(suite_file()), ()).model_dump(mode="json", exclude_unset=True)["vary"]["network"]
    return [links for name, links in networks.items() if group_of(name) == group]


def _factors(conditions: dict[str, str]) -> list[float]:
    """Return rate, delay, queueing delay and loss of a link as shares of their ranges."""
    rate = int(Rate.parse(conditions["rate"]))
    queueing_us = int(Size.parse(conditions["queue"])) * 8e6 / rate
    shares = [(rate / 1e6 - 0.1) / 99.9, int(Duration.parse(conditions["delay"])) / 1000, queueing_us]
    return [*shares, float(Ratio.parse(conditions["loss"])) / 0.025] if "loss" in conditions else shares


def test_the_suite_is_the_one_whose_results_are_published() -> None:
    assert hashlib.sha256(suite_file().read_bytes()).hexdigest() == SHA256


def test_the_drawing_gives_the_networks_of_the_suite() -> None:
    drawn = runpy.run_path(str(ROOT / "bench/draw_suite.py"))["drawn"]()
    assert [drawn[name] for name in drawn if group_of(name) == "high-bdp"] == [
        {link.removeprefix("network.links."): conditions for link, conditions in links.items()}
        for links in _drawn("high-bdp")
    ]


@pytest.mark.parametrize("group", DRAWN)
def test_each_twelfth_of_a_factor_has_one_network(group: str) -> None:
    """A Latin hypercube of twelve points: rate, delay and loss of each path meet each twelfth of their range once."""
    delay_us = LARGEST[group.partition("-")[0]][0]
    for link in ("network.links.one-core", "network.links.two-core"):
        points = [_factors(network[link]) for network in _drawn(group)]
        scaled = [[point[0], point[1] / delay_us, *point[3:]] for point in points]
        for shares in zip(*scaled, strict=True):
            for number, share in enumerate(sorted(shares)):
                assert number / 12 - ROUNDING <= share <= (number + 1) / 12 + ROUNDING


@pytest.mark.parametrize("group", DRAWN)
def test_queues_are_between_three_frames_and_the_stated_delay(group: str) -> None:
    queueing_us = LARGEST[group.partition("-")[0]][1]
    for network in _drawn(group):
        for conditions in network.values():
            assert int(Size.parse(conditions["queue"])) >= 3 * 1514
            assert _factors(conditions)[2] <= max(
                queueing_us * 1.001, 3 * 1514 * 8e6 / int(Rate.parse(conditions["rate"]))
            )


def test_quick_is_a_part_of_full_with_the_same_classes() -> None:
    assert set(cells("quick")) < set(cells("full"))
    assert classes("quick") == classes("full")


def test_every_traffic_and_group_is_judged() -> None:
    known = classes("full")
    assert {item.traffic for item in known} == TRAFFIC.keys()
    assert {item.group for item in known} == GROUPS.keys()
    assert CellClass("changing", "messages").metric == "message_delay_max_us"
    assert CellClass("everyday", "messages").metric == "message_delay_p95_us"


@pytest.mark.parametrize("subset", ["quick", "full"])
def test_the_scenario_of_an_entry_has_exactly_the_cells(subset: str) -> None:
    chosen = cells(subset)
    cases = expand(scenario_of(Settings(), chosen))
    assert [(case.settings["network"], case.settings["traffic"]) for case in cases] == [
        (cell.network, cell.traffic) for cell in chosen
    ]


def test_an_entry_changes_its_settings_alone() -> None:
    chosen = cells("quick")[:1]
    ours = scenario_of(Settings("blest", "lia", sysctls={"net.ipv4.tcp_sack": "0"}), chosen)
    usual = scenario_of(Settings(), chosen)
    assert (ours.mptcp.scheduler, ours.tcp.congestion_control) == ("blest", "lia")
    assert ours.model_copy(update={"mptcp": usual.mptcp, "tcp": usual.tcp, "network": usual.network}) == usual


def test_tcp_begins_on_the_path_that_is_asked_for() -> None:
    (cell, *_) = [cell for cell in cells("quick") if cell.traffic == "fairness"]
    (case, *_) = expand(scenario_of(Settings(transport="tcp", via="client-two"), (cell,)))
    flow, rival = case.scenario.traffic
    assert flow.bulk.via == "client-two"
    assert rival.bulk.via is None
