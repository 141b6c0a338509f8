"""The drawing of a large network groups equal nodes, and no two elements overlap."""

from __future__ import annotations

import re
from itertools import combinations

import pytest

from plait.plan.resolve import resolve
from plait.report.drawing import overview
from plait.report.drawing.network import draw
from plait.report.render.theme import LIGHT
from plait.scenario import load
from plait.scenario.vary.cases import expand
from scenario_samples import plan_of
from svg_boxes import covered, size_of, ways

BOX = re.compile(r'<rect x="([\d.-]+)" y="([\d.-]+)" width="([\d.]+)" height="(\d+)" rx')
NAMES = re.compile(r'font-size="13"[^>]*>([^<]*)<')


def drawing(scenario: str, *overrides: str) -> str:
    plan = (
        plan_of(scenario, *overrides)
        if "\n" in scenario
        else resolve(expand(load(scenario, overrides))[0].scenario, 1)
    )
    return draw(plan, (), LIGHT, legend=False)


def boxes(svg: str) -> dict[str, tuple[float, float, float, float]]:
    """Return left, top, right and bottom by what is written in the box."""
    sides = [
        (float(x), float(y), float(x) + float(w), float(y) + float(h)) for x, y, w, h in BOX.findall(svg)
    ]
    return dict(zip(NAMES.findall(svg), sides, strict=True))


@pytest.mark.parametrize("scenario", ["fat-tree", "two-layer-tree", "khalili-a", "dumbbell"])
def test_no_two_boxes_of_a_large_network_overlap_and_all_are_inside(scenario: str) -> None:
    svg = drawing(
        scenario, *(["network.n=10", "network.access_delays=1ms"] if scenario == "dumbbell" else [])
    )
    drawn = boxes(svg)
    width, height = map(float, re.search(r'viewBox="0 0 (\d+) (\d+)"', svg).groups())
    assert all(0 <= a < c <= width and 0 <= b < d <= height for a, b, c, d in drawn.values())
    for box, other in combinations(drawn.values(), 2):
        assert box[2] <= other[0] or other[2] <= box[0] or box[3] <= other[1] or other[3] <= box[1]


def test_a_fat_tree_stands_in_layers_and_its_hosts_are_drawn_by_their_edge() -> None:
    drawn = boxes(drawing("fat-tree"))
    assert len(drawn) == 8 + 8 + 8 + 4
    lefts = [drawn[name][0] for name in ("p0e0h0 … p0e0h1 (2)", "p0e0", "p0a0", "c0")]
    assert lefts == sorted(set(lefts))
    assert {
        round((drawn[f"p{p}e{e}"][0] + drawn[f"p{p}e{e}"][2]) / 2) for p in range(4) for e in range(2)
    } != set()
    centres = {round((a + c) / 2) for name, (a, _, c, _) in drawn.items() if name.startswith("c")}
    assert len(centres) == 1


def test_parallel_links_are_one_line_with_their_common_label_once() -> None:
    svg = drawing("two-layer-tree")
    assert svg.count("<path") == 3 * (4 + 2 * 4)  # each with a level part at both ends
    assert svg.count("every link: 10 Mbit/s") == 1
    assert "each thick line: 9 links side by side" in svg


def test_hosts_that_differ_in_a_link_are_drawn_apart() -> None:
    drawn = boxes(drawing("khalili-a"))
    assert {"multi1 … multi10 (10)", "single1 … single10 (10)", "server1", "server2", "core", "ap"} == set(
        drawn
    )
    assert drawn["multi1 … multi10 (10)"][2] < drawn["ap"][0] < drawn["core"][0] < drawn["server1"][0]
    slow = boxes(drawing("khalili-a", "network.links.ap-multi3.delay=9ms"))
    assert "multi3" in slow
    assert "multi1 … multi10 (9)" in slow


def test_nodes_of_a_network_too_large_to_draw_are_one_box_where_they_are_alike() -> None:
    names = [f"h{i}" for i in range(60)]
    routers = [f"r{i}" for i in range(60)]
    links = ", ".join(f"h{i}-r{i}: {{rate: 1mbit}}, r{i}-m: {{rate: 2mbit}}" for i in range(60))
    svg = drawing(
        f"title: t\nnetwork: {{hosts: [{', '.join(names)}], routers: [m, {', '.join(routers)}], links: {{{links}}}}}\n"
        "traffic: [bulk: {from: h0, to: h1, duration: 1s}, bulk: {from: h1, to: h0, duration: 1s}]\n"
    )
    assert set(boxes(svg)) == {"h0 … h59 (60)", "r0 … r59 (60)", "m"}
    assert "without a number: 1 Mbit/s, queue 100 pkt (60 links)" in svg
    assert "1  2 Mbit/s, queue 100 pkt (60 links)" in svg


def test_few_nodes_are_drawn_each_with_their_paths() -> None:
    assert not overview.is_crowded(resolve(expand(load("two-paths"))[0].scenario, 1))


@pytest.mark.parametrize(("peers", "crowded"), [(8, False), (12, True)])
def test_too_many_paths_to_distinguish_give_an_overview(peers: int, crowded: bool) -> None:
    """Of 13 hosts on two switches each sends to one other over two paths: 26, by 15 nodes."""
    plan = plan_of(f"title: t\nnetwork: {{generator: swarm, n: {peers}}}\n")
    assert overview.is_crowded(plan) is crowded
    drawn = boxes(draw(plan, (), LIGHT, legend=False))
    assert (f"seeder \N{HORIZONTAL ELLIPSIS} peer{peers} ({peers + 1})" in drawn) is crowded


def ring_of(routers: int, second: int) -> str:
    """Return a ring of routers with a host at the first one and another at the one numbered `second`."""
    names = ", ".join(f"r{i}" for i in range(routers))
    links = ", ".join(f"r{i}-r{(i + 1) % routers}: {{rate: 9mbit}}" for i in range(routers))
    return (
        f"title: t\nnetwork: {{hosts: [a, b], routers: [{names}], "
        f"links: {{a-r0: {{rate: 9mbit}}, b-r{second}: {{rate: 9mbit}}, {links}}}}}\n"
        "traffic: [bulk: {from: a, to: b, duration: 1s}]\n"
    )


@pytest.mark.slow
@pytest.mark.parametrize(("routers", "second"), [(50, 25), (50, 10), (30, 15), (97, 48)])
def test_a_long_ring_goes_back_and_forth_so_that_its_names_stay_readable(routers: int, second: int) -> None:
    svg = drawing(ring_of(routers, second))
    drawn = boxes(svg)
    assert set(drawn) == {"a", "b", *(f"r{i}" for i in range(routers))}
    width, height = size_of(svg)
    assert width <= 1050
    assert all(0 <= a < c <= width and 0 <= b < d <= height for a, b, c, d in drawn.values())
    assert covered(svg) == []
    for way in ways(svg):
        assert all(0 <= x <= width and 0 <= y <= height for x, y in way.points)
