"""The headline, the tables and the comparisons report each kind of traffic by its own metric."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any

import pytest

from fake_plans import fake_plan
from fake_tables import make_tables
from plait.analysis.compare.cases import compare
from plait.analysis.compare.factors import Design
from plait.analysis.compare.summary import summarise
from plait.analysis.metrics.catalogue import columns, primary_metric
from plait.analysis.metrics.programs import with_connections
from plait.analysis.metrics.trial import computed_metrics, trial_metrics
from plait.analysis.model import CaseSummary, Summary
from plait.analysis.rows import CaseRows, TrialRow
from plait.analysis.statistics.intervals import describe
from plait.metrics import CATALOGUE, COMPARED, columns_beside
from plait.report.headline import headline, sentences
from plait.report.table import value_columns

if TYPE_CHECKING:
    from collections.abc import Sequence

CONNECTION = {"goodput_bps": 8e6, "retransmits": 0.0}
KINDS: dict[str, tuple[dict[str, float], str, str]] = {
    "bulk": (CONNECTION, "goodput_bps", "Goodput 8.00 Mbit/s."),
    "transfer": (CONNECTION | {"completion_s": 2.5}, "completion_s", "Completion time 2.50 s."),
    "stream": (
        CONNECTION | {"message_delay_p50_us": 14e3, "message_delay_p95_us": 2e4, "message_delay_max_us": 3e4},
        "message_delay_p95_us",
        "95th percentile of message delay: mean of all trials 20.0 ms (delay p50 14.0 ms, delay max 30.0 ms).",
    ),
    "request": (
        CONNECTION | {"request_latency_p50_us": 7e4, "request_latency_p95_us": 2.1e5},
        "request_latency_p95_us",
        "95th percentile of request latency: mean of all trials 210 ms (latency p50 70.0 ms).",
    ),
    "page": (CONNECTION | {"page_load_s": 1.5}, "page_load_s", "Page load time: mean of all trials 1.50 s."),
    "udp": (
        {"goodput_bps": 9.8e6, "udp_loss_ratio": 0.182, "udp_delay_p95_us": 109e3, "udp_jitter_us": 286.0},
        "udp_loss_ratio",
        "Share of UDP packets lost: mean of all trials 18.2 % (UDP delay p95 109 ms, UDP jitter 0.286 ms).",
    ),
    "iperf3 -u": (
        {
            "client.iperf3_received_bps": 4.7e6,
            "iperf3_udp_loss_ratio": 914 / 3655,
            "iperf3_udp_jitter_us": 120.0,
        },
        "iperf3_udp_loss_ratio",
        "Share of UDP packets that iperf3 lost: mean of all trials 25.0 % (UDP jitter (iperf3) 0.120 ms).",
    ),
    "ping alone": (
        {"probe_rtt_p50_us": 2e4, "probe_rtt_p95_us": 4e4, "probe_loss_ratio": 0.01},
        "probe_rtt_p95_us",
        "95th percentile of the probes' RTT: mean of all trials 40.0 ms (probes lost 1.00 %).",
    ),
    "ping beside bulk": (CONNECTION | {"probe_rtt_p95_us": 4e4}, "goodput_bps", "Goodput 8.00 Mbit/s."),
    "udp beside bulk": (CONNECTION | {"udp_loss_ratio": 0.1}, "goodput_bps", "Goodput 8.00 Mbit/s."),
    "a call beside pages on connections too short for a sample": (
        {"goodput_bps": 4.9e6, "udp_loss_ratio": 0.0, "page_load_s": 1.5},
        "page_load_s",
        "Page load time: mean of all trials 1.50 s.",
    ),
    "a program": (
        {"curl.duration_s": 2.5},
        "goodput_bps",
        "Programs alone were measured: curl ran for 2.50 s.",
    ),
}


def summary(*cases: dict[str, float]) -> Summary:
    return Summary(
        scenario="s",
        digest="",
        cases=tuple(
            CaseSummary(
                name=f"c{n}" if len(cases) > 1 else "default",
                settings={"n": n} if len(cases) > 1 else {},
                trials=1,
                failed=0,
                metrics={name: describe([value]) for name, value in metrics.items()},
            )
            for n, metrics in enumerate(cases)
        ),
        comparisons=(),
    )


@pytest.mark.parametrize("kind", KINDS)
def test_headline_and_table_report_each_kind_of_traffic_by_its_metric(kind: str) -> None:
    metrics, primary, expected = KINDS[kind]
    study_summary = summary(metrics)
    assert primary_metric(study_summary) == primary
    assert "".join(words for words, _ in headline(study_summary)) == expected
    shown = {column.name: column.cells for column in value_columns(study_summary, "page")}
    others = [metric for metric in columns(primary) if metric in metrics]
    leading = [metric for metric in columns_beside(COMPARED[primary]) if metric in metrics]
    first = [name for name in shown if name in others][: len(leading)]
    assert sorted(first) == sorted(leading), "those of the kind of traffic stand before others"
    assert set(others) <= set(shown)
    assert not set(columns(primary)) - set(metrics) & set(shown)


def loaded(*loads_s: Sequence[float], **design: Any) -> str:
    """Return the headline of cases `n 0`, `n 1`, .. with these page load times by seed."""
    cases = [
        CaseRows(
            f"c{n}",
            {"n": n},
            tuple(TrialRow(i, i, str(i), {"page_load_s": value}) for i, value in enumerate(of_case)),
        )
        for n, of_case in enumerate(loads_s)
    ]
    study = summarise(cases, scenario="s", digest="", baseline="c0", design=Design(**design))
    return "".join(text for text, _ in headline(study)).partition(" Against ")[0]


@pytest.mark.parametrize(
    ("loads_s", "expected"),
    [
        ((1.5, 2.0, 1.75), "Of three cases, n 0 has the shortest page load time, 1.50 s."),
        (
            (1.5, 2.0, 1.5),
            "Of three cases, n 0 and n 2 have the shortest page load time, 1.50 s (the same within 1 %).",
        ),
        (
            (1.5, 2.0, 1.51, 1.5, 1.505, 1.5),
            (
                "Of six cases, n 0, n 2, n 3 and two others have the shortest page load time, 1.50 to 1.51 s (the "
                "same within 1 %)."
            ),
        ),
        ((1.5, 1.5, 1.5), "All three cases have the same page load time, 1.50 s."),
        ((1.5, 1.51, 1.5), "All three cases have the same page load time within 1 %, 1.50 to 1.51 s."),
    ],
)
def test_the_headline_names_no_single_best_case_where_several_are_equal(
    loads_s: tuple[float, ...], expected: str
) -> None:
    assert loaded(*((load_s, load_s * 1.001) for load_s in loads_s)) == expected


def test_the_headline_names_no_winner_that_chance_could_have_chosen() -> None:
    assert loaded((1.5, 1.9, 1.2), (1.6, 1.7, 1.4), (4.5, 4.9, 4.4)) == (
        "Of three cases, n 0 has the shortest page load time, 1.53 s; the trials do not decide whether n 1 differs "
        "from it."
    )
    assert loaded((1.5, 1.9, 1.2), (1.6, 1.7, 1.4), (1.5, 1.9, 1.4)) == (
        "Three cases: page load time 1.53 to 1.60 s; the trials do not decide which has the shortest page load time."
    )


def test_the_headline_says_which_completed_trials_have_no_value() -> None:
    measured, unfinished = summary({"completion_s": 2.5}, {"completion_s": 2.0, "retransmits": 3.0}).cases
    nothing = {**unfinished.metrics, "completion_s": describe([])}
    study = summary({}, {}).model_copy(
        update={"cases": (measured, unfinished.model_copy(update={"metrics": nothing}))}
    )
    words = "".join(text for text, _ in headline(study))
    assert words == "N 0 2.50 s. No trial of n 1 has a value."
    two = [
        unfinished.model_copy(
            update={"metrics": nothing, "settings": {"n": n, "loss": "2%"}, "name": f"n={n}"}
        )
        for n in (1, 2)
    ]
    words = "".join(text for text, _ in headline(study.model_copy(update={"cases": (measured, *two)})))
    assert words.endswith(" No trial of n 1, loss 2%; and n 2, loss 2% has a value."), words
    alone = study.model_copy(update={"cases": study.cases[1:]})
    assert "".join(text for text, _ in headline(alone)).endswith(": nothing was measured.")
    failed = study.cases[1].model_copy(update={"failed": 1})
    study = study.model_copy(update={"cases": (measured, failed)})
    assert "".join(text for text, _ in headline(study)) == "N 0 2.50 s."


def test_the_smallest_difference_of_interest_is_the_scenarios() -> None:
    near = ((1.5, 1.51), (1.52, 1.53), (3.0, 3.1))
    assert "n 0 and n 1 have" in loaded(*near, margins={"page_load_s": 0.03})
    assert "n 0 has" in loaded(*near)


def test_the_headline_has_a_sentence_for_each_network() -> None:
    rows = ((2.0, 2.1), (3.0, 3.1), (40.0, 41.0), (20.0, 20.5))
    cases = [
        CaseRows(
            f"c{n}",
            {"network": network, "scheduler": scheduler},
            tuple(TrialRow(i, i, str(i), {"page_load_s": value}) for i, value in enumerate(rows[n])),
        )
        for n, (network, scheduler) in enumerate(product(("slow", "fast"), ("a", "b")))
    ]
    study = summarise(cases, scenario="s", digest="", baseline="c0", design=Design(strata=("network",)))
    text = "".join(text for text, _ in headline(study))
    assert text.startswith("slow: Of two cases, scheduler a has the shortest page load time, 2.05 s")
    assert " fast: Of two cases, " in text
    assert "these networks, and say nothing about others" not in " ".join(sentences(study)), (
        "nothing was tested"
    )


def test_tests_along_factors_come_with_what_they_do_not_show() -> None:
    cases = [
        CaseRows(
            f"c{n}", {"n": n}, tuple(TrialRow(i, i, str(i), {"page_load_s": n + i / 100}) for i in range(5))
        )
        for n in (1, 2, 3)
    ]
    cases[0].rows[0].metrics["page_load_s"] = 1.3
    study = summarise(cases, scenario="s", digest="", baseline="c1")
    assert (
        "Repeats differ in their seeds alone: tests and intervals hold for this network, and say nothing about "
        "others. With 5 seeds they assume normal values."
    ) in sentences(study)


def test_a_mean_of_fewer_trials_says_of_how_many() -> None:
    rows = [TrialRow(i, i, str(i), {"page_load_s": None if i else 2.0}) for i in range(3)]
    study = summarise([CaseRows("c0", {}, tuple(rows))], scenario="s", digest="", baseline="c0")
    assert "The mean page load time is of 1 of 3 trials (c0); the others have no value." in sentences(study)


def test_cases_of_other_traffic_are_reported_by_their_own_metric() -> None:
    study_summary = summary(CONNECTION, KINDS["iperf3 -u"][0])
    assert "".join(words for words, _ in headline(study_summary)) == "N 0 8.00 Mbit/s."
    assert sentences(study_summary) == ["Share of UDP packets that iperf3 lost: n 1 25.0 %."]


def test_a_loss_where_there_was_none_is_compared_in_words() -> None:
    """A ratio to zero does not exist; that no seed has a value of both would be wrong."""

    def case(name: str, values: list[float]) -> CaseRows:
        made = [TrialRow(i, i, "", {"udp_loss_ratio": value}) for i, value in enumerate(values)]
        return CaseRows(name, {"n": name}, tuple(made))

    (comparison,) = compare([case("none", [0.0, 0.0, 0.0]), case("some", [0.1, 0.12, 0.11])], "none")
    assert (comparison.ratio, comparison.verdict, comparison.pairs) == (None, "more", 3)
    assert comparison.sentence.startswith(
        "The share of UDP packets lost is 11.0 % with n some, and zero with n none"
    )


def test_every_column_has_a_heading() -> None:
    assert all(CATALOGUE[metric].heading for metric in columns("goodput_bps"))


def test_the_connection_of_iperf3_in_udp_only_controls_and_its_packets_are_counted_together() -> None:
    plan = fake_plan()
    about = {"flow": 1, "program": "client", "client": "h1", "server": "h2", "sender": "client"}
    ends = {"client_address": "10.9.0.1", "client_port": 1, "server_address": "10.9.0.2", "server_port": 5201}
    figures = {
        "iperf3_packets": 3655,
        "iperf3_lost_packets": 914,
        "iperf3_jitter_us": 120,
        "iperf3_udp_bps": 9,
    }
    row = {"name": "client:5201", "kind": "program", "transport": "tcp", "completed": True, "start_us": 0}
    tables = make_tables(
        {
            "flows": [{"flow": 1, "end_us": 10**6, "received_bytes": 195, **row}],
            "connections": [{"flow": 1, "t_us": 10**6, "side": "server", "received_bytes": 195}],
            "program_flows": [about | ends],
            "programs": [{"program": "client", "start_us": 0, "end_us": 10**6, "stopped": False}],
            "program_figures": [
                {"program": "client", "figure": name, "value": value} for name, value in figures.items()
            ],
        }
    )
    planned = plan.model_copy(update={"flows": ()})
    (control,) = with_connections(planned, tables).flows
    assert control.background
    metrics = trial_metrics(with_connections(planned, tables), tables)
    assert metrics["goodput_bps"] is None
    assert metrics["iperf3_udp_loss_ratio"] == 914 / 3655
    assert metrics["iperf3_udp_jitter_us"] == 120
    tables["program_figures"] = tables["program_figures"].clear()
    assert not with_connections(planned, tables).flows[0].background, "of TCP it is what was measured"


def test_the_completion_time_that_a_program_reports_can_be_judged() -> None:
    figures = [{"program": "client", "figure": "completion_us", "value": 2_650_000}]
    programs = [{"program": "client", "start_us": 0, "end_us": 10**7, "stopped": False}]
    tables = make_tables({"programs": programs, "program_figures": figures})
    metrics = trial_metrics(fake_plan().model_copy(update={"flows": ()}), tables)
    assert (metrics["client.completion_us"], metrics["client.completion_s"]) == (2_650_000, 2.65)


def test_probes_report_round_trips_and_missing_answers() -> None:
    times = [10_000] * 18 + [50_000, None]
    probes = [{"t_us": n, "path": "p", "rtt_us": rtt} for n, rtt in enumerate(times)]
    computed = computed_metrics(fake_plan(), make_tables({"probes": probes}), {})
    assert {name: value for name, value in computed.items() if name.startswith("probe_")} == {
        "probe_rtt_p50_us": 10_000,
        "probe_rtt_p95_us": 50_000,
        "probe_loss_ratio": 0.05,
    }
    assert not any(name.startswith("probe_") for name in computed_metrics(fake_plan(), make_tables({}), {}))
