"""The report crosses two settings in one table, and labels distinguish settings and values."""

from __future__ import annotations

from itertools import product

from plait.analysis.labels.cases import case_label
from plait.analysis.model import CaseSummary, Statistics, Summary
from plait.report.page.tables import crossed, crossed_settings


def summary(*settings: dict[str, object]) -> Summary:
    cases = [
        CaseSummary(
            name=str(number), settings=given, trials=1, failed=0,
            metrics={"goodput_bps": Statistics(n=1, mean=1e6 * (number + 1), min=1, max=1)},
        )
        for number, given in enumerate(settings)
    ]  # fmt: skip
    return Summary(scenario="s", digest="sha256:0", cases=tuple(cases), comparisons=())


CROSSED = [
    {"n": n, "scheduler": scheduler, "cc": cc}
    for n, scheduler, cc in product((1, 2), "xyz", ("a", "b", "c", "d"))
]


def test_the_two_settings_with_most_choices_are_crossed() -> None:
    assert crossed_settings(summary(*CROSSED).cases) == ("scheduler", "cc")
    assert crossed_settings(summary(*CROSSED[1:]).cases) is None, "one combination is missing"
    assert crossed_settings(summary(*[case for case in CROSSED if case["cc"] in "ab"]).cases) is None


def test_every_case_stands_once_in_the_tables() -> None:
    page = crossed(summary(*CROSSED))
    assert page.count("<h3>") == 2
    assert "Scheduler by cc" in page
    assert [page.count(f">{n}.00 Mbit/s<") for n in range(1, 10)] == [1] * 9
    assert page.index(">4.00 Mbit/s<") < page.index("<h3>n 2</h3>") < page.index(">13.0 Mbit/s<")


def test_labels_distinguish_settings_of_the_same_name_and_structured_values() -> None:
    assert case_label("", {"a.delay": "1ms", "b.delay": "2ms"}) == "a.delay 1ms, b.delay 2ms"
    assert case_label("", {"network.delays.1": "9ms"}) == "delays.1 9ms"
    assert case_label("", {"events": []}) == "events none"
    assert case_label("", {"events": [{"at": "1s", "down": "h1-s1"}]}) == "events at 1s down h1-s1"
    assert case_label("", {"rates": ["1mbit", "2mbit"]}) == "rates 1mbit/2mbit"
