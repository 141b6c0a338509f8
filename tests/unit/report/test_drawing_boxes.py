"""The drawing of the network: nothing covers anything, all conditions are shown, and large networks are legible."""

from __future__ import annotations

import random
import re

import pytest

from plait.analysis.series import TrialSeries
from plait.plan.resolve import resolve
from plait.report.drawing import overview
from plait.report.drawing.layout import distinct_paths
from plait.report.drawing.link_labels import LinkLabels
from plait.report.drawing.network import DrawnPath, coloured_paths, draw
from plait.report.render.theme import LIGHT
from plait.scenario import load
from plait.scenario.vary.cases import expand
from scenario_samples import ISLANDS, MESH, TWO, plan_of
from svg_boxes import clipped, covered, text_boxes

EVERYTHING = """\
title: Every condition
network:
  hosts:
    phone: {}
    server: {bucket: {baseline: 100mbit, burst: 20MB, peak: 900mbit}}
  routers: {wifi: {}, lte: {nat: [lte-server]}}
  links:
    phone-wifi:
      rate: 50mbit
      delay: 5ms
      jitter: {deviation: 1ms}
      loss: {ratio: 0.5%, burst: 4pkt}
      queue: 200pkt
      aqm: fq_codel
    wifi-server: {rate: 1gbit, delay: 8ms, bucket: {baseline: 100mbit, burst: 20MB}, mtu: 1400}
    phone-lte:
      delay: 25ms
      forward: {rate: 10mbit, jitter: 8ms, queue: 64KB, reorder: 1%, duplicate: 0.1%}
      backward: {rate: 30mbit, loss: 0.2%, queue: 400pkt, corrupt: 0.01%}
    lte-server: {rate: 1gbit, delay: 8ms, queue: 1000pkt, mtu: 1400, middlebox: {strip: [syn]}}
traffic:
  - bulk: {from: phone, to: server, duration: 5s}
"""
SHIPPED = (
    *("two-paths", "two-wans", "wifi-cellular", "behind-nat", "request-response", "sigmoid-delays", "source-flapping"),
    *("topology-a", "khalili-b", "shared-bottleneck", "swarm", "wireless-wired", "bittorrent", "fat-tree"),
)  # fmt: skip


def random_graph() -> str:
    """40 hosts at 60 routers, of links that differ."""
    source = random.Random(3)
    links = [f"r{i}-r{source.randrange(i)}" for i in range(1, 60)]
    links += [f"h{i}-r{source.randrange(60)}" for i in range(40)]
    kinds = ", ".join(
        f"{link}: {{rate: {source.choice((10, 50))}mbit, delay: {source.choice((1, 5))}ms}}" for link in links
    )
    names = ", ".join(f"h{i}" for i in range(40)), ", ".join(f"r{i}" for i in range(60))
    return (
        f"title: t\nnetwork: {{hosts: [{names[0]}], routers: [{names[1]}], links: {{{kinds}}}}}\n"
        "traffic: [bulk: {from: h0, to: h1, duration: 1s}]\n"
    )


def drawn(scenario: str, *overrides: str) -> str:
    plan = (
        plan_of(scenario, *overrides)
        if "\n" in scenario
        else resolve(expand(load(scenario, overrides))[0].scenario, 1)
    )
    paths = [DrawnPath(path.forward, "#0072b2", path.name, "") for _, path in distinct_paths(plan)]
    return draw(plan, [] if overview.is_crowded(plan) else paths, LIGHT, legend=True)


def test_the_legend_has_the_initial_rate_of_a_path_that_an_event_changes() -> None:
    plan = plan_of(TWO, "events=[{at: 5s, set: {h1-s1: {rate: 1mbit}}}]")
    facts = [path.facts for path in coloured_paths(plan, TrialSeries(0, 0, (), (), 0), LIGHT)]
    assert facts == ["initially 5 Mbit/s, base RTT 20 ms", "5 Mbit/s, base RTT 20 ms"]


def test_the_legend_has_samples_of_colours_only_where_they_tell_paths_apart() -> None:
    samples = {}
    for count in (1, 2):
        plan = plan_of(TWO, f"traffic={[{'bulk': {'from': 'h1', 'to': 'h2', 'duration': '5s'}}] * count}")
        paths = coloured_paths(plan, TrialSeries(0, 0, (), (), 0), LIGHT)
        below = draw(plan, paths, LIGHT, legend=True).partition(f"{paths[0].label}: ")[2]
        assert all(f"{path.label}: {path.facts}" in draw(plan, paths, LIGHT, legend=True) for path in paths)
        samples[count] = below.count('stroke="')
    assert samples == {1: 1, 2: 0}


@pytest.mark.parametrize("scenario", SHIPPED)
def test_nothing_covers_anything_in_networks_of_shipped_scenarios(scenario: str) -> None:
    svg = drawn(scenario)
    assert covered(svg) == []
    assert clipped(svg) == []


@pytest.mark.parametrize(
    "scenario", [EVERYTHING, MESH, ISLANDS, random_graph()], ids=["all", "mesh", "islands", "random"]
)
def test_nothing_covers_anything_in_other_networks(scenario: str) -> None:
    svg = drawn(scenario)
    assert covered(svg) == []
    assert clipped(svg) == []


def test_the_check_of_covered_things_sees_a_label_on_a_link() -> None:
    svg = drawn("two-paths")
    label = next(box for box in text_boxes(svg) if "Mbit/s" in box.text)
    middle = (label.top + label.bottom) / 2
    line = f'<path d="M0 {middle}L{label.left + 5} {middle}" fill="none" stroke="#000" stroke-width="2" />'
    assert f"a link covers '{label.text}'" in covered(svg.replace("</svg>", f"{line}</svg>"))


def test_every_condition_is_in_the_drawing_and_each_direction_has_its_own() -> None:
    texts = [box.text for box in text_boxes(drawn(EVERYTHING))]
    whole = " ".join(texts)
    for words in (
        "50 Mbit/s", "5 ms with 1 ms of normal jitter", "0.5 % loss in bursts of 4", "queue 200 pkt fq_codel",
        "bucket 20 MB at 100 Mbit/s", "MTU 1400", "strips MPTCP options", "lte: NAT towards server",
        "server out: 900 Mbit/s while its token bucket of 20 MB lasts, then 100 Mbit/s",
    ):  # fmt: skip
        assert words in whole, words
    ahead = next(number for number, text in enumerate(texts) if text.startswith("→ 10 Mbit/s, 25 ± 8 ms"))
    back = next(number for number, text in enumerate(texts) if text.startswith("← 30 Mbit/s, 25 ms"))
    forward, backward = " ".join(texts[ahead:back]), " ".join(texts[back : back + 3])
    assert all(words in forward for words in ("queue 64 kB", "1 % reordered", "0.1 % duplicated"))
    assert all(words in backward for words in ("0.2 % loss", "queue 400 pkt", "0.01 % corrupted"))
    assert "corrupted" not in forward


def test_the_arrow_of_a_direction_points_where_it_goes_in_the_drawing() -> None:
    """A link from the right to the left, such as that of the server to the router, has its first direction backward."""
    turned = EVERYTHING.replace("phone-lte:", "lte-phone:")
    texts = [box.text for box in text_boxes(drawn(turned))]
    assert any(text.startswith("← 10 Mbit/s") for text in texts)
    assert any(text.startswith("→ 30 Mbit/s") for text in texts)


def test_a_link_without_room_for_its_label_has_a_number_and_a_row_below() -> None:
    svg = drawn("source-flapping")
    assert "2 client-server#3: 10 Mbit/s, 278.5 ms, queue 460 pkt" in re.sub(r"\s+", " ", svg)
    assert svg.count("<circle") == 3


def test_conditions_of_both_directions_make_one_text() -> None:
    plan = plan_of(EVERYTHING)
    labels = LinkLabels(plan)
    lte = next(link for link in plan.links if link.name == "phone-lte")
    assert labels.label(lte) == (
        "phone->lte: 10 Mbit/s, 25 ± 8 ms, queue 64 kB, 1 % reordered, 0.1 % duplicated; "
        "lte->phone: 30 Mbit/s, 25 ms, 0.2 % loss, queue 400 pkt, 0.01 % corrupted"
    )
    assert (
        labels.direction(lte.directions[1]) == "30 Mbit/s, 25 ms, 0.2 % loss, queue 400 pkt, 0.01 % corrupted"
    )


def test_a_large_symmetric_network_is_drawn_as_its_groups() -> None:
    svg = drawn("fat-tree", "network.k=8")
    assert covered(svg) == []
    texts = [box.text for box in text_boxes(svg)]
    assert {"p0e0h0 … p7e3h3 (128)", "p0e0 … p7e3 (32)", "p0a0 … p7a3 (32)", "c0 … c15 (16)"} <= set(texts)
    assert "128 links: 4 at each of p0a0 … p7a3 (32) and 8 at each of c0 … c15 (16)" in texts


def test_a_large_network_without_order_is_summarised_and_counts_what_it_leaves_out() -> None:
    texts = [box.text for box in text_boxes(drawn(random_graph()))]
    assert texts[0].startswith("40 hosts, 60 routers; 99 links, 1 flow: too many to draw")
    assert "rates: 10 Mbit/s to 50 Mbit/s" in texts
    assert "delays: 1 ms to 5 ms" in texts
    counted = sum(int(text.split()[0]) for text in texts if re.match(r"\d+ links?\b", text))
    assert counted == 99
