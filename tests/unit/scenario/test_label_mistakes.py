"""Labels in scenarios: what they may be, what they may name, and that they change no plan."""

from __future__ import annotations

import pytest

from plait.errors import ScenarioError
from plait.label_text import label_problem
from plait.scenario import parse
from plait.scenario.vary.cases import expand

SCENARIO = """\
title: Labels
network:
  hosts: {h1: {label: Phone}, h2: }
  switches: [s1, two-part]
  links:
    h1-s1: {rate: 5mbit, label: Wi-Fi}
    s1-h2: {rate: 5mbit}
    h1-two-part: {rate: 5mbit}
    two-part-h2: {rate: 5mbit}
    two-part-h2#2: {rate: 5mbit}
traffic:
  - bulk: {from: h1, to: h2, duration: 1s, label: Upload}
vary:
  transport: [tcp, mptcp]
labels:
  links: {s1-h2: Fibre}
  paths: {h1-s1-h2: over Wi-Fi, 'h1-two-part-h2#2': over two}
  cases: {transport=tcp: Today}
"""


def messages(text: str) -> str:
    """Return the located mistakes of a scenario."""
    with pytest.raises(ScenarioError) as refused:
        expand(parse(text, "labels.yaml", ()))
    return str(refused.value)


def test_labels_change_no_plan() -> None:
    without = SCENARIO.partition("labels:")[0]
    for word in ("{label: Phone}", ", label: Wi-Fi", ", label: Upload"):
        without = without.replace(word, "")
    labelled = [case.scenario for case in expand(parse(SCENARIO, "a", ()))]
    plain = [case.scenario for case in expand(parse(without, "a", ()))]
    from plait.plan.resolve import resolve

    assert [resolve(case, 1) for case in labelled] == [resolve(case, 1) for case in plain]


@pytest.mark.parametrize(
    ("old", "new", "place", "problem"),
    [
        ("label: Wi-Fi", "label: 5", "6:26: network.links.h1-s1.label", "5 is not text; put quotes around it"),
        ("label: Wi-Fi", 'label: "a\\u0007b"', "6:26: network.links.h1-s1.label", "remove the control characters"),
        ("label: Wi-Fi", 'label: "a\\u202eb"', "6:26: network.links.h1-s1.label", "remove the control characters"),
        ("label: Wi-Fi", 'label: "a\\nb"', "6:26: network.links.h1-s1.label", "a label is one line"),
        ("label: Wi-Fi", f"label: {'x' * 61}", "6:26: network.links.h1-s1.label", "has 61 characters"),
        ("label: Wi-Fi", 'label: " "', "6:26: network.links.h1-s1.label", "at least one letter"),
        ("label: Wi-Fi", "label: Fibre", "labels.links.s1-h2", "'Fibre' is also the label of the link h1-s1"),
        ("label: Phone", "label: h2", "network.hosts.h1.label", "'h2' is also the name of a node"),
        ("s1-h2: Fibre", "h1-s1: Fibre", "labels.links.h1-s1", "also has the label 'Wi-Fi'; remove one"),
        ("h1-s1-h2: over", "s1-h1: over", "labels.paths.s1-h1", "has the name of the link; write 'h1-s1'"),
        ("h1-two-part-h2#2'", "h2-two-part#2~2'", "labels.paths.h2-two-part#2~2", "write 'two-part-h2#2~2'"),
        ("s1-h2: Fibre", "s1-h3: Fibre", "labels.links.s1-h3", "did you mean 's1-h2'?"),
        ("h1-s1-h2: over", "h1-h2: over", "labels.paths.h1-h2", "is no path over links of this network"),
        ("h1-s1-h2: over", "h1: over", "labels.paths.h1", "is no path over links of this network"),
        ("transport=tcp: ", "transport=tpc: ", "labels.cases.transport=tpc", "did you mean 'transport=tcp'?"),
        ("  cases:", "  flows: {bulk2: x}\n  cases:", "labels.flows.bulk2", "did you mean 'bulk1'?"),
        ("  transport: [tcp", "  traffic.0.bulk.label: [a, b]\n  transport: [tcp", "vary.traffic", "cannot vary"),
        ("duration: 1s, label", "duration: 1s, users: 3, label", "traffic.0.bulk", "labels.flows"),
    ],
)  # fmt: skip
def test_a_wrong_label_is_refused_at_its_place(old: str, new: str, place: str, problem: str) -> None:
    assert old in SCENARIO
    text = messages(SCENARIO.replace(old, new))
    assert place in text
    assert problem in text


def test_flows_of_an_entry_and_users_can_have_labels() -> None:
    counted = SCENARIO.replace("duration: 1s, label: Upload", "duration: 1s, count: 2").replace(
        "  cases:", "  flows: {bulk1.2: Second}\n  cases:"
    )
    assert parse(counted, "a", ()).labels is not None
    users = SCENARIO.replace("duration: 1s, label: Upload", "duration: 1s, users: 2").replace(
        "  cases:", "  flows: {user2: Eve}\n  cases:"
    )
    assert parse(users, "a", ()).labels is not None


def test_another_vary_of_the_command_line_removes_the_labels_of_cases() -> None:
    scenario = parse(SCENARIO, "a", ("vary.transport=[mptcp]",))
    assert scenario.labels is not None
    assert scenario.labels.cases == {}
    assert [case.name for case in expand(scenario)] == ["transport=mptcp"]


@pytest.mark.parametrize("text", ["Wi-Fi", "5 GHz", "Büro <b>", "日本", "a" * 60])
def test_what_people_write_can_be_a_label(text: str) -> None:
    assert label_problem(text) is None
