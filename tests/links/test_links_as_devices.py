"""Trials whose links are devices: they give what trials with chains give, and always the same bytes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from plait import kernel as kernels
from plait.binaries import AGENT
from plait.dataset.convert import convert
from plait.dataset.digest import trial_digest
from plait.engine.engine import Job
from plait.engine.virtual.trial import VirtualEngine
from plait.explain import Cause, explain_trial
from plait.plan.links.chain import with_chains
from plait.plan.resolve import resolve
from plait.scenario import load, parse
from plait.scenario.vary.cases import expand
from plait.seeds import trial_seed

if TYPE_CHECKING:
    from collections.abc import Callable

    import polars as pl

    from plait.plan.model.plan import LinksAs

pytestmark = pytest.mark.guest

Tables = dict[str, "pl.DataFrame"]
LINE = """
title: One link
network:
  hosts: [h1, h2]
  links:
    h1-h2: {LINK}
traffic:
  - bulk: {from: h1, to: h2, duration: 10s, transport: tcp}
"""
EVENTS = """
events:
  - {at: 3s, set: {h1-h2: {rate: 2mbit, delay: 30ms}}}
  - {at: 5s, cut: h1-h2}
  - {at: 6s, up: h1-h2}
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Tables]:
    """Return a function that runs a case of a scenario, with links of one kind."""
    kernel = kernels.ensure()

    def run_case(
        scenario: str, links: LinksAs, *overrides: str, case: int = 0, exact: bool = False
    ) -> Tables:
        model = parse(scenario, "test.yaml", overrides) if "\n" in scenario else load(scenario, overrides)
        plan = resolve(expand(model)[case].scenario, trial_seed(model.seed, 0))
        plan = with_chains(plan) if exact else plan
        folder = tmp_path_factory.mktemp("trial")
        VirtualEngine(kernel, AGENT, links=links).execute(Job(plan, {}, folder))
        return convert(folder / "data", folder / "tables")

    return run_case


def goodput(tables: Tables) -> float:
    """Return the bytes that all receivers got."""
    last = tables["connections"].filter(tables["connections"]["side"] == "server").sort("t_us")
    return float(last.group_by("flow").last()["received_bytes"].sum())


def test_the_same_trial_gives_the_same_bytes(run: Callable[..., Tables]) -> None:
    short = ("traffic.0.bulk.duration=2s",)
    first, second = (trial_digest(run("two-paths", "device", *short, case=1)) for _ in range(2))
    assert first == second
    assert first != trial_digest(run("two-paths", "chain", *short, case=1))


@pytest.mark.parametrize("case", [0, 1])
def test_two_paths_carry_what_they_carry_as_chains(run: Callable[..., Tables], case: int) -> None:
    device, chain = (goodput(run("two-paths", links, case=case)) for links in ("device", "chain"))
    assert device == pytest.approx(chain, rel=0.005)


@pytest.mark.parametrize(
    "link",
    [
        "rate: 33mbit, delay: 5ms",
        "rate: 10mbit, delay: 10ms, queue: 20pkt",
        "rate: 10mbit, delay: 10ms, queue: 60kB",
        "rate: 10mbit, delay: 10ms, jitter: 2ms",
        "rate: 10mbit, delay: 10ms, queue: 200pkt, aqm: codel",
        "rate: 10mbit, delay: 10ms, queue: 200pkt, aqm: fq_codel",
    ],
)
def test_a_link_carries_what_it_carries_as_a_chain(run: Callable[..., Tables], link: str) -> None:
    scenario = LINE.replace("LINK", link)
    device, chain = (goodput(run(scenario, links)) for links in ("device", "chain"))
    assert device == pytest.approx(chain, rel=0.02)


def test_a_first_packet_needs_its_own_transmission_time(run: Callable[..., Tables]) -> None:
    tables = run(LINE.replace("LINK", "rate: 1mbit, delay: 10ms"), "device")
    subflows = tables["subflows"].filter(tables["subflows"]["side"] == "client").sort("t_us")
    # the last packet of the handshake and a full segment follow each other, and an acknowledgement comes back
    expected_us = 20_000 + (66 + 1514 + 66) * 8
    assert subflows["min_rtt_us"].drop_nulls()[-1] == pytest.approx(expected_us, abs=1)


def test_a_chain_of_a_stock_kernel_departs_as_exactly(run: Callable[..., Tables]) -> None:
    """The laboratory kernel has the same netem: in virtual time, the arithmetic of a line holds to the microsecond."""
    tables = run(LINE.replace("LINK", "rate: 1mbit, delay: 10ms"), "chain", exact=True)
    subflows = tables["subflows"].filter(tables["subflows"]["side"] == "client").sort("t_us")
    assert subflows["min_rtt_us"].drop_nulls()[-1] == pytest.approx(20_000 + (66 + 1514 + 66) * 8, abs=2)


@pytest.mark.parametrize(
    "link", ["rate: 10mbit, delay: 10ms, queue: 20pkt", "rate: 33mbit, delay: 5ms, loss: 0.01%"]
)
def test_the_queue_of_such_a_chain_is_that_of_a_device(run: Callable[..., Tables], link: str) -> None:
    scenario = LINE.replace("LINK", link)
    device, chain = (run(scenario, links, exact=links == "chain") for links in ("device", "chain"))
    assert goodput(device) == pytest.approx(goodput(chain), rel=0.005)
    longest = [
        rows.filter(rows["link"] == "h1->h2")["queue_packets"].max()
        for rows in (device["links"], chain["links"])
    ]
    assert longest[1] - longest[0] in (0, 1), "netem counts the packet that it sends"
    overflow = [
        rows.filter(rows["link"] == "h1->h2").sort("t_us")["overflow_packets"][-1]
        for rows in (device["links"], chain["links"])
    ]
    assert (overflow[0] > 0) == (overflow[1] > 0)


def carried(rows: pl.DataFrame, begin_s: float, end_s: float) -> float:
    """Return the bits per second that a link's direction carried between two samples."""
    part = rows.filter((rows["t_us"] >= begin_s * 1e6) & (rows["t_us"] <= end_s * 1e6))
    return float((part["sent_bytes"][-1] - part["sent_bytes"][0]) * 8 / (end_s - begin_s))


def test_events_change_cut_and_restore_a_device(run: Callable[..., Tables]) -> None:
    tables = run(LINE.replace("LINK", "rate: 10mbit, delay: 10ms") + EVENTS, "device")
    rows = tables["links"].filter(tables["links"]["link"] == "h1->h2").sort("t_us")

    assert carried(rows, 1.5, 2.9) == pytest.approx(10e6, rel=0.02)
    assert carried(rows, 4, 5) == pytest.approx(2e6, rel=0.02)
    assert carried(rows, 5.8, 6) == 0  # what waited at the cut has left
    assert carried(rows, 8, 10) == pytest.approx(2e6, rel=0.02)
    dropped = rows.filter(rows["t_us"] == rows["t_us"].max())["dropped_packets"][0]
    assert dropped > 0


BUCKET = "rate: 10mbit, delay: 10ms, bucket: {baseline: 2mbit, burst: 1MB}"
MORE = """
events:
  - {at: 5s, set: {h1-h2: {rate: 10mbit, bucket: {baseline: 4mbit, burst: 2MB}}}}
"""


def test_an_event_changes_a_bucket_and_does_not_fill_it(run: Callable[..., Tables]) -> None:
    """An empty bucket lets the new baseline through, not its new size at the rate of the link."""
    tables = run(LINE.replace("LINK", BUCKET) + MORE, "device")
    rows = tables["links"].filter(tables["links"]["link"] == "h1->h2").sort("t_us")

    assert carried(rows, 3, 5) == pytest.approx(2e6, rel=0.02)
    assert carried(rows, 5.1, 9) == pytest.approx(4e6, rel=0.02)


def test_the_tables_have_the_level_of_a_bucket_and_explain_reads_it(run: Callable[..., Tables]) -> None:
    """1 MB last for 1e6 * 8 / (10e6 - 2e6) = 1 s at 10 Mbit/s, after slow start."""
    scenario = LINE.replace("LINK", BUCKET) + MORE
    tables = run(scenario, "device")
    rows = tables["links"].filter(tables["links"]["link"] == "h1->h2").sort("t_us")
    levels = dict(zip(rows["t_us"], rows["bucket_bytes"], strict=True))
    assert levels[min(levels)] == 1_000_000
    assert all(level < 4 * 1514 for t_us, level in levels.items() if 3e6 < t_us < 9e6)
    between = [(t_us, level) for t_us, level in levels.items() if 200_000 < level < 800_000]
    (t1, level1), (t2, level2) = between[0], between[-1]
    assert (level1 - level2) * 8e6 / (t2 - t1) == pytest.approx(8e6, rel=0.03)

    (explanation,) = explain_trial(resolve(expand(parse(scenario, "test.yaml"))[0].scenario, 1), tables)
    (share,) = [share for share in explanation.shares if share.cause == Cause.BUCKET_EMPTY]
    # 3.9 s, of which the flow uses a fifth of the rate, and 5 s of two fifths
    assert share.time == pytest.approx((3.9 * 0.8 + 5 * 0.6) / 10, abs=0.02)
    text = " ".join(share.evidence)
    assert "holds 1 MB and refills at 2 Mbit/s; from 5.00 s it holds 2 MB and refills at 4 Mbit/s." in text
    assert re.search(r"It was empty from 1\.[12]0 s to 10\.0 s\.", text), text


def test_a_chain_has_no_level_and_no_queueing_delays(run: Callable[..., Tables]) -> None:
    tables = run(LINE.replace("LINK", BUCKET), "chain")
    assert tables["links"]["bucket_bytes"].null_count() == tables["links"].height
    assert "queueing_delays" not in tables


def test_every_packet_that_a_queue_sent_has_a_queueing_delay(run: Callable[..., Tables]) -> None:
    tables = run(LINE.replace("LINK", "rate: 10mbit, delay: 10ms, queue: 50pkt"), "device")
    delays, links = tables["queueing_delays"], tables["links"]
    for name in ("h1->h2", "h2->h1"):
        sent = links.filter(links["link"] == name)["sent_packets"].max()
        packets = delays.filter(delays["link"] == name)["packets"].sum()
        assert sent <= packets <= sent + 20  # on the way
    longest = delays.filter(delays["link"] == "h1->h2")["at_least_ns"].max()
    assert 50 * 1514 * 800 * 7 / 8 < longest < 50 * 1514 * 800  # of a full queue
    back = delays.filter(delays["link"] == "h2->h1")
    assert back.filter(back["at_least_ns"] == 0)["packets"].sum() > 0.9 * back["packets"].sum()
    assert tables["links"]["bucket_bytes"].null_count() == links.height


@pytest.mark.parametrize(
    ("links", "text", "reason"),
    [
        ("device", BUCKET, ""),
        ("chain", BUCKET, "makes links chains of qdiscs here"),
        ("device", BUCKET + ", middlebox: {strip: all}", "makes a link with a middlebox"),
    ],
)
def test_a_bucket_of_a_chain_does_not_change(links: LinksAs, text: str, reason: str) -> None:
    scenario = LINE.replace("LINK", text) + MORE
    plan = resolve(expand(parse(scenario, "test.yaml"))[0].scenario, 1)
    missing = VirtualEngine(kernels.ensure(), AGENT, links=links).unsupported(plan)
    assert [each.use.feature for each in missing] == (["bucket events"] if reason else [])
    assert all(each.reason.startswith(reason) for each in missing)
