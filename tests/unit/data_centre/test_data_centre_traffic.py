"""Traffic of data centres: who sends to whom, and arrivals whose sizes and times have the distributions asked for."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from scipy import stats

from plait.scenario.generators.data_centre import AllToAll, Arrivals, Hotspot, Incast
from plait.scenario.generators.patterns import MAX_FLOWS
from plait.traffic.transfer import Transfer
from scenario_samples import mistakes_as_text, plan_of

FAT_TREE = "title: t\nnetwork: {generator: fat-tree, k: 4, rate: 100mbit}\ntransport: tcp\n"
HOSTS = [f"h{i}" for i in range(128)]
BULK = {"bulk": {"duration": "1s"}}


def arrivals(**fields: object) -> Arrivals:
    return Arrivals.model_validate({"load": "50%", "rate": "100mbit", "duration": "1s", **fields})


def test_all_to_all_is_every_ordered_pair_once() -> None:
    plan = plan_of(FAT_TREE + "traffic: [{all-to-all: {hosts: 'p0*', each: {bulk: {duration: 1s}}}}]")
    pairs = [(flow.client.netns, flow.server.netns) for flow in plan.flows]
    hosts = [f"p0e{e}h{h}" for e in (0, 1) for h in (0, 1)]
    assert sorted(pairs) == sorted((a, b) for a in hosts for b in hosts if a != b)


def test_many_hosts_make_no_more_pairs_than_are_refused() -> None:
    """4096 hosts have 17 million pairs, which a stranger's file must not cost."""
    assert len(AllToAll(each=BULK).ends([f"h{i}" for i in range(4096)])) == MAX_FLOWS + 1


def test_an_incast_has_one_receiver_and_so_many_senders() -> None:
    for seed in range(20):
        ends = Incast(seed=seed, senders=32, each=BULK).ends(HOSTS)
        assert len({receiver for _, receiver in ends}) == 1
        assert len({sender for sender, _ in ends} - {ends[0][1]}) == 32
    assert {receiver for _, receiver in Incast(to="h5", each=BULK).ends(HOSTS)} == {"h5"}
    assert len(Incast(to="h5", each=BULK).ends(HOSTS)) == 127


def test_so_many_hosts_send_to_a_hot_spot() -> None:
    assert all(a != b for seed in range(20) for a, b in Hotspot(seed=seed, each=BULK).ends(HOSTS))
    hottest = [
        Counter(b for _, b in Hotspot(seed=seed, each=BULK).ends(HOSTS)).most_common(1)[0][1]
        for seed in range(20)
    ]
    expected = 0.5 * 127 + 0.5  # half of the others, and of the other half one in 127
    assert abs(np.mean(hottest) - expected) < 3 * np.sqrt(0.25 * 127 / 20)


def test_arrivals_offer_the_load_that_is_asked_for() -> None:
    flows = arrivals(duration="5s", sizes=[{"bytes": "2001B", "share": "100%"}], load="1%", seed=3).flows(
        HOSTS[:4]
    )
    # 4 hosts * 1 % of 100 Mbit/s over 8 bits of 1001 bytes, which is the mean of 1 to 2001 bytes
    rate = 4 * 0.01 * 100e6 / (8 * 1001)
    assert abs(len(flows) - 5 * rate) < 4 * np.sqrt(5 * rate)
    starts = [int(fields["start"].removesuffix("us")) for _, _, fields in flows]
    gaps = np.diff(starts) / 1e6
    assert stats.kstest(gaps, stats.expon(scale=1 / rate).cdf).pvalue > 0.01
    sizes = [int(fields["bytes"].removesuffix("B")) for _, _, fields in flows]
    assert stats.kstest(sizes, stats.uniform(1, 2000).cdf).pvalue > 0.01
    pairs = Counter((a, b) for a, b, _ in flows)
    assert len(pairs) == 12
    assert stats.chisquare(list(pairs.values())).pvalue > 0.01


@pytest.mark.parametrize(("name", "mean"), [("web-search", 1.711e6), ("data-mining", 12.67e6)])
def test_published_distributions_have_their_means_and_shares(name: str, mean: float) -> None:
    drawn = arrivals(sizes=name)
    assert drawn.mean_bytes == pytest.approx(mean, rel=0.01)
    shares = [share for _, share in drawn.points()]
    assert shares[0] == 0
    assert shares[-1] == 1
    for size, share in drawn.points()[1:]:
        assert drawn._size(share) == size
    assert all(a < b for a, b in pairwise(size for size, _ in drawn.points()))


def test_each_flow_belongs_to_the_class_of_its_size() -> None:
    plan = plan_of(FAT_TREE + "traffic: [{arrivals: {load: 40%, rate: 100mbit, duration: 2s}}]")
    for flow in plan.flows:
        assert isinstance(flow.application, Transfer)
        size = flow.application.bytes
        assert flow.group == ("small" if size <= 100_000 else "medium" if size <= 10_000_000 else "large")
    assert {flow.group for flow in plan.flows} == {"small", "medium", "large"}


def test_a_seed_gives_the_same_arrivals_for_ever() -> None:
    a, b, fields = arrivals().flows(HOSTS)[0]
    assert (a, b, fields["bytes"], fields["start"]) == ("h16", "h62", "36711B", "318us")


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        ("arrivals: {load: 0%, rate: 1mbit, duration: 1s}", "load"),
        (
            "arrivals: {load: 50%, rate: 100mbit, duration: 1s, each: {bulk: {duration: 1s}}}",
            "must be a transfer",
        ),
        (
            "arrivals: {load: 50%, rate: 100mbit, duration: 1s, each: {transfer: {bytes: 1MB}}}",
            "remove bytes",
        ),
        ("arrivals: {load: 1%, rate: 1kbit, duration: 1s}", "no flow starts"),
        ("arrivals: {load: 90%, rate: 100gbit, duration: 60s}", "more than 4096 flows"),
        (
            "arrivals: {load: 50%, rate: 1mbit, duration: 1s, sizes: [{bytes: 2kB, share: 50%}]}",
            "up to 100 %",
        ),
        ("incast: {senders: 16, each: {bulk: {duration: 1s}}}", "15 hosts can send"),
        ("hotspot: {spots: 17, each: {bulk: {duration: 1s}}}", "too few for 17"),
        ("incast: {to: nobody, each: {bulk: {duration: 1s}}}", "no host matches 'nobody'"),
    ],
)
def test_mistakes_say_what_to_write(entry: str, problem: str) -> None:
    assert problem in mistakes_as_text(FAT_TREE + f"traffic: [{{{entry}}}]")
