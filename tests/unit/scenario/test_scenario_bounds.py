"""plait refuses hostile scenarios within and beyond the bounds of a file with their place, and in little time."""

from __future__ import annotations

import time
import tracemalloc
from typing import TYPE_CHECKING, Any

import pytest

from plait.errors import ScenarioError
from plait.plan.identity import plan_bytes
from plait.plan.resolve import resolve
from plait.scenario import load, parse
from plait.scenario.read import library
from plait.scenario.scenario import Scenario
from plait.scenario.vary.cases import expand
from plait.scenario.vary.overrides import assign
from plait.scenario.vary.variants import MAX_PARTS, Variants
from scenario_samples import TWO, WORK_S, mistakes

if TYPE_CHECKING:
    from collections.abc import Mapping

LINKS = ("h1-s1", "s1-h2", "h1-s2", "s2-h2")
THOUSAND = ", ".join(str(i) for i in range(1000))
CHAIN = (
    f"title: t\nnetwork:\n  hosts: [{', '.join(f'host{i}' for i in range(900))}]\n  links:\n"
    + "".join(f"    host{i}-host{i + 1}: {{}}\n" for i in range(899))
    + "traffic:\n"
)
ONE_FLOW = "  - bulk: {from: host0, to: host1, duration: 1s}\n"
WRONG_ENDS = ", ".join(f"hst{i}" for i in range(1000))
HOSTILE = {
    "15 000 near misses": CHAIN
    + "".join(f"  - bulk: {{from: hst{i}, to: hst{i}x, duration: 1s}}\n" for i in range(256)),
    "wrong hosts under vary": CHAIN + ONE_FLOW + f"vary:\n  traffic.0.bulk.to: [{WRONG_ENDS}]\n",
    "links of unknown nodes": CHAIN.replace("    host", "    hst").replace("-host", "-hst") + ONE_FLOW,
    "wrong values under vary": TWO
    + "vary:\n"
    + "".join(f"  network.links.{link}.rate: [{THOUSAND}]\n" for link in LINKS),
    "a thousand programs and values": TWO
    + "programs:\n"
    + "  - {node: h1, run: x, wait: true}\n" * 256
    + f"vary:\n  programs.*.run: [{THOUSAND}]\n",
    "10^12000 cases": TWO + "vary:\n" + "".join(f"  sysctls.a{i}: [1,2,3]\n" for i in range(4000)),
    "10^12 cases by ranges": TWO + "vary:\n" + "".join(f"  seed{i}: 1..1000\n" for i in range(4000)),
    "zipped ranges": TWO + "vary:\n  zip:\n" + "".join(f"    seed{i}: 1..1000\n" for i in range(4000)),
    "a list of ranges": TWO + f"vary:\n  sample: [{'1..1000, ' * 4000}]\n",
    "256 flows in 10 000 cases": TWO
    + "  - bulk: {from: h1, to: h2, duration: 10s}\n" * 255
    + "vary:\n  sample: 10ms..1s log 100\n  network.links.*.delay: 1ms..100ms log 100\n",
    "a hypercube of 500 fields": TWO
    + "vary:\n  latin_hypercube:\n    points: 1000\n    fields:\n"
    + "".join(f"      sysctls.a{i}: 1..1000\n" for i in range(500)),
    "a thousand exclusions": TWO
    + "vary:\n  sample: 10ms..1s log 100\n  network.links.*.delay: 1ms..100ms log 100\n  exclude:\n"
    + "  - {sample: 11ms}\n" * 1000,
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_scenario_is_refused_in_little_time_and_where_it_is_wrong(text: str) -> None:
    began = time.process_time()
    reported = mistakes(text)
    assert time.process_time() - began < WORK_S
    assert 1 <= len(reported) <= 101
    assert all(mistake.line and mistake.column for mistake in reported)


def test_a_scenario_of_thousands_of_wrong_values_takes_little_memory() -> None:
    tracemalloc.start()
    mistakes(HOSTILE["256 flows in 10 000 cases"])
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 100e6


def test_a_file_that_is_too_long_is_refused_where_its_bound_is() -> None:
    (mistake,) = mistakes("title: t\n" + "# " + "x" * 600_000)
    assert (mistake.line, mistake.column) == (2, 500_001 - len("title: t\n"))


def test_cases_are_refused_by_their_parts_together_and_not_by_their_number_alone() -> None:
    flows = "  - bulk: {from: h1, to: h2, duration: 10s}\n" * 255
    varied = "vary:\n  network.links.*.delay: 1ms..100ms log 50\n  sample: 10ms..1s log "
    parts = 2 + 2 + 4 + 256
    most = MAX_PARTS // (50 * parts)
    refused = "\n".join(map(str, mistakes(f"{TWO}{flows}{varied}{most + 1}\n")))
    assert refused.startswith(
        "t.yaml:267:1: vary: all cases together have more than 120000 nodes, links, flows"
    )
    assert len(expand(parse(f"{TWO}{varied}{most + 1}\n", "t.yaml"))) == 50 * (most + 1)


def test_too_many_parts_of_generated_networks_are_foreseen_from_a_variant_of_each_size(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = []
    make = Variants.make

    def counted(self: Variants, settings: Mapping[str, Any]) -> Scenario:
        made.append(settings)
        return make(self, settings)

    text = (
        "title: t\nnetwork: {generator: n-paths, n: 2}\ntraffic: [{bulk: {from: h1, to: h2, duration: 1s}}]\n"
        "vary:\n  network.n: [2, 6]\n  sample: 10ms..1s log %d\n"
        "  tcp.congestion_control: [cubic, reno, lia, olia, balia]\n"
    )
    monkeypatch.setattr(Variants, "make", counted)
    scenario = parse(text % 900, "t.yaml")
    made.clear()
    with pytest.raises(ScenarioError, match="all cases together have more than 120000"):
        expand(scenario)
    assert len(made) == 2
    assert len(expand(parse(text % 20, "t.yaml"))) == 200


@pytest.mark.parametrize("name", library.names())
def test_a_case_that_shares_what_does_not_change_is_the_case_that_is_validated_as_a_whole(name: str) -> None:
    scenario = load(name)
    raw = scenario.model_dump(
        mode="json",
        by_alias=True,
        exclude_unset=True,
        exclude={"vary", "baseline", "judge", "figures", "labels", "published"},
    )
    for case in expand(scenario)[:4]:
        whole = scenario.model_validate(raw).model_dump(mode="json", by_alias=True, exclude_unset=True)
        for key, value in case.settings.items():
            assign(whole, Scenario.SHORTHANDS.get(key, key), value)
        alone = Scenario.model_validate(whole).attached(source=scenario.source, files=scenario.files)
        assert alone.model_dump(mode="json") == case.scenario.model_dump(mode="json")
        assert plan_bytes(resolve(alone, 1)) == plan_bytes(resolve(case.scenario, 1))
