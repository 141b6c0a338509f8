"""Every combination becomes one case with a readable, unique name; repeats get their seeds."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plait.errors import ScenarioError
from plait.scenario import parse
from plait.scenario.source import Source
from plait.scenario.vary.cases import expand
from plait.seeds import trial_seed
from scenario_samples import TWO, mistakes_as_text


def names(vary: str, *overrides: str) -> list[str]:
    return [case.name for case in expand(parse(TWO + f"vary: {vary}\n", "t.yaml", overrides))]


def test_nothing_varied_is_one_case_called_default() -> None:
    (case,) = expand(parse(TWO, "t.yaml"))
    assert (case.name, case.settings) == ("default", {})


def test_cases_are_the_cross_product_in_the_order_of_the_file() -> None:
    assert names("{transport: [tcp, mptcp], network.links.*.rate: [1mbit, 2mbit]}") == [
        "transport=tcp,rate=1mbit",
        "transport=tcp,rate=2mbit",
        "transport=mptcp,rate=1mbit",
        "transport=mptcp,rate=2mbit",
    ]


def test_settings_keep_the_names_and_values_under_vary() -> None:
    cases = expand(parse(TWO + "vary: {transport: [tcp], traffic.0.bulk.count: [1, 2]}\n", "t.yaml"))
    assert [case.settings for case in cases] == [
        {"transport": "tcp", "traffic.0.bulk.count": 1},
        {"transport": "tcp", "traffic.0.bulk.count": 2},
    ]
    assert [case.scenario.traffic[0].flow.count for case in cases] == [1, 2]
    assert all(not case.scenario.vary for case in cases)


def test_shorthands_stand_for_their_fields() -> None:
    cases = expand(parse(TWO + "vary: {congestion_control: [reno], scheduler: [burst]}\n", "t.yaml"))
    assert cases[0].name == "congestion_control=reno,scheduler=burst"
    assert cases[0].scenario.tcp.congestion_control == "reno"
    assert cases[0].scenario.mptcp.scheduler == "burst"


def test_names_are_as_long_as_unique_fields_need() -> None:
    assert names(
        "{network.links.h1-s1.rate: [1mbit], network.links.h1-s2.rate: [2mbit], network.links.*.loss: [1%]}"
    ) == ["h1-s1.rate=1mbit,h1-s2.rate=2mbit,loss=1pct"]


def test_names_are_safe_and_unique_whatever_the_values() -> None:
    case_names = names(
        "{zip: {network.links.*.loss: [1%, 1 %, 2%], traffic.0.bulk.receive_buffer: [64KB, 64 KB, null]}}"
    )
    assert len(set(case_names)) == len(case_names) == 3
    for name in case_names:
        assert re.fullmatch(r"[A-Za-z0-9=,._+-]+", name)


@given(st.lists(st.text(max_size=150), min_size=1, max_size=8))
def test_any_text_makes_safe_unique_names(values: list[str]) -> None:
    scenario = parse(TWO, "t.yaml").model_copy(update={"vary": {"description": values}})
    case_names = [case.name for case in expand(scenario)]
    assert len(set(case_names)) == len(values)
    for name in case_names:
        assert re.fullmatch(r"[A-Za-z0-9=,._+-]{1,120}", name)
        assert name not in (".", "..")


def test_the_baseline_comes_first_and_must_be_a_case() -> None:
    assert names("{transport: [tcp, mptcp]}", "baseline=transport=mptcp") == [
        "transport=mptcp",
        "transport=tcp",
    ]
    wrong = mistakes_as_text(TWO + "vary: {transport: [tcp, mptcp]}\nbaseline: transport=tpc\n")
    assert wrong == "t.yaml:13:1: baseline: there is no case 'transport=tpc'; did you mean 'transport=tcp'?"


def test_values_that_fit_alone_but_not_together_are_refused() -> None:
    wrong = mistakes_as_text(
        TWO + "vary: {network.links.h1-s1.delay: [1ms, 9ms], network.links.h1-s1.jitter: [0ms, 5ms]}\n"
    )
    assert "network.links.h1-s1.jitter: the jitter is greater than the delay" in wrong


def test_too_many_cases_are_refused_before_they_are_made() -> None:
    counts = "[" + ", ".join(str(n) for n in range(1, 251)) + "]"
    limits = "mptcp.limits.h1.subflows: [1, 2, 3, 4, 5, 6, 7, 8]"
    losses = "network.links.*.loss: [1%, 2%, 3%]"
    varied = f"{{traffic.0.bulk.count: {counts}, {limits}, transport: [tcp, mptcp], {losses}}}"
    assert "vary leads to 12000 cases, and a study has at most 10000" in mistakes_as_text(
        TWO + f"vary: {varied}\n"
    )


def test_a_scenario_made_in_python_is_refused_without_a_place() -> None:
    scenario = (
        parse(TWO, "t.yaml")
        .attached(source=Source(""))
        .model_copy(update={"vary": {"network.links.*.rate": ["slow"]}})
    )
    with pytest.raises(ScenarioError) as caught:
        expand(scenario)
    assert str(caught.value).startswith(
        "vary.network.links.*.rate.0: network.links.h1-s1.rate: 'slow' is not a rate"
    )


def test_seeds_of_repeats_differ_are_small_and_never_change() -> None:
    seeds = [trial_seed(1, repeat) for repeat in range(1000)]
    assert len(set(seeds)) == 1000
    assert max(seeds) < 2**53
    assert trial_seed(1, 0) != trial_seed(2, 0)
    assert seeds[0] == 330221839262838  # results that people have published hang on it


@pytest.mark.parametrize(
    ("vary", "override", "cases"),
    [
        (
            "{transport: [tcp, mptcp]}",
            "network.links.*.rate=[1mbit, 2mbit]",
            "transport=tcp,rate=1mbit transport=tcp,rate=2mbit transport=mptcp,rate=1mbit transport=mptcp,rate=2mbit",
        ),
        ("{h1-s1.rate: [8mbit]}", "network.links.h1-s1.rate=[1mbit, 2mbit]", "rate=1mbit rate=2mbit"),
        ("{scheduler: [burst]}", "mptcp.scheduler=[default, burst]", "scheduler=default scheduler=burst"),
        (
            "{zip: {h1-s1.rate: [8mbit, 9mbit]}}",
            "zip.network.links.h1-s1.delay=[1ms, 2ms]",
            "rate=8mbit,delay=1ms rate=9mbit,delay=2ms",
        ),
        ("{net: {a: {h1-s1.rate: 1mbit}}}", "net.a.h1-s1.delay=5ms", "net=a"),
        ("{net: {a: {h1-s1.rate: 1mbit}}}", "net.b={h1-s1.rate: 2mbit}", "net=a net=b"),
        ("{transport: [tcp]}", "transport.0=mptcp", "transport=mptcp"),
    ],
)
def test_an_override_adds_a_factor_or_replaces_its_values(vary: str, override: str, cases: str) -> None:
    assert names(vary, f"vary.{override}") == cases.split()
