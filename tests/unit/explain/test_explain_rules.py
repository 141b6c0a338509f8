"""An explanation reports no effect within the spread, and the reference documents every cause."""

from __future__ import annotations

import random
import re
from pathlib import Path
from textwrap import dedent

import numpy as np
import polars as pl
import pytest

import plait
from fake_plans import fake_plan
from fake_tables import fake_tables
from plait.explain import CAUSES, Cause, explain_trial
from plait.explain.effect import effect
from plait.explain.facts import _unsent
from plait.explain.unrestricted_paths import unrestricted_paths_of_case
from plait.plan.network.sysctls import tcp_memory
from plait.plan.resolve import resolve
from plait.scenario import parse
from plait.scenario.vary.cases import expand

REFERENCE = Path(__file__).parents[3] / "docs" / "reference" / "explain.md"


def effect_of(before: list[float], after: list[float]) -> str:
    return effect("it", (), None, dict(enumerate(before)), dict(enumerate(after))).verdict


def test_an_effect_needs_to_exceed_the_spread_over_seeds() -> None:
    assert effect_of([10e6, 10.2e6, 9.8e6], [20e6, 20.1e6, 19.9e6]) == "faster"
    assert effect_of([20e6, 20.1e6, 19.9e6], [10e6, 10.2e6, 9.8e6]) == "slower"
    # Every pair gains 1, and the seeds differ by far more: the interval is narrow, and nothing is claimed.
    assert effect_of([10e6, 20e6, 30e6], [11e6, 21e6, 31e6]) == "no effect seen"
    assert effect_of([10e6, 10e6, 10e6], [10.05e6, 10.05e6, 10.05e6]) == "no effect seen"
    assert effect_of([10e6], [20e6]) == "no effect seen", "one seed has no spread to judge by"
    assert effect("it", (), None, {1: 1e6}, {2: 2e6}).verdict == "not measured"


def test_chance_alone_is_rarely_reported_as_an_effect() -> None:
    """Both sides come from the same distribution: at most 5 % may be reported, as for the interval alone."""
    draw = random.Random(1)
    reported = sum(
        effect_of([draw.gauss(10e6, 1e6) for _ in range(5)], [draw.gauss(10e6, 1e6) for _ in range(5)])
        != "no effect seen"
        for _ in range(1000)
    )
    assert reported <= 50


def test_every_cause_has_a_text_and_a_row_in_the_reference() -> None:
    assert set(CAUSES) > set(Cause)
    text = REFERENCE.read_text(encoding="utf-8")
    assert set(re.findall(r"^\| `([a-z-]+)` \| ", text, flags=re.MULTILINE)) >= set(CAUSES)
    for cause in set(CAUSES) - {Cause.AT_CAPACITY, Cause.ON_TIME}:
        assert f"**{cause}**" in text, "how it can mislead"


def test_a_cause_with_a_rule_is_one_file() -> None:
    """The registry finds it: no other module of plait names it, but for the trials that tests explain."""
    source = Path(plait.__file__).parent
    modules = {
        str(module.relative_to(source))
        for module in source.rglob("*.py")
        if '"reordering"' in module.read_text(encoding="utf-8") and module.parent.name != "testing"
    }
    assert modules == {"explain/causes/losses.py"}


def test_every_cause_that_a_field_can_remove_has_a_remedy() -> None:
    """How fast a program reads its socket, and what buffer it asks for, is in no field."""
    nothing_to_set = {Cause.AT_CAPACITY, Cause.ON_TIME, Cause.NOT_KNOWN, Cause.SOCKET_BUFFER}
    assert {cause for cause, kind in CAUSES.items() if kind.change is None} == nothing_to_set


def test_tables_without_the_kernels_accounting_are_explained_all_the_same() -> None:
    plan = fake_plan()
    for explanation in explain_trial(plan, fake_tables(plan)):
        assert sum(share.time for share in explanation.shares) == pytest.approx(1)
        assert explanation.kernel is None


def test_a_trial_without_samples_is_not_explained() -> None:
    plan = fake_plan()
    tables = {name: frame.clear() for name, frame in fake_tables(plan).items()}
    assert explain_trial(plan, tables) == ()


def test_tcp_memory_is_what_linux_derives_at_boot() -> None:
    """1/16 of the pages is pressure, three quarters of that is no pressure, and twice the latter is the most."""
    assert tcp_memory(256 * 2**20) == "3072 4096 6144"
    assert tcp_memory(4 * 2**30) == "49152 65536 98304"


def test_a_scenario_that_changes_endpoints_explains_what_it_leaves_out() -> None:
    """study.json keeps the scenario with its defaults, so each list of an event may be empty there."""
    text = dedent("""\
        title: An endpoint added later
        network: {hosts: [a, b], links: {a-b: {rate: 10mbit}, a-b#2: {rate: 10mbit}}}
        mptcp: {endpoints: {a: []}}
        traffic: [{bulk: {from: a, to: b, duration: 2s}}]
        events: [{at: 1s, endpoints: {a: {add: {link: a-b#2, flags: [subflow]}}}}]
        """)
    scenario = parse(text, "later.yaml", ())
    (case,) = expand(scenario)
    kept = scenario.model_dump(mode="json", exclude_none=True)
    assert unrestricted_paths_of_case(kept, case.name, resolve(case.scenario, 1)) == {}


def test_the_data_fin_is_no_data_that_the_scheduler_holds_back() -> None:
    """MPTCP counts it as one unsent byte until it leaves, which is after all data."""
    samples = pl.DataFrame({"t_us": [0, 10, 20, 30], "unsent_bytes": [5000, 1, 0, 2]})
    assert list(_unsent(samples, np.array([0.0, 10.0, 20.0, 30.0]))) == [5000, 0, 0, 2]
