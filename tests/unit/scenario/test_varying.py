"""`vary` accepts ranges, zipped rows, explicit cases, hypercubes and exclusions, and plait locates mistakes in them."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plait.errors import ScenarioError
from plait.plan.resolve import resolve
from plait.scenario import Scenario, load, parse
from plait.scenario.vary.cases import Case, expand
from plait.scenario.vary.ranges import read_range
from plait.scenario.vary.text import strata
from plait.units import Rate
from scenario_samples import TWO, mistakes_as_text


def cases(vary: str) -> list[Case]:
    return expand(parse(TWO + f"vary:\n{vary}", "t.yaml"))


def test_kernels_vary_by_name_although_a_version_looks_like_a_number() -> None:
    varied = cases("  kernel: [6.12, patched, '6.10']")
    assert [case.name for case in varied] == ["kernel=6.12", "kernel=patched", "kernel=6.10"]
    assert [case.scenario.kernel for case in varied] == ["6.12", "patched", "6.10"]
    assert varied[0].settings == {"kernel": "6.12"}


def test_a_version_that_yaml_shortens_is_refused_with_its_place() -> None:
    text = mistakes_as_text(TWO + "vary:\n  kernel: [6.12, 6.10]")
    assert "vary.kernel.1" in text
    assert "without quotes 6.10 is the number 6.1; write '6.10'" in text


def points(text: str) -> list[int | float | str]:
    return read_range(text).points()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1mbit..1gbit log 4", ["1mbit", "10mbit", "100mbit", "1gbit"]),
        ("1mbit..10mbit log 3", ["1mbit", "3.16mbit", "10mbit"]),
        ("10ms..100ms 4", ["10ms", "40ms", "70ms", "100ms"]),
        ("10ms .. 100ms linear 3", ["10ms", "55ms", "100ms"]),
        ("500us..2ms step 500us", ["500us", "1ms", "1.5ms", "2ms"]),
        ("0%..5% 3", ["0%", "2.5%", "5%"]),
        ("64KiB..4MiB log 4", ["64KiB", "256KiB", "1MiB", "4MiB"]),
        ("100pkt..300pkt step 100pkt", ["100pkt", "200pkt", "300pkt"]),
        ("1..4", [1, 2, 3, 4]),
        ("1..100 log 3", [1, 10, 100]),
        ("10pkt..200pkt log 3", ["10pkt", "45pkt", "200pkt"]),
        ("8B..128B log 4", ["8B", "20B", "51B", "128B"]),
        ("0.5..2 log 3", [0.5, 1, 2]),
        ("1000mbit..1001mbit 3", ["1000mbit", "1000.5mbit", "1001mbit"]),
    ],
)
def test_ranges_are_the_values_that_they_say(text: str, expected: list[object]) -> None:
    assert points(text) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1mbit..10mbit", "the range has no number of values; write for example 1mbit..1gbit log 10"),
        ("10mbit..1mbit 3", "does not ascend; write the smaller end first"),
        ("0ms..10ms log 3", "a logarithmic range cannot start at zero"),
        ("1mbit..10ms 3", "mixes units"),
        ("1..10mbit 3", "mixes units"),
        ("1mbit..10mbit 1", "the range has 1 values; write 2 to 1000"),
        ("1..1000000", "the range has 1000000 values"),
        ("1ms..1s step 0ms", "a step of zero never ends"),
        ("1..3 9", "between 1 and 3 are fewer than 9 whole numbers"),
        ("1mbit..10mbit about 3", "is not a range; write for example 1mbit..1gbit log 10"),
    ],
)
def test_what_is_no_range_is_refused_with_its_place(text: str, message: str) -> None:
    report = mistakes_as_text(TWO + f"vary:\n  network.links.*.rate: {text}\n")
    assert report.startswith("t.yaml:13:3: vary.network.links.*.rate: ")
    assert message in report


@given(st.integers(1, 999), st.integers(1, 999), st.integers(2, 50), st.booleans())
def test_points_of_any_range_rise_from_end_to_end(low: int, more: int, count: int, log: bool) -> None:
    text = f"{low}kbit..{low + more}mbit {'log ' * log}{count}"
    values = [int(Rate.parse(value)) for value in points(text)]
    assert (values[0], values[-1], len(values)) == (low * 1000, (low + more) * 10**6, count)
    assert all(a < b for a, b in pairwise(values))


def test_a_range_is_crossed_like_a_list_and_may_stand_in_one() -> None:
    names = cases("  transport: [tcp, mptcp]\n  network.links.*.delay: [1ms, 10ms..30ms step 10ms]\n")
    assert [case.name for case in names[:5]] == [
        "transport=tcp,delay=1ms",
        "transport=tcp,delay=10ms",
        "transport=tcp,delay=20ms",
        "transport=tcp,delay=30ms",
        "transport=mptcp,delay=1ms",
    ]
    assert names[1].settings == {"transport": "tcp", "network.links.*.delay": "10ms"}


def test_zipped_fields_change_together_and_are_crossed_with_the_rest() -> None:
    names = cases(
        "  zip: {network.links.h1-s1.rate: 1mbit..3mbit step 1mbit, network.links.h1-s2.rate: [9mbit, 8mbit, 7mbit]}\n"
        "  transport: [tcp, mptcp]\n"
    )
    assert [case.name for case in names] == [
        f"h1-s1.rate={a}mbit,h1-s2.rate={b}mbit,transport={t}"
        for a, b in ((1, 9), (2, 8), (3, 7))
        for t in ("tcp", "mptcp")
    ]


def test_explicit_cases_need_not_set_the_same_fields() -> None:
    names = cases("  cases: [{transport: tcp}, {transport: mptcp, scheduler: burst}]\n")
    assert [case.name for case in names] == ["transport=tcp", "transport=mptcp,scheduler=burst"]
    assert [case.scenario.mptcp.scheduler for case in names] == ["default", "burst"]


def test_a_set_value_that_every_case_replaces_is_refused_with_what_would_work() -> None:
    def parsed(vary: str, *options: str) -> Scenario:
        return parse(f"{TWO}vary:\n{vary}", "t.yaml", options)

    rates = "[1mbit, 2mbit]"
    for vary, option, name in (
        ("  transport: [tcp, mptcp]\n", "transport=tcp", r"vary\.transport .* vary\.transport=\[tcp\]"),
        ("  scheduler: [default, burst]\n", "mptcp.scheduler=burst", r"vary\.scheduler .*=\[burst\]"),
        (f"  network.links.*.rate: {rates}\n", "network.links.h1-s1.rate=9mbit", r"vary\.network"),
        (
            f"  zip: {{transport: [tcp, mptcp], h1-s1.rate: {rates}}}\n",
            "transport=tcp",
            r"vary\.zip\.transport",
        ),
    ):
        with pytest.raises(
            ScenarioError, match=rf"--set {re.escape(option)}: it has no effect, because {name}"
        ):
            parsed(vary, option)
    parsed(f"  h1-s1.rate: {rates}\n", "network.links.*.rate=9mbit")
    names = [case.name for case in expand(parsed("  transport: [tcp, mptcp]\n", "vary.transport=[tcp]"))]
    assert names == ["transport=tcp"]
    parsed("  cases: [{transport: tcp}, {network.links.h1-s1.rate: 2mbit}]\n", "transport=tcp")
    parsed("  transport: [tcp, mptcp]\n", "transport=tcp", "vary={network.links.h1-s1.rate: [1mbit, 2mbit]}")


def test_exclusions_leave_out_what_has_all_their_values() -> None:
    names = cases(
        "  transport: [tcp, mptcp]\n  network.links.*.rate: [1mbit, 2mbit, 3mbit]\n"
        "  exclude: [{transport: tcp, network.links.*.rate: [2 mbit, 3mbit]}]\n"
    )
    assert [case.name for case in names] == [
        "transport=tcp,rate=1mbit",
        *(f"transport=mptcp,rate={n}mbit" for n in (1, 2, 3)),
    ]


HYPERCUBE = """\
  transport: [tcp, mptcp]
  latin_hypercube:
    points: 20
    seed: {seed}
    fields:
      network.links.h1-s1.rate: 1mbit..101mbit
      network.links.h1-s2.delay: 1ms..1000ms log
      scheduler: [default, burst]
      traffic.0.bulk.count: 1..4
      network.links.h1-s1.queue: 10pkt..1000pkt log
"""


def test_a_hypercube_has_one_point_in_each_stratum_of_each_field() -> None:
    expanded = cases(HYPERCUBE.format(seed=1))
    assert len(expanded) == 40
    assert [case.settings["transport"] for case in expanded] == ["tcp"] * 20 + ["mptcp"] * 20
    first = [case.settings for case in expanded[:20]]
    assert [{**case.settings, "transport": "tcp"} for case in expanded[20:]] == first
    rates = sorted(int(Rate.parse(settings["network.links.h1-s1.rate"])) for settings in first)
    for stratum, rate in enumerate(rates):
        assert 1e6 + 5e6 * stratum <= rate * 1.001
        assert rate * 0.999 <= 1e6 + 5e6 * (stratum + 1)
    assert [settings["scheduler"] for settings in first].count("burst") == 10
    counts = [settings["traffic.0.bulk.count"] for settings in first]
    assert {n: counts.count(n) for n in counts} == {1: 5, 2: 5, 3: 5, 4: 5}
    queues = [int(settings["network.links.h1-s1.queue"].removesuffix("pkt")) for settings in first]
    assert sum(queue <= 100 for queue in queues) == 10, "half of them in each decade"


def test_a_hypercube_is_its_seeds() -> None:
    first, again, other = (
        [case.settings for case in cases(HYPERCUBE.format(seed=seed))] for seed in (1, 1, 2)
    )
    assert first == again != other


@pytest.mark.parametrize(
    ("vary", "message"),
    [
        (
            "  zip: {transport: [tcp, mptcp], scheduler: [default]}",
            "vary.zip: fields of a zip need equal numbers of values",
        ),
        ("  zip: [1]", "vary.zip: this list is not a mapping"),
        ("  cases: {transport: tcp}", "vary.cases: a mapping is not a list"),
        (
            "  cases: [{transport: udp}]",
            "t.yaml:13:12: vary.cases.0.transport: transport: 'udp' is not a valid value",
        ),
        ("  zip: {transport: [udp]}", "vary.zip.transport.0: transport: 'udp' is not a valid value"),
        ("  transport: tcp", "vary.transport: 'tcp' is not a list; write [a, b], or a range"),
        ("  transport: [tcp]\n  zip: {transport: [tcp]}", "'transport' varies under vary itself already"),
        (
            "  transport: [tcp]\n  exclude: [{transport: mptcp}]",
            "vary.exclude.0: no case has transport=mptcp",
        ),
        ("  transport: [tcp]\n  exclude: [{transport: tcp}]", "vary.exclude: exclude removes every case"),
        (
            "  transport: [tcp]\n  exclude: [{scheduler: burst}]",
            "'scheduler' does not vary, so it excludes nothing",
        ),
        (
            "  latin_hypercube: {points: 1, fields: {transport: [tcp]}}",
            "points: this is not a number of points",
        ),
        ("  latin_hypercube: {points: 4}", "vary.latin_hypercube.fields: nothing is not a mapping"),
        ("  latin_hypercube: {points: 4, fields: {network.links.*.rate: 1..2mbit}}", "mixes units"),
        (
            "  latin_hypercube: {points: 4, fields: {network.links.*.rate: 1mbit..9mbit 3}}",
            "points sets the number of values",
        ),
        (
            "  latin_hypercube: {points: 4, fields: {network.links.*.rate: 1ms..9ms}}",
            "'ms' is not a unit of a rate",
        ),
        ("  latin_hypercube: {point: 4}", "vary.latin_hypercube.point: there is no such field here"),
        ("  zip: {cases: [1]}", "'cases' is not a field; write it directly under vary"),
        (
            "  network.links.*.rate: 1bit..1mbit 3",
            "vary.network.links.*.rate.0: network.links.h1-s1.rate: '1bit'",
        ),
    ],
)
def test_mistakes_under_vary_are_reported_at_their_place(vary: str, message: str) -> None:
    assert message in mistakes_as_text(TWO + f"vary:\n{vary}\n")


NETWORKS = """  network:
    slow: {h1-s1.rate: 2mbit, network.links.h1-s2.rate: 4mbit}
    fast-1: {h1-s1.rate: 20mbit, network.links.h1-s2.rate: 40mbit, scheduler: bpf_rr}
    as-is: {}
  transport: [tcp, mptcp]
"""


def test_a_named_factor_is_one_setting_with_one_word_a_level() -> None:
    varied = cases(NETWORKS)
    assert [case.name for case in varied] == [
        f"network={level},transport={transport}"
        for level in ("slow", "fast-1", "as-is")
        for transport in ("tcp", "mptcp")
    ]
    assert varied[0].settings == {"network": "slow", "transport": "tcp"}
    rates = [str(case.scenario.network.links["h1-s2"].rate) for case in varied[::2]]
    assert rates == ["4mbit", "40mbit", str(parse(TWO, "t.yaml").network.links["h1-s2"].rate)]
    assert [case.scenario.mptcp.scheduler for case in varied[::2]] == ["default", "bpf_rr", "default"]
    place = varied[0].place(("network", "links", "h1-s1", "rate"))
    assert place == ("vary", "network", "slow", "h1-s1.rate")


def test_an_exclusion_and_published_values_name_the_levels_of_a_named_factor() -> None:
    names = [case.name for case in cases(f"{NETWORKS}  exclude: [{{network: as-is, transport: tcp}}]\n")]
    assert "network=as-is,transport=tcp" not in names
    assert len(names) == 5
    assert "'h1-s1.rate' does not vary" in mistakes_as_text(
        f"{TWO}vary:\n{NETWORKS}  exclude: [{{h1-s1.rate: 2mbit}}]\n"
    )


@pytest.mark.parametrize(
    ("vary", "message"),
    [
        ("network: {a: {h1-s9.rate: 1mbit}}", "vary.network.a.h1-s9.rate: network.links has no 'h1-s9'"),
        ("network: {a: {h1-s1.rate: 1mbt}}", "vary.network.a.h1-s1.rate: network.links.h1-s1.rate: "),
        ("network: {a: {title: x}}", "'title' belongs to the whole study"),
        ("network: {'a b': {h1-s1.rate: 1mbit}}", "'a b' is not one word"),
        ("network: {a: [1mbit]}", "vary.network.a: this list is not a mapping from fields to values"),
        ("network: {a: {h1-s1.rate: 1mbit}, b: {h1-s1.rate: 1mbit}}", "the level sets the same as a"),
        ("scheduler: {a: {h1-s1.rate: 1mbit}}", "'scheduler' is a field, which has a list of values"),
        ("h1-s1.rate: {a: {h1-s1.rate: 1mbit}}", "'h1-s1.rate' is not one word"),
        (
            "{transport: [tcp, mptcp], network: {a: {transport: tcp}}}",
            "'transport' varies under vary itself already",
        ),
    ],
)
def test_mistakes_of_named_factors_have_their_place(vary: str, message: str) -> None:
    assert message in mistakes_as_text(
        f"{TWO}vary:\n  {vary}\n" if vary[0] != "{" else f"{TWO}vary: {vary}\n"
    )


def test_only_a_named_factor_of_fields_of_the_network_is_a_stratum() -> None:
    vary = "  network: {a: {h1-s1.rate: 1mbit}}\n  host: {b: {scheduler: bpf_rr}}\n"
    scenario = parse(f"{TWO}vary:\n{vary}", "t.yaml")
    assert strata(scenario.model_dump(mode="json")) == ("network",)
    assert strata({"vary": {"network": {"a": 3}, "other": 3}}) == strata(None) == ()


def test_a_file_to_send_can_vary(tmp_path: Path) -> None:
    """Only the file of the base was read, and the other case was refused."""
    for name in ("a", "b"):
        (tmp_path / f"{name}.bin").write_text(name * 10)
    text = (
        "title: Files\nnetwork: {hosts: [h1, h2], links: {h1-h2: {rate: 1mbit}}}\n"
        "traffic: [{transfer: {from: h1, to: h2, file: a.bin}}]\n"
        "vary: {traffic.0.transfer.file: [a.bin, b.bin]}\n"
    )
    (tmp_path / "files.yaml").write_text(text)
    plans = [resolve(case.scenario, 1) for case in expand(load(tmp_path / "files.yaml"))]
    assert [plan.flows[0].application.input_files for plan in plans] == [("a.bin",), ("b.bin",)]
